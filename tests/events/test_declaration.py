"""Every event reads back from its own record."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import jsonschema
import orjson
import pytest

from monitor import Monitor, Population
from monitor.events.declaration import Event, record_of
from monitor.events.reading import DeclaredReading, OpenChange, ProtectedReading, Reading
from monitor.events.run import Alert, Change, GapEvent, LevelReached, NoticeEvent
from monitor.events.schema import EVENTS, SCHEMA, event_of
from monitor.maths.condition import Condition
from monitor.population import DEMO_SPEAKER, demo_frames
from monitor.sources import FramesFile
from monitor.types import Gap, Notice

VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
OCCURRENCES = [
    GapEvent.of(2.0, Gap("device lost", None)),
    NoticeEvent.of(2.0, Notice("channels differ", "they do", fields={"channels": [1, 2]})),
    Change(9.0, 7.0, ("f0",), 0.1, -0.2, back=True),
    Change(9.0, 7.0, ("f0", "channel"), 0.1, -0.2, action="split", label="ann"),
    Alert(4.0, 3.0, "bits>3 for 5 s", "bits", 3.0, "raised", 3.2, change=OpenChange(1.0, ("f0",))),
    LevelReached(4.0, 1.0, "protected", 3.0, None),
]


def reads_back(event: Event) -> None:
    record = orjson.loads(orjson.dumps(event.record()))
    VALIDATOR.validate(record)
    again = event_of(record)
    assert type(again) is type(event)
    assert orjson.dumps(again.record()) == orjson.dumps(event.record())


@pytest.mark.parametrize("event", OCCURRENCES, ids=lambda event: event.type)
def test_what_happens_reads_back(event):
    reads_back(event)


@pytest.mark.parametrize("watch", [None, DEMO_SPEAKER])
def test_readings_read_back(watch):
    monitor = Monitor(Population.reference(), watch=watch)
    for reading in islice(monitor.stream(FramesFile(demo_frames())), 20):
        reads_back(reading)
    reads_back(
        replace(
            reading,
            protected=ProtectedReading.of({"ignorant": reading}, reading.headline),
            conditions=Condition(8000.0, 20.0),
            change=OpenChange(1.0, ("f0",)),
            declared=DeclaredReading(3, 1.0, None, 0.5, 1.44, empty=False),
            enrolled_withheld=("f0 cannot tell", "voice can"),
            bystanders=(),
            differs=("clipping",),
        )
    )


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.type)
def test_every_key_but_limits_and_parts_is_explained(kind):
    silent = {key.name for key in record_of(kind).keys if not key.meaning}
    assert all(name.endswith(("_low", "_high")) for name in silent), silent
    assert kind is not Reading or "bits_low" in silent
