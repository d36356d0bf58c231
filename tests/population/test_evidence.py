"""Evidence rank models: kept, read again, interpolated, and refused where they are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import StoreError
from monitor.files import Arrays
from monitor.maths.evidence import ConditionEffect, ConditionEffects
from monitor.population.population import Population, load_rank_models, save_rank_models
from monitor.population.rank_model import EvidenceModel, RankModels
from tests.population.rank_models import evidence_model, some_rank_model


def with_evidence(**other):
    rank_model = some_rank_model(("f0", "phones"), template_lengths=(10.0, 60.0))
    return replace(rank_model, evidence=evidence_model(rank_model, **other))


def test_a_store_keeps_it(tmp_path):
    rank_model = with_evidence()
    save_rank_models(tmp_path / "rank_model.npz", RankModels([rank_model, some_rank_model()]))
    first, second = load_rank_models(tmp_path / "rank_model.npz")[0]
    assert second.evidence is None
    again, mine = first.evidence, rank_model.evidence
    assert again is not None
    assert again.cohort == mine.cohort
    for name in ("lengths", "template_lengths"):
        assert_array_equal(getattr(again, name), getattr(mine, name))
    for name in ("intercept", "slopes", "support", "area"):
        assert_allclose(getattr(again, name), getattr(mine, name), rtol=1e-3, equal_nan=True)
    # the rank model itself is kept as it is, to single precision
    assert_allclose(again.intercept[0], mine.intercept[0], rtol=1e-7)


def test_at_the_grid_it_is_the_rank_model_and_between_it_is_in_between():
    rank_model = with_evidence().evidence
    at = rank_model.at_template(10.0)
    point = at.at(rank_model.lengths)
    assert_allclose(point.intercept.T, rank_model.intercept[:, :, 0])
    assert_allclose(np.moveaxis(point.slopes, 1, 0), rank_model.slopes[:, :, 0])
    assert_allclose(point.support, rank_model.support[:, 0])
    middle = np.sqrt(rank_model.lengths[1] * rank_model.lengths[2])
    between = at.at(np.array([middle])).intercept[0]
    assert_allclose(between, rank_model.intercept[:, 1:3, 0].mean(axis=1))
    half = rank_model.at_template(float(np.sqrt(600.0))).at(rank_model.lengths)
    assert_allclose(half.support, np.maximum.accumulate(rank_model.support, axis=1).mean(axis=1))


def test_before_the_grid_it_fades_and_beyond_it_stands():
    rank_model = with_evidence().evidence
    at = rank_model.at_template(200.0)
    first, last = rank_model.lengths[[0, -1]]
    early = at.at(np.array([0.0, first / 4, last, 50 * last]))
    assert_array_equal(early.intercept[0], 0)
    assert_array_equal(early.slopes[0], 0)
    assert_allclose(early.intercept[1], rank_model.intercept[:, 0, 1] / 4)
    assert_allclose(early.intercept[3], early.intercept[2])
    assert_allclose(early.support[3], rank_model.support[-1, 1])


@given(
    cells=st.lists(st.lists(st.one_of(st.floats(0, 20), st.none()), min_size=2, max_size=2),
                   min_size=4, max_size=4),
    template=st.floats(1, 300),
)  # fmt: skip
def test_what_shorter_speech_supports_longer_speech_supports(cells, template):
    support = np.array(cells, dtype=float)
    assume(np.isfinite(support).any())
    rank_model = with_evidence().evidence
    hole = np.isnan(support)
    rank_model = replace(
        rank_model,
        support=support,
        area=np.where(hole, np.nan, rank_model.area),
        intercept=np.where(hole, np.nan, rank_model.intercept),
        slopes=np.where(hole[..., None], np.nan, rank_model.slopes),
    )
    seconds = np.geomspace(0.05, 500, 300)
    point = rank_model.at_template(template).at(seconds)
    assert (np.diff(point.support) >= -1e-12).all()
    # what a length supports by itself holds there
    for t, length in enumerate(rank_model.lengths):
        if not hole[t].any():
            own = rank_model.at_template(template).at(np.array([length])).support[0]
            assert own >= support[t].min() - 1e-9
    assert point.support[-1] <= np.nanmax(support) + 1e-9
    longer = rank_model.at_template(2 * template).at(seconds)
    if not hole.any():
        assert (longer.support >= point.support - 1e-9).all()


def test_the_shipped_rank_models_support_no_less_with_more_speech():
    for rank_model in Population.reference().rank_models:
        if rank_model.evidence is not None:
            support = rank_model.evidence.at_template(60.0).at(np.geomspace(0.5, 900, 200)).support
            assert (np.diff(support) >= -1e-12).all()


def test_a_moment_does_not_depend_on_the_others():
    at = with_evidence().evidence.at_template(20.0)
    seconds = np.geomspace(0.1, 100, 40)
    whole = at.at(seconds)
    for r in (0, 17, 39):
        one = at.at(seconds[r : r + 1])
        for name in ("intercept", "slopes", "support", "area"):
            assert_array_equal(getattr(one, name)[0], getattr(whole, name)[r])


def test_cells_that_were_not_reached_are_passed_over():
    rank_model = with_evidence()
    for name in ("intercept", "slopes", "support", "area"):
        values = getattr(rank_model.evidence, name)
        index = (0, 0) if values.ndim == 2 else (slice(None), 0, 0)
        values[index] = np.nan
    assert_allclose(rank_model.evidence.at_template(10.0).at(rank_model.lengths[:1]).support,
                    rank_model.evidence.support[0, 1])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("slopes", lambda x: -x),
        ("support", lambda x: -x - 1),
        ("area", lambda x: x + 1),
        ("intercept", lambda x: x * 1e6),
        ("intercept", lambda x: x[:1]),
        ("slopes", lambda x: x[..., 0]),
        ("support", lambda x: x * np.nan),
        ("intercept", lambda x: x * np.nan),
        ("cohort", lambda x: x[:1]),
        ("cohort", lambda x: ("not a mark", *x[1:])),
        ("cohort", lambda x: (None, *x[1:])),
    ],
)
def test_no_nonsense(name, change):
    rank_model = with_evidence().evidence
    with pytest.raises(StoreError):
        replace(rank_model, **{name: change(getattr(rank_model, name))})


def test_a_rank_model_and_its_evidence_are_of_one_grid():
    rank_model = with_evidence()
    with pytest.raises(StoreError, match="another grid"):
        replace(
            rank_model,
            evidence=evidence_model(some_rank_model(("f0",), template_lengths=(10.0, 60.0))),
        )


def test_no_parts_missing():
    rank_model = with_evidence()
    header, arrays = RankModels([rank_model]).pack()
    for name in [n for n in arrays if "evidence" in n]:
        less = {key: value for key, value in arrays.items() if key != name}
        for wrong in (less, arrays | {name: arrays[name].astype(int)}):
            with pytest.raises(StoreError, match=r"p\.npz: is incomplete"):
                next(iter(RankModels.unpack(header, Arrays(wrong), Path("p.npz"))))
    (made,) = RankModels.unpack(header, Arrays(arrays), Path("p.npz"))
    assert isinstance(made.evidence, EvidenceModel)


def test_what_conditions_do_is_kept_and_refused_where_it_is_none(tmp_path):
    slopes = np.linspace(-0.5, 0, 20).reshape(2, 10)
    short = ConditionEffect(np.linspace(-1, 1, 10), slopes, np.arange(10.0))
    effects = ConditionEffects(np.array([5.0, 20.0]), (short, replace(short, slope=0.5 * slopes)))
    plain = with_evidence()
    rank_model = replace(plain, evidence=replace(plain.evidence, conditions=effects))
    save_rank_models(tmp_path / "rank_model.npz", RankModels([rank_model]))
    (again,) = load_rank_models(tmp_path / "rank_model.npz")[0]
    assert again.evidence is not None
    for seconds, effect in zip((5.0, 20.0), effects.effects, strict=True):
        found = again.evidence.at_template(seconds).conditions
        for name in ("shift", "slope", "support"):
            assert_allclose(getattr(found, name), getattr(effect, name), rtol=1e-6)
    between = again.evidence.at_template(10.0).conditions
    assert between is not None
    assert_allclose(between.slope, 0.75 * slopes, rtol=1e-6)
    for bad in (
        *(
            replace(effects, effects=(effect, effects.effects[1]))
            for effect in (
                replace(short, shift=np.full(10, np.nan)),
                replace(short, slope=np.zeros(6)),
                replace(short, support=np.full(10, -1.0)),
            )
        ),
        replace(effects, template_lengths=np.array([5.0])),
        replace(effects, template_lengths=np.array([20.0, 5.0])),
        replace(effects, template_lengths=np.array([0.0, 5.0])),
        ConditionEffects(np.array([]), ()),
    ):
        with pytest.raises(StoreError, match="condition"):
            replace(plain.evidence, conditions=bad)
