"""Noise on embeddings: as much as is said, and what windows with a declared epsilon promise."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from monitor.anonymisers import Laplace
from monitor.anonymisers.laplace import EVERYBODY_BITS, DeclaredGuarantee, empty_after, promises
from monitor.errors import UsageError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.maths.composition import basic, clipped, noise_scale, optimal
from monitor.types import Frames, Track

SPECS = {
    "f0": FeatureSpec("f0", HISTOGRAM, 104, 0.01),
    "voice": FeatureSpec("voice", EMBEDDING, 192, 3.0),
}


def unit(count: int, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=(count, 192))
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), np.float32)


def frames(values: np.ndarray) -> Frames:
    ticks = 300 * np.arange(1, len(values) + 1)
    spans = np.stack([ticks - 300, ticks], axis=1)
    f0 = Track(np.arange(1, 5), np.array([1, 2, 3, 4]))
    return Frames(np.ones(ticks[-1], bool), {"f0": f0, "voice": Track(ticks, values, spans)})


def protected(mechanism: Laplace, values: np.ndarray, **whose: Any) -> Mapping[str, Track]:
    return mechanism.protect(frames(values), SPECS, **{"name": "a", "seed": 1, **whose}).tracks


@pytest.mark.parametrize(("epsilon", "clip"), [(15.0, 1.0), (0.5, 3.0)])
def test_noise_is_laplace_of_scale_2c_over_epsilon_on_clipped_embeddings(epsilon, clip):
    values = unit(100)
    found = protected(Laplace(epsilon, clip), values)
    assert list(found) == ["voice"]  # only embeddings come out, with their times
    made, before = found["voice"], frames(values).tracks["voice"]
    assert np.array_equal(made.ticks, before.ticks)
    assert before.spans is not None
    assert np.array_equal(np.asarray(made.spans), before.spans)
    assert made.values.dtype == np.float32
    noise = made.values - clipped(values.astype(float), clip)
    assert Laplace(epsilon, clip).scale == 2 * clip / epsilon
    assert stats.kstest(noise.ravel(), stats.laplace(scale=2 * clip / epsilon).cdf).pvalue > 0.01
    shuffled = np.corrcoef(noise.T) - np.eye(192)
    assert np.abs(shuffled).max() < 0.55  # no two numbers share noise: 100 draws of each


def test_the_default_norm_clips_every_direction():
    some = np.vstack([unit(50), np.eye(192, dtype=np.float32)])
    assert np.abs(clipped(some.astype(float), Laplace(1.0).clip)).sum(axis=1) == pytest.approx(1.0)


def test_noise_is_of_its_seed_its_recording_and_its_feature():
    values = unit(5)
    mechanism = Laplace(10.0)
    first = protected(mechanism, values)["voice"].values
    assert np.array_equal(first, protected(mechanism, values)["voice"].values)
    for whose in ({"seed": 2}, {"name": "b"}):
        other = protected(mechanism, values, **whose)["voice"].values
        assert abs(np.corrcoef((first - other).ravel(), first.ravel())[0, 1]) > 0.5
        assert not np.isclose(first, other).any(axis=1).all()
    assert not np.array_equal(mechanism.noisy(values, 1, "a", "x"), first)


def test_an_attacker_who_knows_all_has_no_more_evidence_than_promised():
    epsilon, count = 4.0, 6
    ann, bob = (clipped(unit(1, seed).astype(float), 1.0)[0] for seed in (1, 2))
    ann, bob = (np.sign(each) / 192 for each in (ann, bob))  # far apart
    (promise,) = promises({"ann": (count, 18.0)}, epsilon)
    scale = noise_scale(epsilon, 1.0)
    bits = []
    for seed in range(300):
        heard = Laplace(epsilon).noisy(np.tile(ann, (count, 1)), seed).astype(float)
        bits.append((np.abs(heard - bob) - np.abs(heard - ann)).sum() / scale / math.log(2))
    assert np.abs(bits).max() <= promise.most_bits
    # what is left is what the noise lets through: the mean is a divergence, far below the bound
    assert 0 < np.mean(bits) < promise.most_bits / 4


def test_composition_is_that_of_public_tools(golden):
    for row in golden.json("composition")["rows"]:
        (promise,) = promises({"ann": (row["k"], 1.0)}, row["eps0"], row["delta"])
        assert promise.spent.basic_nats == pytest.approx(row["basic"])
        assert promise.spent.advanced_nats == pytest.approx(row["advanced_DRV"])
        assert promise.spent.optimal_nats == pytest.approx(row["dp_accounting_PLD"], rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 15.0, 22.9])
def test_a_promise_is_empty_from_where_it_is_said(epsilon):
    last = empty_after(epsilon)
    before, after = promises({"a": (last - 1, 1.0), "b": (last, 1.0)}, epsilon)
    assert (before.empty, after.empty) == (False, True)
    assert 2**EVERYBODY_BITS > 8.2e9


@pytest.mark.parametrize(("setting", "said"), [
    ("", "laplace:15"), ("a", "laplace:15"), ("1,b", "laplace:15"), ("1,2,3", "laplace:15"),
    ("0", "epsilon"), ("-1", "epsilon"), ("nan", "epsilon"), ("inf", "epsilon"),
    ("1,0", "clipping"), ("1,nan", "clipping"),
])  # fmt: skip
def test_a_setting_that_makes_no_sense_is_refused(setting, said):
    with pytest.raises(UsageError, match=said):
        Laplace.parse(setting)


TOKEN = DeclaredGuarantee("usc:15", 15.0, 0.04, ahead_seconds=0.3)


@given(st.floats(0.01, 20), st.integers(1, 50_000))
def test_what_is_shown_is_a_bound_and_hardly_more_than_the_least(epsilon, windows):
    spent = DeclaredGuarantee("m", epsilon, 0.04).compose(windows).spent
    least = optimal(epsilon, windows, 1e-4)
    assert spent.trials == windows
    assert spent.basic_nats == basic(epsilon, windows)
    assert least <= spent.optimal_nats <= min(spent.basic_nats, 1.11 * least + 1e-9)


@given(st.floats(0.01, 3600), st.floats(0, 10))
def test_a_promise_never_grows_back(seconds, more):
    assert TOKEN.windows(seconds) <= TOKEN.windows(seconds + more)


@pytest.mark.parametrize(
    ("seconds", "windows"), [(0, 0), (0.01, 8), (0.1, 10), (0.11, 11), (1.0, 33), (60.0, 1508)]
)
def test_windows_that_sound_depends_on_before_it_is_over_are_counted(seconds, windows):
    assert TOKEN.windows(seconds) == windows == (seconds and math.ceil((seconds + 0.3) * 25 - 1e-6))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_what_is_no_epsilon_is_refused(epsilon):
    with pytest.raises(UsageError, match=f"epsilon {epsilon:g}: "):
        DeclaredGuarantee("m", epsilon, 0.04)


def test_noise_on_frames_declares_what_its_setting_says():
    assert DeclaredGuarantee.parse_noise("tokens:2.5", 0.04) == DeclaredGuarantee(
        "tokens:2.5", 2.5, 0.04
    )
    assert DeclaredGuarantee.parse_noise("laplace:15,1", 3.0) == DeclaredGuarantee(
        "laplace:15,1", 15.0, 3.0
    )
    for unknown in ("", "laplace", "laplace:much", "laplace:-1", "laplace:inf", "mist:3"):
        assert DeclaredGuarantee.parse_noise(unknown, 3.0) is None
