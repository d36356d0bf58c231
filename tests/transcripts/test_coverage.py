"""Whether a transcript is of the recording beside it."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.transcripts import measure_coverage
from monitor.types import BoolArray, Words


def speech_of(rng: np.random.Generator, seconds: float) -> BoolArray:
    """Runs of speech of 2 s and pauses of 0.6 s on average."""
    runs, total = list[BoolArray](), 0
    while total < seconds * 100:
        for spoken, mean in ((True, 200), (False, 60)):
            runs.append(np.full(20 + round(rng.exponential(mean - 20)), spoken))
            total += runs[-1].size
    return np.concatenate(runs)[: round(seconds * 100)]


def words_in(rng: np.random.Generator, speech: BoolArray, shift: int = 0) -> Words:
    """A word every 0.4 s or so where there is speech, its time off by some ticks."""
    begins = np.arange(0, speech.size - 40, 40)
    begins = begins[speech[begins] & speech[begins + 30]]
    begins = np.maximum(begins + rng.integers(-8, 9, begins.size) + shift, 0)
    return Words(("so",) * begins.size, begins, begins + 35, begins + 35)


@pytest.mark.parametrize("seconds", [60.0, 600.0])
def test_the_own_transcript_fits_and_that_of_others_is_doubted(seconds):
    rng = np.random.default_rng(5)
    own, others = [], []
    for _ in range(60):
        speech = speech_of(rng, seconds)
        own.append(measure_coverage(words_in(rng, speech), speech))
        others.append(measure_coverage(words_in(rng, speech_of(rng, seconds)), speech))
    assert not any(each.doubtful for each in own)
    assert min(each.in_speech for each in own) > 0.85
    # of another recording each share of places is as probable as any other
    assert np.mean([each.doubtful for each in others]) > 0.85
    assert 0.3 < np.mean([each.as_well for each in others]) < 0.7


def test_shares_are_counted_in_ticks():
    speech = np.zeros(1000, np.bool_)
    speech[100:300] = True
    words = Words(("a", "b"), np.array([200, 1000]), np.array([400, 1200]), np.array([400, 1200]))
    found = measure_coverage(words, speech)
    assert (found.in_speech, found.covered) == (0.25, 0.5)
    assert found.as_well is None
    assert "too few pauses to tell" in found.sentence("a.vtt")
    none = measure_coverage(Words((), *np.zeros((3, 0), np.int64)), speech)
    assert (none.in_speech, none.covered) == (0.0, 0.0)
    assert measure_coverage(words, np.zeros(0, np.bool_)).covered == 0.0


@pytest.mark.parametrize("words", ["everywhere", "nowhere"])
def test_words_without_pauses_tell_nothing(words):
    speech = speech_of(np.random.default_rng(1), 100.0)
    begins = np.arange(0, speech.size if words == "everywhere" else 0, 50)
    found = measure_coverage(Words(("so",) * begins.size, begins, begins + 50, begins + 50), speech)
    assert found.as_well is None
    assert not found.doubtful


def test_captions_that_follow_each_other_tell_nothing():
    rng = np.random.default_rng(3)
    speech = speech_of(rng, 100.0)
    begins = np.arange(0, speech.size - 200, 200)
    words = Words(("so",) * begins.size, begins, begins + 195, begins + 195)
    assert measure_coverage(words, speech).as_well is None
    assert measure_coverage(words_in(rng, speech), speech[:2900]).as_well is None  # too short


@pytest.mark.parametrize("shift", [-90, 30, 90])
def test_times_that_are_all_off_by_a_little_are_still_of_this_recording(shift):
    rng = np.random.default_rng(4)
    speech = speech_of(rng, 120.0)
    assert not measure_coverage(words_in(rng, speech, shift), speech).doubtful


def test_the_line_names_what_is_wrong():
    rng = np.random.default_rng(2)
    speech, other = speech_of(rng, 300.0), speech_of(rng, 300.0)
    line = measure_coverage(words_in(rng, other), speech).sentence("a.vtt")
    assert line.startswith("a.vtt: ")
    assert line.endswith("is it of another recording?")
    assert "\n" not in line
    own = measure_coverage(words_in(rng, speech), speech).sentence("a.vtt")
    assert own.endswith("% of the speech has words")
