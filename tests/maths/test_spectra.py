import sys
from importlib import import_module

import numpy as np
import pytest
import scipy.fft
from numpy.lib.stride_tricks import sliding_window_view

from monitor.maths import spectra

SHAPES = [(1,), (240,), (3, 384), (2, 2, 1001)]


@pytest.fixture(params=["alone", "whole"])
def how(request, monkeypatch):
    """As scipy's compiled part does it, and where that is not found, as scipy does."""
    if request.param == "whole":
        monkeypatch.setattr(spectra, "_pocketfft", lambda: None)


def noise(shape, dtype):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def assert_same(found, expected):
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


@pytest.mark.usefixtures("how")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_each_transform_is_scipys_to_the_last_bit(shape, dtype):
    x, size = noise(shape, dtype), shape[-1]
    for n in (None, size, size + 7, max(size - 5, 1)):
        assert_same(spectra.rfft(x, n), scipy.fft.rfft(x, n))
    spectrum = scipy.fft.rfft(x)
    for n in (size, size + 1, 2 * size + 3):
        assert_same(spectra.irfft(spectrum, n), scipy.fft.irfft(spectrum, n))
    if size > 1:
        expected = scipy.fft.dct(x, type=1)
        assert_same(spectra.dct_1(x), expected)
        assert_same(x, expected)  # in its place


@pytest.mark.usefixtures("how")
def test_arrays_need_not_lie_in_one_piece():
    x = noise(700, np.float32)
    frames = sliding_window_view(x, 50)[::7]
    assert_same(spectra.rfft(frames), scipy.fft.rfft(frames.copy()))
    assert_same(spectra.rfft(x[::-2]), scipy.fft.rfft(x[::-2].copy()))


def test_it_is_scipys_own_module_or_none_where_scipy_keeps_it_elsewhere():
    own = sys.modules.get("scipy.fft._pocketfft.pypocketfft")  # from 1.18 on there is none
    assert spectra._pocketfft() is own
    assert own is None or import_module("scipy.fft._pocketfft.basic").pfft is own
