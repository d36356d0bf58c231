"""Units of the phone network as a feature: which frames count, when they come, what is skipped.

`python -m tests.features.test_phones` writes the golden units anew, after another network has taken
the place of this one.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.features.extractor import Extractor, VoiceActivity
from monitor.features.framing import join_tracks
from monitor.features.phones import Phones
from monitor.networks.phones import UNITS_SHA256, UnitStream, shipped_units
from monitor.types import Block, Track
from tests.contracts import babble, voice

GOLDEN = Path(__file__).with_name("golden_phones.json")
RATE = 16_000
SECONDS = 12
READERS = ("dev-clean/1272/128104", "dev-clean/1993/147966")


def heard(feature, parts):
    whole = feature.process(np.empty(0, np.float32))
    for part in parts:
        whole = join_tracks(whole, feature.process(part))
    return join_tracks(whole, feature.flush())


def assert_same(left, right):
    assert np.array_equal(left.ticks, right.ticks)
    assert np.array_equal(left.values, right.values)
    assert np.array_equal(left.spans, right.spans)


def after(track, tick):
    late = track.ticks > tick
    return Track(track.ticks[late], track.values[late], track.spans[late])


@pytest.fixture(scope="module", params=READERS)
def speech(shared: Path, request):
    """The beginning of a real reader, with half a second of silence in it."""
    path = shared / "speech" / f"{request.param}.opus"
    sound = soundfile.read(path, frames=SECONDS * RATE, dtype="float32")[0]
    sound[5 * RATE : 11 * RATE // 2] = 0
    return sound


@pytest.fixture(scope="module")
def whole(speech):
    return heard(Phones(), [speech])


@pytest.fixture
def pushed(monkeypatch):
    """Samples that the network has heard."""
    counts: list[int] = []
    push = UnitStream.push

    def counted(self, samples):
        counts.append(samples.size)
        return push(self, samples)

    monkeypatch.setattr(UnitStream, "push", counted)
    return counts


def test_real_speech_in_any_cutting(speech, whole):
    cuts = np.sort(np.random.default_rng(0).integers(0, speech.size, 200))
    assert_same(heard(Phones(), np.split(speech, cuts)), whole)


def test_the_frames_are_those_of_the_network_in_speech(speech, whole):
    """All of them and no others, whoever asks: neither shifted nor doubled at any border."""
    stream = shipped_units().stream()
    units = np.concatenate([stream.push(speech), stream.flush()])
    frames = whole.spans[:, 0] // 2
    assert np.array_equal(whole.values, units[frames])
    spoken = VoiceActivity(RATE, ticks=1).process(speech)[: 2 * units.size].reshape(-1, 2)
    assert np.array_equal(frames, np.flatnonzero(spoken.all(axis=1)))
    assert 200 < frames.size < 50 * (SECONDS - 0.3)  # the silence is not counted


def test_a_frame_is_known_within_a_tenth_of_a_second_of_its_end(speech, whole):
    assert (np.diff(whole.spans) == 2).all()
    late = whole.ticks - whole.spans[:, 1]
    assert 0 <= late.min() <= late.max() < 10
    feature = Phones()
    for begin in range(0, speech.size, 700):
        track = feature.process(speech[begin : begin + 700])
        now = 100 * (begin + 700) / RATE
        assert (track.ticks <= now).all()
        assert (track.ticks > now - 5).all()  # with the very samples that complete it
    assert whole.ticks[-1] == 100 * SECONDS


@settings(max_examples=12)
@given(st.integers(0, 3 * RATE))
def test_every_whole_frame_of_a_short_recording(samples):
    feature = Phones()
    feature.activity = type(
        "Everything", (), {"process": lambda _, s: np.ones(s.size // 160, bool)}
    )()
    track = heard(feature, [voice(3.0)[:samples]])
    assert np.array_equal(track.spans, 2 * np.arange(samples // 320)[:, None] + [0, 2])
    assert (track.ticks <= -(-samples // 160)).all()


def test_silence_and_noise_do_not_count():
    noise = np.random.default_rng(0).standard_normal(10 * RATE).astype(np.float32)
    assert not heard(Phones(), [0 * noise]).values.size
    # a moment passes before voice activity takes noise for noise
    assert heard(Phones(), [0.003 * noise]).spans.max(initial=0) < 100


def test_what_is_skipped_is_not_computed(pushed):
    sound = babble(300)
    expected = heard(Phones(), [sound])
    assert sum(pushed) >= sound.size
    pushed.clear()
    feature = Phones()
    feature.skip_to(2500)
    assert_same(heard(feature, np.array_split(sound, 9)), after(expected, 2500))
    assert sum(pushed) < (30 - 25 + 5) * RATE
    feature.reset()
    pushed.clear()
    feature.process(sound[: 8 * RATE])
    feature.skip_to(2000)  # in the midst of it
    assert_same(
        join_tracks(feature.process(sound[8 * RATE :]), feature.flush()), after(expected, 2000)
    )
    assert sum(pushed) < (8 + 30 - 20 + 5) * RATE
    feature.reset()
    feature.skip_to(9999)
    assert not heard(feature, [sound]).values.size


def extracted(sound, rate):
    extractor = Extractor([Phones()])
    runs = [extractor.process(Block(part, rate)) for part in np.array_split(sound, 7)]
    tracks = [run.tracks["phones"] for run in (*runs, extractor.flush())]
    return functools.reduce(join_tracks, tracks)


def test_telephone_speech(speech):
    """8 kHz comes up to 16 kHz on its way in; most of the consonants' hiss is not there."""
    wide, track = (
        extracted(sound, rate)
        for sound, rate in ((speech, RATE), (soxr.resample(speech, RATE, 8000), 8000))
    )
    assert track.values.size == pytest.approx(wide.values.size, rel=0.05)
    assert track.spans is not None
    assert track.spans.max() <= 100 * SECONDS
    assert len(np.unique(track.values)) > 15


def test_readers_say_units_of_their_own(shared):
    """The likelier template is that of the reader's other chapter."""
    chapters = {
        "1272": ("128104", "135031"),
        "1462": ("170138", "170142"),
        "1993": ("147964", "147966"),
        "251": ("118436", "136532"),
    }
    counts = {}
    for reader, names in chapters.items():
        for i, name in enumerate(names):
            path = shared / "speech" / "dev-clean" / reader / f"{name}.opus"
            sound = soundfile.read(path, frames=30 * RATE, dtype="float32")[0]
            track = heard(Phones(), [sound])
            counts[reader, i] = np.bincount(track.values, minlength=256) + 0.5
    shares = np.log([counts[reader, 0] / counts[reader, 0].sum() for reader in chapters])
    likelihoods = np.array([counts[reader, 1] @ shares.T for reader in chapters])
    right = likelihoods.argmax(axis=1) == np.arange(len(chapters))
    assert np.count_nonzero(right) >= 3


def golden_frames() -> dict[str, Any]:
    track = heard(Phones(), [babble(20, pause_seconds=0.3)])
    return {
        "network": Phones().spec.network,
        "ticks": track.ticks.tolist(),
        "begins": track.spans[:, 0].tolist(),
        "units": track.values.tolist(),
    }


def test_the_frames_are_the_golden_ones():
    golden, made = json.loads(GOLDEN.read_text()), golden_frames()
    assert golden["network"] == made["network"], "python -m tests.features.test_phones"
    assert golden["begins"] == made["begins"]
    assert golden["ticks"] == made["ticks"]
    same = np.equal(golden["units"], made["units"])
    assert same.mean() > 0.97  # other processors round otherwise: a code may be as near as another


@pytest.mark.slow
def test_the_recogniser_is_not_loaded():
    """In a process of its own: nothing that is heard live needs it."""
    script = """
import sys
from monitor.features.phones import Phones
from monitor.networks.phones import shipped_recogniser
import numpy as np
Phones().process(np.zeros(16000))
assert shipped_recogniser.cache_info().currsize == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_network_is_marked():
    assert Phones().spec.network == shipped_units().mark
    assert shipped_units().sha256 == UNITS_SHA256


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(golden_frames()) + "\n")
