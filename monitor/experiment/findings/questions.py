"""The questions that SRD's experiments ask, what the paper answers, and what this corpus does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from monitor.experiment.cells.making import MeasuredCell
from monitor.experiment.findings.answer import CorpusAnswer
from monitor.experiment.findings.best_loss import best_losses
from monitor.experiment.findings.contrasts import surfaces
from monitor.experiment.findings.guides import guides
from monitor.experiment.findings.trends import bounded_by_template, falls_again, rises, saturates

__all__ = ["QUESTIONS", "Question", "findings_of", "summary"]


@dataclass(frozen=True)
class Question:
    """A question of the paper.

    Attributes:
        key: of its answers.
        text: the question.
        paper: what SRD found.
    """

    key: str
    text: str
    paper: str


QUESTIONS = (
    Question("rises", "Does disclosure rise with the length of the test, T?",
             "yes, of the fundamental frequency (fig. 8)"),
    Question("saturates_t", "Does it saturate with T: does the last doubling bring less than half "
             "of the first?", "yes (fig. 8)"),
    Question("falls", "Does it fall again at long T?",
             "slightly, but for templates of 30 and 60 min (fig. 8)"),
    Question("saturates_d", "Does it saturate so with the length of the templates, D?",
             "yes, test and template have one role (fig. 8)"),
    Question("bounded", "Is it bounded by the length of the templates?", "yes (abstract, fig. 8)"),
    Question("guide_linear", "Is basic composition ten times the measured, or more, at the longest "
             "T?", "yes, orders of magnitude (fig. 8)"),
    Question("guide_root", "Is advanced composition?", "yes, orders of magnitude (fig. 8)"),
    Question("loss", "Does LL fit as well as any other loss, on speakers left out?",
             "by divergence yes, at rank 1 CLL, which it takes for its tables (Table III)"),
)  # fmt: skip


def findings_of(cells: Sequence[MeasuredCell]) -> list[CorpusAnswer]:
    """Everything that the cells say, in the order of `QUESTIONS`."""
    made: list[CorpusAnswer | None] = []
    for surface in surfaces(cells):
        made += [rises(surface), falls_again(surface), bounded_by_template(surface)]
        made += [saturates(surface, of) for of in ("T", "D")]
        made += guides(surface)
    made += best_losses(cells)
    place = {question.key: i for i, question in enumerate(QUESTIONS)}
    return sorted((each for each in made if each is not None), key=lambda f: place[f.question])


def summary(findings: Sequence[CorpusAnswer]) -> str:
    """The answers to one question, in a line.

    Example:
        >>> pairs = [("f0", "yes"), ("voice", "full")]
        >>> summary([CorpusAnswer("rises", name, "same", said, "") for name, said in pairs])
        'Yes: f0 (same). At the ceiling of log2 N: voice (same).'
    """
    heads = {
        "yes": "Yes",
        "no": "No",
        "full": "At the ceiling of log2 N",
        "undecided": "Not decided",
    }
    parts = []
    for verdict, head in heads.items():
        some = [each for each in findings if each.verdict == verdict]
        by_session = [
            f"{', '.join(each.system for each in some if each.session == session)} ({session})"
            for session in dict.fromkeys(each.session for each in some)
        ]
        if some:
            parts.append(f"{head}: {'; '.join(by_session)}.")
    return " ".join(parts)
