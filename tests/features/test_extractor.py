"""What features are fed: channels mixed, speech found, and resampled, the same in any cutting."""

from functools import reduce

import numpy as np
import pytest
import soundfile
import soxr
import webrtcvad
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.channels import NOT_TO_BE_MIXED, ORDINARY, RATE, ReaderPair, alternate
from monitor.errors import SourceError, UsageError
from monitor.features.extractor import Extractor, Mixer, Resampler, VoiceActivity
from monitor.features.f0 import F0
from monitor.features.framing import join_frames
from monitor.features.level import HighPass, Leveller
from monitor.features.phones import Phones
from monitor.types import Block
from tests.sounds import synthetic

RATES = [8000, 11025, 16000, 44100, 48000]


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


VOICE = synthetic(4.0)


@pytest.fixture(scope="module")
def speech(voices):
    """Four seconds of a reader at each rate."""
    voice = voices[3][24_000:56_000]
    return {rate: soxr.resample(voice, 8000, rate) for rate in RATES}


@given(st.data())
def test_any_cutting_gives_the_same(data):
    rate = data.draw(st.sampled_from(RATES))
    samples = soxr.resample(VOICE, 16_000, rate)
    for at in data.draw(st.lists(st.integers(0, samples.size - 1), max_size=5)):
        samples[at] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, 1e30]))
    if data.draw(st.booleans()):
        samples = np.column_stack((samples, samples[::-1]))
    features = [F0(), Phones()]
    whole = joined(run([Block(samples, rate)], features=features))
    parts = blocks(samples, rate, data.draw(cuts(len(samples))))
    assert_same(joined(run(parts, features=features)), whole)


@pytest.mark.parametrize("rate", RATES)
def test_what_comes_out_is_what_each_part_says_alone(speech, rate):
    frames = joined(run([Block(speech[rate], rate)]))
    leveller, filtered = Leveller(rate), HighPass(rate).process(speech[rate])
    level = np.concatenate((leveller.process(filtered), leveller.flush()))
    sound = soxr.resample(level, rate, 8000, quality="HQ")
    expected = F0().process(sound)
    wide = soxr.resample(level, rate, 16_000, quality="HQ")
    filled = np.concatenate((wide, np.zeros(160)))  # with silence, to a whole decision
    assert np.array_equal(frames.speech, VoiceActivity().process(filled)[:400])
    assert frames.speech.size == 400
    assert np.array_equal(frames.tracks["f0"].ticks, expected.ticks)
    assert np.array_equal(frames.tracks["f0"].values, expected.values)
    assert expected.ticks.size > 50


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("size", [1, 37, 441, 8000])
def test_no_frame_is_late(speech, rate, size):
    samples = speech[rate][: 40 * size]
    frames = run(blocks(samples, rate, range(size, samples.size, size)), features=[F0(), Phones()])
    ticks = np.cumsum([each.speech.size for each in frames])
    for name in ("f0", "phones"):
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
def test_short_recordings_and_none_at_all(rate, samples):
    extractor = Extractor([F0(), Phones()])
    assert extractor.flush().speech.size == 0
    broken = np.zeros((samples, 2), np.float32)
    broken[samples // 2 : samples // 2 + 1] = np.inf
    frames = join_frames(extractor.process(Block(broken, rate, 4)), extractor.flush())
    assert frames.speech.size == -(-samples * 100 // rate)
    assert frames.tracks["f0"].ticks.size == 0
    # the end reports a second that it cuts short
    told = [(tick, gap.recording, gap.lost_seconds) for tick, gap in frames.gaps]
    assert told == [(samples // 2 * 100 // rate + 1, 4, 1 / rate)] * min(samples, 1)
    last = extractor.flush()
    assert last.speech.size == last.tracks["phones"].ticks.size == 0


@pytest.mark.parametrize("layout", ["C", "F"])
def test_channels_are_averaged_or_chosen(speech, layout):
    left = speech[8000]
    right = left[::-1].copy()
    both = np.asarray(np.column_stack((left, right)), order=layout)
    mean = (left + right) / np.float32(2)
    assert_same(joined(run([Block(both, 8000)])), joined(run([Block(mean, 8000)])))
    both[5, 0] = np.nan  # in a channel that is not used it is no loss
    assert_same(joined(run([Block(both, 8000)], channel=1)), joined(run([Block(right, 8000)])))


@pytest.mark.parametrize(
    ("samples", "rate", "channel", "named"),
    [
        (np.zeros((10, 2)), 8000, 2, "channel 2: "),
        (np.zeros((10, 2)), 8000, -1, "channel -1: "),
        (np.zeros(9), 0, None, "rate 0: "),
        (np.zeros((9, 0)), 8000, None, r"\(9, 0\)"),
        (np.zeros((9, 1, 1)), 8000, None, r"\(9, 1, 1\)"),
    ],
)
def test_what_cannot_be_heard_is_refused(samples, rate, channel, named):
    with pytest.raises(SourceError, match=named) as caught:
        Extractor([F0()], channel).process(Block(samples, rate))
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="f0, f0"):
        Extractor([F0(), F0()])
    for rates in ((0, 8000), (8000, -1)):
        with pytest.raises(UsageError, match="positive"):
            Resampler(*rates)


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


def test_decides_as_webrtc_does_on_10_ms_at_a_time(voices):
    voice = voices[0][:80_100]
    detector = webrtcvad.Vad(2)
    scaled = np.rint(np.clip(voice * 32768, -32768, 32767)).astype("<i2")
    heard = scaled[:80_000].reshape(-1, 160)
    expected = [detector.is_speech(some.tobytes(), 16_000) for some in heard]
    decisions = VoiceActivity().process(voice)
    assert decisions.tolist() == expected
    assert 0.5 < decisions.mean() < 1.0


@settings(max_examples=20)
@given(st.lists(st.integers(0, 700), min_size=2, max_size=40), st.integers(1, 2000))
def test_two_who_share_a_detector_hear_as_each_alone(voices, sizes, later):
    voice = voices[1][: sum(sizes)]
    one, other, alone = VoiceActivity(), VoiceActivity(), VoiceActivity()
    alone.process(voices[3][:later])
    alone.reset()  # a fresh start
    other.share(one)
    found: dict[VoiceActivity, list[bool]] = {one: [], other: []}
    taken = 0  # of the other, who is behind or ahead of the first
    for part in np.split(np.arange(voice.size), np.cumsum(sizes)[:-1]):
        found[one] += one.process(voice[part]).tolist()
        until = min(voice.size, taken + later)
        found[other] += other.process(voice[taken:until]).tolist()
        taken = until
    found[other] += other.process(voice[taken:]).tolist()
    assert found[one] == found[other] == alone.process(voice).tolist()


@pytest.mark.parametrize("level", [1.5, 40.0, 1e12])
def test_too_loud_is_clipped_and_does_not_wrap(voices, level):
    loud = np.sign(voices[0][:16_000]) * np.float32(level)
    limit = VoiceActivity().process(np.clip(loud, -1, 1))
    assert limit.any()
    assert not VoiceActivity().process(0 * loud).any()
    assert np.array_equal(VoiceActivity().process(loud), limit)


READERS = ("train-clean-5/19/198.opus", "dev-clean/174/50561.opus")


@pytest.fixture(scope="session")
def readers(shared) -> tuple[np.ndarray, ...]:
    """Forty seconds of each of two readers."""
    return tuple(soundfile.read(shared / "speech" / name, frames=40 * RATE)[0] for name in READERS)


def noticed(stereo, cuts=(), rate=RATE):
    mixer = Mixer(rate, 0, 0)
    found = []  # type: ignore[var-annotated]
    for part in np.split(np.asarray(stereo, np.float32), cuts):
        mixer.mix(part)
        found += mixer.pop_notices()
    return found


# an echo 12 dB below the talker is not always noticed (benchmarks/channels.py)
@pytest.mark.parametrize("name", [each for each in NOT_TO_BE_MIXED if "12 dB below" not in each])
def test_what_should_not_be_mixed_is_noticed(name, readers):
    kind, how = NOT_TO_BE_MIXED[name]
    ((tick, notice),) = noticed(how(ReaderPair(*readers, np.random.default_rng(0))))  # type: ignore[call-arg]
    assert notice.kind == kind
    assert "--channel" in notice.text
    assert tick <= 3000


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_stereo_is_not_noticed(name, readers):
    assert noticed(ORDINARY[name](ReaderPair(*readers, np.random.default_rng(0)))) == []  # type: ignore[call-arg]


@pytest.mark.parametrize("cuts", [(1,), (40_000, 40_001), tuple(range(777, 640_000, 777))])
def test_channels_are_compared_for_any_cutting(cuts, readers):
    call = alternate(ReaderPair(*readers, np.random.default_rng(0)))  # type: ignore[call-arg]
    assert noticed(call, cuts) == noticed(call)
