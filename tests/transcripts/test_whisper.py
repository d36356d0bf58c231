"""The JSON of Whisper's programs: one test a dialect, with what each is known to get wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import SourceError
from monitor.transcripts import Transcript, read_transcript
from monitor.transcripts.formats import read_whisper
from tests.transcripts.formats import check_read_or_refused


def read(found: Any) -> Transcript:
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
    talk = read(found)
    assert rows(talk) == TIMED
    assert not talk.spread
    assert [word.known for word in talk.timed_words] == [0.3, 0.6]
    words = talk.words()
    assert (words.begins < words.ends).all()  # a word that takes no time takes a tick


@pytest.mark.parametrize("words", [None, []])
def test_segments_alone_are_spread(words):
    talk = read({"segments": [{**SEGMENT, "words": words}]})
    assert [word.text for word in talk.timed_words] == ["And", "so,"]
    assert {word.known for word in talk.timed_words} == {2.0}
    assert talk.spread
    assert "no times of their own" in talk.notices[0]


def test_whisperx_has_speakers_and_words_without_times():
    words = [
        {"word": "In", "start": 0.0, "end": 0.2, "score": 0.9, "speaker": "SPEAKER_00"},
        {"word": "2014", "speaker": "SPEAKER_00"},
        {"word": "I", "start": 0.8, "end": 0.9, "speaker": "SPEAKER_01"},
        {"word": "4"},
        {"word": "5"},
    ]
    segment = {"start": 0.0, "end": 1.5, "text": "...", "words": words, "speaker": "SPEAKER_00"}
    talk = read({"segments": [segment], "word_segments": words})
    assert rows(talk) == [
        ("In", 0.0, 0.2), ("2014", 0.2, 0.8), ("I", 0.8, 0.9), ("4", 0.9, 1.2), ("5", 1.2, 1.5),
    ]  # fmt: skip
    assert [word.known for word in talk.timed_words] == [0.2, 1.5, 0.9, 1.5, 1.5]
    assert [word.spread for word in talk.timed_words] == [False, True, False, True, True]
    assert talk.speakers == ("SPEAKER_00", "SPEAKER_01")
    assert talk.of("SPEAKER_01").words().texts == ("I",)
    assert "3 of 5 words have" in talk.notices[0]
    alone = read({"segments": [{"text": "x", "words": [{"word": "so"}, *words[:1]]}]})
    assert [word.text for word in alone.timed_words] == ["so", "In"]


def piece(text: str, begin: int, end: int, **more: Any) -> dict[str, Any]:
    return {"text": text, "offsets": {"from": begin, "to": end}, **more}


def test_whisper_cpp_counts_milliseconds_and_tokens_are_pieces_of_words():
    tokens = [
        piece("[_BEG_]", 0, 0), piece(" And", 100, 300), piece(" fell", 300, 250),
        piece("ow", 400, 500), piece(",", 500, 500), piece("[_TT_100]", 2000, 2000),
    ]  # fmt: skip
    segment = piece(" And fellow,", 0, 2000, tokens=tokens, speaker_turn_next=False)
    talk = read({"result": {"language": "en"}, "transcription": [segment]})
    assert rows(talk) == [("And", 0.1, 0.3), ("fellow,", 0.3, 0.5)]
    plain = read({"transcription": [{**piece(" And fellow,", 0, 2000), "speaker": "?"}]})
    assert plain.spread
    assert plain.speakers == ()
    two = [{**piece(" hi", 0, 400), "speaker": "0"}, {**piece(" yes", 400, 900), "speaker": "1"}]
    assert read({"transcription": two}).speakers == ("0", "1")


def test_whisper_cpp_with_a_segment_a_token():
    talk = read({"transcription": [
        piece("", 0, 0), piece(" app", 0, 100), piece("les", 100, 300), piece(".", 300, 310),
        piece(" so", 400, 500),
    ]})  # fmt: skip
    assert rows(talk) == [("apples.", 0.0, 0.31), ("so", 0.4, 0.5)]


def test_letters_cut_within_their_bytes_are_put_together(tmp_path):
    tokens = [(b" don", 0), (b"\xe2\x80", 100), (b"\x99", 100), (b"t", 150)]
    made = b",".join(
        b'{"text":"%s","offsets":{"from":%d,"to":%d}}' % (text, at, at + 50) for text, at in tokens
    )
    text = " don\u2019t".encode()
    path = tmp_path / "a.json"
    path.write_bytes(
        b'{"transcription":[{"text":"%s","offsets":{"from":0,"to":900},"tokens":[%s]}]}'
        % (text, made)
    )
    assert rows(read_transcript(path)) == [("don\u2019t", 0.0, 0.2)]


def test_chunks_of_hugging_face():
    chunks = [{"timestamp": [0.0, 1.0], "text": " And so"}, {"timestamp": [1.0, None], "text": "x"},
              {"timestamp": [2.0, 2.5], "text": " no"},
              {"timestamp": [3.0, None], "text": " end"},
    ]  # fmt: skip
    talk = read({"text": " And so x no end", "chunks": chunks})
    assert rows(talk)[1:] == [("so", 0.571, 1.0), ("x", 1.0, 2.0), ("no", 2.0, 2.5)]
    assert "1 of 4 texts have no time" in talk.notices[0]
    named = [{"speaker": "SPEAKER_00", "text": " And so", "timestamp": [0.0, 1.0]}]
    assert read({"speakers": named, "chunks": chunks}).speakers == ("SPEAKER_00",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[1]", "none of the JSONs"),
        ("3", "none of the JSONs"),
        ('{"words": "so"}', "none of the JSONs"),
        ('{"text": "And so"}', "a text without times; ask for verbose_json"),
        ('{"words": [{"text": "so", "start": 1}], "segments": 3}', "no time"),
        ('{"segments": [{"words": [{"word": "so"}]}]}', "1 of 1 texts have no time"),
        ('{"segments": []}', "holds no words"),
        ('{"segments": [{"start": 0, "end": 1, "text": "  "}]}', "holds no words"),
        ('{"segments": [{"start": NaN, "end": 1e999, "text": "so"}]}', "1 of 1 texts have no time"),
        ('{"segments": [{"start": true, "end": {}, "text": "so"}]}', "1 of 1 texts have no time"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_line(text, words):
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
    check_read_or_refused(lambda: read(found))
