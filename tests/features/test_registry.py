from __future__ import annotations

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.features.given import Given
from monitor.features.registry import FEATURES, make
from monitor.protocols import Feature


@pytest.mark.parametrize("name", sorted(FEATURES.keys() - {"identity"}))
def test_every_name_makes_a_feature_of_that_name(name):
    of_that_name(name)


def test_identity_is_made_of_the_network_of_the_environment(monkeypatch, ecapa):
    monkeypatch.setenv("MONITOR_ECAPA", ecapa)
    of_that_name("identity")


def of_that_name(name: str) -> None:
    first, second = make([name, name])
    assert isinstance(first, Feature)
    assert first.name == name
    assert first is not second


def test_a_feature_that_is_made_stays_as_it_is():
    codes = Given("codes", 16, "histogram", 0.02)
    made = make(["f0", codes])
    assert [feature.name for feature in made] == ["f0", "codes"]
    assert made[1] is codes


@pytest.mark.parametrize(("name", "hint"), [("f1", "did you mean f0"), ("zzz", "there is f0, ")])
def test_an_unknown_name_is_refused_with_a_hint(name, hint):
    with pytest.raises(UsageError, match=hint) as caught:
        make(["f0", name])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("kind", "shape"), [("histogram", (0,)), ("embedding", (0, 40))])
def test_given_frames_are_described_and_never_computed(kind, shape):
    feature = Given("phones", 40, kind, 0.08)
    assert isinstance(feature, Feature)
    assert feature.flush().values.shape == shape
    feature.reset()
    feature.skip_to(3)
    with pytest.raises(UsageError, match="phones exists only as frames"):
        feature.process(np.zeros(80))


@pytest.mark.parametrize(
    "arguments", [("x", 0, "histogram", 0.1), ("x", 4, "cloud", 0.1), ("x", 4, "embedding", 0.0)]
)
def test_given_refuses_nonsense(arguments):
    with pytest.raises(UsageError, match="x"):
        Given(*arguments)
