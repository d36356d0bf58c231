"""What is heard does not depend on how many threads numpy would take, nor waits for them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from monitor.features.extractor import Extractor
from monitor.jobs import cores, one_thread
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.types import Block, FloatArray, Track


def threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


class Counting:
    """A feature that notes with how many threads it is computed."""

    spec, follow = FeatureSpec("counting", HISTOGRAM, 2, 0.01, 16_000), None

    def __init__(self) -> None:
        self.found: set[int] = set()

    def process(self, _: FloatArray) -> Track:
        self.found |= threads()
        return Track(np.empty(0, np.intp), np.empty(0, np.intp))

    def flush(self) -> Track:
        return self.process(np.empty(0))

    def skip_to(self, tick: int) -> None: ...

    def reset(self) -> None: ...


def test_features_are_computed_with_one_thread_and_the_program_keeps_its_own():
    with threadpool_limits(2, user_api="blas"):
        extractor = Extractor([feature := Counting()])
        extractor.process(Block(np.zeros(16_000, np.float32), 16_000))
        extractor.flush()
        assert feature.found == {1}
        with one_thread():
            assert threads() == {1}
        assert threads() == {2}


@pytest.mark.slow
@pytest.mark.skipif(cores() < 2, reason="there is one core")
def test_embeddings_are_the_same_on_one_core_and_on_more():
    program = """
import hashlib, numpy as np
from monitor.features.extractor import Extractor
from monitor.features.embeddings import Voice
from monitor.types import Block
from tests.sounds import synthetic
extractor = Extractor([Voice()])
track = extractor.process(Block(synthetic(12.0), 16_000)).tracks["voice"]
print(len(track.values), hashlib.sha256(track.values.tobytes()).hexdigest())
"""
    said = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads},
        ).stdout
        for threads in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1
    assert not said.pop().startswith("0 ")
