"""Pseudo-speakers: the formants move, the pitch stays, and a stopped run goes on."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra recipes")

from monitor.networks.layers import RATE
from monitor.networks.voice import shipped
from recipes.voice.batches import Batches
from recipes.voice.cache import Cache
from recipes.voice.pseudo import make, warped
from tests.recipes.conftest import voice

pytestmark = pytest.mark.slow


def spectrum(sound: np.ndarray) -> np.ndarray:
    return np.abs(np.fft.rfft(sound[: 2 * RATE] * np.hanning(2 * RATE)))  # bins of half a hertz


def test_factors_of_one_change_nothing():
    sound = voice(120, 1000, 1)[: 3 * RATE].astype(np.float32) / 32768
    np.testing.assert_allclose(warped(sound, np.ones(6)), sound, atol=1e-5)


@pytest.mark.parametrize("factor", [0.85, 1.18])
def test_formants_move_and_the_pitch_stays(factor):
    time = np.arange(2 * RATE) / RATE
    pitch, formant = 100, 1200
    sound = sum(
        np.exp(-(((pitch * k - formant) / 300) ** 2)) * np.sin(2 * np.pi * pitch * k * time)
        for k in range(1, 40)
    )
    sound = np.float32(0.02) * (sound + 1e-3 * np.random.default_rng(0).standard_normal(len(time)))
    before, after = spectrum(sound), spectrum(warped(sound, np.full(6, factor)))
    hertz = np.arange(len(before)) / 2

    def centre(of: np.ndarray) -> float:
        return float((hertz * of**2).sum() / (of**2).sum())

    assert centre(after) / centre(before) == pytest.approx(factor, abs=0.05)
    harmonics = hertz[after > 0.1 * after.max()] % pitch
    assert np.minimum(harmonics, pitch - harmonics).max() < 3


def test_a_stopped_run_goes_on_and_the_training_draws_them(prepared, tmp_path):
    whole, stopped = (Cache(shutil.copytree(prepared, tmp_path / each)) for each in "ab")
    teacher = shipped().embed  # any network may teach
    make(whole, 6, teacher, together=3)
    make(stopped, 3, teacher, together=3)
    with (stopped.folder / "pseudo.i16").open("ab") as file:
        file.write(bytes(100))  # of a lot that was killed half written
    make(stopped, 6, teacher, together=3)
    one, other = whole.pseudo(), stopped.pseudo()
    assert np.array_equal(one.sounds, other.sounds)
    assert np.array_equal(one.teacher, other.teacher)
    assert one.voices.tolist() == other.voices.tolist()
    assert set(one.voices) <= {piece.voice for piece in whole.of("train")}
    assert {path.stat().st_mode & 0o077 for path in whole.folder.glob("pseudo.*")} == {0}
    batches = Batches(whole, 1)
    drawn = batches.at(0, 40).teacher @ batches.anchors[-6:].T
    assert 0.4 < np.isclose(drawn.max(axis=1), 1, atol=1e-5).mean() < 0.9


def test_without_them_everybody_is_drawn_as_recorded(prepared):
    batches = Batches(Cache(prepared), 1)
    assert len(batches.anchors) == 12 * 5
    assert len(batches.at(0, 4).bands) == 4
