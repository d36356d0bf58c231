"""What networks share: bands, files of weights, streams that are the same however they are cut."""

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from monitor.errors import StoreError, UsageError
from monitor.networks import phones, usc, voice
from monitor.networks.layers import (
    HOP,
    RATE,
    WIDTH,
    Centre,
    log_mel,
    log_softmax,
    read_weights,
    sigmoid,
)
from monitor.networks.phones import PhoneNetwork, UnitNetwork, shipped_recogniser
from monitor.networks.usc import UscNetwork
from monitor.networks.voice import VoiceNetwork
from monitor.types import AnyArray, FloatArray, IntArray
from recipes.shipping import quantise_matrices
from tests.sounds import synthetic
from tests.usc_weights import usc_weights

NOISE = np.random.default_rng(0).standard_normal(RATE).astype(np.float32) / 10


@given(st.integers(0, 50), st.integers(1, 40), st.integers(0, HOP - 1))
def test_a_frame_depends_on_its_own_samples(first, count, more):
    part = NOISE[first * HOP : (first + count - 1) * HOP + WIDTH + more]
    whole = log_mel(NOISE)[first : first + count]
    np.testing.assert_allclose(log_mel(part), whole, atol=1e-5)


@pytest.mark.parametrize("hertz", [100, 440, 1000, 3000, 7000])
def test_a_tone_is_in_its_band(hertz):
    tone = np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE)
    low, high = 2595 * np.log10(1 + np.array([20, 7600]) / 700)
    edges = np.linspace(low, high, 42)
    mel = 2595 * np.log10(1 + hertz / 700)
    nearest = int(np.abs(edges[1:-1] - mel).argmin())
    assert abs(int(log_mel(tone).mean(axis=0).argmax()) - nearest) <= 1


def test_silence_has_a_floor_and_too_short_is_said():
    np.testing.assert_allclose(log_mel(np.zeros(WIDTH)), np.log(1e-6), rtol=1e-5)
    with pytest.raises(UsageError, match="400 samples"):
        log_mel(NOISE[: WIDTH - 1])


BANDS = np.random.default_rng(0).normal(-8, 3, (900, 40)).astype(np.float32)
USUAL = np.full(40, -8.0)


def test_the_mean_forgets_and_begins_with_what_is_usual():
    total, weight = 50 * USUAL, 50.0
    expected = []
    for row in BANDS.astype(float):
        total, weight = total * (1 - 1 / 500) + row, weight * (1 - 1 / 500) + 1
        expected.append(row - total / weight)
    np.testing.assert_allclose(Centre(USUAL)(BANDS), expected, atol=1e-4)


@given(st.lists(st.integers(0, len(BANDS)), max_size=6))
def test_pieces_change_nothing(cuts):
    centre = Centre(USUAL)
    parts = [centre(part) for part in np.split(BANDS, sorted(cuts))]
    np.testing.assert_allclose(np.concatenate(parts), Centre(USUAL)(BANDS), atol=1e-5)
    centre.reset()
    assert np.array_equal(centre(BANDS), Centre(USUAL)(BANDS))


def kept(path: Path, weights: Mapping[str, Any]) -> dict[str, Any]:
    np.savez_compressed(path, **weights)
    found, sha256 = read_weights(path)
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@given(
    kernel=arrays.arrays(
        np.float32,
        arrays.array_shapes(min_dims=2, max_dims=3, max_side=6),
        elements=st.floats(-100, 100, width=32),
    )
)
@pytest.mark.slow
def test_every_weight_comes_back_to_half_a_step_of_its_row(tmp_path_factory, kernel):
    path = tmp_path_factory.mktemp("weights") / "made.npz"
    made = quantise_matrices({"up": kernel, "up.bias": kernel[0].ravel()})
    assert made["up"].dtype == np.int8
    found = kept(path, made)
    assert found.keys() == {"up", "up.bias"}
    assert found["up"].dtype == np.float32
    assert found["up"].shape == kernel.shape
    rows, back = (each.reshape(len(kernel), -1) for each in (kernel, found["up"]))
    step = np.abs(rows).max(axis=1, keepdims=True) / 127
    # a scale is rounded to half precision: of 127 steps an eighth of one at most
    assert (np.abs(rows - back) <= 0.63 * step + 1e-5).all()
    assert np.array_equal(found["up.bias"], kernel[0].ravel())


def test_a_scale_without_its_weights_is_refused(tmp_path):
    with pytest.raises(StoreError, match=r"weights from bad\.npz"):
        kept(tmp_path / "bad.npz", {"up.scale": np.ones(3, np.float16)})


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.1, 4.0, 300.0])
def test_what_scipy_is_not_imported_for_says_what_scipy_says(scale):
    x = (scale * np.random.default_rng(0).standard_normal((149, 60))).astype(np.float32)
    made = log_softmax(x)
    assert made.dtype == np.float32
    assert np.array_equal(made, scipy.special.log_softmax(x, axis=1))
    assert sigmoid(x).dtype == np.float32
    np.testing.assert_allclose(sigmoid(x), scipy.special.expit(x), rtol=2e-7, atol=1e-37)
    assert sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist() == [0.0, 0.5, 1.0]


FOLDER = Path(phones.__file__).parent
SHIPPED: dict[str, tuple[Any, str, Any, int]] = {
    "phones": (phones, "SHA256", phones.shipped_recogniser, 2_100_000),
    "units": (phones, "UNITS_SHA256", phones.shipped_units, 300_000),
    "usc": (usc, "SHA256", usc.shipped_codec, 1_200_000),
    "voice": (voice, "SHA256", voice.shipped, 12 << 20),
}
"""The module, its constant, the loader and the bytes that it may have at most."""


@pytest.mark.parametrize("name", SHIPPED)
def test_the_card_is_that_of_the_weights(name, monkeypatch):
    module, constant, shipped, most_bytes = SHIPPED[name]
    card = json.loads((FOLDER / f"{name}.json").read_text())
    held = (FOLDER / f"{name}.npz").read_bytes()
    digest = hashlib.sha256(held).hexdigest()
    assert getattr(module, constant) == shipped().sha256 == card["sha256"] == digest
    assert card["bytes"] == len(held) < most_bytes
    monkeypatch.setattr(module, constant, "ab" * 32)
    with pytest.raises(StoreError, match=rf"{name}\.npz in the package .*: install again"):
        shipped.__wrapped__()


def test_nobody_of_the_shipped_population_trained_the_voice_network():
    told = json.dumps(json.loads((FOLDER / "voice.json").read_text())["training"]).lower()
    assert "background" in told
    assert not any(corpus in told for corpus in ("train-clean", "dev-clean", "test-clean"))


OTHERS = {
    "phones": (PhoneNetwork, {
        "middle.1.pointwise": lambda a: a[:, :-1],
        "early.reach": lambda a: np.add(a, [[0, 1], [0, 0]]),
        "late.0.depthwise": lambda a: a[:, 1:],
        "usual": lambda a: a[1:],
        "trigram": lambda a: a[1:],
        "head": lambda a: a[1:],
    }),
    "units": (UnitNetwork, {
        "stem": lambda a: a[1:],
        "reach": lambda a: np.add(a, [0, 1]),
        "layer.depthwise": lambda a: a[:, 1:],
        "codebook": lambda a: a[:, 1:],
    }),
    "usc": (UscNetwork, dict.fromkeys(
        ("stem", "deep.0.pointwise", "book.1.codes", "clip", "usual"), lambda _: np.zeros(())
    )),
    "voice": (VoiceNetwork, {"1.two.in": lambda a: a[:, :-1]}),
}  # fmt: skip
"""Arrays that another network has otherwise."""


@pytest.mark.parametrize("name", OTHERS)
def test_another_file_is_said(tmp_path, name):
    kind, changes = OTHERS[name]
    whole, path = FOLDER / f"{name}.npz", tmp_path / "other.npz"
    with pytest.raises(StoreError, match=r"weights from other\.npz"):
        kind.load(path)
    path.write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(StoreError, match=r"weights from other\.npz"):
        kind.load(path)
    # voice must stay small, so in int8; what a scale belongs to cannot be cut
    weights = dict(np.load(whole)) if name == "voice" else read_weights(whole)[0]
    changed = [weights | {key: change(weights[key])} for key, change in changes.items()]
    for other in ({"a": np.zeros(3)}, *changed):
        np.savez(path, **other)
        with pytest.raises(StoreError, match="another network"):
            kind.load(path)


SOUND = synthetic(2)


class Rows(UnitNetwork):
    """Units that every bit of the layer counts in: codes would hide a last bit nearly always."""

    def code(self, hidden: FloatArray) -> IntArray:
        return np.array([zlib.crc32(row.tobytes()) for row in hidden + 0.0], np.int64)


@dataclass(frozen=True)
class Case:
    """A network of streams.

    Attributes:
        stream: begins one.
        look_ahead: seconds of audio that a frame depends on after its own.
        frame: samples of a frame.
        step: with so many samples less than it looks ahead to, some frame changes.
        late_seconds: that a frame comes after its end at most, but for those samples.
    """

    stream: Callable[[], Any]
    look_ahead: float
    frame: int
    step: int
    late_seconds: float


def _cases() -> dict[str, Case]:
    phones = shipped_recogniser()
    units = Rows.load(FOLDER / "units.npz")
    codec = UscNetwork(usc_weights()).encoder
    return {
        "phones": Case(phones.stream, phones.look_ahead, 320, 320, phones.look_ahead + 0.22),
        "units": Case(units.stream, units.look_ahead, 320, 160, 0.1),
        "codec": Case(codec.stream, codec.look_ahead, 640, 160, codec.look_ahead + 0.22),
    }


CASES = _cases()
each = pytest.mark.parametrize("name", CASES)
each_in_time = pytest.mark.parametrize(
    "name", [pytest.param("phones", marks=pytest.mark.slow), "units", "codec"]
)


def heard(stream: Any, samples: FloatArray, cuts: list[int]) -> AnyArray:
    parts = np.split(samples, sorted(cuts))
    return np.concatenate([*map(stream.push, parts), stream.flush()])


@cache
def whole(name: str) -> AnyArray:
    return heard(CASES[name].stream(), SOUND, [])


@each_in_time
@settings(max_examples=15)
@given(cuts=st.lists(st.integers(0, len(SOUND)), max_size=12))
def test_how_the_stream_is_cut_changes_no_bit(name, cuts):
    assert np.array_equal(heard(CASES[name].stream(), SOUND, cuts), whole(name))


@each
@pytest.mark.parametrize("samples", [0, 1, 319, 320, 639, 640, 641, 3199, 3200, 3201, 9999])
def test_every_whole_frame_comes_once(name, samples):
    case = CASES[name]
    found = heard(case.stream(), SOUND[:samples], [])
    assert len(found) == samples // case.frame
    assert found.dtype == whole(name).dtype
    sure = max(0, len(found) - round(case.look_ahead * RATE / case.frame) - 1)
    assert np.array_equal(found[:sure], whole(name)[:sure])


@each
def test_a_stream_begins_anew_after_its_end_or_a_reset(name):
    stream = CASES[name].stream()
    stream.push(SOUND[:5000])
    stream.reset()
    assert np.array_equal(heard(stream, SOUND, []), whole(name))
    assert np.array_equal(heard(stream, SOUND, [700]), whole(name))


@each_in_time
def test_a_frame_looks_ahead_as_far_as_is_said_and_no_further(name):
    case, changes = CASES[name], []
    for frame in (20, 21):  # of two frames that are taken together the first looks further
        needed = (frame + 1) * case.frame + round(case.look_ahead * RATE)
        for samples in (needed, needed - case.step):
            other = SOUND.copy()
            other[samples:] = 0
            found = heard(case.stream(), other, [])[: frame + 1]
            changes.append(not np.array_equal(found, whole(name)[: frame + 1]))
    assert not changes[0]
    assert not changes[2]
    assert changes[1] or changes[3]


@each
def test_a_frame_comes_as_soon_as_is_said(name):
    case, known, late = CASES[name], 0, []
    stream = case.stream()
    for end in range(160, len(SOUND) + 1, 160):
        for _ in stream.push(SOUND[end - 160 : end]):
            known += 1
            late.append((end - known * case.frame) / RATE)
    assert len(late) > len(whole(name)) - case.late_seconds * RATE / case.frame - 1
    assert 0 < min(late) <= max(late) < case.late_seconds


@each
def test_samples_of_two_channels_are_said(name):
    with pytest.raises(UsageError, match="one axis"):
        CASES[name].stream().push(np.zeros((10, 2), np.float32))
