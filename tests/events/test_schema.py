"""Records of a run: as their schema says, read back as they were, and hostile files refused."""

import json
from dataclasses import replace
from itertools import islice
from typing import Any

import jsonschema
import orjson
import pytest

from monitor import Monitor, Population
from monitor.errors import SchemaError, StoreError
from monitor.events.declaration import Event
from monitor.events.reading import DeclaredReading, OpenChange, ProtectedReading
from monitor.events.run import (
    SCHEMA_VERSION,
    Alert,
    Change,
    GapEvent,
    LevelReached,
    NoticeEvent,
    RunEnd,
    RunStart,
)
from monitor.events.schema import SCHEMA, event_of, read_run
from monitor.maths.condition import Condition
from monitor.population import DEMO_SPEAKER, demo_frames
from monitor.sinks.jsonl import JsonLines
from monitor.sources import FramesFile
from monitor.stream.records import RunTotals, start_event
from monitor.types import Gap, Notice

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
CHANGE = Change(9.0, 7.0, ("f0",), 0.1, -0.2)
ALERT = Alert(4.0, 3.0, "bits>3 for 5 s", "bits", 3.0, "raised", 3.2)
OCCURRENCES: list[tuple[Event, str]] = [
    (RunStart.from_record({"schema": 2}), "start"),
    (GapEvent.from_gap(2.0, Gap("device lost", None)), "gap.device-lost"),
    (NoticeEvent.from_notice(2.0,
     Notice("channels differ", "they do", fields={"channels": [1, 2]})),
     "notice.channels-differ"),
    (CHANGE, "change.note"),
    (replace(CHANGE, back=True), "change.back"),
    (replace(CHANGE, features=("f0", "channel"), action="split", label="ann"), "change.split"),
    (replace(ALERT, change=OpenChange(1.0, ("f0",))), "alert.raised"),
    (replace(ALERT, level="warning", state="cleared"), "warning.cleared"),
    (LevelReached(4.0, 1.0, "protected", 3.0, None), "crossing.protected"),
    (RunEnd.from_record({"readings": 3}), "end"),
]  # fmt: skip


def reads_back(event: Event) -> dict[str, Any]:
    """The event from its own record, which is one by the schema."""
    record = orjson.loads(orjson.dumps(event.record()))
    VALIDATOR.validate(record)
    again = event_of(record)
    assert type(again) is type(event)
    assert orjson.dumps(again.record()) == orjson.dumps(event.record())
    return dict(record)


@pytest.mark.parametrize(("event", "code"), OCCURRENCES, ids=lambda each: str(each)[:9])
def test_what_happens_has_a_code_and_reads_back(event, code):
    assert event.code == code
    assert event.record()["type"] == event.type
    if event.type not in ("start", "end"):  # of a real run below
        reads_back(event)


@pytest.mark.parametrize("watch", [None, DEMO_SPEAKER])
def test_readings_read_back(watch):
    monitor = Monitor(Population.reference(), watch=watch)
    for reading in islice(monitor.stream(FramesFile(demo_frames())), 20):
        reads_back(reading)
    reads_back(
        replace(
            reading,
            protected=ProtectedReading.from_readings({"ignorant": reading}, reading.headline),
            conditions=Condition(8000.0, 20.0),
            change=OpenChange(1.0, ("f0",)),
            declared=DeclaredReading(3, 1.0, None, 0.5, 1.44, empty=False),
            enrolled_withheld=("f0 cannot tell", "voice can"),
            bystanders=(),
            differs=("clipping",),
        )
    )


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    """Of every type, from a real run."""
    monitor, totals = Monitor(Population.reference(), ["f0"], DEMO_SPEAKER), RunTotals()
    made: list[Any] = [start_event(monitor, ["name.flac"])]
    made += islice(monitor.stream(FramesFile(demo_frames())), 20)
    made += [event for event, _ in OCCURRENCES[1:-1]]
    for each in made:
        totals.count(each)
    return [reads_back(each) for each in (*made, totals.end_event(monitor, complete=True))]


def test_a_record_lacks_no_key_and_has_no_value_of_another_kind(records):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert SCHEMA_VERSION == 2
    first = {record["type"]: record for record in reversed(records)}
    assert len(first) == 8
    free = {"similarity", "fingerprint", "fields"}  # any keys
    for kind in SCHEMA["oneOf"]:
        record = first[kind["title"]]
        VALIDATOR.validate({**record, "added_later": 1})
        assert len(kind["required"]) > 2
        for key in kind["required"]:
            lacking = {k: v for k, v in record.items() if k != key}
            assert not VALIDATOR.is_valid(lacking), key
            wrong = {**record, key: {"wrong": []}}
            assert not VALIDATOR.is_valid(wrong) or key in free, key


@pytest.mark.slow
def test_a_run_reads_back(tmp_path, records):
    path = tmp_path / "run.jsonl"
    sink = JsonLines(path)
    records = records[:3] + records[20:]
    for record in records:
        sink.write_record(record)
    sink.close()
    content = path.read_bytes()
    events = read_run(path)
    assert events == [event_of(json.loads(line)) for line in content.splitlines()]
    assert [event.type for event in events] == [record["type"] for record in records]
    first = content.index(b"\n")
    for cut in range(first, len(content) - 1, 7):  # torn anywhere after the start record
        path.write_bytes(content[:cut])
        whole = read_run(path)
        assert whole == events[: len(whole)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "does not begin with a start"),
        (b'{"type":"sta', "not a record"),
        (b"hello\n", "line 1 is not a record"),
        (b"[]\n", "line 1 is not a record"),
        (b'{"a":1}\n', "line 1 is not a record"),
        (b'{"type":"end"}\n', "does not begin"),
        (b'{"type":"start","schema":"1"}\n', "has no schema"),
        (b'{"type":"start","schema":2}\nnonsense\n', "line 2"),
        (b"\xff\xfe\x00\n", "line 1"),
        (b"[" * 50_000 + b"\n", "line 1"),
    ],
)
def test_foreign_files(tmp_path, content, words):
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=words) as caught:
        read_run(path)
    assert str(caught.value).startswith("run.jsonl")


def test_newer_and_missing_runs(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"type":"start","schema":3}\n')
    with pytest.raises(SchemaError, match="newer"):
        read_run(path)
    path.write_text('{"type":"start","schema":1}\n')
    with pytest.raises(SchemaError, match=r"another figure.*replay the recording again"):
        read_run(path)
    with pytest.raises(StoreError, match=r"cannot open no\.jsonl"):
        read_run(tmp_path / "no.jsonl")


START = '{"type":"start","schema":2}'


def written(tmp_path, *lines: str) -> Any:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bits", 1e30),
        ("bits", "3"),
        ("bits_low", [1.0]),
        ("seconds", None),
        ("speech", -1.0),
        ("seconds", 1 << 64),
        ("ceiling", 1e12),
        ("stream", True),
        ("guides", [1, 2]),
        ("features", {"f0": 3}),
        ("features", {"f0": {"local_bits": "x"}}),
        ("top", [["ann"]]),
        ("top", [["ann", "x"]]),
        ("enrolled", 7),
        ("evidence_bits", "11"),
        ("at_least", 1),
        ("among", {"people": 50}),
        ("among", [{"people": 1, "bits": 0.0}]),
        ("among", [{"people": 50, "bits": 1e30}]),
        ("among", [{"people": 50, "bits": 1.0, "favourite": ["ann", None]}]),
    ],
)
def test_a_figure_that_was_never_measured_is_refused(tmp_path, records, field, value):
    path = written(tmp_path, json.dumps(records[0]), json.dumps({**records[20], field: value}))
    with pytest.raises(
        StoreError, match=r"^run.jsonl line 2: missing or invalid \S+ of this reading"
    ):
        read_run(path)


@pytest.mark.parametrize(
    "bad", ['"\\udcff"', "1e400", "NaN", "[" * 2000 + "]" * 2000, '"\\u0000', "9" * 5000, '"\x01"']
)
def test_what_is_no_json_is_refused(tmp_path, bad):
    path = written(tmp_path, START, f'{{"type":"reading","seconds":{bad}}}', "{}")
    with pytest.raises(StoreError, match=r"^run.jsonl line 2"):
        read_run(path)


@pytest.mark.parametrize("kind", ["reading", "gap", "change", "alert"])
def test_a_record_without_its_time_is_refused(tmp_path, kind):
    with pytest.raises(StoreError, match=f"missing or invalid seconds of this {kind}"):
        read_run(written(tmp_path, START, json.dumps({"type": kind})))


def test_records_of_a_later_version_are_left_out(tmp_path):
    later = {"type": "constructor", "seconds": "soon"}
    gap = json.dumps({"type": "gap", "seconds": 1.0})
    assert [event.type for event in read_run(written(tmp_path, START, json.dumps(later), gap))] == [
        "start",
        "gap",
    ]
