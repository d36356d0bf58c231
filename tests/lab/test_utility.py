"""Utility of voices whose truth is known: unchanged, later, higher, louder, longer, noisy, flat."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from monitor.anonymisers import Noise, Utterance
from monitor.errors import UsageError
from monitor.lab.utility import (
    Utility,
    check_recogniser,
    compare,
    compute_figures,
    count_edits,
    extract_content,
    get_measure,
)
from tests.sounds import RATE, synthetic

SECONDS = 4.0


@pytest.fixture(scope="module")
def voice():
    return synthetic(SECONDS, 150.0)


@pytest.fixture(scope="module")
def clear(voice):
    return extract_content(voice, RATE)


@pytest.mark.slow
def test_what_is_not_changed_keeps_all(voice, clear):
    found = compare(clear, extract_content(voice, RATE))
    assert (found.phone_edits, found.why) == (0, "")
    assert found.pitch_correlation == pytest.approx(1.0)
    assert found.voiced == found.voiced_in_both > 100
    assert (found.lag_seconds, found.louder_db, found.longer) == (0.0, 0.0, 1.0)


@pytest.mark.slow
def test_what_comes_later_is_set_beside_what_it_is_of(voice, clear):
    for seconds in (0.1, 0.37):
        pause = np.zeros(round(seconds * RATE), np.float32)
        found = compare(clear, extract_content(np.append(pause, voice), RATE))
        assert found.lag_seconds == pytest.approx(seconds, abs=0.011)
        assert found.pitch_correlation == pytest.approx(1.0, abs=0.01)
        back = compare(extract_content(np.append(pause, voice), RATE), clear)
        assert back.lag_seconds == pytest.approx(-seconds, abs=0.011)


@pytest.mark.slow
def test_pitch_loudness_and_length(voice, clear):
    higher = extract_content(synthetic(SECONDS, 1.3 * 150.0), RATE)
    assert higher.pitch_hertz.max() > 1.2 * clear.pitch_hertz.max()
    moved = compare(clear, higher)  # by a factor
    assert moved.pitch_correlation == pytest.approx(1, abs=0.02)
    other = compare(clear, extract_content(synthetic(SECONDS, 150.0, seed=5), RATE))
    assert abs(other.pitch_correlation or 0) < 0.5  # of another course
    found = compare(clear, extract_content(np.tile(voice, 2) / 2, RATE))
    assert found.louder_db == pytest.approx(20 * np.log10(0.5), abs=1e-3)
    assert found.longer == 2.0
    assert compare(clear, extract_content(0 * voice, RATE)).louder_db is None


@pytest.mark.slow
def test_the_noisier_the_less_is_understood(shared):
    path = shared / "speech" / "dev-clean" / "1272" / "128104.opus"
    samples = soundfile.read(path, frames=15 * RATE, dtype="float32")[0]
    clear = extract_content(samples, RATE)
    found = [
        compare(clear, extract_content(Noise(snr, Utterance(RATE)).process(samples), RATE))
        for snr in (60.0, 30.0, 20.0, 10.0, 0.0)
    ]
    errors = [each.phone_edits / each.phones for each in found]
    assert errors == sorted(errors)
    assert errors[0] < 0.05
    assert errors[-1] > 0.6
    shares = [each.voiced_in_both / each.voiced for each in found]
    assert shares == sorted(shares, reverse=True)
    assert found[1].pitch_correlation == pytest.approx(1, abs=0.05)


WORDS = st.text("abc", max_size=8)


@given(WORDS, WORDS, WORDS)
def test_edits_are_a_distance_and_as_few_as_will_do(one, other, third):
    assert count_edits(list("kitten"), list("sitting")) == 3
    assert count_edits(one, []) == len(one)
    assert count_edits(one, other) == count_edits(other, one)
    assert (count_edits(one, other) == 0) == (one == other)
    assert count_edits(one, third) <= count_edits(one, other) + count_edits(other, third)
    assert abs(len(one) - len(other)) <= count_edits(one, other) <= max(len(one), len(other))


PLAIN = Utility(200, 50, 300, 240, 0.9, "", 0.0, -1.0, 1.0)


def of(recordings, speakers):
    found = compute_figures(recordings, [*speakers])
    return {each.key.removeprefix("utility."): each for each in found}


def test_sums_are_divided_and_means_taken():
    long = replace(PLAIN, phones=600, phone_edits=60, pitch_correlation=0.5, louder_db=1.0)
    found = of([PLAIN, long, PLAIN], ["ann", "bob", "ann"])
    assert found["phone_error"].value == pytest.approx(160 / 1000)
    assert found["pitch_correlation"].value == pytest.approx(2.3 / 3)
    assert found["louder_db"].value == pytest.approx(-1 / 3)
    assert found["voiced_in_both"].value == pytest.approx(0.8)
    assert found["longer"].limits == (1.0, 1.0)
    assert "the clear recording" in found["phone_error"].note


def test_limits_hold_the_truth_over_speakers():
    """Speakers whose error rates scatter around 0.3: 95 % interval hold it in about 95 %."""
    generator = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        rates = generator.beta(3, 7, 12)
        found = [replace(PLAIN, phone_edits=round(200 * rate)) for rate in rates]
        low, high = of(found, map(str, range(12)))["phone_error"].limits
        held += low <= 0.3 <= high
    assert 0.9 <= held / 200 <= 1.0


def test_what_does_not_exist_says_why():
    flat = replace(PLAIN, pitch_correlation=None, why="the pitch does not move")
    none = of([flat, flat], ["ann", "bob"])["pitch_correlation"]
    assert (none.value, none.note) == (None, "the pitch does not move")
    some = of([flat, PLAIN, PLAIN], ["ann", "bob", "cid"])["pitch_correlation"]
    assert (some.value, some.note) == (0.9, "From 2 of 3 recordings.")
    assert of([replace(PLAIN, louder_db=None)], ["ann"])["louder_db"].value is None
    assert of([replace(PLAIN, phones=0, phone_edits=3)], ["ann"])["phone_error"].value is None
    one = of([PLAIN, PLAIN], ["ann", "ann"])["phone_error"]
    assert one.limits == (None, None)
    assert "one speaker." in one.note


def test_word_errors_are_those_of_any_recogniser(tmp_path):
    """A made recogniser that counts loud seconds: words are lost where the sound is."""
    program = tmp_path / "asr.py"
    program.write_text(
        "import io, sys, numpy, soundfile\n"
        "sound, rate = soundfile.read(io.BytesIO(sys.stdin.buffer.read()))\n"
        "loud = [abs(sound[i : i + rate]).max() > 0.1 for i in range(0, len(sound), rate)]\n"
        "print(' '.join(f'Word{i},' for i, each in enumerate(loud) if each))\n"
    )
    measure = get_measure(f"command:{sys.executable} {program}")
    clear = np.full(4 * RATE, 0.5)
    protected = clear.copy()
    protected[RATE : 2 * RATE] = 0.0
    counts = measure.measure(clear, protected, RATE)
    assert counts == {"words": 4, "edits": 1, "recognised": ["word0", "word2", "word3"]}
    (figure,) = measure.figures({"ann": [counts, counts], "bob": [{"words": 4, "edits": 3}]})
    assert (figure.key, figure.value) == ("utility.word_error", 5 / 12)
    assert figure.low is not None
    assert 0 <= figure.low < 5 / 12 < (figure.high or 0.0)


def test_a_recogniser_that_fails_leaves_the_attack_alone():
    measure = get_measure("command:false")
    counts = measure.measure(np.ones(RATE), np.ones(RATE), RATE)
    assert counts["words"] == 0
    (figure,) = measure.figures({"ann": [counts]})
    assert figure.value is None
    assert "1 of 1 recordings excluded: false failed with exit status 1" in figure.note
    for command in ("", "  ", "'open"):
        with pytest.raises(UsageError):
            check_recogniser(command)
