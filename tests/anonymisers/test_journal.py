from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from monitor.anonymisers.recording import NAME, Journal, note
from monitor.errors import StoreError, UsageError

WHAT = ("mcadams:speaker", None)


def begun(folder: Path, seed: int | None = None) -> Journal:
    with Journal(folder, WHAT, seed) as journal:
        note(journal.path, "a.wav", ("file:1", "file:2"))
        note(journal.path, "b/c.wav", ("file:3", "file:4"))
    return journal


def test_a_run_that_goes_on_has_the_seed_and_what_was_made(tmp_path):
    first = begun(tmp_path / "new" / "folder")
    assert first.seed.bit_length() > 64
    assert stat.S_IMODE((tmp_path / "new" / "folder" / NAME).stat().st_mode) == 0o600
    with Journal(tmp_path / "new" / "folder", WHAT, None) as second:
        assert second.seed == first.seed
        assert second.made == {"a.wav": ("file:1", "file:2"), "b/c.wav": ("file:3", "file:4")}
        second.finish()
    assert not list((tmp_path / "new" / "folder").iterdir())


def test_a_line_that_a_kill_has_torn_is_dropped(tmp_path):
    begun(tmp_path)
    with (tmp_path / NAME).open("a") as file:
        file.write('{"target": "d.wav", "sour')
    with Journal(tmp_path, WHAT, None) as journal:
        assert set(journal.made) == {"a.wav", "b/c.wav"}
        note(journal.path, "d.wav", ("file:5", "file:6"))
    with Journal(tmp_path, WHAT, None) as journal:
        assert set(journal.made) == {"a.wav", "b/c.wav", "d.wav"}


@pytest.mark.parametrize(("what", "seed"), [(("none", None), None), (WHAT, 7)])
def test_other_settings_are_refused_and_leave_it_as_it_is(tmp_path, what, seed):
    begun(tmp_path)
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(UsageError, match="unfinished run of other settings"):
        Journal(tmp_path, what, seed)
    assert (tmp_path / NAME).read_bytes() == before


def test_a_seed_that_was_asked_for_is_the_seed(tmp_path):
    assert begun(tmp_path, 7).seed == 7
    with Journal(tmp_path, WHAT, 7) as journal:
        assert len(journal.made) == 2


def test_two_runs_at_once_are_refused(tmp_path):
    with Journal(tmp_path, WHAT, None), pytest.raises(StoreError, match="another run"):
        Journal(tmp_path, WHAT, None)


@pytest.mark.parametrize("text", [
    "no json\n", "\xff\n", "[]\n", "7\n", "null\n", json.dumps({"asked": "x", "seed": 3}) + "\n",
    json.dumps({"asked": "x", "seed": "3"}) + "\n{}\n",
])  # fmt: skip
def test_a_damaged_one_is_named(tmp_path, text):
    (tmp_path / NAME).write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match=f"{NAME} is damaged"):
        Journal(tmp_path, WHAT, None)
    assert (tmp_path / NAME).read_bytes() == text.encode("latin-1")


def test_a_line_that_a_full_disk_cuts_off_is_an_error(tmp_path):
    resource = pytest.importorskip("resource", reason="this system limits no sizes of files")
    with Journal(tmp_path, WHAT, None) as journal:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        room = journal.path.stat().st_size + 20
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
        try:
            with pytest.raises(StoreError, match="No space left"):
                note(journal.path, "a.wav", ("file:1", "file:2"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
