"""Recordings in files of every format: whole, broken, several in a row, or none."""

import gzip
import io
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor import lazy
from monitor.errors import SourceError, UsageError
from monitor.protocols import Source
from monitor.sources import File
from monitor.types import Block, Gap
from monitor.virtual_files import MemoryFile
from tests.sources.conftest import FORMATS, RATE, voice

SUFFIXES = list(FORMATS)


def zipped(data: bytes, name: str = "a.wav") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, data)
    return file.getvalue()


FOREIGN = {
    "page": (lambda _: b"\n<!DOCTYPE html>\n<html><body>404</body></html>\n", "web page"),
    "bare page": (lambda _: b"\xef\xbb\xbf<html>\xff</html>", "web page"),
    "pointer": (lambda _: b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "json": (lambda _: b'{"error": "not found"}', "JSON text"),
    "xml": (lambda _: b'<?xml version="1.0"?><Error/>', "XML text"),
    "gzip": (gzip.compress, r"\(gzip\): unpack it"),
    "zip": (zipped, "ZIP archive: unpack it"),
    "array": (lambda data: zipped(data, "a.npy"), "NumPy archive"),
    "spreadsheet": (lambda data: zipped(data, "[Content_Types].xml"), "spreadsheet"),
    "pdf": (lambda _: b"%PDF-1.7\n%\xe2\xe3" + bytes(99), "PDF document"),
    "picture": (lambda _: b"\x89PNG\r\n\x1a\n" + bytes(99), "picture"),
}
LOSSLESS = ("wav", "flac", "aiff", "au", "w64", "caf")


@pytest.fixture
def hear(tmp_path, listen):
    """A file of these bytes, its samples and its gaps."""

    def hear(name, data, **options):
        (tmp_path / name).write_bytes(data)
        source = File(tmp_path / name, **options)
        return source, *listen(source)

    return hear


def with_length(wav: bytes, length: int) -> bytes:
    """A WAV whose header counts other bytes of samples."""
    at = wav.find(b"data") + 4
    return wav[:at] + struct.pack("<I", length) + wav[at + 4 :]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_is_heard_whole(recordings, listen, suffix):
    source = File(recordings[suffix], recording=2)
    assert isinstance(source, Source)
    samples, gaps = listen(source)
    assert source.label == f"voice.{suffix}"
    assert (source.rate, source.channels, source.seconds) == (RATE, 1, 8.0)
    assert gaps == []
    assert (samples.shape, samples.dtype) == ((8 * RATE,), np.float32)
    assert 0.1 < np.abs(samples).max() <= 1.5
    if suffix in LOSSLESS:
        expected, _ = soundfile.read(recordings[suffix], dtype="float32")
        np.testing.assert_array_equal(samples, expected)
    with source:
        assert {item.recording for item in source if isinstance(item, Block | Gap)} == {2}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("harm", ["none", "truncated", "zeroed", "hole"])
def test_samples_and_gaps_do_not_depend_on_the_block_length(recordings, hear, suffix, harm):
    data = recordings[suffix].read_bytes()
    middle = len(data) // 2
    harmed = {
        "none": data,
        "truncated": data[: int(len(data) * 0.6)],
        "zeroed": data[:middle] + bytes(2000) + data[middle + 2000 :],
        "hole": data[:middle] + data[middle + 5000 :],
    }[harm]
    if suffix == "caf" and harm in {"truncated", "hole"}:  # libsndfile refuses to open it
        with pytest.raises(SourceError, match="malformed"):
            hear("a.caf", harmed)
        return
    outcomes = [hear(f"a.{suffix}", harmed, block_seconds=s) for s in (0.013, 0.25, 1.0, 60.0)]
    for _, samples, gaps in outcomes[1:]:
        np.testing.assert_array_equal(samples, outcomes[0][1])
        assert gaps == outcomes[0][2]


@pytest.mark.parametrize("suffix", ["wav", "flac", "mp3", "aiff", "au", "w64"])
def test_truncated_file_gives_all_before_the_break_and_one_gap(recordings, listen, hear, suffix):
    whole, _ = listen(File(recordings[suffix]))
    data = recordings[suffix].read_bytes()
    source, samples, (gap,) = hear(f"cut.{suffix}", data[: int(len(data) * 0.6)])
    assert source.seconds == pytest.approx(8.0, abs=0.01)
    assert len(samples) / RATE == pytest.approx(4.8, abs=0.3)
    np.testing.assert_array_equal(samples, whole[: len(samples)])
    assert gap.reason == "broken file"
    assert gap.lost_seconds == pytest.approx(8.0 - len(samples) / RATE, abs=0.01)
    assert gap.detail.startswith(f"cut.{suffix}: ")
    assert "\n" not in gap.detail


@pytest.mark.parametrize("suffix", ["ogg", "opus"])
def test_what_is_missing_of_an_ogg_is_reported(recordings, hear, suffix):
    data = recordings[suffix].read_bytes()
    half = len(data) // 2
    _, samples, (gap,) = hear(f"hole.{suffix}", data[:half] + data[half + 6000 :])
    assert gap.reason == "broken file"
    assert gap.lost_seconds == pytest.approx(8.0 - len(samples) / RATE)
    _, samples, (gap,) = hear(f"cut.{suffix}", data[: int(len(data) * 0.6)])
    assert 0 < len(samples) < 8 * RATE
    assert (gap.reason, gap.lost_seconds) == ("broken file", None)  # nobody knows the length


@pytest.mark.parametrize("suffix", ["flac", "mp3"])
def test_break_in_the_middle_loses_no_sample_before_it(recordings, listen, hear, suffix):
    data = bytearray(recordings[suffix].read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = bytes(2000)
    _, samples, (gap,) = hear(f"broken.{suffix}", data, recording=4, block_seconds=60.0)
    assert len(samples) / RATE == pytest.approx(4.0, abs=0.4)
    if suffix == "flac":
        whole, _ = listen(File(recordings[suffix]))
        np.testing.assert_array_equal(samples, whole[: len(samples)])
        assert len(samples) % 4096 == 0  # whole FLAC frames
    assert np.isfinite(samples).all()
    assert gap.recording == 4
    assert gap.lost_seconds == pytest.approx(8.0 - len(samples) / RATE)


def test_mp3_noise_does_not_reach_standard_error(recordings, hear, capfd, monkeypatch):
    monkeypatch.setattr(lazy, "own_process", True)  # as of the command line
    data = bytearray(recordings["mp3"].read_bytes())
    data[9000:9400] = os.urandom(400)
    hear("noisy.mp3", data[: int(len(data) * 0.7)])
    os.write(2, b"still open")
    assert capfd.readouterr().err == "still open"
    monkeypatch.setattr(lazy, "own_process", False)  # another program's stays as it is
    with monkeypatch.context() as patch:
        patch.setattr(os, "dup2", lambda *_: pytest.fail("a descriptor was changed"))
        hear("whole.mp3", recordings["mp3"].read_bytes())


@pytest.mark.parametrize("length", [0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFF000])
def test_a_length_that_nobody_wrote_down_is_none(recordings, hear, length):
    piped = with_length(recordings["wav"].read_bytes(), length)
    source, samples, gaps = hear("piped.wav", piped)
    assert (source.seconds, len(samples), gaps) == (8.0, 8 * RATE, [])
    data = bytearray(recordings["flac"].read_bytes())
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    source, samples, gaps = hear("stream.flac", data, end_seconds=100.0)
    assert (source.seconds, len(samples), gaps) == (None, 8 * RATE, [])


def test_a_wav_with_more_samples_than_its_header_counts_is_a_gap(recordings, hear):
    """As a recorder leaves it that was killed: it writes the length now and then."""
    killed = with_length(recordings["wav"].read_bytes(), 2 * RATE * 2)
    _, samples, (gap,) = hear("killed.wav", killed)
    assert (len(samples), gap.lost_seconds) == (2 * RATE, None)
    assert "it has more bytes than its header states" in gap.detail
    end = killed.find(b"data") + 8 + 4 * RATE
    assert hear("killed.wav", killed[:end] + bytes(9000))[2] == []  # file systems fill up blocks


@pytest.mark.parametrize("suffix", ["flac", "opus", "mp3"])
def test_interval_is_cut_from_the_whole(recordings, listen, suffix):
    whole, _ = listen(File(recordings[suffix]))
    source = File(recordings[suffix], start_seconds=1.2345, end_seconds=3.5, block_seconds=0.7)
    part, gaps = listen(source)
    np.testing.assert_array_equal(part, whole[round(1.2345 * RATE) : round(3.5 * RATE)])
    assert source.seconds == pytest.approx(3.5 - 1.2345)
    assert gaps == []
    with pytest.raises(SourceError, match=r"ends at 8\.00 s"):
        File(recordings[suffix], start_seconds=8.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _: None, "No such file"),
        (Path.mkdir, "folder"),
        (Path.touch, "empty"),
        (lambda path: path.write_text("hello, this is text\n"), "it is text"),
        (lambda path: path.write_bytes(os.urandom(5000)), "not a readable recording"),
        (lambda path: soundfile.write(path, np.zeros(0), 8000), "has no audio"),
        (os.mkfifo, "not a plain file"),
    ],
    ids=["missing", "folder", "empty", "text", "noise", "no samples", "fifo"],
)
def test_what_is_no_recording_is_refused_at_once(tmp_path, make, words):
    path = tmp_path / "a.wav"
    make(path)
    with pytest.raises(SourceError) as caught:
        File(path)
    message = str(caught.value)
    assert words in message
    assert "a.wav" in message
    assert str(tmp_path) not in message
    assert "\n" not in message


@pytest.mark.parametrize("suffix", ["wav", "mp3"])
@pytest.mark.parametrize("content", FOREIGN)
def test_a_file_with_the_wrong_suffix_is_called_what_it_is(recordings, tmp_path, content, suffix):
    data, words = FOREIGN[content]
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(data(recordings["wav"].read_bytes()))
    with pytest.raises(SourceError, match=f"^a.{suffix} .*{words}") as caught:
        File(path)
    assert "exist" not in str(caught.value)
    with pytest.raises(SourceError, match=words):
        File(MemoryFile(path.name, path.read_bytes()))


@pytest.mark.parametrize("data", [bytes(5000), bytes(4) + b"ftypM4A " + bytes(500), b"hello\n"])
def test_an_mp3_that_cannot_be_decoded_is_not_called_missing(tmp_path, data):
    (tmp_path / "a.mp3").write_bytes(data)
    with pytest.raises(SourceError, match=r"^a\.mp3 is not a readable recording \(") as caught:
        File(tmp_path / "a.mp3")
    assert "exist" not in str(caught.value)
    assert ("ffmpeg -i" in str(caught.value)) == (b"ftyp" in data)


@pytest.mark.parametrize(
    "arguments",
    [
        {"block_seconds": 0.0},
        {"block_seconds": float("nan")},
        {"start_seconds": -1.0},
        {"start_seconds": float("inf")},
        {"start_seconds": 2.0, "end_seconds": 2.0},
        {"end_seconds": float("nan")},
    ],
)
def test_senseless_arguments(recordings, arguments):
    with pytest.raises(UsageError):
        File(recordings["wav"], **arguments)


# ------------------------------------------------------------------------------ one after the other

FRAME_BYTES, CONSTANT_FRAME_BYTES = 288, 360  # of the Xing header of libsndfile's MP3s
DELAY = 576  # samples of silence that its encoder puts first, which only the header tells of
TAGS = {
    "ID3v2": b"ID3\x04\x00\x00\x00\x00\x02\x00" + bytes(256),
    "ID3v1": b"TAG" + bytes(125),
    "APE": b"APETAGEX\xd0\x07\0\0\x40\0\0\0\1\0\0\0\0\0\0\xa0" + bytes(8 + 64),
}


def encoded(suffix: str, seconds: float, rate: int = RATE, channels: int = 1) -> bytes:
    form, subtype = FORMATS[suffix]
    file = io.BytesIO()
    samples = np.stack([voice(seconds, 1)] * channels, axis=1)
    soundfile.write(file, samples, rate, format=form, subtype=subtype)
    return file.getvalue()


def loud_then_still(bare: bool = True) -> bytes:
    """An MP3 of 15 s, whose first frames take more bytes than the rest; ``bare``: no Xing."""
    file = io.BytesIO()
    noise = np.random.default_rng(0).normal(0, 0.2, 3 * RATE)
    samples = np.concatenate([noise, np.zeros(12 * RATE)])
    soundfile.write(file, samples, RATE, format="MP3", bitrate_mode="VARIABLE")
    return file.getvalue()[FRAME_BYTES if bare else 0 :]


def constant(seconds: float) -> bytes:
    """An MP3 of one bit rate without a Xing header."""
    file = io.BytesIO()
    options = {"bitrate_mode": "CONSTANT", "compression_level": 0.5}
    soundfile.write(file, voice(seconds), RATE, format="MP3", **options)
    return file.getvalue()[CONSTANT_FRAME_BYTES:]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_second_stream_is_heard_as_by_itself(recordings, listen, hear, tmp_path, suffix):
    first, second = recordings[suffix].read_bytes(), encoded(suffix, 3.0)
    one, two = listen(File(recordings[suffix]))[0], hear(f"second.{suffix}", second)[1]
    path = tmp_path / f"both.{suffix}"
    path.write_bytes(first + second + first)
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
def test_a_second_stream_of_another_kind_is_a_gap(recordings, listen, hear, suffix):
    both = recordings[suffix].read_bytes() + encoded(suffix, 3.0, 24_000, 2)
    _, samples, (gap,) = hear(f"both.{suffix}", both)
    np.testing.assert_array_equal(samples, listen(File(recordings[suffix]))[0])
    assert (gap.reason, gap.lost_seconds) == ("broken file", None)
    told = "ends after 8.00 s (more sound follows, of 24000 Hz and 2 channels)"
    assert gap.detail == f"both.{suffix}: {told}"
    assert hear(f"both.{suffix}", both, end_seconds=7.0)[2] == []


def test_a_second_stream_that_is_damaged_or_breaks_off_is_a_gap(recordings, hear):
    wav, ogg = recordings["wav"].read_bytes(), recordings["ogg"].read_bytes()
    _, samples, (gap,) = hear("both.wav", wav + b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0")
    assert (len(samples), gap.lost_seconds) == (8 * RATE, None)
    assert "more sound follows, which cannot be read (" in gap.detail
    _, samples, (gap,) = hear("both.ogg", ogg[: len(ogg) // 2] + ogg)
    assert 8 * RATE < len(samples) < 16 * RATE
    assert gap.reason == "broken file"


def test_an_mp3_without_a_length_is_heard_whole(hear):
    bare = loud_then_still()
    assert soundfile.info(io.BytesIO(bare)).duration < 4  # by what its first frames let expect
    _, expected, _ = hear("whole.mp3", loud_then_still(bare=False))
    assert len(expected) == 15 * RATE
    for seconds in (1.0, 0.07):
        source, samples, gaps = hear("bare.mp3", bare, block_seconds=seconds)
        assert gaps == []
        assert source.seconds == len(samples) / RATE
        np.testing.assert_allclose(samples[DELAY:][: 15 * RATE], expected, atol=1e-6)


def test_an_mp3_of_one_bit_rate_is_read_as_ever_and_what_it_loses_is_a_gap(hear):
    data = constant(8.0)
    _, samples, gaps = hear("bare.mp3", data)
    np.testing.assert_array_equal(samples, soundfile.read(io.BytesIO(data), dtype="float32")[0])
    assert gaps == []
    _, samples, (gap,) = hear("broken.mp3", data + bytes(3000) + constant(4.0))
    assert len(samples) / RATE == pytest.approx(8.1, abs=0.1)
    assert gap.lost_seconds == pytest.approx(4.1, abs=0.1)


@pytest.mark.parametrize("tags", [(), *((tag,) for tag in TAGS), ("ID3v1", "ID3v2")])
def test_mp3s_one_after_the_other_with_tags_or_without(hear, tags):
    between, parts = b"".join(TAGS[tag] for tag in tags), (constant(8.0), constant(4.0))
    source, samples, gaps = hear("both.mp3", b"".join(part + between for part in parts))
    frames = [len(part) // CONSTANT_FRAME_BYTES * 576 for part in parts]
    assert (len(samples), gaps) == (sum(frames), [])
    assert source.seconds == len(samples) / RATE


def test_an_mp3_longer_than_its_own_header_says_is_heard_whole(hear):
    # that of Fraunhofer says how many frames there are, or too few; not every decoder looks at it
    head = b"\xff\xf3\x98\xc4" + bytes(32) + b"VBRI\0\1\1\0\0\x4b" + bytes(4) + b"\0\0\0\x10"
    for data, seconds in (
        (loud_then_still(bare=False) + constant(4.0), 19.1),
        (head.ljust(CONSTANT_FRAME_BYTES, b"\0") + loud_then_still(), 15.1),
    ):
        _, samples, gaps = hear("both.mp3", data)
        assert len(samples) / RATE == pytest.approx(seconds, abs=0.2)
        assert gaps == []
