"""Cells that are kept: made once, under all that they depend on, whoever makes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.errors import UsageError
from monitor.lab.experiment import ExperimentSettings
from monitor.lab.experiment import cells as making
from monitor.lab.experiment.cells import make_cells, make_orders, measure
from monitor.lab.experiment.material import choose_panels, read_scores
from monitor.lab.result_cache import ResultCache
from tests.lab.experiment.made import score_file

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


def made(path, folder, settings=SETTINGS, jobs=1, fresh=False):
    cache = ResultCache(folder, fresh=fresh)
    return make_cells(orders(path, settings), of(path, settings), settings, cache, jobs)


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


@pytest.mark.slow
def test_a_second_run_makes_nothing_and_fresh_makes_all(scores, tmp_path, counted):
    first = made(scores, tmp_path / "kept")
    assert len(counted) == 5
    assert made(scores, tmp_path / "kept") == first
    assert len(counted) == 5
    (some, *_) = (tmp_path / "kept").iterdir()
    some.write_bytes(b"damaged")
    assert made(scores, tmp_path / "kept") == first
    assert len(counted) == 6
    assert made(scores, tmp_path / "kept", fresh=True) == first
    assert len(counted) == 11


@pytest.mark.slow
def test_processes_change_nothing(scores, tmp_path):
    assert made(scores, tmp_path / "one") == made(scores, tmp_path / "two", jobs=2)


def test_an_interrupted_run_keeps_what_was_made(scores, tmp_path, counted, monkeypatch):
    def interrupted(*arguments):
        if len(counted) == 3:
            raise KeyboardInterrupt
        counted.append(1)
        return measure(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(making, "measure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made(scores, tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 3
    made(scores, tmp_path / "kept")
    assert len(counted) == 5


def test_those_who_trained_a_network_are_not_tested(scores, tmp_path):
    settings = replace(SETTINGS, trained={"made": frozenset({"who000", "who001"})})
    for cell in made(scores, tmp_path / "kept", settings):
        assert cell.systems["made"]["tested"] == 10
        assert cell.systems["made"]["speakers"] == 12
    assert settings.plain()["trained"] == {"made": 2}


@pytest.mark.parametrize("wrong", [{"trials": 0}, {"replicates": 19}, {"sessions": ("both",)}])
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(UsageError):
        replace(SETTINGS, **wrong)
