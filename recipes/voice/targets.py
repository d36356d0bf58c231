"""Training targets: embeddings of all clips by one teacher, or by two teachers jointly."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from monitor.features.own_network import Network, network_bytes
from monitor.files import atomic_write
from monitor.lab.adapting.fine_tuning import TrainableVoice
from monitor.maths.scores import unit_vectors
from monitor.types import FloatArray
from recipes.voice.clips import Clips
from recipes.voice.teacher import read_teacher
from recipes.voice.windows import Windows, bands_of

_Embed = Callable[[FloatArray], FloatArray]
_TEACHER = "teacher{}.npy"
_BATCH = 8


def targets(clips: Clips, noise: Path, ecapa: Path, also: Path | None = None) -> FloatArray:
    """Embed the clean window of each clip: shape (n, 192), unit length.

    Args:
        clips: training clips.
        noise: a folder of recordings of noise.
        ecapa: the folder of the first teacher.
        also: ONNX file of a second teacher, as ``--speaker-model`` takes it.
    """
    first = _embed_clips(clips, noise, "", lambda: _load_ecapa(ecapa))
    if also is None:
        return first
    data = network_bytes(also)
    digest = "-" + hashlib.sha256(data).hexdigest()[:16]
    return joined(first, _embed_clips(clips, noise, digest, lambda: Network(data, also.name).embed))


def joined(first: FloatArray, second: FloatArray) -> FloatArray:
    """Join the unit embeddings of two teachers, in the size of the first.

    Cosines around the centre are nearly the mean of the two teachers' cosines. The concatenation is
    reduced by PCA and rotated towards the first teacher (Procrustes). The first teacher's centre is
    kept, because the student's embeddings start there.

    Args:
        first: shape (n, a).
        second: shape (n, b).

    Returns:
        Shape (n, a), unit length.
    """
    centre = first.mean(axis=0)
    ours, theirs = (unit_vectors(each - each.mean(axis=0)) for each in (first, second))
    both = np.concatenate([ours, theirs], axis=1)
    reduced = both @ np.linalg.svd(both, full_matrices=False)[2][: ours.shape[1]].T
    left, _, right = np.linalg.svd(reduced.T @ ours, full_matrices=False)
    around = np.sqrt(1 - centre @ centre)  # root mean square distance of the first from its centre
    turned = centre + around * unit_vectors(reduced @ left @ right)
    return np.asarray(unit_vectors(turned), np.float32)


def _load_ecapa(folder: Path) -> _Embed:
    network = TrainableVoice(read_teacher(folder))

    def embed(windows: FloatArray) -> FloatArray:
        with torch.inference_mode():
            embeddings = network(torch.from_numpy(bands_of(list(windows)))).numpy()
            return np.asarray(unit_vectors(embeddings), np.float32)

    return embed


def _embed_clips(clips: Clips, noise: Path, name: str, teacher: Callable[[], _Embed]) -> FloatArray:
    """Return a teacher's embeddings, computed once and stored in the cache."""
    path = clips.folder / _TEACHER.format(name)
    if path.exists():
        return np.asarray(np.load(path))
    windows, embed, batches = Windows(clips, noise, 0), teacher(), []
    for first in range(0, len(clips), _BATCH):
        some = range(first, min(first + _BATCH, len(clips)))
        batches.append(embed(np.stack([windows.clean(clip) for clip in some])))
        print(f"\r{some[-1] + 1} of {len(clips)} clips embedded", end="", file=sys.stderr)
    embeddings = np.concatenate(batches)
    with atomic_write(path) as file:
        np.save(file, embeddings)
    return embeddings
