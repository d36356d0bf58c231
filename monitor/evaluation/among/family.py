"""The declaration of rates among more people than were scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from monitor.evaluation.among.extrapolation import Extrapolation
from monitor.evaluation.among.figures import curve, figures, notes
from monitor.evaluation.context import EvaluationContext
from monitor.evaluation.family import Family, FamilyResult, FigureEntry, LimitRule
from monitor.evaluation.figure import Figure
from monitor.evaluation.words import share_aloud
from monitor.plots.evaluation import Drawing
from monitor.plots.identification import paint_crowd

__all__ = ["FAMILY"]

_FIGURES = (
    FigureEntry("among.supported", "among.supported",
                "people that the bracket of idr is supported for", LimitRule("given")),
    FigureEntry("among.idr_M", "among.idr_{people}",
                "share of trials in which the right one of M people comes first: the bracket",
                LimitRule("share")),
    FigureEntry("among.idr_FORM_M", "among.idr_{form}_{people}",
                "the same by one form: beta_binomial, probit, logit or pitman_yor",
                LimitRule("given")),
    FigureEntry("among.meand_M", "among.meand_{people}",
                "bits that a trial discloses among M people: the bracket", LimitRule("share")),
    FigureEntry("among.meand_FORM_M", "among.meand_{form}_{people}",
                "the same by one form: beta_binomial or probit", LimitRule("share")),
)  # fmt: skip


def _compute(context: EvaluationContext) -> FamilyResult:
    found = Extrapolation.of(context.ranked, context.sample(pooled=False), context.ties)
    sizes = context.among
    return FamilyResult(
        tuple(figures(found, sizes, context.ties)),
        tuple(notes(found, sizes)),
        curves={"crowd": curve(found, sizes)},
    )


def _meaning(found: Mapping[str, Figure], speakers: int) -> Iterator[str]:
    """What becomes of the first place in the largest crowd that was asked for."""
    keys = [key for key in found if _FIGURES[1].fits(key)]
    if not keys or not (figure := found[keys[-1]]).text:
        return
    low, high = figure.limits
    if low is None or high is None:
        return
    told = f" That is more than {speakers:,} people can tell: where they part, nobody knows."
    yield (
        f"Among {int(keys[-1].rsplit('_', 1)[1]):,} people the right one would come first in "
        f"{share_aloud(low)} to {share_aloud(high)} of the trials, by four ways to go on from what "
        f"was measured.{told if figure.text == 'unsupported' else ''}"
    )


FAMILY = Family(
    key="among",
    place=80,
    title="Among more people than were scored",
    caveat="Far beyond the people who were scored nothing decides between the forms: quote the "
    "bracket and whether it is supported, never one form. Limits are over speakers as good and as "
    "bad as these; another crowd (relatives, one accent, one microphone) is no random one.",
    needs=("matrix", "among"),
    figures=_FIGURES,
    compute=_compute,
    main=("among.supported", "among.idr_{people}", "among.meand_{people}"),
    option="--among M",
    finds_limits=True,
    drawings=(
        Drawing(
            "crowd",
            "Among more people than were scored",
            "Dots: measured among random parts of the enrolled. Lines: four forms fitted to the "
            "dots; far out they part. Shaded: from the lowest to the highest, with 95 % limits "
            "over speakers; pale beyond the upright line, where so few enrolled do not support it.",
            paint_crowd,
        ),
    ),
    meaning=_meaning,
)
