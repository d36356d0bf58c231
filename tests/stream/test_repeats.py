"""Audio that a stream has had before changes neither the figure nor the length of speech."""

import numpy as np
import pytest
import soundfile
import soxr

from monitor import Monitor, MonitorSettings, Population
from monitor.features.embeddings import Voice
from monitor.features.waveform import Waveform
from monitor.maths.repeats import LATE_TICKS, RATE, SAMPLES_PER_TICK, WaveformPast
from monitor.protocols import Feature
from monitor.run.pace import Timed
from monitor.stream.plan import DEFAULTS
from monitor.stream.repeat_gate import RepeatGate
from monitor.types import AnyArray, Block, FloatArray, Frames, Track

SPEECH_RATE = 16_000
TALK_SECONDS = 21


@pytest.fixture(scope="session")
def talk(shared) -> FloatArray:
    """A little more than twenty-one seconds of a shipped reader, of a chapter not enrolled."""
    (path,) = (shared / "speech").glob("*/*/121550.opus")
    return np.asarray(soundfile.read(path, frames=40 * SPEECH_RATE, dtype="float32")[0])


ALONE = MonitorSettings(second_voice=False)  # another voice is looked for in parts of windows


def resampled(clip: FloatArray, times: int) -> FloatArray:
    """Cut and looped at 44.1 kHz: the period is no whole number of samples here."""
    there = soxr.resample(clip, SPEECH_RATE, 44_100)[:-7]
    return np.asarray(soxr.resample(np.tile(there, times), 44_100, SPEECH_RATE))


def measured(
    sound: FloatArray,
    watch: str,
    step: int = 7001,
    voice: Feature | str = "voice",
    settings: MonitorSettings = DEFAULTS,
) -> tuple[float, float, list[str]]:
    monitor = Monitor(Population.reference(), ["f0", voice], watch, settings=settings)
    blocks = np.split(sound, range(step, sound.size, step))
    readings = [r for part in blocks for r in monitor.push(Block(part, SPEECH_RATE))]
    last = [*readings, *monitor.finish()][-1]
    assert last.bits is not None
    return last.bits, last.speech, [notice.kind for notice in monitor.noticed]


class Counted(Voice):
    """Voice that counts the parts of windows it embeds; live features are wrapped likewise."""

    parts = 0

    def embed_part(self, speech: FloatArray) -> AnyArray:
        embedded = super().embed_part(speech)
        self.parts += len(embedded)  # none of less than a second
        return embedded


@pytest.mark.slow
@pytest.mark.parametrize("looped", [np.tile, resampled])
@pytest.mark.parametrize(("seconds", "times"), [(0.1, 100), (1.0, 15), (5.0, 3), (15.0, 2)])
def test_a_loop_changes_neither_the_figure_nor_the_length(talk, shared, seconds, times, looped):
    watch = next((shared / "speech").glob("*/*/121550.opus")).parent.name
    spoken = talk[: TALK_SECONDS * SPEECH_RATE]
    clip = spoken[spoken.size - round(seconds * SPEECH_RATE) :]
    bits, length, kinds = measured(spoken, watch)
    assert "repeated" not in kinds
    repeated = measured(np.concatenate((spoken, looped(clip, times))), watch)
    assert repeated[0] == pytest.approx(bits, abs=0.3)
    assert repeated[1] == pytest.approx(length, rel=0.05)
    assert "repeated" in repeated[2] or seconds < 1  # in a tenth of a second none may speak


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "seconds"),
    [("1462/170142", 2), ("2412/153948", 3), ("2086/149220", 5), ("163/122947", 7)],
)
def test_a_loop_that_is_the_whole_stream_is_as_the_audio_alone(shared, path, seconds):
    """A window of speech that is new in part counts by its new speech, for any cutting."""
    (file,) = (shared / "speech").glob(f"*/{path}.opus")
    watch, start = file.parent.name, 55.7 if path.startswith("163") else 10.0
    sound = soundfile.read(file, frames=70 * SPEECH_RATE, dtype="float32")[0]
    clip = sound[round(start * SPEECH_RATE) :][: seconds * SPEECH_RATE]
    bits, length, _ = measured(clip, watch)
    loop = np.tile(clip, 40 // seconds)
    voice = Counted()
    repeated = measured(loop, watch)
    measured(loop, watch, voice=Timed(voice), settings=ALONE)
    assert repeated[0] == pytest.approx(bits, abs=0.05)
    assert repeated[1] == pytest.approx(length, rel=0.05)
    assert voice.parts <= 5  # the end of the recording, and a window or two
    assert measured(loop, watch, 31_999) == measured(loop, watch, loop.size) == repeated


@pytest.mark.slow
def test_without_repetition_nothing_is_embedded_again(talk):
    voice = Counted()
    measured(talk, "84", voice=voice, settings=ALONE)
    assert voice.parts <= 1  # the end of the recording


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "start", "seconds"), [("460/172359", 55.7, 2), ("1462/170142", 31.3, 1)]
)
def test_a_loop_that_is_mostly_pause_does_not_count_again(shared, path, start, seconds):
    (file,) = (shared / "speech").glob(f"*/{path}.opus")
    sound = soundfile.read(file, frames=80 * SPEECH_RATE, dtype="float32")[0]
    spoken = sound[round(start * SPEECH_RATE) :][: 24 * SPEECH_RATE]
    bits, length, _ = measured(spoken, file.parent.name)
    loop = np.tile(spoken[-seconds * SPEECH_RATE :], 30 // seconds)
    repeated = measured(np.concatenate((spoken, loop)), file.parent.name)
    assert repeated[0] == pytest.approx(bits, abs=0.3)
    assert repeated[1] == pytest.approx(length, rel=0.05)


def waveform(seconds: float, seed: int) -> np.ndarray:
    samples = np.random.default_rng(seed).normal(size=round(seconds * RATE))
    return np.rint(np.clip(32 * samples, -127, 127)).astype(np.int8)


def looks(sound: np.ndarray) -> tuple[set[int], list[bool]]:
    """The ticks that are taken to repeat, and whether it goes on, look by look."""
    past, found, states = WaveformPast(), set[int](), []
    ticks = np.arange(1, sound.size // SAMPLES_PER_TICK + 1)
    rows = sound[: ticks.size * SAMPLES_PER_TICK].reshape(-1, SAMPLES_PER_TICK)
    for end in range(100, ticks.size + 1, 100):
        past.add(ticks[end - 100 : end], rows[end - 100 : end])
        repetition = past.look(end)
        states.append(repetition.goes_on)
        for begin, last in repetition.intervals:
            found.update(range(begin + 1, last + 1))
    return found, states


def test_what_repeats_is_found_to_the_tick_and_new_audio_is_not():
    first, clip, new = waveform(5, 0), waveform(1.5, 1), waveform(6, 2)
    found, states = looks(np.concatenate((first, clip, clip, clip, clip, new)))
    assert not any(states[:6])
    expected = set(range(651, 1101))
    assert len(found ^ expected) <= 6
    assert not any(states[-5:])
    assert looks(waveform(60, 3)) == (set(), [False] * 60)


def test_a_loop_from_the_very_beginning_is_found_to_the_tick():
    found, _ = looks(np.tile(waveform(2, 5), 5))
    assert found == set(range(201, 1001))


def test_a_loop_of_which_no_second_has_much_sound_is_found():
    second = np.arange(RATE)
    clip = np.concatenate([np.where(second < 0.3 * RATE, waveform(1, s), 0) for s in (6, 7)])
    clip = clip.astype(np.int8)
    found, states = looks(np.concatenate((waveform(5, 8), np.tile(clip, 10), waveform(5, 9))))
    assert states[8]
    assert not any(states[-4:])
    assert set(range(701, 2431)) <= found <= set(range(651, 2601))


def test_a_distance_between_two_samples_is_found():
    spectrum = np.fft.rfft(waveform(4, 4).astype(float))
    spectrum[np.arange(spectrum.size) > 0.9 * spectrum.size] = 0
    later = np.fft.irfft(spectrum * np.exp(-2j * np.pi * np.arange(spectrum.size) / 16_000))
    sound = np.concatenate((np.fft.irfft(spectrum), later))  # half a sample later
    found, _ = looks(np.rint(np.clip(sound, -127, 127)).astype(np.int8))
    assert len(found) > 380


def test_what_lies_ten_minutes_back_is_forgotten_and_memory_stays():
    past = WaveformPast()
    for minute in range(20):
        ticks = minute * 6000 + np.arange(1, 6001)
        past.add(ticks, waveform(60, minute).reshape(-1, SAMPLES_PER_TICK))
    assert past._sound.nbytes < 2_000_000
    assert not past.look(20 * 6000).goes_on


def test_the_waveform_comes_in_time(talk):
    sound = soxr.resample(talk, SPEECH_RATE, 8000)
    made, whole = Waveform(), Waveform()
    tracks, heard = [], 0
    for part in np.split(sound, range(333, sound.size, 333)):
        tracks.append(made.process(part))
        heard += part.size
        come = sum(track.ticks.size for track in tracks)
        assert come >= heard // 80 - LATE_TICKS
    tracks.append(made.flush())
    once = [whole.process(sound), whole.flush()]
    rows, expected = (
        np.concatenate([t.values for t in each if t.ticks.size]) for each in (tracks, once)
    )
    assert np.array_equal(rows, expected)


def test_nothing_that_is_new_is_held_back():
    gate = RepeatGate({}, lambda _, speech: speech)
    frames = Frames(np.ones(100, bool), {"other": Track(np.array([7]), np.array([1]))})
    passed, corrections = gate.process(frames, 0, [])
    assert passed.speech.all()
    assert passed.tracks["other"].values.tolist() == [1]
    assert corrections == []
