"""What trackers hear of the pitch that an anonymiser left as it was.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.pitch ../shared/speech/dev-clean
        [--readers 20] [--methods mcadams:1,mcadams:0.8,...]

Of each reader with two chapters the first 45 s of both. Of each tracker (f0, f0_robust, and DIO
with StoneMask of the WORLD vocoder, where pyworld is installed) and method: the share of the clear
recording's voiced frames that are voiced still, of these the share that is half an octave off or
more, Pearson's correlation, and the share of speech decisions that stay. Means over recordings.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import soundfile

from monitor.anonymisers import Utterance, make
from monitor.corpus import Corpus, find
from monitor.features.extractor import Resampler, VoiceActivity
from monitor.features.f0 import F0, LOWEST_LAG, RATE, RobustF0
from monitor.sources import File
from monitor.types import Block, BoolArray, FloatArray

Tracker = Callable[[FloatArray, int], FloatArray]
AUDIO_SECONDS = 45.0
VAD_RATE = 16_000


def main() -> None:
    words = argparse.ArgumentParser(description="Pitch through anonymisers.")
    words.add_argument("speech", type=Path)
    words.add_argument("--readers", type=int, default=20)
    words.add_argument(
        "--methods", default="mcadams:1,mcadams:0.9,mcadams:0.8,mcadams:0.5,mcadams:random"
    )
    asked = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        excerpts(find(asked.speech), Path(folder), asked.readers)
        paths = sorted(Path(folder).rglob("*.flac"))
        for method in asked.methods.split(","):
            found = [row(path, path.relative_to(folder).as_posix(), method) for path in paths]
            for place, name in enumerate(trackers()):
                rows = np.array([each[0][place] for each in found])
                seen = np.isfinite(rows)
                with np.errstate(invalid="ignore"):  # nothing was heard
                    kept, off, correlation = np.where(seen, rows, 0).sum(0) / seen.sum(0)
                print(
                    f"{method:15} {name:10} voiced still {kept:.2f}  half an octave off {off:.2f}  "
                    f"correlation {correlation:.2f}",
                    flush=True,
                )
            print(f"{method:15} speech decisions that stay {np.mean([f[1] for f in found]):.2f}")


def excerpts(corpus: Corpus, folder: Path, readers: int) -> None:
    """The beginnings of two chapters of each reader."""
    several = [name for name in corpus.speakers if len(corpus.sessions(name)) > 1]
    for name in several[:readers]:
        for session, (path, *_) in list(corpus.sessions(name).items())[:2]:
            with File(path, end_seconds=AUDIO_SECONDS) as source:
                samples = np.concatenate([b.samples for b in source if isinstance(b, Block)])
            target = folder / name / f"{session}.flac"
            target.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(target, samples, source.rate)


def trackers() -> dict[str, Tracker]:
    found: dict[str, Tracker] = {"f0": of(F0), "f0_robust": of(RobustF0)}
    try:
        import pyworld  # type: ignore[import-untyped]
    except ImportError:
        return found

    def dio(samples: FloatArray, rate: int) -> FloatArray:
        wave = samples.astype(np.float64)
        pitch, at = pyworld.dio(wave, rate, frame_period=10.0, f0_floor=65.0, f0_ceil=421.0)
        return np.asarray(pyworld.stonemask(wave, pitch, at, rate))

    return {**found, "DIO": dio}


def of(feature: type[F0]) -> Tracker:
    def track(samples: FloatArray, rate: int) -> FloatArray:
        resampler = Resampler(rate, RATE)
        heard = np.concatenate([resampler.process(samples), resampler.flush()])
        found = feature().process(heard)
        pitch = np.zeros(len(heard) * 100 // RATE + 8)
        pitch[found.ticks] = RATE / (found.values + LOWEST_LAG)
        return pitch

    return track


@cache
def heard_clear(path: Path) -> tuple[FloatArray, int, list[FloatArray]]:
    samples, rate = soundfile.read(path, dtype="float32")
    return samples, rate, [track(samples, rate) for track in trackers().values()]


def row(path: Path, name: str, method: str) -> tuple[list[tuple[float, float, float]], float]:
    clear, rate, tracks = heard_clear(path)
    anonymiser = make(method, Utterance(rate, name, path.parent.name))
    safe = np.concatenate([anonymiser.process(clear), anonymiser.flush()])
    decisions = [speech(each, rate) for each in (clear, safe)]
    rows = []
    for here, track in zip(tracks, trackers().values(), strict=True):
        there = track(safe, rate)
        both = (here > 0) & (there > 0)
        off = np.abs(np.log2(there[both] / here[both])) > 0.4
        enough = np.count_nonzero(both) > 30
        rows.append(
            (
                float(np.count_nonzero(both) / np.count_nonzero(here)),
                float(off.mean()) if enough else np.nan,
                float(np.corrcoef(here[both], there[both])[0, 1]) if enough else np.nan,
            )
        )
    return rows, float(np.mean(decisions[0] == decisions[1]))


def speech(samples: FloatArray, rate: int) -> BoolArray:
    resampler = Resampler(rate, VAD_RATE)
    heard = np.concatenate([resampler.process(samples), resampler.flush()])
    return VoiceActivity(VAD_RATE, ticks=1).process(heard)


if __name__ == "__main__":
    main()
