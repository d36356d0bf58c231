from __future__ import annotations

import stat
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from monitor.errors import SchemaError, StoreError, UsageError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.maths.scores import OF_COUNTS, OF_VECTORS
from monitor.population import population as module
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import SourceNote, Speaker
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.population.store import read_store, write_store
from tests.population.rank_models import population, some_rank_model


def same(one, other):
    assert one.speakers == other.speakers
    assert one.names == other.names
    assert_array_equal(one.offsets, other.offsets)
    assert one.features.keys() == other.features.keys()
    for name, templates in one.features.items():
        again = other.features[name]
        assert templates.spec == again.spec
        assert templates.slices.dtype == again.slices.dtype
        assert_array_equal(templates.slices, again.slices)
    assert (one.mismatched, one.about) == (other.mismatched, other.about)
    assert one.fingerprint() == other.fingerprint()
    assert [(rank_model.features, rank_model.session) for rank_model in one.rank_models] == [
        (rank_model.features, rank_model.session) for rank_model in other.rank_models
    ]


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
        population(rank_models=[some_rank_model()]).joined(population(prefix="n")),
        embedded(),
    ],
    ids=["rank_models", "two features", "mismatched", "embeddings"],
)
def test_round_trip(made, tmp_path):
    path = tmp_path / "speakers.npz"
    made.save(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["speakers.npz"]
    same(made, Population.load(path))
    Population.load(str(path)).save(path)
    same(made, Population.load(path))


def test_a_store_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "speakers.npz"
    population().save(path)

    def fail(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(StoreError, match="No space left"):
        population(seed=1).save(path)
    monkeypatch.undo()
    same(population(), Population.load(path))
    assert list(tmp_path.iterdir()) == [path]


def test_a_newer_store(tmp_path):
    path = tmp_path / "speakers.npz"
    before = population()
    write_store(path, "population", {"schema": 99}, {"offsets": before.offsets})
    with pytest.raises(SchemaError, match="schema 99"):
        Population.load(path)


def _drop(header, arrays, what):
    if what in header:
        del header[what]
    elif what in arrays:
        del arrays[what]
    elif what == "note":
        del header["speakers"][0]["sources"][0]["hashes"]
    elif what == "speaker":
        header["speakers"].pop()
    elif what == "twice":
        header["speakers"][1] = header["speakers"][0]
    elif what == "no kind":
        del header["features"]["f0"]["kind"]
    elif what == "width":
        arrays["slices/f0"] = arrays["slices/f0"][:, :5]
    elif what == "order":
        arrays["offsets"] = arrays["offsets"][::-1].copy()
    elif what == "slice_seconds other":
        header["slice_seconds"] = 2.0
    elif what == "rank_model":
        arrays["rank_model/0/alpha"] = arrays["rank_model/0/alpha"][1:]


@pytest.mark.parametrize(
    "what",
    ["speakers", "features", "rank_models", "mismatched", "about", "slice_seconds", "offsets",
     "slices/f0",
     "rank_model/0/beta", "note", "speaker", "twice", "no kind", "width", "order",
     "slice_seconds other",
     "rank_model"],
)  # fmt: skip
def test_an_incomplete_store_is_one_line_with_its_name(tmp_path, what):
    path = tmp_path / "speakers.npz"
    population(rank_models=[some_rank_model()]).save(path)
    header, arrays = read_store(path, "population")
    _drop(header, arrays, what)
    del header["kind"], header["schema"]
    write_store(path, "population", header, arrays)
    with pytest.raises(StoreError, match="is incomplete") as caught:
        list(Population.load(path).rank_models)  # which are read when they are asked for
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_foreign_and_directory(tmp_path):
    foreign = tmp_path / "notes.npz"
    foreign.write_text("not a population")
    for path in (tmp_path, tmp_path / "nothing.npz", foreign):
        with pytest.raises(StoreError) as caught:
            Population.load(path)
        assert str(path) in str(caught.value)


def test_parts_that_do_not_belong_together():
    made = population()
    for speakers, offsets in (
        (made.speakers[:-1], made.offsets),
        (made.speakers, made.offsets[:-1]),
        (made.speakers, made.offsets + 1),
        (made.speakers, made.offsets[[0, 2, 1, 3, 4, 5, 6]]),
    ):
        with pytest.raises(StoreError, match="belong together"):
            Population(speakers, offsets, made.features)
    with pytest.raises(StoreError, match="same name"):
        Population((made.speakers[0],) * 6, made.offsets, made.features)
    narrow = {"f0": replace(made.features["f0"], spec=replace(made.features["f0"].spec, size=11))}
    with pytest.raises(StoreError, match=r"'f0' must have shape \(slices, 11\)"):
        Population(made.speakers, made.offsets, narrow)


def naive_templates(made, feature, scoring):
    """Slice by slice."""
    rows = []
    for j in range(len(made)):
        if not scoring.members[j]:
            continue
        total = 0 * made.features[feature].slices[0].astype(float)
        for s in range(int(scoring.seconds / 5)):
            total = total + made.features[feature].slices[made.offsets[j] + s]
        rows.append(total)
    return np.array(rows)


@pytest.mark.parametrize(
    ("seconds", "asked", "common", "left_out"),
    [
        ((100, 100, 100), None, 100, ()),
        ((100, 80, 140), None, 80, ()),
        # all are cut to the shortest, however much more the others have
        ((100, 75, 100), None, 75, ()),
        ((65, 65, 80, 100, 100, 100, 100), None, 65, ()),
        ((30, 120, 120, 120, 120), None, 30, ()),
        # unless that would leave too little to compare
        ((100, 95, 75, 0, 100), None, 75, (3,)),
        ((25, 120, 120, 120, 120), None, 120, (0,)),
        ((10, 25, 120, 120, 120), None, 120, (0, 1)),
        ((120, 10, 10, 10, 10), None, 10, ()),
        ((15, 20, 20, 20, 20), None, 20, (0,)),
        ((100, 75, 100), 75, 75, ()),
        ((100, 75, 100), 79.9, 75, ()),
        ((100, 75, 100), 80, 80, (1,)),
        ((100, 75, 100), 5, 5, ()),
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


def test_what_all_but_much_shorter_templates_have():
    for seconds, common in (
        ((100, 75, 100), 100),
        ((100, 95, 75, 0, 100), 95),
        # the second is within 20 % of the shortest of the rest, but not of the others
        ((65, 65, 80, 100, 100, 100, 100), 80),
        ((120, 10, 10, 10, 10), 10),
    ):
        assert population(seconds).common_seconds == common


def test_no_template_is_longer_than_the_watched_one():
    made = population((100, 10, 100, 60, 120), ("f0",))
    for name, have in zip(made.names, (100, 10, 100, 60, 100), strict=True):
        scoring = made.scoring(watch=name)
        assert scoring.seconds == have
        assert scoring.members[made.index(name)]
        assert (made.templates("f0", scoring).sum(axis=1) == have / 5 * 60).all()
    assert population((10, 120)).scoring(watch="s0").seconds == 10


def test_templates_of_embeddings():
    made = embedded()
    scoring = made.scoring(5)
    np.testing.assert_allclose(
        made.templates("identity", scoring), naive_templates(made, "identity", scoring)
    )
    assert made.templates("identity", scoring).dtype == np.float64


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


def test_narrow_counts_do_not_overflow():
    slices = np.full((4, 2), 250, dtype=np.uint8)
    made = Population(
        [Speaker("a"), Speaker("b")],
        np.array([0, 2, 4]),
        {"f0": FeatureTemplates(FeatureSpec("f0", HISTOGRAM, 2, 0.01), slices)},
    )
    assert (made.templates("f0", made.scoring()) == 500).all()


@pytest.mark.parametrize("asked", [0, 4.9, -10, float("nan"), float("inf")])
def test_a_length_that_is_none_is_refused(asked):
    with pytest.raises(UsageError, match=r"template_seconds=.* must be at least 5"):
        population().scoring(asked)


def test_too_few_templates_are_refused():
    with pytest.raises(UsageError, match=r"fewer than two templates have 100 .* longest has 100"):
        population((100, 75)).scoring(100)
    with pytest.raises(UsageError, match="fewer than two templates"):
        population((10, 120)).scoring()
    with pytest.raises(UsageError, match="longest has 20"):
        population().scoring(25)
    nobody = Population(
        [],
        np.array([0]),
        {"f0": FeatureTemplates(FeatureSpec("f0", HISTOGRAM, 2, 0.01), np.zeros((0, 2)))},
    )
    assert len(nobody) == 0
    with pytest.raises(UsageError, match="longest has 0"):
        nobody.scoring()


def test_an_unknown_feature_is_refused_with_those_that_exist():
    made = population(features=("f0", "phones"))
    with pytest.raises(UsageError, match="no templates of 'style', only of f0, phones"):
        made.templates("style", made.scoring())


def test_names_are_found_or_the_nearest_is_offered():
    made = Population(
        [Speaker("Anna"), Speaker("Johannes"), Speaker("4088")],
        np.arange(4),
        {"f0": FeatureTemplates(FeatureSpec("f0", HISTOGRAM, 2, 0.01), np.ones((3, 2), dtype=int))},
    )
    assert [made.index(name) for name in made.names] == [0, 1, 2]
    with pytest.raises(UsageError, match=r"nobody called 'Johanes' .* did you mean 'Johannes'"):
        made.index("Johanes")
    with pytest.raises(UsageError, match="enrolled: 3 speakers"):
        made.index("zzz")


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
    assert not joined.with_rank_models(
        RankModels([some_rank_model(learnt_from=joined.names)])
    ).mismatched
    assert joined.with_rank_models(RankModels([some_rank_model(learnt_from=old.names)])).mismatched
    assert joined.with_rank_models(RankModels([some_rank_model()])).mismatched
    assert not population().joined(new).mismatched


def test_joining_keeps_wide_and_narrow_counts():
    narrow, wide = population(), population(prefix="n")
    slices = narrow.features["f0"].slices.astype(np.uint8)
    narrow.features["f0"] = replace(narrow.features["f0"], slices=slices)
    wide.features["f0"] = replace(wide.features["f0"], slices=wide.features["f0"].slices + 70_000)
    joined = narrow.joined(wide)
    assert_array_equal(
        joined.features["f0"].slices, np.vstack([slices, wide.features["f0"].slices])
    )


def test_what_cannot_be_joined():
    with pytest.raises(UsageError, match=r"s0, s1, s2 enrolled already; choose another name"):
        population().joined(population())
    with pytest.raises(UsageError, match="no 'phones' of size 12"):
        population(features=("f0", "phones")).joined(population(prefix="n"))
    with pytest.raises(UsageError, match="no 'f0' of size 12"):
        population().joined(population(prefix="n", size=11))


def test_overlapping_hashes():
    made = population()
    assert made.overlapping([]) == []
    assert made.overlapping(["other"]) == []
    ((speaker, note),) = made.overlapping(["other", "s0002"])
    assert (speaker.name, note.label) == ("s2", "2.flac")
    assert [speaker.name for speaker, _ in made.overlapping(["x"])] == list(made.names)


def test_the_fingerprint_follows_the_content():
    made = population()
    prints = {made.fingerprint()}
    assert population(rank_models=[some_rank_model()]).fingerprint() in prints
    one_more = made.features["f0"].slices.copy()
    one_more[3, 4] += 1
    renamed = [Speaker("other"), *made.speakers[1:]]
    moved = made.offsets.copy()
    moved[1] += 1
    for other in (
        population(seed=1),
        Population(renamed, made.offsets, made.features),
        Population(made.speakers, moved, made.features),
        Population(
            made.speakers, made.offsets, {"f0": replace(made.features["f0"], slices=one_more)}
        ),
        Population(made.speakers, made.offsets, {"pitch": made.features["f0"]}),
        made.joined(population(prefix="n")),
    ):
        prints.add(other.fingerprint())
    assert len(prints) == 7
    assert all(len(each) == 16 for each in prints)


def test_notes_survive_as_they_were(tmp_path):
    note = SourceNote("α.flac", "Küche", ("1", "2"), 0.0, 12.345)
    made = population()
    speakers = [Speaker("s0", (note, note)), Speaker("s1"), *made.speakers[2:]]
    path = tmp_path / "speakers.npz"
    Population(speakers, made.offsets, made.features).save(path)
    assert Population.load(path).speakers == tuple(speakers)
