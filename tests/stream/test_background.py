"""Whom a voice is set against where few are enrolled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.stream import speaker_changes as module
from monitor.stream.speaker_changes import FEWEST, collect_others

MARK = "ab" * 32


def people(count: int, network: str | None = MARK, seed: int = 0) -> Population:
    """So many speakers of 20 s, by an embedding and a histogram."""
    rng = np.random.default_rng(seed)
    slices = rng.normal(size=(4 * count, 8)).astype(np.float32)
    counts = rng.integers(0, 9, (4 * count, 5)).astype(np.uint16)
    return Population(
        [Speaker(f"{seed} {i}") for i in range(count)],
        np.arange(0, 4 * count + 1, 4),
        {
            "voice": FeatureTemplates(
                FeatureSpec("voice", EMBEDDING, 8, 3.0, network=network), slices
            ),
            "f0": FeatureTemplates(FeatureSpec("f0", HISTOGRAM, 5, 0.01), counts),
        },
    )


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> Population:
    made = people(30, seed=1)
    monkeypatch.setattr(module, "shipped_readers", lambda: made)
    return made


def counts(population: Population) -> dict[str, int]:
    made = collect_others(population, population.scoring(), population.features)
    return {name: len(each) for name, each in made.items()}


def test_the_shipped_readers_stand_beside_a_few_where_one_network_made_both(shipped):
    few = people(3)
    assert counts(few) == {"voice": 33, "f0": 3}
    made = collect_others(few, few.scoring(), ["voice"])["voice"]
    assert np.array_equal(made[:3], few.templates("voice", few.scoring()))
    assert np.array_equal(made[3:], shipped.templates("voice", shipped.scoring()))
    assert counts(people(3, "cd" * 32)) == counts(people(3, None)) == {"voice": 3, "f0": 3}


def test_many_stand_alone(shipped):
    assert counts(people(FEWEST)) == {"voice": FEWEST, "f0": FEWEST}
    assert counts(people(FEWEST - 1))["voice"] == FEWEST - 1 + len(shipped)


def test_a_feature_that_nobody_ships_stands_alone(shipped):
    few = people(3)
    mine = Population(few.speakers, few.offsets, {"own": replace(few.features["voice"])})
    assert counts(mine) == {"own": 3}
