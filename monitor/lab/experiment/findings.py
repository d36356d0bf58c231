"""Findings of an experiment: trends over lengths, guides and losses, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from operator import itemgetter
from typing import Literal, TypeAlias

import numpy as np

from monitor.lab.experiment.cells import MEAN, LossRecord, MeasuredCell, SystemRecord
from monitor.lab.experiment.material import Panel
from monitor.maths.statistics import TAIL, Estimate
from monitor.phrases import plural
from monitor.plots.canvas import format_seconds
from monitor.types import Record

Place: TypeAlias = tuple[float, float]  # T and D
NEAR = 0.95  # fraction of log2 N above which a mean only shows that N is small


@dataclass(frozen=True)
class Contrast:
    """A difference with its 95 % interval, or a wider one for several differences."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Surface:
    """MeanD of one system over T and D in one panel, with the same people in every cell.

    Lengths are ascending. ``lengths`` has the T at which the system has trials for every D.
    """

    system: str
    panel: Panel
    lengths: tuple[float, ...]
    template_lengths: tuple[float, ...]
    cells: Mapping[Place, SystemRecord]

    @property
    def sample(self) -> SystemRecord:
        """One of its cells, for values that all share."""
        return next(iter(self.cells.values()))

    @property
    def ceiling(self) -> float:
        """log2 N, bits."""
        return float(np.log2(self.sample["speakers"]))

    def bits(self, test: float, template: float) -> float:
        """Return MeanD of the fitted rank model."""
        return float(self.cells[test, template]["figures"][MEAN]["value"])

    def is_full(self, test: float, template: float) -> bool:
        """Return whether MeanD is so close to log2 N that longer speech cannot raise it."""
        return self.bits(test, template) >= NEAR * self.ceiling

    def telling(self, places: Sequence[Place]) -> list[Place]:
        """Return the last consecutive cells with evidence; isolated earlier ones may be chance."""

        def discloses(lengths: Place) -> bool:
            chance = self.cells[lengths]["figures"].get("srd.null_chance", {}).get("value")
            return chance is not None and chance <= 0.05

        return list(takewhile(discloses, reversed(places)))[::-1]

    def contrast(
        self, terms: Mapping[Place, float], among: int = 1, log: bool = False
    ) -> Contrast | None:
        """Contrast MeanD over cells, or its binary logarithm, with a weight for each T and D.

        The interval is simultaneous for ``among`` contrasts (Bonferroni). Return None with too few
        speakers.
        """
        weighted = []
        with np.errstate(divide="ignore", invalid="ignore"):
            for lengths, weight in terms.items():
                cell = self.cells[lengths]
                draws = [self.bits(*lengths), *cell["resampled"], *cell["left_out"]]
                values = np.array([np.nan if value is None else value for value in draws])
                weighted.append(weight * (np.log2(values) if log else values))
            value, *others = np.sum(weighted, axis=0)
        value, shared = float(value), self.sample
        resamples = len(shared["resampled"])
        both = np.array(others[:resamples]), np.array(others[resamples:])
        replicates, left_out = (x[np.isfinite(x)] for x in both)
        estimate = Estimate(value, replicates, left_out, shared["tested"], shared["trials"])
        if not np.isfinite(value) or replicates.size < resamples / 2 or not estimate.exists:
            return None
        reach = estimate.reach(TAIL / among)
        return Contrast(value, value - reach, value + reach)

    def compare(self, cell: Place, other: Place, among: int = 1) -> Contrast | None:
        """Contrast MeanD of two cells."""
        return self.contrast({cell: 1.0, other: -1.0}, among)


def make_surfaces(cells: Sequence[MeasuredCell]) -> list[Surface]:
    """Make the surface of every sweep and system."""
    surfaces = []
    for panel in dict.fromkeys(cell.panel for cell in cells if cell.panel.purpose == "sweep"):
        panel_cells = [cell for cell in cells if cell.panel == panel]
        for system in dict.fromkeys(name for cell in panel_cells for name in cell.systems):
            measured = {
                (cell.test_seconds, cell.template_seconds): cell.systems[system]
                for cell in panel_cells
                if system in cell.systems
            }
            depths = {template for _, template in measured}
            templates = tuple(d for d in panel.template_lengths if d in depths)
            lengths = tuple(t for t in panel.lengths if all((t, d) in measured for d in templates))
            if lengths:
                surfaces.append(Surface(system, panel, lengths, templates, measured))
    return surfaces


Verdict: TypeAlias = Literal["yes", "no", "undecided", "full"]
"""``"full"``: MeanD is so close to log2 N that lengths make no difference."""

FEW = 10  # minimum tested speakers for a decision
AGREED = 1e-9  # intervals narrower than this count as zero: all resamples agree
UNDECIDED = "Undecided, with too few speakers"


@dataclass(frozen=True)
class CorpusAnswer:
    """Answer of one system (a feature or the joint) to one of `QUESTIONS`."""

    question: str
    system: str
    session: str
    verdict: Verdict
    text: str
    numbers: Record = field(default_factory=dict)


def choose_verdict(**cases: bool) -> Verdict:
    """Return the first verdict that holds, otherwise undecided."""
    verdicts: dict[str, Verdict] = {"yes": "yes", "no": "no", "full": "full"}
    return next((verdicts[name] for name, holds in cases.items() if holds), "undecided")


def make_answer(
    question: str, surface: Surface, verdict: Verdict, text: str, **contrasts: Contrast | float
) -> CorpusAnswer:
    """Make an answer from a sweep; few speakers leave it undecided."""
    sample = surface.sample
    if verdict == "full":
        text += (
            f". That is close to log2 N = {format_bits(surface.ceiling)} bits, so more people are "
            "needed to show it"
        )
    verdict = "undecided" if sample["tested"] < FEW else verdict
    text += f". {UNDECIDED}" * (verdict == "undecided")
    numbers: dict[str, object] = {
        name: value if isinstance(value, float) else asdict(value)
        for name, value in contrasts.items()
    }
    return CorpusAnswer(
        question, surface.system, surface.panel.session, verdict,
        f"{text} ({_format_basis(sample)} per cell).", numbers | _count(sample),
    )  # fmt: skip


def _count(measured: SystemRecord) -> dict[str, object]:
    return {"speakers": measured["speakers"], "tested": measured["tested"],
            "trials": measured["trials"]}  # fmt: skip


def _format_basis(measured: SystemRecord) -> str:
    trials = plural(measured["trials"], "trial")
    return f"N = {measured['speakers']}, {measured['tested']} tested, {trials}"


def format_bits(value: float) -> str:
    """Format bits of MeanD, without a minus sign before zero."""
    return f"{value + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "\N{MINUS SIGN}")


def format_change(change: Contrast) -> str:
    """Format a difference with its interval, as in +1.00 (0.50 to 1.50)."""
    agreed = change.high - change.low < AGREED
    limits = f"{format_bits(change.low)} to {format_bits(change.high)}"
    sign = "+" * (change.value >= 0.005)
    return f"{sign}{format_bits(change.value)} ({'all resamples agree' if agreed else limits})"


SMALL = 0.01  # negligible difference in bits per trial


def _answer_loss(session: str, system: str, measured: SystemRecord) -> CorpusAnswer:
    rows = measured["losses"]
    outcomes = {row["loss"]: _compare_loss(row) for row in rows if row["fitted"] != "LL"}
    worse, better, same, open_ = (
        [loss for loss, loss_outcome in outcomes.items() if loss_outcome == outcome]
        for outcome in ("worse", "better", "same", "open")
    )
    is_small = measured["tested"] < FEW
    perfect = "perfect" in rows[0]["notes"]
    decided = choose_verdict(full=perfect, no=bool(better), yes=bool(outcomes and not open_))
    verdict: Verdict = "undecided" if is_small else decided
    sentences = ["Every trial has rank 1, so all losses agree"] if perfect else []
    nearest = _name_lowest((row["kl_bits"], row["fitted"]) for row in rows)
    first = _name_lowest((row["rank1_match_bits"], row["fitted"]) for row in rows)
    sentences.append(f"Closest to the counted ranks: {nearest} by divergence, {first} at rank 1")
    sentences += [
        f"On held-out speakers {_format_losses(rows, losses)} cost {comparison} than LL"
        for losses, comparison in ((worse, "more"), (better, "less"))
        if losses
    ]
    if same:
        sentences.append(
            f"On held-out speakers {', '.join(same)} cost the same as LL, within {SMALL:g} bits "
            "per trial"
        )
    bounded = {row["loss"] for row in rows if row["left_out_low"] is not None}
    if equal := [loss for loss in open_ if loss in bounded]:
        sentences.append(
            f"On held-out speakers {_format_losses(rows, equal)} do not differ significantly from "
            "LL"
        )
    if rows[-1]["fitted"] == "LL":
        sentences.append("CLL is not possible (rank 1 never occurs, or fewer trials than ranks)")
    idr = measured["figures"]["srd.idr"]
    if idr["low"] is not None:
        outside = [row["loss"] for row in rows if not idr["low"] <= row["rank1"] <= idr["high"]]
        conclusion = f"and {', '.join(outside)} are outside this interval"
        sentences.append(
            f"First ranks are {100 * idr['value']:.1f} % ({100 * idr['low']:.1f} to "
            f"{100 * idr['high']:.1f}), {conclusion if outside else 'and all rank models agree'}"
        )
    if is_small:
        sentences.append(UNDECIDED)
    return CorpusAnswer(
        "loss", system, session, verdict, f"{'. '.join(sentences)} ({_format_basis(measured)}).",
        {"worse": worse, "better": better, "same": same, "open": open_, **_count(measured)},
    )  # fmt: skip


def _compare_loss(row: LossRecord) -> str:
    """Compare a rank model's cost on held-out speakers with LL's."""
    low, high = row["left_out_low"], row["left_out_high"]
    if low is None or high is None:
        return "open"
    if low > -SMALL and high < SMALL:
        return "same"
    return "worse" if low > 0 else "better" if high < 0 else "open"


def _name_lowest(values: Iterable[tuple[float | None, str]]) -> str:
    measured = [(value, loss) for value, loss in values if value is not None]
    return min(measured, key=itemgetter(0))[1] if measured else "none"


def _format_losses(rows: Sequence[LossRecord], losses: Sequence[str]) -> str:
    texts = []
    for row in rows:
        if row["loss"] in losses:
            ends = row["left_out_bits"], row["left_out_low"], row["left_out_high"]
            value, low, high = (f"{x:+.3f}".replace("-", "\N{MINUS SIGN}") for x in ends)
            texts.append(f"{row['loss']} ({value}, {low} to {high} bits per trial)")
    return " and ".join(texts)


# How far the composition guides are above the measured bits (SRD fig. 8).
GUIDES = {"linear": 1.0, "root": 0.5}  # power of T of each guide: basic and advanced composition
_WORDS = {"linear": "basic composition (T)", "root": "advanced composition (sqrt T)"}
_ORDER = 2.0 ** float(np.log2(10.0))


def find_guide_start(surface: Surface, template: float) -> float | None:
    """Return the first T with evidence in the ranks, where guides begin."""
    telling = surface.telling([(test, template) for test in surface.lengths])
    return telling[0][0] if telling else None


def answer_guides(surface: Surface) -> list[CorpusAnswer]:
    """Answer for both guides at the longest T and D, and at the last T where they are possible."""
    template, last = surface.template_lengths[-1], surface.lengths[-1]
    first = find_guide_start(surface, template)
    if first is None or first >= last:
        return []
    start, answers = surface.bits(first, template), []
    for name, power in GUIDES.items():
        times = _compare_guide(surface, first, last, power)
        if times is None:
            continue
        verdict = choose_verdict(yes=times.low >= _ORDER, no=times.high < _ORDER)
        text = (
            f"With templates of {format_seconds(template)}, {_WORDS[name]} rises from "
            f"{format_bits(start)} bits at T = {format_seconds(first)} to "
            f"{format_bits(start * (last / first) ** power)} at {format_seconds(last)}. "
            f"Measured there: {format_bits(surface.bits(last, template))}, so the guide is "
            f"{_format_times(times)}{_format_below_ceiling(surface, first, power)}"
        )
        question = f"guide_{name}"
        answers.append(make_answer(question, surface, verdict, text, times=times, starts_at=first))
    return answers


def _compare_guide(surface: Surface, first: float, test: float, power: float) -> Contrast | None:
    """Return the ratio of the guide to the measured bits at T."""
    template = surface.template_lengths[-1]
    change = surface.contrast({(first, template): 1.0, (test, template): -1.0}, log=True)
    if change is None:
        return None
    rise = power * float(np.log2(test / first))
    ends = (float(2.0 ** (bound + rise)) for bound in (change.value, change.low, change.high))
    return Contrast(*ends)


def _format_below_ceiling(surface: Surface, first: float, power: float) -> str:
    """Format the ratio at the last T where the guide is at most log2 N."""
    template = surface.template_lengths[-1]
    start = surface.bits(first, template)
    below = [
        t for t in surface.lengths if t > first and start * (t / first) ** power <= surface.ceiling
    ]
    if below and below[-1] == surface.lengths[-1]:
        return ""
    ceiling = f"log2 N = {format_bits(surface.ceiling)}, the maximum of a figure"
    times = _compare_guide(surface, first, below[-1], power) if below else None
    if times is None:
        return f". The guide immediately exceeds {ceiling}"
    length = format_seconds(below[-1])
    return f". At {length} it is {_format_times(times)}. Beyond, it exceeds {ceiling}"


def _format_times(times: Contrast) -> str:
    agreed = times.high - times.low < AGREED
    limits = "all resamples agree" if agreed else f"{times.low:.3g} to {times.high:.3g}"
    return f"{times.value:.3g} times as large ({limits})"


# The lengths to compare are fixed in advance: the shortest with the longest, at the longest of the
# other axis. If one of several lengths is chosen by its result, the interval is simultaneous.
SMALL_TREND = 0.1  # negligible change in bits. SRD gives 0.5 bits as its own error.


def answer_rise(surface: Surface) -> CorpusAnswer | None:
    """Answer whether any longer T is above the shortest, at the longest D."""
    first, *later = surface.lengths
    template = surface.template_lengths[-1]
    contrasts = [surface.compare((t, template), (first, template), len(later)) for t in later]
    steps = [contrast for contrast in contrasts if contrast is not None]
    if not steps or len(steps) < len(later):
        return None
    last = later[-1]
    change = surface.compare((last, template), (first, template))
    assert change is not None
    verdict = choose_verdict(
        full=surface.is_full(first, template),
        yes=any(step.low > 0 for step in steps),
        no=all(step.high < SMALL_TREND for step in steps),
    )
    ends = (format_bits(surface.bits(t, template)) for t in (first, last))
    text = (
        f"With templates of {format_seconds(template)}, MeanD goes from {next(ends)} bits at "
        f"T = {format_seconds(first)} to {next(ends)} at {format_seconds(last)}, "
        f"{format_change(change)}"
    )
    return make_answer("rises", surface, verdict, text, change=change)


def answer_fall(surface: Surface) -> CorpusAnswer | None:
    """Answer whether the longest T is below any shorter one, at the longest D."""
    *shorter, last = surface.lengths
    template = surface.template_lengths[-1]
    if len(shorter) < 2:
        return None
    steps = {}
    for t in shorter:
        if (step := surface.compare((last, template), (t, template), len(shorter))) is None:
            return None
        steps[t] = step
    peak = max(shorter, key=lambda t: surface.bits(t, template))
    verdict = choose_verdict(
        yes=any(step.high < 0 for step in steps.values()),
        full=surface.is_full(last, template),
        no=all(step.low > -SMALL_TREND for step in steps.values()),
    )
    text = (
        f"With templates of {format_seconds(template)}, the highest MeanD of the shorter lengths "
        f"is at T = {format_seconds(peak)}. At {format_seconds(last)} it has changed by "
        f"{format_change(steps[peak])} bits (interval simultaneous for {len(shorter)} lengths)"
    )
    return make_answer("falls", surface, verdict, text, change=steps[peak], peak_seconds=peak)


def answer_saturation(surface: Surface, axis: str) -> CorpusAnswer | None:
    """Answer whether the last doubling of ``"T"`` or ``"D"`` adds less than half of the first."""
    all_lengths = surface.lengths if axis == "T" else surface.template_lengths
    other = surface.template_lengths[-1] if axis == "T" else surface.lengths[-1]

    def place(length: float) -> Place:
        return (length, other) if axis == "T" else (other, length)

    telling = surface.telling([place(length) for length in all_lengths])
    along = all_lengths[len(all_lengths) - len(telling) :]
    if len(along) < 3:
        return None

    def gain(low: float, high: float) -> dict[Place, float]:
        rate = 1.0 / np.log2(high / low)
        return {place(high): rate, place(low): -rate}

    start, end = gain(along[0], along[1]), gain(along[-2], along[-1])
    first, last = surface.contrast(start), surface.contrast(end)
    half = {key: end.get(key, 0.0) - start.get(key, 0.0) / 2 for key in {**start, **end}}
    less = surface.contrast(half)  # the last less half of the first
    if first is None or last is None or less is None:
        return None
    is_full = surface.is_full(*place(along[-2]))
    verdict = choose_verdict(full=is_full, yes=less.high < 0, no=less.low > 0)
    name, fixed = ("T", "D") if axis == "T" else ("D", "T")
    text = (
        f"At {fixed} = {format_seconds(other)}, a doubling of {name} adds {format_change(first)} "
        f"bits from {format_seconds(along[0])} to {format_seconds(along[1])}, and "
        f"{format_change(last)} from {format_seconds(along[-2])} to "
        f"{format_seconds(along[-1])}. The difference from half of the first is "
        f"{format_change(less)}"
    )
    return make_answer(
        f"saturates_{axis.lower()}", surface, verdict, text, first=first, last=last, against=less
    )


def answer_bound(surface: Surface) -> CorpusAnswer | None:
    """Answer whether the longest T discloses less with the shortest templates than the longest."""
    last, short, long = surface.lengths[-1], *(surface.template_lengths[i] for i in (0, -1))
    if short == long:
        return None
    more = surface.compare((last, long), (last, short))
    if more is None:
        return None
    is_full = surface.is_full(last, short)
    verdict = choose_verdict(yes=more.low > 0, full=is_full, no=more.high < SMALL_TREND)
    text = (
        f"At T = {format_seconds(last)} MeanD is {format_bits(surface.bits(last, short))} bits "
        f"with templates of {format_seconds(short)} and {format_bits(surface.bits(last, long))} "
        f"with {format_seconds(long)}, {format_change(more)}"
    )
    return make_answer("bounded", surface, verdict, text, change=more)


QUESTIONS = {
    "rises": ("Does disclosure rise with the length of the test, T?",
              "yes, of the fundamental frequency (fig. 8)"),
    "saturates_t": ("Does it saturate with T, so that the last doubling adds less than half of the "
                    "first?", "yes (fig. 8)"),
    "falls": ("Does it fall again at long T?",
              "slightly, except for templates of 30 and 60 min (fig. 8)"),
    "saturates_d": ("Does it saturate in the same way with the length of the templates, D?",
                    "yes, test and template have the same role (fig. 8)"),
    "bounded": ("Is it bounded by the length of the templates?", "yes (abstract, fig. 8)"),
    "guide_linear": ("Is basic composition at least ten times the measured bits at the longest T?",
                     "yes, orders of magnitude (fig. 8)"),
    "guide_root": ("Is advanced composition at least ten times the measured bits too?",
                   "yes, orders of magnitude (fig. 8)"),
    "loss": ("Does LL fit as well as any other loss, on held-out speakers?",
             "yes by divergence, but CLL at rank 1, which its tables use (Table III)"),
}  # fmt: skip
"""Questions of SRD's experiments, and the paper's answers, by key."""


def answer_questions(cells: Sequence[MeasuredCell]) -> list[CorpusAnswer]:
    """Answer all questions from the cells, in their order."""
    answers: list[CorpusAnswer | None] = [
        _answer_loss(cell.panel.session, system, measured)
        for cell in cells
        if cell.panel.purpose == "tables"
        for system, measured in cell.systems.items()
    ]
    for surface in make_surfaces(cells):
        answers += [answer_rise(surface), answer_fall(surface), answer_bound(surface)]
        answers += [answer_saturation(surface, axis) for axis in ("T", "D")]
        answers += answer_guides(surface)
    keys = list(QUESTIONS)
    return sorted(filter(None, answers), key=lambda answer: keys.index(answer.question))


def summarise_answers(findings: Sequence[CorpusAnswer]) -> str:
    """Summarise the answers to one question, as in "Yes: f0 (same). No: voice (same)."."""
    heads = {"yes": "Yes", "no": "No", "full": "At the ceiling of log2 N",
             "undecided": "Undecided"}  # fmt: skip
    sentences = []
    for verdict, head in heads.items():
        by_session: dict[str, list[str]] = {}
        for finding in findings:
            if finding.verdict == verdict:
                by_session.setdefault(finding.session, []).append(finding.system)
        if by_session:
            listed = (f"{', '.join(names)} ({session})" for session, names in by_session.items())
            sentences.append(f"{head}: {'; '.join(listed)}.")
    return " ".join(sentences)
