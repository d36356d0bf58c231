"""Enrolments of more than one voice, and of one: windows of real readers."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.one_voice import alternate, make_music, measure_level
from monitor.corpus import find
from monitor.features.registry import make
from monitor.sources.frames import FramesFile, Header, write_frames
from monitor.training.enrolling import enrol
from monitor.training.live_enrolment import LiveEnrolment
from monitor.training.session_checks import LEAST_WINDOWS, Unity, measure_unity
from monitor.types import Block, Track

RATE = 16000
READERS = "2803/154320", "652/129742", "kerstin/all"


@pytest.fixture(scope="module")
def windows(clips: Path) -> dict[str, np.ndarray]:
    found = {}
    for name in READERS:
        with FramesFile(clips / f"{name}.npz") as source:
            found[name] = source.whole().tracks["voice"].values
    return found


def unity_of(windows: np.ndarray) -> Unity:
    unity = measure_unity(windows)
    assert unity is not None
    return unity


def frames_of(windows: np.ndarray, path: Path, network: str | None) -> Path:
    """A file of frames whose windows follow each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    track = Track(300 * np.arange(1, len(windows) + 1), windows)
    write_frames(
        path, np.ones(300 * len(windows), bool), {"voice": track}, {"voice": 192}, {"voice": 3.0},
        networks={"voice": network}, header=Header(),
    )  # fmt: skip
    return path


@pytest.mark.parametrize("name", READERS)
def test_a_reader_is_one_voice(windows, name):
    for count in range(LEAST_WINDOWS, len(windows[name]) + 1):
        unity = unity_of(windows[name][:count])
        assert (unity.is_turn, unity.is_mixed) == (False, False), unity
    louder = unity_of(windows[name] * np.float32(1.1))
    assert louder.cohesion == pytest.approx(unity.cohesion)


@pytest.mark.parametrize(("first", "second"), [*permutations(READERS, 2)])
@pytest.mark.parametrize("before", [3, 4, 5])
def test_two_in_turn_are_noted_where_the_voice_changes(windows, first, second, before):
    joined = np.concatenate([windows[first][:before], windows[second][:3]])
    unity = unity_of(joined)
    assert unity.is_turn
    assert unity.split == before


def test_windows_that_are_too_few_or_empty_are_not_judged(windows):
    some = windows[READERS[0]]
    assert measure_unity(some[: LEAST_WINDOWS - 1]) is None
    assert measure_unity(np.concatenate([some[:3], np.zeros((5, 192))])) is None
    opposite = unity_of(np.array([[1.0, 0], [-1, 0], [1, 0], [-1, 0]]))
    assert opposite.is_mixed


def test_enrolment_notes_the_voices_of_the_network_it_knows(windows, clips, tmp_path):
    with FramesFile(clips / f"{READERS[0]}.npz") as source:
        network = source.stream_info.tracks["voice"].network
    two = np.concatenate([windows[READERS[0]][:4], windows[READERS[2]][:4]])
    frames_of(two, tmp_path / "a" / "mia" / "1.npz", network)
    frames_of(windows[READERS[2]], tmp_path / "a" / "zoe" / "1.npz", network)
    made = enrol(find(tmp_path / "a"))
    (note,) = made.notes
    assert note.startswith("mia: the voice changes about 12 s into 1.npz. ")
    assert not made.problems
    # what is not enrolled does not count
    assert not enrol(find(tmp_path / "a"), seconds=10.0).notes
    # thresholds are those of one network
    frames_of(two, tmp_path / "b" / "mia" / "1.npz", None)
    assert not enrol(find(tmp_path / "b")).notes
    # sessions may differ: they are judged one by one
    for number, part in enumerate((two[:4], two[4:])):
        frames_of(part, tmp_path / "c" / "mia" / f"{number}.npz", network)
    assert not enrol(find(tmp_path / "c")).notes


@pytest.mark.slow
def test_real_takes(shared):
    """The change of the issue, turns, two at once, and music; and the reader alone."""
    own, other = (
        soundfile.read(shared / "speech/dev-clean" / name, RATE * 20, RATE * 5, dtype="float32")[0]
        for name in ("1272/128104.opus", "174/50561.opus")
    )
    rng = np.random.default_rng(0)
    other, music = other * measure_level(own) / measure_level(other), make_music(own.size, rng)
    takes = {
        "alone": own,
        "in turn": np.concatenate([own[: 11 * RATE], other[11 * RATE :]]),
        "by turns": alternate(own, other, rng),
        "at once": own + other,
        "music": own + music * measure_level(own) / measure_level(music),
    }
    notes = {}
    for name, sound in takes.items():
        take = LiveEnrolment(make(["voice"]))
        take.push(Block(np.asarray(sound, np.float32)[:, None], RATE))
        notes[name] = take.enrolment("mia", "microphone", 60.0).notes
    assert [name for name, lines in notes.items() if not lines] == ["alone"]
    assert "the voice changes about 1" in notes["in turn"][0]
    assert "into the recording" in notes["in turn"][0]
    assert "other voices, music or noise" in notes["music"][0]
