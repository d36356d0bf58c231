"""Archives that an impostor made."""

from __future__ import annotations

import io
import zipfile
import zlib

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
@given(
    arrays.arrays(
        st.sampled_from(["u1", "<i8", "<f4", "?", "U3"]), arrays.array_shapes(min_dims=0)
    ),
    st.sampled_from(["C", "F"]),
    st.booleans(),
)
def test_what_numpy_saved_comes_back(array, order, later):
    array = np.asarray(array, order=order)
    stored = saved(one=array, two=np.zeros((0, 4)))
    found = read_arrays(stored, later=("one", "two") if later else ())
    stored.truncate(0)  # nothing is read from it any more
    for _ in range(2):
        np.testing.assert_array_equal(found["one"], array)
        assert found["one"].dtype == array.dtype
        assert found["one"].flags.writeable
        assert found["two"].shape == (0, 4)


@pytest.mark.parametrize("later", [(), ("a",)])
def test_large_arrays_and_those_that_are_not_compressed_come_back(later):
    large, plain = np.arange(1 << 18), io.BytesIO()
    np.savez(plain, a=large[:100])
    plain.seek(0)
    assert (read_arrays(saved(a=large), later=later)["a"] == large).all()
    assert (read_arrays(plain, later=later)["a"] == large[:100]).all()


@pytest.mark.parametrize("later", [(), ("a",)])
def test_damage_is_noticed_when_an_array_is_read(later):
    content = bytearray(saved(a=np.random.default_rng(0).integers(99, size=999)).getvalue())
    content[500] ^= 1
    with pytest.raises((ValueError, zlib.error, zipfile.BadZipFile)):
        read_arrays(io.BytesIO(content), later=later)["a"]
    assert later == () or "a" in read_arrays(io.BytesIO(content), later=later)


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
