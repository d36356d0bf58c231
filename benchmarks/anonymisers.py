"""Speed of anonymisers, and protection by Laplace noise on embeddings."""

from __future__ import annotations

from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import numpy as np
import soxr

from benchmarks.page import Page, benchmark
from benchmarks.readers import format_interval, read, scale_to_unit
from benchmarks.systems import anonymise
from monitor.anonymisers import Utterance, make
from monitor.anonymisers.laplace import Laplace, promises
from monitor.corpus import find
from monitor.features.framing import join_runs
from monitor.lab.evaluation import EvaluationSettings, ScoreMatrix, evaluate
from monitor.maths.composition import clipped
from monitor.networks.layers import RATE
from monitor.sources.frames import FramesFile
from monitor.types import FloatArray


@benchmark()
def vocoder(
    page: Page, speech: Path,
    *, methods: tuple[str, ...] = (
        "mcadams:0.8", "pitch:4", "pitch:-4", "formant:1.15", "formant:0.85", "whisper", "usc",
        "noise:10",
    ),
    command: str | None = None, seconds: float = 10.0,
) -> None:  # fmt: skip
    """How fast are anonymisers, measured on the first seconds of each reader?"""
    corpus = find(speech)
    paths = [next(iter(corpus.sessions(name).values()))[0] for name in corpus.speakers]
    sounds = [read(path, seconds) for path in paths if isinstance(path, Path)]

    def measure_speed(method: str, rate: int) -> str:
        """Return audio seconds per CPU second, of this process and its ended child processes."""
        resampled = [soxr.resample(sound, RATE, rate) for sound in sounds]
        began = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
        for sound in resampled:
            anonymise(make(method, Utterance(rate)), sound)
        ended = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
        processor_seconds = sum(
            b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime
            for a, b in zip(began, ended, strict=True)
        )
        return f"{sum(map(len, sounds)) / RATE / processor_seconds:.0f}"

    named = {f"`{method}`": method for method in methods}
    named |= {f"`{command}`": f"command:{command}"} if command else {}
    page.table(
        "method | times real time at 16 kHz | at 48 kHz",
        (
            [label, *(measure_speed(each, rate) for rate in (RATE, 48_000))]
            for label, each in named.items()
        ),
    )


# ------------------------------------------------------------------------------------------- noise

NO_NOISE = float("inf")


@benchmark()
def laplace(
    page: Page, frames: Path,
    *, feature: str = "voice",
    epsilons: tuple[float, ...] = (NO_NOISE, 3000.0, 1000.0, 300.0, 100.0, 15.0), draws: int = 5,
) -> None:  # fmt: skip
    """How well does Laplace noise on speaker embeddings protect?

    FRAMES is a folder written by `monitor enrol --frames`.
    """
    template, readers = 10, dict[str, tuple[FloatArray, FloatArray]]()
    corpus = find(frames)
    for name in corpus.speakers:
        sessions = [
            np.concatenate(
                [join_runs(list(FramesFile(str(p)))).tracks[feature].values for p in paths]
            )
            for paths in corpus.sessions(name).values()
        ]
        long = [each for each in sessions if len(each) >= template]
        if len(long) > 1:
            readers[name] = (long[0][:template], long[1])
    names = tuple(readers)
    clear = np.stack([scale_to_unit(readers[name][0]).mean(axis=0) for name in names])
    page.note(f"{len(names)} readers, at most {np.log2(len(names)):.2f} bits")

    def score_attacks(epsilon: float, count: int) -> dict[str, ScoreMatrix]:
        cosine, likelihood, lazy, owners = [], [], [], []
        for draw in range(draws if epsilon < NO_NOISE else 1):

            def add_noise(values: FloatArray, *key: object, draw: int = draw) -> FloatArray:
                return values if epsilon == NO_NOISE else Laplace(epsilon).noisy(values, draw, *key)

            protected = [
                scale_to_unit(add_noise(readers[n][0], n, "template")).mean(axis=0) for n in names
            ]
            for owner, name in enumerate(names):
                trial_frames = add_noise(readers[name][1], name, "trial").astype(np.float64)
                for begin in range(0, len(trial_frames) - count + 1, count):
                    trial = trial_frames[begin : begin + count]
                    mean = scale_to_unit(trial).mean(axis=0)
                    cosine.append(scale_to_unit(clear) @ mean)
                    lazy.append(scale_to_unit(np.stack(protected)) @ mean)
                    apart = trial[:, None] - clipped(clear * len(clear[0]), 1.0)
                    likelihood.append(-np.abs(apart).sum(axis=(0, 2)))
                    owners.append(owner)
        ways = (cosine, likelihood, lazy) if epsilon < NO_NOISE else (cosine,)
        scores = zip(attackers, ways, strict=False)
        return {a: ScoreMatrix(np.stack(s), np.array(owners), names, "voice") for a, s in scores}

    attackers = ("clear templates, cosine", "clear templates, likelihood",
                 "protected templates, cosine")  # fmt: skip
    lengths = ((3, 9.0), (10, 30.0))

    def create_row(epsilon: float) -> list[str]:
        """Return epsilon, the guaranteed maximum bits by trial length, and each attacker's bits."""
        cells: dict[str, list[str]] = {attacker: [] for attacker in attackers}
        for count, _ in lengths:
            for attacker, matrix in score_attacks(epsilon, count).items():
                settings = EvaluationSettings(replicates=200)
                bits = evaluate(matrix, settings=settings).figures["srd.mean_bits_model"]
                cells[attacker].append(format_interval(bits.value, bits.low, bits.high))
        first_cells = ["no noise", "no limit"]
        if epsilon < NO_NOISE:
            allowed = (promises({"": length}, epsilon)[0].most_bits for length in lengths)
            first_cells = [f"{epsilon:g}", ", ".join(f"{most:.0f}" for most in allowed)]
        return [*first_cells, *(", ".join(each) for each in cells.values())]

    heads = " | ".join(f"{attacker}: 9 s, 30 s" for attacker in attackers)
    page.table(f"epsilon a frame | allowed in 9 s, 30 s | {heads}", map(create_row, epsilons))
