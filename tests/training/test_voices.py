"""Voices: frames on a clock of speech, the windows that are cut from them, and cohorts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks.simulation import SIZE
from monitor.corpus import find
from monitor.errors import UsageError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.maths.scores import EmbeddingSum, Histogram
from monitor.sources.frames import write_frames
from monitor.training import grid as cells
from monitor.training.grid import plans
from monitor.training.voices import (
    SessionFrames,
    SpeakerSpeech,
    cohort_of,
    collect,
    doubles_of_voices,
    join,
    without_doubles,
)
from monitor.types import AnyArray, EarlyFrames, Track


def test_frames_lie_in_tenths_of_a_speech_second(tmp_path, frames_file):
    # ticks 1-50 speech, 51-150 silence, 151-205 speech: 105 ticks of speech, 10 whole units
    speech = np.zeros(205, bool)
    speech[:50] = speech[150:] = True
    ticks, bins = [1, 10, 11, 50, 100, 150, 151, 155, 200, 201, 205], list(range(11))
    frames_file(tmp_path / "ann/1.npz", speech, ticks, bins)
    (voice,), specs, problems = collect(find(tmp_path))
    session = voice.sessions[0]["f0"]
    assert (voice.name, voice.length(0), problems) == ("ann", 10, ())
    assert str(specs["f0"]) == f"histogram of size {SIZE}"
    # a frame in silence belongs to the unit that was heard before; the rest of half a unit is cut
    assert session.units.tolist() == [0, 0, 1, 4, 4, 4, 5, 5, 9]
    assert session.values.tolist() == list(range(9))


def test_files_of_a_session_follow_one_another(tmp_path, frames_file):
    frames_file(tmp_path / "ann/mon/1.npz", np.ones(25), [25], [1])
    frames_file(tmp_path / "ann/mon/2.npz", np.ones(25), [1, 6], [2, 3])
    frames_file(tmp_path / "ann/tue/1.npz", np.ones(10), [4], [4])
    (voice,), _, _ = collect(find(tmp_path))
    monday, tuesday = (session["f0"] for session in voice.sessions)
    assert (monday.length, tuesday.length) == (5, 1)
    assert monday.units.tolist() == [2, 2, 3]
    assert tuesday.values.tolist() == [4]


@st.composite
def sessions(draw, embeddings):
    length = draw(st.integers(1, 25))
    where = sorted(draw(st.lists(st.integers(0, length - 1), max_size=40)))
    generator = np.random.default_rng(draw(st.integers(0, 2**31)))
    shape = (len(where), 4) if embeddings else (len(where),)
    values = generator.normal(size=shape) if embeddings else generator.integers(0, 4, shape)
    spec = FeatureSpec("x", EMBEDDING if embeddings else HISTOGRAM, 4, 0.1)
    return SessionFrames(values, np.array(where, dtype=np.int64), length, spec)


def naive(session, start, length, sketch):
    """Frame by frame, unit by unit."""
    for step in range(length):
        unit = (start + step) % session.length
        for value, where in zip(session.values, session.units, strict=True):
            if where == unit:
                sketch.learn_one(value)
    return sketch.total


@given(st.booleans().flatmap(sessions), st.integers(0, 60), st.data())
def test_circular_sums_equal_the_naive_loop(session, start, data):
    length = data.draw(st.integers(0, session.length))
    total = session.total(start, length)
    assert total.shape == (4,)
    kind = EmbeddingSum if session.spec.kind is EMBEDDING else Histogram
    assert_allclose(total, naive(session, start, length, kind(4)), atol=1e-12)
    rest = session.total(start + length, session.length - length)
    assert_allclose(total + rest, session.total(0, session.length), atol=1e-12)
    with pytest.raises(UsageError, match=f"{session.length} units has no window"):
        session.total(0, session.length + 1)
    # joined with another they hold the same frames further on
    whole = join([session, session])
    assert whole.length == 2 * session.length
    for first in (0, session.length):
        inside = min(length, session.length - start % session.length)
        found = whole.total(first + start % session.length, inside)
        assert_allclose(found, session.total(start, inside), atol=1e-12)


def test_a_frame_that_began_before_the_window_is_not_heard():
    session = SessionFrames(
        np.array([0, 1, 2, 3]),
        np.array([2, 5, 5, 8]),
        9,
        FeatureSpec("x", HISTOGRAM, 4, 0.1),
        np.array([0, 1, 4, 6]),
    )
    assert_array_equal(session.total(0, 9), [1, 1, 1, 1])
    assert_array_equal(session.total(4, 5), [0, 0, 1, 1])
    assert_array_equal(session.total(4, 2), [0, 0, 1, 0])
    assert_array_equal(session.total(6, 6), [1, 0, 0, 1])  # round the end, and from 0 again


@given(st.integers(0, 89), st.integers(0, 90))
def test_long_frames_are_as_many_as_a_listener_would_have(start, length):
    ends, spec = np.arange(29, 90, 30), FeatureSpec("x", EMBEDDING, 3, 3.0)
    session = SessionFrames(np.eye(3), ends, 90, spec, span=30)
    total = session.total(start, length)
    assert total.sum() == length // 30
    assert total.max(initial=0) <= 1


def test_a_test_shorter_than_a_window_takes_the_next_early_frame():
    spec = FeatureSpec("x", EMBEDDING, 2, 3.0)
    values = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    early = EarlyFrames(np.array([9, 19, 99, 109]), values, np.array([1, 2, 1, 2]))
    session = SessionFrames(
        np.full((4, 2), 0.8), np.arange(29, 120, 30), 120, spec, None, 30, early
    )

    def heard_at(start, length):
        return session.total(start, length).round(3).tolist()

    assert heard_at(0, 10) == [1.0, 0.0]
    assert heard_at(0, 19) == [1.0, 0.0]
    assert heard_at(0, 20) == [0.0, 1.0]
    assert heard_at(1, 20) == [0.5, 0.5]  # the window that begins heard_at 90
    assert heard_at(91, 29) == [0.0, 1.0]  # and around the end
    assert heard_at(91, 10) == [1.0, 0.0]
    assert heard_at(0, 9) == [0.0, 0.0]
    assert_array_equal(session.total(0, 30), replace(session, early=None).total(0, 30))
    late = replace(session, units=session.units + 1)  # a window that ends a tenth late
    assert late.total(0, 30).round(3).tolist() == [0.0, 1.0]
    # beside one window (0.8, 0.8) the next of what is left, by its seconds
    assert heard_at(0, 45) == [1.133, 0.8]
    assert heard_at(0, 50) == [1.133, 1.133]
    twice = join([session, session]).early
    assert twice.ticks.tolist() == [9, 19, 99, 109, 129, 139, 219, 229]


def slow_windows(kind, own, test: int, template: int, shift: int, shifts: int):
    """(template frames, test frames), unit by unit (docs/method.md section 4)."""

    def frames(*sessions) -> list[list[int]]:
        return [
            [v for u, v in zip(each["f0"].units, each["f0"].values, strict=True) if u == unit]
            for each in sessions
            for unit in range(each["f0"].length)
        ]

    def window(speech, start, length):
        return [speech[(start + i) % len(speech)] for i in range(length)]

    if kind == "same":
        speech = frames(max(own, key=lambda s: s["f0"].length))
        first = shift * len(speech) // shifts
        second = first + test + (len(speech) - test - template) // 2
        return window(speech, second, template), window(speech, first, test)
    turn = shift % len(own)
    speech, rest = frames(own[turn]), frames(*(s for i, s in enumerate(own) if i != turn))
    start, begin = shift * len(speech) // shifts, shift * len(rest) // shifts
    return window(speech, start, template), window(rest, begin, test)


def slow_ranks(kind, voices, test, template, shifts):
    """(better, tied) of every trial by loops and the definition of the log-likelihood."""
    size = voices[0].sessions[0]["f0"].spec.size
    result = []
    for shift in range(shifts):
        templates, tests = [], []
        for voice in voices:
            enrolled, heard = slow_windows(kind, voice.sessions, test, template, shift, shifts)
            counts = np.bincount([v for row in enrolled for v in row], minlength=size) + 0.5
            templates.append(np.log(counts / counts.sum()))
            tests.append([v for row in heard for v in row])
        for j, heard in enumerate(tests):
            scores = [sum(row[v] for v in heard) for row in templates]
            better = sum(s > scores[j] + 1e-9 for s in scores)
            tied = sum(abs(s - scores[j]) <= 1e-9 for s in scores)
            result.append((j, better, tied))
    return result


@pytest.mark.parametrize("kind", ["same", "cross"])
def test_ranks_against_loops(simulated, kind):
    voices = simulated(12, 3, 12.0)
    plan = next(p for k, _, _, p in plans(voices, [0.7], [4.0], 4) if k == kind)
    cell = plan.run({"f0": HISTOGRAM.similarity("log-likelihood")}, 7, 40)
    assert cell.candidates == 12
    found = list(zip(cell.speaker, cell.better[0], cell.tied[0], strict=True))
    assert found == slow_ranks(kind, voices, 7, 40, 4)
    assert len({better for _, better, _ in found}) > 5  # ranks of all kinds


def test_what_is_kept_of_the_scores_agrees_with_the_ranks(simulated, monkeypatch):
    voices = simulated(12, 2, 12.0)
    similarity = {"f0": HISTOGRAM.similarity("log-likelihood")}
    for _, _, _, plan in plans(voices, [0.7], [4.0], 4):
        cell = plan.run(similarity, 7, 40)
        assert cell.gaps.shape == (48, 1, 12)
        assert_array_equal(cell.gap_speaker, cell.speaker)
        assert (cell.gaps[np.arange(48), 0, cell.true_index] == 0.0).all()
        assert_array_equal((cell.gaps[:, 0] > 0).sum(axis=1), cell.better[0])
        assert_array_equal((cell.gaps[:, 0] == 0).sum(axis=1), cell.tied[0])
        assert_array_equal(plan.candidates[cell.true_index], cell.gap_speaker)
    # chunks leave no trace, and many scores are thinned evenly
    monkeypatch.setattr(cells, "_CHUNK", 5)
    monkeypatch.setattr(cells, "MOST_SCORES", 12 * 16)
    pieces = plan.run(similarity, 7, 40)
    assert_array_equal(cell.better, pieces.better)
    assert_array_equal(cell.speaker, pieces.speaker)  # ranks use every trial
    assert pieces.gaps.shape[0] == 16
    assert set(np.bincount(pieces.gap_speaker, minlength=12)) <= {1, 2}


def test_a_cohort_has_one_sketch_of_all_that_each_said(tmp_path):
    def write(name, bins, embeddings, ticks):
        path = tmp_path / "c" / f"{name}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        tracks = {
            "f0": Track(np.minimum(np.arange(len(bins)) + 1, ticks), np.array(bins)),
            # complete with the last sound
            "voice": Track(np.full(len(embeddings), ticks), np.reshape(embeddings, (-1, 4))),
        }
        write_frames(
            path, np.ones(ticks, bool), tracks, {"f0": 300, "voice": 4},
            {"f0": 0.01, "voice": 3.0}, networks={"voice": "ab" * 32},
        )  # fmt: skip

    ones = np.eye(4, dtype=np.float32)
    write("ann/1", [1, 1, 2], [ones[0], ones[1]], 405)
    write("ann/2", [3], [ones[1], ones[2]], 250)
    write("bob/1", [0] * 300, np.empty((0, 4), np.float32), 201)  # shorter than any embedding
    (tmp_path / "c" / "zoe").mkdir()
    (tmp_path / "c" / "zoe" / "1.npz").write_text("no frames")
    made, problems = cohort_of(find(tmp_path / "c"), about="Readers.")
    assert_allclose(made.seconds, [6.55, 2.01])
    counts = made.features["f0"].slices
    assert_array_equal(counts[:, :4], [[0, 2, 1, 1], [300, 0, 0, 0]])
    assert counts.dtype == np.uint16
    assert not counts[:, 4:].any()
    directions = made.features["voice"].slices
    assert_allclose(directions, np.array([[1, 2, 1, 0], [0, 0, 0, 0]]) / np.sqrt(6), atol=1e-3)
    assert directions.dtype == np.float16
    assert made.specs["voice"].network == "ab" * 32
    assert made.about == "Readers."
    assert problems[0].startswith("zoe/1.npz is not a file of frames")


def test_a_corpus_loses_second_names():
    spec = FeatureSpec("voice", EMBEDDING, 60, 2.5)
    random = np.random.default_rng(3)

    def speech(name: str, vector: AnyArray) -> SpeakerSpeech:
        values = np.repeat(vector[None], 10, axis=0)
        frames = SessionFrames(values, np.arange(10) * 25, 250, spec)
        return SpeakerSpeech(name, ({"voice": frames},), session_names=("day",))

    vectors = random.normal(size=(12, 60))
    people = [speech(f"p{i}", vector) for i, vector in enumerate(vectors)]
    people.append(speech("again", vectors[4] + 0.5 * random.normal(size=60)))
    doubles = doubles_of_voices(people)
    assert [(double.first, double.second) for double in doubles] == [("p4", "again")]
    assert without_doubles(people, doubles, "note") == people
    assert without_doubles(people, doubles, "drop") == people[:-1]
    merged = without_doubles(people, doubles, "merge")
    assert [voice.name for voice in merged] == [voice.name for voice in people[:-1]]
    assert merged[4].session_names == ("day", "again day")
    assert len(merged[4].sessions) == 2
