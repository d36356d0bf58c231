"""Runs a whole experiment, and reports it as tables, a page and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from monitor.features.registry import caveats
from monitor.lab.evaluation.verification import EER, NEAREST
from monitor.lab.experiment.cells import MEAN, LossRecord, MeasuredCell, SystemRecord
from monitor.lab.experiment.findings import (
    QUESTIONS,
    CorpusAnswer,
    answer_questions,
    summarise_answers,
)
from monitor.lab.experiment.material import ExperimentSettings, Material, Panel
from monitor.lab.report.model import (
    Bullets,
    Cell,
    Document,
    Figure,
    Heading,
    Paragraphs,
    Picture,
    Section,
    Table,
)
from monitor.phrases import format_best_feature, plural
from monitor.plots.canvas import format_seconds
from monitor.types import Record
from monitor.version import __version__

KIND = "experiment"


@dataclass(frozen=True)
class Experiment:
    """Results of an experiment, with the cells of the tables first."""

    material: Material
    settings: ExperimentSettings
    panels: Sequence[Panel]
    cells: Sequence[MeasuredCell]

    @cached_property
    def findings(self) -> list[CorpusAnswer]:
        """Answers to the questions, from the cells."""
        return answer_questions(self.cells)

    @property
    def speakers(self) -> list[str]:
        """Speakers of all panels."""
        return list(dict.fromkeys(who for panel in self.panels for who in panel.speakers))

    @cached_property
    def frame_counts(self) -> Mapping[str, Sequence[int]]:
        """Frames in each bin, by feature."""
        return self.material.frame_counts(self.speakers)

    @property
    def tables(self) -> list[MeasuredCell]:
        """The cells of the tables."""
        return [c for c in self.cells if c.panel.purpose == "tables" and c.systems]

    @property
    def systems(self) -> list[str]:
        """Systems of all cells, in the order of their colours."""
        return list(dict.fromkeys(name for cell in self.cells for name in cell.systems))

    @property
    def warnings(self) -> list[str]:
        """Warnings about all figures or those of one system, each once."""
        systems = (item for cell in self.cells for item in cell.systems.items())
        lines = (f"{name}: {line}" for name, measured in systems for line in measured["warnings"])
        caveats_here = [f"{caveat[:1].upper()}{caveat[1:]}." for caveat in caveats(self.systems)]
        noisy = [self.noisy] if self.noisy else []
        return [*noisy, *caveats_here, *dict.fromkeys(lines), *self._weaker_joints()]

    def _weaker_joints(self) -> Iterator[str]:
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

    @cached_property
    def noisy(self) -> str:
        """Warning that noisy templates understate disclosure, if they are noisy."""
        noise = self.material.noise
        return noise and (
            f"These frames and their templates have noise ({noise}). An attacker with clear "
            "templates may learn many times more. To test one, run monitor enrol CLEAR_FRAMES -o "
            "clear.npz, then monitor score NOISY_FRAMES -p clear.npz -o scores.npz, then monitor "
            "experiment scores.npz -o DIR. An attacker with a rank model of the noise learns even "
            "more."
        )

    def about(self, question: str) -> list[CorpusAnswer]:
        """Return the findings about a question."""
        return [finding for finding in self.findings if finding.question == question]

    def plain(self) -> Record:
        """Return everything for JSON."""
        return {
            "schema": 1,
            "kind": KIND,
            "program": __version__,
            "corpus": self.material.name,
            "problems": list(self.material.problems),
            "warnings": self.warnings,
            "settings": self.settings.plain(),
            "panels": [panel.plain() for panel in self.panels],
            "answers": {
                key: {
                    "question": text,
                    "paper": paper,
                    "corpus": summarise_answers(self.about(key)),
                }
                for key, (text, paper) in QUESTIONS.items()
            },
            "findings": [asdict(finding) for finding in self.findings],
            "cells": [
                {
                    "purpose": cell.panel.purpose,
                    "session": cell.panel.session,
                    "T": cell.test_seconds,
                    "D": cell.template_seconds,
                    "systems": {
                        name: {key: value for key, value in measured.items()
                               if key not in ("resampled", "left_out")}
                        for name, measured in cell.systems.items()
                    },
                }
                for cell in self.cells
            ],
            "frame_counts": {name: list(counts) for name, counts in self.frame_counts.items()},
        }  # fmt: skip


# SRD's Tables II and III for a corpus.
FittedKey: TypeAlias = Literal["mean_bits", "idr", "maxd_bits", "stdd_bits", "spread"]
LossKey: TypeAlias = Literal["kl_bits", "rank1_match_bits", "left_out_bits"]
_FITTED: dict[FittedKey, str] = {
    "mean_bits": "MeanD (bits)",
    "idr": "IdR",
    "maxd_bits": "MaxD (bits)",
    "stdd_bits": "StDD (bits)",
    "spread": "Spread",
}
_COUNTED = {
    "srd.mean_bits": "MeanD (bits)",
    "srd.mean_bits_miller_madow": "MeanD, bias-corrected (bits)",
    **{f"srd.{key}": name for key, name in _FITTED.items()},
}
_MISFITS: dict[LossKey, str] = {
    "kl_bits": "KL divergence (bits)",
    "rank1_match_bits": "Rank-1 match (bits)",
    "left_out_bits": "Cost on held-out speakers, beyond LL (bits per trial)",
}
_BEST = "\N{DEGREE SIGN}"
_REFUSED = "-\nnot possible"
_TABLE2 = (
    "Table II. Disclosure of the counted ranks and of beta-binomial rank models fitted to them "
    "with two losses, and the equal error rate (EER). Small print: 95 % interval, if valid. The "
    "bias is unknown with ties, or with fewer trials than ranks."
)
_TABLE3 = (
    f"Table III. Misfit of the rank model for each loss. Smaller is better, and {_BEST} marks the "
    "best. The third measure uses speakers outside the fit."
)
_NO_FRAMES = (
    "No frames: the speech is too short for the feature's first frame (3 s for voice). The joint "
    "has no frames if none of its features has one."
)


def _read_figure(measured: SystemRecord, key: str) -> Figure:
    record = measured["figures"].get(key, {})
    return Figure(key, "", record.get("value"), record.get("unit", ""),
                  low=record.get("low"), high=record.get("high"))  # fmt: skip


def tabulate_disclosure(cell: MeasuredCell) -> Table:
    """Tabulate disclosure of counted ranks and fitted rank models, with one column per system."""
    systems = list(cell.systems.values())

    def list_figures(title: str, name: str, key: str) -> list[Cell]:
        return [title, name, *(_read_figure(measured, key) for measured in systems)]

    rows = [list_figures("Ranks counted", name, key) for key, name in _COUNTED.items()]
    rows += [
        [f"Rank model by {loss}", name, *(_get_fitted(m, loss, key) for m in systems)]
        for loss in ("CLL", "LL")
        for key, name in _FITTED.items()
    ]
    rows += [
        list_figures("No evidence", "MeanD (bits)", "srd.null_model_bits"),
        list_figures("Baseline", EER[NEAREST], NEAREST),
        ["Basis", "trials of tested speakers",
         *(f"{m['trials']}\n{plural(m['tested'], 'speaker')}" for m in systems)],
    ]  # fmt: skip
    head = ["", f"N = {len(cell.panel.speakers)}", *cell.systems]
    return Table.from_numbers(head, rows, names=2, notes=[_TABLE2])


def _get_fitted(measured: SystemRecord, loss: str, key: FittedKey) -> Cell:
    row = next(fitted for fitted in measured["losses"] if fitted["loss"] == loss)
    if row["fitted"] != loss:
        return _REFUSED
    if loss == "LL" and key == "mean_bits":
        return _read_figure(measured, MEAN)
    return Figure(key, "", row[key], "share" if key in ("idr", "spread") else "bits")


def tabulate_losses(cell: MeasuredCell) -> Table:
    """Tabulate the fit for each loss, with one column per system and marks for the best."""
    systems = [measured["losses"] for measured in cell.systems.values()]
    rows: list[list[Cell]] = []
    marks: dict[tuple[int, int], str] = {}
    for key, title in _MISFITS.items():
        lowest = [
            min((v for row in losses if (v := _get_misfit(row, key)) is not None), default=None)
            for losses in systems
        ]
        for losses in zip(*systems, strict=True):
            values = [_get_misfit(row, key) for row in losses]
            marks |= {
                (len(rows), 2 + j): _BEST
                for j, (value, minimum) in enumerate(zip(values, lowest, strict=True))
                if value is not None and value == minimum
            }
            rows.append([title, losses[0]["loss"]])
            for row, value in zip(losses, values, strict=True):
                low, high = row["left_out_low"], row["left_out_high"]
                if key != "left_out_bits" or row["loss"] == "LL":
                    low = high = None
                figure = Figure(key, "", value, "", low=low, high=high)
                rows[-1].append(figure if row["fitted"] == row["loss"] else _REFUSED)
    head = ["Measure", "Loss", *cell.systems]
    return Table.from_numbers(head, rows, names=2, notes=[_TABLE3], marks=marks)


def _get_misfit(row: LossRecord, key: LossKey) -> float | None:
    return row[key] if row["fitted"] == row["loss"] else None


def list_table_rows(cells: Sequence[MeasuredCell]) -> Iterator[list[Cell]]:
    """Yield both tables as data: session, system, source, figure, value and limits."""
    for cell in cells:
        for system, measured in cell.systems.items():
            names = cell.panel.session, system
            for key in (*_COUNTED, MEAN, "srd.null_model_bits", *EER):
                figure = _read_figure(measured, key)
                yield [*names, "counted", key, figure.value, *figure.limits]
            for row in measured["losses"]:
                fits = [(name, row[name]) for name in _FITTED]
                misfits = [(name, row[name]) for name in _MISFITS]
                limits = {"left_out_bits": (row["left_out_low"], row["left_out_high"])}
                for key, value in (*fits, *misfits):
                    yield [*names, row["loss"], key, value, *limits.get(key, (None, None))]


def tabulate_sweep(cells: Sequence[MeasuredCell], systems: Sequence[str]) -> Table:
    """Tabulate MeanD and IdR of each system at each T and D."""
    rows: list[list[Cell]] = []
    for cell in cells:
        rows.append([f"{cell.test_seconds:g} s", f"{cell.template_seconds:g} s"])
        for system in systems:
            if measured := cell.systems.get(system):
                rows[-1] += [_read_figure(measured, key) for key in (MEAN, "srd.idr")]
            else:
                rows[-1] += ["no frames", ""]
    head = ["T", "D", *(f"{name}: {what}" for name in systems for what in ("MeanD", "IdR"))]
    notes = [_NO_FRAMES] if any("no frames" in row for row in rows) else []
    return Table.from_numbers(head, rows, names=2, notes=notes, wide=len(systems) > 3)


_SESSION = {
    "cross": "test and template are from different sessions (recordings)",
    "same": "test and template are parts of one recording, so room and microphone are the same, "
    "which favours the attacker",
}


def describe_method(experiment: Experiment) -> Iterator[str]:
    """Describe the method in paragraphs."""
    material = experiment.material
    yield (
        f"Speech of {material.name} was compared with templates of its speakers by "
        f"{', '.join(experiment.systems)}, as in T. Bäckström et al., “Privacy Disclosure of "
        "Similarity Rank in Speech and Language Processing” (SRD). A test of T speech seconds is "
        "compared with N templates, one of D speech seconds per person. Only the rank of the right "
        "person counts."
    )
    yield (
        "The attacker has templates of all speakers, from the same kind of speech as the tests. If "
        "this corpus is protected speech, the templates are protected too. Counts are compared by "
        "log-likelihood, embeddings by cosine."
        if material.joins
        else "Scores are those of the file. Ask its author which templates the attacker has, how "
        "it compares, and whether tests and templates overlap."
    )
    for panel in experiment.panels:
        tests, templates = (
            ", ".join(map(format_seconds, lengths))
            for lengths in (panel.lengths, panel.template_lengths)
        )
        what = "Tables and figures 5 to 7" if panel.purpose == "tables" else "Sweep (figure 8)"
        yield (
            f"{what}. {panel.session.capitalize()} session ({_SESSION[panel.session]}): "
            f"{plural(len(panel.speakers), 'speaker')} with templates, {len(panel.tested)} of them "
            f"with tests, at T = {tests} and D = {templates}."
        )
    yield (
        "All cells of a sweep have the same people, so they differ only in length. The fitted "
        "model is the beta-binomial rank model by log-likelihood (LL) unless noted. Intervals are "
        f"95 %, over {plural(experiment.settings.replicates, 'resample')} of speakers. Differences "
        "are between the same speakers."
    )
    if material.joins:
        yield (
            "Tests are spread over the speech by SRD's equation 6, with at most "
            f"{experiment.settings.trials} per speaker. They never overlap their template and are "
            "as far from it as possible."
        )
    if material.joins and "joint" in experiment.systems:
        yield (
            "The joint is the weighted sum of all features. Its weights are fitted to tests of "
            "other speakers."
        )
    for feature, names in sorted(experiment.settings.trained.items()):
        yield (
            f"{plural(len(names), 'speaker')} of the training data for {feature} are candidates, "
            "but their tests do not count for it."
        )


def list_limitations(experiment: Experiment) -> Iterator[str]:
    """List the limitations of the figures."""
    maximum = max(len(panel.speakers) for panel in experiment.panels)
    yield (
        f"N is at most {maximum}. SRD had 11 696 (F0, phones, style) and 1251 (identity), and 64 "
        "in its long recordings. MeanD is at most log2 N bits, so figures with another N are not "
        "comparable."
    )
    yield (
        "MeanD from counted ranks is above zero even without disclosure (see “No evidence”). Only "
        "the mean of the fitted rank model has an interval."
    )
    yield (
        "The highest MeanD among several lengths is partly the highest by chance. If a length was "
        "chosen by its result, the interval is simultaneous for all candidates."
    )
    if any(panel.session == "same" for panel in experiment.panels):
        yield (
            "Within one session, longer tests and templates are closer together in time. This "
            "explains part of the effect of longer speech."
        )
    if all(panel.session == "same" for panel in experiment.panels):
        yield "All figures are within one session, which favours the attacker."
    yield (
        "The EER pools scores of all trials without normalisation. The joint uses different "
        "weights for each fold of speakers, and the EER pools those too."
    )
    yield from experiment.material.problems


def make_document(experiment: Experiment, pictures: Sequence[Picture]) -> Document:
    """Make the page, like a short paper."""
    answers = [
        (text, paper, summarise_answers(experiment.about(key)) or "Not tested.")
        for key, (text, paper) in QUESTIONS.items()
    ]
    columns = [Heading("Question"), Heading("SRD", "note"), Heading("This corpus", "note")]
    sections: list[Section | Picture] = [
        Section("In short", [Table(columns, answers)]),
        Section("Method", [Paragraphs([*describe_method(experiment)])]),
    ]
    for cell in experiment.tables:
        lengths = f"T = {cell.test_seconds:g} s, D = {cell.template_seconds:g} s"
        title = f"Tables II and III, {cell.panel.session} session, {lengths}"
        sections.append(Section(title, [tabulate_disclosure(cell), tabulate_losses(cell)]))
    answered = [
        Section(text, [
            Paragraphs([f"SRD: {paper}. Here: {summarise_answers(findings)}"]),
            Bullets([f"{e.system}, {e.session} session: {e.text}" for e in findings], "notes"),
        ])
        for key, (text, paper) in QUESTIONS.items()
        if (findings := experiment.about(key))
    ]  # fmt: skip
    sections += [*pictures, Section("Findings", answered)]
    for panel in experiment.panels:
        cells = [cell for cell in experiment.cells if cell.panel == panel]
        systems = [s for s in experiment.systems if any(s in cell.systems for cell in cells)]
        if panel.purpose == "sweep" and systems:
            title = f"Every length, {panel.session} session"
            sections.append(Section(title, [tabulate_sweep(cells, systems)]))
    sections.append(Section("Limitations", [Bullets([*list_limitations(experiment)], "notes")]))
    trials = sum(m["trials"] for cell in experiment.cells for m in cell.systems.values())
    facts = [
        " \N{MIDDLE DOT} ".join(
            f"{panel.session} session, {panel.purpose}: N = {len(panel.speakers)}, "
            f"{len(panel.tested)} tested"
            for panel in experiment.panels
        ),
        f"{plural(trials, 'trial')} in "
        f"{plural(len(experiment.cells), 'cell')}; {', '.join(experiment.systems)}",
    ]
    foot = (
        "The folder of this page also has its figures (SVG, PNG) with their data (CSV), the tables "
        "(CSV) and all results (results.json). The page contains no speaker names and no scores."
    )
    title = f"Similarity rank disclosure of {experiment.material.name}"
    return Document(title, facts, sections, experiment.warnings, foot)
