"""A copy of enrolled audio is noticed, and audio that repeats itself does not count again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from benchmarks.copies import COPIES
from monitor import Monitor, Population, Run
from monitor.corpus import find
from monitor.errors import StoreError
from monitor.events.reading import Reading
from monitor.events.run import NoticeEvent
from monitor.features.landmarks import Landmarks
from monitor.maths.landmarks import PITCHES, StreamLandmarks, pack, unpack
from monitor.population.people import Speaker
from monitor.sources.file import File
from monitor.stream.copies import EnrolledLandmarks
from monitor.training.enrolling import enrol
from monitor.types import Block
from tests.stream.streams import Listed, audio, reference, resumed, told

RATE = 16_000
SECONDS = 60


@pytest.fixture(scope="session")
def readers(shared) -> list[np.ndarray]:
    """Eighty seconds of each of two readers."""
    names = ("train-clean-5/19/198.opus", "dev-clean/174/50561.opus")
    paths = [shared / "speech" / name for name in names]
    return [soundfile.read(each, frames=80 * RATE, dtype="float32")[0] for each in paths]


@pytest.fixture(scope="session")
def speech(readers) -> np.ndarray:
    """Seventy seconds of a reader."""
    return np.asarray(readers[0][: 70 * RATE])


def with_landmarks(people: Population, landmarks: np.ndarray) -> Population:
    """The same, with these landmarks of every recording."""
    speakers = [
        Speaker(each.name, tuple(replace(n, landmarks=landmarks) for n in each.sources))
        for each in people.speakers
    ]
    return Population(
        speakers, people.offsets, people.features, people.rank_models, cohort=people.cohort
    )


NONE = pack(np.empty(0, np.intp), np.empty(0, np.intp))


@pytest.fixture(scope="session")
def enrolled(readers, tmp_path_factory) -> Population:
    """The first minute of each among the shipped readers, stored and read again."""
    folder = tmp_path_factory.mktemp("enrolled")
    for name, sound in zip("ab", readers, strict=True):
        (folder / name).mkdir()
        soundfile.write(folder / name / "talk.wav", sound[: SECONDS * RATE], RATE)
    made = enrol(find(folder), features=["f0"], seconds=100).population
    with_landmarks(reference(), NONE).joined(made).save(folder / "people.npz")
    return Population.load(folder / "people.npz")


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
    # people who were enrolled without landmarks are not looked for
    assert notices(with_landmarks(enrolled, NONE), readers[0][: 30 * RATE]) == []


def test_it_is_said_once_for_any_cutting_and_after_a_stop(readers, enrolled):
    copy = readers[1][777 : 25 * RATE]
    whole = notices(enrolled, copy)
    assert [event.notice.fields["name"] for event in whole] == ["b"]
    assert notices(enrolled, copy, tuple(range(501, copy.size, 4999))) == whole
    blocks = audio(readers[0][: 30 * RATE], range(RATE, 30 * RATE, RATE))
    never = told(Monitor(enrolled, ["f0"]).events(Listed(blocks)))
    for after in (8, 14):
        assert resumed(lambda: Monitor(enrolled, ["f0"]), blocks, after) == never


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
    with_landmarks(enrolled, np.zeros((2, 2), "<u2")).save(tmp_path / "strange.npz")
    with pytest.raises(StoreError):
        Population.load(tmp_path / "strange.npz")


def test_what_repeats_is_the_same_for_any_cutting_and_after_a_stop(speech):
    talk = speech[15 * RATE : 27 * RATE]
    loop = np.concatenate([np.tile(speech[: 3 * RATE], 10), talk, talk[: 6 * RATE]])
    whole = told(Monitor(reference()).events(Listed([Block(loop, RATE)])))
    parts = audio(loop, range(4999, loop.size, 4999))
    assert told(Monitor(reference()).events(Listed(parts))) == whole
    for after in (15, 30):
        assert resumed(lambda: Monitor(reference()), parts, after) == whole


def repeating(sound, cuts=()):
    monitor = Monitor(reference(), step_seconds=5)
    events = list(monitor.events(Listed(audio(sound, cuts))))
    kinds = [each.notice.kind for each in events if isinstance(each, NoticeEvent)]
    return monitor, [each for each in events if isinstance(each, Reading)], kinds


def test_a_clip_in_a_loop_counts_once(speech):
    clip, new = speech[10 * RATE : 12 * RATE], speech[40 * RATE : 46 * RATE]
    monitor, readings, kinds = repeating(np.tile(clip, 40))
    assert kinds.count("repeated") == 1
    counted = [reading.speech for reading in readings]
    assert counted[-1] <= 12.0
    assert counted[-1] == counted[4]  # nothing more after 25 s
    assert monitor.core.observers.gate.seconds > 45
    assert readings[-1].bits == readings[4].bits
    # one that begins again soon is left out soon
    loop = np.tile(clip, 15)
    before, after = (
        repeating(np.concatenate(parts))[1][-1].speech for parts in ([loop, new], [loop, new, loop])
    )
    assert after - before <= 10
    with Run(Listed(audio(np.tile(clip, 20))), Monitor(reference())) as run:
        end = [event.record() for event in run][-1]
    assert end["repeated_seconds"] > 10
    assert any("repeats earlier audio" in line for line in end["notices"])
    # a reader is not taken for a repetition
    monitor, _, kinds = repeating(speech)
    assert monitor.core.observers.gate.seconds == 0
    assert "repeated" not in kinds


def test_what_was_heard_a_minute_ago_does_not_count_again_and_new_speech_does(speech):
    talk, more = speech[: 40 * RATE], speech[40 * RATE :]
    monitor, readings, kinds = repeating(np.concatenate([talk, talk, more]))
    assert "repeated" in kinds
    whole = repeating(np.concatenate([talk, more]))[1][-1].speech
    assert abs(readings[-1].speech - whole) <= 0.05 * whole
    assert 25 <= monitor.core.observers.gate.seconds <= 45


@pytest.mark.parametrize("seconds", [41.0, 41.3, 41.9])
def test_new_speech_counts_again_soon_after_a_loop(speech, seconds):
    clip, new = speech[10 * RATE : 12 * RATE], speech[40 * RATE : 60 * RATE]
    loop = np.tile(clip, 25)[: round(seconds * RATE)]
    monitor, readings, _ = repeating(np.concatenate([loop, new]))
    looped, readings_of_loop, _ = repeating(loop)
    alone = repeating(new)[1][-1].speech
    lost = alone - (readings[-1].speech - readings_of_loop[-1].speech)
    assert abs(lost) <= 0.6  # a pause, and what voice activity makes of the seam
    assert (
        abs(monitor.core.observers.gate.seconds - looped.core.observers.gate.seconds - lost) <= 0.6
    )


def test_windows_that_overlap_remember_what_is_heard_once():
    rng = np.random.default_rng(0)
    times, pitches = np.sort(rng.integers(0, 500, 220)), rng.integers(0, PITCHES, 220)
    apart, often = StreamLandmarks(), StreamLandmarks()
    for end in (250, 500):
        some = (times >= end - 250) & (times < end)
        assert not apart.find_repeats(times[some], pitches[some])[0].any()
    for end in (250, *range(275, 501, 25)):
        some = (times >= end - 250) & (times < end)
        assert not often.find_repeats(times[some], pitches[some])[0].any()
    # those pairs as well that lie across the two
    assert apart.remembered < often.remembered < 1.1 * apart.remembered


def test_what_is_remembered_is_bounded_and_known_after_an_hour():
    rng, own = np.random.default_rng(0), StreamLandmarks()
    clip = np.sort(rng.integers(0, 250, 110)), rng.integers(0, PITCHES, 110)
    sizes = []
    for window in range(3 * 360):  # three hours
        times, pitches = np.sort(rng.integers(0, 250, 110)), rng.integers(0, PITCHES, 110)
        if window in (0, 360):
            times, pitches = clip
        before, _ = own.find_repeats(times + 250 * window, pitches)
        assert (before.mean() > 0.05) == (window == 360)
        sizes.append(own.remembered)
    assert max(sizes) < 90_000
    assert sizes[-1] <= max(sizes[:-60]) + 1000


def test_streams_of_one_population_share_the_index():
    population = Population.reference()
    first, second = (EnrolledLandmarks(population, name) for name in population.names[:2])
    assert first.index is second.index
    assert first.names == second.names
