"""Two thousand damaged files, the same ones every time, voices at random levels, and runs killed.

More by hand: ``python -m tests.fuzz``.
"""

from __future__ import annotations

from random import Random

import pytest

from monitor.errors import StoreError
from tests.fuzz import levels
from tests.fuzz.campaign import failures, inputs_of, try_one
from tests.fuzz.kills import kill_replays
from tests.fuzz.readers import READERS, Reader

SEED, INPUTS = 20, 2000


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS, ids=[reader.name for reader in READERS])
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path, reader):
    found = list(failures(reader, SEED, inputs_of(INPUTS)[reader.name], tmp_path))
    bad = [each for each in found if each is not None]
    assert not bad, f"{len(bad)} of {len(found)}, the first {bad[0].seed}: {bad[0].what}"


@pytest.mark.parametrize(
    ("raised", "what"),
    [
        (StoreError("two\nlines"), "no printable line"),
        (StoreError("\x1b[2J"), "no printable line"),
        (ValueError("x"), "ValueError: x"),
        (RuntimeWarning("overflow"), "RuntimeWarning"),
    ],
)
def test_the_oracle_sees_what_a_reader_may_not_do(tmp_path, raised, what):
    def use(_: object) -> None:
        raise raised

    reader = Reader("x", "x", use, READERS[0].mutate, use)
    assert what in (try_one(reader, tmp_path) or "")


@pytest.mark.slow
def test_the_oracle_sees_memory_that_is_taken(tmp_path):
    reader = Reader("x", "x", lambda _: None, READERS[0].mutate, lambda _: len(b"x" * (1 << 30)))
    assert "MiB" in (try_one(reader, tmp_path) or "")


def test_features_do_not_depend_on_level_offset_or_hum():
    assert levels.failures(6, 100) == []


@pytest.mark.slow
def test_killed_replays_leave_what_one_that_was_not_leaves(tmp_path):
    assert kill_replays(tmp_path, Random(3), 3) == []
