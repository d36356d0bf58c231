"""All metrics of one system's scores: family after family, on the same counts and resamples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from os import PathLike
from typing import Any

import numpy as np

from monitor import crowds
from monitor.errors import UsageError
from monitor.lab.evaluation.family import EvaluationContext, Family, Figure, families, limited
from monitor.lab.evaluation.input.scores import EvaluationInput, read_scores, scores_of_array
from monitor.lab.evaluation.report.report import Report
from monitor.lab.evaluation.scores.comparisons import Comparisons, Roles, ScoreMatrix, Usage
from monitor.lab.evaluation.scores.counts import list_warning, warning
from monitor.lab.plots.evaluation import Curves
from monitor.maths.composition import DELTA
from monitor.maths.statistics import REPLICATES
from monitor.phrases import plural
from monitor.types import AnyArray


def steps() -> int:
    """How often `evaluate` calls its ``progress``."""
    return len(families())


def evaluate(
    scores: ScoreMatrix | Comparisons | EvaluationInput | str | PathLike[str] | AnyArray,
    dev: ScoreMatrix | None = None,
    *,
    labels: str | PathLike[str] | Sequence[int] | Sequence[str] | AnyArray | None = None,
    choose: Sequence[str] = (),
    replicates: int = REPLICATES,
    seed: int = 0,
    ties: str = "spread",
    roles: Roles | None = None,
    epsilon: float | None = None,
    delta: float = DELTA,
    among: Iterable[float] = (),
    notes: Sequence[str] = (),
    only: Collection[str] | None = None,
    progress: Callable[[str], object] | None = None,
) -> Report:
    """Every metric of the papers on the scores of one system.

    Args:
        scores: the trials: a `ScoreMatrix`, a file of scores as `read_scores` takes it, what that
            gave, or an array, trials x speakers. Of comparisons that are more than a matrix,
            figures of pooled scores take all, ranks those of the matrix; a note says how many.
        dev: scores of other speakers, to calibrate LID on; without it each speaker goes by a
            calibration on the others.
        labels: of an array, who spoke in each trial: its column, from 0, or the name; of a file, a
            file of labels, unless it says itself who spoke.
        choose: of a file of several matrices, which: ``["voice", "T=10"]``.
        replicates: B, the resamples of speakers behind the limits; 0 for none.
        seed: of the resamples; systems that share it and their speakers compare in pairs.
        ties: how SRD ranks equal scores, one of `monitor.maths.ranks.TIE_RULES`; each figure says
            what was done.
        roles: what was anonymised.
        epsilon: declared for one trial, nats: adds what several amount to.
        delta: chance with which bounds on epsilon may fail.
        among: numbers of people: adds IdR and MeanD among so many, see
            `monitor.lab.evaluation.among`.
        notes: what to say beside the figures.
        only: keys of families, such as ``"srd"``, where not all are wanted: it takes less time.
        progress: called `steps` times, with what comes next.

    Raises:
        UsageError: a score is not finite, or an option makes no sense.

    Example:
        >>> import numpy as np
        >>> target = np.arange(40) % 10
        >>> scores = np.random.default_rng(0).normal(size=(40, 10)) + 3 * np.eye(10)[target]
        >>> report = evaluate(ScoreMatrix(scores, target), replicates=20)
        >>> report["zebra.tag"].text, round(report["srd.idr"].value, 2)
        ('C', 0.97)
        >>> evaluate(scores, labels=target, replicates=20)["zebra.tag"].text
        'C'
    """
    if not isinstance(scores, ScoreMatrix | Comparisons):
        read = _read(scores, labels, choose)
        scores, notes = read.comparisons, (*read.warnings, *read.notes, *notes)
    elif labels is not None or choose:
        raise UsageError("a ScoreMatrix says itself who spoke: leave out labels and choose")
    if dev is not None and not isinstance(dev, ScoreMatrix):
        raise UsageError(
            f"dev is a {type(dev).__name__}: give a ScoreMatrix, such as read_scores(FILE).matrix"
        )
    if replicates < 0:
        raise UsageError(f"replicates={replicates}: give 0 or more")
    if strange := sorted(set(only or ()) - {family.key for family in families()}):
        raise UsageError(f"only={strange[0]!r}: there is no such family of metrics")
    sizes = crowds.sizes(among) if (among := tuple(among)) else ()
    context = EvaluationContext.of(
        scores, replicates, seed, dev=dev, ties=ties, roles=roles, epsilon=epsilon, delta=delta,
        among=tuple(sizes),
    )  # fmt: skip
    every, usage = context.comparisons, context.comparisons.usage
    said = dict.fromkeys(notes, "")  # by note, the family of figures that it is about
    if every.rest is not None:
        said |= dict.fromkeys(_used(usage, len(every.speakers)), "")
    figures: dict[str, Figure] = {}
    drawn: dict[str, Any] = {}
    concluded: dict[str, str] = {}
    for family in families():
        if progress is not None:
            progress(family.title)
        wanted = only is None or family.key in only
        if not (wanted and all(context.has(need) for need in family.needs)):
            continue
        found = family.compute(context)
        made = tuple(found.figures)
        if family.no_evidence is not None:
            context = replace(context, nothing=context.nothing or family.no_evidence(made))
        made = made if family.finds_limits else tuple(_with_limits(context, family, made))
        figures |= {figure.key: figure for figure in made}
        drawn |= found.curves
        said |= dict.fromkeys(found.notes, family.key)
        concluded |= dict.fromkeys(found.conclusions, family.key)
    said |= concluded
    # of scores that rise where voices are less alike
    wrong_way = [
        warning(context.matrix) if context.matrix else list_warning(every, context.counts.exact)
    ]
    if context.matrix and dev:
        wrong_way.append(warning(dev, "the dev matrix"))
    return Report(
        name=every.name,
        speakers=len(every.speakers),
        trials=usage.trials,
        tested=tuple(sorted(every.people[i] for i in np.unique(every.owner).tolist())),
        replicates=0 if context.pool_weights is None else replicates,
        seed=seed,
        notes=tuple(said),
        about={note: family for note, family in said.items() if family},
        figures=figures,
        curves=Curves.of(every.name, len(every.speakers), usage.nontarget, drawn),
        warnings=tuple(filter(None, wrong_way)),
        usage=usage,
        heard=frozenset() if context.matrix is None else context.matrix.named_trials,
    )


def _read(
    scores: EvaluationInput | str | PathLike[str] | AnyArray,
    labels: str | PathLike[str] | Sequence[int] | Sequence[str] | AnyArray | None,
    choose: Sequence[str],
) -> EvaluationInput:
    """Read a file of scores, or an array, with the labels that were given."""
    if isinstance(scores, EvaluationInput):
        if labels is not None or choose:
            raise UsageError("these scores say themselves who spoke: leave out labels and choose")
        return scores
    if isinstance(scores, str | PathLike):
        if labels is None or isinstance(labels, str | PathLike):
            return read_scores(scores, labels, choose=choose)
        raise UsageError(
            f"labels is a {type(labels).__name__}: give a file of labels with a file of scores"
        )
    if labels is None or isinstance(labels, str | PathLike) or choose:
        raise UsageError(
            "an array of scores does not say who spoke: give labels=, the column (from 0) or the "
            "name of each trial's speaker"
        )
    return scores_of_array(np.asarray(scores), np.asarray(labels))


def _with_limits(
    context: EvaluationContext, family: Family, figures: Iterable[Figure]
) -> Iterator[Figure]:
    """Figures of the pool and figures of ranks were resampled over different people."""
    for pooled, some in groupby(figures, key=lambda figure: family.pooled(figure.key)):
        if pooled or context.matrix is not None:
            yield from limited(some, context.sample(pooled))
        else:
            yield from some


def _used(usage: Usage, speakers: int) -> Iterator[str]:
    """Which comparisons went where."""
    strange = (
        f" ({usage.impostor:,} of these of {plural(usage.impostor_trials, 'trial')} without a "
        "target)"
        if usage.impostor
        else ""
    )
    yield (
        f"{usage.target:,} target and {usage.nontarget:,} non-target comparisons{strange}: EER, "
        "Cllr, ZEBRA, D_sys and the rates at few false positives count them all."
    )
    whole = f"compared with all {speakers:,} speakers, their own among them"
    yield (
        f"Ranks (SRD, LID, pi_link, pi_sing, mean ranks) stand on the {usage.ranked_trials:,} of "
        f"{plural(usage.trials, 'trial')} that were {whole}."
        if usage.ranked_trials
        else f"No trial was {whole}: SRD, LID, pi_link, pi_sing and mean ranks are left out."
    )
