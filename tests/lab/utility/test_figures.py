"""Figures over speakers: limits hold the truth, and what does not exist says why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.lab.utility import Utility, compute_figures

PLAIN = Utility(200, 50, 300, 240, 0.9, "", 0.0, -1.0, 1.0)


def by_key(found):
    return {each.key.removeprefix("utility."): each for each in found}


def test_sums_are_divided_and_means_taken():
    long = replace(PLAIN, phones=600, phone_edits=60, pitch_correlation=0.5, louder_db=1.0)
    found = by_key(compute_figures([PLAIN, long, PLAIN], ["ann", "bob", "ann"]))
    assert found["phone_error"].value == pytest.approx(160 / 1000)
    assert found["pitch_correlation"].value == pytest.approx(2.3 / 3)
    assert found["louder_db"].value == pytest.approx(-1 / 3)
    assert found["voiced_in_both"].value == pytest.approx(0.8)
    assert found["longer"].limits == (1.0, 1.0)
    assert "in the clear recording" in found["phone_error"].note


def test_limits_hold_the_truth_over_speakers():
    """Speakers whose error rates scatter around 0.3: 95 % interval hold it in about 95 %."""
    generator = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        rates = generator.beta(3, 7, 12)
        found = [replace(PLAIN, phone_edits=round(200 * rate)) for rate in rates]
        low, high = by_key(compute_figures(found, [str(i) for i in range(12)]))[
            "phone_error"
        ].limits
        held += low <= 0.3 <= high
    assert 0.9 <= held / 200 <= 1.0


def test_what_does_not_exist_says_why():
    flat = replace(PLAIN, pitch_correlation=None, why="the pitch does not move")
    found = by_key(compute_figures([flat, flat], ["ann", "bob"]))
    assert (found["pitch_correlation"].value, found["pitch_correlation"].note) == (
        None,
        "the pitch does not move",
    )
    some = by_key(compute_figures([flat, PLAIN, PLAIN], ["ann", "bob", "cid"]))["pitch_correlation"]
    assert (some.value, some.note) == (0.9, "Of 2 of 3 recordings.")
    silent = by_key(compute_figures([replace(PLAIN, louder_db=None)], ["ann"]))["louder_db"]
    assert silent.value is None
    mute = by_key(compute_figures([replace(PLAIN, phones=0, phone_edits=3)], ["ann"]))[
        "phone_error"
    ]
    assert mute.value is None


def test_of_one_speaker_there_are_no_limits():
    found = by_key(compute_figures([PLAIN, PLAIN], ["ann", "ann"]))
    assert found["phone_error"].limits == (None, None)
    assert "No limits: one speaker." in found["phone_error"].note


def test_nothing_is_refused():
    with pytest.raises(UsageError, match="one recording at least"):
        compute_figures([], [])
