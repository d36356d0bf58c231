"""Killed in the middle of a write, a full disk, two processes at once: nothing is lost."""

from __future__ import annotations

import itertools
import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor import Monitor
from monitor.alerts import Threshold
from monitor.errors import StoreError
from monitor.ledger import Ledger, LedgerSession
from monitor.protocols import Provenance
from monitor.run import LedgerFile, LogFile, RunSettings
from monitor.sinks.buffer import RunBuffer
from monitor.sources.frames import write_frames
from monitor.stream.checkpoint import state_path
from monitor.stream.records import start_event
from monitor.types import Track
from tests.settings import configured
from tests.stream.streams import WATCHED, Listed, reference, run_through, simulated

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
        [sys.executable, "-B", *map(str, arguments)],
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
        folder, "-m", "monitor", *configured(
            ["replay", recording, "--features", "f0", "-w", WATCHED, "--ledger", "me.db",
             *arguments], folder), **options,
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
        with start(tmp_path, "-c", WRITER) as process:
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
        tmp_path, talk(tmp_path, 3000, 2), "--jsonl", "-", {"ledger-every": "1"}, "--speed", "600",
        preexec_fn=lambda: _limit(room),
    )  # fmt: skip
    code, out, err = finish(process)
    assert code == INCOMPLETE, err
    records = [json.loads(line) for line in out.splitlines()]
    assert len([r for r in records if r["type"] == "reading"]) == 3000  # the stream went on
    (line,) = records[-1]["failures"]
    assert re.match(r"ledger me\.db lacks \d+ s of this session: the file cannot ", line)
    assert "Make room" in line
    assert f": {line}\n" in err
    first, *more = whole_sessions(tmp_path / "me.db")  # what there was no room for has no session
    assert first == 60.0
    assert all(seconds < 3000 for seconds in more)
    # and when there is room again, it goes on
    code, _, err = finish(replay(tmp_path, talk(tmp_path, 30, 3), "--jsonl", "-"))
    assert code == 0, err
    assert whole_sessions(tmp_path / "me.db")[-1] == 30.0


# ---------------------------------------------------------- killed and resumed: no row more or less

SECONDS = 40
HEARD = (Provenance("talk", ("a",)),)


class Killing(RunBuffer):
    """Kills its own process at a reading."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._left = at

    def write(self, record: Any) -> None:
        self._left -= record.type == "reading"
        if self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def go(folder: Path, flush: float, save: float, kill: int | None) -> None:
    """Begin or resume a run as ``--resume`` does; a clock's steps say how often it is written."""
    path = folder / "run.jsonl"
    rules = [Threshold("f0.gain_bits", bits, 0.0, 0.0) for bits in (0.4, 0.6, 0.8, 1.0)]
    timed = partial(LedgerSession, clock=itertools.count(step=flush).__next__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("monitor.ledger.LedgerSession", timed)
        run_through(
            Listed([simulated(float(SECONDS))], ["talk"], HEARD),
            Monitor(reference(), watch=WATCHED),
            rules=rules,
            sinks=[] if kill is None else [Killing(kill)],
            log=LogFile(path, resume=True),
            ledger=LedgerFile(folder / "me.db", 1.0),
            settings=RunSettings(clock=itertools.count(step=save).__next__),
        )


def rows(folder: Path) -> list[dict[str, Any]]:
    """All that the ledger holds, but for the times of day."""
    with Ledger(folder / "me.db", create=False) as ledger:
        found = [{**r, "time": None, "started": None} for r in ledger.export()]
    assert found[0].pop("ended") is not None
    return found


GO = """
import sys
from functools import partial
from pathlib import Path
from tests.ledger.test_trouble import go
go(Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
"""


@pytest.mark.parametrize(
    ("flush", "save", "kill"),
    [
        (0.0, 9.0, 20),  # nothing was flushed, and much is in the checkpoint
        (0.2, 0.5, 33),  # a checkpoint later than the last flush
        (0.5, 0.06, 30),  # a flush later than the last checkpoint
        (9.0, 9.0, SECONDS - 1),  # nothing is left to hear
    ],
)
def test_killed_and_resumed_the_ledger_is_the_same(tmp_path, flush, save, kill):
    (tmp_path / "whole").mkdir()
    go(tmp_path / "whole", 9.0, 9.0, None)
    assert finish(start(ROOT, "-c", GO, tmp_path, flush, save, kill))[0] == -signal.SIGKILL
    go(tmp_path, flush, save, None)
    assert rows(tmp_path) == rows(tmp_path / "whole")
    types = [row["type"] for row in rows(tmp_path)]
    assert types.count("reading") == SECONDS
    assert types.count("alert") > 3


def test_a_checkpoint_comes_before_anything_that_counts(tmp_path):
    """Killed at its very first reading, a run leaves no session, and nothing locks it out."""
    assert finish(start(ROOT, "-c", GO, tmp_path, 9, 9, 0))[0] == -signal.SIGKILL
    assert not state_path(tmp_path / "run.jsonl").exists()
    with Ledger(tmp_path / "me.db") as ledger:
        ledger.refuse_twice(WATCHED, HEARD)
        assert ledger.sessions() == []
    go(tmp_path, 9.0, 9.0, None)  # from the beginning, into a session of its own
    with Ledger(tmp_path / "me.db") as ledger:
        assert [session.seconds for session in ledger.sessions()] == [SECONDS]


def test_two_sessions_that_hear_the_same_at_once_count_once(tmp_path):
    made = []
    for _ in range(2):
        monitor = Monitor(reference(), watch=WATCHED)
        session = LedgerSession(
            Ledger(tmp_path / "me.db"),
            monitor,
            recordings=HEARD,
            clock=itertools.count(step=9).__next__,
        )
        session.begin(start_event(monitor, ["talk"]))  # nobody has spoken in the other one yet
        made.append((monitor, session))
    for monitor, session in made:
        for reading in monitor.push(simulated(5.0)):
            session.write(reading)
    said = [session.drain() for _, session in made]
    for _, session in made:
        session.close()
    assert said[0] == []
    assert "would count twice, since session 1 of me.db includes it as talk" in said[1][0]
    with Ledger(tmp_path / "me.db") as ledger:
        carried = ledger.carried(WATCHED, {"f0": reference().specs["f0"]})
    assert carried.sessions == 1


def test_a_session_that_was_forgotten_while_it_went_on_is_not_resumed(tmp_path):
    monitor = Monitor(reference(), watch=WATCHED)
    session = LedgerSession(Ledger(tmp_path / "me.db"), monitor)
    with pytest.raises(StoreError, match=r"was forgotten\. Use replace=True"):
        session.restore(json.loads(json.dumps({**session.state(), "session": None})))
    session.close()
