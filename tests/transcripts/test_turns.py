"""Turns: who speaks when, from every kind of file, swept into stretches of one voice alone."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import SourceError
from monitor.transcripts import Turn, Turns, measure_coverage, read_transcript, read_turns
from monitor.transcripts.turn_formats import parse_turn
from monitor.transcripts.turns import MOST_LABELS
from monitor.types import BoolArray, Words
from tests.fuzz.readers import EAF, TEXTGRID

RTTM = """;; a comment
SPKR-INFO call 1 <NA> <NA> <NA> unknown ann <NA> <NA>
SPEAKER call 1 0.50 2.00 <NA> <NA> ann <NA> <NA>
SPEAKER call 1 2.00 1.50 <NA> <NA> bob <NA> <NA>
LEXEME call 1 0.50 0.10 so lex ann <NA> <NA>
"""
BOTH = (Turn(0.5, 2.5, "ann"), Turn(2.0, 3.5, "bob"))


def of_file(folder, name, text, **how):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_turns(path, **how)


FILES = {
    "call.rttm": RTTM,
    "call.txt": "0.5\t2.5\tann\n\\\t100\t3000\n2\t3.5\tbob\n",
    "windows.TXT": "0.5\t2.5\tann\r\n2\t3.5\tbob\r\n",
    "call.json": json.dumps(
        {"diarization": [{"start": 0.5, "end": 2.5, "speaker": "ann"},
                         {"start": 2, "end": 3.5, "speaker": "bob"}]}
    ),
    "whisperx.json": json.dumps(
        {"segments": [
            {"start": 0.5, "end": 2.5, "text": "so it", "speaker": "ann",
             "words": [{"word": "so", "start": 0.5, "end": 1, "speaker": "ann"},
                       {"word": "it", "start": 1.2, "end": 2.5, "speaker": "ann"}]},
            {"start": 2, "end": 3.5, "text": "goes", "speaker": "bob",
             "words": [{"word": "goes", "start": 2, "end": 3.5, "speaker": "bob"}]}]}
    ),
    "call.vtt": "WEBVTT\n\n00:00.500 --> 00:02.500\n<v ann>so it\n\n"
                "00:02.000 --> 00:03.500\n<v bob>goes\n",
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [("a.eaf", EAF), ("a.TextGrid", TEXTGRID)])
def test_a_tier_is_a_person(tmp_path, name, text):
    found = of_file(tmp_path, name, text)
    assert found.turns == BOTH
    assert found.notices == (f"{name}: took 2 tiers as speakers (ann, bob)",)


@pytest.mark.parametrize("form", ["text", "short text"])
def test_what_praat_writes_is_read(tmp_path, form):
    praat = pytest.importorskip("parselmouth.praat", reason="needs the extra peers (Praat)")
    grid = praat.call("Create TextGrid", 0.0, 6.0, "ann bob marks", "marks")
    for tier, start, end, said in ((1, 0.5, 2.5, 'so "it"'), (2, 2.0, 3.5, "gö\u0113s")):
        praat.call(grid, "Insert boundary", tier, start)
        praat.call(grid, "Insert boundary", tier, end)
        praat.call(grid, "Set interval text", tier, 2, said)
    praat.call(grid, "Insert point", 3, 1.0, "click")
    praat.call(grid, f"Save as {form} file", str(tmp_path / "a.TextGrid"))
    assert read_turns(tmp_path / "a.TextGrid").turns == BOTH


def with_media(*media: tuple[str, int | None]) -> str:
    """The EAF with media that begin so many milliseconds before its time 0."""
    rows = "".join(
        f'<MEDIA_DESCRIPTOR MEDIA_URL="file:///C:/my%20talks/{name}" MIME_TYPE="audio/x-wav"'
        + ("/>" if origin is None else f' TIME_ORIGIN="{origin}"/>')
        for name, origin in media
    )
    header = '<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"'
    return EAF.replace(f"{header}/>", f"{header}>{rows}</HEADER>")


LATER = (Turn(5.5, 7.5, "ann"), Turn(7.0, 8.5, "bob"))


def test_elans_time_0_lies_where_the_recording_is_said_to_have_it(tmp_path):
    one = with_media(("call.wav", 5000))
    assert of_file(tmp_path, "a.eaf", one).turns == LATER
    assert of_file(tmp_path, "a.eaf", with_media(("call.wav", None))).turns == BOTH
    several = with_media(("film.mp4", 2000), ("my%20call.wav", 5000))
    assert of_file(tmp_path, "a.eaf", several, recording="my call.flac").turns == LATER
    with pytest.raises(SourceError, match="begin at different times, film, my call: give the rec"):
        of_file(tmp_path, "a.eaf", several, recording="other.wav")


NOBODYS = {
    "a.json": (
        json.dumps([{"start": 0.2, "end": 5, "speaker": None},
                    {"start": 5, "end": 9, "speaker": "B"},
                    {"start": 9, "end": 9, "speaker": "B"}]),
        (Turn(5, 9, "B"),), "2 turns without",
    ),
    "a.txt": ("0\t1\tann\n1\t2\t\n3\t3\tpoint\n", (Turn(0, 1, "ann"),), "2 lines without"),
    "a.eaf": (EAF.replace(' TIME_VALUE="3500"', ""), BOTH[:1], "1 turn without"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOBODYS)
def test_turns_without_a_name_or_a_length_are_left_out_and_said(tmp_path, name):
    text, turns, told = NOBODYS[name]
    found = of_file(tmp_path, name, text)
    assert found.turns == turns
    assert found.notices[-1] == f"{name}: {told} a name or a duration, excluded"


def test_turns_of_one_label_that_overlap_are_one_and_told():
    turns = Turns.from_turns(
        [Turn(0, 4, "ann"), Turn(1, 3, "ann"), Turn(3, 6, "ann"), Turn(6, 7, "bob")]
    )
    cut = turns.cut(10.0)
    assert cut.alone == (Turn(0, 6, "ann"), Turn(6, 7, "bob"))
    (line,) = cut.notices
    assert line == "turns: overlapping turns of one label were merged for ann (3.0 s)"
    with pytest.raises(
        SourceError, match=r"^[^\n]*has 10,000 labels, more than the maximum of 256"
    ):
        Turns.from_turns(Turn(k, k + 0.1, f"S{k}") for k in range(10_000))


@pytest.mark.parametrize("name", FILES)
def test_every_format_says_the_same(tmp_path, name):
    found = of_file(tmp_path, name, FILES[name])
    rounded = [
        Turn(round(t.start_seconds, 6), round(t.end_seconds, 6), t.label) for t in found.turns
    ]
    assert tuple(rounded) == BOTH
    assert found.labels == ("ann", "bob")
    assert found.overlap_seconds == pytest.approx(0.5)


def test_words_with_a_pause_between_them_are_turns_of_their_own(tmp_path):
    words = [("ann", 0, 1), ("ann", 1.4, 2), ("ann", 3, 4), ("", 4, 5), ("ann", 5, 6)]
    rows = [{"word": "so", "start": b, "end": e, "speaker": who} for who, b, e in words]
    found = of_file(tmp_path, "a.json", json.dumps({"words": rows}))
    assert [(t.start_seconds, t.end_seconds) for t in found.turns] == [(0, 2), (3, 4), (5, 6)]
    assert any("1 word without a speaker" in line for line in found.notices)


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.rttm", "SPEAKER a 1 x 2 <NA> <NA> A\n", "line 1: 'x' is not a number of seconds"),
        ("a.rttm", "SPEAKER a 1 1 nan <NA> <NA> A\n", "line 1: 'nan' is not a number"),
        ("a.rttm", "SPEAKER a 1 1 2\n", "line 1 must be SPEAKER, recording"),
        ("a.rttm", "SPEAKER a 1 3 -2 <NA> <NA> A\n", "line 1: a turn that starts at 3 s ends at 1"),
        ("a.rttm", "SPEAKER a 1 -3 2 <NA> <NA> A\n", "invalid turn from -3"),
        ("a.rttm", "SPEAKER a 1 0 0 <NA> <NA> A\n", "has no speaker turns"),
        *(
            (
                "a.rttm",
                f"SPEAKER m 1 0 5 <NA> <NA> {end}\n",
                f"unclear end of the label in {end!r}. Add <NA>",
            )
            for end in ("Speaker 1", "Speaker 1 <NA>", "Speaker 2 0.5")
        ),
        ("a.rttm", RTTM + "hello there\n", "line 6 is not RTTM"),
        ("a.rttm", b"SPEAKER a 1 0 2 <NA> <NA> J\xfcrgen\n", "line 1 is not UTF-8"),
        ("a.rttm", "", "is empty: it has no turns"),
        ("a.txt", "1\t2\tann\n5\t4\tbob\n", "line 2: a turn that starts at 5 s ends at 4"),
        ("a.txt", "1 2 ann\n", "line 1 must be start, end and label with tabs"),
        ("a.txt", RTTM, "line 1 must be start, end and label with tabs between; an RTTM is named"),
        ("a.rttm", "0.5\t2.5\tann\n", "line 1 is not RTTM"),
        ("a.lab", RTTM, "unknown turn format of a.lab: use RTTM (.rttm)"),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nso\n", "names no speakers"),
        ("a.json", json.dumps([{"start": 4, "end": 2, "speaker": "A"}]), "turn 1: a turn"),
        ("a.json", json.dumps([{"start": "4", "end": 2, "speaker": "A"}]), "invalid time '4'"),
        (
            "a.txt",
            "".join(f"{i}\t{i + 1}\tS{i}\n" for i in range(MOST_LABELS + 1)),
            f"has {MOST_LABELS + 1:,} labels",
        ),
        ("a.eaf", EAF.replace('"milliseconds"', '"PAL-frames"'), "in PAL-frames: save it in mill"),
        ("a.eaf", "<xml/>", "is not a valid ELAN file"),
        ("a.eaf", "<html/>", "a.eaf is a web page"),
        ("a.json", json.dumps([{"start": 4, "speaker": "A"}]), "a.json turn 1 has no end"),
        ("a.json", json.dumps([{"end": 4, "speaker": "A"}]), "a.json turn 1 has no start"),
        *(
            (
                f"a.{suffix}",
                gzip.compress(RTTM.encode()),
                f"a.{suffix} is compressed (gzip): unpack",
            )
            for suffix in ("rttm", "rttm.gz", "txt", "json", "eaf", "TextGrid", "vtt", "ctm")
        ),
        *(
            (f"a.{suffix}", f"version https://git-lfs.github.com/spec/v1\n{RTTM}", "git lfs pull")
            for suffix in ("rttm", "txt", "json", "TextGrid", "words", "tsv")
        ),
        (
            "a.TextGrid",
            '"Praat chronological TextGrid text file"\n0 2.3\n',
            "chronological TextGrid: s",
        ),
        ("a.eaf", EAF.replace('"500"', '"x"'), "is not a valid ELAN file"),
        ("a.eaf", EAF.replace('"500"', '"-500"'), "invalid turn from"),
        ("a.TextGrid", "ooBinaryFile so it goes", "is not a valid Praat file"),
        ("a.TextGrid", TEXTGRID.replace("size = 2", "size = 9"), "is not a valid Praat file"),
        ("a.TextGrid", TEXTGRID.encode().replace(b"goes", b"g\xf6s"), "is not UTF-8 text"),
        ("a.TextGrid", TEXTGRID.replace("so it", "").replace("goes", " "), "has no speaker turns"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, name, text, what):
    with pytest.raises(SourceError, match=r"^[^\n]*$") as said:
        of_file(tmp_path, name, text)
    assert what in str(said.value)


@pytest.mark.parametrize(
    ("fields", "recording", "label"),
    [
        ("m 1 0.0 5.0 <NA> <NA> Speaker 1 <NA> <NA>", "m", "Speaker 1"),
        ("m 1 0.0 5.0 <NA> <NA> Speaker 1 0.98 <NA>", "m", "Speaker 1"),
        ("m 1 0.0 5.0 <NA> <NA> Ann B <NA>", "m", "Ann B"),
        ("m 1 0.0 5.0 <NA> <NA> 7 <NA> <NA>", "m", "7"),
        ("m 1 0.0 5.0 <NA> <NA> 7", "m", "7"),
        ("m 1 0.0 5.0 <NA> <NA> 1 2 <NA> <NA>", "m", "1 2"),
        ("my talk 1 0.0 5.0 <NA> <NA> ann <NA> <NA>", "my talk", "ann"),
        ("3 1 4 1 0.0 5.0 <NA> <NA> de la Cruz 0.5 <NA>", "3 1 4", "de la Cruz"),
        ("m\t1\t0.0\t5.0\t<NA>\t<NA>\tAnn B\t<NA>\t<NA>", "m", "Ann B"),
    ],
)
def test_blanks_in_a_name_are_part_of_it(tmp_path, fields, recording, label):
    more = "SPEAKER other 1 0 9 <NA> <NA> eve <NA> <NA>\n"
    text = f"SPEAKER {fields}\n{more}"
    assert of_file(tmp_path, "a.rttm", text, recording=recording).turns == (Turn(0, 5, label),)
    assert parse_turn("-", f"SPEAKER {fields}") == Turn(0, 5, label)
    assert parse_turn("-", f"SPEAKER {fields}".encode("utf-8-sig")) == Turn(0, 5, label)


@pytest.mark.parametrize("nobody", ["<NA>", "UNKNOWN", "?"])
def test_turns_of_nobody_are_left_out_and_said(tmp_path, nobody):
    line = "SPEAKER m 1 {} 5.0 <NA> <NA> {} <NA> <NA>\n"
    found = of_file(tmp_path, "a.rttm", line.format(0, nobody) + line.format(5, "bob"))
    assert found.turns == (Turn(5, 10, "bob"),)
    assert found.notices == ("a.rttm: 1 line without a name or a duration, excluded",)
    assert parse_turn("-", line.format(0, nobody)) is None
    found = of_file(tmp_path, "a.txt", f"0\t5\t{nobody}\n5\t10\tbob\n")
    assert found.turns == (Turn(5, 10, "bob"),)
    assert len(found.notices) == 1


def test_of_an_rttm_of_several_recordings_that_of_the_name_is_taken(tmp_path):
    text = RTTM + "SPEAKER other 1 0 9 <NA> <NA> eve <NA> <NA>\n"
    assert of_file(tmp_path, "all.rttm", text, recording="other.wav").labels == ("eve",)
    assert of_file(tmp_path, "call.rttm", text).labels == ("ann", "bob")
    with pytest.raises(SourceError, match="of 2 recordings, call, other; none is third"):
        of_file(tmp_path, "all.rttm", text, recording="third.wav")
    assert of_file(tmp_path, "a.txt", "0\t1\ta\x1b[2Jb\n").labels == ("a?[2Jb",)
    with pytest.raises(SourceError, match="cannot read the turns of no"):
        read_turns(tmp_path / "no.rttm")
    with pytest.raises(SourceError, match="is a folder"):
        read_turns(tmp_path)


def test_turns_beyond_the_recording_are_cut_and_said():
    turns = Turns.from_turns([Turn(0, 4, "ann"), Turn(5, 9, "bob"), Turn(12, 13, "eve")], "a.rttm")
    cut = turns.cut(6.0)
    assert cut.turns == (Turn(0, 4, "ann"), Turn(5, 6, "bob"))
    assert cut.notices == (
        "a.rttm: 2 turns extend beyond the end of the recording (0:06), and 4.0 s were cut off",
    )
    assert turns.cut(12.9).notices == ()  # a diariser's windows end a little later
    part = turns.cut(4.0, 3.0, warns=False)
    assert part.turns == (Turn(0, 1, "ann"), Turn(2, 4, "bob"))
    assert part.notices == ()
    with pytest.raises(SourceError, match="no turn is within the recording"):
        turns.cut(2.0, 20.0)


TURNS = st.lists(
    st.builds(
        lambda start, lasts, label: Turn(start / 10, (start + lasts) / 10, label),
        st.integers(0, 200),
        st.integers(1, 60),
        st.sampled_from("abc"),
    ),
    min_size=1,
    max_size=25,
)


@given(TURNS, st.integers(1, 260), st.integers(0, 100))
def test_cutting_first_or_sweeping_first_is_the_same(found, seconds, start):
    turns = Turns.from_turns(found)
    try:
        cut = turns.cut(seconds / 10, start / 10)
    except SourceError:
        assert all(
            turn.end_seconds <= start / 10 or turn.start_seconds >= (start + seconds) / 10
            for turn in found
        )
        return
    shorter = sum(turn.seconds for turn in cut.alone)
    low, high = start / 10, (start + seconds) / 10
    whole = sum(
        max(min(turn.end_seconds, high) - max(turn.start_seconds, low), 0) for turn in turns.alone
    )
    assert shorter == pytest.approx(whole)


def speech_of(rng: np.random.Generator, seconds: float) -> BoolArray:
    """Runs of speech of 2 s and pauses of 0.6 s on average."""
    runs, total = list[BoolArray](), 0
    while total < seconds * 100:
        for spoken, mean in ((True, 200), (False, 60)):
            runs.append(np.full(20 + round(rng.exponential(mean - 20)), spoken))
            total += runs[-1].size
    return np.concatenate(runs)[: round(seconds * 100)]


def words_in(rng: np.random.Generator, speech: BoolArray, shift: int = 0) -> Words:
    """A word every 0.4 s or so where there is speech, its time off by some ticks."""
    begins = np.arange(0, speech.size - 40, 40)
    begins = begins[speech[begins] & speech[begins + 30]]
    begins = np.maximum(begins + rng.integers(-8, 9, begins.size) + shift, 0)
    return Words(("so",) * begins.size, begins, begins + 35, begins + 35)


@pytest.mark.parametrize("seconds", [60.0, 600.0])
def test_the_own_transcript_fits_and_that_of_others_is_doubted(seconds):
    rng = np.random.default_rng(5)
    own, others = [], []
    for _ in range(60):
        speech = speech_of(rng, seconds)
        own.append(measure_coverage(words_in(rng, speech), speech))
        others.append(measure_coverage(words_in(rng, speech_of(rng, seconds)), speech))
    assert not any(each.doubtful for each in own)
    assert min(each.in_speech for each in own) > 0.85
    # of another recording each share of places is as probable as any other
    doubtful = [each for each in others if each.doubtful]
    assert len(doubtful) > 0.85 * len(others)
    assert 0.3 < np.mean([each.as_well for each in others]) < 0.7
    assert doubtful[0].sentence("a.vtt").endswith("Does it belong to another recording?")
    assert own[0].sentence("a.vtt").endswith("% of the speech has words")


def test_words_without_pauses_tell_nothing():
    rng = np.random.default_rng(3)
    speech = speech_of(rng, 100.0)
    everywhere, in_captions = np.arange(0, speech.size, 50), np.arange(0, speech.size - 200, 200)
    for begins, length in ((everywhere, 50), (everywhere[:0], 50), (in_captions, 195)):
        ends = begins + length
        found = measure_coverage(Words(("so",) * begins.size, begins, ends, ends), speech)
        assert found.as_well is None
        assert not found.doubtful
    assert measure_coverage(words_in(rng, speech), speech[:2900]).as_well is None  # too short


@pytest.mark.parametrize("numbers", [(0, 1), (0.0, 1.0), ("0", "1")])
def test_a_number_names_a_speaker(tmp_path, numbers):
    rows = [{"start": 2 * i, "end": 2 * i + 1, "speaker": n} for i, n in enumerate(numbers)]
    assert of_file(tmp_path, "a.json", json.dumps(rows)).labels == ("0", "1")


@pytest.mark.parametrize("empty", [None, "", "nan", "NaN", "None", "null", "<NA>", "UNKNOWN"])
def test_an_empty_cell_names_nobody(tmp_path, empty):
    rows = [{"start": i, "end": i + 1, "speaker": n} for i, n in enumerate(["ann", empty])]
    assert of_file(tmp_path, "a.json", json.dumps(rows)).labels == ("ann",)
    if empty:
        text = "".join(f"{row['start']}\t{row['end']}\t{row['speaker']}\n" for row in rows)
        assert of_file(tmp_path, "a.txt", text).labels == ("ann",)


def test_times_of_google_are_seconds(tmp_path):
    rows = [
        {"startTime": "0.500s", "endTime": "2.5s", "speaker": "ann"},
        {"start": "2s", "end": "3.500s", "speaker": "bob"},
    ]
    assert of_file(tmp_path, "a.json", json.dumps(rows)).turns == BOTH


@pytest.mark.parametrize(
    ("start", "end", "speaker"),
    [("startTime", "endTime", "speakerTag"), ("startOffset", "endOffset", "speakerLabel")],
)
def test_transcripts_of_google_name_their_speakers(tmp_path, start, end, speaker):
    def word(text: str, begin: str, until: str, who: int) -> dict[str, object]:
        return {start: begin, end: until, "word": text, speaker: who}

    words = [word("so", "0.500s", "1.200s", 1), word("it", "1.200s", "2.500s", 1)]
    words.append(word("goes", "2s", "3.500s", 2))
    parts = [{key: cell for key, cell in row.items() if key != speaker} for row in words]
    results = [
        {"alternatives": [{"transcript": "so it goes", "words": parts}, {"words": words}]},
        {"alternatives": [{"words": words}]},  # all words again
    ]
    found = of_file(tmp_path, "a.json", json.dumps({"results": results}))
    assert [(turn.start_seconds, turn.label) for turn in found.turns] == [(0.5, "1"), (2.0, "2")]
    one_by_one = [{"alternatives": [{"words": [row]}]} for row in words]
    transcript = read_transcript(write(tmp_path / "b.json", json.dumps({"results": one_by_one})))
    assert [word.text for word in transcript.timed_words] == ["so", "it", "goes"]
    assert transcript.speakers == ("1", "2")
    no_speakers = json.dumps({"results": [{"alternatives": [{"words": parts}]}]})
    assert len(read_transcript(write(tmp_path / "c.json", no_speakers)).timed_words) == 3


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
