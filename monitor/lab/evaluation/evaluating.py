"""`evaluate` computes all metrics of one system's scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from os import PathLike
from typing import TypeAlias

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import Comparisons, ScoreMatrix, Usage
from monitor.lab.evaluation.curves import Curves
from monitor.lab.evaluation.family import (
    EvaluationContext,
    EvaluationSettings,
    Family,
    add_limits,
    families,
)
from monitor.lab.evaluation.input.matching import EvaluationInput
from monitor.lab.evaluation.input.scores import read_scores, scores_in_memory
from monitor.lab.evaluation.report import Report
from monitor.lab.report.model import Figure
from monitor.maths.roc import Counts
from monitor.phrases import plural
from monitor.protocols import ScoredComparisons
from monitor.types import AnyArray, FloatArray, IntArray, Record

_USUAL = EvaluationSettings()


def steps() -> int:
    """Return how often `evaluate` calls its ``progress``."""
    return len(families())


Scores: TypeAlias = ScoreMatrix | Comparisons | EvaluationInput | str | PathLike[str] | AnyArray
"""Input of `evaluate`, besides data frames."""


def evaluate(
    scores: Scores,
    dev: ScoreMatrix | None = None,
    settings: EvaluationSettings = _USUAL,
    *,
    labels: str | PathLike[str] | Sequence[int] | Sequence[str] | AnyArray | None = None,
    choose: Sequence[str] = (),
    notes: Sequence[str] = (),
    progress: Callable[[str], object] | None = None,
) -> Report:
    """Compute every metric of the papers on the scores of one system.

    Args:
        scores: a `ScoreMatrix`, `Comparisons`, a file for `read_scores` or its result, an array
            (trials x speakers), or a data frame with such a file's columns. Without labels, a
            column of text or the index of a table names the speakers. Figures of pooled scores use
            all comparisons. Ranks use those of the matrix.
        dev: scores of other speakers, for the calibration of LID. Without them, each speaker's
            trials are calibrated on those of the others.
        settings: resamples, ties, families and other choices.
        labels: speaker of each trial in an array, as a name, or as a column number from 0. For a
            file of scores, its labels file.
        choose: words that select one matrix of a file: ``["voice", "T=10"]``.
        notes: notes to add to the report.
        progress: called with the title of each family of metrics before it is computed.

    Raises:
        UsageError: if a score is not finite or an argument is invalid.

    Example:
        >>> import numpy as np
        >>> target = np.arange(40) % 10
        >>> scores = np.random.default_rng(0).normal(size=(40, 10)) + 3 * np.eye(10)[target]
        >>> few = EvaluationSettings(replicates=20)
        >>> report = evaluate(ScoreMatrix(scores, target), settings=few)
        >>> report["zebra.tag"].text, round(report["srd.idr"].value, 2)
        ('C', 0.97)
        >>> evaluate(scores, settings=few, labels=target)["zebra.tag"].text
        'C'
    """
    if not isinstance(scores, ScoreMatrix | Comparisons):
        read = _read(scores, labels, choose)
        scores, notes = read.comparisons, (*read.warnings, *read.notes, *notes)
    elif labels is not None or choose:
        raise UsageError("a ScoreMatrix includes the speakers: leave out labels and choose")
    if dev is not None and not isinstance(dev, ScoreMatrix):
        raise UsageError(
            f"dev is a {type(dev).__name__}: give a ScoreMatrix, such as read_scores(FILE).matrix"
        )
    context = EvaluationContext.from_scores(scores, settings, dev)
    every, usage = context.comparisons, context.comparisons.usage
    about = dict.fromkeys(notes, "")  # family of figures, by note
    if every.incomplete is not None:
        about |= dict.fromkeys(_describe_usage(usage, len(every.speakers)), "")
    figures: dict[str, Figure] = {}
    curves: Record = {}
    conclusions: dict[str, str] = {}
    for family in families():
        if progress is not None:
            progress(family.title)
        is_wanted = settings.only is None or family.key in settings.only
        if not (is_wanted and all(context.has(need) for need in family.needs)):
            continue
        result = family.compute(context)
        computed = tuple(result.figures)
        if family.no_evidence is not None:
            context = replace(context, nothing=context.nothing or family.no_evidence(computed))
        if not family.finds_limits:
            computed = tuple(_with_limits(context, family, computed))
        figures |= {figure.key: figure for figure in computed}
        curves = {**curves, **result.curves}
        about |= dict.fromkeys(result.notes, family.key)
        conclusions |= dict.fromkeys(result.conclusions, family.key)
    about |= conclusions
    return Report(
        name=every.name,
        speakers=len(every.speakers),
        trials=usage.trials,
        tested=tuple(sorted(every.people[i] for i in np.unique(every.owner).tolist())),
        replicates=0 if context.pool_weights is None else settings.replicates,
        seed=settings.seed,
        notes=tuple(about),
        about={note: family for note, family in about.items() if family},
        figures=figures,
        curves=Curves(every.name, len(every.speakers), usage.nontarget, **curves),
        warnings=tuple(warnings_of(context)),
        usage=usage,
        named_trials=frozenset() if context.matrix is None else context.matrix.named_trials,
    )


def _read(
    scores: EvaluationInput | str | PathLike[str] | AnyArray,
    labels: str | PathLike[str] | Sequence[int] | Sequence[str] | AnyArray | None,
    choose: Sequence[str],
) -> EvaluationInput:
    """Read a file of scores, or an array, with the labels that were given."""
    if isinstance(scores, EvaluationInput):
        if labels is not None or choose:
            raise UsageError("these scores include the speakers: leave out labels and choose")
        return scores
    if isinstance(scores, str | PathLike):
        if labels is None or isinstance(labels, str | PathLike):
            return read_scores(scores, labels, choose=choose)
        raise UsageError(
            f"labels is a {type(labels).__name__}: give a file of labels with a file of scores"
        )
    if isinstance(labels, str | PathLike) or choose:
        raise UsageError(
            "a file of labels and choose need a file of scores: give labels= as an array"
        )
    return scores_in_memory(scores, labels)


def warnings_of(context: EvaluationContext) -> list[str]:
    """Warn of scores that look like distances."""
    if context.matrix is None:
        return [*filter(None, [list_warning(context.comparisons, context.counts.exact)])]
    dev = "" if context.dev is None else warning(context.dev, "the dev matrix")
    return [*filter(None, [warning(context.matrix), dev])]


def _with_limits(
    context: EvaluationContext, family: Family, figures: Iterable[Figure]
) -> Iterator[Figure]:
    """Add limits to figures; those of the pool and of ranks resample different people."""
    for pooled, members in groupby(figures, key=lambda figure: family.pooled(figure.key)):
        if pooled or context.matrix is not None:
            yield from add_limits(members, context.sample(pooled))
        else:
            yield from members


def _describe_usage(usage: Usage, speakers: int) -> Iterator[str]:
    """Describe which comparisons each figure uses."""
    impostors = (
        f" ({usage.impostor:,} of these of {plural(usage.impostor_trials, 'trial')} without a "
        "target)"
        if usage.impostor
        else ""
    )
    yield (
        f"{usage.target:,} target and {usage.nontarget:,} non-target comparisons{impostors}: EER, "
        "Cllr, ZEBRA, D_sys and the rates at few false positives count them all."
    )
    complete = f"compared with all {speakers:,} speakers, including their own"
    yield (
        f"Ranks (SRD, LID, pi_link, pi_sing, mean ranks) use the {usage.ranked_trials:,} of "
        f"{plural(usage.trials, 'trial')} that were {complete}."
        if usage.ranked_trials
        else f"No trial was {complete}: SRD, LID, pi_link, pi_sing and mean ranks are omitted."
    )


_ERRORS = 3.0  # standard errors below chance, over trials and again over speakers


def _below_chance(below: FloatArray, owner: IntArray, error: float) -> bool:
    if 0.5 - float(below.mean()) <= _ERRORS * error:
        return False
    tests = np.bincount(owner)
    means = (np.bincount(owner, below) / np.maximum(tests, 1))[tests > 0]
    if means.size < 2:
        return True
    return bool(0.5 - means.mean() > _ERRORS * means.std(ddof=1) / np.sqrt(means.size))


def list_warning(scores: ScoredComparisons, counts: Counts) -> str:
    """Return `warning` for a list, from mated scores among non-mated ones."""
    others = counts.non_mated_total
    under = np.cumsum(counts.non_mated)  # below the end of each cell
    at = np.searchsorted(counts.cuts, scores.mated, "right")  # the cell of exactly that score
    below = (under[at - 1] + under[at]) / (2 * others)
    error = float(np.sqrt((1 / below.size + 1 / others) / 12))
    if not _below_chance(below, scores.owner, error):
        return ""
    return (
        f"{scores.name} looks like distances: mated comparisons score lower than others. Higher "
        "scores must mean more alike, so negate distances."
    )


def warning(matrix: ScoreMatrix, what: str = "") -> str:
    """Describe scores of `what` if true speakers rank below chance; otherwise return "".

    Two tests must agree: over trials, as if independent, and over the means of speakers.
    """
    count, trials = matrix.population, matrix.trials
    below = 1.0 - (matrix.better + (matrix.tied - 1) / 2) / (count - 1)  # share of the others
    error = float(np.sqrt((count + 1) / (12 * (count - 1) * trials)))
    if not _below_chance(below, matrix.owner, error):
        return ""
    first = float((1.0 / matrix.tied * (matrix.better == 0)).mean())
    return (
        f"{what or matrix.name} looks like distances. The correct person ranks first in "
        f"{100 * first:.3g} % of the trials (chance: {100 / matrix.population:.3g} %) and late in "
        "most. Higher scores must mean more alike, so negate distances."
    )
