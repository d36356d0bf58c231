"""How fast the codec hears and speaks, beside public tools on the same speech in the same run.

    OMP_NUM_THREADS=1 python -m benchmarks.usc ../shared/speech/dev-clean [--seconds 20]

Of every reader the first seconds of one recording, by CPU time on one thread, as times real time:
tokens of sound (encode), sound of tokens (decode: spectra, then Griffin-Lim), the whole anonymiser
at 16 and at 48 kHz. Beside them Opus by libsndfile, and torchaudio's Griffin-Lim with 32 rounds
over the whole recording (extra training); of both Griffin-Lims also how far the energies of what
they made are from those asked for, in nepers, where there is more than the rounding of 16 bits.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr
import torch
import torchaudio

from benchmarks.vocoder import readers
from monitor.anonymisers import Utterance, make
from monitor.anonymisers.usc import GriffinLim, magnitudes
from monitor.networks.layers import FFT, FLOOR, HOP, RATE, WIDTH, log_mel
from monitor.networks.usc import DECODER_BANDS, TokenStream, shipped_codec
from monitor.types import FloatArray, IntArray

ROUNDS = 32


def main() -> None:
    words = argparse.ArgumentParser(description="How fast the codec hears and speaks.")
    words.add_argument("speech", type=Path)
    words.add_argument("--seconds", type=float, default=20.0)
    asked = words.parse_args()
    torch.set_num_threads(1)
    voices = {
        name: np.asarray(soxr.resample(sound, rate, RATE), np.float32)
        for name, (sound, rate) in readers(asked.speech, asked.seconds).items()
    }
    total = sum(map(len, voices.values())) / RATE
    print(f"{len(voices)} readers, {total:.0f} s")
    sounds = list(voices.values())
    encode, tokens = timed(encoded, sounds)
    said, spectra = timed(spoken, tokens)
    voiced, _ = timed(inverted, spectra)
    report("encode", total, encode)
    report("decode", total, said + voiced)
    report("  to spectra", total, said)
    report("  to sound", total, voiced)
    for rate in (RATE, 48_000):
        again = [soxr.resample(sound, RATE, rate) for sound in sounds]
        took, _ = timed(lambda sound, rate=rate: protected(sound, rate), again)
        report(f"anonymiser usc, {rate // 1000} kHz", total, took)
    packets, packed = timed(opus, sounds)
    unpacking, _ = timed(unpacked, packed)
    report("Opus, encode", total, packets)
    report("Opus, decode", total, unpacking)
    peer = torchaudio.transforms.GriffinLim(FFT, ROUNDS, WIDTH, HOP, power=1.0, momentum=0.99)
    took, _ = timed(lambda bands: peers(peer, bands), spectra)
    report(f"torchaudio's Griffin-Lim, {ROUNDS} rounds", total, took)
    asked_for = [log_mel(sound, DECODER_BANDS) for sound in sounds]
    for name, way in (("ours", inverted), ("theirs", lambda bands: peers(peer, bands))):
        errors = [error(way(bands), bands) for bands in asked_for]
        print(f"energies of clear speech by {name}: {np.mean(errors):.3f} nepers off")


def timed(way: Callable[..., Any], items: list[Any]) -> tuple[float, list[Any]]:
    """CPU seconds for all of them, and what was made."""
    way(items[0])  # what is loaded or planned once
    began = time.process_time()
    made = [way(each) for each in items]
    return time.process_time() - began, made


def report(name: str, seconds: float, took: float) -> None:
    print(f"{name}: {seconds / took:.0f} times real time", flush=True)


def encoded(sound: FloatArray) -> IntArray:
    stream = TokenStream(shipped_codec())
    return np.concatenate([stream.push(sound), stream.flush()])


def spoken(tokens: IntArray) -> FloatArray:
    stream = shipped_codec().decoder.stream()
    latents = shipped_codec().books.latents(tokens[:, None])
    return np.concatenate([stream.push(latents), stream.flush()])


def inverted(bands: FloatArray) -> FloatArray:
    stream = GriffinLim(DECODER_BANDS)
    return np.concatenate([stream.push(bands), stream.flush()])


def protected(sound: FloatArray, rate: int) -> FloatArray:
    anonymiser = make("usc", Utterance(rate))
    return np.concatenate([anonymiser.process(sound), anonymiser.flush()])


def opus(sound: FloatArray) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, sound, RATE, format="OGG", subtype="OPUS")
    return file.getvalue()


def unpacked(held: bytes) -> FloatArray:
    return np.asarray(soundfile.read(io.BytesIO(held), dtype="float32")[0])


def peers(way: torch.nn.Module, bands: FloatArray) -> FloatArray:
    """The same spectra by the peer, whose frames are centred on their first sample."""
    with torch.inference_mode():
        made = way(torch.from_numpy(magnitudes(bands)).T)
    return np.asarray(made)


def error(sound: FloatArray, asked: FloatArray) -> float:
    """Nepers of energy, at the place where they fit best."""
    loud = asked > np.log(1e3 * FLOOR)
    found = []
    for begin in (0, WIDTH // 2, (FFT - WIDTH) // 2):
        padded = np.pad(sound, (begin, WIDTH + FFT))
        found.append(np.abs(log_mel(padded, DECODER_BANDS)[: len(asked)] - asked)[loud].mean())
    return float(min(found))


if __name__ == "__main__":
    main()
