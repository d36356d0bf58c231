"""Two views of every clip, each under a condition of its own, made beside the training.

    python -m recipes.voice.views CACHE NOISE [--slots 90000]

NOISE is a folder of recordings of noise. The log mel bands go into a ring in CACHE, which the
training reads while it fills; when it is full the oldest views are replaced, until the process is
stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from monitor.networks.layers import RATE, log_mel
from monitor.types import AnyArray
from recipes.voice.clips import LONGEST, Clips
from recipes.voice.conditions import Conditions

BANDS = 60
FRAMES = 1 + (round(LONGEST * RATE) - 400) // 160
CLEAN = 0.15
"""Share of first views to which nothing happens."""


class Ring:
    """Views on disk: two slots a clip, one after the other.

    Attributes:
        bands: shape (slots, FRAMES, BANDS), float16.
        about: shape (slots, 2), int32: the clip plus one (0: empty yet), and whole frames.
    """

    def __init__(self, folder: Path, slots: int = 0) -> None:
        path, about = folder / "views.f16", folder / "views.i32"
        if slots and not path.exists():
            for name, size in ((path, slots * FRAMES * BANDS * 2), (about, slots * 8)):
                with name.open("wb") as file:
                    file.truncate(size)
                name.chmod(0o600)
        mode = "r+" if slots else "r"
        self.about: AnyArray = np.memmap(about, np.int32, mode=mode).reshape(-1, 2)  # type: ignore[call-overload]
        shape = (len(self.about), FRAMES, BANDS)
        self.bands: AnyArray = np.memmap(path, np.float16, mode=mode, shape=shape)  # type: ignore[call-overload]


def main() -> None:
    parser = argparse.ArgumentParser(description="Make views of the clips, until stopped.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("noise", type=Path)
    parser.add_argument("--slots", type=int, default=90_000, help="views kept (54 kB each)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    clips = Clips(given.cache)
    ring = Ring(given.cache, given.slots)
    conditions = Conditions.simulated(
        given.noise, lambda rng: clips.sound(int(rng.integers(len(clips.start))))
    )
    rng = np.random.default_rng([given.seed, int(time.time())])
    slot = int((ring.about[:, 0] > 0).sum()) // 2 * 2 % len(ring.about)
    began, made = time.monotonic(), 0
    while True:
        clips.refresh()
        if not len(clips.known):
            time.sleep(5)
            continue
        for clip in rng.permutation(clips.known):
            sound = clips.sound(clip)
            for place in range(2):
                clean = place == 0 and rng.random() < CLEAN
                bands = log_mel(sound if clean else conditions.view(sound, rng), BANDS)
                ring.bands[slot + place, : len(bands)] = bands
                ring.about[slot + place] = clip + 1, len(bands)
            slot, made = (slot + 2) % (len(ring.about) // 2 * 2), made + 2
            if made % 512 == 0:
                speed = made / (time.monotonic() - began)
                print(f"\r{made} views, {speed:.0f} a second", end="\x1b[K", file=sys.stderr)


if __name__ == "__main__":
    main()
