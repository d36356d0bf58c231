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
from benchmarks.readers import format_interval, scale_to_unit
from benchmarks.systems import (
    QUERY,
    REFERENCE,
    SEED,
    Excerpt,
    encode,
    load_network,
    select_excerpts,
)
from benchmarks.usc_privacy import BITS, FIRST, score_enrolled
from monitor.jobs import one_thread
from monitor.kinds import HISTOGRAM
from monitor.lab.adapting.training import fit_normalisation
from monitor.lab.evaluation import EvaluationSettings, ScoreMatrix, evaluate
from monitor.networks.layers import log_mel
from monitor.networks.usc import TokenStream
from monitor.types import AnyArray, FloatArray

_DIMENSIONS, _LEAST = 100, 1e-12
Representations = Sequence[AnyArray]


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
    tested = select_excerpts(speech / "dev-clean", each)
    training = [
        e for n in ("train-clean-5", "train-clean-100") for e in select_excerpts(speech / n, learn)
    ]
    books = load_network(network).books
    mean = float(np.mean([one.seconds for one in tested if one.role == QUERY]))

    def rows() -> Iterator[list[str]]:
        clear = Stream(1, None, network)
        noisy = [Stream(1, epsilon, network) for epsilon in epsilons]
        represented: dict[Stream, tuple[Representations, Representations]] = {}
        for stream in (Stream(0), Stream(len(books), None, network), clear, *noisy):
            represented[stream] = represent(stream, tested), represent(stream, training)
            published = represented[stream][0]
            for enrolled in dict.fromkeys([stream, clear if stream.epsilon else stream]):
                enrolled_data = represented[enrolled][0]
                known = [represented[one][1] for one in dict.fromkeys([stream, enrolled])]
                numbers = np.stack(
                    [compute_features(stream, one) for some in known for one in some]
                )
                normalisation = fit_projection(
                    numbers, [one.speaker for one in training] * len(known)
                )
                attacks: dict[str, Callable[[int], ScoreMatrix]] = {
                    "trained": partial(
                        score_trained, tested, published, enrolled_data, normalisation, stream
                    )
                }
                if stream.books == 1:
                    attacks["counts"] = partial(
                        score_counts, tested, published, enrolled_data, books.size
                    )
                same = "the same" if enrolled == stream else "codes of clear speech"
                for attacker, attack in attacks.items():
                    cells = [cell for n in together for cell in format_result(attack(n))]
                    yield [str(stream), same, attacker, *cells]

    counts = [f"{n} utterance{'s' * (n > 1)}, {n * mean:.2g} s | rank 1" for n in together]
    page.table(f"what is published | enrolled | attacker | {' | '.join(counts)}", rows(), keys=3)


def format_result(matrix: ScoreMatrix) -> tuple[str, str]:
    """Format MeanD in bits with its interval over readers, and the fraction at rank 1."""
    found = evaluate(matrix, settings=EvaluationSettings(only=("srd", "anonymity"))).figures
    bits, first = found[BITS], found[FIRST].value
    return format_interval(bits.value, bits.low, bits.high), f"{100 * (first or 0):.0f} %"


def represent(stream: Stream, chosen: Sequence[Excerpt]) -> list[AnyArray]:
    """Return each excerpt's codes, shape (k, books), or its spectra, (t, bands)."""
    found: list[AnyArray] = []
    with one_thread():
        for each in chosen:
            sound = each.sound()
            if not stream.books:
                found.append(log_mel(sound, 40))
            elif stream.epsilon is None:
                found.append(encode(load_network(stream.file), sound, stream.books))
            else:
                tokens = TokenStream(load_network(stream.file), stream.epsilon, SEED, each.name)
                found.append(np.concatenate([tokens.push(sound), tokens.flush()])[:, None])
    return found


def compute_features(stream: Stream, representation: AnyArray) -> FloatArray:
    """Compute the feature vector of an excerpt, for `fit_projection`."""
    if not stream.books:
        return np.concatenate([representation.mean(axis=0), representation.std(axis=0)])
    books = load_network(stream.file).books
    latents = books.latents(representation).astype(float)
    counts = np.bincount(representation[:, 0], minlength=books.size) / len(representation)
    return np.concatenate([latents.mean(axis=0), latents.std(axis=0), np.sqrt(counts)])


@dataclass(frozen=True, slots=True)
class Normalisation:
    """Normalisation from background speakers: standardisation, principal axes, and projection."""

    centre: FloatArray
    scale: FloatArray
    axes: FloatArray
    projection: FloatArray
    middle: FloatArray

    def __call__(self, numbers: FloatArray) -> FloatArray:
        """Convert feature vectors, shape (n, m), to embeddings of length 1."""
        projected = (
            ((numbers - self.centre) / self.scale) @ self.axes - self.middle
        ) @ self.projection
        lengths = np.linalg.norm(projected, axis=1, keepdims=True)
        return np.asarray(projected / np.maximum(lengths, _LEAST))


def fit_projection(numbers: FloatArray, voices: Sequence[str]) -> Normalisation:
    """Fit the normalisation to excerpts of background speakers, shape (n, m), and their names."""
    centre, scale = numbers.mean(axis=0), numbers.std(axis=0) + _LEAST
    standard = (numbers - centre) / scale
    with one_thread():
        _, _, axes = np.linalg.svd(standard, full_matrices=False)
    principal = axes[:_DIMENSIONS].T
    _, speaker = np.unique(voices, return_inverse=True)
    projection, middle = fit_normalisation(
        standard @ principal, speaker, np.zeros(speaker.max() + 1, int)
    )
    return Normalisation(centre, scale, principal, projection, middle)


def score_trained(
    tested: Sequence[Excerpt],
    published: Representations,
    enrolled: Representations,
    normalisation: Normalisation,
    stream: Stream,
    count: int,
) -> ScoreMatrix:
    """Score queries of ``count`` utterances by cosines of normalised features.

    ``published`` has the public data of each excerpt, ``own`` the data that the attacker enrols.
    """

    def voices(representations: Representations, role: str) -> dict[str, list[AnyArray]]:
        by_speaker: dict[str, list[AnyArray]] = {}
        numbers = normalisation(
            np.stack([compute_features(stream, each) for each in representations])
        )
        for each, row in zip(tested, numbers, strict=True):
            if each.role == role:
                by_speaker.setdefault(each.speaker, []).append(row)
        return by_speaker

    queries = {
        name: [scale_to_unit(np.sum(some, axis=0)) for some in _group_rows(rows, count)]
        for name, rows in voices(published, QUERY).items()
    }
    return score_enrolled(queries, voices(enrolled, REFERENCE))


def _group_rows(rows: Sequence[AnyArray], count: int) -> list[Sequence[AnyArray]]:
    """Group rows by ``count``; omit an incomplete group unless it is the only one."""
    return [rows[i : i + count] for i in range(0, max(1, len(rows) - count + 1), count)]


def score_counts(
    tested: Sequence[Excerpt],
    published: Representations,
    enrolled: Representations,
    size: int,
    count: int,
) -> ScoreMatrix:
    """Score queries by log-likelihoods of their C0 codes under counts, as `score_trained`."""
    names = tuple(dict.fromkeys(each.speaker for each in tested))
    templates = np.zeros((len(names), size), np.int64)
    counts: list[list[AnyArray]] = [[] for _ in names]
    for each, codes, enrolled_codes in zip(tested, published, enrolled, strict=True):
        index = names.index(each.speaker)
        if each.role == REFERENCE:
            templates[index] += np.bincount(enrolled_codes[:, 0], minlength=size)
        else:
            counts[index].append(np.bincount(codes[:, 0], minlength=size))
    grouped = [[np.sum(some, axis=0) for some in _group_rows(rows, count)] for rows in counts]
    target = np.repeat(np.arange(len(names)), [len(rows) for rows in grouped])
    similarity = HISTOGRAM.similarity()
    queries = np.stack([query for rows in grouped for query in rows])
    return ScoreMatrix(similarity.score(similarity.prepare(templates), queries), target, names)
