"""The declaration of LID."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from monitor.evaluation.context import EvaluationContext
from monitor.evaluation.family import Extremes, Family, FamilyResult, FigureEntry, LimitRule
from monitor.evaluation.figure import Figure
from monitor.evaluation.lid.bits import LidBits
from monitor.evaluation.lid.curves import DRAWINGS, exceeding
from monitor.evaluation.lid.figures import figures
from monitor.evaluation.longitudinal.speaker_sums import FEWEST
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.maths.ranks import first_rank_bits
from monitor.phrases import plural

__all__ = ["FAMILY", "STYLE", "local_bits"]

STYLE = "paper"
"""The calibration that keys do not name."""
_TIMES_CHANCE, _OUTLIERS, _FEW_SPEAKERS, _WORTH_BITS = 2.0, 0.05, 30, 0.3
"""Of a calibration that contradicts the ranks: from which figures on that is said, and why."""
_FAR = 10
"""Times its own number of speakers that a law is trusted at (docs/method.md section 3)."""

_OF_A_STYLE = (
    FigureEntry("alid", "alid_bits", "bits that a trial gives a calibrated attacker, on average",
                LimitRule("signed")),
    FigureEntry("pdr", "pdr", "share of trials that give something away",
                LimitRule("share", rest=0.5)),
    FigureEntry("ndr", "ndr", "share that give nothing, or mislead", LimitRule("share", rest=0.5)),
    FigureEntry("lid_plus", "positive_bits", "mean of those that give something away",
                LimitRule("share", rest=0.0)),
    FigureEntry("lid_minus", "negative_bits", "mean of the others",
                LimitRule("t", rest=0.0, few_decide=True)),
    FigureEntry("lid_max", "max_bits", "bits of the most telling trial",
                LimitRule("none", why="one trial decides it")),
)  # fmt: skip
_FIGURES = (
    *(replace(each, key=f"lid.{each.key}") for each in _OF_A_STYLE),
    *(
        replace(
            each,
            name=f"{each.name}_code",
            key=f"lid.repo.{each.key}",
            says=f"{each.name}, calibrated as the authors' code does",
        )
        for each in _OF_A_STYLE
    ),
)


def local_bits(context: EvaluationContext) -> LidBits | None:
    """LID of every trial; None where nothing can be calibrated on."""
    if context.dev is None and len(context.ranked.tested) < 2:
        return None
    return LidBits.of(context.ranked, context.dev)


def _compute(context: EvaluationContext) -> FamilyResult:
    matrix, dev, found = context.ranked, context.dev, context.once(local_bits)
    if found is None:
        note = "LID is left out: it needs a dev matrix, or trials of two speakers."
        return FamilyResult((), (note,))
    made = figures(matrix, context.weights, dev, STYLE, found=found)
    return FamilyResult(
        tuple(map(_by_their_code, made)),
        (*_notes(matrix, dev), *_contradiction(matrix, dev, found)),
        curves={"local_bits": exceeding(found.bits[STYLE])},
    )


def _by_their_code(figure: Figure) -> Figure:
    if not figure.key.startswith("lid.repo."):
        return figure
    how = "calibrated as the authors' public code does: both classes weigh alike, ddof 1"
    note = "; ".join(part for part in (figure.note, how) if part)
    return replace(figure, label=f"{figure.label}, authors' code", note=note)


def _notes(matrix: ScoreMatrix, dev: ScoreMatrix | None) -> Iterator[str]:
    if dev is None:
        yield "There is no dev matrix: LID was calibrated across the speakers, each by the others."
        return
    if shared := _tested(matrix) & _tested(dev):
        yield f"{len(shared)} of the speakers are in the dev matrix as well: LID is flattered."
    here, there = matrix.population, dev.population
    if here == there:
        return
    rank_law = (
        f"no rank law is carried over from fewer than {FEWEST}"
        if there < FEWEST
        else f"the rank law is evaluated at N = {here}"
    )
    yield (
        f"The dev matrix has N = {plural(there, 'speaker')}: LID's calibration is that of "
        f"{there}, which row "
        f"normalisation makes a little different at N = {here}; {rank_law}."
    )
    if here > _FAR * there:
        yield f"N is more than {_FAR} times that of the dev matrix: what it says is stretched far."


def _contradiction(matrix: ScoreMatrix, dev: ScoreMatrix | None, found: LidBits) -> Iterator[str]:
    """A calibration that denies what the ranks show, why that may be, and what to do.

    Whoever knows no more than how often the first rank is right learns `first_rank_bits`: half of
    it at least, or of the ceiling, should be there of ALID.
    """
    bits = found.bits[STYLE]
    share = float((matrix.better == 0).mean())
    alid, trials = float(bits.mean()), matrix.trials
    most = found.calibrations[STYLE].ceiling_bits(matrix.population)
    told = min(first_rank_bits(share, matrix.population), most)
    if share * matrix.population < _TIMES_CHANCE or told < _WORTH_BITS or alid >= told / 2:
        return
    worst = np.sort(bits)[: max(1, round(_OUTLIERS * trials))]
    lost = -float(worst.sum()) / trials
    learnt = matrix if dev is None else dev
    reasons = []
    if lost > told / 4:
        reasons.append(
            f"the worst {worst.size} of {trials} trials take {lost:.2f} bits off the mean "
            "(outliers: wrong labels, silence?)"
        )
    if len(learnt.tested) < _FEW_SPEAKERS:
        reasons.append(
            f"it was learnt from {plural(len(learnt.tested), 'speaker')} and "
            f"{plural(learnt.trials, 'trial')}, which is few"
        )
    if dev is not None:
        reasons.append("the dev scores may be of another system, or of other conditions")
    why = "; ".join(reasons) or "scores of some speakers spread far more than those of others"
    yield (
        f"ALID of {alid:.2f} bits contradicts the ranks: {100 * share:.0f} % of the trials are "
        f"right at the first, which alone is worth {told:.2f} bits. The calibration does not fit "
        f"these trials: {why}. Go by SRD and the error rates, look at the worst trials, and "
        "calibrate on more speakers like these (--dev)."
    )


def _tested(matrix: ScoreMatrix) -> set[str]:
    """Names of the speakers with trials; none where they are no more than numbers."""
    return {name for i in matrix.tested if not (name := matrix.speakers[i]).isdecimal()}


FAMILY = Family(
    key="lid",
    place=20,
    title="Local information disclosure (LID)",
    caveat="Row normalisation limits what a trial can disclose, however good the scores: read "
    "LID against its own ceiling. The two calibrations differ, and they are as good as the "
    "speakers that they were learnt on. LID is signed: a mean of zero can hide trials that "
    "disclose a lot beside trials that mislead.",
    needs=("matrix",),
    figures=_FIGURES,
    compute=_compute,
    main=("lid.alid_bits", "lid.max_bits"),
    drawings=DRAWINGS,
    extremes=Extremes(at_floor=("alid",), flat_at_floor=("alid",), dev=True, rounding=1e-6),
)
