"""Maxima of other people's streams: chosen, kept in a store, and checked as they are read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import StoreError
from monitor.population.population import Population, load_rank_models, save_rank_models
from monitor.population.rank_model import Maxima, RankModels, round_up
from monitor.population.store import read_store, write_store
from tests.population.rank_models import population, some_rank_model

NAN = np.nan
MAXIMA = Maxima(
    ("closed_set_bits", "gain_bits"),
    np.array([10.0, 60.0, 600.0]),
    np.array(
        [
            [[1.0, 2.0, 2.5], [0.5, 0.5, NAN], [2.0, 2.0, 4.0]],
            [[3.0, 3.0, 3.0], [1.0, 1.5, NAN], [2.5, 2.5, 2.5]],
        ],
        np.float16,
    ),
    np.array([700.0, 60.0, 300.0]),
    ("ann", "bob", "cem"),
    100.0,
)


def test_others_are_not_the_watched_one():
    assert MAXIMA.select_others("closed_set_bits", 10.0).values.tolist() == [1.0, 0.5, 2.0]
    assert MAXIMA.select_others("closed_set_bits", 10.0, watch="ann").values.tolist() == [0.5, 2.0]
    assert MAXIMA.select_others("gain_bits", 10.0, watch="eve").values.tolist() == [3.0, 1.0, 2.5]


def test_the_next_longer_horizon_stands_for_a_length_between():
    """Over more of a stream the largest value is no smaller: it errs on the safe side."""
    found = MAXIMA.select_others("closed_set_bits", 45.0)
    assert (found.values.tolist(), found.horizon_seconds) == ([2.0, 0.5, 2.0], 60.0)
    assert [MAXIMA.horizon(s) for s in (1, 10, 10.5, 600, 601)] == [10.0, 10.0, 60.0, 600.0, None]


def test_streams_that_were_heard_again_count_only_where_they_must():
    whole = MAXIMA.select_others("closed_set_bits", 600.0, needed=1)
    assert (whole.values.tolist(), whole.repeated) == ([2.5], 0)
    more = MAXIMA.select_others("closed_set_bits", 600.0, needed=2)
    assert (more.values.tolist(), more.repeated) == ([2.5, 4.0], 1)


@given(st.lists(st.floats(-60, 60), min_size=1))
def test_half_precision_is_never_smaller(values):
    made = round_up(np.array(values))
    assert made.dtype == np.float16
    assert (made >= np.array(values)).all()
    assert (made - np.array(values) <= 2e-3 * np.abs(values) + 1e-7).all()


def kept(made: Population, session="cross"):
    rank_model = made.rank_models.find(("f0",), session)
    assert rank_model is not None
    return rank_model.maxima


def test_they_travel_with_their_rank_model(tmp_path):
    rank_models = [some_rank_model(maxima=MAXIMA), some_rank_model(session="same")]
    made = population(rank_models=rank_models)
    made.save(tmp_path / "p.npz")
    read = Population.load(tmp_path / "p.npz")
    found = kept(read)
    assert found is not None
    np.testing.assert_array_equal(found.values, MAXIMA.values)
    assert (found.fields, found.speakers) == (MAXIMA.fields, MAXIMA.speakers)
    assert found.template_seconds == 100.0
    assert kept(read, "same") is None
    read.only(["f0"]).save(tmp_path / "again.npz")
    again = kept(Population.load(tmp_path / "again.npz"))
    assert again is not None
    np.testing.assert_array_equal(again.values, MAXIMA.values)


@pytest.mark.parametrize(
    "changes",
    [
        {"values": MAXIMA.values[:, :2]},
        {"values": MAXIMA.values[:1]},
        {"values": MAXIMA.values[..., ::-1]},
        {"values": MAXIMA.values * np.float16(np.inf)},
        {"values": MAXIMA.values.astype(np.float64) * 1e9},
        {"values": np.ones((2, 3, 3), np.int8)},
        {"horizons": np.array([10.0, 10.0, 600.0])},
        {"horizons": np.array([0.0, 60.0, 600.0])},
        {"horizons": np.array([10.0, 60.0, NAN])},
        {"horizons": np.array([10, 60, 600])},
        {"seconds": np.array([700.0, 0.0, 300.0])},
        {"seconds": np.array([700.0, NAN, 300.0])},
        {"seconds": np.array([700.0, np.inf, 300.0])},
        {"fields": ["bits", "bits"]},
        {"fields": ["bits", "a\x1bb"]},
        {"fields": 3},
        {"speakers": ["ann", "ann", "cem"]},
        {"speakers": ["ann", "b\nb", "cem"]},
        {"speakers": []},
        {"template_seconds": 0.0},
        {"template_seconds": "100"},
        {"template_seconds": True},
        {"template_seconds": None},
    ],
    ids=str,
)
def test_maxima_that_no_streams_have(tmp_path, changes):
    path = tmp_path / "rank_model.npz"
    save_rank_models(path, RankModels([some_rank_model(maxima=MAXIMA)]))
    assert next(iter(load_rank_models(path)[0])).maxima is not None
    header, arrays = read_store(path, "rank_model")
    for name, value in changes.items():
        if f"rank_model/0/maxima/{name}" in arrays:
            arrays[f"rank_model/0/maxima/{name}"] = value
        else:
            header["rank_models"][0]["maxima"][name] = value
    write_store(path, "rank_model", {"rank_models": header["rank_models"]}, arrays)
    with pytest.raises(StoreError) as caught, np.errstate(all="ignore"):
        load_rank_models(path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("missing", ["values", "seconds", "horizons"])
def test_a_missing_array_is_told(tmp_path, missing):
    path = tmp_path / "rank_model.npz"
    save_rank_models(path, RankModels([some_rank_model(maxima=MAXIMA)]))
    header, arrays = read_store(path, "rank_model")
    del arrays[f"rank_model/0/maxima/{missing}"]
    write_store(path, "rank_model", {"rank_models": header["rank_models"]}, arrays)
    with pytest.raises(StoreError, match="is incomplete"):
        load_rank_models(path)


def test_a_rank_model_can_do_without():
    assert replace(some_rank_model(maxima=MAXIMA), maxima=None).maxima is None
