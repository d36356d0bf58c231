"""Real runs, killed by the system at random moments; what is left must be as if they never were.

A few in CI (``test_campaigns.py``), hundreds by hand: ``python -m tests.fuzz --kills 200``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import soundfile

from monitor.ledger import Ledger
from tests.settings import configured
from tests.stream.streams import RATE, WATCHED, reference, sounds
from tests.stream.test_kill import content, finish

__all__ = ["kill_replays"]

MOST_SECONDS = 2.5
REPLAY = ["--watch", WATCHED, "--features", "f0", {"step": "0.1"}, "--jsonl", "run.jsonl",
          "--ledger", "me.db"]  # fmt: skip


def kill_replays(folder: Path, random: Random, kills: int) -> list[str]:
    """Runs with a ledger, killed so often in all, each resumed to its end.

    Returns:
        what differs from a run that was never killed.
    """
    talk = folder / "talk.wav"
    soundfile.write(talk, np.tile(sounds(15.0), 8), RATE)
    whole = folder / "whole"
    whole.mkdir()
    assert _finished(whole, [str(talk), *REPLAY])
    wrong, run = [], 0
    while kills > 0:
        run += 1
        place = folder / f"run{run}"
        place.mkdir()
        for _ in range(min(kills, random.randrange(1, 4))):
            kills -= 1
            speed = ["--speed", str(random.choice((40, 80, 160)))]
            _killed(place, ["replay", str(talk), *REPLAY, *speed, "--resume"], random)
            if _has_ended(place):
                break
        if not _has_ended(place) and not _finished(place, [str(talk), *REPLAY, "--resume"]):
            wrong.append(f"run {run}: it does not go on")
        if content(place / "run.jsonl") != content(whole / "run.jsonl"):
            wrong.append(f"run {run}: its records differ")
        if _disclosed(place) != _disclosed(whole):
            wrong.append(f"run {run}: its ledger differs")
        if _names(place) != _names(whole):
            wrong.append(f"run {run}: {_names(place)} are left")
    return wrong


def _killed(place: Path, arguments: Sequence[object], random: Random) -> None:
    """Start a command and kill it some time later; or it has ended by then."""
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-m", "monitor", *configured(arguments, place.parent)]
    with subprocess.Popen(command, cwd=place, stdout=quiet, stderr=quiet) as process:
        try:
            process.wait(random.uniform(0.2, MOST_SECONDS))
        except subprocess.TimeoutExpired:
            process.kill()


def _finished(place: Path, arguments: Sequence[object]) -> bool:
    return finish(place, *arguments)[0] == 0


def _has_ended(place: Path) -> bool:
    run = place / "run.jsonl"
    is_open = (place / "run.jsonl.state").exists()
    return not is_open and run.exists() and b'"type":"end"' in run.read_bytes()


def _names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def _disclosed(place: Path) -> tuple[object, ...]:
    """What the ledger carries on, whatever sessions it took."""
    with Ledger(place / "me.db", create=False) as ledger:
        carried = ledger.carried(WATCHED, reference().specs)
        last = ledger.sessions(WATCHED)[-1]
    heard = carried.totals
    return carried.sessions, heard.speech, heard.totals["f0"].tolist(), last.bits
