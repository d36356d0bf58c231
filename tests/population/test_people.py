"""What is kept of people, and of a cohort: stored, joined, extended and dropped."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from monitor.errors import UsageError
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.maths.condition import Condition
from monitor.population.cohort import Cohort, FeatureTemplates
from monitor.population.people import SourceNote, Speaker, pack_people, sound_of, unpack_people
from monitor.population.population import Population
from tests.population.rank_models import population, some_rank_model


def note(label: str, *landmarks: int) -> SourceNote:
    marks = np.array(landmarks, "<u2")
    return SourceNote(label, "monday", (f"file:{label}",), 0.0, 5.0, marks)


SOUND = np.array([9.0, 4000, 20, 0.2, 0, -20], "<f4")
PEOPLE = [
    Speaker("ann", (note("a", 1, 2, 3), note("b")), SOUND),
    Speaker("bob"),
    Speaker(
        "cy", (note("c", 7),), np.concatenate([SOUND, SOUND]), (4, 2), ("2026-01-31", "2026-02-01")
    ),
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
    merged = PEOPLE[0].merged(replace(PEOPLE[2], name="ann"))  # a further session
    assert (merged.name, [each.label for each in merged.sources]) == ("ann", ["a", "b", "c"])
    assert (merged.sessions, len(merged.sound)) == ((4, 2), 18)
    assert merged.days == ("", "2026-02-01")  # since when, nobody knows
    assert PEOPLE[2].merged(replace(PEOPLE[2], days=("2026-03-01",) * 2)).days == (
        "2026-01-31", "2026-03-01",
    )  # fmt: skip


def later(before: Population, *names: str, seed: int = 5) -> Population:
    """Another day's speech of some people."""
    made = population([10.0] * len(names), seed=seed, prefix="later")
    people = [
        Speaker(name, tuple(replace(n, hashes=(f"new{name}{seed}",)) for n in each.sources))
        for name, each in zip(names, made.speakers, strict=True)
    ]
    return Population(people, made.offsets, made.features)


def test_further_sessions_stand_behind_those_that_are_there(tmp_path):
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
    for each in (before, made):  # and are kept
        each.save(tmp_path / "p.npz")
        assert Population.load(tmp_path / "p.npz").speakers == each.speakers


def test_a_further_session_is_a_template_of_its_own_as_long_as_the_others():
    before = population([20.0, 20.0, 20.0])
    once = before.extended(later(before, "s1"))
    made = once.extended(later(once, "s1", "s2", seed=6))
    assert [each.sessions for each in made.speakers] == [(), (4, 2, 2), (4, 2)]
    scoring = made.scoring(20.0)
    mixture = made.sessions_apart(scoring)
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


def test_each_session_sounds_as_it_did_and_all_of_them_as_their_mean():
    telephone, studio = Condition(bandwidth_hz=3400.0), Condition(bandwidth_hz=8000.0)
    before = Speaker("ann", (), sound_of(studio, 30.0), (6,))
    both = before.merged(Speaker("ann", (), sound_of(telephone, 10.0), (2,)))
    assert [each and each.bandwidth_hz for each in both.conditions] == [8000.0, 3400.0]
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


RNG = np.random.default_rng(0)
F0 = FeatureTemplates(
    FeatureSpec("f0", HISTOGRAM, 6, 0.01), RNG.integers(0, 50, (5, 6)).astype(np.uint8)
)
VOICE = FeatureTemplates(
    FeatureSpec("voice", EMBEDDING, 3, 3.0, network="ab" * 32),
    RNG.uniform(-0.5, 0.5, (5, 3)).astype(np.float16),
)
SECONDS = np.array([3.0, 12.5, 9.9, 1.2, 8.0])


def cohort_of(seconds=SECONDS, features=None, about="") -> Cohort:
    return Cohort(seconds, {"f0": F0, "voice": VOICE} if features is None else features, about)


def with_cohort(cohort=None) -> Population:
    features = {
        "f0": replace(F0, slices=RNG.integers(1, 50, (4, 6)).astype(np.uint16)),
        "voice": replace(VOICE, slices=RNG.uniform(-1, 1, (4, 3))),
    }
    people = [Speaker("ann"), Speaker("bob")]
    return Population(people, np.array([0, 2, 4]), features, cohort=cohort)


def same(one, other):
    assert_array_equal(one.seconds, other.seconds)
    assert one.about == other.about
    assert one.features.keys() == other.features.keys()
    for name, each in one.features.items():
        assert replace(each, slices=0) == replace(other.features[name], slices=0)
        assert each.slices.dtype == other.features[name].slices.dtype
        assert_array_equal(each.slices, other.features[name].slices)


def test_a_cohort_goes_where_the_templates_go(tmp_path):
    path = tmp_path / "p.npz"
    with_cohort(cohort_of(about="Readers.")).save(path)
    loaded = Population.load(path)
    same(loaded.cohort, cohort_of(about="Readers."))
    loaded.with_rank_models(loaded.rank_models).save(path)
    same(pickle.loads(pickle.dumps(Population.load(path))).cohort, cohort_of(about="Readers."))
    newcomer = Population(
        [Speaker("zoe")],
        np.array([0, 1]),
        {name: replace(each, slices=each.slices[:1]) for name, each in loaded.features.items()},
    )
    others = Population([Speaker("x"), Speaker("y")], loaded.offsets, loaded.features)
    same(loaded.joined(newcomer).cohort, cohort_of(about="Readers."))
    assert newcomer.joined(others).cohort is None
    same(loaded.only(["voice"]).cohort, cohort_of(features={"voice": VOICE}, about="Readers."))
    with_cohort().save(path)
    assert Population.load(path).cohort is None
    # of features without templates nothing is kept
    with_cohort(cohort_of(features={"f0": F0, "style": F0})).save(path)
    left = Population.load(path).cohort
    assert left.features.keys() == {"f0"}
