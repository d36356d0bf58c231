"""Known truth: Gaussian scores, heavy tails, and speakers who differ.

Source: docs/method.md section 10.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.maths.likelihood_ratios import PriorCoefficients
from monitor.maths.ratio_checks import exceeding, mean_ratio
from monitor.maths.statistics import speaker_weights
from monitor.population.cohort import Cohort, FeatureTemplates
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.stream.choice import explain_missing_ratios
from monitor.training.calibrating import CalibrationSettings, calibrate
from monitor.training.evidence import ComparisonChooser, fit_evidence
from monitor.training.grid import CellComparisons

F0 = {"f0": FeatureSpec("f0", HISTOGRAM, 104, 0.01)}


def compared(
    speakers=50, lead=3.0, trials=4, seed=0, tails=np.inf, differ=0.0, near=0.0, features=1
):
    """Streams against templates.

    ``tails`` are the degrees of freedom of other people's scores, ``differ`` how much the leads of
    speakers differ, ``near`` how much of a score is the two people's, whatever the stream.
    """
    generator = np.random.default_rng(seed)
    n = speakers * trials
    tester = np.repeat(np.arange(speakers), trials)

    def noise(*shape):
        known = np.isinf(tails)
        return generator.normal(size=shape) if known else generator.standard_t(tails, shape)

    pairs = noise(features, speakers, speakers)
    pairs = (pairs + pairs.transpose(0, 2, 1)) / np.sqrt(2)
    z = np.sqrt(near) * np.moveaxis(pairs[:, tester], 0, 1)
    z += np.sqrt(1 - near) * noise(n, features, speakers)
    leads = lead + differ * generator.normal(size=speakers)
    own = leads[tester, None] / np.sqrt(features) + generator.normal(size=(n, features))
    z[np.arange(n), :, tester] = own
    return CellComparisons(z, np.ones((n, features), bool), tester, tester, np.arange(speakers))


def fitted(made, speakers=50, told=None, replicates=40):
    found = ComparisonChooser(made).choose(range(made.z.shape[1]), np.ones(speakers, bool))
    assert found is not None
    return fit_evidence(found, speaker_weights(speakers, replicates), told)


def judged(fit, **options):
    """Bits of other speakers under a fit, mated and not."""
    made = compared(speakers=150, trials=1, seed=99, **options)
    coefficients = fit.coefficients[0]
    bits = coefficients[0] + np.einsum("nfj,f->nj", made.z, coefficients[1:])
    bits = np.minimum(bits / np.log(2), fit.support)
    own = np.arange(150) == made.tester[:, None]
    return bits[own], bits[~own]


def promises_kept(others, pairs):
    """No more than a share 2^-k shows k bits, beyond four standard errors."""
    steps = np.arange(1.0, 11.0)
    share = exceeding(others, np.ones(others.size), steps)
    allowed = np.exp2(-steps)
    return (share <= allowed + 4 * np.sqrt(allowed / pairs) + 1e-12).all()


def test_a_known_ratio_is_recovered():
    """log LR = 3 z - 4.5: coefficients, mean bits and the cost of it."""
    fit = fitted(compared(speakers=120, lead=3.0), 120)
    a, b = fit.coefficients[0]
    assert (a, b) == pytest.approx((-4.5, 3.0), rel=0.15)
    mated, others = judged(fit)
    loose, _ = judged(replace(fit, support=np.inf))
    assert 4.5 / np.log(2) - 1.0 < loose.mean() < 4.5 / np.log(2) + 0.3  # the ridge holds it
    assert mated.max() <= fit.support
    assert mean_ratio(others, np.ones(others.size)) < 1.3
    assert promises_kept(others, 150 * 149 / 2)
    assert fit.row["evidence_cllr"] == pytest.approx(fit.row["evidence_min_cllr"], abs=0.03)
    assert fit.row["rank1_predicted"] == pytest.approx(fit.row["rank1_actual"], abs=0.05)
    difference = fit.row["among_bits_predicted"] - fit.row["among_bits_actual"]
    assert difference == pytest.approx(0.0, abs=0.25)


@pytest.mark.slow
def test_its_limits_hold_the_known_ratio():
    inside = []
    for seed in range(12):
        fit = fitted(compared(speakers=40, lead=2.5, seed=seed), 40)
        at = (fit.coefficients @ [1.0, 3.0])[1:]  # a score of 3
        inside.append(np.quantile(at, 0.025) <= 2.5 * 3 - 2.5**2 / 2 <= np.quantile(at, 0.975))
    assert np.mean(inside) >= 0.7


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        {"tails": 3.0},
        {"tails": 5.0, "near": 0.5},
        {"differ": 1.5},
        {"tails": 4.0, "differ": 1.0, "near": 0.7},
        {"features": 3, "tails": 4.0, "differ": 1.0},
    ],
    ids=str,
)
def test_where_the_model_is_wrong_it_errs_on_the_safe_side(wrong):
    for seed in range(3):
        fit = fitted(compared(seed=seed, **wrong))
        _, others = judged(fit, **wrong)
        assert promises_kept(others, 150 * 149 / 2)
        assert mean_ratio(others, np.ones(others.size)) <= 1.5
        assert fit.row["others_mean_ratio"] <= 1.0 + 1e-6


def test_nothing_to_tell_reads_nothing():
    fit = fitted(compared(lead=0.0))
    assert fit.support < 1.0
    assert fit.row["evidence_cllr"] == pytest.approx(1.0, abs=0.05)
    assert fit.area == pytest.approx(0.5, abs=0.08)


def test_perfect_separation_claims_no_more_than_pairs_support():
    fit = fitted(compared(lead=60.0))
    assert np.isfinite(fit.coefficients).all()
    assert 9.0 < fit.support <= np.log2(1 + 1225)
    assert fit.row["evidence_bits"] <= fit.support + 1e-9
    assert fit.row["evidence_pairs"] == 1225
    assert fit.area == 1.0


def test_people_of_two_corpora_are_not_compared_and_the_harder_corpus_holds():
    made = compared(speakers=60)
    apart = np.repeat([0, 1], 30)
    easy = made.z.copy()
    # what tells two corpora apart is worth a lot, and nobody of the first is like another
    easy[apart[made.tester][:, None, None] != apart[made.owner][None, None]] -= 9.0
    alike = (made.tester[:, None] < 30) & (made.owner < 30) & (made.tester[:, None] != made.owner)
    easy[np.repeat(alike[:, None], easy.shape[1], axis=1)] += 1.5
    together = replace(made, z=easy)
    found: Any = ComparisonChooser(together, apart).choose([0], np.ones(60, bool))
    who = (
        found.people[found.comparisons.test_speaker],
        found.people[found.comparisons.template_speaker],
    )
    assert (apart[who[0]] == apart[who[1]]).all()
    drawn = speaker_weights(60, 20)
    fit = fit_evidence(found, drawn)
    mixed: Any = ComparisonChooser(together).choose([0], np.ones(60, bool))
    assert mixed is not None
    fresh = found.comparisons
    hard = ~fresh.mated & (apart[who[0]] == 0)

    def mean(of: Any) -> float:
        a, b = of.coefficients[0]
        return mean_ratio((a + b * fresh.z[hard, 0]) / np.log(2), np.ones(hard.sum()))

    assert mean(fit) < 1.25
    assert mean(fit_evidence(mixed, drawn)) > 1.5 * mean(fit)


def test_a_fit_of_many_keeps_the_slope_of_few_from_shrinking():
    """log LR = 3 z - 4.5; the ridge alone would take it towards z of no weight."""
    many = fitted(compared(speakers=120, lead=3.0), 120).coefficients
    away = []
    for seed in range(6):
        few = compared(speakers=12, lead=3.0, seed=seed)
        alone, beside = fitted(few, 12), fitted(few, 12, PriorCoefficients(many, 0.0))
        away.append([abs(each.coefficients[0, 1] - 3.0) for each in (alone, beside)])
    assert np.mean(away, axis=0)[1] < 0.7 * np.mean(away, axis=0)[0]


def test_streams_of_trainers_and_unheard_ones_do_not_count():
    made = compared(speakers=20)
    made.has_frames[made.tester == 7] = False
    voices = np.arange(20) != 3
    found: Any = ComparisonChooser(made).choose([0], voices)
    streams = set(found.people[found.comparisons.test_speaker].tolist())
    assert streams == set(range(20)) - {3, 7}
    # their templates are compared with, as they will be
    assert set(found.people[found.comparisons.template_speaker].tolist()) == set(range(20))
    assert not (
        found.comparisons.mated & np.isin(found.people[found.comparisons.template_speaker], (3, 7))
    ).any()
    assert ComparisonChooser(made).choose([0], np.zeros(20, bool)) is None


@pytest.fixture(scope="module")
def calibrated_voices(simulated) -> Any:
    voices = simulated(24, 2, 40.0)
    sketches = np.stack([v.sessions[1]["f0"].total(0, 40) for v in simulated(60, 2, 10.0, 7)])
    cohort = Cohort(np.full(60, 4.0), {"f0": FeatureTemplates(F0["f0"], sketches)}, "others")
    grid = {"lengths": [1.0, 5.0], "template_lengths": [10.0, 20.0]}
    return voices, cohort, grid | {"replicates": 20, "trials": 4}


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_calibrating_against_a_cohort(calibrated_voices):
    voices, cohort, options = calibrated_voices
    without = calibrate(voices[:12], F0, CalibrationSettings(prior=None, cohort=None, **options))
    assert without.cohort is None
    assert all(rank_model.evidence is None for rank_model in without.rank_models)
    assert all(row["support_bits"] is None for row in without.rows)
    made = calibrate(voices, F0, CalibrationSettings(prior=None, cohort=cohort, **options))
    assert made.cohort is cohort is not None
    cost = {}
    for rank_model in made.rank_models:
        evidence = rank_model.evidence
        assert evidence.cohort == (cohort.compute_digest("f0"),)
        assert evidence.intercept.shape == (21, 2, 2)
        assert np.isfinite(evidence.slopes).all()
        for row in rank_model.rows:
            t, d = int(row["T"] == 5.0), int(row["D"] == 20.0)
            assert evidence.support[t, d] == row["support_bits"]
            assert evidence.area[t, d] == row["enrolled_area"]
            cost[rank_model.session, t, d] = row["evidence_min_cllr"]
    assert cost["same", 1, 1] < cost["same", 0, 1]
    assert cost["same", 1, 1] < cost["cross", 1, 1]
    # any two people may serve as others, also across sessions
    assert {row["evidence_pairs"] for row in made.rows} == {24 * 23 // 2}


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_people_beside_count_for_ratios_alone(calibrated_voices, simulated):
    voices, cohort, options = calibrated_voices
    others = [replace(each, name=f"else {each.name}") for each in simulated(40, 2, 14.0, 11)]
    alone = calibrate(voices, F0, CalibrationSettings(prior=None, cohort=cohort, **options))
    made = calibrate(voices, F0, CalibrationSettings(
        prior=None, cohort=cohort, other_voices=others, **options))  # fmt: skip
    for before, after in zip(alone.rank_models, made.rank_models, strict=True):
        assert np.array_equal(before.alpha, after.alpha)
        assert before.learnt_from == after.learnt_from
        assert before.speakers == after.speakers
    rows = {(row["session"], row["T"], row["D"]): row for row in made.rows}
    # those beside have 14 s a session: too little for a test and a template of one
    assert rows["cross", 5.0, 10.0]["evidence_pairs"] == 24 * 23 // 2 + 40 * 39 // 2
    assert 24 < rows["cross", 5.0, 10.0]["evidence_speakers"] <= 64
    assert rows["same", 5.0, 10.0]["evidence_pairs"] == 24 * 23 // 2


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_prior_of_another_cohort_is_none(calibrated_voices):
    voices, cohort, options = calibrated_voices
    learnt = calibrate(voices, F0, CalibrationSettings(prior=None, cohort=cohort, **options))
    reference = Population.reference().only(["f0"])
    told = reference.with_rank_models(learnt.rank_models, cohort)
    options = options | {"lengths": [5.0], "template_lengths": [20.0]}
    slices = cohort.features["f0"].slices + 1
    shifted = replace(cohort, features={"f0": replace(cohort.features["f0"], slices=slices)})

    def across(prior, cohort):
        settings = CalibrationSettings(prior=prior, cohort=cohort, **options)
        return calibrate(voices[:12], F0, settings).rank_models[("f0",), "cross"]

    held = across(told, cohort)
    for mine, theirs, same in (
        (held, across(None, cohort), False),
        (across(told, shifted), across(None, shifted), True),
    ):
        assert np.allclose(mine.evidence.intercept[0], theirs.evidence.intercept[0]) == same
    of_another = reference.with_rank_models(RankModels([held]), shifted)
    assert "another cohort" in explain_missing_ratios(of_another, held)
