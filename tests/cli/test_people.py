"""monitor people: who is enrolled, since when, who can be told apart, and whose template is old."""

import json
import os
import pty
import stat
import subprocess
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.ledger import Ledger
from monitor.population.population import Population
from monitor.serve.templates import TemplateFolder, data_folder
from tests.sounds import RATE
from tests.stream.households import household, reader

TODAY = date.today()
LONG_AGO = (TODAY - timedelta(200)).isoformat()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Four people: ann and twin are one reader; bob is long gone, and of cy nobody knows."""
    people = household(
        ("ann", [reader(0, 0, 2)]),
        ("twin", [reader(0, 1, 2)]),
        ("bob", [reader(9, most=10), reader(9, 10)]),
        ("cy", [reader(20)]),
    )
    today = TODAY.isoformat()
    days = {"ann": (LONG_AGO, today), "twin": (today, today), "bob": (LONG_AGO, LONG_AGO)}
    details = [replace(each, days=days.get(each.name, ("", ""))) for each in people.speakers]
    people.with_details(details).save(tmp_path / "home.npz")
    return tmp_path / "home.npz"


def test_a_row_a_person_says_since_when_and_who_is_who(run, home):
    done = run("people", home)
    assert done.code == 0, done.err
    ann, twin, bob, cy = done.records
    assert (ann["first_enrolled"], ann["last_enrolled"]) == (LONG_AGO, TODAY.isoformat())
    assert (cy["first_enrolled"], cy["sessions"], cy["speech_seconds"]) == (None, 1, 100.0)
    assert (bob["sessions"], bob["told_apart"], bob["not_compared"]) == (2, 3, 0)
    assert bob["own_bits"] > 5
    assert (ann["told_apart"], ann["own_bits"]) == (2, None)
    assert ann["nearest"][0] | {"bits": 0} == {
        "name": "twin", "bits": 0, "seconds": 30.0, "verdict": "inseparable",
    }  # fmt: skip
    assert twin["nearest"][0]["name"] == "ann"
    assert all("last_watched" not in row for row in done.records)
    (alone,) = run("people", home, "--speaker", "bob").records
    assert alone == bob


def test_a_table_for_people(terminal, home, tmp_path):
    with Ledger(tmp_path / "us.db"):
        pass
    code, shown, err = terminal("people", home, "--ledger", tmp_path / "us.db", columns=120)
    assert (code, err) == (0, "")
    heading, ann, *_ = shown.splitlines()
    assert all(name in heading for name in ("enrolled", "told apart", "last watched", "sound"))
    assert f"{LONG_AGO} to {TODAY}" in ann
    assert "2 of 3" in ann
    assert "never" in ann
    assert shown.count("inseparable") == 1
    assert "bits read too low" in shown


def test_who_was_watched_last_is_in_a_ledger(run, population, talk, tmp_path):
    name, book = Population.load(population).names[3], tmp_path / "us.db"
    assert run("replay", talk, "-p", population, "--watch", name, "--ledger", book).code == 0
    rows = {row["name"]: row for row in run("people", population, "--ledger", book).records}
    assert rows[name]["last_watched"] == TODAY.isoformat()
    assert isinstance(rows[name]["last_bits"], float)
    assert [row["last_watched"] for row in rows.values()].count(None) == len(rows) - 1
    # no calibration knows these toys, and that is said in a line
    done = run("people", population, "--ledger", tmp_path / "none.db")
    assert done.code == 1
    assert "no such ledger" in done.complaint


def test_old_templates_are_listed_and_deleted_once_that_is_confirmed(run, home):
    before = home.read_bytes()
    done = run("people", home, "--older-than", "90d")
    assert [row["name"] for row in done.records] == ["bob"]
    assert "1 template without a date" in done.err
    for arguments, words in (
        (("--older-than", "90d", "--forget"), "1 person would be deleted: add --yes"),
        (("--older-than", "3 months"), "use 90d"),
        (("--forget",), "--forget needs a NAME, or --older-than 90d"),
        (("--forget", "ann", "--older-than", "90d"), "leave out the other options"),
        (("--yes",), "--yes needs"),
        (("-o", "rest.npz"), "-o needs"),
    ):
        refused = run("people", home, *arguments)
        assert refused.code == 2
        assert words in refused.err
        assert home.read_bytes() == before
    none = run("people", home, "--older-than", "300d", "--forget", "--yes")
    assert (none.code, home.read_bytes()) == (0, before)
    assert "Nothing was deleted" in none.err
    done = run("people", home, "--older-than", "90d", "--forget", "--yes")
    assert done.code == 0, done.err
    assert "bob is forgotten: a template of 100 s" in done.err
    assert Population.load(home).names == ("ann", "twin", "cy")
    assert stat.S_IMODE(home.stat().st_mode) == 0o600


def test_nobody_is_left_out_of_a_file(run, home):
    people = Population.load(home)
    gone = [replace(each, days=(LONG_AGO, LONG_AGO)) for each in people.speakers]
    people.with_details(gone).save(home)
    before = home.read_bytes()
    refused = run("people", home, "--older-than", "90d", "--forget", "--yes")
    assert refused.code == 2
    assert "delete the file instead" in refused.complaint
    assert home.read_bytes() == before


@pytest.mark.parametrize(("answer", "left"), [("n", 4), ("y", 3)])
def test_a_question_at_a_terminal(command, home, answer, left):
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    arguments = [*command, "people", str(home), "--older-than", "90d", "--forget"]
    done = subprocess.run(
        arguments, stdin=theirs, capture_output=True, text=True, check=False, timeout=120
    )
    for end in (ours, theirs):
        os.close(end)
    assert f"bob, last enrolled {LONG_AGO}" in done.stderr
    assert "Delete 1 person from" in done.stderr
    assert (done.returncode, len(Population.load(home))) == (left - 3, left)
    assert ("Nothing was deleted" in done.stderr) == (left == 4)


def test_enrolment_keeps_the_day_and_takes_no_recording_twice(run, voice, tmp_path):
    talk, us = tmp_path / "talk.wav", tmp_path / "us.npz"
    soundfile.write(talk, voice(9.0, 200.0), RATE)
    common = ("--features", "f0", "--base")
    assert run("enrol", talk, "--speaker", "ann", *common, "reference", "-o", us).code == 0
    (row,) = run("people", us, "--speaker", "ann").records
    assert row["first_enrolled"] == row["last_enrolled"] == TODAY.isoformat()
    text = json.dumps(row)
    slices = Population.load(us).features["f0"].slices[-1]
    assert str(slices[np.flatnonzero(slices)][:5].tolist())[1:-1] not in text
    refused = run("enrol", talk, "--speaker", "me", *common, us, "-o", tmp_path / "more.npz")
    assert refused.code == 2
    assert "talk.wav is already enrolled as ann" in refused.complaint
    assert not (tmp_path / "more.npz").exists()


def test_those_of_the_page_are_a_folder(run, home, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    templates, people = TemplateFolder(data_folder()), Population.load(home)
    templates.folder.mkdir(parents=True)
    assert "no one is enrolled there" in run("people", templates.folder).complaint
    for name in ("ann", "twin", "bob"):
        templates.save(name, people.chosen([name]))
    ann, bob, twin = run("people", templates.folder).records
    assert (ann["first_enrolled"], bob["last_enrolled"]) == (LONG_AGO, LONG_AGO)
    assert (ann["nearest"][0]["name"], ann["told_apart"]) == ("twin", 1)
    assert twin["nearest"][0]["verdict"] == "inseparable"
    found = {each["what"]: each for each in json.loads(run("doctor", "--json").out)}
    assert "3 people enrolled at the page" in found["people"]["words"]
    assert f"monitor people {templates.folder}" in found["people"]["words"]
    done = run("people", templates.folder, "--older-than", "90d", "--forget", "--yes")
    assert (done.code, [each.name for each in templates.people()]) == (0, ["ann", "twin"])


def test_your_own_people_come_before_the_shipped_readers(run, terminal, tmp_path):
    store, reference = tmp_path / "us.npz", Population.reference()
    mine = household(("me", [reader(0, 0, 2)]))
    today = TODAY.isoformat()
    mine = mine.with_details([replace(each, days=(today, today)) for each in mine.speakers])
    reference.joined(mine).save(store)
    records = run("people", store).records
    assert records[0]["name"] == "me"
    assert {row["name"] for row in records[1:]} == {*reference.names}
    _, shown, _ = terminal("people", store, columns=120)
    rows = shown.splitlines()
    assert rows[1].startswith("me ")
    assert not [row for row in rows if row.startswith(f"{reference.names[1]} ")]
    assert "50 shipped readers" in shown
    _, shown, _ = terminal("people", store, "--speaker", reference.names[1], columns=120)
    assert f"\n{reference.names[1]} " in shown
