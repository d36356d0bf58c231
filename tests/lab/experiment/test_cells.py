"""Cells of an experiment: features joined, losses compared, made once and kept."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.experiment import ExperimentSettings
from monitor.lab.experiment import cells as making
from monitor.lab.experiment.cells import (
    join_features,
    make_cells,
    make_orders,
    measure,
    measure_losses,
)
from monitor.lab.experiment.material import choose_panels, read_scores
from monitor.lab.result_cache import ResultCache
from monitor.maths.ranks import rank_bounds
from tests.lab.experiment.made import matrix, score_file

PEOPLE, EACH = 16, 6


def features(shift=(1.0, 2.0), seed=0):
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(PEOPLE), EACH)
    own = np.arange(PEOPLE) == target[:, None]
    return {
        f"f{i}": ScoreMatrix(generator.normal(size=own.shape) * 10**i + 10**i * by * own, target)
        for i, by in enumerate(shift)
    }


def first_ranks(matrix):
    better, _ = rank_bounds(np.asarray(matrix.scores), matrix.target)
    return float((better == 0).mean())


def test_two_features_tell_more_than_one_and_one_that_tells_nothing_is_left_aside():
    parts = features()
    joint = join_features(parts)
    assert first_ranks(joint) > max(first_ranks(each) for each in parts.values()) + 0.02
    parts = features((0.0, 2.5))
    assert first_ranks(join_features(parts)) >= first_ranks(parts["f1"]) - 0.03
    silent = ScoreMatrix(np.zeros((PEOPLE * EACH, PEOPLE)), parts["f1"].target)
    joint = join_features({"f1": parts["f1"], "none": silent})
    assert first_ranks(joint) == first_ranks(parts["f1"])
    # of too few features or people there is no joint
    few = parts["f0"].target < 9
    small = {n: ScoreMatrix(m.scores[few], m.target[few]) for n, m in parts.items()}
    for some in ({"one": silent, "none": silent}, {"f0": parts["f0"]}, small):
        assert join_features(some) is None


def test_nobody_weighs_the_features_for_themselves():
    parts = features()
    before: Any = join_features(parts)
    mine = parts["f0"].target == 3
    changed = np.array(parts["f0"].scores)
    changed[mine & (np.arange(mine.size) % EACH == 0)] *= -50.0  # one test of theirs goes wild
    after: Any = join_features(parts | {"f0": ScoreMatrix(changed, parts["f0"].target)})
    calm = mine & (np.arange(mine.size) % EACH != 0)
    assert np.array_equal(before.scores[calm], after.scores[calm])
    others = parts["f0"].target == 4
    assert not np.array_equal(before.scores[others], after.scores[others])


def test_cll_is_refused_where_rank_one_was_never_seen():
    made = matrix((30.0, 30.0), 20, 5, np.random.default_rng(3))
    assert not (made.better == 0).any()
    row = measure_losses(made, 20, 0)[-1]
    assert (row["loss"], row["fitted"]) == ("CLL", "LL")
    assert row["rank1_match_bits"] is None
    assert "LL instead of CLL" in row["notes"]
    two = measure_losses(matrix((0.5, 2.0), 2, 8, np.random.default_rng(4)), 20, 0)
    assert all(row["left_out_bits"] is None for row in two)  # of two speakers nobody is


RANK_MODELS = {(t, d): (0.5, 3.0) for t in (1.0, 10.0) for d in (3.0, 10.0)}
SETTINGS = ExperimentSettings(replicates=20)


@pytest.fixture
def scores(tmp_path):
    return score_file(tmp_path / "scores.npz", {"made": RANK_MODELS}, speakers=12, trials=4)


def of(path, settings):
    material = read_scores(path, settings)
    assert material is not None
    return material


def orders(path, settings=SETTINGS):
    material = of(path, settings)
    panels = choose_panels(material.fills, material.offered, settings)
    return make_orders(panels, material, settings)


def keys(path, settings=SETTINGS):
    return {order.key for order in orders(path, settings)}


def make(path, folder, settings=SETTINGS):
    cache = ResultCache(folder)
    return make_cells(orders(path, settings), of(path, settings), settings, cache, 1)


@pytest.fixture
def counted(monkeypatch):
    """A list that grows with every matrix that is measured."""
    done = []

    def counting(*arguments):
        done.append(1)
        return measure(*arguments)

    monkeypatch.setattr(making, "measure", counting)
    return done


def test_what_changes_makes_another_key(scores, tmp_path, monkeypatch):
    before = keys(scores)
    assert len(before) == 5
    assert keys(scores) == before
    other = score_file(tmp_path / "b.npz", {"made": RANK_MODELS}, speakers=12, trials=4, seed=1)
    assert not keys(other) & before
    for settings in (
        replace(SETTINGS, replicates=21),
        replace(SETTINGS, seed=1),
        replace(SETTINGS, trained={"made": frozenset({"who003"})}),
    ):
        assert not keys(scores, settings) & before
    monkeypatch.setattr(making, "_VERSION", 0)
    assert not keys(scores) & before


def test_an_interrupted_run_keeps_what_was_made(scores, tmp_path, counted, monkeypatch):
    def interrupted(*arguments):
        if len(counted) == 3:
            raise KeyboardInterrupt
        counted.append(1)
        return measure(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(making, "measure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make(scores, tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 3
    make(scores, tmp_path / "kept")
    assert len(counted) == 5


def test_those_who_trained_a_network_are_not_tested_and_settings_have_sense(scores, tmp_path):
    settings = replace(SETTINGS, trained={"made": frozenset({"who000", "who001"})})
    for cell in make(scores, tmp_path / "kept", settings):
        assert cell.systems["made"]["tested"] == 10
        assert cell.systems["made"]["speakers"] == 12
    assert settings.plain()["trained"] == {"made": 2}
    for wrong in ({"trials": 0}, {"replicates": 19}, {"sessions": ("both",)}):
        with pytest.raises(UsageError):
            replace(SETTINGS, **wrong)
