"""What a stream sounds like, and what is said where the templates sound otherwise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import istft, stft

from monitor import Monitor, Population
from monitor.events.reading import Reading
from monitor.events.run import NoticeEvent
from monitor.maths.condition import Condition
from monitor.population import demo_frames
from monitor.population.people import sound_of
from monitor.stream.stream import Event
from recipes.sounds import RATE, babble, clipped, cut, in_room, noisy, telephone
from tests.stream.streams import Listed, audio, resumed, told

STREAM = "speech/dev-clean/1462/170142.opus"
WATCHED = "1462"


@pytest.fixture(scope="module")
def voice(shared):
    return cut(shared / STREAM, seconds=20.0).astype(np.float32)


def reference() -> Population:
    return Population.reference()


def blocks(sound, rate=RATE, seconds=0.7):
    size = round(seconds * rate)
    return audio(sound.astype(np.float32), range(size, len(sound), size), rate)


def heard(source, population=None, watch=WATCHED):
    """Readings, notices, and of which figures they are."""
    events = list(Monitor(population or reference(), ["f0"], watch).listen(source))
    notices = [event.notice for event in events if isinstance(event, NoticeEvent)]
    figures = [figure for notice in notices for figure in notice.fields["figures"]]
    return [event for event in events if isinstance(event, Reading)], notices, figures


def test_another_session_of_a_clean_reader_is_as_its_template(voice):
    readings, notices, _ = heard(blocks(voice))
    assert not notices
    assert readings[-1].differs == ()
    assert readings[-1].conditions.bandwidth_hz == pytest.approx(5900, abs=200)
    assert readings[-1].conditions.clipping == 0
    assert readings[0].conditions in (None, Condition())  # a second says nothing
    assert all(speaker.condition for speaker in reference().speakers)
    assert reference().condition().bandwidth_hz == 8000


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
    readings, (notice,), figures = heard(blocks(sound, rate), watch=watch)
    assert figures == [figure]
    assert notice.kind == "conditions differ"
    assert 3 < notice.seconds < 15
    assert notice.fields["stream"][figure] is not None
    assert 0 < notice.fields["matching_bits"] < 10  # of pitch
    assert f"{notice.fields['matching_bits']:.1f} bits" in notice.text
    before = [r for r in readings if r.seconds < notice.seconds]
    after = [r for r in readings if r.seconds >= notice.seconds]
    assert not any(r.differs for r in before)
    assert all(r.differs == (figure,) for r in after)
    assert after[-1].record()["differs"] == [figure]
    assert after[-1].record()["conditions"][figure] == getattr(after[-1].conditions, figure)


def whispered(sound):
    """The voice with the phases of noise: its spectrum every 10 ms, and no pitch."""
    _, _, spectrum = stft(sound, RATE, nperseg=320)
    phases = np.random.default_rng(0).uniform(0, 2 * np.pi, spectrum.shape)
    return istft(np.abs(spectrum) * np.exp(1j * phases), RATE, nperseg=320)[1]


@pytest.mark.parametrize("watch", [WATCHED, None])
def test_a_whisper_is_noticed_by_its_lack_of_pitch(voice, watch):
    readings, (notice,), figures = heard(blocks(whispered(voice)), watch=watch)
    assert (notice.kind, figures) == ("conditions differ", ["voiced_share"])
    assert notice.seconds < 15
    assert notice.fields["stream"]["voiced_share"] < 0.02 < 0.2
    assert notice.fields["templates"]["voiced_share"] > 0.2
    assert readings[-1].differs == ("voiced_share",)
    assert readings[-1].record()["differs"] == ["voiced_share"]
    if watch:  # what little there is, is chance
        assert readings[-1].bits == 0


def test_a_voice_is_noticed_against_templates_of_its_whisper(voice):
    whole = reference()
    slices = whole.features["f0"].slices // 200
    f0 = replace(whole.features["f0"], slices=slices)
    quiet = Population(
        whole.speakers, whole.offsets, {"f0": f0}, whole.rank_models, cohort=whole.cohort
    )
    assert heard(blocks(voice), quiet)[2] == ["voiced_share"]


def test_templates_of_such_sound_are_no_reason_for_a_notice(voice):
    sound = Condition(bandwidth_hz=3600.0, snr_db=40.0, reverberation_seconds=0.15, clipping=0.0)
    like = sounding(sound_of(sound, 60.0))
    assert not heard(blocks(telephone(voice), 8000), like)[1]
    # a wide band against telephones, as well
    assert heard(blocks(voice), like)[2] == ["bandwidth_hz"]


def test_a_bad_sound_is_bad_even_where_the_templates_are_so_too(voice):
    sound = Condition(bandwidth_hz=8000.0, snr_db=20.0, reverberation_seconds=0.2, clipping=0.3)
    readings, notices, figures = heard(blocks(clipped(voice, 24)), sounding(sound_of(sound, 60.0)))
    assert [notice.kind for notice in notices] == ["poor sound"]
    assert figures == ["clipping"]
    assert readings[-1].differs == ("clipping",)


def test_lost_packets_are_noticed(voice):
    packets = voice.copy().reshape(-1, 320)
    packets[np.random.default_rng(0).random(len(packets)) < 0.1] = 0
    readings, (notice,), figures = heard(blocks(packets.ravel()))
    assert (notice.kind, figures) == ("poor sound", ["lost"])
    assert notice.seconds < 15
    assert readings[-1].differs == ("lost",)
    assert 0.02 < readings[-1].record()["conditions"]["lost"] < 0.1


def test_nothing_is_said_where_nothing_is_known(voice):
    readings, notices, _ = heard(blocks(telephone(voice), 8000), sounding(np.zeros(0, "<f4")))
    assert not notices
    assert readings[-1].conditions.bandwidth_hz < 4000
    first = next(Monitor(reference(), ["f0"], WATCHED).stream(demo_frames()))
    assert first.conditions is None  # frames hold no sound
    assert "conditions" not in first.record()


@pytest.mark.parametrize(
    ("worse", "rate"), [(telephone, 8000), (lambda sound: whispered(sound), RATE)]
)
def test_any_cutting_and_any_resumption_say_the_same(voice, worse, rate):
    def fresh() -> Monitor:
        return Monitor(reference(), ["f0"], WATCHED)

    whole, parts, others = (blocks(worse(voice), rate, seconds) for seconds in (20.0, 0.31, 0.5))
    expected = told(fresh().events(Listed(whole)))
    assert told(fresh().events(Listed(parts))) == expected
    assert any(record["type"] == "notice" for record in expected)
    for seconds in (4, 12):

        def stops(event: Event, seconds: int = seconds) -> bool:
            return isinstance(event, Reading) and event.seconds == seconds

        assert resumed(fresh, parts, stops, others) == expected


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
        assert least < (condition.bandwidth_hz or 0) <= most
    assert loaded.condition("narrow") == made.condition("narrow")
    assert loaded.without("wide").condition() == loaded.condition("narrow")


def sounding(sound):
    """The shipped readers, of such a sound."""
    whole, people = reference(), [replace(one, sound=sound) for one in reference().speakers]
    return Population(
        people, whole.offsets, whole.features, whole.rank_models, about="", cohort=whole.cohort
    )
