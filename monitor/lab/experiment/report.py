"""What is written of an experiment: tables, a page, and everything as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from monitor.documents import bullet_list, document, paragraphs, picture, section, table, warning
from monitor.features.registry import caveats
from monitor.files import write_text
from monitor.lab.experiment.cells import MEAN, MeasuredCell
from monitor.lab.experiment.figures import Drawn
from monitor.lab.experiment.findings import QUESTIONS, CorpusAnswer, summary
from monitor.lab.experiment.settings import ExperimentSettings, Panel
from monitor.phrases import format_best_feature, plural
from monitor.plots.canvas import format_seconds
from monitor.version import __version__

KIND = "experiment"
_SCHEMA = 1
_WORKING = ("resampled", "left_out")
"""What only limits are made of."""


@dataclass(frozen=True)
class Experiment:
    """What an experiment found.

    Attributes:
        name: of the corpus.
        settings, panels: what was asked for, and who took part.
        cells: what was measured, those of the tables first.
        findings: what it says in words.
        frame_counts: by feature how often each bin was heard.
        problems: a line for what could not be used.
        heard: speech was compared here; else the scores are somebody's.
        noise: what had been added to the embeddings of tests and templates; mostly empty.
    """

    name: str
    settings: ExperimentSettings
    panels: Sequence[Panel]
    cells: Sequence[MeasuredCell]
    findings: Sequence[CorpusAnswer]
    frame_counts: Mapping[str, Sequence[int]]
    problems: tuple[str, ...] = ()
    heard: bool = True
    noise: str = ""

    @property
    def tables(self) -> list[MeasuredCell]:
        """The cells of the tables."""
        return [c for c in self.cells if c.panel.purpose == "tables" and c.systems]

    @property
    def systems(self) -> list[str]:
        """All systems, in the order of their colours."""
        return list(dict.fromkeys(name for cell in self.cells for name in cell.systems))

    @property
    def warnings(self) -> list[str]:
        """What makes the figures doubtful, all or those of a system, each once."""
        every = (
            f"{name}: {warning}"
            for cell in self.cells
            for name, found in cell.systems.items()
            for warning in found["warnings"]
        )
        told = [f"{each[:1].upper()}{each[1:]}." for each in caveats(self.systems)]
        noisy = [self.noisy] if self.noise else []
        return [*noisy, *told, *dict.fromkeys(every), *self._weaker_joints()]

    def _weaker_joints(self) -> Iterator[str]:
        """Cells of the tables of which one feature discloses more than all of them together."""
        for cell in self.tables:
            bits = {
                name: value
                for name, found in cell.systems.items()
                if (value := found["figures"][MEAN]["value"]) is not None
            }
            joint = bits.pop("joint", None)
            told = "" if joint is None else format_best_feature(joint, bits)
            if told:
                yield (
                    f"{told} (T = {cell.test_seconds:g} s, D = {cell.template_seconds:g} s, "
                    f"{cell.panel.session} session)."
                )

    @property
    def noisy(self) -> str:
        """That templates with noise understate what an attacker learns, and what to do instead."""
        return (
            f"These frames have noise ({self.noise}), and so have the templates here: clear "
            "templates learn more, up to many times as much. For an attacker who has clear speech "
            "of everybody: monitor enrol CLEAR_FRAMES -o clear.npz; monitor score NOISY_FRAMES "
            "-p clear.npz -o scores.npz; monitor experiment scores.npz -o DIR. One who weighs by "
            "the rank model of the noise learns still more."
        )

    def about(self, question: str) -> list[CorpusAnswer]:
        """The findings about a question."""
        return [each for each in self.findings if each.question == question]

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema": _SCHEMA,
            "kind": KIND,
            "program": __version__,
            "corpus": self.name,
            "problems": list(self.problems),
            "warnings": self.warnings,
            "settings": self.settings.plain(),
            "panels": [panel.plain() for panel in self.panels],
            "answers": {
                question.key: {
                    "question": question.text,
                    "paper": question.paper,
                    "corpus": summary(self.about(question.key)),
                }
                for question in QUESTIONS
            },
            "findings": [asdict(each) for each in self.findings],
            "cells": [_plain(cell) for cell in self.cells],
            "frame_counts": {name: list(each) for name, each in self.frame_counts.items()},
        }


def save_results(found: Experiment, path: Path) -> None:
    """Write everything as JSON (mode 0600), at once or not at all.

    Raises:
        StoreError: the place cannot be written.
    """
    write_text(json.dumps(found.plain(), allow_nan=False, indent=1), path)


def _plain(cell: MeasuredCell) -> dict[str, Any]:
    return {
        "purpose": cell.panel.purpose,
        "session": cell.panel.session,
        "T": cell.test_seconds,
        "D": cell.template_seconds,
        "systems": {
            name: {key: value for key, value in found.items() if key not in _WORKING}
            for name, found in cell.systems.items()
        },
    }


# ------------------------------------------------------------------------------------------ tables
# SRD's Tables II and III of a corpus.

TableText = tuple[list[str], list[list[str]]]
"""Head and rows, as plain text."""

_COUNTED = (
    ("MeanD (bits)", "srd.mean_bits"),
    ("MeanD, bias taken off (bits)", "srd.mean_bits_miller_madow"),
    ("IdR (%)", "srd.idr"),
    ("MaxD (bits)", "srd.maxd_bits"),
    ("StDD (bits)", "srd.stdd_bits"),
    ("Spread (%)", "srd.spread"),
)
_FITTED = tuple((name, key.removeprefix("srd.")) for name, key in _COUNTED if "bias" not in name)


def table2(cell: MeasuredCell) -> TableText:
    """Disclosure of the ranks counted and of the rank models fitted to them, a column a system."""
    systems = list(cell.systems.values())
    rows = [
        ["Ranks counted", name, *(_figure(found["figures"][key], name) for found in systems)]
        for name, key in _COUNTED
    ]
    for loss in ("CLL", "LL"):
        for name, key in _FITTED:
            rows.append([f"Rank model by {loss}", name,
                         *(_rank_model(found, loss, key, name) for found in
                                                  systems)])  # fmt: skip
    rows += [
        ["No evidence", "MeanD (bits)", *(_figure(found["figures"]["srd.null_model_bits"], "")
                                         for found in systems)],
        ["Baseline", "EER (%)", *(_figure(found["figures"]["verification.eer_rocch"], "%")
                                  for found in systems)],
        ["Made of", "trials of tested speakers",
         *(f"{found['trials']}\n{plural(found['tested'], 'speaker')}" for found in systems)],
    ]  # fmt: skip
    return ["", f"N = {len(cell.panel.speakers)}", *cell.systems], _once(rows)


def table3(cell: MeasuredCell) -> TableText:
    """How well the rank model by each loss fits, a column a system; the best of each in marks."""
    rows = []
    for title, key in (
        ("KL divergence (bits)", "kl_bits"),
        ("Rank-1 match (bits)", "rank1_match_bits"),
        ("Cost on speakers left out, more than LL (bits a trial)", "left_out_bits"),
    ):
        found = [each["losses"] for each in cell.systems.values()]
        best = [_best(losses, key) for losses in found]
        for i, row in enumerate(found[0]):
            marked = zip(found, best, strict=True)
            cells = [_loss(losses[i], key, row["loss"] == least) for losses, least in marked]
            rows.append([title, row["loss"], *cells])
    return ["Measure", "Loss", *cell.systems], _once(rows)


def table_rows(cells: Sequence[MeasuredCell]) -> Iterator[tuple[Any, ...]]:
    """Both tables as data: session, system, what, of what, value and limits."""
    for cell in cells:
        for system, found in cell.systems.items():
            for _, key in (*_COUNTED, ("", MEAN), ("", "srd.null_model_bits"),
                           ("", "verification.eer_rocch")):  # fmt: skip
                each = found["figures"].get(key, {})
                yield (cell.panel.session, system, "counted", key,
                       *(each.get(x) for x in ("value", "low", "high")))  # fmt: skip
            for row in found["losses"]:
                for _, key in _FITTED:
                    yield cell.panel.session, system, row["loss"], key, row[key], None, None
                for key in ("kl_bits", "rank1_match_bits"):
                    yield cell.panel.session, system, row["loss"], key, row[key], None, None
                yield (cell.panel.session, system, row["loss"], "left_out_bits",
                       row["left_out_bits"], row["left_out_low"], row["left_out_high"])  # fmt: skip


def lengths_table(cell: MeasuredCell, systems: Sequence[str]) -> list[str]:
    """A row for a cell of the sweep: T, D, and MeanD and IdR of each system that heard anything."""
    made = [f"{cell.test_seconds:g} s", f"{cell.template_seconds:g} s"]
    for system in systems:
        if system not in cell.systems:
            made += ["not heard", ""]
            continue
        found = cell.systems[system]
        mean, idr = found["figures"][MEAN], found["figures"]["srd.idr"]
        made.append(f"{mean['value']:.2f}{_limits(mean, 1.0, 2)}")
        made.append(f"{100 * idr['value']:.1f}{_limits(idr, 100.0, 1)}")
    return made


def _figure(figure: dict[str, Any], name: str) -> str:
    if figure["value"] is None:
        return "–\nfewer trials than ranks, or ties" if "bias" in name else "–"
    scale = 100.0 if "%" in name else 1.0
    return f"{scale * figure['value']:.2f}{_limits(figure, scale, 2)}"


def _limits(figure: dict[str, Any], scale: float, digits: int) -> str:
    if figure["low"] is None or figure["high"] is None:
        return ""
    low, high = (f"{scale * figure[end]:.{digits}f}" for end in ("low", "high"))
    return f"\n{low} to {high}"


def _rank_model(found: dict[str, Any], loss: str, key: str, name: str) -> str:
    row = next(each for each in found["losses"] if each["loss"] == loss)
    if row["fitted"] != loss:
        return "–\nrefused"
    if loss == "LL" and key == "mean_bits":
        return _figure(found["figures"][MEAN], name)
    scale = 100.0 if "%" in name else 1.0
    return f"{scale * row[key]:.2f}"


def _best(losses: Sequence[dict[str, Any]], key: str) -> str | None:
    known = [row for row in losses if row[key] is not None and row["fitted"] == row["loss"]]
    return min(known, key=lambda row: row[key])["loss"] if known else None


def _loss(row: dict[str, Any], key: str, best: bool) -> str:
    if row["fitted"] != row["loss"]:
        return "–\nrefused"
    if row[key] is None:
        return "–"
    mark = " ←" if best else ""
    if key != "left_out_bits":
        return f"{_power(row[key])}{mark}"
    if row["loss"] == "LL":
        return f"0{mark}"
    made = f"{row[key]:+.4f}{mark}"
    if row["left_out_low"] is not None:  # too few speakers have none
        made += f"\n{row['left_out_low']:+.4f} to {row['left_out_high']:+.4f}"
    return made.replace("-", "\N{MINUS SIGN}")


def _once(rows: list[list[str]]) -> list[list[str]]:
    """The first name of a row only where it changes."""
    before = ["", *(row[0] for row in rows)]
    return [["" if row[0] == name else row[0], *row[1:]] for name, row in
            zip(before, rows, strict=False)]  # fmt: skip


def _power(value: float) -> str:
    """A small number as a paper prints it: 1.66×10⁻²."""
    if value == 0:
        return "0"
    digits, exponent = f"{value:.2e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}×10{raised}"


# ----------------------------------------------------------------------------------------- wording
# The sentences of the page: what was done, and what it cannot say.

_SESSION = {
    "cross": "test and template are of different sessions (recordings)",
    "same": "test and template are parts of one recording, which favours the attacker: room and "
    "microphone are the same",
}
_HEARD = (
    "The attacker has templates of everybody, of the same kind of speech as the tests (protected "
    "alike, where this corpus is protected speech), and compares counts by log-likelihood, "
    "embeddings by cosine."
)
_SCORED = (
    "Scores are those of the file: whoever made them knows what the attacker has, how it compares, "
    "and whether tests and templates overlap."
)


def method(found: Experiment) -> Iterator[str]:
    """How it was done, a paragraph at a time."""
    yield (
        f"Speech of {found.name} was compared with templates of its speakers by "
        f"{', '.join(found.systems)}, as in T. Bäckström et al., “Privacy Disclosure of "
        "Similarity Rank in Speech and Language Processing” (SRD). A test of T speech seconds is "
        "compared with a template of D speech seconds of each of N people; the rank of the right "
        "one is all that counts."
    )
    yield _HEARD if found.heard else _SCORED
    for panel in found.panels:
        yield _panel(panel)
    yield (
        "The same people take part in all cells of a sweep, so that lengths alone differ. What is "
        "fitted is the beta-binomial rank model by log-likelihood (LL) unless it says otherwise; "
        f"limits are 95 %, over {plural(found.settings.replicates, 'resample')} of speakers, and "
        "differences are between the same speakers."
    )
    if found.heard:
        yield (
            f"Tests are spread over the speech by eq. (6), {found.settings.trials} a speaker at "
            "most, never overlapping their template and as far from it as they can be."
        )
    if found.heard and "joint" in found.systems:
        yield (
            "The joint adds all features up, each weighed as tests of the other speakers teach: "
            "nobody’s own tests weigh the features for them."
        )
    for feature, names in sorted(found.settings.trained.items()):
        yield (
            f"{plural(len(names), 'speaker')} on whose speech the network of {feature} was trained "
            "are candidates, but no test of theirs counts for it."
        )


def _panel(panel: Panel) -> str:
    people = (
        f"{panel.session.capitalize()} session ({_SESSION[panel.session]}): "
        f"{plural(len(panel.speakers), 'speaker')} with templates, {len(panel.tested)} of them "
        "with tests"
    )
    what = "Tables and figures 5 to 7" if panel.purpose == "tables" else "Sweep (figure 8)"
    tests, templates = (
        ", ".join(map(format_seconds, each)) for each in (panel.lengths, panel.template_lengths)
    )
    return f"{what}. {people}, at T = {tests} and D = {templates}."


def what_it_cannot_say(found: Experiment) -> Iterator[str]:
    """What has to be known to read the figures."""
    most = max(len(panel.speakers) for panel in found.panels)
    yield (
        f"N is {most} at most; SRD had 11 696 (F0, phones, style) and 1251 (identity), and 64 in "
        "its long recordings. Bits of MeanD stop at log2 N: figures of other N are not compared."
    )
    yield (
        "MeanD counted from ranks is above zero even where nothing is disclosed (see “No "
        "evidence”); of the means that of the fitted rank model alone has limits."
    )
    yield (
        "Of several lengths the one with the highest MeanD is the highest by chance as well: where "
        "one is picked by what it shows, limits hold for all that it was picked from."
    )
    if any(panel.session == "same" for panel in found.panels):
        yield (
            "Within one session the longer test and template are, the nearer they lie to each "
            "other: what longer speech adds there is in part that."
        )
    if all(panel.session == "same" for panel in found.panels):
        yield "All figures are of one session each: they favour the attacker."
    yield (
        "The equal error rate pools scores of all trials without normalising them; the joint is "
        "weighed by other people in each part of the speakers, which it mixes."
    )
    yield from found.problems


# -------------------------------------------------------------------------------------------- page

_TABLE2 = (
    "Table II. Disclosure of the ranks counted, of the beta-binomial rank models fitted to them "
    "by two losses, and the equal error rate. Small: 95 % interval, where there are any that hold."
)
_TABLE3 = (
    "Table III. How well the rank model fits by each loss; smaller is better, ← marks the best. "
    "The third measure asks people whom the rank model was not fitted to."
)

_NOT_HEARD = (
    "Not heard: the speech is shorter than what the feature needs for its first frame (3 s for "
    "voice), so that there is nothing to compare; for the joint, of each of its features."
)


def page_of(found: Experiment, figures: Sequence[Drawn], pictures: Mapping[str, str]) -> str:
    """The page as HTML, like a short paper about the corpus; pictures are ``<svg>``, by name."""
    parts = [
        *map(warning, found.warnings),
        _short(found),
        section("What was done", paragraphs(*method(found))),
        *(_tables(cell) for cell in found.tables),
        *(
            picture(
                f"{each.name.replace('figure', 'Figure ')}. {each.title}",
                pictures[each.name],
                each.caption,
            )
            for each in figures
        ),
        _findings(found),
        *_sweeps(found),
        section("How to read it", bullet_list(what_it_cannot_say(found))),
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
        if some := found.about(question.key):
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
