"""monitor audit, and its card: their figures are those of the commands that they quote."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.lab.attacks.made import results as attack_results

OPTIONS = ("--lengths", "1,3", "--template", "20", "--replicates", "20", "--jobs", "1")


@pytest.fixture
def audited(run, people, tmp_path):
    path = tmp_path / "audit.html"
    done = run("audit", people, "-o", path, *OPTIONS)
    assert done.code == 0, done.err
    return done, json.loads(path.with_suffix(".json").read_text())


@pytest.mark.slow
def test_figures_are_those_of_score_and_evaluate(run, people, audited, tmp_path):
    done, made = audited
    for lines in made["summary"].values():
        assert all(line in done.out for line in lines)
    scores = tmp_path / "scores.npz"
    asked = ("--session", "both", "--lengths", "10", "--template-lengths", "20")
    assert run("score", people, "-o", scores, *asked, "--jobs", "1").code == 0
    evaluated = run("evaluate", scores, "--json", "--replicates", 20, "--seed", 0,
                    "--among", "5,10,20,50,100,1000,10000,1000000")  # fmt: skip
    found = {each["name"]: each["figures"] for each in json.loads(evaluated.out)["systems"]}
    checked = 0
    for test in made["tests"]:
        theirs = found[test["session"]]
        for key, figure in test["figures"].items():
            for part in ("value", "low", "high"):
                assert figure[part] == theirs[key][part], (key, part)
                checked += 1
    assert checked > 100


@pytest.mark.slow
def test_runs_and_an_attack_are_audited_too(run, population, people, tmp_path):
    logs = [tmp_path / f"{name}.jsonl" for name in ("a", "b")]
    for log, name in zip(logs, ("000003", "000005"), strict=True):
        talk = people / name / "s1.npz"
        assert run("replay", talk, "-p", population, "--watch", name, "--jsonl", log).code == 0
    path = tmp_path / "runs.html"
    assert run("audit", *logs, "-o", path, "--lengths", "5,20", "--budget", "1").code == 0
    made = json.loads(path.with_suffix(".json").read_text())
    read = []
    for log in logs:
        records = [json.loads(line) for line in log.read_text().splitlines()]
        read.append(next(r["bits"] for r in records if r["type"] == "reading" and r["speech"] >= 5))
    row = made["lengths"][0]
    assert row["mean_bits"]["value"] == pytest.approx(sum(read) / 2)
    assert row["beyond_budget"]["value"] == sum(bits >= 1 for bits in read) / 2
    folder = tmp_path / "tested"
    folder.mkdir()
    from monitor.lab.attacks.results import results_json

    (folder / "results.json").write_text(results_json(attack_results()))
    done = run("audit", folder, "-o", tmp_path / "attack.html")
    assert done.code == 0
    assert "mcadams:0.8: " in done.out
    mixed = run("audit", folder, *logs, "-o", tmp_path / "no.html")
    assert "go without a corpus" in mixed.complaint


@pytest.mark.slow
def test_a_label_of_the_same_corpus(run, people, audited, tmp_path):
    _, made = audited
    path = tmp_path / "label.md"
    assert run("audit", people, "--card", "-o", path, "--salt", "x", *OPTIONS).code == 0
    told = json.loads(path.with_suffix(".json").read_text())
    assert told["lengths"] == made["lengths"]
    assert [each["bits"] for each in told["exposed"]] == [each["bits"] for each in made["exposed"]]
    assert told["exposed"][0]["speaker"] != made["exposed"][0]["speaker"]
    again = run("audit", people, "--card", "--salt", "x", *OPTIONS)
    assert again.out == path.read_text()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("audit", "x", "-o", "a.pdf"), "let the name end in .html"),
        (("audit", "nothing", "-o", "a.html"), "nothing does not exist"),
        (("audit", "a", "b", "-o", "a.html"), "2 sources: give one corpus"),
        (("audit", "x", "-o", "a.html", "--budget", "-1"), "is not a number of bits"),
        (("audit", "x", "-o", "a.html", "--among", "1e3,1e6"), "name one crowd"),
        (("audit", "no.jsonl", "-o", "a.html"), "cannot open no.jsonl"),
        (("audit", "nothing", "--card"), "nothing does not exist"),
        (("audit", "x", "--card", "-o", "a.html"), "let the name of a card end in .md"),
        (("audit", "x"), "an audit is a file: -o FILE.html"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(run, tmp_path, monkeypatch, arguments, what):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    done = run(*arguments)
    assert done.code in (1, 2)
    assert what in done.complaint


@pytest.mark.slow
def test_what_cannot_be_measured_is_refused_in_a_line(run, people, tmp_path):
    path = tmp_path / "a.html"
    alone = tmp_path / "alone"
    shutil.copytree(people / "000003", alone / "000003")
    one = run("audit", alone, "-o", path, "--jobs", "1")
    assert "1 speaker with speech: an audit is of 5 people or more" in one.complaint
    long = run("audit", people, "-o", path, "--template", "500", "--jobs", "1")
    assert "fewer than 5 speakers have 500 s" in long.complaint
    told = run("audit", people, "-o", path, "--attributes", "mood", "--jobs", "1")
    assert "no table says the mood" in told.complaint
    assert not path.exists()
    path.write_text("mine")
    kept = run("audit", people, "-o", path)
    assert "use --replace" in kept.complaint
    assert path.read_text() == "mine"
