"""The epsilon that is declared for each frame, composed while a run goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from monitor import Monitor, Population
from monitor.anonymisers import Usc, Utterance
from monitor.anonymisers.laplace import Laplace, promises
from monitor.networks.usc import shipped_codec
from monitor.protocols import Source
from monitor.run import Protection, Run, RunSettings
from monitor.sinks.jsonl import RunBuffer
from monitor.sources import AudioQueue, Chain, File, FramesFile
from monitor.sources.frames import Header, write_frames
from monitor.tables import columns_of, flat
from monitor.types import Track
from tests.records import as_records, event
from tests.run.test_run import VALIDATOR
from tests.stream.streams import RATE, sounds

SECONDS = 60


def frames(path: Path, noise: str) -> FramesFile:
    """A minute of speech: an embedding each 3 s."""
    spec = Population.reference().features["voice"].spec
    values = np.random.default_rng(0).normal(size=(SECONDS // 3, spec.size))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    track = Track(300 * np.arange(1, SECONDS // 3 + 1), values.astype(np.float32))
    if noise:
        track = Track(track.ticks, Laplace.parse(noise.partition(":")[2]).noisy(track.values, 0))
    write_frames(
        path, np.ones(100 * SECONDS, bool), {"voice": track}, {"voice": spec.size}, {"voice": 3.0},
        networks={"voice": spec.network}, header=Header(noise=noise),
    )  # fmt: skip
    return FramesFile(path)


def heard(path: Path, noise: str) -> list[dict[str, Any]]:
    return told(frames(path, noise), None, "voice")


def told(
    source: Source, protect: Protection | None = None, feature: str = "f0"
) -> list[dict[str, Any]]:
    kept = RunBuffer()
    monitor = Monitor(Population.reference(), [feature], watch="19")
    with Run(source, monitor, settings=RunSettings(protect=protect), sinks=[kept]) as run:
        run.to_end()
    found: list[dict[str, Any]] = as_records(kept.events)
    for record in found:
        VALIDATOR.validate(record)
    return found


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return heard(tmp_path_factory.mktemp("noisy") / "talk.npz", "laplace:2")


def test_every_reading_says_what_is_promised_of_the_frames_so_far(noisy):
    readings = [record for record in noisy if record["type"] == "reading"]
    assert len(readings) == SECONDS
    for reading in readings:
        count = int(reading["seconds"]) // 3
        (known,) = promises({"": (count, 3.0 * count)}, 2.0)
        promise = reading["declared"]
        assert promise["windows"] == count
        assert promise["basic_nats"] == 2.0 * count
        assert promise["optimal_nats"] == pytest.approx(known.spent.optimal_nats)
        assert promise["most_bits"] == pytest.approx(known.most_bits)
        assert promise["empty"] == (count >= noisy[0]["declared"]["empty_after"])
    assert not readings[0]["declared"]["empty"]
    assert readings[-1]["declared"]["empty"]


def test_the_start_says_what_is_declared_and_when_it_is_empty(noisy):
    declared = {"mechanism": "laplace:2", "epsilon_nats": 2.0, "window_seconds": 3.0}
    assert noisy[0]["declared"] == {**declared, "delta": 1e-4, "empty_after": 12}
    (said,) = [line for line in noisy[0]["notices"] if "promises" in line]
    assert "laplace:2 promises epsilon 2 in each 3 s; after 12 of them, 36 s, the bound" in said
    assert "attackers that were tried, and no promise" in said


def test_frames_without_noise_promise_nothing(tmp_path):
    assert not any("declared" in record for record in heard(tmp_path / "talk.npz", ""))


def test_a_table_has_it_where_there_is_any(noisy):
    readings = [event(record) for record in noisy if record["type"] == "reading"]
    names = [column.name for column in columns_of(readings)]
    assert "declared.most_bits" in names
    assert flat(readings[-1])["declared.windows"] == 20
    plain = [replace(reading, declared=None) for reading in readings]
    assert not any(c.name.startswith("declared") for c in columns_of(plain))


@pytest.mark.slow
def test_of_a_protected_voice_every_token_of_every_channel_counts(tmp_path):
    stereo = np.stack([sounds(4.2), sounds(4.2)[::-1]], axis=1)
    for name in ("a.wav", "b.wav"):
        soundfile.write(tmp_path / name, stereo, RATE)
    source = Chain([File(tmp_path / name) for name in ("a.wav", "b.wav")])
    found = told(source, Protection("usc:0.01", seed=1))
    assert found[0]["declared"]["mechanism"] == "usc:0.01"
    declared = Usc(0.01, Utterance(RATE), shipped_codec()).declares
    assert declared is not None
    readings = [record for record in found if record["type"] == "reading"]
    assert len(readings) == 9
    for reading in readings:
        begun = int(reading["seconds"] > 4.2)
        windows = 2 * (declared.windows(reading["seconds"]) + begun)
        assert reading["declared"]["windows"] == windows
        assert windows >= 2 * 25 * reading["seconds"]
        assert not reading["declared"]["empty"]
        assert reading["protected"]["attackers"]["ignorant"]


def test_a_live_voice_is_heard_through_its_tokens_and_nothing_is_promised_without_noise():
    for method, promised in (("usc", False), ("usc:15", True)):
        queue = AudioQueue(RATE)
        queue.put(sounds(3.0))
        queue.stop()
        found = told(queue, Protection(method, seed=1))
        readings = [record for record in found if record["type"] == "reading"]
        assert len(readings) == 3
        assert all(("declared" in reading) == promised for reading in readings)
        assert ("declared" in found[0]) == promised
        assert found[0]["protected"]["latency_seconds"] < 1
