"""The summary of a run: the few lines left on a terminal when it is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from monitor.condition_words import condition_in_words
from monitor.crowds import bits_or_more
from monitor.declared_words import composed_in_words, promise_now
from monitor.phrases import (
    STYLE_CAVEAT,
    another_voice,
    clock_time,
    enrolment,
    of_evidence,
    plural,
    usable_in_words,
    voice_since,
)
from monitor.protected_words import (
    attacker_of,
    bought_cells,
    fewer_in_words,
    protected_figure,
    uninformed,
)
from monitor.sinks.in_words import (
    also_narrowed_down,
    among_enrolled,
    bits_now,
    clean,
    in_a_crowd,
    limits_in_words,
    number,
)

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_summary"]


def print_summary(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the result of a run as a table on stdout.

    Args:
        records: the run, at least its ``start`` and its last ``reading``.
    """
    from rich.table import Table
    from rich.text import Text

    from monitor.sinks.console import PlainConsole

    last = next((r for r in reversed(records) if r["type"] == "reading"), None)
    console = PlainConsole(highlight=False)
    if last is None:
        console.print("nothing was heard: no bits disclosed")
        return
    start = next((r for r in records if r["type"] == "start"), {})
    table = Table(box=None, show_header=False, pad_edge=False)
    rows = (
        _bits(last, start, _begun(records)), _protected(last, start), _promised(last, start),
        _sound(last, start), _rest(last, records),
    )  # fmt: skip
    for label, value in chain(*rows):
        table.add_row(Text(label, style="dim"), Text(value))
    console.print(table)
    _print_bought(console, records)
    console.print(
        "In brackets: 95 % limits, by how far it depends on the people it was learnt from."
    )
    if of_evidence(last):
        console.print(
            "It is no certainty: everybody whom the voice fits as well is counted. It assumes "
            "recordings like those that it was learnt from."
        )
    if last["assumes_enrolled"]:
        console.print("This confidence assumes that the speaker is enrolled: it may be misplaced.")
    if "style" in last["features"]:
        console.print(f"{STYLE_CAVEAT[:1].upper()}{STYLE_CAVEAT[1:]}.")
    if last["beyond_grid"]:
        console.print("More speech than was learnt from: figures as for the longest length.")


def _protected(last: Mapping[str, Any], start: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The protected side: the strongest attacker who was tried, and who that is."""
    side, figure = start.get("protected"), protected_figure(last)
    if side is None or figure is None or last.get("bits") is None:
        return []
    bits = bits_or_more(last["protected"], f"{number(figure[0])} bits")
    fewer = fewer_in_words(last)
    limits = limits_in_words(figure[1], figure[2], cut=last["protected"].get("at_least"))
    said = f"{bits} {limits}{', ' if fewer else ''}{fewer}"
    to = f"to {attacker_of(last)}"
    name = f"through {clean(side.get('method', ''), 14)}"
    # a figure of an attacker who does not know the anonymiser is never read without the words
    return [(name, f"{to} ({said})")] if uninformed(last) else [(name, said), ("that is", to)]


def _promised(last: Mapping[str, Any], start: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is promised of all of it, whoever attacks."""
    said = promise_now(last)
    if not said:
        return []
    name = clean((start.get("declared") or {}).get("mechanism", ""), 14)
    return [(name, said), ("that is", composed_in_words(start, last))]


def _print_bought(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """How many seconds the protector bought before round numbers of bits."""
    from rich.table import Table
    from rich.text import Text

    bought = next((r.get("bought") for r in reversed(records) if r["type"] == "end"), None)
    if not bought:
        return
    table = Table(box=None, pad_edge=False)
    for name in ("reached", "clear at", "protected at", "bought"):
        table.add_column(Text(name, style="dim"))
    for row in bought:
        table.add_row(*map(Text, bought_cells(row)))
    for each in ("", table, ""):
        console.print(each)


def _begun(records: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The last change with which the evidence began afresh."""
    changes = (r for r in reversed(records) if r["type"] == "change" and r["action"] != "note")
    return next(changes, None)


def _bits(
    last: Mapping[str, Any], start: Mapping[str, Any], begun: Mapping[str, Any] | None
) -> list[tuple[str, str]]:
    """The figure shown first, what to compare it with, and each feature's part."""
    who = start.get("watch")
    label = "attacker's confidence" if who is None else f"{clean(who, 20)} disclosed"
    name = f"evidence for {clean(who, 20)}" if who and of_evidence(last) else label
    doubt = another_voice(last, None if who is None else clean(who, 20))
    if begun is not None or doubt:
        label = name = "bits in the end"  # nobody knows of whom
    if last["bits"] is None:
        rows = [(label, f"withheld: {clean(last.get('withheld', ''), 300)}")]
    else:
        crowd = clean(
            in_a_crowd(last, who and clean(who, 20), int(start.get("speakers") or 0)), 200
        )
        among = f"closed-set, of {start.get('speakers', 'few')}"
        rows = [
            *([("take care", doubt)] if doubt else []),
            *([("of the last voice", voice_since(begun))] if begun is not None else []),
            (name, f"{bits_now(last)} {_limits(last, 'bits')}"),
            *([("in other words" if who else "in a crowd", crowd)] if crowd else []),
            *_spread(last),
            ("largest so far", f"{number(last['peak_bits'])} bits"),
            *([(among, _closed_set(last))] if of_evidence(last) else []),
        ]
    average = f"{number(last['expected_bits'])} bits {_limits(last, 'expected_bits')}"
    rows.append(("closed-set average" if of_evidence(last) else "average at this length", average))
    for name, feature in last["features"].items():
        rank = "" if feature["rank"] is None else f", {clean(who, 20)} at rank {feature['rank']:g}"
        rows.append((f"by {clean(name, 17)}", f"{usable_in_words(name, feature['usable'])}{rank}"))
    likely = ", ".join(f"{clean(name, 20)} {p:.0%}" for name, p in last["top"][:5])
    rows.append(("most probable", likely))
    if others := also_narrowed_down(None if doubt else last.get("bystanders")):
        label, _, who_else = others.partition(": ")
        rows.append((label, who_else))
    if enrolled := enrolment(last):
        rows.append(("one of them at all", clean(enrolled, 300)))
    return rows


def _spread(last: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How far other voices lie apart, which the limits do not say."""
    if last.get("spread_low") is None:
        return []
    ends = f"{number(last['spread_low'])} and {number(last['spread_high'])}"
    return [("spread", f"9 of 10 voices of this length read between {ends} bits")]


def _closed_set(last: Mapping[str, Any]) -> str:
    return f"{among_enrolled(last)} {_limits(last, 'closed_set_bits')}"


def _sound(last: Mapping[str, Any], start: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was heard sounds like, and the templates where that is not the same."""
    said, theirs = (condition_in_words(each.get("conditions")) for each in (last, start))
    if not said:
        return []
    apart = f"; the templates: {theirs}" if theirs and last.get("differs") else ""
    return [("sound", f"{said}{apart}")]


def _rest(last: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """How much was heard, what was lost, and which alerts were raised."""
    speech = f"{clock_time(last['speech'])} of it speech"
    rows = [("heard", f"{clock_time(last['seconds'])}, {speech}")]
    if excluded := last.get("excluded_seconds"):
        rows.append(("left out", f"{clock_time(excluded)} of speech: another voice was noticed"))
    gaps = [record for record in records if record["type"] == "gap"]
    if gaps:
        seconds = sum(gap["lost_seconds"] or 0.0 for gap in gaps)
        reasons = ", ".join(dict.fromkeys(clean(gap["reason"], 40) for gap in gaps))
        rows.append(("lost", f"{plural(len(gaps), 'gap')}, {seconds:.3g} s: {reasons}"))
    for record in records:
        if record["type"] == "change":
            rows.append(("change", f"{voice_since(record)}, noticed at {_when(record)}"))
        elif record["type"] == "notice":
            rows.append(("note", clean(record["text"], 300)))
        elif record["type"] == "alert" and record["state"] == "raised":
            level = clean(record.get("level", "alert"), 10)
            rows.append((level, f"{clean(record['rule'], 60)} at {clock_time(record['seconds'])}"))
        elif record["type"] == "end":
            rows += [("not done", clean(line, 300)) for line in record.get("failures", ())]
            if record.get("stopped"):
                rows.append(("stopped by", clean(record["stopped"], 60)))
    return rows


def _when(record: Mapping[str, Any]) -> str:
    return clock_time(record["seconds"])


def _limits(record: Mapping[str, Any], field: str) -> str:
    cut = field == "bits" and of_evidence(record) and record.get("at_least")
    return limits_in_words(record[f"{field}_low"], record[f"{field}_high"], cut=cut)
