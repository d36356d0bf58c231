"""The cohort of a store: read when it is asked for, whole, and made as the templates are."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from monitor.errors import StoreError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.population import cohort as cohorts
from monitor.population.cohort import Cohort, FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.population.store import read_store, write_store

RNG = np.random.default_rng(0)
MARK = "ab" * 32
F0 = FeatureTemplates(
    FeatureSpec("f0", HISTOGRAM, 6, 0.01), RNG.integers(0, 50, (5, 6)).astype(np.uint8)
)
VOICE = FeatureTemplates(
    FeatureSpec("voice", EMBEDDING, 3, 3.0, network=MARK),
    RNG.uniform(-0.5, 0.5, (5, 3)).astype(np.float16),
)
SECONDS = np.array([3.0, 12.5, 9.9, 1.2, 8.0])


def made(seconds=SECONDS, features=None, about="") -> Cohort:
    return Cohort(seconds, {"f0": F0, "voice": VOICE} if features is None else features, about)


def population(cohort=None, network=MARK) -> Population:
    features = {
        "f0": replace(F0, slices=RNG.integers(1, 50, (4, 6)).astype(np.uint16)),
        "voice": FeatureTemplates(replace(VOICE.spec, network=network), RNG.uniform(-1, 1, (4, 3))),
    }
    return Population([Speaker("ann"), Speaker("bob")], np.array([0, 2, 4]), features,
                      cohort=cohort)  # fmt: skip


def same(one, other):
    assert_array_equal(one.seconds, other.seconds)
    assert one.about == other.about
    assert one.features.keys() == other.features.keys()
    for name, each in one.features.items():
        assert replace(each, slices=0) == replace(other.features[name], slices=0)
        assert each.slices.dtype == other.features[name].slices.dtype
        assert_array_equal(each.slices, other.features[name].slices)


def test_a_store_keeps_it_and_reads_it_when_it_is_asked_for(tmp_path, monkeypatch):
    path = tmp_path / "p.npz"
    population(made(about="Readers.")).save(path)
    reads = []

    def counted(*given, **options):
        reads.append(given)
        return read_store(*given, **options)

    monkeypatch.setattr(cohorts, "read_store", counted)
    loaded = Population.load(path)
    assert (len(loaded), reads) == (2, [])
    assert loaded.cohort is not None
    assert len(loaded.cohort) == 5
    same(loaded.cohort, made(about="Readers."))
    assert len(reads) == 1
    loaded.with_rank_models(loaded.rank_models).save(path)
    again = pickle.loads(pickle.dumps(Population.load(path)))
    same(again.cohort, made(about="Readers."))


def test_it_goes_where_the_templates_go(tmp_path):
    path = tmp_path / "p.npz"
    population(made()).save(path)
    loaded = Population.load(path)
    newcomer = Population(
        [Speaker("zoe")],
        np.array([0, 1]),
        {name: replace(each, slices=each.slices[:1]) for name, each in loaded.features.items()},
    )
    same(loaded.joined(newcomer).cohort, made())
    assert newcomer.joined(replace_names(loaded)).cohort is None
    same(loaded.only(["voice"]).cohort, made(features={"voice": VOICE}))
    assert population().cohort is None
    population().save(path)
    assert Population.load(path).cohort is None


def replace_names(one):
    return Population([Speaker("x"), Speaker("y")], one.offsets, one.features)


def test_by_another_network_than_the_templates_it_is_refused(tmp_path):
    path = tmp_path / "p.npz"
    population(made(), network="cd" * 32).save(path)
    with pytest.raises(StoreError, match="cohort's 'voice' is not made as its templates are"):
        Population.load(path)
    population(made(features={"f0": F0, "style": F0})).save(path)
    left = Population.load(path).cohort
    assert left is not None
    assert left.features.keys() == {"f0"}


def test_a_store_that_has_changed_meanwhile_is_noticed(tmp_path):
    path = tmp_path / "p.npz"
    population(made()).save(path)
    loaded, other = Population.load(path), Population.load(path)
    population(made(seconds=SECONDS + 1)).save(path)
    with pytest.raises(StoreError, match="another cohort than before"):
        _ = loaded.cohort
    path.unlink()
    with pytest.raises(StoreError, match="does not exist"):
        _ = other.cohort


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seconds": SECONDS[:4]}, "not of as many speakers"),
        ({"seconds": SECONDS[None]}, "lacks its seconds"),
        ({"seconds": SECONDS * np.nan}, "no lengths of speech"),
        ({"seconds": -SECONDS}, "no lengths of speech"),
        ({"features": {}}, "lacks its seconds, or its features"),
        ({"features": {"f0": replace(F0, slices=F0.slices - 9.5)}}, "counts from 0"),
        ({"features": {"voice": replace(VOICE, slices=VOICE.slices * np.inf)}}, "finite sums"),
        ({"features": {"voice": replace(VOICE, slices=VOICE.slices * 9)}}, "no directions"),
    ],
)
def test_what_no_voices_give_is_refused(changed, words):
    with np.errstate(invalid="ignore"), pytest.raises(StoreError, match=words):
        made(**changed)


@pytest.mark.parametrize("damage", ["array", "note", "sha256", "other numbers", "kind"])
def test_a_damaged_one_is_one_line_with_the_name_of_the_file(tmp_path, damage):
    path = tmp_path / "p.npz"
    population(made()).save(path)
    header, arrays = read_store(path, "population")
    if damage == "array":
        del arrays["cohort/voice"]
    elif damage == "note":
        header["cohort"] = {"features": {}, "about": ""}
    elif damage == "sha256":
        header["cohort"]["sha256"] = 3
    elif damage == "other numbers":
        arrays["cohort/f0"] = arrays["cohort/f0"] + np.uint8(1)
    else:
        header["cohort"]["features"]["f0"]["kind"] = "levels"
    write_store(path, "population", header, arrays)
    with pytest.raises(StoreError) as caught:
        _ = Population.load(path).cohort
    assert "incomplete" in str(caught.value)
    assert str(path) in str(caught.value)
    assert str(caught.value).isprintable()
