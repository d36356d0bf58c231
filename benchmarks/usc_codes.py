"""Disclosure by a stream of codes, without decoding, to an attacker trained on such codes.

Features of an utterance are the frequency of each code of C0, and the mean and spread of the sum of
the codebooks. Separate readers train a within-class covariance normalisation
(`monitor.lab.adapting.training`), and scores are cosines. The order of codes is ignored, so an
attacker who models it may learn more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import bounded, unit
from benchmarks.systems import QUERY, REFERENCE, SEED, Excerpt, codes_of, excerpts, network_of
from benchmarks.usc_privacy import BITS, FIRST, enrolled_matrix
from monitor.jobs import one_thread
from monitor.kinds import HISTOGRAM
from monitor.lab.adapting.training import fit_normalisation
from monitor.lab.evaluation import EvaluationSettings, ScoreMatrix, evaluate
from monitor.networks.layers import log_mel
from monitor.networks.usc import TokenStream
from monitor.types import AnyArray, FloatArray

_DIMENSIONS, _LEAST = 100, 1e-12
Heard = Sequence[AnyArray]


@dataclass(frozen=True, slots=True)
class Stream:
    """Published representation of a voice.

    Attributes:
        books: number of codebooks, C0 first; 0 for the spectra of the recording.
        epsilon: budget of Laplace noise on C0 alone; None without noise.
        file: file of weights; empty for the shipped network.
    """

    books: int
    epsilon: float | None = None
    file: str = ""

    def __str__(self) -> str:
        if not self.books:
            return "spectra of the recording"
        noise = "" if self.epsilon is None else f", epsilon {self.epsilon:g}"
        return f"C0{noise}" if self.books == 1 else f"all {self.books} codebooks"


@benchmark()
def usc_codes(
    page: Page, speech: Path,
    *, network: str = "", epsilons: tuple[float, ...] = (50.0, 15.0, 5.0), each: int = 12,
    learn: int = 16, together: tuple[int, ...] = (1, 4),
) -> None:  # fmt: skip
    """How many bits do the codec's codes disclose about the speaker, without decoding?"""
    judged = excerpts(speech / "dev-clean", each)
    taught = [e for n in ("train-clean-5", "train-clean-100") for e in excerpts(speech / n, learn)]
    books = network_of(network).books
    mean = float(np.mean([one.seconds for one in judged if one.role == QUERY]))

    def rows() -> Iterator[list[str]]:
        clear = Stream(1, None, network)
        noisy = [Stream(1, epsilon, network) for epsilon in epsilons]
        heard: dict[Stream, tuple[Heard, Heard]] = {}
        for stream in (Stream(0), Stream(len(books), None, network), clear, *noisy):
            heard[stream] = listened(stream, judged), listened(stream, taught)
            published = heard[stream][0]
            for enrolled in dict.fromkeys([stream, clear if stream.epsilon else stream]):
                own = heard[enrolled][0]
                known = [heard[one][1] for one in dict.fromkeys([stream, enrolled])]
                numbers = np.stack([features(stream, one) for some in known for one in some])
                turn = learnt(numbers, [one.speaker for one in taught] * len(known))
                attacks: dict[str, Callable[[int], ScoreMatrix]] = {
                    "trained": partial(trained, judged, published, own, turn, stream)
                }
                if stream.books == 1:
                    attacks["counts"] = partial(counted, judged, published, own, books.size)
                same = "the same" if enrolled == stream else "codes of clear speech"
                for attacker, attack in attacks.items():
                    cells = [cell for n in together for cell in told(attack(n))]
                    yield [str(stream), same, attacker, *cells]

    counts = [f"{n} utterance{'s' * (n > 1)}, {n * mean:.2g} s | rank 1" for n in together]
    page.table(f"what is published | enrolled | attacker | {' | '.join(counts)}", rows(), keys=3)


def told(matrix: ScoreMatrix) -> tuple[str, str]:
    """Format MeanD in bits with its interval over readers, and the fraction at rank 1."""
    found = evaluate(matrix, settings=EvaluationSettings(only=("srd", "anonymity"))).figures
    bits, first = found[BITS], found[FIRST].value
    return bounded(bits.value, bits.low, bits.high), f"{100 * (first or 0):.0f} %"


def listened(stream: Stream, chosen: Sequence[Excerpt]) -> list[AnyArray]:
    """Return each excerpt's codes, shape (k, books), or its spectra, (t, bands)."""
    found: list[AnyArray] = []
    with one_thread():
        for each in chosen:
            sound = each.sound()
            if not stream.books:
                found.append(log_mel(sound, 40))
            elif stream.epsilon is None:
                found.append(codes_of(network_of(stream.file), sound, stream.books))
            else:
                tokens = TokenStream(network_of(stream.file), stream.epsilon, SEED, each.name)
                found.append(np.concatenate([tokens.push(sound), tokens.flush()])[:, None])
    return found


def features(stream: Stream, listened: AnyArray) -> FloatArray:
    """Compute the feature vector of an excerpt, for `learnt`."""
    if not stream.books:
        return np.concatenate([listened.mean(axis=0), listened.std(axis=0)])
    books = network_of(stream.file).books
    said = books.latents(listened).astype(float)
    counts = np.bincount(listened[:, 0], minlength=books.size) / len(listened)
    return np.concatenate([said.mean(axis=0), said.std(axis=0), np.sqrt(counts)])


@dataclass(frozen=True, slots=True)
class Turn:
    """Normalisation from background speakers: standardisation, principal axes, and projection."""

    centre: FloatArray
    scale: FloatArray
    axes: FloatArray
    turn: FloatArray
    middle: FloatArray

    def __call__(self, numbers: FloatArray) -> FloatArray:
        """Convert feature vectors, shape (n, m), to embeddings of length 1."""
        made = (((numbers - self.centre) / self.scale) @ self.axes - self.middle) @ self.turn
        lengths = np.linalg.norm(made, axis=1, keepdims=True)
        return np.asarray(made / np.maximum(lengths, _LEAST))


def learnt(numbers: FloatArray, voices: Sequence[str]) -> Turn:
    """Fit the normalisation to excerpts of background speakers, shape (n, m), and their names."""
    centre, scale = numbers.mean(axis=0), numbers.std(axis=0) + _LEAST
    standard = (numbers - centre) / scale
    with one_thread():
        _, _, axes = np.linalg.svd(standard, full_matrices=False)
    kept = axes[:_DIMENSIONS].T
    _, whose = np.unique(voices, return_inverse=True)
    turn, middle = fit_normalisation(standard @ kept, whose, np.zeros(whose.max() + 1, int))
    return Turn(centre, scale, kept, turn, middle)


def trained(
    judged: Sequence[Excerpt], published: Heard, own: Heard, turn: Turn, stream: Stream, count: int
) -> ScoreMatrix:
    """Score queries of ``count`` utterances by cosines of normalised features.

    ``published`` has the public data of each excerpt, ``own`` the data that the attacker enrols.
    """

    def voices(listened: Heard, role: str) -> dict[str, list[AnyArray]]:
        made: dict[str, list[AnyArray]] = {}
        numbers = turn(np.stack([features(stream, each) for each in listened]))
        for each, row in zip(judged, numbers, strict=True):
            if each.role == role:
                made.setdefault(each.speaker, []).append(row)
        return made

    queries = {
        name: [unit(np.sum(some, axis=0)) for some in _together(rows, count)]
        for name, rows in voices(published, QUERY).items()
    }
    return enrolled_matrix(queries, voices(own, REFERENCE))


def _together(rows: Sequence[AnyArray], count: int) -> list[Sequence[AnyArray]]:
    """Group rows by ``count``; omit an incomplete group unless it is the only one."""
    return [rows[i : i + count] for i in range(0, max(1, len(rows) - count + 1), count)]


def counted(
    judged: Sequence[Excerpt], published: Heard, own: Heard, size: int, count: int
) -> ScoreMatrix:
    """Score queries by log-likelihoods of their C0 codes under readers' counts, as `trained`."""
    names = tuple(dict.fromkeys(each.speaker for each in judged))
    templates = np.zeros((len(names), size), np.int64)
    said: list[list[AnyArray]] = [[] for _ in names]
    for each, codes, theirs in zip(judged, published, own, strict=True):
        place = names.index(each.speaker)
        if each.role == REFERENCE:
            templates[place] += np.bincount(theirs[:, 0], minlength=size)
        else:
            said[place].append(np.bincount(codes[:, 0], minlength=size))
    grouped = [[np.sum(some, axis=0) for some in _together(rows, count)] for rows in said]
    target = np.repeat(np.arange(len(names)), [len(rows) for rows in grouped])
    way, queries = HISTOGRAM.similarity(), np.stack([query for rows in grouped for query in rows])
    return ScoreMatrix(way.score(way.prepare(templates), queries), target, names)
