"""A few runs killed at random moments; hundreds by hand: ``python -m tests.fuzz --kills 200``."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.kills import kill_enrolments, kill_replays

pytestmark = pytest.mark.slow


def test_killed_replays_leave_what_one_that_was_not_leaves(tmp_path):
    assert kill_replays(tmp_path, Random(3), 3) == []


def test_killed_enrolments_lose_nobody(tmp_path):
    assert kill_enrolments(tmp_path, Random(3), 2) == []
