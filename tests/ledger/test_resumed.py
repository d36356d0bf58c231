"""A run with a ledger, killed by the system at any moment and resumed: no row more, none less."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from monitor import Monitor
from monitor.alerts import Threshold
from monitor.errors import StoreError
from monitor.ledger import Ledger, LedgerSession
from monitor.protocols import Provenance
from monitor.run import LedgerFile, LogFile, RunSettings
from monitor.sinks.jsonl import RunBuffer
from monitor.stream.checkpoint import state_path
from monitor.stream.records import start_event
from tests.stream.streams import WATCHED, Listed, reference, run_through, simulated

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
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
    """Start or resume a run as a command does; a clock's steps say how often things are written."""
    path = folder / "run.jsonl"
    begun = state_path(path).exists()
    rules = [Threshold("f0.gain_bits", bits, 0.0, 0.0) for bits in (0.4, 0.6, 0.8, 1.0)]
    timed = partial(LedgerSession, clock=itertools.count(step=flush).__next__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("monitor.ledger.LedgerSession", timed)
        run_through(
            Listed([simulated(float(SECONDS))], ["talk"], HEARD),
            Monitor(reference(), watch=WATCHED),
            rules=rules,
            sinks=[] if kill is None else [Killing(kill)],
            log=LogFile(path, replace=not begun, resume=begun),
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
from tests.ledger.test_resumed import go
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
    killed = subprocess.run(
        [sys.executable, "-c", GO, str(tmp_path), str(flush), str(save), str(kill)],
        cwd=ROOT, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    go(tmp_path, flush, save, None)
    assert rows(tmp_path) == rows(tmp_path / "whole")
    types = [row["type"] for row in rows(tmp_path)]
    assert types.count("reading") == SECONDS
    assert types.count("alert") > 3


def test_a_checkpoint_comes_before_anything_that_counts(tmp_path):
    """Killed at its very first reading, a run leaves no session, and nothing locks it out."""
    killed = subprocess.run(
        [sys.executable, "-c", GO, str(tmp_path), "9", "9", "0"], cwd=ROOT, check=False
    )
    assert killed.returncode == -signal.SIGKILL
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
    assert "was heard as talk in session 1 of me.db and would count twice" in said[1][0]
    with Ledger(tmp_path / "me.db") as ledger:
        carried = ledger.carried(WATCHED, {"f0": reference().specs["f0"]})
    assert carried.sessions == 1


def test_a_session_that_was_forgotten_while_it_went_on_is_not_resumed(tmp_path):
    monitor = Monitor(reference(), watch=WATCHED)
    session = LedgerSession(Ledger(tmp_path / "me.db"), monitor)
    with pytest.raises(StoreError, match="was forgotten; run with replace=True"):
        session.restore(json.loads(json.dumps({**session.state(), "session": None})))
    session.close()
