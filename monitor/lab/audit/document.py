"""Files of an audit: a printable document with CSV and JSON, and a dataset's card in Markdown."""

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
from monitor.lab.attacks.speech import CLEAR
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
    select_strongest,
    summarise,
)
from monitor.lab.audit.exposure import LengthRow
from monitor.lab.evaluation.verification import EER
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
    Tile,
    Tiles,
    format_cell,
    format_value,
)
from monitor.lab.report.renderers import (
    figure_json,
    render_csv,
    render_html,
    render_markdown,
    save_with_figures,
)
from monitor.phrases import length_in_words, plural
from monitor.plots.canvas import COLOURS, MUTED, inline_svg, legend_above
from monitor.types import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA = 1
MOST_EXPOSED = 10  # number of most exposed speakers to list, by hash
TITLES = {
    "singling out": "Singling out",
    "linkability": "Linkability",
    "inference": "Inference",
    "retention": "How long speech may be kept",
}
_EXPLAINED = {
    "singling out": "Whether records of one person can be isolated (WP216). Evidence is the "
    "likelihood ratio in bits of this person against other speakers. With k bits of it, 2^k "
    "people are narrowed to one. Ranks show how often the correct person comes first among those "
    "enrolled.",
    "linkability": "Whether two records can be linked to the same person, without knowing the "
    "person (WP216). The equal error rate (EER) is for deciding whether two recordings are of one "
    "speaker. D_sys is 0 if scores of one speaker and of two overlap fully, and 1 if they do not "
    "overlap.",
    "inference": "Whether an attribute of a person can be deduced with significant probability "
    "(WP216). A logistic regression on embeddings is trained on some of the speakers and "
    "judged on the others.",
    "retention": "Bits of evidence against the stated budget. The length is all speech of one "
    "person, summed over the retained recordings.",
}
_OF_ATTACK = {
    "singling out": "Whether records of one person can be isolated (WP216). Bits measure how well "
    "an attacker identifies the speaker among N readers. With k bits, 2^k readers are narrowed to "
    "one. All N are identified at log2 N.",
    "retention": "Mean bits among the readers tested (MeanD) against the budget, at the length of "
    "the trials.",
}
_NO_VERDICT = (
    "This report gives no verdict on anonymity. Data are anonymous in law if a person is not or no "
    "longer identifiable by any means reasonably likely to be used. This includes means of the "
    "controller and of others, considering cost, time and current technology (GDPR, recital 26; "
    "CJEU C-582/14, Breyer). It is a judgement about people and circumstances, which no "
    "measurement of recordings can make.",
    "The test itself is disputed. WP216 requires that singling out, linkability and inference are "
    "prevented. The Court of Justice considers which means are likely, and for whom. Pseudonymised "
    "data are therefore not personal data for every person in every case (C-413/23 P, EDPS v SRB, "
    "2025). The figures below cover all three, and list the attackers that were not tested. This "
    "is not legal advice.",
    "A low figure bounds the tested attackers only.",
)
_SOURCES = (
    "Article 29 Data Protection Working Party, Opinion 05/2014 on Anonymisation Techniques, WP216, "
    "10 April 2014.",
    "Regulation (EU) 2016/679 (GDPR), recital 26, articles 4(1), 4(14) and 9.",
    "Court of Justice of the European Union, C-582/14, Breyer, 19 October 2016 (on Directive "
    "95/46/EC, before the GDPR).",
    "Court of Justice of the European Union, C-413/23 P, EDPS v SRB, 4 September 2025, "
    "ECLI:EU:C:2025:645. It is on Regulation (EU) 2018/1725 for the Union's own bodies, which "
    "defines personal data like the GDPR.",
    "EDPB, Guidelines 02/2021 on virtual voice assistants, version 2.0, 7 July 2021: voice as "
    "biometric data.",
    "D_sys: M. Gomez-Barrero et al., IEEE Transactions on Information Forensics and Security 13 "
    "(2018).",
    "Attributes: as in VoxGuard (Evaluating User and Attribute Privacy in Speech via Membership "
    "Inference Attacks), section 3.2.",
)
SINGLING = {
    BITS: ("bits (MeanD)", "MeanD: mean disclosure, bits of log2 N."),
    "srd.idr": ("first", "First: fraction of the trials in which the correct person ranks first."),
    "linkage.pi_sing": (
        "pi_sing",
        "pi_sing: probability that a threshold isolates one person (37 % without evidence).",
    ),
    "anonymity.mean_rank_p50": (
        "mean rank, median",
        "Mean rank: average rank of the correct person, where 1 is first. It is given for the "
        "median speaker and the most exposed hundredth.",
    ),
    "anonymity.mean_rank_p1": ("mean rank, most exposed", ""),
}
"""Name and explanation of each column, by figure."""
LINKING = {
    **{key: (label, "50 % EER and D_sys 0 are chance.") for key, label in EER.items()},
    "linkage.d_sys": ("D_sys", ""),
    "linkage.pi_link_10": (
        "right one of 10",
        "Right one of 10: how often a recording is linked to the right one of ten people. 10 % is "
        "chance.",
    ),
    "membership.tpr_at_1e-2": (
        "TPR at FPR 1 %",
        "TPR at FPR 1 %: fraction of mated pairs accepted at a threshold that accepts 1 % of the "
        "non-mated pairs.",
    ),
    "membership.epsilon_nats_at_1e-2": (
        "epsilon, nats",
        "Epsilon: ln(TPR / FPR) at this threshold. It is infinite if no non-mated pair was "
        "accepted, and not meaningful with few pairs.",
    ),
}
_LEAST = "\N{GREATER-THAN OR EQUAL TO} "


def save_audit(audit: Audit, path: Path, salt: str = "") -> tuple[Path, Path]:
    """Write the HTML document, with a CSV and a JSON file of the same name beside it, mode 0600.

    Return the paths of CSV and JSON. The salt goes into the hashes that replace speakers' names.
    """
    page, plain = audit_page(audit, salt), audit_json(audit, salt)
    return save_with_figures(page, audit_csv(audit), plain, path)


_HEAD = (
    "area", "method", "attacker", "feature", "session", "T", "D", "N", "trials", "figure", "label",
    "value", "low", "high", "unit", "note",
)  # fmt: skip
_LINKED = ("verification", "linkage", "membership")


def audit_csv(audit: Audit) -> str:
    """Return one line per figure, with empty cells for missing values."""
    return render_csv(Table.from_numbers(_HEAD, list(_list_figures(audit))))


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
                Figure("bits.most", "bits of the most disclosing stretch", row.most_bits, "bits"),
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
        "most_revealing": None if audit.snippet is None else {
            "seconds": audit.snippet.seconds, "bits": audit.snippet.most_bits,
        },
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
    """Return hash, mean bits and number of stretches of the most exposed, at the main length."""
    if audit.exposures is None or audit.headline is None:
        return []
    exposures = audit.exposures.select_length(audit.headline.seconds)
    counts = np.bincount(exposures.owner, minlength=len(exposures.speakers))
    return [
        (hash_speaker(name, salt), bits, int(counts[exposures.speakers.index(name)]))
        for name, bits in list(exposures.by_speaker.items())[:MOST_EXPOSED]
    ]


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
        conditions = [Paragraphs(["Acoustic conditions are unknown, because the recordings are "
                                  "ready-made frames."])]  # fmt: skip

    def make_area(area: str, blocks: Sequence[Block], *, summarised: bool = False) -> Section:
        explained = _OF_ATTACK.get(area) if audit.kind == "attack" else None
        lines = [Bullets(sentences[area])] if summarised or not blocks else []
        return Section(TITLES[area], [Paragraphs([explained or _EXPLAINED[area]]), *lines, *blocks])

    apart = describe_sound_difference(audit)
    sections = [
        Section("In short", _list_sentences(audit)),
        Section("No verdict on anonymity", [Paragraphs(_NO_VERDICT)]),
        Section("Tested", [Definitions([*audit.facts.items()]), *conditions]),
        make_area("singling out", [*_tabulate_lengths(audit), *_tabulate_tests(audit, SINGLING)]),
        make_area("linkability", [*_tabulate_tests(audit, LINKING),
                                  *([Paragraphs([apart])] if apart else [])]),
        make_area("inference", _tabulate_attributes(audit)),
        make_area("retention", _tabulate_budget(audit), summarised=True),
        Section("The most exposed speakers", _tabulate_exposed(audit, salt)),
        Section("Not tested", [Bullets(audit.not_tested)]),
        *(Section(title, [Bullets(lines)])
          for title, lines in (("Caveats", audit.notes), ("Excluded", audit.problems)) if lines),
        Section("Commands and sources", [
            Section("Commands that reproduce these figures", commands),
            Section("Sources", [Bullets(_SOURCES)]),
        ]),
    ]  # fmt: skip
    facts = [
        f"How well the tested attackers identify people by their voices. {day}.",
        f"Budget: {audit.config.budget:g} bits for the speech of one person.",
        f"This report gives no verdict on anonymity. {_NO_VERDICT[-1]}",
    ]
    foot = "This document contains no voice and no template. Intervals are 95 %."
    folded = [replace(section, folded=True) for section in sections]
    tiles = Tiles([*_list_tiles(audit)])
    return Document(
        f"Audit of {audit.name}", facts, [tiles, *_draw_curve(audit), *folded], foot=foot
    )


def _list_tiles(audit: Audit) -> Iterator[Tile]:
    """Yield the headline figures: bits, how well recordings are linked, and speech to keep."""

    def anonymised(tests: Sequence[TestRow]) -> Sequence[TestRow]:
        return [test for test in tests if test.method != CLEAR] or tests

    row, exposures, budget = audit.headline, audit.exposures, audit.config.budget
    worst = max(anonymised(select_strongest(audit)), key=lambda t: t.bits, default=None)
    if row is not None and exposures is not None:
        note = f"of {exposures.ceiling:.1f} among the enrolled"
        if _is_evidence(audit):
            note = f"{format_matches(row.bits, audit.config.among)} people match as well."
            note += f" The most exposed tenth: at least {row.exposed_bits:.1f} bits."
        prefix = "at least " * (row.at_least > 0.05)
        label = f"Disclosed by {length_in_words(row.seconds)} of speech, on average"
        yield Tile(f"{prefix}{row.bits:.1f} bits", label, note[:1].upper() + note[1:])
    elif worst is not None:
        label = f"Disclosed by {worst.seconds:g} s, {format_plain_method(worst.method)}"
        yield Tile(f"{worst.bits:.1f} of {worst.ceiling:.1f} bits", label,
                   "The most of all methods, to the strongest attacker.")  # fmt: skip
    key = next((k for k in EER if any(k in test.figures for test in audit.tests)), "")
    linked = anonymised(select_strongest(audit, key, smallest=True))
    if test := min(linked, key=lambda t: t.get_value(key) or 0.0, default=None):
        error = test.figures[key]
        label = f"{EER[key]} when linking {test.seconds:g} s to a recording of the speaker"
        yield Tile(format_value(error.value, error.unit), label, "50 % is chance.")
    if (retention := audit.retention) is not None and (retention.under or retention.reached):
        under = "No length tested" if retention.under is None else f"{retention.under:g} s"
        note = f"At {retention.reached:g} s a stretch may reach it." if retention.reached else (
            "More speech was not tested.")  # fmt: skip
        yield Tile(under, f"Longest speech under the budget of {budget:g} bits", note)
    elif retention is None and worst is not None:
        high = max(worst.bits, worst.figures[BITS].high or 0.0)
        value = "Stays under it" if high < budget else "May exceed it"
        if worst.ceiling < budget:
            value = "Cannot be tested"
        note = f"{worst.speakers} readers can show at most {worst.ceiling:.1f} bits."
        yield Tile(value, f"Budget of {budget:g} bits, on average", note)


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
            f"{_LEAST}{row.exposed_bits:.1f}",
            f"{_LEAST * row.most_at_least}{row.most_bits:.1f}",
            row.first,
            f"{row.stretches:,}\nof {plural(row.speakers, 'speaker')}",
        ])  # fmt: skip
        if evidence:
            rows[-1].insert(2, _match(row.bits, audit))
    notes = [f"Bits among the {exposures.candidates} enrolled, of "
             f"{exposures.ceiling:.1f}."]  # fmt: skip
    if evidence:
        head.insert(2, f"matches in {crowd}")
        notes = [
            f'Evidence bits of stretches of T seconds. "Matches in {crowd}": people who match as '
            f"well as the speaker, at the mean. {_LEAST.strip()}: calibration does not support "
            "more bits, for the mean in over 5 % of stretches. Ranked first: against one template "
            "per person, with other trials than in the tests."
        ]
    notes.append("Each length has only the people with enough speech, so rows differ in people.")
    return [Table.from_numbers(head, rows, notes=notes)]


def _match(bits: float, audit: Audit) -> str:
    among = audit.config.among
    return format_matches(bits, among).removesuffix(f" of {crowds.people(among)}")


def _format_bits(figure: Figure) -> str:
    value = f"{figure.value or 0.0:.1f}"
    if figure.low is None or figure.high is None:
        return value
    return f"{value}\n{figure.low:.1f} to {figure.high:.1f}"


def _draw_curve(audit: Audit) -> list[Picture]:
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
    caption = f"The same {people} at each length, by the mean of each person's stretches."
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
    notes.append("N: templates per trial, with trials and their speakers below. Small print: 95 % "
                 "intervals.")  # fmt: skip
    head += ["template"] * (len(depths) > 1)
    titles = [columns[key][0] for key in present]
    return [Table.from_numbers([*head, *titles, "N"], rows, len(head), notes=[" ".join(notes)])]


def _select_tests(audit: Audit) -> list[TestRow]:
    """Return all tests across sessions, and the strongest within a session at each length."""
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
    """Describe whether acoustic conditions alone separate speakers; empty if unknown."""
    apart = audit.apart
    if apart is None or apart.two_speakers is None:
        return ""
    if not apart.two_speakers and not apart.same_speaker:
        return (
            "No compared sessions differ much in acoustic conditions (band, noise, echo, "
            "clipping). Finer differences in codec or room may still separate people."
        )
    different = format_value(apart.two_speakers, "share")
    if apart.same_speaker is None:
        return (
            f"Sessions of two speakers differ in acoustic conditions (band, noise, echo, clipping) "
            f"in {different} of the pairs. No speaker has two sessions for comparison."
        )
    same = format_value(apart.same_speaker, "share")
    more = " Recordings also separate people, not only voices, so figures may be too high."
    return (
        "Acoustic conditions (band, noise, echo, clipping) differ between two sessions in "
        f"{same} of pairs by one speaker and {different} of pairs by two."
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
        head = [*names, "feature", "value", rows[0].judgement.error.label,
                f"TPR at FPR {format_value(rates[0].asked, 'share')}",
                "speakers with / without", "excerpts"]  # fmt: skip
        notes = [f"Stretches of {rows[0].seconds:g} s. 50 % EER is chance."]
        notes += [f"{rate.note}." for rate in rates if rate.note][:1]
        tables.append(Table.from_numbers(head, lines, len(names) + 2, title=name, notes=notes))
    return tables


def _tabulate_budget(audit: Audit) -> list[Block]:
    rows: list[list[Cell]] = [
        [f"{row.seconds:g} s", row.beyond_budget, format_value(row.undecided, "share"),
         _format_bits(row.mean_bits), f"{row.exposed_bits:.1f}",
         f"{row.stretches:,} of {row.speakers}"]
        for row in audit.shown
    ]  # fmt: skip
    head = ["T", f"stretches with at least {audit.config.budget:g} bits", "undecided",
            "mean bits", "most exposed tenth", "stretches of speakers"]  # fmt: skip
    return [Table.from_numbers(head, rows)] if rows else []


def _tabulate_conditions(audit: Audit) -> Table:
    rows = [
        (CONDITION_NAMES[row.name][0], _format_condition(row, row.median),
         f"{_format_condition(row, row.p10)} to {_format_condition(row, row.p90)}",
         str(row.sessions))
        for row in audit.conditions
    ]  # fmt: skip
    head = ("condition", "median", "10th to 90th percentile", "sessions")
    return Table.from_numbers(head, rows, title="Acoustic conditions")


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
    protection = "Finding the name needs the salt." if salt else (
        "Anyone with the list of names can find the name. --salt prevents this."
    )  # fmt: skip
    note = (
        f"Stretches of {audit.headline.seconds:g} s. A speaker is shown as the first twelve digits "
        f"of the SHA-256 of {'salt and name' if salt else 'the name'}. {protection}"
    )
    head = ("speaker (SHA-256)", "mean bits", f"matches in {crowd}", "stretches")
    return [Table.from_numbers(head, rows, notes=[note])]


@dataclass(frozen=True)
class Label:
    """Disclosure of a published dataset's speakers: a card in Markdown for its page, and JSON.

    ``uniqueness`` is the test with the rate of first ranks in crowds.
    """

    audit: Audit
    salt: str = ""
    uniqueness: TestRow | None = None


def make_label(audit: Audit, salt: str = "") -> Label:
    """Make the label of an audited corpus.

    Raises:
        UsageError: if the audit is not of a corpus.
    """
    if audit.kind != "corpus":
        raise UsageError("a label needs a corpus: use a folder of recordings by speaker")
    several = max((test.tested for test in audit.tests if test.session == "cross"), default=0)
    # rates in crowds need tests of many speakers
    tests = [test for test in audit.tests if 2 * test.tested >= several]
    tests = [test for test in tests if test.session == "cross"] or tests
    return Label(audit, salt, max(tests, key=lambda test: test.bits, default=None))


def save_label(label: Label, path: Path) -> Path:
    """Write the Markdown card, with a JSON file of the same name beside it, mode 0600.

    Return the path of the JSON file.
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
    """Yield sizes of crowds with the rate of first ranks, or its bracket beyond those enrolled."""
    for key, figure in label.uniqueness.figures.items() if label.uniqueness else ():
        people = key.removeprefix("among.idr_")
        if key != people and people.isdigit():
            yield int(people), figure


def label_markdown(label: Label) -> str:
    """Return the card, a section of a dataset's page."""
    audit, salt = label.audit, label.salt
    intro = (
        "The tested attackers know one recording of each speaker and nothing else about them. "
        "Stronger attackers learn more. No figure here is a guarantee, or shows whether the data "
        "are anonymous in law."
    )
    sections = [
        Section("Tested", [Definitions([*audit.facts.items()])]),
        Section("In short", _list_sentences(audit)),
        Section("Bits by length of speech", _tabulate_lengths(audit)),
        *_describe_uniqueness(label),
        Section("The most exposed speakers", _tabulate_exposed(audit, salt)),
        Section("Same-session confounds", [Bullets(list(_list_confounds(label)))]),
        Section("Attributes", _tabulate_attributes(audit)),
        Section("Recordings", [_tabulate_conditions(audit)] if audit.conditions else []),
        Section("Not tested", [Bullets(audit.not_tested)]),
        Section("Caveats", [Bullets(audit.notes)] if audit.notes else []),
    ]  # fmt: skip
    title = f"Voice disclosure of {audit.name}"
    return render_markdown(Document(title, [intro], sections, foot="Intervals are 95 %."))


def _describe_uniqueness(label: Label) -> list[Section]:
    test = label.uniqueness
    rows: list[list[Cell]] = []
    for people, figure in _list_uniqueness(label):
        if figure.value is not None:
            rows.append([crowds.people(people), replace(figure, text=""), "measured"])
        elif figure.low is not None and figure.high is not None:
            ends = (format_value(end, "share") for end in (figure.low, figure.high))
            is_supported = figure.text != "unsupported"
            basis = "extrapolated" if is_supported else "not supported, too few speakers"
            rows.append([crowds.people(people), " to ".join(ends), basis])
    if test is None or not rows:
        return []
    text = (
        f"How often the correct person ranks first in a crowd, with {test.seconds:g} s of speech "
        f"({test.feature}, {SESSIONS[test.session]}, {plural(test.trials, 'trial')} of "
        f"{plural(test.tested, 'speaker')}). Up to the {test.speakers} enrolled it is measured. "
        "For more people there is only a bracket over several extrapolations."
    )
    table = Table.from_numbers(("people", "right one first", "basis"), rows)
    return [Section("How unique a voice is", [Paragraphs([text]), table])]


def _list_confounds(label: Label) -> Iterator[str]:
    """Yield sentences on what separates people in these recordings besides their voices."""
    audit = label.audit
    tests = [t for t in audit.tests if t.feature == (label.uniqueness or t).feature]
    by = {session: [t for t in tests if t.session == session] for session in SESSIONS}
    if not by["cross"]:
        yield (
            "No speaker has two sessions with enough speech, so all figures are within one "
            "session. Room, microphone and day also identify the speaker there, so the figures are "
            "upper limits."
        )
    for same, cross in product(by["same"], by["cross"]):
        less, more = cross.get_value("srd.idr"), same.get_value("srd.idr")
        if cross.seconds != same.seconds or less is None or more is None:
            continue
        first, other = same.figures["srd.idr"], cross.figures["srd.idr"]
        conclusion = "There are too few speakers to show a difference."
        if more <= less:
            conclusion = "Across sessions it is no less than within one."
        elif other.high is None or more > other.high:
            conclusion = "The excess within one is due to room, microphone and day."
        yield (
            f"With {same.seconds:g} s, the right one of {same.speakers} ranks first in "
            f"{format_interval(first)} of the trials within a session, and of {cross.speakers} in "
            f"{format_interval(other)} across sessions. {conclusion}"
        )
    if difference := describe_sound_difference(audit):
        yield difference
