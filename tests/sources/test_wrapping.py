"""Chain, Paced, cutting, opening and hashes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from monitor import sources
from monitor.corpus import recordings_below
from monitor.errors import SourceError, UsageError
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.protocols import Source
from monitor.sources import Chain, File, FramesFile, Microphone, Paced, Pipe, registry
from monitor.sources.base import cut_frames
from monitor.sources.frames import write_frames
from monitor.sources.registry import open_source, recording_hashes
from monitor.types import Block, Frames, Gap, Track

RATE = 16_000


def frames_file(path: Path, ticks: int = 2500, bad: Sequence[int] = ()) -> FramesFile:
    values = np.arange(ticks) % 50
    values[list(bad)] = -1
    tracks = {"f0": Track(np.arange(1, ticks + 1), values)}
    write_frames(path, np.ones(ticks, bool), tracks, {"f0": 107}, {"f0": 0.01})
    return FramesFile(path)


def test_a_chain_numbers_its_recordings(recordings, tmp_path):
    data = recordings["flac"].read_bytes()
    broken = tmp_path / "broken.flac"
    broken.write_bytes(data[: len(data) // 2])
    chain = Chain([File(recordings["wav"]), File(broken), File(recordings["ogg"])])
    assert isinstance(chain, Source)
    assert chain.seconds == 24.0
    assert chain.labels == ("voice.wav", "broken.flac", "voice.ogg")
    assert chain.label == "voice.wav and 2 more"
    with chain:
        items: list[Any] = list(chain)
    assert [(type(item), item.recording) for item in items] == [
        (Block, 0),
        (Block, 1),
        (Gap, 1),
        (Block, 2),
    ]
    assert len(items[-1].samples) == 8 * RATE


def test_a_chain_survives_a_file_that_vanishes(recordings, tmp_path):
    path = tmp_path / "gone.wav"
    soundfile.write(path, np.zeros(100), RATE)
    chain = Chain([File(path), File(recordings["wav"])])
    path.unlink()
    heard: list[Any] = list(chain)
    gap, block = heard
    assert (gap.reason, gap.recording, gap.lost_seconds) == ("broken file", 0, None)
    assert "gone.wav" in gap.detail
    assert block.recording == 1


def test_ticks_go_on_counting_in_a_chain(tmp_path):
    chain = Chain([frames_file(tmp_path / f"{i}.npz", 1234, bad=[7]) for i in range(3)])
    runs: list[Any] = list(chain)
    ticks = np.concatenate([run.tracks["f0"].ticks for run in runs])
    expected = [t for t in range(1, 3 * 1234 + 1) if (t - 1) % 1234 != 7]
    assert ticks.tolist() == expected
    gaps = [(tick, gap.recording) for run in runs for tick, gap in run.gaps]
    assert gaps == [(8, 0), (8 + 1234, 1), (8 + 2468, 2)]


def test_features_of_a_chain_go_together(recordings, tmp_path):
    for name, rows in (("a", 3), ("b", 9)):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"seconds": 0.01, "f0": {rows}}}')
    one, two = FramesFile(tmp_path / "a.jsonl"), FramesFile(tmp_path / "b.jsonl")
    assert Chain([one, two, one]).stream_info.tracks == {
        "f0": FeatureSpec("f0", HISTOGRAM, 10, 0.01)
    }
    assert Paced(Chain([one]), 1.0).stream_info.tracks == one.stream_info.tracks
    assert Chain([File(recordings["wav"])]).stream_info.tracks == {}
    marked = tmp_path / "marked.npz"
    track = Track(np.array([1, 2]), np.array([3, 4]))
    write_frames(
        marked, np.ones(2, bool), {"f0": track}, {"f0": 10}, {"f0": 0.01},
        networks={"f0": "ab" * 32},
    )  # fmt: skip
    assert Paced(Chain([FramesFile(marked)]), 1.0).stream_info.tracks["f0"].network == "ab" * 32
    assert Paced(File(recordings["wav"]), 1.0).stream_info.tracks == {}
    wrongs: list[list[Any]] = [
        [one, File(recordings["wav"])],
        [File(recordings["wav"]), two],
    ]
    for wrong in wrongs:
        with pytest.raises(UsageError, match="same features"):
            Chain(wrong)


def test_a_chain_of_unknown_length_and_of_nothing():
    pipe = Pipe(io.BytesIO(b""), raw=(RATE, 1, "s16le"))
    assert Chain([pipe]).seconds is None
    assert Chain([pipe]).label == "-"
    with pytest.raises(UsageError, match="at least one"):
        Chain([])


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


@pytest.mark.parametrize("speed", [0.5, 1.0, 20.0, 1e9])
@pytest.mark.parametrize("kind", ["audio", "frames"])
def test_paced_gives_nothing_before_its_time(recordings, tmp_path, speed, kind):
    source: Any = (
        File(recordings["flac"]) if kind == "audio" else frames_file(tmp_path / "a.npz", 800)
    )
    clock, heard = Clock(), 0.0
    item: Any
    items: list[Any] = []
    with Paced(source, speed, clock=lambda: clock.now, sleep=clock.sleep) as paced:
        assert (paced.label, paced.seconds) == (source.label, source.seconds)
        for item in paced:
            piece = len(item.samples) / RATE if kind == "audio" else len(item.speech) / 100
            heard += piece
            assert piece <= max(0.1 * speed, 0.01) + 1e-9
            assert clock.now - 100.0 >= heard / speed - 1e-9
            items.append(item)
    assert clock.now - 100.0 == pytest.approx(8.0 / speed, abs=1e-6)
    if kind == "audio":
        with source:
            whole = np.concatenate([block.samples for block in source])
        np.testing.assert_array_equal(np.concatenate([b.samples for b in items]), whole)
    else:
        values = np.concatenate([run.tracks["f0"].values for run in items])
        np.testing.assert_array_equal(values, np.arange(800) % 50)


def test_paced_does_not_sleep_when_it_is_late(recordings):
    clock = Clock()
    paced = Paced(File(recordings["wav"]), 1.0, clock=lambda: clock.now, sleep=clock.sleep)
    for item in paced:
        clock.now += 0.3  # the listener is slower than real time
        assert isinstance(item, Block)
    assert clock.now == pytest.approx(100.0 + 0.1 + 80 * 0.3)


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf")])
def test_senseless_speed(recordings, speed):
    with pytest.raises(UsageError, match="speed"):
        Paced(File(recordings["wav"]), speed)


@given(st.integers(1, 50), st.integers(0, 300), st.data())
def test_cut_frames_loses_nothing(most, first, data):
    n = data.draw(st.integers(1, 120))
    ticks = np.array(sorted(data.draw(st.lists(st.integers(first + 1, first + n)))), np.int64)
    gaps = tuple((int(tick), Gap("x", 0.1)) for tick in ticks[:3])
    whole = Frames(np.arange(n) % 2 == 0, {"f0": Track(ticks, np.arange(len(ticks)))}, gaps)
    runs = list(cut_frames(whole, first, most))
    assert max(len(run.speech) for run in runs) <= most
    np.testing.assert_array_equal(np.concatenate([run.speech for run in runs]), whole.speech)
    values = np.concatenate([run.tracks["f0"].values for run in runs])
    np.testing.assert_array_equal(values, np.arange(len(ticks)))
    assert sum((run.gaps for run in runs), ()) == gaps


def test_hashes_know_a_copy_in_another_format(recordings, tmp_path):
    wav, flac = recording_hashes(recordings["wav"]), recording_hashes(recordings["flac"])
    assert wav[0] != flac[0]
    assert wav[1] == flac[1]
    assert wav[0].startswith("file:")
    assert wav[1].startswith("audio:")
    samples, _ = soundfile.read(recordings["flac"], dtype="int16")
    for name, other, rate in (
        ("shorter.wav", samples[:-1], RATE),
        ("faster.wav", samples, RATE + 1),
        ("stereo.wav", np.stack([samples, samples], 1), RATE),
    ):
        soundfile.write(tmp_path / name, other, rate)
        assert recording_hashes(tmp_path / name)[1] != wav[1]


def test_hashes_of_frames_and_of_nothing(tmp_path):
    frames_file(tmp_path / "a.npz", 10)
    assert len(recording_hashes(tmp_path / "a.npz")) == 1
    (tmp_path / "a.txt").write_text("hello")
    (only,) = recording_hashes(tmp_path / "a.txt")
    assert only == "file:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    with pytest.raises(SourceError, match=r"cannot open no\.wav"):
        recording_hashes(tmp_path / "no.wav")


def test_hash_of_a_header_without_length(recordings, tmp_path):
    data = bytearray(recordings["flac"].read_bytes())
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    (tmp_path / "stream.flac").write_bytes(data)
    assert recording_hashes(tmp_path / "stream.flac")[1] == recording_hashes(recordings["wav"])[1]


def test_opening_chooses_by_name(recordings, tmp_path, monkeypatch):
    assert isinstance(open_source(recordings["opus"], end_seconds=2.0), File)
    frames_file(tmp_path / "a.NPZ.npz", 10)
    assert isinstance(open_source(tmp_path / "a.NPZ.npz"), FramesFile)
    (tmp_path / "a.jsonl").write_text('{"seconds": 0.01, "f0": 3}')
    assert isinstance(open_source(tmp_path / "a.jsonl"), FramesFile)
    stdin = io.TextIOWrapper(io.BytesIO(recordings["wav"].read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert isinstance(open_source("-"), Pipe)
    with pytest.raises(UsageError, match="raw is for standard input"):
        open_source(recordings["wav"], raw=(RATE, 1, "s16le"))
    for name in ("-", tmp_path / "a.jsonl"):
        with pytest.raises(UsageError, match="interval"):
            open_source(name, start_seconds=1.0)


def test_what_somebody_registers_is_opened_and_looked_for(recordings, monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    registry.register("tape:", lambda name: File(recordings[name]))
    assert open_source("tape:flac").label == recordings["flac"].name
    with pytest.raises(UsageError, match="flac takes no seconds"):
        open_source("tape:flac", seconds=3.0)
    with pytest.raises(UsageError, match="is not heard live: use monitor replay"):
        registry.open_live_source("tape:flac")
    registry.register(".voc", File, options=("start_seconds",))
    (tmp_path / "a.voc").write_bytes(recordings["wav"].read_bytes())
    assert open_source(tmp_path / "a.voc", start_seconds=1.0).seconds == pytest.approx(
        (open_source(recordings["wav"]).seconds or 0.0) - 1.0
    )
    assert [file.name for file in recordings_below(tmp_path)] == ["a.voc"]
    for name in ("C:", "voc", ".Voc", "", "a b:"):
        with pytest.raises(UsageError, match="must be a scheme like ws: or a suffix"):
            registry.register(name, File)


def test_a_microphone_has_a_name():
    assert open_source("mic:").label == "microphone"
    usb = registry.open_live_source("mic:usb", seconds=3.0, report=None)
    assert (usb.label, usb.seconds) == ("usb", 3.0)
    assert isinstance(usb, Microphone)


def test_exported_names_are_lazy():
    assert set(sources.__all__) <= set(dir(sources))
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = sources.Nonsense
    code = "import sys, monitor.sources; print('soundfile' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "False"
