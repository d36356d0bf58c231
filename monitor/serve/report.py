"""A run as a document: what was given away, its curve, its figures and what happened."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from io import BytesIO
from typing import Any

from monitor import phrases
from monitor.documents import bullet_list, document, paragraphs, section, table
from monitor.plots.canvas import written
from monitor.plots.curve import figure_of, heading, run_of
from monitor.sinks.people import PEOPLE_COLUMNS, people_rows
from monitor.sinks.summary import happened, summary_notes, summary_rows

_EVENTS = ("alert", "gap", "change", "crossing")


def run_report(records: Sequence[Mapping[str, Any]]) -> str:
    """One HTML file of a run, of its records in order; it may not have ended.

    Example:
        >>> start = {"type": "start", "recordings": ["a.wav"], "speakers": 50, "watch": "ann"}
        >>> "a.wav" in run_report([start])
        True
    """
    start = next((r for r in records if r["type"] == "start"), {})
    end = next((r for r in records if r["type"] == "end"), {})
    heard = any(r["type"] == "reading" for r in records)
    names = ", ".join(map(str, start.get("recordings") or ["a run"]))
    parts = [_picture(records)] if heard else []
    if "people" in end:
        parts.append(section("Everybody", table(PEOPLE_COLUMNS, people_rows(records))))
    elif heard and "people" not in start:
        rows = [(name, value) for name, value in summary_rows(records) if name != "note"]
        parts.append(
            section("In numbers", table(["", ""], rows), paragraphs(*summary_notes(records)))
        )
    log = [
        f"{phrases.clock_time(r['seconds'])} {': '.join(filter(None, happened(r)))}"
        for r in records
        if r["type"] in _EVENTS
    ]
    if log:
        parts.append(section("What happened", bullet_list(log)))
    notices = list(dict.fromkeys(_notices(records)))
    if notices:
        parts.append(section("What to know beside the figures", bullet_list(notices)))
    facts = [f"{names}, {start.get('time', '')}".removesuffix(", ")]
    if not heard:
        facts.append("Nothing was heard: no bits disclosed.")
    elif "people" not in start:
        facts.append(f"{heading(run_of(records))}.")
    if not end:
        facts.append("The run had not ended.")
    return document("What a voice gave away", facts, parts)


def _picture(records: Sequence[Mapping[str, Any]]) -> str:
    file = BytesIO()
    written(figure_of(records), file, ".png")
    data = base64.b64encode(file.getvalue()).decode()
    words = "bits of identity against the length heard"
    return (
        f'<figure class="card"><img src="data:image/png;base64,{data}" '
        f'style="width:100%" alt="{escape(words)}"></figure>'
    )


def _notices(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for record in records:
        yield from map(str, record.get("notices") or ())
        if record["type"] == "notice":
            yield str(record["text"])
