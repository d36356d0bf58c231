"""A copy of enrolled audio is noticed, whatever was done to it; other audio is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.copies import COPIES
from monitor import Monitor, Population
from monitor.corpus import find
from monitor.errors import StoreError
from monitor.events.run import NoticeEvent
from monitor.features.channel import Landmarks
from monitor.maths.landmarks import PITCHES, pack, unpack
from monitor.population.people import Speaker
from monitor.sources.file import File
from monitor.training.enrolling import enrol
from monitor.types import Block
from tests.stream.streams import Listed, audio, told

RATE = 16_000
READERS = ("train-clean-5/19/198.opus", "dev-clean/174/50561.opus")
SECONDS = 60


@pytest.fixture(scope="session")
def readers(shared) -> list[np.ndarray]:
    """Eighty seconds of each of two readers."""
    return [
        soundfile.read(shared / "speech" / name, frames=80 * RATE, dtype="float32")[0]
        for name in READERS
    ]


@pytest.fixture(scope="session")
def enrolled(readers, tmp_path_factory) -> Population:
    """The first minute of each among the shipped readers, stored and read again."""
    folder = tmp_path_factory.mktemp("enrolled")
    for name, sound in zip("ab", readers, strict=True):
        (folder / name).mkdir()
        soundfile.write(folder / name / "talk.wav", sound[: SECONDS * RATE], RATE)
    made = enrol(find(folder), features=["f0"], seconds=100).population
    shipped = Population.reference().only(["f0"])
    plain = Population(
        [
            Speaker(each.name, tuple(replace(n, landmarks=pack(*NONE)) for n in each.sources))
            for each in shipped.speakers
        ],
        shipped.offsets,
        shipped.features,
        shipped.rank_models,
        cohort=shipped.cohort,
    )
    plain.joined(made).save(folder / "people.npz")
    return Population.load(folder / "people.npz")


NONE = (np.empty(0, np.intp), np.empty(0, np.intp))


def notices(population, sound, cuts=(), **options):
    monitor = Monitor(population, ["f0"], step_seconds=5, **options)
    events = monitor.events(Listed(audio(np.asarray(sound, np.float32), cuts)))
    return [event for event in events if isinstance(event, NoticeEvent)]


@pytest.mark.parametrize("name", [name for name in COPIES if name != "8 % faster"])
def test_a_copy_is_noticed_whatever_was_done_to_it(name, readers, enrolled):
    copy = COPIES[name](readers[0][20 * RATE : 50 * RATE])
    (event,) = [e for e in notices(enrolled, copy, watch="a") if e.notice.kind == "copy"]
    assert event.notice.fields["name"] == "a"
    assert "far too high" in event.notice.text
    assert event.seconds <= 31.5


def test_what_is_no_copy_is_not(readers, enrolled):
    rest = readers[0][(SECONDS + 1) * RATE :]  # of the same recording
    assert notices(enrolled, rest, watch="a") == []


def test_the_notice_does_not_depend_on_the_cutting(readers, enrolled):
    copy = readers[1][777 : 25 * RATE]
    whole = notices(enrolled, copy)
    assert [event.notice.fields["name"] for event in whole] == ["b"]
    assert notices(enrolled, copy, tuple(range(501, copy.size, 4999))) == whole


def test_a_run_that_goes_on_says_it_once(readers, enrolled):
    blocks = [Block(part, RATE) for part in np.split(readers[0][: 30 * RATE], 30)]

    def fresh() -> Monitor:
        return Monitor(enrolled, ["f0"])

    whole = told(fresh().events(Listed(blocks)))
    for after in (8, 14):
        first = fresh()
        events = first.events(Listed(blocks))
        seen = told(next(events) for _ in range(after))
        again = fresh()
        again.restore(*first.state())
        assert [*seen, *told(again.events(Listed(blocks)))] == whole


def test_people_who_were_enrolled_without_landmarks_are_not_looked_for(readers, enrolled):
    without = Population(
        [Speaker(each.name, tuple(replace(n, landmarks=pack(*NONE)) for n in each.sources))
         for each in enrolled.speakers],
        enrolled.offsets, enrolled.features, enrolled.rank_models, cohort=enrolled.cohort,
    )  # fmt: skip
    assert notices(without, readers[0][: 30 * RATE]) == []


def test_the_shipped_readers_are_known(shared):
    (note,) = Population.reference().speakers[0].sources
    path = Path(shared) / "speech/train-clean-5" / Population.reference().names[0] / note.label
    monitor = Monitor(Population.reference(), ["f0"])
    with File(path, end_seconds=15.0) as file:
        events = list(monitor.listen(block for block in file))
    assert [e.notice.kind for e in events if isinstance(e, NoticeEvent)] == ["copy"]


def test_landmarks_are_the_same_for_any_cutting_and_gain():
    rng = np.random.default_rng(0)
    sound = rng.standard_normal(40_000).astype(np.float32)

    def taken(parts):
        made = Landmarks()
        tracks = [*map(made.process, parts), made.flush()]
        tracks = [track for track in tracks if len(track.ticks)]
        return [np.concatenate([getattr(t, name) for t in tracks]) for name in ("values", "spans")]

    whole = taken([sound])
    for cut in (taken(np.split(sound, range(77, 40_000, 777))), taken([sound / 4])):
        assert all(map(np.array_equal, whole, cut))
    assert whole[0].max() < PITCHES


def test_a_store_of_somebody_else_is_refused(enrolled, tmp_path):
    (note,) = enrolled.speakers[-1].sources
    times, _ = unpack(note.landmarks)
    assert 300 < times.size < 12 * SECONDS
    assert times.max() < 25 * SECONDS
    strange = [
        Speaker(
            each.name, tuple(replace(n, landmarks=np.zeros((2, 2), "<u2")) for n in each.sources)
        )
        for each in enrolled.speakers
    ]
    population = Population(strange, enrolled.offsets, enrolled.features)
    population.save(tmp_path / "strange.npz")
    with pytest.raises(StoreError):
        Population.load(tmp_path / "strange.npz")
