from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from monitor.anonymisers import Program
from monitor.errors import SourceError, UsageError
from tests.sounds import RATE, synthetic
from tests.test_programs import gone

QUIETER = """
import io, sys, soundfile
samples, rate = soundfile.read(io.BytesIO(sys.stdin.buffer.read()))
out = io.BytesIO()
soundfile.write(out, samples / 2, rate, format="WAV", subtype="PCM_24")
sys.stdout.buffer.write(out.getvalue())
"""
EMPTY = QUIETER.replace("samples / 2", "samples[:0]")
FASTER = QUIETER.replace("rate, format", "2 * rate, format")


def ran(code: str, sound: np.ndarray) -> np.ndarray:
    program = Program(f"\"{sys.executable}\" -c '{code}'", RATE)
    assert program.process(sound).size == 0
    return program.flush()


def test_a_program_hears_a_wav_and_answers_with_one():
    sound = synthetic(0.3)
    assert ran(QUIETER, sound) == pytest.approx(sound / 2, abs=1e-4)


@pytest.mark.parametrize(("code", "said"), [
    ("raise SystemExit(3)", "exit status 3"),
    ("print(1)", "no WAV that can be read"),
    ("pass", "no WAV that can be read"),
    (FASTER, "at 32000 Hz; it was given one at 16000 Hz"),
    ('import sys; sys.exit("a\\n no model \\n\\n")', "exit status 1: no model$"),
    ('import sys; sys.exit("\\33[2J" + 999 * "x")', r": \?\[2Jx{196}$"),
    ('import sys; sys.stderr.write("usage")', "no WAV that can be read.*: usage$"),
    ("import os; os.kill(os.getpid(), 9)", "killed by signal 9"),
    (EMPTY, "printed a WAV without a sample: no voice is left of it$"),
    ('while True: print("x" * 9999)', "wrote over .* MB to its standard output .* and was killed"),
    ('import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[:4000])', "less than its header"),
])  # fmt: skip
def test_what_it_does_wrong_is_said(code, said):
    with pytest.raises(SourceError, match=said):
        ran(code, synthetic(0.5))


def test_one_that_is_not_there_is_said():
    program = Program("no-such-program-anywhere", RATE)
    with pytest.raises(SourceError, match="no-such-program-anywhere cannot be started"):
        program.flush()


@pytest.mark.parametrize("command", ["", "  ", "'"])
def test_no_command_is_refused(command):
    with pytest.raises(UsageError):
        Program(command, RATE)


SLOW = """
import subprocess, sys, pathlib
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
child.wait()
"""


def slow(note: Path) -> str:
    return shlex.join([sys.executable, "-c", SLOW, str(note)])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.slow
def test_one_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path):
    program = Program(slow(tmp_path / "pid"), RATE, 0.6)
    program.process(synthetic(30.0))  # more than a pipe holds
    with pytest.raises(SourceError, match=r"took over 0.6 s and was killed; --command-timeout"):
        program.flush()
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.slow
def test_nobody_waits_any_more_and_it_is_gone(tmp_path):
    code = (
        "from monitor.anonymisers import Program\n"
        f"program = Program({slow(tmp_path / 'pid')!r}, 16000)\n"
        "program.flush()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(1000):
            if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=10)[1]
    finally:
        process.kill()
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_no_time_is_refused(seconds):
    with pytest.raises(UsageError, match="no time"):
        Program("cat", RATE, seconds)


def test_of_nothing_nothing_is_made():
    assert ran(EMPTY, synthetic(0.5)[:0]).size == 0
