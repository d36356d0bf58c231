"""Is a voice changer enough? What attackers learn through programs that people use, in one table.

The rows that ship were measured by `benchmarks/voice_changers.py`; `monitor attack --scoreboard`
puts one's own beside them. Bits of another corpus, or among another number of people, are no
comparison: each row says of whom it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from monitor.anonymisers.registry import SCOREBOARD
from monitor.errors import StoreError, UsageError
from monitor.events.declaration import declared, from_json, key, to_json
from monitor.events.keys import TEXTS, list_of, misfit, object_of
from monitor.files import write_text
from monitor.lab.attacks.attackers import BITS, get_attacker
from monitor.lab.attacks.results import AttackResults, method_name
from monitor.lab.attacks.speech import CLEAR
from monitor.lab.plots.attacks import MethodBits, attacks_svg
from monitor.lab.report.html import render_html
from monitor.lab.report.model import Document, Paragraphs, Picture, Section, Table
from monitor.phrases import plural
from monitor.safe_text import file_name, printable

SCHEMA = 1
ATTACKERS = ("ignorant", "lazy-informed", "semi-informed")
SUFFIXES = (".html", ".json", ".md")
_Limited: TypeAlias = tuple[float, float | None, float | None]
"""A value with its limits."""

NOTES = (
    "Bits: of a stretch of 10 s of a voice an attacker tells who speaks among N people, of each of "
    "whom it has 30 s; k bits leave one of 2^k of them. It is the mean over trials (mean "
    "disclosure, MeanD), with 95 % limits over speakers, where nothing else is said. Each figure "
    "is that of the attacker's best way: pitch, phones, voice, or their joint score. Strongest: "
    "the largest of the row, and whose it is; what a method is worth. Where an attacker was not "
    "tried (a dash) a stronger figure may exist.",
    "Ignorant attackers have enrolled clear speech, lazy-informed ones speech through the same "
    "program, with draws of their own where it draws. Semi-informed ones have also trained the "
    "voice network on other people's speech through it. How well is said beside the figure: of "
    "the bits that the shipped network tells of unprotected speech, how many theirs tells. Below "
    "90 % it is undertrained, and its figure no measure of the method. Shipped network: their own "
    "told less of other people's protected speech, so that they left it.",
    "Phone error: phones that our recogniser understands otherwise than before, which says what a "
    "program costs in words. 6 bits after: speech seconds until half of the speakers have given 6 "
    "bits of evidence by their voice to the strongest attacker that was followed; beyond what was "
    "heard nothing is known. A dash: not followed, or calibration on so few people supports less "
    "than 6 bits.",
    "A figure of other people, of other lengths or of another N is no comparison.",
)


@declared()
class ScoreRow:
    """One method of anonymisation."""

    name: str = key("", "for people")
    how: str = key("", "command or setting")
    corpus: str = key("", "on whose speech")
    speakers: int = key("count", "N, whom each trial was compared with", minimum=2)
    trials: int = key("count")
    bits: Mapping[str, _Limited] = key("number", "by attacker, what its best way learnt, MeanD")
    ways: Mapping[str, str] | None = key("", "by attacker, which feature that was", default=None)
    phone_error: _Limited | None = key("number", "share; None: not measured", default=None)
    seconds: Mapping[str, float | None] | None = key(
        "seconds", "by attacker, median until 6 bits; None: beyond what was heard", default=None
    )
    heard: float = key("seconds", "of speech, of which `seconds` is known", default=0.0)
    undertrained: bool = key("", "whether the trained network judges no method", default=False)
    clear_share: float | None = key("number", "its bits of clear speech, of ours", default=None)
    kept_shipped: bool = key("", "whether the shipped network was better", default=False)

    @property
    def strongest(self) -> float:
        """Bits of the strongest attacker."""
        return self.bits[self.strongest_attacker][0]

    @property
    def strongest_attacker(self) -> str:
        """Attacker who learnt most; of equals the one who knows least."""
        return max(self.bits, key=lambda attacker: self.bits[attacker][0])

    def trained(self, attacker: str) -> str:
        """Say how well an attacker's network was trained; empty where none was."""
        if not get_attacker(attacker).trains:
            return ""
        if self.kept_shipped:
            return "shipped network"
        how = "undertrained" if self.undertrained else "trained"
        if self.clear_share is None:
            return "undertrained" if self.undertrained else ""
        return f"{how}, {100 * self.clear_share:.0f} %"

    @classmethod
    def of(cls, results: AttackResults, method: str, name: str = "", how: str = "") -> ScoreRow:
        """Return the row of one attacked method."""
        strongest = {
            attacker: results.strongest(method, attacker) for attacker in results.settings.attackers
        }
        rows = {attacker: row for attacker, row in strongest.items() if row is not None}
        if not rows:
            raise UsageError(f"{method_name(method)} was not attacked")
        error = next(
            (f for f in results.measured.get(method, ()) if f.key == "utility.phone_error"), None
        )
        own, shipped = results.clear_bits.get(method, (0.0, 0.0))
        return cls(
            name or method_name(method).strip("`"),
            how or method_name(method).strip("`"),
            results.settings.corpus,
            max(row.speakers for row in rows.values()),
            max(row.trials for row in rows.values()),
            {attacker: (row.bits, *row.figures[BITS].limits) for attacker, row in rows.items()},
            {attacker: row.feature for attacker, row in rows.items()},
            None if error is None or error.value is None else (error.value, *error.limits),
            {},
            undertrained=method in results.undertrained,
            clear_share=own / shipped if shipped > 0 else None,
            kept_shipped=method != CLEAR
            and method not in results.clear_bits  # told of each network that is not the shipped one
            and any(get_attacker(attacker).trains for attacker in rows),
        )


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """Rows, with sentences on how those that ship were measured."""

    rows: tuple[ScoreRow, ...]
    about: tuple[str, ...] = ()

    @classmethod
    def shipped(cls) -> Scoreboard:
        """Return the table that ships."""
        return cls.read(SCOREBOARD)

    @classmethod
    def read(cls, path: Path) -> Scoreboard:
        """Read a table from its JSON file."""
        try:
            contents = json.loads(path.read_text("utf-8"))
        except OSError as error:
            raise StoreError(f"{file_name(path)}: cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError):
            contents = None
        if isinstance(contents, dict) and contents.get("schema", SCHEMA) != SCHEMA:
            raise StoreError(f"{file_name(path)}: written by another version of this program")
        schema = object_of(about=TEXTS, rows={**list_of({"type": "object"}), "minItems": 1})
        try:
            if (problem := misfit(contents, schema)) is not None:
                raise ValueError(problem)
            rows = tuple(from_json(ScoreRow, row) for row in contents["rows"])
            if not all(row.bits for row in rows):
                raise ValueError("bits")
            return cls(rows, tuple(contents["about"]))
        except (KeyError, ValueError) as error:
            name = printable(str(error.args[0]).removesuffix(" makes no sense")) or "at its top"
            problem = f"{file_name(path)} is no scoreboard ({name}); name another file"
            raise StoreError(problem) from None

    def beside(self, rows: Iterable[ScoreRow]) -> Scoreboard:
        """Return it with further rows; one of equal name and corpus replaces the old one."""
        new = {(row.name, row.corpus): row for row in rows}
        others = [row for row in self.rows if (row.name, row.corpus) not in new]
        return Scoreboard((*others, *new.values()), self.about)

    @property
    def ranked(self) -> list[ScoreRow]:
        """Rows, the least disclosing first, as a fraction of the possible."""
        return sorted(self.rows, key=lambda row: row.strongest / math.log2(row.speakers))

    @property
    def attackers(self) -> tuple[str, ...]:
        """Attackers tried on any row."""
        return tuple(
            attacker for attacker in ATTACKERS if any(attacker in row.bits for row in self.rows)
        )

    def json(self) -> str:
        """Return the contents of a file."""
        contents = {
            "schema": SCHEMA,
            "about": list(self.about),
            "rows": [to_json(row) for row in self.rows],
        }
        return json.dumps(contents, indent=1, allow_nan=False) + "\n"

    def table(self) -> Table:
        """Return a table, the least disclosing method first."""
        head = ["method", "bits, strongest", *(f"bits, {attacker}" for attacker in self.attackers)]
        head += ["phone error", "6 bits after", "of whom"]
        is_one_corpus = len({(row.corpus, row.speakers) for row in self.rows}) == 1
        lines = []
        for row in self.ranked:
            strongest = row.strongest_attacker
            bits = [_format_limited(row.bits[strongest], "{:.2f}", strongest)]
            bits += [
                _format_limited(row.bits.get(attacker), "{:.2f}", row.trained(attacker))
                for attacker in self.attackers
            ]
            error = _format_limited(row.phone_error, "{:.0%}")
            whom = f"{row.corpus}, N = {row.speakers}"
            lines.append([row.name, *bits, error, format_delay(row), whom])
        columns = len(head) - is_one_corpus
        return Table.of(head[:columns], [line[:columns] for line in lines], wide=True)

    def markdown(self) -> str:
        """Return a table of Markdown."""
        table = self.table()
        head = [column.title for column in table.columns]
        return "".join(
            f"| {' | '.join(str(cell).replace(chr(10), ' ').replace('|', '/') for cell in row)} |\n"
            for row in (head, ["---"] * len(head), *table.rows)
        )

    def pictured(self) -> tuple[list[MethodBits], tuple[str, ...], float]:
        """Return what a picture shows: methods with bits, names of attackers, the ceiling."""
        ceiling = max(math.log2(row.speakers) for row in self.rows)
        methods = [
            MethodBits(row.name, [*map(row.bits.get, self.attackers)]) for row in self.ranked
        ]
        return methods, self.attackers, ceiling

    def page(self) -> str:
        """Return one HTML file that stands alone and prints."""
        how = Table.of(
            ["method", "command or setting"], [[row.name, row.how] for row in self.ranked], names=2
        )
        picture = Picture(
            "What attackers learn",
            attacks_svg(*self.pictured()),
            "Of each attacker what it learnt by the best of its ways, in bits among N people; the "
            "dashed line is everything. A method is worth no more than its rightmost mark.",
        )
        return render_html(
            Document(
                "Is your voice changer enough?",
                self.about,
                [
                    picture,
                    Section("Methods", [Paragraphs(NOTES), self.table()]),
                    Section("As they were run", [how]),
                ],
                foot="Limits are 95 %, over resampled speakers. This page holds no voice and no "
                "template.",
            )
        )

    def save(self, path: Path) -> None:
        """Write it as its suffix says (mode 0600)."""
        check_suffix(path)
        writers = {".json": self.json, ".md": self.markdown, ".html": self.page}
        write_text(writers[path.suffix.lower()](), path)


def check_suffix(path: Path) -> None:
    """Refuse a file that is none of `SUFFIXES`."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--scoreboard {file_name(path)} must end in {', '.join(SUFFIXES)}")


def format_delay(row: ScoreRow) -> str:
    """Format the shortest of the medians."""
    if not row.seconds:
        return "-"
    medians = [seconds for seconds in row.seconds.values() if seconds is not None]
    return f"{min(medians):.0f} s" if medians else f"> {row.heard:.0f} s"


def describe_comparison(board: Scoreboard, own: Sequence[ScoreRow]) -> str:
    """Say how one's own rows compare."""
    names = {(row.name, row.corpus) for row in own}
    others = {row.corpus for row in board.rows if (row.name, row.corpus) not in names}
    own_corpora = sorted({row.corpus for row in own} - others)
    text = f"{plural(len(own), 'row')} of your own among {plural(len(board.rows), 'row')}"
    if own_corpora:
        text += (
            f"; yours are of {', '.join(own_corpora)}, other people than the others': no comparison"
        )
    return text


def _format_limited(interval: _Limited | None, form: str, more: str = "") -> str:
    if interval is None:
        return "-"
    value, low, high = interval
    limits = "" if low is None or high is None else f"[{form.format(low)}, {form.format(high)}]"
    below = ", ".join(line for line in (limits, more) if line)
    return "\n".join(line for line in (form.format(value), below) if line)
