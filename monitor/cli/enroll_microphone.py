"""The part of monitor enroll that hears a microphone."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.cli.live import quiet_libraries, stopped_by_signals
from monitor.cli.saying import say

if TYPE_CHECKING:
    from monitor.training.enrolling import Enrolment
    from monitor.training.live_enrolment import LiveEnrolment

__all__ = ["MICROPHONE_SECONDS", "enrol_from_microphone"]

MICROPHONE_SECONDS = 60.0
QUEUE_SECONDS = 60.0
"""Nobody waits for a reading: a slow machine may take its time."""
LINE_SECONDS = 10.0
DRAW_SECONDS = 0.1


def enrol_from_microphone(
    speaker: str, device: str | None, features: Sequence[str] | None, seconds: float
) -> Enrolment:
    """Hear a speaker until there is speech enough, or Ctrl-C, and make a template.

    Raises:
        CorpusError: there was too little speech.
        SourceError: the microphone cannot be heard.
    """
    from dataclasses import replace

    from monitor.corpus.recordings import Corpus, Recording
    from monitor.errors import CorpusError
    from monitor.features.registry import defaults
    from monitor.population.population import SLICE_SECONDS
    from monitor.sources.registry import open_live_source
    from monitor.stream.shedding import timed
    from monitor.training.enrolling import enrol
    from monitor.training.live_enrolment import LiveEnrolment
    from monitor.types import Block, Gap

    names = tuple(features) if features is not None else defaults()
    problems = []
    # much silence is said while it lasts, and is not waited through for ever
    longest = 5 * seconds + 60
    take = LiveEnrolment(timed(names))
    microphone = open_live_source(
        f"mic:{device or ''}",
        seconds=longest,
        queue_seconds=QUEUE_SECONDS,
        told=lambda line: say(line),
    )
    with quiet_libraries(), microphone as heard, stopped_by_signals(heard.stop):
        say(f"speak, about anything; listening to {heard.label} (Ctrl-C stops)")
        with _bar(take, seconds) as draw:
            for item in heard:
                if isinstance(item, Block):
                    take.hear(item)
                elif isinstance(item, Gap):
                    problems.append(f"{item.reason}: {item.detail}")
                draw()
                if take.speech_seconds > seconds:  # then all frames of the wanted part are there
                    heard.stop()
    for line in take.noticed:
        say(f"monitor: note: {line}")
    if take.speech_seconds < SLICE_SECONDS:
        raise CorpusError(
            f"{take.speech_seconds:.0f} s of speech were heard, a template needs {SLICE_SECONDS:g} "
            "s at least; nobody was enrolled: try again, or another --device"
        )
    if trouble := take.whole.trouble:
        say(f"monitor: note: the take was {trouble}; better take another one")
    when = datetime.now().astimezone().strftime("%Y-%m-%dT%H%M%S")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"microphone-{when}.npz"
        take.write(path)
        made = enrol(
            Corpus((Recording(speaker, f"microphone-{when}", path),), ()),
            features=names,
            seconds=seconds,
        )
    return replace(made, problems=(*made.problems, *problems))


@contextmanager
def _bar(take: LiveEnrolment, seconds: float) -> Iterator[Callable[[], None]]:
    """A bar of usable speech, with level and trouble; a line now and then without a terminal."""
    from monitor.sinks.console import PlainConsole

    console = PlainConsole(stderr=True)
    last = time.monotonic()
    if not console.is_terminal:

        def tell() -> None:
            nonlocal last
            if time.monotonic() - last >= LINE_SECONDS:
                last = time.monotonic()
                say(f"{take.speech_seconds:.0f} of {seconds:g} s; {_state(take)}")

        yield tell
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("speech"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f} of {task.total:g} s"),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        task = progress.add_task("", total=seconds)

        def draw() -> None:
            nonlocal last
            if time.monotonic() - last >= DRAW_SECONDS:
                last = time.monotonic()
                done = min(take.speech_seconds, seconds)
                progress.update(task, completed=done, description=_state(take))
                progress.refresh()

        yield draw
        progress.update(task, completed=min(take.speech_seconds, seconds), refresh=True)


def _state(take: LiveEnrolment) -> str:
    recent = take.recent
    return recent.trouble or f"{recent.level_decibels:.0f} dB, good"
