"""Results of an attack as sentences, tables, a page and files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from monitor.errors import SchemaError, StoreError
from monitor.events.declaration import declared, from_json, key, to_json
from monitor.events.keys import NUMBER, SESSION, TEXT, TEXTS, VALUE, list_of, misfit, object_of
from monitor.features.registry import takes
from monitor.lab.attacks.attackers import ATTACKERS, BITS, get_attacker
from monitor.lab.attacks.attributes import AttributeRow
from monitor.lab.attacks.control import CONTROL
from monitor.lab.attacks.speech import CLEAR
from monitor.lab.evaluation.srd import MISFIT, is_undertrained
from monitor.lab.evaluation.verification import EER
from monitor.lab.report.model import Cell, Figure, Table
from monitor.lab.report.renderers import figure_json, render_csv
from monitor.maths.ranks import first_rank_bits
from monitor.phrases import (
    IGNORANT,
    NO_MEASURE,
    attacker_in_words,
    format_best_feature,
    format_names,
    plural,
)
from monitor.safe_text import file_name, printable
from monitor.types import Record

FIGURES = {
    BITS: "bits",
    "srd.null_model_bits": "bits of no evidence",
    CONTROL: "bits of outsiders",
    "srd.idr": "first",
    "lid.alid_bits": "ALID",
    "lid.max_bits": "LIDmax",
    **EER,
    "linkage.d_sys": "D_sys",
    "anonymity.mean_rank_p50": "mean rank p50",
    "anonymity.mean_rank_p1": "mean rank p1",
    "membership.tpr_at_1e-2": "TPR at FPR 1e-2",
    "membership.realised_fpr_at_1e-2": "FPR reached for 1e-2",
    "membership.epsilon_nats_at_1e-2": "epsilon at 1e-2",
    "membership.epsilon_lower_nats_at_1e-2": "epsilon at least, at 1e-2",
    "membership.tpr_at_1e-3": "TPR at FPR 1e-3",
    "membership.realised_fpr_at_1e-3": "FPR reached for 1e-3",
}
"""Reported figures by key, with a short name for the column."""
_FIGURE = object_of(
    label=TEXT, value=VALUE, text=TEXT, low=VALUE, high=VALUE, unit=TEXT, ceiling=VALUE,
    floor=VALUE, ties=TEXT, note=TEXT,
)  # fmt: skip
_OBJECT = {"type": "object"}
_FIGURES = {
    **_OBJECT,
    "properties": {BITS: {**_FIGURE, "properties": {**_FIGURE["properties"], "value": NUMBER}}},
    "required": [BITS],
    "additionalProperties": _FIGURE,
}


def _encode_figures(figures: Mapping[str, Figure]) -> Record:
    return {key: figure_json(figure) for key, figure in figures.items()}


def _decode_figures(figures: Mapping[str, Record]) -> dict[str, Figure]:
    return {
        key: Figure(key, **{name: figure[name] for name in _FIGURE["properties"]})
        for key, figure in figures.items()
    }


@declared()
class AttackRow:
    """One attacker with one feature on one method."""

    method: str = key("", 'method of protection; "none" is the baseline')
    attacker: str = key()
    feature: str = key(
        "", 'feature; "joint" is the weighted score of all, "voice-znorm" a normalised score'
    )
    segments: int = key("count", "L, segments per template")
    scoring: str = key("", '"average" or "max"')
    figures: Mapping[str, Figure] = key(
        _FIGURES, "those of `FIGURES`", encode=_encode_figures, decode=_decode_figures
    )
    speakers: int = key("count", "N, templates per trial", minimum=1)
    trials: int = key("count")
    complete: int = key("count", "readers with all L segments; the others have fewer")
    silent: int = key("count", "trials without any frame of the feature")
    rank_model: str = key("", "origin of a joint score's weights, otherwise empty", default="")

    @property
    def bits(self) -> float:
        """MeanD in bits; 0 if it is missing."""
        value = self.figures[BITS].value
        return 0.0 if value is None else value


@declared()
class Settings:
    """Settings of a test."""

    corpus: str = key()
    methods: tuple[str, ...] = key()
    attackers: tuple[str, ...] = key()
    features: tuple[str, ...] = key()
    seconds: float = key("seconds")
    template_seconds: float = key("seconds")
    main_segments: int = key("count", "segments of the template that all readers have")
    segments: tuple[int, ...] = key("count")
    session: str = key(SESSION, '"cross" or "same"')
    readers: int = key("count")
    background: int = key("count", "background readers for the attackers' models")
    seed: int = key("count")


@dataclass(frozen=True)
class AttackResults:
    """All results of a test."""

    settings: Settings
    rows: tuple[AttackRow, ...]
    measured: Mapping[str, Sequence[Figure]] = field(default_factory=dict)  # utility, by method
    attributes: Mapping[str, Sequence[AttributeRow]] = field(default_factory=dict)  # by name
    notes: tuple[str, ...] = ()  # caveats of the figures
    problems: tuple[str, ...] = ()  # unusable methods and recordings
    clear_bits: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def main(self, method: str) -> list[AttackRow]:
        """Return a method's rows for the templates of all readers, with average scoring."""
        selection = method, self.settings.main_segments, "average"
        return [row for row in self.rows if (row.method, row.segments, row.scoring) == selection]

    def strongest(self, method: str, attacker: str | None = None) -> AttackRow | None:
        """Return the strongest attack on a method, by one attacker or all; None if all failed."""
        rows = (r for r in self.rows if r.method == method and attacker in (None, r.attacker))
        return max(rows, key=lambda row: row.bits, default=None)

    @property
    def undertrained(self) -> tuple[str, ...]:
        """Methods for which the attacker's network is too weak even on unprotected speech.

        Its bits are below nine tenths of the shipped network's, so they do not measure the method.
        """
        return tuple(m for m, (trained, shipped) in self.clear_bits.items()
                     if is_undertrained(trained, shipped))  # fmt: skip

    def ranking(self) -> list[AttackRow]:
        """Return the strongest attack on each method, weakest protection first."""
        strongest = [self.strongest(method) for method in self.settings.methods]
        return sorted((row for row in strongest if row is not None), key=lambda r: -r.bits)


_MANY_SILENT = 0.05
_FULL = 0.95  # fraction of log2 N, as in monitor.lab.experiment.findings
_ENOUGH = 10
_MOST_NAMED, _WORTH_BITS = 3, 0.3


def method_name(method: str) -> str:
    """Format a method for people; commands are shown without folders.

    Example:
        >>> method_name("command:/opt/mine --strong")
        '`mine --strong`'
    """
    kind, _, command = method.partition(":")
    if kind != "command":
        return method
    return f"`{' '.join(word.rpartition('/')[2] or word for word in command.split())}`"


def describe_exclusions(method: str, failures: Sequence[str]) -> str:
    """Describe recordings without a word error."""
    count, names = plural(len(failures), "recording"), format_names(failures, 3)
    return f"{method_name(method)}: the word error excludes {count}, {names}"


def _format_bits(row: AttackRow) -> str:
    """Format bits with their interval, as in 2.31 bits (1.90 to 2.70)."""
    low, high = row.figures[BITS].limits
    between = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"{row.bits:.2f} bits{between}"


def _format_attack(row: AttackRow) -> str:
    scored = ", max scoring" if row.scoring == "max" else ""
    return f"{row.attacker}, {row.feature}, {plural(row.segments, 'segment')} enrolled{scored}"


def format_headline(results: AttackResults) -> list[str]:
    """Return a sentence for each method, weakest protection first, then baseline and ceiling.

    Every figure is that of the strongest attack tried, over all attackers and features.
    """
    baseline, ranking = results.strongest(CLEAR), results.ranking()
    # without an attacker that knows of the protection, bits do not measure it
    informed = any(get_attacker(name).informed for name in results.settings.attackers)
    lines = []
    for row in ranking:
        if row.method == CLEAR and len(results.settings.methods) > 1:
            continue
        sentence = (
            f"{method_name(row.method)}: {_format_bits(row)} of {math.log2(row.speakers):.2f} "
        )
        if row.method == CLEAR or informed:
            sentence += (
                f"to the strongest attacker tried ({_format_attack(row)}).{_format_chance(row)}"
            )
        else:
            sentence += f"to {attacker_in_words(IGNORANT)} ({_format_attack(row)}): "
            sentence += f"{NO_MEASURE}. Try other attackers."
        lines.append(sentence)
    if baseline is not None and len(results.settings.methods) > 1:
        lines.append(f"Unprotected: {_format_bits(baseline)} ({_format_attack(baseline)}).")
    if full := [row for row in ranking if row.bits >= _FULL * math.log2(row.speakers)]:
        names = ", ".join(
            "unprotected speech" if row.method == CLEAR else method_name(row.method) for row in full
        )
        readers = min(row.speakers for row in full)
        request = "ten readers or more" if readers < _ENOUGH else "more readers"
        lines.append(
            f"At the ceiling: {names}. {plural(readers, 'reader')} can show at most "
            f"{math.log2(readers):.2f} bits, so methods at the ceiling cannot be distinguished. "
            f"Test with {request}."
        )
    return lines


def _format_chance(row: AttackRow) -> str:
    """Return a warning if no evidence, or the control attack, gets as many bits."""
    sources = {
        "srd.null_model_bits": "chance",
        CONTROL: "the same attack on speakers outside the data",
    }
    limits = {
        source: figure.high
        for key, source in sources.items()
        if (figure := row.figures.get(key)) is not None
        and figure.high is not None
        and row.bits <= figure.high
    }
    if not limits:
        return ""
    source = max(limits, key=limits.__getitem__)
    return f" This shows nothing: {source} gets up to {limits[source]:.2f} bits."


def _list_weaker_joints(results: AttackResults) -> list[str]:
    lines = []
    for method in results.settings.methods:
        rows = results.main(method)
        for attacker in dict.fromkeys(row.attacker for row in rows):
            bits = {row.feature: row.bits for row in rows if row.attacker == attacker}
            joint = bits.pop("joint", None)
            if joint is not None and (best := format_best_feature(joint, bits)):
                lines.append(f"{method_name(method)}, {attacker}: {best}.")
    return lines


def _list_weaker_informed(results: AttackResults) -> Iterator[str]:
    """Yield a line for each attacker who knows the method and learns less than one who does not.

    Source: arXiv 2507.22534. An attacker can ignore its knowledge, so this one is badly made.
    """
    for method in results.settings.methods:
        ignorant = results.strongest(method, IGNORANT)
        if method == CLEAR or ignorant is None:
            continue
        for attacker in results.settings.attackers:
            informed = results.strongest(method, attacker)
            if (
                informed is not None
                and get_attacker(attacker).protects
                and ignorant.bits > informed.bits + _WORTH_BITS
            ):
                yield (
                    f"{method_name(method)}: {attacker} gets {informed.bits:.2f} bits, fewer than "
                    f"{IGNORANT} ({ignorant.bits:.2f}). It knows more, so it is badly trained and "
                    "does not measure the method."
                )


def _list_misfits(rows: Sequence[AttackRow]) -> Iterator[str]:
    """Yield a sentence for each row with ranks that the rank model understates."""
    for row in rows:
        _, misfit, counted = row.figures[BITS].note.partition(MISFIT)
        if misfit:
            attack = f"{method_name(row.method)}, {_format_attack(row)}"
            yield f"{attack}: {row.bits:.2f} bits are {misfit}{counted}."


def _is_alid_contradicted(row: AttackRow) -> bool:
    """Return whether ALID is below half of the bits of first ranks."""
    alid, first = row.figures.get("lid.alid_bits"), row.figures.get("srd.idr")
    if alid is None or first is None or alid.value is None or first.value is None:
        return False
    rank_bits = first_rank_bits(first.value, row.speakers)
    rank_bits = rank_bits if alid.ceiling is None else min(rank_bits, alid.ceiling)
    return first.value * row.speakers > 2 and rank_bits > _WORTH_BITS and alid.value < rank_bits / 2


def list_caveats(results: AttackResults) -> list[str]:
    """Return the caveats of the figures."""
    settings, rows = results.settings, results.rows
    sentences = []
    if settings.session == "same":
        sentences.append(
            "Template and trials are parts of one session. A voice is easier to recognise there "
            "than on another day."
        )
    if not any(CONTROL in row.figures for row in rows):
        sentences.append(
            "No control attack was made. With --background, results must beat the same attack on "
            "speakers outside the data."
        )
    untried = [name for name in ATTACKERS if name not in settings.attackers]
    if untried:
        sentences.append(f"Not tried: {', '.join(untried)}. A stronger attacker learns more.")
    if any(row.rank_model.startswith("shipped") for row in rows):
        sentences.append(
            "Some joint scores use weights from the shipped rank model of clear speech, for lack "
            "of a better one. An attacker with protected background speech has better weights."
        )
    sentences += [
        f"{method_name(method)}: semi-informed is undertrained. Its network gets {trained:.2f} "
        f"bits from unprotected speech, and the shipped one {shipped:.2f}. Train it longer "
        "(training-steps), or on more readers."
        for method, (trained, shipped) in results.clear_bits.items()
        if method in results.undertrained
    ]
    sentences += _list_weaker_informed(results)
    sentences += _list_weaker_joints(results)
    sentences += _list_misfits(rows)
    if denied := [row for row in rows if _is_alid_contradicted(row)]:
        attacks = [f"{method_name(r.method)}, {r.attacker}, {r.feature}" for r in denied]
        attacks = list(dict.fromkeys(attacks))
        names = "; ".join(attacks[:_MOST_NAMED]) + "; ..." * (len(attacks) > _MOST_NAMED)
        sentences.append(
            f"ALID contradicts the ranks ({names}). Its calibration across "
            f"{plural(settings.readers, 'reader')} does not fit these trials, because readers are "
            "few or some trials are outliers. Use the bits and the first ranks, or test more "
            "readers."
        )
    silent = {
        f"{row.feature} under {method_name(row.method)}"
        for row in rows
        if row.silent > _MANY_SILENT * row.trials
    }
    if silent:
        sentences.append(
            f"More than {100 * _MANY_SILENT:.0f} % of trials have no frames of "
            f"{', '.join(sorted(silent))}. An attacker with other features may learn more."
        )
    short = {row.segments for row in rows if row.complete < row.speakers}
    if short:
        counts = ", ".join(map(str, sorted(short)))
        sentences.append(
            f"Some readers have fewer than {counts} segments and are enrolled with all they have."
        )
    return [*sentences, *_describe_scope(settings, rows)]


def _describe_scope(settings: Settings, rows: Sequence[AttackRow]) -> Iterator[str]:
    ways = len({(r.attacker, r.feature, r.segments, r.scoring) for r in rows})
    chosen = (
        f"The strongest of {ways} attacks was chosen by its result, so its bits are slightly too "
        "high. "
    )
    yield (chosen if ways > 1 else "") + (
        f"With {plural(settings.readers, 'reader')}, differences within the intervals are not "
        "significant."
    )
    words = "words" in map(takes, settings.features)
    yield (
        f"These attackers use the sound of a voice{' and its function words' if words else ''}, "
        f"for {settings.seconds:g} s. Not tried: {'topics' if words else 'words'}, other networks, "
        "other languages, more speech, and listeners who know the person. No figure here is a "
        "guarantee."
    )


SCHEMA = 1
_MOST_BYTES = 1 << 28


def results_json(results: AttackResults) -> str:
    """Return everything as JSON; each figure has value, interval, unit, ceiling and note."""
    contents = {
        "schema": SCHEMA,
        "headline": format_headline(results),
        "settings": to_json(results.settings),
        "rows": list(map(to_json, results.rows)),
        "measured": {
            method: _encode_figures({figure.key: figure for figure in figures})
            for method, figures in results.measured.items()
        },
        "attributes": {
            name: [row.encode() for row in rows] for name, rows in results.attributes.items()
        },
        "clear_bits": {method: list(bits) for method, bits in results.clear_bits.items()},
        "undertrained": list(results.undertrained),
        "notes": [*results.notes, *list_caveats(results)],
        "problems": list(results.problems),
    }
    return json.dumps(contents, indent=1, allow_nan=False) + "\n"


def results_csv(results: AttackResults) -> str:
    """Return one CSV line per row, with value, lower and upper limit of each figure."""
    plain = [column.name for column in fields(AttackRow) if column.name != "figures"]
    rows: list[list[Cell]] = []
    for row in results.rows:
        cells: list[Cell] = [getattr(row, name) for name in plain]
        for figure in map(row.figures.get, FIGURES):
            infinite = figure is not None and figure.text == "infinite"
            cells += [
                math.inf if infinite else figure,
                *(figure.limits if figure else (None, None)),
            ]
        rows.append(cells)
    suffixes = ("", ".low", ".high")
    return render_csv(
        Table.from_numbers(
            [*plain, *(f"{key}{suffix}" for key in FIGURES for suffix in suffixes)], rows
        )
    )


def read_results(path: Path) -> AttackResults:
    """Read the ``results.json`` of `write_results`, or of a folder, without the utility.

    Raises StoreError if it is missing or has other contents, and SchemaError if a newer version
    wrote it.
    """
    file = path / "results.json" if path.is_dir() else path
    name = file_name(file)
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise StoreError(f"{name} is too large for results of monitor attack")
        contents = json.loads(file.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot open {name} ({error.strerror}): check the name") from None
    except (ValueError, RecursionError):
        contents = None
    if not isinstance(contents, dict) or not {"schema", "settings", "rows"} <= contents.keys():
        raise StoreError(f"{name} has no results of monitor attack")
    if not isinstance(contents["schema"], int) or contents["schema"] > SCHEMA:
        raise SchemaError(f"{name} was written by a newer version of the program: install that one")
    schema = object_of(
        settings=_OBJECT,
        rows={**list_of(_OBJECT), "minItems": 1},
        attributes={"type": "object", "additionalProperties": list_of(_OBJECT)},
        clear_bits={
            "type": "object",
            "additionalProperties": {**list_of(NUMBER), "minItems": 2, "maxItems": 2},
        },
        notes=TEXTS,
        problems=TEXTS,
    )
    try:
        if (problem := misfit(contents, schema)) is not None:
            raise ValueError(problem)
        results = AttackResults(
            from_json(Settings, contents["settings"]),
            tuple(from_json(AttackRow, row) for row in contents["rows"]),
            attributes={
                name: tuple(map(AttributeRow.decode, rows))
                for name, rows in contents["attributes"].items()
            },
            notes=tuple(contents["notes"]),
            problems=tuple(contents["problems"]),
            clear_bits={method: tuple(bits) for method, bits in contents["clear_bits"].items()},
        )
    except (KeyError, ValueError) as error:
        key = printable(str(error.args[0]))
        raise StoreError(f"{name} is damaged ({key or 'at its top'}): attack again") from None
    attackers = {*results.settings.attackers, *(row.attacker for row in results.rows)}
    if unknown := sorted(attackers - ATTACKERS.keys()):
        raise StoreError(
            f"{name} has an unknown attacker {printable(unknown[0])!r}: register it, or attack "
            "again"
        )
    caveats = set(list_caveats(results))
    return replace(results, notes=tuple(note for note in results.notes if note not in caveats))
