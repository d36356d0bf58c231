"""A feature of your own, in one file: how often somebody says which little words.

    python examples/12_a_feature_of_your_own.py

What is said gives its owner away as well as how. The feature `little` counts eleven words of
timed words (of any recogniser, or a transcript), in the same stream as features of the sound; the
program's own `style` counts many more. It is defined, registered, enrolled, calibrated and heard
here; the sound and the words of twelve toy people are made up on the spot. Of real words, write
``talk.words`` beside ``talk.flac``: a line ``{"word": "well", "begin": 0.31, "end": 0.52}`` each.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import soundfile

from monitor import Monitor, calibrate, corpus, enrol
from monitor.features import register
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.sources import File, SideInputSource
from monitor.training import CalibrationSettings, collect
from monitor.transcripts import read_transcript
from monitor.types import Track, Words

LITTLE = ("the", "a", "so", "well", "like", "just", "and", "but", "really", "you", "i")


class LittleWords:
    """Which of the little words: one frame for each, complete when the word is known."""

    spec = FeatureSpec("little", HISTOGRAM, len(LITTLE), frame_seconds=0.2, takes="words")
    follow = None  # how to notice another person by it nobody has measured: others do that

    def process(self, heard: Words) -> Track:
        """Frames of further words."""
        some = [i for i, text in enumerate(heard.texts) if text.lower() in LITTLE]
        bins = [LITTLE.index(heard.texts[i].lower()) for i in some]
        spans = np.column_stack((heard.begins, heard.ends))[some]
        return Track(heard.known[some], np.array(bins, np.int64), spans)

    def flush(self) -> Track:
        """Nothing waits for the end of a recording."""
        return self.spec.no_frames()

    def skip_to(self, tick: int) -> None:
        """Counting is cheap: nothing is skipped."""

    def reset(self) -> None:
        """Nothing is remembered from word to word."""


RATE, SECONDS, PEOPLE = 16_000, 40.0, 12


def record(folder: Path, person: int, session: int) -> Path:
    """A recording of a toy person: a buzz of their pitch, and words of their habits beside it."""
    rng = np.random.default_rng([person, session])
    own, others = np.random.default_rng(person), np.random.default_rng(0)
    habits = sum(each.dirichlet(np.full(len(LITTLE) + 1, 0.7)) for each in (own, others))
    seconds = np.arange(round(SECONDS * RATE)) / RATE
    # people whose pitch is much alike, and moves a little from day to day
    pitch = (110 + 2 * person + rng.normal(0, 3)) * 2 ** (
        0.2 * np.sin(2 * np.pi * seconds / 3.1 + rng.uniform(0, 6))
    )
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    buzz = sum(np.sin(k * phase) / k for k in range(1, 13))
    syllables = np.clip(np.sin(2 * np.pi * 3.1 * seconds) + 0.6, 0, None)
    path = folder / f"person{person:02d}" / f"{session}.wav"
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = 0.002 * rng.standard_normal(seconds.size)
    soundfile.write(path, 0.12 * buzz * syllables + noise, RATE)
    begins = np.arange(0.1, SECONDS - 0.3, 0.4)
    said = rng.choice([*LITTLE, "moon"], begins.size, p=habits / 2)
    lines = [
        json.dumps({"word": word, "begin": begin, "end": begin + 0.2, "known": begin + 0.5})
        for word, begin in zip(said.tolist(), begins.round(2).tolist(), strict=True)
    ]
    path.with_suffix(".words").write_text("\n".join(lines))
    return path


def main() -> None:
    register(LittleWords)
    features = ["f0", "little"]
    with tempfile.TemporaryDirectory() as folder:
        speech = Path(folder, "speech")
        for person in range(PEOPLE):
            for session in (1, 2):
                record(speech, person, session)
        recordings = corpus.find(speech)
        people = enrol(recordings, features=features, seconds=20).population
        voices, specs, _ = collect(recordings, features=features)
        made = calibrate(
            voices,
            specs,
            CalibrationSettings(
                lengths=[2, 5, 15],
                template_lengths=[20],
                trials=5,
                replicates=20,
                prior=None,
                cohort=None,
            ),
        )

        talk = record(Path(folder), person=7, session=3)
        monitor = Monitor(people.calibrated(made), features, "person07", step_seconds=4.0)
        words = read_transcript(talk.with_suffix(".words")).words()
        with SideInputSource(File(talk), words=words) as source:
            for reading in monitor.stream(source):
                ranks = ", ".join(
                    f"{name} {each.usable:4.1f} s rank {each.rank:g}"
                    for name, each in reading.features.items()
                )
                print(f"{reading.seconds:4.0f} s  {reading.bits:5.2f} bits  {ranks}")


if __name__ == "__main__":
    main()
