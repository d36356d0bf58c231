"""Systems that change voices, and utterances for them: the test of USC for any system.

References and queries (Tura-Vecino et al., section 3.3) are from different chapters if a reader has
two. With one chapter they are its two halves, and the voice is easier to recognise. Systems are the
monitor's anonymisers and four others. ``recordings`` changes nothing, and ``opus`` encodes at the
lowest rate. ``vocoder`` synthesises speech from unchanged spectra. ``codec:BOOKS`` decodes from
this many codebooks of the codec, C0 first.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from benchmarks.readers import read
from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.registry import make
from monitor.anonymisers.usc import GriffinLim
from monitor.corpus import find
from monitor.errors import CorpusError
from monitor.networks.layers import HOP, RATE, WIDTH, log_mel
from monitor.networks.usc import FRAME, UscNetwork, shipped_codec
from monitor.protocols import Anonymiser
from monitor.types import FloatArray, IntArray
from recipes.phones.corpus import lines

REFERENCE, QUERY = "reference", "query"
LEAST_SECONDS, MOST_SECONDS = 3.0, 12.0
RECORDINGS, OPUS, USC, CODEC, VOCODER = "recordings", "opus", "usc", "codec", "vocoder"
SEED = 0
VERSION = 1  # of anonymisers and networks: increase it when results change


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One utterance: its speaker, `REFERENCE` or `QUERY`, its file, start, length and transcript.

    ``apart`` is true if the reader's queries are from another chapter than the references.
    """

    speaker: str
    role: str
    path: Path
    start: float
    seconds: float
    text: str
    apart: bool

    @property
    def name(self) -> str:
        """Name that is the same in every run and seeds an anonymiser's random numbers."""
        return f"{self.speaker}/{self.path.stem}@{self.start:.2f}"

    def sound(self) -> FloatArray:
        """Read the audio, shape (n,), float32 at 16 kHz."""
        return read(self.path, self.seconds, self.start)


def select_excerpts(speech: Path, each: int) -> list[Excerpt]:
    """Return up to ``each`` evenly spaced references and queries of readers with two or more.

    Raises:
        CorpusError: fewer than two readers have enough.
    """
    corpus, found = find(speech), list[Excerpt]()
    for speaker in corpus.speakers:
        sessions = [
            [
                (path, line)
                for path in paths
                if isinstance(path, Path)
                for line in lines(path)
                if LEAST_SECONDS <= line.end - line.start <= MOST_SECONDS
            ]
            for paths in corpus.sessions(speaker).values()
        ]
        sessions = [session for session in sessions if len(session) > 1]
        if len(sessions) > 1:
            *others, queries = sessions
            references = [one for session in others for one in session]
        elif sessions and len(sessions[0]) > 3:
            middle = len(sessions[0]) // 2
            references, queries = sessions[0][:middle], sessions[0][middle:]
        else:
            continue
        for role, pool in ((REFERENCE, references), (QUERY, queries)):
            for index in np.unique(np.linspace(0, len(pool) - 1, min(each, len(pool))).astype(int)):
                path, line = pool[index]
                span = line.start, line.end - line.start
                found.append(Excerpt(speaker, role, path, *span, line.text, len(sessions) > 1))
    if len({one.speaker for one in found}) < 2:
        raise CorpusError(f"{speech}: fewer than two readers have enough utterances")
    return found


def apply_system(
    system: str, sound: FloatArray, name: str, speaker: str
) -> tuple[FloatArray, float]:
    """Pass an excerpt at 16 kHz through a system; return it and its coded bits, NaN if not coded.

    ``name`` seeds random settings.

    Raises:
        UsageError: there is no such system.
        StoreError: a file of weights cannot be read.
    """
    if system == RECORDINGS:
        return sound, np.nan
    if system == OPUS:
        return compress_opus(sound)
    if system == VOCODER:
        padded = np.pad(sound, (0, WIDTH + (-len(sound)) % HOP))
        return synthesise(log_mel(padded, 80), len(sound)), np.nan
    utterance = Utterance(RATE, name, speaker, 0, SEED)
    if system.startswith(f"{CODEC}:"):
        network, books = shipped_codec(), int(system.removeprefix(f"{CODEC}:"))
        bands = network.decoder.stream()
        latents = network.books.latents(encode(network, sound, books))
        changed = synthesise(np.concatenate([bands.push(latents), bands.flush()]), len(sound))
        return changed, count_bits(network, books, len(sound))
    changed = anonymise(make(system, utterance), sound)
    kind = system.partition(":")[0]
    return changed, count_bits(shipped_codec(), 1, len(sound)) if kind == USC else np.nan


def anonymise(anonymiser: Anonymiser, sound: FloatArray) -> FloatArray:
    """Pass a complete sound through an anonymiser."""
    changed = np.concatenate([anonymiser.process(sound), anonymiser.flush()])
    return np.asarray(changed, np.float32)


def encode(network: UscNetwork, sound: FloatArray, books: int) -> IntArray:
    """Encode a sound in this many codebooks without noise: shape (k, books)."""
    encoder = network.encoder.stream()
    latents = np.concatenate([encoder.push(sound), encoder.flush()])
    return network.books.codes(latents, books)


def count_bits(network: UscNetwork, books: int, samples: int) -> float:
    """Return the bits of the codes of this many samples, at a fixed length per code."""
    return float(books * np.log2(network.books.size) * samples / FRAME)


def synthesise(bands: FloatArray, samples: int) -> FloatArray:
    """Synthesise this many samples from log mel frames."""
    vocoder = GriffinLim(bands.shape[1])
    synthesised = np.concatenate([vocoder.push(bands), vocoder.flush()])[:samples]
    return np.asarray(np.pad(synthesised, (0, samples - len(synthesised))), np.float32)


def compress_opus(samples: FloatArray) -> tuple[FloatArray, float]:
    """Encode and decode a voice with Opus at 6 kb/s; also return the bits of the Ogg file."""
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="OGG", subtype="OPUS", compression_level=1.0)
    bits = 8.0 * file.tell()
    file.seek(0)
    return soundfile.read(file, dtype="float32")[0][: len(samples)], bits


@cache
def load_network(file: str) -> UscNetwork:
    """Load a network from a file; an empty name is the shipped network."""
    return UscNetwork.load(Path(file)) if file else shipped_codec()


def list_versions(system: str) -> list[Any]:
    """Return what a system's results depend on, for a cache key."""
    if system == RECORDINGS:
        return []
    if system == OPUS:
        return [soundfile.__libsndfile_version__]
    codec = system.partition(":")[0] in (CODEC, USC)
    return [SEED, VERSION, *([shipped_codec().sha256] if codec else [])]
