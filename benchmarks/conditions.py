"""How well the condition of a sound is estimated, on real readers made worse by known amounts.

    python -m benchmarks.conditions ../shared/speech [--jobs 2]

Readers of LibriSpeech pass through rooms (image method: J. B. Allen, D. A. Berkley, 1979; each
impulse response is stretched to the very RT60), noise, a telephone band with mu-law, clipping, and
MP3 and Opus (ffmpeg). The estimators and thresholds were chosen on every other reader; what is
printed is of the rest. Then sessions of one reader, nothing done to them, are compared with each
other: how often they are called different, and how often the same sessions are after a telephone,
a room, noise or clipping.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr
from scipy.signal import butter, fftconvolve, sosfilt

from monitor.features.channel import ConditionRows
from monitor.maths.condition import WIDEST_HZ, Condition, condition_of, list_mismatches

RATE = 16000
SECONDS = 30.0
SPEED_OF_SOUND = 343.0
SETS = ("dev-clean", "train-clean-5", "train-clean-100")


def rows_of(speech: Path, *, judged: bool) -> list[dict[str, str]]:
    """Chapters of a minute or more of every other reader: those to choose by, or to judge by."""
    with (speech / "manifest.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["corpus"] in SETS]
    readers = sorted({row["speaker"] for row in rows})[judged::2]
    return [row for row in rows if row["speaker"] in readers and float(row["seconds"]) >= 65]


def cut(path: Path, start: float = 5.0, seconds: float = SECONDS) -> np.ndarray:
    """A stretch of a recording at 16 kHz."""
    with soundfile.SoundFile(path) as file:
        samples = file.read(round((start + seconds) * RATE), dtype="float64")
    return np.asarray(samples[round(start * RATE) :])


def described(samples: np.ndarray, rate: int = RATE) -> Condition:
    """What a recording sounds like."""
    sound = samples.astype(np.float32)
    rows = ConditionRows(rate).process(sound[:, None], sound).values
    return condition_of(rows.sum(axis=0, dtype=np.int64))


@lru_cache(maxsize=64)
def room(rt60: float, metres: float, seed: int) -> np.ndarray:
    """Impulse response of a box of 50 to 170 m3, source and microphone so far apart."""
    rng = np.random.default_rng(seed)
    size = np.array([rng.uniform(5, 8), rng.uniform(4, 6), rng.uniform(2.5, 3.5)])
    volume = size.prod()
    surface = 2 * (size[0] * size[1] + size[0] * size[2] + size[1] * size[2])
    reflection = np.exp(-0.161 * volume / (surface * rt60) / 2)  # Eyring
    source = microphone = np.zeros(3)
    while min(source.min(), (size - source).min()) < 0.3:
        microphone = rng.uniform(0.5, size - 0.5)
        direction = rng.standard_normal(3) * (1, 1, 0.2)
        source = microphone + metres * direction / np.linalg.norm(direction)
    count = round(1.1 * rt60 * RATE)
    axes = []
    for place, ear, length in zip(source, microphone, size, strict=True):
        reach = int(np.ceil(SPEED_OF_SOUND * count / RATE / (2 * length)))
        images = np.arange(-reach, reach + 1)
        offsets = [sign * place + 2 * images * length - ear for sign in (1, -1)]
        bounces = [np.abs(images - p) + np.abs(images) for p in (0, 1)]
        axes.append((np.concatenate(offsets), np.concatenate(bounces)))
    (x, nx), (y, ny), (z, nz) = axes
    response = np.zeros(count)
    for along, bounced in zip(x, nx, strict=True):
        distance = np.sqrt(along**2 + (y**2)[:, None] + z**2)
        sample = distance / SPEED_OF_SOUND * RATE
        near = sample < count - 2
        size_of = reflection ** (bounced + ny[:, None] + nz)[near] / np.maximum(distance[near], 0.1)
        whole = sample[near].astype(int)
        part = sample[near] - whole
        response += np.bincount(whole, size_of * (1 - part), count)[:count]
        response += np.bincount(whole + 1, size_of * part, count)[:count]
    response = sosfilt(butter(2, 60, "high", fs=RATE, output="sos"), response)
    left = 10 * np.log10(np.cumsum(response[::-1] ** 2)[::-1] / np.sum(response**2) + 1e-12)
    took = 2 * (np.argmax(left < -35) - np.argmax(left < -5)) / RATE
    seconds = np.arange(count) / RATE
    return np.asarray(response * np.exp(-np.log(1e3) * seconds * (1 / rt60 - 1 / took)))


def in_room(sound: np.ndarray, rt60: float, metres: float, seed: int) -> np.ndarray:
    """A voice in a room, as loud as before."""
    heard = fftconvolve(sound, room(rt60, metres, seed))[: sound.size]
    return np.asarray(heard * np.sqrt(np.mean(sound**2) / np.mean(heard**2)))


def noisy(sound: np.ndarray, decibels: float, noise: np.ndarray) -> np.ndarray:
    """A voice so far above a noise; its level is that of the half of its frames that is louder."""
    powers = np.sort(np.mean(sound[: sound.size // 320 * 320].reshape(-1, 320) ** 2, axis=1))
    speech = powers[powers.size // 2 :].mean()
    return np.asarray(sound + noise * np.sqrt(speech / 10 ** (decibels / 10) / np.mean(noise**2)))


def white(size: int, seed: int) -> np.ndarray:
    """Gaussian noise."""
    return np.random.default_rng(seed).standard_normal(size)


@lru_cache(maxsize=8)
def babble(speech: Path, size: int, seed: int) -> np.ndarray:
    """Eight people of the background set at once, equally loud."""
    rng = np.random.default_rng(seed)
    files = sorted((speech / "background").glob("*/*.opus"))
    total = np.zeros(size)
    for number in rng.choice(len(files), 8, replace=False):
        voice, _ = soundfile.read(files[number])
        turned = np.roll(voice, rng.integers(voice.size))
        total += np.resize(turned / np.sqrt(np.mean(voice**2)), size)
    return total


def clipped(sound: np.ndarray, decibels: float) -> np.ndarray:
    """Cut off so far below its largest sample."""
    top = np.abs(sound).max() / 10 ** (decibels / 20)
    return np.asarray(np.clip(sound, -top, top))


def share_clipped(sound: np.ndarray, decibels: float) -> float:
    """Share of the samples that this cuts off, in seconds with any sound."""
    top = np.abs(sound).max() / 10 ** (decibels / 20)
    return float(np.mean(np.abs(sound) >= top))


def telephone(sound: np.ndarray) -> np.ndarray:
    """300 to 3400 Hz in mu-law, at 8 kHz."""
    narrow = soxr.resample(sound, RATE, 8000)
    narrow = sosfilt(butter(4, [300, 3400], "band", fs=8000, output="sos"), narrow)
    narrow = narrow / np.abs(narrow).max()
    code = np.round(127 * np.sign(narrow) * np.log1p(255 * np.abs(narrow)) / np.log(256)) / 127
    return np.asarray(np.sign(code) * (256 ** np.abs(code) - 1) / 255 / 2)


def coded(sound: np.ndarray, codec: str, kilobits: int) -> np.ndarray:
    """Through MP3 or Opus and back."""
    how = {"mp3": ("libmp3lame", "mp3"), "opus": ("libopus", "ogg")}[codec]
    plain = ("-f", "f32le", "-ar", str(RATE), "-ac", "1")
    made = _ffmpeg(sound.astype("<f4").tobytes(), *plain, "-i", "-", "-c:a", how[0],
                   "-b:a", f"{kilobits}k", "-f", how[1], "-")  # fmt: skip
    heard = _ffmpeg(made, "-i", "-", *plain, "-")
    return np.frombuffer(heard, "<f4").astype(np.float64)


def _ffmpeg(sound: bytes, *options: str) -> bytes:
    command = ["ffmpeg", "-v", "error", *options]
    return subprocess.run(command, input=sound, stdout=subprocess.PIPE, check=True).stdout


def versions(
    sound: np.ndarray, speech: Path, seed: int
) -> Iterator[tuple[str, np.ndarray, int, dict[str, float]]]:
    """The same speech in many conditions: name, samples, rate, and the figures that are known."""
    yield "as it is", sound, RATE, {}
    for rt60 in (0.2, 0.3, 0.6, 1.0):
        for metres in (1.0, 2.0, 4.0):
            heard = in_room(sound, rt60, metres, 10 * seed + int(metres))
            yield f"room {rt60:g} s", heard, RATE, {"reverberation_seconds": rt60}
    noises: dict[str, Callable[[int], np.ndarray]] = {
        "white noise": partial(white, seed=seed),
        "babble": lambda size: babble(speech, size, seed),
    }
    for name, noise in noises.items():
        for snr in (0, 5, 10, 15, 20):
            heard = noisy(sound, snr, noise(sound.size))
            yield f"{name} {snr} dB", heard, RATE, {"snr_db": float(snr)}
    narrow = telephone(sound)
    yield "telephone", narrow, 8000, {"bandwidth_hz": 3400.0}
    again = soxr.resample(narrow, 8000, 44100)
    yield "telephone at 44.1 kHz", again, 44100, {"bandwidth_hz": 3400.0}
    echo = in_room(sound, 0.6, 1.5, seed)
    yield (
        "room 0.6 s, telephone",
        telephone(echo),
        8000,
        {
            "bandwidth_hz": 3400.0,
            "reverberation_seconds": 0.6,
        },
    )
    loud = noisy(echo, 20, babble(speech, echo.size, seed))
    yield "room 0.6 s, babble 20 dB", loud, RATE, {"reverberation_seconds": 0.6}
    for decibels in (6, 12, 18, 24):
        share = share_clipped(sound, decibels)
        yield f"clipped by {decibels} dB", clipped(sound, decibels), RATE, {"clipping": share}
        quiet = 0.37 * clipped(sound, decibels)
        yield f"clipped by {decibels} dB, then softer", quiet, RATE, {"clipping": share}
    yield "clipped by 12 dB, then MP3", coded(clipped(sound, 12), "mp3", 64), RATE, {}
    yield "MP3 32 kb/s", coded(sound, "mp3", 32), RATE, {}
    yield "Opus 12 kb/s", coded(sound, "opus", 12), RATE, {}


def errors_of(speech: Path, task: tuple[int, dict[str, str]]) -> list[tuple[str, Any, Any]]:
    """What is known and estimated of one reader in each condition."""
    seed, row = task
    sound = cut(speech / row["path"])
    return [
        (name, known, described(heard, rate).record())
        for name, heard, rate, known in versions(sound, speech, seed)
    ]


def session_of(speech: Path, row: dict[str, str]) -> tuple[dict[str, str], list[Any]]:
    """What a minute of a session sounds like, and 10, 15 and 30 s of it; then made worse."""
    sound = cut(speech / row["path"], seconds=60.0)
    parts = [sound, *(sound[: round(seconds * RATE)] for seconds in (10, 15, 30))]
    seed = int(row["chapter"])
    worse = {
        "telephone": (telephone(sound), 8000),
        "room 0.6 s": (in_room(sound, 0.6, 2.0, seed % 16), RATE),
        "babble 10 dB": (noisy(sound, 10, babble(speech, sound.size, seed % 8)), RATE),
        "babble 15 dB": (noisy(sound, 15, babble(speech, sound.size, seed % 8)), RATE),
        "clipped by 12 dB": (clipped(sound, 12), RATE),
        "clipped by 24 dB": (clipped(sound, 24), RATE),
    }
    heard = {name: described(*each) for name, each in worse.items()}
    return row, [[described(part) for part in parts], heard]


def main() -> None:
    parser = argparse.ArgumentParser(description="Errors of what a sound is said to be like.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--chosen", action="store_true", help="the readers that were chosen by")
    given = parser.parse_args()
    rows = rows_of(given.speech, judged=not given.chosen)
    one_each = list({row["speaker"]: row for row in rows}.values())
    with Pool(given.jobs) as pool:
        made = pool.map(partial(errors_of, given.speech), list(enumerate(one_each)), 1)
        sessions = pool.map(partial(session_of, given.speech), rows, 1)
    print(f"{len(one_each)} readers, {SECONDS:g} s each")
    table = _table([each for reader in made for each in reader])
    for name, figures in table.items():
        print(f"{name:28}", "  ".join(f"{key} {value}" for key, value in figures.items()))
    print(json.dumps(_compared(sessions), indent=1))


def _table(made: list[tuple[str, Any, Any]]) -> dict[str, dict[str, str]]:
    """By condition: mean and spread of each figure, and the RMS error of what is known."""
    table: dict[str, dict[str, str]] = {}
    for name in dict.fromkeys(each[0] for each in made):
        mine = [(known, found) for condition, known, found in made if condition == name]
        table[name] = {}
        for key in mine[0][1]:
            values = [found[key] for _, found in mine if found[key] is not None]
            if not values:
                table[name][key] = "unknown"
                continue
            said = f"{np.mean(values):.3g} (sd {np.std(values):.2g})"
            errors = [
                f[key] - known[key] for known, f in mine if key in known and f[key] is not None
            ]
            if errors:
                said += (
                    f" error {np.mean(errors):+.2g}, RMS {np.sqrt(np.mean(np.square(errors))):.2g}"
                )
            if len(values) < len(mine):
                said += f" [{len(values)} of {len(mine)} known]"
            table[name][key] = said
    return table


def _compared(sessions: list[Any]) -> dict[str, Any]:
    """Of pairs of sessions of one reader the share that is called different, and by what."""
    clean: dict[str, list[int]] = {}
    worse: dict[str, list[int]] = {}
    by: dict[str, int] = {}
    for row, (parts, _) in sessions:
        for other, (streams, heard) in sessions:
            if other["speaker"] != row["speaker"] or other["chapter"] == row["chapter"]:
                continue
            for seconds, stream in zip((60, 10, 15, 30), streams, strict=True):
                different = list_mismatches(stream, parts[0])
                clean.setdefault(f"{seconds} s", []).append(bool(different))
                for name in different:
                    by[name] = by.get(name, 0) + 1
            for name, stream in heard.items():
                worse.setdefault(name, []).append(bool(list_mismatches(stream, parts[0])))
    narrow = [
        row["path"] for row, (parts, _) in sessions if (parts[0].bandwidth_hz or WIDEST_HZ) < 4800
    ]
    return {
        "pairs of sessions": len(clean["60 s"]),
        "called different though nothing was done": {k: _share(v) for k, v in clean.items()},
        "by": by,
        "called different when made worse": {k: _share(v) for k, v in worse.items()},
        "taken for narrow": narrow,
    }


def _share(found: list[int]) -> str:
    return f"{sum(found)} of {len(found)}"


if __name__ == "__main__":
    main()
