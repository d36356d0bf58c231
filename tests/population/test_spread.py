"""The spread over voices: of the calibration table, by length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from monitor.population.interpolation import EvidenceSpread
from monitor.population.population import Population


def row(t: float, d: float, **other: Any) -> dict[str, Any]:
    return {"T": t, "D": d, "evidence_low_twentieth": None, **other}


def told(t: float, d: float, low: float, high: float) -> dict[str, Any]:
    return row(
        t, d, evidence_low_twentieth=low, evidence_high_twentieth=high, others_high_twentieth=-low
    )


def spread_of(rows: Sequence[Mapping[str, Any]], template_seconds: float) -> EvidenceSpread:
    found = EvidenceSpread.of(rows, template_seconds)
    assert found is not None
    return found


def test_between_lengths_and_at_the_nearest_template():
    rows = [told(1.0, 10.0, 1.0, 2.0), told(100.0, 10.0, 3.0, 6.0), told(10.0, 90.0, 9.0, 9.5),
            row(0.3, 10.0)]  # fmt: skip
    spread = spread_of(rows, 20.0)
    assert spread.at(10.0) == pytest.approx((2.0, 4.0, -2.0))
    assert spread.at(1.0) == pytest.approx((1.0, 2.0, -1.0))
    assert spread.at(0.0) is spread.at(0.99) is None  # nothing that short was calibrated
    assert spread.at(1e4) == spread.at(100.0)
    assert spread_of(rows, 80.0).at(10.0) == pytest.approx((9.0, 9.5, -9.0))


def test_a_table_without_it_says_nothing():
    assert EvidenceSpread.of([row(1.0, 10.0), {"T": 2.0, "D": 10.0}], 10.0) is None
    assert EvidenceSpread.of([], 10.0) is None


def test_the_shipped_rank_models_know_it():
    for rank_model in Population.reference().rank_models:
        if rank_model.evidence is not None:
            spread = spread_of(rank_model.rows, 100.0)
            for seconds in np.geomspace(3, 600, 20):
                found = spread.at(float(seconds))
                assert found is not None
                assert -20 < found.low <= found.high < 20
