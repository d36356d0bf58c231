"""Limits hold what they should; what has none says why. Coverage at length: benchmarks.coverage."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from benchmarks.coverage import EVIDENCE, Design, measure_coverage
from monitor.lab.evaluation.comparisons import Comparisons, ScoreList
from monitor.lab.evaluation.document import Evaluation
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import add_limits, families, rule_of
from monitor.lab.evaluation.resampling import (
    Sample,
    find_resamples,
    leaving_out,
    pooled_leaving_out,
    resamples,
)
from monitor.lab.report.model import Figure
from monitor.lab.report.renderers import figure_json, render_html
from monitor.maths.statistics import clopper_pearson
from tests.lab.evaluation.matrices import chance, ends, matrices, perfect, report_of, separated

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=list(EVIDENCE))
def study(request):
    return report_of(
        Design(30, 8, EVIDENCE[request.param]).study(3), among=(10, 1000), replicates=200
    )


def silent(report):
    """Figures that no limits were found for, of those that have a rule for none."""
    found = {key: rule_of(key) for key in report.figures}
    return [report[key] for key, rule in found.items() if rule is not None and rule.reason]


def test_no_figure_without_limits_shows_any_and_each_says_why(study):
    figures = [figure for figure in silent(study) if figure.value is not None]
    assert len(figures) > 5
    for figure in figures:
        assert figure.limits == (None, None), figure.key
        assert "no interval: " in figure.note, figure.key
        assert figure_json(figure)["low"] is None
        assert "no interval: " in str(figure_json(figure)["note"])
    assert render_html(Evaluation([study]).page()).lower().count("no interval: ") >= len(figures)
    for key, figure in study.figures.items():
        if figure.replicates is not None or figure.low is not None:
            assert rule_of(key) is not None, key
    for entry in (entry for family in families() for entry in family.figures):
        assert any(map(entry.matches, study.figures)) or entry.limits is None, entry.key


def test_limits_hold_the_value(study):
    shown = [
        figure for key, figure in study.figures.items()
        if figure.low is not None and figure.value is not None and not key.startswith("srd.null")
    ]  # fmt: skip
    assert len(shown) > 30
    for figure in shown:
        low, high = figure.limits
        assert low <= figure.value <= high, figure.key
        if figure.unit == "share":
            assert 0 <= low <= high <= 1, figure.key
        if figure.ceiling is not None:
            assert high <= max(figure.ceiling, figure.value) + 1e-9, figure.key
        if low == high:
            assert figure.key.startswith(("anonymity.mean_rank", "srd.speaker_bits")), figure.key


@settings(max_examples=15, deadline=None)
@given(matrix=matrices())
def test_limits_are_limits_of_any_scores(matrix):
    if matrix.tested.size < 2 or matrix.population < 3:
        return
    for figure in report_of(matrix, replicates=20).figures.values():
        low, high = figure.limits
        assert (low is None) == (high is None)
        if low is not None and not figure.key.startswith("srd.null"):
            assert low <= figure.value <= high, figure.key


def test_thirty_speakers_who_are_all_found_could_be_lucky():
    """Resamples of them all agree: a width of zero would claim more than thirty can show."""
    report = evaluate(separated(30, 8))
    lowest = clopper_pearson(30, 30)[0]
    for key in ("srd.idr", "anonymity.share_rank_at_most_10", "membership.tpr_at_1e-2"):
        assert report[key].value == 1.0
        assert report[key].limits == pytest.approx((lowest, 1.0))
    assert report["srd.mean_bits_model"].low == pytest.approx(lowest * np.log2(30))
    assert report["verification.eer_rocch"].high == pytest.approx(0.5 * (1 - lowest))
    assert report["membership.tpr_at_1e-4"].low == pytest.approx(lowest)


def test_without_evidence_limits_reach_to_nothing():
    report = evaluate(chance(30, 8, seed=4))
    for key in (
        "srd.mean_bits_model", "srd.maxd_bits", "srd.rank1_bits", "lid.alid_bits",
        "lid.positive_bits", "zebra.d_ece_bits", "linkage.d_sys",
    ):  # fmt: skip
        low, high = ends(report[key])
        assert low <= 0 <= high, key
    for key, nothing in (("srd.idr", 1 / 30), ("verification.min_cllr_bits", 1.0)):
        assert ends(report[key])[0] <= nothing <= ends(report[key])[1]
    assert report["srd.spread"].limits == (None, None)
    assert report["srd.spread"].note.endswith("chance decides which ranks are likelier")


def test_epsilon_and_rank_1_follow_what_they_are_made_of():
    report = evaluate(Design(30, 8, 2.0).study(1))
    low, high = ends(report["srd.idr"])
    assert report["srd.rank1_bits"].limits == pytest.approx(tuple(np.log2([30 * low, 30 * high])))
    low, high = ends(report["membership.tpr_at_1e-2"])
    found = report["membership.epsilon_nats_at_1e-2"]
    assert found.low == pytest.approx(np.log(low / 0.01))
    assert found.high == pytest.approx(np.log(high / 0.01))


def test_a_figure_that_nobody_measured_has_no_limits():
    weights = np.concatenate([resamples(chance(12, 4), 20), leaving_out([*"abcdefghijkl"])])
    new = Figure("new.share", "new", 0.5, "share", replicates=np.linspace(0.4, 0.6, len(weights)))
    (found,) = add_limits([new], Sample(weights, 12, 48))
    assert found.limits == (None, None)
    assert found.note == "no interval: its coverage was not measured"
    few = evaluate(Design(30, 8, 6.0).study(1))["lid.negative_bits"]
    assert few.value is not None
    assert few.limits == (None, None)
    assert few.note == "no interval: fewer than 10 speakers have such trials"


def test_each_speaker_is_left_out_once_and_groups_of_many_in_any_order():
    assert np.array_equal(leaving_out([*"abcde"]), 1 - np.eye(5))
    many = perfect(230, 1)
    weights = leaving_out(many.speakers)
    assert weights.shape == (100, 230)
    assert ((1 - weights).sum(axis=0) == 1).all()
    assert not find_resamples(weights).any()
    assert find_resamples(resamples(many, 30)).all()
    assert leaving_out(["ann"]).shape == (0, 1)
    names = [f"s{i}" for i in range(150)]
    order = np.random.default_rng(1).permutation(150)
    moved = leaving_out([names[i] for i in order])
    assert np.array_equal(moved, leaving_out(names)[:, order])


def test_a_list_is_left_without_nobody_it_needs():
    """Its only non-mated comparison is an impostor's."""
    listed = ScoreList(
        np.array([0.9, 0.8, 0.1]), np.array([True, True, False]), np.array([0, 1, 2]),
        np.array([0, 1, 0]), np.array([0, 1, 2]), ("ann", "bob"), ("ann", "bob", "eve"),
    )  # fmt: skip
    weights = pooled_leaving_out(Comparisons.from_scores(listed))
    assert weights.tolist() == [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]


@pytest.mark.parametrize("evidence", ["none", "strong"])
def test_limits_hold_the_truth_of_simulated_speakers(evidence):
    """Where percentiles hold it least; fails below what 88 % give in 999 of 1000 runs."""
    found = measure_coverage(30, 8, evidence, studies=24, seed=5)
    least = stats.binom.ppf(1e-3, 24, 0.88) / 24
    for key, share in found["held"].items():
        if found["shown"][key] > 0.9:
            assert share >= least, key
    assert found["shown"]["srd.mean_bits_model"] == 1.0
    most = stats.binom.ppf(1 - 1e-3, 12, 0.1) / 12
    for key, share in found["told_apart"].items():
        if found["compared"][key] > 0.9:
            assert share <= most, key
