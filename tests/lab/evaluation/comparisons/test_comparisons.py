"""Scores that are no full matrix: impostors, missing pairs, several enrolments."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation import EvaluationSettings, membership, verification, zebra
from monitor.lab.evaluation.comparisons import (
    Comparisons,
    ScoreCounts,
    ScoreList,
    ScoreMatrix,
    pooled_resamples,
    resamples,
)
from monitor.lab.evaluation.evaluating import evaluate, steps
from monitor.lab.evaluation.input.embeddings import read_embeddings
from monitor.lab.evaluation.input.scores import read_scores
from monitor.lab.evaluation.linkage import d_sys, d_sys_figure
from monitor.lab.evaluation.membership import operating_point
from monitor.lab.evaluation.report.document import Evaluation
from monitor.lab.evaluation.verification import eer
from monitor.lab.report.html import render_html
from monitor.maths.statistics import speaker_weights
from tests.lab.evaluation.lists import chosen_lines, speechbrain_eer, voice_privacy


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    return voice_privacy(tmp_path_factory.mktemp("vpc"))


@pytest.mark.slow
def test_voice_privacys_list_gives_the_official_eer(listed):
    assert (listed.mated.size, listed.others.size) == (704, 14566)
    report = evaluate(
        read_scores(listed.scores, listed.key).comparisons,
        settings=EvaluationSettings(replicates=20),
    )
    official = speechbrain_eer(listed.mated, listed.others)
    assert report["verification.eer_nearest"].value == pytest.approx(official, abs=1e-12)
    hull = eer(listed.mated, listed.others)
    assert report["verification.eer_rocch"].value == pytest.approx(hull, abs=1e-12)
    dropped = read_scores(listed.scores, listed.key, unmated="drop").comparisons
    without = evaluate(dropped, settings=EvaluationSettings(replicates=0))[
        "verification.eer_nearest"
    ].value
    assert without is not None
    assert abs(without - official) > 0.02, "impostors matter on this list"


def test_the_report_says_which_trials_went_where(listed):
    report = evaluate(
        read_scores(listed.scores, listed.key).comparisons,
        settings=EvaluationSettings(replicates=20),
    )
    made = report.to_json()
    assert made["comparisons"] == {
        "target": 704, "nontarget": 14566, "impostor": 4710,
        "trials": 1018, "impostor_trials": 314, "ranked_trials": 704,
    }  # fmt: skip
    said = " ".join(report.notes)
    assert "704 target and 14,566 non-target comparisons (4,710 of these of 314 trials with" in said
    assert "stand on the 704 of 1,018 trials that were compared with all 15 speakers" in said
    assert made["figures"]["verification.eer_rocch"]["trials"] == 1018
    assert made["figures"]["srd.idr"]["trials"] == 704


def test_ranks_are_those_of_the_enrolled_speakers(listed):
    read = read_scores(listed.scores, listed.key)
    alone = read_scores(listed.scores, listed.key, unmated="drop").matrix
    assert (read.matrix.trials, read.matrix.population) == (704, 15)
    np.testing.assert_array_equal(read.matrix.scores, alone.scores)
    whole, ranked = (
        evaluate(read.comparisons, settings=EvaluationSettings(replicates=30)),
        evaluate(alone, settings=EvaluationSettings(replicates=30)),
    )
    for key in ("srd.mean_bits_model", "lid.alid_bits", "linkage.pi_link_10"):
        assert (whole[key].value, whole[key].limits) == (ranked[key].value, ranked[key].limits)


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


some_lists = st.composite(lists)


@settings(max_examples=60, deadline=None)
@given(some_lists())
def test_pooled_figures_are_those_of_the_two_pools(listed):
    found = Comparisons.of(listed)
    mated, others = listed.scores[listed.mated], listed.scores[~listed.mated]
    assert found.usage.target + found.usage.nontarget == listed.scores.size
    assert sorted(found.mated) == sorted(mated)
    blocks = [block.ravel() for _, block in found.non_mated_blocks()]
    assert sorted(np.concatenate(blocks)) == sorted(others)
    values = {f.key: f.value for f in (*verification.figures(found), *zebra.figures(found))}
    for key, value in {
        "verification.eer_rocch": eer(mated, others),
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
@given(some_lists())
def test_a_resample_counts_the_trials_of_who_was_drawn(listed):
    found = Comparisons.of(listed)
    weights = pooled_resamples(found, replicates=3)
    known = np.unique(found.owner)
    assert (weights[:, known].sum(axis=1) == known.size).all()
    assert (weights.sum(axis=1) == len(found.people)).all()
    place = {name: i for i, name in enumerate(found.people)}
    whose = np.array([place[listed.people[i]] for i in listed.spoken[listed.trial]])
    for figure in (*verification.figures(found, weights), *zebra.figures(found, weights)):
        assert figure.replicates is None or figure.replicates.shape == (3,)
    costs = ScoreCounts.of(found, weights).replicate_costs
    assert costs is not None
    for draw, times in enumerate(weights[:, whose].astype(int)):
        scores, labels = np.repeat(listed.scores, times), np.repeat(listed.mated, times)
        if labels.all():
            continue
        expected = verification.cllr(scores[labels], scores[~labels])
        assert costs[draw].mean() == pytest.approx(expected, abs=1e-9)


def test_d_sys_of_a_list(listed):
    found = read_scores(listed.scores, listed.key).comparisons
    figure = d_sys_figure(found, pooled_resamples(found, 10))
    assert figure.value == pytest.approx(d_sys(listed.mated, listed.others), abs=1e-12)


@pytest.mark.slow
def test_a_matrix_alone_is_resampled_as_ever(golden):
    matrix = golden.matrix("weak_eval")
    every = Comparisons.all_of(matrix)
    np.testing.assert_array_equal(pooled_resamples(every, 5, 3), resamples(matrix, 5, 3))
    assert every.usage.nontarget == 99_000
    one, other = (
        evaluate(each, settings=EvaluationSettings(replicates=5)).to_json()
        for each in (matrix, every)
    )
    assert one == other


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
    with pytest.raises(UsageError, match="there are no ranks"):
        _ = read.matrix
    seen: list[str] = []
    report = evaluate(
        read.comparisons, settings=EvaluationSettings(replicates=20), progress=seen.append
    )
    assert len(seen) == steps()
    families = {key.split(".")[0] for key in report.figures}
    assert families == {"zebra", "verification", "linkage", "membership"}
    assert report["verification.eer_rocch"].limits[0] is not None
    assert any("SRD, LID, pi_link, pi_sing and mean ranks are left out" in n for n in report.notes)
    json.dumps(report.to_json(), allow_nan=False)
    assert report.warnings == ()
    assert read.comparisons.rest is not None
    negated = replace(read.comparisons.rest, scores=-read.comparisons.rest.scores)
    turned = evaluate(
        replace(read.comparisons, rest=negated), settings=EvaluationSettings(replicates=0)
    )
    assert "looks like distances" in turned.warnings[0]
    assert "Misses against false alarms" in render_html(Evaluation([report]).page())


def test_a_trial_that_misses_a_pair_is_left_out_of_ranks_only(listed, tmp_path):
    keep = np.ones(15270, bool)
    keep[[3, 40]] = False  # of the first and the third trial
    (tmp_path / "s").write_text(chosen_lines(listed.scores, keep))
    (tmp_path / "k").write_text(chosen_lines(listed.key, keep))
    read = read_scores(tmp_path / "s", tmp_path / "k")
    assert read.matrix.trials == 702
    assert read.comparisons.usage.nontarget == 14564
    assert any("2 of 1,018 trials were not compared with every speaker" in n for n in read.notes)


def test_only_pairs_of_the_trial_list_count(listed, tmp_path):
    keep = np.random.default_rng(0).random(15270) < 0.5
    (tmp_path / "k").write_text(chosen_lines(listed.key, keep))
    (tmp_path / "s").write_text(chosen_lines(listed.scores, keep))
    half = read_scores(listed.scores, tmp_path / "k")
    same = read_scores(tmp_path / "s", tmp_path / "k")
    assert half.comparisons.usage == same.comparisons.usage
    assert sorted(half.comparisons.mated) == sorted(same.comparisons.mated)
    assert any("of 15270 scored pairs are not in k: left out" in note for note in half.notes)


ENROLMENTS = {"ann-1": "ann", "ann-2": "ann", "bob-1": "bob", "cid-1": "cid"}
HEARD = {"u1": "ann", "u2": "bob", "u3": "cid"}
RAW = np.array([[0.9, 0.5, 0.1, 0.2], [0.3, 0.7, 0.6, 0.0], [0.2, 0.0, 0.4, 0.8]])
MERGED = {
    "average": [[0.7, 0.1, 0.2], [0.5, 0.6, 0.0], [0.1, 0.4, 0.8]],
    "max": [[0.9, 0.1, 0.2], [0.7, 0.6, 0.0], [0.2, 0.4, 0.8]],
}


@pytest.mark.parametrize("scoring", ["average", "max"])
@pytest.mark.parametrize("form", ["list", "table", "array"])
@pytest.mark.parametrize("said", ["apart", "utt2spk", "key"])
def test_several_enrolments_of_a_speaker(tmp_path, scoring, form, said):
    path = tmp_path / "s.csv"
    if form == "array":
        path = tmp_path / "s.npy"
        np.save(path, RAW)
    else:
        rows = [[trial, *map(str, row)] for trial, row in zip(HEARD, RAW.tolist(), strict=True)]
        if form == "table":
            path.write_text("\n".join(",".join(row) for row in [["trial", *ENROLMENTS], *rows]))
        else:
            pairs = [
                (m, row[0], x) for row in rows for m, x in zip(ENROLMENTS, row[1:], strict=True)
            ]
            path = tmp_path / "s"
            path.write_text("".join(f"{m} {t} {x}\n" for m, t, x in pairs))
    utt2spk = "".join(f"{a} {b}\n" for a, b in HEARD.items())
    models = "".join(f"{a} {b}\n" for a, b in ENROLMENTS.items())
    given = {}
    if form == "array":
        (tmp_path / "l").write_text("ann\nbob\ncid\n")
        (tmp_path / "m").write_text("ann\nann\nbob\ncid\n")
        given["enrolment_labels"] = tmp_path / "m"
    elif said == "utt2spk":
        (tmp_path / "l").write_text(utt2spk + models)
    else:
        (tmp_path / "l").write_text(utt2spk)
        (tmp_path / "m").write_text(models)
        given["enrolment_labels"] = tmp_path / "m"
        if said == "key":
            (tmp_path / "l").write_text("speaker trial target\n" + "".join(
                f"{m} {t} {'target' if ENROLMENTS[m] == HEARD[t] else 'nontarget'}\n"
                for t in HEARD for m in ENROLMENTS
            ))  # fmt: skip
    read = read_scores(path, tmp_path / "l", scoring=scoring, **given)
    assert read.matrix.speakers == ("ann", "bob", "cid")
    np.testing.assert_allclose(read.matrix.scores, MERGED[scoring])
    assert any("4 enrolments of 3 speakers" in note for note in read.notes)


def test_enrolments_that_nobody_explains(tmp_path):
    """Each counts by itself, as in lists of pairs of recordings."""
    lines = [(m, t) for t in HEARD for m in ENROLMENTS]
    (tmp_path / "s").write_text("model trial score\n" + "".join(
        f"{m} {t} {RAW[i // 4, i % 4]}\n" for i, (m, t) in enumerate(lines)
    ))  # fmt: skip
    (tmp_path / "k").write_text("model trial target\n" + "".join(
        f"{m} {t} {'target' if ENROLMENTS[m] == HEARD[t] else 'nontarget'}\n" for m, t in lines
    ))  # fmt: skip
    read = read_scores(tmp_path / "s", tmp_path / "k")
    assert sorted(read.comparisons.mated) == [0.5, 0.6, 0.8, 0.9]
    assert read.matrix.trials == 2
    assert any("1 trial with several targets (first: u1)" in note for note in read.notes)
    (tmp_path / "m").write_text("ann-1 ann\n")
    with pytest.raises(UsageError, match="does not say whose 3 of 4 enrolments are"):
        read_scores(tmp_path / "s", tmp_path / "k", enrolment_labels=tmp_path / "m")
    (tmp_path / "m").write_text("ann-1 ann\nann-2 bob\nbob-1 bob\ncid-1 cid\n")
    with pytest.raises(UsageError, match="trial u1 is a target of one enrolment of speaker bob"):
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


def test_trials_keep_their_names(listed):
    matrix = read_scores(listed.scores, listed.key).matrix
    assert matrix.trial_names[:2] == ("1000-0000", "1001-0001")
    assert len(matrix.trial_names) == 704


def test_a_list_of_one_kind_says_so():
    only = ScoreList(
        np.zeros(1), np.ones(1, bool), np.zeros(1, int), np.zeros(1, int), np.zeros(1, int),
        ("a",), ("a",),
    )  # fmt: skip
    with pytest.raises(UsageError, match="no comparison is of two speakers"):
        Comparisons.of(only)
    with pytest.raises(UsageError, match="not finite"):
        replace(only, scores=np.array([np.nan]))
    with pytest.raises(UsageError, match="give a score, a trial"):
        replace(only, scores=np.zeros(2))
