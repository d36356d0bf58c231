from __future__ import annotations

import sys

import numpy as np
import pytest

from monitor.errors import SourceError, UsageError
from monitor.protectors import Program
from tests.sounds import RATE, synthetic

QUIETER = """
import io, sys, soundfile
samples, rate = soundfile.read(io.BytesIO(sys.stdin.buffer.read()))
out = io.BytesIO()
soundfile.write(out, samples / 2, rate, format="WAV", subtype="PCM_24")
sys.stdout.buffer.write(out.getvalue())
"""
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
