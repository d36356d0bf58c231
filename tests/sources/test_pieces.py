"""Streams one after the other in a file, and MP3s that do not say how long they are."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.files import MemoryFile
from monitor.sources import File
from monitor.sources.file import Decoder, find_pieces
from tests.sources.conftest import FORMATS, RATE, voice

FRAME_BYTES, CONSTANT_FRAME_BYTES = 288, 360  # of the Xing header of libsndfile's MP3s
DELAY = 576  # samples of silence that its encoder puts first, which only the header tells of
TAGS = {
    "ID3v2": b"ID3\x04\x00\x00\x00\x00\x02\x00" + bytes(256),
    "ID3v1": b"TAG" + bytes(125),
    "APE": b"APETAGEX\xd0\x07\0\0\x40\0\0\0\1\0\0\0\0\0\0\xa0" + bytes(8 + 64),
}


def encoded(suffix: str, seconds: float, seed: int = 1, rate: int = RATE, channels: int = 1):
    form, subtype = FORMATS[suffix]
    file = io.BytesIO()
    samples = np.stack([voice(seconds, seed)] * channels, axis=1)
    soundfile.write(file, samples, rate, format=form, subtype=subtype)
    return file.getvalue()


def loud_then_still(bare: bool = True) -> bytes:
    """An MP3 of 15 s, whose first frames take more bytes than the rest; ``bare``: no Xing."""
    file = io.BytesIO()
    noise = np.random.default_rng(0).normal(0, 0.2, 3 * RATE)
    samples = np.concatenate([noise, np.zeros(12 * RATE)])
    soundfile.write(file, samples, RATE, format="MP3", bitrate_mode="VARIABLE")
    return file.getvalue()[FRAME_BYTES if bare else 0 :]


@pytest.mark.parametrize("suffix", [*FORMATS])
def test_a_second_stream_is_heard_as_by_itself(recordings, listen, tmp_path, suffix):
    first, second = recordings[suffix].read_bytes(), encoded(suffix, 3.0)
    (tmp_path / f"second.{suffix}").write_bytes(second)
    path = tmp_path / f"both.{suffix}"
    path.write_bytes(first + second + first)
    one, two = (listen(File(p))[0] for p in (recordings[suffix], tmp_path / f"second.{suffix}"))
    for source in (
        File(path, block_seconds=0.013),
        File(path),
        File(MemoryFile(path.name, path.read_bytes())),
    ):
        samples, gaps = listen(source)
        np.testing.assert_array_equal(samples, np.concatenate([one, two, one]))
        assert (source.seconds, gaps) == (19.0, [])
    part, gaps = listen(File(path, start_seconds=7.5, end_seconds=8.5))
    np.testing.assert_array_equal(part, np.concatenate([one[-RATE // 2 :], two[: RATE // 2]]))
    assert gaps == []


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg", "opus", "mp3", "aiff"])
def test_a_second_stream_of_another_kind_is_a_gap(recordings, listen, tmp_path, suffix):
    path = tmp_path / f"both.{suffix}"
    path.write_bytes(recordings[suffix].read_bytes() + encoded(suffix, 3.0, 1, 24_000, 2))
    samples, (gap,) = listen(File(path))
    np.testing.assert_array_equal(samples, listen(File(recordings[suffix]))[0])
    assert (gap.reason, gap.lost_seconds) == ("broken file", None)
    assert gap.detail == (
        f"both.{suffix}: more sound follows, of 24000 Hz and 2 channels; 8.00 s could be read"
    )
    assert listen(File(path, end_seconds=7.0))[1] == []


def test_a_second_stream_that_is_damaged_is_a_gap(recordings, listen, tmp_path):
    path = tmp_path / "both.wav"
    path.write_bytes(recordings["wav"].read_bytes() + b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0")
    samples, (gap,) = listen(File(path))
    assert (len(samples), gap.lost_seconds) == (8 * RATE, None)
    assert "more sound follows, which cannot be read (" in gap.detail


def test_a_link_that_breaks_off_is_a_gap(recordings, listen, tmp_path):
    path = tmp_path / "both.ogg"
    whole = recordings["ogg"].read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + whole)
    samples, (gap,) = listen(File(path))
    assert 8 * RATE < len(samples) < 16 * RATE
    assert gap.reason == "broken file"


def test_streams_side_by_side_are_one_piece(recordings):
    """Their first pages come in a row, as those of a Skeleton before a Vorbis."""
    sound = recordings["ogg"].read_bytes()
    beside = b"OggS\0\2" + bytes(8) + b"\1\2\3\4" + bytes(8) + b"\1\x08fishead\0"
    pieces = find_pieces(io.BytesIO(beside + sound + beside + sound))
    middle = len(beside + sound)
    assert [(piece.begin, piece.end) for piece in pieces] == [(0, middle), (middle, 2 * middle)]


def test_an_mp3_without_a_length_is_heard_whole(listen, tmp_path):
    whole, bare = tmp_path / "whole.mp3", tmp_path / "bare.mp3"
    whole.write_bytes(loud_then_still(bare=False))
    bare.write_bytes(loud_then_still())
    assert soundfile.info(bare).duration < 4  # by what libsndfile makes of its first frames
    expected, _ = listen(File(whole))
    assert len(expected) == 15 * RATE
    for source in (File(bare), File(bare, block_seconds=0.07)):
        samples, gaps = listen(source)
        assert gaps == []
        assert source.seconds == len(samples) / RATE
        np.testing.assert_allclose(samples[DELAY:][: 15 * RATE], expected, atol=1e-6)


def constant(seconds: float) -> bytes:
    """An MP3 of one bit rate without a Xing header."""
    file = io.BytesIO()
    options = {"bitrate_mode": "CONSTANT", "compression_level": 0.5}
    soundfile.write(file, voice(seconds), RATE, format="MP3", **options)
    return file.getvalue()[CONSTANT_FRAME_BYTES:]


def test_an_mp3_of_one_bit_rate_is_read_as_ever(listen, tmp_path):
    path = tmp_path / "bare.mp3"
    path.write_bytes(constant(8.0))
    expected, _ = soundfile.read(path, dtype="float32")
    samples, gaps = listen(File(path))
    np.testing.assert_array_equal(samples, expected)
    assert gaps == []


@pytest.mark.parametrize("tags", [(), *((tag,) for tag in TAGS), ("ID3v1", "ID3v2")])
def test_mp3s_one_after_the_other_with_tags_or_without(listen, tmp_path, tags):
    path = tmp_path / "both.mp3"
    between = b"".join(TAGS[tag] for tag in tags)
    frames = [len(part) // CONSTANT_FRAME_BYTES * 576 for part in (constant(8.0), constant(4.0))]
    path.write_bytes(constant(8.0) + between + constant(4.0) + between)
    source = File(path)
    samples, gaps = listen(source)
    assert (len(samples), gaps) == (sum(frames), [])
    assert source.seconds == len(samples) / RATE


def test_an_mp3_longer_than_its_own_header_says_is_heard_whole(listen, tmp_path):
    path = tmp_path / "both.mp3"
    path.write_bytes(loud_then_still(bare=False) + constant(4.0))
    samples, gaps = listen(File(path))
    assert len(samples) / RATE == pytest.approx(19.1, abs=0.2)
    assert gaps == []


def test_what_an_mp3_without_a_length_loses_is_a_gap(listen, tmp_path):
    path = tmp_path / "broken.mp3"
    path.write_bytes(constant(8.0) + bytes(3000) + constant(4.0))
    samples, (gap,) = listen(File(path))
    assert len(samples) / RATE == pytest.approx(8.1, abs=0.1)
    assert gap.lost_seconds == pytest.approx(4.1, abs=0.1)


def test_fraunhofers_header_is_not_relied_upon(listen, tmp_path):
    """It says how many frames there are, or too few; not every decoder looks at it."""
    path = tmp_path / "vbri.mp3"
    sound = loud_then_still()
    head = (
        b"\xff\xf3\x98\xc4" + bytes(32) + b"VBRI\0\1\1\0\0\x4b" + bytes(4) + b"\0\0\0\x10"
    ).ljust(CONSTANT_FRAME_BYTES, b"\0")
    path.write_bytes(head + sound)
    samples, gaps = listen(File(path))
    assert len(samples) / RATE == pytest.approx(15.1, abs=0.1)
    assert gaps == []


def test_a_wav_with_more_samples_than_its_header_counts_is_a_gap(recordings, listen, tmp_path):
    """As a recorder leaves it that was killed: it writes the length now and then."""
    data = bytearray(recordings["wav"].read_bytes())
    at = data.find(b"data") + 4
    data[at : at + 4] = (2 * RATE * 2).to_bytes(4, "little")
    path = tmp_path / "killed.wav"
    path.write_bytes(data)
    samples, (gap,) = listen(File(path))
    assert (len(samples), gap.lost_seconds) == (2 * RATE, None)
    assert "more bytes follow than its header counts" in gap.detail
    path.write_bytes(data[: at + 4 + 4 * RATE] + bytes(9000))  # as file systems fill up blocks
    assert listen(File(path))[1] == []


@pytest.mark.slow
def test_many_links_add_up(listen, tmp_path):
    for suffix in ("opus", "mp3", "ogg"):
        path = tmp_path / f"radio.{suffix}"
        path.write_bytes(encoded(suffix, 0.7) * 60)
        samples, gaps = listen(File(path))
        assert len(samples) / RATE == pytest.approx(42.0, abs=0.1)
        assert gaps == []


def test_a_file_is_closed_with_all_of_its_pieces(recordings, tmp_path):
    path = tmp_path / "both.mp3"
    path.write_bytes(recordings["mp3"].read_bytes() * 2)
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("this system lists no open descriptors")
    before = len(list(descriptors.iterdir()))
    with Decoder(path) as decoder:
        while len(decoder.read(RATE)):
            pass
    assert len(list(descriptors.iterdir())) == before
