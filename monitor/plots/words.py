"""What a run says, in plain words for the texts around its curve."""

from __future__ import annotations

import math
import textwrap

import numpy as np

from monitor.condition_words import caveat_of
from monitor.crowds import best_match, bits_or_more, narrowed_sentence
from monitor.phrases import (
    STYLE_CAVEAT,
    clock_time,
    closed_set,
    is_stranger,
    odds,
    of_evidence,
    plural,
    verdict,
)
from monitor.plots.canvas import format_seconds
from monitor.plots.series import RunColumns, short_name

__all__ = ["caption", "heading", "in_bits", "one_in_words", "summary"]

MOST_NOTICES = 2
CAPTION_COLUMNS = 145
"""As many characters of small text as are sure to fit across a picture."""


def heading(run: RunColumns) -> str:
    """The last value of the figure shown first, as one sentence.

    Examples:
        >>> from monitor.plots.series import run_of
        >>> reading = {"type": "reading", "seconds": 20.0, "speech": 15.0, "bits": 2.0}
        >>> heading(run_of([{"type": "start", "speakers": 40, "watch": "ann"}, reading]))
        'After 15 s of speech, an attacker gives ann a chance of 1 in 10'
        >>> heading(run_of([{"type": "start", "speakers": 40}, reading]))
        'After 15 s of speech, an attacker thinks that about 10 of 40 people are left'
        >>> told = {"headline": "evidence", "among": [{"people": 1e6, "bits": 11.3}]}
        >>> told |= {"bits": 11.3, "closed_set_bits": 5.0}
        >>> heading(run_of([{"type": "start", "watch": "ann"}, {**reading, **told}]))
        'After 15 s of speech, this voice narrows a city of a million down to about 400 people'
        >>> change = {"since_seconds": 12.0, "features": ["f0"]}
        >>> heading(run_of([{"type": "start", "watch": "ann"}, {**reading, "change": change}]))
        "Another voice since 0:12: these bits may not be ann's"
    """
    if run.doubt:
        return _sentence(run.doubt)
    speech, closed = run.columns["speech"], run.columns["closed_set_bits"]
    known = np.flatnonzero(np.isfinite(closed) & np.isfinite(speech))
    if not known.size:
        return "Nothing can be said about this voice yet"
    said = verdict(float(closed[known[-1]]), _ceiling(run), run.watch)
    if crowd := narrowed_sentence(run.last, run.watch or ""):
        said = short_name(crowd.partition(" who would")[0], 110)
    care = f": {caution}" if (caution := caveat_of(run.last)) else ""
    begun = [change for change in run.changes if change.get("action") in ("reset", "split")]
    before = float(speech[run.fresh[-1] - 1]) if run.fresh else 0.0
    heard = format_seconds(float(speech[known[-1]]) - before)
    if begun and run.fresh:
        since = clock_time(begun[-1]["since_seconds"])
        return f"The voice since {since}: after {heard} of it, {said}{care}"
    return f"After {heard} of speech, {said}{care}"


def summary(run: RunColumns) -> str:
    """Bits now and at the peak, the closed-set figure beside evidence, and what was lost."""
    speech, bits = run.columns["speech"], run.columns["bits"]
    known = bits[np.isfinite(bits) & (speech > 0)]
    parts = []
    if match := best_match(run.last, run.speakers):
        parts = [short_name(match, 100)]
    closed = closed_set(run.last) if run.evidence else None
    among = [] if closed is None else [f"closed-set: {in_bits(round(closed, 1))}{_at_most(run)}"]
    if known.size:
        now, highest = float(known[-1]), float(known.max())
        peak = int(np.nanargmax(np.where(speech > 0, bits, np.nan)))
        whose = " of an earlier voice" if run.fresh and peak < run.fresh[-1] else ""
        if not run.evidence:
            parts += [f"{in_bits(now)}{_at_most(run)}", f"peak {in_bits(highest)}{whose}"]
        elif of_evidence(run.last):
            told = bits_or_more(run.last, f"{in_bits(round(now, 1))} of evidence")
            parts += [told, f"peak {in_bits(round(highest, 1))}{whose}", *among]
        else:  # the evidence has ended
            parts += [*among, f"peak {in_bits(round(highest, 1))} of evidence{whose}"]
    if run.watch is not None and not run.evidence:
        parts.append(f"by chance it would be {one_in_words(run, 0.0)}")
    if run.gaps:
        lost = sum(seconds or 0.0 for _, seconds in run.gaps)
        parts.append(f"{plural(len(run.gaps), 'gap')}, {lost:.2g} s of audio lost")
    if run.withheld:
        parts.append(f"withheld: {short_name(run.withheld, 60)}")
    return "  ·  ".join(parts)


def _at_most(run: RunColumns) -> str:
    among = f" among the {run.speakers} enrolled" if run.evidence else ""
    return f" of at most {run.ceiling:.2f}{among}"


def caption(run: RunColumns) -> str:
    """Which figure the curve is, and what its band covers; no line wider than the picture."""
    return "\n".join(textwrap.fill(line, CAPTION_COLUMNS) for line in _caption(run).splitlines())


def _caption(run: RunColumns) -> str:
    if run.evidence:
        bands = "Bands: 95 % limits"
        if run.last.get("spread_low") is not None and not run.protected:
            bands += "; lighter: 9 of 10 voices watched by their own name"
        text = (
            f"Evidence for {run.watch}; below 0 it speaks against. {bands}.\nNo certainty: "
            "everybody whom the voice fits as well is counted. It assumes recordings like those "
            "it was learnt from."
        )
        asked = _enrolled(run).replace(" ", "\n", 1)
        return f"{text}{asked}{_of_words(run)}{_noticed(run)}"
    if run.watch is None:
        text = "Attacker's confidence, assuming the speaker is enrolled; it can be wrong."
    else:
        text = f"Bits of {run.watch}; below 0 the attacker is misled."
        if run.doubtful.any():
            text = text.replace(";", ", in the shade of more voices than one;")
    text += " Bands: 95 % limits."
    if run.watch is None:
        text += "\n1 in k: as sure as if k equally likely speakers were left."
    if run.session == "same":
        text += " Templates from the same session."
    enrolled = _enrolled(run) if run.watch is None else _enrolled(run).replace(" ", "\n", 1)
    return text + enrolled + _of_words(run) + _noticed(run)


def _of_words(run: RunColumns) -> str:
    """Whose style is heard, where any is."""
    heard = "style" in (run.last.get("features") or ())
    return f"\n{STYLE_CAVEAT[:1].upper()}{STYLE_CAVEAT[1:]}." if heard else ""


def _noticed(run: RunColumns) -> str:
    """What was noticed on the stream, a line each: as many as there is room for."""
    more = f" (and {len(run.notices) - MOST_NOTICES} more)" if run.notices[MOST_NOTICES:] else ""
    lines = [f"\nNote: {said}" for said in run.notices[:MOST_NOTICES]]
    return "".join(lines) + more


def _enrolled(run: RunColumns) -> str:
    """Whether anybody enrolled speaks."""
    said = _sentence(run.enrolment)
    if is_stranger(run.last):
        return f" {said}."
    return f" Is the speaker enrolled at all? {said}." if run.enrolment else ""


def _sentence(words: str) -> str:
    return words[:1].upper() + short_name(words[1:], 180)


def one_in_words(run: RunColumns, bits: float) -> str:
    """What these bits mean among the N of the run.

    Examples:
        >>> from monitor.plots.series import run_of
        >>> run = run_of([{"type": "start", "speakers": 3000}])
        >>> one_in_words(run, 0.0), one_in_words(run, 8.0), one_in_words(run, 11.0)
        ('1 in 3,000', '1 in 12', '1 or 2 left')
    """
    return odds(bits, _ceiling(run), assumed=run.watch is None)


def in_bits(bits: float) -> str:
    """Bits with their unit.

    Examples:
        >>> in_bits(3.0), in_bits(1.0), in_bits(-0.254), in_bits(-0.001)
        ('3 bits', '1 bit', '−0.25 bits', '0 bits')
    """
    text = f"{bits:.2f}".rstrip("0").rstrip(".")
    text = "0" if text == "-0" else text.replace("-", "\N{MINUS SIGN}")
    return f"{text} bit{'' if text == '1' else 's'}"


def _ceiling(run: RunColumns) -> float:
    return math.log2(max(run.speakers, 1))
