"""One column of a table: its name, what its cells are, and their unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Column", "Kind", "unit_of"]

Kind: TypeAlias = Literal["number", "integer", "boolean", "text"]

_SECONDS = {"seconds", "speech", "usable", "lag"}
_BITS = {"ceiling", "plateau", "guides"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: as the header has it; a dot leads into a part of a reading, such as ``f0.rank_bits``.
        kind: what its cells are; each may be missing.
        meaning: in a line, for people.
    """

    name: str
    kind: Kind
    meaning: str = ""

    @property
    def unit(self) -> str:
        """``"bits"``, ``"s"``, or nothing: a share, a rank, a count, a text."""
        return "" if self.kind in ("boolean", "text") else unit_of(self.name)


def unit_of(name: str) -> str:
    """The unit of a figure, which its name says (docs/architecture.md, laws of the parts).

    Examples:
        >>> unit_of("f0.rank_bits_low"), unit_of("speech"), unit_of("change.since_seconds")
        ('bits', 's', 's')
        >>> unit_of("guides.linear"), unit_of("among.1e6.probability")
        ('bits', '')
    """
    first, last = name.partition(".")[0], name.rpartition(".")[2]
    if "bits" in last.split("_") or first in _BITS or first.startswith("spread_"):
        return "bits"
    return "s" if last in _SECONDS or last.endswith("_seconds") else ""
