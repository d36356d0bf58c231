"""Session of one browser, which enrols a speaker or measures a voice."""

from __future__ import annotations

import math
import secrets
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from monitor.alerts.figures import most_bits
from monitor.alerts.rules import AdjustableThreshold
from monitor.anonymisers.recording import ProtectedBlocks
from monitor.anonymisers.registry import ANONYMISERS
from monitor.errors import MonitorError, SourceError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, defaults
from monitor.maths.condition import list_poor_figures
from monitor.phrases import clock_time, condition_in_words, poor_in_words
from monitor.population.population import Population
from monitor.protocols import Source
from monitor.run.pace import timed
from monitor.run.parts import Protection
from monitor.run.run import Run, RunSettings
from monitor.safe_text import LONGEST_NAME, file_name
from monitor.serve.downloads import KeptRun
from monitor.serve.templates import TemplateFolder, checked_name
from monitor.sinks.mqtt import PageDevice, PageVisitor
from monitor.sources.base import Chain
from monitor.sources.file import File
from monitor.sources.microphone import AudioQueue
from monitor.sources.people import Diarised
from monitor.sources.pipe import pcm_to_float
from monitor.stream.monitor import Monitor
from monitor.stream.plan import MonitorSettings
from monitor.stream.records import start_event
from monitor.training.live_enrolment import LiveEnrolment
from monitor.transcripts.turn_formats import read_turns
from monitor.types import Block, Gap
from monitor.virtual_files import MemoryFile
from monitor.web.hub import Hub

RATES = (8_000, 192_000)
_HEADER = struct.Struct("<Q")
SHORTEST_SECONDS = 0.005
"""Shortest message. Many shorter ones would fill the memory instead of the queue."""
AHEAD_SECONDS = 120.0  # sound that is so far ahead of the clock was not spoken into a microphone
QUEUE_SECONDS = 30.0
PAUSED_SECONDS = 1800.0  # a session without audio for this time ends


class RefusedError(MonitorError):
    """A message that our page never sends. The websocket is closed."""


class BrowserMicrophone(AudioQueue):
    """Audio from a browser, in messages of 16-bit mono samples with their position.

    A message starts with the number of samples before it, as an unsigned 64-bit integer. The
    samples follow. Both are little-endian. Samples missing between two messages are a gap.

    Args:
        rate: samples per second, of the browser's audio context.
        seconds: maximum length of the stream.
    """

    def __init__(
        self, rate: int, *, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not RATES[0] <= rate <= RATES[1]:
            raise UsageError(f"unsupported microphone rate {rate} Hz: use {RATES[0]} to {RATES[1]}")
        super().__init__(
            rate,
            seconds=seconds,
            queue_seconds=QUEUE_SECONDS,
            label="the browser's microphone",
            stalled_seconds=PAUSED_SECONDS,
            clock=clock,
        )
        self._place = 0
        self._began = clock()

    def receive_audio(self, message: bytes) -> None:
        """Take the samples of a message.

        Raises:
            RefusedError: it is malformed, out of order, or faster than real time.
        """
        samples, odd = divmod(len(message) - _HEADER.size, 2)
        if odd or not SHORTEST_SECONDS * self.rate <= samples <= self.rate:
            raise RefusedError("an audio message must have 5 ms to 1 s of 16-bit samples")
        (position,) = _HEADER.unpack_from(message)
        if position < self._place:
            raise RefusedError("audio messages must be in order")
        ahead = (position + samples) / self.rate - (self._clock() - self._began)
        if ahead > AHEAD_SECONDS:
            raise RefusedError("audio arrived faster than real time")
        if position > self._place:
            self.miss(position - self._place)
        self._place = position + samples
        self.put(pcm_to_float(message[_HEADER.size :], "s16le", 1))


MOST_BYTES = 225 * 1024 * 1024
"""Maximum size of a recording, which fits two hours of 16-bit samples at 16 kHz or days of Opus.
Processing takes its size and at most 85 MB of memory.
"""
MOST_TURNS_BYTES = 4 * 1024 * 1024
MOST_AT_ONCE = 1  # maximum number of recordings in memory for all browsers together
BLOCK_SECONDS = 10.0  # audio per step, which sets the delay of progress and of cancelling
BLOCK_SAMPLES = 1 << 19  # the same, of all channels: 2 MB


@dataclass(frozen=True, slots=True)
class UploadHeader:
    """A file that a browser is about to send."""

    name: str
    size: int
    maximum: int = MOST_BYTES

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"{self.name} is empty")
        if self.size > self.maximum:
            raise UsageError(
                f"{self.name} is too large: {self.maximum / 1e6:.0f} MB at most are measured here"
            )

    @classmethod
    def parse(
        cls, wish: Mapping[str, object], key: str, maximum: int = MOST_BYTES
    ) -> UploadHeader | None:
        """Parse the name and ``size`` of the file in a message's ``key``, or None."""
        header = wish.get(key)
        if header is None:
            return None
        fields = header if isinstance(header, dict) else {}
        name, size = fields.get("name"), fields.get("size")
        if not isinstance(name, str) or type(size) is not int:
            raise UsageError("a file has a name and a size")
        return cls(file_name(name[-LONGEST_NAME:]) or "recording", size, maximum)


class Upload:
    """A recording as it comes, and turns after it where there are any: in memory alone."""

    def __init__(self, recording: UploadHeader, turns: UploadHeader | None = None) -> None:
        self._announced = [header for header in (recording, turns) if header is not None]
        # memory is allocated as it is written
        self._bytes = np.empty(sum(header.size for header in self._announced), np.uint8).data
        self._came = 0

    def add(self, message: bytes) -> bool:
        """Add the next bytes, and return whether the files are complete."""
        end = self._came + len(message)
        if end > len(self._bytes):
            raise UsageError("a file is larger than announced")
        self._bytes[self._came : end] = message
        self._came = end
        return end == len(self._bytes)

    def take(self) -> list[MemoryFile]:
        """Take the recording, and the turns; they are in memory once, and not here any more."""
        content, self._bytes = self._bytes, memoryview(b"")
        files = []
        for header in self._announced:
            files.append(MemoryFile(header.name, content[: header.size]))
            content = content[header.size :]
        return files


def opened(
    recording: MemoryFile, turns: MemoryFile | None = None, *, longest_seconds: float
) -> Source:
    """Open the recording as a source; with turns, split by person."""
    source = File(recording)
    block_seconds = min(BLOCK_SECONDS, BLOCK_SAMPLES / (source.rate * source.channels))
    end_seconds = longest_seconds if source.seconds is None else None
    source = File(recording, block_seconds=block_seconds, end_seconds=end_seconds)
    if source.seconds is not None and source.seconds > longest_seconds:
        raise SourceError(
            f"{source.label} is {clock_time(source.seconds)} long: "
            f"{clock_time(longest_seconds)} at most are measured here"
        )
    if turns is None:
        return Chain([source])
    return Diarised(source, read_turns(turns, recording=recording.name), start_seconds=0.0)


_SETTINGS = {"noise": "noise:10"}
"""Settings of anonymisers that need one and do not draw it randomly."""
_NEVER = ("none", "command")  # a browser must not be able to start a program


@cache
def choices() -> tuple[str, ...]:
    """List the anonymisers for the page, which are live and available here."""
    methods = []
    for name in ANONYMISERS:
        if name in _NEVER:
            continue
        for method in (f"{name}:random", name, _SETTINGS.get(name, name)):
            try:
                live = ProtectedBlocks(method).latency_seconds is not None
            except MonitorError:
                continue
            methods += [method] if live else []
            break
    return tuple(methods)


class ProtectedAudioSender:
    """Sender of protected sound, packed as the page's own messages: mono, 16 bits."""

    def __init__(self, send: Callable[[bytes], object]) -> None:
        self._send = send
        self._place = 0

    def __call__(self, block: Block) -> Block:
        """Send a block's audio in messages of at most 0.5 s, and return the audio sent.

        The measured audio equals the audio sent to the last bit. In noise, rounding could change a
        frame from speech to silence and with it a reading.
        """
        mono = np.clip(np.rint(32768 * block.samples.mean(axis=1)), -32768, 32767).astype("<i2")
        for low in range(0, len(mono), block.rate // 2):
            samples = mono[low : low + block.rate // 2]
            self._send(_HEADER.pack(self._place) + samples.tobytes())
            self._place += len(samples)
        return replace(block, samples=(mono / np.float32(32768))[:, None])


def protection(method: object, send: Callable[[bytes], object]) -> Protection | None:
    """Make the protection that a browser asks for; None if it asks for nothing."""
    if method in (None, ""):
        return None
    if not isinstance(method, str) or method not in choices():
        raise UsageError("no such anonymiser can be chosen here")
    return Protection(method, on_block=ProtectedAudioSender(send))


Message: TypeAlias = "Mapping[str, object]"  # a message to a browser, by its ``type``
PROGRESS_SECONDS = 0.2
BITS = (0.0, 40.0)
"""Thresholds that can be asked for."""
STEP_BITS = 0.5  # step of the page's slider, in bits
TOP = 100  # maximum number of speakers that the page can draw, or all of a small population


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Settings of every session."""

    templates: TemplateFolder  # folder of the templates enrolled here
    enrol_seconds: float = 60.0  # speech seconds of a template
    longest_seconds: float = 7200.0  # maximum length of a measurement
    among: tuple[int, ...] | None = None  # crowds in the readings; None for the usual ones
    setup: FeatureSetup = field(default=AS_ENVIRONMENT)  # configuration of the features
    # semaphore for recordings in memory
    room: threading.Semaphore = field(default_factory=partial(threading.Semaphore, MOST_AT_ONCE))
    house: PageDevice | None = None  # shows visitors who agree in Home Assistant, or None

    @property
    def features(self) -> tuple[str, ...]:
        """Features in use: of the base population's, all that is installed."""
        return defaults(self.templates.base.features, self.setup)

    def population(self, name: str) -> Population:
        """Load the people a voice is compared with: by an empty name, the base."""
        return self.templates.load(name) if name else self.templates.base

    def monitor(self, source: Source, name: str, population: Population | None = None) -> Monitor:
        """Make the monitor of a voice, as that of ``monitor listen --watch``.

        An empty name watches no speaker.
        """
        return Monitor.for_source(
            source,
            self.population(name) if population is None else population,
            None,
            name or None,
            setup=self.setup,
            settings=MonitorSettings(among=self.among, top=TOP),
        )


class Session:
    """Session of one browser, with at most one microphone or recording at a time.

    Args:
        settings: settings shared by all sessions.
        tell: called with every message to the browser, from any thread; must not wait.
        send: called with protected audio, likewise.

    Attributes:
        id: a secret with which the browser reconnects.
        hub: hub of the newest run; None before the first.
        kept: records of that run, for downloads.
    """

    def __init__(
        self,
        settings: ServeSettings,
        tell: Callable[[Message], None],
        send: Callable[[bytes], object] | None = None,
    ) -> None:
        self.id = secrets.token_urlsafe(16)
        self.hub: Hub | None = None
        self.kept: KeptRun | None = None
        self._settings = settings
        self._tell, self._send = tell, send or (lambda _: None)
        self._source: BrowserMicrophone | None = None
        self._upload: tuple[Upload, Callable[[Upload], None]] | None = None
        self._run: Run | None = None
        self._rule: AdjustableThreshold | None = None
        self._visitor: PageVisitor | None = None
        self._thread: threading.Thread | None = None
        self._cancelled = self._stopped = False
        self.name = ""

    @property
    def busy(self) -> bool:
        """True while it listens to a microphone or a recording, or waits for one."""
        return self._upload is not None or (self._thread is not None and self._thread.is_alive())

    def enrol(self, name: object, rate: int, *, replace: bool = False) -> None:
        """Start to enrol a speaker."""
        called = checked_name(name)
        self._settings.templates.check_new(called, replace=replace)
        seconds = self._settings.enrol_seconds
        source = BrowserMicrophone(rate, seconds=5 * seconds + 60)
        self._begin(called, source, partial(self._enrol, called, source, replace))

    def listen(self, name: object, rate: int, bits: float, protect: object = None) -> None:
        """Start to measure the disclosure of an enrolled speaker.

        With ``protect``, one of `monitor.serve.session.choices`, the anonymised voice is measured
        too and sent back.
        """
        called = checked_name(name)
        if not self._settings.templates.has(called):
            raise UsageError(f"{called} is not enrolled")
        source = BrowserMicrophone(rate, seconds=self._settings.longest_seconds)
        rule = AdjustableThreshold("bits", _checked_bits(bits))
        hub, run = Hub([("bits", rule.bits)]), KeptRun()
        side = protection(protect, self._send)
        house = self._settings.house
        visitor = None if house is None else PageVisitor(house)
        work = partial(self._listen, called, source, rule, hub, run, side, visitor)
        self._begin(called, source, work, rule, hub, run)
        self._visitor = visitor  # who has not agreed to anything yet

    def measure(
        self, name: object, recording: UploadHeader, turns: UploadHeader | None, bits: float
    ) -> None:
        """Measure a recording, which `receive_audio` brings, as ``monitor replay`` does."""
        called = checked_name(name) if name else ""
        if called and not self._settings.templates.has(called):
            raise UsageError(f"{called} is not enrolled")
        rule = AdjustableThreshold("bits", _checked_bits(bits))
        if self.busy:
            raise UsageError("end the current measurement or enrolment first")
        if not self._settings.room.acquire(blocking=False):
            raise UsageError("another recording is measured here now: try again in a minute")

        def begin(upload: Upload) -> None:
            hub, run = Hub([("bits", rule.bits)]), KeptRun()
            work = partial(self._measure, called, upload, rule, hub, run)
            self._begin(called, None, work, rule, hub, run)

        self._upload = Upload(recording, turns), begin

    def receive_audio(self, message: bytes) -> None:
        """Take audio; discard it if no measurement runs."""
        if self._upload is not None:
            upload, begin = self._upload
            try:
                if upload.add(message):
                    self._upload = None
                    begin(upload)
            except UsageError as error:
                self._drop_upload()
                raise RefusedError(str(error)) from None
        elif self._source is not None and self.busy:
            self._source.receive_audio(message)

    def adjust(self, bits: float) -> None:
        """Move the threshold of the run."""
        checked = _checked_bits(bits)
        if self._rule is not None and self.hub is not None:
            self.hub.stand_on([("bits", self._rule.adjust(checked))])

    def show_in_house(self, agrees: bool) -> None:
        """Show this run in the house, or not any more; the next one is not, unless asked again."""
        if self._visitor is not None:
            self._visitor.agree(agrees)

    def stop(self, *, cancel: bool = False) -> None:
        """End the current activity after the received audio; ``cancel`` discards it."""
        self._cancelled = self._cancelled or cancel
        if self._drop_upload():
            self._tell({"type": "over"})
        if self._source is not None:
            self._source.stop()
        self._stopped = True
        if (run := self._run) is not None:
            run.stop()

    def lose(self) -> None:
        """The connection is gone: half a recording is no use."""
        self._drop_upload()

    def _drop_upload(self) -> bool:
        """Forget what came of a recording that is not all there."""
        if self._upload is None:
            return False
        self._upload = None
        self._settings.room.release()
        return True

    def close(self) -> None:
        """End it, for good; returns when its thread has ended."""
        self.stop(cancel=True)
        if self._thread is not None:
            self._thread.join()

    def _begin(
        self,
        name: str,
        source: BrowserMicrophone | None,
        work: Callable[[], None],
        rule: AdjustableThreshold | None = None,
        hub: Hub | None = None,
        run: KeptRun | None = None,
    ) -> None:
        if self.busy:
            raise UsageError(
                "the microphone is in use: end the current measurement or enrolment first"
            )
        self._source, self.name, self._cancelled, self._stopped = source, name, False, False
        self._rule, self.hub, self.kept = rule, hub, run
        self._thread = threading.Thread(
            target=self._guarded, args=(work,), name="monitor session", daemon=True
        )
        self._thread.start()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except MonitorError as error:
            self._tell({"type": "error", "text": str(error)})
        except Exception as error:  # the other sessions continue
            self._tell({"type": "error", "text": f"unexpected {type(error).__name__}"})
            raise
        finally:
            self._tell({"type": "over"})

    def _enrol(self, name: str, source: BrowserMicrophone, replace: bool) -> None:
        settings = self._settings
        seconds, problems = settings.enrol_seconds, []
        take = LiveEnrolment(timed(settings.features, settings.setup))
        progress_time = -math.inf
        with source:
            for item in source:
                if isinstance(item, Block):
                    take.push(item)
                elif isinstance(item, Gap):
                    problems.append(item.detail)
                enough = take.speech_seconds > seconds
                if enough:  # then all frames of the wanted part are there
                    source.stop()
                if enough or time.monotonic() - progress_time >= PROGRESS_SECONDS:
                    progress_time = time.monotonic()
                    self._tell(_progress(take, seconds))
        if self._cancelled:
            return
        enrolment = take.enrolment(name, "browser", seconds, settings.setup)
        population = settings.templates.save(name, enrolment.population, replace=replace)
        index = population.index(name)
        condition = population.speakers[index].condition
        figures = {} if condition is None else condition.record()
        bad = () if condition is None else list_poor_figures(condition)
        self._tell(
            {
                "type": "enrolled",
                "name": name,
                "seconds": float(population.template_seconds[index]),
                "sound": condition_in_words(figures),
                "trouble": take.whole.trouble,
                "poor": poor_in_words(bad, figures) if bad else "",
                "notes": [*take.noticed, *problems, *enrolment.problems, *enrolment.notes],
            }
        )

    def _listen(
        self,
        name: str,
        source: BrowserMicrophone,
        rule: AdjustableThreshold,
        hub: Hub,
        records: KeptRun,
        protect: Protection | None,
        visitor: PageVisitor | None,
    ) -> None:
        monitor = partial(self._settings.monitor, name=name)
        rules = partial(_within_reach, rule, hub)
        with Run(
            source,
            monitor,
            settings=RunSettings(protect=protect),
            rules=rules,
            actions=[] if visitor is None else [visitor],
            sinks=[hub, records],
        ) as run:
            self._tell({"type": "listening", "name": name, "most": rule.maximum})
            run.to_end()

    def _measure(
        self, name: str, upload: Upload, rule: AdjustableThreshold, hub: Hub, records: KeptRun
    ) -> None:
        settings = self._settings
        try:
            source = opened(*upload.take(), longest_seconds=settings.longest_seconds)
            monitor = partial(settings.monitor, name=name, population=settings.population(name))
            rules = partial(_within_reach, rule, hub)
            with Run(source, monitor, rules=rules, sinks=[hub, records]) as run:
                self._run = run
                if self._stopped:
                    run.stop()
                details = {"name": name, "seconds": source.seconds, "most": rule.maximum,
                        "people": run.start.people is not None}  # fmt: skip
                self._tell({"type": "measuring", "recording": source.label, **details})
                run.to_end()
        finally:
            self._run = None
            settings.room.release()


def _progress(take: LiveEnrolment, seconds: float) -> Message:
    recent = take.recent
    return {
        "type": "progress",
        "speech": min(take.speech_seconds, seconds),
        "wanted": seconds,
        "level": recent.level_decibels,
        "clipped": recent.clipped_share,
        "trouble": recent.trouble,
    }


def _within_reach(
    rule: AdjustableThreshold, hub: Hub, monitor: Monitor
) -> list[AdjustableThreshold]:
    """Lower the threshold of a run to what its figures can reach."""
    maximum, _ = most_bits("bits", start_event(monitor, ()))
    rule.limit(BITS[1] if maximum is None else math.floor(maximum / STEP_BITS) * STEP_BITS)
    hub.stand_on([("bits", rule.bits)])
    return [rule]


def _checked_bits(bits: float) -> float:
    if not BITS[0] <= bits <= BITS[1]:
        raise UsageError(f"invalid threshold {bits:g} bits: use {BITS[0]:g} to {BITS[1]:g}")
    return float(bits)
