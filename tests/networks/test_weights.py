"""Files of weights: what int8 keeps of them, and float16 beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from monitor.errors import StoreError
from monitor.networks.layers import read_weights
from recipes.shipping import int8


def kept(path: Path, weights: Mapping[str, Any]) -> dict[str, Any]:
    np.savez_compressed(path, **weights)
    found, sha256 = read_weights(path)
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@given(
    kernel=arrays.arrays(
        np.float32,
        arrays.array_shapes(min_dims=2, max_dims=3, max_side=6),
        elements=st.floats(-100, 100, width=32),
    )
)
@pytest.mark.slow
def test_every_weight_comes_back_to_half_a_step_of_its_row(tmp_path_factory, kernel):
    path = tmp_path_factory.mktemp("weights") / "made.npz"
    made = int8({"up": kernel, "up.bias": kernel[0].ravel()})
    assert made["up"].dtype == np.int8
    found = kept(path, made)
    assert found.keys() == {"up", "up.bias"}
    assert found["up"].dtype == np.float32
    assert found["up"].shape == kernel.shape
    rows, back = (each.reshape(len(kernel), -1) for each in (kernel, found["up"]))
    step = np.abs(rows).max(axis=1, keepdims=True) / 127
    # a scale is rounded to half precision: of 127 steps an eighth of one at most
    assert (np.abs(rows - back) <= 0.63 * step + 1e-5).all()
    assert np.array_equal(found["up.bias"], kernel[0].ravel())


def test_half_precision_and_whole_numbers_stay_as_they_are(tmp_path):
    a, reach = np.eye(3, dtype=np.float16), np.arange(6).reshape(3, 2)
    found = kept(tmp_path / "made.npz", {"a": a, **int8({"reach": reach})})
    assert np.array_equal(found["a"], a)
    assert found["a"].dtype == a.dtype
    assert np.array_equal(found["reach"], reach)
    assert found["reach"].dtype == reach.dtype


def test_a_scale_without_its_weights_is_refused(tmp_path):
    with pytest.raises(StoreError, match=r"bad\.npz: no weights"):
        kept(tmp_path / "bad.npz", {"up.scale": np.ones(3, np.float16)})
