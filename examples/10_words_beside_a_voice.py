"""Words beside a voice: what captions add to what the sound tells, in one stream.

    python examples/10_words_beside_a_voice.py

Twelve people are made up, whose voices are much alike; each has little words of their own. Every
recording has captions beside it, `talk.vtt` beside `talk.wav`: those of a recogniser, or your
own. With real recordings it is, on the command line:

    monitor enrol people/ -o people.npz --features f0,style
    monitor calibrate people/ -o people.npz --features f0,style
    monitor replay talk.wav -p people.npz --transcript talk.vtt --speaker-in-transcript Cem

The feature `style` counts how something is said: little words, fillers, repetitions, words a
second. It is the speaker's own where the words are: somebody who reads aloud shows the author's.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import soundfile

from monitor import Monitor, calibrate, corpus, enrol
from monitor.sources import File, SideInputSource
from monitor.training import CalibrationSettings, collect
from monitor.transcripts import read_transcript

RATE, SECONDS = 16_000, 40
NAMES = ("Ann", "Bob", "Cem", "Dee", "Eva", "Fay", "Gus", "Hal", "Ida", "Jon", "Kim", "Lou")
LITTLE = ("I", "you", "well,", "so", "really", "just", "like", "um,", "the", "a", "not", "they've")
SUBJECTS = ("moon", "train", "garden", "river", "Monday", "letter")


def record(folder: Path, person: int, session: int, asked: bool = False) -> Path:
    """A buzz of somebody's pitch, and captions of what was said; questions are somebody else's."""
    rng = np.random.default_rng([person, session])
    of = [np.random.default_rng(seed).dirichlet(np.ones(len(LITTLE))) for seed in (person, 99)]
    habits = 0.6 * of[0] + 0.4 * of[1]  # own ones, and everybody's
    time = np.arange(SECONDS * RATE) / RATE
    pitch = 130 + 2 * person + rng.normal(0, 3) + 15 * np.sin(2 * np.pi * time / 2.7)
    voice = np.tanh(3 * np.sin(2 * np.pi * np.cumsum(pitch) / RATE) + 1)
    syllables = np.maximum(0, np.sin(2 * np.pi * 3 * time) + 0.7)
    path = folder / NAMES[person] / f"{session}.wav"
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = rng.normal(0, 0.002, time.size)
    soundfile.write(path, 0.1 * (voice - voice.mean()) * syllables + noise, RATE)
    cues = ["WEBVTT\n"]
    for begin in range(0, SECONDS, 4):
        little = rng.choice(LITTLE, 7, p=habits)
        said = " ".join([*little, rng.choice(SUBJECTS), *rng.choice(LITTLE, 2, p=habits)])
        cues.append(f"00:{begin:02d}.500 --> 00:{begin + 3:02d}.900\n<v {NAMES[person]}>{said}.\n")
        if asked:
            question = f"00:{begin:02d}.000 --> 00:{begin:02d}.500\n<v Guide>And then?\n"
            cues.insert(-1, question)
    path.with_suffix(".vtt").write_text("\n".join(cues))
    return path


def main() -> None:
    """Enrol, learn what ranks mean, and hear one talk without its words and with them."""
    with tempfile.TemporaryDirectory() as folder:
        people = Path(folder, "people")
        for person in range(len(NAMES)):
            for session in (1, 2):
                record(people, person, session)
        recordings, features = corpus.find(people), ["f0", "style"]
        enrolled = enrol(recordings, features=features, seconds=20).population
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
        population = enrolled.calibrated(made)

        talk = record(Path(folder), person=NAMES.index("Cem"), session=3, asked=True)
        transcript = read_transcript(talk.with_suffix(".vtt"))
        print("in the captions:", ", ".join(transcript.speakers))
        for line in transcript.notices:
            print("notice:", line)
        cems = transcript.select_speaker("Cem").words()
        sound = Monitor(population, ["f0"], "Cem", step_seconds=8)
        both = Monitor(population, features, "Cem", step_seconds=8)
        with File(talk) as alone, SideInputSource(File(talk), words=cems) as beside:
            for one, other in zip(sound.stream(alone), both.stream(beside), strict=True):
                print(
                    f"{one.seconds:4.0f} s  pitch alone {one.bits:5.2f} bits, with the words "
                    f"{other.bits:5.2f}; rank by style {other.features['style'].rank:g}"
                )


if __name__ == "__main__":
    main()
