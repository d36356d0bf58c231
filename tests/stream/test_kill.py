"""Checkpoints, and the real thing: `monitor replay` killed by the system, and resumed."""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor import Monitor
from monitor.alerts import Threshold
from monitor.errors import SchemaError, StoreError, UsageError
from monitor.maths.condition import ROW
from monitor.population.store import read_store, write_store
from monitor.stream.checkpoint import Checkpoint, state_path
from monitor.stream.records import RunTotals
from tests.records import read_records
from tests.settings import configured
from tests.stream.streams import RATE, WATCHED, reference, simulated, sounds, two_features

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
    checkpoint = Checkpoint(state_path(tmp_path / "run.jsonl"), CONFIGURATION)
    checkpoint.save(monitor, tally, rules, 4711)
    return checkpoint, monitor, tally, rules


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


def test_it_is_private_written_whole_and_holds_sums_but_no_audio(saved, tmp_path, monkeypatch):
    checkpoint, *made = saved
    assert stat.S_IMODE(checkpoint.path.stat().st_mode) == 0o600
    header, arrays = read_store(checkpoint.path, "checkpoint")
    shapes = {name: array.shape for name, array in arrays.items()}
    past = {"marks/counts": (3, 4), "marks/of f0": (3, 104)}
    assert shapes == {"sketch/f0": (104,), "conditions/total": (ROW,), **past}
    assert header.keys() == {
        *("kind", "schema", "configuration", "monitor", "tally", "rules", "offset")
    }
    before = checkpoint.path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left"):
        checkpoint.save(*made, 5000)
    assert checkpoint.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint.path.name]


def test_everything_comes_back_and_goes_away(saved, tmp_path):
    checkpoint, monitor, tally, rules = saved
    assert checkpoint.path == tmp_path / "run.jsonl.state"
    other, counts, again = parts()
    assert checkpoint.load(other, counts, again) == 4711
    assert other.state()[0] == monitor.state()[0]
    assert np.array_equal(other.state()[1]["sketch/f0"], monitor.state()[1]["sketch/f0"])
    assert vars(counts) == vars(tally)
    assert counts.readings == 3
    assert again[0].state() == rules[0].state()
    assert again[0].raised
    for _ in range(2):
        checkpoint.remove()
        assert not checkpoint.path.exists()
    with pytest.raises(StoreError, match=r"run.*\.state: nothing to resume"):
        checkpoint.load(*parts())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"step": 2.0}, "step"),
        ({"recordings": [["a.flac", 124]]}, "recordings"),
        ({"interval": (0.0, 9.0), "raw": [8000, 1, "s16le"]}, "interval, raw"),
        ({"added": 1}, "added"),
        ({"step": ...}, "step"),  # less in it
    ],
)
def test_another_configuration_is_refused(saved, changes, words):
    other = {k: v for k, v in {**CONFIGURATION, **changes}.items() if v is not ...}
    with pytest.raises(StoreError, match=rf"another run \(different: {words}\)") as caught:
        Checkpoint(saved[0].path, other).load(*parts())
    assert "\n" not in str(caught.value)


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
    with pytest.raises(StoreError, match=r"mine\.jsonl\.state "):
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


def test_other_stores_monitors_and_rules_are_refused(saved):
    checkpoint, monitor, tally, rules = saved
    with pytest.raises(StoreError, match="does not fit"):
        checkpoint.load(Monitor(two_features()), tally, rules)
    with pytest.raises(UsageError, match="resume with the same rule"):
        checkpoint.load(monitor, tally, [Threshold("bits", 4.0)])
    reference().save(checkpoint.path)
    with pytest.raises(StoreError, match="is a population file"):
        checkpoint.load(*parts())
    write_store(checkpoint.path, "checkpoint", {"schema": 99}, {})
    with pytest.raises(SchemaError, match="has schema 99"):
        checkpoint.load(*parts())


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("configuration", [1]),
        ("monitor", None),
        ("monitor", {"frames": {"f0": 1}}),
        ("monitor", {"frames": 3}),
        ("monitor peak", float("nan")),
        ("monitor tick", 1 << 64),
        ("monitor read", 10**9),
        ("monitor frames", {"f0": [1]}),
        ("monitor observers changes open", {}),
        ("tally", "nonsense"),
        ("tally", "[1]"),
        ("tally", '{"readings": 3}'),
        ("tally", "[[[["),
        ("rules", []),
        ("rules", 7),
        ("rules", [{"rule": "bits>-9 for 2 s", "raised": "yes", "since": 1.0, "change": None}]),
        ("offset", "x"),
        ("offset", -1),
        ("sketch/timbre", np.nan),
        ("sketch/timbre", np.inf),
        ("sketch/timbre", -1e300),
    ],
)
def test_what_no_run_remembers_is_refused(saved, where, value):
    checkpoint, *_ = saved
    monitor, tally, rules = parts()
    if where.startswith("sketch"):
        monitor = Monitor(two_features(), watch="s1")
        checkpoint.save(monitor, tally, rules, 0)
    header, arrays = read_store(checkpoint.path, "checkpoint")
    inside, keys = header, where.split()
    for key in keys[:-1]:
        inside = inside[key]
    if where in arrays:
        arrays[where][0] = value
    else:
        inside[keys[-1]] = value
    kept = {key: value for key, value in header.items() if key not in ("kind", "schema")}
    write_store(checkpoint.path, "checkpoint", kept, arrays)
    with pytest.raises(StoreError, match=r"does not fit|is damaged|another run") as caught:
        checkpoint.load(monitor, tally, rules)
    assert "\n" not in str(caught.value)


ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 120  # a run takes a few
RAISED = 3


def start(folder: Path, arguments: Sequence[object]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "monitor", *configured(["replay", *arguments], folder.parent)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(folder: Path, *arguments: object) -> tuple[int, str]:
    """Exit status and what was said to people."""
    with start(folder, arguments) as process:
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode, said


def kill(folder: Path, name: str, *arguments: object, lines: int) -> None:
    """Start a run and kill it once it can be resumed and has written so many lines more."""
    run, state = folder / name, folder / f"{name}.state"
    before = state.stat().st_mtime_ns if state.exists() else 0
    written = written_before = run.read_bytes().count(b"\n") if run.exists() else 0
    end = time.monotonic() + PATIENCE_SECONDS
    with start(folder, arguments) as process:
        while not (state.exists() and state.stat().st_mtime_ns > before) or (
            written < written_before + lines
        ):
            assert process.poll() is None, (process.communicate(), "it ended before it was killed")
            assert time.monotonic() < end
            time.sleep(0.01)
            written = run.read_bytes().count(b"\n") if run.exists() else 0
        process.kill()
        process.communicate()
    assert process.returncode == -9
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert b'"type":"end"' not in run.read_bytes()


def content(path: Path) -> bytes:
    """The bytes of a run, but for the times of day."""
    return re.sub(rb'"time":"[^"]*"', b'"time":""', path.read_bytes())


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two minutes of a synthetic voice."""
    path = tmp_path_factory.mktemp("talk") / "talk.flac"
    soundfile.write(path, np.tile(sounds(30.0), 4), RATE)
    return path


@pytest.fixture(scope="module")
def whole(talk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    status, said = finish(folder, str(talk), "--jsonl", "run.jsonl", *OPTIONS)
    assert status == RAISED, said
    assert [path.name for path in folder.iterdir()] == ["run.jsonl"]
    return folder / "run.jsonl"


OPTIONS = [{"step": "0.1"}, "--speed", "30", "--alert", "expected_bits>1 for 2 s"]


@pytest.mark.slow
def test_a_killed_run_resumed_equals_one_that_was_not(talk, whole, tmp_path):
    arguments = [str(talk), "--jsonl", "run.jsonl", *OPTIONS]
    kill(tmp_path, "run.jsonl", *arguments, lines=200)
    kill(tmp_path, "run.jsonl", *arguments, "--resume", lines=150)
    kill(tmp_path, "run.jsonl", *arguments, "--resume", lines=100)
    # torn in the middle of a line, as when the power fails
    with (tmp_path / "run.jsonl").open("ab") as file:
        file.write(b'{"type":"reading","sec')
    status, said = finish(tmp_path, *arguments, "--resume", "--speed", "max")
    assert status == RAISED, said  # an alert raised before the kill counts
    assert content(tmp_path / "run.jsonl") == content(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]
    assert stat.S_IMODE((tmp_path / "run.jsonl").stat().st_mode) == 0o600
    records = read_records(whole)
    assert len([record for record in records if record["type"] == "reading"]) == 1200
    assert any(record["type"] == "alert" for record in records)
    assert records[-1]["complete"] is True

    # and now that it has ended, nothing is left to resume
    status, said = finish(tmp_path, *arguments, "--resume")
    assert status == 1
    assert content(tmp_path / "run.jsonl") == content(whole)
    (line,) = said.splitlines()
    assert "nothing to resume" in line


@pytest.mark.slow
def test_part_of_a_real_recording(shared, tmp_path):
    """Opus, from the middle of its second minute, resampled, with many pauses."""
    (recording,) = sorted((shared / "speech/long/kerstin").glob("*.opus"))[:1]
    arguments = [str(recording), "--part", "65-115", {"step": "0.1"}]
    status, said = finish(tmp_path, *arguments, "--jsonl", "whole.jsonl")
    assert status == 0, said
    kill(tmp_path, "run.jsonl", *arguments, "--jsonl", "run.jsonl", "--speed", "30", lines=150)
    status, said = finish(tmp_path, *arguments, "--jsonl", "run.jsonl", "--resume")
    assert status == 0, said
    assert content(tmp_path / "run.jsonl") == content(tmp_path / "whole.jsonl")
    assert read_records(tmp_path / "run.jsonl")[-1]["seconds"] == 50.0
