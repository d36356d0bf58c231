from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from monitor import Monitor
from monitor.alerts import Threshold
from monitor.errors import SchemaError, StoreError
from monitor.maths.condition import ROW
from monitor.population.store import read_store, write_store
from monitor.stream.checkpoint import Checkpoint, state_path
from monitor.stream.records import RunTotals
from tests.stream.streams import WATCHED, reference, simulated, two_features

CONFIGURATION = {"recordings": [["a.flac", 123]], "step": 1.0, "interval": (0.0, None), "raw": None}


def parts() -> tuple[Monitor, RunTotals, list[Threshold]]:
    return Monitor(reference(), watch=WATCHED), RunTotals(), [Threshold("bits", -9.0, 2.0)]


@pytest.fixture
def saved(tmp_path):
    """A checkpoint of three seconds, and what it was made of."""
    monitor, tally, rules = parts()
    for reading in monitor.push(simulated(3.0)):
        tally.count(reading)
        rules[0].update(reading)
    checkpoint = Checkpoint(tmp_path / "run.jsonl.state", CONFIGURATION)
    checkpoint.save(monitor, tally, rules, 4711)
    return checkpoint, monitor, tally, rules


def test_it_lies_beside_the_run():
    assert state_path(Path("there/run.jsonl")) == Path("there/run.jsonl.state")


def test_everything_comes_back(saved):
    checkpoint, monitor, tally, rules = saved
    other, counts, again = parts()
    assert checkpoint.load(other, counts, again) == 4711
    assert other.state()[0] == monitor.state()[0]
    assert np.array_equal(other.state()[1]["sketch/f0"], monitor.state()[1]["sketch/f0"])
    assert vars(counts) == vars(tally)
    assert counts.readings == 3
    assert again[0].state() == rules[0].state()
    assert again[0].raised


KILLED = """
import os, signal, sys
from pathlib import Path
from monitor.population.store import write_store

vars(os).pop("O_TMPFILE", None)  # as where files without names are unknown
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
write_store(Path(sys.argv[1]), "checkpoint", {}, {})
"""


def test_a_save_that_was_killed_leaves_nothing_after_the_end(saved, tmp_path):
    checkpoint, *_ = saved
    other = tmp_path / "other.jsonl.state"
    for path in (checkpoint.path, other):
        killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
        assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 3
    checkpoint.remove()
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".other.jsonl.state.")


def test_it_is_private_and_written_whole(saved, tmp_path, monkeypatch):
    checkpoint, *made = saved
    assert stat.S_IMODE(checkpoint.path.stat().st_mode) == 0o600
    before = checkpoint.path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        checkpoint.save(*made, 5000)
    assert checkpoint.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint.path.name]


def test_it_holds_sums_and_no_audio(saved):
    header, arrays = read_store(saved[0].path, "checkpoint")
    assert {name: array.shape for name, array in arrays.items()} == {
        "sketch/f0": (104,),
        "conditions/total": (ROW,),
    }
    assert header.keys() == {
        "kind",
        "schema",
        "configuration",
        "monitor",
        "tally",
        "rules",
        "offset",
    }


def test_it_goes_away(saved):
    checkpoint = saved[0]
    checkpoint.remove()
    assert not checkpoint.path.exists()
    checkpoint.remove()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"step": 2.0}, "step"),
        ({"recordings": [["a.flac", 124]]}, "recordings"),
        ({"interval": (0.0, 9.0), "raw": [8000, 1, "s16le"]}, "interval, raw"),
        ({"added": 1}, "added"),
    ],
)
def test_another_configuration_is_refused(saved, changes, words):
    checkpoint = Checkpoint(saved[0].path, {**CONFIGURATION, **changes})
    with pytest.raises(StoreError, match=rf"another run \(not the same: {words}\)") as caught:
        checkpoint.load(*parts())
    assert "\n" not in str(caught.value)


def test_a_configuration_with_less_in_it_is_another(saved):
    less = {key: value for key, value in CONFIGURATION.items() if key != "step"}
    with pytest.raises(StoreError, match="not the same: step"):
        Checkpoint(saved[0].path, less).load(*parts())


def test_nothing_to_resume(tmp_path):
    with pytest.raises(StoreError, match=r"no\.state: there is nothing to resume; leave out"):
        Checkpoint(tmp_path / "no.state", {}).load(*parts())


@pytest.mark.parametrize("cut", [0, 1, 100, 0.5, 0.9, -1])
def test_a_torn_file_is_refused(saved, cut):
    checkpoint = saved[0]
    content = checkpoint.path.read_bytes()
    size = int(cut * len(content)) if isinstance(cut, float) else cut
    checkpoint.path.write_bytes(content[:size])
    with pytest.raises(StoreError, match="damaged"):
        checkpoint.load(*parts())


def test_a_flipped_byte_is_refused_or_harmless(saved):
    checkpoint, monitor, *_ = saved
    content = bytearray(checkpoint.path.read_bytes())
    for place in range(0, len(content), 29):
        flipped = content.copy()
        flipped[place] ^= 0x55
        checkpoint.path.write_bytes(flipped)
        other, counts, rules = parts()
        try:
            assert checkpoint.load(other, counts, rules) == 4711
        except StoreError:
            continue
        assert np.array_equal(other.state()[1]["sketch/f0"], monitor.state()[1]["sketch/f0"])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("configuration", [1]),
        ("monitor", None),
        ("monitor", {"frames": {"f0": 1}}),
        ("monitor", {"frames": 3}),
        ("tally", "nonsense"),
        ("tally", "[1]"),
        ("rules", []),
        ("rules", 7),
        ("offset", "x"),
    ],
)
def test_a_header_of_nonsense_is_refused(saved, key, value):
    checkpoint = saved[0]
    header, arrays = read_store(checkpoint.path, "checkpoint")
    header[key] = value
    write_store(checkpoint.path, "checkpoint", header, arrays)
    with pytest.raises(StoreError) as caught:
        checkpoint.load(*parts())
    assert "\n" not in str(caught.value)


def test_other_stores_are_refused(saved):
    checkpoint = saved[0]
    reference().save(checkpoint.path)
    with pytest.raises(StoreError, match="is a population file"):
        checkpoint.load(*parts())
    write_store(checkpoint.path, "checkpoint", {"schema": 99}, {})
    with pytest.raises(SchemaError, match="upgrade"):
        checkpoint.load(*parts())


def test_another_monitor_is_refused(saved):
    _, tally, rules = parts()
    with pytest.raises(StoreError, match="does not fit"):
        saved[0].load(Monitor(two_features()), tally, rules)


def test_another_rule_is_told_as_such(saved):
    monitor, tally, _ = parts()
    with pytest.raises(Exception, match="resume with the same rule"):
        saved[0].load(monitor, tally, [Threshold("bits", 4.0)])


@pytest.mark.parametrize("what", ["text", "population", "folder", "link"])
def test_what_is_no_checkpoint_is_neither_overwritten_nor_removed(saved, tmp_path, what):
    made = saved[0]
    path = tmp_path / "mine.jsonl.state"
    if what == "text":
        path.write_text("my notes on the state of things")
    elif what == "population":
        write_store(path, "population", {}, {})
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to(made.path)
    checkpoint = Checkpoint(path, {})
    with pytest.raises(StoreError, match="is none; move it away"):
        checkpoint.check()
    checkpoint.remove()
    assert path.exists()
    made.check()
    Checkpoint(tmp_path / "nothing.state", {}).check()
    path = tmp_path / "damaged.jsonl.state"
    path.write_bytes(made.path.read_bytes()[:200])
    Checkpoint(path, {}).check()
    Checkpoint(path, {}).remove()
    assert not path.exists()


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("monitor", "peak"), float("nan")),
        (("monitor", "tick"), 1 << 64),
        (("monitor", "read"), 10**9),
        (("monitor", "frames"), {"f0": [1]}),
        (("monitor", "open"), {}),
        (("offset",), -1),
        (("tally",), '{"readings": 3}'),
        (("tally",), "[[[["),
        (("rules",), [{"rule": "bits>-9 for 2 s", "raised": "yes", "since": 1.0, "change": None}]),
    ],
)
def test_a_number_that_no_run_remembers_is_refused(saved, where, value):
    checkpoint, *_ = saved
    header, arrays = read_store(checkpoint.path, "checkpoint")
    inside = header
    for key in where[:-1]:
        inside = inside[key]
    inside[where[-1]] = value
    kept = {key: value for key, value in header.items() if key not in ("kind", "schema")}
    write_store(checkpoint.path, "checkpoint", kept, arrays)
    with pytest.raises(StoreError, match=r"does not fit|is damaged"):
        checkpoint.load(*parts())


@pytest.mark.parametrize("number", [np.nan, np.inf, -1e300])
def test_sums_that_are_no_numbers_are_refused(tmp_path, number):
    checkpoint = Checkpoint(tmp_path / "run.jsonl.state", CONFIGURATION)
    tally = RunTotals()
    checkpoint.save(Monitor(two_features(), watch="s1"), tally, [], 0)
    header, arrays = read_store(checkpoint.path, "checkpoint")
    arrays["sketch/timbre"][0] = number
    kept = {key: value for key, value in header.items() if key not in ("kind", "schema")}
    write_store(checkpoint.path, "checkpoint", kept, arrays)
    with pytest.raises(StoreError, match="does not fit: its sum makes no sense"):
        checkpoint.load(Monitor(two_features(), watch="s1"), tally, [])
