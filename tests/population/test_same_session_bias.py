from __future__ import annotations

import pytest

from monitor.kinds import HISTOGRAM, FeatureSpec, comparable_features
from monitor.population.interpolation import same_session_bias, same_session_bias_bits
from monitor.population.population import Population


@pytest.fixture(scope="module")
def reference() -> Population:
    return Population.reference()


@pytest.mark.parametrize("names", [("f0",), ("phones", "f0"), ("f0", "phones", "voice")])
def test_what_the_shipped_rows_say(reference, names):
    bits = same_session_bias_bits({name: reference.specs[name] for name in names}, 50, 100.0)
    assert bits is not None
    rank_models = [reference.rank_models.find(names, session) for session in ("same", "cross")]
    rows = [
        {r["T"]: r["mean_bits_model"] for r in rank_model.rows if r["D"] == 100.0}
        for rank_model in rank_models
        if rank_model
    ]
    # at the calibration's own N the model's MeanD is in the table
    assert bits[10.0] == pytest.approx(rows[0][10.0] - rows[1][10.0], abs=1e-3)
    fewer = same_session_bias_bits({name: reference.specs[name] for name in names}, 12, 100.0)
    assert fewer is not None
    assert 0 < fewer[60.0] < 3.6


def test_frames_that_the_shipped_readers_do_not_have(reference):
    shapes = {
        "f0": FeatureSpec("f0", HISTOGRAM, 104, 0.01),
        "tokens": FeatureSpec("tokens", HISTOGRAM, 256, 0.02),
    }
    assert comparable_features(shapes, reference.specs) == {"f0"}
    assert (
        comparable_features({"f0": FeatureSpec("f0", HISTOGRAM, 104, 0.02)}, reference.specs)
        == set()
    )
    assert same_session_bias_bits(shapes, 20, 60.0) is None
    assert same_session_bias(shapes, 20, 60.0) == "by how much is not known for f0+tokens"
