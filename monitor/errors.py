"""All errors of this package.

::

    MonitorError                 base of all deliberate errors
    ├── UsageError               invalid arguments
    ├── SourceError              a recording or a device cannot be read
    │   └── ForeignTextError     ... because a file beside it is not a transcript
    ├── StoreError               a population, rank model or checkpoint file cannot be used
    │   └── SchemaError          ... because a newer version wrote it
    ├── CorpusError              a folder or manifest cannot be read as a corpus
    │   └── UnnamedSpeakerError  ... because the speakers are unknown
    ├── CalibrationError         too little speech or too few speakers for a rank model
    └── OverlapError             the stream is enrolled audio

Every message is one line with the fault and a remedy. A message that names an argument is a
`Message`, in which the command line names its option instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

__all__ = [
    "Argument",
    "CalibrationError",
    "CorpusError",
    "ForeignTextError",
    "Message",
    "MonitorError",
    "OverlapError",
    "SchemaError",
    "SourceError",
    "StoreError",
    "UnnamedSpeakerError",
    "UsageError",
]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument named in a message. Each interface writes it in its own form.

    Attributes:
        name: name in Python.
        value: value as text, if the message has one.
        python: form in Python, if not ``name=value``.
    """

    name: str
    value: str = ""
    python: str = ""

    def __str__(self) -> str:
        return self.python or f"{self.name}={self.value}"


class Message(str):
    """A one-line message in Python's terms that keeps the arguments it names."""

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Self:
        """Join the parts."""
        message = super().__new__(cls, "".join(map(str, parts)))
        message.parts = parts
        return message

    def __getnewargs__(self) -> tuple[str | Argument, ...]:  # type: ignore[override]
        return self.parts

    def render(self, argument: Callable[[Argument], str]) -> str:
        """Write the message, and name arguments with this function."""
        return "".join(piece if isinstance(piece, str) else argument(piece) for piece in self.parts)


class MonitorError(Exception):
    """Base class of all deliberate errors. Programs can rely on ``code``, which is stable."""

    code: ClassVar[str] = "error"


class UsageError(MonitorError, ValueError):
    """An argument or a combination of arguments is invalid."""

    code = "error.usage"


class SourceError(MonitorError):
    """A recording, a pipe or a device cannot be read."""

    code = "error.source"


class ForeignTextError(SourceError):
    """A file with a transcript's name is intact, but contains something else, such as metadata."""

    code = "error.source.foreign-text"


class StoreError(MonitorError):
    """A population, rank model or checkpoint file is damaged, foreign or cannot be written."""

    code = "error.store"


class SchemaError(StoreError):
    """A store was written by a newer version of this package."""

    code = "error.store.schema"


class CorpusError(MonitorError):
    """A folder or a manifest cannot be read as a corpus of speakers."""

    code = "error.corpus"


class UnnamedSpeakerError(CorpusError):
    """Recordings exist, but their speakers are unknown.

    Attributes:
        what: the fault, without the remedy.
    """

    code = "error.corpus.unnamed-speaker"

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(f"{what}; {advice}")
        self.what = what


class CalibrationError(MonitorError):
    """There are too few speakers, or too little speech, to fit a rank model."""

    code = "error.calibration"


class OverlapError(MonitorError):
    """The stream contains audio that the templates were made from."""

    code = "error.overlap"


class DeliveryError(Exception):
    """An alert was not accepted; the message has a short reason without secrets."""
