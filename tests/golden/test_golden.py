"""The golden matrices are, to the last bit, those that the golden numbers were made from."""

import hashlib

import numpy as np
import pytest

DIGESTS = {
    "plain_dev": "30133d519665684b8ef79d0152eef0e6",
    "plain_eval": "6326bc160472c1b63ec009ddbd8154f7",
    "mid_dev": "2da2ce2cbebad65b850be3835bf1b415",
    "mid_eval": "e4281655a828db213ca0feb19f91b37b",
    "weak_dev": "2bb6b843393c71b14c95648bbcde9da1",
    "weak_eval": "6bc79b5abb321467c217d99221adc1c2",
    "random_dev": "54b419620d15ea44fd6ea33c2c0f8a19",
    "random_eval": "b1ba4f8c5bca6d0217c8c01a1f8ef6c1",
    "tied_eval": "a7a30830e48e97de39b83f469f7ee9b3",
}
"""SHA-256, its first half, of each matrix as the tools were given it."""


@pytest.mark.parametrize("name", DIGESTS)
def test_the_matrices_are_those_of_the_tools(golden, name):
    scores = golden.scores(name)
    assert (scores.dtype, scores.shape) == (np.float32, (1000, 100))
    assert hashlib.sha256(scores.astype("<f4").tobytes()).hexdigest()[:32] == DIGESTS[name]
