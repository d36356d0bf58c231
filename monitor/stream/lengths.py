"""The one length D that all templates of a run are cut to, and what that means.

Source: docs/method.md section 4.

The shortest template decides, or the watched speaker's: who has less than the others is compared
with as much of each, never with more. What a law says belongs to its own D, so a length far below
those that it was learnt at gives no figures at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.population.interpolation import at_template
from monitor.population.law import RankLaw
from monitor.population.population import MISMATCH, Population, Scoring

__all__ = ["CommonLength", "common_length"]

_EXAMPLE_SECONDS = 30.0
"""Length of the test, of speech, by which a notice tells what longer templates would say."""


@dataclass(frozen=True, slots=True)
class CommonLength:
    """What the templates of a run are cut to.

    Attributes:
        scoring: the length, and who has it.
        withheld: why the watched speaker is not compared, or empty.
        notice: what to mind where D is not what the templates have, or the law was not learnt
            there; empty where there is nothing.
    """

    scoring: Scoring
    withheld: str = ""
    notice: str = ""


def common_length(
    population: Population, law: RankLaw, watch: str | None, asked_seconds: float | None
) -> CommonLength:
    """Choose D.

    Args:
        population: the templates.
        law: that will be asked what a score means.
        watch: the watched speaker, or None.
        asked_seconds: D, where the user chose it.

    Raises:
        UsageError: fewer than two templates are that long.
    """
    have = 0.0 if watch is None else float(population.template_seconds[population.index(watch)])
    if asked_seconds is not None:
        scoring = population.scoring(asked_seconds)
        if watch is not None and have < scoring.seconds:
            return CommonLength(
                scoring,
                f"template_mismatch: {watch} has {have:g} s of enrolled speech, not the "
                f"{scoring.seconds:g} s asked for; enrol more, or leave out --template-seconds",
            )
        return CommonLength(scoring, notice=_off_the_grid(law, scoring.seconds))
    usual = population.common_seconds
    if watch is None:
        scoring = population.scoring()
        if scoring.seconds == usual:
            return CommonLength(scoring, notice=_off_the_grid(law, usual))
        first = int(np.argmin(np.where(scoring.members, population.template_seconds, np.inf)))
        shortest = population.names[first]
        cure = f"; --template-seconds {usual:g} leaves out who has less"
        return CommonLength(scoring, notice=_cut(population, law, shortest, scoring, usual) + cure)
    if have >= usual:
        return CommonLength(population.scoring(watch=watch), notice=_off_the_grid(law, usual))
    least = float(law.template_lengths[0])
    if have < MISMATCH * least:
        return CommonLength(
            population.scoring(usual),
            f"template_mismatch: {watch} has {have:g} s of enrolled speech, too little: the rank "
            f"law knows no templates under {least:g} s; enrol more",
        )
    scoring = population.scoring(watch=watch)
    return CommonLength(scoring, notice=_cut(population, law, watch, scoring, usual))


def _cut(population: Population, law: RankLaw, name: str, scoring: Scoring, usual: float) -> str:
    """What it costs to be compared by less speech than the others have."""
    additive = np.array([each.additive for each in population.scorers(law).values()])
    speakers = int(scoring.members.sum())
    now, then = (
        at_template(law, d, additive).at(_EXAMPLE_SECONDS).expected_bits(speakers, slice(0, 1))[0]
        for d in (scoring.seconds, usual)
    )
    where = _off_the_grid(law, scoring.seconds) or "that length was learnt from"
    return (
        f"all templates are cut to {scoring.seconds:g} s, which is what {name} has (the others: "
        f"{usual:g} s); {where}. An attacker with more of {name} learns more: "
        f"{_EXAMPLE_SECONDS:g} s of speech give away {now:.1f} bits on average, {then:.1f} against "
        f"templates of {usual:g} s"
    )


def _off_the_grid(law: RankLaw, seconds: float) -> str:
    """Which law stands in at a D that it was not learnt at; empty where it was."""
    grid = law.template_lengths
    if np.isclose(grid, seconds).any():
        return ""
    place = int(np.searchsorted(grid, seconds))
    if 0 < place < grid.size:
        return (
            f"what was learnt from templates of {grid[place - 1]:g} and {grid[place]:g} s is "
            "interpolated"
        )
    nearest = float(grid[0] if place == 0 else grid[-1])
    which, bias = ("shorter", "high") if place == 0 else ("longer", "low")
    return f"nothing {which} than {nearest:g} s was learnt from: the figures are too {bias}"
