"""How words lie in the speech of each recording of a stream."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.events.run import TranscriptStart
from monitor.stream import front_end as coverage
from monitor.stream.front_end import WordCoverage, find_coverage
from monitor.stream.records import coverage_notices, list_coverage
from monitor.transcripts.transcript import measure_coverage
from monitor.types import Words

TICKS = 3000


def said(seed: int = 0, recording: int = 0) -> Words:
    rng = np.random.default_rng(seed)
    begins = np.sort(rng.integers(0, TICKS - 60, 40))
    ends = begins + rng.integers(5, 50, 40)
    return Words(("so",) * 40, begins, ends, ends, recording)


def speech(seed: int = 0) -> np.ndarray:
    return np.repeat(np.random.default_rng(seed).random(TICKS // 50) < 0.7, 50)


def some(words: Words, low: int, high: int) -> Words:
    own = (words.known > low) & (words.known <= high)
    begins, ends, known = (each[own] for each in (words.begins, words.ends, words.known))
    return Words(("so",) * int(own.sum()), begins, ends, known, words.recording)


@given(cuts=st.lists(st.integers(0, TICKS), max_size=8).map(sorted))
def test_any_cutting_finds_what_the_whole_does(cuts):
    found = WordCoverage()
    edges = [0, *cuts, TICKS]
    for low, high in pairwise(edges):
        found.add_words(some(said(), low, high))
        found.add_speech(0, speech()[low:high])
    (one,) = found.measure()
    assert one.coverage == measure_coverage(said(), speech())
    assert (one.words, one.recording) == (40, 0)


def test_each_recording_is_told_by_itself_and_one_without_words_too():
    found = WordCoverage()
    found.add_words(said())
    found.add_speech(0, speech())
    found.add_speech(1, speech(1))
    found.add_words(said(2, recording=2))
    found.add_speech(2, np.zeros(TICKS, bool))
    made = found.measure()
    assert [(each.recording, each.words) for each in made] == [(0, 40), (1, 0), (2, 40)]
    assert [each.coverage is None for each in made] == [False, True, True]
    rows = list_coverage(made, ["a", "b", "c"])
    assert rows[1].words_in_speech is None
    assert rows[0].words_in_speech == measure_coverage(said(), speech()).in_speech
    begun = [TranscriptStart(name, f"{name}.vtt", 40, False, None) for name in ("a", "b")]
    lines = list(map(str, coverage_notices(made, ["a", "b", "c"], begun)))
    assert lines[0].startswith("a.vtt: ")
    assert lines[1:] == [
        "b.vtt: no words came: the average and the plateau are still those of voices with words",
        "c: nobody speaks in its recording",
    ]


def test_only_the_last_hours_are_kept(monkeypatch):
    monkeypatch.setattr(coverage, "KEPT_TICKS", 500)
    found, words = WordCoverage(), said()
    for low in range(0, TICKS, 100):
        found.add_words(some(words, low, low + 100))
        found.add_speech(0, speech()[low : low + 100])
        assert sum(each.size for each in found._speech) <= 1000
    (one,) = found.measure()
    first = TICKS - sum(each.size for each in found._speech)
    late = words.begins >= first
    times = words.begins[late] - first, words.ends[late] - first
    kept = Words(("so",) * int(late.sum()), *times, times[1])
    assert one.words == 40
    assert one.coverage == measure_coverage(kept, speech()[first:])


def test_captions_without_pauses_are_not_doubted():
    begins = np.arange(0, TICKS, 50)
    captions = Words(("so",) * begins.size, begins, begins + 50, begins + 50)
    found = find_coverage(captions, speech())
    assert found is not None
    assert (found.as_well, found.doubtful, found.covered) == (None, False, 1.0)
    assert find_coverage(captions, np.zeros(TICKS, bool)) is None


@pytest.mark.parametrize("own", [True, False])
def test_words_of_another_recording_are_doubted(own):
    voiced = speech(3)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], voiced, [0]))))
    begins, ends = edges[::2] + 5, edges[1::2] - 5
    if not own:
        begins, ends = begins + 1100, ends + 1100
        begins, ends = begins[ends < TICKS], ends[ends < TICKS]
    found = find_coverage(Words(("so",) * begins.size, begins, ends, ends), voiced)
    assert found is not None
    assert found.doubtful is not own
