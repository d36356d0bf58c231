"""Killed in the middle of a write, a full disk, two processes at once: nothing is lost."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from monitor.ledger import Ledger
from monitor.population.population import Population
from monitor.sources.frames import write_frames
from monitor.types import Track
from tests.stream.streams import WATCHED, reference

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 120
INCOMPLETE = 4


def talk(folder: Path, seconds: int, seed: int = 0) -> Path:
    """Nothing but speech, half of it voiced: what was heard tells how long it was."""
    generator = np.random.default_rng(seed)
    ticks = np.arange(2, 100 * seconds + 1, 2)
    track = Track(ticks, generator.integers(20, 60, ticks.size))
    path = folder / f"talk{seed}.npz"
    speech = np.ones(100 * seconds, dtype=bool)
    write_frames(path, speech, {"f0": track}, {"f0": 104}, {"f0": 0.01})
    return path


def start(folder: Path, *arguments: object, **options: object) -> subprocess.Popen[str]:
    process: subprocess.Popen[str] = subprocess.Popen(
        [sys.executable, "-B", "-m", "monitor", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )
    return process


def replay(folder: Path, recording: Path, *arguments: object, **options: object):
    return start(
        folder, "replay", recording, "--features", "f0", "-w", WATCHED, "--ledger", "me.db",
        *arguments, **options,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    with process:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert "Traceback" not in err
    return process.returncode, out, err


def whole_sessions(path: Path) -> list[float]:
    """Seconds of the sessions, each of which must agree with itself in everything."""
    with Ledger(path, create=False) as ledger:
        assert ledger.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        for row in ledger.connection.execute(
            "SELECT s.seconds, s.speech, k.frames, k.total FROM sessions s "
            "LEFT JOIN sketches k ON k.session = s.id"
        ):
            if row["frames"] is None:
                assert row["seconds"] == 0
                continue
            assert row["speech"] == round(100 * row["seconds"])
            assert row["frames"] == round(50 * row["seconds"])
            assert np.frombuffer(row["total"], "<i8").sum() == row["frames"]
        return [row.seconds for row in ledger.sessions()]


WRITER = """
import itertools, sys
import numpy as np
from monitor import Monitor
from monitor.ledger import Ledger, LedgerSession
from monitor.stream.records import start_event
from monitor.types import Frames, Track
from tests.stream.streams import WATCHED, reference

count = itertools.count()
monitor = Monitor(reference(), watch=WATCHED)
clock = lambda: 10.0 * next(count)
session = LedgerSession(Ledger("me.db"), monitor, reading_seconds=1, clock=clock)
session.write(session.begin(start_event(monitor, ["talk"])))
second = Frames(np.ones(100, bool), {"f0": Track(np.arange(2, 101, 2), np.full(50, 30))})
for number in range(10**9):
    later = Frames(second.speech, {"f0": Track(second.tracks["f0"].ticks + 100 * number,
                                                second.tracks["f0"].values)})
    for reading in monitor.push(later):
        session.write(reading)
    print(number, flush=True)
"""


def test_killed_in_the_middle_of_a_write(tmp_path):
    generator = np.random.default_rng(0)
    reached = []
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            for _ in range(int(generator.integers(5, 60))):
                seen = int(process.stdout.readline())
            time.sleep(float(generator.uniform(0, 0.01)))  # anywhere in a write
            process.kill()
        assert process.returncode == -signal.SIGKILL
        reached.append(seen + 1)
        found = whole_sessions(tmp_path / "me.db")
        # what was said to be written is there, in every session so far
        assert len(found) == len(reached)
        assert all(there >= said for there, said in zip(found, reached, strict=True))
    with Ledger(tmp_path / "me.db") as ledger:
        carried = ledger.carried(WATCHED, {"f0": reference().specs["f0"]})
    assert carried.sessions == 8
    assert carried.totals is not None
    assert carried.totals.speech == round(100 * sum(found))


def test_a_killed_replay_is_resumed_into_its_own_session(tmp_path):
    recording = talk(tmp_path, 240)
    arguments = ["--jsonl", "run.jsonl", "--ledger-every", "5"]
    with replay(tmp_path, recording, *arguments, "--speed", "60") as process:
        state = tmp_path / "run.jsonl.state"
        until = time.monotonic() + PATIENCE_SECONDS
        while not state.exists() or (tmp_path / "run.jsonl").read_bytes().count(b"\n") < 100:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
        process.kill()
        process.communicate()
    (seconds,) = whole_sessions(tmp_path / "me.db")
    assert 0 < seconds < 240
    code, _, err = finish(replay(tmp_path, recording, *arguments, "--replace"))
    assert (code, "would count twice" in err) == (2, True)  # not by mistake, from the beginning
    code, _, err = finish(replay(tmp_path, recording, *arguments, "--resume"))
    assert code == 0, err
    assert whole_sessions(tmp_path / "me.db") == [240.0]
    with Ledger(tmp_path / "me.db") as ledger:
        (session,) = ledger.sessions()
        history = ledger.history(WATCHED)
    assert session.ended is not None
    assert [point.seconds for point in history] == [*np.arange(1.0, 237, 5), 240.0]
    first = json.loads((tmp_path / "run.jsonl").read_text().splitlines()[0])
    assert first["carried"]["sessions"] == 0


def test_a_session_that_was_forgotten_is_not_resumed(tmp_path):
    recording = talk(tmp_path, 600)
    with replay(tmp_path, recording, "--jsonl", "run.jsonl", "--speed", "60") as process:
        state = tmp_path / "run.jsonl.state"
        while not (state.exists() and whole_sessions(tmp_path / "me.db")):
            time.sleep(0.01)
        first = state.stat().st_mtime_ns
        while state.stat().st_mtime_ns == first:  # the next one has the session in it
            time.sleep(0.01)
        process.kill()
        process.communicate()
    code, _, err = finish(start(tmp_path, "ledger", "forget", "me.db", WATCHED))
    assert code == 0, err
    code, _, err = finish(replay(tmp_path, recording, "--jsonl", "run.jsonl", "--resume"))
    assert code == 1
    assert "session was forgotten; run with --replace" in err.splitlines()[-1]


def test_two_processes_at_once(tmp_path):
    """Both begin on a file that is not there yet, and write all the while."""
    running = [
        replay(tmp_path, talk(tmp_path, 120, seed), "--speed", "40", "--jsonl", "-")
        for seed in range(3)
    ]
    ends = []
    for process in running:
        code, out, err = finish(process)
        assert code == 0, err
        ends.append(json.loads(out.splitlines()[-1]))
    assert [end["failures"] for end in ends] == [[], [], []]
    assert whole_sessions(tmp_path / "me.db") == [120.0] * 3
    with Ledger(tmp_path / "me.db") as ledger:
        carried = ledger.carried(WATCHED, {"f0": reference().specs["f0"]})
    assert carried.totals is not None
    assert carried.totals.speech == 3 * 12_000


def test_another_process_that_holds_it_all_the_while(tmp_path):
    code, *_ = finish(replay(tmp_path, talk(tmp_path, 20, 1), "--jsonl", "-"))
    assert code == 0
    process = replay(tmp_path, talk(tmp_path, 600, 2), "--speed", "60", "--jsonl", "run.jsonl")
    run = tmp_path / "run.jsonl"
    while not run.exists() or run.read_bytes().count(b"\n") < 60:
        time.sleep(0.01)
    other = sqlite3.connect(tmp_path / "me.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    seen = run.read_bytes().count(b"\n")
    until = time.monotonic() + PATIENCE_SECONDS
    while run.read_bytes().count(b"\n") < seen + 200:  # the stream does not wait for it
        assert time.monotonic() < until
        time.sleep(0.01)
    other.execute("ROLLBACK")
    other.close()
    code, _, err = finish(process)
    assert code == 0, err
    assert whole_sessions(tmp_path / "me.db") == [20.0, 600.0]


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_loses_nothing_that_was_there(tmp_path):
    """The process may write no file beyond a size, which is what SQLite sees of a full disk."""
    code, *_ = finish(replay(tmp_path, talk(tmp_path, 60, 1), "--jsonl", "-"))
    assert code == 0
    room = (tmp_path / "me.db").stat().st_size + 20_000
    process = replay(
        tmp_path, talk(tmp_path, 3000, 2), "--jsonl", "-", "--ledger-every", "1", "--speed", "600",
        preexec_fn=lambda: _limit(room),
    )  # fmt: skip
    code, out, err = finish(process)
    assert code == INCOMPLETE, err
    records = [json.loads(line) for line in out.splitlines()]
    assert len([r for r in records if r["type"] == "reading"]) == 3000  # the stream went on
    (line,) = records[-1]["failures"]
    assert line.startswith("ledger me.db: the disk ")
    assert "make room" in line
    assert line.endswith("s of this session are not in it")
    assert f"monitor: not done: {line}\n" in err
    first, *more = whole_sessions(tmp_path / "me.db")  # what there was no room for has no session
    assert first == 60.0
    assert all(seconds < 3000 for seconds in more)
    # and when there is room again, it goes on
    code, _, err = finish(replay(tmp_path, talk(tmp_path, 30, 3), "--jsonl", "-"))
    assert code == 0, err
    assert whole_sessions(tmp_path / "me.db")[-1] == 30.0


@pytest.mark.parametrize("there_already", [False, True])
def test_no_room_at_all(tmp_path, there_already):
    if there_already:
        code, *_ = finish(replay(tmp_path, talk(tmp_path, 20), "--jsonl", "-"))
        assert code == 0
    process = replay(tmp_path, talk(tmp_path, 20), "--jsonl", "-", preexec_fn=lambda: _limit(1000))
    code, out, err = finish(process)
    assert (code, out) == (1, "")
    (line,) = [line for line in err.splitlines() if line.startswith("monitor: ")]
    assert line.startswith("monitor: me.db: the disk ")


def test_an_older_population_of_the_same_speaker_goes_on(tmp_path):
    """Sketches do not depend on who else is enrolled."""
    code, *_ = finish(replay(tmp_path, talk(tmp_path, 30, 1), "--jsonl", "-"))
    assert code == 0
    fewer = Population.reference().only(["f0"])
    fewer.save(tmp_path / "fewer.npz")
    code, out, err = finish(
        replay(tmp_path, talk(tmp_path, 30, 2), "--jsonl", "-", "-p", "fewer.npz")
    )
    assert code == 0, err
    assert json.loads(out.splitlines()[0])["carried"]["speech"] == 30.0
