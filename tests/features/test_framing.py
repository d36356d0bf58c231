from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.features.framing import Framer


@given(st.integers(1, 12), st.data())
def test_any_cutting_gives_the_frames_of_the_definition(length, data):
    hop = data.draw(st.integers(1, length))
    sizes = data.draw(st.lists(st.integers(0, 30), max_size=12))
    samples = np.arange(sum(sizes), dtype=np.float32)
    framer = Framer(length, hop)
    parts = [framer.push(part) for part in np.split(samples, np.cumsum(sizes)[:-1])]
    expected = [samples[at : at + length] for at in range(0, samples.size - length + 1, hop)]
    assert np.array_equal(np.concatenate(parts), np.reshape(expected, (-1, length)))


def test_keeps_only_the_rest():
    framer = Framer(246, 80)
    framer.push(np.zeros(100_000))
    assert framer._rest.size < 246
    assert framer._rest.base is None


def test_reset_forgets():
    framer = Framer(4, 2)
    framer.push(np.ones(3))
    framer.reset()
    assert framer.push(np.zeros(4)).tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize(("length", "hop"), [(4, 0), (4, 5), (0, 1)])
def test_refuses_a_hop_that_leaves_samples_out(length, hop):
    with pytest.raises(UsageError, match="hop"):
        Framer(length, hop)
