"""Summary of a finished run, in a few lines on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from monitor.events import phrases
from monitor.events.declaration import Event, find_first
from monitor.events.phrases import clean, enrolment, number, uninformed
from monitor.events.reading import Reading
from monitor.events.run import Alert, Change, GapEvent, NoticeEvent, PersonEnd, RunEnd, RunStart
from monitor.phrases import STYLE_CAVEAT, clock_time, condition_in_words, plural, usable_in_words
from monitor.sinks.console import PlainConsole

_Rows: TypeAlias = Iterator[tuple[str, str]]


def print_summary(events: Sequence[Event]) -> None:
    """Print the result of a run as a table on stdout."""
    console, end = PlainConsole(highlight=False), find_first(events, RunEnd)
    if end is not None and end.people is not None:
        print_people(events, console)
        return
    if find_first(events, Reading) is None:
        console.print("no audio, so no bits disclosed")
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for label, value in summary_rows(events):
        table.add_row(Text(label, style="dim"), Text(value))
    console.print(table)
    if end is not None and end.disclosure_delay:
        cells = map(phrases.delay_cells, end.disclosure_delay)
        names = ("reached", "clear at", "protected at", "disclosure delay")
        for block in ("", _table(names, cells), ""):
            console.print(block)
    for note in summary_notes(events):
        console.print(note)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(Text(name, style="dim"))
    for cells in rows:
        table.add_row(*map(Text, cells))
    return table


def summary_rows(events: Sequence[Event]) -> list[tuple[str, str]]:
    """Format the result of a run of one voice, with at least one reading, as names and values."""
    last, start = _last(events), find_first(events, RunStart) or RunStart.from_record({})
    return [
        *_bits(last, start, events),
        *_comparisons(last, start),
        *_protected(last, start),
        *_promised(last, start),
        *_sound(last, start),
        *_lengths(last, events),
        *(row for event in events for row in _happened(event)),
    ]


def _last(events: Sequence[Event]) -> Reading:
    return next(event for event in reversed(events) if isinstance(event, Reading))


def summary_notes(events: Sequence[Event]) -> list[str]:
    """Explain how to read `summary_rows`."""
    last = _last(events)
    notes = ["Brackets: 95 % interval over calibration speakers."]
    if last.is_evidence:
        notes.append("Evidence is not proof. It assumes recordings like the calibration's.")
    if last.assumes_enrolled:
        notes.append("This confidence assumes that the speaker is enrolled: it may be misplaced.")
    if "style" in (last.features or {}):
        notes.append(f"{STYLE_CAVEAT[:1].upper()}{STYLE_CAVEAT[1:]}.")
    if advice := phrases.advise_sharing(events):
        notes.append(advice)
    if last.beyond_grid:
        notes.append("More speech than calibrated: figures as for the longest length.")
    return notes


def _bits(last: Reading, start: RunStart, events: Sequence[Event]) -> _Rows:
    who = None if start.watch is None else clean(start.watch, 20)
    name = label = "attacker's confidence" if who is None else f"{who} disclosed"
    if who and last.is_evidence:
        name = f"evidence for {who}"
    changes = [event for event in events if isinstance(event, Change) and event.action != "note"]
    doubt = phrases.another_voice(last, who)
    if changes or doubt:
        label = name = "bits in the end"  # the speaker is unknown
    if last.bits is None:
        yield label, f"withheld: {clean(last.withheld, 300)}"
        return
    for caution in filter(None, (doubt, phrases.mixed_voices(last, who))):
        yield "take care", caution
    if changes:  # the evidence restarted at the last change
        yield "of the last voice", phrases.voice_since(changes[-1])
    if nobody := phrases.nobody_speaks(last):
        yield "in short", f"{nobody}. {phrases.ENROL}"
        now = phrases.among_enrolled(last)
    else:
        now = phrases.bits_now(last)
    yield name, f"{now} {phrases.limits_of(last)}"
    if crowd := clean(phrases.in_a_crowd(last, who, start.speakers or 0), 200):
        yield "in other words" if who else "in a crowd", crowd
    if spread := phrases.spread_in_words(last):
        yield "spread", spread
    yield "largest so far", f"{number(last.peak_bits)} bits"
    if last.is_evidence:
        closed = f"{phrases.among_enrolled(last)} {phrases.limits_of(last, 'closed_set_bits')}"
        yield f"closed-set, of {start.speakers or 'few'}", closed


def _comparisons(last: Reading, start: RunStart) -> _Rows:
    average = "closed-set average" if last.is_evidence else "average at this length"
    limits = phrases.limits_of(last, "expected_bits")
    yield average, f"{number(last.expected_bits)} bits {limits}"
    for name, feature in last.features.items():
        rank = (
            "" if feature.rank is None else f", {clean(start.watch, 20)} at rank {feature.rank:g}"
        )
        yield f"by {clean(name, 17)}", f"{usable_in_words(name, feature.usable)}{rank}"
    yield "most probable", ", ".join(f"{clean(name, 20)} {p:.0%}" for name, p in last.top[:5])
    if last.change is None and (others := phrases.narrowed_names(last.bystanders)):
        yield phrases.NARROWED, others
    if enrolled := enrolment(last):
        yield "speaker enrolled?", clean(enrolled, 300)


def _protected(last: Reading, start: RunStart) -> _Rows:
    """Format the protected side: the strongest attacker tried, with its description."""
    side, figure = last.protected, phrases.protected_figure(last)
    if start.protected is None or side is None or figure is None or last.bits is None:
        return
    bits = phrases.bits_or_more(side, f"{number(figure[0])} bits")
    fewer = phrases.fewer_in_words(last)
    limits = phrases.limits_in_words(figure[1], figure[2], cut=side.at_least)
    sentence = ", ".join(filter(None, (f"{bits} {limits}", fewer)))
    name, to = f"through {clean(start.protected.method, 14)}", f"to {phrases.attacker_of(last)}"
    # the figure of an attacker unaware of the anonymiser must not appear without these words
    if uninformed(last):
        yield name, f"{to} ({sentence})"
    else:
        yield name, sentence
        yield "that is", to


def _promised(last: Reading, start: RunStart) -> _Rows:
    if sentence := phrases.promise_now(last):
        yield "" if start.declared is None else clean(start.declared.mechanism, 14), sentence
        yield "that is", phrases.composed_in_words(start, last)


def _sound(last: Reading, start: RunStart) -> _Rows:
    stream_text, template_text = (
        condition_in_words(None if c is None else c.record())
        for c in (last.conditions, start.conditions)
    )
    if stream_text:
        apart = f"(templates: {template_text})" if template_text and last.differs else ""
        yield "sound", f"{stream_text}{apart}"


def _lengths(last: Reading, events: Sequence[Event]) -> _Rows:
    yield "heard", f"{clock_time(last.seconds)}, {clock_time(last.speech)} of it speech"
    if excluded := last.excluded_seconds:
        yield "left out", f"{clock_time(excluded)} of speech: another voice was noticed"
    if gaps := [event for event in events if isinstance(event, GapEvent)]:
        seconds = sum(gap.lost_seconds or 0.0 for gap in gaps)
        reasons = ", ".join(dict.fromkeys(clean(gap.reason, 40) for gap in gaps))
        yield "lost", f"{plural(len(gaps), 'gap')}, {seconds:.3g} s: {reasons}"


def _happened(event: Event) -> _Rows:
    match event:
        case Change():
            yield "change", f"{phrases.voice_since(event)}, noticed at {clock_time(event.seconds)}"
        case NoticeEvent():
            yield "note", clean(event.text, 300)
        case Alert(state="raised", way=str()):
            yield clean(event.level, 10), phrases.event_in_words(event)
        case Alert(state="raised"):
            yield clean(event.level, 10), f"{clean(event.rule, 60)} at {clock_time(event.seconds)}"
        case RunEnd():
            if event.revealing_bits is not None:
                bits, at = event.revealing_bits, event.revealing_seconds or 0.0
                yield "most revealing", f"{bits:.1f} bits in 1.5 s of speech, at {clock_time(at)}"
            for line in event.failures or ():
                yield "not done", clean(line, 300)
            if event.stopped:
                yield "stopped by", clean(event.stopped, 60)


def print_people(events: Sequence[Event], console: Console) -> None:
    """Print one row per person in a recording, with the disclosed bits."""
    console.print(_table(PEOPLE_COLUMNS, people_rows(events)))
    end = find_first(events, RunEnd)
    if overlap := phrases.overlap_in_words(None if end is None else end.overlap_seconds):
        console.print(f"{overlap}.")
    console.print("Brackets: 95 % interval over calibration speakers.")
    if any(isinstance(event, Reading) and event.assumes_enrolled for event in events):
        console.print("This confidence assumes that each speaker is enrolled: it may be misplaced.")


PEOPLE_COLUMNS = ("label", "most probably", "spoke", "bits", "that is", "alert", "pure")


def people_rows(events: Sequence[Event]) -> list[list[str]]:
    """Format the cells of all people in an ended run, under `PEOPLE_COLUMNS`."""
    end = find_first(events, RunEnd)
    lasts = {
        (r.label, r.watch): r for r in events if isinstance(r, Reading) and r.label is not None
    }
    several = any(watch is not None for _, watch in lasts)
    return [
        person_cells(row, lasts.get((row.label, row.watch if several else None)))
        for row in (end and end.people) or ()
    ]


def person_cells(row: PersonEnd, last: Reading | None) -> list[str]:
    """Format the cells of one person from the last reading."""
    who = "not enrolled" if row.person is None else clean(row.person, 20)
    bits, sentence = "", "too little speech"
    if last is not None:
        sentence = phrases.bits_now(last)
        if row.bits is not None:
            bits = f"{number(row.bits)} {phrases.limits_of(row)}"
            sentence = phrases.nobody_speaks(last) or sentence.partition(", ")[2]
        if row.watch is not None:
            sentence = f"as {clean(row.watch, 20)}{': ' if sentence else ''}{sentence}"
    first = row.first_alert_seconds
    return [
        clean(row.label, 20),
        "" if row.probability is None else f"{who}, {100 * row.probability:.0f} %",
        clock_time(row.speech),
        bits,
        sentence,
        "" if first is None else clock_time(first),
        "" if row.purity is None else f"{100 * row.purity:.0f} %",
    ]
