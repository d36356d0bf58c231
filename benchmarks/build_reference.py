"""Build the population that ships with the package from real readers.

    python -m benchmarks.build_reference ../shared/speech

Reads SPEECH/manifest.csv (columns path, corpus, speaker, chapter, seconds) and writes
monitor/population/reference/population.npz and demo.npz: pitch histograms, rank laws and the frames
of the demo; no audio. Every reader of the three LibriSpeech sets with at least three minutes is
enrolled from one chapter; where there are several, calibration draws test and template from
different ones.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

import numpy as np

from monitor.corpus.finding import find
from monitor.features.extractor import Extractor
from monitor.features.registry import make
from monitor.population.population import Population
from monitor.population.reference import demo_frames
from monitor.sources.file import File
from monitor.sources.frames import write_frames
from monitor.training.calibrating import LENGTHS, TEMPLATE_LENGTHS, calibrate
from monitor.training.enrolling import enrol
from monitor.training.voices import collect
from monitor.types import Block, Track

CORPORA = ("train-clean-5", "train-clean-100", "dev-clean")
TEMPLATE_SPEECH_SECONDS = 100.0
"""About two minutes of audio."""
ENROL_AUDIO_SECONDS = 145.0
"""The shortest chapter that holds that much speech."""
DEMO_CHAPTER = "134315"
DEMO_SECONDS = 600.0
ABOUT = (
    "Pitch templates and rank laws of LibriVox volunteers who read for LibriSpeech (train-clean, "
    "dev-clean): V. Panayotov, G. Chen, D. Povey, S. Khudanpur, 'Librispeech: an ASR corpus based "
    "on public domain audio books', ICASSP 2015, CC BY 4.0. Derived numbers, no audio. dev-clean "
    "came as MP3: its codec may help to tell its readers from the rest."
)


def main(speech: Path) -> None:
    rows = [
        row
        for row in csv.DictReader((speech / "manifest.csv").open(encoding="utf-8"))
        if row["corpus"] in CORPORA
    ]
    readers = sorted({row["speaker"] for row in rows}, key=int)
    enrolment = [_chapter([r for r in rows if r["speaker"] == name]) for name in readers]
    with tempfile.TemporaryDirectory() as folder:
        print(f"enrolling {len(readers)} readers ...")
        made = enrol(
            find(_manifest(Path(folder) / "enrol.csv", speech, enrolment)),
            seconds=TEMPLATE_SPEECH_SECONDS,
        )
        print(f"listening to {len(rows)} chapters ...")
        voices, shapes, problems = collect(find(_manifest(Path(folder) / "all.csv", speech, rows)))
    for problem in (*made.problems, *problems):
        raise SystemExit(problem)
    print("fitting laws ...")
    own = made.population.scoring().seconds
    learnt = calibrate(
        voices, shapes, lengths=LENGTHS, template_lengths=sorted({*TEMPLATE_LENGTHS, own})
    )
    population = Population(
        made.population.speakers,
        made.population.offsets,
        made.population.features,
        learnt.laws,
        about=ABOUT,
    )
    target = demo_frames().with_name("population.npz")
    population.save(target)
    target.chmod(0o644)
    print(f"{target.name}: {len(population)} readers, {target.stat().st_size / 1e3:.0f} kB")
    for law in population.laws:
        print(f"  {law.session}-session law of {'+'.join(law.features)}: {law.speakers} readers")
    _demo(speech / next(r["path"] for r in rows if r["chapter"] == DEMO_CHAPTER))


def _chapter(chapters: list[dict[str, str]]) -> dict[str, str]:
    """The chapter to enrol: the shortest that is long enough; longer ones stay for tests."""
    long = [row for row in chapters if float(row["seconds"]) >= ENROL_AUDIO_SECONDS]
    return min(long or [max(chapters, key=_seconds)], key=_seconds)


def _seconds(row: dict[str, str]) -> float:
    return float(row["seconds"])


def _manifest(path: Path, speech: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "speaker", "session"])
        for row in rows:
            writer.writerow([(speech / row["path"]).resolve(), row["speaker"], row["chapter"]])
    return path


def _demo(path: Path) -> None:
    """Frames of the first ten minutes of the demo reader's other chapter."""
    extractor = Extractor(make(("f0",)))
    runs = [
        extractor.process(block)
        for block in File(path, end_seconds=DEMO_SECONDS)
        if isinstance(block, Block)
    ]
    runs.append(extractor.flush())
    tracks = [run.tracks["f0"] for run in runs]
    pitch = Track(
        np.concatenate([track.ticks for track in tracks]).astype(np.int32),
        np.concatenate([track.values for track in tracks]).astype(np.uint8),
    )
    feature = extractor.features[0]
    write_frames(
        demo_frames(),
        np.concatenate([run.speech for run in runs]),
        {"f0": pitch},
        {"f0": feature.size},
        {"f0": feature.frame_seconds},
    )
    demo_frames().chmod(0o644)
    print(f"{demo_frames().name}: {demo_frames().stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
