"""Tests of a calibration begin as streams begin."""

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from monitor.corpus import find
from monitor.features.extractor import Extractor
from monitor.features.framing import join_runs
from monitor.features.registry import make
from monitor.kinds import EMBEDDING, HISTOGRAM, FeatureSpec
from monitor.stream.accumulator import FrameAccumulator
from monitor.training.feature_extraction import FeatureExtractor
from monitor.training.frames_folder import ExtractionOptions, keep, orders
from monitor.training.grid import plans
from monitor.training.starts import START_SECONDS, HeardStart, StartListener
from monitor.training.voices import SessionFrames, SpeakerSpeech, collect, session_frames
from monitor.types import Block, EarlyFrames, Frames, Track
from tests.sounds import RATE, synthetic

FEATURES = ("f0", "phones", "voice")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("starts") / "ann" / "1.wav"
    path.parent.mkdir()
    samples = synthetic(50.0)
    soundfile.write(path, samples, RATE, subtype="FLOAT")
    return path, samples


@pytest.mark.slow
def test_a_start_is_a_stream_of_its_own(recording):
    path, samples = recording
    heard = FeatureExtractor(FEATURES, starts=True).extract(path)
    assert len(heard.starts.at) >= 2
    assert heard.starts.at[0] == 0
    for at, begun in heard.starts.split():
        assert at == 0 or not heard.speech[at]  # in a pause
        assert heard.speech[at : at + 60].any()
        extractor = Extractor(make(FEATURES))
        runs = [extractor.process(Block(samples[at * RATE // 100 :], RATE)), extractor.flush()]
        alone, ticks = join_runs(runs), begun.speech.size
        assert_array_equal(begun.speech, alone.speech[:ticks])
        for name, track in begun.tracks.items():
            expected = alone.tracks[name].within(0, ticks)
            assert_array_equal(track.ticks, expected.ticks)
            assert_array_equal(track.values, expected.values)
        # a test has what a stream has when its clock reads so many seconds
        for name, spec in ((each.spec.name, each.spec) for each in make(FEATURES)):
            session = session_frames([heard], spec)
            unit = int(heard.speech[:at].sum()) // 10
            stream = FrameAccumulator({name: spec})
            stream.add(alone)
            for seconds in (s for s in (1, 2, 3, START_SECONDS) if 100 * s <= begun.speech.sum()):
                tick = int(np.searchsorted(np.cumsum(alone.speech), 100 * seconds)) + 1
                totals = stream.moments([tick]).totals[name]
                early = 0 if totals.early is None else totals.early[0]
                assert_array_equal(
                    session.compute_total(unit, 10 * seconds), totals.totals[0] + early
                )


def test_starts_do_not_depend_on_how_the_recording_is_cut(recording):
    _, samples = recording

    def listen(size):
        extractor, starts = Extractor(make(["f0"])), StartListener(make(["f0"]))
        for first in range(0, len(samples), size):
            block = Block(samples[first : first + size], RATE)
            starts.push(block, extractor.process(block))
        starts.keep(extractor.flush())
        return starts.finish()

    whole, cut = listen(len(samples)), listen(7777)
    assert len(whole.at) >= 2
    assert_array_equal(whole.at, cut.at)
    assert next(cut.split())[1].speech.sum() == START_SECONDS * 100
    for (_, one), (_, other) in zip(whole.split(), cut.split(), strict=True):
        assert_array_equal(one.speech, other.speech)
        assert_array_equal(one.tracks["f0"].ticks, other.tracks["f0"].ticks)
        assert_array_equal(one.tracks["f0"].values, other.tracks["f0"].values)


@pytest.mark.slow
def test_kept_frames_have_the_same_starts(recording, tmp_path):
    path, _ = recording
    wanted = orders(find(path.parent.parent), path.parent.parent, tmp_path)
    assert [kept.problem for kept in keep(wanted, ExtractionOptions(("f0",)))] == [""]
    assert [kept.problem for kept in keep(wanted, ExtractionOptions(("voice",)))] == [""]
    (one,), (other,) = (
        collect(find(root), features=("f0", "voice"))[0] for root in (path.parent.parent, tmp_path)
    )
    for name, session in one.sessions[0].items():
        kept = other.sessions[0][name]
        assert len(session.starts) >= 2
        assert session.starts.keys() == kept.starts.keys()
        for unit in session.starts:
            for units in (3, 10, 20, 100):
                assert_array_equal(
                    session.compute_total(unit, units), kept.compute_total(unit, units)
                )


VOICE = FeatureSpec("voice", EMBEDDING, 2, 3.0)


def test_what_is_complete_after_the_reading_does_not_count():
    early = EarlyFrames(np.array([100, 204]), np.eye(2), np.array([1, 2]))
    track = Track(np.array([300, 620]), np.array([[3.0, 0.0], [0.0, 5.0]]), early=early)
    start = HeardStart.from_frames(
        Frames(np.ones(500, bool), {"voice": track}), VOICE, np.arange(901), True
    )
    own = np.arange(1, 31)[:, None] * [[1.0, 1.0]]
    ends = np.arange(29, 900, 30)
    session = SessionFrames(own, ends, 900, VOICE, span=30, starts={60: start})

    def heard(units):
        return session.compute_total(60, units).tolist()

    assert heard(9) == [0.0, 0.0]
    assert heard(10) == [1.0, 0.0]
    assert heard(20) == [1.0, 0.0]  # the frame of 2 s comes 40 ms late
    assert heard(21) == [0.0, 1.0]
    assert heard(30) == [3.0, 0.0]
    # from 5 s on the session's own frames follow: of 6 s the one that ends 3 s later
    assert heard(60) == [3.0 + 4.0, 4.0]
    assert session.enrolled(60, 60).tolist() == [3.0 + 4.0, 3.0 + 4.0]
    # elsewhere nobody began: whole frames alone
    assert session.compute_total(0, 20).tolist() == [0.0, 0.0]
    assert session.compute_total(0, 30).tolist() == [1.0, 1.0]


@given(st.data())
def test_tests_begin_at_starts_and_stay_apart_from_templates(data):
    length = data.draw(st.integers(40, 400))
    units = data.draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=6, unique=True))
    test = data.draw(st.integers(1, length - 10))
    template = data.draw(st.integers(10, length - test))
    spec = FeatureSpec("f0", HISTOGRAM, 4, 0.01)
    start = HeardStart.from_frames(
        Frames(np.ones(9, bool), {"f0": spec.no_frames()}), spec, np.arange(10), False
    )
    starts = dict.fromkeys(sorted(units), start)
    frames = SessionFrames(
        np.zeros(0, np.int64), np.zeros(0, np.int64), length, spec, starts=starts
    )
    voice = SpeakerSpeech("ann", ({"f0": frames},))
    cells = list(plans([voice], [test / 10], [template / 10], 5))
    (plan,) = (cell.plan for cell in cells if cell.session == "same")
    for shift in range(plan.shifts):
        (_, first), (_, second) = plan.test(0, shift), plan.template(0, shift)
        assert first in units
        own = {(first + step) % length for step in range(test)}
        assert own.isdisjoint((second + step) % length for step in range(template))
