"""Store the corpora once: bands, fine spectra and the teacher's output of each latent.

    python -m recipes.usc.prepare ../shared/speech ../shared/nonnative CACHE

CACHE contains spectra of voices: keep it outside the repository.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from monitor.networks.layers import BANDS, HOP, RATE, WIDTH, Centre, Separable, log_mel, relu
from monitor.networks.phones import PhoneNetwork, shipped_recogniser
from monitor.networks.usc import DECODER_BANDS as FINE
from monitor.types import AnyArray, FloatArray
from recipes.stages import stage
from recipes.voice import corpus
from recipes.voice.corpus import INDEX, ROLES, Pieces, Recording

FRAME = 640
"""Samples per latent: 40 ms."""
PARTS = {"bands": 4 * BANDS, "centred": 4 * BANDS, "fine": 4 * FINE, "hidden": 384}
"""Values per latent in each file, float16."""
_STEM = 5  # mel frames in the window of a frame of the recogniser


def main() -> None:
    given = stage("Prepare the corpora for the codec.", "speech", "nonnative", "cache").parse_args()
    prepare(recordings(given.speech, given.nonnative), given.cache)


class Cache(Pieces):
    """A prepared corpus. Starts and lengths of its pieces are in latents.

    Args:
        folder: folder written by `prepare`.

    Attributes:
        parts: by name, shape (latents, values), float16, memory-mapped.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "recipes.usc.prepare")
        self.parts: dict[str, AnyArray] = {
            name: np.memmap(folder / f"{name}.f16", np.float16, mode="r").reshape(-1, size)
            for name, size in PARTS.items()
        }


def prepare(listed: list[Recording], folder: Path) -> Cache:
    """Prepare the listed recordings; leave a complete cache unchanged."""
    if (folder / INDEX).exists():
        return Cache(folder)
    folder.mkdir(parents=True, exist_ok=True)
    opener = partial(os.open, mode=0o600)
    for name in PARTS:
        with open(folder / f"{name}.f16", "wb", opener=opener):
            pass  # empties the files of an interrupted run
    found, start = [], 0
    for each in listed:
        parts = _parts(each.decoded("float32"))
        for name, rows in parts.items():
            with (folder / f"{name}.f16").open("ab") as file:
                file.write(rows.astype(np.float16).tobytes())
        latents = len(parts["hidden"])
        found.append(each.piece(start, latents))
        start += latents
        print(f"\r{start * FRAME / RATE / 60:.0f} min processed", end="", file=sys.stderr)
    print(file=sys.stderr)
    Cache.keep(folder, found)
    return Cache(folder)


def _parts(sound: FloatArray) -> dict[str, FloatArray]:
    """Compute `PARTS` by name, with one row per latent."""
    network = shipped_recogniser()
    bands = compute_bands(sound)
    without_mean = centred(bands, network.usual)
    fine = compute_bands(sound, FINE)
    found = {"bands": bands, "centred": without_mean, "fine": fine}
    latents = len(bands) // 4
    made = {name: each.reshape(latents, PARTS[name]) for name, each in found.items()}
    return made | {"hidden": hidden(network, without_mean)}


def centred(bands: FloatArray, usual: FloatArray) -> FloatArray:
    """Subtract the running mean from log mel bands, as for the recogniser and the codec."""
    return Centre(usual)(bands)


def hidden(network: PhoneNetwork, bands: FloatArray) -> FloatArray:
    """Return the output of the last block at 25 frames per second for a whole recording.

    Args:
        network: the recogniser.
        bands: shape (4 n, 40), centred.

    Returns:
        shape (n, 384), one row per 40 ms.
    """
    reach = _STEM // 2
    rows = np.pad(bands, ((reach, reach), (0, 0))).reshape(-1)
    windows = sliding_window_view(rows, _STEM * BANDS)[:: 2 * BANDS]
    x = relu(windows @ network.stem[0] + network.stem[1])
    x = _through(network.early, x)
    x = relu(x.reshape(len(x) // 2, -1) @ network.down[0] + network.down[1])
    return _through(network.middle, x)


def compute_bands(sound: FloatArray, bands: int = BANDS) -> FloatArray:
    """Return log mel bands of whole latents of 40 ms, with silence after: (4 n, bands)."""
    whole = len(sound) // (4 * HOP) * 4 * HOP
    return log_mel(np.pad(sound[:whole], (0, WIDTH - HOP)), bands)


def _through(blocks: list[Separable], x: FloatArray) -> FloatArray:
    for block in blocks:
        x = block(np.pad(x, ((block.before, block.after), (0, 0))))
    return x


# --- Roles of readers: those who choose or are reported never train the codec. The readers of
# dev-clean are reported, and none of them chooses. The same 50 non-native speakers are held out as
# by the other recipes. A few readers of the training corpora choose settings.

_REPORTED = "dev-clean"
_CHOOSE = {"train-clean-5": 2, "speechocean762": 10}  # number of readers by corpus
_SEED = 20261123


def recordings(speech: Path, nonnative: Path) -> list[Recording]:
    """Return all recordings that the recipe uses, training first.

    Args:
        speech: a folder with ``manifest.csv``: path, corpus, speaker, gender, chapter, seconds.
        nonnative: a folder with such a manifest, but ``age`` instead of ``chapter``.

    Raises:
        CorpusError: a manifest is missing or invalid.
    """
    listed = corpus.recordings(speech, nonnative)
    free = [each for each in listed if each.role != "held out" and each.corpus != _REPORTED]
    choosing = {
        (name, who)
        for name, count in _CHOOSE.items()
        for who in _sample_people({each.speaker for each in free if each.corpus == name}, count)
    }

    def role(each: Recording) -> str:
        if each.role == "held out":
            return each.role
        if each.corpus == _REPORTED:
            return "report"
        return "choose" if (each.corpus, each.speaker) in choosing else "train"

    found = [replace(each, role=role(each)) for each in listed]
    return sorted(found, key=lambda each: (ROLES.index(each.role), each.corpus, each.path))


def _sample_people(people: set[str], count: int) -> list[str]:
    ordered = sorted(people)
    return [ordered[i] for i in np.random.default_rng(_SEED).permutation(len(ordered))[:count]]


if __name__ == "__main__":
    main()
