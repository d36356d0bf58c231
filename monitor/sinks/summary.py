"""The summary of a run, and single records, in the words of a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from monitor import phrases
from monitor.crowds import best_match, bits_or_more, format_matches, narrowed_sentence
from monitor.safe_text import printable

if TYPE_CHECKING:
    from rich.console import Console

# --- Readings, alerts and changes in the words of a terminal: one short line each.

SHOWN_BYSTANDERS = 3
LONGEST_NOTE = 500


def alert_in_words(record: Mapping[str, Any]) -> str:
    """Format an alert or a warning, raised or over, in one line.

    Examples:
        >>> alert = {"type": "alert", "seconds": 41.0, "rule": "bits>3 for 5 s", "field": "bits",
        ...     "threshold": 3.0, "level": "alert", "state": "raised", "value": 3.42}
        >>> alert_in_words(alert)
        'alert at 0:41: bits>3 for 5 s (now 3.4)'
        >>> alert_in_words({**alert, "state": "cleared"})
        'alert over at 0:41: bits>3 for 5 s'
        >>> change = {"since_seconds": 33.0, "features": ["f0"]}
        >>> alert_in_words({**alert, "state": "cleared", "change": change})
        'alert over at 0:41: bits>3 for 5 s (another voice since 0:33)'
        >>> soon = {"level": "warning", "rule": "bits>3 within 30 s", "value": 2.1}
        >>> alert_in_words({**alert, **soon, "seconds_left": 28.2})
        'warning at 0:41: 3 bits in about 28 s (bits>3 within 30 s, now 2.1)'
        >>> late = {"false_alarms": {"horizon_seconds": 30.0, "beyond": True}}
        >>> alert_in_words({**alert, **late})
        'alert at 0:41: bits>3 for 5 s (now 3.4; later than the 30 seconds this is known for)'
    """
    title, words = describe_event(record)
    return f"{title} at {phrases.clock_time(record.get('seconds') or 0.0)}: {words}"


ACTIONS = {
    "note": "alerts rest until the first is back",
    "reset": "the evidence begins afresh",
    "split": "another stream begins",
}
"""What is done at a change."""
_GAPS = {"thinned": "heard less, to keep up", "words ended": "words ended"}


def describe_event(record: Mapping[str, Any]) -> tuple[str, str]:
    """Describe an alert, gap, notice, change or crossing: a title, and its details.

    Examples:
        >>> describe_event({"type": "gap", "seconds": 3.0, "reason": "dropped"})
        ('audio lost', 'dropped')
        >>> describe_event({"type": "gap", "reason": "device lost", "detail": "for 8.4 s"})
        ('audio lost', 'device lost (for 8.4 s)')
        >>> describe_event({"type": "gap", "reason": "dropped", "label": "S0", "watch": "ann"})
        ('S0 as ann: audio lost', 'dropped')
        >>> change = {"type": "change", "since_seconds": 107.0, "features": ["f0"]}
        >>> describe_event({**change, "back": True})
        ('the first voice is back since 1:47', 'alerts go on')
    """
    title, words = _describe(record)
    if record.get("label") is not None and record["type"] != "notice":  # which names it itself
        of = f" as {clean(record['watch'], 20)}" if record.get("watch") is not None else ""
        title = f"{clean(record['label'], 20)}{of}: {title}"
    return title, words


def _describe(record: Mapping[str, Any]) -> tuple[str, str]:
    kind = record["type"]
    if kind == "gap":
        reason, detail = record.get("reason"), record.get("detail")
        if reason in _GAPS:
            return _GAPS[str(reason)], clean(detail, 100)
        return "audio lost", clean(f"{reason} ({detail})" if detail else reason, 160)
    if kind == "notice":
        return "note", clean(record.get("text"), LONGEST_NOTE)
    if kind == "change":
        done = ACTIONS.get(str(record.get("action")), ACTIONS["note"])
        return phrases.voice_since(record), "alerts go on" if record.get("back") else done
    if kind == "crossing":
        return phrases.level_in_words(record.get("bits") or 0.0), phrases.crossing_words(record)
    rule, level = clean(record.get("rule"), 60), clean(record.get("level", "alert"), 10)
    if record.get("state") != "raised":
        why = f" ({phrases.voice_since(record['change'])})" if record.get("change") else ""
        return f"{level} over", f"{rule}{why}"
    now, left = number(record.get("value")), record.get("seconds_left")
    if left is not None:
        soon = f"{record['threshold']:g} bits in about {max(1, round(left))} s"
        return level, f"{soon} ({rule}, now {now})"
    alarms, late = record.get("false_alarms") or {}, ""
    if alarms.get("beyond"):
        length = phrases.length_in_words(alarms["horizon_seconds"])
        late = f"; later than the {length} this is known for"
    return level, f"{rule} (now {now}{late})"


def also_narrowed_down(bystanders: Sequence[Mapping[str, Any]] | None) -> str:
    """Format who else became more probable; empty where nobody did.

    Examples:
        >>> also_narrowed_down([{"name": "bob", "probability": 1 / 30, "people": 10000}])
        'also narrowed down: bob, 1 in 30'
        >>> also_narrowed_down([])
        ''
    """
    return f"{NARROWED}: {narrowed_names(bystanders)}" if bystanders else ""


NARROWED = "also narrowed down"


def narrowed_names(bystanders: Sequence[Mapping[str, Any]] | None) -> str:
    """Format the first few bystanders, with their probabilities."""
    everyone = list(bystanders or ())
    shown = [
        f"{clean(bystander['name'], 20)}, {phrases.one_in(bystander['probability'])}"
        for bystander in everyone
    ]
    more = (
        f"; and {len(everyone) - SHOWN_BYSTANDERS} more" if len(everyone) > SHOWN_BYSTANDERS else ""
    )
    return f"{'; '.join(shown[:SHOWN_BYSTANDERS])}{more}"


def bits_now(reading: Mapping[str, Any]) -> str:
    """Format the headline of a reading, or why there is none.

    Examples:
        >>> among = [{"people": 50, "bits": 5.6}, {"people": 1e6, "bits": 11.3}]
        >>> bits_now({"bits": 11.3, "headline": "evidence", "among": among})
        '11.3 bits, about 400 in a million'
        >>> bits_now({"bits": 2.06, "ceiling": 5.64}), bits_now({"bits": None})
        ('2.1 of 5.6 bits, 1 in 12', 'no figure yet')
        >>> print(bits_now({"bits": -1.0, "ceiling": 5.64, "differs": ["clipping"]}))
        -1.0 of 5.6 bits, 1 in 100 (low bits do not mean safe)
    """
    bits, care = reading.get("bits"), phrases.caveat_of(reading)
    caveat = f" ({care})" if care and bits is not None else ""
    if not phrases.is_evidence(reading) or bits is None or not math.isfinite(bits):
        return f"{among_enrolled(reading)}{caveat}"
    words = bits_or_more(reading, f"{number(bits)} bits")
    if change := reading.get("change"):
        return f"{words}, {phrases.voice_since(change)}{caveat}"
    return ", ".join(part for part in (words, format_matches(reading)) if part) + caveat


def limits_in_words(low: float, high: float, *, cut: bool | None = False) -> str:
    """Format the 95 % interval of a figure, in brackets.

    Examples:
        >>> limits_in_words(7.04, 8.7), limits_in_words(8.7, 8.7, cut=True)
        ('(7.0 to 8.7)', '(8.7 or more)')
    """
    return f"({number(low)} or more)" if cut else f"({number(low)} to {number(high)})"


def in_a_crowd(
    reading: Mapping[str, Any], watch: str | None, enrolled: int, *, fit: bool = True
) -> str:
    """Explain the evidence in the largest crowd; empty where there is none to speak of.

    While a change is open it may be of somebody else, and claims nothing.
    """
    if reading.get("change"):
        return ""
    if watch is None:
        return best_match(reading, enrolled)
    return narrowed_sentence(reading, watch, fit=fit)


def among_enrolled(reading: Mapping[str, Any]) -> str:
    """Format the closed-set figure of a reading, or why there is none.

    Examples:
        >>> among_enrolled({"bits": 2.06, "ceiling": 5.64}), among_enrolled({"bits": None})
        ('2.1 of 5.6 bits, 1 in 12', 'no figure yet')
        >>> among_enrolled({"bits": 5.58, "ceiling": 5.64})
        '5.6 of 5.6 bits, 96 % sure'
        >>> change = {"since_seconds": 107.0, "features": ["f0"]}
        >>> among_enrolled({"bits": 2.06, "ceiling": 5.64, "change": change})
        '2.1 of 5.6 bits, another voice since 1:47'
    """
    bits, ceiling = phrases.closed_set(reading), reading.get("ceiling")
    if bits is None or ceiling is None or not math.isfinite(bits):
        withheld = reading.get("withheld")
        return "no figure yet" if withheld is None else f"withheld: {clean(withheld, 40)}"
    words = f"{number(bits)} of {number(ceiling)} bits"
    if change := reading.get("change"):  # it claims nothing about anybody
        return f"{words}, {phrases.voice_since(change)}"
    odds = phrases.odds(bits, ceiling, assumed=bool(reading.get("assumes_enrolled")))
    words = f"{words}, {odds}"
    return (
        f"{words} if it is one of them, {phrases.IMPOSTOR}"
        if phrases.is_impostor(reading)
        else words
    )


def protected_now(reading: Mapping[str, Any]) -> str:
    """Format the protected side of a reading, and to which attacker.

    Examples:
        >>> tried = {"ignorant": {}, "lazy-informed": {}}
        >>> side = {"bits": 0.9, "by": "lazy-informed", "attackers": tried}
        >>> protected_now({"bits": 2.1, "protected": side}).partition(", to ")[0]
        'protected 0.9 bits, 1.2 fewer'
        >>> side = {"bits": -14.7, "by": "ignorant", "attackers": {"ignorant": {}}}
        >>> protected_now({"bits": 2.1, "protected": side})  # doctest: +NORMALIZE_WHITESPACE
        'protected -14.7 bits, to an attacker who does not know the anonymiser: no measure of
        protection'
        >>> protected_now({"bits": 2.1})
        'protected: no figure yet'
    """
    figure = phrases.protected_figure(reading)
    if figure is None:
        return "protected: no figure yet"
    bits = bits_or_more(reading["protected"], f"{number(figure[0])} bits")
    parts = [
        f"protected {bits}",
        phrases.fewer_in_words(reading),
        f"to {phrases.attacker_of(reading)}",
    ]
    return ", ".join(part for part in parts if part)


def number(value: float | None) -> str:
    """Format with one decimal, no negative zero; a question mark for nothing."""
    text = "?" if value is None else f"{value:.1f}"
    return "0.0" if text == "-0.0" else text


def speed_text(speed: float) -> str:
    """Format a multiple of real time."""
    return f"{speed:.1f}" if speed < 10 else f"{speed:,.0f}"


def clean(value: object, longest: int) -> str:
    """Shorten a name or reason, so that it cannot steer the terminal."""
    text = printable(value)
    return text if len(text) <= longest else text[: longest - 1] + "~"


# --- The summary of a run: the few lines left on a terminal when it is over.


def print_summary(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the result of a run as a table on stdout."""
    from rich.table import Table
    from rich.text import Text

    from monitor.sinks.console import PlainConsole

    last = next((r for r in reversed(records) if r["type"] == "reading"), None)
    console = PlainConsole(highlight=False)
    if any("people" in r for r in records if r["type"] == "end"):
        print_people(records, console)
        return
    if last is None:
        console.print("nothing was heard: no bits disclosed")
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for label, value in summary_rows(records):
        table.add_row(Text(label, style="dim"), Text(value))
    console.print(table)
    _print_disclosure_delay(console, records)
    for note in summary_notes(records):
        console.print(note)


def summary_rows(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Format the result of a run of one voice, which has a reading, as names and values."""
    last = next(r for r in reversed(records) if r["type"] == "reading")
    start = next((r for r in records if r["type"] == "start"), {})
    return list(
        chain(
            _bits(last, start, _begun(records)), _protected(last, start), _promised(last, start),
            _sound(last, start), _rest(last, records),
        )
    )  # fmt: skip


def summary_notes(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Explain how to read `summary_rows`."""
    last = next(r for r in reversed(records) if r["type"] == "reading")
    notes = ["Brackets: 95 % interval over calibration speakers."]
    if phrases.is_evidence(last):
        notes.append("Evidence is not proof. It assumes recordings like the calibration's.")
    if last["assumes_enrolled"]:
        notes.append("This confidence assumes that the speaker is enrolled: it may be misplaced.")
    if "style" in last["features"]:
        notes.append(f"{phrases.STYLE_CAVEAT[:1].upper()}{phrases.STYLE_CAVEAT[1:]}.")
    if last["beyond_grid"]:
        notes.append("More speech than calibrated: figures as for the longest length.")
    return notes


def _protected(last: Mapping[str, Any], start: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Format the protected side: the strongest attacker who was tried, and who that is."""
    side, figure = start.get("protected"), phrases.protected_figure(last)
    if side is None or figure is None or last.get("bits") is None:
        return []
    bits = bits_or_more(last["protected"], f"{number(figure[0])} bits")
    fewer = phrases.fewer_in_words(last)
    limits = limits_in_words(figure[1], figure[2], cut=last["protected"].get("at_least"))
    sentence = f"{bits} {limits}{', ' if fewer else ''}{fewer}"
    to = f"to {phrases.attacker_of(last)}"
    name = f"through {clean(side.get('method', ''), 14)}"
    # a figure of an attacker who does not know the anonymiser is never read without the words
    return (
        [(name, f"{to} ({sentence})")]
        if phrases.uninformed(last)
        else [(name, sentence), ("that is", to)]
    )


def _promised(last: Mapping[str, Any], start: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Format the promise over the whole stream, against every attacker."""
    sentence = phrases.promise_now(last)
    if not sentence:
        return []
    name = clean((start.get("declared") or {}).get("mechanism", ""), 14)
    return [(name, sentence), ("that is", phrases.composed_in_words(start, last))]


def _print_disclosure_delay(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Print by how many seconds the anonymiser delayed round numbers of bits."""
    from rich.table import Table
    from rich.text import Text

    disclosure_delay = next(
        (r.get("disclosure_delay") for r in reversed(records) if r["type"] == "end"), None
    )
    if not disclosure_delay:
        return
    table = Table(box=None, pad_edge=False)
    for name in ("reached", "clear at", "protected at", "disclosure delay"):
        table.add_column(Text(name, style="dim"))
    for row in disclosure_delay:
        table.add_row(*map(Text, phrases.delay_cells(row)))
    for block in ("", table, ""):
        console.print(block)


def _begun(records: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the last change with which the evidence began afresh."""
    changes = (r for r in reversed(records) if r["type"] == "change" and r["action"] != "note")
    return next(changes, None)


def _bits(
    last: Mapping[str, Any], start: Mapping[str, Any], begun: Mapping[str, Any] | None
) -> list[tuple[str, str]]:
    """Format the headline, its comparisons, and the part of each feature."""
    who = start.get("watch")
    label = "attacker's confidence" if who is None else f"{clean(who, 20)} disclosed"
    name = f"evidence for {clean(who, 20)}" if who and phrases.is_evidence(last) else label
    doubt = phrases.another_voice(last, None if who is None else clean(who, 20))
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
            *([("of the last voice", phrases.voice_since(begun))] if begun is not None else []),
            (name, f"{bits_now(last)} {_limits(last, 'bits')}"),
            *([("in other words" if who else "in a crowd", crowd)] if crowd else []),
            *_spread(last),
            ("largest so far", f"{number(last['peak_bits'])} bits"),
            *(
                [(among, f"{among_enrolled(last)} {_limits(last, 'closed_set_bits')}")]
                if phrases.is_evidence(last)
                else []
            ),
        ]
    average = f"{number(last['expected_bits'])} bits {_limits(last, 'expected_bits')}"
    rows.append(
        ("closed-set average" if phrases.is_evidence(last) else "average at this length", average)
    )
    for name, feature in last["features"].items():
        rank = "" if feature["rank"] is None else f", {clean(who, 20)} at rank {feature['rank']:g}"
        rows.append(
            (f"by {clean(name, 17)}", f"{phrases.usable_in_words(name, feature['usable'])}{rank}")
        )
    likely = ", ".join(f"{clean(name, 20)} {p:.0%}" for name, p in last["top"][:5])
    rows.append(("most probable", likely))
    if others := narrowed_names(None if doubt else last.get("bystanders")):
        rows.append((NARROWED, others))
    if enrolled := phrases.enrolment(last):
        rows.append(("speaker enrolled?", clean(enrolled, 300)))
    return rows


def _spread(last: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Format how far other voices lie apart, which the limits do not say."""
    if last.get("spread_low") is None:
        return []
    return [("spread", phrases.spread_in_words(last))]


def _sound(last: Mapping[str, Any], start: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Format the conditions of the stream, and of the templates where they differ."""
    stream_text, template_text = (
        phrases.condition_in_words(record.get("conditions")) for record in (last, start)
    )
    if not stream_text:
        return []
    apart = f"; the templates: {template_text}" if template_text and last.get("differs") else ""
    return [("sound", f"{stream_text}{apart}")]


def _rest(last: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Format lengths, losses and alerts."""
    speech = f"{phrases.clock_time(last['speech'])} of it speech"
    rows = [("heard", f"{phrases.clock_time(last['seconds'])}, {speech}")]
    if excluded := last.get("excluded_seconds"):
        rows.append(
            ("left out", f"{phrases.clock_time(excluded)} of speech: another voice was noticed")
        )
    gaps = [record for record in records if record["type"] == "gap"]
    if gaps:
        seconds = sum(gap["lost_seconds"] or 0.0 for gap in gaps)
        reasons = ", ".join(dict.fromkeys(clean(gap["reason"], 40) for gap in gaps))
        rows.append(("lost", f"{phrases.plural(len(gaps), 'gap')}, {seconds:.3g} s: {reasons}"))
    for record in records:
        if record["type"] == "change":
            at = phrases.clock_time(record["seconds"])
            rows.append(("change", f"{phrases.voice_since(record)}, noticed at {at}"))
        elif record["type"] == "notice":
            rows.append(("note", clean(record["text"], 300)))
        elif record["type"] == "alert" and record["state"] == "raised":
            level = clean(record.get("level", "alert"), 10)
            rows.append(
                (level, f"{clean(record['rule'], 60)} at {phrases.clock_time(record['seconds'])}")
            )
        elif record["type"] == "end":
            rows += [("not done", clean(line, 300)) for line in record.get("failures", ())]
            if record.get("stopped"):
                rows.append(("stopped by", clean(record["stopped"], 60)))
    return rows


def _limits(record: Mapping[str, Any], field: str) -> str:
    cut = field == "bits" and phrases.is_evidence(record) and record.get("at_least")
    return limits_in_words(record[f"{field}_low"], record[f"{field}_high"], cut=cut)


# --- The summary of a recording of several people: a row for each.


def print_people(records: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print who is in a recording and what each gave away, a row each."""
    from rich.table import Table
    from rich.text import Text

    end = next(r for r in reversed(records) if r["type"] == "end")
    table = Table(box=None, pad_edge=False)
    for name in PEOPLE_COLUMNS:
        table.add_column(Text(name, style="dim"))
    for cells in people_rows(records):
        table.add_row(*map(Text, cells))
    console.print(table)
    if overlap := end.get("overlap_seconds"):
        console.print(f"{phrases.overlap_in_words(overlap)}.")
    console.print("Brackets: 95 % interval over calibration speakers.")
    if any(r.get("assumes_enrolled") for r in records if r["type"] == "reading"):
        console.print("This confidence assumes that each speaker is enrolled: it may be misplaced.")


PEOPLE_COLUMNS = ("label", "most probably", "spoke", "bits", "that is", "alert", "pure")


def people_rows(records: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Format the cells of everybody in a recording, under `PEOPLE_COLUMNS`; the run has ended."""
    end = next(r for r in reversed(records) if r["type"] == "end")
    lasts = {
        (r["label"], r.get("watch")): r for r in records if r["type"] == "reading" and "label" in r
    }
    several = any(watch is not None for _, watch in lasts)
    return [
        person_cells(row, lasts.get((row["label"], row["watch"] if several else None)))
        for row in end["people"]
    ]


def person_cells(row: Mapping[str, Any], last: Mapping[str, Any] | None) -> list[str]:
    """Format the cells of one person.

    Examples:
        >>> row = {"label": "S0", "person": "ann", "probability": 0.961, "purity": 0.98,
        ...     "watch": None, "speech": 61.0, "first_alert_seconds": 12.0, "bits": 2.06,
        ...     "bits_low": 1.9, "bits_high": 2.2, "headline": "closed-set", "at_least": False}
        >>> person_cells(row, {"bits": 2.06, "ceiling": 5.64})
        ['S0', 'ann, 96 %', '1:01', '2.1 (1.9 to 2.2)', '1 in 12', '0:12', '98 %']
        >>> person_cells({**row, "person": None, "purity": None}, None)[1:5]
        ['nobody enrolled, 96 %', '1:01', '', 'too little to say']
    """
    who = "nobody enrolled" if row["person"] is None else clean(row["person"], 20)
    probability = row["probability"]
    bits, sentence = "", "too little to say"
    if last is not None:
        sentence = bits_now(last)
        if row["bits"] is not None:
            cut = row["headline"] == "evidence" and row["at_least"]
            limits = limits_in_words(row["bits_low"], row["bits_high"], cut=cut)
            bits, sentence = f"{number(row['bits'])} {limits}", sentence.partition(", ")[2]
        if row["watch"] is not None:
            sentence = f"as {clean(row['watch'], 20)}{': ' if sentence else ''}{sentence}"
    first, purity = row["first_alert_seconds"], row["purity"]
    return [
        clean(row["label"], 20),
        "" if probability is None else f"{who}, {100 * probability:.0f} %",
        phrases.clock_time(row["speech"]),
        bits,
        sentence,
        "" if first is None else phrases.clock_time(first),
        "" if purity is None else f"{100 * purity:.0f} %",
    ]
