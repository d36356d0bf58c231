from __future__ import annotations

import math

import numpy as np
import pytest
from river import compose, evaluate, metrics, naive_bayes, preprocessing, utils

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.lid import calibrate, information_bits, statistics
from monitor.lab.evaluation.online import OnlineLID, OnlineSRD
from monitor.lab.evaluation.srd import fitted_rank_model

CALIBRATION = calibrate(
    ScoreMatrix(
        np.random.default_rng(0).normal(size=(90, 30)) + 2 * np.eye(30).repeat(3, 0),
        np.arange(90) // 3,
    )
)


def heard(metric, matrix, rows=None):
    for row in range(matrix.trials) if rows is None else rows:
        metric.update(int(matrix.target[row]), matrix.scores[row])
    return metric


@pytest.mark.parametrize("name", ["plain_eval", "mid_eval", "random_eval"])
def test_srd_online_is_srd_in_one_go(golden, name):
    matrix = golden.matrix(name)
    batch = fitted_rank_model(matrix.better, matrix.tied, 100)
    metric = heard(OnlineSRD(), matrix)
    assert metric.histogram.tolist() == batch.histogram.tolist()
    assert metric.rank_model().statistics == batch.statistics
    assert metric.rank_model().rank_model == batch.rank_model
    assert metric.get() == batch.statistics.mean_bits
    for figure, value in (
        ("mean_bits_model", batch.mean_bits),
        ("idr", batch.statistics.identification_rate),
    ):
        assert heard(OnlineSRD(figure=figure), matrix).get() == value


@pytest.mark.parametrize("ties", ["spread", "optimistic", "pessimistic", "mid"])
def test_srd_online_ties(golden, ties):
    matrix = golden.matrix("tied_eval")
    batch = fitted_rank_model(matrix.better, matrix.tied, 100, ties).statistics
    assert heard(OnlineSRD(ties=ties), matrix).get() == pytest.approx(batch.mean_bits, abs=1e-12)


@pytest.mark.parametrize("style", ["paper", "repo"])
def test_lid_online_is_lid_in_one_go(golden, style):
    calibration = calibrate(golden.matrix("mid_dev"), style)
    matrix = golden.matrix("mid_eval")
    batch = statistics(information_bits(matrix, calibration))
    metric = heard(OnlineLID(calibration), matrix)
    found = metric.statistics()
    assert (found.trials, found.pdr, found.ndr) == (batch.trials, batch.pdr, batch.ndr)
    for name in ("alid", "positive", "negative", "largest"):
        assert getattr(found, name) == pytest.approx(getattr(batch, name), rel=1e-12)
    assert metric.get() == found.alid
    assert repr(metric) == f"OnlineLID: {found.alid:.6f}".rstrip("0")


@pytest.mark.parametrize("make", [OnlineSRD, lambda: OnlineLID(CALIBRATION)])
def test_two_halves_add_up(golden, make):
    matrix = golden.matrix("mid_eval")
    first, second = (heard(make(), matrix, range(*ends)) for ends in ((0, 400), (400, 1000)))
    before = first.get()
    both, other, whole = first + second, second + first, heard(make(), matrix)
    assert both.get() == pytest.approx(whole.get(), rel=1e-12)
    assert other.get() == pytest.approx(whole.get(), rel=1e-12)
    assert first.get() == before
    assert (make() + make()).get() == 0


@pytest.mark.parametrize("made", [(OnlineSRD, {}), (OnlineLID, {"calibration": CALIBRATION})])
def test_a_rolling_window_forgets(golden, made):
    kind, given = made
    matrix = golden.matrix("mid_eval")
    rolling = heard(utils.Rolling(kind, window_size=50, **given), matrix)
    last = heard(kind(**given), matrix, range(950, 1000))
    assert rolling.get() == pytest.approx(last.get(), abs=1e-9)


def test_a_weight_is_a_number_of_trials(golden):
    matrix = golden.matrix("mid_eval")
    for make in (OnlineSRD, lambda: OnlineLID(CALIBRATION)):
        once, twice = make(), make()
        for row in range(30):
            once.update(int(matrix.target[row]), matrix.scores[row], 2.0)
            for _ in range(2):
                twice.update(int(matrix.target[row]), matrix.scores[row])
        assert once.get() == pytest.approx(twice.get(), rel=1e-12)


def voices(count=6, trials=40, seed=0):
    """Trials of speakers in mixed order, two numbers each."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(count, 2)) * 3
    for speaker in generator.permutation(np.repeat(np.arange(count), trials)):
        x, y = centres[speaker] + generator.normal(size=2)
        yield {"x": float(x), "y": float(y)}, f"speaker {speaker}"


def test_in_rivers_progressive_validation():
    model = compose.Pipeline(preprocessing.StandardScaler(), naive_bayes.GaussianNB())
    names = [f"speaker {k}" for k in range(6)]
    srd, lid = OnlineSRD(names), OnlineLID(speakers=names)
    both = srd + lid + metrics.Accuracy()
    assert isinstance(both, metrics.base.Metrics)
    evaluate.progressive_val_score(voices(), model, both)
    assert srd.trials == 239  # no probabilities before the first speaker was learnt
    assert lid.statistics().trials == 239
    assert 1 < srd.get() < math.log2(6)
    assert srd.histogram[0] / 239 == pytest.approx(both[2].get(), abs=0.02)

    alone = OnlineSRD(names)
    again = compose.Pipeline(preprocessing.StandardScaler(), naive_bayes.GaussianNB())
    assert evaluate.progressive_val_score(voices(), again, alone) is alone
    assert alone.get() == srd.get()

    by_hand, third = (
        OnlineSRD(),
        compose.Pipeline(preprocessing.StandardScaler(), naive_bayes.GaussianNB()),
    )
    for x, y in voices():
        scores = third.predict_proba_one(x)
        if scores:
            by_hand.update(y, scores)
        third.learn_one(x, y)
    assert by_hand.get() == srd.get()


def test_a_model_that_knows_nothing_discloses_nothing():
    names = list("abcd")
    srd, lid = OnlineSRD(names), OnlineLID(speakers=names)
    generator = np.random.default_rng(0)
    for speaker in generator.choice(names, 200):
        same = dict.fromkeys(names, 0.25)
        srd.update(speaker, same)
        lid.update(speaker, same)
    assert srd.get() == pytest.approx(0, abs=1e-12)
    assert lid.get() == 0
    assert lid.statistics().ndr == 1


def test_speakers_that_are_not_scored_come_last():
    metric = OnlineSRD()
    metric.update("b", {"a": 1.0})
    assert metric.histogram.tolist() == [0.0, 1.0]
    metric.update("a", {"a": 0.5, "b": 0.3, "c": 0.2, "d": 0.0})
    assert metric.histogram == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3])
    lid = OnlineLID(speakers="ab")
    lid.update("b", {"a": 1.0})
    assert lid.get() == pytest.approx(math.log2(2e-15))
    calibrated = OnlineLID(CALIBRATION, speakers="abc")
    calibrated.update("c", {"a": 2.0, "b": 1.0})
    assert calibrated.get() < 0


def test_before_the_first_trial_and_with_one_speaker():
    for metric in (OnlineSRD(), OnlineLID()):
        assert metric.get() == 0
        metric.update("a", {"a": 1.0})
        assert metric.get() == 0
        assert not metric.bigger_is_better
        assert not metric.requires_labels
        assert metric.works_with(naive_bayes.GaussianNB())
    assert math.isnan(OnlineLID(figure="positive_bits").get()) is False
    nothing = OnlineLID(speakers="ab", figure="positive_bits")
    nothing.update("a", {"a": 0.5, "b": 0.5})
    assert math.isnan(nothing.get())
    with pytest.raises(UsageError, match="no trial"):
        OnlineLID().statistics()


def test_clones_start_anew():
    metric = OnlineSRD("ab", ties="mid", figure="idr")
    metric.update("a", {"a": 1.0, "b": 0.0})
    clone = metric.clone()
    assert (clone.get(), clone.ties, clone.speakers) == (0, "mid", ("a", "b"))


def test_the_largest_is_unknown_once_it_was_forgotten():
    metric = OnlineLID(speakers="ab", figure="max_bits")
    metric.update("a", {"a": 0.9, "b": 0.1})
    metric.update("a", {"a": 0.6, "b": 0.4})
    metric.revert("a", {"a": 0.6, "b": 0.4})
    assert metric.get() == pytest.approx(math.log2(1.8))
    metric.revert("a", {"a": 0.9, "b": 0.1})
    assert metric.get() == 0


def test_refusals():
    with pytest.raises(UsageError, match="tie rule"):
        OnlineSRD(ties="lucky")
    with pytest.raises(UsageError, match="no figure"):
        OnlineSRD(figure="alid_bits")
    with pytest.raises(UsageError, match="no figure"):
        OnlineLID(figure="idr")
    with pytest.raises(UsageError, match="not among those given"):
        OnlineSRD("ab").update("c", {"a": 1.0, "b": 0.0})
    with pytest.raises(UsageError, match="row of 2 scores"):
        OnlineSRD("ab").update("a", [1.0, 2.0, 3.0])
    with pytest.raises(UsageError, match="not a finite"):
        OnlineSRD("ab").update("a", [1.0, math.nan])
    with pytest.raises(UsageError, match="no probabilities"):
        OnlineLID(speakers="ab").update("a", [4.0, 2.0])
    with pytest.raises(UsageError, match="made alike"):
        OnlineSRD("ab") + OnlineSRD("abc")
