"""Texts of a run's picture: its title, the notes below it, and bits in words."""

from __future__ import annotations

import math

import numpy as np

from monitor.events import phrases
from monitor.phrases import AT_ALL, NO_MEASURE, STYLE_CAVEAT, clock_time, plural, verdict
from monitor.plots.columns import RunColumns
from monitor.safe_text import short_name

MOST_NOTICES = 2
_UNITS = ((90, 1, "second"), (5400, 60, "minute"), (math.inf, 3600, "hour"))


def lasted(seconds: float) -> str:
    """Format a duration in whole seconds, minutes or hours.

    Example:
        >>> lasted(1.4), lasted(46), lasted(565), lasted(7300)
        ('1 second', '46 seconds', '9 minutes', '2 hours')
    """
    unit, name = next((unit, name) for below, unit, name in _UNITS if seconds < below)
    return plural(max(1, int(seconds / unit)), name)


def heading(run: RunColumns) -> str:
    """Format the last value of the main figure as one sentence."""
    if run.doubt:
        return _sentence(run.doubt)
    speech, closed = run.columns["speech"], run.columns["closed_set_bits"]
    indices = np.flatnonzero(np.isfinite(closed) & np.isfinite(speech))
    if not indices.size:
        return "No figures for this voice yet"
    text = verdict(float(closed[indices[-1]]), _ceiling(run), run.watch)
    if narrowing := phrases.narrowed_sentence(run.last, run.watch or "", fit=False):
        text = short_name(narrowing, 110)
    if run.protected and (sides := _two_sides(run)):
        text = sides
    against = not run.last.is_evidence or (run.last.bits or 0.0) < phrases.NOTHING_BITS
    if run.last.is_impostor and against:
        text = phrases.verdict_now(run.last, run.watch)
    caution = phrases.caveat_of(run.last)
    care = f": {caution}" if caution else ""
    begun = [change for change in run.changes if change.action in ("reset", "split")]
    before = float(speech[run.fresh[-1] - 1]) if run.fresh else 0.0
    length = lasted(float(speech[indices[-1]]) - before)
    if begun and run.fresh:
        since = clock_time(begun[-1].since_seconds)
        return f"The voice since {since}: after {length}, {text}{care}"
    return f"After {length}, {text}{care}"


def _two_sides(run: RunColumns) -> str:
    last, figure = run.last, phrases.protected_figure(run.last)
    if last.bits is None or last.protected is None or figure is None:
        return ""
    clear = phrases.bits_or_more(last, in_bits(round(last.bits, 1)))
    side = phrases.bits_or_more(last.protected, in_bits(round(figure[0], 1)))
    care = f" ({NO_MEASURE})" if phrases.uninformed(last) else ""
    return f"{clear} unprotected, {side} through {run.protected}{care}"


def summary(run: RunColumns) -> str:
    """Format the peak, the closed-set figure beside evidence, and the best match."""
    speech, bits = run.columns["speech"], run.columns["bits"]
    spoken_bits = np.where(speech > 0, bits, np.nan)
    parts = []
    if np.isfinite(spoken_bits).any():
        peak = int(np.nanargmax(spoken_bits))
        owner = " of an earlier voice" if run.fresh and peak < run.fresh[-1] else ""
        parts.append(f"Peak{owner}: {in_bits(round(float(spoken_bits[peak]), 1))}")
    closed = run.last.closed_set()
    if run.evidence and closed is not None:
        figure = f"{in_bits(round(closed, 1))} of at most {run.ceiling:.2f}"
        parts.append(f"Closed-set: {figure} among the {run.speakers} enrolled")
    elif run.watch is not None:
        parts.append(f"By chance it would be {meaning(run, 0.0)}")
    return "".join(f"{sentence}. " for sentence in parts).rstrip()


def caption(run: RunColumns) -> str:
    """Explain the curve's figure, one statement per line."""
    if run.evidence:
        first = f"Compared with {run.watch}'s enrolled voice. Evidence is not proof. It assumes "
        first += "recordings like the calibration's."
        if match := phrases.best_match(run.last, run.speakers):
            first += f" {_sentence(match)}."
    elif run.watch is None:
        first = "The attacker's confidence. It assumes that the speaker is enrolled, and can be "
        first += "wrong."
    else:
        first = f"Bits of {run.watch}. Below 0 the attacker is misled."
    if run.last.session == "same" and not run.evidence:
        first += " Templates from the same session."
    lines = [first]
    if sentence := _sentence(phrases.enrolment(run.last)):
        lines.append(f"{'' if run.last.is_impostor else f'{AT_ALL} '}{sentence}.")
    if promise := phrases.promise_now(run.last):
        lines.append(f"{_sentence(promise)}.")
    if run.evidence and (far := _beyond_reach(run)):
        lines.append(f"Out of reach: {far}.")
    if "style" in (run.last.features or ()):
        lines.append(f"{_sentence(STYLE_CAVEAT)}.")
    lines += [f"Note: {notice}" for notice in run.notices[:MOST_NOTICES]]
    if run.notices[MOST_NOTICES:]:
        lines[-1] += f" (and {len(run.notices) - MOST_NOTICES} more)"
    return "\n".join(lines)


def _beyond_reach(run: RunColumns) -> str:
    maximum = float(np.nanmax(np.append(run.cap, -np.inf)))
    far = sorted({rule.threshold for rule in run.rules if -np.inf < maximum <= rule.threshold})
    return ", ".join(f"an alert above {bits:g} bits" for bits in far)


def _sentence(words: str) -> str:
    return words[:1].upper() + short_name(words[1:], 180)


def meaning(run: RunColumns, bits: float) -> str:
    """Format bits as people who match, or as the odds among the N of the run."""
    ceiling = None if run.evidence else _ceiling(run)
    return phrases.level_as_people(bits, ceiling, assumed=run.watch is None)


def in_bits(bits: float) -> str:
    """Format bits with their unit."""
    text = f"{bits:.2f}".rstrip("0").rstrip(".")
    text = "0" if text == "-0" else text.replace("-", "\N{MINUS SIGN}")
    return f"{text} bit{'' if text == '1' else 's'}"


def _ceiling(run: RunColumns) -> float:
    return math.log2(max(run.speakers, 1))
