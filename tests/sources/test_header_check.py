"""Headers that would take all memory."""

import io
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.errors import SourceError
from monitor.protocols import MOST_CHANNELS, MOST_RATE, MOST_SAMPLES, Source
from monitor.sources import File, Pipe
from monitor.types import Block

MOST_BYTES = 300e6


def header(channels: int, rate: int, data_bytes: int) -> bytes:
    """Of a WAV with 16 bits."""
    align = 2 * channels
    kind = struct.pack("<IHHIIHH", 16, 1, channels, rate, rate * align & 0xFFFFFFFF, align, 16)
    length = struct.pack("<I", 36 + data_bytes)
    return b"RIFF" + length + b"WAVEfmt " + kind + b"data" + struct.pack("<I", data_bytes)


def only_blocks(source: Source) -> list[Block]:
    return [item for item in source if isinstance(item, Block)]


MEASURED = """
import os, sys
run = os.posix_spawn(sys.executable, [sys.executable, *sys.argv[1:]], os.environ)
_, status, usage = os.wait4(run, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""
"""In between: a process begins with the largest size that the one before it had."""

ABSURD = [
    (1024, 48_000, "1,024 channels"),
    (MOST_CHANNELS + 1, 8_000, "65 channels"),
    (1, 20_000_000, "rate 20000000 Hz"),
    (1, MOST_RATE + 1, "rate 768001 Hz"),
    (1, 1, "rate 1 Hz"),
]


@pytest.mark.parametrize(("channels", "rate", "words"), ABSURD)
def test_an_absurd_format_is_refused(tmp_path, channels, rate, words):
    path = tmp_path / "two-kilobytes.wav"
    path.write_bytes(header(channels, rate, 2048) + bytes(2048))
    with pytest.raises(
        SourceError, match=f"unsupported {words} in the header of two-kilobytes.wav"
    ):
        File(path)
    with pytest.raises(SourceError, match=f"unsupported {words} in the header of the pipe"):
        Pipe(io.BytesIO(path.read_bytes()))
    with pytest.raises(SourceError, match=words):
        Pipe(io.BytesIO(bytes(100)), (rate, channels, "s16le"))


@pytest.mark.parametrize(("channels", "rate"), [(MOST_CHANNELS, 48_000), (1, MOST_RATE)])
def test_blocks_are_bounded_in_samples_of_all_channels(tmp_path, channels, rate):
    frames = MOST_SAMPLES // channels + 1000
    path = tmp_path / "wide.wav"
    path.write_bytes(header(channels, rate, frames * channels * 2))
    os.truncate(path, path.stat().st_size + frames * channels * 2)  # silence that takes no room
    blocks = [len(block.samples) for block in only_blocks(File(path, block_seconds=3600))]
    assert sum(blocks) == frames
    assert max(blocks) * channels <= MOST_SAMPLES
    with path.open("rb") as stream:
        pieces = [len(block.samples) for block in only_blocks(Pipe(stream))]
    assert sum(pieces) == frames
    assert max(pieces) * channels <= MOST_SAMPLES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("channels", "rate", "words"), [(64, 96_000, ""), (1, 768_000, ""), *ABSURD[:3]]
)
def test_no_header_takes_much_memory(tmp_path: Path, channels, rate, words):
    path = tmp_path / "hostile.wav"
    size = 12_000_000 // (2 * channels) * 2 * channels
    path.write_bytes(header(channels, rate, size))
    os.truncate(path, path.stat().st_size + size)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "-m", "monitor", "replay", path, "--features", "f0",
         "--jsonl", "/dev/null"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    code, kilobytes = map(int, done.stdout.split())
    assert words in done.stderr
    assert (code == 1) == bool(words)
    assert kilobytes * 1024 < MOST_BYTES
