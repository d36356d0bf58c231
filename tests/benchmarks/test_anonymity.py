"""USC's rank test: voices whose truth is known, and utterances of real readers."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.systems import QUERY, REFERENCE, select_excerpts
from benchmarks.usc_privacy import estimate_ratio, score_enrolled, score_rank_tests
from monitor.lab.evaluation import EvaluationSettings, evaluate

READERS, UTTERANCES, SIZE = 30, 6, 16


def voices(spread, seed, centres=None):
    """Unit embeddings around a centre of each reader; far apart the less they are spread."""
    generator = np.random.default_rng(seed)
    if centres is None:
        centres = np.random.default_rng(0).normal(size=(READERS, SIZE))
    made = centres[:, None] + spread * generator.normal(size=(READERS, UTTERANCES, SIZE))
    made /= np.linalg.norm(made, axis=2, keepdims=True)
    return {f"reader {i}": list(each) for i, each in enumerate(made)}


def mean_ranks(queries, references, tests=100):
    found = evaluate(
        score_rank_tests(queries, references, tests),
        settings=EvaluationSettings(only=("anonymity",), replicates=0),
    )
    return found.figures["anonymity.mean_rank_p50"], found.figures["anonymity.mean_rank_p1"]


def test_voices_that_are_alike_rank_by_chance():
    nobody = np.zeros((READERS, SIZE))
    p50, p1 = mean_ranks(voices(1.0, 1, nobody), voices(1.0, 2, nobody))
    assert p50.value == pytest.approx((READERS + 1) / 2, abs=2.5)
    assert p50.floor == (READERS + 1) / 2
    assert p1.value < p50.value


def test_voices_far_apart_come_first_whoever_is_changed():
    p50, p1 = mean_ranks(voices(0.01, 1), voices(0.01, 2))
    assert (p50.value, p1.value) == (1.0, 1.0)


def test_more_spread_hides_more_and_more_enrolled_hides_less():
    def bits(matrix):
        return (
            evaluate(matrix, settings=EvaluationSettings(only=("srd",), replicates=0))
            .figures["srd.mean_bits_model"]
            .value
        )

    close, far = (score_rank_tests(voices(s, 1), voices(s, 2), 50) for s in (0.8, 2.5))
    assert bits(close) > bits(far) + 0.5
    assert bits(score_enrolled(voices(2.5, 1), voices(2.5, 2))) > bits(far)


def test_limits_over_readers_hold_the_truth_as_often_as_they_say():
    generator = np.random.default_rng(3)
    held = 0
    for _ in range(200):
        readers = generator.normal(0.5, 0.1, 20)
        found = estimate_ratio(
            (str(who), float(value + generator.normal(0, 0.05)), 1.0)
            for who, value in enumerate(readers)
            for _ in range(4)
        )
        _, low, high = found
        held += low is not None and high is not None and low <= 0.5 <= high
    assert 180 <= held <= 199


@pytest.fixture
def chosen(shared):
    return select_excerpts(shared / "speech" / "dev-clean", 4)


def test_no_query_is_of_a_chapter_that_is_a_reference(chosen):
    by = {
        role: {(e.speaker, e.path) for e in chosen if e.role == role and e.apart}
        for role in (QUERY, REFERENCE)
    }
    assert by[QUERY]
    assert not by[QUERY] & by[REFERENCE]
    assert len({each.name for each in chosen}) == len(chosen)
    assert len({each.speaker for each in chosen}) == 20
