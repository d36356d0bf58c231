"""Snapshots of a stream: they continue it, hold no audio, and refuse what is not theirs."""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import correlate

from benchmarks.readers import read
from monitor import Monitor, MonitorSettings, Population
from monitor.errors import MonitorError, StoreError, UsageError
from monitor.events.reading import Reading
from monitor.features.extractor import VoiceDetector
from monitor.features.f0 import F0
from monitor.stream.snapshot import read_seconds
from monitor.types import Block, FloatArray, Words
from tests.stream.streams import RATE, reference, sounds, told

TOLERANCE = 0.05
"""Bits."""
SIZES = 80, 160, 320, 4001, 16_000, 60_000


def blocks(sound: FloatArray, rate: int, seed: int) -> Iterator[Block]:
    generator, begin = np.random.default_rng(seed), 0
    while begin < len(sound):
        size = int(generator.choice(SIZES))
        yield Block(sound[begin : begin + size], rate)
        begin += size


def pushed(monitor: Monitor, sound: FloatArray, rate: int, seed: int) -> list[Reading]:
    return [each for block in blocks(sound, rate, seed) for each in monitor.push(block)]


def moved(
    population: Population,
    sound: FloatArray,
    rate: int,
    cuts: Sequence[int],
    seed: int = 0,
    **options: Any,
) -> list[Reading]:
    """Readings of a stream that another monitor continues after each cut."""
    monitor, readings, begin = Monitor(population, **options), list[Reading](), 0
    for number, cut in enumerate(cuts):
        readings += pushed(monitor, sound[begin:cut], rate, seed + number)
        data = monitor.snapshot()
        assert len(data) < 500_000
        readings += monitor._held
        monitor, begin = Monitor(population, **options), cut
        assert monitor.resume(data) == cut / rate
    return readings + pushed(monitor, sound[begin:], rate, seed) + monitor.finish()


def test_a_snapshot_continues_a_stream_to_the_last_bit():
    population, sound = reference(), sounds(6.0)
    whole = Monitor(population)
    expected = pushed(whole, sound, RATE, 0) + whole.finish()
    assert expected[-1].bits is not None
    assert told(moved(population, sound, RATE, [40_123, 62_000])) == told(expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "options"),
    [(16_000, {}), (44_100, {"watch": "84"}), (8_000, {"watch": "19", "on_change": "note"})],
)
@settings(max_examples=2)
@given(data=st.data())
def test_speech_cut_anywhere_reads_what_it_reads_uninterrupted(shared, rate, options, data):
    paths = sorted((shared / "speech/dev-clean").glob("*/*.opus"))
    sound = read(data.draw(st.sampled_from(paths)), 10.0)
    sound = sound if rate == RATE else soxr.resample(sound, RATE, rate)
    cuts = data.draw(st.lists(st.integers(3 * rate, len(sound) - rate), min_size=1, max_size=2))
    population = Population.reference()
    whole = Monitor(population, **options)
    expected = pushed(whole, sound, rate, 1) + whole.finish()
    got = moved(population, sound, rate, sorted(cuts), **options)
    assert [each.seconds for each in got] == [each.seconds for each in expected]
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.speech == pytest.approx(theirs.speech, abs=0.02)
        assert (ours.bits is None) == (theirs.bits is None)
        assert ours.bits is None or ours.bits == pytest.approx(theirs.bits, abs=TOLERANCE)


@pytest.mark.slow
def test_a_stream_cut_within_its_first_words_continues(shared):
    path = sorted((shared / "speech/dev-clean").glob("*/*.opus"))[3]
    sound, population = read(path, 6.0), Population.reference()
    whole = Monitor(population)
    expected = pushed(whole, sound, RATE, 1) + whole.finish()
    for cut in (0, 5_000, 14_000):
        got = moved(population, sound, RATE, [cut])
        assert got[-1].seconds == expected[-1].seconds
        assert expected[-1].speech - got[-1].speech <= 1.2


def arrays(node: Any) -> Iterator[np.ndarray]:
    if isinstance(node, dict):
        for each in node.values():
            yield from arrays(each)
    elif isinstance(node, list):
        if node[:1] == ["array"]:
            yield np.frombuffer(node[3], node[1])
        else:
            for each in node:
                yield from arrays(each)


def content_of(data: bytes) -> dict[str, Any]:
    return msgspec.msgpack.decode(zlib.decompress(data[48:]), type=dict[str, Any])


def sealed(content: dict[str, Any], before: bytes) -> bytes:
    packed = zlib.compress(msgspec.msgpack.encode(content))
    return before[:16] + hashlib.sha256(packed).digest() + packed


@pytest.mark.slow
def test_a_snapshot_holds_no_sound_longer_than_a_fifth_of_a_second(shared):
    path = sorted((shared / "speech/dev-clean").glob("*/*.opus"))[11]
    sound = read(path, 8.7)
    monitor = Monitor(Population.reference(), watch="84", on_change="note")
    pushed(monitor, sound, RATE, 0)
    held = list(arrays(content_of(monitor.snapshot())))
    assert len(held) > 50
    recent = {
        rate: soxr.resample(sound[-3 * RATE :], RATE, rate) if rate != RATE else sound[-3 * RATE :]
        for rate in (2_000, 8_000, RATE)
    }
    for rate, audio in recent.items():
        size = rate // 5
        for array in (each.astype(np.float64) for each in held if each.size >= size):
            for begin in range(0, array.size - size + 1, size):
                part = np.nan_to_num(array[begin : begin + size])
                part = part - part.mean()
                if not part.any():
                    continue
                part /= np.linalg.norm(part)
                products = correlate(audio, part, "valid", "fft")
                sums = np.cumsum(np.concatenate(([0.0], audio.astype(np.float64) ** 2)))
                power = np.maximum(sums[size:] - sums[:-size], 1e-6)
                assert np.max(np.abs(products) / np.sqrt(power)) < 0.8


def test_another_stream_version_or_setting_is_refused_in_one_line():
    monitor = Monitor(reference())
    pushed(monitor, sounds(3.0), RATE, 0)
    data = monitor.snapshot()
    for other in (
        Monitor(reference(), watch="19"),
        Monitor(reference(), step_seconds=0.5),
        Monitor(reference(), settings=MonitorSettings(top=2)),
    ):
        with pytest.raises(StoreError, match="different: ") as caught:
            other.resume(data)
        assert "\n" not in str(caught.value)
        assert other.phase == "opened"
    content = content_of(data)
    content["settings"]["version"] = "0.0.1"
    with pytest.raises(StoreError, match="different: version"):
        Monitor(reference()).resume(sealed(content, data))
    begun = Monitor(reference())
    begun.push(Block(sounds(3.0), RATE))
    with pytest.raises(UsageError):
        begun.resume(data)


def test_sealed_bytes_of_another_form_are_refused():
    monitor = Monitor(reference(), ["f0"])
    pushed(monitor, sounds(1.0), RATE, 0)
    taken = monitor.snapshot()
    content = content_of(taken)
    for change in ({"audio": [1]}, {"audio": "x"}, {"audio": [0, 0, "x"]}, {"stream": 5}, {}):
        bad = sealed({**content, **change} if change else {}, taken)
        for read_bytes in (Monitor(reference(), ["f0"]).resume, read_seconds):
            with pytest.raises(StoreError, match="damaged"):
                read_bytes(bad)
    for part in (["part", {}], ["part", {**content["stream"][1], "_peak": "x"}]):
        with pytest.raises(StoreError, match="damaged"):
            Monitor(reference(), ["f0"]).resume(sealed({**content, "stream": part}, taken))
    nested = msgspec.msgpack.encode(content).replace(
        msgspec.msgpack.encode(content["stream"]), b"\x91" * 100_000 + b"\xc0"
    )
    packed = zlib.compress(nested)
    with pytest.raises(StoreError, match="damaged"):
        read_seconds(taken[:16] + hashlib.sha256(packed).digest() + packed)


@given(st.binary(min_size=708, max_size=708), st.integers(0, 2**32 - 1))
def test_no_forged_state_of_voice_activity_ends_the_process(forged, seed):
    detector, reader = VoiceDetector(), object()
    detector.at[reader] = 0
    state = detector.snapshot_attributes()["_adapted"]
    assert isinstance(state, np.ndarray)
    extremes = np.random.default_rng(seed).choice([-32768, -1, 0, 1, 100, 32767], 354)
    noise = np.random.default_rng(seed).normal(0, 0.3, (8, 160)).astype(np.float32)
    for memory in (np.frombuffer(forged, np.uint8), extremes.astype(np.int16).view(np.uint8)):
        for hangover in (b"\0\0\0\0", bytes(memory[280:284])):
            detector._adapted = state.copy()
            detector._adapted[:708] = memory
            detector._adapted[280:284] = np.frombuffer(hangover, np.uint8)
            with suppress(ValueError):
                detector.resume()
                assert detector.decide(reader, noise).shape == (8,)
    detector._adapted = state.copy()
    detector._adapted[280:282] = 0xFF, 0x7F  # the library would report an error much later
    with pytest.raises(ValueError, match="damaged"):
        detector.resume()


BOOMS: list[str] = []


class Boom:
    def __reduce__(self) -> Any:
        return BOOMS.append, ("unpickled",)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.data())
def test_forged_and_damaged_bytes_are_refused_or_read_as_a_stream(data):
    monitor = Monitor(reference(), ["f0"])
    pushed(monitor, sounds(3.0), RATE, 0)
    taken = monitor.snapshot()
    for damaged in (b"", taken[:60], taken[:-1], taken[:99] + b"x" + taken[100:],
                    pickle.dumps(Boom())):  # fmt: skip
        with pytest.raises(StoreError):
            Monitor(reference(), ["f0"]).resume(damaged)
    assert not BOOMS
    content = content_of(taken)
    places = [content["stream"]]
    while True:  # to a random node, which becomes something else
        node = places[-1]
        inner = [key for key in (node if isinstance(node, dict) else range(len(node)))
                 if isinstance(node[key], dict | list) and node[key]]  # fmt: skip
        if not inner or (len(places) > 3 and data.draw(st.booleans())):
            break
        places.append(node[data.draw(st.sampled_from(inner))])
    node = places[-1]
    key = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
    node[key] = data.draw(st.sampled_from([None, -1, 999, "x", ["list", []], ["same"], 0.5]))
    other = Monitor(reference(), ["f0"])
    faults = ArithmeticError, AttributeError, LookupError, MonitorError, TypeError, ValueError
    with suppress(*faults, AssertionError, RuntimeError, Warning):
        other.resume(sealed(content, taken))
        pushed(other, sounds(3.0), RATE, 0)


def test_what_cannot_move_is_refused():
    words = Monitor(reference())
    words.push(Block(sounds(1.0), RATE))
    one = np.array([10])
    words.push(Words(("hello",), one, one + 10, one + 20))
    with pytest.raises(UsageError, match="cannot move"):
        words.snapshot()
    with pytest.raises(UsageError, match="cannot move"):
        Monitor(reference(), [F0()]).snapshot()
    ended = Monitor(reference())
    ended.push(Block(sounds(1.0), RATE))
    ended.finish()
    with pytest.raises(UsageError, match="ended"):
        ended.snapshot()
