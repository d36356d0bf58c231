"""Pack what a training on a GPU needs into one folder, small enough to be carried to it.

    python -m recipes.voice.pack CACHE NOISE BEGIN PACK

The clips of CACHE (`recipes.voice.clips`) as Opus, ten minutes a file; the teacher's weights in
half precision and its filters; simulated rooms; NOISE; and the network of the training BEGIN. PACK
holds people's voices: keep it outside the repository.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from monitor.features.ecapa import log_mel as teachers_bands
from monitor.features.ecapa import resolve
from monitor.files import atomic_write
from monitor.networks.layers import RATE
from monitor.types import AnyArray, FloatArray
from recipes.training import trained
from recipes.voice.clips import Clips
from recipes.voice.conditions import Conditions

PIECE = 600 * RATE
"""Samples of a file."""
NOISE_SAMPLES, ROOM_SAMPLES, ROOMS = 5 * RATE, RATE, 250
_CLIPS_RATE, _NOISE_RATE = "23k", "24k"
_FULL = 30_000
"""Of int16, for the loudest sample of a noise."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Pack clips, teacher, rooms and noise for a GPU.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("noise", type=Path)
    parser.add_argument("begin", type=Path, help="the folder of a training")
    parser.add_argument("pack", type=Path)
    parser.add_argument("--ecapa", help="the teacher's folder (default: MONITOR_ECAPA, the hub)")
    given = parser.parse_args()
    pack(Clips(given.cache), given.noise, given.begin, given.pack, resolve(given.ecapa))


def pack(clips: Clips, noise: Path, begin: Path, folder: Path, ecapa: str) -> None:
    """Write the folder; files of clips that are there are kept.

    Raises:
        CorpusError: no clips, or no noise.
        StoreError: nothing was trained in ``begin``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    begun = {name: _half(each) for name, each in trained(begin)["student"].items()}
    for number, at in enumerate(range(0, len(clips.audio), PIECE)):
        target = folder / f"clips-{number:03d}.ogg"
        if not target.exists():
            _as_opus(clips.audio[at : at + PIECE], target, _CLIPS_RATE)
    conditions = Conditions.simulated(noise, lambda _: np.zeros(1, np.float32), ROOMS)
    recorded = np.stack([_filled(each, NOISE_SAMPLES) for each in conditions.noise])
    _as_opus((_FULL * recorded).astype(np.int16).ravel(), folder / "noise.ogg", _NOISE_RATE)
    count = len(clips.start) // 5  # as they are; other voices are made where they are needed
    window, bank, weights = _teacher(ecapa)
    rooms = np.zeros((ROOMS, ROOM_SAMPLES), np.float16)
    for row, room in zip(rooms, conditions.rooms, strict=True):
        row[: len(room)] = (room / np.abs(room).max())[: len(row)]
    with atomic_write(folder / "arrays.npz") as file:
        np.savez_compressed(
            file,
            start=clips.start[:count],
            samples=clips.samples[:count],
            corpus=clips.corpus[:count],
            voice=clips.voice[:count],
            rooms=rooms,
            window=window,
            bank=bank,
        )
    for name, state in (("teacher.pt", weights), ("begin.pt", begun)):
        with atomic_write(folder / name) as file:
            torch.save(state, file)


def _as_opus(samples: AnyArray, target: Path, rate: str) -> None:
    """int16 at 16 kHz to a file."""
    raw = ["-f", "s16le", "-ar", str(RATE), "-ac", "1", "-i", "-"]
    codec = ["-c:a", "libopus", "-b:a", rate, "-compression_level", "6", "-frame_duration", "60"]
    subprocess.run(
        ["ffmpeg", "-nostdin", "-loglevel", "error", "-y", *raw, *codec, str(target)],
        input=np.asarray(samples).tobytes(),
        check=True,
    )
    target.chmod(0o600)


def _filled(sound: FloatArray, samples: int) -> FloatArray:
    return np.resize(sound / np.abs(sound).max(), samples)


def _half(each: torch.Tensor) -> torch.Tensor:
    """What is large, in half precision."""
    return each.half() if each.is_floating_point() and each.numel() > 5000 else each


def _teacher(ecapa: str) -> tuple[FloatArray, FloatArray, dict[str, torch.Tensor]]:
    """Its window, shape (400,), its filters, shape (201, 80), and its weights."""
    from speechbrain.lobes.features import Fbank

    front = teachers_bands(Fbank(n_mels=80))
    weights = torch.load(
        Path(ecapa) / "embedding_model.ckpt", map_location="cpu", weights_only=True
    )
    halves = {name: each.half() for name, each in weights.items() if each.is_floating_point()}
    return front.spectrogram.window.numpy(), front.mel.fb.numpy(), halves


def heard(folder: Path, kind: str) -> Sequence[Path]:
    """The files of sound of a pack, in their order."""
    return sorted(folder.glob(f"{kind}*.ogg"))


if __name__ == "__main__":
    main()
