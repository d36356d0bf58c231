"""WAV and raw samples through a pipe: what the file gives, as it comes, or a line that helps."""

import io
import os
import struct
import threading
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import SourceError, UsageError
from monitor.sources import File, Pipe
from monitor.sources.pipe import read_header
from monitor.types import Block

RATE = 16_000


def wav(data: bytes, *, form=1, channels=1, rate=RATE, bits=16, length=None, extensible=False):
    fmt = struct.pack(
        "<HHIIHH",
        0xFFFE if extensible else form,
        channels,
        rate,
        rate * channels * bits // 8,
        channels * bits // 8,
        bits,
    )
    if extensible:
        guid = struct.pack("<H", form) + bytes.fromhex("000000001000800000aa00389b71")
        fmt += struct.pack("<HHI", 22, bits, 0) + guid
    length = len(data) if length is None else length
    extra = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    chunks = b"fmt " + struct.pack("<I", len(fmt)) + fmt + extra
    return b"RIFF\xff\xff\xff\xffWAVE" + chunks + b"data" + struct.pack("<I", length) + data


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "PCM_32", "FLOAT"])
@pytest.mark.parametrize("form", ["WAV", "WAVEX"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_pipe_gives_what_the_file_gives(tmp_path, listen, subtype, form, channels):
    path = tmp_path / "a.wav"
    samples = np.random.default_rng(1).uniform(-1, 1, (40_001, channels))
    soundfile.write(path, samples, RATE, subtype=subtype, format=form)
    pipe = Pipe(io.BytesIO(path.read_bytes()))
    assert (pipe.label, pipe.rate, pipe.channels) == ("-", RATE, channels)
    assert pipe.seconds == 40_001 / RATE
    heard, gaps = listen(pipe)
    np.testing.assert_array_equal(heard, listen(File(path))[0])
    assert gaps == []


def test_what_follows_the_samples_is_not_heard_and_more_of_them_are_a_gap(listen):
    assert len(listen(Pipe(io.BytesIO(wav(bytes(2000)) + b"LIST\4\0\0\0abcd")))[0]) == 1000
    noise = np.random.default_rng(0).integers(1000, 30_000, 3 * RATE).astype("<i2").tobytes()
    samples, (gap,) = listen(Pipe(io.BytesIO(wav(noise, length=2 * RATE))))
    assert (len(samples), gap.lost_seconds) == (RATE, None)
    assert gap.detail == "-: it has more bytes than its header states"


@pytest.mark.parametrize("length", [None, 0, 0xFFFFFFFF])
@pytest.mark.parametrize("count", [7, 4096, 1 << 20])
def test_a_second_wav_in_the_pipe_is_heard_too(listen, length, count):
    one, two = (np.arange(n, dtype="<i2") for n in (1001, 20_000))
    parts = (wav(values.tobytes(), length=length) for values in (one, two))

    class Cut(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            return self.read(min(count, size or 0))

    samples, gaps = listen(Pipe(Cut(b"".join(parts))))
    np.testing.assert_array_equal(samples, np.concatenate([one, two]) / np.float32(32768))
    assert gaps == []


@pytest.mark.parametrize("length", [None, 0])
def test_a_second_wav_of_another_kind_is_a_gap(listen, length):
    one, two = bytes(2000), wav(bytes(8000), channels=2, rate=44_100)
    samples, (gap,) = listen(Pipe(io.BytesIO(wav(one, length=length) + two)))
    assert (len(samples), gap.reason, gap.lost_seconds) == (1000, "broken pipe", None)
    assert gap.detail == "-: more sound follows, of 44100 Hz and 2 channels"


@given(
    frames=st.lists(st.integers(-32768, 32767), min_size=1, max_size=60),
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=10),
    channels=st.integers(1, 3),
    extensible=st.booleans(),
)
def test_any_cutting_of_the_pipe_gives_the_same_samples(frames, sizes, channels, extensible):
    data = np.array(frames, "<i2").tobytes()
    whole = io.BytesIO(wav(data, channels=channels, extensible=extensible, length=0))

    class Dribble:
        turn = 0

        def read(self, count: int) -> bytes | None:
            self.turn += 1
            if self.turn % 5 == 0:
                return whole.read(min(count, sizes[self.turn % len(sizes)]))
            return whole.read(min(count, 1))

    dribble: Any = Dribble()
    blocks = [block.samples for block in Pipe(dribble) if isinstance(block, Block)]
    kept = len(frames) - len(frames) % channels
    expected = np.array(frames[:kept], np.float32) / 32768
    heard = np.concatenate([b.ravel() for b in blocks]) if blocks else np.zeros(0)
    np.testing.assert_array_equal(heard, expected)


@given(st.binary(max_size=80), st.integers(0, 80))
def test_any_bytes_are_a_wav_or_a_source_error(noise, cut):
    for data in (noise, wav(b"abcd")[:cut] + noise):
        try:
            header = read_header(io.BytesIO(data).read)
        except SourceError as error:
            assert "\n" not in str(error)  # noqa: PT017
        else:
            assert header.rate > 0
            assert header.frame_bytes > 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "pipe is empty"),
        (b"ID3 this is an mp3 file", "--raw 16000:1:s16le"),
        (wav(b"", bits=8), "format 1 with 8 bits"),
        (wav(b"", form=7, bits=8), "format 7"),
        (wav(b"", channels=0), "damaged"),
        (wav(b"", rate=0), "damaged"),
        (wav(b"")[:30], "ends before|damaged"),
        (b"RIFF\0\0\0\0WAVEdata\0\0\0\0", "does not name its format"),
    ],
)
def test_what_is_no_wav_says_what_to_do(data, words):
    with pytest.raises(SourceError, match=words):
        Pipe(io.BytesIO(data))


def test_raw_samples_are_all_samples_but_for_an_odd_byte(listen):
    data = wav(bytes(2000)) * 2  # it looks like a header
    samples, gaps = listen(Pipe(io.BytesIO(data + b"x"), raw=(8000, 1, "s16le")))
    np.testing.assert_array_equal(samples, np.frombuffer(data, "<i2").astype("f4") / 32768)
    assert gaps == []
    floats = np.array([[0.5, np.nan], [-0.25, 2.0]], "<f4")
    pipe = Pipe(io.BytesIO(floats.tobytes()), raw=(48_000, 2, "f32le"))
    np.testing.assert_array_equal(listen(pipe)[0], floats)
    assert pipe.seconds is None
    for raw in ((0, 1, "s16le"), (16000, 0, "s16le"), (16000, 1, "u8")):
        with pytest.raises(UsageError, match="16000:1:s16le"):
            Pipe(io.BytesIO(b""), raw=raw)


def test_blocks_come_as_they_are_written_and_never_exceed_a_second(listen):
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as stream:
        os.write(writer, bytes(320))
        blocks: Any = iter(Pipe(stream, raw=(RATE, 1, "s16le")))
        assert len(next(blocks).samples) == 160  # the pipe is still open

        def rest() -> None:
            os.write(writer, bytes(2 * RATE * 3))
            os.close(writer)

        thread = threading.Thread(target=rest)
        thread.start()
        lengths = [len(block.samples) for block in blocks]
        thread.join()
    assert sum(lengths) == 3 * RATE
    assert max(lengths) <= RATE


def test_a_pipe_that_fails_or_ends_early_is_a_gap(listen):
    class Failing(io.RawIOBase):
        def read(self, _=-1):
            raise OSError(5, "Input/output error")

    failing: Any = Failing()
    samples, (gap,) = listen(Pipe(failing, raw=(8000, 1, "s16le")))
    assert len(samples) == 0
    assert (gap.reason, gap.lost_seconds) == ("broken pipe", None)
    samples, (gap,) = listen(Pipe(io.BytesIO(wav(bytes(RATE), length=2 * RATE))))
    assert len(samples) == RATE // 2
    assert (gap.reason, gap.lost_seconds) == ("broken pipe", 0.5)
