"""Channels that should not be mixed are noticed; ordinary stereo is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.channels import NOT_TO_BE_MIXED, ORDINARY, RATE, Two, turns
from monitor.features.extractor import Extractor, Mixer
from monitor.features.f0 import F0
from monitor.types import Block
from tests.sounds import synthetic

READERS = ("train-clean-5/19/198.opus", "dev-clean/174/50561.opus")


@pytest.fixture(scope="session")
def readers(shared) -> tuple[np.ndarray, ...]:
    """Forty seconds of each of two readers."""
    return tuple(soundfile.read(shared / "speech" / name, frames=40 * RATE)[0] for name in READERS)


def noticed(stereo, cuts=(), rate=RATE):
    mixer = Mixer(rate, 0, 0)
    found = []  # type: ignore[var-annotated]
    for part in np.split(np.asarray(stereo, np.float32), cuts):
        mixer.mix(part)
        found += mixer.pop_notices()
    return found


# an echo 12 dB below the talker is not always noticed (benchmarks/channels.py)
@pytest.mark.parametrize("name", [each for each in NOT_TO_BE_MIXED if "12 dB below" not in each])
def test_what_should_not_be_mixed_is_noticed(name, readers):
    kind, how = NOT_TO_BE_MIXED[name]
    ((tick, notice),) = noticed(how(Two(*readers, np.random.default_rng(0))))  # type: ignore[call-arg]
    assert notice.kind == kind
    assert "--channel" in notice.text
    assert tick <= 3000


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_stereo_is_not(name, readers):
    assert noticed(ORDINARY[name](Two(*readers, np.random.default_rng(0)))) == []  # type: ignore[call-arg]


@pytest.mark.parametrize("cuts", [(1,), (40_000, 40_001), tuple(range(777, 640_000, 777))])
def test_for_any_cutting(cuts, readers):
    call = turns(Two(*readers, np.random.default_rng(0)))  # type: ignore[call-arg]
    assert noticed(call, cuts) == noticed(call)


def test_one_of_several_channels_that_hold_the_same(readers):
    voice, other = readers
    (found,) = noticed(np.stack([voice, 0.5 * voice, other], axis=1))
    assert "channels 1 and 3" in found[1].text


def test_silence_is_no_speech():
    assert noticed(np.zeros((30 * RATE, 2))) == []
    assert noticed(np.zeros((0, 2))) == []


def test_a_channel_that_is_chosen_is_not_compared():
    voice = synthetic(10.0)
    stereo = Block(np.stack([voice, -voice], axis=1), RATE)
    kinds = []
    for channel in (None, 0):
        extractor = Extractor([F0()], channel)
        kinds.append([notice.kind for _, notice in extractor.process(stereo).notices])
    assert kinds == [["channels cancel"], []]


@pytest.mark.parametrize("rate", [11_025, 44_100, 1_000])
def test_at_any_rate(rate):
    voice = np.random.default_rng(0).normal(size=10 * rate)
    ((tick, _),) = noticed(np.stack([voice, -voice], axis=1), rate=rate)
    assert tick <= 1000


def test_enrolment_says_so_and_hears_the_channel_that_is_chosen(shared, readers, tmp_path):
    from monitor.corpus import find
    from monitor.training.enrolling import enrol

    folder = Path(tmp_path)
    for name, place in (("a", 0), ("b", 1)):
        (folder / name).mkdir()
        sound = readers if place == 0 else readers[::-1]
        soundfile.write(folder / name / "call.wav", np.stack(sound, axis=1), RATE)
        (folder / f"{name}1").mkdir()
        soundfile.write(folder / f"{name}1" / "call.wav", sound[0], RATE)
    told: list[str] = []
    enrol(find(folder), features=["f0"], seconds=20, notify=told.append)
    assert len(told) == 2
    assert all("hold different speech" in line and "call.wav" in line for line in told)
    told.clear()
    made = enrol(find(folder), features=["f0"], seconds=20, channel=1, notify=told.append)
    assert told == []
    slices = {
        name: made.population.features["f0"].slices[slice(*made.population.offsets[i : i + 2])]
        for i, name in enumerate(made.population.names)
    }
    assert np.array_equal(slices["a"], slices["a1"])
    assert np.array_equal(slices["b"], slices["b1"])
