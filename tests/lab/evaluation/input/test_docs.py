"""The samples of docs/evaluate-input.md are what is read."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas
import pytest

from monitor.lab.evaluation.input.embeddings import read_vectors
from monitor.lab.evaluation.input.files import layout_of
from monitor.lab.evaluation.input.labels import read_labels
from monitor.lab.evaluation.input.scores import read_scores

PAGE = Path(__file__).resolve().parents[4] / "docs" / "evaluate-input.md"
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S))


def samples(section):
    return re.findall(r"```text\n(.*?)```", SECTIONS[section], re.S)


def test_scores():
    table, headed, kaldi = (layout_of("s", text.splitlines()[0]) for text in samples("Scores"))
    assert not table.list
    assert table.speakers == ("ann", "bob", "cid")
    assert headed.list
    assert (headed.trial, headed.speaker, headed.score) == (0, 1, 2)
    assert kaldi.list
    assert (kaldi.trial, kaldi.speaker, kaldi.score) == (1, 0, 2)


def test_a_list_from_a_data_frame(tmp_path, monkeypatch):
    frame = pandas.DataFrame(
        [("u1", "bob", 0.9), ("u1", "ann", 0.2), ("u2", "ann", 0.4), ("u2", "bob", 0.5),
         ("u3", "bob", 0.1)], columns=["trial", "speaker", "score"],
    )  # fmt: skip
    [code] = re.findall(r"```python\n(.*?)```", SECTIONS["Scores"], re.S)
    monkeypatch.chdir(tmp_path)
    exec(code, {"pandas": pandas, "np": np, "frame": frame,
                "spoken": {"u1": "bob", "u2": "ann", "u3": "eve"}})  # fmt: skip
    every = read_scores("list.npy", "labels.npy").comparisons
    assert every.matrix is not None
    assert every.matrix.scores.tolist() == [[np.float32(0.9), np.float32(0.2)],
                                            [np.float32(0.5), np.float32(0.4)]]  # fmt: skip
    assert every.matrix.target.tolist() == [0, 1]
    assert every.rest is not None
    assert every.rest.people == ("2",), "an impostor whom nobody names is his own trial"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_labels(tmp_path, number):
    (tmp_path / "l").write_text(samples("Labels")[number])
    labels = read_labels(tmp_path / "l")
    assert labels.trials == [(), ("a-1", "a-2", "b-1"), ("a-1", "b-1")][number]
    assert labels.names == [("ann", "ann", "bob"), ("ann", "ann", "bob"), ("ann", "bob")][number]


@pytest.mark.parametrize("number", [0, 1])
def test_embeddings(tmp_path, number):
    (tmp_path / "e").write_text(samples("Embeddings")[number])
    vectors = read_vectors(tmp_path / "e")
    assert vectors.values.shape == ((3, 3), (2, 3))[number]
    assert vectors.speakers == (("ann", "ann", "bob"), ("ann", "bob"))[number]
    assert vectors.sessions == (("1", "2", "1"), ("1", "1"))[number]
