"""Composition beside the headline: of the evidence as of the closed-set figure."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from monitor import Monitor, Population
from monitor.events.reading import Reading
from monitor.population import DEMO_SPEAKER, demo_frames
from monitor.sources.frames import FramesFile


def readings(watch):
    with FramesFile(demo_frames()) as source:
        monitor = Monitor(Population.reference(), ["f0", "phones"], watch)
        events = monitor.listen(source)
        made = list(islice((each for each in events if isinstance(each, Reading)), 40))
    return monitor.attacker, made


def test_they_begin_with_mean_evidence_and_end_at_what_is_supported():
    attacker, made = readings(DEMO_SPEAKER)
    seconds, bits = attacker.first_evidence
    cells = [row for row in attacker.evidence_model.rows if row.get("evidence_bits") is not None]
    lengths = sorted({row["T"] for row in cells})
    assert seconds == lengths[0]
    assert bits in {row["evidence_bits"] for row in cells if row["T"] == seconds}
    assert attacker.support_bits is not None
    for reading in made:
        if reading.headline != "evidence":
            assert reading.evidence_guides is None
            continue
        ratio = reading.speech / seconds
        grown = np.minimum([bits * ratio, bits * np.sqrt(ratio)], attacker.support_bits)
        assert reading.evidence_guides == pytest.approx(grown)
        linear, root = reading.evidence_guides
        assert reading.record()["evidence_guides"] == {"linear": linear, "sqrt": root}
    assert sum(reading.headline == "evidence" for reading in made) > 20


def test_nobody_watched_has_those_of_the_closed_set_alone():
    _, made = readings(None)
    assert all(reading.evidence_guides is None for reading in made)
    assert made[-1].record()["evidence_guides"] is None
    assert 0 < made[-1].guides[1] <= made[-1].guides[0]
