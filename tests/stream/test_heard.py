"""What was heard goes on from stream to stream where asked; a monitor hears one at a time."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import Monitor
from monitor.errors import StoreError, UsageError
from monitor.events.reading import Reading
from monitor.stream.totals import FeatureTotals
from monitor.types import Frames, Track
from tests.stream.streams import Listed, frames, reference, resumed, simulated, told, two_features


def both(seconds: float, seed: int) -> Frames:
    """Frames of pitch and of an embedding that brings its own spans."""
    generator = np.random.default_rng(seed)
    n = round(100 * seconds)
    ticks, centres = np.arange(2, n + 1, 2), np.arange(50, n + 1, 50)
    spans = np.stack([centres - 40, centres], axis=1)
    return Frames(
        generator.random(n) < 0.7,
        {
            "f0": Track(ticks, generator.integers(0, 10, ticks.size)),
            "timbre": Track(centres, generator.normal(size=(centres.size, 3)), spans),
        },
    )


def shifted(part: Frames, ticks: int) -> Frames:
    """The same, so much later on its stream."""
    tracks = {
        name: Track(t.ticks + ticks, t.values, None if t.spans is None else t.spans + ticks)
        for name, t in part.tracks.items()
    }
    return Frames(part.speech, tracks)


def fresh(**options) -> Monitor:
    return Monitor(two_features(), watch="s1", **options)


def heard(monitor: Monitor, *items) -> list[Reading]:
    return list(monitor.stream(Listed(items)))


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 3))
def test_two_streams_disclose_what_one_would(a, b, seed):
    """Counts to the last bit; embeddings, sums of few numbers, to rounding."""
    first, second = both(float(a), seed), both(float(b), seed + 9)
    one = fresh()
    whole = heard(one, first, shifted(second, 100 * a))
    before, after = fresh(), fresh()
    heard(before, first)
    after.resume_from(before.totals, peak_bits=0.5)
    rest = heard(after, second)
    assert [r.seconds for r in rest] == [float(t) for t in range(1, b + 1)]  # this stream's clock
    for ours, theirs in zip(rest, whole[-b:], strict=True):
        assert ours.speech == theirs.speech  # T goes on
        assert ours.features["f0"] == theirs.features["f0"]
        assert ours.bits == pytest.approx(theirs.bits, abs=1e-9)
        assert ours.features["timbre"].usable == pytest.approx(theirs.features["timbre"].usable)
        assert (ours.peak_bits or 0.0) >= 0.5
    alone = fresh()
    heard(alone, second)
    own = after.own_totals
    assert own.speech == alone.totals.speech
    for name in ("f0", "timbre"):
        np.testing.assert_allclose(own.totals[name], alone.totals.totals[name], atol=1e-12)
        assert own.frames[name] == alone.totals.frames[name]
        assert own.usable[name] == alone.totals.usable[name]
    assert np.array_equal(own.totals["f0"], alone.totals.totals["f0"])


def test_evidence_adds_up_in_any_order_and_is_a_copy():
    monitors = [fresh() for _ in range(3)]
    for seed, monitor in enumerate(monitors):
        heard(monitor, both(5.0, seed))
    a, b, c = parts = [monitor.totals for monitor in monitors]
    one, other = (a + b) + c, c + (b + a)
    assert one.speech == other.speech == sum(part.speech for part in parts)
    assert one.frames == other.frames
    assert one.usable == other.usable
    np.testing.assert_allclose(one.totals["timbre"], other.totals["timbre"], atol=1e-12)
    back = one - c
    assert back.speech == (a + b).speech
    assert np.array_equal(back.totals["f0"], (a + b).totals["f0"])
    before, after = a.totals["f0"].copy(), fresh()
    after.resume_from(a)
    heard(after, both(3.0, 1))
    assert np.array_equal(a.totals["f0"], before)
    assert not np.array_equal(after.totals.totals["f0"], before)


def test_frames_without_spans_go_on_from_frames_with():
    monitor = fresh()
    heard(monitor, both(5.0, 0))
    after = fresh()
    after.resume_from(monitor.totals)
    plain = both(5.0, 1)
    track = replace(plain.tracks["timbre"], spans=None)
    (*_, last) = heard(after, Frames(plain.speech, {**plain.tracks, "timbre": track}))
    # ten frames of 0.4 s by their spans, then ten of the feature's own half second
    assert last.features["timbre"].usable == pytest.approx(10 * 0.4 + 10 * 0.5)


def test_stopped_and_resumed_equals_never_stopped():
    before = fresh()
    heard(before, both(6.0, 0))

    def begun() -> Monitor:
        monitor = fresh()
        monitor.resume_from(before.totals)
        return monitor

    one, second = begun(), both(9.0, 1)
    whole = told(one.events(Listed([second])))
    again = fresh()  # a checkpoint brings what the stream began with
    assert resumed(iter([begun(), again]).__next__, frames(second, [350]), 3, [second]) == whole
    assert again.own_totals.speech == one.own_totals.speech
    assert np.array_equal(again.own_totals.totals["f0"], one.own_totals.totals["f0"])


def test_what_began_afresh_is_this_streams_alone_and_a_reset_forgets_all():
    monitor, alone = fresh(), fresh()
    monitor.resume_from(FeatureTotals(100, *_zeros()), 2.0)
    monitor._stream.begin_afresh()
    heard(monitor, both(2.0, 1))
    heard(alone, both(2.0, 1))
    assert monitor.own_totals.speech == alone.own_totals.speech == monitor.totals.speech
    monitor.reset()
    monitor.resume_from(FeatureTotals(100, *_zeros()), 2.0)
    monitor.reset()
    assert monitor.totals.speech == 0
    (reading,) = monitor.push(both(1.0, 0))
    assert reading.speech <= 1.0


def _zeros():
    totals = {"f0": np.ones(10, np.int64), "timbre": np.ones(3)}
    return totals, {"f0": 10, "timbre": 3}, {"f0": 10, "timbre": 150}


def test_what_does_not_fit_is_refused():
    totals, counts, usable = _zeros()
    with pytest.raises(StoreError, match="no such sketch of f0"):
        fresh().resume_from(
            FeatureTotals(1, {**totals, "f0": np.ones(9, np.int64)}, counts, usable)
        )
    with pytest.raises(StoreError, match="no such sketch of timbre"):
        fresh().resume_from(FeatureTotals(1, {"f0": totals["f0"]}, counts, usable))
    late = fresh()
    late.push(both(1.0, 0))
    with pytest.raises(UsageError, match="before the first block"):
        late.resume_from(FeatureTotals(1, totals, counts, usable))


def test_a_second_stream_is_refused_until_it_is_reset():
    monitor = Monitor(reference())
    phases = [monitor.phase]
    readings = monitor.stream(Listed([simulated(3.0)]))
    first = [next(readings).record()]
    phases.append(monitor.phase)
    for wrong in (
        lambda: next(monitor.stream(Listed([simulated(3.0)]))),
        lambda: monitor.push(simulated(1.0)),
        monitor.finish,
    ):
        with pytest.raises(UsageError, match="in the middle of a stream"):
            wrong()
    first += [reading.record() for reading in readings]
    phases.append(monitor.phase)
    for wrong in (
        lambda: list(monitor.stream(Listed([simulated(3.0)]))),
        lambda: monitor.push(simulated(1.0)),
    ):
        with pytest.raises(UsageError, match="ended its stream"):
            wrong()
    assert monitor.own_totals.speech_seconds <= 3.0
    monitor.reset()
    assert [*phases, monitor.phase] == ["opened", "running", "ended", "opened"]
    assert [reading.record() for reading in monitor.stream(Listed([simulated(3.0)]))] == first
    assert [each["seconds"] for each in first] == [1.0, 2.0, 3.0]
    pushed = Monitor(reference())
    pushed.push(simulated(1.5))
    with pytest.raises(UsageError, match="in the middle of a stream"):
        list(pushed.stream(Listed([simulated(3.0)])))
    assert [reading.seconds for reading in pushed.finish()] == [1.5]


def test_two_threads_do_not_push_to_one_monitor(monkeypatch):
    monitor = Monitor(reference())
    begun, go_on = threading.Event(), threading.Event()
    take = monitor._stream.push

    def slowly(block):
        begun.set()
        go_on.wait(10)
        yield from take(block)

    monkeypatch.setattr(monitor._stream, "push", slowly)
    thread = threading.Thread(target=monitor.push, args=(simulated(1.5),))
    thread.start()
    begun.wait(10)
    with pytest.raises(UsageError, match="another thread"):
        monitor.push(simulated(1.5))
    go_on.set()
    thread.join()
    assert [reading.seconds for reading in monitor.finish()] == [1.5]
