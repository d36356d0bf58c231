"""What a stream of private tokens still tells of who speaks: MeanD against epsilon.

    OMP_NUM_THREADS=1 python -m benchmarks.tokens ../shared/speech/dev-clean [--epsilons inf,15,5,1]

No sound is decoded. Of each reader with two sessions the first minute of speech of one makes a
template, as counts of tokens; the next one gives trials of 10 and of 30 s. Every trial is drawn
``--draws`` times. Attackers, all by the log-likelihood of counts as the program compares: those
with clear speech of everybody; those who know the mechanism besides and count what it makes of that
speech in 20 draws of their own; those who have but what was released, drawn once. First the same
for `phones`, the units of the first layer of our recogniser. Prints MeanD of the fitted rank model
in bits with 95 % interval from resampled readers, and what was promised.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soxr

from benchmarks.laplace import CLEAR, row
from monitor.anonymisers.laplace import promises
from monitor.corpus import find
from monitor.features.extractor import VoiceActivity
from monitor.features.phones import Phones
from monitor.jobs import one_thread
from monitor.lab.evaluation import ScoreMatrix
from monitor.maths.composition import laplace, noise_scale, secret_uniform
from monitor.networks.layers import RATE
from monitor.networks.usc import FRAME, shipped_codec
from monitor.sources import File
from monitor.types import Block, FloatArray, IntArray

TEMPLATE_SECONDS = 60.0
TRIALS_SECONDS = (10.0, 30.0)
MOST_SECONDS = 180.0
OWN_DRAWS = 20
TOKEN_SECONDS = FRAME / RATE


@dataclass(frozen=True)
class Voice:
    """One session of a reader: latents in speech, and units of `phones`."""

    latents: FloatArray
    units: IntArray


def main() -> None:
    words = argparse.ArgumentParser(description="What private tokens tell of who speaks.")
    words.add_argument("speech", type=Path)
    words.add_argument("--epsilons", default="inf,15,5,1")
    words.add_argument("--draws", type=int, default=5)
    asked = words.parse_args()
    readers = heard(asked.speech)
    print(f"{len(readers)} readers, at most {np.log2(len(readers)):.2f} bits", flush=True)
    for seconds in TRIALS_SECONDS:
        count, size = round(seconds / Phones().spec.frame_seconds), Phones().spec.size
        clear = {name: (one.units, other.units) for name, (one, other) in readers.items()}
        most = round(TEMPLATE_SECONDS / Phones().spec.frame_seconds)
        templates = {name: counts(one[:most], size) for name, (one, _) in clear.items()}
        tests = {name: other for name, (_, other) in clear.items()}
        told = row("units", scores(templates, [tests], count))
        print(f"phones, {seconds:g} s: {told}", flush=True)
    for epsilon in map(float, asked.epsilons.split(",")):
        for seconds in TRIALS_SECONDS:
            print(f"epsilon {epsilon:g}, {seconds:g} s: {said(readers, epsilon, seconds, asked)}")


def heard(speech: Path) -> dict[str, tuple[Voice, Voice]]:
    """Of each reader two sessions, the first of a minute of speech at least."""
    corpus, found = find(speech), {}
    for name in corpus.speakers:
        sessions = [session(paths[0]) for paths in corpus.sessions(name).values()]
        long = [each for each in sessions if len(each.latents) * TOKEN_SECONDS >= TEMPLATE_SECONDS]
        if len(long) > 1:
            found[name] = (long[0], long[1])
    return found


def session(path: Path) -> Voice:
    with File(path, end_seconds=MOST_SECONDS) as file:
        sound = np.concatenate([each.samples for each in file if isinstance(each, Block)])
        mono = sound.reshape(len(sound), -1).mean(axis=1)
        sound = np.asarray(soxr.resample(mono, file.rate, RATE), np.float32)
    stream = shipped_codec().encoder.stream()
    latents = np.concatenate([stream.push(sound), stream.flush()])
    speech = VoiceActivity(RATE, ticks=1).process(sound[: len(latents) * FRAME])
    phones = Phones()
    units = np.concatenate([phones.process(sound).values, phones.flush().values])
    return Voice(latents[speech.reshape(len(latents), -1).all(axis=1)], units)


def said(
    readers: dict[str, tuple[Voice, Voice]],
    epsilon: float,
    seconds: float,
    asked: argparse.Namespace,
) -> str:
    """Bits of each attacker, and what was promised."""
    size, most = shipped_codec().books.size, round(TEMPLATE_SECONDS / TOKEN_SECONDS)
    count = round(seconds / TOKEN_SECONDS)
    first = {name: one.latents[:most] for name, (one, _) in readers.items()}
    clear = {name: counts(tokens(each, CLEAR), size) for name, each in first.items()}
    tests = [
        {name: tokens(other.latents, epsilon, draw, name) for name, (_, other) in readers.items()}
        for draw in range(asked.draws if epsilon < CLEAR else 1)
    ]
    told = [row("clear templates", scores(clear, tests, count))]
    if epsilon < CLEAR:
        for attacker, draws in (("knows the mechanism", OWN_DRAWS), ("has what was released", 1)):
            known = {
                name: np.mean(
                    [counts(tokens(each, epsilon, "own", i, name), size) for i in range(draws)], 0
                )
                for name, each in first.items()
            }
            told.append(row(attacker, scores(known, tests, count)))
        (promise,) = promises({"": (count, seconds)}, epsilon)
        told.append(f"promised: at most {promise.most_bits:.0f} bits of evidence")
    return "; ".join(told)


def tokens(latents: FloatArray, epsilon: float, *whose: object) -> IntArray:
    books = shipped_codec().books
    noise = None
    if epsilon < CLEAR:
        drawn = secret_uniform(len(latents) * books.dimensions, *whose)
        noise = laplace(
            drawn.reshape(len(latents), books.dimensions), noise_scale(epsilon, books.clip)
        )
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


if __name__ == "__main__":
    with one_thread():
        main()
