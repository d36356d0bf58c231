"""Extract frames of readers and of people at their own microphones, also under conditions.

    python -m recipes.frames ../shared/speech FRAMES [--rate 8000]

This writes FRAMES/CORPUS/SPEAKER/CHAPTER.npz for the LibriSpeech sets. Each file contains as much
of a chapter as the benchmarks and the shipped population use. ``--rate 8000`` limits the audio to a
telephone's band. `extract_people` joins each session of a person at their own microphone into one
recording. These people (Common Voice, CC0, with the ``manifest.csv`` of `recipes.voice.clips`)
never enrolled, so their frames stay private: only sums over many people are published.
`extract_groups` extracts both groups under conditions (`recipes.voice.world`).
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import orjson
import soundfile
import soxr

from monitor.features.channel import CONDITION
from monitor.features.extractor import Extractor
from monitor.features.registry import make
from monitor.jobs import cores
from monitor.maths.condition import ROW, Condition, condition_of
from monitor.networks.layers import RATE
from monitor.sources.file import File
from monitor.sources.frames import header_of
from monitor.training.frames_folder import ExtractionOptions, ExtractionTask, keep, write_manifest
from monitor.types import Block, FloatArray
from recipes.voice.clips import Person, people
from recipes.voice.world import conditions

CORPORA = ("train-clean-5", "train-clean-100", "dev-clean")

BACKGROUND = "background"
"""Corpus of the cohort's readers."""

TRAINED = {"phones": "train-clean-5"}
"""Corpus that trained the network of each feature; none of `CORPORA` trained that of ``voice``."""

MOST_SECONDS = 330.0
"""Audio of a chapter: enough for a template of 100 s and a test of 120 s of speech."""
CALIBRATE = ("calibrate", "choose")
"""Roles of people who calibrate likelihood ratios: they neither train nor judge networks."""

_PEOPLE_PER_BATCH = 200
_READER_AUDIO, _OWN_AUDIO, _CONDITION_SECONDS = 48.0, 12.0, 15.0
CONDITIONS = "conditions.json"
GROUPS = {
    "readers-0": ("clean", "telephone", "room 0.6 s"),
    "readers-1": ("clean", "telephone", "room 0.6 s", "babble 10 dB", "Opus 12 kb/s"),
    "judge-0": ("clean", "telephone", "room 0.6 s"),
    "judge-1": ("clean", "telephone", "room 0.6 s", "babble 10 dB"),
    "calibrate-0": ("clean", "telephone", "room 0.6 s"),
    "calibrate-1": ("clean", "telephone", "room 0.6 s", "babble 10 dB"),
}
"""Conditions of each group: ``-0`` is enrolled, ``-1`` is tested."""

Change = Callable[[FloatArray, int], FloatArray]


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
    extract_chapters(rows, given.speech, given.frames, features, given.jobs, given.rate)


def chapters(speech: Path, corpora: Sequence[str] = CORPORA) -> list[dict[str, str]]:
    """Return rows of the manifest: path, corpus, speaker, gender, chapter, seconds."""
    with (speech / "manifest.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["corpus"] in corpora]


def trainers(root: Path) -> dict[str, set[str]]:
    """Return the speakers who trained each feature's network, from a folder of speech or frames."""
    return {f: {each.name for each in (root / corpus).glob("*")} for f, corpus in TRAINED.items()}


def extract_chapters(
    rows: Sequence[dict[str, str]],
    speech: Path,
    frames: Path,
    features: Sequence[str],
    jobs: int,
    rate: int | None = None,
) -> None:
    """Extract the missing frames of these chapters, the longest first."""
    rows = sorted(rows, key=lambda row: -float(row["seconds"]))
    tasks = [create_task(row, speech, frames) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        if rate is not None:
            tasks = [resample_source(each, Path(folder), rate) for each in tasks]
        for result in keep(tasks, ExtractionOptions(tuple(features), MOST_SECONDS), jobs):
            print(
                f"{result.order.target}: {result.seconds:.0f} s {result.problem}", file=sys.stderr
            )


def create_task(row: dict[str, str], speech: Path, frames: Path) -> ExtractionTask:
    """Return the task of extracting a chapter's frames."""
    target = (frames / row["path"]).with_suffix(".npz")
    return ExtractionTask(speech / row["path"], target, row["speaker"], row["chapter"])


def resample_source(task: ExtractionTask, folder: Path, rate: int) -> ExtractionTask:
    """Resample a task's recording to ``rate``, and return the task for that copy in ``folder``."""
    path = folder / f"{task.speaker}-{task.session}.wav"
    samples, own = soundfile.read(task.source, dtype="float32", always_2d=True)
    mono = samples[: round(MOST_SECONDS * own)].mean(axis=1)
    soundfile.write(path, soxr.resample(mono, own, rate), rate, subtype="FLOAT")
    return replace(task, source=path)


# ------------------------------------------------------------------------------- own microphones


def extract_people(
    voices: Path,
    frames: Path,
    features: Collection[str],
    jobs: int,
    roles: Collection[str] = CALIBRATE,
) -> None:
    """Extract the missing frames of all people with one of these roles."""
    chosen = [each for each in people(voices) if each.role in roles]
    tasks = []
    for begin in range(0, len(chosen), _PEOPLE_PER_BATCH):
        with tempfile.TemporaryDirectory() as folder:
            batch = [
                task
                for each in chosen[begin : begin + _PEOPLE_PER_BATCH]
                for task in _join_sessions(each, Path(folder), frames)
            ]
            for result in keep(batch, ExtractionOptions(tuple(features)), jobs):
                if result.problem:
                    print(f"{result.order.target}: {result.problem}", file=sys.stderr)
        tasks += [each for each in batch if each.target.exists()]
        print(
            f"\r{begin + _PEOPLE_PER_BATCH} of {len(chosen)} people", end="\x1b[K", file=sys.stderr
        )
    write_manifest(frames, tasks)


def _join_sessions(person: Person, folder: Path, frames: Path) -> Iterator[ExtractionTask]:
    """Join the clips of each session, and yield one task per session."""
    for session, clips in sorted(person.clips.items()):
        sound = np.concatenate([soundfile.read(clip, dtype="int16")[0] for clip in sorted(clips)])
        path = folder / f"{person.name}-{session}.wav"
        soundfile.write(path, sound, RATE)
        yield ExtractionTask(path, frames / person.name / f"{session}.npz", person.name, session)


# ------------------------------------------------------------------------------------ conditions


def pairs(group: str) -> list[tuple[str, str]]:
    """Return all pairs of a group's conditions, of templates and of streams."""
    return list(product(GROUPS[f"{group}-0"], GROUPS[f"{group}-1"]))


def extract_groups(
    speech: Path,
    voices: Path,
    frames: Path,
    features: Sequence[str],
    jobs: int,
    groups: Mapping[str, Sequence[str]] = GROUPS,
) -> None:
    """Extract the missing frames of each group under each condition.

    This writes FRAMES/GROUP/CONDITION/NAME.npz, and measured conditions to conditions.json there.
    """
    changes = conditions(speech)
    for group, named in groups.items():
        for name in named:
            folder = frames / group / name.replace(" ", "-")
            if is_complete(folder, features):
                continue
            sounds = list(_read_group(group, speech, voices))
            _extract_sounds(sounds, changes[name], folder, features, jobs)
            print(f"{group}, {name}: {len(sounds)} recordings", file=sys.stderr, flush=True)


def is_complete(folder: Path, features: Sequence[str]) -> bool:
    """Return whether a folder is complete: these features, current networks, and starts."""
    if not (folder / CONDITIONS).exists():
        return False
    note = ExtractionOptions(tuple(features)).note(make(features))
    networks = note["features"]
    assert isinstance(networks, dict)
    settings = [header_of(path).settings for path in folder.glob("*.npz")]
    return bool(settings) and all(
        networks.items() <= each.get("features", {}).items()
        and all(each.get(name) == note[name] for name in ("early", "starts"))
        for each in settings
    )


def _read_group(group: str, speech: Path, voices: Path) -> Iterator[tuple[str, FloatArray]]:
    who, _, part = group.rpartition("-")
    if who == "readers":
        return reader_sounds(speech, int(part))
    return _read_own_microphones(voices, who, int(part))


def reader_sounds(speech: Path, chapter: int) -> Iterator[tuple[str, FloatArray]]:
    """Yield name and sound of each reader's longest chapter (0) or second longest one (1)."""
    by_reader: dict[str, list[dict[str, str]]] = {}
    for row in sorted(chapters(speech), key=lambda row: -float(row["seconds"])):
        by_reader.setdefault(row["speaker"], []).append(row)
    most = round(_READER_AUDIO * RATE)
    for name, rows in sorted(by_reader.items()):
        for row in rows[chapter : chapter + 1]:
            yield name, soundfile.read(speech / row["path"], frames=most, dtype="float32")[0]


def _read_own_microphones(
    voices: Path, role: str, session: int
) -> Iterator[tuple[str, FloatArray]]:
    """Yield name and sound of each person's longest session (0) or of all others joined (1)."""
    chosen = [each for each in people(voices) if each.role == role and len(each.clips) > 1]
    for each in chosen:
        order = sorted(each.clips, key=lambda name: -len(each.clips[name]))
        names = order[:1] if session == 0 else order[1:]
        clips = [clip for name in names for clip in sorted(each.clips[name])]
        sound = np.concatenate([soundfile.read(c, dtype="float32")[0] for c in clips])
        yield each.name, sound[: round(_OWN_AUDIO * RATE)]


def _extract_sounds(
    sounds: Sequence[tuple[str, FloatArray]],
    change: Change,
    target: Path,
    features: Sequence[str],
    jobs: int,
) -> None:
    """Store frames and measured conditions of all sounds under one condition."""
    found: dict[str, dict[str, float | None]] = {}
    with tempfile.TemporaryDirectory() as folder:
        tasks = []
        for number, (name, sound) in enumerate(sounds):
            path = Path(folder) / f"{name}.wav"
            changed = np.asarray(change(sound, number), np.float32)
            soundfile.write(path, changed, RATE, subtype="FLOAT")
            tasks.append(ExtractionTask(path, target / f"{name}.npz", name, "1"))
            found[name] = _measure_condition(path).record()
        for result in keep(tasks, ExtractionOptions(tuple(features)), jobs):
            if result.problem:
                print(f"{result.order.target}: {result.problem}", file=sys.stderr)
    write_manifest(target, [each for each in tasks if each.target.exists()])
    (target / CONDITIONS).write_bytes(orjson.dumps(found))


def _measure_condition(path: Path) -> Condition:
    """Measure the condition of the first seconds, as many as a stream has when it is scored."""
    extractor, total = Extractor([], conditions=True), np.zeros(ROW, np.int64)
    with File(path, end_seconds=_CONDITION_SECONDS) as file:
        for block in file:
            if isinstance(block, Block):
                total += extractor.process(block).tracks[CONDITION].values.sum(axis=0)
    return condition_of(total)


if __name__ == "__main__":
    main()
