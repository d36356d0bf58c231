from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.image import imread

from monitor.events.schema import RECORDS

pytestmark = pytest.mark.slow


@pytest.fixture
def recorded(run, wav, tmp_path):
    path = tmp_path / "talk.jsonl"
    assert run("replay", wav, "--jsonl", path).code == 0
    return path


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<?xml"), ("pdf", b"%PDF-")]
)
def test_a_recorded_run(run, recorded, tmp_path, suffix, start):
    path = tmp_path / f"talk.{suffix}"
    result = run("show", recorded, "-o", path)
    assert (result.code, result.out, result.err) == (0, "", "")
    assert path.read_bytes().startswith(start)


def test_it_is_what_replay_draws(run, wav, recorded, tmp_path):
    run("show", recorded, "-o", tmp_path / "a.png")
    run("replay", wav, "--plot", tmp_path / "b.png")
    # the file's figures are rounded: not a shade more
    assert np.abs(imread(tmp_path / "a.png") - imread(tmp_path / "b.png")).max() < 0.02
    run("show", recorded, "-o", tmp_path / "c.png", "--title", "A title of my own")
    assert (tmp_path / "c.png").read_bytes() != (tmp_path / "a.png").read_bytes()


def test_a_run_that_was_broken_off(run, recorded, tmp_path):
    lines = recorded.read_text().splitlines(keepends=True)
    recorded.write_text("".join(lines[:5]) + lines[5][:40])
    assert run("show", recorded, "-o", tmp_path / "a.svg").code == 0


@pytest.mark.parametrize("name", ["a.jpg", "a", ".png"])
def test_the_name_of_the_picture(run, recorded, tmp_path, name):
    result = run("show", recorded, "-o", tmp_path / name)
    assert result.code == 2
    assert "let the name end in one of .png, .svg, .pdf, .csv, .parquet" in result.complaint


def test_places_that_cannot_be_written_to(run, recorded, tmp_path):
    result = run("show", recorded, "-o", tmp_path / "no" / "a.png")
    assert result.code == 1
    assert "make it first" in result.complaint


def test_things_that_are_no_run(run, recorded, tmp_path, wav):
    assert "no.jsonl" in run("show", tmp_path / "no.jsonl", "-o", tmp_path / "a.png").complaint
    for content in (b"", b"hello\n", b'{"type":"reading"}\n', wav.read_bytes()):
        path = tmp_path / "x.jsonl"
        path.write_bytes(content)
        result = run("show", path, "-o", tmp_path / "a.png")
        assert result.code == 1
        assert "x.jsonl" in result.complaint
    start = json.loads(recorded.read_text().splitlines()[0])
    path.write_text(json.dumps({**start, "schema": 99}) + "\n")
    result = run("show", path, "-o", tmp_path / "a.png")
    assert result.code == 1
    assert "newer" in result.complaint
    assert not (tmp_path / "a.png").exists()


def test_what_every_key_means_is_printed(run):
    result = run("show", "--keys")
    assert result.code == 0
    shown = set(result.out.split())
    assert {f"{record.title}:" for record in RECORDS} <= shown
    assert {key.name for record in RECORDS for key in record.keys if key.meaning} <= shown
    assert run("show").code == 2
