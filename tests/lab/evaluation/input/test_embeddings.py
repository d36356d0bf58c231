"""Embeddings are scored by cosine, average or max."""

from __future__ import annotations

import json
import os
import tempfile

import numpy as np
import pytest

from monitor.errors import MonitorError
from monitor.lab.evaluation.input import files as room
from monitor.lab.evaluation.input.embeddings import read_embeddings

GENERATOR = np.random.default_rng(3)
ENROLMENT = GENERATOR.standard_normal((7, 5))
OWNERS = ["bob", "ann", "bob", "cid", "ann", "bob", "bob"]
TRIALS = GENERATOR.standard_normal((4, 5))
SPOKEN = ["ann", "bob", "cid", "ann"]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def expected(scoring):
    rows = []
    for trial in unit(TRIALS):
        row = []
        for speaker in ("ann", "bob", "cid"):
            own = unit(ENROLMENT[[owner == speaker for owner in OWNERS]])
            each = own @ trial
            row.append(each.max() if scoring == "max" else unit(own.mean(axis=0)) @ trial)
        rows.append(row)
    return np.array(rows)


def as_npz(path, vectors, speakers, sessions=None):
    more = {} if sessions is None else {"sessions": sessions}
    np.savez(path, embeddings=vectors, speakers=speakers, **more)


def as_json(path, vectors, speakers, sessions=None):
    sessions = sessions or [""] * len(speakers)
    lines = [
        json.dumps({"speaker": who, "session": when, "embedding": vector.tolist()})
        for who, when, vector in zip(speakers, sessions, vectors, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


def as_table(path, vectors, speakers, sessions=None):
    sessions = sessions or [""] * len(speakers)
    lines = ["speaker,session," + ",".join(f"e{i}" for i in range(vectors.shape[1]))]
    for who, when, vector in zip(speakers, sessions, vectors, strict=True):
        lines.append(f"{who},{when}," + ",".join(map(repr, vector.tolist())))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(params=[as_npz, as_json, as_table])
def files(tmp_path, request):
    suffix = {as_npz: ".npz", as_json: ".jsonl", as_table: ".csv"}[request.param]

    def write(sessions=(None, None)):
        trials, enrolment = tmp_path / f"t{suffix}", tmp_path / f"e{suffix}"
        request.param(trials, TRIALS, SPOKEN, sessions[0])
        request.param(enrolment, ENROLMENT, OWNERS, sessions[1])
        return trials, enrolment

    return write


@pytest.mark.parametrize("scoring", ["average", "max"])
def test_scores_are_cosines(files, scoring):
    trials, enrolment = files()
    read = read_embeddings(trials, enrolment, scoring)
    assert read.matrix.speakers == ("ann", "bob", "cid")
    assert read.matrix.target.tolist() == [0, 1, 2, 0]
    assert read.matrix.scores.dtype == np.float32
    assert read.matrix.name == "t"
    np.testing.assert_allclose(read.matrix.scores, expected(scoring), atol=1e-7)
    assert read.notes == ()


@pytest.mark.parametrize("scoring", ["average", "max"])
def test_length_and_order_do_not_matter(tmp_path, scoring):
    as_npz(tmp_path / "t.npz", TRIALS * 7, SPOKEN)
    order = [6, 2, 0, 1, 3, 5, 4]
    scale = np.array([1, 2, 3, 4, 5, 6, 7.0])[:, None]
    as_npz(tmp_path / "e.npz", (ENROLMENT * scale)[order], [OWNERS[i] for i in order])
    read = read_embeddings(tmp_path / "t.npz", tmp_path / "e.npz", scoring)
    np.testing.assert_allclose(read.matrix.scores, expected(scoring), atol=1e-7)


def test_what_both_files_share_is_said(files, tmp_path):
    sessions = ["1", "1", "1", "2"], ["1", "9", "8", "7", "2", "8", "8"]
    read = read_embeddings(*files(sessions))
    assert read.notes == (
        "2 of 4 trials share a session with the enrolment of their speaker (first: trial 2): that "
        "favours the attacker",
    )
    as_npz(tmp_path / "all.npz", ENROLMENT, OWNERS)
    read = read_embeddings(tmp_path / "all.npz", tmp_path / "all.npz", "max")
    assert read.notes[0].startswith("7 of 7 trials are enrolled themselves (first: trial 1)")


def test_a_large_matrix_lies_in_a_private_file_without_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "_MOST", 8)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    as_npz(tmp_path / "t.npz", TRIALS, SPOKEN)
    as_npz(tmp_path / "e.npz", ENROLMENT, OWNERS)
    seen, steps = [], []
    made = tempfile.TemporaryFile

    def watched():
        file = made()
        seen.append(os.fstat(file.fileno()).st_mode & 0o777)
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", watched)
    read = read_embeddings(
        tmp_path / "t.npz", tmp_path / "e.npz", progress=lambda *step: steps.append(step)
    )
    assert isinstance(read.matrix.scores, np.memmap)
    assert seen == [0o600]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.npz", "t.npz"]
    assert steps[-1] == (4, 4)
    np.testing.assert_allclose(read.matrix.scores, expected("average"), atol=1e-7)


def test_no_room_is_said(monkeypatch):
    monkeypatch.setattr(room, "_MOST", 8)
    with pytest.raises(MonitorError, match="no room for 8000000000"):
        room.scratch((10**9, 10**9))


def zero(vectors, row):
    vectors = vectors.copy()
    vectors[row] = 0
    return vectors


def test_a_silent_trial_is_noted(tmp_path):
    as_npz(tmp_path / "t.npz", zero(TRIALS, 1), SPOKEN)
    as_npz(tmp_path / "e.npz", ENROLMENT, OWNERS)
    read = read_embeddings(tmp_path / "t.npz", tmp_path / "e.npz")
    assert "1 of 4 trials scores the same with every speaker (trial 2)" in read.notes[0]


def nan(vectors):
    vectors = vectors.copy()
    vectors[2, 3] = np.nan
    return vectors


BAD = {
    "dimensions": ((TRIALS[:, :4], SPOKEN), None, "t.npz has 4 dimensions and e.npz 5"),
    "nan": ((nan(TRIALS), SPOKEN), None, "t.npz: embedding 3 (speaker cid) is not finite"),
    "zero": (None, (zero(ENROLMENT, 3), OWNERS), "e.npz: embedding 4 (speaker cid) is all zero"),
    "one": (None, (ENROLMENT[:1], ["ann"]), "e.npz has one speaker; a comparison needs at least"),
    "impostors": (
        (TRIALS, ["eve", "dot", "fay", "eve"]),
        None,
        "4 of 4 trials have no mated score",
    ),
    "nobody": ((TRIALS, ["", "bob", "cid", "ann"]), None, "t.npz: embedding 1 has no speaker"),
    "count": ((TRIALS, SPOKEN[:3]), None, "t.npz: 4 embeddings, 3 speakers and 0 sessions"),
    "flat": ((TRIALS[0], SPOKEN), None, "not float64 of shape (5,)"),
    "none": ((TRIALS[:0], np.array([], "U1")), None, "t.npz has no embedding in it"),
    "objects": ((TRIALS, np.array(SPOKEN, object)), None, "holds Python objects"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_scored(tmp_path, case):
    trials, enrolment, message = BAD[case]
    as_npz(tmp_path / "t.npz", *(trials or (TRIALS, SPOKEN)))
    as_npz(tmp_path / "e.npz", *(enrolment or (ENROLMENT, OWNERS)))
    refused(message, tmp_path / "t.npz", tmp_path / "e.npz")


TEXTS = {
    "empty": ("", "is empty"),
    "header only": ("speaker,e0\n", "is empty"),
    "no speaker": ("a,b\n1,2\n", "line 1: name the columns: speaker"),
    "short": ("speaker,a,b\nann,1\n", "line 2: has 2 columns and not 3"),
    "word": ("speaker,a,b\nann,1,x\n", "line 2: could not convert string to float"),
    "no object": ('{"speaker": "a", "embedding": [1]}\n[1]\n', "line 2: is no JSON object"),
    "no name": ('{"embedding": [1]}\n', 'line 1: needs "speaker"'),
    "no list": ('{"speaker": "a", "embedding": "1"}\n', 'line 1: needs "embedding"'),
    "sizes": (
        '{"speaker": "a", "embedding": [1]}\n{"speaker": "b", "embedding": [1, 2]}\n',
        "embeddings of 1 to 2 dimensions",
    ),
    "npy": (None, "does not say whose embeddings they are"),
    "npz": (False, "needs embeddings (n, d) and speakers (n,), not x"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_texts_that_cannot_be_read(tmp_path, case):
    text, message = TEXTS[case]
    path = tmp_path / "t"
    with path.open("wb") as file:
        if text is None:
            np.save(file, TRIALS)
        elif text is False:
            np.savez(file, x=TRIALS)
        else:
            file.write(str(text).encode())
    as_npz(tmp_path / "e.npz", ENROLMENT, OWNERS)
    refused(message, path, tmp_path / "e.npz")


def refused(message, *arguments):
    with pytest.raises(MonitorError) as caught:
        read_embeddings(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_scoring_is_checked(tmp_path):
    with pytest.raises(MonitorError, match="scoring='plda' is not one of average, max"):
        read_embeddings(tmp_path, tmp_path, "plda")
