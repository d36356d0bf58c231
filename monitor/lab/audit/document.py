"""Files of an audit: a document that prints, with CSV and JSON; a dataset's card in Markdown."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from monitor import crowds
from monitor.errors import UsageError
from monitor.files import write_text
from monitor.lab.attacks.attackers import BITS
from monitor.lab.audit.audit import (
    CONDITION_NAMES,
    SESSIONS,
    Audit,
    ConditionRow,
    SoundDifference,
    TestRow,
    format_interval,
    format_matches,
    format_plain_method,
    hash_speaker,
    summarise,
)
from monitor.lab.audit.exposure import LengthRow
from monitor.lab.evaluation.verification import EER
from monitor.lab.report.export import figure_json, render_csv, render_markdown, save_with_figures
from monitor.lab.report.html import render_html
from monitor.lab.report.model import (
    Block,
    Bullets,
    Cell,
    Definitions,
    Document,
    Figure,
    Paragraphs,
    Picture,
    Section,
    Table,
    format_cell,
    format_value,
)
from monitor.phrases import plural
from monitor.plots.canvas import COLOURS, MUTED, inline_svg, legend_above
from monitor.types import Record

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
    'who it is (WP216). The equal error rate (EER) is that of "are these two recordings of '
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
SINGLING = {
    BITS: ("bits (MeanD)", "MeanD: mean disclosure, bits of log2 N."),
    "srd.idr": ("first", "First: share of the trials in which the right person ranks first."),
    "linkage.pi_sing": (
        "pi_sing",
        "pi_sing: chance that a threshold isolates one person; 37 % is no evidence.",
    ),
    "anonymity.mean_rank_p50": (
        "mean rank, median",
        "Mean rank of the right person: 1 is the first; of the median speaker, and of the most "
        "exposed hundredth.",
    ),
    "anonymity.mean_rank_p1": ("mean rank, most exposed", ""),
}
"""Columns by figure, and what each means."""
LINKING = {
    **{key: (label, "50 % EER and D_sys 0 are no link.") for key, label in EER.items()},
    "linkage.d_sys": ("D_sys", ""),
    "linkage.pi_link_10": (
        "right one of 10",
        "Right one of 10: how often a recording is linked to the right one of ten; 10 % is chance.",
    ),
    "membership.tpr_at_1e-2": (
        "TPR at FPR 1 %",
        "TPR at FPR 1 %: share of the right pairs that are accepted where one wrong pair in a "
        "hundred is.",
    ),
    "membership.epsilon_nats_at_1e-2": (
        "epsilon, nats",
        "Epsilon: ln(TPR / FPR) there; infinite where no wrong pair was accepted, which with so "
        "few is no measure.",
    ),
}
_LEAST = "\N{GREATER-THAN OR EQUAL TO} "


def save_audit(audit: Audit, path: Path, salt: str = "") -> tuple[Path, Path]:
    """Write the document, ``.html``, and a CSV and a JSON of its name beside it, mode 0600.

    Returns the latter. The salt goes into the hashes that stand for speakers.

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
_LINKED = ("verification", "linkage", "membership")


def audit_csv(audit: Audit) -> str:
    """Return a line for each figure; missing values are empty."""
    return render_csv(Table.of(_HEAD, list(_list_figures(audit))))


def _list_figures(audit: Audit) -> Iterator[list[Cell]]:
    def list_cells(figure: Figure, key: str = "", label: str = "") -> list[Cell]:
        return [key or figure.key, label or figure.label, figure.value, *figure.limits,
                figure.unit, figure.note or figure.text]  # fmt: skip

    exposures = audit.exposures
    if exposures is not None:
        depth = "" if exposures.template_seconds is None else f"{exposures.template_seconds:g}"
        for row in audit.shown:
            columns = ["", "", exposures.kind, exposures.session, f"{row.seconds:g}", depth,
                       str(exposures.candidates), str(row.stretches)]  # fmt: skip
            exposed = "bits of the most exposed tenth, at least"
            for figure in (
                row.mean_bits,
                Figure("bits.exposed", exposed, row.exposed_bits, "bits"),
                Figure("bits.most", "bits of the most telling stretch", row.most_bits, "bits"),
            ):
                yield ["singling out", *columns, *list_cells(figure)]
            yield ["linkability", *columns, *list_cells(row.first)]
            if row.beyond_budget is not None:
                yield ["retention", *columns, *list_cells(row.beyond_budget)]
    for test in audit.tests:
        columns = [test.method, test.attacker, test.feature, test.session, f"{test.seconds:g}",
                   f"{test.template_seconds:g}", str(test.speakers), str(test.trials)]  # fmt: skip
        for key, figure in test.figures.items():
            area = "linkability" if key.split(".")[0] in _LINKED else "singling out"
            yield [area, *columns, *list_cells(figure, key)]
    for name, rows in audit.attributes.items():
        for inferred in rows:
            judgement = inferred.judgement
            columns = [inferred.method, inferred.attacker, inferred.feature, "",
                       f"{inferred.seconds:g}", "",
                       str(judgement.readers_with + judgement.readers_without),
                       str(judgement.excerpts_with + judgement.excerpts_without)]  # fmt: skip
            error = judgement.error
            label = f"{error.label} of {name}: {inferred.value} ({inferred.version})"
            yield ["inference", *columns, *list_cells(error, "attribute.eer", label)]


def audit_json(audit: Audit, salt: str = "") -> Record:
    """Return the document's content, for ``json.dumps(..., allow_nan=False)``."""
    retention, exposures = audit.retention, audit.exposures
    same_people = audit.same_people
    return {
        "schema": SCHEMA,
        "kind": "audit",
        "name": audit.name,
        "of": audit.kind,
        "facts": dict(audit.facts),
        "summary": summarise(audit),
        "budget_bits": audit.config.budget,
        "among": audit.config.among,
        "lengths": [_encode(row) for row in audit.shown],
        "headline_seconds": None if audit.headline is None else audit.headline.seconds,
        "same_people": {
            "people": same_people[0].speakers,
            "lengths": [{"seconds": row.seconds, "mean_bits": figure_json(row.mean_bits)}
                        for row in same_people],
        } if same_people else None,
        "bits": None if exposures is None else exposures.kind,
        "session": None if exposures is None else exposures.session,
        "retention": None if retention is None else {
            "budget_bits": audit.config.budget, "under_seconds": retention.under,
            "reached_seconds": retention.reached, "on_average_seconds": retention.on_average,
        },
        "exposed": [
            {"speaker": hashed, "bits": bits, "stretches": count}
            for hashed, bits, count in list_exposed(audit, salt)
        ],
        "tests": [_encode(test) for test in audit.tests],
        "attributes": {
            name: [row.encode() for row in rows] for name, rows in audit.attributes.items()
        },
        "conditions": [_encode(row) for row in audit.conditions],
        "sounds_differ": None if audit.apart is None else _encode(audit.apart),
        "not_tested": list(audit.not_tested),
        "notes": list(audit.notes),
        "problems": list(audit.problems),
        "commands": list(audit.commands),
    }  # fmt: skip


def _encode(row: LengthRow | TestRow | ConditionRow | SoundDifference) -> dict[str, object]:
    values = {name: getattr(row, name) for name in row.__slots__}
    return {
        name: figure_json(value) if isinstance(value, Figure)
        else {key: figure_json(figure) for key, figure in value.items()} if name == "figures"
        else value
        for name, value in values.items()
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
    return render_html(make_document(audit, salt))


def make_document(audit: Audit, salt: str = "") -> Document:
    """Make the document of an audit."""
    sentences = summarise(audit)
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    commands: list[Block] = [Bullets(audit.commands, "code")] if audit.commands else []
    if audit.kind == "attack":
        conditions: list[Block] = []
    elif audit.conditions:
        conditions = [_tabulate_conditions(audit)]
    else:
        conditions = [Paragraphs(["How the recordings sound is not known: they are ready-made "
                                  "frames."])]  # fmt: skip

    def make_area(area: str, blocks: Sequence[Block], *, summarised: bool = False) -> Section:
        explained = _OF_ATTACK.get(area) if audit.kind == "attack" else None
        lines = [Bullets(sentences[area])] if summarised or not blocks else []
        return Section(TITLES[area], [Paragraphs([explained or _EXPLAINED[area]]), *lines, *blocks])

    apart = describe_sound_difference(audit)
    sections = [
        Section("In short", _list_sentences(audit)),
        Section("What this report does not say", [Paragraphs(_NO_VERDICT)]),
        Section("What was tested", [Definitions([*audit.facts.items()]), *conditions]),
        make_area("singling out", [*_tabulate_lengths(audit), *_draw_curve(audit),
                                   *_tabulate_tests(audit, SINGLING)]),
        make_area("linkability", [*_tabulate_tests(audit, LINKING),
                                  *([Paragraphs([apart])] if apart else [])]),
        make_area("inference", _tabulate_attributes(audit)),
        make_area("retention", _tabulate_budget(audit), summarised=True),
        Section("The most exposed speakers", _tabulate_exposed(audit, salt)),
        Section("What was not tested", [Bullets(audit.not_tested)]),
        *(
            Section(title, [Bullets(lines)])
            for title, lines in (
                ("What to know of these figures", audit.notes),
                ("What could not be used", audit.problems),
            )
            if lines
        ),
        Section("How to get these figures again, and sources", [
            Section("The same figures by other commands", commands),
            Section("Sources", [Bullets(_SOURCES)]),
        ]),
    ]  # fmt: skip
    facts = [
        f"What voices disclose of the people who speak, to the attackers who were tried. {day}.",
        f"Budget: {audit.config.budget:g} bits for the speech of one person.",
    ]
    foot = "This document holds no voice and no template. Limits are 95 %."
    return Document(f"Audit of {audit.name}", facts, sections, foot=foot)


def _list_sentences(audit: Audit) -> list[Section]:
    return [Section(TITLES[area], [Bullets(lines)]) for area, lines in summarise(audit).items()]


def _tabulate_lengths(audit: Audit) -> list[Block]:
    exposures = audit.exposures
    if not audit.shown or exposures is None:
        return []
    evidence = exposures.kind == "evidence"
    crowd = crowds.people(audit.config.among)
    head = ["T", "bits on average", "most exposed tenth", "most", "ranked first", "stretches"]
    rows: list[list[Cell]] = []
    for row in audit.shown:
        rows.append([
            f"{row.seconds:g} s",
            f"{_LEAST * (row.at_least > 0.05)}{_format_bits(row.mean_bits)}",
            f"{row.exposed_bits:.1f} or more",
            f"{_LEAST * row.most_at_least}{row.most_bits:.1f}",
            row.first,
            f"{row.stretches:,}\nof {plural(row.speakers, 'speaker')}",
        ])  # fmt: skip
        if evidence:
            rows[-1].insert(2, _match(row.bits, audit))
    notes = [f"Bits among the {exposures.candidates} enrolled, of "
             f"{exposures.ceiling:.1f}."]  # fmt: skip
    if evidence:
        head.insert(2, f"fit of {crowd}")
        notes = [
            f'Evidence bits of stretches of T seconds. "Fit of {crowd}": people who would fit as '
            f"well as the speaker, at the mean. {_LEAST.strip()}: calibration supports no more, of "
            "the mean in more than one stretch in twenty. Ranked first: against one template of "
            "everybody, by other trials than in the tests."
        ]
    notes.append("Each length is of those who speak as long, so that rows are of different people.")
    return [Table.of(head, rows, notes=notes)]


def _match(bits: float, audit: Audit) -> str:
    """Format how many people match, without the crowd."""
    among = audit.config.among
    return format_matches(bits, among).removesuffix(f" of {crowds.people(among)}")


def _format_bits(figure: Figure) -> str:
    value = f"{figure.value or 0.0:.1f}"
    if figure.low is None or figure.high is None:
        return value
    return f"{value}\n{figure.low:.1f} to {figure.high:.1f}"


def _draw_curve(audit: Audit) -> list[Block]:
    rows = audit.same_people
    if len(rows) < 2:
        return []
    means = np.array([[row.bits, *row.mean_bits.limits] for row in rows], float)

    def paint(axes: Axes) -> None:
        x = [row.seconds for row in rows]
        axes.set_xscale("log")
        if np.isfinite(means).all():
            axes.fill_between(x, *means[:, 1:].T, color=COLOURS[0], alpha=0.18, linewidth=0)
        axes.plot(x, means[:, 0], "o-", color=COLOURS[0], markersize=3.5, label="mean, 95 %")
        axes.plot(x, [row.exposed_bits for row in rows], "s--", color=COLOURS[1], markersize=3.5,
                  label="most exposed tenth")  # fmt: skip
        axes.axhline(audit.config.budget, color=MUTED, linestyle=":", label="budget")
        axes.set_xticks(x, [f"{seconds:g}" for seconds in x])
        axes.set_xticks([], minor=True)
        axes.set_ylim(bottom=min(0.0, float(np.nanmin(means))))
        axes.set_xlabel("T: seconds of speech in a stretch")
        axes.set_ylabel("bits of evidence" if _is_evidence(audit) else "bits among the enrolled")
        legend_above(axes, columns=3)

    title, people = "Bits by length of speech", plural(rows[0].speakers, "person", "people")
    caption = f"The same {people} at each length, each by the mean of all stretches."
    return [Picture(title, inline_svg(paint, "audit", title), caption)]


def _is_evidence(audit: Audit) -> bool:
    return audit.exposures is not None and audit.exposures.kind == "evidence"


def _tabulate_tests(audit: Audit, columns: Mapping[str, tuple[str, str]]) -> list[Block]:
    present = [key for key in columns if any(key in test.figures for test in audit.tests)]
    if not present:
        return []
    attack = audit.kind == "attack"
    head = ["method", "attacker", "feature"] if attack else ["feature", "T", "session"]
    depths = {test.template_seconds for test in audit.tests}
    rows: list[list[Cell]] = []
    for test in _select_tests(audit):
        names: list[Cell] = [test.feature, f"{test.seconds:g} s",
                             SESSIONS[test.session].removesuffix(" session")]  # fmt: skip
        if attack:
            names = [format_plain_method(test.method), test.attacker, test.feature]
        depth = [f"{test.template_seconds:g} s"] * (len(depths) > 1)
        count = f"{test.speakers}\n{plural(test.trials, 'trial')} of {test.tested}"
        rows.append([*names, *depth, *(test.figures.get(key) for key in present), count])
    notes = [f"Templates of {min(depths):g} s."] * (len(depths) == 1)
    notes += filter(None, dict.fromkeys(columns[key][1] for key in present))
    notes.append("N: people whom each trial was compared with, below it the trials and their "
                 "speakers. Small: 95 % limits.")  # fmt: skip
    head += ["template"] * (len(depths) > 1)
    titles = [columns[key][0] for key in present]
    return [Table.of([*head, *titles, "N"], rows, names=len(head), notes=[" ".join(notes)])]


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


def describe_sound_difference(audit: Audit) -> str:
    """Say whether recordings tell speakers apart by sound alone; empty where nobody knows."""
    apart = audit.apart
    if apart is None or apart.two_speakers is None:
        return ""
    if not apart.two_speakers and not apart.same_speaker:
        return (
            "No two sessions that were compared differ much in how they sound (band, noise, echo, "
            "clipping). Finer differences, of a codec or a room, may still tell people apart."
        )
    different = format_value(apart.two_speakers, "share")
    if apart.same_speaker is None:
        return (
            f"Sessions of two speakers differ in how they sound (band, noise, echo, clipping) in "
            f"{different} of the pairs; nobody has two sessions to compare with."
        )
    same = format_value(apart.same_speaker, "share")
    more = " The recordings tell people apart, not their voices alone: figures may read too high."
    return (
        "Two sessions differ in how they sound (band, noise, echo, clipping) in "
        f"{same} of the pairs of one speaker and {different} of the pairs of two."
        + more
        * (apart.two_speakers > 2 * apart.same_speaker + 0.1)
    )


def _tabulate_attributes(audit: Audit) -> list[Block]:
    tables: list[Block] = []
    names = ["method", "attacker"] if audit.kind == "attack" else []
    for name, rows in audit.attributes.items():
        lines: list[list[Cell]] = []
        for row in rows:
            judgement, at = row.judgement, row.judgement.at[0]
            accepted = format_cell(at.accepted)
            first = [format_plain_method(row.method), row.attacker] if names else []
            lines.append([
                *first, row.feature, row.value, judgement.error,
                accepted + (" *" if at.note and "\n" not in accepted else ""),
                f"{judgement.readers_with} / {judgement.readers_without}",
                judgement.excerpts_with + judgement.excerpts_without,
            ])  # fmt: skip
        rates = [row.judgement.at[0] for row in rows]
        head = [*names, "feature", "told", rows[0].judgement.error.label,
                f"told at {format_value(rates[0].asked, 'share')} false",
                "speakers with / without", "excerpts"]  # fmt: skip
        notes = [f"Stretches of {rows[0].seconds:g} s. 50 % EER would be a guess."]
        notes += [f"{rate.note}." for rate in rates if rate.note][:1]
        tables.append(Table.of(head, lines, len(names) + 2, title=name, notes=notes))
    return tables


def _tabulate_budget(audit: Audit) -> list[Block]:
    rows: list[list[Cell]] = [
        [
            f"{row.seconds:g} s",
            row.beyond_budget,
            format_value(row.undecided, "share"),
            _format_bits(row.mean_bits),
            f"{row.exposed_bits:.1f}",
            f"{row.stretches:,} of {row.speakers}",
        ]
        for row in audit.shown
    ]
    head = ["T", f"stretches at {audit.config.budget:g} bits or more", "cannot be told",
            "mean bits", "most exposed tenth", "stretches of speakers"]  # fmt: skip
    return [Table.of(head, rows)] if rows else []


def _tabulate_conditions(audit: Audit) -> Table:
    rows = [
        (CONDITION_NAMES[row.name][0], _format_condition(row, row.median),
         f"{_format_condition(row, row.p10)} to {_format_condition(row, row.p90)}",
         str(row.sessions))
        for row in audit.conditions
    ]  # fmt: skip
    head = ("of a session", "median", "four in five", "sessions")
    return Table.of(head, rows, title="Acoustic conditions")


def _format_condition(row: ConditionRow, value: float) -> str:
    unit = CONDITION_NAMES[row.name][1]
    if unit == "share":
        return format_value(value, "share")
    return f"{value:,.2f} s" if unit == "s" else f"{value:,.0f} {unit}"


def _tabulate_exposed(audit: Audit, salt: str) -> list[Block]:
    speakers = list_exposed(audit, salt)
    if not speakers or audit.headline is None:
        return []
    crowd = crowds.people(audit.config.among)
    rows = [
        (name, f"{bits:.1f}", _match(bits, audit) if _is_evidence(audit) else "-", str(count))
        for name, bits, count in speakers
    ]
    protection = "with a salt, which whoever finds out whose it is has to know" if salt else (
        "and no secret to who has the list of names: --salt makes it one"
    )  # fmt: skip
    note = (
        f"Stretches of {audit.headline.seconds:g} s. A speaker is shown as the first twelve digits "
        f"of the SHA-256 of the name, {protection}."
    )
    head = ("speaker (SHA-256)", "mean bits", f"fit of {crowd}", "stretches")
    return [Table.of(head, rows, notes=[note])]


# -------------------------------------------------------------------------------------------- card


@dataclass(frozen=True)
class Label:
    """Disclosure of a published dataset's speakers: a card in Markdown for its page, and JSON.

    `uniqueness` is the test that says how often the right person comes first among so many.
    """

    audit: Audit
    salt: str = ""
    uniqueness: TestRow | None = None


def make_label(audit: Audit, salt: str = "") -> Label:
    """Make the label of an audited corpus.

    Raises:
        UsageError: the audit is of something else than a corpus.
    """
    if audit.kind != "corpus":
        raise UsageError("a label is of a corpus: give a folder of recordings by speaker")
    several = max((test.tested for test in audit.tests if test.session == "cross"), default=0)
    tests = [test for test in audit.tests if 2 * test.tested >= several]  # few say little of crowds
    tests = [test for test in tests if test.session == "cross"] or tests
    return Label(audit, salt, max(tests, key=lambda test: test.bits, default=None))


def save_label(label: Label, path: Path) -> Path:
    """Write the card, ``.md``, and a JSON of its name beside it, mode 0600; returns the latter.

    Raises:
        StoreError: one of them cannot be written.
    """
    json_path = path.with_suffix(".json")
    write_text(json.dumps(label_json(label), allow_nan=False, indent=1) + "\n", json_path)
    write_text(label_markdown(label), path)
    return json_path


def label_json(label: Label) -> Record:
    """Return the card's content, for ``json.dumps(..., allow_nan=False)``."""
    return {
        **audit_json(label.audit, label.salt),
        "kind": "label",
        "schema": SCHEMA,
        "uniqueness": [
            {"people": people, "first": figure.value, "low": figure.low, "high": figure.high,
             "supported": figure.text != "unsupported"}
            for people, figure in _list_uniqueness(label)
        ],
        "confounds": list(_list_confounds(label)),
    }  # fmt: skip


def _list_uniqueness(label: Label) -> Iterator[tuple[int, Figure]]:
    """Return crowds, and the share of first ranks in each.

    Up to as many as are enrolled it is measured; beyond there is only a bracket, without a value.
    """
    for key, figure in label.uniqueness.figures.items() if label.uniqueness else ():
        people = key.removeprefix("among.idr_")
        if key != people and people.isdigit():
            yield int(people), figure


def label_markdown(label: Label) -> str:
    """Return the card, a section of a dataset's page."""
    audit, salt = label.audit, label.salt
    intro = (
        "Attackers without any knowledge of the speakers but a known recording of each were tried. "
        "A stronger one learns more; no figure here is a promise, and none says whether the data "
        "are anonymous in law."
    )
    sections = [
        Section("What was tested", [Definitions([*audit.facts.items()])]),
        Section("In short", _list_sentences(audit)),
        Section("Bits by length of speech", _tabulate_lengths(audit)),
        *_describe_uniqueness(label),
        Section("The most exposed speakers", _tabulate_exposed(audit, salt)),
        Section("Same-session confounds", [Bullets(list(_list_confounds(label)))]),
        Section("Attributes", _tabulate_attributes(audit)),
        Section("Recordings", [_tabulate_conditions(audit)] if audit.conditions else []),
        Section("Not tested", [Bullets(audit.not_tested)]),
        Section("To know", [Bullets(audit.notes)] if audit.notes else []),
    ]  # fmt: skip
    title = f"What the voices of {audit.name} disclose"
    return render_markdown(Document(title, [intro], sections, foot="Limits are 95 %."))


def _describe_uniqueness(label: Label) -> list[Section]:
    test = label.uniqueness
    rows: list[list[Cell]] = []
    for people, figure in _list_uniqueness(label):
        if figure.value is not None:
            rows.append([crowds.people(people), replace(figure, text=""), "measured"])
        elif figure.low is not None and figure.high is not None:
            ends = (format_value(end, "share") for end in (figure.low, figure.high))
            is_supported = figure.text != "unsupported"
            basis = "extrapolated" if is_supported else "not supported by so few speakers"
            rows.append([crowds.people(people), " to ".join(ends), basis])
    if test is None or not rows:
        return []
    text = (
        f"How often the right person comes first among so many, by {test.seconds:g} s of speech "
        f"({test.feature}, {SESSIONS[test.session]}, {plural(test.trials, 'trial')} of "
        f"{plural(test.tested, 'speaker')}). Among the {test.speakers} enrolled it is measured; of "
        "more people there is only a bracket, which spans what ways of extrapolation say."
    )
    table = Table.of(("people", "right one first", "how it is known"), rows)
    return [Section("How unique a voice is", [Paragraphs([text]), table])]


def _list_confounds(label: Label) -> Iterator[str]:
    """Yield what separates people in these recordings besides their voices."""
    audit = label.audit
    tests = [t for t in audit.tests if t.feature == (label.uniqueness or t).feature]
    by = {session: [t for t in tests if t.session == session] for session in SESSIONS}
    if not by["cross"]:
        yield (
            "Nobody has two sessions with enough speech: all figures are within one session, where "
            "room, microphone and day are the speaker's own. They are an upper end."
        )
    for same, cross in product(by["same"], by["cross"]):
        less, more = cross.get_value("srd.idr"), same.get_value("srd.idr")
        if cross.seconds != same.seconds or less is None or more is None:
            continue
        first, other = same.figures["srd.idr"], cross.figures["srd.idr"]
        conclusion = ": too few speakers to show a difference."
        if more <= less:
            conclusion = ", no less than within one."
        elif other.high is None or more > other.high:
            conclusion = ": what is more within one is told by room, microphone and day."
        yield (
            f"By {same.seconds:g} s the right one of {same.speakers} comes first in "
            f"{format_interval(first)} of the trials within a session, and of {cross.speakers} in "
            f"{format_interval(other)} across sessions{conclusion}"
        )
    if difference := describe_sound_difference(audit):
        yield difference
