"""What parts of a recording disclose: nothing before or after a part hides it."""

import numpy as np
import pytest
import soundfile

from monitor import Monitor, Population, enrol
from monitor.networks.voice import VoiceNetwork
from monitor.relay.gate import MARGIN_BITS
from monitor.stream.windows import BACK_SECONDS, WindowEvidence
from monitor.types import Block, FloatArray
from tests.sounds import RATE, synthetic

STEP = 0.4
SILENCE = Block(np.zeros(round(0.35 * RATE), np.float32), RATE)


def figures(monitor: Monitor, sound: FloatArray, cut: int = round(STEP * RATE)) -> list[float]:
    """The figure of the windows after every step, heard in pieces of this many samples."""
    monitor, size = monitor.fresh(step_seconds=STEP), round(STEP * RATE)
    windows, bits = WindowEvidence(monitor), []
    for start in range(0, len(sound) - size + 1, size):
        step = sound[start : start + size].astype(np.float32)
        for at in range(0, size, cut):
            monitor.push(Block(step[at : at + cut], RATE))
            windows.take(Block(step[at : at + cut], RATE))
        bits.append(windows.bits(SILENCE) or 0.0)
        windows.mark()
    return bits


def heard(monitor: Monitor, sound: FloatArray) -> float:
    """The most that a listener reads of a recording."""
    recording = np.concatenate([sound, np.zeros(RATE // 2)]).astype(np.float32)
    return max((r.bits or 0.0 for r in monitor.fresh().stream(recording, rate=RATE)), default=0.0)


@pytest.fixture(scope="module")
def pitch_alone() -> Monitor:
    return Monitor(Population.reference(), ["f0"])


def test_another_voice_before_hides_nothing(pitch_alone):
    voice, other = synthetic(6.0, pitch=230.0), synthetic(9.2, pitch=110.0)
    *_, last = pitch_alone.fresh().stream(voice, rate=RATE)
    watching = Monitor(Population.reference(), ["f0"], watch=last.top[0][0])
    whole = np.concatenate([other, voice])
    assert heard(watching, whole) < heard(watching, voice) - 0.5
    assert figures(watching, whole)[-1] > heard(watching, voice) - 0.2


def test_any_cutting_gives_the_same_figures(pitch_alone):
    sound = synthetic(6.0, pitch=180.0)
    assert figures(pitch_alone, sound) == figures(pitch_alone, sound, 333)


def test_a_step_embeds_a_window_once(monkeypatch):
    embedded: list[bytes] = []
    total = 0
    embed = VoiceNetwork.embed_bands

    def count(network: VoiceNetwork, windows: list[FloatArray], *, exact: bool) -> FloatArray:
        embedded.extend(window.tobytes() for window in windows)
        return embed(network, windows, exact=exact)

    monitor = Monitor(Population.reference(), ["voice"], step_seconds=STEP)
    windows, size = WindowEvidence(monitor), round(STEP * RATE)
    sound = synthetic(2.4, pitch=180.0).astype(np.float32)
    for start in range(0, len(sound) - size + 1, size):
        windows.take(Block(sound[start : start + size], RATE))
        monkeypatch.setattr(VoiceNetwork, "embed_bands", count)
        windows.bits(SILENCE)
        windows.mark()
        monkeypatch.undo()
        assert len(set(embedded)) == len(embedded)
        total += len(embedded)
        embedded.clear()
    assert total > 5


def test_a_figure_is_that_of_what_was_said_lately_or_of_all(pitch_alone):
    voice = synthetic(4.0, pitch=230.0)
    silence = np.zeros(round((BACK_SECONDS + 2.0) * RATE))
    later = figures(pitch_alone, np.concatenate([voice, silence]))[-1]
    assert later == pytest.approx(heard(pitch_alone, voice), abs=0.3)


@pytest.mark.speech
@pytest.mark.slow
def test_no_listener_reads_more_than_the_margin_beyond_it(shared):
    path = next((shared / "speech/dev-clean/1462").rglob("*.opus"))
    sound, rate = soundfile.read(path, dtype="float32", frames=7 * 16_000, start=9 * 16_000)
    assert rate == RATE
    monitor = Monitor(Population.reference(), watch="1462", session="cross", on_change="note")
    bits = figures(monitor, sound)
    for end in (4, 12, 17):
        said = sound[: round(end * STEP * RATE)]
        starts = np.random.default_rng(end).integers(0, len(said) - RATE // 4, 4).tolist()
        most = max(heard(monitor, said[at:]) for at in (0, *starts))
        assert most <= max(bits[:end]) + MARGIN_BITS


@pytest.mark.slow
def test_a_listener_of_the_last_second_reads_no_more_than_the_margin_beyond_it(shared, tmp_path):
    # 0.6 s of another voice, then 0.6 s of the watched one, and little of the silence that follows
    other, watched = (
        soundfile.read(shared / f"nonnative/{name}.opus", dtype="float32")[0]
        for name in ("0560", "0563")
    )
    (tmp_path / "0563").mkdir()
    soundfile.write(tmp_path / "0563/a.wav", watched[: 30 * RATE], RATE)
    people = Population.reference().joined(enrol(tmp_path).population)
    monitor = Monitor(people, watch="0563", on_change="note")
    turns = other[round(32.4 * RATE) : 33 * RATE], watched[30 * RATE : round(30.6 * RATE)]
    said = np.concatenate(turns)
    most = max(heard(monitor, said[round(start * RATE) :]) for start in (0.25, 0.28))
    assert most > 4.0
    assert most <= max(figures(monitor, said)) + MARGIN_BITS


@pytest.mark.slow
def test_a_listener_who_begins_within_the_first_word_is_followed(shared, tmp_path):
    # before a first syllable the recording has no speech yet; one that begins within it has
    said, _ = soundfile.read(shared / "nonnative/1029.opus", dtype="float32", frames=32 * RATE)
    (tmp_path / "1029").mkdir()
    soundfile.write(tmp_path / "1029/a.wav", said[: 30 * RATE], RATE)
    people = Population.reference().joined(enrol(tmp_path).population)
    monitor = Monitor(people, watch="1029", on_change="note")
    said = said[30 * RATE : round(31.2 * RATE)]
    later = np.concatenate([np.zeros(7107), said[3623:], np.zeros(RATE // 2)])
    assert heard(monitor, later) > 10.0
    assert max(figures(monitor, said)) > 10.0 - MARGIN_BITS
