"""What separates columns is stated: a tab, else a comma, else blanks; all else is refused."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.errors import UsageError
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


def test_a_tab_keeps_names_with_blanks_together(tmp_path):
    head = "\tann 1\tbob 0.5\ttarget\n"
    (tmp_path / "s.tsv").write_text(head + "u1\t0.9\t0.1\tann 1\nu2\t0.2\t0.7\tbob 0.5\n")
    assert read_scores(tmp_path / "s.tsv").matrix.speakers == ("ann 1", "bob 0.5")


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\v"])
def test_blanks_around_names_are_no_part_of_them(tmp_path, labels, blank):
    path = tmp_path / "scores.csv"
    path.write_text(_list(",", ".").replace("bob", f"{blank}bob{blank}"))
    assert read_scores(path, labels).matrix.speakers == NAMES


@pytest.mark.parametrize("separator", [",", "\t"])
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


def test_several_enrolments_of_a_speaker_that_nobody_names(tmp_path):
    (tmp_path / "scores").write_text("e1 u1 0.9\ne2 u1 0.8\ne1 u2 0.1\ne2 u2 0.2\n")
    (tmp_path / "utt2spk").write_text("u1 ann\nu2 bob\n")
    with pytest.raises(UsageError, match="say whose the enrolments are \\(--enrolment-labels\\)"):
        read_scores(tmp_path / "scores", tmp_path / "utt2spk")


@pytest.mark.parametrize("separator", ["\t", ",", " "])
@pytest.mark.parametrize("made", [_table, _list])
def test_every_separator(tmp_path, labels, made, separator):
    path = tmp_path / "scores"
    path.write_text(made(separator, "."))
    assert np.array_equal(read_scores(path, labels).matrix.scores, SCORES)


WHICH = "write a header above it, 'trial speaker score' \\(or target\\) for a list, 'trial' and"
POINT = "a score is no number .*: decimals follow a point, and without a header columns are speaker"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_table(";", "."), WHICH),
        (_table("\t", ","), "decimals follow a point, and a table has one row a trial"),
        (_list(" ", ","), POINT),
        (_list(";", ","), WHICH),
        (_list(",", ".", header=False), WHICH),
        ("0,5 0,7 0,3\n0,1 0,2 0,3\n", WHICH),
        ('ann "u 1" 0.5\n', POINT),
        ("ann bob cid\n0.1 0.2 0.3\n", POINT),
        ("ann,bob,cid\n0.1,0.2,0.3\n", WHICH),
        ("ann\tu1  0.5\n", WHICH),
        ("recording,who,value\nu1,ann,0.9\n", WHICH),
        ("file,speaker,score\nu1,ann,0.9\n", WHICH),
        ("trial,who,score\nu1,7,0.9\nu1,8,0.2\n", WHICH),
        (",trial,ann,bob\n0,u1,0.9,0.1\n", WHICH),
        ("84 17 0.5\n", WHICH),
    ],
)
def test_what_is_not_stated_is_refused(tmp_path, labels, text, message):
    (tmp_path / "scores").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_scores(tmp_path / "scores", labels)


SPOKEN = {"a1": "ann", "a2": "ann", "b1": "bob", "c1": "cid"}
CELLS = [(t, s, i + 0.5 * j) for i, t in enumerate(SPOKEN) for j, s in enumerate(NAMES)]


def _lines(form):
    words = [("nontarget", "target")[SPOKEN[t] == s] for t, s, _ in CELLS]
    return "".join(form.format(*cell, word) + "\n" for cell, word in zip(CELLS, words, strict=True))


@pytest.mark.parametrize("stated", [True, False])
def test_trials_first_with_targets(tmp_path, stated):
    """Without its header it would be read, with wrong figures."""
    path = tmp_path / "scores"
    path.write_text("trial speaker score target\n" * stated + _lines("{0} {1} {2} {3}"))
    if stated:
        assert read_scores(path).matrix.speakers == NAMES
        return
    with pytest.raises(UsageError, match="write the header 'trial speaker score target' above it"):
        read_scores(path)


@pytest.mark.parametrize(
    ("form", "labels", "message"),
    [
        ("{0} {1} {2}", "{0} {1} {3}", "l: no name .* write the header 'trial speaker target'"),
        ("{1} {0} {2}", "{0} {1} {3}", "l: no name .* write the header 'trial speaker target'"),
        ("{0} {1} {2}", "{1} {0} {3}", "l has none of the pairs of s"),
    ],
)
def test_a_turned_list_beside_a_key(tmp_path, form, labels, message):
    (tmp_path / "s").write_text(_lines(form))
    (tmp_path / "l").write_text(_lines(labels))
    with pytest.raises(UsageError, match=message):
        read_scores(tmp_path / "s", tmp_path / "l")


def test_a_turned_list_beside_labels(tmp_path):
    (tmp_path / "s").write_text(_lines("{0} {1} {2}"))
    (tmp_path / "l").write_text("".join(f"{t} {s}\n" for t, s in SPOKEN.items()))
    with pytest.raises(UsageError, match="l does not say who spoke in 3 of 3 trials"):
        read_scores(tmp_path / "s", tmp_path / "l")


@pytest.mark.parametrize("header", ["", "speaker trial\n"])
def test_turned_labels(tmp_path, header):
    (tmp_path / "s").write_text(_lines("{1} {0} {2}"))
    (tmp_path / "l").write_text(header + "".join(f"{s} {t}\n" for t, s in SPOKEN.items()))
    if header:
        assert read_scores(tmp_path / "s", tmp_path / "l").matrix.speakers == NAMES
        return
    with pytest.raises(UsageError, match="write the header 'speaker trial' above it"):
        read_scores(tmp_path / "s", tmp_path / "l")
