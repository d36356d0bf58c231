"""Shrinkage of a fit on few speakers towards another law (docs/method.md sections 3 and 5).

The other law counts as m further speakers, beside S of one's own: m / (S + m), which fades as own
speakers grow. Its rank pmf is mixed into the own histogram of ranks in that proportion, and its
lambda and e hold those of the fit (see ``monitor.maths.anchor``). How many speakers it is worth is
chosen by the likelihood of speakers left out, pooled over cells so that the choice is stable. It is
twenty at least: a dozen who are all told apart easily leave nobody out who could speak for others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from monitor.maths import logit
from monitor.maths.anchor import Anchor, information
from monitor.maths.fitting import fit_many, pmf_of
from monitor.maths.ranks import rank_histograms
from monitor.training.cells import Cell
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["WORTHS", "KnownLaw", "choose_worth", "held_out_nats", "ranks_of", "trials_of"]

WORTHS = (20.0, 50.0, 100.0)
"""Speakers that another law may be worth."""
_FOLDS = 20
_MOST_SCORES = 200_000
"""Scores behind the information of a trial."""


@dataclass(frozen=True, slots=True)
class KnownLaw:
    """What another law says of a cell; row 0 the law, rows 1..B its resamples.

    Attributes:
        pmf: of the ranks at the cell's N, shape (1 + B, N).
        weights: lambda, shape (1 + B, F).
        floor: e, shape (1 + B,).
        worth: m, speakers.
        evidence: a and b of its likelihood ratios, shape (1 + B, 1 + F); None where it has none
            against the same cohort.
    """

    pmf: FloatArray
    weights: FloatArray
    floor: FloatArray
    worth: float = 0.0
    evidence: FloatArray | None = None

    def share(self, speakers: int) -> float:
        """What it counts beside S speakers: m / (S + m)."""
        return self.worth / (speakers + self.worth)

    def mixed(
        self, histograms: FloatArray, speakers: int, *, resamples: bool = False
    ) -> FloatArray:
        """Histograms of ranks of as many trials, a share of them as this law has it.

        Args:
            histograms: shape (..., N); of B resamples, (B, N).
            speakers: S behind each.
            resamples: each with a resample of this law, not with the law.
        """
        share, pmf = self.share(speakers), self.pmf[1:] if resamples else self.pmf[0]
        return np.asarray(
            (1.0 - share) * histograms + share * histograms.sum(-1, keepdims=True) * pmf
        )

    def anchor(self, trials: logit.Trials, heard: BoolArray) -> Anchor:
        """What holds lambda and e of the heard features."""
        weights = self.weights[:, heard]
        step = -(-trials.behind.size // _MOST_SCORES)
        found = information(trials.behind[::step], weights[0], float(self.floor[0]))
        return Anchor(np.column_stack([weights, np.log(self.floor)]), found).worth(self.worth)


def trials_of(cell: Cell, axis: Sequence[int]) -> tuple[logit.Trials, BoolArray] | None:
    """The trials of some features, speakers counted from 0, and which features were heard.

    None where no score ever differed.
    """
    _, place = np.unique(cell.behind_speaker, return_inverse=True)
    behind = cell.behind[:, list(axis)]
    heard: BoolArray = np.asarray(behind.any(axis=(0, 2)))
    return (logit.Trials(behind[:, heard], place), heard) if heard.any() else None


def ranks_of(
    cell: Cell, axis: Sequence[int], evidence: FloatArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Speaker, better and tied of each trial: of one feature all, of several those with scores."""
    if len(axis) == 1:
        return cell.speaker, cell.better[axis[0]], cell.tied[axis[0]]
    return cell.behind_speaker, (evidence > 0).sum(axis=1), (evidence == 0).sum(axis=1)


def held_out_nats(
    cell: Cell, axis: Sequence[int], known: KnownLaw, worths: Sequence[float] = WORTHS
) -> dict[int, FloatArray]:
    """What each speaker of a cell loses under a fit on the others, by the worth of the other law.

    Args:
        cell: its trials.
        axis: which features, as places on the cell's axis F.
        known: the other law there.
        worths: m, of each.

    Returns:
        by voice, shape (M,): nats of its score posterior and of its rank; nothing where no score
        ever differed.
    """
    made = trials_of(cell, axis)
    if made is None:
        return {}
    trials, heard = made
    voices = np.unique(cell.behind_speaker)
    cost = logit.prior_of(trials)
    fold = np.arange(voices.size) % min(voices.size, _FOLDS)
    kept = (fold != np.arange(fold.max() + 1)[:, None]).astype(float)
    lowest = logit.smallest_floor(voices.size - 1)
    losses = np.empty((voices.size, len(worths)))
    for i, worth in enumerate(worths):
        told = replace(known, worth=worth)
        anchor = told.anchor(trials, heard).law
        found = logit.fit(trials, cost, anchor)
        weights, floors = logit.fit_replicates(trials, found.weights, kept, cost, lowest, anchor)
        bits = logit.held_out_bits(trials, weights[fold], floors[fold])
        evidence = np.einsum("f,nfj->nj", found.weights, trials.behind)
        speaker, better, tied = ranks_of(cell, axis, evidence)
        place = np.searchsorted(voices, speaker)
        rest = rank_histograms(better, tied, cell.candidates, kept[:, place])
        pmf = pmf_of(*fit_many(told.mixed(rest, voices.size)), cell.candidates)
        gamma = (1.0 - lowest) * pmf + lowest / cell.candidates  # no rank is impossible
        # of tied ranks the mean of their logarithms
        sums = np.cumsum(np.pad(np.log(gamma), ((0, 0), (1, 0))), axis=1)
        logs = (sums[fold[place], better + tied] - sums[fold[place], better]) / tied
        ranked = np.bincount(place, logs) / np.bincount(place)
        losses[:, i] = -np.log(2.0) * bits - ranked
    return dict(zip(voices.tolist(), losses, strict=True))


def choose_worth(
    losses: Sequence[Mapping[int, FloatArray]], worths: Sequence[float] = WORTHS
) -> float:
    """The worth under which speakers who were left out lose least.

    Args:
        losses: of some cells, from ``held_out_nats``; every speaker counts once.
        worths: m, of each.
    """
    voices = {voice for cell in losses for voice in cell}
    if not voices:
        return float(worths[0])
    each = [np.mean([c[v] for c in losses if v in c], axis=0) for v in sorted(voices)]
    return float(worths[int(np.mean(each, axis=0).argmin())])
