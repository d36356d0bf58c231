"""Sources by name, in a row, at a pace, of samples in memory; their phases and provenance."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from monitor import Monitor, Run
from monitor.corpus.folders import recordings_below
from monitor.errors import UsageError
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.protocols import Provenance, Source
from monitor.sources import (
    AudioQueue,
    Chain,
    File,
    FramesFile,
    Paced,
    Pipe,
    Samples,
    SideInputSource,
    registry,
)
from monitor.sources.base import cut_frames
from monitor.sources.frames import Header, write_frames
from monitor.sources.registry import open_source, recording_hashes
from monitor.types import Block, Frames, Gap, Track, Words
from tests.sounds import RATE, synthetic
from tests.sources.conftest import voice
from tests.stream.streams import reference, sounds


def frames_file(path: Path, ticks: int = 2500, bad: Sequence[int] = ()) -> FramesFile:
    values = np.arange(ticks) % 50
    values[list(bad)] = -1
    tracks = {"f0": Track(np.arange(1, ticks + 1), values)}
    write_frames(path, np.ones(ticks, bool), tracks, {"f0": 107}, {"f0": 0.01})
    return FramesFile(path)


def test_a_chain_numbers_its_recordings_and_survives_one_that_vanishes(recordings, tmp_path):
    broken, gone = tmp_path / "broken.flac", tmp_path / "gone.wav"
    data = recordings["flac"].read_bytes()
    broken.write_bytes(data[: len(data) // 2])
    soundfile.write(gone, np.zeros(8 * RATE), RATE)
    chain = Chain([File(each) for each in (recordings["wav"], broken, gone, recordings["ogg"])])
    gone.unlink()
    assert isinstance(chain, Source)
    assert chain.seconds == 32.0
    assert chain.labels == ("voice.wav", "broken.flac", "gone.wav", "voice.ogg")
    assert chain.label == "voice.wav and 3 more"
    with chain:
        items: list[Any] = list(chain)
    kinds = [(type(item), item.recording) for item in items]
    assert kinds == [(Block, 0), (Block, 1), (Gap, 1), (Gap, 2), (Block, 3)]
    assert (items[3].reason, items[3].lost_seconds) == ("broken file", None)
    assert "gone.wav" in items[3].detail
    assert len(items[-1].samples) == 8 * RATE


def test_ticks_go_on_counting_in_a_chain(tmp_path):
    chain = Chain([frames_file(tmp_path / f"{i}.npz", 1234, bad=[7]) for i in range(3)])
    runs: list[Any] = list(chain)
    ticks = np.concatenate([run.tracks["f0"].ticks for run in runs])
    expected = [t for t in range(1, 3 * 1234 + 1) if (t - 1) % 1234 != 7]
    assert ticks.tolist() == expected
    gaps = [(tick, gap.recording) for run in runs for tick, gap in run.gaps]
    assert gaps == [(8, 0), (8 + 1234, 1), (8 + 2468, 2)]


def test_features_of_a_chain_go_together(recordings, tmp_path):
    sound, marked = File(recordings["wav"]), tmp_path / "marked.npz"
    for name, value in (("a", 3), ("b", 9)):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"seconds": 0.01, "f0": {value}}}')
    one, two = FramesFile(tmp_path / "a.jsonl"), FramesFile(tmp_path / "b.jsonl")
    both = {"f0": FeatureSpec("f0", HISTOGRAM, 10, 0.01)}
    assert Chain([one, two, one]).stream_info.tracks == both
    track, mark = Track(np.array([1, 2]), np.array([3, 4])), {"f0": "ab" * 32}
    write_frames(marked, np.ones(2, bool), {"f0": track}, {"f0": 10}, {"f0": 0.01}, networks=mark)
    for each in (one, FramesFile(marked), sound):
        assert Paced(Chain([each]), 1.0).stream_info.tracks == each.stream_info.tracks
    assert FramesFile(marked).stream_info.tracks["f0"].network == "ab" * 32
    assert sound.stream_info.tracks == {}
    wrongs: list[list[Any]] = [[one, sound], [sound, two]]
    for wrong in wrongs:
        with pytest.raises(UsageError, match="same features"):
            Chain(wrong)
    with pytest.raises(UsageError, match="at least one"):
        Chain([])
    pipe = Pipe(io.BytesIO(b""), raw=(RATE, 1, "s16le"))
    assert (Chain([pipe]).seconds, Chain([pipe]).label) == (None, "-")


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
    with Paced(source, speed, clock=lambda: clock.now, sleep=clock.sleep) as paced:
        assert (paced.label, paced.seconds) == (source.label, source.seconds)
        item: Any
        for item in paced:  # with all that there is, as the contracts say
            piece = len(item.samples) / RATE if kind == "audio" else len(item.speech) / 100
            heard += piece
            assert piece <= max(0.1 * speed, 0.01) + 1e-9
            assert clock.now - 100.0 >= heard / speed - 1e-9
    assert heard == pytest.approx(8.0)
    assert clock.now - 100.0 == pytest.approx(8.0 / speed, abs=1e-6)


def test_a_speed_that_makes_no_sense_is_refused(recordings):
    for speed in (0, -1, float("nan"), float("inf")):
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


@pytest.fixture(params=["file", "frames", "samples", "chain", "paced", "beside"])
def source(request, recordings, tmp_path):
    """Each kind that can be heard again."""
    file, path = File(recordings["flac"], block_seconds=1.0), tmp_path / "a.jsonl"
    path.write_text('{"seconds": 0.01, "f0": 5}\n{"seconds": 12.0, "f0": 5}\n')
    said = Words(("yes",), np.array([5]), np.array([9]), np.array([15]))
    made = {
        "file": lambda: file,
        "frames": lambda: FramesFile(path),
        "samples": lambda: Samples(voice(2.0), RATE),
        "chain": lambda: Chain([file, File(recordings["wav"])]),
        "paced": lambda: Paced(file, 1000.0),
        "beside": lambda: SideInputSource(file, words=said),
    }
    return made[request.param]()


def test_its_phases(source):
    assert source.phase == "opened"
    with source:
        items = iter(source)
        next(items)
        assert source.phase == "running"
        rest = len(list(items))
        assert source.phase == "ended"
    assert source.phase == "closed"
    with pytest.raises(UsageError, match="is closed: open another source"):
        next(iter(source))
    with source:  # entered again, it is open again
        assert len(list(source)) == rest + 1
        items = iter(source)
        next(items)
        source.close()
        with pytest.raises(UsageError, match="is closed"):
            next(items)
    source.close()


@pytest.mark.parametrize("kind", ["pipe", "queue"])
def test_what_comes_once_is_heard_once(kind):
    source: Any
    if kind == "pipe":
        source = Pipe(io.BytesIO(bytes(6400)), raw=(RATE, 1, "s16le"))
    else:
        source = AudioQueue(RATE)
        source.put(np.zeros(160, np.float32))
        source.stop()
    with source:
        assert len(list(source)) == 1
        with pytest.raises(UsageError, match="cannot be read again"):
            next(iter(source))
    with pytest.raises(UsageError, match="is closed"), source:
        pass


@pytest.mark.parametrize("channels", [1, 2])
def test_an_array_is_heard_as_the_file_of_it_is(tmp_path, channels):
    whole = np.round(np.stack([sounds(4.3)] * channels, axis=1) * 20_000).astype(np.int16)
    samples = whole[:, 0] if channels == 1 else whole
    path = tmp_path / "talk.wav"
    soundfile.write(path, samples, RATE)
    expected = [reading.record() for reading in Monitor(reference()).stream(path)]
    assert len(expected) == 5
    for array in (samples, samples.astype(np.float32) / 32768):
        found = Monitor(reference()).stream(array, rate=RATE)
        assert [reading.record() for reading in found] == expected
    with Run(Samples(samples, RATE), Monitor(reference())) as run:
        assert run.to_end().readings == 5
    alone = Samples(samples, RATE, "some")
    assert (alone.labels, alone.transcripts, alone.provenance()) == (("some",), (), None)


def test_what_makes_no_sense_names_the_cure(tmp_path):
    monitor, sound = Monitor(reference()), sounds(2.0)
    with pytest.raises(UsageError, match="needs its rate: pass rate=16_000"):
        list(monitor.stream(sound))
    with pytest.raises(UsageError, match=r"Samples\(samples, rate=16_000\)"), Run(sound, monitor):  # type: ignore[arg-type]
        pass
    with pytest.raises(UsageError, match=r"give samples\.T"):
        list(monitor.stream(np.stack([sound, sound]), rate=RATE))
    for wrong in (np.zeros((3, 4, 5)), np.zeros((100, 65)), np.zeros(100, np.complex64)):
        with pytest.raises(UsageError, match="samples"):
            Samples(wrong, RATE)
    soundfile.write(tmp_path / "talk.wav", sound, RATE)
    with pytest.raises(UsageError, match="a source has its own"):
        list(monitor.stream(tmp_path / "talk.wav", rate=RATE))


def test_hashes_know_a_copy_in_another_format(recordings, tmp_path):
    wav, flac = recording_hashes(recordings["wav"]), recording_hashes(recordings["flac"])
    assert wav[0] != flac[0]
    assert wav[1] == flac[1]
    assert [each.partition(":")[0] for each in wav] == ["file", "audio"]
    samples, _ = soundfile.read(recordings["flac"], dtype="int16")
    for name, other, rate in (
        ("shorter.wav", samples[:-1], RATE),
        ("faster.wav", samples, RATE + 1),
        ("stereo.wav", np.stack([samples, samples], 1), RATE),
    ):
        soundfile.write(tmp_path / name, other, rate)
        assert recording_hashes(tmp_path / name)[1] != wav[1]
    data = bytearray(recordings["flac"].read_bytes())
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    (tmp_path / "stream.flac").write_bytes(data)  # its header does not tell its length
    assert recording_hashes(tmp_path / "stream.flac")[1] == wav[1]


def test_what_somebody_registers_is_opened_and_looked_for(recordings, monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
    registry.register("tape:", lambda name: File(recordings[name]))
    assert open_source("tape:flac").label == recordings["flac"].name
    with pytest.raises(UsageError, match="flac takes no seconds"):
        open_source("tape:flac", seconds=3.0)
    with pytest.raises(UsageError, match="is not live: use monitor replay"):
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


def test_every_kind_of_source_says_what_it_was_made_of(tmp_path):
    path, kept = tmp_path / "a.wav", tmp_path / "a.npz"
    soundfile.write(path, synthetic(2.0), RATE)
    hashes = recording_hashes(path)
    (whole,) = File(path).provenance()
    assert whole == Provenance("a.wav", hashes)
    part = File(path, start_seconds=0.5, end_seconds=1.5)
    assert part.provenance() == (Provenance("a.wav", hashes, 0.5, 1.5),)
    track = {"f0": Track(np.arange(1, 11), np.arange(10))}
    write_frames(
        kept, np.ones(10, bool), track, {"f0": 107}, {"f0": 0.01}, header=Header(hashes=hashes)
    )
    (frames,) = FramesFile(kept).provenance()
    assert frames.label == "a.npz"
    assert set(hashes) < set(frames.hashes)  # of the file itself, and of what was heard
    raw = (RATE, 1, "s16le")
    pipe = Pipe(io.BytesIO(bytes(320)), raw=raw)
    assert pipe.provenance() == (Provenance("-", raw=raw),)
    chain = Chain([part, pipe])
    assert chain.provenance() == (*part.provenance(), *pipe.provenance())
    assert Paced(chain, 2.0).provenance() == chain.provenance()
    assert list(Paced(chain, 2.0).labels) == ["a.wav", "-"]
