"""Hear every chapter of a corpus once and keep the frames.

    python -m benchmarks.hear ../shared/speech FRAMES

`--frames` of the LibriSpeech sets alone, and of as much of each chapter as the other benchmarks
use: FRAMES/CORPUS/SPEAKER/CHAPTER.npz. ``--rate 8000`` hears them through a telephone's band.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import soundfile
import soxr

from monitor.jobs import cores
from monitor.training.feature_extraction import HearingOptions, HearingOrder, keep

CORPORA = ("train-clean-5", "train-clean-100", "dev-clean")
BACKGROUND = "background"
"""Readers of the cohort."""
TRAINED = {"phones": "train-clean-5"}
"""Whose readers trained the network of a feature; that of voice none of them did."""


def chapters(speech: Path, corpora: Sequence[str] = CORPORA) -> list[dict[str, str]]:
    """Rows of the manifest: path, corpus, speaker, gender, chapter, seconds."""
    with (speech / "manifest.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["corpus"] in corpora]


def trainers(root: Path) -> dict[str, set[str]]:
    """By feature, who trained its network, of a folder of speech or of frames."""
    return {f: {each.name for each in (root / corpus).glob("*")} for f, corpus in TRAINED.items()}


MOST_SECONDS = 330.0
"""Of a chapter: enough for a template of 100 s and a test of 120 s of speech."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("speech", type=Path)
    parser.add_argument("frames", type=Path)
    parser.add_argument("--features", default="f0,phones,voice")
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--rate", type=int)
    parser.add_argument("--jobs", type=int, default=cores())
    given = parser.parse_args()
    rows = chapters(given.speech, given.corpora.split(","))
    features = given.features.split(",")
    hear_all(rows, given.speech, given.frames, features, given.jobs, given.rate)


def hear_all(
    rows: Sequence[dict[str, str]],
    speech: Path,
    frames: Path,
    features: Sequence[str],
    jobs: int,
    rate: int | None = None,
) -> None:
    """Hear what is not there yet of these chapters, the longest first."""
    rows = sorted(rows, key=lambda row: -float(row["seconds"]))
    wanted = [order(row, speech, frames) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        if rate is not None:
            wanted = [narrow(each, Path(folder), rate) for each in wanted]
        for kept in keep(wanted, HearingOptions(tuple(features), MOST_SECONDS), jobs):
            print(f"{kept.order.target}: {kept.seconds:.0f} s {kept.problem}", file=sys.stderr)


def order(row: dict[str, str], speech: Path, frames: Path) -> HearingOrder:
    """A chapter, and where its frames go."""
    target = (frames / row["path"]).with_suffix(".npz")
    return HearingOrder(speech / row["path"], target, row["speaker"], row["chapter"])


def narrow(wanted: HearingOrder, folder: Path, rate: int) -> HearingOrder:
    """The same of the recording as a telephone's band would have it."""
    path = folder / f"{wanted.speaker}-{wanted.session}.wav"
    samples, own = soundfile.read(wanted.source, dtype="float32", always_2d=True)
    mono = samples[: round(MOST_SECONDS * own)].mean(axis=1)
    soundfile.write(path, soxr.resample(mono, own, rate), rate, subtype="FLOAT")
    return replace(wanted, source=path)


if __name__ == "__main__":
    main()
