"""Archives that an impostor made."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from monitor.files import read_arrays


def saved(**content) -> io.BytesIO:
    file = io.BytesIO()
    np.savez_compressed(file, **content)
    file.seek(0)
    return file


def zipped(**members: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    file.seek(0)
    return file


def npy(array: np.ndarray, shape=None) -> bytes:
    """An array that says it had a shape."""
    file = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array)
    header["shape"] = array.shape if shape is None else shape
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


@pytest.mark.slow
@given(arrays.arrays(st.sampled_from(["u1", "<i8", "<f4", "?", "U3"]), arrays.array_shapes()))
def test_what_numpy_saved_comes_back(array):
    found = read_arrays(saved(one=array, two=np.zeros((0, 4))))
    np.testing.assert_array_equal(found["one"], array)
    assert found["one"].dtype == array.dtype
    assert found["two"].shape == (0, 4)


@pytest.mark.slow
def test_what_would_take_all_memory_is_refused_before_it_is_inflated():
    bomb = saved(a=np.zeros(3 << 27, np.uint8))  # 0.4 MB on disk, 400 MB in memory
    before = psutil.Process().memory_info().rss
    with pytest.raises(ValueError, match="far more memory"):
        read_arrays(bomb)
    assert psutil.Process().memory_info().rss - before < 50e6


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (zipped(a=npy(np.zeros(4), (1 << 40,))), "another length"),
        (zipped(a=npy(np.zeros(4), (2,))), "another length"),
        (zipped(a=npy(np.zeros(4), (-4,))), "another length|shape"),
        (saved(a=np.array([{}], dtype=object)), "Object arrays"),
    ],
    ids=["promises more", "promises less", "negative", "pickled"],
)
def test_arrays_that_lie(file, words):
    with pytest.raises(ValueError, match=words):
        read_arrays(file)


def test_members_that_are_no_arrays_or_come_twice():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match="no array"):
        read_arrays(file)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", npy(np.zeros(1)))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.npy", npy(np.ones(1)))
    with pytest.raises(ValueError, match="too many"):
        read_arrays(file)
