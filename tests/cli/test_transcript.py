"""Words beside the voice: --transcript and what goes with it, as people use it."""

import io
import json
import sys
from pathlib import Path

import pytest
import soundfile

from monitor import Monitor
from monitor.errors import StoreError
from monitor.phrases import STYLE_CAVEAT
from monitor.population.population import Population
from monitor.run import LogFile, Run
from monitor.sources import File, SideInputSource
from monitor.transcripts import read_transcript
from tests.cli.conftest import SAID, captions
from tests.sounds import RATE, synthetic


@pytest.fixture
def us(worded: Path) -> Path:
    return worded


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """Twelve seconds of a voice; its captions lie beside it."""
    path = tmp_path / "talk.wav"
    soundfile.write(path, synthetic(12.0), RATE)
    captions(path.with_suffix(".vtt"))
    return path


def test_a_transcript_is_heard_where_the_population_knows_what_people_say(run, us, talk):
    done = run("replay", talk, "-p", us, "--transcript", talk.with_suffix(".vtt"))
    start, *_, end = done.records
    assert start["features"] == ["f0", "style"]
    assert start["transcripts"] == [
        {"recording": "talk.wav", "transcript": "talk.vtt", "words": 21, "spread": True,
         "speaker": None},
    ]  # fmt: skip
    assert any(notice.startswith(STYLE_CAVEAT) for notice in start["notices"])
    assert any("its words have no times of their own" in notice for notice in start["notices"])
    usable = [reading["features"]["style"]["usable"] for reading in done.readings]
    assert usable[4] == 0.0 < usable[5]  # a caption is known when it has ended
    (told,) = end["transcripts"]
    assert (told["recording"], told["words"]) == ("talk.wav", 21)
    assert 0 < told["speech_with_words"] <= 1
    assert any(notice.startswith("talk.vtt: ") for notice in end["notices"])
    beside = run("replay", talk, "-p", us, "--features", "f0,style")
    assert beside.readings == done.readings


def test_without_a_transcript_nothing_said_is_used_and_that_is_told(run, us, talk):
    done = run("replay", talk, "-p", us)
    assert done.records[0]["features"] == ["f0"]
    assert "transcripts" not in done.records[0]
    assert "not used: style" in done.err
    assert "--transcript FILE" in done.err
    assert STYLE_CAVEAT not in done.err


def test_another_list_of_words_is_refused(run, us, talk, tmp_path, monkeypatch):
    own = tmp_path / "own.txt"
    own.write_text("well\nso\n")
    monkeypatch.setenv("MONITOR_WORD_LIST", str(own))
    done = run("replay", talk, "-p", us, "--features", "f0,style")
    assert done.code == 2
    assert "MONITOR_WORD_LIST" in done.complaint


def test_words_of_a_pipe(run, us, talk, monkeypatch):
    words = SAID.split()
    lines = [json.dumps({"word": w, "begin": i / 2, "end": i / 2 + 0.4})
             for i, w in enumerate(words)]  # fmt: skip
    given = ["replay", talk, "-p", us, "--transcript"]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
        piped = run(*given, "-")
    talk.with_suffix(".words").write_text("\n".join(lines))
    assert piped.readings == run(*given, talk.with_suffix(".words")).readings
    assert piped.records[0]["transcripts"][0]["transcript"] == "standard input"
    for data in (b"", b"\xff\xfe\xff", b"no words"):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
            done = run(*given, "-")
        assert done.code == 1
        assert "standard input" in done.complaint


def test_of_two_speakers_the_words_of_one_are_heard(run, us, talk):
    both = captions(talk.with_name("two.vtt"), "ann", "bob")
    given = ["replay", talk, "-p", us, "--transcript", both, "--speaker-in-transcript"]
    ann, bob = (run(*given, name) for name in ("ann", "bob"))
    assert ann.records[0]["transcripts"][0]["speaker"] == "ann"
    assert [each.records[0]["transcripts"][0]["words"] for each in (ann, bob)] == [10, 11]
    assert ann.readings[-1]["features"]["style"] != bob.readings[-1]["features"]["style"]


@pytest.mark.slow
def test_each_finds_its_words_in_any_process_and_a_changed_transcript_is_heard_anew(
    run, us, talk, tmp_path
):
    folder = tmp_path / "talks"
    folder.mkdir()
    for name in ("a", "b"):
        soundfile.write(folder / f"{name}.wav", synthetic(12.0, 100.0), RATE)
        captions(folder / f"{name}.vtt")
    given = ["replay", folder, "--each", "-p", us, "--features", "f0,style", "--summary"]
    one, two, alone = (tmp_path / f"{name}.csv" for name in ("one", "two", "alone"))
    assert run(*given, one, "--jobs", 1).code == 0
    assert run(*given, two, "--jobs", 2).code == 0
    assert one.read_bytes() == two.read_bytes()
    assert run(*given, alone, "--jobs", "local:1").code == 0
    assert alone.read_bytes() == one.read_bytes()
    captions(folder / "a.vtt", "ann")
    done = run(*given, one, "--resume", "--jobs", 1)
    assert "measured 1 recording" in done.err


def test_a_run_goes_on_with_the_same_words_and_with_no_others(us, talk, tmp_path):
    def opened(log: LogFile, suffix: str = ".vtt") -> Run:
        words = read_transcript(talk.with_suffix(suffix))
        monitor = Monitor(Population.load(us), ["f0", "style"], "ann")
        return Run(SideInputSource(File(talk, block_seconds=0.7), words=words), monitor, log=log)

    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    with opened(LogFile(whole)) as run:
        run.to_end()
    with opened(LogFile(part)) as run:
        for record in (event.record() for event in run):
            if record.get("seconds") == 7.0:
                break
    talk.with_suffix(".words").write_text('{"word": "no", "begin": 1, "end": 2}')
    told = "different: words"
    with pytest.raises(StoreError, match=told), opened(LogFile(part, resume=True), ".words"):
        pass
    with opened(LogFile(part, resume=True)) as run:
        run.to_end()
    both = ([json.loads(line) for line in path.read_text().splitlines()] for path in (whole, part))
    for one, other in zip(*both, strict=True):
        assert {**one, "time": 0} == {**other, "time": 0}
