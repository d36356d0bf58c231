"""A corpus is calibrated as it is: the same rank models as of its voices, collected by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from monitor import calibrate, corpus, enrol
from monitor.errors import UsageError
from monitor.sources import write_frames
from monitor.training import CalibrationSettings, collect
from monitor.types import Track

SETTINGS = CalibrationSettings(
    lengths=[1, 10], template_lengths=[30], trials=2, replicates=5, prior=None
)


def voices_in(folder: Path) -> Path:
    """Twelve people with a leaning of their own, two sessions each."""
    generator = np.random.default_rng(0)
    for k in range(12):
        (folder / f"s{k:02d}").mkdir()
        leaning = generator.dirichlet(np.ones(64))
        for session in range(2):
            track = Track(4 * np.arange(1, 1001), generator.choice(64, 1000, p=leaning))
            path = folder / f"s{k:02d}" / f"{session}.npz"
            write_frames(
                path, np.ones(4000, bool), {"codes": track}, {"codes": 64}, {"codes": 0.04}
            )
    return folder


def test_a_corpus_is_collected(tmp_path):
    found = corpus.find(voices_in(tmp_path))
    voices, specs, _ = collect(found, features=["codes"])
    one = calibrate(found, features=["codes"], settings=SETTINGS).rank_models
    two = calibrate(voices, specs, settings=SETTINGS).rank_models
    assert len(list(one)) > 0
    for mine, theirs in zip(one, two, strict=True):
        assert mine.features == theirs.features == ("codes",)
        np.testing.assert_array_equal(mine.alpha, theirs.alpha)


def test_what_enrol_gave_is_calibrated_among_its_own_people(tmp_path):
    found = corpus.find(voices_in(tmp_path))
    people = enrol(found, features=["codes"], seconds=30)
    made = calibrate(people, settings=SETTINGS)
    same = calibrate(found, features=["codes"], alarms=people.population, settings=SETTINGS)
    for mine, theirs in zip(made.rank_models, same.rank_models, strict=True):
        np.testing.assert_array_equal(mine.alpha, theirs.alpha)
        assert mine.maxima is not None
        assert theirs.maxima is not None
        np.testing.assert_array_equal(mine.maxima.values, theirs.maxima.values)
    with pytest.raises(UsageError, match="specs"):
        calibrate(people, {})


def test_the_two_forms_are_not_mixed(clips):
    found = corpus.find(clips)
    with pytest.raises(UsageError, match="specs"):
        calibrate(found, {})
    with pytest.raises(UsageError, match="specs"):
        calibrate([])
    with pytest.raises(UsageError, match="specs"):
        calibrate([], {}, features=["f0"])
