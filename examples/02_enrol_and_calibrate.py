"""Enrol and calibrate a folder of your own: a folder a speaker, a file (or a folder) a session.

python examples/02_enrol_and_calibrate.py FOLDER      (at least 10 speakers with a minute each)

On the command line:  monitor enrol FOLDER -o us.npz  and  monitor calibrate FOLDER -o us.npz
"""

import sys
import tempfile
from pathlib import Path

from monitor import Monitor, Population, calibrate, corpus, enrol, sources
from monitor.training import CalibrationSettings

if len(sys.argv) != 2:
    sys.exit(__doc__)
recordings = corpus.find(Path(sys.argv[1]))
features = ["f0"]  # the quickest; add "phones" and "voice"

# templates: one minute of speech of each speaker
enrolment = enrol(recordings, features=features, seconds=60)
for problem in enrolment.problems:
    print("skipped:", problem)

# what a rank among them means, at three lengths of speech
calibration = calibrate(
    enrolment, settings=CalibrationSettings(lengths=(1, 10, 30), template_lengths=(60,))
)
for row in calibration.rows:
    print(
        f"{row['session']:5}-session, T = {row['T']:4g} s: {row['mean_bits_model']:.2f} bits on "
        f"average ({row['mean_bits_low']:.2f} to {row['mean_bits_high']:.2f}), "
        f"{row['held_out_local_bits']:.2f} local bits on readers not used for fitting"
    )

# a population is private to its owner: mode 0600, no audio inside
store = Path(tempfile.mkdtemp()) / "us.npz"
enrolment.population.calibrated(calibration).save(store)

# a recording of the last speaker, after what was enrolled of it: the monitor knows it again, and
# weighs it by what was learnt within sessions (of another day's recording it takes the other model)
population = Population.load(store)
speaker = population.speakers[-1]
enrolled = speaker.sources[-1]
path = next(
    recording.path
    for recording in recordings
    if (recording.speaker, recording.path.name) == (speaker.name, enrolled.label)
)
monitor = Monitor(population, watch=speaker.name, step_seconds=10)
with sources.File(path, start_seconds=enrolled.end_seconds) as recording:
    for reading in monitor.stream(recording):
        print(
            f"{reading.seconds:6.1f} s of {speaker.name}: {reading.bits:5.2f} bits "
            f"({reading.session}-session rank model)"
        )
