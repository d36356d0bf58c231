"""An embedding speaks from the first second on, and what is said from three on stays as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from monitor import Monitor
from monitor.features.embeddings import RATE
from monitor.features.extractor import Extractor
from monitor.features.registry import make
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.sources.frames import read_frames, write_frames
from monitor.stream.accumulator import FrameAccumulator
from monitor.stream.checkpoint import Checkpoint
from monitor.stream.records import RunTotals
from monitor.types import Block, Frames
from tests.sounds import synthetic

FEATURES = ("f0", "voice")


@pytest.fixture(scope="module")
def frames() -> Frames:
    extractor = Extractor(make(FEATURES))
    return extractor.process(Block(synthetic(10.0, 140.0), RATE))


def monitor(population: Population | None = None) -> Monitor:
    there = population or Population.reference()
    return Monitor(there, FEATURES, there.names[0], step_seconds=0.5)


def without(frames: Frames) -> Frames:
    return replace(
        frames, tracks={name: replace(each, early=None) for name, each in frames.tracks.items()}
    )


def pieces(frames: Frames, most: int) -> list[Frames]:
    made = []
    for low in range(0, len(frames.speech), most):
        high = min(low + most, len(frames.speech))
        tracks = {name: each.within(low, high) for name, each in frames.tracks.items()}
        made.append(Frames(frames.speech[low:high], tracks))
    return made


def records(monitor: Monitor, parts: list[Frames]) -> list[dict[str, Any]]:
    return [dict(reading.record()) for part in parts for reading in monitor.push(part)]


def test_it_speaks_early_and_nothing_moves_once_two_windows_are_whole(frames):
    first, second = frames.tracks["voice"].ticks[:2] / 100
    now, before = records(monitor(), [frames]), records(monitor(), [without(frames)])
    told = [each["features"]["voice"]["usable"] for each in now]
    assert told[0] == 0.0
    assert {1.0, 2.0, 3.0, 4.0, 5.0, 6.0} <= set(told)
    for one, other in zip(now, before, strict=True):
        assert (other["features"]["voice"]["usable"] == 0.0) == (one["seconds"] < first)
        if one["seconds"] >= second:  # but for the largest figure so far
            assert {**one, "peak_bits": 0} == {**other, "peak_bits": 0}
    early = [r for r in now if r["features"]["voice"]["usable"] in (1.0, 2.0, 4.0, 5.0)]
    assert all(each["evidence_bits"] is not None for each in early)


@pytest.mark.parametrize("most", [37, 100])
def test_any_cutting_gives_the_same_readings(frames, most):
    assert records(monitor(), pieces(frames, most)) == records(monitor(), [frames])


@pytest.mark.parametrize("stopped", [130, 230, 300, 430, 530, 610])
def test_stopped_and_resumed_equals_never_stopped(frames, stopped, tmp_path):
    whole = records(monitor(), pieces(frames, 10))
    first, second = monitor(), monitor()
    told = records(first, pieces(frames, 10)[: stopped // 10])
    kept = Checkpoint(tmp_path / "run.jsonl.state", {})
    kept.save(first, RunTotals(), [], 0)
    kept.load(second, RunTotals(), [])
    # a file of frames gives all of them again
    assert told + records(second, pieces(frames, 10)) == whole


def test_a_state_in_the_middle_of_a_block_has_none_of_a_whole_window(frames):
    heard = FrameAccumulator({each.spec.name: each.spec for each in make(FEATURES)})
    heard.add(frames)
    voice = frames.tracks["voice"]
    for tick, stands in ((voice.ticks[0] - 1, True), (voice.ticks[0], False)):
        heard.learn(heard.moments([int(tick)]), 0)
        assert ("early/voice" in heard.state()[1]) == stands


def test_what_began_afresh_has_no_early_frames(frames):
    stream = monitor()
    records(stream, pieces(frames, 150)[:1])
    stream._begin_afresh()
    (later,) = records(stream, pieces(frames, 150)[1:2])[-1:]
    assert later["features"]["voice"]["usable"] == 0.0


def test_a_rank_model_that_knows_none_hears_none(frames):
    there = Population.reference()
    models = RankModels(_from_three_seconds(each) for each in there.rank_models)
    old = there.with_rank_models(models)
    first = int(frames.tracks["voice"].ticks[0]) - 1
    begins = frames.tracks["voice"].within(-1, first)
    (only,) = pieces(replace(frames, tracks={**frames.tracks, "voice": begins}), first)[:1]
    assert records(monitor(old), [only]) == records(monitor(old), [without(only)])


def _from_three_seconds(rank_model):
    if rank_model.features != ("voice",):
        return rank_model
    some = rank_model.lengths >= 3.0
    evidence = rank_model.evidence
    evidence = replace(
        evidence,
        lengths=evidence.lengths[some],
        intercept=evidence.intercept[:, some],
        slopes=evidence.slopes[:, some],
        support=evidence.support[some],
        area=evidence.area[some],
    )
    names = ("alpha", "beta", "binomial", "weights", "floor")
    parts = {name: getattr(rank_model, name)[:, some] for name in names}
    return replace(
        rank_model,
        **parts,
        lengths=rank_model.lengths[some],
        open_set=rank_model.open_set[some],
        rows=tuple(row for row in rank_model.rows if row["T"] >= 3.0),
        evidence=evidence,
    )


def test_they_survive_a_file_of_frames(frames, tmp_path):
    path = tmp_path / "a.npz"
    specs = {each.spec.name: each.spec for each in make(FEATURES)}
    write_frames(
        path,
        frames.speech,
        frames.tracks,
        {name: spec.size for name, spec in specs.items()},
        {name: spec.frame_seconds for name, spec in specs.items()},
        networks={name: spec.network for name, spec in specs.items()},
    )
    early, own = read_frames(path).tracks["voice"].early, frames.tracks["voice"].early
    assert early is not None
    assert own is not None
    assert early.seconds.tolist() == own.seconds.tolist() == [1, 2, 1, 2]
    assert np.array_equal(early.values, own.values)
    assert np.array_equal(early.ticks, own.ticks)
