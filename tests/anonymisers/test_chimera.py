"""A public anonymiser as a --anonymiser-command, on real speech."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from monitor.anonymisers import Program
from monitor.sources import File
from monitor.types import Block
from tests.anonymisers.vowels import semitones_moved

ADAPTER = Path(__file__).resolve().parents[2] / "examples" / "chimera_voice.py"


def masked(sound: np.ndarray, *options: str) -> np.ndarray:
    program = Program(shlex.join([sys.executable, str(ADAPTER), *options]), 16000)
    program.process(sound)
    return program.flush()


def test_chimera_voice_moves_the_pitch_of_a_reader_and_keeps_length_and_loudness(shared):
    pytest.importorskip("chimera", reason="needs the extra peers")
    path = shared / "speech" / "dev-clean" / "1272" / "128104.opus"
    with File(path, end_seconds=6.0) as file:
        sound = np.concatenate([each.samples for each in file if isinstance(each, Block)])
    made = masked(sound, "--key", "one")
    assert made.size == sound.size
    assert made.std() == pytest.approx(sound.std(), rel=0.02)
    assert 3 < abs(semitones_moved(sound, made)) < 9  # it never moves less than 4
    assert not np.allclose(made, masked(sound))  # without a key it has another each time
