"""What Laplace noise is worth: on speaker embeddings, and on private tokens; MeanD by epsilon."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soxr

from benchmarks.page import Page, benchmark
from benchmarks.readers import bounded, listen, unit
from monitor.anonymisers.laplace import Laplace, promises
from monitor.corpus import find
from monitor.features.extractor import VoiceActivity
from monitor.features.framing import join_runs
from monitor.features.phones import Phones
from monitor.jobs import one_thread
from monitor.lab.evaluation import EvaluationSettings, ScoreMatrix, evaluate
from monitor.maths.composition import clipped, noise_scale, secret_uniform
from monitor.maths.composition import laplace as laplace_noise
from monitor.networks.layers import RATE
from monitor.networks.usc import FRAME, shipped_codec
from monitor.sources.frames import FramesFile
from monitor.types import FloatArray, IntArray

CLEAR = float("inf")
Scores = Mapping[str, Sequence[FloatArray]]


def line(
    epsilon: float,
    lengths: Sequence[tuple[int, float]],
    attacks: Callable[[int], Mapping[str, ScoreMatrix]],
    attackers: Sequence[str],
) -> list[str]:
    """A row: what is promised for trials of these lengths, and the bits of each attacker."""
    cells: dict[str, list[str]] = {attacker: [] for attacker in attackers}
    for count, _ in lengths:
        for attacker, matrix in attacks(count).items():
            how = EvaluationSettings(replicates=200)
            bits = evaluate(matrix, settings=how).figures["srd.mean_bits_model"]
            cells[attacker].append(bounded(bits.value, bits.low, bits.high))
    if epsilon == CLEAR:
        told = ["no noise", "no limit"]
    else:
        allowed = (promises({"": length}, epsilon)[0].most_bits for length in lengths)
        told = [f"{epsilon:g}", ", ".join(f"{most:.0f}" for most in allowed)]
    return [*told, *(", ".join(each) for each in cells.values())]


@benchmark()
def laplace(
    page: Page,
    frames: Path,
    *,
    feature: str = "voice",
    epsilons: tuple[float, ...] = (CLEAR, 3000.0, 1000.0, 300.0, 100.0, 15.0),
    draws: int = 5,
) -> None:
    """What is Laplace noise on speaker embeddings worth?

    FRAMES is a folder of `--frames`. Of each reader with two sessions 10 frames (30 s) of the first
    make a template, the second gives trials of 3 frames (9 s) and of 10. Attackers: clear
    templates, by the cosine; the same by the likelihood of the noise; and templates that were
    protected in the same way, by the cosine.
    """
    template, readers = 10, dict[str, tuple[FloatArray, FloatArray]]()
    corpus = find(frames)
    for name in corpus.speakers:
        sessions = [
            np.concatenate([join_runs(list(FramesFile(p))).tracks[feature].values for p in paths])
            for paths in corpus.sessions(name).values()
        ]
        long = [each for each in sessions if len(each) >= template]
        if len(long) > 1:
            readers[name] = (long[0][:template], long[1])
    names = tuple(readers)
    clear = np.stack([unit(readers[name][0]).mean(axis=0) for name in names])
    page.note(f"{len(names)} readers, at most {np.log2(len(names)):.2f} bits")

    def attacks(epsilon: float, count: int) -> dict[str, ScoreMatrix]:
        cosine, likelihood, lazy, owners = [], [], [], []
        for draw in range(draws if epsilon < CLEAR else 1):

            def noisy(values: FloatArray, *whose: object, draw: int = draw) -> FloatArray:
                return values if epsilon == CLEAR else Laplace(epsilon).noisy(values, draw, *whose)

            made = [unit(noisy(readers[n][0], n, "template")).mean(axis=0) for n in names]
            for owner, name in enumerate(names):
                heard = noisy(readers[name][1], name, "trial").astype(np.float64)
                for begin in range(0, len(heard) - count + 1, count):
                    trial = heard[begin : begin + count]
                    mean = unit(trial).mean(axis=0)
                    cosine.append(unit(clear) @ mean)
                    lazy.append(unit(np.stack(made)) @ mean)
                    apart = trial[:, None] - clipped(clear * len(clear[0]), 1.0)
                    likelihood.append(-np.abs(apart).sum(axis=(0, 2)))
                    owners.append(owner)
        ways = (cosine, likelihood, lazy) if epsilon < CLEAR else (cosine,)
        scores = zip(attackers, ways, strict=False)
        return {a: ScoreMatrix(np.stack(s), np.array(owners), names, "voice") for a, s in scores}

    attackers = ("clear templates, cosine", "clear templates, likelihood",
                 "protected templates, cosine")  # fmt: skip
    lengths = ((3, 9.0), (10, 30.0))
    heads = " | ".join(f"{attacker}: 9 s, 30 s" for attacker in attackers)
    page.table(
        f"epsilon a frame | allowed in 9 s, 30 s | {heads}",
        (line(e, lengths, lambda n, e=e: attacks(e, n), attackers) for e in epsilons),  # type: ignore[misc]
    )


# ------------------------------------------------------------------------------------------- tokens

TOKEN_SECONDS, TEMPLATE_SECONDS = FRAME / RATE, 60.0
OWN_DRAWS = 20


@dataclass(frozen=True)
class Voice:
    """One session of a reader: latents in speech, and units of `phones`."""

    latents: FloatArray
    units: IntArray

    @classmethod
    def heard(cls, path: Path) -> Voice:
        """Three minutes of it."""
        sound, rate = listen(path, 180.0)
        mono = sound.reshape(len(sound), -1).mean(axis=1)
        sound = np.asarray(soxr.resample(mono, rate, RATE), np.float32)
        stream, phones = shipped_codec().encoder.stream(), Phones()
        latents = np.concatenate([stream.push(sound), stream.flush()])
        speech = VoiceActivity(RATE, ticks=1).process(sound[: len(latents) * FRAME])
        units = np.concatenate([phones.process(sound).values, phones.flush().values])
        return cls(latents[speech.reshape(len(latents), -1).all(axis=1)], units)


@benchmark()
def tokens(
    page: Page,
    speech: Path,
    *,
    epsilons: tuple[float, ...] = (CLEAR, 15.0, 5.0, 1.0),
    draws: int = 5,
) -> None:
    """What does a stream of private tokens still tell of who speaks?

    Of each reader with two sessions a minute of speech of one makes a template, as counts of
    tokens; the next one gives trials of 10 and of 30 s. Attackers, by the log-likelihood of counts:
    with clear speech of everybody; those who know the mechanism besides and count 20 draws of their
    own; those who have what was released. First the same for `phones`.
    """
    attackers = ("clear templates", "knows the mechanism", "has what was released")
    with one_thread():
        readers = dict(two_sessions(speech))
        page.note(f"{len(readers)} readers, at most {np.log2(len(readers)):.2f} bits")
        spec = Phones().spec
        most, each = round(TEMPLATE_SECONDS / spec.frame_seconds), spec.frame_seconds
        units = {n: counts(a.units[:most], spec.size) for n, (a, _) in readers.items()}
        tests = {n: b.units for n, (_, b) in readers.items()}
        for seconds in (10.0, 30.0):
            matrix = scores(units, [tests], round(seconds / each))
            told = line(CLEAR, [(0, 0.0)], lambda _, m=matrix: {"": m}, [""])  # type: ignore[misc]
            page.note(f"units of phones, {seconds:g} s: {told[2]}")
        lengths = [(round(seconds / TOKEN_SECONDS), seconds) for seconds in (10.0, 30.0)]
        page.table(
            "epsilon a token | allowed in 10 s, 30 s | "
            + " | ".join(f"{a}: 10 s, 30 s" for a in attackers),
            (
                line(e, lengths, lambda n, e=e: attacks(readers, e, n, draws, attackers), attackers)  # type: ignore[misc]
                for e in epsilons
            ),
        )


def attacks(
    readers: Mapping[str, tuple[Voice, Voice]],
    epsilon: float,
    count: int,
    draws: int,
    attackers: Sequence[str],
) -> dict[str, ScoreMatrix]:
    """Scores of every trial of so many tokens, by each attacker."""
    size, most = shipped_codec().books.size, round(TEMPLATE_SECONDS / TOKEN_SECONDS)
    first = {name: one.latents[:most] for name, (one, _) in readers.items()}
    tests = [
        {name: drawn(other.latents, epsilon, draw, name) for name, (_, other) in readers.items()}
        for draw in range(draws if epsilon < CLEAR else 1)
    ]
    known = [{name: counts(drawn(each, CLEAR), size) for name, each in first.items()}]
    for many in (OWN_DRAWS, 1) if epsilon < CLEAR else ():
        own = {
            name: [counts(drawn(x, epsilon, "own", i, name), size) for i in range(many)]
            for name, x in first.items()
        }
        known.append({name: np.mean(each, axis=0) for name, each in own.items()})
    return {a: scores(k, tests, count) for a, k in zip(attackers, known, strict=False)}


def two_sessions(speech: Path) -> Iterator[tuple[str, tuple[Voice, Voice]]]:
    """Of each reader two sessions of a minute of speech at least."""
    corpus = find(speech)
    for name in corpus.speakers:
        sessions = [Voice.heard(paths[0]) for paths in corpus.sessions(name).values()]
        long = [each for each in sessions if len(each.latents) * TOKEN_SECONDS >= TEMPLATE_SECONDS]
        if len(long) > 1:
            yield name, (long[0], long[1])


def drawn(latents: FloatArray, epsilon: float, *whose: object) -> IntArray:
    """Tokens, with noise of this epsilon."""
    books, noise = shipped_codec().books, None
    if epsilon < CLEAR:
        shape = len(latents), books.dimensions
        uniform = secret_uniform(shape[0] * shape[1], *whose).reshape(shape)
        noise = laplace_noise(uniform, noise_scale(epsilon, books.clip))
    return books.codes(latents, 1, noise=noise)[:, 0]


def counts(codes: IntArray, size: int) -> FloatArray:
    return np.bincount(codes, minlength=size).astype(np.float64)


def scores(
    templates: dict[str, FloatArray], tests: list[dict[str, IntArray]], count: int
) -> ScoreMatrix:
    """Log-likelihood of each trial's counts under each template's, half a count added to each."""
    names = tuple(templates)
    smooth = np.stack([templates[name] + 0.5 for name in names])
    logs = np.log(smooth / smooth.sum(axis=1, keepdims=True))
    found, owners = [], []
    for draw in tests:
        for owner, name in enumerate(names):
            for begin in range(0, len(draw[name]) - count + 1, count):
                trial = counts(draw[name][begin : begin + count], logs.shape[1])
                found.append(logs @ trial)
                owners.append(owner)
    return ScoreMatrix(np.stack(found), np.array(owners), names, "voice")
