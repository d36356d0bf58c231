"""Hear every chapter of a corpus once and keep the frames.

    python -m benchmarks.hear ../shared/speech FRAMES

Writes FRAMES/CORPUS/SPEAKER/CHAPTER.npz for every recording that SPEECH/manifest.csv lists (of the
LibriSpeech sets), one a processor at a time, and skips what is there already. ``--rate 8000`` hears
them through a telephone's band. `build_reference` works on such a folder.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
import soxr

from monitor.features.extractor import Extractor
from monitor.features.registry import make
from monitor.features.tracks import join_frames
from monitor.sources.file import File
from monitor.sources.frames import write_frames
from monitor.types import Block, Frames

CORPORA = ("train-clean-5", "train-clean-100", "dev-clean")


def chapters(speech: Path, corpora: Sequence[str] = CORPORA) -> list[dict[str, str]]:
    """Rows of the manifest: path, corpus, speaker, gender, chapter, seconds."""
    with (speech / "manifest.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["corpus"] in corpora]


MOST_SECONDS = 330.0
"""Of a chapter: enough for a template of 100 s and a test of 120 s of speech."""
LONGER = {"134315": 620.0}
"""The demo's."""


def hear(path: Path, features: Sequence[str], seconds: float, rate: int | None = None) -> Frames:
    """All frames of the first ``seconds``, resampled first where a rate is given."""
    extractor = Extractor(make(features))
    whole: Frames | None = None
    stream: soxr.ResampleStream | None = None
    source = File(path)
    longer = source.seconds is not None and source.seconds > seconds
    for block in File(path, end_seconds=seconds) if longer else source:
        if not isinstance(block, Block):
            raise SystemExit(f"{path.name}: {block}")
        if rate is not None:
            stream = stream or soxr.ResampleStream(block.rate, rate, 1, dtype="float32")
            mono = np.asarray(block.samples, np.float32).reshape(-1)
            block = Block(stream.resample_chunk(mono), rate)
        run = extractor.process(block)
        whole = run if whole is None else join_frames(whole, run)
    last = extractor.flush()
    return last if whole is None else join_frames(whole, last)


def keep(
    source: Path, target: Path, features: Sequence[str], seconds: float, rate: int | None
) -> float:
    """Hear one recording and write its frames; CPU seconds."""
    began = time.process_time()
    if "identity" in features:
        import torch

        torch.set_num_threads(1)
    frames = hear(source, features, seconds, rate)
    made = {feature.name: feature for feature in make(features)}
    target.parent.mkdir(parents=True, exist_ok=True)
    write_frames(
        target,
        frames.speech,
        frames.tracks,
        {name: each.size for name, each in made.items()},
        {name: each.frame_seconds for name, each in made.items()},
    )
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("speech", type=Path)
    parser.add_argument("frames", type=Path)
    parser.add_argument("--features", default="f0,phones,identity")
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--rate", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    features = given.features.split(",")
    rows = chapters(given.speech, given.corpora.split(","))
    todo = []
    for row in sorted(rows, key=lambda row: -float(row["seconds"])):
        target = (given.frames / row["path"]).with_suffix(".npz")
        if not target.exists():
            todo.append((row, target))
    began, audio = time.monotonic(), 0.0
    with ProcessPoolExecutor(given.jobs) as pool:
        running = {
            pool.submit(
                keep,
                given.speech / row["path"],
                target,
                features,
                LONGER.get(row["chapter"], MOST_SECONDS),
                given.rate,
            ): row
            for row, target in todo
        }
        for done in as_completed(running):
            audio += float(running[done]["seconds"])
            took = time.monotonic() - began
            print(
                f"{running[done]['path']}: {done.result():.1f} s of CPU; "
                f"{audio / 60:.0f} min heard in {took / 60:.1f} min",
                file=sys.stderr,
            )


if __name__ == "__main__":
    main()
