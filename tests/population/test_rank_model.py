"""Rank models, with their evidence and maxima: kept, found and read again."""

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from monitor.errors import StoreError
from monitor.maths.condition import NEW, UNLIKE
from monitor.maths.evidence import ConditionEffect, ConditionEffects
from monitor.population.population import Population, load_rank_models, save_rank_models
from monitor.population.rank_model import Maxima, RankModels
from monitor.population.store import write_store
from tests.population.rank_models import evidence_model, population, some_rank_model


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
    joint = some_rank_model(("f0", "phones"), left_out=("ann", "bob"))
    return RankModels([some_rank_model(), degenerate, joint])


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
    assert (found.features, found.session) == (("f0",), "same")
    assert made.find(("phones",), "cross") is None
    assert made.find(("f0", "phones"), "same") is None
    assert made.find(("phones", "f0"), "cross") is made.find(("f0", "phones"), "cross")
    # of two about the same the later stands
    second = some_rank_model(seed=1)
    made = RankModels([some_rank_model(seed=0), some_rank_model(("phones",)), second])
    assert len(made) == 2
    assert made.find(("f0",), "cross") is second


def test_rank_models_of_before_the_prior_still_load(tmp_path):
    header, arrays = rank_models().pack()
    for entry in header:
        del entry["prior_speakers"], entry["origin"], entry["left_out"]
    write_store(tmp_path / "old.npz", "rank_model", {"rank_models": header}, arrays)
    for old in load_rank_models(tmp_path / "old.npz")[0]:
        assert (old.origin, old.prior_speakers, old.prior_share) == ("own", 0.0, 0.0)
        assert old.left_out == ()


def test_evidence_and_what_conditions_do_to_it_are_kept(tmp_path):
    made = some_rank_model(("f0", "phones"), template_lengths=(10.0, 60.0))
    slopes = np.linspace(-0.5, 0, 2 * UNLIKE).reshape(2, UNLIKE)
    short = ConditionEffect(np.linspace(-1, 1, UNLIKE), slopes, np.arange(1.0 * UNLIKE))
    effects = ConditionEffects(np.array([5.0, 20.0]), (short, replace(short, slope=0.5 * slopes)))
    mine = evidence_model(made, conditions=effects)
    made = replace(made, evidence=mine)
    save_rank_models(tmp_path / "rank_model.npz", RankModels([made, some_rank_model()]))
    first, second = load_rank_models(tmp_path / "rank_model.npz")[0]
    assert second.evidence is None
    again = first.evidence
    assert again.cohort == mine.cohort
    for name in ("lengths", "template_lengths"):
        assert_array_equal(getattr(again, name), getattr(mine, name))
    for name in ("intercept", "slopes", "support", "area"):
        assert_allclose(getattr(again, name), getattr(mine, name), rtol=1e-3, equal_nan=True)
    # the rank model itself is kept as it is, to single precision
    assert_allclose(again.intercept[0], mine.intercept[0], rtol=1e-7)
    for seconds, effect in zip((5.0, 20.0), effects.effects, strict=True):
        found = again.at_template(seconds).conditions
        for name in ("shift", "slope", "support"):
            assert_allclose(getattr(found, name), getattr(effect, name), rtol=1e-6)
    between = again.at_template(10.0).conditions
    assert_allclose(between.slope, 0.75 * slopes, rtol=1e-6)


def test_an_older_store_says_nothing_of_new_streams(tmp_path):
    mine = some_rank_model(("f0", "phones"), template_lengths=(10.0, 60.0))
    effect = ConditionEffect(np.ones(UNLIKE), np.zeros((2, UNLIKE)), np.full(UNLIKE, 9.0))
    effects = ConditionEffects(np.array([30.0]), (effect,))
    mine = replace(mine, evidence=evidence_model(mine, conditions=effects))
    header, arrays = RankModels([mine]).pack()
    (name,) = (each for each in arrays if each.endswith("conditions"))
    arrays[name] = arrays[name][..., :NEW]
    write_store(tmp_path / "old.npz", "rank_model", {"rank_models": header}, arrays)
    (old,) = load_rank_models(tmp_path / "old.npz")[0]
    found = old.evidence.at_template(30.0).conditions
    new, known = np.eye(UNLIKE)[[NEW, 0]]
    assert [float(found.evaluate_at(q)[0]) for q in (new, known)] == [0.0, 1.0]
    assert found.evaluate_at(new)[2] > found.evaluate_at(known)[2] == 9.0


def test_maxima_travel_with_their_rank_model_and_all_of_it_to_a_worker(tmp_path):
    values = np.array([[[1.0, 2.5], [0.5, np.nan]], [[3.0, 3.0], [1.0, np.nan]]], np.float16)
    mine = Maxima(
        ("closed_set_bits", "gain_bits"), np.array([10.0, 600.0]), values,
        np.array([700.0, 60.0]), ("ann", "bob"), 100.0,
    )  # fmt: skip
    path = tmp_path / "p.npz"
    models = [some_rank_model(maxima=mine), some_rank_model(session="same")]
    population(rank_models=models).save(path)
    Population.load(path).only(["f0"]).save(path)
    for read in (Population.load(path), pickle.loads(pickle.dumps(Population.load(path)))):
        with_maxima, without = read.rank_models
        found = with_maxima.maxima
        assert_array_equal(found.values, mine.values)
        assert (found.fields, found.speakers) == (mine.fields, mine.speakers)
        assert found.template_seconds == 100.0
        assert without.maxima is None
        assert_array_equal(without.alpha, models[1].alpha.astype(np.float32))
        assert without.rows == models[1].rows


def test_where_longer_speech_shows_less_the_model_of_shorter_speech_holds():
    grid = some_rank_model(template_lengths=(10.0, 30.0))
    raw = evidence_model(grid)
    means = {10.0: (3.0, 6.0, 5.0, 5.5), 30.0: (3.0, 6.0, 7.0, None)}
    rows = tuple(
        {"T": t, "D": d, "evidence_bits": bits}
        for d, column in means.items()
        for t, bits in zip(grid.lengths, column, strict=True)
    )
    held = replace(grid, rows=rows, evidence=raw).evidence
    for name in ("intercept", "slopes"):
        before, after = getattr(raw, name), getattr(held, name)
        assert_array_equal(after[:, :, 0], before[:, [0, 1, 1, 1], 0])
        assert_array_equal(after[:, :, 1], before[:, :, 1])
    at_two, at_minute = (held.at_template(10.0).evaluate_at(np.array([t])) for t in (2.0, 60.0))
    assert_array_equal(at_minute.slopes, at_two.slopes)
    again = replace(grid, rows=rows, evidence=held).evidence
    assert_array_equal(again.intercept, held.intercept)


def test_of_what_ships_no_length_shows_less_of_the_same_scores_where_its_people_showed_less():
    """Mean evidence of the people left out grows with speech, or the last that grew holds."""
    for model in Population.reference().rank_models:
        for place, d in enumerate(model.template_lengths):
            cells = sorted((row["T"], row["evidence_bits"] or -np.inf) for row in model.rows
                           if row["D"] == d)  # fmt: skip
            best = -np.inf
            for t, bits in cells:
                here = int(np.flatnonzero(model.lengths == t)[0])
                if bits >= best:
                    best, last = bits, here
                elif np.isfinite(bits):
                    slopes = model.evidence.slopes[0, :, place]
                    assert_array_equal(slopes[here], slopes[last])


@pytest.mark.parametrize("row", [
    {"T": 0.5, "D": 10.0, "evidence_bits": "much"},
    {"T": 0.5, "D": 10.0, "evidence_bits": [1.0]},
    {"T": "all", "D": 10.0, "evidence_bits": 1.0},
    {"evidence_bits": 1.0},
])  # fmt: skip
@pytest.mark.parametrize("with_evidence", [False, True])
def test_a_table_whose_mean_evidence_is_no_number_is_refused(tmp_path, row, with_evidence):
    model = some_rank_model()
    if with_evidence:
        model = replace(model, evidence=evidence_model(model))
    object.__setattr__(model, "rows", (row,))  # as a store from elsewhere may have it
    path = tmp_path / "models.npz"
    save_rank_models(path, RankModels([model]))
    with pytest.raises(StoreError):
        list(load_rank_models(path))
