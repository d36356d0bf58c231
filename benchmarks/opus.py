"""Opus at its lowest rate, 6 kb/s, as an anonymiser: WAV on standard input, WAV on its output.

    monitor attack voices/ -o tested --anonymiser-command 'python benchmarks/opus.py'

No anonymiser at all, but what a coarse codec takes from a voice by the way: a thing to compare
with. libsndfile codes and decodes; at this rate there is nothing above 4 kHz. It takes audio at 8,
12, 16, 24 or 48 kHz.
"""

from __future__ import annotations

import io
import sys
from typing import Any

import soundfile


def coded(samples: Any, rate: int) -> tuple[Any, float]:
    """What is heard after it, shape (n,), and how many bits the file has, with what Ogg adds.

    Example:
        >>> import numpy as np
        >>> heard, bits = coded(np.sin(np.arange(16000) / 9).astype(np.float32), 16000)
        >>> heard.shape, 4000 < bits < 12000
        ((16000,), True)
    """
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="OGG", subtype="OPUS", compression_level=1.0)
    bits = 8.0 * file.tell()
    file.seek(0)
    heard, _ = soundfile.read(file, dtype="float32")
    return heard[: len(samples)], bits


def main() -> None:
    samples, rate = soundfile.read(io.BytesIO(sys.stdin.buffer.read()), dtype="float32")
    made = io.BytesIO()
    heard = coded(samples, rate)[0] if samples.size else samples
    soundfile.write(made, heard, rate, format="WAV", subtype="FLOAT")
    sys.stdout.buffer.write(made.getvalue())


if __name__ == "__main__":
    main()
