"""Frames of any cutting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from monitor.features.framing import Framer


@given(st.integers(1, 12), st.data())
def test_any_cutting_gives_the_frames_of_the_definition(length, data):
    hop = data.draw(st.integers(1, length))
    sizes = data.draw(st.lists(st.integers(0, 30), max_size=12))
    samples = np.arange(sum(sizes), dtype=np.float32)
    framer = Framer(length, hop)
    framer.push(samples[: data.draw(st.integers(0, 30))])
    framer.reset()  # forgets that
    parts = [framer.push(part) for part in np.split(samples, np.cumsum(sizes)[:-1])]
    expected = [samples[at : at + length] for at in range(0, samples.size - length + 1, hop)]
    assert np.array_equal(np.concatenate(parts), np.reshape(expected, (-1, length)))
