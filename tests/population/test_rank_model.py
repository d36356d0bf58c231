from __future__ import annotations

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import StoreError
from monitor.population.population import Population, load_rank_models, save_rank_models
from monitor.population.rank_model import RankModels
from monitor.population.store import read_store, write_store
from tests.population.rank_models import population, some_rank_model


def same(one, other, rtol=0.0):
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert_allclose(a, b, rtol=rtol, err_msg=field.name)
        else:
            assert a == b


def rank_models():
    degenerate = some_rank_model(("f0",), "same", template_lengths=(10, 60), seed=1)
    degenerate.binomial[:, -1] = True
    degenerate.alpha[:, -1], degenerate.beta[:, -1] = 0.0, 1.0
    degenerate.alpha[:, 0, 1] = degenerate.beta[:, 0, 1] = np.nan
    return RankModels([some_rank_model(), degenerate, some_rank_model(("f0", "phones"))])


def test_round_trip(tmp_path):
    path = tmp_path / "rank_models.npz"
    save_rank_models(path, rank_models())
    loaded = load_rank_models(path)[0]
    assert len(loaded) == 3
    for one, other in zip(rank_models(), loaded, strict=True):
        same(one, other, rtol=1e-7)
        assert_array_equal(one.lengths, other.lengths)
    save_rank_models(path, loaded)
    for one, other in zip(loaded, load_rank_models(path)[0], strict=True):
        same(one, other)


def test_finding():
    made = rank_models()
    found = made.find(("f0",), "same")
    assert found is not None
    assert (found.features, found.session) == (("f0",), "same")
    assert made.find(("phones",), "cross") is None
    assert made.find(("f0", "phones"), "same") is None
    assert made.find(("phones", "f0"), "cross") is made.find(("f0", "phones"), "cross")


def test_of_two_about_the_same_the_later_stands():
    first, second = some_rank_model(seed=0), some_rank_model(seed=1)
    made = RankModels([first, some_rank_model(("phones",)), second])
    assert len(made) == 2
    assert made.find(("f0",), "cross") is second


@pytest.mark.parametrize(
    "change",
    [
        {"alpha": np.ones((41, 4, 2))},
        {"floor": np.ones((40, 4, 1))},
        {"binomial": np.zeros((41, 3, 1), dtype=bool)},
        {"weights": np.ones((41, 4, 1, 2))},
        {"similarities": ("log-likelihood", "l1")},
        {"lengths": np.array([0.5, 10.0, 2.0, 60.0])},
        {"lengths": np.array([0.0, 2.0, 10.0, 60.0])},
        {"lengths": np.array([5e-324, 2.0, 10.0, 60.0])},
        {"lengths": np.array([0.5, 2.0, 10.0, np.inf])},
        {"template_lengths": np.array([-10.0])},
        {"alpha": np.full((41, 4, 1), np.nan)},
    ],
)
def test_parts_that_do_not_fit_are_refused(change):
    with pytest.raises(StoreError, match="a rank model"):
        replace(some_rank_model(), **change)


def test_a_rank_model_without_resamples_has_no_limits():
    with pytest.raises(StoreError, match="at least one resample"):
        some_rank_model(replicates=0)


@pytest.mark.parametrize("damage", ["no rank models", "no array", "more", "shape", "text"])
def test_an_incomplete_file_is_one_line_with_its_name(tmp_path, damage):
    header, arrays = rank_models().pack()
    path = tmp_path / "rank_models.npz"
    content = {"rank_models": header}
    if damage == "no rank models":
        content = {}
    elif damage == "no array":
        del arrays["rank_model/1/floor"]
    elif damage == "more":
        header[0]["gamma"] = 1
    elif damage == "shape":
        arrays["rank_model/0/alpha"] = arrays["rank_model/0/alpha"][:, :2]
    else:
        content = {"rank_models": ["f0"]}
    write_store(path, "rank_model", content, arrays)
    with pytest.raises(StoreError, match="is incomplete") as caught:
        load_rank_models(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rank_models_of_before_the_prior_still_load(tmp_path):
    header, arrays = rank_models().pack()
    for entry in header:
        del entry["prior_speakers"], entry["origin"], entry["left_out"]
    write_store(tmp_path / "old.npz", "rank_model", {"rank_models": header}, arrays)
    for rank_model in load_rank_models(tmp_path / "old.npz")[0]:
        assert (rank_model.origin, rank_model.prior_speakers, rank_model.prior_share) == (
            "own",
            0.0,
            0.0,
        )
        assert rank_model.left_out == ()


def test_a_rank_model_remembers_whose_tests_were_left_out(tmp_path):
    save_rank_models(
        tmp_path / "rank_model.npz", RankModels([some_rank_model(left_out=("ann", "bob"))])
    )
    (rank_model,) = load_rank_models(tmp_path / "rank_model.npz")[0]
    assert rank_model.left_out == ("ann", "bob")


def test_a_rank_model_is_read_when_it_is_asked_for(tmp_path):
    path = tmp_path / "speakers.npz"
    population(rank_models=[some_rank_model(), some_rank_model(session="same")]).save(path)
    header, arrays = read_store(path, "population")
    arrays["rank_model/1/alpha"] = -arrays["rank_model/1/alpha"]
    del header["kind"], header["schema"]
    write_store(path, "population", header, arrays)
    rank_models = Population.load(path).rank_models
    assert rank_models.kinds == [(("f0",), "cross"), (("f0",), "same")]
    assert rank_models[("f0",), "cross"].features == ("f0",)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"speakers\.npz: is incomplete \(alpha"):
            rank_models.find(("f0",), "same")


def test_rank_models_of_a_store_can_be_sent_to_a_worker(tmp_path):
    path = tmp_path / "speakers.npz"
    population(rank_models=[some_rank_model()]).save(path)
    (sent,) = pickle.loads(pickle.dumps(Population.load(path).rank_models))
    assert_array_equal(sent.alpha.astype(np.float32), some_rank_model().alpha.astype(np.float32))
    assert sent.rows == some_rank_model().rows
