"""The transparent attacker: a logistic regression on embeddings that tells an attribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from monitor.errors import UsageError
from monitor.maths.ridge import fit_ridge
from monitor.phrases import plural
from monitor.types import BoolArray, FloatArray, IntArray

__all__ = ["FOLDS", "Excerpts", "log_odds"]

FOLDS = 5
RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
FEWEST = 2
"""Speakers on either side that can be learnt from."""


@dataclass(frozen=True)
class Excerpts:
    """Stretches of speech, as an attacker sees them.

    Attributes:
        vectors: shape (n, d), an embedding of each; only its direction counts.
        whose: n names of speakers.
    """

    vectors: FloatArray
    whose: tuple[str, ...]

    def of(self, speakers: frozenset[str]) -> Excerpts:
        """Those of some speakers."""
        chosen = [place for place, who in enumerate(self.whose) if who in speakers]
        return Excerpts(self.vectors[chosen], tuple(self.whose[place] for place in chosen))


def log_odds(
    learnt: Excerpts, judged: Excerpts, has: Mapping[str, bool], seed: int = 0
) -> FloatArray:
    """How probable the attacker finds the attribute in each excerpt of readers it did not learn.

    No reader is learnt from and judged by one regression: where both hold the same readers, those
    judged are dealt into five folds, and each fold is judged by who learnt from the other readers.
    Every reader counts the same, and so do both groups. The strength of the ridge is the one that
    predicts readers best who are left out of what is learnt from.

    Args:
        learnt: of readers whose attribute the attacker knows.
        judged: of readers whose attribute it wants to know.
        has: by reader; whoever is missing is learnt nothing from.
        seed: of the folds.

    Returns:
        natural logarithm of the odds, shape (n,), of `judged`.

    Raises:
        UsageError: fewer than two readers with or without it to learn from.
    """
    readers = sorted(set(judged.whose))
    shared = not set(learnt.whose).isdisjoint(readers)
    fold_of = _dealt(readers, has, FOLDS if shared else 1, seed)
    whose = np.array([fold_of[who] for who in judged.whose])
    found = np.empty(len(judged.whose))
    unit = _unit(judged.vectors)
    for fold in sorted(set(fold_of.values())):
        left_out = {who for who in readers if fold_of[who] == fold}
        known = frozenset(w for w in learnt.whose if w in has and w not in left_out)
        bias, slopes = _fitted(learnt.of(known), has, seed)
        found[whose == fold] = bias + unit[whose == fold] @ slopes
    return found


def _fitted(learnt: Excerpts, has: Mapping[str, bool], seed: int) -> tuple[float, FloatArray]:
    readers = sorted(set(learnt.whose))
    label = np.array([has[who] for who in learnt.whose], bool)
    for group in (True, False):
        count = sum(has[who] == group for who in readers)
        if count < FEWEST:
            which = "with" if group else "without"
            raise UsageError(
                f"{plural(count, 'reader')} {which} the attribute to learn from, and "
                f"{FEWEST} are needed"
            )
    vectors, weight = _unit(learnt.vectors), _weights(learnt.whose, label)
    fold_of = _dealt(readers, has, min(FOLDS, *(_counts(readers, has))), seed + 1)
    fold = np.array([fold_of[who] for who in learnt.whose])
    ridge = min(RIDGES, key=lambda each: _loss(vectors, label, weight, fold, each))
    return fit_ridge(vectors, label, weight, ridge)


def _loss(
    vectors: FloatArray, label: BoolArray, weight: FloatArray, fold: IntArray, ridge: float
) -> float:
    """Of readers left out in turn: mean negative log-likelihood."""
    total = 0.0
    for each in np.unique(fold):
        mine = fold == each
        bias, slopes = fit_ridge(vectors[~mine], label[~mine], weight[~mine], ridge)
        odds = bias + vectors[mine] @ slopes
        right = expit(np.where(label[mine], odds, -odds))
        total -= float(weight[mine] @ np.log(np.maximum(right, 1e-300)))
    return total


def _dealt(readers: list[str], has: Mapping[str, bool], folds: int, seed: int) -> dict[str, int]:
    """A fold of each reader: as many of either group in each as can be."""
    generator = np.random.default_rng(seed)
    mixed = [readers[i] for i in generator.permutation(len(readers))]
    mixed.sort(key=lambda who: has.get(who, False))
    return {who: place % folds for place, who in enumerate(mixed)}


def _counts(readers: list[str], has: Mapping[str, bool]) -> tuple[int, int]:
    having = sum(has[who] for who in readers)
    return having, len(readers) - having


def _weights(whose: tuple[str, ...], label: BoolArray) -> FloatArray:
    """Every reader the same within a group, and both groups the same."""
    _, place = np.unique(np.asarray(whose), return_inverse=True)
    weight = 1.0 / np.bincount(place)[place]
    for group in (label, ~label):
        weight[group] /= weight[group].sum()
    return weight


def _unit(vectors: FloatArray) -> FloatArray:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0))
