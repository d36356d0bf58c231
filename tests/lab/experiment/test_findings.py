"""What is found in speakers with a known rank model, from scores to the page."""

import csv
import json
from itertools import product
from typing import Any

import numpy as np
import pytest

from monitor.lab.experiment import ExperimentSettings, experiment
from monitor.lab.experiment.cells import MeasuredCell
from monitor.lab.experiment.findings import (
    Surface,
    answer_bound,
    answer_fall,
    answer_guides,
    answer_rise,
    answer_saturation,
    make_surfaces,
)
from monitor.lab.experiment.material import Panel
from monitor.maths.rank_models import mean_disclosure_bits
from tests.lab.experiment.made import NAMES, Law, score_file
from tests.lab.reading import read_alone

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
def truth(tmp_path_factory):
    place = tmp_path_factory.mktemp("truth")
    systems = {"rising": RISING, "falling": FALLING, "nothing": NOTHING}
    scores = score_file(place / "scores.npz", systems)
    experiment(scores, place / "out", ExperimentSettings(replicates=60))
    return place / "out"


@pytest.fixture(scope="module")
def found(truth):
    return json.loads((truth / "results.json").read_text())


def answers(found, system):
    return {each["question"]: each for each in found["findings"] if each["system"] == system}


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    first, last = bits(RISING, 1.0), bits(RISING, 30.0)
    for name, power, verdict in (("linear", 30.0, "no"), ("root", np.sqrt(30.0), "no")):
        times = rising[f"guide_{name}"]["numbers"]["times"]
        assert times["low"] < power * first / last < times["high"]
        assert rising[f"guide_{name}"]["verdict"] == verdict
    # 30 times less what it loses by falling
    assert falling["guide_linear"]["verdict"] == "yes"


@pytest.mark.slow
def test_no_loss_is_said_to_beat_the_likelihood_on_its_own_rank_model(found):
    for system in ("rising", "falling"):
        loss = answers(found, system)["loss"]
        assert loss["verdict"] in ("yes", "undecided")
        assert loss["numbers"]["better"] == []
    (cell,) = [cell for cell in found["cells"] if cell["purpose"] == "tables"]
    rows = {row["loss"]: row for row in cell["systems"]["rising"]["losses"]}
    assert min(rows, key=lambda loss: rows[loss]["kl_bits"]) == "LL"
    assert rows["CLL"]["rank1_match_bits"] < rows["LL"]["rank1_match_bits"]


@pytest.mark.slow
def test_few_speakers_decide_nothing(tmp_path):
    scores = score_file(tmp_path / "few.npz", {"rising": RISING}, speakers=6)
    made = experiment(scores, tmp_path / "out", ExperimentSettings(replicates=40))
    assert {each.verdict for each in made.findings} == {"undecided"}
    assert "too few speakers" in (tmp_path / "out/index.html").read_text()


@pytest.mark.slow
def test_what_is_written_names_nobody(truth):
    for path in truth.iterdir():
        if path.is_file():
            assert b"who0" not in path.read_bytes(), path.name
            assert path.stat().st_mode & 0o777 == 0o600
    assert truth.stat().st_mode & 0o777 == 0o700


TIMES, GIVEN = (1.0, 2.0, 4.0, 8.0, 16.0), (3.0, 30.0)
GROWING, FLAT = [0.5, 1.1, 1.7, 2.3, 2.9], [1.0] * 5


def surface(bits, by_template=(1.0, 1.0), spread=0.05, tested=30, speakers=64, chance=0.005):
    """MeanD at each T, times a factor of each D, whose resamples spread independently."""
    generator = np.random.default_rng(0)
    panel = Panel("sweep", "same", ("a",), ("a",), TIMES, GIVEN)
    factors = dict(zip(GIVEN, by_template, strict=True))
    at = dict(zip(TIMES, bits, strict=True))
    cells = []
    for t, d in panel.cells:
        value = float(at[t] * factors[d])
        noise = generator.normal(scale=spread, size=230)
        found: Any = {
            "speakers": speakers, "tested": tested, "trials": 20 * tested,
            "figures": {"srd.mean_bits_model": {"value": value, "low": None, "high": None},
                        "srd.null_chance": {"value": chance}},
            "resampled": (value + noise[:200]).tolist(),
            "left_out": (value + noise[200:] / 30).tolist(),
        }  # fmt: skip
        cells.append(MeasuredCell(panel, t, d, {"f": found}))
    (made,) = make_surfaces(cells)
    return made


def said(made: Surface):
    answers = [answer_rise(made), answer_fall(made), answer_bound(made)]
    answers += [answer_saturation(made, "T"), answer_saturation(made, "D"), *answer_guides(made)]
    return {each.question: each.verdict for each in answers if each is not None}


@pytest.mark.parametrize(
    ("bits", "how", "yes", "no", "not_yes"),
    [
        ([1.18, 1.9, 2.59, 2.95, 3.0], {"by_template": (0.45, 1.0)},
         "rises saturates_t bounded", "", "falls"),
        (GROWING, {}, "rises", "falls saturates_t", "bounded"),
        ([1.6, 1.85, 2.0, 1.75, 1.5], {}, "falls", "", ""),
        (GROWING, {"tested": 9}, "", "", "rises falls bounded saturates_t"),
    ],
    ids=["saturates", "grows with every doubling", "falls again", "of nine speakers"],
)  # fmt: skip
def test_trends_of_curves_that_are_known(bits, how, yes, no, not_yes):
    found = said(surface(bits, **how))
    assert {found[each] for each in yes.split()} <= {"yes"}
    assert {found[each] for each in no.split()} <= {"no"}
    assert "yes" not in {found[each] for each in not_yes.split()}
    assert "saturates_d" not in found  # two lengths have one doubling
    if "tested" in how:
        assert set(found.values()) == {"undecided"}


def test_noise_decides_nothing_and_what_tells_nothing_has_no_guides():
    noisy = surface(FLAT, spread=0.5)
    found = said(noisy)
    assert set(found.values()) <= {"undecided"} | {"yes", "no"} & {found["guide_linear"]}
    made: Any = answer_rise(noisy)
    assert "too few speakers (N = 64, 30 tested" in made.text
    nothing = surface([0.02] * 5, chance=0.4)
    assert answer_guides(nothing) == []
    assert answer_saturation(nothing, "T") is None


def test_at_the_ceiling_lengths_cannot_show():
    made = surface([5.99] * 5, spread=0.0)
    found = said(made)
    assert found["rises"] == found["falls"] == found["saturates_t"] == "full"
    answer: Any = answer_rise(made)
    assert "(all resamples agree)" in answer.text
    assert "log2 N = 6.00" in answer.text


RANK_MODELS = {(t, d): (0.5, 1.5 + t) for t in (1.0, 3.0, 10.0) for d in (3.0, 10.0, 30.0)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("page")
    systems = {"first": RANK_MODELS, "second": dict.fromkeys(RANK_MODELS, (0.3, 9.0))}
    scores = score_file(place / "a<b.npz", systems, ("same", "cross"), speakers=14, trials=5)
    experiment(scores, place / "out", ExperimentSettings(replicates=20))
    return place / "out"


def data(path):
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.slow
def test_the_page_stands_alone_and_its_figures_have_their_data(folder):
    page = (folder / "index.html").read_text()
    read_alone(page)
    assert "<h1>Similarity rank disclosure of a&lt;b</h1>" in page
    assert page.count("<svg") == 4  # no frames were heard, so no figure 4
    for name in ("figure5", "figure6", "figure7", "figure8"):
        assert len(data(folder / f"{name}.csv")) >= 14
    rows = data(folder / "figure8.csv")  # every cell with limits
    assert len(rows) == 2 * 2 * 9
    for row in rows:
        low, value, high = (float(row[f"meand{end}"]) for end in ("_low", "", "_high"))
        assert low <= value <= high <= float("3.81")
        assert (row["speakers"], row["tested"], row["trials"]) == ("14", "14", "70")
