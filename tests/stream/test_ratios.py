"""Likelihood ratios along a stream, by hand and against a fit by definition."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.maths.condition import NEW, UNLIKE, Condition, degradation, unlike
from monitor.maths.evidence import MISSES, ConditionEffect, ConditionEffects
from monitor.population.cohort import Cohort, CohortScoring, FeatureTemplates
from monitor.population.people import Speaker, sound_of
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels
from monitor.stream.attacker import Attacker
from monitor.stream.choice import explain_missing_ratios
from monitor.stream.monitor import Monitor
from monitor.stream.notices import setup_notices
from monitor.stream.posterior import LikelihoodRatioScorer
from monitor.stream.totals import RunningTotals
from tests.population.rank_models import evidence_model, population, some_rank_model

SIZE = 12
FEATURES = ("f0", "phones")


def cohort(people=30, seed=0, features=FEATURES) -> Cohort:
    generator = np.random.default_rng(seed)
    made = {}
    for name in features:
        counts = generator.multinomial(300, generator.dirichlet(np.ones(SIZE), people))
        counts[3] = 0  # of whom nothing was heard
        made[name] = FeatureTemplates(
            FeatureSpec(name, HISTOGRAM, SIZE, 0.01), counts.astype(np.uint16)
        )
    return Cohort(np.full(people, 3.0), made)


def changed(people: Population, **parts: Any) -> Population:
    """The same people, with other parts."""
    own = {
        name: getattr(people, name)
        for name in ("speakers", "offsets", "features", "rank_models", "cohort")
    }
    return Population(**(own | parts))


def made(**rank_model):
    """A population whose rank model reads some bits for some of these templates."""
    generator = np.random.default_rng(5)
    rank_model = {"intercept": np.full((41, 4, 2), 6.0)} | rank_model
    against = cohort()
    own = some_rank_model(FEATURES, template_lengths=(10.0, 60.0))
    own = replace(own, evidence=evidence_model(own, against, **rank_model))
    people = population(features=FEATURES)
    whole = changed(people, rank_models=RankModels([own]), cohort=against)
    scoring = whole.scoring()
    voices = generator.dirichlet(np.ones(SIZE), (len(FEATURES), 5))
    totals = {f: generator.multinomial(200, p) for f, p in zip(FEATURES, voices, strict=True)}
    how = HISTOGRAM.similarity("log-likelihood")
    scores = np.stack(
        [how.score(how.prepare(whole.templates(f, scoring)), totals[f]) for f in FEATURES], axis=1
    )
    return whole, own, against, LikelihoodRatioScorer(whole, own, scoring), totals, scores


def evaluate(ratios, seconds, totals, scores, sounds=(), watched=2):
    """The ratios at R moments, and those of one watched speaker."""
    indices = None if watched is None else np.full(seconds.size, watched)
    stats = ratios.compute_score_stats(totals)
    return ratios.evaluate_at(seconds, stats, scores, sounds, indices)


def with_sessions(people: Population, name: str, *others: str) -> Population:
    """Somebody enrolled again, by the speech of others."""
    for other in others:
        more = people.chosen([other])
        (speaker,) = more.speakers
        notes = tuple(replace(note, hashes=(f"{other} again",)) for note in speaker.sources)
        again = Speaker(name, notes, speaker.sound)
        people = people.extended(Population([again], more.offsets, more.features))
    return people


def models(*joint: RankModel) -> RankModels:
    """With one of each feature alone."""
    alone = (some_rank_model((name,), template_lengths=(10.0, 60.0)) for name in FEATURES)
    return RankModels([*joint, *alone])


def test_the_ratio_of_several_sessions_is_the_mean_of_their_ratios():
    whole, own, _, ratios, totals, scores = made()
    both = with_sessions(whole, "s2", "s4", "s5")
    attacker = Attacker(both, FEATURES, "s2", rank_models=models(own))
    joined = attacker.joint.ratios
    rows = np.stack([attacker.scorer.score(f, totals[f]) for f in FEATURES], axis=1)
    seconds = np.full(5, 20.0)
    alone = ratios._bits(
        ratios.rank_model.evaluate_at(seconds), ratios.compute_score_stats(totals), scores
    )
    found = evaluate(joined, seconds, totals, rows).bits
    mean = np.log2(np.exp2(alone[:, [2, 4, 5]]).mean(axis=1))
    assert_allclose(found[:, 2] - found[:, 1], mean - alone[:, 1], atol=1e-9)
    assert_allclose(found[:, 3] - found[:, 1], alone[:, 3] - alone[:, 1], atol=1e-9)


@pytest.mark.parametrize("features", [FEATURES, FEATURES[:1]])
def test_the_same_session_twice_says_what_it_says_once(features):
    whole, own, _, _, totals, _ = made()
    again = with_sessions(whole, "s2", "s2")
    heard = {f: RunningTotals(totals[f], np.full(5, 200), np.full(5, 2.0)) for f in FEATURES}
    seconds = np.linspace(5.0, 60.0, 5)
    once, twice = (
        Attacker(people, features, "s2", rank_models=models(own)).assess_each(heard, seconds)
        for people in (whole, again)
    )
    for one, two in zip(once, twice, strict=True):
        assert_allclose(two.posterior, one.posterior, atol=1e-9)
        assert two.local is not None
        assert one.local is not None
        assert_allclose(two.local, one.local, atol=1e-5)
        assert_allclose(two.gain, one.gain, atol=1e-5)
        assert two.features == one.features
        if one.ratios is not None and two.ratios is not None:
            assert_allclose(two.ratios, one.ratios, atol=1e-9)


def test_by_definition():
    _, rank_model, against, ratios, totals, scores = made(support=np.full((4, 2), 99.0))
    seconds = rank_model.lengths[[0, 1, 2, 3, 1]]
    found = evaluate(ratios, seconds, totals, scores)
    how = HISTOGRAM.similarity("log-likelihood")
    for r, t in enumerate([0, 1, 2, 3, 1]):
        # templates of 20 s, between those of 10 and 60
        w = np.log(20 / 10) / np.log(6)
        a = (1 - w) * rank_model.evidence.intercept[:, t, 0] + w * rank_model.evidence.intercept[
            :, t, 1
        ]
        b = (1 - w) * rank_model.evidence.slopes[:, t, 0] + w * rank_model.evidence.slopes[:, t, 1]
        nats = np.repeat(a[:, None], 6, axis=1)
        for f, name in enumerate(FEATURES):
            sketches = against.features[name].slices.astype(int)
            level = how.score(how.prepare(sketches[sketches.any(axis=1)]), totals[name][r])
            nats += b[:, f, None] * (scores[r, f] - level.mean()) / level.std()
        bits = np.log2((1 - MISSES) * np.exp(nats) + MISSES)
        # what the others show on this stream, the best counting a bit above the second
        others = np.sort(bits[0])[:-1]
        level = np.log2(np.exp2(np.append(others, others[-1] + 1)).mean())
        bits -= max(level, 0.0)
        assert_allclose(found.bits[r], bits[0], rtol=1e-9)
        replicates = np.sort(bits[1:, 2])
        assert found.watched[r, 0] == pytest.approx(bits[0, 2])
        assert found.watched[r, 1] == pytest.approx(min(replicates[1], bits[0, 2]))
        assert found.watched[r, 2] == pytest.approx(max(replicates[-2], bits[0, 2]))
    assert not found.at_least.any()


def test_no_more_than_the_data_or_the_conditions_support():
    whole, own, _, free, totals, scores = made(support=np.full((4, 2), 99.0))
    seconds = np.full(5, 10.0)
    loose = evaluate(free, seconds, totals, scores)
    assert loose.bits.max() > 1.5
    cut = made(support=np.full((4, 2), 1.5))[3]
    effect = ConditionEffect(np.zeros(UNLIKE), np.zeros((2, UNLIKE)), np.full(UNLIKE, 1.5))
    by_studio = sounding(whole, own, STUDIO, effect)
    for ratios, calls in ((cut, []), (by_studio, [TELEPHONE] * 5)):
        found = evaluate(ratios, seconds, totals, scores, calls)
        assert (found.bits.max(axis=1) <= 1.5 + 1e-12).all()
        assert_allclose(found.support, 1.5, rtol=0.02)
        assert_array_equal(found.at_least, loose.bits[:, 2] > found.support)
    same = evaluate(by_studio, seconds, totals, scores, [STUDIO] * 5)
    assert_allclose(same.bits, loose.bits, rtol=1e-12)
    found = evaluate(cut, seconds, totals, scores)
    # who fits better than whom, and by how much, stays
    assert_allclose(np.diff(found.bits), np.diff(loose.bits), atol=1e-9)
    for shown, all_of_it in zip(found.watched, loose.watched, strict=True):
        value, low, high = shown
        assert value == pytest.approx(min(all_of_it[0], 1.5))
        assert low <= value <= high <= 1.5
    nobody = evaluate(cut, seconds, totals, scores, watched=None)
    assert np.isnan(nobody.watched).all()
    assert_array_equal(nobody.at_least, loose.bits.max(axis=1) > 1.5)


def test_one_voice_never_reads_less_since_longer_speech_was_calibrated_by_fewer_people():
    falling = np.array([6.0, 5.0, 1.5, 1.0])[:, None] * np.ones((4, 2))
    loosely = np.full((4, 2), 99.0)
    *_, ratios, totals, scores = made(support=loosely)
    bits = evaluate(ratios, np.full(5, 60.0), totals, scores).bits
    stream, best = np.unravel_index(bits.argmax(), bits.shape)
    heard = {f: np.repeat(x[[stream]], 40, axis=0) for f, x in totals.items()}
    scores = np.repeat(scores[[stream]], 40, axis=0)
    seconds = np.geomspace(0.5, 600, 40)
    found, loose = (
        evaluate(made(support=which)[3], seconds, heard, scores, watched=best)
        for which in (falling, loosely)
    )
    assert loose.watched[-1, 0] > 1.5
    for r in range(1, 40):
        before, now = found.watched[r - 1], found.watched[r]
        for end in range(3):  # the figure and both limits
            fell = loose.watched[r][end] < loose.watched[r - 1][end]
            assert fell or now[end] >= before[end] - 1e-9
        assert found.bits[r].max() <= found.support[r] + 1e-9
    assert (np.diff(found.support) >= 0).all()


def test_a_moment_depends_neither_on_the_others_nor_its_scores_on_the_amount_heard():
    *_, ratios, totals, scores = made()
    seconds = np.array([0.2, 1.0, 7.0, 60.0, 900.0])
    whole = evaluate(ratios, seconds, totals, scores)
    for r in range(5):
        one = evaluate(ratios, seconds[[r]], {f: x[[r]] for f, x in totals.items()}, scores[[r]])
        assert_array_equal(one.bits[0], whole.bits[r])
        assert_array_equal(one.watched[0], whole.watched[r])
    louder = evaluate(ratios, seconds, {f: 7 * x for f, x in totals.items()}, 7 * scores)
    assert_allclose(louder.bits, whole.bits, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda p, own: (p, replace(own, evidence=None)), "without evidence"),
        (lambda p, own: (changed(p, cohort=None), own), "no cohort"),
        (lambda p, own: (changed(p, cohort=cohort(seed=1)), own), "another cohort"),
        (lambda p, own: (changed(p, cohort=cohort(features=("f0",))), own), "lacks phones"),
        (lambda p, own: (p, own), ""),
    ],
)
def test_what_is_lacking_is_said(change, reason):
    whole, rank_model, *_ = made()
    said = explain_missing_ratios(*change(whole, rank_model))
    assert reason in said
    assert bool(said) == bool(reason)


def of_voice_and_words(*, words_too: bool) -> Population:
    """People whose rank models tell evidence of f0, and of f0 and style only where asked."""
    names = ("f0", "style")
    against = cohort(features=names if words_too else ("f0",))
    learnt = []
    for each in (("f0",), ("style",), names):
        rank_model = some_rank_model(each, seed=3)
        if set(each) <= set(against.features):
            rank_model = replace(rank_model, evidence=evidence_model(rank_model, against))
        learnt.append(rank_model)
    return changed(population(features=names), rank_models=RankModels(learnt), cohort=against)


def test_a_transcript_does_not_take_the_evidence_of_the_voice():
    names, people = ("f0", "style"), of_voice_and_words(words_too=False)
    seconds = np.array([10.0])
    totals = {name: np.full((1, SIZE), 5) for name in names}
    totals["f0"][0, 3] = 90
    heard = {n: RunningTotals(total, total.sum(axis=1), seconds) for n, total in totals.items()}
    both, alone = (Attacker(people, features, "s2") for features in (names, ("f0",)))
    told, voice = (each.assess_each(heard, seconds)[0] for each in (both, alone))
    assert told.evidence is not None
    assert told.evidence == voice.evidence
    assert told.among == voice.among
    assert told.posterior.tolist() != voice.posterior.tolist()
    assert both.support_bits == alone.support_bits
    monitor = Monitor(people, names, "s2")
    (notice,) = [line for line in map(str, setup_notices(monitor)) if "evidence" in line]
    assert "f0 alone: the rank model" in notice
    assert "without evidence" in notice
    assert "may learn more" in notice
    own = RankModels(replace(each, evidence=None) for each in people.rank_models)
    mute = Monitor(changed(people, rank_models=own), names, "s2")
    assert mute.attacker.support_bits is None
    assert "no evidence" in [notice.kind for notice in setup_notices(mute)]
    assert monitor.plan.fingerprint != mute.plan.fingerprint
    # where words have evidence it counts
    people = of_voice_and_words(words_too=True)
    attacker = Attacker(people, names, "s2")
    assert attacker.evidence_model is attacker.rank_model
    assert not attacker.no_evidence_reason
    notices = map(str, setup_notices(Monitor(people, names)))
    assert not any("evidence" in line for line in notices)


def alike(share: float) -> Population:
    """Somebody else's people: the shipped readers' voices, so much of each the same voice."""
    reference = Population.reference()
    voice = reference.features["voice"]
    own = voice.slices.astype(float)
    common = np.linalg.norm(own, axis=1).mean() * np.eye(own.shape[1])[0]
    slices = ((1 - share) * own + share * common).astype(np.float16)
    features = {"voice": replace(voice, slices=slices)}
    return changed(reference, features=features, mismatched=True)


@pytest.mark.parametrize(("share", "contradicted"), [(0.0, False), (0.7, True)])
def test_people_who_sound_alike_contradict_a_calibration(share, contradicted):
    found = Monitor(alike(share), ("voice",))
    notices = {each.kind: each for each in setup_notices(found)}
    assert "mismatched rank model" in notices
    assert ("calibration contradicted" in notices) == contradicted
    if contradicted:
        assert notices["calibration contradicted"].fields["e_value"] > 20


def test_the_enrolled_as_streams_by_definition():
    population = alike(0.3)
    attacker = Monitor(population, ("voice",)).attacker
    ratios, model = attacker.joint.ratios, attacker.evidence_model
    assert model is not None
    found = attacker.compare_enrolled(population)
    assert found is not None
    assert found.shape == (50, 50)
    templates = population.templates("voice", attacker.scoring)
    how = population.scorers(model)["voice"]
    scores = how.score(how.prepare(templates), templates[7:8])[0]
    assert population.cohort is not None
    cohort = CohortScoring(population.cohort, "voice", how)
    mean, spread = cohort.compute_score_stats(templates[7:8])
    point = ratios.rank_model.evaluate_at(np.array([attacker.scoring.seconds]))
    z = (scores - mean) / spread
    effect = ratios.rank_model.conditions
    sounds = np.stack([degradation(each.condition) for each in population.speakers])
    shift, slope, support = effect.evaluate_at(unlike(sounds[7:8], sounds)[0])
    a, b = point.intercept[0, 0], point.slopes[0, 0, 0]
    told = a - np.minimum(a, 0.0) * shift + b * z * slope[:, 0]
    ratio = (1 - MISSES) * np.exp(told) + MISSES
    shown = np.minimum(ratio, np.exp2(np.minimum(point.support[0], support)))
    assert np.exp2(found[7]) == pytest.approx(shown, rel=1e-6)


TELEPHONE = Condition(bandwidth_hz=3430.0, snr_db=40.0, reverberation_seconds=0.1)
STUDIO = Condition(bandwidth_hz=8000.0, snr_db=40.0, reverberation_seconds=0.1)


def sounding(whole, own, condition, effect):
    """The ratios of the same people, whose templates sound so."""
    effects = ConditionEffects(np.array([30.0]), (effect,))
    own = replace(own, evidence=replace(own.evidence, conditions=effects))
    people = [replace(each, sound=sound_of(condition, 20.0)) for each in whole.speakers]
    heard = changed(whole, speakers=people, rank_models=RankModels([own]))
    return LikelihoodRatioScorer(heard, own, heard.scoring())


def test_a_telephone_counts_as_telephones_were_seen_to():
    loosely = {"support": np.full((4, 2), 99.0), "intercept": np.full((41, 4, 2), -6.0)}
    whole, own, _, plain, totals, scores = made(**loosely)
    effect = ConditionEffect(np.zeros(UNLIKE), np.zeros((2, UNLIKE)), np.full(UNLIKE, 1e3))
    effect.shift[[0, 6]] = 0.5, -0.25
    effect.slope[:, 0] = -0.5
    seconds, calls = np.full(5, 10.0), [TELEPHONE] * 5
    before = evaluate(plain, seconds, totals, scores)
    by_studio = sounding(whole, own, STUDIO, effect)
    levels = by_studio.compute_score_stats(totals)
    raw = by_studio._bits(by_studio.rank_model.evaluate_at(seconds), levels, scores)
    raw = np.log2((np.exp2(raw) - MISSES) / (1 - MISSES))
    point = by_studio._effect(by_studio.rank_model.evaluate_at(seconds), calls)
    found = by_studio._bits(by_studio.rank_model.evaluate_at(seconds), levels, scores, point)
    told = 6.0 / np.log(2)
    wanted = 0.5 * (raw + told) - told + 0.5 * told
    assert_allclose(found, np.log2((1 - MISSES) * np.exp2(wanted) + MISSES), rtol=1e-6)
    # where nothing is known, or both are a studio's, nothing changes
    for sounds in ([], [None] * 5, [STUDIO] * 5):
        found = by_studio.evaluate_at(seconds, levels, scores, sounds).bits
        assert_allclose(found, before.bits, rtol=1e-12)
    # noise that is still unknown may be anything; without sound nothing will ever be known
    effect.shift[NEW] = 0.5
    new = sounding(whole, own, STUDIO, effect).evaluate_at(
        seconds, levels, scores, [Condition()] * 5
    )
    assert (new.bits > before.bits).all()
    shared = sounding(whole, own, TELEPHONE, effect)
    shared = evaluate(shared, seconds, totals, scores, calls)
    value, low, high = shared.watched.T
    assert (value <= before.watched[:, 0]).all()
    assert ((low <= value) & (value <= high)).all()


def as_figures(attacker, heard, seconds):
    """What `Attacker.figures` gives, of whole assessments."""
    each = attacker.assess_each(heard, seconds)
    alone = attacker.features[0] if len(attacker.features) == 1 else None

    def values(of):
        return np.array([np.nan if (one := of(row)) is None else one for row in each], float)

    def value(bits):
        return None if bits is None else bits.value

    def total(row):
        parts = [one.local_bits for one in row.features.values()]
        return None if None in parts else sum(parts)

    return {
        "closed_set_bits": values(lambda row: value(row.local)),
        "gain_bits": values(lambda row: row.gain.value),
        "sum_bits": values(total),
        "rank_bits": values(lambda row: row.features[alone].rank_bits if alone else None),
        "evidence_bits": values(lambda row: value(row.evidence)),
    }


def stiff_at_two_seconds(rank_model):
    """The same, degenerate at the second length."""
    binomial = rank_model.binomial.copy()
    binomial[:, 1] = True
    alpha, beta = np.where(binomial, [[[[0.2]]], [[[0.8]]]], [rank_model.alpha, rank_model.beta])
    return replace(rank_model, alpha=alpha, beta=beta, binomial=binomial)


@pytest.mark.parametrize("features", [FEATURES, FEATURES[:1]])
@pytest.mark.parametrize("watch", ["s2", None])
@pytest.mark.parametrize("sessions", [0, 2])
def test_figures_are_the_values_of_whole_assessments(features, watch, sessions):
    """Below, on, between and beyond the lengths of the grid, with pauses before the first frame."""
    whole, own, *_ = made()
    if sessions:
        whole = with_sessions(whole, "s2", "s4", "s5")
    rank_models = RankModels(map(stiff_at_two_seconds, models(own)))
    attacker = Attacker(whole, features, watch, rank_models=rank_models)
    seconds = np.sort(np.concatenate([own.lengths, np.geomspace(0.05, 500.0, 23)]))
    generator, heard = np.random.default_rng(9), {}
    for first, name in enumerate(features):  # the second is not heard at first
        more = generator.integers(1, 9, (seconds.size, SIZE))
        more[: 3 * first + 1] = 0
        totals = more.cumsum(axis=0)
        frames = totals.sum(axis=1)
        heard[name] = RunningTotals(totals, frames, frames / 100)
    found, wanted = attacker.figures(heard, seconds, {}), as_figures(attacker, heard, seconds)
    assert found.keys() == wanted.keys()
    for name, each in wanted.items():
        assert_array_equal(found[name], each, err_msg=name)
    assert np.nanmax(found["gain_bits"]) > 0.1
    assert np.isnan(found["evidence_bits"]).all() == (watch is None or len(features) == 1)
