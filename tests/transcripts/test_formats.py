"""Transcripts of every format: the same words of all, what each is known to get wrong, bounds."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.corpus import Corpus, Recording
from monitor.errors import SourceError, UsageError
from monitor.stream.clocks import check_words
from monitor.transcripts import Transcript
from monitor.transcripts.captions import read_captions
from monitor.transcripts.choice import SIDECAR, TranscriptChoice, transcript_beside, words_mark
from monitor.transcripts.formats import SUFFIXES, read_table, read_transcript, read_whisper
from tests.transcripts.formats import SAID, check_read_or_refused, written


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
        ("a.txt", b"so", r"a.txt is not a transcript: use .words, .ctm, .json, .vtt, .srt, .t"),
        ("a.srt", b"", "a.srt is empty"),
        ("a.vtt", b" \n\xef\xbb\xbf", "no captions|is empty"),
        ("a.tsv", b"start\tend\ttext\n", "a.tsv has no words"),
        ("a.ctm", b";; nothing\n", "a.ctm has no words"),
        ("a.words", b"\n\n", "is empty"),
        ("a.srt", "1\n00:00:00,000 --> 00:00:01,000\nd\u00e9j\u00e0".encode("cp1252"),
         "a.srt line 3 is not UTF-8 text: convert older Western text with iconv -f"),
        ("a.tsv", "0\t1\tso".encode("utf-16-le"),
         "a.tsv is not text, .*: convert it with iconv -f UTF-16LE -t"),
        ("a.vtt", "WEBVTT\n\u0394".encode("utf-16-be"),
         "mark: convert it with iconv -f UTF-16BE -t UTF-8"),
        ("a.json", b'{"text":\n', "not JSON from line 2 on .*: is it complete"),
        ("a.json", b'{"word": "so"}\n{"word": "be"}', "line 2 on .*: JSON lines are called N"),
        ("a.words", bytes(range(256)), "a.words line 2 is not UTF-8|is not text"),
        *(("a.words", b'{"word": "a", "begin": 0, "end": 0.1}\n' + line, r"a\.words line 2")
          for line in (b"no json", b"[]", b'{"word": 3}', b'{"word": "a", "begin": 2, "end": 1}',
                       b'{"word": "a", "begin": 0, "end": 1, "known": 0.5}',
                       b'{"word": "a", "begin": "0"}')),
        ("none.vtt", None, "cannot read the words of none.vtt: No such file"),
        ("folder.vtt", Path.mkdir, r"folder\.vtt is a folder: use the transcript"),
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
        ("start\tend\ttext\n0\t1\t" + "so " * 40, "words per second are too many"),
        ("start\tend\ttext\n1.0\t0.5\tso\n", "1 of 1 texts that have no time or end before"),
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
        "excluded 1 of 4 texts that have no time or end before they begin",
        "times go back once. Its words were sorted",
        "1 of 3 texts begin before the previous one has ended",
        "5 of 6 words have no times of their own; each has a fraction of its text's",
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
    told = "a.tsv: 2 of 4 words are after the end of the recording (60 s)"
    assert talk.describe_overrun(60.0) == f"{told}. Does it belong to another recording?"
    assert talk.describe_overrun(62.0) == ""
    few = read_table("a.tsv", "0.0\t9.0\t" + "so " * 19 + "\n61.0\t62.0\tit\n")
    assert few.describe_overrun(60.0).endswith("(60 s)")
    with pytest.raises(SourceError, match=r"all 2 words .* another recording"):
        read_table("a.tsv", "61.0\t62.0\tgoes on\n").describe_overrun(60.0)


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
    assert "talk.ctm: 4 of 5 texts have no duration." in talk.notices[0]


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
        SIDECAR.read(talk)
    table = talk.with_suffix(".tsv")
    table.write_text(TWO)
    with pytest.raises(SourceError, match=r"talk\.tsv has words of ann, bob: choose"):
        SIDECAR.read(talk)
    assert SIDECAR.read(talk, own_speaker="bob").words().texts == ("no", "no")
    assert TranscriptChoice(speaker="ann").read(talk, own_speaker="bob").words().texts == (
        "so",
        "be",
        "it",
    )
    with pytest.raises(SourceError, match="no speaker cy; it names ann, bob"):
        TranscriptChoice(speaker="cy").read(talk)
    with pytest.raises(SourceError, match="has words of ann, bob"):
        SIDECAR.read(talk, own_speaker="cy")
    table.write_text(TWO + "3.0\t4\tyes\t\n")
    assert read_transcript(table).speakers == ("ann", "bob")
    told = "talk.tsv: excluded 1 of 6 words without a speaker"
    assert read_transcript(table, speaker="ann").notices[-1] == told


def test_one_transcript_is_of_one_recording(talk):
    one, two = Recording("ann", "1", talk), Recording("ann", "2", talk)
    choice = TranscriptChoice(Path("told.vtt"))
    assert Corpus((one,), ()).with_words(choice).recordings[0].words == choice
    with pytest.raises(UsageError, match=r"told\.vtt is the transcript of one recording"):
        Corpus((one, two), ()).with_words(choice)
    spoken = Corpus((one, two), ()).with_words(TranscriptChoice(speaker="a"))
    assert [each.words.speaker for each in spoken] == ["a", "a"]


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
        ('{"segments": [{"start": 1, ', "is not "),
        ('{"segments": []}', "has no words"),
        ('{"segments": [{"start": 2, "end": 1, "text": "so"}]}', "excluded"),
        ("", "is empty"),
        ('{"id": "talk", "speakers": [{"name": "ann"}], "text": "a talk"}', "not a Whisper JSON"),
    ],
)
def test_a_broken_transcript_is_not_passed_over(talk, broken, why):
    vtt = talk.with_suffix(".vtt")
    vtt.write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nso be it\n")
    talk.with_suffix(".json").write_text(broken)
    with pytest.raises(SourceError, match=f"talk.json.*{why}"):
        SIDECAR.read(talk)
    assert TranscriptChoice(vtt).read(talk).words().texts == ("so", "be", "it")


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
LONG_VTT = "WEBVTT\n\n00:00:00.000 --> 01:00:00.000\n"
LONG_SRT = "1\n00:00:00,000 --> 01:00:00,000\n"


def captions(count: int, text: str) -> str:
    """Captions of half a second, one after the other."""
    times = [f"{t // 7200:02}:{t // 120 % 60:02}:{t / 2 % 60:06.3f}" for t in range(count + 1)]
    return "".join(f"{begin} --> {end}\n{text}\n\n" for begin, end in pairwise(times))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.vtt", LONG_VTT + "lorem ipsum dolor " * 2_200_000),
        ("a.vtt", LONG_VTT + "lorem ipsum dolor\n" * 1_000_000),
        ("a.srt", LONG_SRT + "a\n" * 9_000_000),
        ("a.srt", LONG_SRT + "lorem ipsum dolor\n\n" * 500_000),
        ("a.vtt", LONG_VTT + "a " * 490_000),
        ("a.vtt", "WEBVTT\n\n" + captions(60_000, "so it goes on")),
        ("a.vtt", LONG_VTT + "<00:00:01.000>a" * 60_000),
        ("a.vtt", LONG_VTT + f"<v{'.' * 5000}>" * 10 + "so it goes"),
        ("a.vtt", LONG_VTT + "<u>" * 300_000 + "so it goes"),
        ("a.vtt", LONG_VTT + "<u>" * 300_000 + "so it goes</u>"),
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
VTT = "00:0{}.000 --> 00:0{}.000"
SRT = "00:00:0{},000 --> 00:00:0{},000"


def texts(talk: Transcript) -> list[str]:
    return [word.text for word in talk.timed_words]


def test_voices_tags_and_characters():
    cue = "<v.loud Ann>So it <i>go</i>es &amp; so</v>\n<v Bob Low>No!</v>"
    talk = read_captions("a.vtt", f"WEBVTT\n\nname\n00:01.000 --> 01:00:03.000\n{cue}\n")
    assert texts(talk) == ["So", "it", "goes", "&", "so", "No!"]
    assert talk.speakers == ("Ann", "Bob Low")
    assert texts(talk.select_speaker("Bob Low")) == ["No!"]
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
            "1 malformed caption is excluded",
        ),
        ("srt", "00:00:04 --> 00:00:05\nlost", "1 malformed caption is excluded"),
        ("srt", "well", "1 line before the first times, excluded"),
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
    assert talk.notices == ("a.vtt: counted 3 lines once that appeared in two captions",)
    without_times = read_captions("a.vtt", re.sub("<[^>]*>", "", YOUTUBE))
    assert texts(without_times) == texts(talk)
    assert without_times.notices[0] == talk.notices[0]


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


@given(st.lists(st.sampled_from([
    "WEBVTT", "", "1", "00:01.000 --> 00:02.000", "00:00:01,000 --> 00:00:02,000", "<v Ann>so",
    "it <00:00:01.500>goes", "<u>on</u>", "NOTE", "STYLE", "&#0;", "<", "\u2028", "--> x",
    "99:99.999 --> 00:00.001", "00:00:00,000 --> 99999999999:00:00,000",
]), max_size=12))  # fmt: skip
def test_any_lines_are_read_or_refused_in_a_line(lines):
    check_read_or_refused(lambda: read_captions("a.vtt", "\n".join(lines)))


def whisper(found: Any) -> Transcript:
    return read_whisper("a.json", json.dumps(found))


def rows(talk: Transcript) -> list[tuple[str, float, float]]:
    return [(word.text, round(word.begin, 3), round(word.end, 3)) for word in talk.timed_words]


WORDS = [{"word": " And", "start": 0.1, "end": 0.3, "probability": 0.9},
         {"word": " so,", "start": 0.3, "end": 0.3, "probability": 0.9}]  # fmt: skip
TIMED = [("And", 0.1, 0.3), ("so,", 0.3, 0.6)]
SEGMENT = {"id": 0, "seek": 0, "start": 0.0, "end": 2.0, "text": " And so,", "tokens": [1, 2]}


@pytest.mark.parametrize(
    "found",
    [
        {"text": " And so,", "segments": [{**SEGMENT, "words": WORDS}], "language": "en"},
        {"segments": [{**SEGMENT, "words": WORDS}]},
        [{**SEGMENT, "words": WORDS}],  # faster-whisper's segments, listed
        {"task": "transcribe", "duration": 2.0, "text": "And so,", "words": WORDS},
        {"task": "transcribe", "text": "And so,", "words": WORDS, "segments": [SEGMENT]},
        {"words": WORDS, "segments": [{**SEGMENT, "words": WORDS}]},
        {"segments": [], "words": WORDS},
    ],
)
def test_words_with_times(found):
    talk = whisper(found)
    assert rows(talk) == TIMED
    assert not talk.spread
    assert [word.known for word in talk.timed_words] == [0.3, 0.6]
    words = talk.words()
    assert (words.begins < words.ends).all()  # a word that takes no time takes a tick


def test_whisperx_has_speakers_and_words_without_times():
    words = [
        {"word": "In", "start": 0.0, "end": 0.2, "score": 0.9, "speaker": "SPEAKER_00"},
        {"word": "2014", "speaker": "SPEAKER_00"},
        {"word": "I", "start": 0.8, "end": 0.9, "speaker": "SPEAKER_01"},
        {"word": "4"},
        {"word": "5"},
    ]
    segment = {"start": 0.0, "end": 1.5, "text": "...", "words": words, "speaker": "SPEAKER_00"}
    talk = whisper({"segments": [segment], "word_segments": words})
    assert rows(talk) == [
        ("In", 0.0, 0.2), ("2014", 0.2, 0.8), ("I", 0.8, 0.9), ("4", 0.9, 1.2), ("5", 1.2, 1.5),
    ]  # fmt: skip
    assert [word.known for word in talk.timed_words] == [0.2, 1.5, 0.9, 1.5, 1.5]
    assert [word.spread for word in talk.timed_words] == [False, True, False, True, True]
    assert talk.speakers == ("SPEAKER_00", "SPEAKER_01")
    assert talk.select_speaker("SPEAKER_01").words().texts == ("I",)
    assert "3 of 5 words have" in talk.notices[0]
    alone = whisper({"segments": [{"text": "x", "words": [{"word": "so"}, *words[:1]]}]})
    assert [word.text for word in alone.timed_words] == ["so", "In"]


def piece(text: str, begin: int, end: int, **more: Any) -> dict[str, Any]:
    return {"text": text, "offsets": {"from": begin, "to": end}, **more}


def test_whisper_cpp_counts_milliseconds_and_tokens_are_pieces_of_words():
    tokens = [
        piece("[_BEG_]", 0, 0), piece(" And", 100, 300), piece(" fell", 300, 250),
        piece("ow", 400, 500), piece(",", 500, 500), piece("[_TT_100]", 2000, 2000),
    ]  # fmt: skip
    segment = piece(" And fellow,", 0, 2000, tokens=tokens, speaker_turn_next=False)
    talk = whisper({"result": {"language": "en"}, "transcription": [segment]})
    assert rows(talk) == [("And", 0.1, 0.3), ("fellow,", 0.3, 0.5)]
    plain = whisper({"transcription": [{**piece(" And fellow,", 0, 2000), "speaker": "?"}]})
    assert plain.spread
    assert plain.speakers == ()
    two = [{**piece(" hi", 0, 400), "speaker": "0"}, {**piece(" yes", 400, 900), "speaker": "1"}]
    assert whisper({"transcription": two}).speakers == ("0", "1")


def test_chunks_of_hugging_face():
    chunks = [{"timestamp": [0.0, 1.0], "text": " And so"}, {"timestamp": [1.0, None], "text": "x"},
              {"timestamp": [2.0, 2.5], "text": " no"},
              {"timestamp": [3.0, None], "text": " end"},
    ]  # fmt: skip
    talk = whisper({"text": " And so x no end", "chunks": chunks})
    assert rows(talk)[1:] == [("so", 0.571, 1.0), ("x", 1.0, 2.0), ("no", 2.0, 2.5)]
    assert "1 of 4 texts that have no time" in talk.notices[0]
    named = [{"speaker": "SPEAKER_00", "text": " And so", "timestamp": [0.0, 1.0]}]
    assert whisper({"speakers": named, "chunks": chunks}).speakers == ("SPEAKER_00",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not "),
        ("[" * 100_000, "is not "),
        ('{"words": "so"}', "not a Whisper JSON"),
        ('{"text": "And so"}', "text without times, use verbose_json"),
        ('{"words": [{"text": "so", "start": 1}], "segments": 3}', "no time"),
        ('{"segments": [{"start": 0, "end": 1, "text": "  "}]}', "has no words"),
        (
            '{"segments": [{"start": NaN, "end": 1e999, "text": "so"}]}',
            "1 of 1 texts that have no time",
        ),
        ('{"words": [{"word": "so", "start": "0.5", "end": 1}]}', "invalid time '0.5'"),
    ],
)
def test_what_is_no_json_of_whisper_is_refused_in_a_line(text, words):
    with pytest.raises(SourceError, match=words) as told:
        read_whisper("a.json", text)
    assert "\n" not in str(told.value)


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["segments", "words", "chunks", "transcription", "speakers", "text", "word",
                         "start", "end", "timestamp", "offsets", "from", "to", "tokens",
                         "speaker"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(JSONS)
def test_any_json_is_read_or_refused_in_a_line(found):
    check_read_or_refused(lambda: whisper(found))
