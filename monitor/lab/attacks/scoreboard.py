"""Is a voice changer enough? A table of the bits that attackers learn through common programs.

`benchmarks/voice_changers.py` measured the shipped rows, and the setting `scoreboard` of `monitor
attack` adds yours. Each row names its corpus and number of people. Rows that differ in them are
not comparable.
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
from monitor.lab.attacks.attackers import ATTACKERS as THREAT_MODELS
from monitor.lab.attacks.attackers import BITS, get_attacker
from monitor.lab.attacks.report import MethodBits, attacks_svg
from monitor.lab.attacks.results import AttackResults, method_name
from monitor.lab.attacks.speech import CLEAR
from monitor.lab.report.model import Document, Paragraphs, Picture, Section, Table
from monitor.lab.report.renderers import render_html
from monitor.phrases import plural
from monitor.safe_text import file_name, printable

SCHEMA = 1
ATTACKERS = ("ignorant", "lazy-informed", "semi-informed")  # of the shipped rows
UNCHANGED = "nothing"  # setting of the row without a method
SUFFIXES = (".html", ".json", ".md")
_Limited: TypeAlias = tuple[float, float | None, float | None]  # a value with its interval

NOTES = (
    "Bits: an attacker has enrolled 30 s of each person, N people in all, and compares 10 s of one "
    "of them. With k bits, 2^k people are narrowed to one. The figure is the mean over trials "
    "(MeanD), with "
    "a 95 % interval over speakers unless noted. It is for the attacker's best feature: pitch, "
    "phones, voice, or their joint score. Strongest: the largest figure of the row, with its "
    "attacker. Judge the method by this figure. A dash marks an attacker that was not tried and "
    "may be stronger.",
    "Ignorant attackers have enrolled clear speech. Aligned ones also rotate protected embeddings "
    "onto clear ones. Lazy-informed ones have enrolled speech from the same program, with random "
    "draws of their own, and simulating ones the mean of four draws. Semi-informed ones have also "
    "trained the voice network on other people's speech from the program. The percentage beside "
    "their figure compares their network with the shipped one, by the bits that each gets from "
    "unprotected speech. Below 90 % it is undertrained, and its figure does not measure the "
    "method. Shipped network: their own got fewer bits from other people's protected speech, so "
    "they did not use it.",
    "Phone error: fraction of phones that our recogniser recognises differently than before, which "
    'is the program\'s cost in intelligibility. The column "6 bits after" has the speech seconds '
    "until half of the speakers have disclosed 6 bits of voice evidence. It is for the strongest "
    "attacker followed. Times beyond the end of the recordings are unknown. A dash: not followed, "
    "or calibration on few people supports less than 6 bits.",
    "Figures for other people, other lengths or another N are not comparable.",
)


@declared()
class ScoreRow:
    """One method of anonymisation."""

    name: str = key("", "for people")
    how: str = key("", "command or setting")
    corpus: str = key("", "source of the speech")
    speakers: int = key("count", "N, templates per trial", minimum=2)
    trials: int = key("count")
    bits: Mapping[str, _Limited] = key("number", "MeanD of each attacker's best feature")
    ways: Mapping[str, str] | None = key("", "best feature of each attacker", default=None)
    phone_error: _Limited | None = key("number", "fraction, null if not measured", default=None)
    seconds: Mapping[str, float | None] | None = key(
        "seconds", "median until 6 bits by attacker, null if beyond `heard`", default=None
    )
    heard: float = key("seconds", "length of the speech followed", default=0.0)
    undertrained: bool = key("", "whether the trained network is too weak", default=False)
    clear_share: float | None = key(
        "number", "its bits of clear speech as a fraction of ours", default=None
    )
    kept_shipped: bool = key("", "whether the shipped network was better", default=False)

    @property
    def strongest(self) -> float:
        """Bits of the strongest attacker."""
        return self.bits[self.strongest_attacker][0]

    @property
    def strongest_attacker(self) -> str:
        """Attacker with most bits; on a tie, the one that knows least."""
        return max(self.bits, key=lambda attacker: self.bits[attacker][0])

    def trained(self, attacker: str) -> str:
        """Describe how well an attacker's network is trained; empty if it trains none."""
        if not get_attacker(attacker).trains:
            return ""
        if self.kept_shipped:
            return "shipped network"
        training = "undertrained" if self.undertrained else "trained"
        if self.clear_share is None:
            return "undertrained" if self.undertrained else ""
        return f"{training}, {100 * self.clear_share:.0f} %"

    @classmethod
    def from_results(
        cls, results: AttackResults, method: str, name: str = "", setting: str = ""
    ) -> ScoreRow:
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
        trained, shipped = results.clear_bits.get(method, (0.0, 0.0))
        return cls(
            name or method_name(method).strip("`"),
            setting or method_name(method).strip("`"),
            results.settings.corpus,
            max(row.speakers for row in rows.values()),
            max(row.trials for row in rows.values()),
            {attacker: (row.bits, *row.figures[BITS].limits) for attacker, row in rows.items()},
            {attacker: row.feature for attacker, row in rows.items()},
            None if error is None or error.value is None else (error.value, *error.limits),
            {},
            undertrained=method in results.undertrained,
            clear_share=trained / shipped if shipped > 0 else None,
            kept_shipped=method != CLEAR
            and method not in results.clear_bits  # it has every network except the shipped one
            and any(get_attacker(attacker).trains for attacker in rows),
        )


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """Rows, and sentences on the measurement of the shipped ones."""

    rows: tuple[ScoreRow, ...]
    about: tuple[str, ...] = ()

    @classmethod
    def shipped(cls) -> Scoreboard:
        """Return the shipped table."""
        return cls.read(SCOREBOARD)

    @classmethod
    def read(cls, path: Path) -> Scoreboard:
        """Read a table from its JSON file."""
        try:
            contents = json.loads(path.read_text("utf-8"))
        except OSError as error:
            raise StoreError(f"cannot read {file_name(path)}: {error.strerror}") from None
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
            name = printable(str(error.args[0])) or "at its top"
            problem = f"invalid scoreboard {file_name(path)} ({name}): use another file"
            raise StoreError(problem) from None

    def beside(self, rows: Iterable[ScoreRow]) -> Scoreboard:
        """Return a table with further rows, which replace rows of the same name and corpus."""
        new = {(row.name, row.corpus): row for row in rows}
        others = [row for row in self.rows if (row.name, row.corpus) not in new]
        return Scoreboard((*others, *new.values()), self.about)

    @property
    def ranked(self) -> list[ScoreRow]:
        """Rows by fraction of the possible bits, least disclosing first."""
        return sorted(self.rows, key=lambda row: row.strongest / math.log2(row.speakers))

    @property
    def attackers(self) -> tuple[str, ...]:
        """Attackers tried in at least one row."""
        return tuple(
            attacker for attacker in THREAT_MODELS if any(attacker in row.bits for row in self.rows)
        )

    def json(self) -> str:
        """Return the contents of a JSON file."""
        contents = {
            "schema": SCHEMA,
            "about": list(self.about),
            "rows": [to_json(row) for row in self.rows],
        }
        return json.dumps(contents, indent=1, allow_nan=False) + "\n"

    def table(self) -> Table:
        """Return a table, least disclosing method first."""
        head = ["method", "bits, strongest", *(f"bits, {attacker}" for attacker in self.attackers)]
        head += ["phone error", "6 bits after", "speakers"]
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
            speakers = f"{row.corpus}, N = {row.speakers}"
            medians = [median for median in (row.seconds or {}).values() if median is not None]
            delay = f"{min(medians):.0f} s" if medians else f"> {row.heard:.0f} s"
            lines.append([row.name, *bits, error, delay if row.seconds else "-", speakers])
        columns = len(head) - is_one_corpus
        return Table.from_numbers(head[:columns], [line[:columns] for line in lines], wide=True)

    def markdown(self) -> str:
        """Return a Markdown table."""
        table = self.table()
        head = [column.title for column in table.columns]
        return "".join(
            f"| {' | '.join(str(cell).replace(chr(10), ' ').replace('|', '/') for cell in row)} |\n"
            for row in (head, ["---"] * len(head), *table.rows)
        )

    def pictured(self) -> tuple[list[MethodBits], tuple[str, ...], float]:
        """Return the contents of a picture: methods with bits, names of attackers, ceiling."""
        ceiling = max(math.log2(row.speakers) for row in self.rows)
        methods = [
            MethodBits(row.name, [*map(row.bits.get, self.attackers)]) for row in self.ranked
        ]
        return methods, self.attackers, ceiling

    def page(self) -> str:
        """Return a self-contained, printable HTML file."""
        commands = Table.from_numbers(
            ["method", "command or setting"], [[row.name, row.how] for row in self.ranked], names=2
        )
        picture = Picture(
            "Bits by attacker",
            attacks_svg(*self.pictured()),
            "Bits of each attacker's best feature among N people. The dashed line is full "
            "disclosure. Judge a method by its rightmost mark.",
        )
        return render_html(
            Document(
                "Is your voice changer enough?",
                ["Bits that the strongest tested attacker learns. Stronger attackers learn more."],
                [
                    picture,
                    Section("Methods", [self.table()]),
                    Section("How to read the figures", [Paragraphs(NOTES)], folded=True),
                    Section("How they were measured", [Paragraphs(self.about)], folded=True),
                    Section("Commands", [commands], folded=True),
                ],
                foot="Intervals are 95 %, over resampled speakers. This page contains no voice and "
                "no template.",
                headline=self.finding(),
            )
        )

    def finding(self) -> str:
        """State in two sentences which method withholds most, and how many leave over half."""
        changed = [row for row in self.ranked if row.how != UNCHANGED] or self.ranked
        best = changed[0]
        weak = [row for row in changed if row.strongest > math.log2(row.speakers) / 2]
        return (
            f"{best.name} leaves {best.strongest:.1f} of {math.log2(best.speakers):.1f} bits, the "
            f"least. {len(weak)} of {plural(len(changed), 'method')} leave more than half."
        )

    def save(self, path: Path) -> None:
        """Write the format of the file's suffix (mode 0600)."""
        check_suffix(path)
        writers = {".json": self.json, ".md": self.markdown, ".html": self.page}
        write_text(writers[path.suffix.lower()](), path)


def check_suffix(path: Path) -> None:
    """Raise UsageError unless the suffix is one of `SUFFIXES`."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"invalid scoreboard {file_name(path)}: use {', '.join(SUFFIXES)}")


def describe_comparison(board: Scoreboard, own_rows: Sequence[ScoreRow]) -> str:
    """Describe whether your own rows are comparable with the others."""
    names = {(row.name, row.corpus) for row in own_rows}
    others = {row.corpus for row in board.rows if (row.name, row.corpus) not in names}
    own_corpora = sorted({row.corpus for row in own_rows} - others)
    text = f"{plural(len(own_rows), 'row')} of your own among {plural(len(board.rows), 'row')}"
    if own_corpora:
        text += f". Yours are of other people ({', '.join(own_corpora)}), so not comparable"
    return text


def _format_limited(interval: _Limited | None, form: str, more: str = "") -> str:
    if interval is None:
        return "-"
    value, low, high = interval
    limits = "" if low is None or high is None else f"[{form.format(low)}, {form.format(high)}]"
    below = ", ".join(line for line in (limits, more) if line)
    return "\n".join(line for line in (form.format(value), below) if line)
