"""monitor attack with the attacker who trains."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import soundfile

from monitor.lab import adapting
from monitor.networks.layers import RATE
from tests.lab.adapting.conftest import voice

TINY = ("--features", "f0,voice", "--seconds", 4, "--template", 6, "--trials", 2,
        "--segments", "1", "--jobs", 1, "--training-steps", 2)  # fmt: skip
JUDGED, APART, TRAINING = 3, 10, 10


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Who is judged; background speakers, some of whom say enough to choose a network."""
    judged, others = tmp_path_factory.mktemp("judged"), tmp_path_factory.mktemp("others")
    for number in range(JUDGED + APART + TRAINING):
        folder = (judged if number < JUDGED else others) / f"r{number:02}"
        folder.mkdir()
        seconds = 24.0 if number < JUDGED + APART else 4.0
        soundfile.write(folder / "a.wav", voice(number, seconds), RATE)
    return judged, others


@pytest.mark.slow
def test_the_attacker_who_trains_says_what_it_picked(run, folders, tmp_path):
    pytest.importorskip("torch", reason="needs the extra training")
    judged, others = folders
    out = tmp_path / "out"
    options = ("--method", "noise:10", "--background", others, *TINY)
    done = run("attack", judged, "-o", out, *options, "--attackers", "semi-informed")
    assert done.code == 0, done.err
    found = json.loads((out / "results.json").read_text())
    rows = [row for row in found["rows"] if row["attacker"] == "semi-informed"]
    assert {row["feature"] for row in rows} == {"f0", "voice", "joint"}
    assert {row["method"] for row in rows} == {"noise:10"}  # clear speech needs no training
    (rank_model,) = {row["rank_model"] for row in rows if row["feature"] == "joint"}
    assert rank_model.startswith("learnt on 10 background speakers")
    (note,) = (line for line in found["notes"] if "semi-informed uses" in line)
    assert "of 10 background speakers" in note
    assert note in done.err
    for path in out.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.slow
def test_too_small_a_background_is_told_or_refused(run, folders, tmp_path):
    pytest.importorskip("torch", reason="needs the extra training")
    judged, others = folders
    few = tmp_path / "few"
    few.mkdir()
    for name in ("r20", "r21", "r22"):
        (few / name).symlink_to(others / name)
    options = ("--background", few, "--features", "f0", *TINY[2:])
    order = ("attack", judged, "-o", tmp_path / "a", *options)
    done = run(*order)
    assert "semi-informed is not tried: " in done.err
    assert done.code == 0, done.err
    refused = run(*order[:2], "-o", tmp_path / "b", *options, "--attackers", "semi-informed")
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "readers of --background" in refused.err


def test_what_it_lacks_is_said_before_anything_is_heard(run, folders, tmp_path, monkeypatch):
    judged, others = folders
    order = ("attack", judged, "-o", tmp_path / "out", "--attackers", "semi-informed", *TINY)
    refused = run(*order)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "--background" in refused.err
    both = run(*order, "--background", others, "--training-minutes", 1)
    assert (both.code, both.err.count("\n")) == (2, 1)
    assert "--training-minutes, not both" in both.err
    monkeypatch.setattr(adapting, "find_spec", lambda _: None)
    lacking = run(*order, "--background", others)
    assert (lacking.code, lacking.err.count("\n")) == (2, 1)
    assert "pip install 'speaker-disclosure-monitor[training]'" in lacking.err
