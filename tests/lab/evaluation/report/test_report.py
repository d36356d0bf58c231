from __future__ import annotations

import json

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.lab.evaluation import lid, linkage, srd, verification, zebra
from monitor.lab.evaluation.comparisons import Roles, ScoreMatrix, leaving_out, resamples
from monitor.lab.evaluation.evaluating import evaluate, steps
from monitor.lab.evaluation.family import EvaluationSettings, families
from monitor.lab.evaluation.report.comparing import compare
from monitor.lab.evaluation.report.report import by_family, meaning
from monitor.lab.report.export import figure_json
from tests.lab.evaluation.made import report as made_report
from tests.lab.evaluation.matrices import chance


@pytest.fixture(scope="module")
def mid(golden):
    return evaluate(
        golden.matrix("mid_eval"),
        golden.matrix("mid_dev"),
        settings=EvaluationSettings(replicates=40),
    )


def test_it_says_what_the_families_say(golden, mid):
    matrix, dev = golden.matrix("mid_eval"), golden.matrix("mid_dev")
    weights = np.concatenate([resamples(matrix, 40), leaving_out(matrix.speakers)])
    for family in (
        srd.figures(matrix, weights, permutations=40),
        lid.figures(matrix, weights, dev),
        zebra.figures(matrix, weights),
        verification.figures(matrix, weights),
        linkage.figures(matrix, weights),
    ):
        for figure in family:
            found = mid[figure.key]
            assert found.value == figure.value, figure.key
            if figure.replicates is not None:
                assert np.array_equal(found.replicates, figure.replicates[:40], equal_nan=True)
            assert (found.ceiling, found.ties) == (figure.ceiling, figure.ties)
            assert found.note.startswith(figure.note.rstrip("."))


def test_golden_figures(golden, mid):
    own, exact = golden.json("reference")["mid"], golden.json("zebra_exact")["exact"]["mid_eval"]
    peers = golden.json("peers")["regimes"]["mid_eval"]
    repo = own["lid"]["repo_ddof1_balanced_C1"]
    low = own["voxguard_strict_gt"]["0.001"]
    for key, value in {
        "srd.mean_bits": own["srd"]["MeanD"],
        "srd.mean_bits_miller_madow": own["srd"]["MeanD_MillerMadow"],
        "srd.idr": own["srd"]["IdR"],
        "srd.spread": own["srd"]["Spread"],
        "lid.repo.alid_bits": repo["ALID"],
        "lid.repo.max_bits": repo["LIDmax"],
        "anonymity.mean_rank_p50": own["usc"]["p50"],
        "anonymity.mean_rank_p1": own["usc"]["p1"],
        "zebra.d_ece_bits": exact["D_ECE"],
        "zebra.log10_l": exact["log10_l_pooled_ties"],
        "verification.min_cllr_bits": exact["min_cllr"],
        "verification.cllr_bits": peers["pybosaris"]["cllr_raw"],
        "verification.eer_rocch": peers["legal_eval"]["rocch_eer"],
        "linkage.d_sys": peers["voicepat_linkability"]["D_sys_omega1"],
        "membership.tpr_at_1e-3": low["TPR"],
        "membership.epsilon_nats_at_1e-3": low["eps_hat_nats"],
    }.items():
        assert mid[key].value == pytest.approx(value, abs=1e-5), key


def test_every_figure_says_what_it_is(mid):
    for key, figure in mid.figures.items():
        assert figure.key == key
        assert figure.label
        assert figure.unit in ("bits", "nats", "share", "rank", "log10", "count", "")
        assert figure.value is not None or figure.text or figure.note, key
        if figure.value is not None and figure.ceiling is not None and "lower" not in key:
            assert figure.value <= figure.ceiling + 1e-9, key
    assert set(by_family(mid.figures)) <= {family.key for family in families()}


def test_json_has_no_figures_of_replicates_and_no_infinity(mid):
    text = json.dumps(mid.to_json(), allow_nan=False)
    assert mid.to_json()["draws"] == 40
    assert "replicates" not in text
    assert len(text) < 200_000
    assert figure_json(made_report()["membership.epsilon_nats_at_1e-2"]) == {
        "label": "epsilon", "value": None, "text": "inf", "low": None, "high": None,
        "unit": "nats", "ceiling": None, "floor": None, "ties": "", "note": "",
    }  # fmt: skip


def test_progress_and_notes(golden):
    seen: list[str] = []
    matrix = golden.matrix("weak_eval")
    roles = Roles(query="anonymised", reference="original")
    chosen = EvaluationSettings(replicates=0, epsilon=0.5, roles=roles)
    report = evaluate(matrix, settings=chosen, notes=["Something."], progress=seen.append)
    assert len(seen) == steps()
    assert report.notes[0] == "Something."
    assert any("There is no dev matrix" in note for note in report.notes)
    assert "Anonymised queries against original references." in report.notes
    assert report["accounting.basic_nats_10"].value == 5.0
    assert all(figure.replicates is None for figure in report.figures.values())


def test_a_dev_matrix_of_the_same_speakers_is_pointed_out(golden):
    scores = golden.matrix("weak_eval")
    names = tuple(f"speaker {i}" for i in range(100))
    matrix = ScoreMatrix(scores.scores, scores.target, names)
    assert any(
        "LID is biased upwards" in note
        for note in evaluate(matrix, matrix, settings=EvaluationSettings(replicates=0)).notes
    )
    assert not any(
        "flattered" in note
        for note in evaluate(scores, scores, settings=EvaluationSettings(replicates=0)).notes
    )


def test_a_dev_matrix_of_another_number_of_speakers_says_what_is_carried_over():
    matrix = chance(12, 4)
    alike = evaluate(matrix, chance(12, 4, seed=1), settings=EvaluationSettings(replicates=0)).notes
    assert not any("The dev matrix has" in note for note in alike)
    for speakers, said in ((30, "the rank model is evaluated at N = 12"), (4, "fewer than 10")):
        notes = evaluate(
            matrix, chance(speakers, 4, seed=1), settings=EvaluationSettings(replicates=0)
        ).notes
        assert any(f"dev matrix has N = {speakers}" in note and said in note for note in notes)
    far = evaluate(
        chance(60, 2), chance(5, 4, seed=1), settings=EvaluationSettings(replicates=0)
    ).notes
    assert any("more than 10 times" in note for note in far)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report(golden):
    matrix = golden.matrix("weak_eval")
    first, again = (
        evaluate(matrix, settings=EvaluationSettings(replicates=20, seed=3)).to_json()
        for _ in range(2)
    )
    assert first == again
    assert first != evaluate(matrix, settings=EvaluationSettings(replicates=20, seed=4)).to_json()


@pytest.mark.slow
def test_systems_on_the_same_speakers(golden):
    mid, weak = (
        evaluate(golden.matrix(f"{name}_eval"), settings=EvaluationSettings(replicates=40))
        for name in ("mid", "weak")
    )
    comparison = compare([mid, weak])
    assert comparison.paired == (True, True)
    marked = {row.key for row in comparison.rows if row.differences[1] is not None
              and row.differences[1].significant}  # fmt: skip
    assert marked >= {
        "srd.mean_bits_model", "lid.alid_bits", "zebra.d_ece_bits", "verification.eer_rocch",
        "linkage.d_sys", "anonymity.mean_rank_p50", "membership.tpr_at_1e-2",
    }  # fmt: skip


def two(strength, seeds):
    target = np.repeat(np.arange(30), 6)
    own = target[:, None] == np.arange(30)
    return [
        evaluate(ScoreMatrix(
                np.random.default_rng(seed).normal(size=own.shape) + strength * own, target,
                name=f"s{seed}",
            ), settings=EvaluationSettings(replicates=100))
        for seed in seeds
    ]  # fmt: skip


@pytest.mark.slow
def test_two_systems_alike_are_seldom_told_apart():
    rows = [row for pair in ((0, 1), (2, 3), (4, 5)) for row in compare(two(1.5, pair)).rows]
    found = [row.key for row in rows if row.differences[1] and row.differences[1].significant]
    assert len(found) <= 0.12 * len(rows), found


@pytest.mark.parametrize("strength", [0.0, 60.0])
def test_no_evidence_and_perfect_evidence(strength):
    (report,) = two(strength, [0])
    first = meaning(report)[0]
    if strength:
        assert "as if only 1 were left" in first
        assert report["srd.idr"].value == 1.0
    else:
        assert "nothing that can be measured" in first
    json.dumps(report.to_json(), allow_nan=False)


def test_small_and_odd_matrices_are_reported_as_far_as_they_go():
    one_trial = ScoreMatrix(np.eye(3), np.arange(3))
    report = evaluate(one_trial, settings=EvaluationSettings(replicates=20))
    assert any("second trial" in note for note in report.notes)
    json.dumps(report.to_json(), allow_nan=False)
    one_speaker = ScoreMatrix(np.random.default_rng(0).normal(size=(12, 4)), np.zeros(12, int))
    report = evaluate(one_speaker, settings=EvaluationSettings(replicates=20))
    assert report.replicates == 0
    assert any("LID is left out" in note for note in report.notes)
    flat = ScoreMatrix(np.ones((12, 4)), np.arange(12) % 4)
    report = evaluate(flat, settings=EvaluationSettings(replicates=20))
    assert report["srd.mean_bits"].value == pytest.approx(0.0, abs=1e-12)
    assert report["zebra.d_ece_bits"].value == 0.0
    assert report["verification.eer_rocch"].value == 0.5
    json.dumps(report.to_json(), allow_nan=False)
    with pytest.raises(UsageError, match="give 0 or more"):
        evaluate(flat, settings=EvaluationSettings(replicates=-1))


def test_some_families_alone_say_what_they_say_among_all():
    generator = np.random.default_rng(0)
    target = np.arange(60) % 12
    scores = generator.normal(size=(60, 12)) + 2 * np.eye(12)[target]
    whole = evaluate(ScoreMatrix(scores, target), settings=EvaluationSettings(replicates=20))
    some = evaluate(
        ScoreMatrix(scores, target),
        settings=EvaluationSettings(replicates=20, only=("srd", "verification")),
    )
    assert {key.split(".")[0] for key in some.figures} == {"srd", "verification"}
    for key, figure in some.figures.items():
        assert figure_json(figure) == figure_json(whole[key])
    with pytest.raises(UsageError, match="no such family"):
        evaluate(ScoreMatrix(scores, target), settings=EvaluationSettings(only=("srd", "style")))
