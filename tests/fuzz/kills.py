"""Real runs, killed by the system at random moments; what is left must be as if they never were.

A few in CI (``test_kills.py``), hundreds by hand: ``python -m tests.fuzz --kills 200``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import soundfile

from monitor.ledger import Ledger
from monitor.population.store import read_store
from tests.stream.streams import RATE, WATCHED, reference, sounds
from tests.stream.test_kill import content, finish

__all__ = ["campaign", "kill_enrolments", "kill_replays"]

MOST_SECONDS = 2.5
REPLAY = ["--watch", WATCHED, "--features", "f0", "--step", "0.1", "--jsonl", "run.jsonl",
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
        more: list[str] = []
        for _ in range(min(kills, random.randrange(1, 4))):
            kills -= 1
            speed = ["--speed", str(random.choice((40, 80, 160)))]
            _killed(place, ["replay", str(talk), *REPLAY, *speed, *more], random)
            resumable = (place / "run.jsonl.state").exists()
            more = ["--resume"] if resumable else ["--replace"]
            if not resumable and _has_ended(place / "run.jsonl"):
                break
        ended = more == ["--replace"] and _has_ended(place / "run.jsonl")  # before it was killed
        if not ended and not _finished(place, [str(talk), *REPLAY, *more]):
            wrong.append(f"run {run}: it does not go on with {more}")
        if content(place / "run.jsonl") != content(whole / "run.jsonl"):
            wrong.append(f"run {run}: its records differ")
        if _disclosed(place) != _disclosed(whole):
            wrong.append(f"run {run}: its ledger differs")
        if _names(place) != _names(whole):
            wrong.append(f"run {run}: {_names(place)} are left")
    return wrong


def kill_enrolments(folder: Path, random: Random, kills: int) -> list[str]:
    """`enroll --add`, killed so often, and then let be."""
    voice = folder / "new.wav"
    soundfile.write(voice, sounds(12.0), RATE)
    more = ["enrol", str(voice), "--speaker", "me", "--features", "f0", "--add", "-o", "p.npz"]
    wrong = []
    whole = folder / "enrolled"
    whole.mkdir()
    reference().save(whole / "p.npz")
    before = (whole / "p.npz").read_bytes()
    assert _ended(whole, more) == 0
    for number in range(kills):
        place = folder / f"store{number}"
        place.mkdir()
        (place / "p.npz").write_bytes(before)
        _killed(place, more, random)
        done = (place / "p.npz").read_bytes() != before
        status = _ended(place, more)
        if status != (2 if done else 0):
            wrong.append(f"store {number}: the next call ends with {status}")
        if not _same(place / "p.npz", whole / "p.npz"):
            wrong.append(f"store {number}: it differs")
        if _names(place) != ["p.npz"]:
            wrong.append(f"store {number}: {_names(place)} are left")
    return wrong


def campaign(kills: int, seed: int) -> int:
    """Both, half of the kills each; how many things were wrong."""
    wrong = []
    for kind in (kill_replays, kill_enrolments):
        with tempfile.TemporaryDirectory() as folder:
            found = kind(Path(folder), Random(seed), (kills + 1) // 2)
        sys.stderr.write(f"{kind.__name__}: {(kills + 1) // 2} kills, {len(found)} failures\n")
        sys.stdout.writelines(f"FAILED seed {seed}: {each}\n" for each in found)
        wrong += found
    return len(wrong)


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "monitor", *arguments]


def _killed(place: Path, arguments: Sequence[str], random: Random) -> None:
    """Start a command and kill it some time later; or it has ended by then."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(_command(arguments), cwd=place, stdout=quiet, stderr=quiet) as process:
        try:
            process.wait(random.uniform(0.2, MOST_SECONDS))
        except subprocess.TimeoutExpired:
            process.kill()


def _ended(place: Path, arguments: Sequence[str]) -> int:
    return subprocess.run(_command(arguments), cwd=place, capture_output=True).returncode


def _finished(place: Path, arguments: Sequence[str]) -> bool:
    return finish(place, *arguments)[0] == 0


def _has_ended(run: Path) -> bool:
    return run.exists() and b'"type":"end"' in run.read_bytes()


def _names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def _disclosed(place: Path) -> tuple[object, ...]:
    """What the ledger carries on, whatever sessions it took."""
    with Ledger(place / "me.db", create=False) as ledger:
        carried = ledger.carried(WATCHED, reference().specs)
        last = ledger.sessions(WATCHED)[-1]
    heard = carried.totals
    assert heard is not None
    return carried.sessions, heard.speech, heard.totals["f0"].tolist(), last.bits


def _same(one: Path, other: Path) -> bool:
    (plain, arrays), (known, sums) = (read_store(path, "population") for path in (one, other))
    alike = all(np.array_equal(arrays[n], sums[n], equal_nan=True) for n in {*arrays, *sums})
    return alike and json.dumps(plain) == json.dumps(known)
