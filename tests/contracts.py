"""Every Feature, Sketch, Source and Sink there is, and what the suite over them needs.

A new implementation is one more entry in `FEATURES`, `SKETCHES`, `SOURCES` or `SINKS`;
``test_contracts.py`` then holds it to the contracts of docs/architecture.md.
"""

import gc
import io
import itertools
import json
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.signal
import soundfile
from rich.console import Console

from monitor import Monitor, Population
from monitor.alerts.actions.receivers import Bell, Command
from monitor.alerts.actions.registry import BackgroundDelivery
from monitor.features.channel import Channel
from monitor.features.embeddings import SpeechWindows, Voice, window_spec
from monitor.features.f0 import F0, RobustF0
from monitor.features.own_network import Network
from monitor.features.phones import Phones, Tokens
from monitor.features.style import Style
from monitor.jobs import one_thread
from monitor.ledger import Ledger, LedgerSession
from monitor.maths.scores import EmbeddingSum, Histogram
from monitor.networks.usc import UscNetwork
from monitor.protocols import Feature, Sink, Sketch, Source
from monitor.sinks.buffer import RunBuffer
from monitor.sinks.house import VoiceDevice
from monitor.sinks.jsonl import JsonLines
from monitor.sinks.live import LiveView
from monitor.sinks.mqtt import Broker
from monitor.sinks.progress import ReplayProgress
from monitor.sources import (
    AudioQueue,
    Chain,
    Diarised,
    File,
    FramesFile,
    LiveDiarised,
    Microphone,
    Paced,
    PerChannel,
    Pipe,
    Samples,
    SideInputSource,
)
from monitor.sources.frames import write_frames
from monitor.sources.microphone import InputSystem
from monitor.transcripts.live import TurnPipe
from monitor.transcripts.turns import Turn
from monitor.types import Block, FloatArray, Frames, Gap, Track, Tracks, Words
from monitor.web.page import Page
from tests.features.networks import SIZE, of_sound
from tests.tapes import FrameBuffer
from tests.usc_weights import usc_weights
from tests.weights import onnx_extra

RATE = 16_000
SECONDS = 4.0
LONG_SECONDS = 40.0
KILOBYTE = 1024


def voice(seconds: float, rate: int = RATE, seed: int = 0) -> FloatArray:
    """A buzzing voice of gliding pitch, with syllables, pauses and a little noise; float32."""
    t = np.arange(round(seconds * rate)) / rate
    pitch = 120 * 2 ** (
        0.4 * np.sin(2 * np.pi * t / 3.7) + 0.15 * np.sin(2 * np.pi * t / 0.9 + seed)
    )
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    buzz = sum((np.sin(k * phase) / k for k in range(2, 13)), start=np.sin(phase))
    syllables = np.clip(np.sin(2 * np.pi * 3.1 * t) + 0.6, 0, None)
    syllables *= np.sin(2 * np.pi * t / 2.9) > -0.7
    noise = np.random.default_rng(seed).standard_normal(t.size)
    return (0.12 * buzz * syllables + 0.002 * noise).astype(np.float32)


def babble(syllables: int, pause_seconds: float = 0.0, repeats: int = 1) -> FloatArray:
    """Vowels and hisses of a tenth of a second, then a pause, at 16 kHz; float32."""
    generator = np.random.default_rng(0)
    t = np.arange(RATE // 10) / RATE
    vowels = [(730, 1090, 2440), (270, 2290, 3010), (530, 1840, 2480), (300, 870, 2240)]
    parts = []
    for i in range(syllables):
        if i % 3 == 2:
            sound, formants = generator.standard_normal(t.size), [(4500 - 500 * i % 2500, 600)]
        else:
            sound = ((t * 120) % 1 < 0.06).astype(float)
            formants = list(zip(vowels[i % 4], (80, 100, 150), strict=True))
        for hertz, width in formants:
            r = np.exp(-np.pi * width / RATE)
            poles = [1, -2 * r * np.cos(2 * np.pi * hertz / RATE), r * r]
            sound = scipy.signal.lfilter([1 - r], poles, sound)
        parts.append(0.3 * np.hanning(t.size) ** 0.3 * sound / np.abs(sound).max())
    parts.append(np.zeros(round(pause_seconds * RATE)))
    whole = np.tile(np.concatenate(parts), repeats)
    return (whole + 1e-4 * generator.standard_normal(whole.size)).astype(np.float32)


def talk(words: int) -> Words:
    """Words of people who talk, in no sense, some of them known late."""
    rng = np.random.default_rng(0)
    said = "I the a well, um it's don\u2019t so- moon of and -- tree [noise] you You twenty 20"
    begins = np.cumsum(rng.integers(5, 60, words))
    ends = begins + rng.integers(4, 40, words)
    known = np.maximum.accumulate(ends + rng.integers(0, 90, words))
    return Words(tuple(rng.choice(said.split(), words).tolist()), begins, ends, known)


def pieces(sound: Any, cuts: list[int]) -> list[Any]:
    """Audio, or words, cut at these places."""
    if not isinstance(sound, Words):
        return np.split(sound, cuts)
    edges = [0, *cuts, len(sound.texts)]
    slices = [slice(a, b) for a, b in itertools.pairwise(edges)]
    return [
        Words(sound.texts[each], sound.begins[each], sound.ends[each], sound.known[each])
        for each in slices
    ]


def growth(steps: int, step: Callable[[int], object]) -> int:
    """Bytes that are held after ``steps`` more calls, beyond those of the first ``steps``."""
    for i in range(steps):
        step(i)
    tracemalloc.start()
    try:
        for i in range(steps, 2 * steps):  # what replaces older things is now all traced
            step(i)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for i in range(2 * steps, 4 * steps):
            step(i)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------------------------------- features


@dataclass(frozen=True)
class FeatureCase:
    """One feature.

    Attributes:
        make: a fresh one.
        sound: audio at its rate, or words, that it finds many frames in.
        tolerance: how far embeddings may differ from one cutting to another.
    """

    make: Callable[[], Feature]
    sound: Callable[[], Any]
    tolerance: float = 0.0


def speaker_model() -> Feature:
    onnx_extra()
    return SpeechWindows(window_spec("speaker_0", SIZE), Network(of_sound(), "speaker"))


def tokens(epsilon: float | None = None) -> Tokens:
    return Tokens(UscNetwork(usc_weights(), "a" * 64), epsilon)


FEATURES = {
    "f0": FeatureCase(F0, lambda: voice(3.0, 8000)),
    "f0_robust": FeatureCase(RobustF0, lambda: voice(3.0, 8000)),
    "phones": FeatureCase(Phones, lambda: babble(30, pause_seconds=0.3)),
    "voice": FeatureCase(Voice, lambda: voice(9.0)),
    "speaker model": FeatureCase(speaker_model, lambda: voice(9.0), tolerance=1e-5),
    "style": FeatureCase(Style, lambda: talk(400)),
    "tokens": FeatureCase(tokens, lambda: babble(30, pause_seconds=0.3)),
    "tokens with noise": FeatureCase(partial(tokens, 3.0), lambda: babble(30, pause_seconds=0.3)),
    "channel": FeatureCase(Channel, lambda: voice(9.0)),
}


@one_thread()
def heard(feature: Feature, parts: Iterable[Any]) -> Track:
    """All frames of a recording."""
    tracks = [*map(feature.process, parts), feature.flush()]
    return Track(
        np.concatenate([track.ticks for track in tracks]),
        np.concatenate([track.values for track in tracks]),
    )


# ---------------------------------------------------------------------------------------- sketches


@dataclass(frozen=True)
class SketchCase:
    """One sketch.

    Attributes:
        make: an empty one.
        values: that many usable frames, from a seed.
        unusable: frames without meaning: counted by nobody and in no sum. None where the type of
            the values rules them out.
        tolerance: how far sums may differ with their order.
    """

    make: Callable[[], Sketch]
    values: Callable[[int, int], Any]
    unusable: Callable[[], Any] | None = None
    tolerance: float = 0.0


def _bins(count: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 7, count)


def _embeddings(count: int, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(count, 5))


SKETCHES = {
    "Histogram": SketchCase(lambda: Histogram(7), _bins),
    "EmbeddingSum": SketchCase(
        lambda: EmbeddingSum(5),
        _embeddings,
        lambda: np.array([[np.nan, 1, 1, 1, 1], [np.inf, 1, 0, 0, 1], [1, -np.inf, np.nan, 0, 0]]),
        tolerance=1e-12,
    ),
}


# ----------------------------------------------------------------------------------------- sources


@dataclass(frozen=True)
class SourceCase:
    """One source.

    Attributes:
        cuttings: ways to open one stream of `SECONDS` in a folder, cut differently.
        again: whether it can be iterated over a second time.
        damaged: a way to open a stream of which a few frames are unusable; None where samples
            are passed on as they are (the extractor counts those that are no numbers).
        endless: opens a long stream; None where the whole of it is in memory by design.
    """

    cuttings: Callable[[Path], Sequence[Callable[[], Source]]]
    again: bool = True
    damaged: Callable[[Path], Source] | None = None
    endless: Callable[[Path], Source] | None = None


def _recording(folder: Path, suffix: str = "flac", seconds: float = SECONDS) -> Path:
    path = folder / f"{seconds:g}.{suffix}"
    form, subtype = ("OGG", "OPUS") if suffix == "opus" else (suffix.upper(), "PCM_16")
    soundfile.write(path, voice(seconds), RATE, format=form, subtype=subtype)
    return path


def _file(suffix: str) -> SourceCase:
    return SourceCase(
        lambda folder: [
            partial(File, _recording(folder, suffix), block_seconds=seconds)
            for seconds in (10.0, 1.0, 0.037)
        ],
        endless=lambda folder: File(_recording(folder, suffix, LONG_SECONDS), block_seconds=0.5),
    )


class Dribble(io.RawIOBase):
    """A pipe that gives what it has in small pieces."""

    def __init__(self, data: bytes, most: int) -> None:
        self._data, self._at, self._most = data, 0, most

    def read(self, size: int = -1) -> bytes:
        end = self._at + (self._most if size < 0 else min(size, self._most))
        piece, self._at = self._data[self._at : end], end
        return piece


def _pipe(seconds: float, most: int) -> Source:
    file = io.BytesIO()
    soundfile.write(file, voice(seconds), RATE, format="WAV", subtype="PCM_16")
    return Pipe(Dribble(file.getvalue(), most))  # type: ignore[arg-type]


def _frames(seconds: float = SECONDS) -> Frames:
    ticks = np.arange(1, round(100 * seconds) + 1, 2)
    generator = np.random.default_rng(3)
    tracks = {
        "f0": Track(ticks, generator.integers(0, 104, ticks.size)),
        "identity": Track(ticks[::10], generator.normal(size=(ticks[::10].size, 3))),
    }
    return Frames(generator.random(round(100 * seconds)) < 0.8, tracks)


def _npz(folder: Path) -> Path:
    path, made = folder / "voice.npz", _frames()
    sizes = {"f0": 104, "identity": 3}
    write_frames(path, made.speech, made.tracks, sizes, {"f0": 0.01, "identity": 0.2})
    return path


def _damaged_npz(folder: Path) -> Source:
    path, made = folder / "damaged.npz", _frames()
    made.tracks["identity"].values[[3, 7], [1, 0]] = np.nan, np.inf
    made.tracks["f0"].values[5] = 104
    write_frames(path, made.speech, made.tracks, {"f0": 104, "identity": 3}, {"f0": 0.01})
    return FramesFile(path)


def _jsonl(folder: Path) -> Path:
    path, made = folder / "voice.jsonl", _frames()
    found = {
        name: dict(zip(track.ticks.tolist(), track.values.tolist(), strict=True))
        for name, track in made.tracks.items()
    }
    header = {"schema": 1, "sizes": {"f0": 104}, "frame_seconds": {"f0": 0.01, "identity": 0.2}}
    lines = [json.dumps(header)]
    for tick, speech in enumerate(made.speech.tolist(), 1):
        line = {"seconds": tick / 100, "speech": speech}
        lines.append(json.dumps(line | {name: each.get(tick) for name, each in found.items()}))
    path.write_text("\n".join(lines))
    return path


def _damaged_jsonl(folder: Path) -> Source:
    path = folder / "damaged.jsonl"
    path.write_text(
        '{"schema": 1, "sizes": {"f0": 104}, "frame_seconds": {}}\n'
        '{"seconds": 0.01, "f0": 3, "identity": [1.0, NaN]}\n'
        '{"seconds": 0.02, "f0": 104, "identity": [1.0, 0.5]}\n'
        '{"seconds": 0.03, "f0": -1, "identity": [Infinity, 0.5]}\n'
    )
    return FramesFile(path)


def _paced(source: Source, speed: float) -> Paced:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    return Paced(source, speed, clock=lambda: now[0], sleep=sleep)


def _chain(path: Path, block_seconds: float) -> Source:
    return Chain([File(path, block_seconds=block_seconds), File(path, block_seconds=3.0)])


def _microphone(block_seconds: float) -> Source:
    size = round(block_seconds * RATE)
    sound = voice(SECONDS + 1)
    parts = [sound[i : i + size] for i in range(0, len(sound), size)]
    return Microphone(seconds=SECONDS, system=InputSystem(FrameBuffer([parts] * 2, RATE).opens))


def _beside(folder: Path, block_seconds: float) -> Source:
    """Words, some of them known late, and frames beside a recording."""
    file = File(_recording(folder), block_seconds=block_seconds)
    begins = np.arange(0, 390, 30)
    known = begins + np.array([20, 40] * 6 + [99])
    said = Words(("a", "the") * 6 + ("so",), begins, begins + 20, known)
    return SideInputSource(file, words=said, frames=_npz(folder))


def _audio_queue(block_seconds: float) -> Source:
    size = round(block_seconds * RATE)
    sound = voice(SECONDS + 1)
    queue = AudioQueue(RATE, seconds=SECONDS)
    for i in range(0, len(sound), size):
        queue.put(sound[i : i + size])
    return queue


def _diarised(folder: Path, block_seconds: float) -> Source:
    turns = [Turn(0.0, SECONDS / 2, "ann"), Turn(SECONDS / 3, SECONDS, "bob")]
    return Diarised(File(_recording(folder), block_seconds=block_seconds), turns)


def _live_diarised(block_seconds: float) -> Source:
    lines = (
        f"SPEAKER - 1 {start} 2 <NA> <NA> {label} <NA> <NA>"
        for start, label in ((0, "ann"), (1, "bob"))
    )
    queue = _audio_queue(block_seconds)
    assert isinstance(queue, AudioQueue)
    return LiveDiarised(queue, TurnPipe(lines))


def _per_channel(folder: Path, block_seconds: float) -> Source:
    path = folder / "call.flac"
    soundfile.write(path, np.stack([voice(SECONDS), 0.5 * voice(SECONDS)], axis=1), RATE)
    return PerChannel(File(path, block_seconds=block_seconds))


SOURCES = {
    "AudioQueue": SourceCase(
        lambda _: [partial(_audio_queue, seconds) for seconds in (1.5, 0.02, 0.003)], again=False
    ),
    "SideInputSource": SourceCase(
        lambda folder: [partial(_beside, folder, seconds) for seconds in (10.0, 1.0, 0.037)]
    ),
    "File wav": _file("wav"),
    "File flac": _file("flac"),
    "File opus": _file("opus"),
    "Samples": SourceCase(lambda _: [partial(Samples, voice(SECONDS), RATE)]),
    "Pipe": SourceCase(
        lambda _: [partial(_pipe, SECONDS, most) for most in (1 << 20, 4096, 333)],
        again=False,
        endless=lambda _: _pipe(LONG_SECONDS, RATE),
    ),
    "Microphone": SourceCase(
        lambda _: [partial(_microphone, seconds) for seconds in (1.5, 0.02, 0.003)]
    ),
    "FramesFile npz": SourceCase(
        lambda folder: [partial(FramesFile, _npz(folder))], damaged=_damaged_npz
    ),
    "FramesFile jsonl": SourceCase(
        lambda folder: [partial(FramesFile, make(folder)) for make in (_npz, _jsonl)],
        damaged=_damaged_jsonl,
    ),
    "Chain": SourceCase(
        lambda folder: [
            partial(_chain, _recording(folder, seconds=SECONDS / 2), s) for s in (5.0, 0.3, 0.01)
        ],
        damaged=lambda folder: Chain([_damaged_npz(folder), _damaged_npz(folder)]),
        endless=lambda folder: _chain(_recording(folder, seconds=LONG_SECONDS / 2), 0.5),
    ),
    "Diarised": SourceCase(
        lambda folder: [partial(_diarised, folder, seconds) for seconds in (10.0, 1.0, 0.037)]
    ),
    "LiveDiarised": SourceCase(
        lambda _: [partial(_live_diarised, seconds) for seconds in (1.5, 0.02, 0.003)], again=False
    ),
    "PerChannel": SourceCase(
        lambda folder: [partial(_per_channel, folder, seconds) for seconds in (10.0, 1.0, 0.037)]
    ),
    "Paced audio": SourceCase(
        lambda folder: [
            partial(File, _recording(folder)),
            *(partial(_paced, File(_recording(folder)), speed) for speed in (0.3, 1.0, 77.0)),
        ],
        endless=lambda folder: _paced(
            File(_recording(folder, seconds=LONG_SECONDS), block_seconds=0.5), 3.0
        ),
    ),
    "Paced frames": SourceCase(
        lambda folder: [
            partial(FramesFile, _npz(folder)),
            *(partial(_paced, FramesFile(_npz(folder)), speed) for speed in (0.1, 3.0, 999.0)),
        ],
        damaged=lambda folder: _paced(_damaged_npz(folder), 0.2),
    ),
}


@dataclass(frozen=True)
class Listened:
    """Everything that a source gave, whatever its blocks."""

    samples: dict[tuple[int, int], FloatArray]
    speech: list[bool]
    tracks: dict[str, tuple[list[int], list[Any]]]
    gaps: list[tuple[int | None, Gap]]


def listened(items: Iterable[Block | Frames | Gap | Words | Tracks]) -> Listened:
    """Put the pieces of a stream together."""
    samples: dict[tuple[int, int], list[FloatArray]] = {}
    found = Listened({}, [], {}, [])
    for item in items:
        if isinstance(item, Block):
            samples.setdefault((item.recording, item.rate), []).append(item.samples)
            continue
        if isinstance(item, Gap):
            found.gaps.append((None, item))
            continue
        if isinstance(item, Words):
            tracks = {"words": Track(item.known, np.array(item.texts))}
        else:
            tracks = dict(item.tracks)
        if isinstance(item, Frames):
            found.speech.extend(item.speech.tolist())
            found.gaps.extend(item.gaps)
        for name, track in tracks.items():
            ticks, values = found.tracks.setdefault(name, ([], []))
            ticks.extend(track.ticks.tolist())
            values.extend(track.values.tolist())
    found.samples.update({key: np.concatenate(parts) for key, parts in samples.items()})
    return found


# ------------------------------------------------------------------------------------------- sinks


@dataclass(frozen=True)
class SinkCase:
    """One sink.

    Attributes:
        make: a fresh one, which may write into a folder.
        growth: bytes that it may keep of 4000 readings (`RunBuffer` grows with the log of a run).
    """

    make: Callable[[Path], Sink]
    growth: int = 64 * KILOBYTE


class Nowhere(io.TextIOBase):
    """Takes any text and keeps none."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)


def _console(*, terminal: bool) -> Console:
    return Console(
        file=Nowhere(),  # type: ignore[arg-type]
        force_terminal=terminal,
        width=80,
        height=24,
        legacy_windows=False,
        _environ={"TERM": "xterm-256color"},
    )


def _clock() -> Callable[[], float]:
    """Two milliseconds a look."""
    now = [0.0]

    def clock() -> float:
        now[0] += 0.002
        return now[0]

    return clock


def _view(view: type[ReplayProgress | LiveView], terminal: bool) -> SinkCase:
    # rich remembers the widths of the last 4096 texts that it drew
    most = 1000 * KILOBYTE if terminal else 64 * KILOBYTE
    return SinkCase(lambda _: view(3600.0, _console(terminal=terminal), clock=_clock()), most)


def _session(folder: Path) -> LedgerSession:
    """Of the first speaker of the shipped population."""
    population = Population.reference().only(["f0"])
    monitor = Monitor(population, watch=population.speakers[0].name)
    return LedgerSession(Ledger(folder / "ledger.db"), monitor)


SINKS = {
    "JsonLines": SinkCase(lambda folder: JsonLines(folder / "run.jsonl")),
    "RunBuffer": SinkCase(lambda _: RunBuffer(), growth=1500 * KILOBYTE),
    "ReplayProgress": _view(ReplayProgress, terminal=False),
    "ReplayProgress on a terminal": _view(ReplayProgress, terminal=True),
    "LiveView": _view(LiveView, terminal=False),
    "LiveView on a terminal": _view(LiveView, terminal=True),
    "Bell": SinkCase(lambda _: Bell()),
    "BackgroundDelivery": SinkCase(lambda _: BackgroundDelivery(Command("cat > /dev/null"))),
    "VoiceDevice": SinkCase(lambda _: VoiceDevice(Broker.parse("mqtt://127.0.0.1:9"))),
    "LedgerSession": SinkCase(_session, growth=256 * KILOBYTE),
    "Page": SinkCase(lambda _: Page(), growth=12_000 * KILOBYTE),
}
