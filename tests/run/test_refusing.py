"""What a run refuses: audio that was enrolled, what is no source, and in words of Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from monitor import Monitor, Population, Run, alerts
from monitor.errors import MonitorError, OverlapError, UsageError
from monitor.population.people import SourceNote
from monitor.run import LogFile, RunSettings
from monitor.sources import File
from monitor.sources.registry import recording_hashes
from tests.stream.streams import WATCHED, reference, run_through, voice_file, with_speakers


@pytest.fixture
def enrolled(tmp_path: Path) -> tuple[Path, Population]:
    """A recording of 4 s, and a population that was enrolled from its first two."""
    path = voice_file(tmp_path / "me.flac")
    note = SourceNote(path.name, "one", recording_hashes(path), 0.0, 2.0)
    return path, with_speakers(reference(), me=(note,))


def test_the_very_audio_that_was_enrolled_is_refused_unless_insisted(enrolled):
    path, population = enrolled
    with pytest.raises(OverlapError, match=r"allow_overlap=True$"):
        Run(path, Monitor(population, watch="me")).__enter__()
    with Run(
        path, Monitor(population, watch="me"), settings=RunSettings(allow_overlap=True)
    ) as run:
        assert run.start.rank_model_session == "same"
        assert run.to_end().readings == 4


def test_another_part_of_an_enrolled_recording_takes_the_same_session_rank_model(
    enrolled, tmp_path
):
    path, population = enrolled
    for source, session in (
        (File(path, start_seconds=2.0), "same"),
        (voice_file(tmp_path / "other.flac", 3.0), "cross"),
    ):
        log = tmp_path / f"{session}.jsonl"
        with Run(source, Monitor(population, watch="me"), log=log, ledger=tmp_path / "l") as run:
            assert run.start.rank_model_session == session
            readings = [event for event in run if event.type == "reading"]
        assert {reading.session for reading in readings} == {session}


def test_it_is_resumed_under_the_rank_model_that_it_had(enrolled, tmp_path):
    path, population = enrolled
    given, log = File(path, start_seconds=2.0), tmp_path / "run.jsonl"

    def fresh() -> Monitor:
        return Monitor(population, watch="me", step_seconds=0.5)

    with Run(given, fresh(), log=log) as run:
        for record in (event.record() for event in run):
            if record["type"] == "reading" and record["seconds"] == 1.0:
                break
    assert run_through(given, fresh(), log=LogFile(log, resume=True)).readings == 4
    whole = tmp_path / "whole.jsonl"
    run_through(given, fresh(), log=whole)
    timeless = [re.sub(r'"time":"[^"]*"', "", each.read_text()) for each in (log, whole)]
    assert timeless[0] == timeless[1]


def test_what_lacks_something_of_a_source_says_what():
    class Bare:
        label, stream_info, seconds = "bare", None, None

        def __iter__(self):
            return iter(())

    words = "a Bare is no Source: it lacks labels, .*, __enter__ .*monitor.sources.BaseSource does"
    for given in (Bare(), Bare):
        with pytest.raises(UsageError, match=words):
            Run(given, Monitor(reference())).__enter__()  # type: ignore[arg-type]


def test_refusals_speak_python(tmp_path):
    """No options in what a program reads; the commands' words are theirs."""
    talk, log = voice_file(tmp_path / "talk.flac"), tmp_path / "talk.jsonl"
    run_through(File(talk), Monitor(reference()), log=log)
    unfinished = tmp_path / "unfinished.jsonl"
    with Run(talk, Monitor(reference()), log=unfinished) as run:
        next(event for event in run if getattr(event, "seconds", 0) >= 2)  # a checkpoint is there
    refused = {
        r"overwrite it \(LogFile\(path, replace=True\)\)": {"log": log},
        r"go on with it \(LogFile\(path, resume=True\)\)": {"log": unfinished},
        "nothing to resume; leave out resume=True": {"log": LogFile(log, resume=True)},
        "replace=True begins it anew": {"log": LogFile(log, replace=True, resume=True)},
        "resume=True needs the file": {"log": LogFile("-", resume=True)},
        "watch=": {"ledger": tmp_path / "a.db"},
        'on_change="note"': {
            "ledger": tmp_path / "a.db",
            "monitor": Monitor(reference(), watch=WATCHED, on_change="reset"),
        },
        "add among=1000": {"rules": [alerts.Threshold("among.1e3.bits", 1)]},
    }
    for words, options in refused.items():
        given: dict[str, Any] = {"source": talk, "monitor": Monitor(reference()), **options}
        with pytest.raises(MonitorError) as caught:
            Run(**given).__enter__()
        assert re.search(words, str(caught.value)), str(caught.value)
        assert " --" not in str(caught.value)
        assert "(--" not in str(caught.value)
    assert run_through(File(talk), Monitor(reference()), log=LogFile(log, replace=True)).readings
