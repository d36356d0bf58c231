"""Live enrolment speech: what is kept, and when a person is told to mend something."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest

from monitor.features.channel import CONDITION
from monitor.features.extractor import Extractor
from monitor.features.f0 import F0
from monitor.population.population import Population
from monitor.training.enrolling import LiveEnrolment
from monitor.types import Block
from tests.contracts import voice

RATE = 16_000
VOICE = voice(8.0)


def taken(samples: np.ndarray, cut: int = 800) -> LiveEnrolment:
    take = LiveEnrolment([F0()])
    for i in range(0, len(samples), cut):
        take.push(Block(samples[i : i + cut], RATE))
    return take


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        (VOICE, ""),
        (np.clip(20 * VOICE, -1, 1), "clipping"),
        (0.003 * VOICE, "too quiet"),
        (np.pad(VOICE, (0, 5 * RATE)), "too quiet"),
        (
            np.concatenate([VOICE[: RATE // 2], np.zeros(9 * RATE // 2, np.float32)]),
            "mostly silence",
        ),
        (VOICE[: 4 * RATE], ""),
    ],
)
def test_trouble_is_said_while_it_can_be_mended(samples, words):
    trouble = taken(samples).recent.trouble
    assert trouble.startswith(words)
    assert bool(trouble) == bool(words)


def test_the_whole_is_judged_too():
    once = np.concatenate([np.clip(20 * VOICE, -1, 1), np.tile(VOICE, 2)])
    take = taken(once)
    assert take.recent.trouble == ""
    assert take.whole.trouble.startswith("clipping")
    assert take.whole.seconds == pytest.approx(24.0)
    assert taken(VOICE[:0]).whole.trouble == ""


@pytest.mark.parametrize("cut", [100, 1234, 100_000])
def test_the_frames_are_those_of_the_audio(cut):
    take = taken(VOICE, cut)
    heard = take.end("take")
    extractor = Extractor([F0()])
    parts = [extractor.process(Block(VOICE, RATE)), extractor.flush()]
    assert take.speech_seconds == pytest.approx(sum(p.speech.sum() for p in parts) / 100)
    values = np.concatenate([p.tracks["f0"].values for p in parts])
    assert np.array_equal(heard.tracks["f0"].values, values)
    assert heard.speech.size == 800


def test_what_a_take_sounds_like_goes_into_the_template():
    heard = taken(np.tile(VOICE, 3)).end("take")
    extractor = Extractor([], conditions=True)
    rows = extractor.process(Block(np.tile(VOICE, 3), RATE)).tracks[CONDITION].values
    assert np.array_equal(heard.sound, rows.sum(axis=0))  # type: ignore[arg-type]


def test_frames_of_a_take_never_lie_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    made = taken(np.tile(VOICE, 3)).enrolment("ann", "microphone", 10.0)
    assert made.population.names == ("ann",)
    assert made.population.offsets.tolist() == [0, 2]
    assert made.sessions["ann"][0][1] == 2
    (source,) = made.population.speakers[0].sources
    assert source.hashes == ()
    made.population.save(tmp_path / "ann.npz")
    assert Population.load(tmp_path / "ann.npz").speakers[0].sources == (source,)
