"""What a stream was made of: which recordings, which part of each, and how to know them again."""

from __future__ import annotations

import os
from dataclasses import dataclass

from monitor.protocols import Source
from monitor.safe_text import file_name
from monitor.sources.fingerprints import recording_hashes

__all__ = ["Provenance", "provenance_of", "stated_provenance"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """A recording, or a part of one, that a stream is made of.

    Attributes:
        label: what to call it in front of a person.
        hashes: its fingerprints (`recording_hashes`); sharing one is being the same recording.
            Empty where it cannot be known again, such as standard input.
        start_seconds, end_seconds: the part; None to its end.
        raw: (rate, channels, encoding) of samples without a header.
    """

    label: str
    hashes: tuple[str, ...] = ()
    start_seconds: float = 0.0
    end_seconds: float | None = None
    raw: tuple[int, int, str] | None = None


def provenance_of(
    path: str | os.PathLike[str], start_seconds: float = 0.0, end_seconds: float | None = None
) -> Provenance:
    """That of a file, which is read for its fingerprints.

    Raises:
        SourceError: it cannot be read.
    """
    return Provenance(file_name(path), recording_hashes(path), start_seconds, end_seconds)


def stated_provenance(source: Source) -> tuple[Provenance, ...] | None:
    """What a source says that it is made of, in its ``provenance``; None where it does not."""
    known: tuple[Provenance, ...] | None = getattr(source, "provenance", None)
    return known
