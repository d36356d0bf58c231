"""Option types and checks that several commands share."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from monitor.errors import Argument, Message, MonitorError
from monitor.phrases import clock_time
from monitor.safe_text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from monitor.jobs import Jobs

# ------------------------------------------------------------------------------------------ saying
# Lines for people, which names of files and people cannot make steer the terminal.


def say(text: str, *, err: bool = True) -> None:
    """Print lines.

    Args:
        text: one line or more.
        err: to stderr; stdout is for data, and for commands that have nothing but words to give.
    """
    click.echo("\n".join(printable(line) for line in text.split("\n")), err=err)


_OPTIONS = {
    "allow_overlap": "--allow-overlap",
    "alarms": "",
    "among": "--among",
    "features": "--features",
    "ledger": "--ledger",
    "on_change": "--on-change",
    "replace": "--replace",
    "resume": "--resume",
    "speaker_in_transcript": "--speaker-in-transcript",
    "start_seconds": "--start",
    "transcript": "--transcript",
    "watch": "--watch",
    "words": "give them with --transcript FILE",
}
"""Arguments that messages of the library name, and what the command line says instead."""


def in_options(message: str | MonitorError) -> str:
    """A message with options where it names arguments.

    Examples:
        >>> from monitor.errors import Argument, Message
        >>> replace = Argument("replace", "True", "LogFile(path, replace=True)")
        >>> start = Argument("start_seconds", "4")
        >>> in_options(Message("overwrite it (", replace, "), or begin at ", start))
        'overwrite it (--replace), or begin at --start 4'
    """
    text = message.args[0] if isinstance(message, MonitorError) and message.args else message
    return text.written(_option) if isinstance(text, Message) else str(message)


def _option(argument: Argument) -> str:
    option, value = _OPTIONS[argument.name], argument.value.strip('"')
    return f"{option} {value}" if value not in ("", "True") else option


# ----------------------------------------------------------------------------------------- console
# The console that tables are printed to.

_LEAST = 40


def made_console(wide: int) -> Console:
    """Stdout as wide as its terminal or as COLUMNS says; ``wide`` where neither tells."""
    from monitor.sinks.console import PlainConsole

    console = PlainConsole(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        columns = os.environ.get("COLUMNS", "")
        told = columns.isdecimal() and int(columns)
        console.width = max(_LEAST, int(columns)) if told else wide
    return console


# ---------------------------------------------------------------------------------------- progress
# A progress bar on stderr where it is a terminal; a quiet line now and then where it is not.

_QUIET_SECONDS = 10.0


@contextmanager
def progress_over(
    total: float, what: str, unit: str = ""
) -> Iterator[Callable[[str, float], None]]:
    """Yields a function to call after each step: what was just done, and how much of it.

    Args:
        total: steps, or an amount of ``unit``.
        what: is being done.
        unit: of what is counted, where it is not steps.
    """
    from monitor.sinks.console import PlainConsole

    console = PlainConsole(stderr=True)
    if not console.is_terminal:
        began = last = time.monotonic()
        done = 0.0

        def step(label: str, amount: float) -> None:
            nonlocal done, last
            done += amount
            if time.monotonic() - last >= _QUIET_SECONDS:
                last = time.monotonic()
                more = f" ({label})" if label else ""
                left = (last - began) * max(total - done, 0.0) / done if done else 0.0
                ready = f"{done:.0f} of {total:.0f} {unit}".strip()
                say(f"{what}: {ready}, about {clock_time(left)} left{more}")

        yield step
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(what),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}" + (unit and f" {unit}")),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),  # a speaker may be called [/]
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)

        def draw(label: str, amount: float) -> None:
            progress.update(task, advance=amount, description=label)

        yield draw


# -------------------------------------------------------------------------------------------- jobs
# The options --jobs and --scheduler: who computes features, processes or workers elsewhere.

WORTHWHILE_SECONDS = 60.0
"""Of audio for each process: it takes a second or two to start."""
UNKNOWN_SECONDS = 60.0
"""For the progress: of a recording whose header is silent."""

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes that listen; the result does not depend on it. [default: one a core, where "
    "there are minutes of audio]",
)


_ASKED, _OPENED = f"{__name__}.asked", f"{__name__}.opened"
"""Of a command's context: the place of a scheduler, and the cluster once it was needed."""


def _note(context: click.Context, _: click.Parameter, where: str | None) -> None:
    context.meta[_ASKED] = where


scheduler_option = click.option(
    "--scheduler",
    metavar="tcp://HOST:PORT|local",
    expose_value=False,
    callback=_note,
    help="Let the workers of a dask scheduler listen (docs/cluster.md), or those of a local "
    "cluster, local:K of K processes; the result does not depend on it. Needs the extra 'cluster'.",
)
"""For commands that map over recordings: `processes`, `processes_for` and `scheduled` heed it."""


def scheduled(jobs: int | None) -> Jobs | None:
    """The workers of ``--scheduler``, for the rest of the command; else ``--jobs`` as it was given.

    Raises:
        UsageError: both were given, or the extra is not installed.
        MonitorError: the scheduler cannot be reached.
    """
    context = click.get_current_context(silent=True)
    where = None if context is None else context.meta.get(_ASKED)
    if context is None or where is None:
        return jobs
    from monitor.cluster import Cluster
    from monitor.errors import UsageError

    if jobs is not None:
        raise UsageError("--jobs is for processes of this machine: leave it out with --scheduler")
    if _OPENED not in context.meta:
        cluster = Cluster(where, lambda line: say(f"monitor: {line}"))
        context.meta[_OPENED] = context.with_resource(cluster)
    opened: Jobs = context.meta[_OPENED]
    return opened


def for_workers(path: Path) -> Path:
    """A path as the workers of ``--scheduler`` can use it, who have other working folders."""
    from monitor.jobs import absolute

    asked = click.get_current_context().meta.get(_ASKED) is not None
    return absolute(path) if asked else path


def check_not_scheduled(cure: str) -> None:
    """Refuse ``--scheduler`` where there is only one thing to do.

    Args:
        cure: what would make more of it.

    Raises:
        UsageError: it was given.
    """
    from monitor.errors import UsageError

    if click.get_current_context().meta.get(_ASKED) is not None:
        raise UsageError(f"--scheduler is for many recordings: {cure}")


def processes(jobs: int | None, recordings: Sequence[Path]) -> Jobs:
    """What ``--scheduler`` or ``--jobs`` says, else as many processes as are worth it."""
    return processes_for(jobs, map(seconds_of, recordings))


def processes_for(jobs: int | None, lengths: Iterable[float | None]) -> Jobs:
    """As `processes`, by the lengths of the recordings; None where a header does not say."""
    from monitor.jobs import worthwhile

    asked = scheduled(jobs)
    if asked is not None:
        return asked
    return worthwhile((seconds or 0.0 for seconds in lengths), WORTHWHILE_SECONDS)


def seconds_of(path: Path) -> float | None:
    """Of audio, by the header; None where it does not say, or of ready-made frames."""
    from monitor.errors import MonitorError
    from monitor.sources.file import File
    from monitor.sources.registry import is_frames

    if is_frames(path):
        return None
    try:
        return File(path).seconds
    except MonitorError:  # told, with the reason, when it is to be heard
        return None


# ----------------------------------------------------------------------------------------- trained
# The option --trained: on whose speech the network of a feature was trained.

trained_option = click.option(
    "--trained",
    "trainers",
    multiple=True,
    metavar="FEATURE=FILE",
    help="A list of names, one a line: those on whose speech the network of a feature was trained, "
    "such as your --speaker-model. It knows their voices better than others', so that no test of "
    "theirs counts for it.",
)


def trained_by_feature(given: Sequence[str], speakers: Collection[str]) -> dict[str, set[str]]:
    """Names by feature, from FEATURE=FILE.

    Raises:
        UsageError: it is not of that form, there is no such list, or nobody on it is a speaker of
            the corpus: it would leave nobody out, and comfort falsely.
    """
    from monitor.errors import UsageError
    from monitor.features.registry import FEATURES, MODEL

    found: dict[str, set[str]] = {}
    for text in given:
        name, _, path = text.partition("=")
        if not (name and path):
            raise UsageError(f"--trained {text!r} must be FEATURE=FILE, a list of names")
        if name == "speaker":
            name = next((each for each in FEATURES if each.startswith(MODEL)), name)
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise UsageError(f"--trained {path}: cannot be read ({reason})") from None
        names = {line.strip() for line in lines}
        if not names.intersection(speakers):
            raise UsageError(
                f"--trained {path}: nobody on the list is a speaker of the corpus; check the "
                "names, or leave it out"
            )
        found.setdefault(name, set()).update(names)
    return found


# ----------------------------------------------------------------------------------------- options
# Option types and checks that several commands share.

_Command = TypeVar("_Command", bound=Callable[..., Any])

MOST_REPLICATES = 100_000
"""Resamples beyond that take all memory and change no digit that is shown."""

_SHORTEST, _LONGEST = 1e-3, 1e9
"""Seconds: a millisecond and thirty years. What is beyond is a mistake, and hard to reckon with."""


if TYPE_CHECKING:
    _Type: TypeAlias = click.ParamType[Any]
else:
    _Type = click.ParamType  # generic only from click 8.4 on


class Names(_Type):
    """A comma-separated list of names."""

    name = "NAME[,NAME]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The names, as a tuple."""
        if not isinstance(value, str):
            return value
        names = tuple(part.strip() for part in value.split(",") if part.strip())
        return names or self.fail("name at least one", param, ctx)


class Features(Names):
    """Names of features; ``speaker`` is the network of ``--speaker-model``."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The names, as a tuple."""
        names = super().convert(value, param, ctx)
        if "speaker" not in names:
            return names
        from monitor.features.registry import FEATURES, MODEL

        model = [name for name in FEATURES if name.startswith(MODEL)]
        if not model:
            self.fail("speaker needs its network: --speaker-model FILE.onnx", param, ctx)
        return tuple(model[0] if name == "speaker" else name for name in names)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        """Features that were not named yet, behind those that were."""
        from click.shell_completion import CompletionItem

        from monitor.features.registry import FEATURES

        before, comma, last = incomplete.rpartition(",")
        left = (name for name in FEATURES if name not in before.split(","))
        return [CompletionItem(before + comma + name) for name in left if name.startswith(last)]


class TextFile(_Type):
    """Where a text goes: a new file, or standard output (``-``), which an option alone stands for.

    Args:
        suffix: of the file; by it the name that follows the option is told from an argument.
    """

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix
        self.name = f"[FILE{suffix}]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """``"-"`` or a path."""
        if value in ("-", "true", "True", True):  # true: of a configuration
            return "-"
        if value in ("false", "False", False):
            return None
        if isinstance(value, str) and not value.lower().endswith(self.suffix):
            self.fail(f"{value!r}: let the name end in {self.suffix}", param, ctx)
        return Path(value)


class WithTextFiles(click.Command):
    """A command whose options of type `TextFile` may stand alone, before any argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, once every such option has its value."""
        made: list[str] = []
        suffixes = {
            word: each.type.suffix
            for each in self.params
            if isinstance(each.type, TextFile)
            for word in each.opts
        }
        for place, word in enumerate(args):
            after = args[place + 1] if place + 1 < len(args) else ""
            alone = word in suffixes and not (
                after == "-" or after.lower().endswith(suffixes[word])
            )
            made.append(f"{word}=-" if alone else word)
        return super().parse_args(ctx, made)


class Numbers(_Type):
    """A comma-separated list of positive numbers, returned in increasing order."""

    name = "S[,S]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The numbers, as a tuple."""
        if not isinstance(value, str):
            return value
        try:
            numbers = sorted({float(part) for part in value.split(",")})
        except ValueError:
            self.fail(f"{value!r} is not a list of seconds such as 1,10,60", param, ctx)
        if not all(_SHORTEST <= number <= _LONGEST for number in numbers):
            self.fail(f"{value!r} must be positive seconds", param, ctx)
        return tuple(numbers)


class People(_Type):
    """Sizes of crowds, as 1e4,1e6; returned in increasing order."""

    name = "M[,M]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The numbers of people, as a tuple of whole numbers."""
        if not isinstance(value, str):
            return value
        from monitor.crowds import sizes
        from monitor.errors import UsageError

        try:
            return sizes([float(part) for part in value.split(",")])
        except UsageError as error:
            self.fail(str(error), param, ctx)
        except ValueError:
            self.fail(f"{value!r} is not a list of people such as 1e4,1e6", param, ctx)


class Seconds(_Type):
    """Seconds as 90, 90s, 1.5m, 2h or 1:30."""

    name = "SECONDS"
    _UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}  # noqa: RUF012

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The seconds, as a float of zero or more."""
        if not isinstance(value, str):
            return value
        text = value.strip()
        try:
            if ":" in text:
                parts = [float(part) for part in text.split(":")]
                if len(parts) > 3 or not all(0 <= part < 60 for part in parts[1:]):
                    raise ValueError
                total = sum(60.0**i * part for i, part in enumerate(reversed(parts)))
            else:
                unit = self._UNITS.get(text[-1:])
                total = float(text[:-1]) * unit if unit else float(text)
        except ValueError:
            total = math.inf
        if total and not _SHORTEST <= total <= _LONGEST:
            self.fail(f"{value!r} is not a length such as 90, 1.5m or 1:30", param, ctx)
        return total


class NumberOfBits(_Type):
    """A positive number of bits, as 8 or 8bits."""

    name = "BITS"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The bits."""
        if not isinstance(value, str):
            return value
        try:
            bits = float(value.strip().removesuffix("s").removesuffix("bit"))
        except ValueError:
            bits = math.nan
        if not 0 < bits < math.inf:
            self.fail(f"{value!r} is not a number of bits such as 8 or 8bits", param, ctx)
        return bits


class Share(_Type):
    """A share of one, as 5% or 0.05."""

    name = "SHARE"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The share, over 0 and under 1."""
        if not isinstance(value, str):
            return value
        text = value.strip()
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            share = math.nan
        if not 0 < share < 1:
            self.fail(f"{value!r} is not a share such as 5% or 0.05", param, ctx)
        return share


class Speed(_Type):
    """How fast: max, or so many times real time."""

    name = "max|K"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The factor; infinity for max."""
        if not isinstance(value, str):
            return value
        if value == "max":
            return math.inf
        try:
            factor = float(value)
        except ValueError:
            factor = 0.0
        if not 0.01 <= factor < math.inf:
            self.fail(f"{value!r} is neither max nor a number such as 10, from 0.01", param, ctx)
        return factor


class Raw(_Type):
    """Headerless PCM on standard input: RATE:CHANNELS:ENCODING."""

    name = "RATE:CHANNELS:ENCODING"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The three parts."""
        if not isinstance(value, str):
            return value
        try:
            rate, channels, encoding = value.split(":")
            return int(rate), int(channels), encoding
        except ValueError:
            self.fail(f"{value!r} is not like 16000:1:s16le", param, ctx)


@contextmanager
def environment(name: str, value: str) -> Iterator[None]:
    """A variable of the environment, for the time of a block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _use_ecapa(context: click.Context, _: click.Parameter, folder: str | None) -> None:
    if folder is not None:
        context.with_resource(environment("MONITOR_ECAPA", folder))


ecapa_option = click.option(
    "--ecapa",
    metavar="DIR|FILE",
    expose_value=False,
    callback=_use_ecapa,
    help="A folder with SpeechBrain's spkrec-ecapa-voxceleb, or the file exported from it, for the "
    "feature identity. [default: MONITOR_ECAPA, else the model hub]",
)
"""Says for the time of a command what the environment's ``MONITOR_ECAPA`` says for all."""


def _use_model(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is not None:
        from monitor.features.ecapa import offered_model

        context.with_resource(offered_model(path))


speaker_model_option = click.option(
    "--speaker-model",
    metavar="FILE.onnx",
    type=click.Path(path_type=Path),
    expose_value=False,
    is_eager=True,  # before --features, which may name it
    callback=_use_model,
    help="A speaker-embedding network of your own, as the feature speaker: of sound, or of 80 log "
    "mel energies (WeSpeaker, 3D-Speaker, sherpa-onnx). Takes the extra 'onnx'.",
)
"""Makes the network one of the features for the time of a command."""


among_option = click.option(
    "--among",
    type=People(),
    help="Say what the voice is worth among so many people, such as 1e4,1e6: a town, a city; the "
    "largest is told in the first line. [default: the N enrolled, and a million]",
)
"""For commands that hear a stream: their ``among``."""


def grouped(
    name: str,
    make: Callable[..., Any],
    options: Sequence[Callable[[Any], Any]],
    *,
    further: Sequence[str] = (),
) -> Callable[[_Command], _Command]:
    """Options that a command gets as one value.

    Args:
        name: of the command's argument.
        make: makes the value; its parameters are called as the options' are.
        options: in the order in which the help shows them.
        further: parameters of options that it takes as keywords of any name.
    """
    named = signature(make).parameters.values()
    fields = (*(each.name for each in named if each.kind != each.VAR_KEYWORD), *further)

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def wrapped(*args: Any, **given: Any) -> Any:
            value = make(**{field: given.pop(field) for field in fields})
            return command(*args, **{name: value}, **given)

        return with_options(wrapped, options)  # type: ignore[no-any-return]

    return decorate


def with_options(command: Any, options: Sequence[Callable[[Any], Any]]) -> Any:
    """The command with these options, in this order in its help."""
    for option in reversed(options):
        command = option(command)
    return command


def check_output(path: Path) -> None:
    """Find out before the long work whether there is a place to write its result to.

    Raises:
        StoreError: the folder does not exist or may not be written to, or a folder is in the way.
    """
    from monitor.errors import StoreError

    if path.is_dir():
        reason = "it is a folder; name a file in it"
    elif not path.parent.is_dir():
        reason = f"there is no folder {path.parent}; make it first"
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        reason = f"no permission in {path.parent.resolve()}; choose another folder"
    else:
        return
    raise StoreError(f"{path}: cannot be written: {reason}")


def check_new(path: Path, option: str) -> None:
    """As `check_output`, for a file that must not be there yet.

    Raises:
        UsageError: it is.
    """
    from monitor.errors import UsageError

    if path.exists():
        raise UsageError(f"{option} {path} exists; name another file, or remove it")
    check_output(path)


def unlocked(path: Path | str) -> str:
    """What to say where a file could not be locked."""
    return f"monitor: note: the file system of {path} knows no locks; let nothing else write to it"
