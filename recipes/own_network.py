"""Make a population for a speaker network of your own, with templates, rank models and evidence.

    python -m recipes.own_network FILE.onnx SPEECH -o population.npz
    monitor replay talk.flac --speaker-model FILE.onnx -p population.npz

SPEECH is a corpus of ten or more speakers, such as the readers of the shipped population. Each
recording is processed once. Further options go to ``monitor calibrate``: evidence needs speech of
ten other people, as ``--cohort DIR``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, metavar="FILE.onnx")
    parser.add_argument("speech", type=Path, metavar="SPEECH")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--features", default="f0,phones,speaker")
    parser.add_argument("--seconds", default="100", help="speech of each template")
    given, more = parser.parse_known_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        frames = Path(folder) / "frames"
        enrol = (
            *("enrol", given.speech, "--frames", frames, "-o", given.output),
            *("--features", given.features, "--speaker-model", given.model),
            *("--seconds", given.seconds),
        )
        calibrate = ("calibrate", frames, "-o", given.output, "--speaker-model", given.model)
        for command in (enrol, (*calibrate, *more)):
            done = subprocess.run(
                [sys.executable, "-m", "monitor", *map(str, command)], check=False
            )
            if done.returncode not in (0, 4):  # 4: recordings were skipped and listed
                return done.returncode
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
