"""Option types and checks that several commands share."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click

from monitor.cli.help import HelpCommand, Setting
from monitor.errors import Argument, Message, MonitorError, StoreError, UsageError
from monitor.jobs import RemainingTime
from monitor.log_lines import format_line
from monitor.safe_text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from monitor.datasets.rows import Columns
    from monitor.features.registry import FeatureSetup
    from monitor.jobs import Jobs
    from monitor.virtual_files import Readable


def say(*texts: str, err: bool = True, level: str = "info") -> None:
    """Print lines for people, in which no name can steer the terminal.

    Lines on standard error have the form of ``monitor --log``, and a level of `format_line`.
    """
    for text in texts:
        if not err:
            click.echo("\n".join(printable(line) for line in text.split("\n")))
        elif (line := format_line(text, level)) is not None:
            click.echo(line, err=True)


NOTE = "monitor: note:"  # prefix of lines that users should read, and that change no exit status


def note(*texts: object) -> None:
    """Print notes on standard error."""
    say(*(f"{NOTE} {text}" for text in texts), level="warning")


_OPTIONS = {
    "allow_idle_alerts": "--allow-idle-alerts",
    "allow_overlap": "allow-overlap = true in --config FILE",
    "alarms": "",
    "among": "--among",
    "features": "--features",
    "ledger": "--ledger",
    "on_change": "on-change",
    "replace": "--replace",
    "resume": "--resume",
    "speaker_in_transcript": "--speaker-in-transcript",
    "start_seconds": "--part",
    "transcript": "--transcript",
    "watch": "--watch",
    "words": "give them with --transcript FILE",
}
"""Arguments named in messages of the library, and the options that replace them."""


def in_options(message: str | MonitorError) -> str:
    """Format a message with options in place of the arguments that it names.

    Examples:
        >>> from monitor.errors import Argument, Message
        >>> replace = Argument("replace", "True", "LogFile(path, replace=True)")
        >>> start = Argument("start_seconds", "4")
        >>> in_options(Message("overwrite it (", replace, "), or begin at ", start))
        'overwrite it (--replace), or begin at --part 4'
    """
    text = message.args[0] if isinstance(message, MonitorError) and message.args else message

    def render(argument: Argument) -> str:
        option, value = _OPTIONS[argument.name], argument.value.strip('"')
        return f"{option} {value}" if value not in ("", "True") else option

    return text.render(render) if isinstance(text, Message) else str(message)


def made_console(wide: int) -> Console:
    """Return a console for stdout as wide as its terminal or COLUMNS; ``wide`` without either."""
    from monitor.sinks.console import PlainConsole

    console = PlainConsole(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        columns = os.environ.get("COLUMNS", "")
        console.width = max(40, int(columns)) if columns.isdecimal() and int(columns) else wide
    return console


_QUIET_SECONDS = 10.0


@contextmanager
def progress_over(
    total: float, what: str, unit: str = ""
) -> Iterator[Callable[[str, float], None]]:
    """Yields a function to call after each step, with its label and the amount done.

    Progress is a bar on stderr if that is a terminal, otherwise a line every 10 s.
    """
    from monitor.sinks.console import PlainConsole

    console = PlainConsole(stderr=True)
    last, done = time.monotonic(), 0.0
    remaining = RemainingTime(total, last)
    if not console.is_terminal:

        def step(label: str, amount: float) -> None:
            nonlocal last, done
            done += amount
            now = time.monotonic()
            remaining.add(amount, now)
            if now - last >= _QUIET_SECONDS:
                last = now
                more = f" ({label})" if label else ""
                ready = f"{what}: {done:.0f} of {total:.0f} {unit}".strip()
                say(", ".join(filter(None, (ready, remaining.describe()))) + more)

        yield step
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}" + (unit and f" {unit}")),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}", markup=False),  # a speaker may be called [/]
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total, left="")

        def advance(label: str, amount: float) -> None:
            remaining.add(amount, time.monotonic())
            progress.update(task, advance=amount, description=label, left=remaining.describe())

        yield advance


class FiniteRange(click.FloatRange):
    """A finite number, possibly in a range. A number of 400 digits counts as infinite."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert a text to a number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{str(value)[:20]} is too large, or not a number", param, ctx)
        return number


_Decorator: TypeAlias = Callable[[Any], Any]
_TYPES = {"Path": click.Path(path_type=Path), "int": click.INT, "float": FiniteRange()}
_RANGES = {"int": click.IntRange, "float": FiniteRange}


def option(spec: str, help: str, *, minimum: Any = None, maximum: Any = None, **more: Any) -> Any:  # noqa: A002
    """Declare a field as an option. ``spec`` is its form in ``--help``: ``"-o, --output FILE"``.

    The annotation is its type, and ``minimum`` and ``maximum`` bound a number. ``more`` is for
    `click.option`; a ``default`` is shown unless ``more`` hides it.
    """

    def declare(name: str, annotation: str) -> _Decorator:
        names = re.findall(r"(?:^|(?<=, ))-[^ ,]+", spec)
        metavar = spec.removeprefix(", ".join(names)).strip() or None
        kind, several = _kind_of(annotation), annotation.startswith("tuple[")
        attributes = {"metavar": metavar, "help": help, **more}
        if kind == "bool":
            attributes |= {} if "/" in spec else {"is_flag": True}
        elif "type" not in attributes and "flag_value" not in attributes:
            bounded = (minimum, maximum) != (None, None)
            attributes["type"] = _RANGES[kind](minimum, maximum) if bounded else _TYPES.get(kind)
            attributes.setdefault("multiple", several and "nargs" not in attributes)
        if "default" in attributes:
            attributes.setdefault("show_default", True)
        return click.option(*names, name, **attributes)

    return field(metadata={"declare": declare})


def setting(spec: str, help: str, **more: Any) -> Any:  # noqa: A002
    """Declare a field as a `Setting`, as `option` does; ``spec`` has no dashes."""
    return option(f"--{spec}", help, cls=Setting, **more)


def argument(metavar: str, **more: Any) -> Any:
    """Declare a field as an argument; ``more`` is for `click.argument`."""

    def declare(name: str, annotation: str) -> _Decorator:
        kind = _TYPES.get(_kind_of(annotation))
        return click.argument(name, **{"type": kind, "metavar": metavar, **more})

    return field(metadata={"declare": declare})


def shared(decorator: _Decorator) -> Any:
    """Declare a field as an option that several commands share."""
    return field(metadata={"declare": lambda _name, _annotation: decorator})


def group(of: type | OptionGroup, heading: str) -> Any:
    """Declare a field as a group of options, under a heading of ``--help``."""
    options = of if isinstance(of, OptionGroup) else OptionGroup.from_dataclass(of)
    headings = dict.fromkeys(options.headings, heading)
    return field(metadata={"group": replace(options, headings=headings)})


def _kind_of(annotation: str) -> str:
    return re.split(r"[ ,\]]", annotation.removeprefix("tuple["))[0]


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Options that ``make`` combines into one value, with ``headings`` by name."""

    decorators: Sequence[_Decorator]
    names: Collection[str]
    make: Callable[..., Any]
    headings: Mapping[str, str]

    @classmethod
    def from_dataclass(cls, declared: type) -> OptionGroup:
        """Make the options that a dataclass declares; a class variable is a decorator."""
        decorators: list[_Decorator] = []
        names: list[str] = []
        groups: dict[str, OptionGroup] = {}
        headings: dict[str, str] = {}
        declarations = {declaration.name: declaration.metadata for declaration in fields(declared)}
        hints: dict[str, str] = {}
        for base in reversed(declared.__mro__):
            hints |= vars(base).get("__annotations__", {})
        for name, annotation in hints.items():
            if name.startswith("_"):  # not an option
                continue
            if (metadata := declarations.get(name)) is None:
                decorators.append(getattr(declared, name))
            elif "group" in metadata:
                groups[name] = metadata["group"]
                decorators += groups[name].decorators
                names += groups[name].names
                headings |= groups[name].headings
                continue
            else:
                decorators.append(metadata["declare"](name, annotation))
                names.append(name)
            headings[name] = "Options"

        def make(**values: Any) -> Any:
            for name, subgroup in groups.items():
                values[name] = subgroup.make(**{key: values.pop(key) for key in subgroup.names})
            return declared(**values)

        return cls(decorators, names, make, headings)


def with_options(declared: type) -> Callable[[Callable[[Any], int]], Callable[..., int]]:
    """Give a command the options that a dataclass declares, as one argument."""
    options = OptionGroup.from_dataclass(declared)

    def decorate(command: Callable[[Any], int]) -> Callable[..., int]:
        @wraps(command)
        def wrapped(**values: Any) -> int:
            return command(options.make(**values))

        decorated: Callable[..., int] = wrapped
        vars(wrapped)["headings"] = options.headings
        for decorator in reversed(options.decorators):
            decorated = decorator(decorated)
        return decorated

    return decorate


def trained_by_feature(texts: Sequence[str], speakers: Collection[str]) -> dict[str, set[str]]:
    """Read FEATURE=FILE into names by feature."""
    trained: dict[str, set[str]] = {}
    for text in texts:
        name, _, path = text.partition("=")
        if not (name and path):
            raise UsageError(f"invalid --trained {text!r}: use FEATURE=FILE, a list of names")
        if name == "speaker":
            name = feature_setup().speaker or name
        names = set(read_lines(f"--trained {path}", path))
        if not names.intersection(speakers):
            raise UsageError(
                f"--trained {path}: no name on the list is a speaker of the corpus. Check the "
                "names, or leave it out."
            )
        trained.setdefault(name, set()).update(names)
    return trained


MOST_REPLICATES = 100_000  # more resamples would take all memory and change no digit shown

_SHORTEST, _LONGEST = 1e-3, 1e9
"""Limits of lengths in seconds: a millisecond and thirty years."""


if TYPE_CHECKING:
    _Type: TypeAlias = click.ParamType[Any]
else:
    _Type = click.ParamType  # generic only from click 8.4 on


class Text(_Type):
    """Text option that ``read`` parses; ``like`` is the message for a ValueError."""

    def __init__(self, name: str, read: Callable[[str], Any], like: str = "") -> None:
        self.name, self.read, self._like = name, read, like

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse a text; other values are unchanged."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value.strip())
        except UsageError as error:
            self.fail(str(error), param, ctx)
        except ValueError as error:
            self.fail(str(error) if not self._like else f"{value!r} {self._like}", param, ctx)


def _read_names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError("name at least one")
    return names


Names = partial(Text, "NAME[,NAME]", _read_names)  # a comma-separated list of names


class Features(Text):
    """Names of features; ``speaker`` is the network of ``--speaker-model``."""

    def __init__(self) -> None:
        super().__init__("NAME[,NAME]", self._read)

    @staticmethod
    def _read(text: str) -> tuple[str, ...]:
        names = _read_names(text)
        model = feature_setup().speaker
        if "speaker" in names and not model:
            raise ValueError("speaker needs its network: --speaker-model FILE.onnx")
        return tuple(model if name == "speaker" else name for name in names)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        """Complete the last name with features that were not named before it."""
        from click.shell_completion import CompletionItem

        from monitor.features.registry import FEATURES

        before, comma, last = incomplete.rpartition(",")
        remaining = (name for name in FEATURES if name not in before.split(","))
        return [
            CompletionItem(before + comma + name) for name in remaining if name.startswith(last)
        ]


class TextFile(_Type):
    """Destination of a text: a new file, or standard output (``-``) if no name is given."""

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix
        self.name = f"[FILE{suffix}]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return ``"-"`` or a path; None for false."""
        if value in ("-", "true", "True", True):  # true is from --config
            return "-"
        if value in ("false", "False", False):
            return None
        if isinstance(value, str) and not value.lower().endswith(self.suffix):
            self.fail(f"{value!r}: let the name end in {self.suffix}", param, ctx)
        return Path(value)


class WithTextFiles(HelpCommand):
    """A command with options of type `TextFile`, which may have no value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, with ``-`` as the value of options that have none."""
        words: list[str] = []
        suffixes = {
            word: param.type.suffix
            for param in self.params
            if isinstance(param.type, TextFile)
            for word in param.opts
        }
        for index, word in enumerate(args):
            after = args[index + 1] if index + 1 < len(args) else ""
            alone = word in suffixes and not (
                after == "-" or after.lower().endswith(suffixes[word])
            )
            words.append(f"{word}=-" if alone else word)
        return super().parse_args(ctx, words)


def _read_lengths(text: str) -> tuple[float, ...]:
    try:
        numbers = sorted({float(length) for length in text.split(",")})
    except ValueError:
        raise ValueError(f"{text!r} is not a list of seconds such as 1,10,60") from None
    if not all(_SHORTEST <= number <= _LONGEST for number in numbers):
        raise ValueError(f"{text!r} must be positive seconds")
    return tuple(numbers)


Numbers = partial(Text, "S[,S]", _read_lengths)
"""A comma-separated list of seconds, returned in increasing order."""


def _read_sizes(text: str) -> tuple[int, ...]:
    from monitor.crowds import sizes

    return sizes([float(size) for size in text.split(",")])


CrowdSizes = partial(Text, "M[,M]", _read_sizes, "is not a list of people such as 1e4,1e6")
"""Sizes of crowds, as 1e4,1e6; returned in increasing order."""


class RankModelFile(Text):
    """The name of a file of rank models; ``reference`` names those that ship."""

    def __init__(self) -> None:
        super().__init__("FILE|reference", self._read)

    @staticmethod
    def _read(text: str) -> str:
        from monitor.population.population import REFERENCE

        return str(REFERENCE) if text == "reference" else text

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        """Complete ``reference`` if it was begun, otherwise files."""
        from click.shell_completion import CompletionItem

        if incomplete and "reference".startswith(incomplete):
            return [CompletionItem("reference")]
        return [CompletionItem(incomplete, type="file")]


def _read_seconds(text: str) -> float:
    if ":" in text:
        components = [float(component) for component in text.split(":")]
        if len(components) > 3 or not all(0 <= component < 60 for component in components[1:]):
            raise ValueError
        total = sum(60.0**i * component for i, component in enumerate(reversed(components)))
    else:
        unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:])
        total = float(text[:-1]) * unit if unit else float(text)
    if total and not _SHORTEST <= total <= _LONGEST:
        raise ValueError
    return total


Seconds = partial(Text, "SECONDS", _read_seconds, "is not a length such as 90, 1.5m or 1:30")
"""Seconds, zero or more, as 90, 90s, 1.5m, 2h or 1:30."""


def _read_part(text: str) -> tuple[float, float | None]:
    start, dash, end = text.partition("-")
    return _read_seconds(start), _read_seconds(end) if dash else None


Part = partial(Text, "START[-END]", _read_part, "is not a part such as 90, 90-120 or 1:30-2:00")
"""Begin and end of a part in seconds; None for the recording's end."""


def _read_bits(text: str) -> float:
    bits = float(text.removesuffix("s").removesuffix("bit"))
    if not 0 < bits < math.inf:
        raise ValueError
    return bits


NumberOfBits = partial(Text, "BITS", _read_bits, "is not a number of bits such as 8 or 8bits")
"""A positive number of bits, as 8 or 8bits."""


class BudgetTerms(NamedTuple):
    """A budget in bits, and its period in seconds; None for no period."""

    bits: float
    period_seconds: float | None


def _read_budget(text: str) -> BudgetTerms:
    bits, slash, period = text.partition("/")
    if not slash:
        return BudgetTerms(_read_bits(bits), None)
    unit = {"h": 3600.0, "d": 86_400.0, "w": 604_800.0}.get(period[-1:], 0.0)
    seconds = float(period[:-1]) * unit
    if not 60.0 <= seconds <= 1e10:
        raise ValueError
    return BudgetTerms(_read_bits(bits), seconds)


PeriodicBits = partial(Text, "BITS[/30d]", _read_budget, "is not a budget such as 8bits or 8/30d")
"""A positive number of bits, or one for a period: 8bits/30d, 8/12h or 8/4w."""


def _read_share(text: str) -> float:
    fraction = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 < fraction < 1:
        raise ValueError
    return fraction


Share = partial(Text, "SHARE", _read_share, "is not a rate such as 5% or 0.05")
"""A fraction over 0 and under 1, as 5% or 0.05."""


def _read_speed(text: str) -> float:
    factor = math.inf if text == "max" else float(text)
    if text != "max" and not 0.01 <= factor < math.inf:
        raise ValueError
    return factor


Speed = partial(
    Text, "max|K", _read_speed, "is neither max nor a number of at least 0.01, such as 10"
)
"""Speed in multiples of real time, or max (infinity)."""


def _read_pcm(text: str) -> tuple[int, int, str]:
    rate, channels, encoding = text.split(":")
    return int(rate), int(channels), encoding


Raw = partial(Text, "RATE:CHANNELS:ENCODING", _read_pcm, "is not like 16000:1:s16le")
"""Headerless PCM on standard input."""


def _read_columns(text: str) -> Columns:
    from monitor.datasets.rows import Columns

    pairs = (pair.partition("=") for pair in text.split(",") if text)
    named = {role.strip(): name.strip() for role, _, name in pairs}
    if not all(named.values()) or named.keys() - {"speaker", "session", "audio"}:
        raise ValueError
    return Columns(**named)


columns_option = click.option(
    "--columns",
    type=Text(
        "ROLE=NAME[,ROLE=NAME]", _read_columns, "is not like speaker=NAME,session=NAME,audio=NAME"
    ),
    default="",
    help="Columns for speaker, session and audio in a Hugging Face data set, MANIFEST or lhotse "
    "manifest. [default: those of the format]",
)
trained_option = click.option(
    "--trained",
    "trainers",
    multiple=True,
    metavar="FEATURE=FILE",
    help="Speakers in the training data of FEATURE's network, one per line. Their tests do not "
    "count for it. Use it for your --speaker-model.",
)


_SETUP = "monitor.feature_setup"


def feature_setup() -> FeatureSetup:
    """Return the feature setup of this command, by the options read so far."""
    from monitor.features.registry import AS_ENVIRONMENT

    setup: FeatureSetup = click.get_current_context().meta.get(_SETUP, AS_ENVIRONMENT)
    return setup


def _use_model(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is not None:
        context.meta[_SETUP] = replace(feature_setup(), speaker_model=path)


speaker_model_option = click.option(
    "--speaker-model",
    metavar="FILE.onnx",
    type=click.Path(path_type=Path),
    expose_value=False,
    is_eager=True,  # before --features, which may name it
    callback=_use_model,
    help="Your own speaker-embedding network, used as the feature `speaker` (extra 'onnx'). It "
    "takes sound or log mel energies (WeSpeaker, 3D-Speaker, sherpa-onnx, ReDimNet).",
)


def doubles_setting() -> Any:
    """Declare the setting on people under two names."""
    return setting(
        "doubles",
        "Response to two names that sound like one person. `note` reports them, `merge` gives the "
        "speech of the second name to the first, and `drop` leaves the second out.",
        type=click.Choice(["note", "merge", "drop"]),
        default="note",
    )


def guides_setting() -> Any:
    """Declare the setting that draws more lines in a picture."""
    return setting(
        "guides",
        "Also draw averages, the closed-set figure, the range of other voices, single features and "
        "the bounds of a declared epsilon.",
    )


among_option = click.option(
    "--among",
    type=CrowdSizes(),
    help="Crowd sizes to report bits for, such as 1e4,1e6. The first line shows the largest. "
    "[default: the N enrolled, and a million]",
)


def _read_workers(text: str) -> int | str:
    if text.startswith("local") or "://" in text:
        return text
    number = int(text)
    if number < 1:
        raise ValueError
    return number


WorkerPlace = partial(
    Text, "N|ADDRESS", _read_workers, "is neither a number from 1 nor an address such as local:4"
)
"""A number of processes, or the address of a scheduler."""


WORTHWHILE_SECONDS = 60.0  # minimum audio per process, which takes a second or two to start
UNKNOWN_SECONDS = 60.0  # assumed length for the progress if a header gives none


@dataclass(slots=True)
class JobOptions:
    """Options of workers: processes of this machine, or workers of a dask scheduler."""

    jobs: int | str | None = option(
        "--jobs N|ADDRESS",
        "Worker processes, or a dask scheduler. Its address is tcp://HOST:PORT, or local:K for a "
        "cluster of K processes here (docs/cluster.md, extra 'cluster'). [default: one per core]",
        type=WorkerPlace(),
    )
    _opened: Jobs | None = field(default=None, init=False)

    @property
    def scheduler(self) -> str | None:
        """Address of the scheduler, if one was given."""
        return self.jobs if isinstance(self.jobs, str) else None

    @property
    def processes(self) -> int | None:
        """Number of processes on this machine, if one was given."""
        return None if isinstance(self.jobs, str) else self.jobs

    def requested(self) -> Jobs | None:
        """Return the number of processes, or the workers of a scheduler, opened for the command."""
        if not isinstance(self.jobs, str):
            return self.jobs
        if self._opened is None:
            from monitor.cluster import Cluster

            cluster = Cluster(self.jobs, lambda line: say(f"monitor: {line}"))
            self._opened = click.get_current_context().with_resource(cluster)
        return self._opened

    def for_recordings(self, recordings: Iterable[Readable]) -> Jobs:
        """Return the requested workers, otherwise as many processes as are worthwhile."""
        return self.for_lengths(map(seconds_of, recordings))

    def for_lengths(self, lengths: Iterable[float | None]) -> Jobs:
        """Return the workers for recordings of these lengths in seconds, None if unknown."""
        requested = self.requested()
        return worthwhile_processes(lengths) if requested is None else requested

    def path(self, path: Path) -> Path:
        """Return a path that workers in other working folders can use."""
        from monitor.jobs import absolute

        return path if self.scheduler is None else absolute(path)


def worthwhile_processes(lengths: Iterable[float | None]) -> int:
    """Return the worthwhile number of processes for recordings of these lengths."""
    from monitor.jobs import worthwhile

    return worthwhile((seconds or 0.0 for seconds in lengths), WORTHWHILE_SECONDS)


def seconds_of(path: Readable) -> float | None:
    """Return the seconds of audio in a header; None if unknown, and for frames."""
    from monitor.sources.file import File
    from monitor.sources.registry import is_frames
    from monitor.virtual_files import VirtualFile

    if is_frames(path):
        return None
    stated = path.seconds if isinstance(path, VirtualFile) else None
    try:
        return File(path).seconds if stated is None else stated
    except MonitorError:  # reported with the reason at extraction
        return None


def check_output(path: Path) -> None:
    """Check, before long work, that its result can be written."""
    from monitor.files import unwritable

    if path.is_dir():
        reason = "it is a folder; name a file in it"
    elif not path.parent.is_dir():
        reason = f"there is no folder {path.parent}; make it first"
    elif problem := unwritable(path.parent):
        reason = f"{problem}; choose another folder"
    else:
        return
    raise StoreError(f"cannot write {path}: {reason}")


def check_outputs(files: Iterable[Path], *, replace: bool) -> None:
    """Check each as `check_output` does; only ``--replace`` may overwrite."""
    for file in files:
        if file.exists() and not replace:
            raise UsageError(f"{file} exists; use --replace to overwrite it")
        check_output(file)


def check_picture(path: Path) -> None:
    """Check, before long work, that a picture can be drawn and written."""
    from monitor.plots.canvas import check_drawing, check_suffix

    check_suffix(path)
    check_output(path)
    check_drawing()


def check_new(path: Path, option: str) -> None:
    """Check as `check_output` does, for a file that must not exist yet."""
    if path.exists():
        raise UsageError(f"{option} {path} exists; name another file, or remove it")
    check_output(path)


def read_lines(option: str, path: str) -> list[str]:
    """Read the file that ``option``, with its value, names: stripped lines without empty ones."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"cannot read {option}: {reason}") from None
    return [text for line in lines if (text := line.strip())]


def unlocked(path: Path | str) -> str:
    """Format a note that a file could not be locked."""
    return f"{NOTE} the file system of {path} has no locks. Let nothing else write to it."
