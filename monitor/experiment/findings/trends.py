"""Does disclosure rise with T, fall again at long T, and saturate with T and D (SRD fig. 8)?

Which lengths are compared is set beforehand: the shortest with the longest, at the longest of the
other. Where one of several lengths is picked by what it shows, limits hold for all of them.
"""

from __future__ import annotations

import numpy as np

from monitor.experiment.findings.answer import CorpusAnswer, Verdict, answer, bits_text, change_text
from monitor.experiment.findings.contrasts import Contrast, Surface
from monitor.plots.canvas import format_seconds

__all__ = ["bounded_by_template", "falls_again", "rises", "saturates"]

SMALL = 0.1
"""Bits that do not matter: a change surely below is none. SRD calls its own error 0.5 bits."""


def rises(surface: Surface) -> CorpusAnswer | None:
    """Is any longer T above the shortest, at the longest D?"""
    first, *later = surface.lengths
    template = surface.template_lengths[-1]
    found = [
        surface.contrast({(t, template): 1.0, (first, template): -1.0}, len(later)) for t in later
    ]
    steps = [each for each in found if each is not None]
    if not steps or len(steps) < len(later):
        return None
    last = later[-1]
    whole = surface.contrast({(last, template): 1.0, (first, template): -1.0})
    assert whole is not None
    verdict: Verdict = "undecided"
    if surface.is_full(first, template):
        verdict = "full"
    elif any(step.low > 0 for step in steps):
        verdict = "yes"
    elif all(step.high < SMALL for step in steps):
        verdict = "no"
    ends = (bits_text(surface.bits(t, template)) for t in (first, last))
    text = (
        f"templates of {format_seconds(template)}: MeanD goes from {next(ends)} bits at "
        f"T = {format_seconds(first)} to {next(ends)} at {format_seconds(last)}, "
        f"{change_text(whole)}{_full(surface, verdict)}"
    )
    return answer("rises", surface, verdict, text, change=whole)


def falls_again(surface: Surface) -> CorpusAnswer | None:
    """Is the longest T below any shorter one, at the longest D?"""
    *before, last = surface.lengths
    template = surface.template_lengths[-1]
    if len(before) < 2:
        return None
    made = {
        t: surface.contrast({(last, template): 1.0, (t, template): -1.0}, len(before))
        for t in before
    }
    steps = {t: each for t, each in made.items() if each is not None}
    if len(steps) < len(before):
        return None
    peak = max(before, key=lambda t: surface.bits(t, template))
    verdict: Verdict = "undecided"
    if any(step.high < 0 for step in steps.values()):
        verdict = "yes"
    elif surface.is_full(last, template):
        verdict = "full"
    elif all(step.low > -SMALL for step in steps.values()):
        verdict = "no"
    text = (
        f"templates of {format_seconds(template)}: from the highest of the shorter lengths, "
        f"T = {format_seconds(peak)}, to {format_seconds(last)} MeanD changes by "
        f"{change_text(steps[peak])} bits, limits for all {len(before)} lengths"
        f"{_full(surface, verdict)}"
    )
    return answer("falls", surface, verdict, text, change=steps[peak], peak_seconds=peak)


def saturates(surface: Surface, of: str) -> CorpusAnswer | None:
    """Does the last doubling of T, or of D, bring less than half of the first?

    Args:
        surface: of a system.
        of: ``"T"`` or ``"D"``.
    """
    every = surface.lengths if of == "T" else surface.template_lengths
    other = surface.template_lengths[-1] if of == "T" else surface.lengths[-1]

    def place(length: float) -> tuple[float, float]:
        return (length, other) if of == "T" else (other, length)

    telling = surface.telling([place(length) for length in every])
    along = every[len(every) - len(telling) :]
    if len(along) < 3:
        return None

    def gain(low: float, high: float) -> dict[tuple[float, float], float]:
        each = 1.0 / np.log2(high / low)
        return {place(high): each, place(low): -each}

    start, end = gain(along[0], along[1]), gain(along[-2], along[-1])
    first, last = surface.contrast(start), surface.contrast(end)
    # the last less half of the first
    less = surface.contrast(
        {key: end.get(key, 0.0) - start.get(key, 0.0) / 2 for key in {**start, **end}}
    )
    if first is None or last is None or less is None:
        return None
    verdict: Verdict = "undecided"
    if surface.is_full(*place(along[-2])):
        verdict = "full"
    elif less.high < 0:
        verdict = "yes"
    elif less.low > 0:
        verdict = "no"
    name, fixed = ("T", "D") if of == "T" else ("D", "T")
    text = (
        f"{fixed} = {format_seconds(other)}: a doubling of {name} brings {change_text(first)} bits "
        f"from {format_seconds(along[0])} to {format_seconds(along[1])}, and {change_text(last)} "
        f"from {format_seconds(along[-2])} to {format_seconds(along[-1])}: against half of the "
        f"first {change_text(less)}{_full(surface, verdict)}"
    )
    return answer(
        f"saturates_{of.lower()}", surface, verdict, text, first=first, last=last, against=less
    )


def bounded_by_template(surface: Surface) -> CorpusAnswer | None:
    """Does the longest T disclose less with the shortest templates than with the longest?"""
    last, short, long = (
        surface.lengths[-1],
        surface.template_lengths[0],
        surface.template_lengths[-1],
    )
    if short == long:
        return None
    more: Contrast | None = surface.contrast({(last, long): 1.0, (last, short): -1.0})
    if more is None:
        return None
    verdict: Verdict = "undecided"
    if more.low > 0:
        verdict = "yes"
    elif surface.is_full(last, short):
        verdict = "full"
    elif more.high < SMALL:
        verdict = "no"
    text = (
        f"at T = {format_seconds(last)} MeanD is {bits_text(surface.bits(last, short))} bits with "
        f"templates of {format_seconds(short)} and {bits_text(surface.bits(last, long))} with "
        f"{format_seconds(long)}, {change_text(more)}{_full(surface, verdict)}"
    )
    return answer("bounded", surface, verdict, text, change=more)


def _full(surface: Surface, verdict: Verdict) -> str:
    if verdict != "full":
        return ""
    return (
        f"; that is as good as log2 N = {bits_text(surface.ceiling)} bits: among so few people it "
        "cannot show"
    )
