"""How far frames heard by another kind of processor are from those heard by this one.

    python -m benchmarks.kernels CORPUS [--features f0,phones,voice]

`--frames` twice on this machine: as it is, and with the kernels of numpy and OpenBLAS that a
processor without AVX would take. Prints, by feature, frames that differ of all frames, and of
embeddings the largest difference as a share of the largest number, and the smallest cosine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from monitor.sources.frames import read_frames

OLDER = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL "
    "AVX512_SPR AVX2 FMA3 AVX F16C X86_V3 X86_V4",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("corpus")
    parser.add_argument("--features", default="f0,phones,voice")
    given = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        own, older = Path(name) / "own", Path(name) / "older"
        for folder, more in ((own, {}), (older, OLDER)):
            people = folder.with_suffix(".npz")
            command = [sys.executable, "-m", "monitor", "enrol", given.corpus, "-o", str(people)]
            subprocess.run(
                [*command, "--frames", folder, "--features", given.features, "--jobs", "1"],
                env=os.environ | more,
                check=True,
                stderr=subprocess.DEVNULL,
            )
        for path in sorted(own.rglob("*.npz")):
            mine, theirs = read_frames(path), read_frames(older / path.relative_to(own))
            row = found.setdefault("voice activity", {"frames": 0, "differ": 0})
            row["frames"] += len(mine.speech)
            row["differ"] += int((mine.speech != theirs.speech).sum())
            for feature, track in mine.tracks.items():
                a, b = track.values, theirs.tracks[feature].values
                row = found.setdefault(feature, {"frames": 0, "differ": 0})
                row["frames"] += len(a)
                row["differ"] += int((a != b).reshape(len(a), -1).any(axis=1).sum())
                if a.ndim == 2:
                    a, b = a.astype(np.float64), b.astype(np.float64)
                    apart = float(np.abs(a - b).max() / np.abs(a).max())
                    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
                    row["share"] = max(row.get("share", 0.0), apart)
                    row["cosine"] = min(row.get("cosine", 1.0), float(cosine.min()))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
