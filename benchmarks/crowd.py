"""How well rates among few people tell those among many: published curves, and known truth."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from importlib.resources import files

import numpy as np
from scipy.special import log_ndtr

from benchmarks.coverage import EVIDENCE, Design
from benchmarks.page import Page, benchmark
from monitor.lab.evaluation import srd
from monitor.lab.evaluation.among import Extrapolation
from monitor.lab.evaluation.comparisons import Sample, leaving_out, resamples
from monitor.lab.evaluation.srd import no_evidence
from monitor.maths.identification import FORMS, fit_rates
from monitor.types import FloatArray

FITTED = (220, 1020)
LARGEST = 21_920
_WORLD = 400_000
Curve = Mapping[int, float]


@benchmark()
def crowd(page: Page, *, studies: int = 60, seed: int = 1) -> None:
    """How well do rates among few people tell those among many?

    First by the 13 curves that travel with voice-anonymization-legal-eval (extra `peers`).
    """
    curves = published()
    found = {name: [extrapolated(curve, upto) for upto in FITTED] for name, curve in curves.items()}

    def of_curves() -> Iterator[list[str]]:
        for name, curve in curves.items():
            cells = [name, *(f"{curve[n]:.4f}" for n in (20, *FITTED, LARGEST))]
            for said in found[name]:
                cells.append(f"{min(said.values()):.4f} to {max(said.values()):.4f}")
                cells.append("yes" if held(said, curve[LARGEST]) else "**no**")
            yield cells

    sizes = [f"{n:,}" for n in (*FITTED, LARGEST)]
    brackets = [f"bracket from {n} | holds" for n in sizes[:2]]
    page.table(f"curve | among 20 | {' | '.join(sizes + brackets)}", of_curves())

    columns = "speakers | evidence | among | true | held | supported | held if so | width"
    page.table(columns, of_studies(studies, seed), keys=3)


def published() -> dict[str, Curve]:
    """The published curves: pi_link by number of people, by attacker and length of speech."""
    folder = files("legal_eval") / "data" / "paper_results"
    found: dict[str, dict[int, float]] = {}
    for row in csv.DictReader((folder / "linkability_results.csv").read_text().splitlines()):
        curve = found.setdefault(f"{row['attacker'].lower()}, L = {row['L']}", {})
        curve[int(row["enrollment_speakers"])] = float(row["linkability_mean"])
    ten = json.loads((folder / "linkability_original_L10.json").read_text())["values"]
    found["original, L = 10"] = {int(people): float(np.mean(runs)) for people, runs in ten.items()}
    return dict(sorted(found.items()))


def extrapolated(curve: Curve, upto: int, people: int = LARGEST) -> dict[str, float]:
    """What each form says of a rate among so many people, fitted to those among fewer."""
    sizes = np.array([size for size in sorted(curve) if size <= upto], dtype=np.float64)
    rates = np.array([curve[int(size)] for size in sizes])
    at = np.array([float(people)])
    return {
        name: float(form.rate(fit_rates(form, sizes, rates)[None], at)[0, 0])
        for name, form in FORMS.items()
    }


def held(said: Mapping[str, float], measured: float) -> bool:
    return min(said.values()) <= measured <= max(said.values())


def true_rates(design: Design, sizes: FloatArray, seed: int) -> FloatArray:
    """IdR among n impostors' scores that are drawn anew: a candidate's score has variance 1."""
    generator = np.random.default_rng(seed)
    own = design.gifts(_WORLD, generator) + generator.standard_normal(_WORLD)
    lost = log_ndtr(own)
    return np.array([np.exp((size - 1) * lost).mean() for size in sizes])


def of_studies(studies: int, seed: int) -> Iterator[list[str]]:
    """How often brackets held the true rate."""
    for speakers in (50, 100):
        for evidence, strength in EVIDENCE.items():
            design = Design(speakers, 6, strength)
            people = speakers * np.array([10.0, 200.0, 20_000.0])
            true, runs = true_rates(design, people, seed), list[Extrapolation]()
            for i in range(studies):
                matrix = design.study(seed + 1 + i)
                draws = resamples(matrix, seed=seed + 1 + i)
                weights = np.concatenate([draws, leaving_out(matrix.speakers)])
                nothing = no_evidence(srd.figures(matrix, permutations=100))
                sample = Sample(weights, design.speakers, matrix.trials, nothing)
                runs.append(Extrapolation.of(matrix, sample))
            low, high = np.moveaxis(np.array([each.bracket(people) for each in runs]), 1, 0)
            inside = (low <= true) & (true <= high)
            for i, many in enumerate(people.tolist()):
                supported = np.array([many <= each.supported for each in runs])
                shares = [inside[:, i].mean(), supported.mean()]
                told = [f"{100 * share:.0f}" for share in shares]
                told.append(f"{100 * inside[supported, i].mean():.0f}" if supported.any() else "-")
                yield [
                    str(speakers), evidence, f"{many:,.0f}", f"{true[i]:.4f}", *told,
                    f"{(high - low)[:, i].mean():.3f}",
                ]  # fmt: skip
