"""Examples that make everything up themselves run, and show what they say; .ci/run runs all."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.slow
def test_a_feature_of_ones_own_from_words_is_ranked_beside_one_of_the_sound(tmp_path):
    path = EXAMPLES / "09_a_feature_of_your_own.py"
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 10
    number, each = r"-?[\d.]+", r" +[\d.]+ s rank [\d.]+"
    line = rf" *{number} s +{number} bits  f0{each}, style{each}"
    assert all(re.fullmatch(line, said) for said in lines), done.stdout
    assert float(re.findall(rf"style +({number})", lines[-1])[0]) > 10
    assert list(tmp_path.iterdir()) == []
