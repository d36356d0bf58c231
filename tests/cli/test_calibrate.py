from __future__ import annotations

import json
import re

import numpy as np
import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor.population.population import Calibration, Population, load_rank_models
from monitor.population.rank_model import RankModels
from monitor.training import fitted
from monitor.training.calibrating import weaker_joints

ONE = ("--lengths", "1", "--template-lengths", "10", "--replicates", "20", "--trials", "2")
QUICK = ("--lengths", "1,5", "--template-lengths", "10", "--replicates", "20", "--trials", "3")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Only the live loss: the others are for information and take most of the time."""
    monkeypatch.setattr(fitted, "LOSSES", ("LL",))


@pytest.fixture
def enrolled(run, people, tmp_path):
    """A population without rank models, from the first session of everybody."""
    path = tmp_path / "us.npz"
    assert run("enrol", people, "-o", path, "--seconds", 20).code == 0
    return path


@pytest.mark.slow
def test_into_a_population_and_on_to_a_replay(run, people, talk, enrolled):
    without = run("replay", talk, "-p", enrolled)
    assert without.code == 1
    assert "learn one with: monitor calibrate" in without.complaint
    result = run("calibrate", people, "-o", enrolled, *QUICK)
    assert result.code == 0
    assert result.err.startswith("plan: 12 speakers, a folder each\n  speaker ")
    assert result.err.endswith(f"\nthe rank models are in {enrolled}\n")
    population = Population.load(enrolled)
    assert {(rank_model.features, rank_model.session) for rank_model in population.rank_models} == {
        (("f0",), "same"),
        (("f0",), "cross"),
    }
    assert {d for rank_model in population.rank_models for d in rank_model.template_lengths} == {
        10.0
    }
    for rank_model in population.rank_models:
        assert rank_model.maxima is not None
        assert len(rank_model.maxima.speakers) == 12
        assert rank_model.maxima.template_seconds == 20.0
    run_of = run("replay", talk, "-p", enrolled, "--watch", "000003")
    assert run_of.code == 0
    assert run_of.records[0]["rank_model"] == "own"
    assert run_of.records[0]["rank_model_speakers"] == 12


@pytest.mark.slow
def test_false_alarms_need_not_be_worked_out(run, people, enrolled):
    assert run("calibrate", people, "-o", enrolled, *ONE, "--no-alarms").code == 0
    assert [rank_model.maxima for rank_model in Population.load(enrolled).rank_models] == [
        None,
        None,
    ]


@pytest.mark.slow
def test_a_rank_model_learnt_without_the_enrolled_is_mismatched(
    run, people, enrolled, talk, tmp_path
):
    write_corpus(tmp_path / "others", Simulation(40, 8), 12, 2, 30.0)
    for i, folder in enumerate(sorted((tmp_path / "others").iterdir())):
        folder.rename(folder.with_name(f"other{i}"))
    for corpus, label in ((people, "own"), (tmp_path / "others", "mismatched")):
        assert run("calibrate", corpus, "-o", enrolled, *QUICK).code == 0
        start = run("replay", talk, "-p", enrolled, "--watch", "000003").records[0]
        assert start["rank_model"] == label


@pytest.mark.slow
def test_the_length_of_the_templates_is_on_the_grid(run, people, enrolled):
    options = ["--lengths", "1", "--replicates", "20", "--trials", "1"]
    made = run("calibrate", people, "-o", enrolled, "--json", *options)
    assert {cell["D"] for cell in json.loads(made.out)["cells"]} == {10.0, 20.0, 30.0}


@pytest.mark.slow
def test_the_table(run, people):
    result = run("calibrate", people, *QUICK)
    assert result.code == 0
    title, head, *rest = result.out.splitlines()
    assert title == "f0: bits by speech seconds heard (T) and enrolled (D)"
    columns = head.replace("T s", "T").replace("D s", "D").split()
    assert columns == [
        *["T", "D", "session", "speakers", "N", "trials", "model", "limits", "null", "IdR"],
        *["local", "ECE", "notes"],
    ]
    rows = [line.split() for line in rest[:4]]
    assert [row[:6] for row in rows] == [
        [t, "10", session, "12", "12", "36"] for session in ("same", "cross") for t in ("1", "5")
    ]
    assert all(".." in row[7] and ".." in row[8] for row in rows)
    assert rest[4] == ""
    assert max(map(len, result.out.splitlines())) <= 100
    legend = " ".join(rest[5:])
    for title in ("T s", "D s", "model", "null", "IdR", "local", "ECE"):
        assert f"{title}: " in legend
    assert "alpha" in legend[legend.index("Left out for want of width") :]
    assert len(rest) <= 10


def test_a_joint_below_its_best_part_is_told():
    rows = [
        {"feature": name, "session": "same", "T": test, "D": 30.0, "common_bits": bits}
        for test, each in ((10.0, (1.0, 3.24, 2.94)), (30.0, (1.0, 3.5, 3.6)))
        for name, bits in zip(("f0", "voice", "f0+voice"), each, strict=True)
    ]
    (told,) = weaker_joints(Calibration(RankModels([]), tuple(rows)))
    assert "f0+voice gives 2.94 bits, voice alone 3.24: go by voice" in told
    assert "T=10 D=30" in told
    assert not weaker_joints(Calibration(RankModels([]), tuple(rows[3:])))


def test_help_explains_every_column(run):
    shown = run("calibrate", "--help").out
    for title in ("T s", "D s", "alpha", "M-M", "null", "Spread", "rank-1", "ECE"):
        assert f"{title}: " in shown.split("Columns of the table")[1]


@pytest.mark.slow
def test_as_wide_as_columns_says(run, people, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    wide = run("calibrate", people, *ONE).out
    assert "alpha" in wide.splitlines()[1]
    assert "Left out" not in wide
    monkeypatch.setenv("COLUMNS", "70")
    assert max(map(len, run("calibrate", people, *ONE).out.splitlines())) <= 70


@pytest.mark.slow
def test_one_session_each_is_not_used_across_sessions_as_it_is(run, talk, tmp_path):
    write_corpus(tmp_path / "one", Simulation(12), 12, 1, 30.0)
    us = tmp_path / "us.npz"
    assert run("enrol", tmp_path / "one", "-o", us, "--seconds", 10).code == 0
    made = run("calibrate", tmp_path / "one", "-o", us, *QUICK)
    assert made.code == 0
    (prior,) = [line for line in made.err.splitlines() if "rank model is the prior" in line]
    assert "% of each same-session rank model, beside 12 speakers" in prior
    assert len(prior) < 160
    assert "speakers with two sessions or more: 0. A cross-session rank model needs 10" in made.err
    same_session_bias = (
        r"among 12 of the shipped readers by \d\.\d bits at 10 s and \d\.\d bits at 60 s"
    )
    assert re.search(f"favours an attacker who comes another day, {same_session_bias}", made.err)
    start = run("replay", talk, "-p", us, "--watch", "000003").records[0]
    assert (start["rank_model"], start["rank_model_session"], start["rank_model_prior"]) == (
        "mismatched",
        "cross",
        1.0,
    )
    (notice,) = [n for n in start["notices"] if "shipped" in n]
    assert re.search(same_session_bias, notice)
    # alone, as it was: the same-session model stands in, and the run says by how much it favours
    made = run("calibrate", tmp_path / "one", "-o", us, "--no-prior", *QUICK)
    assert "no prior for f0" in made.err
    start = run("replay", talk, "-p", us, "--watch", "000003").records[0]
    assert (start["rank_model"], start["rank_model_session"], start["rank_model_prior"]) == (
        "own",
        "same",
        0.0,
    )
    (notice,) = [n for n in start["notices"] if "read too high" in n]
    assert re.search(same_session_bias, notice)


@pytest.mark.slow
def test_the_prior_of_an_own_rank_model_is_told(run, people, talk, enrolled):
    assert run("calibrate", people, "-o", enrolled, *QUICK).code == 0
    start = run("replay", talk, "-p", enrolled, "--watch", "000003").records[0]
    assert start["rank_model_session"] == "cross"
    assert 0.6 < start["rank_model_prior"] < 0.9
    share = f"{100 * start['rank_model_prior']:.0f} %"
    assert any(f"of the rank model {share} is the shipped" in n for n in start["notices"])


@pytest.mark.slow
def test_json(run, people):
    result = run("calibrate", people, "--json", *ONE)

    def never(constant: str) -> None:
        raise AssertionError(constant)

    made = json.loads(result.out, parse_constant=never)
    assert made["schema"] == 1
    same, cross = made["cells"]
    assert (same["session"], same["T"], same["D"]) == ("same", 1.0, 10.0)
    assert cross["session"] == "cross"
    other = json.loads(run("calibrate", people, "--json", "--seed", 1, *ONE).out)
    assert other["cells"][0]["alpha"] == same["alpha"]
    assert other["cells"][0]["mean_bits_low"] != same["mean_bits_low"]


@pytest.mark.slow
def test_rank_models_in_a_file_of_their_own(run, people, talk, enrolled, tmp_path):
    path = tmp_path / "rank_model.npz"
    assert run("calibrate", people, "-o", path, *ONE).code == 0
    assert len(load_rank_models(path)[0]) == 2
    used = run("replay", talk, "-p", enrolled, "--rank-model", path, "--watch", "000003")
    assert used.code == 0
    assert used.records[0]["rank_model_speakers"] == 12
    run("calibrate", people, "-o", enrolled, *ONE)
    own = run("replay", talk, "-p", enrolled, "--watch", "000003")
    assert own.readings[-1]["support_bits"] > 0
    assert used.readings == own.readings  # the cohort comes with the rank models
    assert run("calibrate", people, "-o", path, *ONE).code == 0  # a rank model file may be renewed


@pytest.mark.slow
def test_a_picture(run, people, tmp_path):
    assert run("calibrate", people, "--plot", tmp_path / "rank_models.png", *ONE).code == 0
    assert (tmp_path / "rank_models.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_who_trained_a_network_calibrates_none_of_its_rank_models(run, people, enrolled, tmp_path):
    names = sorted(folder.name for folder in people.iterdir())
    (tmp_path / "trainers").write_text("\n".join([*names[:2], "somebody else", ""]))
    options = ["--trained", f"f0={tmp_path / 'trainers'}"]
    made = run("calibrate", people, "-o", enrolled, *options, *ONE)
    assert made.code == 0
    told = "f0: no test of the 2 who trained a network of it; 10 speakers taught its rank model"
    assert told in made.err
    for rank_model in Population.load(enrolled).rank_models:
        assert (rank_model.speakers, rank_model.candidates, rank_model.left_out) == (
            10,
            12,
            tuple(names[:2]),
        )
    (tmp_path / "trainers").write_text("\n".join(names[:3]))
    made = run("calibrate", people, *options, *ONE)
    assert made.code == 1
    assert "only 9 of 12 speakers trained no network of f0" in made.complaint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f0", "must be FEATURE=FILE, a list of names"),
        ("f0={}/none", "cannot be read: No such file or directory"),
        ("f0={}/impostors", "nobody on the list is a speaker of the corpus"),
        ("voice={}/trainers", "--trained voice: calibrating f0"),
    ],
)
def test_lists_that_would_leave_nobody_out(run, people, tmp_path, text, words):
    (tmp_path / "impostors").write_text("zoe\n\n")
    (tmp_path / "trainers").write_text(min(folder.name for folder in people.iterdir()))
    refused = run("calibrate", people, "--trained", text.format(tmp_path), *ONE)
    assert refused.code == 2
    assert words in refused.complaint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--lengths", "0,1"], "must be positive seconds"),
        (["--lengths", "0.25"], "positive multiple of 0.1 s"),
        (["--lengths", "a"], "is not a list of seconds"),
        (["--replicates", "5"], "5 is not in the range"),
        (["--trials", "0"], "0 is not in the range"),
        (["--seed", "-1"], "-1 is not in the range"),
        (["--plot", "rank_models.jpg"], "let the name end in .png, .svg or .pdf"),
        (["--features", ""], "name at least one"),
    ],
)
def test_options_that_make_no_sense(run, people, options, words):
    result = run("calibrate", people, *options)
    assert result.code == 2
    assert words in result.complaint


def test_too_few_speakers(run, tmp_path):
    write_corpus(tmp_path / "few", Simulation(9), 9, 1, 10.0)
    result = run("calibrate", tmp_path / "few", *QUICK)
    assert (result.code, result.out) == (1, "")
    assert "too few speakers (9) to learn a rank model; at least 10" in result.complaint
    assert "listening" not in result.err  # it is refused before


def test_too_little_speech(run, tmp_path):
    write_corpus(tmp_path / "short", Simulation(11), 11, 1, 8.0)
    result = run("calibrate", tmp_path / "short", *QUICK)
    assert (result.code, result.out) == (1, "")
    assert "a test of 1 s and a template of 10 s of speech: add speech" in result.complaint


def test_a_broken_file_is_skipped_and_named(run, people, tmp_path):
    (tmp_path / "c").mkdir()
    for folder in people.iterdir():
        (tmp_path / "c" / folder.name).symlink_to(folder)
    (tmp_path / "c" / "zoe").mkdir()
    (tmp_path / "c" / "zoe" / "a.npz").write_text("no frames")
    result = run("calibrate", tmp_path / "c", *ONE)
    assert result.code == 4
    assert "skipped: zoe/a.npz is no file of frames" in result.err
    assert "cross" in result.out


def test_what_lies_there_is_not_lost(run, people, tmp_path, population):
    letter = tmp_path / "letter.txt"
    letter.write_text("dear diary")
    result = run("calibrate", people, "-o", letter, *ONE)
    assert result.code == 2
    assert "is no population of this program" in result.complaint
    assert letter.read_text() == "dear diary"
    damaged = tmp_path / "us.npz"
    damaged.write_bytes(population.read_bytes()[:-200])
    before = damaged.read_bytes()
    assert run("calibrate", people, "-o", damaged, *ONE).code == 2
    assert damaged.read_bytes() == before


def test_frames_of_another_kind_than_the_templates(run, people, tmp_path, population):
    write_corpus(tmp_path / "c", Simulation(11), 11, 1, 20.0)
    for path in (tmp_path / "c").glob("*/*.npz"):
        with np.load(path) as file:
            arrays = dict(file)
        header = json.loads(arrays.pop("header").item())
        header["sizes"]["f0"] += 9
        np.savez(path, header=json.dumps(header), **arrays)
    us = tmp_path / "us.npz"
    us.write_bytes(population.read_bytes())
    result = run("calibrate", tmp_path / "c", "-o", us, *ONE)
    assert result.code == 2
    assert "has no f0 of this kind (histogram of size" in result.complaint
    assert us.read_bytes() == population.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 120, 250])
def test_the_table_fits_the_terminal(terminal, people, columns):
    few = ("--lengths", "1", "--template-lengths", "10", "--replicates", "20", "--trials", "1")
    code, shown, err = terminal("calibrate", people, *few, columns=columns)
    assert code == 0
    assert "…" not in shown
    lines = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in shown.splitlines()]
    assert max(map(len, lines)) <= columns
    head = lines[1].split()
    assert {"session", "model", "limits", "null", "local", "notes"} <= set(head)
    assert ("Left out for want of width" in shown) == (columns < 250)
    assert "the rank models" not in err


@pytest.mark.slow
def test_evidence_goes_into_the_population_with_its_cohort(run, people, enrolled):
    assert Population.load(enrolled).cohort is None
    made = run("calibrate", people, "-o", enrolled, "--no-alarms", "--json", *QUICK)
    for cell in json.loads(made.out)["cells"]:
        assert cell["evidence_pairs"] == 66
        assert 0 <= cell["support_bits"] <= np.log2(67)
        assert cell["evidence_bits"] <= cell["support_bits"]
        assert cell["others_mean_ratio"] <= 1.05
        assert [each["bits"] for each in cell["others_exceeding"]] == [1, 2, 3, 4, 5, 6]
    population = Population.load(enrolled)
    cohort, shipped = population.cohort, Population.reference().cohort
    assert cohort is not None
    assert shipped is not None
    assert len(cohort) == len(shipped)
    assert set(cohort.features) == {"f0"}
    for rank_model in population.rank_models:
        assert rank_model.evidence is not None
        assert rank_model.evidence.cohort == (cohort.compute_digest("f0"),)


@pytest.mark.slow
def test_a_cohort_of_ones_own(run, people, enrolled, tmp_path):
    others = tmp_path / "others"
    write_corpus(others, Simulation(30, 8), 30, 1, 10.0)
    made = run(
        "calibrate", people, "-o", enrolled, "--no-alarms", "--cohort", others, "--json", *ONE
    )
    assert made.code == 0
    # the names are those of the corpus too
    assert "left out of the cohort, being known: 000000, 000001" in made.err
    own = Population.load(enrolled).cohort
    assert own is not None
    assert len(own) == 18
    # it stays with the population, and is taken from there
    again = run("calibrate", people, "-o", enrolled, "--no-alarms", "--json", *ONE)
    assert json.loads(again.out)["cells"] == json.loads(made.out)["cells"]
    theirs = run("calibrate", people, "--cohort", enrolled, "--json", *ONE)
    assert json.loads(theirs.out)["cells"] == json.loads(made.out)["cells"]
    shipped = json.loads(run("calibrate", people, "--json", *ONE).out)["cells"]
    assert shipped[0]["evidence_bits"] != json.loads(made.out)["cells"][0]["evidence_bits"]


def test_a_cohort_that_cannot_be(run, people, enrolled, tmp_path):
    for cohort, complaint in (
        (people, "neither enrolled nor calibrated"),
        (enrolled, "has no cohort; name a corpus"),
        (tmp_path / "nowhere", "nowhere"),
    ):
        made = run("calibrate", people, "-o", enrolled, "--cohort", cohort, *ONE)
        assert made.code != 0
        assert complaint in made.complaint
    assert Population.load(enrolled).rank_models.find(("f0",), "cross") is None
