"""What is wrong with a file is said in one line."""

import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from monitor.errors import MonitorError, StoreError, UsageError
from monitor.lab.evaluation.input.scores import read_scores
from tests.lab.evaluation.input.test_scores import (
    FORMS,
    KEY,
    LABELS,
    SCORES,
    TARGET,
    UTT2SPK,
    pairs,
    table,
)


def saved(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def zipped(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def sheet(name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "trial")
    return file.getvalue()


NAN = SCORES.copy()
NAN[2, 1] = np.nan
LISTED, TURNED = FORMS["kaldi"], pairs("{t} {s} {x}")
NPY = saved(SCORES)
COLUMNS = saved(np.array(TARGET))

SIGNED = [("trial", int), ("speaker", int), ("score", float), ("target", int)]

STORES = {
    "missing": ("s.npy", None, "cannot open s.npy: no such file"),
    "text named npy": ("s.npy", table(), "s.npy contains no NumPy array"),
    "text named npz": ("s.npz", table(), "s.npz contains no NumPy array"),
    "pickle": ("s.npy", pickle.dumps(SCORES), "is a pickle, which is never loaded"),
    "pickled": ("s.npy", saved(SCORES.astype(object)), "contains Python objects"),
    "short npy": ("s.npy", NPY[:-8], "s.npy is damaged or cut short"),
    "wrong header": ("s.npy", NPY.replace(b"(4, 3)", b"(4, 3 "), "s.npy is damaged or cut short"),
    "short npz": ("s.npz", zipped(scores=SCORES)[:200], "s.npz is damaged or cut short"),
    "packed": ("s.gz", b"\x1f\x8b\x08\x00", "is compressed (gzip): unpack it"),
    "page": ("s.csv", b"<!doctype html><html>", "s.csv is a web page"),
    "pointer": ("s.npy", b"version https://git-lfs.github.com/spec/v1\n", "run git lfs pull"),
    "spreadsheet": ("s.csv", sheet("[Content_Types].xml"), "s.csv is a spreadsheet"),
    "archive": ("s.npz", sheet("scores.csv"), "s.npz is a ZIP archive: unpack it"),
    "utf-16": ("s.csv", table().encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
    "latin-1": ("s.csv", table().replace("ann", "änn").encode("latin-1"), "is not UTF-8 text"),
    "sound": ("s.wav", b"RIFF\0\0\0\0", "is neither text nor a NumPy file"),
}


@pytest.mark.parametrize("case", STORES)
def test_files_that_cannot_be_used(tmp_path, case):
    name, content, message = STORES[case]
    write(tmp_path / name, content)
    write(tmp_path / "l", UTT2SPK)
    refused(StoreError, message, tmp_path / name, tmp_path / "l")


def test_a_folder_and_a_pipe(tmp_path):
    refused(StoreError, "is a folder", tmp_path, None)
    os.mkfifo(tmp_path / "pipe")
    refused(StoreError, "pipe is a pipe or a device; save it to a file", tmp_path / "pipe", None)


def write(path, content):
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def refused(kind, message, *arguments):
    with pytest.raises(kind) as caught:
        read_scores(*arguments)
    text = str(caught.value)
    assert message in text
    assert "\n" not in text
    assert len(text) < 250
    assert isinstance(caught.value, MonitorError)


def without(text, *lines):
    return "".join(x for i, x in enumerate(text.splitlines(keepends=True)) if i not in lines)


CONTENT = {
    "empty": (b"", UTT2SPK, "s is empty"),
    "no labels": (NPY, None, "s has no speakers: give labels"),
    "vector": (saved(SCORES[0]), COLUMNS, "has float64 of shape (3,)"),
    "words": (saved(np.array([["a", "b"]])), COLUMNS, "has <U1 of shape (1, 2)"),
    "no trial": (saved(SCORES[:0]), saved(np.array([], int)), "has no trials"),
    "one speaker": (saved(SCORES[:, :1]), saved(np.zeros(4, int)), "1 speaker; a comparison"),
    "nan": (saved(NAN), COLUMNS, "the score of trial 3 with speaker 1 is not finite"),
    "nan in a table": (table().replace("0.8", "nan"), UTT2SPK, "trial 3 with speaker bob is not"),
    "nan in a list": (LISTED.replace("0.8", "nan"), KEY, "score of trial b-1 with speaker bob is"),
    "short row": (without(table(), 3) + "d-1,0.5,0.5\n", UTT2SPK, "line 5: has 3 columns"),
    "bad score": (table().replace("0.8", "x"), UTT2SPK, "s line 4: the score 'x' is not a number"),
    "comment": (f"# made by us\n{table()}", UTT2SPK, "s line 1: is a comment (#): remove it"),
    "commented header": (f"#trial speaker score\n{LISTED}", KEY, "s line 1: is a comment (#)"),
    "labels with a comment": (LISTED, f"# trial speaker\n{UTT2SPK}", "l line 1: is a comment"),
    "semicolons": (table(";"), UTT2SPK, "s line 1: has semicolons between columns"),
    "decimal commas": (table("\t").replace("0.8", "0,8"), UTT2SPK, "'0,8' is not a number: use a"),
    "decimal commas first": (
        LISTED.replace(".", ","),
        KEY,
        "the first line of s has decimal commas: use decimal points",
    ),
    "open header": (table().replace("\n", ",\n"), UTT2SPK, "lines of s end with a separator"),
    "open row": (table().replace("0.4\n", "0.4,\n"), UTT2SPK, "5 columns, not 4: remove the"),
    "empty cell": (LISTED.replace("bob", "nan"), KEY, "s has a speaker called 'nan'"),
    "empty cell in labels": (LISTED, UTT2SPK.replace("bob", "None"), "speaker called 'None'"),
    "empty column": (table().replace("bob", "null"), UTT2SPK, "s has a speaker called 'null'"),
    "empty trial": (LISTED.replace("b-1", "<NA>"), KEY, "s has a trial called '<NA>'"),
    "decimal labels": (
        table().replace("bob", "1272"),
        UTT2SPK.replace("bob", "1272.0"),
        "s and l: speaker 1272.0 is also written 1272",
    ),
    "decimal key": (
        LISTED.replace("bob", "1272"),
        KEY.replace("bob", "1272.0"),
        "s and l: speaker 1272.0 is also written 1272",
    ),
    "decimal list": (
        LISTED.replace("bob", "1272.0").replace("cid", "1272"),
        KEY,
        "s: speaker 1272.0 is also written 1272",
    ),
    "decimal trials": (
        table().replace("b-1", "7.0"),
        UTT2SPK.replace("b-1", "7"),
        "s and l: trial 7.0 is also written 7",
    ),
    "empty score below a header": (
        FORMS["list.csv"].replace("0.9", ""),
        None,
        "s line 2: the score '' is not a number; a list has one score per line",
    ),
    "column of seconds": (
        table().replace("\n", ",3.5\n").replace("3.5", "Seconds", 1),
        UTT2SPK,
        "s has a column Seconds, which is not a speaker: remove it",
    ),
    "case": (LISTED, UTT2SPK.replace("bob", "Bob"), "s and l: speaker bob is also written Bob"),
    "case of one label": (
        table(),
        UTT2SPK.replace("a-1 ann", "a-1 Ann"),
        "s and l: speaker ann is also written Ann",
    ),
    "zeros in front": (
        table().replace("bob", "0019"),
        UTT2SPK.replace("bob", "19"),
        "s and l: speaker 19 is also written 0019",
    ),
    "a space that does not break": (
        table().replace("bob", "bob lee"),
        UTT2SPK.replace(" ", "\t").replace("bob", "bob\N{NO-BREAK SPACE}lee"),
        r"s and l: speaker bob\xa0lee is also written bob lee",
    ),
    "a mark within": (
        "\ufeff".join((LISTED[: LISTED.index("ann a-2")], LISTED[LISTED.index("ann a-2") :])),
        KEY,
        r"s: speaker \ufeffann is also written ann",
    ),
    "case of a trial": (
        LISTED.replace("b-1", "B-1"),
        KEY,
        "s and l: trial b-1 is also written B-1",
    ),
    "endless field": ('"' + "x" * 200_000 + '",b\n', UTT2SPK, "is not a line of a table"),
    "short line": (LISTED + "ann d-1\n", KEY, "s line 13: has 2 columns"),
    "hardly a pair": (
        "".join(f"s{i} u{i} 0.5\n" for i in range(2000)),
        "".join(f"u{i} s{i}\n" for i in range(2000)),
        "s has no non-mated comparison",
    ),
    "repeated pair": (LISTED + LISTED[:40], KEY, "s lists trial a-1 with speaker ann twice"),
    "repeated column": (table().replace("bob", "ann"), UTT2SPK, "two columns of speaker ann"),
    "repeated row": (
        table().replace("a-2", "a-1"),
        without(UTT2SPK, 1),
        "trial a-1 has two rows of scores",
    ),
    "key first": (KEY, LISTED, "s is a trial list: give a file of scores"),
    "scores as labels": (LISTED, LISTED, "l line 1: '0.9' is neither target nor"),
    "a key of 1 and -1": (
        LISTED,
        KEY.replace("nontarget", "-1").replace("target", "1"),
        "l line 2: '-1' is neither target nor nontarget: write these words, or 1 and 0",
    ),
    "table as labels": (
        LISTED,
        table(),
        "l: use one speaker per line, a trial and its speaker, or",
    ),
    "key for rows without names": (
        NPY,
        KEY,
        "s does not name its trials, so l cannot be matched with its",
    ),
    "empty labels": (NPY, "", "l is empty"),
    "few labels": (NPY, saved(np.array([0, 1])), "l has 2 labels for the 4 trials of s"),
    "turned": (saved(SCORES.T.copy()), COLUMNS, "Is s transposed? Rows must be trials"),
    "label outside": (NPY, saved(np.array([0, 1, 2, 3])), "label 3 of trial 4 in l: use"),
    "label fraction": (NPY, saved(np.array([0.0, 0.5, 2, 1])), "number 2 is 0.5. Give a name or"),
    "too few names": (NPY, "ann\nann\nbob\nbob\n", "l has 2 speakers for its 3 columns"),
    "names in doubt": (NPY, "84\n174\n1272\n84\n", "ambiguous (numbers or words)"),
    "unknown trial": (LISTED, without(UTT2SPK, 1, 2), "2 of 4 trials (first: a-2)"),
    "no score of the key": (
        LISTED,
        KEY.replace("ann", "dot").replace("bob", "eve").replace("cid", "fay"),
        "l has none of the pairs of s; check the names",
    ),
    "nobody known": (
        LISTED,
        "".join(f"{t} x{t}\n" for t in ("a-1", "a-2", "b-1", "c-1")),
        "4 of 4 trials of s have no mated score",
    ),
    "trial twice": (LISTED, UTT2SPK + "a-1 bob\n", "l lists trial a-1 twice"),
    "two targets": (
        LISTED,
        KEY.replace("bob a-1 nontarget", "bob a-1 target").replace("c-1", "a-1"),
        "l: a pair is a target on one line and not on another",
    ),
    "no target": (LISTED, KEY.replace("nontarget", "target").replace("target", "imp"), "no target"),
    "ragged labels": (LISTED, "a-1 ann\na-2\n", "'a-2' is not two names"),
    "all numbers": (
        "12 7 0.5\n12 8 0.4\n",
        UTT2SPK,
        "Write a header: 'trial speaker score' (or target) for a list",
    ),
    "records of 1 and -1": (
        saved(np.array([(0, 0, 0.5, 1), (0, 1, 0.2, -1)], SIGNED)),
        None,
        "s has a target other than 1 and 0",
    ),
    "records that do not count": (
        saved(np.array([(0, -1, 0.5)], [("trial", int), ("speaker", int), ("score", float)])),
        COLUMNS,
        "s numbers trials or speakers from -1 to -1: number them from 0",
    ),
}


@pytest.mark.parametrize("case", CONTENT)
def test_content_that_makes_no_sense(tmp_path, case):
    scores, labels, message = CONTENT[case]
    write(tmp_path / "s", scores)
    write(tmp_path / "l", labels)
    refused(UsageError, message, tmp_path / "s", None if labels is None else tmp_path / "l")


WHICH = "Write a header: 'trial speaker score' (or target) for a list, or 'trial' and"
POINT = "without a header, columns are speaker, trial and score"
WIDE, LIST = table("\t"), FORMS["list.csv"]


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (WIDE.replace("\t", ";"), UTT2SPK, "has semicolons between columns"),
        (WIDE.replace(".", ","), UTT2SPK, "use a decimal point; a table has one row"),
        (LIST.replace(",", " ").replace(".", ","), UTT2SPK, "use a decimal point; a list has one"),
        (LIST.replace(".", "!").replace(",", ";").replace("!", ","), UTT2SPK, "has semicolons"),
        (without(LIST, 0), UTT2SPK, WHICH),
        ("ann bob cid\n0.1 0.2 0.3\n", UTT2SPK, POINT),
        ("file,speaker,score\nu1,ann,0.9\n", UTT2SPK, WHICH),
        (",trial,ann,bob\n0,u1,0.9,0.1\n", UTT2SPK, WHICH),
        ("84 17 0.5\n", UTT2SPK, WHICH),
        # turned: without its header it would be read, with wrong figures
        (pairs("{t} {s} {x} {w}"), None, "the header 'trial speaker score target' above it"),
        (TURNED, pairs("{t} {s} {w}"), "the header 'trial speaker target'"),
        (LISTED, pairs("{t} {s} {w}"), "the header 'trial speaker target'"),
        (TURNED, KEY, "l has none of the pairs of s"),
        (TURNED, UTT2SPK, "l lacks 3 of 3 trials"),
        (LISTED, without(LABELS["turned"], 0), "the header 'speaker trial' above it"),
        (
            "e1 u1 0.9\ne2 u1 0.8\ne1 u2 0.1\ne2 u2 0.2\n",
            "u1 ann\nu2 bob\n",
            "(--enrolment-labels)",
        ),
        (LISTED, LABELS["targets"] + "bob a-1 target\n", "trial a-1 is a target of ann and of bob"),
    ],
)
def test_what_is_not_stated_is_refused(tmp_path, scores, labels, message):
    """A tab separates columns, else a comma, else blanks; first comes the speaker."""
    write(tmp_path / "s", scores)
    write(tmp_path / "l", labels)
    with pytest.raises(UsageError) as caught:
        read_scores(tmp_path / "s", None if labels is None else tmp_path / "l")
    assert message in str(caught.value)


def test_enrolment_labels_need_more_than_targets(tmp_path):
    """They would merge an enrolment that a target has with one that the list does not mention."""
    write(tmp_path / "s", LISTED)
    write(tmp_path / "l", LABELS["targets"])
    write(tmp_path / "m", "ann ann\nbob ann\ncid cid\n")
    with pytest.raises(UsageError, match=r"l lists only targets, .* List the nontarget pairs too"):
        read_scores(tmp_path / "s", tmp_path / "l", enrolment_labels=tmp_path / "m")
