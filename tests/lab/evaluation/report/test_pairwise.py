from __future__ import annotations

import json

import numpy as np
import pytest

from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.report.comparing import (
    all_pairs,
    compute_difference,
    explain_pairs,
    p_value,
)

LEADS = {"strong": 3.0, "weak": 1.0, "alike": 1.0}
KEYS = ("srd.idr", "lid.alid_bits", "verification.eer_rocch", "zebra.tag")


@pytest.fixture(scope="module")
def reports():
    target = np.repeat(np.arange(30), 6)
    own = target[:, None] == np.arange(30)
    return [
        evaluate(
            ScoreMatrix(
                np.random.default_rng(seed).normal(size=own.shape) + lead * own, target, name=name
            ),
            settings=EvaluationSettings(replicates=100),
        )
        for seed, (name, lead) in enumerate(LEADS.items())
    ]


def test_every_pair_is_compared(reports):
    pairs = all_pairs(reports, KEYS)
    assert [(pair.first, pair.other) for pair in pairs] == [
        ("strong", "weak"), ("strong", "alike"), ("weak", "alike"),
    ]  # fmt: skip
    assert all(pair.paired for pair in pairs)
    for key in KEYS[:3]:
        assert [pair.differences[key].significant for pair in pairs] == [True, True, False], key
        p = [pair.p[key] for pair in pairs]
        assert p[0] is not None
        assert p[2] is not None
        assert p[0] <= 0.05 < p[2]
        gap = pairs[2].differences[key].value
        assert gap == pytest.approx(reports[2][key].value - reports[1][key].value)
    assert pairs[0].p["zebra.tag"] is None
    json.dumps([pair.to_json() for pair in pairs], allow_nan=False)


def test_limits_and_p_bear_the_number_of_pairs(reports):
    (alone,) = all_pairs(reports[1:], KEYS)
    among = all_pairs(reports, KEYS)[2]
    for key in KEYS[:3]:
        one, three = (pair.differences[key] for pair in (alone, among))
        assert one.low is not None
        assert one.high is not None
        assert three.low is not None
        assert three.high is not None
        assert three.low <= one.low < one.high <= three.high
        raw = p_value(reports[1], reports[2], key)
        assert raw is not None
        assert alone.p[key] == raw
        assert among.p[key] == min(1.0, 3 * raw)
    assert "p is that of one pair times 3 (Bonferroni)" in next(
        explain_pairs(all_pairs(reports, KEYS), 100)
    )
    assert "limits are 95 %" in next(explain_pairs([alone], 100))
    assert "give 400 or more" not in " ".join(explain_pairs([alone], 100))
    assert "cannot tell p below 0.15" in [*explain_pairs([alone] * 3, 20)][1]


def test_p_is_where_the_limits_begin_to_hold_zero(reports):
    for key in KEYS[:3]:
        p = p_value(reports[1], reports[2], key)
        assert p is not None
        assert (
            compute_difference(reports[1], reports[2], key, min(1.0, 1.05 * p)).significant
            or p > 0.9
        )
        assert not compute_difference(reports[1], reports[2], key, 0.9 * p).significant


@pytest.mark.slow
def test_p_of_two_systems_alike_is_seldom_small():
    target = np.repeat(np.arange(20), 4)
    own = target[:, None] == np.arange(20)
    found = []
    for seed in range(12):
        one, other = (
            evaluate(
                ScoreMatrix(
                    np.random.default_rng(100 + 2 * seed + i).normal(size=own.shape) + own, target
                ),
                settings=EvaluationSettings(replicates=40),
            )
            for i in range(2)
        )
        found.append(p_value(one, other, "lid.alid_bits"))
    assert sum(p is not None and p < 0.05 for p in found) <= 3
    assert max(p for p in found if p is not None) > 0.3


def test_one_system_has_no_pairs(reports):
    assert all_pairs(reports[:1]) == ()
