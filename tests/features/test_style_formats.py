"""One talk as every program writes it down, and the same frames of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from monitor.features.style import Style
from monitor.transcripts import read_transcript
from monitor.types import Track

SAID = "well i don't know what's so well known about it i i mean uh that's the number"
PLAIN = SAID.split()
BEGINS = [round(0.31 * i + 0.1, 2) for i in range(len(PLAIN))]
ENDS = [round(begin + 0.2, 2) for begin in BEGINS]
TIMED = list(zip(PLAIN, BEGINS, ENDS, strict=True))
CUE = (
    "Well, I don\u2019t know what\u2019s so\u2026 well-known about it. "
    "I-I mean uh that\u2019s the number!"
)


def word_lines(path: Path) -> None:
    lines = [{"word": w, "begin": b, "end": e} for w, b, e in TIMED]
    path.write_text("\n".join(map(json.dumps, lines)))


def ctm(path: Path) -> None:
    rows = [f"talk 1 {b} {e - b:.2f} {w.upper()} 0.9" for w, b, e in TIMED]
    rows.insert(3, f"talk 1 {BEGINS[3]} 0.01 [NOISE] 0.9")
    path.write_text("\n".join(rows))


def openai_whisper(path: Path) -> None:
    words = [{"word": f" {w.title()},", "start": b, "end": e} for w, b, e in TIMED]
    for word in words:  # str.title makes Don'T
        word["word"] = str(word["word"]).replace("'T", "'t").replace("'S", "\u2019s")
    path.write_text(json.dumps({"segments": [{"start": 0, "end": 9, "text": "", "words": words}]}))


def hugging_face(path: Path) -> None:
    chunks = [{"text": f" {w}", "timestamp": [b, e]} for w, b, e in TIMED]
    path.write_text(json.dumps({"chunks": chunks}))


def vtt(path: Path) -> None:
    path.write_text(f"WEBVTT\n\n00:00.000 --> 00:06.000\n<v Ann>{CUE}</v>\n", "utf-8")


def srt(path: Path) -> None:
    path.write_text(f"1\n00:00:00,000 --> 00:00:06,000\n{CUE.upper()}\n", "utf-8-sig")


def table(path: Path) -> None:
    path.write_text("start\tend\ttext\n0.00\t6.00\t" + " ".join(PLAIN).upper() + "\n")


WORD_BY_WORD: dict[str, Callable[[Path], None]] = {
    "talk.words": word_lines, "talk.ctm": ctm, "whisper.json": openai_whisper,
    "chunks.json": hugging_face,
}  # fmt: skip
IN_CUES: dict[str, Callable[[Path], None]] = {"talk.vtt": vtt, "talk.srt": srt, "talk.tsv": table}


def heard(path: Path, writes: Callable[[Path], None]) -> Track:
    writes(path)
    return Style().process(read_transcript(path).words())


def without_rates(track: Track) -> list[str]:
    names = [Style().bins[value] for value in track.values]
    return [name for name in names if not name.endswith("a second)")]


@pytest.mark.parametrize("name", WORD_BY_WORD)
def test_word_by_word_the_frames_are_the_same_to_the_tick(name, tmp_path):
    one = heard(tmp_path / "talk.words", word_lines)
    two = heard(tmp_path / name, WORD_BY_WORD[name])
    assert len(one.ticks) > len(PLAIN) + 1  # rates are among them
    assert two.ticks.tolist() == one.ticks.tolist()
    assert two.values.tolist() == one.values.tolist()
    assert one.spans is not None
    assert two.spans is not None
    assert np.array_equal(one.spans, two.spans)


@pytest.mark.parametrize("name", IN_CUES)
def test_of_cues_the_same_words_count(name, tmp_path):
    one = heard(tmp_path / "talk.words", word_lines)
    two = heard(tmp_path / name, IN_CUES[name])
    assert without_rates(two) == without_rates(one)
    assert set(two.ticks.tolist()) == {600}  # all known when the cue ends
