"""What the cells say in words: trends over lengths, guides, losses, each with its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from typing import Any, Literal, TypeAlias

import numpy as np

from monitor.lab.experiment.cells import MEAN, MeasuredCell
from monitor.lab.experiment.settings import Panel
from monitor.maths.statistics import TAIL, Estimate
from monitor.phrases import plural
from monitor.plots.canvas import format_seconds
from monitor.types import FloatArray

NEAR = 0.95
"""Share of log2 N from which on a mean says no more than that N is small."""


@dataclass(frozen=True)
class Contrast:
    """A difference with its 95 % interval, or a wider one where it is one of several."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Surface:
    """MeanD of one system over T and D, of one panel: every cell is of the same people.

    Lengths are ascending, those of tests where the system has trials at every D; `found` is by T
    and D what `monitor.lab.experiment.cells.measure` says.
    """

    system: str
    panel: Panel
    lengths: tuple[float, ...]
    template_lengths: tuple[float, ...]
    found: Mapping[tuple[float, float], dict[str, Any]]

    @property
    def any(self) -> dict[str, Any]:
        """One of its cells, for what they share."""
        return next(iter(self.found.values()))

    @property
    def ceiling(self) -> float:
        """log2 N, bits."""
        return float(np.log2(self.any["speakers"]))

    def bits(self, test: float, template: float) -> float:
        """MeanD of the fitted rank model."""
        return float(self.found[test, template]["figures"][MEAN]["value"])

    def is_full(self, test: float, template: float) -> bool:
        """Whether MeanD is as good as log2 N: longer speech could not show in it."""
        return self.bits(test, template) >= NEAR * self.ceiling

    def tells(self, test: float, template: float) -> bool:
        """Whether the ranks are told from those of no evidence."""
        chance = self.found[test, template]["figures"].get("srd.null_chance", {}).get("value")
        return chance is not None and chance <= 0.05

    def telling(self, places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        """The last of these cells, as many as tell without a gap: before, figures are of nothing.

        A feature of long windows has nothing yet of short speech; and one cell of many that tell
        nothing seems to tell something by chance.
        """
        tell = takewhile(lambda place: self.tells(*place), reversed(places))
        return list(tell)[::-1]

    def contrast(
        self, terms: Mapping[tuple[float, float], float], among: int = 1, log: bool = False
    ) -> Contrast | None:
        """A sum of MeanD over cells, or of its binary logarithm, weighted by T and D.

        Limits hold for so many contrasts that are looked at together (Bonferroni). None where the
        speakers are too few to be resampled.
        """
        parts = []
        with np.errstate(divide="ignore", invalid="ignore"):
            for place, weight in terms.items():
                values = self._values(*place)
                parts.append(weight * (np.log2(values) if log else values))
            value, *others = np.sum(parts, axis=0)
        value, shared = float(value), self.any
        resamples = len(shared["resampled"])
        both = np.array(others[:resamples]), np.array(others[resamples:])
        replicates, left_out = (x[np.isfinite(x)] for x in both)
        found = Estimate(value, replicates, left_out, shared["tested"], shared["trials"])
        if not np.isfinite(value) or replicates.size < resamples / 2 or not found.exists:
            return None
        reach = found.reach(TAIL / among)
        return Contrast(value, value - reach, value + reach)

    def _values(self, test: float, template: float) -> FloatArray:
        """The figure, its replicates, and those with speakers left out, in one array."""
        cell = self.found[test, template]
        parts = [self.bits(test, template), *cell["resampled"], *cell["left_out"]]
        return np.array([np.nan if each is None else each for each in parts])


def surfaces(cells: Sequence[MeasuredCell]) -> list[Surface]:
    """Of every sweep and system."""
    made = []
    for panel in dict.fromkeys(cell.panel for cell in cells if cell.panel.purpose == "sweep"):
        mine = [cell for cell in cells if cell.panel == panel]
        for system in dict.fromkeys(name for cell in mine for name in cell.systems):
            found = {
                (cell.test_seconds, cell.template_seconds): cell.systems[system]
                for cell in mine
                if system in cell.systems
            }
            templates = tuple(d for d in panel.template_lengths if any(d == at for _, at in found))
            lengths = tuple(t for t in panel.lengths if all((t, d) in found for d in templates))
            if lengths:
                made.append(Surface(system, panel, lengths, templates, found))
    return made


# ------------------------------------------------------------------------------------------ answer

Verdict: TypeAlias = Literal["yes", "no", "undecided", "full"]
"""``"full"``: MeanD is as good as log2 N, so that lengths cannot show in it."""

FEW = 10
"""Tested speakers below whom nothing is decided."""
AGREED = 1e-9
"""Limits nearer to each other are none: every resample says the same."""
UNDECIDED = "cannot be decided with so few speakers"


@dataclass(frozen=True)
class CorpusAnswer:
    """What one system, a feature or the joint, says to one of `QUESTIONS`.

    The text is a sentence with the numbers, their limits and what they stand on.
    """

    question: str
    system: str
    session: str
    verdict: Verdict
    text: str
    numbers: dict[str, Any] = field(default_factory=dict)


def verdict_of(**cases: bool) -> Verdict:
    """The first verdict that holds; undecided where none does."""
    verdicts: dict[str, Verdict] = {"yes": "yes", "no": "no", "full": "full"}
    return next((verdicts[name] for name, holds in cases.items() if holds), "undecided")


def answer(
    question: str, surface: Surface, verdict: Verdict, text: str, **contrasts: Contrast | float
) -> CorpusAnswer:
    """An answer from a sweep; of few speakers nothing is decided."""
    of = surface.any
    verdict = "undecided" if of["tested"] < FEW else verdict
    numbers: dict[str, Any] = {
        name: value if isinstance(value, float) else asdict(value)
        for name, value in contrasts.items()
    }
    said = f"{text}; {UNDECIDED}" if verdict == "undecided" else text
    numbers |= {name: of[name] for name in ("speakers", "tested", "trials")}
    basis = f"N = {of['speakers']}, {of['tested']} tested, {plural(of['trials'], 'trial')} a cell"
    return CorpusAnswer(
        question, surface.system, surface.panel.session, verdict, f"{said} ({basis}).", numbers
    )


def bits_text(value: float) -> str:
    """Bits of MeanD: no minus before zero."""
    return f"{value + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "\N{MINUS SIGN}")


def change_text(change: Contrast) -> str:
    """A difference with its limits.

    Example:
        >>> change_text(Contrast(1.0, 0.5, 1.5))
        '+1.00 (0.50 to 1.50)'
    """
    sign = "+" if change.value >= 0.005 else ""
    if change.high - change.low < AGREED:
        return f"{sign}{bits_text(change.value)} (all resamples agree)"
    limits = f"{bits_text(change.low)} to {bits_text(change.high)}"
    return f"{sign}{bits_text(change.value)} ({limits})"


# --------------------------------------------------------------------------------------- best loss
# Which of the five losses fits best (SRD Table III): as counted, and on speakers left out.

SMALL = 0.01
"""Bits a trial that do not matter."""


def best_losses(cells: Sequence[MeasuredCell]) -> list[CorpusAnswer]:
    """An answer for each system of the tables."""
    tables = [cell for cell in cells if cell.panel.purpose == "tables"]
    return [_of(cell, system, cell.systems[system]) for cell in tables for system in cell.systems]


def _of(cell: MeasuredCell, system: str, found: dict[str, Any]) -> CorpusAnswer:
    rows: list[dict[str, Any]] = found["losses"]
    judged = {row["loss"]: _judged(row) for row in rows if row["fitted"] != "LL"}
    worse, better, same, open_ = (
        [loss for loss, how in judged.items() if how == wanted]
        for wanted in ("worse", "better", "same", "open")
    )
    few = found["tested"] < FEW
    perfect = "perfect" in rows[0]["notes"]
    decided = verdict_of(full=perfect, no=bool(better), yes=bool(judged and not open_))
    verdict: Verdict = "undecided" if few else decided
    parts = ["every trial has rank 1, so that all losses agree"] if perfect else []
    parts += [f"nearest to the ranks counted is {_least(rows, 'kl_bits')} by divergence and "
             f"{_least(rows, 'rank1_match_bits')} at rank 1"]  # fmt: skip
    if worse:
        parts.append(f"on speakers left out {_each(rows, worse)} cost more than LL")
    if better:
        parts.append(f"on speakers left out {_each(rows, better)} cost less than LL")
    if same:
        parts.append(f"{', '.join(same)} cost the same there, to {SMALL:g} bits a trial")
    bounded = {row["loss"] for row in rows if row["left_out_low"] is not None}
    if told := [loss for loss in open_ if loss in bounded]:
        parts.append(f"{_each(rows, told)} cannot be told from LL there")
    if rows[-1]["fitted"] == "LL":
        parts.append("CLL is refused (rank 1 never seen, or fewer trials than ranks)")
    idr = found["figures"]["srd.idr"]
    if idr["low"] is not None:  # which rank models say of rank 1 what the limits of IdR exclude
        off = [row["loss"] for row in rows if not idr["low"] <= row["rank1"] <= idr["high"]]
        said = f"{', '.join(off)} say of it what these exclude"
        parts.append(
            f"first ranks are {100 * idr['value']:.1f} % ({100 * idr['low']:.1f} to "
            f"{100 * idr['high']:.1f}), {said if off else 'all rank models lie within'}"
        )
    if few:
        parts.append(UNDECIDED)
    basis = f"N = {found['speakers']}, {found['tested']} tested, {plural(found['trials'], 'trial')}"
    return CorpusAnswer(
        "loss", system, cell.panel.session, verdict, f"{'; '.join(parts)} ({basis}).",
        {"worse": worse, "better": better, "same": same, "open": open_,
         **{name: found[name] for name in ("speakers", "tested", "trials")}},
    )  # fmt: skip


def _judged(row: dict[str, Any]) -> str:
    """Whether a rank model costs more than that by LL on speakers left out."""
    low, high = row["left_out_low"], row["left_out_high"]
    if low is None:
        return "open"
    if low > -SMALL and high < SMALL:
        return "same"
    return "worse" if low > 0 else "better" if high < 0 else "open"


def _least(rows: Sequence[dict[str, Any]], key: str) -> str:
    known = [row for row in rows if row[key] is not None]
    return min(known, key=lambda row: row[key])["fitted"] if known else "none"


def _each(rows: Sequence[dict[str, Any]], losses: Sequence[str]) -> str:
    found = {row["loss"]: row for row in rows}
    said = []
    for loss in losses:
        ends = (found[loss][f"left_out_{end}"] for end in ("bits", "low", "high"))
        value, low, high = (f"{x:+.3f}".replace("-", "\N{MINUS SIGN}") for x in ends)
        said.append(f"{loss} ({value}, {low} to {high} bits a trial)")
    return " and ".join(said)


# ------------------------------------------------------------------------------------------ guides
# How far above the measured are the composition guides (SRD fig. 8)?

GUIDES = {"linear": 1.0, "root": 0.5}
"""The power of T with which each guide grows: basic and advanced composition."""
_WORDS = {"linear": "basic composition (T)", "root": "advanced composition (sqrt T)"}
_ORDER = 2.0 ** float(np.log2(10.0))


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
    verdict = verdict_of(yes=times.low >= _ORDER, no=times.high < _ORDER)
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


# ------------------------------------------------------------------------------------------ trends
# Does disclosure rise with T, fall again at long T, and saturate with T and D (SRD fig. 8)?
#
# Which lengths are compared is set beforehand: the shortest with the longest, at the longest of the
# other. Where one of several lengths is picked by what it shows, limits hold for all of them.

SMALL_TREND = 0.1
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
    verdict = verdict_of(
        full=surface.is_full(first, template),
        yes=any(step.low > 0 for step in steps),
        no=all(step.high < SMALL_TREND for step in steps),
    )
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
    verdict = verdict_of(
        yes=any(step.high < 0 for step in steps.values()),
        full=surface.is_full(last, template),
        no=all(step.low > -SMALL_TREND for step in steps.values()),
    )
    text = (
        f"templates of {format_seconds(template)}: from the highest of the shorter lengths, "
        f"T = {format_seconds(peak)}, to {format_seconds(last)} MeanD changes by "
        f"{change_text(steps[peak])} bits, limits for all {len(before)} lengths"
        f"{_full(surface, verdict)}"
    )
    return answer("falls", surface, verdict, text, change=steps[peak], peak_seconds=peak)


def saturates(surface: Surface, of: str) -> CorpusAnswer | None:
    """Does the last doubling of ``"T"``, or of ``"D"``, bring less than half of the first?"""
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
    verdict = verdict_of(
        full=surface.is_full(*place(along[-2])), yes=less.high < 0, no=less.low > 0
    )
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
    last, short, long = surface.lengths[-1], *(surface.template_lengths[i] for i in (0, -1))
    if short == long:
        return None
    more: Contrast | None = surface.contrast({(last, long): 1.0, (last, short): -1.0})
    if more is None:
        return None
    verdict = verdict_of(
        yes=more.low > 0, full=surface.is_full(last, short), no=more.high < SMALL_TREND
    )
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


# --------------------------------------------------------------------------------------- questions


@dataclass(frozen=True)
class Question:
    """A question that SRD's experiments ask, and what the paper found."""

    key: str
    text: str
    paper: str


QUESTIONS = (
    Question("rises", "Does disclosure rise with the length of the test, T?",
             "yes, of the fundamental frequency (fig. 8)"),
    Question("saturates_t", "Does it saturate with T: does the last doubling bring less than half "
             "of the first?", "yes (fig. 8)"),
    Question("falls", "Does it fall again at long T?",
             "slightly, but for templates of 30 and 60 min (fig. 8)"),
    Question("saturates_d", "Does it saturate so with the length of the templates, D?",
             "yes, test and template have one role (fig. 8)"),
    Question("bounded", "Is it bounded by the length of the templates?", "yes (abstract, fig. 8)"),
    Question("guide_linear", "Is basic composition ten times the measured, or more, at the longest "
             "T?", "yes, orders of magnitude (fig. 8)"),
    Question("guide_root", "Is advanced composition?", "yes, orders of magnitude (fig. 8)"),
    Question("loss", "Does LL fit as well as any other loss, on speakers left out?",
             "by divergence yes, at rank 1 CLL, which it takes for its tables (Table III)"),
)  # fmt: skip


def findings_of(cells: Sequence[MeasuredCell]) -> list[CorpusAnswer]:
    """Everything that the cells say, in the order of `QUESTIONS`."""
    made: list[CorpusAnswer | None] = []
    for surface in surfaces(cells):
        made += [rises(surface), falls_again(surface), bounded_by_template(surface)]
        made += [saturates(surface, of) for of in ("T", "D")]
        made += guides(surface)
    made += best_losses(cells)
    place = {question.key: i for i, question in enumerate(QUESTIONS)}
    return sorted((each for each in made if each is not None), key=lambda f: place[f.question])


def summary(findings: Sequence[CorpusAnswer]) -> str:
    """The answers to one question, in a line.

    Example:
        >>> pairs = [("f0", "yes"), ("voice", "full")]
        >>> summary([CorpusAnswer("rises", name, "same", said, "") for name, said in pairs])
        'Yes: f0 (same). At the ceiling of log2 N: voice (same).'
    """
    heads = {"yes": "Yes", "no": "No", "full": "At the ceiling of log2 N",
             "undecided": "Not decided"}  # fmt: skip
    parts = []
    for verdict, head in heads.items():
        some = [each for each in findings if each.verdict == verdict]
        by_session = [
            f"{', '.join(each.system for each in some if each.session == session)} ({session})"
            for session in dict.fromkeys(each.session for each in some)
        ]
        if some:
            parts.append(f"{head}: {'; '.join(by_session)}.")
    return " ".join(parts)
