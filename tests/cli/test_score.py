"""monitor score, and monitor evaluate on what it writes."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from monitor.evaluation.input.score_file import ScoreFile

LENGTHS = ("--lengths", "3,10", "--template-lengths", "20", "--trials", "5")


@pytest.fixture
def scores(run, people, tmp_path):
    path = tmp_path / "scores.npz"
    done = run("score", people, "-o", path, *LENGTHS, "--jobs", "1")
    assert (done.code, done.out) == (0, "")
    assert "T=10 D=20 cross: 60 trials of 12 speakers against 12; f0" in done.err
    assert f"monitor evaluate {path}" in done.err
    return path


def figures(result):
    found = json.loads(result.out)
    return {s["name"]: s["figures"]["srd.idr"]["value"] for s in found["systems"]}, found


@pytest.mark.slow
def test_from_a_folder_to_a_report_in_two_commands(run, scores, people, tmp_path):
    assert scores.stat().st_mode & 0o777 == 0o600
    values, _ = figures(run("evaluate", scores, "--json", "--replicates", 0))
    assert set(values) == {"T=3", "T=10"}
    assert 0.2 < values["T=3"] < values["T=10"] < 1.0
    one, _ = figures(run("evaluate", scores, "--choose", "T=10", "--json", "--replicates", 0))
    assert one == {"scores": values["T=10"]}
    again = tmp_path / "again.npz"
    assert run("score", people, "-o", again, *LENGTHS, "--jobs", "2").code == 0
    with np.load(scores) as mine, np.load(again) as other:  # processes change nothing
        assert mine.files == other.files
        assert all(np.array_equal(mine[name], other[name]) for name in mine.files)
    both, _ = figures(run("evaluate", scores, again, "--choose", "T=3", "--json",
                          "--replicates", 0, "--dev", again))  # fmt: skip
    assert both == {"scores": values["T=3"], "again": values["T=3"]}


@pytest.mark.slow
def test_groups_come_with_the_scores(run, people, tmp_path):
    speakers = sorted(folder.name for folder in people.iterdir())
    rows = [f"{people / s / f'{part}.npz'},{s},{part},{'fm'[i % 2]}"
            for i, s in enumerate(speakers) for part in ("s0", "s1")]  # fmt: skip
    manifest = tmp_path / "people.csv"
    manifest.write_text("\n".join(["path,speaker,session,gender", *rows, ""]))
    path = tmp_path / "scores.npz"
    options = ("--template-lengths", "20", "--trials", "4")
    assert run("score", manifest, "-o", path, *options, "--session", "both").code == 0
    choice = ("--choose", "cross", "--replicates", 10, "--json")
    _, found = figures(run("evaluate", path, *choice, "--group-by", "gender"))
    assert set(found["groups"]["scores"]["groups"]) == {"f", "m"}
    refused = run("evaluate", path, *choice, "--group-by", "accent")
    assert "--group-by accent: scores.npz has gender; give --groups FILE" in refused.complaint


@pytest.mark.slow
def test_against_templates_of_other_speech(run, people, population, tmp_path):
    heard = tmp_path / "heard"
    for speaker in people.iterdir():
        (heard / speaker.name).mkdir(parents=True)
        shutil.copy(speaker / "s1.npz", heard / speaker.name)
    path = tmp_path / "scores.npz"
    assert run("score", heard, "-p", population, "-o", path, "--lengths", "3").code == 0
    file = ScoreFile.at(path)
    assert file is not None
    assert [entry.words for entry in file.entries] == [("f0", "cross", "T=3", "D=20")]
    enrolled = tmp_path / "enrolled.npz"  # and not calibrated: the shipped law stands in
    assert run("enroll", people, "--seconds", "20", "-o", enrolled).code == 0
    options = ("-p", enrolled, "--lengths", "3", "--allow-overlap")
    assert run("score", heard, *options, "-o", tmp_path / "c.npz").code == 0
    refused = run("score", people, "-p", population, "-o", tmp_path / "b.npz")
    assert "enrolled as 000000" in refused.complaint
    allowed = ("--allow-overlap", "--lengths", "3")
    assert run("score", people, "-p", population, "-o", tmp_path / "b.npz", *allowed).code == 0
    file = ScoreFile.at(tmp_path / "b.npz")
    assert file is not None
    assert [entry.session for entry in file.entries] == ["same"]


@pytest.mark.slow
def test_real_readers_and_files_that_are_skipped(run, clips, tmp_path):
    path = tmp_path / "scores.npz"
    done = run("score", clips, "-o", path, "--features", "f0", "--lengths", "5",
               "--template-lengths", "15", "--session", "same")  # fmt: skip
    assert done.code == 4
    assert "monitor: skipped: 154320.npz" in done.err
    assert "T=5 D=15 same: 100 trials of 5 speakers against 5; f0" in done.err
    values, _ = figures(run("evaluate", path, "--json", "--replicates", 0))
    assert values["scores"] > 0.4  # chance is 0.2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "a.csv"), "let the name end in .npz"),
        (("-o", "no/a.npz"), "there is no folder no"),
        (("-o", "a.npz", "--allow-overlap"), "--allow-overlap goes with -p"),
        (("-o", "a.npz", "-p", "us.npz", "--session", "same"), "--session goes without -p"),
        (("-o", "a.npz", "--lengths", "0"), "must be positive seconds"),
        (("-o", "a.npz", "--lengths", "600"), "nobody says enough for tests of 600 s"),
        (("-o", "a.npz", "--scoring", "max"), "f0: no feature has max scoring"),
        (("-o", "a.npz", "--group-by", "age"), "no table of people says who is of which age"),
    ],
)
def test_what_is_wrong_is_one_line(run, people, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    done = run("score", people, *options)
    assert done.code in (1, 2)
    assert said in done.complaint
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_what_is_there_stays_unless_told(run, people, scores):
    before = scores.read_bytes()
    assert "use --replace" in run("score", people, "-o", scores).complaint
    assert scores.read_bytes() == before
    options = ("--replace", "--lengths", "3", "--template-lengths", "20")
    assert run("score", people, "-o", scores, *options).code == 0
    assert scores.read_bytes() != before


@pytest.mark.slow
def test_a_choice_that_makes_no_sense_is_one_line(run, scores, tmp_path):
    for options, said in (
        (("--choose", "voice"), "has no scores of voice; it has f0; cross; T=3 T=10; D=20"),
        (("--group-by", "gender"), "scores.npz has no groups"),
        (("--choose", "T=3", "--labels", scores), "says itself who spoke"),
    ):
        assert said in run("evaluate", scores, *options).complaint
    np.save(tmp_path / "plain.npy", np.eye(3))
    refused = run("evaluate", tmp_path / "plain.npy", "--choose", "f0")
    assert "--choose goes with SCORES from monitor score" in refused.complaint
