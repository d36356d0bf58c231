"""Semicolons, decimal commas, names with commas, and headers that nobody knows."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.lab.evaluation.input.embeddings import read_embeddings
from monitor.lab.evaluation.input.files import fields, separator_of
from monitor.lab.evaluation.input.scores import read_scores

SCORES = np.array([[0.91, 0.12, -0.25], [0.5, 0.75, 0.0], [0.1, 0.2, 0.9]])
NAMES = ("ann", "bob", "cid")
TRIALS = ("u1", "u2", "u3")


def _cell(value, decimal):
    return f"{value:.2f}".replace(".", decimal)


def _table(separator, decimal, quote=""):
    lines = [separator.join(("trial", *NAMES))]
    for trial, row in zip(TRIALS, SCORES, strict=True):
        cells = [quote + _cell(value, decimal) + quote for value in row]
        lines.append(separator.join((trial, *cells)))
    return "\n".join(lines) + "\n"


def _list(separator, decimal, header=True):
    lines = [separator.join(("trial", "speaker", "score"))] if header else []
    lines += [
        separator.join((trial, name, _cell(value, decimal)))
        for trial, row in zip(TRIALS, SCORES, strict=True)
        for name, value in zip(NAMES, row, strict=True)
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "labels"
    path.write_text("".join(f"{t} {n}\n" for t, n in zip(TRIALS, NAMES, strict=True)))
    return path


@pytest.mark.parametrize("decimal", [",", "."])
@pytest.mark.parametrize("separator", [";", "\t", " ", " ; "])
@pytest.mark.parametrize("made", [_table, _list])
def test_semicolons_and_decimal_commas(tmp_path, labels, made, separator, decimal):
    path = tmp_path / "scores.csv"
    path.write_text(made(separator, decimal))
    found = read_scores(path, labels).matrix
    assert found.speakers == NAMES
    assert found.trial_names == TRIALS
    assert np.array_equal(found.scores, SCORES)


def test_a_list_without_a_header_and_quoted_decimal_commas(tmp_path, labels):
    bare, quoted = tmp_path / "bare.csv", tmp_path / "quoted.csv"
    bare.write_text(_list(";", ",", header=False))
    quoted.write_text(_table(",", ",", quote='"'))
    for path in (bare, quoted):
        assert np.array_equal(read_scores(path, labels).matrix.scores, SCORES)


@pytest.mark.parametrize(
    "line", ["  {0}   {1}\t{2}  ", "{0}\t\t{1}\t{2}", "{0}\t{1} {2}", "{0}\t{1}\t{2}\t"]
)
def test_tabs_among_other_blanks(tmp_path, line):
    pairs = [(s, t, i == j) for i, t in enumerate(TRIALS) for j, s in enumerate(NAMES)]
    scored = [(*pair[:2], score) for pair, score in zip(pairs, SCORES.ravel(), strict=True)]
    said = [(s, t, "target" if own else "nontarget") for s, t, own in pairs]
    for name, rows in (("scores", scored), ("trials", said)):
        (tmp_path / name).write_text("".join(line.format(*row) + "\n" for row in rows))
    found = read_scores(tmp_path / "scores", tmp_path / "trials").matrix
    assert np.array_equal(found.scores, SCORES)
    assert [found.speakers[i] for i in found.target] == list(NAMES)


def test_a_tab_keeps_names_with_blanks_together(tmp_path):
    head = "\tann 1\tbob 0.5\ttarget\n"
    (tmp_path / "s.tsv").write_text(head + "u1\t0.9\t0.1\tann 1\nu2\t0.2\t0.7\tbob 0.5\n")
    assert read_scores(tmp_path / "s.tsv").matrix.speakers == ("ann 1", "bob 0.5")


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\v"])
def test_blanks_around_names_are_no_part_of_them(tmp_path, labels, blank):
    path = tmp_path / "scores.csv"
    path.write_text(_list(",", ".").replace("bob", f"{blank}bob{blank}"))
    assert read_scores(path, labels).matrix.speakers == NAMES


def test_labels_by_semicolon(tmp_path):
    (tmp_path / "s.csv").write_text(_table(";", ","))
    (tmp_path / "l.csv").write_text("trial;speaker\nu3;cid\nu2;bob\nu1;ann\n")
    assert read_scores(tmp_path / "s.csv", tmp_path / "l.csv").matrix.target.tolist() == [0, 1, 2]


def test_embeddings_by_semicolon(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("speaker;x;y\nann;0,5;1\nbob;-1;0,25\n")
    found = read_embeddings(path, path).matrix
    assert found.mated == pytest.approx([1, 1])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_names_with_commas(tmp_path, separator):
    scores, labels = tmp_path / "s", tmp_path / "l"
    rows = [
        ("trial", '"Lee, Ann"', '"O""Hara; Bob"'),
        ('"u,1"', "0.9", "0.1"),
        ("u2", "0.2", "0.5"),
    ]
    scores.write_text("".join(separator.join(row) + "\n" for row in rows))
    pairs = [('"u,1"', '"Lee, Ann"'), ("u2", '"O""Hara; Bob"')]
    labels.write_text("".join(separator.join(pair) + "\n" for pair in pairs))
    found = read_scores(scores, labels).matrix
    assert found.speakers == ("Lee, Ann", 'O"Hara; Bob')
    assert found.mated.tolist() == [0.9, 0.5]


def test_names_with_commas_need_no_quotes_between_tabs(tmp_path):
    (tmp_path / "s.tsv").write_text("trial\tLee, Ann\tBob\nu1\t0.9\t0.1\nu2\t0.3\t0.4\n")
    (tmp_path / "l.txt").write_text('u1 "Lee, Ann"\nu2 Bob\n')
    found = read_scores(tmp_path / "s.tsv", tmp_path / "l.txt").matrix
    assert (found.speakers, found.target.tolist()) == (("Lee, Ann", "Bob"), [0, 1])


@pytest.mark.parametrize(
    ("line", "separator"),
    [
        ("1272,1272-0001,0.71", ","),
        ("1,0,1,0", ","),
        ("trial, ann b, bob", ","),
        ("trial,\tann,\tbob", ","),
        ("trial,Lee; Ann,bob", ","),
        ("spk;1 utt 0.5", None),
        ("u1 ann 0,5", None),
        ("0,5 0,25 -1,5e-3", None),
        ("Lee Ann;bob", ";"),
        ("u1;ann;0,5", ";"),
        ('"a;b","c;d"', ","),
        ("u1\t0,5\t0,25", "\t"),
    ],
)
def test_what_separates_the_columns(line, separator):
    assert separator_of(line) == separator


def test_quotes_between_blanks():
    assert fields('u1  "Lee, Ann" 0.5', None) == ["u1", "Lee, Ann", "0.5"]


@pytest.mark.parametrize(
    "header",
    ["recording,who,value", "recording,speaker,score", "file,who,cosine", "trial,who,value"],
)
def test_an_unknown_header_names_those_that_are_understood(tmp_path, header):
    path = tmp_path / "scores.csv"
    path.write_text(f"{header}\nu1,ann,0.9\nu1,bob,0.2\nu2,ann,0.3\nu2,bob,0.4\n")
    with pytest.raises(UsageError) as caught:
        read_scores(path)
    said = str(caught.value)
    assert f"its header {header.replace(',', ', ')} does not say which column is which" in said
    for name in ("utterance", "segment", "model", "enrol_id", "similarity", "llr", "target"):
        assert name in said
    assert "\n" not in said


def test_several_enrolments_of_a_speaker_that_nobody_names(tmp_path):
    (tmp_path / "scores").write_text("e1 u1 0.9\ne2 u1 0.8\ne1 u2 0.1\ne2 u2 0.2\n")
    (tmp_path / "utt2spk").write_text("u1 ann\nu2 bob\n")
    with pytest.raises(UsageError, match="say whose the enrolments are \\(--enrolment-labels\\)"):
        read_scores(tmp_path / "scores", tmp_path / "utt2spk")
