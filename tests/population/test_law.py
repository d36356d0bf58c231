from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import StoreError
from monitor.population.cohort import write_store
from monitor.population.law import Laws
from monitor.population.population import load_laws, save_laws
from tests.population.laws import rank_law


def same(one, other, rtol=0.0):
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert_allclose(a, b, rtol=rtol, err_msg=field.name)
        else:
            assert a == b


def laws():
    degenerate = rank_law(("f0",), "same", template_lengths=(10, 60), seed=1)
    degenerate.binomial[:, -1] = True
    degenerate.alpha[:, -1], degenerate.beta[:, -1] = 0.0, 1.0
    degenerate.alpha[:, 0, 1] = degenerate.beta[:, 0, 1] = np.nan
    return Laws([rank_law(), degenerate, rank_law(("f0", "phones"))])


def test_round_trip(tmp_path):
    path = tmp_path / "laws.npz"
    save_laws(path, laws())
    loaded = load_laws(path)[0]
    assert len(loaded) == 3
    for one, other in zip(laws(), loaded, strict=True):
        same(one, other, rtol=1e-7)
        assert_array_equal(one.lengths, other.lengths)
    save_laws(path, loaded)
    for one, other in zip(loaded, load_laws(path)[0], strict=True):
        same(one, other)


def test_finding():
    made = laws()
    found = made.find(("f0",), "same")
    assert found is not None
    assert (found.features, found.session) == (("f0",), "same")
    assert made.find(("phones",), "cross") is None
    assert made.find(("f0", "phones"), "same") is None
    assert made.find(("phones", "f0"), "cross") is made.find(("f0", "phones"), "cross")


def test_of_two_about_the_same_the_later_stands():
    first, second = rank_law(seed=0), rank_law(seed=1)
    made = Laws([first, rank_law(("phones",)), second])
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
    with pytest.raises(StoreError, match="a law"):
        replace(rank_law(), **change)


def test_a_law_without_resamples_has_no_limits():
    with pytest.raises(StoreError, match="at least one resample"):
        rank_law(replicates=0)


@pytest.mark.parametrize("damage", ["no laws", "no array", "more", "shape", "text"])
def test_an_incomplete_file_is_one_line_with_its_name(tmp_path, damage):
    header, arrays = laws().pack()
    path = tmp_path / "laws.npz"
    content = {"laws": header}
    if damage == "no laws":
        content = {}
    elif damage == "no array":
        del arrays["law/1/floor"]
    elif damage == "more":
        header[0]["gamma"] = 1
    elif damage == "shape":
        arrays["law/0/alpha"] = arrays["law/0/alpha"][:, :2]
    else:
        content = {"laws": ["f0"]}
    write_store(path, "law", content, arrays)
    with pytest.raises(StoreError, match="is incomplete") as caught:
        load_laws(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_laws_of_before_the_prior_still_load(tmp_path):
    header, arrays = laws().pack()
    for entry in header:
        del entry["prior_speakers"], entry["origin"], entry["left_out"]
    write_store(tmp_path / "old.npz", "law", {"laws": header}, arrays)
    for law in load_laws(tmp_path / "old.npz")[0]:
        assert (law.origin, law.prior_speakers, law.prior_share) == ("own", 0.0, 0.0)
        assert law.left_out == ()


def test_a_law_remembers_whose_tests_were_left_out(tmp_path):
    save_laws(tmp_path / "law.npz", Laws([rank_law(left_out=("ann", "bob"))]))
    (law,) = load_laws(tmp_path / "law.npz")[0]
    assert law.left_out == ("ann", "bob")
