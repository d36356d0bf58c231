from __future__ import annotations

import json

import pytest

from monitor.cli.doctor import EXTRAS, extra, install


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
    assert training["words"].startswith("not installed; it gives the attacker")
    assert training["words"].endswith(": " + install("training"))
    assert web["words"].startswith("without nosuchserver; it gives the page")
    assert notify["state"] == "broken"
    assert "where >=1000 is needed" in notify["words"]
    assert code == 1
    assert found["extra dev"]["state"] == "ok"


@pytest.mark.parametrize("name", EXTRAS)
def test_the_metadata_of_this_install_has_every_extra(name):
    found = extra(name)
    assert found.have or found.missing


def test_a_developer_installs_from_the_copy():
    assert install("training") == "pip install 'speaker-disclosure-monitor[training]'"
    assert install("dev") == "pip install -e '.[dev]'"
