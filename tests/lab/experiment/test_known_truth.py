"""Speakers with a known rank model are recovered by the whole path, from scores to the page."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

from monitor.lab.experiment import ExperimentSettings, experiment
from monitor.maths.rank_models import mean_disclosure_bits
from tests.lab.experiment.made import NAMES, Law, score_file

pytestmark = pytest.mark.slow

LENGTHS, TEMPLATES = (1.0, 3.0, 10.0, 30.0), (3.0, 10.0, 30.0)
PLACES = list(product(LENGTHS, TEMPLATES))
RISING: dict[tuple[float, float], Law | None] = {
    (t, d): (0.8, 1.2 + np.log2(t) * np.log2(d) / 2) for t, d in PLACES
}
FALLING: dict[tuple[float, float], Law | None] = {
    (t, d): (0.6, 8.0 if t < 30 else 2.0) for t, d in PLACES
}
NOTHING: dict[tuple[float, float], Law | None] = dict.fromkeys(PLACES)


def bits(rank_models, test, template=30.0):
    alpha, beta = rank_models[test, template]
    return float(mean_disclosure_bits(alpha, beta, NAMES))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("truth")
    systems = {"rising": RISING, "falling": FALLING, "nothing": NOTHING}
    scores = score_file(place / "scores.npz", systems)
    experiment(scores, place / "out", ExperimentSettings(replicates=60))
    return place / "out"


@pytest.fixture(scope="module")
def found(folder):
    return json.loads((folder / "results.json").read_text())


def answers(found, system):
    return {each["question"]: each for each in found["findings"] if each["system"] == system}


def test_the_rank_model_of_every_cell_lies_within_its_limits(found):
    held = []
    for cell in found["cells"]:
        for name, rank_models in (("rising", RISING), ("falling", FALLING)):
            figure = cell["systems"][name]["figures"]["srd.mean_bits_model"]
            truth = bits(rank_models, cell["T"], cell["D"])
            assert figure["value"] == pytest.approx(truth, abs=0.35)
            held.append(figure["low"] <= truth <= figure["high"])
    assert len(held) == 26
    assert sum(held) >= 23  # 95 % of 26, less what chance takes one time in a thousand


def test_no_evidence_stays_in_the_null_band(found):
    for cell in found["cells"]:
        figures = cell["systems"]["nothing"]["figures"]
        assert figures["srd.mean_bits_model"]["value"] < 0.1
        assert figures["srd.mean_bits_model"]["low"] == pytest.approx(0.0, abs=0.01)
    chances = [c["systems"]["nothing"]["figures"]["srd.null_chance"]["value"]
               for c in found["cells"]]  # fmt: skip
    assert np.mean(np.array(chances) <= 0.05) <= 0.25
    said = answers(found, "nothing")
    assert "yes" not in {each["verdict"] for key, each in said.items() if key != "loss"}
    assert not {"guide_linear", "guide_root", "saturates_t", "saturates_d"} & said.keys()


def test_trends_are_told_as_they_are(found):
    rising, falling = answers(found, "rising"), answers(found, "falling")
    assert rising["rises"]["verdict"] == "yes"
    assert rising["bounded"]["verdict"] == "yes"
    assert rising["falls"]["verdict"] in ("no", "undecided")
    assert falling["falls"]["verdict"] == "yes"
    assert falling["rises"]["verdict"] in ("no", "undecided")
    assert falling["bounded"]["verdict"] in ("no", "undecided")
    truth = bits(RISING, 30.0) - bits(RISING, 1.0)
    change = rising["rises"]["numbers"]["change"]
    assert change["low"] < truth < change["high"]


def test_guides_are_as_far_above_as_they_are(found):
    first, last = bits(RISING, 1.0), bits(RISING, 30.0)
    rising = answers(found, "rising")
    for name, power, verdict in (("linear", 30.0, "no"), ("root", np.sqrt(30.0), "no")):
        times = rising[f"guide_{name}"]["numbers"]["times"]
        assert times["low"] < power * first / last < times["high"]
        assert rising[f"guide_{name}"]["verdict"] == verdict
    # 30 times less what it loses by falling
    assert answers(found, "falling")["guide_linear"]["verdict"] == "yes"


def test_no_loss_is_said_to_beat_the_likelihood_on_its_own_rank_model(found):
    for system in ("rising", "falling"):
        loss = answers(found, system)["loss"]
        assert loss["verdict"] in ("yes", "undecided")
        assert loss["numbers"]["better"] == []
    (cell,) = [cell for cell in found["cells"] if cell["purpose"] == "tables"]
    rows = {row["loss"]: row for row in cell["systems"]["rising"]["losses"]}
    assert min(rows, key=lambda loss: rows[loss]["kl_bits"]) == "LL"
    assert rows["CLL"]["rank1_match_bits"] < rows["LL"]["rank1_match_bits"]


def test_few_speakers_decide_nothing(tmp_path):
    scores = score_file(tmp_path / "few.npz", {"rising": RISING}, speakers=6)
    made = experiment(scores, tmp_path / "out", ExperimentSettings(replicates=40))
    assert {each.verdict for each in made.findings} == {"undecided"}
    assert "cannot be decided with so few speakers" in (tmp_path / "out/index.html").read_text()


def test_what_is_written_names_nobody(folder):
    for path in folder.iterdir():
        if path.is_file():
            assert b"who0" not in path.read_bytes(), path.name
            assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
