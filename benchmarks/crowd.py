"""How well rates among few people tell those among many: on published curves, and on known truth.

python -m benchmarks.crowd [--studies 60] [--seed 1] [--json OUT.json]

First the 13 curves that travel with voice-anonymization-legal-eval (extra `peers`): pi_link among
20 to 21 920 speakers of Common Voice. Each form is fitted up to 220 and up to 1 020 people and
asked for 21 920; prints what it says, whether the bracket of the four holds what was measured, and
the root mean square error of each form. These curves have no speakers, so forms have no limits.

Then simulated speakers, as `benchmarks.studies` makes them: 50 and 100 scored with 6 trials each,
asked for 10, 200 and 20 000 times as many. Of 100 studies, in how many the bracket held the true
rate, in how many it was called supported, and its mean width; of the limits of each form, how often
they held what the form says if fitted to the true rates.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np

from benchmarks.studies import EVIDENCE, Design
from monitor.lab.evaluation import srd
from monitor.lab.evaluation.among import Extrapolation
from monitor.lab.evaluation.comparisons import Sample, leaving_out, resamples
from monitor.lab.evaluation.srd import no_evidence
from monitor.maths.identification import FORMS, fit_rates
from monitor.types import FloatArray

__all__ = ["FITTED", "LARGEST", "Curve", "extrapolated", "published"]

FITTED = (220, 1020)
LARGEST = 21_920
_STATED = {"beta_binomial": 0.075, "probit": 0.028, "logit": 0.022, "pitman_yor": 0.068}
"""Root mean square errors of docs/method.md section 10, fitted up to 220."""
_SIZES = ((50, 6), (100, 6))
_TIMES = (10, 200, 20_000)
_WORLD = 400_000

Curve = Mapping[int, float]


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


def of_curves() -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    print(f"| curve | among 20 | {' | '.join(f'{n:,}' for n in (*FITTED, LARGEST))} "
          + "".join(f"| bracket from {upto:,} | holds " for upto in FITTED) + "|")  # fmt: skip
    print("| --- |" + " --- |" * (4 + 2 * len(FITTED)))
    for name, curve in published().items():
        found[name] = {str(upto): extrapolated(curve, upto) for upto in FITTED}
        cells = [name, *(f"{curve[n]:.4f}" for n in (20, *FITTED, LARGEST))]
        for said in found[name].values():
            cells.append(f"{min(said.values()):.4f} to {max(said.values()):.4f}")
            cells.append("yes" if held(said, curve[LARGEST]) else "**no**")
        print(f"| {' | '.join(cells)} |")
    print(
        "\n| RMSE among 21,920 |"
        + "".join(f" from {upto:,} |" for upto in FITTED)
        + " found before, from 220 |"
    )
    print("| --- |" + " --- |" * (len(FITTED) + 1))
    true = {name: curve[LARGEST] for name, curve in published().items()}
    for form in FORMS:
        errors = [
            np.sqrt(np.mean([(found[name][str(upto)][form] - true[name]) ** 2 for name in true]))
            for upto in FITTED
        ]
        print(f"| {FORMS[form].label} | {' | '.join(f'{e:.3f}' for e in errors)} "
              f"| {_STATED[form]:.3f} |")  # fmt: skip
    return found


def true_rates(design: Design, sizes: FloatArray, seed: int) -> FloatArray:
    """IdR among n impostors' scores that are drawn anew: a candidate's score has variance 1."""
    from scipy.special import log_ndtr

    generator = np.random.default_rng(seed)
    own = design.gifts(_WORLD, generator) + generator.standard_normal(_WORLD)
    lost = log_ndtr(own)
    return np.array([np.exp((size - 1) * lost).mean() for size in sizes])


def of_studies(studies: int, seed: int) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    forms = [form.label for form in FORMS.values()]
    heads = ["speakers", "evidence", "among", "true", "held", "supported", "held if so", "width"]
    print(f"\n| {' | '.join(heads + forms)} |\n|{' --- |' * len(heads + forms)}")
    for speakers, trials in _SIZES:
        for evidence, strength in EVIDENCE.items():
            design = Design(speakers, trials, strength)
            people = speakers * np.array(_TIMES, dtype=np.float64)
            true = true_rates(design, people, seed)
            runs = [_study(design, people, seed + 1 + i) for i in range(studies)]
            fitted = runs[0][2].sizes
            known = {
                name: form.rate(
                    fit_rates(form, fitted, true_rates(design, fitted, seed))[None], people
                )[0]
                for name, form in FORMS.items()
            }
            for i, many in enumerate(people.tolist()):
                inside = [low[i] <= true[i] <= high[i] for low, high, *_ in runs]
                supported = [many <= each.supported for *_, each, _ in runs]
                both = [a for a, b in zip(inside, supported, strict=True) if b]
                row = {
                    "true": float(true[i]),
                    "held": float(np.mean(inside)),
                    "supported": float(np.mean(supported)),
                    "held_supported": float(np.mean(both)) if both else np.nan,
                    "width": float(np.mean([high[i] - low[i] for low, high, *_ in runs])),
                }
                for name in FORMS:
                    row[name] = float(
                        np.mean([e[name][0][i] <= known[name][i] <= e[name][1][i]
                                 for *_, e in runs])
                    )  # fmt: skip
                found[f"{speakers} {evidence} {many:.0f}"] = row
                shares = [f"{100 * row[key]:.0f}" if np.isfinite(row[key]) else "-"
                          for key in ("held", "supported", "held_supported")]  # fmt: skip
                print(f"| {speakers} | {evidence} | {many:,.0f} | {true[i]:.4f} "
                      f"| {' | '.join(shares)} | {row['width']:.3f} "
                      f"| {' | '.join(f'{100 * row[name]:.0f}' for name in FORMS)} |")  # fmt: skip
    return found


def _study(
    design: Design, people: FloatArray, seed: int
) -> tuple[FloatArray, FloatArray, Extrapolation, dict[str, tuple[FloatArray, FloatArray]]]:
    matrix = design.study(seed)
    weights = np.concatenate([resamples(matrix, seed=seed), leaving_out(matrix.speakers)])
    nothing = no_evidence(srd.figures(matrix, permutations=100))
    found = Extrapolation.of(matrix, Sample(weights, design.speakers, matrix.trials, nothing))
    limits = {name: found.limits(name, people) for name in FORMS}
    assert all(each is not None for each in limits.values())
    return *found.bracket(people), found, limits  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description="rates among many people, told from few")
    parser.add_argument("--studies", type=int, default=60, help="of a row (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default 1)")
    parser.add_argument("--json", type=Path, help="write what the tables hold")
    options = parser.parse_args()
    found = {"curves": of_curves(), "studies": of_studies(options.studies, options.seed)}
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
