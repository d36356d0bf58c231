"""One call, and what came of the recording: the same as `monitor replay` of it."""

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from monitor import Measurement, measure
from monitor.errors import UsageError
from monitor.events import Event, Reading, RunStart
from monitor.population import demo_frames
from monitor.run import MeasurementSettings
from monitor.sinks.jsonl import line_of
from monitor.types import Notice
from tests.records import read_records
from tests.sounds import RATE, synthetic


def test_silence_and_nothing_at_all_are_no_low_figure():
    found = measure(np.zeros(2 * RATE, np.float32), rate=RATE, features=["f0"])
    assert found.speech == 0.0
    assert "no speech" in str(found)
    assert "bits" not in str(found)
    nothing = measure(np.zeros(0, np.float32), rate=RATE, features=["f0"])
    assert (nothing.seconds, nothing.bits, len(nothing.readings)) == (0.0, None, 0)
    assert "no figure" in str(nothing)
    assert nothing._repr_svg_() is None
    assert str(nothing) in nothing._repr_html_().replace("&#x27;", "'")


@pytest.mark.slow
def test_it_says_what_replay_says_of_the_demo(tmp_path):
    found, log = measure(demo_frames()), tmp_path / "run.jsonl"
    options = ["--jsonl", str(log), "--plot", str(tmp_path / "replay.svg")]
    command = [sys.executable, "-m", "monitor", "replay", str(demo_frames()), *options]
    subprocess.run(command, check=True, capture_output=True)
    records = read_records(log)
    readings = [each for each in records if each["type"] == "reading"]
    assert len(readings) > 5
    # six decimals, as a log has them
    written = [json.loads(line_of(each.record())) for each in found.events]
    assert [each for each in written if each["type"] == "reading"] == readings
    for name in ("bits", "bits_low", "speech", "ceiling", "closed_set_bits", "headline", "seconds"):
        assert getattr(found, name) == pytest.approx(readings[-1][name], abs=1e-6)
    assert (found.evidence_bits, found.conditions, list(found.differs)) == (None, None, [])
    told = records[0]["notices"]
    assert [str(each) for each in found.notices][: len(told)] == told
    assert found.plot()._repr_png_().startswith(b"\x89PNG\r\n")  # a notebook shows it
    found.plot(tmp_path / "own.svg")
    assert (tmp_path / "own.svg").read_bytes() == (tmp_path / "replay.svg").read_bytes()


def test_samples_are_heard_with_their_rate():
    samples = synthetic(3.0)
    one = measure(samples, rate=RATE, features=["f0"])
    two = measure((samples, RATE), features=["f0"])
    assert one == two
    assert one.seconds == 3.0
    with pytest.raises(UsageError, match="rate"):
        measure(samples)
    with pytest.raises(UsageError, match="rate"):
        measure(demo_frames(), rate=RATE)


def happened(**changes: Any) -> list[Event]:
    made = measure(
        demo_frames(), settings=MeasurementSettings(step_seconds=100), features=["f0"]
    ).events
    return [replace(e, **changes) if isinstance(e, Reading) else e for e in made]


def test_low_bits_are_no_comfort_where_conditions_differ():
    plain = Measurement.from_events(happened(), [Notice("prior", "of no concern", level="info")])
    assert "Take care" not in str(plain)
    apart = Measurement.from_events(happened(differs=["clipping"]), [])
    assert apart.differs == ["clipping"]
    assert "Take care" in str(apart)
    assert "clipping" in str(apart)
    told = [Notice("one feature alone", "first"), Notice("conditions differ", "a telephone")]
    assert "Take care: a telephone; 1 more notice" in str(Measurement.from_events(happened(), told))


def test_a_name_is_no_markup():
    start, *rest = happened()
    assert isinstance(start, RunStart)
    made = [replace(start, recordings=("<script>alert(1)</script>",)), *rest]
    assert "<script>" not in Measurement.from_events(made, [])._repr_html_()
