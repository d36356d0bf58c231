"""chimera-voice as an anonymiser: a WAV on standard input, a WAV on standard output.

    pip install -e '.[peers]'
    monitor protect voices/ -o safe/ --anonymiser-command 'python examples/chimera_voice.py'
        [--preset strong] [--key KEY] [--speakers N]

The package (MIT, on the registry) says that no known algorithm recovers the speaker from what it
makes, and that its preset strong makes recognition fail. Its `mask_array` is called as its page
shows. From the key follow the pitch, the formants and the noise that a voice gets: without --key
every recording has a key of its own, which nobody keeps; one KEY for all moves all alike. Without
--speakers it looks by itself for how many people speak. It takes praat-parselmouth, which is GPL:
nothing in monitor/ imports either.
"""

from __future__ import annotations

import argparse
import io
import os
import secrets
import sys

import numpy as np
import soundfile


def masked(
    samples: np.ndarray,
    rate: int,
    key: str | None = None,
    preset: str = "strong",
    speakers: int | None = None,
) -> np.ndarray:
    """What it makes of one channel, shape (n,)."""
    for library in ("OMP", "OPENBLAS"):  # two threads wait for each other, at 7 times the CPU
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    import chimera

    if not samples.size:  # it fails on nothing
        return samples
    key = key or secrets.token_hex(16)
    made = chimera.mask_array(samples, rate, key=key, preset=preset, n_speakers=speakers)
    return np.asarray(made.audio)


def main() -> None:
    words = argparse.ArgumentParser(description="chimera-voice between two pipes.")
    words.add_argument("--preset", default="strong", help="of the package, such as strong")
    words.add_argument("--key")
    words.add_argument("--speakers", type=int)
    asked = words.parse_args()
    samples, rate = soundfile.read(io.BytesIO(sys.stdin.buffer.read()))
    samples = masked(samples, rate, asked.key, asked.preset, asked.speakers)
    made = io.BytesIO()
    soundfile.write(made, samples, rate, format="WAV", subtype="FLOAT")
    sys.stdout.buffer.write(made.getvalue())


if __name__ == "__main__":
    main()
