"""People enrolled under two names: planted pairs are found, different people are not."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.kinds import EMBEDDING, FeatureSpec
from monitor.population import Population, Speaker
from monitor.population.cohort import FeatureTemplates
from monitor.population.doubles import (
    Double,
    describe_doubles,
    doubles_among,
    find_doubles,
    name_once,
    resolve_doubles,
)


def voices(people: int, seed: int = 0, shared: float = 0.4) -> np.ndarray:
    """Embeddings of different people, whose cosines have a mean of ``shared`` squared."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(people, 60)) / np.sqrt(60)
    return np.asarray(vectors * np.sqrt(1 - shared**2) + shared * np.eye(60)[0])


def again(vector: np.ndarray, cosine: float = 0.85, seed: int = 9) -> np.ndarray:
    """The same person on another day."""
    noise = np.random.default_rng(seed).normal(size=vector.shape)
    unit = vector / np.linalg.norm(vector)
    noise -= (noise @ unit) * unit
    return np.asarray(cosine * unit + np.sqrt(1 - cosine**2) * noise / np.linalg.norm(noise))


def enrolled(vectors: np.ndarray, slices: int = 4) -> Population:
    size = vectors.shape[1]
    spec = FeatureSpec("voice", EMBEDDING, size, 2.5)
    offsets = np.arange(len(vectors) + 1) * slices
    rows = np.repeat(vectors, slices, axis=0).astype(np.float32)
    speakers = [Speaker(f"p{i}") for i in range(len(vectors))]
    return Population(speakers, offsets, {"voice": FeatureTemplates(spec, rows)})


@pytest.mark.parametrize("people", [5, 40, 300])
def test_a_planted_double_is_found_and_nobody_else(people: int) -> None:
    vectors = voices(people)
    vectors = np.vstack([vectors, again(vectors[3])])
    (double,) = find_doubles(enrolled(vectors))
    assert (double.first, double.second) == ("p3", f"p{people}")
    assert 0.5 < double.probability <= 1
    assert double.cosine == pytest.approx(0.85, abs=1e-5)


def test_where_all_sound_alike_nobody_stands_out() -> None:
    vectors = voices(60, shared=0.9)
    assert not find_doubles(enrolled(np.vstack([vectors, again(vectors[3], 0.9)])))


def test_little_speech_shows_nothing() -> None:
    vectors = voices(20)
    assert not find_doubles(enrolled(np.vstack([vectors, again(vectors[3])]), slices=2))


def test_only_pairs_with_a_new_name_are_looked_for() -> None:
    vectors = voices(20)
    both = enrolled(np.vstack([vectors, again(vectors[3]), again(vectors[5])]))
    assert [d.second for d in find_doubles(both, ["p21"])] == ["p21"]
    assert {d.second for d in find_doubles(both)} == {"p20", "p21"}


def test_silence_and_a_single_person_have_no_double() -> None:
    assert doubles_among(["a", "b"], np.zeros((2, 8)), np.array([60.0, 60.0])) == []
    assert doubles_among(["a"], np.ones((1, 8)), np.array([60.0])) == []


def test_three_names_of_one_person_become_one() -> None:
    vectors = voices(20)
    population = enrolled(
        np.vstack([vectors, again(vectors[3], 0.9, 1), again(vectors[3], 0.9, 2)])
    )
    doubles = find_doubles(population)
    assert name_once(doubles) == {"p20": "p3", "p21": "p3"}
    merged, dropped = (
        resolve_doubles(population, doubles, "merge"),
        resolve_doubles(population, doubles, "drop"),
    )
    assert merged.names == dropped.names == tuple(f"p{i}" for i in range(20))
    assert merged.template_seconds[3] == 60
    assert dropped.template_seconds[3] == 20
    assert merged.speakers[3].sessions == (4, 4, 4)
    assert merged.features["voice"].slices.sum() == pytest.approx(
        population.features["voice"].slices.sum()
    )


def test_a_new_name_like_two_people_does_not_make_them_one() -> None:
    """It goes to the likelier of them, and neither enrolled person is lost."""
    vectors = voices(20)
    population = enrolled(np.vstack([vectors, vectors[3] + vectors[5]]))
    pairs = [Double("p3", "p20", 0.9, 0.8), Double("p5", "p20", 0.8, 0.7)]
    assert resolve_doubles(population, pairs, "drop").names == population.names[:-1]
    merged = resolve_doubles(population, pairs, "merge")
    assert merged.names == population.names[:-1]
    assert merged.template_seconds[[3, 5]].tolist() == [40, 20]
    lines = list(describe_doubles(pairs, "merge"))
    assert all("The speech of p20 was given to p3." in line for line in lines)
