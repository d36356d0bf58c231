"""What ranks come to, in plain words: how far they narrow a crowd down, how often they hit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from monitor.evaluation.figure import Figure
from monitor.evaluation.words import finite_value, share_aloud

__all__ = ["meaning"]

_MEAN_BITS = ("srd.mean_bits_model", "srd.mean_bits")


def meaning(figures: Mapping[str, Figure], speakers: int) -> Iterator[str]:
    """A paragraph on MeanD, and one on first ranks and on the most telling trial."""
    means = (figures.get(key) for key in _MEAN_BITS)
    bits = next((each for each in means if each is not None and each.value is not None), None)
    if bits is not None:
        yield _crowd(figures, bits, speakers)
    rank1 = finite_value(figures.get("srd.idr"))
    if rank1 is None:
        return
    text = (
        f"In {share_aloud(rank1)} of the trials the right person came first on the attacker's "
        f"list; guessing does that in {share_aloud(1 / speakers)}."
    )
    worst = finite_value(figures.get("lid.max_bits"))
    if worst is not None:
        belief = min(1.0, float(2.0**worst) / speakers)
        text += (
            f" The most telling trial gave the attacker {worst:.2f} of at most "
            f"{np.log2(speakers):.2f} bits: a belief of {share_aloud(belief)} in "
            "the right one."
        )
    yield text


def _crowd(figures: Mapping[str, Figure], figure: Figure, people: int) -> str:
    bits = max(figure.value or 0.0, 0.0)
    left = people / 2.0**bits
    most = f"{np.log2(people):.2f}"
    if _reversed(figures, bits):
        return (
            f"Of {people:,} people whom an attacker considers, the right one comes later than by "
            f"chance: who takes low scores for alike learns {bits:.2f} bits of the {most} that "
            "single somebody out."
        )
    if _nothing(figures, bits, people):
        return (
            f"Among {people:,} people, these scores tell an attacker nothing that can be measured "
            f"about who spoke: {bits:.2f} bits on average, of {most} that single somebody out."
        )
    text = (
        f"Of {people:,} people whom an attacker considers, it is on average as if only "
        f"{_count(left)} were left: a trial discloses {bits:.2f} bits of the {most} that single "
        "somebody out"
    )
    low, high = figure.limits
    if low is not None and high is not None:
        fewest, other = (_count(people / 2.0 ** max(each, 0.0)) for each in (high, low))
        text += f" (limits: {low:.2f} to {high:.2f} bits, {fewest} to {other} people)"
    return text + "."


def _reversed(figures: Mapping[str, Figure], bits: float) -> bool:
    """Whether it is ranks behind those of chance that read more than no evidence."""
    chance = finite_value(figures.get("srd.null_chance"))
    band = figures.get("srd.null_model_bits")
    high = None if band is None else band.limits[1]
    return chance is not None and high is not None and chance > 0.5 and bits > high


def _nothing(figures: Mapping[str, Figure], bits: float, people: int) -> bool:
    """Whether no evidence reads as much in more than one case of twenty."""
    chance = finite_value(figures.get("srd.null_chance"))
    return bits <= 0.002 * np.log2(people) if chance is None else chance > 0.05


def _count(people: float) -> str:
    return f"{people:,.0f}" if people >= 9.95 else f"{people:.1f}".removesuffix(".0")
