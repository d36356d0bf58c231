"""Build the population that ships with the package from real readers.

    python -m benchmarks.hear ../shared/speech FRAMES
    python -m benchmarks.build_reference ../shared/speech FRAMES

The first hears the readers, which takes the better part of an hour; the second writes
monitor/population/reference/population.npz and demo.npz: templates and rank laws of pitch, phones
and speaker embeddings, and the frames of the demo; no audio. Every reader of the three LibriSpeech
sets is enrolled from one chapter; where there are several, calibration draws test and template
from different ones.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.hear import chapters
from monitor.corpus.finding import find
from monitor.population.population import FeatureTemplates, Population, Speaker
from monitor.population.reference import demo_frames
from monitor.sources.frames import FramesFile, write_frames
from monitor.sources.identity import recording_hashes
from monitor.training.calibrating import LENGTHS, calibrate
from monitor.training.enrolling import enrol
from monitor.training.voices import collect
from monitor.types import Frames, Track

TEMPLATE_LENGTHS = (10.0, 30.0, 60.0)
TEMPLATE_SPEECH_SECONDS = 100.0
"""About two minutes of audio."""
ENROL_AUDIO_SECONDS = 145.0
"""The shortest chapter that holds that much speech."""
DEMO_CHAPTER = "134315"
DEMO_TICKS = 60_000
ABOUT = (
    "Templates of pitch, phones and speaker embeddings, and rank laws, of LibriVox volunteers who "
    "read for LibriSpeech (train-clean, dev-clean): V. Panayotov, G. Chen, D. Povey, S. Khudanpur, "
    "'Librispeech: an ASR corpus based on public domain audio books', ICASSP 2015, CC BY 4.0. "
    "Derived numbers, no audio. dev-clean came as MP3: its codec may help to tell its readers from "
    "the rest."
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the shipped population.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("frames", type=Path)
    given = parser.parse_args()
    rows = chapters(given.speech)
    readers = sorted({row["speaker"] for row in rows}, key=int)
    enrolment = [_chapter([r for r in rows if r["speaker"] == name]) for name in readers]
    with tempfile.TemporaryDirectory() as folder:
        made = enrol(
            find(_manifest(Path(folder) / "enrol.csv", given.frames, enrolment)),
            seconds=TEMPLATE_SPEECH_SECONDS,
        )
        voices, shapes, problems = collect(
            find(_manifest(Path(folder) / "all.csv", given.frames, rows))
        )
    for problem in (*made.problems, *problems):
        raise SystemExit(problem)
    own = made.population.scoring().seconds
    learnt = calibrate(
        voices,
        shapes,
        lengths=LENGTHS,
        template_lengths=sorted({*TEMPLATE_LENGTHS, own}),
        prior=None,
        progress=lambda done, cells: print(f"\rcell {done} of {cells}", end="", file=sys.stderr),
    )
    population = Population(
        _known_by_their_audio(made.population, given.speech, enrolment),
        made.population.offsets,
        {name: _small(each) for name, each in made.population.features.items()},
        learnt.laws,
        about=ABOUT,
    )
    target = demo_frames().with_name("population.npz")
    population.save(target)
    target.chmod(0o644)
    print(f"\n{target.name}: {len(population)} readers, {target.stat().st_size / 1e3:.0f} kB")
    for law in population.laws:
        print(f"  {law.session}-session law of {'+'.join(law.features)}: {law.speakers} readers")
    demo = next(row for row in rows if row["chapter"] == DEMO_CHAPTER)
    _demo((given.frames / demo["path"]).with_suffix(".npz"))


def _chapter(rows: list[dict[str, str]]) -> dict[str, str]:
    """The chapter to enrol: the shortest that is long enough; longer ones stay for tests."""
    long = [row for row in rows if float(row["seconds"]) >= ENROL_AUDIO_SECONDS]
    return min(long or [max(rows, key=_seconds)], key=_seconds)


def _seconds(row: dict[str, str]) -> float:
    return float(row["seconds"])


def _manifest(path: Path, frames: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "speaker", "session"])
        for row in rows:
            source = (frames / row["path"]).with_suffix(".npz").resolve()
            writer.writerow([source, row["speaker"], row["chapter"]])
    return path


def _known_by_their_audio(
    population: Population, speech: Path, rows: list[dict[str, str]]
) -> list[Speaker]:
    """The speakers, with the fingerprints of the recordings instead of those of their frames."""
    paths = {row["speaker"]: speech / row["path"] for row in rows}
    return [
        Speaker(
            speaker.name,
            tuple(
                replace(
                    note,
                    label=paths[speaker.name].name,
                    hashes=recording_hashes(paths[speaker.name]),
                )
                for note in speaker.sources
            ),
        )
        for speaker in population.speakers
    ]


def _small(templates: FeatureTemplates) -> FeatureTemplates:
    """Embeddings in half precision: a cosine moves by less than 1e-4."""
    if templates.slices.dtype.kind != "f":
        return templates
    return replace(templates, slices=templates.slices.astype(np.float16))


def _demo(path: Path) -> None:
    """Frames of the first ten minutes of the demo reader's other chapter."""
    source = FramesFile(path)
    runs = [run for run in source if isinstance(run, Frames)]
    tracks = {}
    for name in source.features:
        parts = [run.tracks[name] for run in runs]
        ticks = np.concatenate([part.ticks for part in parts])
        early = ticks <= DEMO_TICKS
        values = np.concatenate([part.values for part in parts])[early]
        spans = [part.spans for part in parts if part.spans is not None]
        tracks[name] = Track(
            ticks[early].astype(np.int32),
            values.astype(np.float16 if values.dtype.kind == "f" else np.uint8),
            np.concatenate(spans)[early].astype(np.int32) if len(spans) == len(parts) else None,
        )
    write_frames(
        demo_frames(),
        np.concatenate([run.speech for run in runs])[:DEMO_TICKS],
        tracks,
        {name: size for name, (size, _, _) in source.features.items()},
        {name: seconds for name, (_, _, seconds) in source.features.items()},
    )
    demo_frames().chmod(0o644)
    print(f"{demo_frames().name}: {demo_frames().stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
