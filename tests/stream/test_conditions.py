"""What a stream sounds like, and what is said where the templates sound otherwise."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from benchmarks.conditions import RATE, babble, clipped, cut, in_room, noisy, telephone
from monitor import Monitor, Population
from monitor.events.reading import Reading
from monitor.events.run import NoticeEvent
from monitor.maths.condition import Condition
from monitor.population import demo_frames
from monitor.population.people import sound_of
from monitor.types import Block

STREAM = "speech/dev-clean/1462/170142.opus"
WATCHED = "1462"


@cache
def reference():
    return Population.reference()


@pytest.fixture(scope="module")
def voice(shared):
    return cut(shared / STREAM, seconds=20.0).astype(np.float32)


def blocks(sound, rate=RATE, seconds=0.7, recording=0):
    size = round(seconds * rate)
    return [Block(sound[at : at + size], rate, recording) for at in range(0, len(sound), size)]


def heard(source, population=None, watch=WATCHED, **more):
    monitor = Monitor(population or reference(), ["f0"], watch, **more)
    events = list(monitor.listen(source))
    notices = [event.notice for event in events if isinstance(event, NoticeEvent)]
    return [event for event in events if isinstance(event, Reading)], notices


def of(notices):
    return [figure for notice in notices for figure in notice.fields["figures"]]


def test_another_session_of_a_clean_reader_is_as_its_template(voice):
    readings, notices = heard(blocks(voice))
    assert not notices
    assert readings[-1].differs == ()
    assert readings[-1].conditions.bandwidth_hz == pytest.approx(5900, abs=200)
    assert readings[-1].conditions.clipping == 0
    assert readings[0].conditions in (None, Condition())  # a second says nothing


@pytest.mark.parametrize(
    ("figure", "worse", "rate"),
    [
        ("bandwidth_hz", telephone, 8000),
        ("reverberation_seconds", lambda sound: in_room(sound, 0.6, 2.0, 1), RATE),
        ("clipping", lambda sound: clipped(sound, 24), RATE),
        ("snr_db", lambda sound: sound, RATE),
    ],
)
@pytest.mark.parametrize("watch", [WATCHED, None])
def test_another_sound_than_the_templates_is_noticed_in_the_run(
    voice, shared, figure, worse, rate, watch
):
    sound = worse(voice)
    if figure == "snr_db":
        sound = noisy(sound, 8, babble(shared / "speech", sound.size, 1))
    readings, notices = heard(blocks(np.float32(sound), rate), watch=watch)
    assert of(notices) == [figure]
    assert notices[0].kind == "conditions differ"
    assert 3 < notices[0].seconds < 15
    assert notices[0].fields["stream"][figure] is not None
    assert 0 < notices[0].fields["matching_bits"] < 10  # of pitch
    assert f"{notices[0].fields['matching_bits']:.1f} bits" in notices[0].text
    before = [r for r in readings if r.seconds < notices[0].seconds]
    after = [r for r in readings if r.seconds >= notices[0].seconds]
    assert not any(r.differs for r in before)
    assert all(r.differs == (figure,) for r in after)
    assert after[-1].record()["differs"] == [figure]
    assert after[-1].record()["conditions"][figure] == getattr(after[-1].conditions, figure)


def test_templates_of_such_sound_are_no_reason_for_a_notice(voice):
    sound = Condition(bandwidth_hz=3600.0, snr_db=40.0, reverberation_seconds=0.15, clipping=0.0)
    people = [replace(one, sound=sound_of(sound, 60.0)) for one in reference().speakers]
    _, notices = heard(blocks(np.float32(telephone(voice)), 8000), _with(people))
    assert not notices
    _, notices = heard(blocks(voice), _with(people))  # a wide band against telephones, as well
    assert of(notices) == ["bandwidth_hz"]


def test_a_bad_sound_is_bad_even_where_the_templates_are_so_too(voice):
    sound = clipped(voice, 24)
    like = Condition(bandwidth_hz=8000.0, snr_db=20.0, reverberation_seconds=0.2, clipping=0.3)
    people = [replace(one, sound=sound_of(like, 60.0)) for one in reference().speakers]
    readings, notices = heard(blocks(np.float32(sound)), _with(people))
    assert [notice.kind for notice in notices] == ["poor sound"]
    assert of(notices) == ["clipping"]
    assert readings[-1].differs == ("clipping",)


def test_nothing_is_said_where_nothing_is_known(voice):
    nobody = _with([replace(one, sound=np.zeros(0, "<f4")) for one in reference().speakers])
    readings, notices = heard(blocks(np.float32(telephone(voice)), 8000), nobody)
    assert not notices
    assert readings[-1].conditions.bandwidth_hz < 4000
    monitor = Monitor(reference(), ["f0"], WATCHED)
    for reading in monitor.stream(demo_frames()):  # frames hold no sound
        assert reading.conditions is None
        assert "conditions" not in reading.record()
        break


def test_any_cutting_and_any_resumption_say_the_same(voice):
    sound = np.float32(telephone(voice))
    whole, told = heard(blocks(sound, 8000, 20.0))
    parts, again = heard(blocks(sound, 8000, 0.31))
    assert [r.record() for r in whole] == [r.record() for r in parts]
    assert told == again
    for seconds in (4, 12):
        monitor = Monitor(reference(), ["f0"], WATCHED)
        before = []
        for event in monitor.listen(blocks(sound, 8000, 0.31)):
            before.append(event)
            if isinstance(event, Reading) and event.seconds == seconds:
                break
        plain, arrays = monitor.state()
        later = Monitor(reference(), ["f0"], WATCHED)
        later.restore(json.loads(json.dumps(plain)), arrays)
        after = list(later.listen(blocks(sound, 8000, 0.5)))
        both = [e for e in (*before, *after) if isinstance(e, Reading)]
        assert [r.record() for r in both] == [r.record() for r in whole]
        notices = [e.notice for e in (*before, *after) if isinstance(e, NoticeEvent)]
        assert notices == told


def test_another_voice_has_a_sound_of_its_own(voice):
    monitor = Monitor(reference(), ["f0"], WATCHED, on_change="reset")
    list(monitor.listen(blocks(np.float32(telephone(voice)), 8000)))
    assert monitor.conditions.differs
    monitor.conditions.begin_afresh()
    assert monitor.conditions.now is None
    assert not monitor.conditions.differs
    monitor.reset()
    assert monitor.conditions.now is None


def test_a_template_keeps_what_it_sounds_like(tmp_path, voice):
    import soundfile

    from monitor.corpus import find
    from monitor.training.enrolling import enrol

    for name, sound, rate in (("wide", voice, RATE), ("narrow", telephone(voice), 8000)):
        folder = tmp_path / "voices" / name / "monday"
        folder.mkdir(parents=True)
        # many short files, as a corpus of utterances has them
        for number in range(4):
            part = sound[number * 5 * rate : (number + 1) * 5 * rate]
            soundfile.write(folder / f"{number}.wav", part, rate)
    made = enrol(find(tmp_path / "voices"), features=["f0"], seconds=10).population
    made.save(tmp_path / "p.npz")
    loaded = Population.load(tmp_path / "p.npz")
    for name, least, most in (("wide", 5000, 8000), ("narrow", 3000, 4000)):
        condition = loaded.condition(name)
        assert condition is not None
        assert least < (condition.bandwidth_hz or 0) <= most
    assert loaded.condition("narrow") == made.condition("narrow")
    assert loaded.without("wide").condition() == loaded.condition("narrow")


def test_a_further_session_counts_by_its_length():
    wide, narrow = Condition(bandwidth_hz=8000.0, snr_db=40.0), Condition(bandwidth_hz=4000.0)
    one, two = (replace(reference().speakers[0], sound=sound_of(*each)) for each in
                ((wide, 30.0), (narrow, 90.0)))  # fmt: skip
    both = one.merged(two)
    assert both.condition == Condition(bandwidth_hz=5000.0, snr_db=40.0)
    assert both.sound[[0, len(one.sound)]].tolist() == [30.0, 90.0]
    silent = replace(one, sound=np.zeros(0, "<f4"))
    assert one.merged(silent).condition == silent.merged(one).condition == wide


def test_every_shipped_reader_has_a_sound():
    assert all(speaker.condition for speaker in reference().speakers)
    assert reference().condition().bandwidth_hz == 8000


def _with(people):
    whole = reference()
    return Population(
        people, whole.offsets, whole.features, whole.rank_models, about="", cohort=whole.cohort
    )
