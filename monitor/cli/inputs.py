"""Opens what a command is asked to hear, and says what is about to be heard."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monitor.errors import CorpusError, SourceError, UsageError
from monitor.phrases import plural
from monitor.safe_text import file_name

if TYPE_CHECKING:
    from monitor.corpus import Corpus
    from monitor.features.registry import FeatureSetup
    from monitor.population.population import Population
    from monitor.protocols import Source

# --- Opens what a command is asked to hear, and checks it before the long work.


def open_all(
    recordings: Sequence[str],
    raw: tuple[int, int, str] | None,
    start: float,
    end: float | None,
) -> list[Source]:
    """Open every recording, and check that the options go with them."""
    from monitor.protocols import LiveSource
    from monitor.sources.registry import open_source

    if len(recordings) > 1 and (start or end is not None):
        raise UsageError("--start and --end go with one recording")
    if recordings.count("-") > 1:
        raise UsageError("standard input (-) can be heard once")
    for name in recordings:
        if Path(name).is_dir():
            raise SourceError(
                f"{file_name(name)} is a folder; give a recording, or measure each in it: --each "
                "--summary out.csv"
            )
    if "-" in recordings and sys.stdin.isatty():
        raise UsageError("- is standard input: pipe a WAV into it, or name a recording")
    sources = [
        open_source(name, raw=raw, start_seconds=start or None, end_seconds=end)
        for name in recordings
    ]
    for source in sources:
        if isinstance(source, LiveSource):
            raise UsageError(f"{source.label} is heard live: use monitor listen")
    return sources


def load_speaker_model(features: Iterable[str] | None, recordings: Iterable[str | Path]) -> None:
    """Load the network of ``--speaker-model``, if its feature is wanted of any audio."""
    from monitor.cli.options import feature_setup
    from monitor.features.registry import make
    from monitor.kinds import SPEAKER_PREFIX

    wanted = [name for name in features or () if name.startswith(SPEAKER_PREFIX)]
    if wanted and _any_audio(recordings):
        make(wanted, feature_setup())


def _any_audio(recordings: Iterable[str | Path]) -> bool:
    from monitor.sources.registry import is_frames

    return not all(map(is_frames, recordings))


def check_model(name: str, population: Population, store: str | Path | None) -> None:
    """Refuse a network of ``--speaker-model`` that did not make the templates.

    Args:
        name: of its feature; empty where there is none.
        population: of the templates.
        store: where they are.
    """
    from monitor.kinds import SPEAKER_PREFIX

    if name and name not in population.features:
        theirs = [
            name_there
            for name_there in population.features
            if name_there.startswith(SPEAKER_PREFIX)
        ]
        difference = (
            f"templates of another network, {theirs[0]}" if theirs else "no templates of it"
        )
        whose = "the shipped population" if store in (None, "reference") else f"{store}"
        raise UsageError(
            f"--speaker-model is {name}, and {whose} has {difference}: enrol everybody with one "
            "network (monitor enrol --speaker-model)"
        )


# --- What is about to be heard, before the long work: who, how many sessions, how many minutes.

MOST_ROWS = 20
_NAME_CELLS = 32
_SAMPLE_SECONDS = 5.0
_SPEECH, _FEWEST, _MOST_SETS = 0.8, 10, 3
_CELL_SECONDS, _SPEAKER_SECONDS, _READING_SECONDS = 0.05, 0.0025, 0.00003
"""Of one core: for a cell of a set of features, for each speaker in it, and for a reading."""
_SURE = 2.0
"""Times as long, or as short, as reckoned."""


def plan_of(corpus: Corpus, more: str = "") -> Iterator[str]:
    """Yield the plan, a line each; of many speakers the first few."""
    from rich.cells import cell_len, set_cell_size

    sessions = {name: corpus.sessions(name) for name in corpus.speakers[:MOST_ROWS]}
    count = plural(len(corpus.speakers), "speaker")
    by = f", {corpus.identified_by}" if corpus.identified_by else ""
    yield f"plan: {count}{by}{more}"
    width = min(max(map(cell_len, ["speaker", *sessions])), _NAME_CELLS)
    yield f"  {'speaker':{width}}  sessions  files  minutes"
    for name, of in sessions.items():
        files = [file for session in of.values() for file in session]
        minutes = _minutes(files)
        yield (
            f"  {set_cell_size(name, width)}  {len(of):8}  {len(files):5}  "
            f"{'?' if minutes is None else format(minutes, '.1f'):>7}"
        )
    if left := len(corpus.speakers) - len(sessions):
        yield f"  and {left} more"


def check_two(corpus: Corpus) -> None:
    """Refuse a single speaker before anything is heard."""
    if len(corpus.speakers) < 2:
        raise CorpusError(
            f"{plural(len(corpus.speakers), 'speaker')}, and nobody to be taken for: "
            "give recordings of two or more"
        )


def calibration_minutes(
    corpus: Corpus,
    features: Sequence[str] | None,
    lengths: Sequence[float],
    template_lengths: Sequence[float],
    processes: int,
    *,
    streams: bool,
    setup: FeatureSetup,
) -> str:
    """Estimate how long a calibration takes, from a few seconds of audio and the work to do.

    A range: how much of the audio is speech, and what else the machine does, nobody knows before.
    """
    from monitor.errors import MonitorError
    from monitor.jobs import cores
    from monitor.training.feature_extraction import Listener

    sessions: dict[str, list[float]] = {}
    for name in corpus.speakers:
        minutes_each = [_minutes(files) for files in corpus.sessions(name).values()]
        if any(minutes is None for minutes in minutes_each):
            return "how long it takes cannot be told: a recording does not say how long it is"
        sessions[name] = [60 * _SPEECH * minutes for minutes in minutes_each if minutes is not None]
    began, seconds_heard, listener = time.monotonic(), 0.0, Listener(features, setup=setup)
    for recording in corpus:
        try:
            frames = listener.extract(recording.path, speech_seconds=_SAMPLE_SECONDS)
        except MonitorError:  # told when it is to be heard
            continue
        if not seconds_heard:  # the first loads the networks
            began = time.monotonic()
            seconds_heard = 1e-9
            continue
        seconds_heard = frames.audio_seconds_at(frames.speech_ticks) if frames.speech_ticks else 0.0
        break
    pace = max(time.monotonic() - began, 1e-3) / max(seconds_heard, 1.0)
    audio = sum(map(sum, sessions.values())) / _SPEECH
    names = list(listener.specs)
    sets = 2 ** len(names) - 1 if len(names) <= _MOST_SETS else len(names) + 1
    longest = [max(minutes_each) for minutes_each in sessions.values()]
    rest = [sum(minutes_each) - max(minutes_each) for minutes_each in sessions.values()]
    cells = sum(
        (sum(x >= test + template for x in longest) >= _FEWEST)
        + (sum(x >= template and y >= test for x, y in zip(longest, rest, strict=True)) >= _FEWEST)
        for test in lengths
        for template in template_lengths
    )
    fitting = cells * sets * (_CELL_SECONDS + _SPEAKER_SECONDS * len(sessions)) / math.sqrt(cores())
    others = 0.0
    if streams:
        sampled = sorted(
            (sum(minutes_each) / _SPEECH for minutes_each in sessions.values()), reverse=True
        )[:100]
        others = (
            sum(min(minutes_each, 600.0) for minutes_each in sampled)
            * 2
            * sets
            * _READING_SECONDS
            / cores()
        )
    listening = audio * pace / processes
    total = listening + fitting + others
    parts = {
        "listening": listening,
        "fitting rank models": fitting,
        "hearing each as somebody else": others,
    }
    shares = [f"{name} {100 * part / total:.0f} %" for name, part in parts.items() if part]
    return f"this takes {_between(total / _SURE, total * _SURE)}: {', '.join(shares)}"


def _between(low: float, high: float) -> str:
    """Format a range of seconds, in minutes."""
    if high < 60:
        return "less than a minute"
    if low < 60:
        return f"up to {math.ceil(high / 60)} min"
    return f"about {math.floor(low / 60)} to {math.ceil(high / 60)} min"


def _minutes(files: Iterable[Path]) -> float | None:
    """Sum the minutes of audio by the headers; None where one does not say."""
    from monitor.errors import MonitorError
    from monitor.sources.registry import open_source

    total = 0.0
    for file in files:
        try:
            seconds = getattr(open_source(file), "seconds", None)
        except MonitorError:  # told, with the reason, when it is to be heard
            seconds = None
        if seconds is None:
            return None
        total += seconds
    return total / 60


# --- For commands that hear a microphone: the option --device, Ctrl-C, and silenced libraries.

device_option = click.option(
    "--device",
    metavar="N|NAME",
    help="The audio input: its number, its name or a part of it (`monitor doctor --devices`). "
    "[default: the system's]",
)


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Send what ALSA and PortAudio write to file descriptor 2, over any view, nowhere."""
    try:
        ours = sys.stderr.fileno() == 2
    except (OSError, ValueError):  # no file at all
        ours = False
    if not ours:
        yield
        return
    before = sys.stderr
    before.flush()
    copy = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    with open(copy, "w", buffering=1, encoding=before.encoding, errors="replace") as stream:  # noqa: PTH123
        sys.stderr = stream
        try:
            yield
        finally:
            sys.stderr = before
            stream.flush()
            os.dup2(copy, 2)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` at Ctrl-C or a polite kill: a normal end. The second one interrupts."""

    def handle(number: int, _frame: Any) -> None:
        signal.signal(number, before[signal.Signals(number)])
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
