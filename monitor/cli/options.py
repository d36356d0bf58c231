"""Option types and checks that several commands share."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

__all__ = [
    "MOST_REPLICATES",
    "Features",
    "Names",
    "NumberOfBits",
    "Numbers",
    "People",
    "Raw",
    "Seconds",
    "Share",
    "Speed",
    "TextFile",
    "WithTextFiles",
    "among_option",
    "check_new",
    "check_output",
    "ecapa_option",
    "environment",
    "grouped",
    "speaker_model_option",
    "unlocked",
]

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
        from monitor.features.speaker_model import offered_model

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
