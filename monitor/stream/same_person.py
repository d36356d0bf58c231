"""Whether two recordings sound like one person: their likeness against that of other readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from monitor.kinds import FeatureSpec, Kind, comparable_features
from monitor.stream.background import cohort, shipped_readers
from monitor.stream.heard import HeardTotals
from monitor.types import AnyArray

__all__ = ["LEAST", "alike", "comparable", "judged_by", "unlike"]

LEAST: Mapping[tuple[str, ...], float] = {
    ("identity",): 3.0,
    ("voice",): 1.3,
    ("f0", "phones"): 0.7,
    ("f0",): 0.65,
}
"""By the features to judge by, the best ones first: two voices that are less `alike` are two.

One pair in twenty of one reader's recordings is below it, of the half of the readers that it was
chosen on (``benchmarks/recordings.py``).
"""


_MISSES = {
    ("voice",): ", which misses many of the same sex",
    ("f0", "phones"): ", which misses many of the same sex",
    ("f0",): ", which misses most of the same sex",
}


def alike(
    kind: Kind, one: AnyArray, other: AnyArray, like_one: AnyArray, like_other: AnyArray
) -> float:
    """How alike two voices are, in standard deviations beyond a cohort's likeness to them.

    The symmetric score normalisation of speaker verification (S-norm; Shum, Dehak, Dehak & Glass,
    Odyssey 2010): each is scored against the other, less the mean over the cohort, by its spread.

    Args:
        kind: of the feature.
        one: shape (M,), counts or a sum of embeddings.
        other: the same of the other.
        like_one: shape (N, M), other people's, of about as much speech as ``one``.
        like_other: theirs, of about as much as ``other``.
    """
    how = kind.similarity()

    def side(heard: AnyArray, template: AnyArray, cohort: AnyArray) -> float:
        mine, *others = how.score(how.prepare(np.vstack([template, cohort])), heard)
        return float((mine - np.mean(others)) / np.std(others))

    return (side(one, other, like_other) + side(other, one, like_one)) / 2


def unlike(features: Mapping[str, FeatureSpec], one: HeardTotals, other: HeardTotals) -> bool:
    """Whether two voices sound like two people, as far as these features tell."""
    names = _judges(comparable(features))
    if not names or not all(each.frames[name] for each in (one, other) for name in names):
        return False
    readers = shipped_readers()
    figures = []
    for name in names:
        cohorts = [cohort(readers, name, each.speech_seconds) for each in (one, other)]
        kind = features[name].kind
        figures.append(alike(kind, one.totals[name], other.totals[name], *cohorts))
    return float(np.mean(figures)) < LEAST[names]


def comparable(features: Mapping[str, FeatureSpec]) -> set[str]:
    """Those that the shipped readers have too: of the same kind, by the same network."""
    return comparable_features(features, shipped_readers().specs)


def judged_by(features: Iterable[str]) -> str:
    """What ``unlike`` goes by, and what it is worth, in words."""
    names = _judges(features)
    return " and ".join(names) + _MISSES.get(names, "")


def _judges(features: Iterable[str]) -> tuple[str, ...]:
    have = set(features)
    return next((names for names in LEAST if have.issuperset(names)), ())
