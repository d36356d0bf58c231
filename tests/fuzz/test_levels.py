"""A few voices at random levels; hundreds by hand: ``python -m tests.fuzz --levels 500``."""

from __future__ import annotations

from tests.fuzz.levels import failures


def test_features_do_not_depend_on_level_offset_or_hum():
    assert failures(6, 100) == []
