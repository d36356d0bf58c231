"""Coverage of the intervals of `monitor evaluate`, on simulated studies with known true values.

A candidate's score is Gaussian noise. The trials of a speaker share part of the noise with each
candidate (30 % of its variance), and a shift with all candidates. The mated score is higher by the
speaker's evidence, which varies between speakers with a standard deviation of a quarter of its
mean. The number of candidates is fixed, and each study draws new speakers. The true value of a
figure is its value for thousands of such speakers, with as many trials and candidates each.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from scipy.special import log_ndtr

from benchmarks.page import Page, benchmark
from monitor.jobs import cores
from monitor.lab.evaluation import anonymity, lid, linkage, membership, srd, verification, zebra
from monitor.lab.evaluation import longitudinal as growth
from monitor.lab.evaluation.among import Extrapolation
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.counts import ScoreCounts
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.lid import LidBits
from monitor.lab.evaluation.longitudinal import longitudinal
from monitor.lab.evaluation.report import Report
from monitor.lab.evaluation.resampling import Sample, leaving_out, resamples
from monitor.lab.evaluation.srd import no_evidence
from monitor.lab.evaluation.systems import compare
from monitor.maths.identification import FORMS, fit_rates
from monitor.types import FloatArray, IntArray

SIZES = ((30, 8), (29, 40), (100, 10))
"""Numbers of speakers, who are also the candidates, and of trials per speaker."""
EVIDENCE = {"none": 0.0, "weak": 0.7, "middling": 2.0, "strong": 6.0}
"""Mean increase of the mated score, in standard deviations of a score without the shift."""
_OWN, _SHIFT, _SPREAD = 0.3, 0.3, 0.25
_CROWD = 160_000
_ROUNDING = 5e-4
_SELDOM = 0.1
_BOUND = "membership.epsilon_lower_nats"
_BANDS = ("srd.null_mean_bits", "srd.null_model_bits")
Column = dict[str, dict[str, float]]


class Crowd(ScoreMatrix):
    """Trials of more speakers than candidates: several speakers may share a column."""

    @classmethod
    def from_scores(cls, scores: FloatArray, columns: IntArray, speaker: IntArray) -> Crowd:
        """Create a crowd from scores (T, N), each speaker's column, and each trial's speaker."""
        crowd = cls(scores, columns[speaker], name="crowd")
        # replaces cached values that assume one speaker per column
        crowd.__dict__.update(tested=columns, owner=speaker)
        return crowd


@dataclass(frozen=True)
class Design:
    """Design of a study: speakers, also the candidates, trials per speaker, and mean evidence."""

    speakers: int
    trials: int
    strength: float

    def study(
        self, seed: int, name: str = "study", evidence: FloatArray | None = None
    ) -> ScoreMatrix:
        """Simulate a study; systems with the same `evidence` (`draw_evidence`) share speakers."""
        generator = np.random.default_rng(seed)
        evidence = self.draw_evidence(self.speakers, generator) if evidence is None else evidence
        columns = np.arange(self.speakers)
        scores = self._scores(generator, evidence, columns)
        return ScoreMatrix(scores, np.repeat(columns, self.trials), name=name)

    def draw_evidence(self, speakers: int, generator: np.random.Generator) -> FloatArray:
        """Draw the evidence of each speaker: shape (speakers,)."""
        return self.strength * (1 + _SPREAD * generator.normal(size=speakers))

    def crowd(self, seed: int) -> Crowd:
        """Simulate trials of thousands of speakers."""
        generator, count = np.random.default_rng(seed), _CROWD // self.trials
        columns = np.arange(count) % self.speakers
        scores = self._scores(generator, self.draw_evidence(count, generator), columns)
        return Crowd.from_scores(scores, columns, np.repeat(np.arange(count), self.trials))

    def _scores(
        self, generator: np.random.Generator, evidence: FloatArray, columns: IntArray
    ) -> FloatArray:
        count = len(evidence)
        scores = generator.standard_normal((count, self.trials, self.speakers))
        scores *= np.sqrt(1 - _OWN)
        scores += np.sqrt(_OWN) * generator.standard_normal((count, 1, self.speakers))
        scores += _SHIFT * generator.standard_normal((count, 1, 1))
        scores[np.arange(count), :, columns] += evidence[:, None]
        return np.asarray(scores.reshape(-1, self.speakers))


def compute_truth(design: Design, seed: int, other_seed: int) -> Mapping[str, float]:
    """Return the figures of a crowd by key, except pi_sing, which depends on the crowd size."""
    crowd, other = design.crowd(seed), design.crowd(other_seed)
    local = LidBits.from_matrix(crowd, other)
    counts = ScoreCounts.from_scores(crowd)
    over_time = longitudinal(crowd, local.calibrations["paper"], other)
    found = [
        *srd.figures(crowd, permutations=0),
        *lid.figures(crowd, dev=other, local=local),
        *growth.figures(over_time),
        *verification.figures(crowd, counts=counts),
        *zebra.figures(crowd, counts=counts),
        *linkage.link_figures(crowd),
        linkage.d_sys_figure(crowd, None, counts),
        *anonymity.figures(crowd),
        *membership.figures(crowd),
    ]
    return {f.key: np.nan if f.value is None else f.value for f in found}


def measure_coverage(
    speakers: int, trials: int, evidence: str, studies: int, seed: int
) -> dict[str, dict[str, float]]:
    """Compute one column of the tables.

    Returns:
        Fractions by key of the figure. ``held``: intervals that contain the true value. ``shown``:
        studies with an interval. ``told_apart``: equal systems called different. ``compared``:
        pairs of systems with an interval of their difference.
    """
    design = Design(speakers, trials, EVIDENCE[evidence])
    start = np.random.SeedSequence([seed, speakers, trials, list(EVIDENCE).index(evidence)])
    seeds = start.generate_state(3 * (studies // 2) + 2).tolist()
    true_values = dict(compute_truth(design, seeds.pop(), seeds.pop()))
    reports: list[Report] = []
    differs: dict[str, list[bool]] = {}
    for pair in range(studies // 2):
        evidence_drawn = design.draw_evidence(speakers, np.random.default_rng(seeds[3 * pair]))
        both = [
            evaluate(
                design.study(seeds[3 * pair + 1 + i], name, evidence_drawn),
                settings=EvaluationSettings(seed=seeds[3 * pair]),
            )
            for i, name in enumerate(("one", "other"))
        ]
        reports += both
        for row in compare(both).rows:
            difference = row.differences[1]
            if difference is not None and difference.low is not None:
                differs.setdefault(row.key, []).append(difference.significant)
    singling_out = [report["linkage.pi_sing"].value for report in reports]
    true_values["linkage.pi_sing"] = float(
        np.mean([value for value in singling_out if value is not None])
    )
    within: dict[str, list[bool]] = {}
    for report in reports:
        for key, figure in report.figures.items():
            low, high = figure.limits
            if key.startswith(_BOUND) and figure.value is not None:  # a lower bound on epsilon
                true = true_values[key.replace("_lower", "")]
                within.setdefault(key, []).append(figure.value <= true + _ROUNDING)
            if low is None or high is None or key in _BANDS or not np.isfinite(true_values[key]):
                continue
            within.setdefault(key, []).append(
                low - _ROUNDING <= true_values[key] <= high + _ROUNDING
            )
    return {
        "held": {key: float(np.mean(found)) for key, found in within.items()},
        "shown": {key: len(found) / len(reports) for key, found in within.items()},
        "told_apart": {key: float(np.mean(found)) for key, found in differs.items()},
        "compared": {key: len(found) / (len(reports) / 2) for key, found in differs.items()},
    }


@benchmark()
def coverage(page: Page, *, studies: int = 100, seed: int = 1, jobs: int = cores()) -> None:
    """How often do `monitor evaluate`'s intervals hold, and are equal systems called different?"""
    cells = [(s, t, evidence) for s, t in SIZES for evidence in EVIDENCE]
    with ProcessPoolExecutor(jobs) as pool:
        running = [pool.submit(measure_coverage, *cell, studies, seed) for cell in cells]
        columns = {cell: each.result() for cell, each in zip(cells, running, strict=True)}
    sizes = [f"{speakers} x {trials}" for speakers, trials in SIZES]

    def rows(what: str, often: str) -> Iterator[list[str]]:
        for key in dict.fromkeys(key for column in columns.values() for key in column[what]):
            found = [
                f"{100 * column[what][key]:.0f}" if column[often].get(key, 0.0) >= _SELDOM else "-"
                for column in columns.values()
            ]
            each = len(EVIDENCE)
            parts = [found[i : i + each] for i in range(0, len(found), each)]
            yield [f"`{key}`", *(" / ".join(part) for part in parts)]

    heads = f"figure | {' | '.join(sizes)}"
    page.table(heads, rows("held", "shown"), under="Intervals that covered the truth, of 100")
    page.table(
        heads,
        rows("told_apart", "compared"),
        under="Equal systems that were called different, of 100",
    )


# ------------------------------------------------------------------------------------- more people

FITTED = (220, 1020)
LARGEST = 21_920
_WORLD = 400_000
Curve = Mapping[int, float]


@benchmark()
def crowd(page: Page, *, studies: int = 60, seed: int = 1) -> None:
    """How well do rates among few people predict those among many?

    Tested on the 13 curves in voice-anonymization-legal-eval (extra `peers`), then on simulations.
    """
    curves = load_published_curves()
    found = {name: [extrapolate(curve, upto) for upto in FITTED] for name, curve in curves.items()}

    def create_curve_rows() -> Iterator[list[str]]:
        for name, curve in curves.items():
            cells = [name, *(f"{curve[n]:.4f}" for n in (20, *FITTED, LARGEST))]
            for rates in found[name]:
                cells.append(f"{min(rates.values()):.4f} to {max(rates.values()):.4f}")
                cells.append("yes" if is_within(rates, curve[LARGEST]) else "**no**")
            yield cells

    sizes = [f"{n:,}" for n in (*FITTED, LARGEST)]
    brackets = [f"bracket from {n} | holds" for n in sizes[:2]]
    page.table(f"curve | among 20 | {' | '.join(sizes + brackets)}", create_curve_rows())

    columns = "speakers | evidence | among | true | held | supported | held if so | width"
    page.table(columns, measure_brackets(studies, seed), keys=3)


def load_published_curves() -> dict[str, Curve]:
    """Return published curves of pi_link by number of people, per attacker and speech length."""
    folder = files("legal_eval") / "data" / "paper_results"
    found: dict[str, dict[int, float]] = {}
    for row in csv.DictReader((folder / "linkability_results.csv").read_text().splitlines()):
        curve = found.setdefault(f"{row['attacker'].lower()}, L = {row['L']}", {})
        curve[int(row["enrollment_speakers"])] = float(row["linkability_mean"])
    ten = json.loads((folder / "linkability_original_L10.json").read_text())["values"]
    found["original, L = 10"] = {int(people): float(np.mean(runs)) for people, runs in ten.items()}
    return dict(sorted(found.items()))


def extrapolate(curve: Curve, upto: int, people: int = LARGEST) -> dict[str, float]:
    """Return each form's rate among this many people, fitted to rates among at most ``upto``."""
    sizes = np.array([size for size in sorted(curve) if size <= upto], dtype=np.float64)
    rates = np.array([curve[int(size)] for size in sizes])
    at = np.array([float(people)])
    return {
        name: float(form.rate(fit_rates(form, sizes, rates)[None], at)[0, 0])
        for name, form in FORMS.items()
    }


def is_within(rates: Mapping[str, float], rate: float) -> bool:
    return min(rates.values()) <= rate <= max(rates.values())


def compute_true_rates(design: Design, sizes: FloatArray, seed: int) -> FloatArray:
    """Return IdR among n people, for impostor scores drawn independently with variance 1."""
    generator = np.random.default_rng(seed)
    own = design.draw_evidence(_WORLD, generator) + generator.standard_normal(_WORLD)
    lost = log_ndtr(own)
    return np.array([np.exp((size - 1) * lost).mean() for size in sizes])


def measure_brackets(studies: int, seed: int) -> Iterator[list[str]]:
    """Yield rows on how often brackets contain the true rate."""
    for speakers in (50, 100):
        for evidence, strength in EVIDENCE.items():
            design = Design(speakers, 6, strength)
            people = speakers * np.array([10.0, 200.0, 20_000.0])
            true, runs = compute_true_rates(design, people, seed), list[Extrapolation]()
            for i in range(studies):
                matrix = design.study(seed + 1 + i)
                draws = resamples(matrix, seed=seed + 1 + i)
                weights = np.concatenate([draws, leaving_out(matrix.speakers)])
                nothing = no_evidence(srd.figures(matrix, permutations=100))
                sample = Sample(weights, design.speakers, matrix.trials, nothing)
                runs.append(Extrapolation.from_matrix(matrix, sample))
            low, high = np.moveaxis(np.array([each.bracket(people) for each in runs]), 1, 0)
            inside = (low <= true) & (true <= high)
            for i, size in enumerate(people.tolist()):
                supported = np.array([size <= each.supported for each in runs])
                fractions = [inside[:, i].mean(), supported.mean()]
                percentages = [f"{100 * share:.0f}" for share in fractions]
                percentages.append(
                    f"{100 * inside[supported, i].mean():.0f}" if supported.any() else "-"
                )
                yield [
                    str(speakers), evidence, f"{size:,.0f}", f"{true[i]:.4f}", *percentages,
                    f"{(high - low)[:, i].mean():.3f}",
                ]  # fmt: skip
