"""monitor doctor, monitor demo, and what they say of an install."""

import json
import stat

import pytest
from jsonschema import Draft202012Validator
from matplotlib.image import imread

from monitor import how_much
from monitor.cli.doctor import EXTRAS, install
from monitor.events.schema import SCHEMA
from monitor.features.registry import ready
from monitor.population import DEMO_SPEAKER
from monitor.population.population import Population
from tests.records import read_records

OWN = ("f0", "phones", "voice")


@pytest.mark.slow
def test_the_demo_works_with_nothing_but_the_install(run, tmp_path, installed):
    installed("nosuchmail; extra == 'notify'", "nosuchserver>=1; extra == 'web'")
    result = run("demo", "--speed", 6000, "-o", tmp_path, "--among", "50,1e4")
    assert result.code == 0
    records = read_records(tmp_path / "demo.jsonl")
    valid = Draft202012Validator(SCHEMA)
    assert all(valid.is_valid(record) for record in records)
    start, end = records[0], records[-1]
    last = [record for record in records if record["type"] == "reading"][-1]
    assert start["rank_model_session"] == "cross"
    assert last["seconds"] == pytest.approx(600, abs=1)
    assert end["complete"]
    picture = imread(tmp_path / "demo.png")
    assert min(picture.shape[:2]) > 300
    assert picture[..., :3].std() > 0.05
    sure = round(100 * 2 ** (last["closed_set_bits"] - last["ceiling"]))
    assert f"the attacker is {sure} % sure that it is {start['watch']}." in result.out
    assert f"{last['bits']:.1f} bits of evidence. Evidence is not proof" in result.out
    assert "\n".join(how_much.to_text()) in result.out
    assert start["among"] == [50, 10_000]
    assert stat.S_IMODE((tmp_path / "demo.jsonl").stat().st_mode) == 0o600
    # it shows what this install can do itself, and says so once
    assert tuple(start["features"]) == OWN
    assert all(map(ready, start["features"]))
    (line,) = [line for line in result.err.splitlines() if "Not installed" in line]
    assert "alerts to desktop, mail, chat" in line
    assert line.endswith("pip install 'speaker-disclosure-monitor[web,notify]'")


def test_the_reader_trained_none_of_its_networks():
    population = Population.reference()
    assert DEMO_SPEAKER in population.names
    rank_models = [
        rank_model for rank_model in population.rank_models if set(rank_model.features) <= set(OWN)
    ]
    assert any(rank_model.left_out for rank_model in rank_models)
    assert all(DEMO_SPEAKER not in rank_model.left_out for rank_model in rank_models)


def findings(run):
    result = run("doctor", "--json")
    return {each["what"]: each for each in json.loads(result.out)}, result.code


def test_every_extra_is_looked_at(run):
    found, _ = findings(run)
    assert found["voice"]["state"] == "ok"
    for name, gives in EXTRAS.items():  # this is a copy of the repository
        assert gives in found[f"extra {name}"]["words"]
    # what runs these tests is there
    assert found["extra dev"]["state"] == found["extra web"]["state"] == "ok"


def test_what_is_not_there_and_how_to_have_it(run, installed):
    installed(
        "numpy",
        "nosuchtorch==2.*; extra == 'training'",
        "nosuchserver>=1; extra == 'web'",
        "starlette>=0.1; extra == 'web'",
        "apprise>=1000; extra == 'notify'",
        "pytest; extra == 'dev'",
    )
    found, code = findings(run)
    training, web, notify = (found[f"extra {name}"] for name in ("training", "web", "notify"))
    assert training["state"] == web["state"] == "note"
    assert training["words"].startswith("not installed")
    assert training["words"].endswith(": " + install("training"))
    assert web["words"].startswith("without nosuchserver")
    assert notify["state"] == "broken"
    assert "but >=1000 is needed" in notify["words"]
    assert code == 1
    assert found["extra dev"]["state"] == "ok"
