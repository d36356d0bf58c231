"""Scores to a posterior, bits and ranks, against the definitions."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import betabinom

from monitor import Population
from monitor.errors import StoreError, UsageError
from monitor.events.reading import Bits
from monitor.kinds import EMBEDDING, FeatureSpec
from monitor.maths.scores import EmbeddingSum, Histogram
from monitor.maths.statistics import limits
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.rank_model import RankModels
from monitor.stream.attacker import Attacker, Question, assess_together
from monitor.stream.posterior import ZERO
from monitor.stream.totals import RunningTotals
from tests.population.rank_models import LENGTHS, population, some_rank_model

SIZE = 12
BOTH = ("f0", "phones")


def people(seconds=(20,) * 9, features=BOTH, sessions=("cross", "same"), **rank_model):
    """Nine speakers, two features, rank models for each and for both."""
    sets = [(name,) for name in features] + ([features] if len(features) > 1 else [])
    rank_models = [
        some_rank_model(each, session, seed=seed, **rank_model)
        for seed, (each, session) in enumerate((e, s) for e in sets for s in sessions)
    ]
    return population(seconds, features, rank_models)


def heard(*counts):
    """Sketches that have heard so many frames of each bin."""
    sketches = {}
    for name, bins in zip(BOTH, counts, strict=False):
        sketches[name] = Histogram(SIZE)
        sketches[name].learn_many(np.repeat(np.arange(SIZE), bins))
    return sketches


def voice(made, name, speaker, frames, seed=0):
    """Frames drawn from a speaker's own template."""
    template = made.features[name].slices[made.offsets[speaker]].astype(float) + 0.5
    return np.random.default_rng(seed).multinomial(frames, template / template.sum())


def log_likelihoods(made, name, counts, seconds=20):
    """Scores, speaker by speaker, bin by bin."""
    scores = []
    for j in range(len(made)):
        start = made.offsets[j]
        c = made.features[name].slices[start : start + seconds // 5].sum(axis=0)
        p = (c + 0.5) / (c.sum() + 0.5 * SIZE)
        scores.append(sum(h * np.log(each) for h, each in zip(counts, p, strict=True)))
    return np.array(scores)


def posterior(evidence, floor):
    weights = np.exp(evidence - evidence.max())
    return (1 - floor) * weights / weights.sum() + floor / len(evidence)


def only(figure):
    """The figure without its limits."""
    return figure.value


def bits_of(assessment):
    """Every figure of an assessment that is in bits."""
    figures = [assessment.local, assessment.gain, assessment.expected]
    for feature in assessment.features.values():
        figures += [limited(feature, name) for name in OF_FEATURE]
    return figures


OF_FEATURE = ("expected_bits", "rank_bits", "local_bits", "gain_bits")


def limited(feature, name):
    """A figure of a feature with its limits; None where there is none."""
    figure = [getattr(feature, name + end) for end in ("", "_low", "_high")]
    return None if figure[0] is None else Bits(*figure)


@pytest.mark.parametrize("features", [("f0",), BOTH])
@pytest.mark.parametrize("watch", ["s3", None])
@pytest.mark.parametrize("seconds", [0.0, 0.2, 7.0, 1000.0])
def test_no_frames_no_bits(features, watch, seconds):
    made = Attacker(people(), features, watch)
    nothing = made.assess(heard(*[np.zeros(SIZE, int)] * len(features)), seconds)
    for figure in bits_of(nothing):
        assert figure == (ZERO if watch or figure is not None else None)
    assert (nothing.posterior == 1 / 9).all()
    assert not nothing.beyond_grid
    for feature in nothing.features.values():
        assert (feature.rank, feature.usable) == (None, 0.0)
    if watch:  # frames, and no speech
        frames = heard(*[np.arange(SIZE)] * len(features))
        assert {*bits_of(made.assess(frames, 0.0))} == {ZERO}


def test_one_feature_heard_the_other_not():
    made = people()
    counts = voice(made, "phones", 2, 40)
    assessment = Attacker(made, BOTH, "s2").assess(heard(np.zeros(SIZE, int), counts), 8.0)
    silent, spoken = assessment.features["f0"], assessment.features["phones"]
    assert [limited(silent, name) for name in OF_FEATURE] == [ZERO] * 4
    assert silent.rank is None
    assert only(limited(spoken, "local_bits")) > 0
    assert spoken.usable == pytest.approx(0.4)
    assert assessment.expected.value > 0
    rank_model = made.rank_models.find(
        ("phones",), "cross"
    )  # what was not heard leaves it to those that were
    lam, e = rank_model.weights[0, :, 0, 0], rank_model.floor[0, :, 0]
    between = np.interp(np.log(8), np.log([2, 10]), [0, 1])
    lam, e = (np.exp((1 - between) * np.log(v[1]) + between * np.log(v[2])) for v in (lam, e))
    expected = posterior(lam * log_likelihoods(made, "phones", counts), e)
    assert_allclose(assessment.posterior, expected, rtol=1e-6)


def test_pitch_by_chance_does_not_count_against_the_rest():
    made = people()
    phones, attacker = voice(made, "phones", 2, 40), Attacker(made, BOTH, "s2")
    spoken = attacker.assess(heard(np.zeros(SIZE, int), phones), 8.0)
    for frames, is_weighed in ((15, False), (16, True)):  # of 8 s a whisper has some by chance
        chance = np.zeros(SIZE, int)
        chance[0] = frames
        assessment = attacker.assess(heard(chance, phones), 8.0)
        assert (assessment.features["f0"].rank is not None) == is_weighed
        assert np.array_equal(assessment.posterior, spoken.posterior) != is_weighed
        assert assessment.features["f0"].usable == pytest.approx(frames / 100)


@pytest.mark.parametrize("seconds", [0.2, 2.0, 5.0, 60.0, 240.0])
@pytest.mark.parametrize("watched", [0, 4, 8])
def test_posteriors_by_brute_force(seconds, watched):
    made = people()
    counts = [voice(made, name, 4, max(60, round(2 * seconds))) for name in BOTH]
    attacker = Attacker(made, BOTH, f"s{watched}")
    assessment = attacker.assess(heard(*counts), seconds)
    raw = np.stack([log_likelihoods(made, name, c) for name, c in zip(BOTH, counts, strict=True)])

    def check(features, scores, local, attacker, full=None):
        rank_model = made.rank_models.find(features, "cross")
        t = np.clip(seconds, rank_model.lengths[0], rank_model.lengths[-1])
        fade = min(seconds / rank_model.lengths[0], 1)
        locals_, gains = [], []
        for row in range(rank_model.alpha.shape[0]):
            lam = [
                np.exp(np.interp(np.log(t), np.log(rank_model.lengths), np.log(w)))
                for w in rank_model.weights[row, :, 0].T
            ]
            e = np.exp(
                np.interp(
                    np.log(t), np.log(rank_model.lengths), np.log(rank_model.floor[row, :, 0])
                )
            )
            # beyond the grid the last rank model holds: evidence as of its length
            evidence = np.array(lam) @ scores * min(1, 60 / seconds)
            p = posterior(evidence, 1 - fade * (1 - e))
            if row == 0 and full is not None:
                assert_allclose(full, p, rtol=1e-5)
            locals_.append(np.log2(9 * p[watched]))
            gains.append(gain(p))
        assert local == pytest.approx((locals_[0], *limits(np.array(locals_[1:]))), abs=1e-5)
        assert attacker == pytest.approx((gains[0], *limits(np.array(gains[1:]))), abs=1e-5)

    check(BOTH, raw, assessment.local, assessment.gain, assessment.posterior)
    for f, name in enumerate(BOTH):
        feature = assessment.features[name]
        check(
            (name,), raw[f : f + 1], limited(feature, "local_bits"), limited(feature, "gain_bits")
        )
    assert assessment.posterior.sum() == pytest.approx(1)
    assert assessment.beyond_grid == (seconds > 60)


def test_ranks_and_rank_bits_by_brute_force():
    made = people(features=("f0",))
    counts = voice(made, "f0", 4, 25)
    scores = log_likelihoods(made, "f0", counts)
    rank_model = made.rank_models.find(("f0",), "cross")
    for watched in range(9):
        attacker = Attacker(made, ["f0"], f"s{watched}")
        feature = attacker.assess(heard(counts), 10.0).features["f0"]
        rank = 1 + int((scores > scores[watched]).sum())
        assert feature.rank == rank
        bits = []
        for a, b, e in zip(
            rank_model.alpha[:, 2, 0],
            rank_model.beta[:, 2, 0],
            rank_model.floor[:, 2, 0],
            strict=True,
        ):
            gamma = betabinom.pmf(rank - 1, 8, a, b)
            bits.append(np.log2(9 * ((1 - e) * gamma + e / 9)))
        assert limited(feature, "rank_bits") == pytest.approx(
            (bits[0], *limits(np.array(bits[1:]))), abs=1e-8
        )


def twins():
    """Speakers 1, 2 and 5 have one template."""
    made = people(features=("f0",))
    slices = made.features["f0"].slices
    for j in (2, 5):
        slices[4 * j : 4 * j + 4] = slices[4:8]
    return made


def test_tied_speakers_share_their_ranks():
    made, seconds = twins(), 10.0
    sketch = heard(voice(made, "f0", 1, 200))
    attackers = [Attacker(made, ["f0"], f"s{j}") for j in (1, 2, 5)]
    readings = [each.assess(sketch, seconds).features["f0"] for each in attackers]
    assert readings[0] == readings[1] == readings[2]
    assert readings[0].rank == 2.0
    rank_model = made.rank_models.find(("f0",), "cross")
    gamma = betabinom.pmf(
        np.arange(3), 8, rank_model.alpha[0, 2, 0], rank_model.beta[0, 2, 0]
    ).mean()
    e = rank_model.floor[0, 2, 0]
    expected = np.log2(9 * ((1 - e) * gamma + e / 9))
    assert only(limited(readings[0], "rank_bits")) == pytest.approx(expected, abs=1e-9)


def test_frames_that_tell_nobody_apart_are_no_evidence():
    made = people(features=("f0",))
    made.features["f0"].slices[:] = 5
    assessment = Attacker(made, ["f0"], "s3").assess(heard(np.arange(SIZE)), 10.0)
    feature = assessment.features["f0"]
    assert (feature.rank, limited(feature, "rank_bits")) == (5.0, ZERO)
    assert (assessment.local, assessment.gain) == (ZERO, ZERO)
    assert assessment.expected.value > 0


def gain(p):
    return np.log2(p.size) + (p * np.log2(p)).sum()


@pytest.mark.parametrize("seconds", [0.2, 10.0, 500.0])
def test_the_bits_of_a_rank_are_gamma_at_everybodys_rank(seconds):
    made = people(features=("f0",))
    counts = voice(made, "f0", 4, max(60, round(2 * seconds)))
    for rank, j in enumerate(np.argsort(-log_likelihoods(made, "f0", counts))):
        attacker = Attacker(made, ["f0"], f"s{j}")
        pmf = attacker.joint.rank_model.evaluate_at(seconds).pmf(9, slice(0, 1), floor=True)[0]
        bits = limited(attacker.assess(heard(counts), seconds).features["f0"], "rank_bits")
        assert only(bits) == pytest.approx(np.log2(9 * pmf[rank]), abs=1e-9)


def test_a_watched_template_too_short_for_the_rank_model_is_withheld():
    made = people((100, 100, 75, 100, 80), template_lengths=(100,))
    attacker = Attacker(made, BOTH, "s2")
    assert not attacker.watched
    assert attacker.withheld == (
        "template_mismatch: s2 has 75 s of enrolled speech, but the rank model covers no templates "
        "under 100 s. Enrol more"
    )
    assert (attacker.names, attacker.left_out) == (("s0", "s1", "s3", "s4"), ("s2",))
    assert (attacker.speakers, attacker.ceiling) == (4, 2.0)
    assessment = attacker.assess(heard(np.arange(SIZE), np.arange(SIZE)), 10.0)
    assert assessment.local is None
    assert assessment.posterior.shape == (4,)
    for feature in assessment.features.values():
        assert (feature.rank, feature.rank_bits, feature.local_bits) == (None, None, None)


def test_another_short_template_is_left_out():
    made = people((100, 100, 75, 100, 80))
    attacker = Attacker(made, BOTH, "s3")
    assert (attacker.watched, attacker.withheld) == (True, "")
    assert attacker.left_out == ("s2",)
    counts = [voice(made, name, 3, 300) for name in BOTH]
    assessment = attacker.assess(heard(*counts), 10.0)
    assert attacker.names[int(assessment.posterior.argmax())] == "s3"
    assert only(assessment.local) == pytest.approx(np.log2(4 * assessment.posterior[2]))
    kept = [j for j in range(5) if j != 2]
    single = assessment.features["f0"]
    scores = log_likelihoods(made, "f0", counts[0], 80)[kept]
    assert single.rank == 1 + (scores > scores[2]).sum()


def test_without_a_rank_model():
    made = people(features=("f0",))
    bare = Population(made.speakers, made.offsets, made.features)
    with pytest.raises(StoreError, match=r"no rank model for f0.*monitor calibrate"):
        Attacker(bare, ["f0"])
    # the joint rank model alone is not enough: every feature has figures of its own
    made = people()
    joint = RankModels([made.rank_models.find(BOTH, "cross")])
    with pytest.raises(StoreError, match="no rank model for f0"):
        Attacker(made, BOTH, rank_models=joint)
    with pytest.raises(StoreError, match="no rank model for f0"):
        Attacker(made, ["f0"], rank_models=RankModels())


@pytest.mark.parametrize(
    ("features", "watch", "message"),
    [
        ((), None, "at least one"),
        (("f0", "f0"), None, "each feature once"),
        (("f0", "style"), None, "no templates of style; it has f0, phones"),
        (("f0",), "s33", "'s33' is not enrolled; did you mean 's3'"),
    ],
)
def test_what_makes_no_sense(features, watch, message):
    with pytest.raises(UsageError, match=message):
        Attacker(people(), features, watch)


def test_the_watched_speakers_length_decides_and_brings_everybody_in():
    made = people((100, 100, 75, 100, 80), template_lengths=(10, 100))
    attacker = Attacker(made, BOTH, "s2")
    assert (attacker.withheld, attacker.left_out) == ("", ())
    assert (attacker.speakers, attacker.scoring.seconds) == (5, 75.0)
    same = Attacker(made, BOTH, "s2", template_seconds=75)
    counts = heard(*[voice(made, name, 2, 300) for name in BOTH])
    one, other = (each.assess(counts, 10.0) for each in (attacker, same))
    assert one.local == other.local
    assert_allclose(one.posterior, other.posterior, rtol=0)
    assert "interpolated between templates of 10 and 100 s" in attacker.length.notice
    assert Attacker(made, BOTH, "s0", template_seconds=80).left_out == ("s2",)
    # the rank model is taken at that D, at that N
    rank_model = made.rank_models.find(BOTH, "cross")
    w = np.log(75 / 10) / np.log(100 / 10)
    alpha = np.exp(
        (1 - w) * np.log(rank_model.alpha[0, 2, 0]) + w * np.log(rank_model.alpha[0, 2, 1])
    )
    assert attacker.joint.rank_model.evaluate_at(10.0).alpha[0, 0] == pytest.approx(alpha)


@pytest.mark.parametrize(
    ("there", "asked", "used", "biased"),
    [
        (("cross", "same"), "cross", "cross", False),
        (("cross", "same"), "same", "same", False),
        (("same",), "cross", "same", True),
        (("same",), "same", "same", False),
        (("cross",), "same", "cross", False),
    ],
)
def test_which_session_is_used_and_whether_that_reads_too_high(there, asked, used, biased):
    made = people(sessions=there)
    for features in (("f0",), BOTH):
        attacker = Attacker(made, features, session=asked)
        assert (attacker.session, attacker.same_session_biased) == (used, biased)
        assert attacker.rank_model.session == used


def test_rank_models_given_are_used_and_must_fit_one_another():
    other = some_rank_model(seed=9)
    made = people(features=("f0",))
    assert Attacker(made, ["f0"], rank_models=RankModels([other])).rank_model is other

    def with_f0(own):
        rank_models = RankModels([some_rank_model(BOTH), own, some_rank_model(("phones",))])
        return Attacker(people(), BOTH, rank_models=rank_models)

    # a feature of which only one of the same session is there
    attacker = with_f0(some_rank_model(("f0",), "same"))
    assert (attacker.session, attacker.same_session_biased) == ("cross", True)
    with pytest.raises(StoreError, match="rank model of f0 alone is for embedding-max scores"):
        with_f0(some_rank_model(("f0",), similarities=("embedding-max",)))


def test_features_in_any_order_and_limits_around_the_figure():
    made = people()
    counts = [voice(made, name, 4, 60) for name in BOTH]
    one, turned = Attacker(made, BOTH, "s4"), Attacker(made, BOTH[::-1], "s4")
    assert turned.features == BOTH
    for seconds in (0.3, 3.0, 30.0):
        found = one.assess(heard(*counts), seconds)
        assert turned.assess(heard(*counts), seconds).local == found.local
        for figure in bits_of(found):
            assert figure.low <= figure.value <= figure.high


def by_embeddings(vectors, own, similarity):
    """Speakers whose templates are so many embeddings each."""
    count = len(vectors) // own
    return Population(
        [Speaker(f"s{i}") for i in range(count)],
        np.arange(0, len(vectors) + 1, own),
        {"identity": FeatureTemplates(FeatureSpec("identity", EMBEDDING, 3, 1.5), vectors)},
        RankModels([some_rank_model(("identity",), similarities=(similarity,))]),
    )


def test_the_rank_model_names_the_similarity():
    vectors = np.random.default_rng(0).normal(size=(27, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    made = by_embeddings(vectors, 3, "embedding-max")
    attacker = Attacker(made, ["identity"], "s0")
    sketch = EmbeddingSum(3)
    sketch.learn_many(vectors[[0, 20, 20]])
    scores = (vectors @ sketch.total).reshape(9, 3)
    means = scores.sum(axis=1) / np.linalg.norm(vectors.reshape(9, 3, 3).sum(axis=1), axis=1)
    scores = scores.max(axis=1)
    feature = attacker.assess({"identity": sketch}, 10.0).features["identity"]
    assert feature.rank == 1 + (scores > scores[0]).sum() != 1 + (means > means[0]).sum()
    # not additive: nothing is scaled beyond the grid
    beyond = attacker.joint.rank_model.evaluate_at(600.0)
    assert_array_equal(beyond.weights, attacker.rank_model.weights[:, -1, 0])


def test_embeddings():
    vectors = np.random.default_rng(0).normal(size=(5, 3))
    attacker = Attacker(by_embeddings(vectors, 1, "embedding-cosine"), ["identity"], "s2")
    sketch = EmbeddingSum(3)
    sketch.learn_many(vectors[2:3] * [[2.0], [7.0]])
    feature = attacker.assess({"identity": sketch}, 10.0).features["identity"]
    assert (feature.rank, feature.usable) == (1, 3.0)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    rank_model = attacker.rank_model
    expected = posterior(rank_model.weights[0, 2, 0, 0] * unit @ unit[2], rank_model.floor[0, 2, 0])
    assert only(limited(feature, "local_bits")) == pytest.approx(np.log2(5 * expected[2]))


@pytest.mark.parametrize(
    ("area", "says"),
    [
        (0.53, "ROC curve 0.53, 0.8 is needed); a speaker embedding (voice) is needed"),
        (None, "ROC curve not measured, 0.8 is needed); a speaker"),
        (0.95, ""),
    ],
)
def test_whether_anybody_enrolled_speaks_is_told_only_where_that_can_be_known(area, says):
    rows = tuple({"T": t, "D": 10.0, "open_set_area": area} for t in LENGTHS)
    made = people(rows=rows if area is not None else ())
    attacker = Attacker(made, BOTH, "s4")
    nothing = attacker.assess(heard(voice(made, "f0", 4, 0), voice(made, "phones", 4, 0)), 0.0)
    assert (nothing.enrolled, nothing.enrolled_withheld) == (None, ())
    found = attacker.assess(heard(*[voice(made, name, 4, 60) for name in BOTH]), 10.0)
    assert (found.enrolled is None) == bool(says)
    why = "; ".join(found.enrolled_withheld)
    assert says in why
    assert why.startswith("f0+phones " if says else "")


@pytest.mark.parametrize("watched", [True, False])
def test_a_pause_costs_nothing(watched):
    made = people()
    attacker = Attacker(made, BOTH, made.names[3] if watched else None)
    counts = {name: voice(made, name, 3, 400) for name in BOTH}
    # f0 and the clock go on once, then phones does; the rest is a pause
    scale = {"f0": np.array([1, 1, 2, 2, 2]), "phones": np.array([1, 1, 1, 2, 2])}
    seconds = np.array([6.0, 6.0, 9.0, 9.0, 9.0])
    heard_by = {
        name: RunningTotals(times[:, None] * counts[name], 400 * times, 4.0 * times)
        for name, times in scale.items()
    }
    together = attacker.assess_each(heard_by, seconds)
    assert together[1] is together[0]  # weighed once
    assert together[4] is together[3]
    for r, found in enumerate(together):
        row = {
            name: RunningTotals(h.totals[[r]], h.frames[[r]], h.usable_seconds[[r]])
            for name, h in heard_by.items()
        }
        (alone,) = attacker.assess_each(row, seconds[r : r + 1])
        assert_same(found, alone)


def assert_same(found, alone):
    assert_array_equal(found.posterior, alone.posterior)
    one = np.zeros(1)  # from Python 3.13 on fields are compared one by one, arrays too
    assert replace(found, posterior=one) == replace(alone, posterior=one)


def test_attackers_that_watch_others_answer_together_as_alone():
    made = people()
    watching = [Attacker(made, BOTH, watch) for watch in ("s1", "s5", "s1", None)]
    attackers = [*watching, Attacker(made, BOTH[:1], "s1")]
    assert len({attacker.sharing_key for attacker in attackers}) == 3
    times, questions = np.array([1, 1, 2]), []
    for k, attacker in enumerate(attackers):
        totals = {}
        for name in attacker.features:
            counts = times[:, None] * voice(made, name, k, 200 + 50 * k, seed=k)
            totals[name] = RunningTotals(counts, counts.sum(axis=1), 2.0 * times)
        questions.append(Question(attacker, totals, 3.0 * times + 0.01 * k))
    answers = assess_together(questions)
    assert answers[0] != answers[1]
    for question, found in zip(questions, answers, strict=True):
        own = question.attacker.assess_each(question.totals, question.speech_seconds)
        for one, alone in zip(found, own, strict=True):
            assert_same(one, alone)
