"""People who were enrolled twice, under two names.

Public corpora contain them: one volunteer with two accounts, one caller with two numbers. Each of
the two is the other's best impostor, so the figures of both read too low.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from monitor.maths.statistics import median
from monitor.population.population import Population
from monitor.types import AnyArray, FloatArray

FEATURE = "voice"
LEAST_SECONDS = 15.0  # speech of each template: shorter ones of one person differ too much
LIKELY = 0.5  # probability above which a pair is reported
# Chosen on 120 people at their own microphones and 160 in one room; judged on 20 others
# (benchmarks/results/doubles.md).
_MATES = 0.85, 0.1  # mean and spread of the cosine of one person's two templates
_LEAST_SPREAD = 0.12  # minimum spread of different people's cosines; few people understate it
_FREEDOM = 30  # degrees of freedom of Student's t: the tail of different people's cosines
_MOST_PEOPLE = 20_000  # each is compared with all others
_SAMPLED_PEOPLE = 1000  # their pairs show what is usual here
_ROWS = 256  # people compared at a time
_SHARE = 0.01  # prior share of people with a second name


@dataclass(frozen=True, slots=True)
class Double:
    """Two names of what is probably one person."""

    first: str
    second: str
    probability: float
    cosine: float  # of the two templates


def find_doubles(population: Population, new: Iterable[str] | None = None) -> list[Double]:
    """Find people who are probably enrolled under two names, likeliest first.

    The cosine of each pair's voice templates is compared with the cosines of all pairs here, which
    are nearly all of different people. If all people share a room and a microphone, they
    sound alike, and no pair stands out.

    None is found without the feature voice, or among more than 20,000 people. With ``new``, only
    pairs with one of these speakers are found.
    """
    if FEATURE not in population.features or len(population) > _MOST_PEOPLE:
        return []
    slices = population.features[FEATURE].slices
    owner = np.repeat(np.arange(len(population)), np.diff(population.offsets))
    totals = np.zeros((len(population), slices.shape[1]))
    np.add.at(totals, owner, slices)
    return doubles_among(population.names, totals, population.template_seconds, new)


def doubles_among(
    names: Sequence[str], totals: AnyArray, seconds: AnyArray, new: Iterable[str] | None = None
) -> list[Double]:
    """Find doubles from each person's summed embeddings, (N, M), of this much speech, (N,)."""
    lengths = np.linalg.norm(totals, axis=1)
    enough = np.flatnonzero((np.asarray(seconds) >= LEAST_SECONDS) & (lengths > 0))
    if enough.size < 2:
        return []
    directions = totals[enough] / lengths[enough, None]
    chosen = None if new is None else set(new)
    is_new = np.array([chosen is None or names[i] in chosen for i in enough.tolist()])
    sample = directions[:: -(-enough.size // _SAMPLED_PEOPLE)]
    usual = (sample @ sample.T)[np.triu_indices(len(sample), 1)]
    centre = median(usual)
    spread = max(1.4826 * median(np.abs(usual - centre)), _LEAST_SPREAD)
    new_rows = np.flatnonzero(is_new)
    doubles = []
    for rows in np.array_split(new_rows, -(-new_rows.size // _ROWS) or 1):
        cosines = directions[rows] @ directions.T
        # two new people are one pair; below two spreads no pair is likely
        is_other = ~is_new | (np.arange(enough.size) > rows[:, None])
        row, other = np.nonzero(is_other & (cosines > centre + 2 * spread))
        values = cosines[row, other]
        probabilities = _compute_probabilities(values, centre, spread, enough.size)
        for i in np.flatnonzero(probabilities > LIKELY).tolist():
            first, second = sorted((int(rows[row[i]]), int(other[i])))
            pair = names[enough[first]], names[enough[second]]
            doubles.append(Double(*pair, float(probabilities[i]), float(values[i])))
    return sorted(doubles, key=lambda double: -double.cosine)


def _compute_probabilities(
    cosines: FloatArray, centre: float, spread: float, people: int
) -> FloatArray:
    """Compute the posterior probability that each pair is one person.

    The centre and spread are those of different people's cosines.
    """
    from scipy.special import expit, logit
    from scipy.stats import norm, t

    mates = norm.logpdf(np.minimum(cosines, _MATES[0]), *_MATES)
    others = t.logpdf(cosines, _FREEDOM, centre, spread)
    return np.asarray(expit(mates - others + logit(_SHARE / (people - 1))))


def name_once(doubles: Iterable[Double]) -> dict[str, str]:
    """Return the name to keep by each second name, from pairs with the likeliest first.

    Each second name gets its likeliest first one. A new name that resembles two enrolled people
    therefore does not merge them.

    Example:
        >>> pairs = [("ann", "new"), ("bob", "new"), ("new", "newer")]
        >>> name_once([Double(*pair, 0.9, 0.8) for pair in pairs])
        {'new': 'ann', 'newer': 'ann'}
    """
    firsts: dict[str, str] = {}
    for double in doubles:
        firsts.setdefault(double.second, double.first)
    first_names: dict[str, str] = {}
    for name, first in firsts.items():
        while first in firsts:  # ends, because a first name is always before its second
            first = firsts[first]
        first_names[name] = first
    return first_names


def group_names(
    names: Sequence[str], doubles: Iterable[Double], response: str
) -> dict[str, list[str]]:
    """Return, for each remaining name, the names with speech that it gets, itself first.

    Example:
        >>> pairs = [Double("ann", "anna", 0.9, 0.8)]
        >>> group_names(["ann", "anna", "bob"], pairs, "merge")
        {'ann': ['ann', 'anna'], 'bob': ['bob']}
        >>> group_names(["ann", "anna", "bob"], pairs, "drop")
        {'ann': ['ann'], 'bob': ['bob']}
    """
    first_names = {} if response == "note" else name_once(doubles)
    groups = {name: [name] for name in names if name not in first_names}
    for gone, name in first_names.items() if response == "merge" else ():
        groups[name].append(gone)
    return groups


def add_second_names(names: Iterable[str], doubles: Iterable[Double]) -> set[str]:
    """Add the other names of the same people.

    Example:
        >>> sorted(add_second_names(["anna"], [Double("ann", "anna", 0.9, 0.8)]))
        ['ann', 'anna']
    """
    names, first_names = set(names), name_once(doubles)
    people = {first_names.get(name, name) for name in names}
    return names | people | {name for name, first in first_names.items() if first in people}


def resolve_doubles(population: Population, doubles: Iterable[Double], response: str) -> Population:
    """Give the speech of second names to first ones (merge), drop it, or keep all (note)."""
    groups = group_names(population.names, doubles, response)
    if response == "drop":
        return population.chosen(groups)
    for name, (_, *others) in groups.items():
        for other in others:
            more = population.chosen([other])
            renamed = more.with_details([replace(more.speakers[0], name=name)])
            population = population.without(other).extended(renamed)
    return population


def describe_doubles(doubles: Sequence[Double], response: str) -> Iterator[str]:
    """Format a line for each pair; ``response`` is note, merge or drop."""
    first_names = name_once(doubles)
    done = {
        "merge": "The speech of {1} was given to {0}.",
        "drop": "{1} was left out.",
        "note": "While both names stay, the figures of both read too low. Check by ear, then set "
        "`doubles = merge` or `drop` in --config.",
    }[response]
    for double in doubles:
        consequence = done.format(first_names[double.second], double.second)
        yield (
            f"{double.first} and {double.second} sound like one person (probability "
            f"{min(double.probability, 0.999):.1%}). {consequence}"
        )
