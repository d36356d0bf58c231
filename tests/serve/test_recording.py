"""A recording dropped onto the page is measured as `monitor replay` measures its file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from monitor.cli import main
from monitor.errors import SourceError, UsageError
from monitor.serve.browser_audio import MOST_BYTES, UploadHeader, opened
from monitor.serve.session import ServeSettings, Session
from monitor.virtual_files import MemoryFile
from tests.records import read_records
from tests.serve.conftest import ENROL_SECONDS, RATE, of_kind, told, wav
from tests.settings import configured
from tests.waiting import until


@pytest.fixture
def settings(enrolled) -> ServeSettings:
    return ServeSettings(enrolled[0].templates, ENROL_SECONDS, 60.0)


def measure(
    session: Session, recording: Path, turns: Path | None = None, name: str = "Ann"
) -> None:
    """Send files as the page does, and wait for the end."""
    data = recording.read_bytes()
    of_turns = None if turns is None else UploadHeader(turns.name, turns.stat().st_size)
    session.measure(name, UploadHeader(recording.name, len(data)), of_turns, 6.0)
    if turns is not None:
        data += turns.read_bytes()
    for low in range(0, len(data), 65_000):
        session.receive_audio(data[low : low + 65_000])
    until(lambda: not session.busy)


def records(session: Session) -> list[dict[str, Any]]:
    assert session.kept is not None
    return [json.loads(line) for line in b"".join(session.kept.lines()).splitlines()]


def replayed(path: Path, *options: str) -> list[dict[str, Any]]:
    log = path.with_suffix(".jsonl")
    with pytest.raises(SystemExit) as ended:
        main(configured(["replay", path, *options, {"top": 100}, "--jsonl", log], path.parent))
    assert ended.value.code == 0
    return list(read_records(log))


def test_a_recording_reads_as_monitor_replay_of_its_file(settings, chapters, tmp_path):
    path = wav(tmp_path / "talk.flac", chapters[1][: 12 * RATE])
    said: list[dict[str, Any]] = []
    session = Session(settings, lambda message: said.append(dict(message)))
    measure(session, path)
    assert [each["type"] for each in said] == ["measuring", "over"]
    assert said[0]["seconds"] == 12.0
    there = replayed(path, "-p", str(settings.templates.folder / "Ann.npz"), "--watch", "Ann")
    here = records(session)
    assert of_kind(here) == of_kind(there)
    assert len(of_kind(here)) == 12
    assert of_kind(here)[-1]["bits"] > 1  # it is her
    for key in ("fingerprint", "watch", "recordings", "features", "notices"):
        assert here[0][key] == there[0][key]


def test_a_meeting_with_its_turns_shows_everybody(settings, chapters, tmp_path):
    meeting = np.concatenate([chapters[1][: 6 * RATE], chapters[0][-6 * RATE :]])
    path, turns = wav(tmp_path / "meeting.wav", meeting, subtype="PCM_16"), tmp_path / "turns.rttm"
    turns.write_text(
        "SPEAKER meeting 1 0.00 6.00 <NA> <NA> one <NA> <NA>\n"
        "SPEAKER meeting 1 6.00 6.00 <NA> <NA> two <NA> <NA>\n"
    )
    said: list[dict[str, Any]] = []
    session = Session(settings, lambda message: said.append(dict(message)))
    measure(session, path, turns)
    assert said[0]["people"] is True, said
    store = str(settings.templates.folder / "Ann.npz")
    there = replayed(path, "-p", store, "--watch", "Ann", "--turns", str(turns))
    here = records(session)
    assert of_kind(here) == of_kind(there)
    assert here[-1]["people"] == there[-1]["people"]
    assert {each["label"] for each in of_kind(here)} == {"one", "two"}


def test_nothing_of_a_recording_comes_to_a_disk(settings, chapters, tmp_path, written):
    path = wav(tmp_path / "talk.wav", chapters[1][: 4 * RATE], subtype="PCM_16")
    data = path.read_bytes()
    path.unlink()
    written.clear()
    session = Session(settings, lambda _: None)
    session.measure("Ann", UploadHeader("talk.wav", len(data)), None, 6.0)
    session.receive_audio(data)
    until(lambda: not session.busy)
    assert written == []
    assert len(of_kind(records(session))) == 4


def refused(data: bytes, name: str = "talk.wav", turns: bytes | None = None) -> str:
    with pytest.raises(SourceError) as error:
        opened(
            MemoryFile(name, data),
            None if turns is None else MemoryFile("talk.rttm", turns),
            longest_seconds=10.0,
        )
    text = str(error.value)
    assert "\n" not in text
    return text


def test_what_cannot_be_measured_is_one_clear_line(tmp_path, chapters):
    long, short = (
        wav(tmp_path / "talk.wav", chapters[1][: seconds * RATE], subtype="PCM_16").read_bytes()
        for seconds in (11, 2)
    )
    assert "talk.wav is not" in refused(b"hello" * 100)
    assert "talk.npz is a ZIP archive" in refused(b"PK\3\4" + bytes(99), "talk.npz")
    assert "0:10 at most" in refused(long)
    assert "talk.rttm" in refused(short, turns=b"\xff\xfe\xfd")
    assert "talk.rttm" in refused(short, turns=b"SPEAKER a 1 x y\n")
    with pytest.raises(UsageError, match="MB at most"):
        UploadHeader("long.wav", MOST_BYTES + 1)
    with pytest.raises(UsageError, match="empty"):
        UploadHeader("none.wav", 0)


def test_there_is_room_for_one_recording_and_it_is_given_back(settings):
    first, second = (Session(settings, lambda _: None) for _ in range(2))
    announced = UploadHeader("talk.wav", 1000)
    first.measure("", announced, None, 6.0)
    with pytest.raises(UsageError, match="try again"):
        second.measure("", announced, None, 6.0)
    first.drop_upload()
    second.measure("", announced, None, 6.0)
    second.stop()
    assert [first.busy, second.busy] == [False, False]
    second.measure("", announced, None, 6.0)
    second.receive_audio(bytes(1000))  # no recording: it is over, too
    until(lambda: not second.busy)
    first.measure("", announced, None, 6.0)
    first.close()


def test_a_recording_over_the_wire_and_what_can_be_taken_away(client, line, chapters, tmp_path):
    data = wav(tmp_path / "talk.wav", chapters[1][: 8 * RATE], subtype="PCM_16").read_bytes()
    made = line()
    session = told(made, "ready")["session"]
    wish = {"do": "measure", "name": "Ann", "threshold": 6,
            "recording": {"name": "../talk.wav", "size": len(data)}}  # fmt: skip
    made.send(json.dumps(wish))
    for low in range(0, len(data), 60_000):
        made.send(data[low : low + 60_000])
    assert told(made, "measuring")["recording"] == "talk.wav"
    told(made, "over")
    taken = {
        name: client.get(f"/download/{name}?session={session}")
        for name in ("run.jsonl", "run.png", "run.html")
    }
    for name, answer in taken.items():
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    log = tmp_path / "taken.jsonl"
    log.write_bytes(taken["run.jsonl"].content)
    run = read_records(log)
    assert len(of_kind(run)) == 8
    assert run[-1]["type"] == "end"
    assert taken["run.png"].content.startswith(b"\x89PNG")
    report = taken["run.html"].text
    assert "talk.wav" in report
    assert "Ann" in report
    assert 'src="data:image/png' in report
    assert not re.search(r"<script|https?:", report)
    for address in (f"run.txt?session={session}", "run.jsonl?session=guess", "run.jsonl"):
        assert client.get(f"/download/{address}").status_code == 404
    client.cookies.clear()
    assert client.get(f"/download/run.jsonl?session={session}").status_code == 401


@pytest.mark.parametrize(
    "recording",
    [None, "talk.wav", {"name": "a"}, {"name": 1, "size": 1}, {"name": "a", "size": 1e9}],
)
def test_a_recording_that_is_badly_announced_is_refused(line, recording):
    made = line()
    told(made, "ready")
    made.send(json.dumps({"do": "measure", "threshold": 6, "recording": recording}))
    answer = json.loads(made.recv(timeout=10))
    assert answer["type"] == "error"
    assert "a name and a size" in answer["text"]


def test_more_than_was_announced_ends_the_session(line):
    made = line()
    told(made, "ready")
    wish = {"do": "measure", "threshold": 6, "recording": {"name": "talk.wav", "size": 9}}
    made.send(json.dumps(wish))
    made.send(bytes(10))
    with pytest.raises(ConnectionClosed) as closed:
        told(made, "over")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
