"""Does a rank model hold at template lengths that it was not learnt at, on readers it has not seen?

    python -m benchmarks.template_length FRAMES [--splits 10] [--features f0,voice]

FRAMES is a folder made by `benchmarks.hear`. The readers are split in halves; rank models are
learnt on the one half with templates of 10, 30, 60 and 100 s, as those of the shipped population
are, and judged on the other at template lengths on that grid, between and below. For each: what the
posterior claims (mean attacker confidence), what it gives the true reader (mean local bits), and
the same by the rank model of 100 s, as if length made no difference.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from monitor.corpus import find
from monitor.kinds import FeatureSpec
from monitor.maths import posterior_fit as logit
from monitor.maths.posterior import confidence_bits, local_bits
from monitor.population.interpolation import at_template
from monitor.population.rank_model import RankModel
from monitor.training import fitted
from monitor.training.calibrating import CalibrationSettings, calibrate
from monitor.training.voices import UNITS_PER_SECOND, Cell, SpeakerSpeech, collect, plans

CORPORA = ("train-clean-5", "train-clean-100", "dev-clean")
LEARNT = (5.0, 10.0, 30.0, 60.0, 100.0)
JUDGED = (5.0, 10.0, 20.0, 45.0, 60.0, 80.0, 100.0)
LENGTHS = (10.0, 30.0, 60.0)
SHIFTS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description="Rank models at other template lengths.")
    parser.add_argument("frames", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--features", default="f0,voice")
    given = parser.parse_args()
    # the others are for information and take most of the time
    setattr(fitted, "LOSSES", ("LL",))  # noqa: B010
    names = given.features.split(",")
    voices, specs = collected(given.frames, names)
    measures = {n: s.kind.similarity() for n, s in specs.items()}
    additive = np.array([measure.additive for measure in measures.values()])
    found: dict[tuple[str, str, float, float], list[tuple[float, float, float]]] = defaultdict(list)
    generator = np.random.default_rng(0)
    for _ in range(given.splits):
        ours, theirs = halves(voices, generator)
        rank_models = calibrate(
            ours,
            specs,
            CalibrationSettings(
                lengths=LENGTHS, template_lengths=LEARNT, replicates=20, trials=SHIFTS, prior=None
            ),
        ).rank_models
        for session, t, d, plan in plans(theirs, LENGTHS, JUDGED, SHIFTS):
            if not plan.mated.size:
                continue
            units = [round(x * UNITS_PER_SECOND) for x in (LENGTHS[t], JUDGED[d])]
            cell = plan.run(measures, *units)
            for rank_model in rank_models:
                if rank_model.session == session:
                    axis = [list(measures).index(name) for name in rank_model.features]
                    right = claimed_and_known(
                        rank_model, cell, axis, additive[axis], LENGTHS[t], JUDGED[d]
                    )
                    wrong = claimed_and_known(
                        rank_model, cell, axis, additive[axis], LENGTHS[t], LEARNT[-1]
                    )
                    key = (session, "+".join(rank_model.features), LENGTHS[t], JUDGED[d])
                    found[key].append((*right, wrong[1]))
    for session in ("cross", "same"):
        for length in LENGTHS:
            print(
                f"\n{session} session, T = {length:g} s: claimed, actual, actual by the rank "
                f"model of"
            )
            print(
                f"{LEARNT[-1]:g} s; mean bits, in brackets the standard error of claimed - actual"
            )
            heads = sorted({key[1] for key in found}, key=lambda name: (len(name), name))
            print("| templates | " + " | ".join(heads) + " |")
            print("| --- |" + " --- |" * len(heads))
            for template in JUDGED:
                cells = [_words(found[session, name, length, template]) for name in heads]
                print(f"| {template:g} s | " + " | ".join(cells) + " |")


def collected(
    frames: Path, features: Sequence[str]
) -> tuple[list[SpeakerSpeech], dict[str, FeatureSpec]]:
    """The readers of a folder made by `benchmarks.hear`; a chapter is a session."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "all.csv"
        files = [f for corpus in CORPORA for f in sorted((frames / corpus).rglob("*.npz"))]
        lines = [f"{file.resolve()},{file.parent.name},{file.stem}" for file in files]
        manifest.write_text("\n".join(["path,speaker,session", *lines, ""]), encoding="utf-8")
        voices, specs, problems = collect(find(manifest), features=features)
    for problem in problems:
        raise SystemExit(problem)
    return voices, specs


def halves(
    voices: Sequence[SpeakerSpeech], generator: np.random.Generator
) -> tuple[list[SpeakerSpeech], list[SpeakerSpeech]]:
    """Two halves, each with half of the readers who have several sessions."""
    ours: list[SpeakerSpeech] = []
    theirs: list[SpeakerSpeech] = []
    for several in (True, False):
        group = [voice for voice in voices if (len(voice.sessions) > 1) is several]
        order = generator.permutation(len(group))
        half = -(-len(group) // 2)
        ours += [group[i] for i in order[:half]]
        theirs += [group[i] for i in order[half:]]
    return ours, theirs


def claimed_and_known(
    rank_model: RankModel,
    cell: Cell,
    axis: Sequence[int],
    additive: np.ndarray,
    length: float,
    template: float,
) -> tuple[float, float]:
    """Mean attacker confidence and mean local bits, every reader weighing the same."""
    point = at_template(rank_model, template, additive).at(length)
    trials = logit.Trials(cell.gaps[:, list(axis)], cell.gap_speaker)
    count = len(cell.own)
    posterior = trials.posterior(
        np.repeat(point.weights[:1], count, axis=0), np.full(count, point.uniform_share[0])
    )
    claimed = confidence_bits(posterior)
    actual = local_bits(posterior[np.arange(count), cell.own], cell.candidates)
    _, place = np.unique(cell.gap_speaker, return_inverse=True)
    share = 1.0 / np.bincount(place)[place]
    return float(np.average(claimed, weights=share)), float(np.average(actual, weights=share))


def _words(values: Sequence[tuple[float, float, float]]) -> str:
    if not values:
        return ""
    claimed, actual, wrong = np.array(values).T
    spread = (claimed - actual).std(ddof=1) / np.sqrt(len(values))
    return f"{claimed.mean():.2f}, {actual.mean():.2f}, {wrong.mean():.2f} ({spread:.2f})"


if __name__ == "__main__":
    main()
