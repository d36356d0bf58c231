"""Readers: their recordings and frames, who is chosen and who judges, and figures with limits."""

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
    "BACKGROUND", "CORPORA", "FEATURES", "alike", "around", "bounded", "chapters", "collected",
    "corpus_of", "halves", "listen", "one_each", "plan_of", "read", "trainers", "unit", "units_of",
]  # fmt: skip

FEATURES = ("f0", "phones", "voice")
"""Of every install."""


def read(path: Path, seconds: float | None = None, first: float = 0.0) -> FloatArray:
    """A stretch of a recording of one channel at 16 kHz, float32."""
    count = -1 if seconds is None else round(seconds * RATE)
    samples, rate = soundfile.read(path, start=round(first * RATE), frames=count, dtype="float32")
    assert rate == RATE, path
    return np.asarray(samples)


def listen(path: Path, seconds: float | None = None) -> tuple[FloatArray, int]:
    """The beginning of a recording as the monitor decodes it, and its rate."""
    with File(path, end_seconds=seconds) as file:
        blocks = [block.samples for block in file if isinstance(block, Block)]
        return np.concatenate(blocks), file.rate


def one_each(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """One chapter of each reader, the last of those given."""
    return list({row["speaker"]: row for row in rows}.values())


def corpus_of(files: Iterable[tuple[Path, str, str]]) -> Corpus:
    """A corpus of files: where each lies, its speaker and session."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "all.csv"
        lines = [f"{path.resolve()},{speaker},{session}" for path, speaker, session in files]
        manifest.write_text("\n".join(["path,speaker,session", *lines, ""]), encoding="utf-8")
        return find(manifest)


def collected(
    frames: Path, features: Sequence[str] | None = None, corpora: Sequence[str] = CORPORA
) -> tuple[list[SpeakerSpeech], dict[str, FeatureSpec]]:
    """The readers of a folder made by `recipes.frames`; a chapter is a session."""
    files = [file for corpus in corpora for file in sorted((frames / corpus).rglob("*.npz"))]
    corpus = corpus_of((file, file.parent.name, file.stem) for file in files)
    voices, specs, problems = collect(corpus, features=features)
    if problems:
        raise SystemExit(problems[0])
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


def plan_of(
    voices: Sequence[SpeakerSpeech], test: float, template: float, shifts: int, session: str
) -> Plan:
    """Tests and templates of one pair of lengths, speech seconds."""
    return next(p for s, _, _, p in plans(voices, (test,), (template,), shifts) if s == session)


def alike(speaker: IntArray) -> FloatArray:
    """Weights of trials, so that every speaker weighs the same, 1."""
    _, place = np.unique(speaker, return_inverse=True)
    return np.asarray((1.0 / np.bincount(place))[place])


def unit(vectors: FloatArray) -> FloatArray:
    """Of length 1, row by row."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def units_of(*seconds: float) -> list[int]:
    """Speech in the units of frames that are collected."""
    return [round(each * UNITS_PER_SECOND) for each in seconds]


def around(value: float, low: float | None, high: float | None, digits: int = 2) -> str:
    """A figure with its limits, as `1.0 (0.5 to 1.5)`."""
    if low is None or high is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def bounded(value: float | None, low: float | None, high: float | None, digits: int = 2) -> str:
    """The same in brackets, as `1.0 [0.5, 1.5]`; nothing of nothing.

    Example:
        >>> bounded(0.5, 0.25, 0.75), bounded(None, None, None), bounded(2, None, None, 0)
        ('0.50 [0.25, 0.75]', '', '2')
    """
    if value is None:
        return ""
    if low is None or high is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
