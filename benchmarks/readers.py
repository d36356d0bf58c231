"""Readers' recordings and frames, their selection, and figures with confidence intervals."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import soundfile

from monitor.corpus import Corpus, find
from monitor.kinds import FeatureSpec
from monitor.networks.layers import RATE
from monitor.sources.file import File
from monitor.training.grid import Plan, plans
from monitor.training.voices import UNITS_PER_SECOND, SpeakerSpeech, collect
from monitor.types import Block, FloatArray, IntArray
from recipes.frames import BACKGROUND, CORPORA, chapters, trainers

__all__ = [
    "BACKGROUND",
    "CORPORA",
    "FEATURES",
    "chapters",
    "collect_readers",
    "count_units",
    "create_corpus",
    "decode",
    "equal_speaker_weights",
    "find_plan",
    "format_interval",
    "format_range",
    "last_chapters",
    "read",
    "scale_to_unit",
    "split_voices",
    "trainers",
]

FEATURES = ("f0", "phones", "voice")
"""Features of every installation."""


def read(path: Path, seconds: float | None = None, first: float = 0.0) -> FloatArray:
    """Read part of a mono recording at 16 kHz as float32, from ``first`` seconds."""
    count = -1 if seconds is None else round(seconds * RATE)
    samples, rate = soundfile.read(path, start=round(first * RATE), frames=count, dtype="float32")
    assert rate == RATE, path
    return np.asarray(samples)


def decode(path: Path, seconds: float | None = None) -> tuple[FloatArray, int]:
    """Return the beginning of a recording as the monitor decodes it, and its rate."""
    with File(path, end_seconds=seconds) as file:
        blocks = [block.samples for block in file if isinstance(block, Block)]
        return np.concatenate(blocks), file.rate


def last_chapters(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Return the last of the given chapters of each reader."""
    return list({row["speaker"]: row for row in rows}.values())


def create_corpus(files: Iterable[tuple[Path, str, str]]) -> Corpus:
    """Return a corpus of files, given as path, speaker and session."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "all.csv"
        lines = [f"{path.resolve()},{speaker},{session}" for path, speaker, session in files]
        manifest.write_text("\n".join(["path,speaker,session", *lines, ""]), encoding="utf-8")
        return find(manifest)


def collect_readers(
    frames: Path, features: Sequence[str] | None = None, corpora: Sequence[str] = CORPORA
) -> tuple[list[SpeakerSpeech], dict[str, FeatureSpec]]:
    """Return the readers of a folder written by `recipes.frames`; each chapter is a session."""
    files = [file for corpus in corpora for file in sorted((frames / corpus).rglob("*.npz"))]
    corpus = create_corpus((file, file.parent.name, file.stem) for file in files)
    voices, specs, problems = collect(corpus, features=features)
    if problems:
        raise SystemExit(problems[0])
    return voices, specs


def split_voices(
    voices: Sequence[SpeakerSpeech], generator: np.random.Generator
) -> tuple[list[SpeakerSpeech], list[SpeakerSpeech]]:
    """Split voices in random halves, each with half of the voices with several sessions."""
    first_half: list[SpeakerSpeech] = []
    second_half: list[SpeakerSpeech] = []
    for several in (True, False):
        group = [voice for voice in voices if (len(voice.sessions) > 1) is several]
        order = generator.permutation(len(group))
        half = -(-len(group) // 2)
        first_half += [group[i] for i in order[:half]]
        second_half += [group[i] for i in order[half:]]
    return first_half, second_half


def find_plan(
    voices: Sequence[SpeakerSpeech], test: float, template: float, shifts: int, session: str
) -> Plan:
    """Plan tests and templates of one pair of lengths in speech seconds."""
    return next(p for s, _, _, p in plans(voices, (test,), (template,), shifts) if s == session)


def equal_speaker_weights(speaker: IntArray) -> FloatArray:
    """Return weights of trials that sum to 1 for each speaker."""
    _, index = np.unique(speaker, return_inverse=True)
    return np.asarray((1.0 / np.bincount(index))[index])


def scale_to_unit(vectors: FloatArray) -> FloatArray:
    """Scale vectors, the last axis, to length 1."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def count_units(*seconds: float) -> list[int]:
    """Convert seconds of speech to the units of collected frames."""
    return [round(each * UNITS_PER_SECOND) for each in seconds]


def format_range(value: float, low: float | None, high: float | None, digits: int = 2) -> str:
    """Format a figure with its interval, as `1.0 (0.5 to 1.5)`."""
    if low is None or high is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def format_interval(
    value: float | None, low: float | None, high: float | None, digits: int = 2
) -> str:
    """Format a figure with its interval, as `1.0 [0.5, 1.5]`; return an empty text for None.

    Example:
        >>> format_interval(0.5, 0.25, 0.75), format_interval(2, None, None, 0)
        ('0.50 [0.25, 0.75]', '2')
        >>> format_interval(None, None, None)
        ''
    """
    if value is None:
        return ""
    if low is None or high is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
