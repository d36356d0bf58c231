"""The figures of rates among M people: by each form, and the bracket over all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from monitor.evaluation.among.extrapolation import FAR, FEWEST, NARROW, RANKED, Extrapolation
from monitor.evaluation.figure import Figure
from monitor.evaluation.limits import limited
from monitor.maths.identification import FORMS
from monitor.phrases import plural
from monitor.plots.evaluation import Line
from monitor.plots.identification import CrowdRates
from monitor.types import FloatArray

__all__ = ["curve", "figures", "keys", "notes"]

_CALLED = {"idr": "IdR", "meand": "MeanD"}
_FORMS = {"idr": tuple(FORMS), "meand": tuple(RANKED)}
_POINTS = 60


def keys(among: Iterable[int]) -> tuple[str, ...]:
    """Of all figures that there can be among so many people.

    Example:
        >>> keys([50])[:3]
        ('among.supported', 'among.idr_50', 'among.idr_beta_binomial_50')
    """
    made = ["among.supported"]
    for people in among:
        for kind, forms in _FORMS.items():
            names = (kind, *(f"{kind}_{form}" for form in forms))
            made += [f"among.{name}_{people}" for name in names]
    return tuple(made)


def figures(found: Extrapolation, among: Iterable[int], ties: str = "spread") -> Iterator[Figure]:
    """IdR and MeanD among M people, with limits: by each form, and the bracket over all.

    MeanD among M is that of the law at N, and what a form adds on the way from N to M: it never
    falls, and grows by no more than ``log2(M / N)``. The two forms that are laws of all ranks say
    it; the others are of rank 1 alone.

    Args:
        found: of a matrix.
        among: M, of `monitor.crowds.sizes`. Up to N what was measured is given, and no form.
        ties: how shared scores were ranked.

    Returns:
        for each M keys ``among.idr_M`` and ``among.meand_M``: the bracket, with no value but limits
        and the text ``supported`` or ``unsupported``; and ``among.idr_FORM_M``,
        ``among.meand_FORM_M``. Where any M is larger than N, first ``among.supported``: how many
        people the bracket of IdR holds among. Nothing beyond N = 2, where no rate falls.
    """
    asked = [people for people in among if people <= found.speakers or found.falls]
    if any(people > found.speakers for people in asked):
        note = f"{FAR} times as many as are enrolled, and on while the bracket of IdR stays narrow"
        yield Figure("among.supported", "people that IdR is supported for",
                     float(found.supported), "count", ties=ties, note=note)  # fmt: skip
    for people in asked:
        yield from (_measured if people <= found.speakers else _extrapolated)(found, people, ties)


def _measured(found: Extrapolation, people: int, ties: str) -> Iterator[Figure]:
    (rate,), rates = found.measured(np.array([float(people)]))
    bits, more = found.at_n(people)
    drawn = None if rates is None else rates[:, 0]
    idr = _figure("idr", "", people, float(rate), drawn, ties)
    meand = _figure("meand", "", people, bits, more, ties)
    notes = "expected among so many of those enrolled, no form", "of the law of the ranks, no form"
    for figure, note in zip((idr, meand), notes, strict=True):
        yield from limited([replace(figure, note=note)], found.sample)


def _extrapolated(found: Extrapolation, people: int, ties: str) -> Iterator[Figure]:
    at = np.array([float(people)])
    made: dict[str, list[Figure]] = {"idr": [], "meand": []}
    for name, form in FORMS.items():
        points, ends = found.fitted(name)[1], found.limits(name, at)
        drawn = None if points is None else form.rate(points, at)[:, 0]
        figure = _figure("idr", name, people, float(found.rates(at)[name][0]), drawn, ties)
        if ends is not None:
            figure = replace(figure, low=float(ends[0][0]), high=float(ends[1][0]))
        made["idr"].append(figure)
    for name in RANKED:
        made["meand"].append(_figure("meand", name, people, *found.mean_bits(name, people), ties))
    for kind, forms in made.items():
        with_limits = limited(forms, found.sample)
        if kind == "meand" and found.replicates is not None and not found.seen_to_fall:
            with_limits = tuple(_steepest(found, people, figure) for figure in with_limits)
        yield (bracket := _bracket(found, kind, people, with_limits))
        alone = "" if bracket.text == "supported" else "one form of several: read the bracket"
        for each in with_limits:
            yield replace(each, note="; ".join(filter(None, (each.note, alone))))


def _steepest(found: Extrapolation, people: int, figure: Figure) -> Figure:
    """MeanD with a lower limit for a rate that is not seen to fall."""
    bits, drawn = found.at_n(found.speakers)
    (own,) = limited([_figure("meand", "", found.speakers, bits, drawn, "")], found.sample)
    form = figure.key.removeprefix("among.meand_").rsplit("_", 1)[0]
    if own.low is None or figure.low is None:
        return figure
    return replace(figure, low=min(figure.low, found.least_bits(form, people, own.low)))


def _figure(
    kind: str, form: str, people: int, value: float | None, replicates: FloatArray | None, ties: str
) -> Figure:
    share = kind == "idr"
    return Figure(
        "_".join(filter(None, (f"among.{kind}", form, str(people)))),
        f"{_CALLED[kind]} among {people:,}" + (f", {FORMS[form].label}" if form else ""),
        value,
        "share" if share else "bits",
        replicates=replicates,
        ceiling=1.0 if share else float(np.log2(people)),
        floor=1 / people if share else 0.0,
        ties=ties,
    )


def _bracket(found: Extrapolation, kind: str, people: int, forms: Sequence[Figure]) -> Figure:
    """The lowest and the highest that the forms and their limits allow."""
    low = min(end for form in forms for end in (form.low, form.value) if end is not None)
    high = max(end for form in forms for end in (form.high, form.value) if end is not None)
    bracket = _figure(kind, "", people, None, None, forms[0].ties)
    wide = high - low > NARROW[bracket.unit]
    if kind == "idr":
        holds = people <= found.supported
    else:
        holds = people <= FAR * found.speakers or (found.narrows and not wide)
    note = f"the bracket over {len(forms)} forms" + (
        ", limits included" * (found.replicates is not None)
    )
    if not holds:
        note += f"; not supported by {found.speakers:,} enrolled: more than {FAR} times as many, "
        note += _why(found, bracket.unit)
    text = "supported" if holds else "unsupported"
    return replace(bracket, note=note, low=low, high=high, text=text)


def _why(found: Extrapolation, unit: str) -> str:
    if found.replicates is None:
        return "and nothing was resampled"
    if found.missed < FEWEST:
        return f"and {plural(found.missed, 'speaker')} ever missed, where {FEWEST} are needed"
    if unit == "share":
        return f"and it becomes wider than {100 * NARROW[unit]:.0f} points of 100 on the way"
    return f"and it is wider than {NARROW[unit]:g} bit"


def curve(found: Extrapolation, among: Iterable[int]) -> CrowdRates | None:
    """IdR against the number of people, to draw; None where nothing beyond N is asked for."""
    most = max(among, default=0)
    if most <= found.speakers or not found.falls:
        return None
    people = np.rint(np.geomspace(found.sizes[0], most, _POINTS))
    people = np.unique(np.append(people, float(found.speakers)))
    beyond = people[people >= found.speakers]
    rates, (low, high) = found.rates(people), found.bracket(beyond)
    own, drawn = found.measured(found.sizes)
    ends = (None, None)
    if drawn is not None:
        ends = tuple(np.array(found.measured_limits(own, drawn)).T)
    return CrowdRates(
        Line(found.sizes, own, *ends),
        {FORMS[name].label: Line(people, rate) for name, rate in rates.items()},
        Line(beyond, np.sqrt(low * high), low, high),
        float(found.speakers),
        float(found.supported),
    )


def notes(found: Extrapolation, among: Iterable[int]) -> Iterator[str]:
    """How to read the figures, one sentence each."""
    if max(among, default=0) <= found.speakers:
        return
    if not found.falls:
        yield f"Of N = {found.speakers} nothing is said among more: no rate is seen to fall."
        return
    yield (
        f"Among more than the {found.speakers:,} enrolled four forms are fitted to the rates among "
        f"{found.sizes[0]:.0f} to {found.speakers:,} of them. Where they part nobody knows who is "
        "right: quote the bracket, never a form."
    )
