from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor import lazy
from monitor.errors import SourceError, UsageError
from monitor.protocols import Source
from monitor.sources import File
from monitor.types import Block, Gap

RATE = 16_000
SUFFIXES = ["wav", "flac", "ogg", "opus", "mp3", "aiff", "au", "w64", "caf"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_is_heard_whole(recordings, listen, suffix):
    source = File(recordings[suffix])
    assert isinstance(source, Source)
    samples, gaps = listen(source)
    assert source.label == f"voice.{suffix}"
    assert (source.rate, source.channels, source.seconds) == (RATE, 1, 8.0)
    assert gaps == []
    assert samples.shape == (8 * RATE,)
    assert samples.dtype == np.float32
    assert 0.1 < np.abs(samples).max() <= 1.5


@pytest.mark.parametrize("suffix", ["wav", "flac", "aiff", "au", "w64", "caf"])
def test_lossless_samples_are_exact(recordings, listen, suffix):
    expected, _ = soundfile.read(recordings[suffix], dtype="float32")
    np.testing.assert_array_equal(listen(File(recordings[suffix]))[0], expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("harm", ["none", "truncated", "zeroed", "hole"])
def test_samples_and_gaps_do_not_depend_on_the_block_length(
    recordings, listen, tmp_path, suffix, harm
):
    data = recordings[suffix].read_bytes()
    middle = len(data) // 2
    path = tmp_path / f"a.{suffix}"
    harmed = {
        "none": data,
        "truncated": data[: int(len(data) * 0.6)],
        "zeroed": data[:middle] + bytes(2000) + data[middle + 2000 :],
        "hole": data[:middle] + data[middle + 5000 :],
    }
    path.write_bytes(harmed[harm])
    if suffix == "caf" and harm in {"truncated", "hole"}:  # libsndfile refuses to open it
        with pytest.raises(SourceError, match="malformed"):
            File(path)
        return
    outcomes = [listen(File(path, block_seconds=s)) for s in (0.013, 0.25, 1.0, 60.0)]
    for samples, gaps in outcomes[1:]:
        np.testing.assert_array_equal(samples, outcomes[0][0])
        assert gaps == outcomes[0][1]


def test_real_opus_does_not_depend_on_the_block_length(shared, listen):
    path = shared / "speech" / "dev-clean" / "84" / "121550.opus"
    one, gaps = listen(File(path, end_seconds=40.0, block_seconds=0.37))
    two, _ = listen(File(path, end_seconds=40.0))
    np.testing.assert_array_equal(one, two)
    assert gaps == []
    assert len(one) == 40 * RATE


@pytest.mark.parametrize("suffix", ["wav", "flac", "mp3", "aiff", "au", "w64"])
def test_truncated_file_gives_all_before_the_break_and_one_gap(
    recordings, listen, tmp_path, suffix
):
    whole, _ = listen(File(recordings[suffix]))
    data = recordings[suffix].read_bytes()
    path = tmp_path / f"cut.{suffix}"
    path.write_bytes(data[: int(len(data) * 0.6)])
    source = File(path)
    samples, gaps = listen(source)
    assert source.seconds == pytest.approx(8.0, abs=0.01)
    assert len(samples) / RATE == pytest.approx(4.8, abs=0.3)
    np.testing.assert_array_equal(samples, whole[: len(samples)])
    (gap,) = gaps
    assert gap.reason == "broken file"
    assert gap.lost_seconds == pytest.approx(8.0 - len(samples) / RATE, abs=0.01)
    assert gap.detail.startswith(f"cut.{suffix}: ")
    assert "\n" not in gap.detail


@pytest.mark.parametrize("suffix", ["ogg", "opus"])
def test_truncated_ogg_tells_that_something_is_missing(recordings, listen, tmp_path, suffix):
    data = recordings[suffix].read_bytes()
    path = tmp_path / f"cut.{suffix}"
    path.write_bytes(data[: int(len(data) * 0.6)])
    samples, gaps = listen(File(path))
    assert 0 < len(samples) < 8 * RATE
    assert [(gap.reason, gap.lost_seconds) for gap in gaps] == [("broken file", None)]


@pytest.mark.parametrize("suffix", ["flac", "mp3"])
def test_break_in_the_middle_loses_no_sample_before_it(recordings, listen, tmp_path, suffix):
    whole, _ = listen(File(recordings[suffix]))
    data = bytearray(recordings[suffix].read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = bytes(2000)
    path = tmp_path / f"broken.{suffix}"
    path.write_bytes(data)
    samples, (gap,) = listen(File(path, recording=4, block_seconds=60.0))
    assert len(samples) / RATE == pytest.approx(4.0, abs=0.4)
    if suffix == "flac":
        np.testing.assert_array_equal(samples, whole[: len(samples)])
        assert len(samples) % 4096 == 0  # whole FLAC frames
    assert np.isfinite(samples).all()
    assert gap.recording == 4
    assert gap.lost_seconds == pytest.approx(8.0 - len(samples) / RATE)


@pytest.mark.parametrize("suffix", ["ogg", "opus"])
def test_hole_in_an_ogg_is_reported(recordings, listen, tmp_path, suffix):
    data = recordings[suffix].read_bytes()
    path = tmp_path / f"hole.{suffix}"
    path.write_bytes(data[: len(data) // 2] + data[len(data) // 2 + 6000 :])
    samples, gaps = listen(File(path))
    assert [gap.reason for gap in gaps] == ["broken file"]
    assert gaps[0].lost_seconds == pytest.approx(8.0 - len(samples) / RATE)


def test_mp3_noise_does_not_reach_standard_error(recordings, listen, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(lazy, "own_process", True)  # as of the command line
    data = bytearray(recordings["mp3"].read_bytes())
    data[9000:9400] = os.urandom(400)
    path = tmp_path / "noisy.mp3"
    path.write_bytes(data[: int(len(data) * 0.7)])
    listen(File(path))
    os.write(2, b"still open")
    assert capfd.readouterr().err == "still open"


def test_in_another_program_standard_error_stays_as_it_is(recordings, listen, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "dup2", lambda *_: pytest.fail("a descriptor was changed"))
        listen(File(recordings["mp3"]))


@pytest.mark.slow
def test_mp3s_that_are_read_at_once_leave_standard_error_as_it_was(recordings):
    code = """if True:
        import os, sys
        from concurrent.futures import ThreadPoolExecutor
        from pathlib import Path
        from monitor import lazy
        from monitor.sources.file import Decoder

        lazy.own_process = True

        def hear(path):
            for _ in range(20):
                with Decoder(Path(path)) as decoder:
                    while len(decoder.read(160)):
                        pass

        sys.setswitchinterval(1e-5)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(hear, [sys.argv[1]] * 4))
        os.write(2, b"still here")
    """
    words = [sys.executable, "-c", code, recordings["mp3"]]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "still here")


@pytest.mark.parametrize("length", [0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFF000])
def test_wav_that_was_piped_to_disk_is_whole(recordings, listen, tmp_path, length):
    data = bytearray(recordings["wav"].read_bytes())
    at = data.find(b"data") + 4
    data[at : at + 4] = struct.pack("<I", length)
    path = tmp_path / "piped.wav"
    path.write_bytes(data)
    source = File(path)
    samples, gaps = listen(source)
    assert (source.seconds, len(samples), gaps) == (8.0, 8 * RATE, [])


def test_flac_of_unknown_length(recordings, listen, tmp_path):
    data = bytearray(recordings["flac"].read_bytes())
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    path = tmp_path / "stream.flac"
    path.write_bytes(data)
    source = File(path, end_seconds=100.0)
    samples, gaps = listen(source)
    assert (source.seconds, len(samples), gaps) == (None, 8 * RATE, [])


@pytest.mark.parametrize("suffix", ["flac", "opus", "mp3"])
def test_interval_is_cut_from_the_whole(recordings, listen, suffix):
    whole, _ = listen(File(recordings[suffix]))
    source = File(recordings[suffix], start_seconds=1.2345, end_seconds=3.5, block_seconds=0.7)
    part, gaps = listen(source)
    np.testing.assert_array_equal(part, whole[round(1.2345 * RATE) : round(3.5 * RATE)])
    assert source.seconds == pytest.approx(3.5 - 1.2345)
    assert gaps == []


def test_interval_before_a_break_has_no_gap(recordings, listen, tmp_path):
    data = recordings["flac"].read_bytes()
    path = tmp_path / "cut.flac"
    path.write_bytes(data[: len(data) // 2])
    assert listen(File(path, end_seconds=2.0))[1] == []
    samples, (gap,) = listen(File(path, start_seconds=6.0, end_seconds=7.0))
    assert len(samples) == 0
    assert gap.lost_seconds == pytest.approx(1.0)


def test_stereo_and_not_finite_samples_are_passed_on(tmp_path, listen):
    values = np.zeros((100, 2), np.float32)
    values[3, 0], values[4, 1] = np.nan, np.inf
    path = tmp_path / "a.wav"
    soundfile.write(path, values, 8000, subtype="FLOAT")
    samples, gaps = listen(File(path))
    np.testing.assert_array_equal(samples, values)
    assert gaps == []


def test_a_source_can_be_heard_twice(recordings, listen):
    source = File(recordings["ogg"], recording=2)
    np.testing.assert_array_equal(listen(source)[0], listen(source)[0])
    with source:
        assert {item.recording for item in source if isinstance(item, Block | Gap)} == {2}


def _refused(tmp_path: Path, make) -> str:
    path = tmp_path / "a.wav"
    make(path)
    with pytest.raises(SourceError) as caught:
        File(path)
    message = str(caught.value)
    assert "a.wav" in message
    assert str(tmp_path) not in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _: None, "No such file"),
        (Path.mkdir, "folder"),
        (Path.touch, "empty"),
        (lambda path: path.write_text("hello, this is text\n"), "Format not recognised"),
        (lambda path: path.write_bytes(os.urandom(5000)), "no recording"),
        (lambda path: soundfile.write(path, np.zeros(0), 8000), "holds no audio"),
        (os.mkfifo, "not a plain file"),
    ],
    ids=["missing", "folder", "empty", "text", "noise", "no samples", "fifo"],
)
def test_what_is_no_recording_is_refused_at_once(tmp_path, make, words):
    assert words in _refused(tmp_path, make)


@pytest.mark.parametrize("name", ["my talk.raw", "my talk.PCM"])
def test_samples_without_a_header_are_named_with_the_option_for_them(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    path = Path(name)
    path.write_bytes(np.arange(-999, 999, dtype="<i2").tobytes())
    with pytest.raises(SourceError) as caught:
        File(path)
    assert str(caught.value) == (
        f"{name} is no recording with a header; give the format of its samples: monitor replay - "
        f"--raw 16000:1:s16le < '{name}'  (to enrol it: ffmpeg -f s16le -ar 16000 -ac 1 -i "
        f"'{name}' 'my talk.wav')"
    )


def test_an_ogg_of_another_codec_is_converted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("talk.ogg")
    page = b"OggS\0\2" + bytes(8) + b"\1\0\0\0" + bytes(8) + b"\1\x33"
    path.write_bytes(page + b"\x7fFLAC\1\0\0\1fLaC" + bytes(38))
    with pytest.raises(SourceError, match=r"or try ffmpeg -i talk\.ogg -f wav - \| monitor"):
        File(path)


def test_a_file_that_may_not_be_read(recordings, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SourceError, match=r"^cannot open voice.wav: Permission denied"):
        File(recordings["wav"])


def test_a_file_that_vanishes_is_a_source_error(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, np.zeros(100), 8000)
    source = File(path)
    path.unlink()
    with pytest.raises(SourceError, match=r"a\.wav"):
        list(source)


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


def test_start_after_the_end(recordings):
    with pytest.raises(SourceError, match=r"ends at 8\.00 s"):
        File(recordings["wav"], start_seconds=8.0)
