"""Transcripts of every format: the same words, and what is wrong with a file in a line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import SourceError
from monitor.stream.front_end import check_words
from monitor.transcripts import Transcript, read_transcript
from monitor.transcripts.formats import SUFFIXES, read_table
from tests.transcripts.formats import SAID, written
from tests.transcripts.reading import check_read_or_refused


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_and_encoding_gives_the_same_words(tmp_path, suffix, encoding):
    path = tmp_path / f"talk{suffix.upper()}"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_text(mark + written(suffix[1:]), encoding=encoding)
    talk = read_transcript(path)
    assert talk.label == path.name
    assert not talk.spread
    assert talk.notices == ()
    words = talk.words()
    check_words(words)
    assert words.texts == tuple(text for text, *_ in SAID)
    assert words.begins.tolist() == [20, 40, 100]
    assert words.ends.tolist() == words.known.tolist() == [40, 70, 131]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.txt", b"so", r"a.txt is no transcript: it must be .words, .ctm, .json, .vtt, .srt, .t"),
        ("a.srt", b"", "a.srt is empty"),
        ("a.vtt", b" \n\xef\xbb\xbf", "no captions|is empty"),
        ("a.tsv", b"start\tend\ttext\n", "a.tsv holds no words"),
        ("a.ctm", b";; nothing\n", "a.ctm holds no words"),
        ("a.words", b"\n\n", "is empty"),
        ("a.srt", "1\n00:00:00,000 --> 00:00:01,000\nd\u00e9j\u00e0".encode("cp1252"),
         "a.srt line 3 is no UTF-8 text: iconv"),
        ("a.tsv", "0\t1\tso".encode("utf-16-le"), "a.tsv is no text, .*: iconv -f UTF-16LE -t"),
        ("a.vtt", "WEBVTT\n\u0394".encode("utf-16-be"), "mark: iconv -f UTF-16BE -t UTF-8 makes"),
        ("a.json", b'{"text":\n', "no JSON, from line 2 on .*: was it written to its end"),
        ("a.json", b'{"word": "so"}\n{"word": "be"}', "line 2 on .*: JSON lines are called N"),
        ("a.words", bytes(range(256)), "a.words line 2 is no UTF-8|is no text"),
        ("none.vtt", None, "cannot read the words of none.vtt: No such file"),
    ],
)  # fmt: skip
def test_what_is_no_transcript_is_refused_in_a_line(tmp_path, name, data, words):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(SourceError, match=words) as told:
        read_transcript(tmp_path / name)
    assert "\n" not in str(told.value)
    assert str(tmp_path) not in str(told.value)


def test_a_folder_is_no_transcript(tmp_path):
    (tmp_path / "a.vtt").mkdir()
    with pytest.raises(SourceError, match=r"a\.vtt is a folder: name the transcript"):
        read_transcript(tmp_path / "a.vtt")


def test_one_speaker_alone(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("speaker\tstart\tend\ttext\nann\t0\t1.0\tso be it\nbob\t1.0\t2\tno\n")
    assert read_transcript(path).speakers == ("ann", "bob")
    assert read_transcript(path, speaker="bob").words().texts == ("no",)
    path.write_text(path.read_text() + "\t3.0\t4\tyes\n")
    told = "a.tsv: 1 of 5 words are of nobody named; left out"
    assert read_transcript(path, speaker="ann").notices[-1] == told
    with pytest.raises(SourceError, match=r"a\.tsv has no speaker cy; it names ann, bob"):
        read_transcript(path, speaker="cy")


@pytest.mark.parametrize("head", ["", "start\tend\ttext\n"])
def test_tables_in_seconds_and_as_whisper_writes_them_in_milliseconds(head):
    seconds = read_table("a.tsv", f"{head}0.5\t1.5\tso be it\n2\t2.5\tno\n")
    thousandths = read_table("a.tsv", f"{head}500\t1500\tso be it\n2000\t2500\tno\n")
    assert [w.begin for w in seconds.timed_words] == [w.begin for w in thousandths.timed_words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("path,speaker\na,b\n", "line 1 must be start, end, text, with tabs"),
        ("path\tcorpus\tspeaker\na\tb\tc\n", "line 1: start and end must be numbers"),
        ("start\tend\ttext\n0.0\t1.0\n", "line 2 must be start, end, text"),
        ("start\tend\ttext\n0\t1\t" + "so " * 40, "words a second are more than anybody says"),
        ("start\tend\ttext\n1.0\t0.5\tso\n", "1 of 1 texts have no time, or end before"),
    ],
)
def test_a_table_that_is_no_transcript(text, words):
    with pytest.raises(SourceError, match=words):
        read_table("a.tsv", text)


def test_times_that_are_not_as_they_should_be_are_told():
    rows = ["1.0\t2.0\tso be it", "0.0\t1.5\tit is", "3\t2.5\tlost", "4.0\t5.0\tno"]
    talk = read_table("a.tsv", "\n".join(rows))
    assert [word.text for word in talk.timed_words] == ["it", "is", "so", "be", "it", "no"]
    assert [line.partition(": ")[2] for line in talk.notices] == [
        "1 of 4 texts have no time, or end before they begin; they are left out",
        "times go back once; its words were put in order",
        "1 of 3 texts begin before the one before has ended",
        "5 of 6 words have no times of their own; each has a share of its text's",
    ]


CTM = "a 1 0.1 0.2 so 1 lex ann\na 1 0.3 0.2 uh 1 fp ann\na 1 0.5 0.1 [cough] 1 non-lex ann\n"


def test_ctm_of_several_recordings_and_channels(tmp_path):
    path = tmp_path / "a.ctm"
    path.write_text(CTM + "b 1 0.1 0.2 no\n;; comment\na 1 2 0.1 <eps>\n")
    assert read_transcript(path).words().texts == ("so", "uh")
    assert read_transcript(path).speakers == ("ann",)
    other = path.rename(tmp_path / "c.ctm")
    with pytest.raises(SourceError, match=r"c\.ctm is of 2 recordings, a, b; none is c"):
        read_transcript(other)
    other.write_text("a A 0.1 0.2 so\na B 0.3 0.2 no\n")
    assert read_transcript(other).speakers == ("A", "B")
    other.write_text("a A 0.1 0.2 so\na B 0.3\n")
    with pytest.raises(SourceError, match=r"c\.ctm line 2 must be recording, channel"):
        read_transcript(other)


@pytest.mark.parametrize(
    "rows",
    [
        [{"text": "so", "start": "0.5", "end": 2.5}],
        [{"text": "so", "start": 0, "end": 3, "words": [{"word": "so", "start": "0.5", "end": 1}]}],
        [{"text": "so", "timestamp": ["0.5", 1.0]}],
    ],
)
def test_times_that_are_texts_are_named(tmp_path, rows):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"segments": rows}))
    with pytest.raises(SourceError) as caught:
        read_transcript(path)
    assert str(caught.value) == "a.json: the time '0.5' is a text: write seconds as numbers"


@given(st.text(max_size=60), st.sampled_from(SUFFIXES))
def test_any_text_is_read_or_refused_in_a_line(tmp_path_factory, text, suffix):
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_text(text, encoding="utf-8", errors="replace", newline="")
    check_read_or_refused(lambda: read_transcript(path))


def test_the_transcripts_of_real_speech(shared):
    found = sorted((shared / "speech").rglob("*.tsv")) + sorted(shared.glob("nonnative/*.tsv"))
    assert len(found) > 300
    for path in found[::20]:
        talk = read_transcript(path)
        assert talk.spread
        check_words(talk.words())
        assert np.all(np.diff([word.begin for word in talk.timed_words]) >= 0)


def test_words_from_standard_input_are_json_lines():
    code = "from monitor.transcripts import read_transcript as r; print(r('-').words().texts)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=written("words"), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == str(tuple(text for text, *_ in SAID))


def test_what_lies_beyond_the_recording_is_told():
    talk = read_table("a.tsv", "0.0\t1.0\tso\n59.9\t60.5\tit\n61.0\t62.0\tgoes on\n")
    told = "a.tsv: 2 of 4 words lie after the end of the recording (60 s)"
    assert talk.beyond(60.0) == f"{told}: is it of another recording?"
    assert talk.beyond(62.0) == ""
    few = read_table("a.tsv", "0.0\t9.0\t" + "so " * 19 + "\n61.0\t62.0\tit\n")
    assert few.beyond(60.0).endswith("(60 s)")
    with pytest.raises(SourceError, match=r"all of its 2 words .* of another one"):
        read_table("a.tsv", "61.0\t62.0\tgoes on\n").beyond(60.0)


def test_a_transcript_of_nobody_has_no_words():
    assert Transcript("a", ()).words().texts == ()
    assert Path("a.vtt").suffix in SUFFIXES


@pytest.mark.parametrize(
    "shown", [repr, str, lambda talk: repr(talk.timed_words), lambda talk: repr(talk.words())]
)
def test_what_is_printed_of_a_transcript_holds_no_word(tmp_path, shown):
    path = tmp_path / "talk.words"
    path.write_text('{"word": "secret", "begin": 0.3, "end": 0.5, "speaker": "ann"}\n')
    talk = read_transcript(path)
    assert "secret" not in shown(talk)
    assert repr(talk) == "Transcript('talk.words', 1 words, speakers ('ann',))"


def test_words_that_take_no_time_are_given_some_up_to_the_next(tmp_path):
    path = tmp_path / "talk.ctm"
    rows = [("1", "0", "so"), ("1", "0", "be"), ("1.2", "0", "it"), ("1.4", "0.5", "said"),
            ("3", "0", "no")]  # fmt: skip
    path.write_text("".join(f"talk 1 {begin} {lasts} {word}\n" for begin, lasts, word in rows))
    talk = read_transcript(path)
    assert [word.text for word in talk.timed_words] == ["so", "be", "it", "said", "no"]
    found = np.round([(word.begin, word.end, word.known) for word in talk.timed_words], 6).tolist()
    assert found == [[1, 1.1, 1.2], [1.1, 1.2, 1.2], [1.2, 1.4, 1.4], [1.4, 1.9, 1.9],
                     [3, 3.3, 3.3]]  # fmt: skip
    assert [word.spread for word in talk.timed_words] == [True, True, False, False, False]
    assert "talk.ctm: 4 of 5 texts take no time; each word of them is given" in talk.notices[0]
