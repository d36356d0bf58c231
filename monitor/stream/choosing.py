"""Which features a monitor listens for where nobody has chosen them, and which law weighs them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from monitor.errors import StoreError
from monitor.features.registry import ready, superseded, takes
from monitor.network_marks import unlike_networks
from monitor.population.law import Laws, RankLaw
from monitor.population.population import Population
from monitor.types import BoolArray, IntArray

__all__ = ["check_networks", "choose_features", "choose_law", "rows_by_features"]


def choose_features(
    laws: Laws, there: Collection[str] | None = None, *, words: bool = False
) -> tuple[str, ...]:
    """The largest set of features that there is a law for and that can be had.

    Of two as large the one without what another feature does better.

    Args:
        laws: what a rank means.
        there: what ready-made frames bring; None for audio, of which all is computed here.
        words: whether timed words lie beside the audio; what is made of them is left out otherwise.

    Raises:
        StoreError: there is no law, or none for features that are there.

    Example:
        >>> laws = Population.reference().laws
        >>> choose_features(laws, ["f0", "phones", "voice", "identity"])
        ('f0', 'phones', 'identity')
    """
    sets = [law.features for law in laws]
    if not sets and there is None:
        raise StoreError(
            "the population has no rank law; learn one with: "
            "monitor calibrate CORPUS -o POPULATION.npz"
        )

    def worth(names: Sequence[str]) -> tuple[int, ...]:
        weak = [name for name in names if superseded(name, names)]
        return len(names) - len(weak), -len(weak), "voice" not in names

    if there is None:
        heard = [names for names in sets if words or "words" not in map(takes, names)] or sets
        return max([names for names in heard if all(map(ready, names))] or heard, key=worth)
    had = [names for names in sets if set(names) <= set(there)]
    if not had:
        raise _no_law(there)
    return max(had, key=worth)


def choose_law(laws: Laws, features: tuple[str, ...], session: str) -> tuple[RankLaw, str, bool]:
    """The law to use, the session it is of, and whether it flatters the attacker.

    Raises:
        StoreError: there is none.
    """
    law = laws.find(features, session)
    if law is not None:
        return law, session, False
    other = "same" if session == "cross" else "cross"
    law = laws.find(features, other)
    if law is not None:
        return law, other, other == "same"
    raise _no_law(features)


def _no_law(features: Collection[str]) -> StoreError:
    return StoreError(
        f"the population has no rank law for {'+'.join(features)}; "
        "learn one with: monitor calibrate CORPUS -o POPULATION.npz"
    )


def rows_by_features(
    features: Sequence[str], heard: BoolArray
) -> Iterator[tuple[frozenset[str], IntArray]]:
    """Which rows have frames of the same features: by a law of those they are weighed.

    Args:
        features: F names.
        heard: whether a row has a frame of each, shape (R, F).

    Yields:
        some of the features, and the places of the rows that have just these; rows without a
        frame of any are left out.

    Example:
        >>> heard = np.array([[True, True], [False, False], [True, False]])
        >>> [(sorted(names), rows.tolist()) for names, rows in rows_by_features(["a", "b"], heard)]
        [(['a'], [2]), (['a', 'b'], [0])]
    """
    for row in np.unique(heard, axis=0):
        if names := frozenset(np.array(features)[row].tolist()):
            yield names, np.flatnonzero((heard == row).all(axis=1))


def check_networks(population: Population, law: RankLaw) -> None:
    """A law is about what one network makes of voices.

    Raises:
        StoreError: it was learnt from another one's frames than the templates were made of.
    """
    for name in law.features:
        mine, theirs = law.network(name), population.features[name].spec.network
        if mine != theirs:
            what = unlike_networks(name, "the law", mine, "the templates", theirs)
            raise StoreError(f"{what}; enrol and calibrate again with this version")
