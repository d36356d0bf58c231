"""Comparisons: full matrices, lists with impostors and gaps, their order and their direction."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation import membership, verification, zebra
from monitor.lab.evaluation.comparisons import Comparisons, ScoreList, ScoreMatrix
from monitor.lab.evaluation.counts import ScoreCounts
from monitor.lab.evaluation.document import Evaluation
from monitor.lab.evaluation.evaluating import warning
from monitor.lab.evaluation.input.embeddings import read_embeddings
from monitor.lab.evaluation.input.scores import read_scores
from monitor.lab.evaluation.linkage import d_sys
from monitor.lab.evaluation.membership import operating_point
from monitor.lab.evaluation.report import meaning
from monitor.lab.evaluation.resampling import pooled_resamples, resamples
from monitor.lab.evaluation.systems import compare
from monitor.lab.evaluation.verification import eer
from monitor.lab.report.renderers import render_html
from monitor.maths.statistics import speaker_weights
from tests.lab.evaluation.lists import chosen_lines, speechbrain_eer, voice_privacy
from tests.lab.evaluation.matrices import (
    chance,
    constant,
    leading,
    other_columns,
    other_rows,
    perfect,
    report_of,
    rescored,
)


def test_a_score_that_is_no_number_is_named():
    scores = np.zeros((5, 3))
    scores[3, 1] = np.nan
    matrix = ScoreMatrix(scores, np.zeros(5, dtype=int), ("ann", "bob", "cy"), name="a.npy")
    with pytest.raises(UsageError, match=r"^a.npy: the score of trial 4 with speaker bob is not"):
        _ = matrix.better
    with pytest.raises(UsageError, match="trial 4 with speaker bob"):
        ScoreCounts.from_scores(matrix)


@pytest.mark.parametrize(
    ("scores", "target", "speakers", "message"),
    [
        (np.zeros(3), [0, 0, 0], (), "a matrix of numbers"),
        (np.zeros((3, 1)), [0, 0, 0], (), "1 speaker;"),
        (np.zeros((0, 3)), [], (), "no trial"),
        (np.zeros((3, 3)), [0, 1], (), "one target column"),
        (np.zeros((1, 3)), [3], (), "outside the 3 columns"),
        (np.zeros((1, 3)), [0], ("a", "b", "a"), "3 different names"),
    ],
)
def test_what_does_not_fit_is_said(scores, target, speakers, message):
    with pytest.raises(UsageError, match=message):
        ScoreMatrix(scores, np.asarray(target), speakers)


def test_resamples_draw_speakers_that_have_trials():
    matrix = ScoreMatrix(np.zeros((6, 5)), np.array([1, 1, 4, 4, 4, 2]))
    weights = resamples(matrix, replicates=50)
    assert weights.shape == (50, 3)
    assert (weights.sum(axis=1) == 3).all()
    assert matrix.owner.tolist() == [0, 0, 2, 2, 2, 1]
    assert np.array_equal(weights, resamples(matrix, replicates=50))


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    return voice_privacy(tmp_path_factory.mktemp("vpc"))


def test_voice_privacys_list_gives_the_official_eer_and_says_which_trials_went_where(listed):
    assert (listed.mated.size, listed.others.size) == (704, 14566)
    report = report_of(read_scores(listed.scores, listed.key).comparisons, replicates=20)
    official = speechbrain_eer(listed.mated, listed.others)
    assert report["verification.eer_nearest"].value == pytest.approx(official, abs=1e-12)
    hull = eer(listed.mated, listed.others, "rocch")
    assert report["verification.eer_rocch"].value == pytest.approx(hull, abs=1e-12)
    pooled = d_sys(listed.mated, listed.others)
    assert report["linkage.d_sys"].value == pytest.approx(pooled, abs=1e-12)
    made = report.to_json()
    assert made["comparisons"] == {
        "target": 704, "nontarget": 14566, "impostor": 4710,
        "trials": 1018, "impostor_trials": 314, "ranked_trials": 704,
    }  # fmt: skip
    said = " ".join(report.notes)
    assert "704 target and 14,566 non-target comparisons (4,710 of these of 314 trials with" in said
    assert "use the 704 of 1,018 trials that were compared with all 15 speakers" in said
    assert made["figures"]["verification.eer_rocch"]["trials"] == 1018
    assert made["figures"]["srd.idr"]["trials"] == 704


def test_ranks_are_those_of_the_enrolled_speakers(listed):
    read = read_scores(listed.scores, listed.key)
    alone = read_scores(listed.scores, listed.key, unmated="drop").matrix
    assert (read.matrix.trials, read.matrix.population) == (704, 15)
    assert read.matrix.trial_names[:2] == ("1000-0000", "1001-0001")
    np.testing.assert_array_equal(read.matrix.scores, alone.scores)
    whole, ranked = (report_of(each, replicates=30) for each in (read.comparisons, alone))
    for key in ("srd.mean_bits_model", "lid.alid_bits", "linkage.pi_link_10"):
        assert (whole[key].value, whole[key].limits) == (ranked[key].value, ranked[key].limits)
    nearest = (each["verification.eer_nearest"].value for each in (whole, ranked))
    assert abs(np.subtract(*nearest)) > 0.02, "impostors matter on this list"


def lists(draw) -> ScoreList:
    """Any list: missing pairs, impostors, trials with two targets, equal scores."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    trials, count, people = draw(st.integers(2, 12)), draw(st.integers(1, 5)), 6
    there = generator.random((trials, count)) < draw(st.sampled_from([0.3, 0.8, 1.0]))
    there[:2, 0] = True
    trial, speaker = np.nonzero(there)
    mated = generator.random(trial.size) < 0.4
    mated[:1], mated[-1:] = True, False
    if mated.all() or not mated.any():
        mated[0], mated[-1] = True, False
    scores = generator.normal(size=trial.size) + mated
    if draw(st.booleans()):
        scores = np.round(scores)
    rows, trial = np.unique(trial, return_inverse=True)
    names = [f"p{i}" for i in generator.integers(0, people, rows.size)]
    for i in np.flatnonzero(mated)[::-1]:
        names[trial.ravel()[i]] = f"s{speaker[i]}"
    heard = sorted(set(names))
    return ScoreList(
        scores, mated, trial.ravel(), speaker, np.array([heard.index(name) for name in names]),
        tuple(f"s{i}" for i in range(count)), tuple(heard),
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.composite(lists)())
def test_pooled_figures_are_those_of_the_two_pools(listed):
    found = Comparisons.from_scores(listed)
    mated, others = listed.scores[listed.mated], listed.scores[~listed.mated]
    assert found.usage.target + found.usage.nontarget == listed.scores.size
    assert sorted(found.mated) == sorted(mated)
    blocks = [block.ravel() for _, block in found.non_mated_blocks()]
    assert sorted(np.concatenate(blocks)) == sorted(others)
    values = {f.key: f.value for f in (*verification.figures(found), *zebra.figures(found))}
    for key, value in {
        "verification.eer_rocch": eer(mated, others, "rocch"),
        "verification.eer_nearest": eer(mated, others, "nearest"),
        "verification.cllr_bits": verification.cllr(mated, others),
        "verification.min_cllr_bits": verification.min_cllr(mated, others),
        "zebra.d_ece_bits": zebra.d_ece(mated, others),
        "zebra.log10_l": zebra.log10_l(mated, others),
    }.items():
        assert values[key] == pytest.approx(value, abs=1e-9), key
    for figure in membership.figures(found, rates=(0.1,)):
        if figure.key == "membership.tpr_at_1e-1":
            assert figure.value == operating_point(mated, others, 0.1).tpr


@settings(max_examples=40, deadline=None)
@given(st.composite(lists)())
def test_a_resample_counts_the_trials_of_who_was_drawn(listed):
    found = Comparisons.from_scores(listed)
    weights = pooled_resamples(found, replicates=3)
    known = np.unique(found.owner)
    assert (weights[:, known].sum(axis=1) == known.size).all()
    assert (weights.sum(axis=1) == len(found.people)).all()
    place = {name: i for i, name in enumerate(found.people)}
    whose = np.array([place[listed.people[i]] for i in listed.spoken[listed.trial]])
    for figure in (*verification.figures(found, weights), *zebra.figures(found, weights)):
        assert figure.replicates is None or figure.replicates.shape == (3,)
    costs = ScoreCounts.from_scores(found, weights).replicate_costs
    for draw, times in enumerate(weights[:, whose].astype(int)):
        scores, labels = np.repeat(listed.scores, times), np.repeat(listed.mated, times)
        if labels.all():
            continue
        expected = verification.cllr(scores[labels], scores[~labels])
        assert costs[draw].mean() == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_a_list_without_any_full_row_has_no_ranks(tmp_path):
    """As VoxCeleb's: pairs of recordings, drawn at random."""
    generator = np.random.default_rng(0)
    lines = {(int(a), int(b)) for a, b in generator.integers(0, 40, (900, 2))}
    with (tmp_path / "s").open("w") as scores, (tmp_path / "k").open("w") as key:
        for a, b in sorted(lines):
            same = a % 8 == b % 8
            scores.write(f"e{a} t{b} {generator.normal() + 2 * same}\n")
            key.write(f"e{a} t{b} {'target' if same else 'nontarget'}\n")
    read = read_scores(tmp_path / "s", tmp_path / "k")
    with pytest.raises(UsageError, match="no ranks"):
        _ = read.matrix
    report = report_of(read.comparisons, replicates=20)
    families = {key.split(".")[0] for key in report.figures}
    assert families == {"zebra", "verification", "linkage", "membership"}
    assert report["verification.eer_rocch"].limits[0] is not None
    assert any("SRD, LID, pi_link, pi_sing and mean ranks are omitted" in n for n in report.notes)
    json.dumps(report.to_json(), allow_nan=False)


def test_only_pairs_of_the_trial_list_count_and_gaps_cost_ranks_alone(listed, tmp_path):
    keep = np.ones(15270, bool)
    keep[[3, 40]] = False  # of the first and the third trial
    (tmp_path / "s").write_text(chosen_lines(listed.scores, keep))
    (tmp_path / "k").write_text(chosen_lines(listed.key, keep))
    few, keyed = (read_scores(path, tmp_path / "k") for path in (tmp_path / "s", listed.scores))
    for read in (few, keyed):
        assert read.matrix.trials == 702
        assert read.comparisons.usage.nontarget == 14564
        assert any("2 of 1,018 trials were not compared with every" in n for n in read.notes)
    assert sorted(few.comparisons.mated) == sorted(keyed.comparisons.mated)
    assert any(
        "2 of 15270 scored pairs are not in k and are excluded" in note for note in keyed.notes
    )


ENROLMENTS = {"ann-1": "ann", "ann-2": "ann", "bob-1": "bob", "cid-1": "cid"}
HEARD = {"u1": "ann", "u2": "bob", "u3": "cid"}
RAW = np.array([[0.9, 0.5, 0.1, 0.2], [0.3, 0.7, 0.6, 0.0], [0.2, 0.0, 0.4, 0.8]])

MERGED = {
    "average": [[0.7, 0.1, 0.2], [0.5, 0.6, 0.0], [0.1, 0.4, 0.8]],
    "max": [[0.9, 0.1, 0.2], [0.7, 0.6, 0.0], [0.2, 0.4, 0.8]],
}

CELLS = [(m, t, RAW[i, j]) for i, t in enumerate(HEARD) for j, m in enumerate(ENROLMENTS)]
LISTED = "model trial score\n" + "".join(f"{m} {t} {x}\n" for m, t, x in CELLS)
WIDE = f"trial,{','.join(ENROLMENTS)}\n" + "".join(
    f"{trial},{','.join(map(str, row))}\n" for trial, row in zip(HEARD, RAW.tolist(), strict=True)
)
KEY = "model trial target\n" + "".join(
    f"{m} {t} {'target' if ENROLMENTS[m] == HEARD[t] else 'nontarget'}\n" for m, t, _ in CELLS
)
UTT2SPK = "".join(f"{a} {b}\n" for a, b in HEARD.items())
MODELS = "".join(f"{a} {b}\n" for a, b in ENROLMENTS.items())


@pytest.mark.parametrize("scoring", ["average", "max"])
@pytest.mark.parametrize(
    ("scores", "labels", "models"),
    [
        (None, "ann\nbob\ncid\n", "ann\nann\nbob\ncid\n"),
        *(
            (scores, labels, models)
            for scores in (LISTED, WIDE)
            for labels, models in ((UTT2SPK, MODELS), (UTT2SPK + MODELS, None), (KEY, MODELS))
        ),
    ],
)
def test_several_enrolments_of_a_speaker(tmp_path, scoring, scores, labels, models):
    path = tmp_path / ("s.npy" if scores is None else "s.csv" if scores is WIDE else "s")
    if scores is None:
        np.save(path, RAW)
    else:
        path.write_text(scores)
    (tmp_path / "l").write_text(labels)
    (tmp_path / "m").write_text(models or "")
    whose = tmp_path / "m" if models else None
    read = read_scores(path, tmp_path / "l", scoring=scoring, enrolment_labels=whose)
    assert read.matrix.speakers == ("ann", "bob", "cid")
    np.testing.assert_allclose(read.matrix.scores, MERGED[scoring])
    assert any("4 enrolments of 3 speakers" in note for note in read.notes)


def test_enrolments_that_nobody_explains(tmp_path):
    """Each counts by itself, as in lists of pairs of recordings."""
    (tmp_path / "s").write_text(LISTED)
    (tmp_path / "k").write_text(KEY)
    read = read_scores(tmp_path / "s", tmp_path / "k")
    assert sorted(read.comparisons.mated) == [0.5, 0.6, 0.8, 0.9]
    assert read.matrix.trials == 2
    assert any("1 trial with several targets (first: u1)" in note for note in read.notes)
    (tmp_path / "m").write_text("ann-1 ann\n")
    with pytest.raises(UsageError, match="m lacks 3 of 4 enrolments"):
        read_scores(tmp_path / "s", tmp_path / "k", enrolment_labels=tmp_path / "m")
    (tmp_path / "m").write_text("ann-1 ann\nann-2 bob\nbob-1 bob\ncid-1 cid\n")
    with pytest.raises(UsageError, match="u1 is a target of only some enrolments of speaker bob"):
        read_scores(tmp_path / "s", tmp_path / "k", enrolment_labels=tmp_path / "m")


def test_impostors_among_embeddings_and_in_tables(tmp_path):
    values = np.eye(3)
    np.savez(tmp_path / "e.npz", embeddings=values, speakers=["ann", "bob", "cid"])
    heard = np.concatenate([values, [[0.1, 0.9, 0.2], [0.5, 0.5, 0.1]]]) + 0.05
    np.savez(tmp_path / "t.npz", embeddings=heard, speakers=["ann", "bob", "cid", "eve", "eve"])
    read = read_embeddings(tmp_path / "t.npz", tmp_path / "e.npz")
    assert (read.comparisons.usage.impostor_trials, read.comparisons.usage.impostor) == (2, 6)
    assert read.comparisons.people == ("ann", "bob", "cid", "eve")
    assert len(read_embeddings(tmp_path / "t.npz", tmp_path / "e.npz", unmated="drop").notes) > 0
    (tmp_path / "s.csv").write_text(
        "trial,target,ann,bob\nu1,ann,0.9,0.1\nu2,bob,0.2,0.8\nu3,eve,0.3,0.7\n"
    )
    table = read_scores(tmp_path / "s.csv").comparisons
    assert table.people == ("ann", "bob", "eve")
    assert sorted(np.concatenate([b.ravel() for _, b in table.non_mated_blocks()])) == [
        0.1, 0.2, 0.3, 0.7,
    ]  # fmt: skip


def test_impostors_are_drawn_among_themselves():
    rest = ScoreList(
        np.zeros(4), np.zeros(4, bool), np.repeat(np.arange(2), 2), np.tile([0, 1], 2),
        np.arange(2), ("a", "b"), ("x", "y"),
    )  # fmt: skip
    matrix = ScoreMatrix(np.eye(2), np.arange(2), ("a", "b"))
    weights = pooled_resamples(Comparisons(("a", "b"), matrix, rest), 50)
    np.testing.assert_array_equal(weights[:, :2], speaker_weights(2, 50, 0))
    assert (weights[:, 2:].sum(axis=1) == 2).all()
    assert not np.array_equal(weights[:, 2:], weights[:, :2])


def test_numbers_of_trials_are_no_enrolments(tmp_path):
    """Speaker 10 has no trial, and another's trial is called 10."""
    np.savetxt(tmp_path / "s.txt", np.random.default_rng(0).normal(size=(20, 12)))
    (tmp_path / "l").write_text("".join(f"{i} {i % 10}\n" for i in range(20)))
    assert read_scores(tmp_path / "s.txt", tmp_path / "l").matrix.population == 12


def distances(matrix):
    return rescored(matrix, lambda scores: 1 - scores)


@pytest.mark.slow
def test_distances_are_found_out_and_scores_are_not():
    for seed in range(20):
        assert warning(leading(30, 8, -1.0, seed))
        assert not warning(leading(30, 8, 0.5, seed))
        assert not warning(chance(2, 4, seed))
    assert sum(bool(warning(chance(20, 10, seed))) for seed in range(100)) <= 2
    assert not warning(constant())
    assert warning(distances(perfect(2, 8)))
    assert not warning(distances(perfect(2, 1)))
    # trials of a speaker that are alike are not taken for distances
    once = chance(8, 1, seed=3)
    copies = ScoreMatrix(np.repeat(once.scores, 30, axis=0), np.repeat(once.target, 30))
    assert not warning(copies)
    said = warning(distances(perfect(10, 5)))
    assert "first in 0 % of the trials" in said
    assert "(chance: 10 %)" in said
    assert "negate distances" in said
    assert warning(perfect(10, 5)) == ""


def test_the_warning_of_distances_stands_on_top_of_every_report():
    report, right = (
        report_of(leading(30, 8, lead, name=f"{lead}"), replicates=40) for lead in (-4.0, 4.0)
    )
    assert len(report.warnings) == 1
    assert report.to_json()["warnings"] == list(report.warnings)
    html = render_html(Evaluation([report]).page())
    assert html.index("looks like distances") < html.index("What it means")
    assert right.to_json()["warnings"] == []
    first = meaning(report)[0]
    assert "who reverses the scores learns" in first
    assert "nothing measurable" not in first
    scores = report_of(leading(30, 8, 4.0), leading(30, 8, -4.0, 1))
    assert [text.startswith("the dev matrix looks like distances") for text in scores.warnings]


def test_systems_with_other_orders_are_compared_in_pairs():
    matrix = leading(9, 8, 1.5)
    better = ScoreMatrix(matrix.scores + 0.3, matrix.target, matrix.speakers, "better")
    better.scores[np.arange(72), matrix.target] += 0.5
    generator = np.random.default_rng(5)
    moved = other_rows(other_columns(better, generator.permutation(9)), generator.permutation(72))
    systems = matrix, better, replace(moved, name="moved")
    reports = [report_of(each, replicates=50) for each in systems]
    straight, crossed = (compare([reports[0], other]) for other in reports[1:])
    assert crossed.paired == (True, True)
    for one, two in zip(straight.rows, crossed.rows, strict=True):
        here, there = one.differences[1], two.differences[1]
        assert (there.low, there.high) == pytest.approx((here.low, here.high), abs=1e-6)
    assert not any("tested on" in note for note in crossed.notes)
