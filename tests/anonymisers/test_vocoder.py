"""Pitch and formants moved as asked, and whispers; of vowels, and of a real reader."""

import inspect
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soxr

from monitor.anonymisers import Utterance, Vocoder, make
from monitor.anonymisers import vocoder as world
from monitor.anonymisers.vocoder import DRAWN_RATIOS, DRAWN_SEMITONES
from monitor.errors import UsageError
from monitor.sources import File
from monitor.types import Block
from tests.anonymisers.vowels import (
    FORMANTS,
    formant_ratio,
    level,
    peaks,
    pitches,
    semitones_moved,
    vowel,
)
from tests.sounds import RATE, synthetic

if find_spec("pyworld") is None:  # to import it would import pkg_resources
    pytest.skip("needs pyworld (extra vocoder)", allow_module_level=True)


def protected(sound: np.ndarray, method: str, rate: int = RATE, **more: Any) -> np.ndarray:
    anonymiser = make(method, Utterance(rate, **more))
    return np.concatenate((anonymiser.process(sound), anonymiser.flush()))


@pytest.fixture(scope="module")
def reader(shared: Path) -> np.ndarray:
    """Six seconds of a real reader."""
    with File(shared / "speech" / "dev-clean" / "1272" / "128104.opus", end_seconds=6.0) as file:
        return np.concatenate([each.samples for each in file if isinstance(each, Block)])


@pytest.mark.parametrize("semitones", [-5.0, 4.0])
@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_pitch_of_a_vowel_moves_by_the_ratio(semitones, rate):
    sound = vowel(rate, pitch=150, seconds=0.8)
    before = pitches(sound, rate)
    after = pitches(protected(sound, f"pitch:{semitones}", rate), rate)
    assert before.size > 60
    assert after.size > 0.8 * before.size
    ratio = np.median(after) / np.median(before)  # of whole lags
    assert ratio == pytest.approx(2 ** (semitones / 12), rel=0.02)


@pytest.mark.parametrize("rate", [16000, 48000])
@pytest.mark.parametrize("ratio", [0.85, 1.2])
def test_formants_of_a_vowel_are_multiplied(ratio, rate):
    made = protected(vowel(rate), f"formant:{ratio}", rate)
    assert peaks(made, rate) == pytest.approx([ratio * hertz for hertz in FORMANTS], abs=110)
    assert np.median(pitches(made, rate)) == pytest.approx(100, rel=0.02)


def test_a_whisper_has_no_voice_and_keeps_its_formants():
    sound = vowel(seconds=2.0)
    made = protected(sound, "whisper")
    assert pitches(sound).size > 150
    assert not pitches(made).size
    assert formant_ratio(sound, made) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(("semitones", "ratio"), [(4, 1.0), (-3, 0.85)])
def test_a_real_reader_is_moved_as_asked_and_whispers(reader, semitones, ratio):
    made = protected(reader, f"voice:{semitones},{ratio}")
    before, after = pitches(reader), pitches(made)
    assert after.size > 0.75 * before.size
    assert semitones_moved(reader, made) == pytest.approx(semitones, abs=0.2)
    assert formant_ratio(reader, made) == pytest.approx(ratio, abs=0.04)
    whispered = protected(reader, "whisper")
    assert pitches(whispered).size < 0.005 * before.size
    for each in (made, whispered):
        assert level(each) == pytest.approx(level(reader), abs=0.5)


@pytest.mark.parametrize("method", ["voice:3,0.8", "whisper"])
@pytest.mark.parametrize("rate", [1000, 6000, 8000, 11025, 22050, 48000, 96000])
def test_loudness_is_kept_at_every_rate(method, rate):
    sound = soxr.resample(synthetic(1.0), RATE, rate)
    made = protected(sound, method, rate)
    assert made.size == sound.size
    apart = 0.5 if rate in (8000, 22050, 48000) else 3  # the others are uncommon
    assert level(made) == pytest.approx(level(sound), abs=apart)


def test_joins_of_blocks_are_no_rougher_than_what_lies_between():
    made = protected(vowel(pitch=100, seconds=2.0), "pitch:0.01").astype(float)[RATE // 2 :]
    period = RATE // 100
    change = np.abs(made[period:] - made[:-period])
    by_place = change[: 1600 * (change.size // 1600)].reshape(-1, 16, 100).mean(axis=(0, 2))
    assert by_place.max() < 2 * np.median(by_place)


def voice(method: str, **utterance: Any) -> Vocoder:
    made = make(method, Utterance(RATE, **utterance))
    assert isinstance(made, Vocoder)
    return made


def test_what_is_drawn_fills_its_range_and_is_never_nothing():
    drawn = [voice("voice:random", name=str(i)) for i in range(300)]
    semitones = np.array([each.semitones for each in drawn], float)
    ratios = np.log([each.ratio for each in drawn])
    for values, (least, most) in ((semitones, DRAWN_SEMITONES), (ratios, np.log(DRAWN_RATIOS))):
        assert least <= np.abs(values).min() < least + 0.1 * (most - least)
        assert most - 0.1 * (most - least) < np.abs(values).max() <= most
        assert abs(np.sign(values).mean()) < 0.2
    assert abs(np.corrcoef(semitones, ratios)[0, 1]) < 0.2


def test_of_one_thing_only_that_moves_and_a_speaker_keeps_it():
    assert voice("pitch:random", name="1").ratio == 1.0
    assert voice("formant:random", name="1").semitones == 0.0
    one, two, other = (
        voice("voice:speaker", name=name, speaker=speaker, seed=3)
        for name, speaker in (("1", "ann"), ("2", "ann"), ("1", "bob"))
    )
    assert (one.semitones, one.ratio) == (two.semitones, two.ratio)
    assert one.semitones != other.semitones


@pytest.mark.parametrize(("method", "said"), [
    ("pitch", "pitch:4"), ("pitch:high", "pitch:4"), ("pitch:25", "-24 to 24"),
    ("pitch:nan", "-24 to 24"), ("formant:", "formant:1.15"), ("formant:0.4", "0.5 to 2"),
    ("formant:nan", "0.5 to 2"), ("whisper:1", "no setting"), ("pitch:speaker", "--speaker NAME"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(method, said):
    with pytest.raises(UsageError, match=said):
        make(method, Utterance(RATE))


def test_without_pyworld_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(world, "pyworld", inspect.unwrap(world.pyworld))
    monkeypatch.setattr(world, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"need pyworld: pip install '.*\[vocoder\]'"):
        make("whisper", Utterance(RATE))
