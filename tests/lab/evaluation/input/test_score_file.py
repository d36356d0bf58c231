"""Score files hold matrices with all that is known, and say what is wrong with them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.input.labels import Attribute
from monitor.lab.evaluation.input.scores import ScoreCell, ScoreFile, read_scores, write_score_file
from monitor.phrases import STYLE_CAVEAT

SPEAKERS = ("ann", "bob", "cid")


def cell(session: str, seconds: float, systems=("f0", "voice")) -> ScoreCell:
    generator = np.random.default_rng(round(seconds))
    target, rows = np.array([0, 0, 1, 2]), ("ann 1", "ann 2", "bob 1", "cid 1")
    made = {n: ScoreMatrix(generator.normal(size=(4, 3)), target, SPEAKERS, n, rows)
            for n in systems}  # fmt: skip
    return ScoreCell(session, seconds, 30.0, made, ("1", "2", "1", "1"), np.arange(4.0))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "scores.npz"
    groups = Attribute("table", "gender", {"ann": "f", "bob": "m"})
    write_score_file(path, [cell("cross", 10.0), cell("same", 0.3)], groups)
    return path


def test_what_was_written_is_read(path):
    assert path.stat().st_mode & 0o777 == 0o600
    file = ScoreFile.at(path)
    assert file is not None
    assert [entry.words for entry in file.entries] == [
        ("f0", "cross", "T=10", "D=30"), ("voice", "cross", "T=10", "D=30"),
        ("f0", "same", "T=0.3", "D=30"), ("voice", "same", "T=0.3", "D=30"),
    ]  # fmt: skip
    assert file.groups is not None
    assert (file.groups.name, file.groups.of["bob"]) == ("gender", "m")
    read = read_scores(path, choose=["voice", "T=10.0"], name="mine")
    wanted = cell("cross", 10.0).matrices["voice"]
    assert np.array_equal(read.matrix.scores, wanted.scores)
    assert read.matrix.target.tolist() == wanted.target.tolist()
    assert (read.matrix.speakers, read.matrix.name) == (SPEAKERS, "mine")
    assert read.matrix.trial_names == wanted.trial_names
    assert read.notes == ()
    assert "parts of one session" in read_scores(path, choose=["voice", "same"]).notes[0]


@pytest.mark.parametrize(
    ("joint", "told"),
    [((), ["style"]), (("f0", "style"), ["style", "joint"]), (("f0",), ["style"])],
)
def test_whose_style_a_figure_shows_is_told(tmp_path, joint, told):
    path = tmp_path / "scores.npz"
    write_score_file(path, [replace(cell("cross", 10.0, ("f0", "style", "joint")), joint=joint)])
    with_it = [
        n for n in ("f0", "style", "joint") if STYLE_CAVEAT in read_scores(path, choose=[n]).notes
    ]
    assert with_it == told


@pytest.mark.parametrize(
    ("words", "count"),
    [((), 4), (("f0",), 2), (("f0", "voice", "T=10"), 2), (("same", "cross"), 4)],
)
def test_words_of_one_sort_are_alternatives(path, words, count):
    file = ScoreFile.at(path)
    assert file is not None
    assert len(file.choose(words)) == count


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("phones",), "has no scores of phones; it has f0 voice; cross same; T=10 T=0.3; D=30"),
        (("f0", "T=11"), "has no scores of f0 T=11"),
        (("X=3",), "has no scores of X=3"),
        (("T=ten",), "'T=ten': T and D are seconds, such as T=10"),
        (("f0",), "has 2 matrices: choose one of f0 voice; cross same"),
    ],
)
def test_a_choice_that_is_none_is_said(path, words, said):
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        read_scores(path, choose=words)


def test_labels_beside_it_are_refused(path):
    with pytest.raises(UsageError, match="says itself who spoke"):
        read_scores(path, path, choose=["f0", "same"])


def test_other_archives_are_none(tmp_path):
    for name, arrays in {"plain": {}, "odd": {"header": np.array("{")},
                         "other": {"header": np.array('{"kind": "frames"}')},
                         "long": {"header": np.arange(3)}}.items():  # fmt: skip
        path = tmp_path / f"{name}.npz"
        np.savez(path, scores=np.eye(2), target=np.arange(2), **arrays)  # type: ignore[arg-type]
        assert ScoreFile.at(path) is None
        assert read_scores(path).matrix.population == 2


@pytest.mark.parametrize(
    "header",
    [
        {"cells": 3},
        {"cells": [{"session": "night"}]},
        {
            "cells": [
                {"session": "same", "test_seconds": "x", "template_seconds": 1, "systems": [1]}
            ]
        },
        {
            "cells": [
                {
                    "session": "same",
                    "test_seconds": 1,
                    "template_seconds": 1,
                    "systems": ["f0\x1b[2J"],
                }
            ]
        },
        {"cells": [], "groups": {"name": "g", "of": [1]}},
        {"cells": [], "schema": 2},
    ],
)
def test_a_header_that_promises_nonsense_is_refused(tmp_path, header):
    path = tmp_path / "scores.npz"
    np.savez(path, header=np.array(json.dumps({"kind": "scores", "schema": 1} | header)))
    with pytest.raises(StoreError, match=r"scores\.npz .*make it again"):
        ScoreFile.at(path)


def test_missing_and_contradicting_arrays_are_refused(path):
    arrays = dict(np.load(path))
    for change in ({"0_scores_f0": None}, {"0_target": np.arange(3)}, {"0_speakers": np.eye(2)},
                   {"0_scores_f0": np.array("x")}):  # fmt: skip
        kept = {k: v for k, v in (arrays | change).items() if v is not None}
        np.savez(path, **kept)  # type: ignore[arg-type]
        with pytest.raises(StoreError, match="make it again"):
            read_scores(path, choose=["f0", "cross"])
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(StoreError, match="damaged or cut short"):
        read_scores(path, choose=["f0"])
