"""The page of an experiment: it reads like a short paper about the corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from monitor.documents.shell import document, paragraphs, picture, section, warning
from monitor.documents.tables import bullet_list, table
from monitor.experiment.cells.making import MeasuredCell
from monitor.experiment.figures.drawn import Drawn
from monitor.experiment.findings.questions import QUESTIONS, summary
from monitor.experiment.report.results import Experiment
from monitor.experiment.report.tables import lengths_table, table2, table3
from monitor.experiment.report.wording import caveats, method
from monitor.phrases import plural

__all__ = ["page_of"]

_TABLE2 = (
    "Table II. Disclosure of the ranks counted, of the beta-binomial laws fitted to them by two "
    "losses, and the equal error rate. Small: 95 % limits, where there are any that hold."
)
_TABLE3 = (
    "Table III. How well the law fits by each loss; smaller is better, ← marks the best. The third "
    "measure asks people whom the law was not fitted to."
)

_NOT_HEARD = (
    "Not heard: the speech is shorter than what the feature needs for its first frame (3 s for "
    "voice), so that there is nothing to compare; for the joint, of each of its features."
)


def page_of(found: Experiment, figures: Sequence[Drawn], pictures: Mapping[str, str]) -> str:
    """The page as HTML.

    Args:
        found: everything.
        figures: what was drawn.
        pictures: an ``<svg>`` element of each, by name.
    """
    parts = [
        *map(warning, found.warnings),
        _short(found),
        section("What was done", paragraphs(*method(found))),
        *(_tables(cell) for cell in found.tables),
        *(
            picture(f"{_number(each)}. {each.title}", pictures[each.name], each.caption)
            for each in figures
        ),
        _findings(found),
        *_sweeps(found),
        section("How to read it", bullet_list(caveats(found))),
    ]
    facts = [
        " · ".join(
            f"{panel.session} session, {panel.purpose}: N = {len(panel.speakers)}, "
            f"{len(panel.tested)} tested"
            for panel in found.panels
        ),
        f"{plural(sum(f['trials'] for c in found.cells for f in c.systems.values()), 'trial')} in "
        f"{plural(len(found.cells), 'cell')}; {', '.join(found.systems)}",
    ]
    foot = (
        "Beside this page lie its figures (SVG, PNG) with their data (CSV), the tables (CSV) and "
        "everything (results.json). It names no speaker and holds no score."
    )
    return document(f"Similarity rank disclosure of {found.name}", facts, parts, foot)


def _short(found: Experiment) -> str:
    rows = [
        [question.text, question.paper, summary(found.about(question.key)) or "Not asked here."]
        for question in QUESTIONS
    ]
    return section("In short", table(["Question", "SRD", "This corpus"], rows, names=3))


def _tables(cell: MeasuredCell) -> str:
    lengths = f"T = {cell.test_seconds:g} s, D = {cell.template_seconds:g} s"
    return section(
        f"Tables II and III, {cell.panel.session} session, {lengths}",
        table(*table2(cell), names=2),
        paragraphs(_TABLE2),
        table(*table3(cell), names=2),
        paragraphs(_TABLE3),
    )


def _findings(found: Experiment) -> str:
    parts = []
    for question in QUESTIONS:
        some = found.about(question.key)
        if some:
            parts.append(f"<h3>{question.text}</h3>")
            parts.append(paragraphs(f"SRD: {question.paper}. Here: {summary(some)}"))
            parts.append(bullet_list(f"{e.system}, {e.session} session: {e.text}" for e in some))
    return section("What was found", *parts)


def _sweeps(found: Experiment) -> list[str]:
    made = []
    for panel in found.panels:
        some = [cell for cell in found.cells if cell.panel == panel]
        systems = [name for name in found.systems if any(name in cell.systems for cell in some)]
        if panel.purpose != "sweep" or not systems:
            continue
        head = ["T", "D", *(f"{s}: {what}" for s in systems for what in ("MeanD", "IdR %"))]
        rows = [lengths_table(cell, systems) for cell in some]
        note = paragraphs(_NOT_HEARD) if any("not heard" in row for row in rows) else ""
        made.append(
            section(f"Every length, {panel.session} session", table(head, rows, names=2), note)
        )
    return made


def _number(figure: Drawn) -> str:
    return figure.name.replace("figure", "Figure ")
