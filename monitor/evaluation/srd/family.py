"""The declaration of SRD."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from monitor.evaluation.context import EvaluationContext
from monitor.evaluation.family import (
    Derived,
    Extremes,
    Family,
    FamilyResult,
    FigureEntry,
    LimitRule,
)
from monitor.evaluation.figure import Figure
from monitor.evaluation.srd.curves import DRAWINGS, binned_ranks, law_line
from monitor.evaluation.srd.figures import figures, loss_figures, repeated
from monitor.evaluation.srd.meaning import meaning
from monitor.evaluation.srd.null_band import no_evidence
from monitor.evaluation.srd.rank_laws import loss_fits, rank_law
from monitor.evaluation.srd.replicates import mean_bits_by_speaker

__all__ = ["FAMILY"]

_LOSSES = ("ll", "ms", "wms", "rwms", "cll")
_SHARE, _GIVEN = LimitRule("share"), LimitRule("given")
_MODEL_HOLDS = LimitRule("none", why="those of the model's MeanD hold")
_MOST_FIRST = LimitRule("none", why="they hold too seldom where most ranks are 1")
_OF_IDR = Derived(
    lambda _: "srd.idr",
    lambda figure, share: float(
        np.log2(2.0 ** (figure.ceiling or 0.0) * max(share, np.finfo(float).tiny))
    ),
)

_FIGURES = (
    FigureEntry("meand", "srd.mean_bits_model",
                "bits that a trial discloses on average, by the law of its ranks", _SHARE),
    FigureEntry("meand_counted", "srd.mean_bits",
                "the same counted from the ranks: too high on few trials", _MODEL_HOLDS),
    FigureEntry("meand_corrected", "srd.mean_bits_miller_madow",
                "that count, its bias taken off", _MODEL_HOLDS),
    FigureEntry("meand_nothing", "srd.null_model_bits",
                "what meand reads where nothing is disclosed", _GIVEN),
    FigureEntry("meand_counted_nothing", "srd.null_mean_bits",
                "what meand_counted reads there", _GIVEN),
    FigureEntry("nothing_chance", "srd.null_chance",
                "how often nothing disclosed reads as much as meand"),
    FigureEntry("idr", "srd.idr", "share of trials in which the right person comes first", _SHARE),
    FigureEntry("rank1_bits", "srd.rank1_bits", "bits that a first rank discloses",
                LimitRule("derived", derived=_OF_IDR)),
    FigureEntry("stdd", "srd.stdd_bits", "how unequal the ranks are, bits", _MOST_FIRST),
    FigureEntry("maxd", "srd.maxd_bits", "bits that the most telling rank discloses",
                LimitRule("share", rest=0.0)),
    FigureEntry("maxd_rank", "srd.maxd_rank", "which rank that is",
                LimitRule("none", why="it jumps from one resample to the next")),
    FigureEntry("spread", "srd.spread", "share of ranks that are likelier than by chance",
                LimitRule("share", most=1.0,
                          quiet="without evidence it is chance which ranks are likelier")),
    FigureEntry("alpha", "srd.alpha", "first parameter of the law",
                LimitRule("t", rest=1.0, least=0.0)),
    FigureEntry("beta", "srd.beta", "its second parameter", _MOST_FIRST),
    FigureEntry("speaker_median", "srd.speaker_bits_median",
                "bits that the median speaker discloses", _GIVEN),
    FigureEntry("speaker_95", "srd.speaker_bits_95",
                "bits that one speaker in twenty exceeds", _GIVEN),
    *(FigureEntry(f"kl_{loss}", f"srd.kl_{loss}_bits",
                  f"misfit of the law fitted by {loss.upper()}, bits") for loss in _LOSSES),
    *(FigureEntry(f"rank1_match_{loss}", f"srd.rank1_match_{loss}_bits",
                  f"its misfit at rank 1 ({loss.upper()})") for loss in _LOSSES),
)  # fmt: skip


def _compute(context: EvaluationContext) -> FamilyResult:
    matrix, ties = context.ranked, context.ties
    ranked = rank_law(matrix.better, matrix.tied, matrix.population, ties)
    losses = loss_fits(ranked.histogram)
    by_speaker = mean_bits_by_speaker(matrix, ties)
    permutations = context.replicates if len(matrix.tested) > 1 else 0
    made = figures(matrix, context.weights, ties, permutations, context.seed, ranked, by_speaker)
    return FamilyResult(
        (*made, *loss_figures(losses, ties)),
        conclusions=() if repeated(matrix) else (_three_means({f.key: f for f in made}),),
        curves={
            "ranks": binned_ranks(ranked.histogram),
            "laws": {each.loss: law_line(each, matrix.population) for each in losses},
            "speaker_bits": by_speaker if repeated(matrix) else None,
        },
    )


def _three_means(found: Mapping[str, Figure]) -> str:
    """Why figures that are all called a mean differ most where each speaker was heard once."""
    counted, corrected, model = _values(found)
    return (
        "One trial a speaker: three figures estimate one mean, MeanD. "
        f"Counted{counted} it is too high on few trials; with its bias taken off"
        f"{corrected} and by the fitted law{model} it "
        "is not. Quote the law's: its limits are the ones that hold. ALID is another attacker's "
        "mean; single speakers have none, and are left out."
    )


def _values(found: Mapping[str, Figure]) -> Iterator[str]:
    for name in ("mean_bits", "mean_bits_miller_madow", "mean_bits_model"):
        figure = found.get(f"srd.{name}")
        yield f" ({figure.value:.2f})" if figure and figure.value is not None else ""


FAMILY = Family(
    key="srd",
    place=10,
    title="Similarity rank disclosure (SRD)",
    caveat="MeanD counted from a histogram is above zero even where nothing is disclosed; trust "
    "the figure of the model, and compare with the null band. A mean also hides the few speakers "
    "who are always found: see the figure for rank 1 and the spread over speakers. MaxD of a "
    "sparse histogram is noise: see the rank at which it stands.",
    needs=("matrix",),
    figures=_FIGURES,
    compute=_compute,
    main=("srd.mean_bits_model", "srd.idr"),
    drawings=DRAWINGS,
    meaning=meaning,
    no_evidence=no_evidence,
    extremes=Extremes(
        monotone=("",),
        rowwise=("",),
        at_ceiling=("idr", "mean_bits", "maxd_bits", "rank1_bits"),
        at_floor=("mean_bits_model", "idr"),
        flat_at_floor=("mean_bits_model", "idr"),
        rounding=1e-6,
        made=partial(figures, permutations=0),
    ),
)
