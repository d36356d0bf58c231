from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest

from monitor.errors import SchemaError, StoreError
from monitor.events.run import SCHEMA_VERSION
from monitor.events.schema import SCHEMA, event_of, read_run
from monitor.sinks.jsonl import JsonLines


def limits(name: str, value: float | None = 1.0) -> dict[str, float | None]:
    return {name: value, f"{name}_low": value, f"{name}_high": value}


START = {
    "type": "start",
    "schema": 2,
    "version": "0.1.0",
    "time": "2026-01-01T00:00:00+00:00",
    "features": ["f0"],
    "speakers": 50,
    "ceiling": 5.64,
    "watch": "4088",
    "headline": "closed-set",
    "assumes_enrolled": False,
    "step_seconds": 1.0,
    "template_seconds": 100.0,
    "similarity": {"f0": "log-likelihood"},
    "ties": "spread",
    "rank_model": "own",
    "rank_model_session": "cross",
    "rank_model_speakers": 47,
    "plateau": 3.1,
    "on_change": "note",
    "recordings": ["name.flac"],
    "fingerprint": {"population": "ab", "rank_model": "cd"},
    "notices": [],
}
READING: dict[str, Any] = {
    "type": "reading",
    "seconds": 12.0,
    "speech": 9.87,
    "stream": 1,
    **limits("bits", 2.1),
    "headline": "closed-set",
    **limits("closed_set_bits", 2.1),
    "sum_bits": 2.1,
    **limits("gain_bits"),
    "peak_bits": 2.3,
    **limits("expected_bits"),
    "ceiling": 5.64,
    "plateau": 3.1,
    "guides": {"linear": 3.2, "sqrt": 1.1},
    "session": "cross",
    "assumes_enrolled": False,
    "enrolled": 0.9,
    "beyond_grid": False,
    "features": {
        "f0": {
            "usable": 4.1,
            "rank": 3,
            **limits("expected_bits"),
            **limits("rank_bits", None),
            **limits("local_bits"),
            **limits("gain_bits"),
        }
    },
    "top": [["4088", 0.31], ["19", 0.12]],
}
GAP = {
    "type": "gap",
    "seconds": 12.0,
    "reason": "not finite",
    "lost_seconds": None,
    "recording": "name.flac",
    "detail": "",
}
CHANGE = {
    "type": "change",
    "seconds": 20.0,
    "since_seconds": 15.0,
    "features": ["f0"],
    "margin_before": 0.2,
    "margin_after": -0.1,
    "action": "reset",
}
ALERT = {
    "type": "alert",
    "seconds": 20.0,
    "speech": 16.1,
    "rule": "bits>3 for 5 s",
    "field": "bits",
    "threshold": 3.0,
    "level": "alert",
    "state": "raised",
    "value": 3.4,
}
END = {
    "type": "end",
    "time": "2026-01-01T00:01:00+00:00",
    "seconds": 30.0,
    "speech": 20.0,
    "readings": 30,
    "bits": 2.0,
    "peak_bits": 2.3,
    "gaps": 0,
    "changes": 0,
    "lost_seconds": 0.0,
    "alerts": 1,
    "warnings": 0,
    "undecided": [],
    "failures": ["webhook example.org: 1 of 1 alert not delivered: answered 500"],
    "stopped": None,
    "complete": True,
    "watch": None,
    "top": [],
}
RECORDS: list[dict[str, Any]] = [START, READING, GAP, CHANGE, ALERT, END]
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert SCHEMA_VERSION == 2


@pytest.mark.slow
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["type"])
def test_documented_records_are_valid_and_every_key_counts(record):
    VALIDATOR.validate(record)
    VALIDATOR.validate({**record, "added_later": 1})
    for key in record:
        lacking = {k: v for k, v in record.items() if k != key}
        assert not VALIDATOR.is_valid(lacking), key
        assert not VALIDATOR.is_valid({**record, key: {"wrong": []}}) or key in {
            "similarity",
            "fingerprint",
        }, key


def test_withheld_figures_are_null():
    record = copy.deepcopy(READING)
    record |= limits("bits", None)
    record["withheld"] = "the watched template is too short"
    VALIDATOR.validate(record)
    del record["features"]["f0"]["rank"]
    assert not VALIDATOR.is_valid(record)


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        (START, "headline", "rank"),
        (START, "schema", 1),
        (READING, "session", "both"),
        (READING, "top", [["a"]]),
        (ALERT, "state", "on"),
        (END, "readings", -1),
    ],
)
def test_wrong_values_are_invalid(record, key, value):
    assert not VALIDATOR.is_valid({**record, key: value})


@pytest.mark.slow
def test_a_run_reads_back(tmp_path):
    path = tmp_path / "run.jsonl"
    sink = JsonLines(path)
    for record in RECORDS:
        sink.write_record(record)
    sink.close()
    events = read_run(path)
    assert events == [event_of(record) for record in RECORDS]
    for event, record in zip(events, RECORDS, strict=True):
        assert {**event.record(), **record} == event.record()
    content = path.read_bytes()
    first = content.index(b"\n")
    for cut in range(first, len(content) - 1):  # torn anywhere after the start record
        path.write_bytes(content[:cut])
        whole = read_run(path)
        assert whole == events[: len(whole)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "does not begin with a start"),
        (b'{"type":"sta', "no record"),
        (b"hello\n", "line 1 is no record"),
        (b"[]\n", "line 1 is no record"),
        (b'{"a":1}\n', "line 1 is no record"),
        (b'{"type":"end"}\n', "does not begin"),
        (b'{"type":"start","schema":"1"}\n', "does not say its schema"),
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
def test_a_figure_that_was_never_measured_is_refused(tmp_path, field, value):
    path = written(tmp_path, json.dumps(START), json.dumps({**READING, field: value}))
    with pytest.raises(StoreError, match=r"^run.jsonl line 2: .* of this reading is missing or"):
        read_run(path)


@pytest.mark.parametrize(
    "bad",
    ['"\\udcff"', "1e400", "NaN", "[" * 2000 + "]" * 2000, '"\\u0000', "9" * 5000, '"\x01"'],
)
def test_what_is_no_json_is_refused(tmp_path, bad):
    path = written(tmp_path, json.dumps(START), f'{{"type":"reading","seconds":{bad}}}', "{}")
    with pytest.raises(StoreError, match=r"^run.jsonl line 2"):
        read_run(path)


@pytest.mark.parametrize("kind", ["reading", "gap", "change", "alert"])
def test_a_record_without_its_time_is_refused(tmp_path, kind):
    with pytest.raises(StoreError, match=f"seconds of this {kind} is missing"):
        read_run(written(tmp_path, json.dumps(START), json.dumps({"type": kind})))


def test_records_of_a_later_version_are_left_out(tmp_path):
    later = {"type": "constructor", "seconds": "soon"}
    path = written(tmp_path, json.dumps(START), json.dumps(later), json.dumps(READING))
    assert [event.type for event in read_run(path)] == ["start", "reading"]
