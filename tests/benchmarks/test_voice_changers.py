"""Evidence over time: normalised and calibrated without whoever is judged."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra training")

from benchmarks.voice_changers import EvidenceOverTime, _fit, _normalise

PEOPLE, JUDGED = 40, 12


def test_no_mean_knows_the_own_template_nor_the_one_that_is_scored():
    scores = np.random.default_rng(0).normal(size=(6, 6))
    z = _normalise(scores, 2)
    cohort = scores[:, 2:]
    spread = cohort[2:][~np.eye(4, dtype=bool)].std()
    assert z[0, 1] == pytest.approx((scores[0, 1] - cohort[0].mean()) / spread)
    others = [scores[0, j] for j in (3, 4, 5)]
    assert z[0, 2] == pytest.approx((scores[0, 2] - np.mean(others)) / spread)
    others = [scores[3, j] for j in (2, 5)]  # neither 3, whose stream it is, nor 4
    assert z[3, 4] == pytest.approx((scores[3, 4] - np.mean(others)) / spread)
    others = [scores[3, j] for j in (2, 4, 5)]
    assert z[3, 3] == pytest.approx((scores[3, 3] - np.mean(others)) / spread)


def test_ratios_of_other_people_are_one_on_average_at_most():
    generator = np.random.default_rng(1)
    z = generator.normal(size=(PEOPLE, PEOPLE)) + 3.5 * np.eye(PEOPLE)
    known, support = _fit(z, np.ones(PEOPLE, bool))
    assert len(known) == PEOPLE
    assert 4 < support <= np.log2(1 + PEOPLE * (PEOPLE - 1) / 2)
    bits = np.array([(a + b * z[r]) / np.log(2) for r, (a, b) in enumerate(known)])
    others = np.exp2(bits[~np.eye(PEOPLE, dtype=bool)])
    assert others.mean() < 1.5
    assert np.diag(bits).mean() > 3
    # the truth of two normals 3.5 apart
    assert known[0][1] == pytest.approx(3.5, abs=1.2)


def test_what_calibration_cannot_support_is_not_claimed():
    bits = np.array([[1.0, 5.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0], [0.0] * 8])
    supported = EvidenceOverTime(("a", "b"), bits, np.full(8, 8.0), np.ones((8, 2)))
    assert [(c.seconds, c.crossed) for c in supported.crossings(6)] == [(3, True), (8, False)]
    cut = EvidenceOverTime(("a", "b"), bits, np.full(8, 5.5), np.ones((8, 2)))
    assert not cut.crossings(6)[0].crossed
