"""Captions: WebVTT and SubRip, as players, YouTube, Whisper and WhisperX write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import SourceError
from monitor.transcripts import Transcript
from monitor.transcripts.formats import read_captions
from tests.transcripts.formats import check_read_or_refused

YOUTUBE = """\
WEBVTT
Kind: captions
Language: en

00:00:00.000 --> 00:00:02.389 align:start position:0%
\x20
hello<00:00:00.320><c> and</c><00:00:00.480><c> welcome</c>

00:00:02.389 --> 00:00:02.399 align:start position:0%
hello and welcome
\x20

00:00:02.399 --> 00:00:04.000 align:start position:0%
hello and welcome
to<00:00:02.720><c> the</c><00:00:03.000><c> show</c>

00:00:04.000 --> 00:00:04.010 align:start position:0%
to the show
\x20
"""
HIGHLIGHTED = "".join(
    f"{n}\n00:00:0{begin} --> 00:00:0{end}\n{text}\n\n"
    for n, (begin, end, text) in enumerate([
        ("0,000", "0,040", "<u>And</u> so, my"), ("0,040", "0,060", "And so, my"),
        ("0,060", "0,080", "And <u>so,</u> my"), ("0,500", "0,900", "And so, <u>my</u>"),
        ("3,000", "4,000", "No."), ("4,000", "5,000", "No."),
    ], 1)
)  # fmt: skip
VTT = "00:0{}.000 --> 00:0{}.000"
SRT = "00:00:0{},000 --> 00:00:0{},000"


def texts(talk: Transcript) -> list[str]:
    return [word.text for word in talk.timed_words]


def test_voices_tags_and_characters():
    cue = "<v.loud Ann>So it <i>go</i>es &amp; so</v>\n<v Bob Low>No!</v>"
    talk = read_captions("a.vtt", f"WEBVTT\n\nname\n00:01.000 --> 01:00:03.000\n{cue}\n")
    assert texts(talk) == ["So", "it", "goes", "&", "so", "No!"]
    assert talk.speakers == ("Ann", "Bob Low")
    assert texts(talk.of("Bob Low")) == ["No!"]
    assert {word.known for word in talk.timed_words} == {3603.0}
    assert talk.spread
    assert talk.timed_words[0].begin == 1.0
    assert talk.timed_words[-1].end == pytest.approx(3603.0)


@pytest.mark.parametrize(
    ("text", "named", "found"),
    [
        ("[SPEAKER_01]: so be it", "SPEAKER_01", "so be it"),
        ("(speaker 0) so be it", "speaker 0", "so be it"),
        ("so be it", "", "so be it"),
        ("[noise] be it", "", "[noise] be it"),
        ("{\\an8}so <b>it</b>", "", "so it"),  # where it is shown
        ("I <u>do</u> not", "", "I do not"),  # emphasis
        ("so it\n\ngoes", "", "so it goes"),
        ("so\r\nit", "", "so it"),
    ],
)
def test_the_text_of_a_caption(text, named, found):
    talk = read_captions("a.srt", f"1\n{SRT.format(0, 1)}\n{text}\n\n2\n{SRT.format(2, 3)}\non\n")
    assert texts(talk) == [*found.split(), "on"]
    assert talk.timed_words[0].speaker == named


@pytest.mark.parametrize(
    ("suffix", "text", "told"),
    [
        (
            "vtt",
            "WEBVTT\n\nNOTE a --> b\n\n00:04.000 --> oops\nlost",
            "1 malformed caption is left",
        ),
        ("srt", "00:00:04 --> 00:00:05\nlost", "1 malformed caption is left out"),
        ("srt", "well", "1 line before the first times, left out"),
    ],
)
def test_what_is_malformed_is_left_out_and_told(suffix, text, told):
    talk = read_captions(f"a.{suffix}", f"{text}\n\n00:00:05,000 --> 00:00:07,000\nso it")
    assert texts(talk) == ["so", "it"]
    assert told in talk.notices[0]


def test_times_within_a_caption_are_those_of_words_and_lines_that_roll_up_count_once():
    talk = read_captions("a.vtt", YOUTUBE)
    assert texts(talk) == ["hello", "and", "welcome", "to", "the", "show"]
    assert [word.begin for word in talk.timed_words] == [0.0, 0.32, 0.48, 2.399, 2.72, 3.0]
    assert talk.timed_words[1].known == 0.48
    assert not talk.spread
    assert talk.notices == ("a.vtt: 3 lines stand in two captions; they are counted once",)
    without_times = read_captions("a.vtt", re.sub("<[^>]*>", "", YOUTUBE))
    assert texts(without_times) == texts(talk)
    assert without_times.notices[0] == talk.notices[0]


def test_underlines_that_walk_through_a_caption_are_the_times_of_words():
    talk = read_captions("a.srt", HIGHLIGHTED)
    assert texts(talk) == ["And", "so,", "my", "No.", "No."]
    assert [word.begin for word in talk.timed_words] == [0.0, 0.06, 0.5, 3.0, 4.0]
    assert not talk.spread


SPOKEN = [("early words", 1.0, 3.0), ("1984", 4.0, 6.0), ("later words", 7.0, 9.0)]
LAYOUTS = {
    "blank lines after the times": ("vtt", "WEBVTT\n\n", VTT + "\n\n{text}\n\n"),
    "names, and blank lines": ("vtt", "WEBVTT\n\n", "name {n}\n" + VTT + "\n\n\n{text}\n\n"),
    "decimal commas": ("vtt", "WEBVTT\n\n", VTT.replace(".", ",") + "\n{text}\n\n"),
    "no header": ("vtt", "", VTT + "\n{text}\n\n"),
    "comments and styles": (
        "vtt", "WEBVTT\n\nSTYLE\n::cue { color: red }\n\n",
        VTT + "\n{text}\n\nNOTE left\nout\n\nREGION\nid:a\n\n",
    ),
    "segments in a row": ("vtt", "", "WEBVTT\nX-TIMESTAMP-MAP=LOCAL:0\n\n" + VTT + "\n{text}\n\n"),
    "no numbers": ("srt", "", SRT + "\n{text}\n\n"),
    "no numbers, no blank lines": ("srt", "", SRT + "\n{text}\n"),
    "no number at first": ("srt", "", "{number}" + SRT + "\n{text}\n\n"),
    "numbers, no blank lines": ("srt", "", "{n}\n" + SRT + "\n{text}\n"),
    "numbers, and blank lines": ("srt", "", "{n}\n" + SRT + "\n\n{text}\n\n"),
    "hours from a decimal point": ("srt", "", "{n}\n" + SRT.replace(",", ".") + "\n{text}\n\n"),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_captions_of_every_layout_are_read_whole(layout):
    suffix, head, block = LAYOUTS[layout]
    body = "".join(
        block.format(int(b), int(e), text=text, n=n, number=f"{n}\n" if n > 1 else "")
        for n, (text, b, e) in enumerate(SPOKEN, 1)
    )
    talk = read_captions(f"a.{suffix}", head + body)
    expected = [word for text, *_ in SPOKEN for word in text.split()]
    assert texts(talk) == expected
    assert [talk.timed_words[0].begin, talk.timed_words[2].begin, talk.timed_words[-1].end] == [
        1.0,
        4.0,
        9.0,
    ]
    assert not any("left out" in line for line in talk.notices)


@pytest.mark.parametrize("text", ["just a text", "WEBVTTT\nx", "1\n2\n3", "{}"])
def test_what_holds_no_captions(text):
    with pytest.raises(SourceError, match=r"a\.srt holds no (captions|words)") as told:
        read_captions("a.srt", text)
    assert "\n" not in str(told.value)


@given(st.lists(st.sampled_from([
    "WEBVTT", "", "1", "00:01.000 --> 00:02.000", "00:00:01,000 --> 00:00:02,000", "<v Ann>so",
    "it <00:00:01.500>goes", "<u>on</u>", "NOTE", "STYLE", "&#0;", "<", "\u2028", "--> x",
    "99:99.999 --> 00:00.001", "00:00:00,000 --> 99999999999:00:00,000",
]), max_size=12))  # fmt: skip
def test_any_lines_are_read_or_refused_in_a_line(lines):
    check_read_or_refused(lambda: read_captions("a.vtt", "\n".join(lines)))
