"""Which side of the comparisons was anonymised."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.errors import UsageError

__all__ = ["Roles"]

_VOICES = ("anonymised", "original")


@dataclass(frozen=True, slots=True)
class Roles:
    """Which side of the comparison was anonymised.

    Attributes:
        query: the trials, rows of the matrix: ``"anonymised"`` or ``"original"``.
        reference: the enrolled speech, its columns: as `query`.

    Raises:
        UsageError: another word.

    Example:
        >>> str(Roles(query="anonymised", reference="original"))
        'anonymised queries against original references'
    """

    query: str
    reference: str

    def __post_init__(self) -> None:
        for role, voice in (("query", self.query), ("reference", self.reference)):
            if voice not in _VOICES:
                raise UsageError(f"a {role} is {' or '.join(_VOICES)}, not {voice!r}")

    def __str__(self) -> str:
        return f"{self.query} queries against {self.reference} references"
