"""Hear people at their own microphones once and keep the frames.

    python -m benchmarks.microphones VOICES FRAMES [--features f0,phones,voice]

VOICES is a folder of Common Voice (CC0) with its ``manifest.csv``, as `recipes.voice.clips` takes
it. What somebody said in a session is heard as one recording: FRAMES/SPEAKER/SESSION.npz, and
FRAMES/manifest.csv. Those who calibrate are heard: none of them trained a network. FRAMES holds
voices that nobody enrolled: it stays where it was made, and only sums over many leave it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import soundfile

from monitor.jobs import cores
from monitor.networks.layers import RATE
from monitor.training.feature_extraction import HearingOptions, HearingOrder, keep, write_manifest
from recipes.voice.clips import Person, people

CALIBRATE = ("calibrate", "choose")
"""Whose evidence calibrates: nobody of them trained, or judges."""
_TOGETHER = 200


def main() -> None:
    parser = argparse.ArgumentParser(description="Hear people at their own microphones.")
    parser.add_argument("voices", type=Path)
    parser.add_argument("frames", type=Path)
    parser.add_argument("--features", default="f0,phones,voice")
    parser.add_argument("--roles", default=",".join(CALIBRATE))
    parser.add_argument("--jobs", type=int, default=cores())
    given = parser.parse_args()
    hear_people(
        given.voices, given.frames, given.features.split(","), given.jobs, given.roles.split(",")
    )


def hear_people(
    voices: Path,
    frames: Path,
    features: Collection[str],
    jobs: int,
    roles: Collection[str] = CALIBRATE,
) -> None:
    """Hear what is not there yet of everybody who has one of these roles."""
    chosen = [each for each in people(voices) if each.role in roles]
    orders = []
    for begin in range(0, len(chosen), _TOGETHER):
        with tempfile.TemporaryDirectory() as folder:
            some = [
                order
                for each in chosen[begin : begin + _TOGETHER]
                for order in _recordings(each, Path(folder), frames)
            ]
            for kept in keep(some, HearingOptions(tuple(features)), jobs):
                if kept.problem:
                    print(f"{kept.order.target}: {kept.problem}", file=sys.stderr)
        orders += [each for each in some if each.target.exists()]
        print(f"\r{begin + _TOGETHER} of {len(chosen)} people", end="\x1b[K", file=sys.stderr)
    write_manifest(frames, orders)


def _recordings(person: Person, folder: Path, frames: Path) -> Iterator[HearingOrder]:
    """One recording a session, its clips one after the other."""
    for session, clips in sorted(person.clips.items()):
        sound = np.concatenate([soundfile.read(clip, dtype="int16")[0] for clip in sorted(clips)])
        path = folder / f"{person.name}-{session}.wav"
        soundfile.write(path, sound, RATE)
        yield HearingOrder(path, frames / person.name / f"{session}.npz", person.name, session)


if __name__ == "__main__":
    main()
