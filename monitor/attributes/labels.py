"""Attributes of speakers, as people ask for them: ``gender``, or ``age<16``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from monitor.errors import UsageError
from monitor.phrases import plural
from monitor.safe_text import printable

__all__ = ["AskedAttribute", "attribute"]

_MOST = 20


@dataclass(frozen=True)
class AskedAttribute:
    """One attribute of a corpus' speakers.

    Attributes:
        name: as it was asked for.
        of: its value, by speaker; speakers of whom nothing is said are missing.
    """

    name: str
    of: Mapping[str, str]

    @property
    def values(self) -> tuple[str, ...]:
        """The different values, in order."""
        return tuple(sorted(set(self.of.values())))


def attribute(
    asked: str, said: Mapping[str, Mapping[str, str]], speakers: Iterable[str]
) -> AskedAttribute:
    """Look up an attribute.

    Args:
        asked: a column, taken as it is; or ``COLUMN<NUMBER``, which makes two groups of numbers.
        said: by column and speaker, from `monitor.corpus.tables.said_of_speakers`.
        speakers: of whom it is wanted.

    Raises:
        UsageError: there is no such column, it holds too many values, or no numbers.

    Example:
        >>> said = {"age": {"ann": "7", "bob": "33"}}
        >>> found = attribute("age<16", said, ["ann", "bob", "cid"])
        >>> dict(found.of), found.values
        ({'ann': 'age<16', 'bob': 'age>=16'}, ('age<16', 'age>=16'))
    """
    parts = re.fullmatch(r"\s*(.+?)\s*<\s*([-+.\d]+)\s*", asked)
    column = parts.group(1) if parts else asked.strip()
    found = {name.lower(): values for name, values in said.items()}.get(column.lower())
    if found is None:
        raise UsageError(
            f"no table says the {printable(column)} of these speakers; a manifest.csv with a "
            f"column {printable(column)} does" + _there(said)
        )
    held = {who: found[who] for who in speakers if who in found}
    try:
        if parts:
            edge = float(parts.group(2))
            below, above = f"{column}<{edge:g}", f"{column}>={edge:g}"
            held = {who: below if float(value) < edge else above for who, value in held.items()}
    except ValueError:
        raise UsageError(f"{printable(asked)}: {printable(column)} holds no numbers") from None
    made = AskedAttribute(asked.strip(), held)
    if len(made.values) > _MOST:
        raise UsageError(
            f"{printable(column)} has {plural(len(made.values), 'value')}, more than {_MOST}; make "
            f"two groups of numbers, such as {printable(column)}<16"
        )
    if len(made.values) < 2:
        raise UsageError(
            f"{printable(asked)}: all {plural(len(held), 'speaker')} of whom it is known are alike"
        )
    return made


def _there(said: Mapping[str, Mapping[str, str]]) -> str:
    return f" (there are {printable(', '.join(said))})" if said else ""
