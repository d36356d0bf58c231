"""Where the sound is not that of the templates no view reads as comforting."""

from __future__ import annotations

import pytest

from monitor.events.phrases import bits_now
from monitor.phrases import CAVEAT
from monitor.plots.curve import heading, read_columns
from monitor.run.each import COLUMNS, RecordingOutcome
from monitor.tables import Readings
from tests.records import event, events

TELEPHONE = {
    "bandwidth_hz": 3600.0,
    "snr_db": 40.0,
    "reverberation_seconds": 0.15,
    "clipping": 0.0,
    "level_db": -25.0,
}
EVIDENCE = {"headline": "evidence", "among": [{"people": 1e6, "bits": -1.0}]}


@pytest.mark.parametrize("more", [{}, EVIDENCE])
@pytest.mark.parametrize("bits", [-1.0, 2.0])
def test_the_headline_has_the_caveat_beside_it(more, bits):
    reading = {"type": "reading", "seconds": 20.0, "speech": 15.0, "bits": bits, "ceiling": 5.64}
    reading |= {"closed_set_bits": bits, **more}
    apart = {**reading, "conditions": TELEPHONE, "differs": ["bandwidth_hz"]}
    start = {"type": "start", "watch": "ann", "speakers": 50, "ceiling": 5.64}
    assert CAVEAT in bits_now(event(apart))
    assert CAVEAT not in bits_now(event(reading))
    assert CAVEAT in heading(read_columns(events([start, apart])))
    assert CAVEAT not in heading(read_columns(events([start, reading])))


def test_tables_have_a_column_for_each_figure():
    reading = {"type": "reading", "seconds": 1.0, "conditions": TELEPHONE}
    table = Readings(events([{**reading, "differs": ["bandwidth_hz", "clipping"]}]))
    (row,) = table.rows()
    assert row["conditions.bandwidth_hz"] == 3600
    assert row["differs"] == "bandwidth_hz+clipping"
    names = {column.name for column in table.columns()}
    assert {"differs", *(f"conditions.{name}" for name in TELEPHONE)} <= names
    assert {"differs", *TELEPHONE} <= set(COLUMNS)
    assert RecordingOutcome(**TELEPHONE, differs="bandwidth_hz").bandwidth_hz == 3600  # type: ignore[arg-type]
