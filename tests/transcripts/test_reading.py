"""Transcripts of every format: the same words, which goes with a recording, bounds of all."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from monitor.corpus import Corpus, Recording
from monitor.errors import SourceError, UsageError
from monitor.stream.front_end import check_words
from monitor.transcripts import Transcript
from monitor.transcripts.formats import (
    LIES_BESIDE,
    SUFFIXES,
    TranscriptChoice,
    read_table,
    read_transcript,
    transcript_beside,
    words_mark,
)
from tests.transcripts.formats import SAID, written


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
        *(("a.words", b'{"word": "a", "begin": 0, "end": 0.1}\n' + line, r"a\.words line 2")
          for line in (b"no json", b"[]", b'{"word": 3}', b'{"word": "a", "begin": 2, "end": 1}',
                       b'{"word": "a", "begin": 0, "end": 1, "known": 0.5}',
                       b'{"word": "a", "begin": "0"}')),
        ("none.vtt", None, "cannot read the words of none.vtt: No such file"),
        ("folder.vtt", Path.mkdir, r"folder\.vtt is a folder: name the transcript"),
    ],
)  # fmt: skip
def test_what_is_no_transcript_is_refused_in_a_line(tmp_path, name, data, words):
    if isinstance(data, bytes):
        (tmp_path / name).write_bytes(data)
    elif data is not None:
        data(tmp_path / name)
    with pytest.raises(SourceError, match=words) as told:
        read_transcript(tmp_path / name)
    assert "\n" not in str(told.value)
    assert str(tmp_path) not in str(told.value)


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


def test_the_transcripts_of_real_speech(shared):
    found = sorted((shared / "speech").rglob("*.tsv")) + sorted(shared.glob("nonnative/*.tsv"))
    assert len(found) > 300
    for path in found[::20]:
        talk = read_transcript(path)
        assert talk.spread
        check_words(talk.words())
        assert np.all(np.diff([word.begin for word in talk.timed_words]) >= 0)


def test_what_lies_beyond_the_recording_is_told():
    talk = read_table("a.tsv", "0.0\t1.0\tso\n59.9\t60.5\tit\n61.0\t62.0\tgoes on\n")
    told = "a.tsv: 2 of 4 words lie after the end of the recording (60 s)"
    assert talk.beyond(60.0) == f"{told}: is it of another recording?"
    assert talk.beyond(62.0) == ""
    few = read_table("a.tsv", "0.0\t9.0\t" + "so " * 19 + "\n61.0\t62.0\tit\n")
    assert few.beyond(60.0).endswith("(60 s)")
    with pytest.raises(SourceError, match=r"all of its 2 words .* of another one"):
        read_table("a.tsv", "61.0\t62.0\tgoes on\n").beyond(60.0)


def test_what_is_printed_of_a_transcript_holds_no_word(tmp_path):
    path = tmp_path / "talk.words"
    path.write_text('{"word": "secret", "begin": 0.3, "end": 0.5, "speaker": "ann"}\n')
    talk = read_transcript(path)
    for shown in (repr(talk), str(talk), repr(talk.timed_words), repr(talk.words())):
        assert "secret" not in shown
    assert repr(talk) == "Transcript('talk.words', 1 words, speakers ('ann',))"
    assert Transcript("a", ()).words().texts == ()


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


TWO = "start\tend\ttext\tspeaker\n0\t1\tso be it\tann\n1\t2\tno no\tbob\n"


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    return tmp_path / "talk.flac"


def test_the_first_of_those_that_lie_beside_a_recording_is_taken(talk):
    assert transcript_beside(talk) is None
    for suffix in reversed(SUFFIXES):
        talk.with_suffix(suffix).touch()
        assert transcript_beside(talk) == talk.with_suffix(suffix)
    talk.with_suffix(SUFFIXES[0]).unlink()
    talk.with_suffix(SUFFIXES[0]).mkdir()  # a folder is none
    assert transcript_beside(talk) == talk.with_suffix(SUFFIXES[1])


def test_of_several_speakers_one_has_to_be_chosen(talk):
    with pytest.raises(SourceError, match=r"talk\.flac has no words beside it: put talk\.words"):
        LIES_BESIDE.read(talk)
    table = talk.with_suffix(".tsv")
    table.write_text(TWO)
    with pytest.raises(SourceError, match=r"talk\.tsv holds the words of ann, bob: say whose"):
        LIES_BESIDE.read(talk)
    assert LIES_BESIDE.read(talk, own="bob").words().texts == ("no", "no")
    assert TranscriptChoice(speaker="ann").read(talk, own="bob").words().texts == ("so", "be", "it")
    with pytest.raises(SourceError, match="no speaker cy; it names ann, bob"):
        TranscriptChoice(speaker="cy").read(talk)
    with pytest.raises(SourceError, match="holds the words of ann, bob"):
        LIES_BESIDE.read(talk, own="cy")
    table.write_text(TWO + "3.0\t4\tyes\t\n")
    assert read_transcript(table).speakers == ("ann", "bob")
    told = "talk.tsv: 1 of 6 words are of nobody named; left out"
    assert read_transcript(table, speaker="ann").notices[-1] == told


def test_one_transcript_is_of_one_recording(talk):
    one, two = Recording("ann", "1", talk), Recording("ann", "2", talk)
    choice = TranscriptChoice(Path("told.vtt"))
    assert Corpus((one,), ()).with_words(choice).recordings[0].words == choice
    with pytest.raises(UsageError, match=r"told\.vtt is the transcript of one recording"):
        Corpus((one, two), ()).with_words(choice)
    spoken = Corpus((one, two), ()).with_words(TranscriptChoice(speaker="a"))
    assert [each.words.speaker for each in spoken] == ["a", "a"]


def test_a_choice_means_the_same_in_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert TranscriptChoice(Path("a.vtt")).make_absolute().path == tmp_path / "a.vtt"
    assert LIES_BESIDE.make_absolute() == LIES_BESIDE


def test_the_mark_is_of_the_words_and_not_of_the_file(talk):
    path = talk.with_suffix(".tsv")
    path.write_text(TWO)
    mark = words_mark(read_transcript(path))
    path.write_text(TWO + "\n\n")
    assert words_mark(read_transcript(path)) == mark
    path.write_text(TWO.replace("be", "was"))
    assert words_mark(read_transcript(path)) != mark


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ('{"segments": [{"start": 1, ', "is no JSON"),
        ('{"segments": []}', "holds no words"),
        ('{"segments": [{"start": 2, "end": 1, "text": "so"}]}', "left out"),
        ("", "is empty"),
        ('{"id": "talk", "speakers": [{"name": "ann"}], "text": "a talk"}', "is none of the JSONs"),
    ],
)
def test_a_broken_transcript_is_not_passed_over(talk, broken, why):
    vtt = talk.with_suffix(".vtt")
    vtt.write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nso be it\n")
    talk.with_suffix(".json").write_text(broken)
    with pytest.raises(SourceError, match=f"talk.json.*{why}"):
        LIES_BESIDE.read(talk)
    assert TranscriptChoice(vtt).read(talk).words().texts == ("so", "be", "it")


def test_captions_that_name_their_language_are_found_where_there_is_one_of_them(talk):
    english, german = talk.with_name("talk.en-GB.vtt"), talk.with_name("talk.de.srt")
    for stray in ("talk.2.vtt", "talk.part.vtt", "talking.en.vtt"):
        talk.with_name(stray).touch()
    assert transcript_beside(talk) is None
    english.touch()
    assert transcript_beside(talk) == english
    german.touch()
    assert transcript_beside(talk) is None
    told = r"talk\.de\.srt, talk\.en-GB\.vtt lie there, name one \(transcript=\)"
    with pytest.raises(SourceError, match=told):
        LIES_BESIDE.read(talk)
    german.with_suffix(".flac").touch()  # another recording, whose captions these are
    assert transcript_beside(talk) == english
    talk.with_suffix(".tsv").touch()
    assert transcript_beside(talk) == talk.with_suffix(".tsv")


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
