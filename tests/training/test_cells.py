from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.training import voices as cells
from monitor.training.voices import SessionFrames, SpeakerSpeech, plans


def marked(lengths: list[list[int]]) -> list[SpeakerSpeech]:
    """Voices with one frame a unit, whose bin says which session and which unit it is."""
    size = 1000 * max(len(sessions) for sessions in lengths)
    spec = FeatureSpec("f0", HISTOGRAM, size, 0.01)
    return [
        SpeakerSpeech(
            str(v),
            tuple(
                {"f0": SessionFrames(1000 * s + np.arange(n), np.arange(n), n, spec)}
                for s, n in enumerate(sessions)
            ),
        )
        for v, sessions in enumerate(lengths)
    ]


def units(window, length: int) -> list[tuple[int, int]]:
    """The (session, unit) pairs that a window holds; each must be there once."""
    session, start = window
    counts = session["f0"].total(start, length)
    assert counts.max() == 1
    assert counts.sum() == length
    return [divmod(int(mark), 1000) for mark in np.flatnonzero(counts)]


CORPORA = st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=4), min_size=1, max_size=5)


@pytest.mark.slow
@settings(max_examples=150)
@given(CORPORA, st.integers(1, 25), st.integers(1, 40), st.integers(1, 7))
def test_windows_never_overlap_and_lie_in_the_right_sessions(lengths, test, template, shifts):
    voices = marked(lengths)
    made = list(plans(voices, [test / 10], [template / 10], shifts))
    assert [(kind, t, d) for kind, t, d, _ in made] == [("same", 0, 0), ("cross", 0, 0)]
    for kind, _, _, plan in made:
        assert set(plan.mated) <= set(range(plan.candidates.size))
        mated = {int(plan.candidates[place]) for place in plan.mated}
        for v, own in enumerate(lengths):
            if kind == "same":
                provides = tests = max(own) >= test + template
            else:
                long = [i for i, n in enumerate(own) if n >= template]
                provides = sum(own) >= template
                tests = any(sum(own) - own[i] >= test for i in long)
            assert (v in plan.candidates) == provides
            assert (v in mated) == tests
        for v in plan.candidates:
            for shift in range(shifts):
                enrolled = units(plan.template(v, shift), template)
                if v not in mated:
                    continue
                assert len({session for session, _ in enrolled}) == 1
                heard = units(plan.test(v, shift), test)
                assert not set(heard) & set(enrolled)
                sessions = {session for session, _ in heard}
                if kind == "same":
                    assert sessions == {enrolled[0][0]}
                else:
                    assert enrolled[0][0] not in sessions


def test_tests_wander_and_sessions_take_turns():
    (_, _, _, same), (_, _, _, cross) = plans(marked([[100, 90, 80]]), [1.0], [2.0], 10)
    starts = [same.test(0, shift)[1] for shift in range(10)]
    assert starts == list(range(0, 100, 10))
    turns = [units(cross.template(0, shift), 20)[0][0] for shift in range(6)]
    assert turns == [0, 1, 2, 0, 1, 2]


def slow_windows(kind, own, test: int, template: int, shift: int, shifts: int):
    """(template frames, test frames), unit by unit (docs/method.md section 4)."""

    def frames(session: SessionFrames) -> list[list[int]]:
        rows: list[list[int]] = [[] for _ in range(session.length)]
        for unit, value in zip(session.units, session.values, strict=True):
            rows[unit].append(value)
        return rows

    if kind == "same":
        speech = frames(max((s["f0"] for s in own), key=lambda s: s.length))
        k = len(speech)
        first = shift * k // shifts
        second = first + test + (k - test - template) // 2
        return (
            [speech[(second + i) % k] for i in range(template)],
            [speech[(first + i) % k] for i in range(test)],
        )
    turn = shift % len(own)
    speech = frames(own[turn]["f0"])
    rest = [row for i, s in enumerate(own) if i != turn for row in frames(s["f0"])]
    start, begin = shift * len(speech) // shifts, shift * len(rest) // shifts
    return (
        [speech[(start + i) % len(speech)] for i in range(template)],
        [rest[(begin + i) % len(rest)] for i in range(test)],
    )


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


def test_what_is_kept_of_the_scores_agrees_with_the_ranks(simulated):
    voices = simulated(12, 2, 12.0)
    for _, _, _, plan in plans(voices, [0.7], [4.0], 4):
        cell = plan.run({"f0": HISTOGRAM.similarity("log-likelihood")}, 7, 40)
        assert cell.gaps.shape == (48, 1, 12)
        np.testing.assert_array_equal(cell.gap_speaker, cell.speaker)
        assert (cell.gaps[np.arange(48), 0, cell.own] == 0.0).all()
        np.testing.assert_array_equal((cell.gaps[:, 0] > 0).sum(axis=1), cell.better[0])
        np.testing.assert_array_equal((cell.gaps[:, 0] == 0).sum(axis=1), cell.tied[0])
        np.testing.assert_array_equal(plan.candidates[cell.own], cell.gap_speaker)


def test_many_scores_are_thinned_evenly(simulated, monkeypatch):
    monkeypatch.setattr(cells, "MOST_SCORES", 12 * 16)
    voices = simulated(12, 2, 12.0)
    _, _, _, plan = next(iter(plans(voices, [0.7], [4.0], 4)))
    cell = plan.run({"f0": HISTOGRAM.similarity("log-likelihood")}, 7, 40)
    assert cell.speaker.size == 48  # ranks use every trial
    assert cell.gaps.shape[0] == 16
    assert set(np.bincount(cell.gap_speaker, minlength=12)) <= {1, 2}


def test_chunks_leave_no_trace(simulated, monkeypatch):
    voices = simulated(12, 2, 12.0)
    _, _, _, plan = next(iter(plans(voices, [0.7], [4.0], 4)))
    whole = plan.run({"f0": HISTOGRAM.similarity("log-likelihood")}, 7, 40)
    monkeypatch.setattr(cells, "_CHUNK", 5)
    pieces = plan.run({"f0": HISTOGRAM.similarity("log-likelihood")}, 7, 40)
    np.testing.assert_array_equal(whole.better, pieces.better)
    np.testing.assert_array_equal(whole.speaker, pieces.speaker)


@pytest.mark.parametrize("kind", [HISTOGRAM, EMBEDDING])
def test_equal_templates_tie(kind):
    """No evidence at all: every speaker says the same, so nobody is ahead of anybody."""
    generator = np.random.default_rng(0)
    for speakers in (12, 33, 101):
        size = 40
        values = generator.integers(0, size, 200) if kind is HISTOGRAM else None
        if values is None:
            values = generator.normal(size=(200, size)).astype(np.float32)
        session = {
            "x": SessionFrames(values, np.arange(200), 200, FeatureSpec("x", kind, size, 0.1))
        }
        voices = [SpeakerSpeech(str(v), (session, session)) for v in range(speakers)]
        for _, _, _, plan in plans(voices, [3.0], [10.0], 3):
            cell = plan.run({"x": kind.similarity()}, 30, 100)
            assert (cell.better == 0).all()
            assert (cell.tied == speakers).all()
