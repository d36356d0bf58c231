"""Enrol and calibrate a folder of your own: a folder a speaker, a file (or a folder) a session.

python examples/02_enrol_and_calibrate.py FOLDER      (at least 10 speakers with a minute each)

On the command line:  monitor enroll FOLDER -o us.npz  and  monitor calibrate FOLDER -o us.npz
"""

import sys
import tempfile
from pathlib import Path

from monitor import Monitor, Population, calibrate, collect, corpus, enrol, sources

if len(sys.argv) != 2:
    sys.exit(__doc__)
recordings = corpus.find(Path(sys.argv[1]))
features = ["f0"]  # the quickest; add "phones", and "voice" or "identity"

# templates: one minute of speech of each speaker
enrolment = enrol(recordings, features=features, seconds=60)
for problem in enrolment.problems:
    print("skipped:", problem)

# what a rank among them means, at three lengths of speech
voices, specs, _ = collect(recordings, features=features)
calibration = calibrate(voices, specs, lengths=(1, 10, 30), template_lengths=(60,))
for row in calibration.rows:
    print(
        f"{row['session']:5}-session, T = {row['T']:4g} s: {row['mean_bits_model']:.2f} bits on "
        f"average ({row['mean_bits_low']:.2f} to {row['mean_bits_high']:.2f}), "
        f"{row['held_out_local_bits']:.2f} local bits on readers not used for fitting"
    )

# a population is private to its owner: mode 0600, no audio inside
store = Path(tempfile.mkdtemp()) / "us.npz"
enrolment.population.with_laws(calibration.laws).save(store)

# the last recording of the last speaker, after what was enrolled of it
population = Population.load(store)
last = recordings.recordings[-1]
enrolled = [
    note.end_seconds for note in population.speakers[-1].sources if note.label == last.path.name
]
monitor = Monitor(population, watch=last.speaker, step_seconds=10)
with sources.File(last.path, start_seconds=max(enrolled, default=0.0)) as recording:
    for reading in monitor.stream(recording):
        print(f"{reading.seconds:6.1f} s of {last.speaker}: {reading.bits:5.2f} bits")
