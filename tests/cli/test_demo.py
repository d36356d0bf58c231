from __future__ import annotations

import stat

import pytest
from jsonschema import Draft202012Validator
from matplotlib.image import imread

from monitor.sinks.schema import SCHEMA, read_run


def test_it_works_with_nothing_but_the_install(run, tmp_path):
    result = run("demo", "--speed", 6000, "-o", tmp_path)
    assert result.code == 0
    records = read_run(tmp_path / "demo.jsonl")
    valid = Draft202012Validator(SCHEMA)
    assert all(valid.is_valid(record) for record in records)
    start, end = records[0], records[-1]
    last = [record for record in records if record["type"] == "reading"][-1]
    assert start["law_session"] == "cross"
    assert start["notices"] == []
    assert last["seconds"] == pytest.approx(600, abs=1)
    assert end["complete"]
    picture = imread(tmp_path / "demo.png")
    assert min(picture.shape[:2]) > 300
    assert picture[..., :3].std() > 0.05
    first, second = result.out.splitlines()
    assert f"reader {start['watch']} gave away {last['bits']:.1f} of" in first
    assert f"of {start['speakers']} people" in first
    sure = round(100 * 2 ** (last["bits"] - last["ceiling"]))
    assert f"an attacker is {sure} % sure that it is {start['watch']}." in first
    raised = [r for r in records if r["type"] == "alert" and r["state"] == "raised"]
    if raised:
        assert f"was raised after {raised[0]['seconds']:.0f} s" in first
    else:
        assert "stayed silent" in first
    assert str(tmp_path / "demo.png") in second
    assert stat.S_IMODE((tmp_path / "demo.jsonl").stat().st_mode) == 0o600
    assert "monitor: " not in result.err
    # it shows what every install can do itself
    assert set(start["features"]) == {"f0", "phones"}
    before = result.err.splitlines()
    # ten minutes at a hundred times real time are no sixty lines
    assert len(before) <= 8


def test_it_says_what_is_not_installed(run, tmp_path, installed):
    installed("nosuchtorch; extra == 'identity'", "nosuchserver>=1; extra == 'web'")
    result = run("demo", "--speed", 6000, "-o", tmp_path)
    assert result.code == 0
    pip = "pip install 'speaker-disclosure-monitor[{}]'"
    assert f"the page in a browser (--web, monitor view): {pip.format('web')}" in result.err
    assert pip.format("notify") not in result.err


def test_a_live_view_on_a_terminal(terminal, tmp_path):
    code, shown, _ = terminal("demo", "--speed", 6000, "-o", tmp_path, columns=80, both=True)
    assert code == 0
    assert "of speech" in shown  # the axis of the live curve
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1


def test_where_it_cannot_be_left(run, tmp_path):
    result = run("demo", "-o", tmp_path / "no")
    assert result.code == 2
    assert "is not a folder; make it first" in result.complaint
    assert run("demo", "--speed", 0).code == 2
    assert run("demo", "--speed", "fast").code == 2
