"""Accuracy of the estimated acoustic condition, on readers degraded by known amounts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soxr

from benchmarks.page import Page, benchmark
from benchmarks.readers import chapters, last_chapters
from monitor.jobs import cores
from monitor.maths.condition import Condition, list_mismatches
from recipes.sounds import (
    RATE,
    babble,
    clipped,
    cut,
    in_room,
    measure_clipped_fraction,
    measure_condition,
    noisy,
    telephone,
    white,
)

BAND, ROOM, NOISE, CLIPPING = "bandwidth_hz", "reverberation_seconds", "snr_db", "clipping"
Row = dict[str, str]


class Version(NamedTuple):
    """Speech in a condition, with the true value of the estimate under ``key``."""

    name: str
    sound: np.ndarray
    key: str
    known: float
    rate: int = RATE


@benchmark()
def conditions(page: Page, speech: Path, *, jobs: int = cores()) -> None:
    """How accurate are acoustic condition estimates, and which sessions are called different?"""
    rows = chapters(speech)
    # the estimators were chosen on the other half of the readers
    readers = sorted({row["speaker"] for row in rows})[1::2]
    rows = [row for row in rows if row["speaker"] in readers and float(row["seconds"]) >= 65]
    with Pool(jobs) as pool:
        tasks = list(enumerate(last_chapters(rows)))
        estimates = pool.map(partial(estimate_conditions, speech), tasks, 1)
        sessions = pool.map(partial(measure_session, speech), rows, 1)
    page.note(f"{len(tasks)} readers, 30 s each")
    errors_by_condition: dict[str, list[tuple[float, float | None]]] = {}
    for name, known, found in (each for reader in estimates for each in reader):
        errors_by_condition.setdefault(name, []).append((known, found))
    page.table(
        "known | estimated: mean | RMS error | readers of whom it is told",
        create_error_rows(errors_by_condition),
    )
    counts: dict[str, list[bool]] = {}
    for row, clean, _ in sessions:
        for other, streams, degraded in sessions:
            if other["speaker"] == row["speaker"] and other["chapter"] != row["chapter"]:
                for name, stream in (*streams.items(), *degraded.items()):
                    differs = bool(list_mismatches(stream, clean["nothing, 60 s"]))
                    counts.setdefault(name, []).append(differs)
    page.table(
        "done to one of two sessions | called different",
        ([name, f"{sum(found)} of {len(found)}"] for name, found in counts.items()),
    )


def create_versions(sound: np.ndarray, speech: Path, seed: int) -> Iterator[Version]:
    """Yield the same speech in many conditions."""
    for rt60 in (0.2, 0.3, 0.6, 1.0):
        for metres in (1.0, 2.0, 4.0):
            reverberant = in_room(sound, rt60, metres, 10 * seed + int(metres))
            yield Version(f"a room of {rt60:g} s", reverberant, ROOM, rt60)
    noises = {"white noise": white(sound.size, seed), "babble": babble(speech, sound.size, seed)}
    for name, noise in noises.items():
        for snr in (0, 5, 10, 15, 20):
            yield Version(f"{name} at {snr} dB", noisy(sound, snr, noise), NOISE, snr)
    narrow, echo = telephone(sound), in_room(sound, 0.6, 1.5, seed)
    yield Version("a telephone's band to 3400 Hz", narrow, BAND, 3400.0, 8000)
    resampled = soxr.resample(narrow, 8000, 44100)
    yield Version("the same in a file of 44.1 kHz", resampled, BAND, 3400.0, 44100)
    yield Version("a room of 0.6 s, a telephone", telephone(echo), ROOM, 0.6, 8000)
    loud = noisy(echo, 20, babble(speech, echo.size, seed))
    yield Version("a room of 0.6 s, babble at 20 dB", loud, ROOM, 0.6)
    for decibels in (6, 12, 18, 24):
        share, flat = measure_clipped_fraction(sound, decibels), clipped(sound, decibels)
        yield Version(f"clipped by {decibels} dB", flat, CLIPPING, share)
        yield Version(f"clipped by {decibels} dB, then softer", 0.37 * flat, CLIPPING, share)


def estimate_conditions(
    speech: Path, task: tuple[int, Row]
) -> list[tuple[str, float, float | None]]:
    """Return the name, true value and estimate of each condition of one reader."""
    seed, row = task
    return [
        (each.name, each.known, measure_condition(each.sound, each.rate).record()[each.key])
        for each in create_versions(cut(speech / row["path"]), speech, seed)
    ]


def create_error_rows(
    errors_by_condition: dict[str, list[tuple[float, float | None]]],
) -> Iterator[list[str]]:
    for name, pairs in errors_by_condition.items():
        estimated = np.array([(known, found) for known, found in pairs if found is not None])
        known, found = estimated.T
        rms_error = np.sqrt(np.mean((found - known) ** 2))
        count = f"{len(estimated)} of {len(pairs)}"
        yield [name, f"{found.mean():.3g} of {known.mean():.3g}", f"{rms_error:.2g}", count]


def measure_session(
    speech: Path, row: Row
) -> tuple[Row, dict[str, Condition], dict[str, Condition]]:
    """Return a session's row, the conditions of its beginnings, and of its degraded minute."""
    sound = cut(speech / row["path"], seconds=60.0)
    beginnings = {f"nothing, {s} s": measure_condition(sound[: s * RATE]) for s in (60, 10, 15, 30)}
    seed = int(row["chapter"])
    noise = babble(speech, sound.size, seed % 8)
    degraded = {
        "a telephone": measure_condition(telephone(sound), 8000),
        "a room of 0.6 s": measure_condition(in_room(sound, 0.6, 2.0, seed % 16)),
        **{f"babble at {snr} dB": measure_condition(noisy(sound, snr, noise)) for snr in (10, 15)},
        **{f"clipped by {by} dB": measure_condition(clipped(sound, by)) for by in (12, 24)},
    }
    return row, beginnings, degraded
