"""Examples that make everything up themselves run, and show what they say; .ci/run runs all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.attacks.conftest import corpora  # noqa: F401  a fixture

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.slow
def test_a_feature_of_ones_own_from_words_is_ranked_beside_one_of_the_sound(tmp_path):
    path = EXAMPLES / "12_a_feature_of_your_own.py"
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 10
    number, each = r"-?[\d.]+", r" +[\d.]+ s rank [\d.]+"
    line = rf" *{number} s +{number} bits  f0{each}, little{each}"
    assert all(re.fullmatch(line, said) for said in lines), done.stdout
    assert float(re.findall(rf"little +({number})", lines[-1])[0]) > 10
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_captions_add_their_words_to_a_voice_and_only_those_of_one_speaker():
    captions, notice, *lines = said("10_words_beside_a_voice.py")
    assert captions == "in the captions: Guide, Cem"
    assert "no times of their own" in notice
    number = r"-?\d+\.\d\d"
    form = (
        rf" *(\d+) s  pitch alone +({number}) bits, with the words +({number}); rank by style (\d+)"
    )
    found = [match for line in lines if (match := re.fullmatch(form, line))]
    assert len(found) == len(lines) == 5
    sound, words, rank = map(float, found[-1].groups()[1:])
    assert words > sound + 0.3
    assert rank <= 2


def said(name: str, *arguments: str) -> list[str]:
    """What an example prints."""
    path = EXAMPLES / name
    done = subprocess.run(
        [sys.executable, str(path), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_ten_lines_show_an_alert():
    lines = said("01_ten_lines.py")
    (told,) = [line.strip() for line in lines if "alert" in line]
    assert told == "alert raised: bits>0.5 for 30 s"
    assert sum("bits" in line for line in lines) > 60


@pytest.mark.slow
def test_your_function_is_called_before_the_threshold_and_at_it():
    lines = said("04_alert_your_own_function.py")
    assert any(re.fullmatch(r" +\d+ s  0\.8 bits in about \d+ s", line) for line in lines)
    assert [line for line in lines if "ALERT bits>0.8 for 5 s: " in line]


@pytest.mark.slow
def test_an_anonymiser_that_protects_nobody_is_found_out(tmp_path, corpora):  # noqa: F811
    environment = {**os.environ, "MONITOR": str(Path(sys.executable).with_name("monitor"))}
    command = ["sh", str(EXAMPLES / "08_test_your_anonymiser.sh"), str(corpora(readers=4)), "out"]
    command += [f"{sys.executable} {EXAMPLES / 'quieter.py'}", "--template", "6", "--seconds", "2"]
    command += ["--features", "f0"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True, env=environment
    )
    headline, unprotected = done.stdout.split("Unprotected:")[:2]
    bits = [float(re.findall(r"([\d.]+) bits", said)[0]) for said in (headline, unprotected)]
    assert bits[0] > 0.9 * bits[1] > 1.0, done.stdout
    assert (tmp_path / "out" / "index.html").stat().st_size > 10_000


@pytest.mark.slow
def test_a_folder_is_calibrated_and_the_rest_of_an_enrolled_recording_weighed(shared):
    lines = said("02_enrol_and_calibrate.py", str(shared / "speech" / "dev-clean"))
    readings = [line for line in lines if " bits (" in line and " s of " in line]
    assert readings
    assert all(line.endswith("(same-session rank model)") for line in readings)
