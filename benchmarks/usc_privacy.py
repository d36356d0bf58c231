"""USC's own privacy test of the codec and of other systems, on held-out speakers.

Source: Tura-Vecino et al. (USC), section 3.3, equation (2): each query against one utterance of
every reader, drawn again for each test. Its terms are not ours. Linkability has both sides
anonymised. Singling out is defined as anonymised queries against original references, but its
measurement is described the other way round. ECAPA-TDNN recognises speakers and pocketsphinx
phones. Neither was used to train the codec.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.page import Page, benchmark
from benchmarks.readers import format_interval
from benchmarks.systems import (
    OPUS,
    QUERY,
    RECORDINGS,
    REFERENCE,
    USC,
    VOCODER,
    Excerpt,
    apply_system,
    list_versions,
    select_excerpts,
)
from monitor.cli.options import progress_over
from monitor.jobs import each_in_order, one_thread
from monitor.lab.evaluation import EvaluationSettings, ScoreMatrix, evaluate
from monitor.lab.evaluation.comparisons import Roles
from monitor.lab.result_cache import ResultCache, result_key
from monitor.lab.utility import align_pitch, count_edits, extract_pitch, find_lag
from monitor.maths.statistics import Estimate, speaker_weights
from monitor.networks.layers import RATE
from monitor.networks.phones import PHONES
from monitor.networks.voice import VoiceNetwork
from monitor.npz import read_arrays
from monitor.sources.base import file_hash
from monitor.types import FloatArray, IntArray
from recipes.phones.words import Words

if TYPE_CHECKING:
    from recipes.phones.sphinx import Search

TEACHER = "MONITOR_ECAPA"
"""Environment variable with the folder of ECAPA-TDNN's weights."""
VERSION = 2
FEWEST_FRAMES = 30
LABELS = {
    VOCODER: "vocoder alone", "codec:6": "`codec:6`: all six codebooks", USC: "`usc`: C0",
    OPUS: "Opus at 6 kb/s", RECORDINGS: RECORDINGS,
}  # fmt: skip
SIDES = {"original": "orig.", "anonymised": "an."}
NOTHING = (("original", "original"),)
ROLES = (("anonymised", "anonymised"), ("anonymised", "original"), ("original", "anonymised"))
"""Queries and references: linkability, singling out as defined, and as described."""
FIRST, BITS = "anonymity.share_rank_at_most_1", "srd.mean_bits_model"
COLUMNS = {
    "rank p50": (0, "anonymity.mean_rank_p50"),
    "rank p1": (0, "anonymity.mean_rank_p1"),
    "P(rank ≤ 1)": (0, FIRST),
    "P(rank ≤ 5)": (0, "anonymity.share_rank_at_most_5"),
    "MeanD, bits": (0, BITS),
    "P(rank ≤ 1), all enrolled": (1, FIRST),
    "MeanD, all enrolled": (1, BITS),
}
"""0 for one reference drawn per test or 1 for all references, and the key of the figure."""
Voices = dict[str, list[FloatArray]]
Embeddings = Mapping[str, Sequence[FloatArray]]
ReaderCounts = Iterable[tuple[str, float, float]]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One excerpt under one system.

    Attributes:
        embedding: embedding of the excerpt, shape (192,), of length 1.
        phones: pocketsphinx's phone classes, from 1; empty for references, to save time.
        pitch: shape (ticks,), hertz, 0 if unvoiced.
        bits: transmitted bits; NaN if not coded.
    """

    embedding: FloatArray
    phones: IntArray
    pitch: FloatArray
    bits: float


@benchmark()
def usc_privacy(
    page: Page, speech: Path, cache: Path,
    *, systems: tuple[str, ...] = (
        RECORDINGS, VOCODER, "codec:6", USC, "usc:50", "usc:15", "usc:5", OPUS, "mcadams:0.8",
        "mcadams:random",
    ),
    each: int = 12, tests: int = 100, jobs: int = 1,
) -> None:  # fmt: skip
    """What does USC's own privacy test report for the codec and for other systems?

    MONITOR_ECAPA is the folder of ECAPA-TDNN. CACHE keeps all measurements, so that adding a system
    does not repeat those of others. It is private, because it contains embeddings.
    """
    chosen, kept = select_excerpts(speech, each), ResultCache(cache / "heard")
    readers = {one.speaker: one.apart for one in chosen}
    minutes = sum(one.seconds for one in chosen) / 60
    page.note(f"N = {len(readers)} readers, {sum(readers.values())} of them with queries of "
              f"another chapter; {len(chosen)} utterances, {minutes:.1f} min")  # fmt: skip

    def measure_system(system: str) -> dict[Excerpt, Measurement]:
        with progress_over(60 * minutes, system, "s") as progress:
            return dict(measure_excerpts(system, chosen, kept, jobs, progress))

    clear = measure_system(RECORDINGS)
    titles = {name: LABELS.get(name, f"`{name}`") for name in systems}
    measurements = {name: clear if name == RECORDINGS else measure_system(name) for name in systems}
    page.table(
        "system | bits a second | SIM | phone error | pitch, Spearman | pitch, Pearson",
        (
            [titles[name], *format_preserved(clear, measured)]
            for name, measured in measurements.items()
        ),
    )
    page.table(
        f"system | queries, references | {' | '.join(COLUMNS)}",
        (
            line
            for name, measured in measurements.items()
            for line in create_rank_rows(titles[name], clear, measured, tests)
        ),
        keys=2,
    )


# -------------------------------------------------------------------------------------- measurement


def measure_excerpts(
    system: str, chosen: Sequence[Excerpt], cache: ResultCache, jobs: int,
    progress: Callable[[str, float], object] = lambda *_: None,
) -> Iterator[tuple[Excerpt, Measurement]]:  # fmt: skip
    """Yield each excerpt's measurements after a system, and cache them."""
    keys = {each: _create_key(system, each) for each in chosen}
    missing = [each for each, key in keys.items() if cache.read(key) is None]
    with closing(each_in_order(partial(_measure_excerpt, system), missing, jobs)) as results:
        for each, encoded in zip(missing, results, strict=True):
            cache.write(keys[each], encoded)
            progress(each.name, each.seconds)
    for each, key in keys.items():
        data = cache.read(key)
        assert data is not None
        arrays = read_arrays(io.BytesIO(data))
        pitch = arrays["pitch"].astype(float)
        yield each, Measurement(arrays["embedding"], arrays["phones"], pitch, float(arrays["bits"]))


def _measure_excerpt(system: str, each: Excerpt) -> bytes:
    changed, bits = apply_system(system, each.sound(), each.name, each.speaker)
    sound = np.pad(changed, (0, max(0, RATE - changed.size)))
    with one_thread():
        embedding = _load_teacher().embed(sound[None])[0]
        tokens = _load_search().tokens(sound) if each.role == QUERY else []
        file = io.BytesIO()
        np.savez_compressed(
            file,
            embedding=embedding / np.linalg.norm(embedding),
            phones=np.array([phone for phone, _, _ in tokens], np.int64),
            pitch=extract_pitch(sound, RATE).astype(np.float32),
            bits=np.array(bits),
        )
    return file.getvalue()


def _create_key(system: str, each: Excerpt) -> str:
    return result_key(
        {
            "version": VERSION,
            "system": [system, *list_versions(system)],
            "recording": file_hash(each.path),
            "excerpt": [each.name, each.start, each.seconds, each.role],
        }
    )


@cache
def _load_teacher() -> VoiceNetwork:
    from recipes.voice.teacher import read_teacher  # imports torch, which nothing else here needs

    return VoiceNetwork(read_teacher(Path(os.environ[TEACHER])))


@cache
def _load_search() -> Search:
    from recipes.phones.sphinx import Search  # needs the extra peers, unlike the rest

    return Search()


@cache
def _load_words() -> Words:
    return Words.cmu()


def find_phones(text: str) -> tuple[str, ...] | None:
    """Return the phones of a transcript; None if the CMU dictionary lacks a word."""
    words = _load_words()
    return words.phones(text) if words.contains_all(text) else None


def name_phones(phones: IntArray) -> list[str]:
    """Return the ARPAbet names of phone classes, from 1."""
    return [PHONES[each - 1] for each in phones.tolist()]


# --------------------------------------------------------------------------------- preserved speech


def format_preserved(
    clear: Mapping[Excerpt, Measurement], changed: Mapping[Excerpt, Measurement]
) -> list[str]:
    """Format bit rate and preserved voice, phones and pitch, with intervals over readers."""
    bit_rates = (
        (e.speaker, measurement.bits, e.seconds)
        for e, measurement in changed.items()
        if np.isfinite(measurement.bits)
    )
    similarity = (
        (e.speaker, float(measurement.embedding @ clear[e].embedding), 1.0)
        for e, measurement in changed.items()
    )
    phone_errors = []
    for each, measurement in changed.items():
        if each.role == QUERY and (phones := find_phones(each.text)):
            edits = count_edits(name_phones(measurement.phones), phones)
            phone_errors.append((each.speaker, float(edits), float(len(phones))))
    pitch = [
        (e.speaker, _correlate_pitch(clear[e].pitch, measurement.pitch))
        for e, measurement in changed.items()
    ]
    correlations = ([(e, v[i], 1.0) for e, v in pitch if np.isfinite(v[i])] for i in (0, 1))
    rows: list[ReaderCounts] = [bit_rates, similarity, phone_errors, *correlations]
    return [
        format_interval(*estimate_ratio(row), digits=2 if i else 0) for i, row in enumerate(rows)
    ]


def estimate_ratio(counts: ReaderCounts) -> tuple[float | None, float | None, float | None]:
    """Return a ratio of sums, with Student's 95 % interval from resampled readers.

    Args:
        counts: reader, numerator and denominator of each excerpt.

    Example:
        >>> value, low, high = estimate_ratio([("ann", 2.0, 4.0), ("bob", 3.0, 4.0)])
        >>> value, low < 0.625 < high
        (0.625, True)
    """
    rows = list(counts)
    if not rows:
        return None, None, None
    _, speaker = np.unique([row[0] for row in rows], return_inverse=True)
    top, bottom = (np.bincount(speaker, [row[i] for row in rows]) for i in (1, 2))
    weights = speaker_weights(len(top))
    leaving_one_out = (top.sum() - top) / (bottom.sum() - bottom) if len(top) > 1 else np.empty(0)
    value = float(top.sum() / bottom.sum())
    resampled = (weights @ top) / (weights @ bottom)
    estimate = Estimate(value, resampled, leaving_one_out, len(top), len(rows))
    return value, *(estimate.t_limits() if estimate.exists else (None, None))


def _correlate_pitch(clear: FloatArray, changed: FloatArray) -> tuple[float, float]:
    """Return Spearman's and Pearson's correlation of frames voiced in both; NaN if too few."""
    from scipy.stats import pearsonr, spearmanr

    lag, _, count = find_lag(clear, changed)
    clear_pitch, changed_pitch = align_pitch(clear, changed, lag)
    both = (clear_pitch > 0) & (changed_pitch > 0)
    if count < FEWEST_FRAMES or np.ptp(clear_pitch[both]) == 0 or np.ptp(changed_pitch[both]) == 0:
        return np.nan, np.nan
    one, other = clear_pitch[both], changed_pitch[both]
    return float(spearmanr(one, other).statistic), float(pearsonr(one, other).statistic)


# -------------------------------------------------------------------------------------------- ranks


def create_rank_rows(
    name: str,
    clear: Mapping[Excerpt, Measurement],
    changed: Mapping[Excerpt, Measurement],
    tests: int,
) -> Iterator[list[str]]:
    """Yield a row per pair of roles; for original recordings, one row and one without evidence."""
    measurements = {"original": clear, "anonymised": changed}
    same = clear is changed
    for pair in NOTHING if same else ROLES:
        queries, references = (
            _collect_embeddings(measurements[side], role)
            for side, role in zip(pair, (QUERY, REFERENCE), strict=True)
        )
        settings = EvaluationSettings(roles=Roles(*pair), only=("anonymity", "srd"))
        both = score_rank_tests(queries, references, tests), score_enrolled(queries, references)
        found = [evaluate(matrix, settings=settings).figures for matrix in both]
        figures = [found[which].get(key) for which, key in COLUMNS.values()]
        cells = [format_interval(f.value, f.low, f.high) if f else "" for f in figures]
        yield [name, ", ".join(SIDES[side] for side in pair), *cells]
        if same:
            yield ["no evidence", "", *(f"{f.floor or 0:.2f}" if f else "" for f in figures)]


def _collect_embeddings(measurements: Mapping[Excerpt, Measurement], role: str) -> Voices:
    by_speaker: Voices = {}
    for each, found in measurements.items():
        if each.role == role:
            by_speaker.setdefault(each.speaker, []).append(found.embedding.astype(float))
    return by_speaker


def score_rank_tests(
    queries: Embeddings, references: Embeddings, tests: int, seed: int = 0
) -> ScoreMatrix:
    """Return cosines of tests per reader: one of the reader's queries, one reference per reader.

    Queries and references are by reader, in the same order, with embeddings of length 1. The same
    seed draws the same utterances, so that systems are compared in pairs.

    Example:
        >>> one, two = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> found = score_rank_tests({"ann": [one], "bob": [two]}, {"ann": [one], "bob": [two]}, 3)
        >>> found.scores.shape, found.better.tolist()
        ((6, 2), [0, 0, 0, 0, 0, 0])
    """
    generator, names = np.random.default_rng(seed), tuple(queries)

    def draw(embeddings: Sequence[FloatArray]) -> FloatArray:
        return embeddings[int(generator.integers(len(embeddings)))]

    rows, target, trial_names = [], [], []
    for index, name in enumerate(names):
        for test in range(tests):
            query = draw(queries[name])
            rows.append(np.stack([draw(references[n]) for n in names]) @ query)
            target.append(index)
            trial_names.append(f"{name} {test + 1}")
    return ScoreMatrix(np.stack(rows), np.array(target), names, "cosine", tuple(trial_names))


def score_enrolled(queries: Embeddings, references: Embeddings) -> ScoreMatrix:
    """Return the cosines of each query with the mean of all references of each reader.

    Example:
        >>> one, two = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> score_enrolled({"ann": [one], "bob": [two]}, {"ann": [one, one], "bob": [two]}).scores
        array([[1., 0.],
               [0., 1.]])
    """
    names = tuple(queries)
    means = np.stack([np.mean(references[name], axis=0) for name in names])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    target = np.repeat(np.arange(len(names)), [len(queries[name]) for name in names])
    trial_names = tuple(f"{name} {i + 1}" for name in names for i in range(len(queries[name])))
    scores = np.stack([query for name in names for query in queries[name]]) @ means.T
    return ScoreMatrix(scores, target, names, "cosine", trial_names)
