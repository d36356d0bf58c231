"""What `evaluate` takes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from monitor import evaluate
from monitor.errors import UsageError
from monitor.lab.evaluation import EvaluationSettings


def test_a_data_frame_says_who_spoke_by_its_index_or_by_labels():
    pandas = pytest.importorskip("pandas")
    names, few = [f"s{i}" for i in range(10)], EvaluationSettings(replicates=0)
    spoken = np.arange(30) % 10
    scores = np.random.default_rng(0).normal(size=(30, 10)) + 3 * np.eye(10)[spoken]
    known = pandas.DataFrame(scores, [names[i] for i in spoken], names)
    expected = evaluate(scores, labels=spoken, settings=few)["srd.mean_bits"]
    assert evaluate(known, settings=few)["srd.mean_bits"] == expected
    bare = pandas.DataFrame(scores, columns=names)
    assert evaluate(bare, labels=spoken, settings=few)["srd.mean_bits"] == expected
    with pytest.raises(UsageError, match="give labels="):
        evaluate(bare, settings=few)


def test_figures_are_attributes_too_and_are_listed_for_completion():
    spoken = np.arange(30) % 10
    scores = np.random.default_rng(0).normal(size=(30, 10)) + 3 * np.eye(10)[spoken]
    report = evaluate(scores, labels=spoken, settings=EvaluationSettings(replicates=0))
    assert report.srd.mean_bits is report["srd.mean_bits"]
    assert {"srd", "zebra", "figures"} <= {*dir(report)}
    assert "mean_bits" in dir(report.srd)
    assert copy.copy(report).srd == pickle.loads(pickle.dumps(report)).srd == report.srd
    with pytest.raises(AttributeError, match="no 'sdr'"):
        _ = report.sdr
