from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import SourceError, UsageError
from monitor.features.extractor import Extractor, VoiceActivity
from monitor.features.f0 import F0
from monitor.features.framing import Framer, HighPass, Leveller, join_frames
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.types import Block, Track

RATES = [8000, 11025, 16000, 44100, 48000]


class Loudness:
    """A feature at another rate, with a frame left over for the end."""

    spec, follow = FeatureSpec("loudness", HISTOGRAM, 64, 0.02, 16000), None

    def __init__(self):
        self.reset()

    def process(self, samples):
        energy = np.square(self._framer.push(samples)).mean(axis=1)
        ticks = 2 * (self._frames + 1 + np.arange(len(energy)))
        self._frames += len(energy)
        return Track(ticks, np.minimum(63, 640 * energy).astype(int))

    def flush(self):
        return Track(np.array([2 * self._frames]), np.array([1]))

    def skip_to(self, tick):
        pass

    def reset(self):
        self._framer, self._frames = Framer(320, 320), 0


def blocks(samples, rate, cuts, recording=0):
    return [Block(part, rate, recording) for part in np.split(samples, cuts)]


def run(stream, skip=0, features=None, channel=None):
    extractor = Extractor([F0()] if features is None else features, channel)
    extractor.skip_to(skip)
    return [*map(extractor.process, stream), extractor.flush()]


def assert_same(left, right):
    assert np.array_equal(left.speech, right.speech)
    assert left.gaps == right.gaps
    assert left.tracks.keys() == right.tracks.keys()
    for name, track in left.tracks.items():
        assert np.array_equal(track.ticks, right.tracks[name].ticks)
        assert np.array_equal(track.values, right.tracks[name].values)


def joined(frames):
    return reduce(join_frames, frames)


@st.composite
def cuts(draw, size):
    points = draw(st.lists(st.integers(0, size), max_size=12))
    block = draw(st.sampled_from([0, 160, 4096]))
    return sorted([*points, *(range(block, size, block) if block else [])])


@pytest.fixture(scope="module")
def speech(voices):
    """Four seconds of a reader at each rate."""
    voice = voices[3][24_000:56_000]
    return {rate: soxr.resample(voice, 8000, rate) for rate in RATES}


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_cutting_of_speech_gives_the_same(speech, data):
    rate = data.draw(st.sampled_from(RATES))
    samples = speech[rate].copy()
    for at in data.draw(st.lists(st.integers(0, samples.size - 1), max_size=5)):
        samples[at] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, 1e30]))
    if data.draw(st.booleans()):
        samples = np.column_stack((samples, samples[::-1]))
    whole = joined(run([Block(samples, rate)], features=[F0(), Loudness()]))
    parts = blocks(samples, rate, data.draw(cuts(len(samples))))
    assert_same(joined(run(parts, features=[F0(), Loudness()])), whole)


@pytest.mark.slow
@pytest.mark.parametrize("rate", RATES)
def test_one_sample_at_a_time(hum, rate):
    samples = soxr.resample(hum[60_000:], 48000, rate)[: rate // 5]
    whole = joined(run([Block(samples, rate)]))
    single = run(blocks(samples, rate, range(1, samples.size)))
    assert whole.tracks["f0"].ticks.size > 5
    assert_same(joined(single), whole)


@pytest.mark.parametrize("rate", RATES)
def test_what_comes_out_is_what_each_part_says_alone(speech, rate):
    frames = joined(run([Block(speech[rate], rate)]))
    leveller, filtered = Leveller(rate), HighPass(rate).process(speech[rate])
    level = np.concatenate((leveller.process(filtered), leveller.flush()))
    sound = soxr.resample(level, rate, 8000, quality="HQ")
    expected = F0().process(sound)
    filled = np.concatenate((sound, np.zeros(160)))  # with silence, to a whole decision
    assert np.array_equal(frames.speech, VoiceActivity().process(filled)[:400])
    assert frames.speech.size == 400
    assert np.array_equal(frames.tracks["f0"].ticks, expected.ticks)
    assert np.array_equal(frames.tracks["f0"].values, expected.values)
    assert expected.ticks.size > 50


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("size", [1, 37, 441, 8000])
def test_no_frame_is_late(speech, rate, size):
    samples = speech[rate][: 40 * size]
    frames = run(
        blocks(samples, rate, range(size, samples.size, size)), features=[F0(), Loudness()]
    )
    ticks = np.cumsum([each.speech.size for each in frames])
    for name in ("f0", "loudness"):
        for before, each in zip(ticks[:-2], frames[1:-1], strict=True):
            assert (each.tracks[name].ticks > before).all()
        assert frames[-1].tracks[name].ticks.max(initial=0) <= ticks[-1]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_skipping_is_the_full_run_cut(speech, data):
    rate = data.draw(st.sampled_from([8000, 16000]))
    first, second = speech[rate][: int(1.3 * rate)], speech[rate][2 * rate :]
    stream = blocks(first, rate, data.draw(cuts(first.size)))
    stream += blocks(second, rate, data.draw(cuts(second.size)), recording=1)
    skip = data.draw(st.integers(0, 400))
    full, cut = joined(run(stream)), joined(run(stream, skip))
    assert np.array_equal(full.speech, cut.speech)
    kept = full.tracks["f0"].ticks > skip
    assert np.array_equal(cut.tracks["f0"].ticks, full.tracks["f0"].ticks[kept])
    assert np.array_equal(cut.tracks["f0"].values, full.tracks["f0"].values[kept])


def test_another_recording_or_rate_starts_afresh_at_the_next_tick(speech):
    pieces = [(speech[16000][:20_005], 16000, 0), (speech[44100][50_000:99_999], 44100, 0)]
    pieces.append((speech[8000][9000:20_000], 8000, 1))
    alone = [joined(run([Block(*piece)])) for piece in pieces]
    together = joined(run([Block(*piece) for piece in pieces]))
    assert [each.speech.size for each in alone] == [126, 114, 138]  # the last tick is filled up
    assert np.array_equal(together.speech, np.concatenate([each.speech for each in alone]))
    expected = np.concatenate(
        [each.tracks["f0"].ticks + shift for each, shift in zip(alone, (0, 126, 240), strict=True)]
    )
    assert np.array_equal(together.tracks["f0"].ticks, expected)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("samples", [0, 1, 100, 246, 1000])
def test_short_recordings(rate, samples):
    frames = joined(run([Block(np.zeros(samples, np.float32), rate)]))
    assert frames.speech.size == -(-samples * 100 // rate)
    assert frames.tracks["f0"].ticks.size == 0


def test_flushing_twice_and_empty_blocks_are_harmless(speech):
    extractor = Extractor([F0(), Loudness()])
    assert extractor.flush().speech.size == 0
    empty = Block(np.empty((0, 2), np.float32), 16000)
    assert extractor.process(empty).speech.size == 0
    extractor.process(Block(speech[16000][:3000], 16000))
    assert extractor.flush().speech.size > 0
    last = extractor.flush()
    assert last.speech.size == 0
    assert last.tracks["loudness"].ticks.size == 0


def test_channels_are_averaged_or_chosen(speech):
    left = speech[8000]
    right = left[::-1].copy()
    both = np.column_stack((left, right))
    assert_same(joined(run([Block(both, 8000)], channel=1)), joined(run([Block(right, 8000)])))
    mean = (left + right) / np.float32(2)
    assert_same(joined(run([Block(both, 8000)])), joined(run([Block(mean, 8000)])))


@pytest.mark.parametrize("layout", ["C", "F"])
def test_the_layout_of_many_channels_does_not_matter(speech, layout):
    many = np.column_stack([np.roll(speech[8000], 99 * k) for k in range(11)])
    one_by_one = blocks(many[:800], 8000, range(1, 800))
    whole = [Block(np.asarray(many[:800], order=layout), 8000)]
    assert_same(joined(run(one_by_one)), joined(run(whole)))


@pytest.mark.parametrize("channel", [2, -1])
def test_a_missing_channel_is_refused(channel):
    extractor = Extractor([F0()], channel)
    with pytest.raises(SourceError, match=r"no channel -?\d: this recording has 2") as caught:
        extractor.process(Block(np.zeros((10, 2)), 8000))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("samples", "rate"), [(np.zeros(9), 0), (np.zeros((9, 0)), 8000), (np.zeros((9, 1, 1)), 8000)]
)
def test_what_is_not_audio_is_refused(samples, rate):
    with pytest.raises(SourceError, match=r"must be|cannot be heard"):
        Extractor([F0()]).process(Block(samples, rate))


def test_names_must_differ():
    with pytest.raises(UsageError, match="f0, f0"):
        Extractor([F0(), F0()])


def test_losses_are_silence_with_one_gap_a_second(speech):
    samples = speech[16000].copy()
    clean = samples.copy()
    for lost in (range(4000, 4160), [15_999], [16_000], [40_000, 47_999]):
        samples[lost] = np.nan
        clean[lost] = 0
    frames = run(blocks(samples, 16000, range(1600, samples.size, 1600)))
    found = joined(frames)
    assert_same(joined(run([Block(clean, 16000)])), type(found)(found.speech, found.tracks))
    told = [(tick, gap.reason, round(16000 * gap.lost_seconds)) for tick, gap in found.gaps]
    assert told == [(26, "not finite", 161), (101, "not finite", 1), (251, "not finite", 2)]
    heard = 0
    for each in frames:
        heard += each.speech.size
        for tick, _ in each.gaps:
            assert heard >= 100 * -(-tick // 100) > heard - each.speech.size


def test_the_end_reports_an_unfinished_second_of_its_recording():
    broken = np.zeros(1000, np.float32)
    broken[900] = np.inf
    first, second = Block(broken, 8000, 4), Block(broken, 8000, 5)
    gaps = joined(run([first, second])).gaps
    assert [(tick, gap.recording, gap.lost_seconds) for tick, gap in gaps] == [
        (12, 4, 1 / 8000),
        (25, 5, 1 / 8000),
    ]


def test_a_bad_sample_in_an_unused_channel_is_no_loss():
    both = np.zeros((800, 2), np.float32)
    both[5, 1] = np.nan
    assert not joined(run([Block(both, 8000)], channel=0)).gaps
    assert len(joined(run([Block(both, 8000)])).gaps) == 1
