"""Transcripts made to take time and memory: read or refused in one line, within bounds of both."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from monitor.errors import SourceError
from monitor.transcripts import Transcript, WordPipe, read_transcript
from tests.transcripts.test_live import line

CPU_SECONDS = 120
MOST_MB = 100

READ = f"""
import resource, sys
import numpy, monitor.transcripts.formats
from monitor.errors import SourceError
from monitor.transcripts import read_transcript

resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    print(len(read_transcript(sys.argv[1]).timed_words))
except SourceError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3)
"""

VTT = "WEBVTT\n\n00:00:00.000 --> 01:00:00.000\n"
SRT = "1\n00:00:00,000 --> 01:00:00,000\n"


def captions(count: int, text: str) -> str:
    """Captions of half a second, one after the other."""
    times = [f"{t // 7200:02}:{t // 120 % 60:02}:{t / 2 % 60:06.3f}" for t in range(count + 1)]
    return "".join(f"{begin} --> {end}\n{text}\n\n" for begin, end in pairwise(times))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.vtt", VTT + "lorem ipsum dolor " * 2_200_000),
        ("a.vtt", VTT + "lorem ipsum dolor\n" * 1_000_000),
        ("a.srt", SRT + "a\n" * 9_000_000),
        ("a.srt", SRT + "lorem ipsum dolor\n\n" * 500_000),
        ("a.vtt", VTT + "a " * 490_000),
        ("a.vtt", "WEBVTT\n\n" + captions(60_000, "so it goes on")),
        ("a.vtt", VTT + "<00:00:01.000>a" * 60_000),
        ("a.vtt", VTT + f"<v{'.' * 5000}>" * 10 + "so it goes"),
        ("a.vtt", VTT + "<u>" * 300_000 + "so it goes"),
        ("a.vtt", VTT + "<u>" * 300_000 + "so it goes</u>"),
        ("a.words", '{"word": "so", "begin": 0, "end": 1}\n' * 310_000),
        ("a.json", '{"segments": [{"start": 0, "end": 9, "text": "' + "so " * 8_000_000 + '"}]}'),
    ],
    ids=[
        "a line of 40 MB", "a million lines", "nine million lines", "gaps", "a caption of a MB",
        "many", "times", "dots", "underlined", "ended", "words", "a segment",
    ],
)  # fmt: skip
def test_none_takes_the_memory_or_the_day(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    size = len(text) / 1e6
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True
    )
    said, took = done.stdout.splitlines()
    assert said
    # JSON may be larger than other transcripts: bytes, text and what stands in it are one each
    assert float(took) < MOST_MB + (3 * size if name == "a.json" else 0)


def test_ten_thousand_words_in_a_second_are_refused_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "a.vtt"
    later = "\n\n02:00:00.000 --> 02:00:02.000\nso it goes\n"
    path.write_text("WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n" + "so " * 10_000 + later)
    with pytest.raises(SourceError, match="words a second are more than anybody says"):
        read_transcript(path)


def test_and_left_out_where_they_come_through_a_pipe() -> None:
    told: list[str] = []
    with WordPipe([line("so", 1.0) for _ in range(9_990)], report=told.append) as pipe:
        pipe.wait()
        words = pipe.collect(100, audio_ticks=100)
        assert words is not None
        assert len(words.texts) == pipe.count == 1000
        assert pipe.beyond == 9_990 - pipe.count
        pipe.report_lost()
    assert len(told) == 2
    assert "more than anybody says" in told[0]
    assert told[1].endswith("left out in all: 8,990 words too many")


@pytest.mark.slow
def test_long_captions_are_read_alike_in_both_formats(tmp_path: Path) -> None:
    def read(name: str, text: str) -> Transcript:
        (tmp_path / name).write_text(text)
        return read_transcript(tmp_path / name)

    body = captions(12_000, "so it goes")
    whole = read("a.vtt", f"WEBVTT\n\n{body}")
    blocks = body.strip().split("\n\n")
    counted = "\n\n".join(f"{i}\n{block}" for i, block in enumerate(blocks, 1))
    assert read("a.srt", counted.replace(".", ",")).timed_words == whole.timed_words
    assert len(whole.timed_words) == 3 * 12_000
    assert whole.timed_words[-1].end == 6000.0
