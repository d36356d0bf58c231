"""Tables that explain bits: as people, in usual speech, and as a threshold for each purpose.

docs/how-much.md, README's first table, the page's "?" and the end of ``monitor demo`` are rendered
from them. ``docs/check.py`` compares both documents with them, and their figures with
benchmarks/results/usual.md. The shipped population also stores the ranges, for the band of plots
and pages: after an edit run ``python -m recipes.reference ../shared/speech --usual``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from monitor.crowds import crowd_of, one_of, rounded_count
from monitor.phrases import plural

__all__ = [
    *("ADVICE", "BITS", "PURPOSES", "TITLE", "USUAL", "ThresholdAdvice", "Table", "TypicalBits"),
    *("advice", "tables", "to_markdown", "to_text"),
]

TITLE = "How much is much?"
BITS = (1, 3, 6, 10, 13)
"""Bits that are shown as people."""
CITY = 1e6


class TypicalBits(NamedTuple):
    """Evidence in bits at one length: median and range of 9 of 10 voices that no fit used."""

    seconds: float
    median: float
    low: float
    high: float


# python -m benchmarks usual SPEECH NONNATIVE VOICES (benchmarks/results/usual.md) prints these
USUAL = (
    TypicalBits(1, 7.8, 1.8, 12.4),
    TypicalBits(3, 10.8, 4.8, 13.3),
    TypicalBits(10, 13.3, 9.1, 13.3),
    TypicalBits(20, 13.3, 10.4, 13.3),
)
"""Usual bits of unchanged voices, from the start of a recording."""


class ThresholdAdvice(NamedTuple):
    """A purpose, and the threshold of evidence for it."""

    name: str  # what the speaker wants
    bits: int  # threshold
    # crowd in which at least two and fewer than four people match at the threshold; or None
    people: int | None
    reason: str  # why, in a few words
    # Speech seconds by which half of the streams behind `USUAL` raise the alert. None is more than
    # 20 s.
    after: float | None


PURPOSES = (
    ThresholdAdvice("hide in a family of 4", 1, 4, "2 match; relatives are alike", 5),
    ThresholdAdvice("let a product train on it", 3, None, "kept; attackers improve", 5),
    ThresholdAdvice("hide among 150 colleagues", 6, 150, "2 match; the usual alert", 5),
    ThresholdAdvice("hide in a town of 10,000", 12, 10_000, "2 match", 8),
)


def advice(*, options: bool = True) -> tuple[str, str, str]:
    """Return the effect of an alert, the figure behind it, and its limits.

    Without ``options``, for a browser, the texts name no command-line options.
    """
    watched = " (--watch NAME)" if options else " about the watched speaker"
    otherwise = "Without --watch" if options else "If no speaker is watched,"
    return (
        "An alert comes once the bits have stayed at or above the threshold for 5 s. It is a cue "
        "to stop. It does not hide you.",
        f"These bits are evidence{watched}, capped at the 13.3 that calibration supports. "
        f"{otherwise} they are capped at log2 50 = 5.6. An alert above the cap is refused.",
        "A figure near or below 0 guarantees nothing. A practised attacker may have better "
        "features and more of your speech. After 1 s, 4 % of the streams of 90 people read below "
        "0.",
    )


ADVICE = advice()  # effect of an alert, the figure behind it, and its limits


class Table(NamedTuple):
    """A table: a head for each column, and rows of cells."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_markdown(self) -> str:
        """Format the table, with numbers aligned right."""
        rule = [
            "---:" if all(cell[:1].isdigit() for cell in column) else "---"
            for column in zip(*self.rows, strict=True)
        ]
        lines = [self.heads, rule, *self.rows]
        return "\n".join(f"| {' | '.join(map(_quote_code, line))} |" for line in lines)


def tables(*, options: bool = True) -> tuple[Table, Table, Table]:
    """Return the tables of bits as people, of usual bits, and of a threshold for each purpose.

    Example:
        >>> [table.rows[0][1] for table in (tables()[2], tables(options=False)[2])]
        ['bits>1', '1 bit']
    """
    meanings = tuple((f"{bits}", one_of(bits), *_people(2.0**bits)) for bits in BITS)
    usual = tuple(
        (f"{row.seconds:g} s", f"{row.median:.1f}", f"{row.low:.1f} to {row.high:.1f}")
        for row in USUAL
    )
    purposes = tuple(
        (p.name, f"bits>{p.bits}" if options else plural(p.bits, "bit"), p.reason, _after(p.after))
        for p in PURPOSES
    )
    return (
        Table(("bits", "people who match", "one match in", "matches in a million"), meanings),
        Table(("your speech", "usual bits", "9 of 10 voices"), usual),
        Table(("to", "--alert" if options else "alert at", "because", "raised after"), purposes),
    )


def _people(count: float) -> tuple[str, str]:
    count = count if count < 100 else rounded_count(count)
    return crowd_of(count), f"{rounded_count(CITY / count):,.0f}"


def _after(seconds: float | None) -> str:
    return f"{seconds:g} s" if seconds is not None else "over 20 s"


def to_markdown() -> str:
    """Format the tables and the advice for docs/how-much.md."""
    return "\n\n".join([*(table.to_markdown() for table in tables()), *ADVICE])


def _quote_code(cell: str) -> str:
    return f"`{cell}`" if cell.startswith(("--a", "bits>")) else cell


def to_text(width: int = 80) -> Iterator[str]:
    """Yield the lines of the tables and the advice for a terminal of ``width`` columns."""
    import textwrap

    yield TITLE
    for table in tables():
        every = (table.heads, *table.rows)
        wide = [max(map(len, column)) for column in zip(*every, strict=True)]
        for row in every:
            cells = [cell.ljust(size) for cell, size in zip(row, wide, strict=True)]
            yield ("  " + "  ".join(cells)).rstrip()
        yield ""
    for sentence in ADVICE:
        yield from textwrap.wrap(sentence, width)
