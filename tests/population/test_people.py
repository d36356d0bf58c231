"""What is kept of people: stored, joined, extended and dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from monitor.errors import StoreError, UsageError
from monitor.maths.condition import Condition
from monitor.population.forgetting import named_in
from monitor.population.people import SourceNote, Speaker, pack_people, sound_of, unpack_people
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.population.store import read_store
from tests.population.rank_models import population, some_rank_model


def note(label: str, *landmarks: int) -> SourceNote:
    marks = np.array(landmarks, "<u2")
    return SourceNote(label, "monday", (f"file:{label}",), 0.0, 5.0, marks)


SOUND = np.array([9.0, 4000, 20, 0.2, 0, -20], "<f4")
PEOPLE = [
    Speaker("ann", (note("a", 1, 2, 3), note("b")), SOUND),
    Speaker("bob"),
    Speaker("cy", (note("c", 7),), np.concatenate([SOUND, SOUND]), (4, 2)),
]


def test_people_come_back_and_of_somebody_who_is_gone_nothing_is_there():
    entries, arrays = pack_people(PEOPLE)
    assert unpack_people(entries, arrays) == PEOPLE
    assert arrays["people/speaker/sound/rows"].tolist() == [6, 0, 12]
    assert arrays["people/source/landmarks"].tolist() == [1, 2, 3, 7]
    assert arrays["people/source/landmarks/rows"].tolist() == [3, 0, 1]
    entries, arrays = pack_people(PEOPLE[1:])
    assert arrays["people/source/landmarks"].tolist() == [7]
    assert "ann" not in str(entries)
    assert pack_people([Speaker("ann", (note("a"),))])[1] == {}


@pytest.mark.parametrize("what", ["short", "negative", "float", "type"])
def test_arrays_of_other_people_are_refused(what):
    entries, arrays = pack_people(PEOPLE)
    name = "people/source/landmarks"
    rows = arrays[f"{name}/rows"]
    changed = {
        "short": {f"{name}/rows": rows[:-1]},
        "negative": {f"{name}/rows": rows - 1},
        "float": {f"{name}/rows": rows.astype(float)},
        "type": {name: arrays[name].astype("<f8")},
    }[what]
    with pytest.raises(StoreError, match="landmarks is not of the people"):
        unpack_people(entries, arrays | changed)


def test_a_further_session_is_merged():
    made = PEOPLE[0].merged(replace(PEOPLE[2], name="ann"))
    assert made.name == "ann"
    assert [each.label for each in made.sources] == ["a", "b", "c"]
    assert made.sessions == (4, 2)
    assert len(made.sound) == 18


def later(before: Population, *names: str, seed: int = 5) -> Population:
    """Another day's speech of some people."""
    made = population([10.0] * len(names), seed=seed, prefix="later")
    people = [
        Speaker(name, tuple(replace(n, hashes=(f"new{name}{seed}",)) for n in each.sources))
        for name, each in zip(names, made.speakers, strict=True)
    ]
    return Population(people, made.offsets, made.features)


def test_further_sessions_stand_behind_those_that_are_there():
    before = population(rank_models=[some_rank_model(learnt_from=tuple(f"s{i}" for i in range(6)))])
    more = later(before, "s4", "new", "s1")
    made = before.extended(more)
    assert made.names == (*before.names, "new")
    assert made.template_seconds.tolist() == [20, 30, 20, 20, 30, 20, 10]
    slices = before.features["f0"].slices, more.features["f0"].slices
    assert_array_equal(
        made.features["f0"].slices,
        np.concatenate([
            slices[0][:8], slices[1][4:6], slices[0][8:20], slices[1][:2], slices[0][20:],
            slices[1][2:4],
        ]),
    )  # fmt: skip
    assert len(made.speakers[4].sources) == 2
    assert made.mismatched  # of the new one the rank model knows nothing
    assert not before.extended(later(before, "s2")).mismatched
    assert not before.mismatched


def test_a_further_session_is_a_template_of_its_own_as_long_as_the_others():
    before = population([20.0, 20.0, 20.0])
    once = before.extended(later(before, "s1"))
    made = once.extended(later(once, "s1", "s2", seed=6))
    assert [each.sessions for each in made.speakers] == [(), (4, 2, 2), (4, 2)]
    scoring = made.scoring(20.0)
    mixture = made.sessions_apart(scoring)
    assert mixture is not None
    assert (mixture.people, mixture.rows) == (3, 6)
    similarity = made.specs["f0"].kind.similarity()
    rows = made.features["f0"].slices.astype(np.int64)
    # 10 s of its own each, filled up with the first session
    own = [rows[[8, 9, 4, 5]], rows[[10, 11, 4, 5]], rows[[16, 17, 12, 13]]]
    assert_array_equal(
        made.prepared_apart("f0", scoring, similarity),
        similarity.prepare(np.stack([each.sum(axis=0) for each in own])),
    )
    # the templates that were there are the same
    assert_array_equal(
        made.prepared("f0", scoring, similarity), before.prepared("f0", scoring, similarity)
    )
    assert before.sessions_apart(scoring) is None


def test_sessions_are_kept(tmp_path):
    before = population([20.0, 20.0])
    before.save(tmp_path / "one.npz")
    made = before.extended(later(before, "s1"))
    made.save(tmp_path / "two.npz")
    header = read_store(tmp_path / "one.npz", "population")[0]
    assert "sessions" not in header["speakers"][0]
    again = Population.load(tmp_path / "two.npz")
    assert again.speakers == made.speakers
    assert Population.load(tmp_path / "one.npz").speakers == before.speakers
    wrongs: list[Any] = [(4, 3), (4, -1, 3), (6.0,), ("a",), (True, 5)]
    for wrong in wrongs:
        with pytest.raises(StoreError, match="are not those of its slices"):
            Population(
                [made.speakers[0], replace(made.speakers[1], sessions=wrong)],
                made.offsets, made.features,
            )  # fmt: skip


def test_each_session_sounds_as_it_did_and_all_of_them_as_their_mean():
    telephone, studio = Condition(bandwidth_hz=3400.0), Condition(bandwidth_hz=8000.0)
    before = Speaker("ann", (), sound_of(studio, 30.0), (6,))
    both = before.merged(Speaker("ann", (), sound_of(telephone, 10.0), (2,)))
    assert [each and each.bandwidth_hz for each in both.conditions] == [8000.0, 3400.0]
    assert both.condition is not None
    assert both.condition.bandwidth_hz == pytest.approx(6850.0)
    unknown = before.merged(Speaker("ann", (), sessions=(2,)))
    assert unknown.conditions == (unknown.condition,) * 2
    assert before.conditions == (before.condition,)


def test_audio_that_is_there_is_refused():
    before = population()
    again = later(before, "s2")
    made = before.extended(again)
    with pytest.raises(UsageError, match="is enrolled already, as s2"):
        made.extended(again)
    (speaker,) = again.speakers
    others = Population([replace(speaker, name="s3")], again.offsets, again.features)
    with pytest.raises(UsageError, match="is enrolled already, as s2"):
        made.extended(others)


def test_who_taught_the_rank_model_says_whether_it_is_mismatched():
    """Whoever is enrolled and was not calibrated with borrows the model, whoever calibrated."""
    people = population(rank_models=[some_rank_model()])
    impostors = RankModels([some_rank_model(learnt_from=("x", "y"))])
    everybody = RankModels([some_rank_model(learnt_from=(*people.names, "x"))])
    assert people.with_rank_models(impostors).mismatched
    assert not people.with_rank_models(everybody).mismatched
    assert people.with_rank_models(everybody).joined(population(prefix="n")).mismatched
    assert named_in(people.with_rank_models(impostors)) == {*people.names, "x", "y"}


@pytest.mark.parametrize(
    "sound",
    [
        np.zeros((6, 1), "<f4"),
        np.array(1.0, "<f4"),
        np.array([9, np.inf, 0, 0, 0, 0], "<f4"),
        np.array([-1, 0, 0, 0, 0, 0], "<f4"),
        np.array([np.nan, 0, 0, 0, 0, 0], "<f4"),
    ],
)
def test_a_sound_that_is_none_is_refused(sound):
    entries, arrays = pack_people([Speaker("ann", sound=np.arange(6, dtype="<f4"))])
    assert unpack_people(entries, arrays)[0].condition is not None
    with pytest.raises(StoreError):
        unpack_people(entries, arrays | {"people/speaker/sound": sound})
