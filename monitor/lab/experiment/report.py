"""An experiment from beginning to end, and its report: tables, a page, and everything as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from monitor.corpus import find
from monitor.documents import bullet_list, document, paragraphs, picture, section, table, warning
from monitor.errors import UsageError
from monitor.features.registry import AS_ENVIRONMENT, FeatureSetup, caveats
from monitor.files import held_by, write_text
from monitor.lab.experiment.cells import (
    MEAN,
    MeasuredCell,
    make_cells,
    make_orders,
)
from monitor.lab.experiment.figures import (
    FigureSpec,
    plot_frames,
    plot_lengths,
    plot_ranks,
    plot_speaker,
    plot_speakers,
    save_csv,
    save_figures,
)
from monitor.lab.experiment.findings import (
    QUESTIONS,
    CorpusAnswer,
    answer_questions,
    make_surfaces,
    summarise_answers,
)
from monitor.lab.experiment.material import (
    ExperimentSettings,
    Material,
    Panel,
    choose_panels,
    make_private,
    read_scores,
    read_speech,
)
from monitor.lab.result_cache import ResultCache
from monitor.phrases import format_best_feature, plural
from monitor.plots.canvas import format_seconds
from monitor.version import __version__

KIND = "experiment"
_SCHEMA = 1
_WORKING = ("resampled", "left_out")
"""What only limits are made of."""


@dataclass(frozen=True)
class Experiment:
    """Results of an experiment.

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
        """Warnings about the figures, all or those of a system, each once."""
        lines = (
            f"{name}: {warning}"
            for cell in self.cells
            for name, measured in cell.systems.items()
            for warning in measured["warnings"]
        )
        caveats_here = [f"{caveat[:1].upper()}{caveat[1:]}." for caveat in caveats(self.systems)]
        noisy = [self.noisy] if self.noise else []
        return [*noisy, *caveats_here, *dict.fromkeys(lines), *self._weaker_joints()]

    def _weaker_joints(self) -> Iterator[str]:
        """Yield cells of the tables where one feature discloses more than all together."""
        for cell in self.tables:
            bits = {
                name: value
                for name, measured in cell.systems.items()
                if (value := measured["figures"][MEAN]["value"]) is not None
            }
            joint = bits.pop("joint", None)
            best = "" if joint is None else format_best_feature(joint, bits)
            if best:
                yield (
                    f"{best} (T = {cell.test_seconds:g} s, D = {cell.template_seconds:g} s, "
                    f"{cell.panel.session} session)."
                )

    @property
    def noisy(self) -> str:
        """Warning that noisy templates understate disclosure, and what to do instead."""
        return (
            f"These frames have noise ({self.noise}), and so have the templates here: clear "
            "templates learn more, up to many times as much. For an attacker who has clear speech "
            "of everybody: monitor enrol CLEAR_FRAMES -o clear.npz; monitor score NOISY_FRAMES "
            "-p clear.npz -o scores.npz; monitor experiment scores.npz -o DIR. One who weighs by "
            "the rank model of the noise learns still more."
        )

    def about(self, question: str) -> list[CorpusAnswer]:
        """Return the findings about a question."""
        return [finding for finding in self.findings if finding.question == question]

    def plain(self) -> dict[str, Any]:
        """Return everything for JSON."""
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
                    "corpus": summarise_answers(self.about(question.key)),
                }
                for question in QUESTIONS
            },
            "findings": [asdict(counts) for counts in self.findings],
            "cells": [_encode_cell(cell) for cell in self.cells],
            "frame_counts": {name: list(counts) for name, counts in self.frame_counts.items()},
        }


def save_results(experiment: Experiment, path: Path) -> None:
    """Write everything as JSON (mode 0600), at once or not at all.

    Raises:
        StoreError: the place cannot be written.
    """
    write_text(json.dumps(experiment.plain(), allow_nan=False, indent=1), path)


def _encode_cell(cell: MeasuredCell) -> dict[str, Any]:
    return {
        "purpose": cell.panel.purpose,
        "session": cell.panel.session,
        "T": cell.test_seconds,
        "D": cell.template_seconds,
        "systems": {
            name: {key: value for key, value in measured.items() if key not in _WORKING}
            for name, measured in cell.systems.items()
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
    """Tabulate disclosure of ranks counted and of fitted rank models, a column a system."""
    systems = list(cell.systems.values())
    rows = [
        [
            "Ranks counted",
            name,
            *(_format_figure(measured["figures"][key], name) for measured in systems),
        ]
        for name, key in _COUNTED
    ]
    for loss in ("CLL", "LL"):
        for name, key in _FITTED:
            rows.append([f"Rank model by {loss}", name,
                         *(_format_rank_model(measured, loss, key, name) for measured in
                                                  systems)])  # fmt: skip
    rows += [
        ["No evidence", "MeanD (bits)",
         *(_format_figure(measured["figures"]["srd.null_model_bits"], "")
           for measured in systems)],
        ["Baseline", "EER (%)", *(_format_figure(measured["figures"]["verification.eer_rocch"], "%")
                                  for measured in systems)],
        ["Made of", "trials of tested speakers",
         *(f"{measured['trials']}\n{plural(measured['tested'], 'speaker')}"
           for measured in systems)],
    ]  # fmt: skip
    return ["", f"N = {len(cell.panel.speakers)}", *cell.systems], _blank_repeats(rows)


def table3(cell: MeasuredCell) -> TableText:
    """Tabulate the fit of the rank model by each loss, a column a system; the best in marks."""
    rows = []
    for title, key in (
        ("KL divergence (bits)", "kl_bits"),
        ("Rank-1 match (bits)", "rank1_match_bits"),
        ("Cost on speakers left out, more than LL (bits a trial)", "left_out_bits"),
    ):
        losses_by_system = [measured["losses"] for measured in cell.systems.values()]
        best = [_find_best(losses, key) for losses in losses_by_system]
        for i, row in enumerate(losses_by_system[0]):
            marked = zip(losses_by_system, best, strict=True)
            cells = [
                _format_loss(losses[i], key, row["loss"] == lowest) for losses, lowest in marked
            ]
            rows.append([title, row["loss"], *cells])
    return ["Measure", "Loss", *cell.systems], _blank_repeats(rows)


def list_table_rows(cells: Sequence[MeasuredCell]) -> Iterator[tuple[Any, ...]]:
    """Yield both tables as data: session, system, what, of what, value and limits."""
    for cell in cells:
        for system, measured in cell.systems.items():
            for _, key in (*_COUNTED, ("", MEAN), ("", "srd.null_model_bits"),
                           ("", "verification.eer_rocch")):  # fmt: skip
                figure = measured["figures"].get(key, {})
                yield (cell.panel.session, system, "counted", key,
                       *(figure.get(x) for x in ("value", "low", "high")))  # fmt: skip
            for row in measured["losses"]:
                for _, key in _FITTED:
                    yield cell.panel.session, system, row["loss"], key, row[key], None, None
                for key in ("kl_bits", "rank1_match_bits"):
                    yield cell.panel.session, system, row["loss"], key, row[key], None, None
                yield (cell.panel.session, system, row["loss"], "left_out_bits",
                       row["left_out_bits"], row["left_out_low"], row["left_out_high"])  # fmt: skip


def format_lengths(cell: MeasuredCell, systems: Sequence[str]) -> list[str]:
    """Format a cell of the sweep: T, D, MeanD and IdR of each system."""
    cells = [f"{cell.test_seconds:g} s", f"{cell.template_seconds:g} s"]
    for system in systems:
        if system not in cell.systems:
            cells += ["not heard", ""]
            continue
        measured = cell.systems[system]
        mean, idr = measured["figures"][MEAN], measured["figures"]["srd.idr"]
        cells.append(f"{mean['value']:.2f}{_format_limits(mean, 1.0, 2)}")
        cells.append(f"{100 * idr['value']:.1f}{_format_limits(idr, 100.0, 1)}")
    return cells


def _format_figure(figure: dict[str, Any], name: str) -> str:
    if figure["value"] is None:
        return "–\nfewer trials than ranks, or ties" if "bias" in name else "–"
    scale = 100.0 if "%" in name else 1.0
    return f"{scale * figure['value']:.2f}{_format_limits(figure, scale, 2)}"


def _format_limits(figure: dict[str, Any], scale: float, digits: int) -> str:
    if figure["low"] is None or figure["high"] is None:
        return ""
    low, high = (f"{scale * figure[end]:.{digits}f}" for end in ("low", "high"))
    return f"\n{low} to {high}"


def _format_rank_model(measured: dict[str, Any], loss: str, key: str, name: str) -> str:
    row = next(fitted for fitted in measured["losses"] if fitted["loss"] == loss)
    if row["fitted"] != loss:
        return "–\nrefused"
    if loss == "LL" and key == "mean_bits":
        return _format_figure(measured["figures"][MEAN], name)
    scale = 100.0 if "%" in name else 1.0
    return f"{scale * row[key]:.2f}"


def _find_best(losses: Sequence[dict[str, Any]], key: str) -> str | None:
    candidates = [row for row in losses if row[key] is not None and row["fitted"] == row["loss"]]
    return min(candidates, key=lambda row: row[key])["loss"] if candidates else None


def _format_loss(row: dict[str, Any], key: str, best: bool) -> str:
    if row["fitted"] != row["loss"]:
        return "–\nrefused"
    if row[key] is None:
        return "–"
    mark = " ←" if best else ""
    if key != "left_out_bits":
        return f"{_format_power(row[key])}{mark}"
    if row["loss"] == "LL":
        return f"0{mark}"
    text = f"{row[key]:+.4f}{mark}"
    if row["left_out_low"] is not None:  # too few speakers have none
        text += f"\n{row['left_out_low']:+.4f} to {row['left_out_high']:+.4f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _blank_repeats(rows: list[list[str]]) -> list[list[str]]:
    """Leave the first name of a row only where it changes."""
    before = ["", *(row[0] for row in rows)]
    return [["" if row[0] == name else row[0], *row[1:]] for name, row in
            zip(before, rows, strict=False)]  # fmt: skip


def _format_power(value: float) -> str:
    """Format a small number as a paper prints it: 1.66×10⁻²."""
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


def describe_method(experiment: Experiment) -> Iterator[str]:
    """Describe the method, a paragraph at a time."""
    yield (
        f"Speech of {experiment.name} was compared with templates of its speakers by "
        f"{', '.join(experiment.systems)}, as in T. Bäckström et al., “Privacy Disclosure of "
        "Similarity Rank in Speech and Language Processing” (SRD). A test of T speech seconds is "
        "compared with a template of D speech seconds of each of N people; the rank of the right "
        "one is all that counts."
    )
    yield _HEARD if experiment.heard else _SCORED
    for panel in experiment.panels:
        yield _describe_panel(panel)
    yield (
        "The same people take part in all cells of a sweep, so that lengths alone differ. What is "
        "fitted is the beta-binomial rank model by log-likelihood (LL) unless it says otherwise; "
        f"limits are 95 %, over {plural(experiment.settings.replicates, 'resample')} of speakers, "
        "and differences are between the same speakers."
    )
    if experiment.heard:
        yield (
            f"Tests are spread over the speech by eq. (6), {experiment.settings.trials} a speaker "
            "at most, never overlapping their template and as far from it as they can be."
        )
    if experiment.heard and "joint" in experiment.systems:
        yield (
            "The joint adds all features up, each weighed as tests of the other speakers teach: "
            "nobody’s own tests weigh the features for them."
        )
    for feature, names in sorted(experiment.settings.trained.items()):
        yield (
            f"{plural(len(names), 'speaker')} on whose speech the network of {feature} was trained "
            "are candidates, but no test of theirs counts for it."
        )


def _describe_panel(panel: Panel) -> str:
    people = (
        f"{panel.session.capitalize()} session ({_SESSION[panel.session]}): "
        f"{plural(len(panel.speakers), 'speaker')} with templates, {len(panel.tested)} of them "
        "with tests"
    )
    what = "Tables and figures 5 to 7" if panel.purpose == "tables" else "Sweep (figure 8)"
    tests, templates = (
        ", ".join(map(format_seconds, lengths))
        for lengths in (panel.lengths, panel.template_lengths)
    )
    return f"{what}. {people}, at T = {tests} and D = {templates}."


def list_limitations(experiment: Experiment) -> Iterator[str]:
    """List what readers of the figures need to know."""
    most = max(len(panel.speakers) for panel in experiment.panels)
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
    if any(panel.session == "same" for panel in experiment.panels):
        yield (
            "Within one session the longer test and template are, the nearer they lie to each "
            "other: what longer speech adds there is in part that."
        )
    if all(panel.session == "same" for panel in experiment.panels):
        yield "All figures are of one session each: they favour the attacker."
    yield (
        "The equal error rate pools scores of all trials without normalising them; the joint is "
        "weighed by other people in each part of the speakers, which it mixes."
    )
    yield from experiment.problems


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


def render_page(
    experiment: Experiment, figures: Sequence[FigureSpec], pictures: Mapping[str, str]
) -> str:
    """Return the page as HTML, like a short paper; pictures are ``<svg>``, by name."""
    parts = [
        *map(warning, experiment.warnings),
        _render_summary(experiment),
        section("What was done", paragraphs(*describe_method(experiment))),
        *(_render_tables(cell) for cell in experiment.tables),
        *(
            picture(
                f"{figure.name.replace('figure', 'Figure ')}. {figure.title}",
                pictures[figure.name],
                figure.caption,
            )
            for figure in figures
        ),
        _render_findings(experiment),
        *_render_sweeps(experiment),
        section("How to read it", bullet_list(list_limitations(experiment))),
    ]
    trials = sum(m["trials"] for cell in experiment.cells for m in cell.systems.values())
    facts = [
        " · ".join(
            f"{panel.session} session, {panel.purpose}: N = {len(panel.speakers)}, "
            f"{len(panel.tested)} tested"
            for panel in experiment.panels
        ),
        f"{plural(trials, 'trial')} in "
        f"{plural(len(experiment.cells), 'cell')}; {', '.join(experiment.systems)}",
    ]
    foot = (
        "Beside this page lie its figures (SVG, PNG) with their data (CSV), the tables (CSV) and "
        "everything (results.json). It names no speaker and holds no score."
    )
    return document(f"Similarity rank disclosure of {experiment.name}", facts, parts, foot)


def _render_summary(experiment: Experiment) -> str:
    rows = [
        [
            question.text,
            question.paper,
            summarise_answers(experiment.about(question.key)) or "Not asked here.",
        ]
        for question in QUESTIONS
    ]
    return section("In short", table(["Question", "SRD", "This corpus"], rows, names=3))


def _render_tables(cell: MeasuredCell) -> str:
    lengths = f"T = {cell.test_seconds:g} s, D = {cell.template_seconds:g} s"
    return section(
        f"Tables II and III, {cell.panel.session} session, {lengths}",
        table(*table2(cell), names=2),
        paragraphs(_TABLE2),
        table(*table3(cell), names=2),
        paragraphs(_TABLE3),
    )


def _render_findings(experiment: Experiment) -> str:
    parts = []
    for question in QUESTIONS:
        if findings := experiment.about(question.key):
            parts.append(f"<h3>{question.text}</h3>")
            parts.append(paragraphs(f"SRD: {question.paper}. Here: {summarise_answers(findings)}"))
            parts.append(
                bullet_list(f"{e.system}, {e.session} session: {e.text}" for e in findings)
            )
    return section("What was found", *parts)


def _render_sweeps(experiment: Experiment) -> list[str]:
    sections = []
    for panel in experiment.panels:
        panel_cells = [cell for cell in experiment.cells if cell.panel == panel]
        systems = [
            name for name in experiment.systems if any(name in cell.systems for cell in panel_cells)
        ]
        if panel.purpose != "sweep" or not systems:
            continue
        head = ["T", "D", *(f"{s}: {what}" for s in systems for what in ("MeanD", "IdR %"))]
        rows = [format_lengths(cell, systems) for cell in panel_cells]
        note = paragraphs(_NOT_HEARD) if any("not heard" in row for row in rows) else ""
        sections.append(
            section(f"Every length, {panel.session} session", table(head, rows, names=2), note)
        )
    return sections


# ----------------------------------------------------------------------------------------- running


def experiment(
    corpus: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    settings: ExperimentSettings | None = None,
    *,
    fresh: bool = False,
    jobs: int = 1,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> Experiment:
    """Run SRD's experiments on a corpus into a folder, as `monitor experiment`.

    Args:
        corpus: a folder or manifest of recordings or of frames, or a file of `monitor score`.
        folder: for the page, tables, figures, results and what is kept for the next time.
        settings: what is asked for.
        fresh: forget what was kept.
        jobs: processes; nothing depends on it.
        setup: from where features are made.

    Raises:
        CorpusError: there is no corpus, or too little speech in it.
        UsageError: settings that make no sense, or a folder of something else.
        StoreError: the folder cannot be written.
    """
    settings = settings or ExperimentSettings()
    path, output = Path(corpus), Path(folder)
    check_folder(output, path)
    material: Material | None = read_scores(path, settings)
    if material is None:
        material = read_speech(path, find(path), output / "frames", settings, jobs, setup=setup)
    panels = choose_panels(material.fills, material.offered, settings)
    return run_experiment(material, panels, output, settings, fresh=fresh, jobs=jobs)


def run_experiment(
    material: Material,
    panels: Sequence[Panel],
    folder: Path,
    settings: ExperimentSettings,
    *,
    fresh: bool = False,
    jobs: int = 1,
    progress: Callable[[MeasuredCell], object] = lambda _: None,
) -> Experiment:
    """Measure all cells of the panels, and write everything; arguments as of `experiment`.

    Raises:
        StoreError: the folder cannot be written.
    """
    make_private(folder)
    cache = ResultCache(folder / "cache", fresh=fresh)
    orders = make_orders(panels, material, settings)
    cells = make_cells(orders, material, settings, cache, jobs, progress)
    everybody = list(dict.fromkeys(who for panel in panels for who in panel.speakers))
    results = Experiment(
        material.name, settings, panels, cells, answer_questions(cells),
        material.frame_counts(everybody), material.problems, material.joins, material.noise,
    )  # fmt: skip
    # results first: they mark the folder as one of an experiment
    save_results(results, folder / "results.json")
    head = ("session", "system", "of", "figure", "value", "low", "high")
    save_csv(folder / "tables.csv", head, list_table_rows(results.tables))
    optional: list[FigureSpec | None] = [plot_frames(results.frame_counts, len(everybody))]
    if results.tables:
        optional += [
            plot_ranks(results.tables, results.systems),
            plot_speakers(results.tables, results.systems),
            plot_speaker(results.tables),
        ]
    optional.append(plot_lengths(make_surfaces(cells)))
    figures = [figure for figure in optional if figure is not None]
    pictures = save_figures(figures, folder)
    write_text(render_page(results, figures, pictures), folder / "index.html")
    return results


def check_folder(folder: Path, corpus: Path) -> None:
    """Check that a folder is a place for an experiment: empty, or one of an experiment.

    Raises:
        UsageError: it holds something else, is a file, or lies in the corpus.
        StoreError: it cannot be written.
    """
    names = set(held_by(folder))
    if corpus.is_dir() and folder.resolve().is_relative_to(corpus.resolve()):
        raise UsageError(f"{folder} lies in the corpus itself; choose a folder outside")
    if names and not names <= {"cache", "frames"} and not _is_ours(folder / "results.json"):
        raise UsageError(
            f"{folder} holds something else; name an empty folder, or one of an experiment"
        )


def _is_ours(path: Path) -> bool:
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(contents, dict) and contents.get("kind") == KIND
