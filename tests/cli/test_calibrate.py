"""monitor calibrate: rank models into a population, a file, a table, JSON and a picture."""

import json
import re

import numpy as np
import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor.population.population import Calibration, Population, load_rank_models
from monitor.population.rank_model import RankModels
from monitor.sources.frames import write_frames
from monitor.training import fitted
from monitor.training.calibrating import weaker_joints
from monitor.types import Track

ONE = ("--lengths", "1", "--template-lengths", "10", {"replicates": "20", "trials": "2"})
QUICK = ("--lengths", "1,5", "--template-lengths", "10", {"replicates": "20", "trials": "3"})


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
    result = run("calibrate", people, "-o", enrolled, *QUICK)
    assert result.code == 0
    assert result.err.startswith("plan: 12 speakers, a folder each\n  speaker ")
    assert result.err.endswith(f"\nthe rank models are in {enrolled}\n")
    population = Population.load(enrolled)
    cohort, shipped = population.cohort, Population.reference().cohort
    assert cohort is not None
    assert shipped is not None
    found = {(each.features, each.session) for each in population.rank_models}
    assert found == {(("f0",), "same"), (("f0",), "cross")}
    for rank_model in population.rank_models:
        assert set(rank_model.template_lengths) == {10.0}
        assert rank_model.maxima is not None
        assert len(rank_model.maxima.speakers) == 12
        assert rank_model.evidence is not None
        assert rank_model.evidence.cohort == (cohort.compute_digest("f0"),)
    assert len(cohort) == len(shipped)
    start = run("replay", talk, "-p", enrolled, "--watch", "000003").records[0]
    told = {key: start[f"rank_model{key}"] for key in ("", "_speakers", "_session")}
    assert told == {"": "own", "_speakers": 12, "_session": "cross"}
    assert 0.6 < start["rank_model_prior"] < 0.9
    share = f"{100 * start['rank_model_prior']:.0f} %"
    assert any(f"the shipped readers are {share} of this rank model" in n for n in start["notices"])


@pytest.mark.slow
def test_rank_models_in_a_file_of_their_own(run, people, talk, enrolled, tmp_path):
    path = tmp_path / "rank_model.npz"
    assert run("calibrate", people, "-o", path, {"alarms": False}, *ONE).code == 0
    assert [each.maxima for each in load_rank_models(path)[0]] == [None, None]
    used = run("replay", talk, "-p", enrolled, "--rank-model", path, "--watch", "000003")
    assert used.code == 0
    run("calibrate", people, "-o", enrolled, {"alarms": False}, *ONE)
    own = run("replay", talk, "-p", enrolled, "--watch", "000003")
    assert own.readings[-1]["support_bits"] > 0
    assert used.readings == own.readings  # the cohort comes with the rank models
    assert run("calibrate", people, "-o", path, *ONE).code == 0  # a rank model file may be renewed
    lent = run("replay", talk, "-p", enrolled, "--rank-model", "reference")
    assert lent.code == 0
    assert "Enrolled speakers are not calibrated" in lent.err


@pytest.mark.slow
def test_json(run, people, enrolled):
    result = run("calibrate", people, "-o", enrolled, "--json", "--lengths", "1", *ONE[4:])

    def never(constant: str) -> None:
        raise AssertionError(constant)

    made = json.loads(result.out, parse_constant=never)
    assert made["schema"] == 1
    assert {cell["D"] for cell in made["cells"]} == {10.0, 20.0, 30.0}  # also the templates'
    for cell in made["cells"]:
        assert cell["session"] in ("same", "cross")
        assert cell["evidence_pairs"] == 66
        assert cell["evidence_bits"] <= cell["support_bits"] <= np.log2(67)
        assert cell["others_mean_ratio"] <= 1.05
        assert [each["bits"] for each in cell["others_exceeding"]] == [1, 2, 3, 4, 5, 6]


def test_a_joint_below_its_best_part_is_told():
    rows = [
        {"feature": name, "session": "same", "T": test, "D": 30.0, "common_bits": bits}
        for test, each in ((10.0, (1.0, 3.24, 2.94)), (30.0, (1.0, 3.5, 3.6)))
        for name, bits in zip(("f0", "voice", "f0+voice"), each, strict=True)
    ]
    (told,) = weaker_joints(Calibration(RankModels([]), tuple(rows)))
    assert "f0+voice gives 2.94 bits, voice alone 3.24: rely on voice" in told
    assert "T=10 D=30" in told
    assert not weaker_joints(Calibration(RankModels([]), tuple(rows[3:])))


@pytest.mark.slow
def test_one_session_each_is_not_used_across_sessions_as_it_is(run, talk, tmp_path):
    """The same-session model stands in where it is asked for alone: by how much it favours."""
    one, us = tmp_path / "one", tmp_path / "us.npz"
    write_corpus(one, Simulation(12), 12, 1, 30.0)
    assert run("enrol", one, "-o", us, "--seconds", 10).code == 0
    bias = r"among 12 of the shipped readers by \d\.\d bits at 10 s and \d\.\d bits at 60 s"
    for more, said, model in (
        ((), "rank model is the prior", ("mismatched", "cross", 1.0)),
        (({"no-prior": True},), "no prior for f0", ("own", "same", 0.0)),
    ):
        made = run("calibrate", one, "-o", us, *more, *QUICK)
        assert made.code == 0
        assert said in made.err
        assert "two sessions or more: 0. A cross-session rank model needs 10" in made.err
        assert re.search(
            f"too high for an attacker with templates from another day, {bias}", made.err
        )
        start = run("replay", talk, "-p", us, "--watch", "000003").records[0]
        told = tuple(start[f"rank_model{key}"] for key in ("", "_session", "_prior"))
        assert told == model
        assert re.search(bias, " ".join(start["notices"]))


@pytest.mark.slow
def test_who_trained_a_network_calibrates_none_of_its_rank_models(run, people, enrolled, tmp_path):
    names = sorted(folder.name for folder in people.iterdir())
    (tmp_path / "trainers").write_text("\n".join([*names[:2], "somebody else", ""]))
    options = ["--trained", f"f0={tmp_path / 'trainers'}"]
    made = run("calibrate", people, "-o", enrolled, *options, *ONE)
    assert made.code == 0
    told = "f0: the 2 speakers who trained its network have no tests."
    assert told in made.err
    for each in Population.load(enrolled).rank_models:
        assert (each.speakers, each.candidates, each.left_out) == (10, 12, tuple(names[:2]))
    (tmp_path / "trainers").write_text("\n".join(names[:3]))
    made = run("calibrate", people, *options, *ONE)
    assert made.code == 1
    assert "only 9 of 12 speakers are not in the training data of f0" in made.complaint


@pytest.mark.slow
@pytest.mark.parametrize("response", ["note", "merge", "drop"])
def test_second_names_of_trainers_have_no_tests_either(run, tmp_path, response):
    """The list has a second name, so the person's first name does not calibrate the network."""
    random = np.random.default_rng(1)
    people = {f"p{i:02}": random.normal(size=60) for i in range(13)}
    people["second"] = people["p03"]
    ticks = np.arange(299, 6000, 100)
    for name, vector in people.items():
        for day in range(2):
            values = vector + 0.4 * random.normal(size=(len(ticks), 60))
            path = tmp_path / "people" / name / f"{day}.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_frames(path, np.ones(6000, bool), {"voice": Track(ticks, values)},
                         {"voice": 60}, {"voice": 3.0})  # fmt: skip
    (tmp_path / "trainers").write_text("second\np05\n")
    made = run("calibrate", tmp_path / "people", "-o", tmp_path / "m.npz", "--trained",
               f"voice={tmp_path / 'trainers'}", {"doubles": response, "no-prior": True},
               "--lengths", "5", *ONE[2:])  # fmt: skip
    assert made.code == 0, made.err
    assert "p03 and second sound like one person" in made.err
    left_out = {name for each in load_rank_models(tmp_path / "m.npz")[0] for name in each.left_out}
    assert left_out == {"p03", "p05", *(["second"] if response == "note" else [])}


@pytest.mark.slow
def test_a_cohort_of_ones_own(run, people, enrolled, tmp_path):
    others = tmp_path / "others"
    write_corpus(others, Simulation(30, 8), 30, 1, 10.0)
    asked = ("calibrate", people, {"alarms": False}, "--json", *ONE)
    made = run(*asked, "-o", enrolled, "--cohort", others)
    assert made.code == 0
    # the names are those of the corpus too
    assert "left out of the cohort because enrolled or calibrated: 000000, 000001" in made.err
    own = Population.load(enrolled).cohort
    assert own is not None
    assert len(own) == 18
    # it stays with the population, and is taken from there
    cells = json.loads(made.out)["cells"]
    assert json.loads(run(*asked, "-o", enrolled).out)["cells"] == cells
    assert json.loads(run(*asked, "--cohort", enrolled).out)["cells"] == cells
    shipped = json.loads(run(*asked).out)["cells"]
    assert shipped[0]["evidence_bits"] != cells[0]["evidence_bits"]
