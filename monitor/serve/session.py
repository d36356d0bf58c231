"""Session of one browser, which enrols a speaker or measures a voice."""

from __future__ import annotations

import math
import secrets
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
from monitor.errors import MonitorError, UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, defaults
from monitor.maths.condition import list_poor_figures
from monitor.phrases import condition_in_words, poor_in_words
from monitor.population.population import Population
from monitor.protocols import Source
from monitor.run.pace import timed
from monitor.run.parts import Protection
from monitor.run.run import Run, RunSettings
from monitor.serve.browser_audio import (
    _HEADER,
    MOST_AT_ONCE,
    BrowserMicrophone,
    RefusedError,
    Upload,
    UploadHeader,
    opened,
)
from monitor.serve.downloads import KeptRun
from monitor.serve.templates import TemplateFolder, checked_name
from monitor.sinks.house import PageDevice, PageVisitor
from monitor.stream.monitor import Monitor
from monitor.stream.plan import MonitorSettings
from monitor.stream.records import start_event
from monitor.training.live_enrolment import LiveEnrolment
from monitor.types import Block, Gap, round_to_16_bits
from monitor.web.hub import Hub

_SETTINGS = {"noise": "noise:10"}
"""Settings of anonymisers that need a setting and cannot draw it randomly."""
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
        mono = round_to_16_bits(block.samples.mean(axis=1))
        for low in range(0, len(mono), block.rate // 2):
            samples = mono[low : low + block.rate // 2]
            self._send(_HEADER.pack(self._place) + samples.tobytes())
            self._place += len(samples)
        return replace(block, samples=(mono / np.float32(32768))[:, None])


def protection(method: object, send: Callable[[bytes], object]) -> Protection | None:
    """Make the protection that a browser requests; None if it requests none."""
    if method in (None, ""):
        return None
    if not isinstance(method, str) or method not in choices():
        raise UsageError("no such anonymiser can be chosen here")
    return Protection(method, on_block=ProtectedAudioSender(send))


Message: TypeAlias = "Mapping[str, object]"  # a message to a browser, by its ``type``
PROGRESS_SECONDS = 0.2
BITS = (0.0, 40.0)
"""Range of thresholds that a browser may request."""
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
        """Features in use: all of the base population's that are installed."""
        return defaults(self.templates.base.features, self.setup)

    def population(self, name: str) -> Population:
        """Load the population of a person; the base for an empty name."""
        return self.templates.load(name) if name else self.templates.base

    def monitor(self, source: Source, name: str, population: Population | None = None) -> Monitor:
        """Make the monitor of a voice, like ``monitor listen --watch``.

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


class _Shown:
    """Displays of a measurement: records for page and downloads, and alerts at a threshold."""

    def __init__(self, bits: float) -> None:
        self.rule = AdjustableThreshold("bits", _checked_bits(bits))
        self.hub, self.records = Hub([("bits", self.rule.bits)]), KeptRun()

    def rules_within_reach(self, monitor: Monitor) -> list[AdjustableThreshold]:
        """Make the run's rule, with the threshold lowered to what its bits can reach."""
        maximum, _ = most_bits("bits", start_event(monitor, ()))
        self.rule.limit(BITS[1] if maximum is None else math.floor(maximum / STEP_BITS) * STEP_BITS)
        self.hub.stand_on([("bits", self.rule.bits)])
        return [self.rule]


class Session:
    """Session of one browser, with at most one microphone or recording at a time.

    ``tell`` gets every message to the browser, and ``send`` the protected audio. Both are called
    from any thread, and must not wait.
    """

    def __init__(
        self,
        settings: ServeSettings,
        tell: Callable[[Message], None],
        send: Callable[[bytes], object] | None = None,
    ) -> None:
        self.id = secrets.token_urlsafe(16)  # a secret with which the browser reconnects
        self.hub: Hub | None = None  # hub of the newest run; None before the first
        self.kept: KeptRun | None = None  # records of that run, for downloads
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
        """True while the session uses a microphone or a recording, or waits for a recording."""
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
        shown = _Shown(bits)
        side = protection(protect, self._send)
        house = self._settings.house
        visitor = None if house is None else PageVisitor(house)
        work = partial(self._listen, called, source, shown, side, visitor)
        self._begin(called, source, work, shown)
        self._visitor = visitor  # who has not yet agreed to be shown

    def measure(
        self, name: object, recording: UploadHeader, turns: UploadHeader | None, bits: float
    ) -> None:
        """Measure a recording, which `receive_audio` collects, as ``monitor replay`` does."""
        called = checked_name(name) if name else ""
        if called and not self._settings.templates.has(called):
            raise UsageError(f"{called} is not enrolled")
        shown = _Shown(bits)
        if self.busy:
            raise UsageError("end the current measurement or enrolment first")
        if not self._settings.room.acquire(blocking=False):
            raise UsageError("another recording is measured here now: try again in a minute")

        def begin(upload: Upload) -> None:
            self._begin(called, None, partial(self._measure, called, upload, shown), shown)

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
                self.drop_upload()
                raise RefusedError(str(error)) from None
        elif self._source is not None and self.busy:
            self._source.receive_audio(message)

    def adjust(self, bits: float) -> None:
        """Move the threshold of the run."""
        checked = _checked_bits(bits)
        if self._rule is not None and self.hub is not None:
            self.hub.stand_on([("bits", self._rule.adjust(checked))])

    def show_in_house(self, agrees: bool) -> None:
        """Show this run in Home Assistant or stop. The next run needs a new agreement."""
        if self._visitor is not None:
            self._visitor.agree(agrees)

    def stop(self, *, cancel: bool = False) -> None:
        """End the current activity after the received audio; ``cancel`` discards it."""
        self._cancelled = self._cancelled or cancel
        if self.drop_upload():
            self._tell({"type": "over"})
        if self._source is not None:
            self._source.stop()
        self._stopped = True
        if (run := self._run) is not None:
            run.stop()

    def drop_upload(self) -> bool:
        """Drop an incomplete recording; return whether one was dropped."""
        if self._upload is None:
            return False
        self._upload = None
        self._settings.room.release()
        return True

    def close(self) -> None:
        """End the session, and wait until its thread has ended."""
        self.stop(cancel=True)
        if self._thread is not None:
            self._thread.join()

    def _begin(
        self,
        name: str,
        source: BrowserMicrophone | None,
        work: Callable[[], None],
        shown: _Shown | None = None,
    ) -> None:
        if self.busy:
            raise UsageError(
                "the microphone is in use: end the current measurement or enrolment first"
            )
        self._source, self.name, self._cancelled, self._stopped = source, name, False, False
        self._rule = self.hub = self.kept = None
        if shown is not None:
            self._rule, self.hub, self.kept = shown.rule, shown.hub, shown.records
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
                if enough:  # only then are all frames of the wanted part complete
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
        shown: _Shown,
        protect: Protection | None,
        visitor: PageVisitor | None,
    ) -> None:
        with Run(
            source,
            partial(self._settings.monitor, name=name),
            settings=RunSettings(protect=protect),
            rules=shown.rules_within_reach,
            actions=[] if visitor is None else [visitor],
            sinks=[shown.hub, shown.records],
        ) as run:
            self._tell({"type": "listening", "name": name, "most": shown.rule.maximum})
            run.to_end()

    def _measure(self, name: str, upload: Upload, shown: _Shown) -> None:
        settings = self._settings
        try:
            source = opened(*upload.take(), longest_seconds=settings.longest_seconds)
            monitor = partial(settings.monitor, name=name, population=settings.population(name))
            with Run(
                source, monitor, rules=shown.rules_within_reach, sinks=[shown.hub, shown.records]
            ) as run:
                self._run = run
                if self._stopped:
                    run.stop()
                details = {"name": name, "seconds": source.seconds, "most": shown.rule.maximum,
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


def _checked_bits(bits: float) -> float:
    if not BITS[0] <= bits <= BITS[1]:
        raise UsageError(f"invalid threshold {bits:g} bits: use {BITS[0]:g} to {BITS[1]:g}")
    return float(bits)
