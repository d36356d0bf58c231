import stat
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from monitor.errors import UsageError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.maths.scores import OF_COUNTS, OF_VECTORS
from monitor.population import templates as module
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from tests.population.rank_models import population, some_rank_model


def same(one, other):
    assert one.speakers == other.speakers
    assert (one.names, one.mismatched, one.about) == (other.names, other.mismatched, other.about)
    assert one.fingerprint() == other.fingerprint()  # of all that templates are
    for name, templates in one.features.items():
        assert templates.slices.dtype == other.features[name].slices.dtype
        assert_array_equal(templates.slices, other.features[name].slices)
    assert one.rank_models.kinds == other.rank_models.kinds


def of_f0(names, slices, offsets):
    spec = FeatureSpec("f0", HISTOGRAM, slices.shape[1], 0.01)
    people = [Speaker(name) for name in names]
    return Population(people, np.array(offsets), {"f0": FeatureTemplates(spec, slices)})


def embedded(speakers=4):
    vectors = np.random.default_rng(0).normal(size=(2 * speakers, 3))
    return Population(
        [Speaker(f"e{i}") for i in range(speakers)],
        np.arange(0, 2 * speakers + 1, 2),
        {"identity": FeatureTemplates(FeatureSpec("identity", EMBEDDING, 3, 1.5), vectors)},
    )


@pytest.mark.parametrize(
    "made",
    [
        population(rank_models=[some_rank_model(), some_rank_model(session="same")]),
        population((5, 100, 0, 35), ("f0", "phones")),
        embedded(),
    ],
    ids=["rank_models", "two features", "embeddings"],
)
def test_round_trip(made, tmp_path):
    path = tmp_path / "speakers.npz"
    made.save(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["speakers.npz"]
    same(made, Population.load(path))
    Population.load(str(path)).save(path)
    same(made, Population.load(path))


def naive_templates(made, feature, scoring):
    """Slice by slice."""
    slices, count = made.features[feature].slices.astype(float), int(scoring.seconds / 5)
    first = made.offsets[:-1][scoring.members]
    return np.array([sum(slices[place + s] for s in range(count)) for place in first])


@pytest.mark.parametrize(
    ("seconds", "asked", "common", "left_out"),
    [
        ((100, 80, 140), None, 80, ()),
        # all are cut to the shortest, however much more the others have
        ((100, 75, 100), None, 75, ()),
        ((30, 120, 120, 120, 120), None, 30, ()),
        # unless that would leave too little to compare
        ((100, 95, 75, 0, 100), None, 75, (3,)),
        ((25, 120, 120, 120, 120), None, 120, (0,)),
        ((120, 10, 10, 10, 10), None, 10, ()),
        ((15, 20, 20, 20, 20), None, 20, (0,)),
        ((100, 75, 100), 79.9, 75, ()),
        ((100, 75, 100), 80, 80, (1,)),
    ],
)
def test_templates_are_cut_to_one_length(seconds, asked, common, left_out):
    made = population(seconds, ("f0", "phones"))
    scoring = made.scoring(asked)
    assert scoring.seconds == common
    assert tuple(np.flatnonzero(~scoring.members)) == left_out
    for feature in made.features:
        cut = made.templates(feature, scoring)
        assert cut.dtype == np.int64
        assert_array_equal(cut, naive_templates(made, feature, scoring))
        # one length for all of them
        assert (cut.sum(axis=1) == common / 5 * 60).all()


def test_templates_of_embeddings_and_of_narrow_counts():
    made = embedded()
    scoring = made.scoring(5)
    found = made.templates("identity", scoring)
    np.testing.assert_allclose(found, naive_templates(made, "identity", scoring))
    assert found.dtype == np.float64
    narrow = of_f0("ab", np.full((4, 2), 250, dtype=np.uint8), [0, 2, 4])
    assert (narrow.templates("f0", narrow.scoring()) == 500).all()


def test_no_template_is_longer_than_the_watched_one():
    made = population((100, 10, 100, 60, 120), ("f0",))
    for name, have in zip(made.names, (100, 10, 100, 60, 100), strict=True):
        scoring = made.scoring(watch=name)
        assert scoring.seconds == have
        assert scoring.members[made.index(name)]
        assert (made.templates("f0", scoring).sum(axis=1) == have / 5 * 60).all()
    assert population((10, 120)).scoring(watch="s0").seconds == 10


@pytest.mark.parametrize("block", [1, 2, 3, 1000])
def test_templates_are_prepared_in_blocks_to_the_last_bit(monkeypatch, block):
    monkeypatch.setattr(module, "_BLOCK", block)
    for made, feature, ways in (
        (population((100, 10, 100, 60, 100, 90, 100), ("f0",)), "f0", OF_COUNTS),
        (embedded(), "identity", OF_VECTORS),
    ):
        scoring = made.scoring()
        for way in ways.values():
            whole = made.templates(feature, scoring, by_slice=way.by_slice)
            assert_array_equal(made.prepared(feature, scoring, way), way.prepare(whole))


def test_joining_borrows_the_rank_models():
    old, new = population(rank_models=[some_rank_model()]), population((20, 5), prefix="n", seed=1)
    joined = old.joined(new)
    assert joined.names == old.names + new.names
    assert joined.mismatched
    assert not old.mismatched
    assert list(joined.rank_models) == list(old.rank_models)
    assert joined.template_seconds.tolist() == [20] * 6 + [20, 5]
    everybody = joined.scoring(5)
    assert_array_equal(
        joined.templates("f0", everybody),
        np.vstack([each.templates("f0", each.scoring(5)) for each in (old, new)]),
    )
    assert joined.joined(population(prefix="m")).mismatched
    # rank models learnt on everybody are their own; those that name others, or nobody, are not
    for learnt_from, mismatched in ((joined.names, False), (old.names, True), ((), True)):
        rank_models = RankModels([some_rank_model(learnt_from=learnt_from)])
        assert joined.with_rank_models(rank_models).mismatched == mismatched
    assert not population().joined(new).mismatched
    ((speaker, note),) = joined.overlapping(["other", "s0002"])
    assert (speaker.name, note.label) == ("s2", "2.flac")
    assert [speaker.name for speaker, _ in joined.overlapping(["x"])] == list(joined.names)
    assert joined.overlapping([]) == joined.overlapping(["other"]) == []


def test_joining_keeps_wide_and_narrow_counts():
    narrow, wide = (population(prefix=prefix).features["f0"].slices for prefix in "sn")
    parts = narrow[:4].astype(np.uint8), wide[:4] + 70_000
    one, other = (
        of_f0(names, each, [0, 2, 4]) for names, each in zip(("ab", "cd"), parts, strict=True)
    )
    assert_array_equal(one.joined(other).features["f0"].slices, np.vstack(parts))


def test_the_fingerprint_follows_the_content():
    made = population()
    people, offsets, f0 = made.speakers, made.offsets, made.features["f0"]
    one_more, moved = f0.slices.copy(), offsets.copy()
    one_more[3, 4] += 1
    moved[1] += 1
    different = (
        made,
        population(seed=1),
        Population([Speaker("other"), *people[1:]], offsets, made.features),
        Population(people, moved, made.features),
        Population(people, offsets, {"f0": replace(f0, slices=one_more)}),
        Population(people, offsets, {"pitch": f0}),
        made.joined(population(prefix="n")),
    )
    prints = {each.fingerprint() for each in different}
    assert len(prints) == 7
    assert all(len(each) == 16 for each in prints)
    assert population(rank_models=[some_rank_model()]).fingerprint() in prints


@pytest.mark.parametrize(
    ("words", "call"),
    [
        *((r"template_seconds=.* must be at least 5", partial(population().scoring, asked))
          for asked in (0, 4.9, -10, float("nan"), float("inf"))),
        (r"fewer than two templates have 100 .* longest has 100",
         partial(population((100, 75)).scoring, 100)),
        ("fewer than two templates", population((10, 120)).scoring),
        ("longest has 20", partial(population().scoring, 25)),
        ("longest has 0", of_f0("", np.zeros((0, 2), int), [0]).scoring),
        ("no templates of 'style', only of f0, phones",
         lambda: population(features=("f0", "phones")).templates("style", population().scoring())),
        ("'Johanes' is not enrolled.* did you mean 'Johannes'",
         partial(of_f0(("Anna", "Johannes"), np.ones((2, 2), int), [0, 1, 2]).index, "Johanes")),
        ("'eve' is not enrolled", partial(population().without, "eve")),
        ("enrolled: 6 speakers", partial(population().index, "zzz")),
        ("s0, s1, s2 enrolled already; choose another name",
         partial(population().joined, population())),
        ("no 'phones' of size 12",
         partial(population(features=("f0", "phones")).joined, population(prefix="n"))),
        ("no 'f0' of size 12", partial(population().joined, population(prefix="n", size=11))),
    ],
)  # fmt: skip
def test_refusals(words, call):
    with pytest.raises(UsageError, match=words):
        call()
