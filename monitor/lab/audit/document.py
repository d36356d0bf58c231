"""The document of an audit: HTML that prints, CSV and JSON."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor import crowds
from monitor.documents import (
    PRINTED,
    bullet_list,
    document,
    paragraphs,
    picture,
    save_with_figures,
    section,
)
from monitor.documents import table as table_of
from monitor.files import csv_number, csv_text
from monitor.lab.attacks.context import BITS
from monitor.lab.attacks.results import format_cell
from monitor.lab.audit.audit import (
    CONDITION_NAMES,
    SESSIONS,
    Audit,
    ConditionRow,
    TestRow,
    format_matches,
    format_plain_method,
    hash_speaker,
    summarise,
)
from monitor.lab.audit.exposure import LengthRow
from monitor.lab.report.export import figure_json
from monitor.lab.report.model import Figure, format_value
from monitor.phrases import plural
from monitor.plots.canvas import COLOURS, MUTED, inline_svg, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA = 1
MOST_EXPOSED = 10
"""Speakers who are named, by hash."""
TITLES = {
    "singling out": "Singling out",
    "linkability": "Linkability",
    "inference": "Inference",
    "retention": "How long speech may be kept",
}
_EXPLAINED = {
    "singling out": "Whether records of one person can be isolated (WP216). Evidence "
    "says how many times as likely a stretch is as this person's than as anybody else's: k bits "
    "leave one of 2^k people. Ranks say how often the right person comes first among those "
    "enrolled.",
    "linkability": "Whether two records can be told to concern the same person, without knowing "
    'who it is (WP216). The equal error rate is that of "are these two recordings of '
    'one speaker?"; D_sys is 0 where scores of one speaker and of two overlap fully, 1 where not '
    "at all.",
    "inference": "Whether an attribute of a person can be deduced with significant probability "
    "(WP216). A logistic regression on embeddings learns from some of the speakers and "
    "is judged on the others.",
    "retention": "Bits of evidence against the budget that was stated. The length is speech of one "
    "person in all: what is kept of several recordings adds up.",
}
_OF_ATTACK = {
    "singling out": "Whether records of one person can be isolated (WP216). Bits say how well an "
    "attacker tells who of N readers speaks: k bits leave one of 2^k, and all N are told apart at "
    "log2 N.",
    "retention": "Mean bits among the readers tested (MeanD) against the budget, at the one length "
    "of the trials.",
}
_NO_VERDICT = (
    "This report gives no verdict of anonymity. Data are anonymous in law where a person is not or "
    "no longer identifiable by any means reasonably likely to be used, by the controller or by "
    "another person, considering cost, time and the technology of the day (GDPR, recital 26; "
    "CJEU C-582/14, Breyer). That is a judgement about people and circumstances, which no "
    "measurement of recordings can make.",
    "The test itself is disputed. WP216 asks that singling out, linkability and inference be "
    "prevented; the Court of Justice asks what means are likely, and for whom: pseudonymised data "
    "are not personal data for every person in every case (C-413/23 P, EDPS v SRB, 2025). So the "
    "figures below are given for each of the three, with what was not tried. This is no legal "
    "advice.",
    "A low figure bounds the attackers who were tried, never those who were not.",
)
_SOURCES = (
    "Article 29 Data Protection Working Party, Opinion 05/2014 on Anonymisation Techniques, WP216, "
    "10 April 2014.",
    "Regulation (EU) 2016/679 (GDPR), recital 26, articles 4(1), 4(14) and 9.",
    "Court of Justice of the European Union, C-582/14, Breyer, 19 October 2016 (on Directive "
    "95/46/EC, before the GDPR).",
    "Court of Justice of the European Union, C-413/23 P, EDPS v SRB, 4 September 2025, "
    "ECLI:EU:C:2025:645 (on Regulation (EU) 2018/1725, for the Union's own bodies, which defines "
    "personal data as the GDPR does).",
    "EDPB, Guidelines 02/2021 on virtual voice assistants, version 2.0, 7 July 2021: voice as "
    "biometric data.",
    "D_sys: M. Gomez-Barrero et al., IEEE Transactions on Information Forensics and Security 13 "
    "(2018).",
    "Attributes: as in VoxGuard (Evaluating User and Attribute Privacy in Speech via Membership "
    "Inference Attacks), section 3.2.",
)
SINGLING = (BITS, "srd.idr", "linkage.pi_sing", "anonymity.mean_rank_p50", "anonymity.mean_rank_p1")
LINKING = (
    "verification.eer_rocch", "linkage.d_sys", "linkage.pi_link_10", "membership.tpr_at_1e-2",
    "membership.epsilon_nats_at_1e-2",
)  # fmt: skip
_LEAST = "\N{GREATER-THAN OR EQUAL TO} "
_HEADS = {
    BITS: "bits (MeanD)",
    "srd.idr": "first",
    "linkage.pi_sing": "pi_sing",
    "anonymity.mean_rank_p50": "mean rank, median",
    "anonymity.mean_rank_p1": "mean rank, most exposed",
    "verification.eer_rocch": "EER",
    "linkage.d_sys": "D_sys",
    "linkage.pi_link_10": "right one of 10",
    "membership.tpr_at_1e-2": "TPR at FPR 1 %",
    "membership.epsilon_nats_at_1e-2": "epsilon, nats",
}
_KEYS = {
    BITS: "MeanD: mean disclosure, bits of log2 N.",
    "srd.idr": "First: share of the trials in which the right person ranks first.",
    "linkage.pi_sing": "pi_sing: chance that a threshold isolates one person; 37 % is no evidence.",
    "anonymity.mean_rank_p50": "Mean rank of the right person: 1 is the first; of the median "
    "speaker, and of the most exposed hundredth.",
    "verification.eer_rocch": "50 % EER and D_sys 0 are no link.",
    "linkage.pi_link_10": "Right one of 10: how often a recording is linked to the right one of "
    "ten; 10 % is chance.",
    "membership.tpr_at_1e-2": "TPR at FPR 1 %: share of the right pairs that are accepted where "
    "one wrong pair in a hundred is.",
    "membership.epsilon_nats_at_1e-2": "Epsilon: ln(TPR / FPR) there; infinite where no wrong pair "
    "was accepted, which with so few is no measure.",
}
_STYLE = (
    "<style>.facts th{width:17%}.facts td.note{color:var(--ink);font-size:.9rem}"
    ".said{margin:0 0 10px;padding-left:20px}.said li{margin:0 0 4px}"
    ".figures th,.figures td{padding-right:9px}.figures thead th{vertical-align:bottom}"
    ".figures td.number small{white-space:nowrap}.figures tbody th{min-width:0}"
    ".hash{font-family:monospace}.key{margin-top:6px}.single-picture svg{max-width:640px}"
    "@media print{.figures{font-size:.82rem}.figures thead th{font-size:.74rem}"
    ".figures th,.figures td{padding-right:6px}.single-picture svg{max-width:420px}}</style>"
)


def save_audit(audit: Audit, path: Path, salt: str = "") -> tuple[Path, Path]:
    """Write the document, and a CSV and a JSON of its name beside it, mode 0600.

    Args:
        audit: what was found.
        path: of the document, ``.html``.
        salt: of the hashes that stand for speakers.

    Returns:
        the CSV and the JSON file.

    Raises:
        StoreError: one of them cannot be written.
    """
    return save_with_figures(
        audit_page(audit, salt), audit_csv(audit), audit_json(audit, salt), path
    )


# -------------------------------------------------------------------------------------- CSV, JSON

_HEAD = (
    "area", "method", "attacker", "feature", "session", "T", "D", "N", "trials", "figure", "label",
    "value", "low", "high", "unit", "note",
)  # fmt: skip


def audit_csv(audit: Audit) -> str:
    """Return a line for each figure; missing values are empty."""
    return csv_text(_HEAD, _list_csv_rows(audit))


def _list_csv_rows(audit: Audit) -> Iterator[list[Any]]:
    exposures = audit.exposures
    if exposures is not None:
        depth = "" if exposures.template_seconds is None else f"{exposures.template_seconds:g}"
        for row in audit.shown:
            columns = ["", "", exposures.kind, exposures.session, f"{row.seconds:g}", depth,
                       exposures.candidates, row.stretches]  # fmt: skip
            yield ["singling out", *columns, *_format_figure(row.mean)]
            for key, label, most in (
                ("bits.exposed", "bits of the most exposed tenth, at least", row.exposed),
                ("bits.most", "bits of the most telling stretch", row.most),
            ):
                yield ["singling out", *columns, key, label, repr(most), "", "", "bits", ""]
            yield ["linkability", *columns, *_format_figure(row.first)]
            if row.beyond is not None:
                yield ["retention", *columns, *_format_figure(row.beyond)]
    for test in audit.tests:
        columns = [test.method, test.attacker, test.feature, test.session, f"{test.seconds:g}",
              f"{test.template_seconds:g}", test.speakers, test.trials]  # fmt: skip
        for key, figure in test.figures.items():
            area = "linkability" if key.split(".")[0] in _LINKED else "singling out"
            yield [area, *columns, *_format_figure(figure, key)]
    for name, rows in audit.attributes.items():
        for inferred in rows:
            judgement = inferred.judgement
            columns = [inferred.method, inferred.attacker, inferred.feature, "",
                       f"{inferred.seconds:g}", "",
                       judgement.readers_with + judgement.readers_without,
                       judgement.excerpts_with + judgement.excerpts_without]  # fmt: skip
            label = f"EER of {name}: {inferred.value} ({inferred.version})"
            figure = replace(judgement.error, label=label)
            yield ["inference", *columns, *_format_figure(figure, "attribute.eer")]


_LINKED = ("verification", "linkage", "membership")


def _format_figure(figure: Figure, key: str = "") -> list[str]:
    numbers = (figure.value, figure.low, figure.high)
    cells = map(csv_number, numbers)
    return [key or figure.key, figure.label, *cells, figure.unit, figure.note or figure.text]


def audit_json(audit: Audit, salt: str = "") -> dict[str, Any]:
    """Return the document's content, for ``json.dumps(..., allow_nan=False)``."""
    retention, exposures = audit.retention, audit.exposures
    return {
        "schema": SCHEMA,
        "kind": "audit",
        "name": audit.name,
        "of": audit.kind,
        "facts": dict(audit.facts),
        "summary": summarise(audit),
        "budget_bits": audit.budget,
        "among": audit.among,
        "lengths": [_encode_row(row) for row in audit.shown],
        "headline_seconds": None if audit.headline is None else audit.headline.seconds,
        "same_people": _encode_same_people(audit),
        "bits": None if exposures is None else exposures.kind,
        "session": None if exposures is None else exposures.session,
        "retention": None if retention is None else {
            "budget_bits": audit.budget, "under_seconds": retention.under,
            "reached_seconds": retention.reached, "on_average_seconds": retention.on_average,
        },
        "exposed": [
            {"speaker": hashed, "bits": bits, "stretches": count}
            for hashed, bits, count in list_exposed(audit, salt)
        ],
        "tests": [
            {
                **{key: getattr(test, key) for key in TestRow.__slots__ if key != "figures"},
                "figures": {key: figure_json(figure) for key, figure in test.figures.items()},
            }
            for test in audit.tests
        ],
        "attributes": {
            name: [row.encode() for row in rows] for name, rows in audit.attributes.items()
        },
        "conditions": [
            {"name": row.name, "sessions": row.sessions, "median": row.middle, "p10": row.low,
             "p90": row.high}
            for row in audit.conditions
        ],
        "sounds_differ": None if audit.apart is None else {
            "same_speaker": audit.apart.same, "two_speakers": audit.apart.different,
        },
        "not_tested": list(audit.not_tested),
        "notes": list(audit.notes),
        "problems": list(audit.problems),
        "commands": list(audit.commands),
    }  # fmt: skip


def _encode_row(row: LengthRow) -> dict[str, Any]:
    return {
        "seconds": row.seconds,
        "speakers": row.speakers,
        "stretches": row.stretches,
        "mean_bits": figure_json(row.mean),
        "exposed_bits": row.exposed,
        "most_bits": row.most,
        "most_at_least": row.most_at_least,
        "first": figure_json(row.first),
        "beyond_budget": None if row.beyond is None else figure_json(row.beyond),
        "undecided": row.undecided,
        "at_least": row.clipped,
    }


def _encode_same_people(audit: Audit) -> dict[str, Any] | None:
    """Return the curve: means of the same people at each length, each counted once."""
    rows = audit.same_people
    return None if not rows else {
        "people": rows[0].speakers,
        "lengths": [{"seconds": row.seconds, "mean_bits": figure_json(row.mean)} for row in rows],
    }  # fmt: skip


def list_exposed(audit: Audit, salt: str = "") -> list[tuple[str, float, int]]:
    """Return hash, mean bits and stretches of the most exposed, at the headline's length."""
    if audit.exposures is None or audit.headline is None:
        return []
    part = audit.exposures.select_length(audit.headline.seconds)
    counts = np.bincount(part.owner, minlength=len(part.speakers))
    return [
        (hash_speaker(name, salt), bits, int(counts[part.speakers.index(name)]))
        for name, bits in list(part.by_speaker.items())[:MOST_EXPOSED]
    ]


# -------------------------------------------------------------------------------------------- page


def audit_page(audit: Audit, salt: str = "") -> str:
    """Return the document as HTML."""
    sentences = summarise(audit)
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    parts = [
        PRINTED,
        _STYLE,
        section(
            "In short",
            *(_render_sentences(TITLES[area], lines) for area, lines in sentences.items()),
        ),
        section("What this report does not say", paragraphs(*_NO_VERDICT)),
        _render_section(
            "What was tested", _render_facts(audit.facts.items()) + _render_conditions(audit)
        ),
        _render_area(
            audit,
            "singling out",
            sentences,
            _render_lengths(audit),
            _render_curve(audit),
            _render_tests(audit, SINGLING),
        ),
        _render_area(
            audit,
            "linkability",
            sentences,
            _render_tests(audit, LINKING),
            _render_sound_difference(audit),
        ),
        _render_area(audit, "inference", sentences, *_render_attributes(audit)),
        _render_area(audit, "retention", sentences, _render_budget(audit)),
        _render_exposed(audit, salt),
        section("What was not tested", bullet_list(audit.not_tested, "said")),
        section("What to know of these figures", bullet_list(audit.notes, "said"))
        if audit.notes
        else "",
        section("What could not be used", bullet_list(audit.problems, "said"))
        if audit.problems
        else "",
        _render_section("How to get these figures again, and sources", _render_commands(audit)),
    ]
    facts = [
        f"What voices disclose of the people who speak, to the attackers who were tried. {day}.",
        f"Budget: {audit.budget:g} bits for the speech of one person.",
    ]
    foot = "This document holds no voice and no template. Limits are 95 %."
    return document(f"Audit of {audit.name}", facts, parts, foot)


def _render_sentences(title: str, lines: Sequence[str]) -> str:
    return f"<h3>{escape(title)}</h3>{bullet_list(lines, 'said')}"


def _render_section(heading: str, body: str) -> str:
    return f'<section class="card long"><h2>{escape(heading)}</h2>{body}</section>'


def _render_area(
    audit: Audit, area: str, sentences: Mapping[str, Sequence[str]], *parts: str
) -> str:
    explained = _OF_ATTACK.get(area) if audit.kind == "attack" else None
    body = paragraphs(explained or _EXPLAINED[area]) + "".join(parts)
    if not any(parts):
        body += bullet_list(sentences[area], "said")
    return _render_section(TITLES[area], body)


def _render_facts(rows: Iterable[tuple[str, str]]) -> str:
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="note">{escape(text)}</td></tr>'
        for name, text in rows
    )
    return f'<div class="scroll"><table class="facts"><tbody>{body}</tbody></table></div>'


def _render_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1, key: str = ""
) -> str:
    rendered = table_of(head, rows, names).replace("<table>", '<table class="figures">')
    return rendered + (f'<p class="key">{escape(key)}</p>' if key else "")


def _render_lengths(audit: Audit) -> str:
    if not audit.shown or audit.exposures is None:
        return ""
    kind = audit.exposures.kind
    evidence = kind == "evidence"
    crowd = crowds.people(audit.among)
    head = ["T", "bits on average", "most exposed tenth", "most", "ranked first", "stretches"]
    if evidence:
        head.insert(2, f"fit of {crowd}")
    rows = []
    for row in audit.shown:
        least = _LEAST * (row.clipped > 0.05)
        line = [
            f"{row.seconds:g} s",
            f"{least}{_format_bits(row.mean)}",
            f"{row.exposed:.1f} or more",
            f"{_LEAST * row.most_at_least}{row.most:.1f}",
            format_cell(row.first),
            f"{row.stretches:,}\nof {plural(row.speakers, 'speaker')}",
        ]
        if evidence:
            line.insert(2, format_matches(row.mean.value or 0.0, audit.among).split(" of ")[0])
        rows.append(line)
    key = (
        f'Evidence bits of stretches of T seconds. "Fit of {crowd}": people who would fit as well '
        f"as the speaker, at the mean. {_LEAST.strip()}: calibration supports no more, of the mean "
        "in more than one stretch in twenty. Ranked first: against one template of everybody, by "
        "other trials than in the tests."
        if evidence
        else f"Bits among the {audit.exposures.candidates} enrolled, of "
        f"{math.log2(audit.exposures.candidates):.1f}."
    )
    key += " Each length is of those who speak as long, so that rows are of different people."
    return _render_table(head, rows, key=key)


def _format_bits(figure: Figure) -> str:
    value = f"{figure.value or 0.0:.1f}"
    if figure.low is None or figure.high is None:
        return value
    return f"{value}\n{figure.low:.1f} to {figure.high:.1f}"


def _render_curve(audit: Audit) -> str:
    rows = audit.same_people
    if len(rows) < 2:
        return ""
    people = plural(rows[0].speakers, "person", "people")

    def paint(axes: Axes) -> None:
        x = [row.seconds for row in rows]
        ends = [(row.mean.low, row.mean.high) for row in rows]
        axes.set_xscale("log")
        if all(low is not None and high is not None for low, high in ends):
            axes.fill_between(x, [low or 0.0 for low, _ in ends], [high or 0.0 for _, high in ends],
                              color=COLOURS[0], alpha=0.18, linewidth=0)  # fmt: skip
        axes.plot(x, [row.mean.value or 0.0 for row in rows], "o-", color=COLOURS[0],
                  markersize=3.5, label="mean, 95 %")  # fmt: skip
        axes.plot(x, [row.exposed for row in rows], "s--", color=COLOURS[1], markersize=3.5,
                  label="most exposed tenth")  # fmt: skip
        axes.axhline(audit.budget, color=MUTED, linestyle=":", label="budget")
        axes.set_xticks(x, [f"{seconds:g}" for seconds in x])
        axes.set_xticks([], minor=True)
        axes.set_ylim(bottom=min(0.0, *(row.mean.low or 0.0 for row in rows)))
        axes.set_xlabel("T: seconds of speech in a stretch")
        axes.set_ylabel("bits of evidence" if _is_evidence(audit) else "bits among the enrolled")
        legend_above(axes, columns=3)

    drawn = inline_svg(paint, "audit", "Bits by length of speech")
    figure = picture(
        "Bits by length of speech",
        drawn,
        f"The same {people} at each length, each by the mean of all stretches.",
    )
    return f'<div class="single-picture">{figure}</div>'


def _is_evidence(audit: Audit) -> bool:
    return audit.exposures is not None and audit.exposures.kind == "evidence"


def _render_tests(audit: Audit, keys: Sequence[str]) -> str:
    present = [key for key in keys if any(key in test.figures for test in audit.tests)]
    if not present:
        return ""
    attack = audit.kind == "attack"
    first = ["method", "attacker", "feature"] if attack else ["feature", "T", "session"]
    rows = []
    for test in _select_tests(audit):
        cells = [format_cell(test.figures.get(key)) for key in present]
        session = SESSIONS[test.session].removesuffix(" session")
        named = (
            [format_plain_method(test.method), test.attacker, test.feature]
            if attack
            else [test.feature, f"{test.seconds:g} s", session]
        )
        rows.append(
            [*named, *cells, f"{test.speakers}\n{plural(test.trials, 'trial')} of {test.tested}"]
        )
    depths = list(dict.fromkeys(test.template_seconds for test in audit.tests))
    if len(depths) > 1:
        first.append("template")
        rows = [[*row[:3], f"{test.template_seconds:g} s", *row[3:]]
                for row, test in zip(rows, _select_tests(audit), strict=True)]  # fmt: skip
    meanings = [f"Templates of {depths[0]:g} s."] * (len(depths) == 1)
    meanings += [meaning for key, meaning in _KEYS.items() if key in present]
    meanings.append("N: people whom each trial was compared with, below it the trials and their "
                "speakers. Small: 95 % limits.")  # fmt: skip
    head = [*first, *(_HEADS[k] for k in present), "N"]
    return _render_table(head, rows, names=len(first), key=" ".join(meanings))


def _select_tests(audit: Audit) -> list[TestRow]:
    """Return tests across sessions; of those within one the strongest at each length."""
    cross = [test for test in audit.tests if test.session == "cross"]
    if audit.kind == "attack" or not cross:
        return list(audit.tests)
    best: dict[float, TestRow] = {}
    for test in audit.tests:
        before = best.get(test.seconds)
        if test.session == "same" and (before is None or test.bits > before.bits):
            best[test.seconds] = test
    return [*cross, *best.values()]


def _render_sound_difference(audit: Audit) -> str:
    if audit.apart is None:
        return ""
    return paragraphs(describe_sound_difference(audit))


def describe_sound_difference(audit: Audit) -> str:
    """Say whether recordings tell speakers apart by sound alone."""
    apart = audit.apart
    if apart is None or apart.different is None:
        return ""
    different = format_value(apart.different, "share")
    if not apart.different and not apart.same:
        return (
            "No two sessions that were compared differ much in how they sound (band, noise, echo, "
            "clipping). Finer differences, of a codec or a room, may still tell people apart."
        )
    if apart.same is None:
        return (
            f"Sessions of two speakers differ in how they sound (band, noise, echo, clipping) in "
            f"{different} of the pairs; nobody has two sessions to compare with."
        )
    more = (
        " The recordings tell people apart, not their voices alone: figures may read too high."
        if apart.different > 2 * apart.same + 0.1
        else ""
    )
    return (
        f"Two sessions differ in how they sound (band, noise, echo, clipping) in "
        f"{format_value(apart.same, 'share')} of the pairs of one speaker and {different} of the "
        f"pairs of two.{more}"
    )


def _render_attributes(audit: Audit) -> Iterator[str]:
    names = ["method", "attacker"] if audit.kind == "attack" else []
    for name, rows in audit.attributes.items():
        lines = []
        for row in rows:
            judgement, at = row.judgement, row.judgement.at[0]
            accepted = format_cell(at.accepted)
            first = [format_plain_method(row.method), row.attacker] if names else []
            lines.append([
                *first, row.feature, row.value, format_cell(judgement.error),
                accepted + (" *" if at.note and "\n" not in accepted else ""),
                f"{judgement.readers_with} / {judgement.readers_without}",
                f"{judgement.excerpts_with + judgement.excerpts_without:,}",
            ])  # fmt: skip
        rates = [row.judgement.at[0] for row in rows]
        head = [*names, "feature", "told", "EER",
                f"told at {format_value(rates[0].asked, 'share')} false",
                "speakers with / without", "excerpts"]  # fmt: skip
        key = f"Stretches of {rows[0].seconds:g} s. 50 % EER would be a guess."
        key += next((f" {rate.note}." for rate in rates if rate.note), "")
        yield f"<h3>{escape(name)}</h3>" + _render_table(head, lines, len(names) + 2, key)


def _render_budget(audit: Audit) -> str:
    lines = bullet_list(summarise(audit)["retention"], "said")
    if not audit.shown:
        return lines
    rows = []
    for row in audit.shown:
        assert row.beyond is not None
        rows.append([
            f"{row.seconds:g} s",
            format_cell(row.beyond),
            format_value(row.undecided, "share"),
            _format_bits(row.mean),
            f"{row.exposed:.1f}",
            f"{row.stretches:,} of {row.speakers}",
        ])  # fmt: skip
    head = ["T", f"stretches at {audit.budget:g} bits or more", "cannot be told", "mean bits",
            "most exposed tenth", "stretches of speakers"]  # fmt: skip
    return lines + _render_table(head, rows)


def _render_conditions(audit: Audit) -> str:
    if audit.kind == "attack":
        return ""
    if not audit.conditions:
        return paragraphs("How the recordings sound is not known: they are ready-made frames.")
    rows = [
        [CONDITION_NAMES[row.name][0], *(format_condition(row, at) for at in (1, 0, 2)),
         f"{row.sessions}"]
        for row in audit.conditions
    ]  # fmt: skip
    return "<h3>Acoustic conditions</h3>" + _render_table(
        ["of a session", "median", "10 %", "90 %", "sessions"], rows
    )


def format_condition(row: ConditionRow, at: int) -> str:
    """Format the low (0), middle (1) or high (2) figure of a row, with its unit."""
    value, unit = (row.low, row.middle, row.high)[at], CONDITION_NAMES[row.name][1]
    if unit == "share":
        return format_value(value, "share")
    return f"{value:,.2f} s" if unit == "s" else f"{value:,.0f} {unit}"


def _render_exposed(audit: Audit, salt: str) -> str:
    speakers = list_exposed(audit, salt)
    if not speakers or audit.headline is None:
        return ""
    rows = [
        [
            name,
            f"{bits:.1f}",
            format_matches(bits, audit.among) if _is_evidence(audit) else "-",
            str(count),
        ]
        for name, bits, count in speakers
    ]
    salted = " with the salt that was given" if salt else ""
    rendered = _render_table(
        ["speaker (SHA-256)", "mean bits", "people who fit", "stretches"], rows,
        key=f"Stretches of {audit.headline.seconds:g} s. A hash is the first twelve digits of the "
        f"speaker's name{salted}: who has the list of names can find out whose it is.",
    )  # fmt: skip
    return _render_section("The most exposed speakers", rendered)


def _render_commands(audit: Audit) -> str:
    commands = "".join(f"<li><code>{escape(line)}</code></li>" for line in audit.commands)
    rendered = "<h3>The same figures by other commands</h3>" + f'<ul class="said">{commands}</ul>'
    return (rendered if commands else "") + "<h3>Sources</h3>" + bullet_list(_SOURCES, "said")
