"""Bring your own features: any discrete units or embeddings, as frames; no audio is touched.

python examples/03_bring_your_own.py

Here 20 made-up speakers have codec tokens (a histogram feature of 64 units, 25 a second) and voice
embeddings (16 dimensions, one every 3 seconds). Put your own numbers into `frames_of`.
"""

import tempfile
from pathlib import Path

import numpy as np

from monitor import Monitor, calibrate, corpus, enrol
from monitor.sources import write_frames
from monitor.training import CalibrationSettings, collect
from monitor.types import Frames, Track

SIZES, FRAME_SECONDS = {"tokens": 64, "voice": 16}, {"tokens": 0.04, "voice": 3.0}
taste = np.random.default_rng(0).dirichlet(np.full(64, 3.0), size=20)
centre = np.random.default_rng(1).normal(size=(20, 16))


def frames_of(speaker: int, session: int, seconds: int = 120) -> Frames:
    generator = np.random.default_rng([speaker, session])
    tokens = generator.choice(64, p=taste[speaker], size=seconds * 25)
    voices = centre[speaker] + generator.normal(size=(seconds // 3, 16)) * 3
    return Frames(
        speech=np.ones(seconds * 100, dtype=bool),  # your own voice activity, a flag every 10 ms
        tracks={
            "tokens": Track(np.arange(1, tokens.size + 1) * 4, tokens),  # complete at these ticks
            "voice": Track(np.arange(1, len(voices) + 1) * 300, voices),
        },
    )


with tempfile.TemporaryDirectory() as folder:
    for speaker in range(20):
        home = Path(folder) / f"speaker{speaker:02}"
        home.mkdir()
        for session in range(2):
            made = frames_of(speaker, session)
            write_frames(home / f"{session}.npz", made.speech, made.tracks, SIZES, FRAME_SECONDS)
    recordings = corpus.find(Path(folder))
    enrolment = enrol(recordings, seconds=60)
    voices, specs, _ = collect(recordings)

calibration = calibrate(
    voices, specs, CalibrationSettings(lengths=(3, 10, 30), template_lengths=(60,))
)
population = enrolment.population.calibrated(calibration)

monitor = Monitor(population, features=["tokens", "voice"], watch="speaker07", step_seconds=5)
for reading in monitor.push(frames_of(7, session=2, seconds=30)):  # a session never enrolled
    each = ", ".join(
        f"{name} {feature.local_bits:.2f}"
        for name, feature in reading.features.items()
        if feature.local_bits is not None
    )
    print(f"{reading.seconds:4.0f} s: {reading.bits:.2f} bits, {reading.headline} ({each})")
