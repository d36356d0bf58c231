"""How far above the measured are the composition guides (SRD fig. 8)?"""

from __future__ import annotations

import numpy as np

from monitor.experiment.findings.answer import (
    AGREED,
    CorpusAnswer,
    Verdict,
    answer,
    bits_text,
)
from monitor.experiment.findings.contrasts import Contrast, Surface
from monitor.plots.canvas import format_seconds

__all__ = ["GUIDES", "guide_start", "guides"]

GUIDES = {"linear": 1.0, "root": 0.5}
"""The power of T with which each guide grows: basic and advanced composition."""
_WORDS = {"linear": "basic composition (T)", "root": "advanced composition (sqrt T)"}
_ORDER = float(np.log2(10.0))


def guide_start(surface: Surface, template: float) -> float | None:
    """The first T from which on ranks are told from those of no evidence: guides begin there."""
    found = surface.telling([(test, template) for test in surface.lengths])
    return found[0][0] if found else None


def guides(surface: Surface) -> list[CorpusAnswer]:
    """Both guides at the longest T and D, and where they still are below log2 N."""
    template, last = surface.template_lengths[-1], surface.lengths[-1]
    first = guide_start(surface, template)
    if first is None or first >= last:
        return []
    made = []
    for name, power in GUIDES.items():
        above = _above(surface, first, last, power)
        if above is not None:
            made.append(_said(surface, name, first, above))
    return made


def _above(surface: Surface, first: float, test: float, power: float) -> Contrast | None:
    """How many times the guide is the measured, at T."""
    template = surface.template_lengths[-1]
    found = surface.contrast({(first, template): 1.0, (test, template): -1.0}, log=True)
    if found is None:
        return None
    rise = power * float(np.log2(test / first))
    ends = (float(2.0 ** (each + rise)) for each in (found.value, found.low, found.high))
    return Contrast(*ends)


def _said(surface: Surface, name: str, first: float, times: Contrast) -> CorpusAnswer:
    template, last = surface.template_lengths[-1], surface.lengths[-1]
    start, end, power = surface.bits(first, template), surface.bits(last, template), GUIDES[name]
    verdict: Verdict = "undecided"
    if times.low >= 2.0**_ORDER:
        verdict = "yes"
    elif times.high < 2.0**_ORDER:
        verdict = "no"
    text = (
        f"templates of {format_seconds(template)}: from {bits_text(start)} bits at T = "
        f"{format_seconds(first)} {_WORDS[name]} comes to "
        f"{bits_text(start * (last / first) ** power)} at {format_seconds(last)}, where "
        f"{bits_text(end)} are measured: {_times(times)}{_within(surface, first, power)}"
    )
    return answer(f"guide_{name}", surface, verdict, text, times=times, starts_at=first)


def _within(surface: Surface, first: float, power: float) -> str:
    """The same at the last T at which the guide is below log2 N, where it is not all the way."""
    template = surface.template_lengths[-1]
    start = surface.bits(first, template)
    below = [
        t for t in surface.lengths if t > first and start * (t / first) ** power <= surface.ceiling
    ]
    if below and below[-1] == surface.lengths[-1]:
        return ""
    passes = f"; beyond, the guide is above log2 N = {bits_text(surface.ceiling)}, as no figure is"
    times = _above(surface, first, below[-1], power) if below else None
    if times is None:
        return passes.replace("; beyond, the", "; but at once the")
    return f", and {_times(times)} at {format_seconds(below[-1])}{passes}"


def _times(times: Contrast) -> str:
    if times.high - times.low < AGREED:
        return f"{times.value:.3g} times as many (all resamples agree)"
    return f"{times.value:.3g} times as many ({times.low:.3g} to {times.high:.3g})"
