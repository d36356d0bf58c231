"""Style in a stream: what is counted in the end is what the words alone give, however they come."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor
from monitor.features.style import Style
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.sources import Chain, SideInputSource
from monitor.stream.checkpoint import Checkpoint
from monitor.stream.records import RunTotals
from monitor.types import AnyArray, Block, Words
from tests.contracts import talk, voice
from tests.population.rank_models import some_rank_model
from tests.stream.streams import Listed

RATE, SECONDS = 8000, 20.0


@cache
def population() -> Population:
    spec = Style().spec
    slices = np.random.default_rng(3).integers(0, 9, (6, spec.size)).astype(np.uint16)
    rank_model = replace(some_rank_model(("style",)), networks=(spec.network,))
    people = [Speaker(name) for name in ("ann", "bob", "cy")]
    features = {"style": FeatureTemplates(spec, slices)}
    return Population(people, np.array([0, 2, 4, 6]), features, RankModels([rank_model]))


def monitor() -> Monitor:
    return Monitor(population(), ["style"], "ann", step_seconds=0.5)


def said() -> Words:
    """Those of the first talk that end within the recording, some known a second late."""
    words = talk(60)
    fits = words.ends <= 100 * SECONDS
    count = int(fits.sum())
    assert fits[:count].all()
    known = np.minimum(words.known[:count], round(100 * SECONDS))
    return Words(words.texts[:count], words.begins[:count], words.ends[:count], known)


def recording(block_seconds: float = 0.3) -> Any:
    sound, size = voice(SECONDS, RATE), round(block_seconds * RATE)
    return Listed([Block(sound[at : at + size], RATE) for at in range(0, len(sound), size)])


def expected(*talks: Words) -> AnyArray:
    counts = [np.bincount(Style().process(w).values, minlength=Style().spec.size) for w in talks]
    return np.asarray(np.sum(counts, axis=0))


def last(readings: Any) -> Any:
    *_, reading = readings
    return reading


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(block_seconds=st.sampled_from([0.01, 0.13, 1.0, 7.0, SECONDS]))
def test_blocks_of_audio_make_no_difference(block_seconds):
    made = monitor()
    last(made.stream(SideInputSource(recording(block_seconds), words=said())))
    assert made.totals.totals["style"].tolist() == expected(said()).tolist()


def test_words_that_come_when_their_time_has_gone_by_are_all_counted():
    made, words = monitor(), said()
    late = replace(words, known=np.maximum.accumulate(words.known + 500))
    heard = [*made.stream(SideInputSource(recording(), words=late))]
    assert made.totals.totals["style"].tolist() == expected(words).tolist()
    prompt = [*monitor().stream(SideInputSource(recording(), words=words))]
    behind = [each.features["style"].usable for each in heard]
    ahead = [each.features["style"].usable for each in prompt]
    assert all(b <= a for b, a in zip(behind[:-1], ahead[:-1], strict=True))
    assert behind[9] < ahead[9]
    assert behind[-1] == pytest.approx(ahead[-1])


def test_another_recording_begins_anew():
    made = monitor()
    first = Words(("no",), np.array([1900]), np.array([1950]), np.array([1950]))
    second = Words(("no",), np.array([10]), np.array([40]), np.array([40]))
    both = Chain(
        [SideInputSource(recording(), words=first), SideInputSource(recording(), words=second)]
    )
    last(made.stream(both))
    names = Style().bins
    counted = {names[i]: int(n) for i, n in enumerate(made.totals.totals["style"]) if n}
    assert counted == {"no": 2}  # not repeated


@pytest.mark.parametrize("stops_after", [1, 11, 37])
def test_a_run_that_was_stopped_counts_as_if_it_had_not_been(stops_after, tmp_path):
    first, checkpoint = monitor(), Checkpoint(tmp_path / "run.state", {})
    for count, _ in enumerate(first.stream(SideInputSource(recording(), words=said())), 1):
        if count == stops_after:
            checkpoint.save(first, RunTotals(), [], 0)
            break
    second = monitor()
    checkpoint.load(second, RunTotals(), [])
    last(second.stream(SideInputSource(recording(), words=said())))
    assert second.totals.totals["style"].tolist() == expected(said()).tolist()
