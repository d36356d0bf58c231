import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from monitor.maths.condition import (
    ROW,
    UNLIKE,
    WIDEST_HZ,
    Condition,
    average_condition,
    condition_of,
    degradation,
    describe_seconds,
    hide_second,
    list_mismatches,
    list_poor_figures,
    unlike,
)
from recipes.sounds import (
    RATE,
    apply_telephone_codec,
    babble,
    clipped,
    coded,
    cut,
    in_room,
    loudspeaker,
    measure_clipped_fraction,
    measure_condition,
    noisy,
    telephone,
    white,
)

WIDE = "speech/train-clean-5/1898/145715.opus"
MP3 = "speech/dev-clean/422/122949.opus"


@pytest.fixture(scope="module")
def voice(shared):
    return cut(shared / WIDE)


def test_a_codec_that_ends_at_6_khz_is_seen_and_is_no_telephone(shared):
    found = measure_condition(cut(shared / MP3))
    assert 5500 < found.bandwidth_hz < 6500  # type: ignore[operator]
    assert not list_mismatches(found, Condition(bandwidth_hz=WIDEST_HZ))


@pytest.mark.parametrize("speaker", ["0036", "2441", "9643"])
def test_a_voice_that_falls_steeply_is_no_narrow_line(shared, speaker):
    sound = cut(shared / f"nonnative/{speaker}.opus", start=30.0, seconds=10.0)
    assert measure_condition(sound).bandwidth_hz > 7000.0  # type: ignore[operator]


@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_a_telephone_is_seen_whatever_the_rate_of_the_file(voice, rate):
    import soxr

    narrow = soxr.resample(telephone(voice), 8000, rate)
    found = measure_condition(narrow, rate)
    assert 3300 < found.bandwidth_hz < 4000  # type: ignore[operator]
    assert list_mismatches(found, measure_condition(voice)) == ("bandwidth_hz",)


def test_audio_of_a_telephone_is_narrow_however_it_was_resampled():
    mp3, wide, leaking = (Condition(bandwidth_hz=hertz) for hertz in (5875.0, 8000.0, 4260.0))
    assert list_mismatches(leaking, mp3) == list_mismatches(mp3, leaking) == ("bandwidth_hz",)
    assert not list_mismatches(mp3, wide)


@pytest.mark.parametrize(("codec", "options"), [("gsm", ()), ("amr-nb", ("-C", "7"))])
def test_a_mobile_call_is_noticed(voice, codec, options):
    if shutil.which("sox") is None:
        pytest.skip("needs SoX")
    heard = apply_telephone_codec(voice, codec, *options)
    assert list_mismatches(measure_condition(heard), measure_condition(voice)) == ("bandwidth_hz",)
    assert abs(len(heard) - len(voice)) <= 320


def test_a_loudspeaker_adds_the_echo_of_its_room(voice):
    found = measure_condition(loudspeaker(voice, 1))
    assert list_mismatches(found, measure_condition(voice)) == ("reverberation_seconds",)
    assert 0.3 < found.reverberation_seconds < 0.5  # type: ignore[operator]


@pytest.mark.parametrize("snr", [0, 10, 15])
@pytest.mark.parametrize("kind", ["white", "babble"])
def test_noise_is_measured_within_6_decibels(voice, shared, snr, kind):
    noise = white(voice.size, 1) if kind == "white" else babble(shared / "speech", voice.size, 1)
    found = measure_condition(noisy(voice, snr, noise))
    assert abs(found.snr_db - snr) < 6
    if snr <= 15:
        assert "snr_db" in list_mismatches(found, measure_condition(voice))
    assert ("snr_db" in list_poor_figures(found)) == (snr == 0)


@pytest.mark.parametrize(("rt60", "metres"), [(0.3, 1.0), (0.6, 4.0), (0.9, 1.5)])
def test_reverberation_is_measured_within_half(voice, rt60, metres):
    found = measure_condition(in_room(voice, rt60, metres, 3))
    assert abs(np.log(found.reverberation_seconds / rt60)) < np.log(1.5)
    far = "reverberation_seconds" in list_mismatches(found, measure_condition(voice))
    assert far == (rt60 > 0.4)


@pytest.mark.parametrize("decibels", [6, 12, 18, 24])
@pytest.mark.parametrize("gain", [1.0, 0.37])
def test_flat_tops_are_counted_wherever_they_lie(voice, decibels, gain):
    found = measure_condition(gain * clipped(voice, decibels))
    share = measure_clipped_fraction(voice, decibels)
    assert found.clipping == pytest.approx(share, rel=0.3, abs=0.001)
    if share > 0.007:
        assert "clipping" in list_poor_figures(found)
        assert "clipping" in list_mismatches(found, measure_condition(voice))


def without(sound, share, size, seed=0):
    """16-bit sound in which a share of the packets is zero."""
    packets = (np.round(32767 * sound) / 32768)[: sound.size // size * size].reshape(-1, size)
    packets[np.random.default_rng(seed).random(len(packets)) < share] = 0
    return packets.ravel()


@pytest.mark.parametrize("size", [160, 320, 960])
def test_lost_packets_are_counted_between_samples_of_speech(voice, size):
    sounds = (measure_condition(without(voice, share, size)) for share in (0, 0.02, 0.06, 0.2))
    found = [sound.lost for sound in sounds if sound.lost is not None]
    assert found == sorted(found)
    assert found[0] == 0
    assert 0.3 * 0.2 < found[3] < 0.2  # a pause loses nothing
    poor = ["lost" in list_poor_figures(Condition(lost=lost)) for lost in found]
    assert poor == [False, False, True, True]
    stereo = without(voice, 0.2, size).astype(np.float32)[: 10 * RATE].reshape(10, RATE)
    both = np.stack((stereo, stereo), axis=2)
    assert (
        condition_of(describe_seconds(both, stereo, RATE).sum(axis=0)).lost
        == measure_condition(stereo.ravel()).lost
    )


@pytest.mark.parametrize("cut_at", [400, 7_777, 15_900])
def test_losses_of_a_second_outlast_its_hidden_sound(voice, cut_at):
    second = without(voice[:RATE], 0.2, 320).astype(np.float32)
    (row,) = describe_seconds(second[None, :, None], second[None], RATE)
    columns, mono = hide_second(second[:cut_at, None], second[:cut_at], RATE)
    assert np.isin(second[:cut_at][second[:cut_at] != 0], columns).mean() < 0.2
    columns = np.concatenate((columns, second[cut_at:, None]))
    mono = np.concatenate((mono, second[cut_at:]))
    assert_array_equal(describe_seconds(columns[None], mono[None], RATE)[0, -4:], row[-4:])
    assert row[-1] > 0


@pytest.mark.parametrize("threshold", [0.002, 0.005])
def test_a_gate_in_pauses_and_silences_lose_nothing(voice, threshold):
    sound = np.round(32767 * voice) / 32768
    level = np.sqrt(np.convolve(sound**2, np.full(480, 1 / 480), "same"))
    fades = np.convolve(level > threshold, np.full(160, 1 / 160), "same")  # 10 ms
    gated = sound * np.where(fades > 1e-6, fades, 0)
    assert (gated == 0).mean() > 0.04
    cut_out = sound.copy()
    cut_out.reshape(-1, RATE)[:, 4000:10000] = 0  # longer than packets that a call survives
    for heard in (gated, cut_out):
        assert measure_condition(heard).lost == 0


def test_a_wide_band_dry_reader_at_any_gain(voice):
    loud, soft = measure_condition(voice), measure_condition(voice / 10)
    assert loud.bandwidth_hz == soft.bandwidth_hz == WIDEST_HZ
    assert loud.snr_db > 25  # type: ignore[operator]
    assert loud.reverberation_seconds < 0.25  # type: ignore[operator]
    assert loud.clipping == 0
    assert loud.level_db - soft.level_db == pytest.approx(20, abs=0.2)  # type: ignore[operator]
    assert soft.snr_db == pytest.approx(loud.snr_db, abs=1)
    assert not list_mismatches(loud, soft)
    assert measure_condition(telephone(voice), 8000).clipping == 0
    assert measure_condition(coded(voice, "opus", 12)).clipping == 0
    assert loud.lost == 0


def test_too_little_silence_and_noise_alone_are_unknown(voice):
    for nothing in (voice[: RATE // 2], np.zeros(30 * RATE), 0.1 * white(30 * RATE, 0)):
        assert measure_condition(nothing) == Condition()
    assert condition_of(np.zeros(ROW, int)) == Condition()


def test_the_band_is_known_before_anything_else(voice):
    for heard, rate, narrow in ((voice, RATE, False), (telephone(voice), 8000, True)):
        begun = measure_condition(heard[: 3 * rate], rate)
        assert begun.bandwidth_hz is not None
        assert begun == Condition(begun.bandwidth_hz)
        assert (begun.bandwidth_hz < 4000) == narrow


def test_rows_add_in_any_order(voice):
    seconds = voice[: 20 * RATE].astype(np.float32).reshape(20, RATE)
    rows = [describe_seconds(each[None, :, None], each[None], RATE)[0] for each in seconds]
    assert all(row.shape == (ROW,) for row in rows)
    there, back = np.sum(rows, axis=0), np.sum(rows[::-1], axis=0)
    assert condition_of(there) == condition_of(back) != Condition()


def test_a_record_says_all_of_it_and_is_checked():
    condition = Condition(3600.0, 12.5, None, 0.01, -23.0, 0.2)
    assert Condition.parse(condition.record()) == condition
    assert Condition.parse(None) is None
    for wrong in ("3600", True, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not a valid condition"):
            Condition.parse({**condition.record(), "bandwidth_hz": wrong})


def test_what_templates_have_in_common_is_what_most_have():
    wide, narrow = Condition(bandwidth_hz=8000.0, snr_db=40.0), Condition(bandwidth_hz=3600.0)
    assert average_condition([wide, wide, narrow]) == Condition(bandwidth_hz=8000.0, snr_db=40.0)
    assert average_condition([wide, None, None]) is None
    assert average_condition([]) is None


SOUNDS = st.builds(
    Condition,
    bandwidth_hz=st.none() | st.floats(1000, 8000),
    snr_db=st.none() | st.floats(-5, 60),
    reverberation_seconds=st.none() | st.floats(0.05, 3),
    clipping=st.just(0.0),
)


@given(SOUNDS, SOUNDS)
def test_how_stream_and_template_differ(stream, template):
    one, other = degradation(stream)[None], degradation(template)[None]
    (there,), (back,) = unlike(one, other)[0], unlike(other, one)[0]
    assert there.shape == (UNLIKE,)
    assert (there >= 0).all()
    assert (there[:9] <= 1.2).all()
    # what a stream lacks that a template has is what the template lacks the other way round
    assert_array_equal(there[:3], back[3:6])
    assert_array_equal(there[6:9], back[6:9])
    known = ~np.isnan(one[0]) & ~np.isnan(other[0])
    assert_allclose((there[:3] + there[6:9])[known], one[0][known], rtol=1e-12)
    assert not there[:9].reshape(3, 3)[:, ~known].any()
    # of what comes together the worst does not count
    worse = np.nan_to_num(np.where(known, np.maximum(one[0], other[0]), 0.0))
    assert_allclose([there[9], back[9]], np.sort(worse)[:2].sum(), atol=1e-12)
    # a studio and what nobody described are no degradation
    studio = degradation(Condition(bandwidth_hz=8000.0, snr_db=45.0, reverberation_seconds=0.15))
    assert not unlike(studio[None], studio[None]).any()
    assert not unlike(degradation(None)[None], studio[None]).any()
