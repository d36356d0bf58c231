"""Stores that look whole and hold nonsense."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from monitor import Population
from monitor.errors import StoreError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import SourceNote, Speaker
from monitor.population.population import load_rank_models, save_rank_models
from monitor.population.store import read_store, write_store
from monitor.safe_text import is_name

RNG = np.random.default_rng(0)
COUNTS = RNG.integers(1, 50, (4, 6)).astype(np.uint16)
SUMS = RNG.standard_normal((4, 3)).astype(np.float32)


BOBS = (np.arange(4) > 1)[:, None].astype(np.uint16)


def population(name="ann", note=None, **changed) -> Population:
    features = {
        "f0": FeatureTemplates(FeatureSpec("f0", HISTOGRAM, 6, 0.01), COUNTS),
        "identity": FeatureTemplates(FeatureSpec("identity", EMBEDDING, 3, 3.0), SUMS),
    }
    for feature, changes in changed.items():
        features[feature] = replace(features[feature], **changes)
    sources = (note or SourceNote("a.wav", "monday", ("file:1",), 0.0, 20.0),)
    return Population([Speaker(name, sources), Speaker("bob")], np.array([0, 2, 4]), features)


def changed(array, value):
    made = array.astype(np.result_type(array, np.asarray(value)))
    made[1, 1] = value
    return made


def test_a_sound_one_is_read(tmp_path):
    population().save(tmp_path / "p.npz")
    assert Population.load(tmp_path / "p.npz").names == ("ann", "bob")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (population(identity={"slices": changed(SUMS, np.nan)}), "finite sums"),
        (population(identity={"slices": changed(SUMS, np.inf)}), "finite sums"),
        (population(identity={"slices": SUMS * 1e30}), "finite sums"),
        (population(identity={"slices": COUNTS[:, :3]}), "finite sums"),
        (population(f0={"slices": changed(COUNTS, 1 << 62)}), "counts from 0"),
        (population(f0={"slices": changed(COUNTS.astype(np.int64), -1)}), "counts from 0"),
        (population(f0={"slices": COUNTS + 0.5}), "counts from 0"),
        (population(f0={"slices": COUNTS > 3}), "counts from 0"),
        (
            population(f0={"slices": COUNTS * BOBS}, identity={"slices": SUMS * BOBS}),
            "ann has noth",
        ),
        (population("a\x1b[2Jb"), "cannot be printed"),
        (population(" "), "cannot be printed"),
        (population("a" * 201), "cannot be printed"),
        (population(note=SourceNote("a\nb", "m", (), 0.0, 1.0)), "cannot be printed"),
        (population(note=SourceNote("a", "m\x07", (), 0.0, 1.0)), "cannot be printed"),
        (population(note=SourceNote("a", "m", (), -1.0, 1.0)), "no pair of seconds"),
    ],
)
def test_templates_that_no_voice_gives(tmp_path, made, words):
    made.save(tmp_path / "p.npz")
    with pytest.raises(StoreError, match=words) as caught:
        Population.load(tmp_path / "p.npz")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"frame_seconds": 0.0}, "said to last"),
        ({"frame_seconds": "1"}, "said to last"),
        ({"kind": "levels"}, "no known kind"),
        ({"kind": "picture"}, "no known kind"),
        ({"kind": ["histogram"]}, "no known kind"),
        ({"size": 0}, "have size 0"),
        ({"size": "6"}, "have size '6'"),
        ({"size": True}, "have size True"),
        ({"network": "no sha256"}, "no sha256"),
        ({"rate": 8000}, "more than their kind"),
    ],
    ids=str,
)
def test_headers_of_no_feature(tmp_path, changes, words):
    path = tmp_path / "p.npz"
    population().save(path)
    header, arrays = read_store(path, "population")
    header["features"]["f0"] |= changes
    del header["kind"], header["schema"]
    write_store(path, "population", header, arrays)
    with pytest.raises(StoreError, match=words) as caught:
        Population.load(path)
    assert str(caught.value).isprintable()


RANK_MODEL = next(iter(Population.reference().rank_models))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"alpha": np.where(np.isnan(RANK_MODEL.alpha), RANK_MODEL.alpha, -1.0)},
        {"alpha": np.full_like(RANK_MODEL.alpha, np.inf)},
        {"beta": np.full_like(RANK_MODEL.beta, np.nan)},
        {"beta": np.full_like(RANK_MODEL.beta, 1e30)},
        {"floor": np.full_like(RANK_MODEL.floor, 1.5)},
        {"weights": np.full_like(RANK_MODEL.weights, -0.1)},
        {"weights": np.full_like(RANK_MODEL.weights, np.inf)},
        {"open_set": np.full_like(RANK_MODEL.open_set, np.inf)},
        {"lengths": RANK_MODEL.lengths * np.inf},
        {"binomial": RANK_MODEL.binomial.astype(np.int8)},
        {"session": "sometimes"},
        {"features": ("f\x1b0",)},
        {"speakers": 0},
        {"candidates": -3},
        {"candidates": 1e300},
        {"left_out": ["a\x1bb"]},
        {"left_out": 3},
    ],
    ids=str,
)
def test_rank_models_that_no_calibration_gives(tmp_path, changes):
    path = tmp_path / "rank_model.npz"
    save_rank_models(path, type(Population.reference().rank_models)([RANK_MODEL]))
    header, arrays = read_store(path, "rank_model")
    for name, value in changes.items():
        if f"rank_model/0/{name}" in arrays:
            arrays[f"rank_model/0/{name}"] = value
        else:
            header["rank_models"][0][name] = value
    write_store(path, "rank_model", {"rank_models": header["rank_models"]}, arrays)
    with pytest.raises(StoreError) as caught, np.errstate(all="ignore"):
        load_rank_models(path)
    assert str(caught.value).isprintable()


def test_who_has_nothing_of_a_feature_is_known(tmp_path):
    made = population(f0={"slices": COUNTS * BOBS})
    assert (made.empty("f0"), made.empty("identity")) == (("ann",), ())
    made.save(tmp_path / "p.npz")
    assert Population.load(tmp_path / "p.npz").empty("f0") == ("ann",)


def test_names():
    assert all(map(is_name, ("ann", "Zoë", "王芳", "a" * 200)))
    assert not any(map(is_name, ("", "a\tb", "\udcff", "\u202eevil", "a" * 201, None, ["a"])))
