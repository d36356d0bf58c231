from __future__ import annotations

import stat

import pytest
from jsonschema import Draft202012Validator
from matplotlib.image import imread

from monitor.events.phrases import narrowed_sentence
from monitor.events.schema import SCHEMA
from monitor.features.registry import ready
from monitor.population import DEMO_SPEAKER
from monitor.population.population import Population
from tests.records import event, read_records

pytestmark = pytest.mark.slow

OWN = ("f0", "phones", "voice")


def test_it_works_with_nothing_but_the_install(run, tmp_path):
    result = run("demo", "--speed", 6000, "-o", tmp_path, "--among", "50,1e4")
    assert result.code == 0
    records = read_records(tmp_path / "demo.jsonl")
    valid = Draft202012Validator(SCHEMA)
    assert all(valid.is_valid(record) for record in records)
    start, end = records[0], records[-1]
    last = [record for record in records if record["type"] == "reading"][-1]
    assert start["rank_model_session"] == "cross"
    assert [n for n in start["notices"] if not n.startswith("nothing can be said beyond")] == []
    assert last["seconds"] == pytest.approx(600, abs=1)
    assert end["complete"]
    picture = imread(tmp_path / "demo.png")
    assert min(picture.shape[:2]) > 300
    assert picture[..., :3].std() > 0.05
    *crowd, first, alert, where = result.out.splitlines()
    assert (
        f"among the {start['speakers']} enrolled alone, it is {last['closed_set_bits']:.1f} of"
        in first
    )
    sure = round(100 * 2 ** (last["closed_set_bits"] - last["ceiling"]))
    assert f"the attacker is {sure} % sure that it is {start['watch']}." in first
    assert start["among"] == [50, 10_000]
    if start["support_bits"] is not None:
        (line,) = crowd
        sentence = narrowed_sentence(event(last), start["watch"])
        assert line.startswith(f"After 10 minutes, {sentence}: ")
        assert f"{last['bits']:.1f} bits of evidence. Evidence is not proof" in line
        assert "a town of ten thousand" in line
    raised = [r for r in records if r["type"] == "alert" and r["state"] == "raised"]
    if raised:
        assert f"was raised after {raised[0]['seconds']:.0f} s" in alert
    else:
        assert "stayed silent" in alert
    assert str(tmp_path / "demo.png") in where
    assert stat.S_IMODE((tmp_path / "demo.jsonl").stat().st_mode) == 0o600
    assert "monitor: " not in result.err
    # it shows what this install can do itself, and says so once
    assert tuple(start["features"]) == OWN
    assert all(map(ready, start["features"]))
    before = result.err.splitlines()
    assert result.err.count("from stored features: f0 (pitch), ") == 1
    # ten minutes at a hundred times real time are no sixty lines
    assert len(before) <= 8


def test_it_says_what_is_not_installed(run, tmp_path, installed):
    installed("nosuchmail; extra == 'notify'", "nosuchserver>=1; extra == 'web'")
    result = run("demo", "--speed", 6000, "-o", tmp_path)
    assert result.code == 0
    (line,) = [line for line in result.err.splitlines() if "Not installed" in line]
    assert "alerts to desktop, mail, chat" in line
    assert "the page in a browser (--web, monitor show)" in line
    assert line.endswith("pip install 'speaker-disclosure-monitor[web,notify]'")


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


def test_the_reader_trained_none_of_its_networks():
    population = Population.reference()
    assert DEMO_SPEAKER in population.names
    rank_models = [
        rank_model for rank_model in population.rank_models if set(rank_model.features) <= set(OWN)
    ]
    assert any(rank_model.left_out for rank_model in rank_models)
    assert all(DEMO_SPEAKER not in rank_model.left_out for rank_model in rank_models)
