"""Rates among more people than were scored."""

import itertools
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import log_ndtr

from monitor.errors import UsageError
from monitor.lab.evaluation.among import FAR, FEWEST, NARROW, Extrapolation, figures, keys
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.family import rule_of
from monitor.lab.evaluation.report import meaning
from monitor.lab.evaluation.resampling import Sample, leaving_out, resamples
from monitor.maths.identification import FORMS
from tests.lab.evaluation.matrices import by_key, constant, ends, matrices, report_of, separated

FAR_OUT = np.array([1e2, 1e3, 1e4, 1e6, 1e10])


def bare(matrix):
    """Without resamples."""
    return Extrapolation.from_matrix(matrix, Sample(None, len(matrix.tested), matrix.trials))


def sampled(matrix, replicates=60):
    names = [matrix.speakers[column] for column in matrix.tested.tolist()]
    weights = np.concatenate([resamples(matrix, replicates), leaving_out(names)])
    return Extrapolation.from_matrix(matrix, Sample(weights, len(names), matrix.trials))


def leads(speakers, trials, strength, seed=0, spread=0.0):
    """Own scores are higher by so many deviations."""
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(speakers), trials)
    own = target[:, None] == np.arange(speakers)
    lead = strength * (1 + spread * generator.normal(size=speakers))[target, None]
    return ScoreMatrix(generator.normal(size=own.shape) + lead * own, target)


def true_rate(strength, people, spread=0.0):
    generator = np.random.default_rng(99)
    own = strength * (1 + spread * generator.normal(size=200_000)) + generator.normal(size=200_000)
    return float(np.exp((people - 1) * log_ndtr(own)).mean())


@settings(deadline=None, max_examples=30)
@given(matrices(6))
def test_rates_among_parts_are_means_over_all_parts(matrix):
    """Exact: every set of candidates that holds the right one, ties broken by chance."""
    sizes = np.arange(2.0, matrix.population + 1)
    found, _ = bare(matrix).measured(sizes)
    for size, rate in zip(sizes.astype(int), found, strict=True):
        hits = []
        for row, target in zip(matrix.scores, matrix.target, strict=True):
            others = [j for j in range(matrix.population) if j != target]
            for some in itertools.combinations(others, size - 1):
                above = sum(row[j] > row[target] for j in some)
                level = sum(row[j] == row[target] for j in some)
                hits.append(0.0 if above else 1 / (1 + level))
        assert rate == pytest.approx(np.mean(hits), abs=1e-9)


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(matrices(8))
def test_forms_and_brackets_fall_and_stay_shares(matrix):
    found = bare(matrix)
    if not found.falls:
        return
    for rates in (*found.rates(FAR_OUT).values(), *found.bracket(FAR_OUT)):
        assert ((rates >= 0) & (rates <= 1 + 1e-9)).all()
        assert (np.diff(rates) <= 1e-9).all()


@pytest.mark.parametrize("strength", [0.0, 0.7, 2.0, 6.0])
def test_at_n_they_say_what_was_measured(strength):
    found = bare(leads(60, 8, strength))
    (rate,), _ = found.measured(np.array([60.0]))
    for name, rates in found.rates(np.array([60.0])).items():
        assert rates[0] == pytest.approx(rate, abs=0.025), name
    for name in ("beta_binomial", "probit"):
        bits, _ = found.mean_bits(name, 60)
        assert bits == found.at_n(60)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("strength", "spread"), [(0.7, 0.25), (2.0, 0.0), (2.0, 0.4), (4.0, 0.2)])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_bracket_holds_the_truth_of_normal_scores(strength, spread, seed):
    found = sampled(leads(60, 8, strength, seed, spread))
    sizes = np.array([600.0, 6e3, 1e6])
    low, high = found.bracket(sizes)
    for size, least, most in zip(sizes, low, high, strict=True):
        assert least <= true_rate(strength, size, spread) <= most
    assert (np.diff(low) <= 0).all()


@pytest.mark.slow
def test_meand_among_more_is_that_of_more_candidates():
    """Of 400 speakers, told from 60 of them as candidates."""
    large = leads(400, 4, 2.0, spread=0.3)
    some = large.target < 60
    few = ScoreMatrix(large.scores[some][:, :60], large.target[some])
    every, found = bare(large), sampled(few, 40)
    made = by_key(figures(found, [400]))
    low, high = made["among.meand_400"].limits
    assert low < every.at_n(400)[0] < high
    low, high = made["among.idr_400"].limits
    assert low < every.measured(np.array([400.0]))[0][0] < high
    grown = made["among.meand_probit_400"].value - found.at_n(60)[0]
    assert 0 <= grown <= np.log2(400 / 60)


@pytest.mark.slow
def test_the_published_curves_are_bracketed():
    """Fitted up to 220 and up to 1 020 of Common Voice's speakers, asked for 21 920."""
    pytest.importorskip("legal_eval", reason="needs the extra peers")
    from benchmarks.coverage import LARGEST, extrapolate, is_within, load_published_curves

    curves = load_published_curves()
    assert len(curves) == 13
    said = {upto: {name: extrapolate(curve, upto) for name, curve in curves.items()}
            for upto in (220, 1020)}  # fmt: skip
    holds = {upto: [is_within(each, curves[name][LARGEST]) for name, each in every.items()]
             for upto, every in said.items()}  # fmt: skip
    assert {upto: sum(each) for upto, each in holds.items()} == {220: 12, 1020: 11}
    for each, true in ((said[upto][name], curve[LARGEST])
                       for upto in said for name, curve in curves.items()):  # fmt: skip
        error = np.sqrt(true * (1 - true) / 4949)  # of the measurement itself: 4 949 trials
        assert min(each.values()) - error < true < max(each.values()) + error
    for form, most in {"beta_binomial": 0.08, "probit": 0.065, "logit": 0.022,
                       "pitman_yor": 0.07}.items():  # fmt: skip
        errors = [each[form] - curves[name][LARGEST] for name, each in said[220].items()]
        assert np.sqrt(np.mean(np.square(errors))) < most


@pytest.fixture(scope="module")
def middling():
    return report_of(leads(50, 6, 2.5, spread=0.3), replicates=60, among=(20, 400, 1e4, 1e6))


def test_every_figure_has_a_rule_and_limits_and_none_stands_alone(middling):
    found = {k: each for k, each in middling.figures.items() if k.startswith("among.")}
    assert set(found) <= set(keys([20, 400, 10_000, 1_000_000]))
    assert len(found) == 1 + 2 + 3 * 8
    for key, figure in found.items():
        assert rule_of(key) is not None, key
        if key != "among.supported":
            assert figure.low <= figure.high, key
    for people in (400, 10_000, 1_000_000):
        for kind, forms in {"idr": list(FORMS), "meand": ["beta_binomial", "probit"]}.items():
            bracket = middling[f"among.{kind}_{people}"]
            assert bracket.value is None
            assert bracket.text in ("supported", "unsupported")
            each = [middling[f"among.{kind}_{form}_{people}"] for form in forms]
            assert bracket.low == min(figure.low for figure in each)
            assert bracket.high == max(figure.high for figure in each)


def test_up_to_n_it_is_measured(middling):
    assert middling["among.idr_20"].note.endswith("not extrapolated")
    assert "among.idr_probit_20" not in middling.figures
    at_n = report_of(leads(50, 6, 2.5, spread=0.3), replicates=60, among=(50,))
    for key, same in (("idr_50", "idr"), ("meand_50", "mean_bits_model")):
        one, other = at_n[f"among.{key}"], at_n[f"srd.{same}"]
        assert one.value == pytest.approx(other.value, abs=1e-9)
        assert one.limits == pytest.approx(other.limits, abs=1e-9)
    assert at_n.curves.crowd is None
    assert "among.supported" not in at_n.figures


def test_beyond_ten_times_n_a_wide_bracket_is_not_supported(middling):
    assert (FAR, FEWEST, dict(NARROW)) == (10, 10, {"share": 0.1, "bits": 1.0})
    assert middling["among.supported"].value == 500
    assert middling["among.idr_400"].text == "supported"
    far = middling["among.idr_1000000"]
    assert far.text == "unsupported"
    assert (
        "not supported by 50 enrolled people (the crowd is more than 10 times as large" in far.note
    )
    assert "wider than 10 percentage points" in far.note
    assert "wider than 1 bit" in middling["among.meand_1000000"].note
    assert any("quote the bracket, never one form" in note for note in middling.notes)
    (said,) = [each for each in meaning(middling) if each.startswith("Among 1,000,000 people")]
    assert "50 enrolled people do not support" in said


@pytest.mark.slow
def test_who_was_never_missed_supports_nothing_and_bounds_nothing():
    report = report_of(separated(50, 6), replicates=20, among=(400, 1e6))
    assert report["among.supported"].value == 500
    far = report["among.idr_1000000"]
    assert far.text == "unsupported"
    assert "only 0 speakers ever missed, and 10 are needed" in far.note
    low, high = ends(far)
    assert low < 0.05
    assert high > 0.999
    assert ends(report["among.idr_400"])[0] < 0.6
    low, high = ends(report["among.meand_1000000"])
    assert low < 13
    assert high == pytest.approx(np.log2(1e6), abs=0.01)
    json.dumps(report.to_json(), allow_nan=False)


@pytest.mark.parametrize("ties", ["spread", "optimistic", "pessimistic", "mid"])
def test_equal_scores_are_ranked_as_asked(ties):
    report = report_of(constant(10, 5), replicates=20, ties=ties, among=(5, 10, 100))
    rate = {"spread": 0.1, "optimistic": 1.0, "pessimistic": 0.0, "mid": 0.0}[ties]
    assert report["among.idr_10"].value == pytest.approx(rate, abs=1e-9)
    assert report["among.idr_100"].ties == ties
    low, high = ends(report["among.idr_100"])
    assert 0 <= low <= high <= 1
    json.dumps(report.to_json(), allow_nan=False)


@pytest.mark.parametrize("asked", [1, 0, -5, 2.5, np.nan, np.inf, 1e11])
def test_what_is_no_number_of_people_is_refused(asked):
    with pytest.raises(UsageError, match=f"^{re.escape(f'{asked:g}')} .*from 2 to"):
        report_of(leads(4, 3, 2.0), replicates=0, among=[1e4, asked])
