"""A voice before and after it went through private tokens: a page to listen to, and to look at.

    python -m benchmarks.usc_heard talk.flac heard.html

Ten seconds of the recording, as it is; made of its own spectra again, which costs what Griffin-Lim
costs; of all codebooks; of the private one alone (`usc`), and with noise for which an epsilon of
each token is promised. The page holds the sound: it is as private as the recording.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

import matplotlib.image
import numpy as np
import soundfile
import soxr

from monitor.anonymisers import Utterance, make
from monitor.anonymisers.usc import GriffinLim
from monitor.files import write_text
from monitor.jobs import one_thread
from monitor.lab.report.html import render_html
from monitor.lab.report.model import Document, Picture
from monitor.networks.layers import RATE, log_mel
from monitor.networks.usc import DECODER_BANDS, shipped_codec
from monitor.types import FloatArray

matplotlib.use("Agg")
SECONDS = 10.0
EPSILONS = (15, 5, 1)
SEED = 0


def main(recording: Path, page: Path) -> None:
    sound, rate = soundfile.read(recording, always_2d=True, dtype="float32")
    sound = soxr.resample(sound.mean(axis=1)[: round(SECONDS * rate)], rate, RATE)
    sound = np.asarray(sound, np.float32)
    parts = [
        Picture(name, player(made) + picture(made, name), why)
        for name, made, why in ways(sound, recording.name)
    ]
    facts = (f"{sound.size / RATE:.1f} s of {recording.name}, at 16 kHz",)
    write_text(render_html(Document("What passes", facts, parts)), page)
    print(f"{page}: {len(parts)} ways to hear it; open it in a browser")


def ways(sound: FloatArray, name: str) -> Iterator[tuple[str, FloatArray, str]]:
    """A name, the sound, and what happened to it."""
    books, decoder = shipped_codec().books, shipped_codec().decoder.stream()
    hears = shipped_codec().encoder.stream()
    latents = np.concatenate([hears.push(sound), hears.flush()])
    said = books.latents(books.codes(latents))
    every = np.concatenate([decoder.push(said), decoder.flush()])
    yield "As it is", sound, "Before."
    yield (
        "Its own spectra",
        inverted(log_mel(sound, DECODER_BANDS)),
        "80 mel bands each 10 ms, no network.",
    )
    yield f"All {len(books)} codebooks", inverted(every), "A codec: nothing is left out on purpose."
    yield "usc", protected("usc", sound, name), "The private tokens alone, 250 bits a second."
    for epsilon in EPSILONS:
        why = "Tokens with Laplace noise: each is private by itself, together they soon are not."
        yield f"usc:{epsilon}", protected(f"usc:{epsilon}", sound, name), why


def inverted(bands: FloatArray) -> FloatArray:
    stream = GriffinLim(DECODER_BANDS)
    return np.concatenate([stream.push(bands), stream.flush()])


def protected(method: str, sound: FloatArray, name: str) -> FloatArray:
    anonymiser = make(method, Utterance(RATE, name, seed=SEED))
    return np.concatenate([anonymiser.process(sound), anonymiser.flush()])


def player(sound: FloatArray) -> str:
    """The sound within the page."""
    file = io.BytesIO()
    soundfile.write(file, np.clip(sound, -1, 1), RATE, format="WAV", subtype="PCM_16")
    held = base64.b64encode(file.getvalue()).decode()
    return f'<audio controls src="data:audio/wav;base64,{held}"></audio>'


def picture(sound: FloatArray, name: str) -> str:
    """Its energies: time to the right, pitch upwards."""
    file = io.BytesIO()
    bands = np.clip(log_mel(sound, DECODER_BANDS).T[::-1], -10, 4)
    matplotlib.image.imsave(file, bands, cmap="magma", format="png")
    held = base64.b64encode(file.getvalue()).decode()
    style = "width:100%;height:9rem;image-rendering:pixelated"
    return (
        f'<p><img style="{style}" alt="{escape(name)}: energy over time, in 80 bands from 20 to '
        f'7600 Hz" src="data:image/png;base64,{held}"></p>'
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with one_thread():
        main(Path(sys.argv[1]), Path(sys.argv[2]))
