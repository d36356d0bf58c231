"""Sentences on what a calibration can say and what it cannot."""

from __future__ import annotations

from collections.abc import Mapping

from monitor.kinds import FeatureSpec
from monitor.phrases import plural, weaker_together
from monitor.population.flattering import flattery
from monitor.training.calibrating import FEWEST_SPEAKERS, Calibration

__all__ = ["advice", "weaker_joints"]

_COMFORTABLE = 30
"""Speakers beside whom a prior of twenty is the smaller part."""


def advice(made: Calibration, specs: Mapping[str, FeatureSpec]) -> list[str]:
    """One line each: the prior's part, the want of a cross-session law, what flatters.

    Args:
        made: what was learnt.
        specs: of the features it was learnt of.
    """
    learnt = [law for law in made.laws if law.origin == "own"]
    lines = []
    shares = [
        f"{100 * law.prior_share:.0f} % of {'+'.join(law.features)} {law.session}-session "
        f"({plural(law.speakers, 'speaker')})"
        for law in learnt
        if law.prior_speakers
    ]
    if shares:
        lines.append(f"the shipped readers' law is the prior: {', '.join(shares)}")
    alone = ["+".join(law.features) for law in learnt if not law.prior_speakers]
    if alone:
        lines.append(
            f"no prior for {', '.join(dict.fromkeys(alone))}: these laws rest on your speakers "
            "alone, and on few of them they can claim far too much"
        )
    for out in dict.fromkeys(law.left_out for law in learnt if law.left_out):
        apart = [law for law in learnt if law.left_out == out]
        names = dict.fromkeys("+".join(law.features) for law in apart)
        most = max(law.speakers for law in apart)
        lines.append(
            f"{', '.join(names)}: no test of the {len(out)} who trained a network of it; "
            f"{plural(most, 'speaker')} taught its law"
        )
    mute = [law for law in learnt if law.evidence is None]
    if mute:
        names = dict.fromkeys("+".join(law.features) for law in mute)
        lines.append(
            f"no likelihood ratios of {', '.join(names)}: the cohort has nothing like it, or fewer "
            f"than {FEWEST_SPEAKERS} people were heard of it; give a cohort with --cohort"
        )
    crossed = {law.features for law in made.laws if law.session == "cross"}
    stand_ins = [law for law in made.laws if law.origin == "shipped"]
    lacking = [law.features for law in learnt if law.features not in crossed]
    if stand_ins or lacking:
        lines.append(
            f"speakers with two sessions or more: {made.several_sessions}. A cross-session law "
            f"needs {FEWEST_SPEAKERS}, better {_COMFORTABLE}; until then "
            + ("the shipped readers' stands in" if stand_ins else "the same-session law stands in")
        )
    lines += weaker_joints(made)
    law = max(learnt, key=lambda law: len(law.features))
    told = flattery(
        {name: specs[name] for name in law.features},
        law.candidates,
        float(law.template_lengths[-1]),
    )
    lines.append(f"a same-session figure flatters an attacker who comes another day, {told}")
    return lines


def weaker_joints(made: Calibration) -> list[str]:
    """The largest loss by which features together gave less than one of them, by session."""
    found: dict[str, tuple[float, str]] = {}
    cells: dict[tuple[str, float, float], dict[str, float]] = {}
    for row in made.rows:
        cells.setdefault((row["session"], row["T"], row["D"]), {})[row["feature"]] = float(
            row["common_bits"]
        )
    for (session, test, template), bits in cells.items():
        for name, together in bits.items():
            parts = name.split("+")
            alone = {part: bits[part] for part in parts if part in bits and len(parts) > 1}
            if told := weaker_together(together, alone, name):
                loss = max(alone.values()) - together
                where = f"{told} ({session} session, T={test:g} D={template:g}"
                before = found.get(session, (0.0, ""))
                found[session] = max(before, (loss, where))
    return [f"{where}, where that is largest)" for _, where in found.values()]
