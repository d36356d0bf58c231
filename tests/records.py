"""Records of a run as JSON has them, and their events."""

import json
from os import PathLike
from pathlib import Path
from typing import Any

from monitor.events.declaration import Event
from monitor.events.schema import event_of, read_run


def event(record: Any) -> Any:
    """The event of a record, or of part of one; without a type it is a reading's."""
    if isinstance(record, Event):
        return record
    made = event_of({"type": "reading", **record})
    assert made is not None
    return made


def events(records: Any) -> list[Any]:
    """The events of such records."""
    return [event(record) for record in records]


def as_records(happened: Any) -> list[dict[str, Any]]:
    """What JSON has of events."""
    return [json.loads(json.dumps(each.record())) for each in happened]


def read_records(path: str | PathLike[str]) -> list[dict[str, Any]]:
    """The lines of a run, which can be read back."""
    read_run(path)
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
