"""The declaration of what several trials of one speaker disclose."""

from __future__ import annotations

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.context import EvaluationContext
from monitor.evaluation.family import Family, FamilyResult, FigureEntry, LimitRule
from monitor.evaluation.lid.family import STYLE, local_bits
from monitor.evaluation.longitudinal.curves import DRAWINGS
from monitor.evaluation.longitudinal.figures import figures, lines
from monitor.evaluation.longitudinal.longitudinal_curve import longitudinal

__all__ = ["FAMILY"]

_OVERSURE = LimitRule("none", why="a few speakers of whom it is wrongly sure decide it")
_RULES = (
    ("sum", "as if its trials were independent", _OVERSURE),
    ("average", "by their average",
     LimitRule("none", why="they would leave out its calibration")),
    ("temperature", "by one temperature for any number", LimitRule("signed")),
    ("count", "by a temperature that grows with their number", LimitRule("signed")),
    ("embedding", "by a temperature that grows with their likeness", None),
    ("rank", "by the product of rank laws", _OVERSURE),
)  # fmt: skip


def _compute(context: EvaluationContext) -> FamilyResult:
    matrix, local = context.ranked, context.once(local_bits)
    if local is None:
        return FamilyResult(())
    if np.bincount(matrix.owner).max() < 2:
        note = "No speaker has a second trial: what hearing more discloses is left out."
        return FamilyResult((), (note,))
    try:
        calibration = local.calibrations[STYLE]
        heard = longitudinal(matrix, context.dev, STYLE, calibration=calibration, as_rows=False)
    except UsageError as error:
        return FamilyResult((), (f"What hearing more discloses is left out: {error}.",))
    line, guides = lines(heard, context.weights)
    return FamilyResult(
        figures(heard, context.weights, len(matrix.tested)),
        curves={"heard": line, "guides": guides},
    )


FAMILY = Family(
    key="longitudinal",
    place=30,
    title="Several trials, one speaker (LID)",
    caveat="The plain sum assumes that trials are independent; they are not, and it grows "
    "overconfident. Where sum and fitted temperature part, believe the latter.",
    needs=("matrix",),
    figures=tuple(
        FigureEntry(
            f"heard_{rule}",
            f"longitudinal.{rule}_bits",
            f"bits after several trials, {how}",
            limits,
        )
        for rule, how, limits in _RULES
    ),
    compute=_compute,
    drawings=DRAWINGS,
)
