"""Ten lines on a recording: how many bits has this voice given away so far?

python examples/01_ten_lines.py RECORDING      (without one: the ten real minutes of the demo)
"""

import sys

from monitor import Monitor, Population, alerts, sources
from monitor.population import DEMO_SPEAKER, demo_frames

population = Population.reference()  # or Population.load("speakers.npz")
recording = sys.argv[1] if len(sys.argv) > 1 else demo_frames()
watch = DEMO_SPEAKER if len(sys.argv) == 1 else None  # None: the attacker's confidence

monitor = Monitor(population, features=["f0"], watch=watch, step_seconds=10)
alert = alerts.Threshold("bits", 0.5, hold_seconds=30.0)

with sources.open_source(recording) as source:
    for reading in monitor.stream(source):
        print(f"{reading.seconds:6.1f} s  {reading.bits:5.2f} of {reading.ceiling:.2f} bits")
        for each in alert.update(reading):
            print(f"          alert {each.state}: {each.rule}")
