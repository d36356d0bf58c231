from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from monitor.maths.scores import near_one


@given(arrays(float, (3, 4), elements=st.floats(-1e300, 1e300)))
def test_the_largest_lies_from_a_half_to_one_and_nothing_else_changes(rows):
    found = near_one(rows)
    largest = np.abs(found).max(axis=1)
    used = np.abs(rows).max(axis=1) > 0
    assert ((largest[used] >= 0.5) & (largest[used] < 1)).all()
    assert not found[~used].any()
    factor = np.abs(rows[used]).max(axis=1) / largest[used]
    back = found[used] * factor[:, None]
    big = np.abs(found[used]) > 1e-200  # what is smaller may round
    assert np.array_equal(back[big], rows[used][big])
