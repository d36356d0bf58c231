"""Every kind answers everything that is asked of it."""

from typing import Any

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.kinds import EMBEDDING, HISTOGRAM, KINDS, LEVELS, FeatureSpec, kind

SIZE = 5


def frames(of, count=6):
    rng = np.random.default_rng(1)
    return rng.integers(0, SIZE, count) if of is HISTOGRAM else rng.normal(size=(count, SIZE))


def test_a_kind_is_found_by_its_name_and_an_unknown_one_refused_in_a_line():
    assert [kind(each.name) for each in (HISTOGRAM, EMBEDDING, LEVELS)] == list(KINDS.values())
    unknowns: list[Any] = ["picture", "", None, ["histogram"]]
    for unknown in unknowns:
        with pytest.raises(UsageError, match="must be one of histogram, embedding, levels") as told:
            kind(unknown)
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("each", [HISTOGRAM, EMBEDDING], ids=str)
def test_what_is_enrolled_is_summed_and_stored(each):
    values, sketch = frames(each), each.sketch(SIZE)
    sketch.learn_many(values)
    np.testing.assert_allclose(each.total(values, SIZE), sketch.total, atol=1e-12)
    assert sketch.total.dtype == each.wide == np.dtype(each.stored)
    assert (sketch.total >= each.minimum_total).all()
    np.testing.assert_array_equal(each.narrow(values, SIZE), values)
    slices = each.packed(np.stack([sketch.total, sketch.total]))
    assert each.wrong_slices(slices) == ""
    assert each.wrong_slices(slices.astype(bool)) != ""
    np.testing.assert_allclose(slices.astype(each.wide)[0], sketch.total, rtol=1e-6)
    rows = each.packed_background(np.stack([each.background_row(sketch)] * 3))
    assert each.wrong_background(rows) == ""
    scorer = each.similarity()
    assert scorer is each.similarities[scorer.name] is each.similarity(scorer.name)
    assert scorer.score(scorer.prepare(slices), sketch.total).shape == (2,)
    with pytest.raises(UsageError, match=f"'loglik' is not one of .*{scorer.name}"):
        each.similarity("loglik")


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "histogram"},
        {"kind": None},
        {"size": 0},
        *({"frame_seconds": seconds} for seconds in (0.0, float("nan"), float("inf"))),
        {"network": "no sha256"},
    ],
    ids=str,
)
def test_a_spec_without_meaning_is_refused(wrong):
    with pytest.raises(UsageError, match="x") as told:
        FeatureSpec(**{"name": "x", "kind": HISTOGRAM, "size": 4, "frame_seconds": 0.01} | wrong)
    assert "\n" not in str(told.value)
