"""Which transcript goes with a recording, and whose words in it count."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.corpus import Corpus, Recording
from monitor.errors import SourceError, UsageError
from monitor.transcripts.formats import (
    LIES_BESIDE,
    SUFFIXES,
    TranscriptChoice,
    read_transcript,
    transcript_beside,
    words_mark,
)

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


def test_a_recording_without_words_says_where_they_are_looked_for(talk):
    with pytest.raises(SourceError, match=r"talk\.flac has no words beside it: put talk\.words"):
        LIES_BESIDE.read(talk)


def test_of_several_speakers_one_has_to_be_chosen(talk):
    talk.with_suffix(".tsv").write_text(TWO)
    with pytest.raises(SourceError, match=r"talk\.tsv holds the words of ann, bob: say whose"):
        LIES_BESIDE.read(talk)
    assert LIES_BESIDE.read(talk, own="bob").words().texts == ("no", "no")
    assert TranscriptChoice(speaker="ann").read(talk, own="bob").words().texts == ("so", "be", "it")
    with pytest.raises(SourceError, match="no speaker cy; it names ann, bob"):
        TranscriptChoice(speaker="cy").read(talk)
    with pytest.raises(SourceError, match="holds the words of ann, bob"):
        LIES_BESIDE.read(talk, own="cy")


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


METADATA = '{"id": "talk", "speakers": [{"name": "ann"}], "text": "a talk"}'


def test_json_that_is_no_transcript_is_refused(talk):
    vtt = talk.with_suffix(".vtt")
    talk.with_suffix(".json").write_text(METADATA)
    vtt.write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nso be it\n")
    with pytest.raises(SourceError, match=r"talk\.json is none of the JSONs.*; rename it where"):
        LIES_BESIDE.read(talk)
    assert TranscriptChoice(vtt).read(talk).words().texts == ("so", "be", "it")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ('{"segments": [{"start": 1, ', "is no JSON"),
        ('{"segments": []}', "holds no words"),
        ('{"segments": [{"start": 2, "end": 1, "text": "so"}]}', "left out"),
        ("", "is empty"),
    ],
)
def test_a_broken_transcript_is_not_passed_over(talk, broken, why):
    talk.with_suffix(".vtt").write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nso be it\n")
    talk.with_suffix(".json").write_text(broken)
    with pytest.raises(SourceError, match=f"talk.json.*{why}"):
        LIES_BESIDE.read(talk)


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
