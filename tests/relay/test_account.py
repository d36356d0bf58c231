"""A budget that is kept in a ledger: what goes out was charged before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from monitor import Monitor, Population
from monitor.errors import UsageError
from monitor.ledger import Ledger, LedgerSession
from monitor.relay import Gate, RelayPath
from monitor.stream.records import start_event
from monitor.types import Block, FloatArray
from tests.sounds import RATE, synthetic

BUDGET, STEP = 2.2, 0.5


@pytest.fixture(scope="module")
def voice() -> FloatArray:
    return synthetic(14.0, pitch=230.0)


@pytest.fixture(scope="module")
def watching(voice) -> Monitor:
    """A monitor of the reader whose pitch is most like that of the voice."""
    *_, last = Monitor(Population.reference(), ["f0"]).stream(voice, rate=RATE)
    return Monitor(Population.reference(), ["f0"], watch=last.top[0][0], step_seconds=STEP)


class Account:
    """A gate whose session in a ledger can be cut off as by a kill."""

    def __init__(self, path: Path, monitor: Monitor, budget: float = BUDGET) -> None:
        fresh = monitor.fresh()
        self.session = LedgerSession(Ledger(path), fresh)
        self.session.begin(start_event(fresh, ("microphone",)))
        self.session.hold()
        ways = [RelayPath("clear", [fresh.fresh()])]
        self.gate = Gate(budget, ways, STEP, charge=self.session.charge)

    def send(self, sound: FloatArray) -> FloatArray:
        blocks = self.gate.take(Block(sound.astype(np.float32), RATE))
        return np.concatenate([np.empty(0), *(block.samples for block in blocks)])

    def kill(self) -> None:
        assert self.session._account is not None
        os.close(self.session._account)
        self.session._ledger.close()


def bits_of(monitor: Monitor, sound: FloatArray) -> float:
    readings = monitor.fresh().stream(sound.astype(np.float32), rate=RATE)
    return max((reading.bits or 0.0 for reading in readings), default=0.0)


def test_restarts_spend_one_budget(tmp_path, watching, voice):
    assert bits_of(watching, voice) > BUDGET + 0.3
    sent, size = [], round(1.2 * RATE)
    for at in range(0, len(voice) - size, size):
        account = Account(tmp_path / "me.db", watching)
        sent.append(account.send(voice[at : at + size]))
        account.kill()
    assert sent[0].any()
    assert not sent[-1].any()
    assert bits_of(watching, np.concatenate(sent)) <= BUDGET


def test_what_cannot_be_charged_is_silent(tmp_path, watching, voice):
    account = Account(tmp_path / "me.db", watching, budget=9.0)
    assert account.send(voice[: 2 * RATE]).any()
    other = Ledger(tmp_path / "me.db")
    other.connection.execute("BEGIN IMMEDIATE")
    assert not account.send(voice[2 * RATE : 3 * RATE]).any()
    assert account.gate.uncharged_seconds == pytest.approx(1.0)
    other.connection.execute("ROLLBACK")
    assert account.send(voice[3 * RATE : 4 * RATE]).any()


def test_one_run_at_a_time_spends_a_budget(tmp_path, watching):
    account = Account(tmp_path / "me.db", watching)
    with pytest.raises(UsageError, match="another run"):
        Account(tmp_path / "me.db", watching)
    account.kill()
    Account(tmp_path / "me.db", watching).kill()


def test_earlier_sessions_count_as_spent(tmp_path, watching, voice):
    first = Account(tmp_path / "me.db", watching, budget=9.0)
    first.send(voice[: 6 * RATE])
    spent = first.gate.bits
    first.kill()
    account = Account(tmp_path / "me.db", watching, budget=9.0)
    assert account.gate.bits == pytest.approx(spent, abs=0.5)
    assert account.gate.left_bits == 9.0 - account.gate.bits
    account.kill()
    none_left = Account(tmp_path / "me.db", watching, budget=2.1)
    (closing,) = none_left.gate.closings
    assert (closing.spent_bits, closing.requested_bits) == (account.gate.bits, None)
    assert closing.left_bits == 0.0
    none_left.kill()


def test_a_session_that_grew_meanwhile_is_not_spent_again(tmp_path, watching, voice):
    first = Account(tmp_path / "me.db", watching, budget=9.0)
    first.send(voice[: 3 * RATE])
    waiting = LedgerSession(Ledger(tmp_path / "me.db"), watching.fresh())
    first.send(voice[3 * RATE : 6 * RATE])
    first.kill()
    waiting.begin(start_event(watching, ("microphone",)))
    with pytest.raises(UsageError, match="has just added speech"):
        waiting.hold()
    waiting.close()


SPEAKING = """
import sys
import numpy as np
from monitor import Monitor, Population
from pathlib import Path
from tests.relay.test_account import STEP, Account, RATE, synthetic
monitor = Monitor(Population.reference(), ["f0"], watch=sys.argv[2], step_seconds=STEP)
account, voice = Account(Path(sys.argv[1]), monitor), synthetic(14.0, pitch=230.0)
for at in range(0, len(voice), RATE // 10):
    sys.stdout.buffer.write(account.send(voice[at : at + RATE // 10]).astype("<f4").tobytes())
    sys.stdout.buffer.flush()
"""


@pytest.mark.slow
def test_a_kill_forgets_nothing_that_went_out(tmp_path, watching):
    heard = []
    for seed in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", SPEAKING, str(tmp_path / "me.db"), str(watching.watch)],
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            first = process.stdout.read(4)
            time.sleep(np.random.default_rng(seed).uniform(0.0, 0.2))
            process.send_signal(signal.SIGKILL)
            sound = first + process.stdout.read()
        heard.append(np.frombuffer(sound[: len(sound) // 4 * 4], "<f4"))
    assert np.concatenate(heard).any()
    assert bits_of(watching, np.concatenate(heard)) <= BUDGET


@pytest.mark.slow
def test_two_processes_never_spend_the_same_bits(tmp_path, watching):
    command = [sys.executable, "-c", SPEAKING, str(tmp_path / "me.db"), str(watching.watch)]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdout=pipe, stderr=pipe) for _ in range(2)]
    outcomes = [process.communicate() for process in processes]
    assert 0 in [process.returncode for process in processes]
    for process, (_, error) in zip(processes, outcomes, strict=True):
        assert process.returncode == 0 or b"another run" in error
    sent = [np.frombuffer(sound, "<f4") for sound, _ in outcomes]
    assert any(sound.any() for sound in sent)
    assert bits_of(watching, np.concatenate(sent)) <= BUDGET
