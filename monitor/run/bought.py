"""What a protector bought over many recordings, from the lines of their summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from monitor.alerts.crossings import from_text
from monitor.maths.crossing import Crossing, seconds_bought
from monitor.phrases import plural
from monitor.protected_words import attacker_in_words, level_in_words

__all__ = ["bought_over"]

FEWEST = 2
_MOST_SHORTER = 0.25
"""Share of the recordings that may be shorter than the time that means are taken over."""


def bought_over(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Seconds bought on average over recordings, a line for each level, and who is kept out.

    The time that means are of is one that three in four recordings reach. Recordings count as
    independent: of one speaker's they say how they vary, not how speakers do.

    Args:
        rows: cells of the summary by column.

    Returns:
        lines for people; none where there was no protector, or fewer than two recordings.
    """
    told = [row for row in rows if row.get("crossings")]
    if len(told) < FEWEST:
        return []
    found: dict[float, list[tuple[Crossing, Crossing]]] = {}
    for row in told:
        for level, both in from_text(row["crossings"]).items():
            found.setdefault(level, []).append(both)
    usual = float(np.quantile([float(row["seconds"]) for row in told], _MOST_SHORTER))
    lines = []
    for bits, pairs in found.items():
        clear, protected = zip(*pairs, strict=True)
        # beyond the last time known of a side nothing can be said
        known = [max(side).seconds for side in (clear, protected) if not max(side).crossed]
        horizon = min([usual, *known])
        if horizon > 0:
            lines.append(_line(bits, clear, protected, horizon))
    if not lines:
        return []
    who = {row["protected_by"] for row in told} - {""}
    most = " or ".join(attacker_in_words(name) for name in sorted(who, reverse=True))
    return [f"seconds bought over {plural(len(told), 'recording')}, from {most}:", *lines]


def _line(
    bits: float,
    clear: Sequence[Crossing],
    protected: Sequence[Crossing],
    horizon: float,
) -> str:
    made = seconds_bought(clear, protected, horizon)
    limits = "" if made.low is None else f" ({made.low:.1f} to {made.high:.1f})"
    return (
        f"  {level_in_words(bits)}: {made.seconds:.1f} s{limits} of the first "
        f"{horizon:.0f} s, reached by then in {made.clear_share:.0%} clear and "
        f"{made.protected_share:.0%} protected"
    )
