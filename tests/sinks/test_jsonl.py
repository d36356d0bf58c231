"""A log of JSON lines, and the readings that are kept in memory to draw a run."""

import io
import itertools
import json
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from monitor.errors import StoreError
from monitor.events.reading import Reading
from monitor.protocols import Sink
from monitor.sinks.buffer import RunBuffer
from monitor.sinks.jsonl import JsonLines, has_barely_begun
from tests.records import event

RECORD = {
    "type": "reading",
    "seconds": 12.0,
    "bits": 2.123456789,
    "top": [["4088", 1 / 3]],
    "features": {"f0": {"rank": 3, "rank_bits": None}},
}
LINE = (
    '{"type":"reading","seconds":12.0,"bits":2.123457,"top":[["4088",0.333333]],'
    '"features":{"f0":{"rank":3,"rank_bits":null}}}\n'
)


def test_one_compact_line_a_record(tmp_path):
    path = tmp_path / "run.jsonl"
    sink = JsonLines(path)
    assert isinstance(sink, Sink)
    sink.write_record(RECORD)
    assert path.read_text() == LINE  # seen at once, by whoever follows the file
    sink.write_record({"type": "end", "watch": "Zoë"})
    sink.flush()
    assert sink.offset == path.stat().st_size
    sink.close()
    assert path.read_text(encoding="utf-8") == LINE + '{"type":"end","watch":"Zoë"}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_numpy_numbers_are_numbers_and_what_is_not_finite_is_never_written(tmp_path):
    for figure in (float("nan"), float("inf"), np.float32("nan")):
        sink = JsonLines(tmp_path / "a")
        with pytest.raises(ValueError, match="JSON compliant"):
            sink.write_record({"bits": figure})
        with pytest.raises(TypeError, match="cannot hold"):
            sink.write_record({"bits": object()})
        sink.close()
    assert not (tmp_path / "a").exists()
    record = {"a": np.float64(1.23456789), "b": np.float32(0.1), "c": np.int64(3),
              "d": np.bool_(True), "e": np.array([1.5, 1e-9]), "f": (1, 2)}  # fmt: skip
    sink = JsonLines(tmp_path / "a")
    sink.write_record(record)
    sink.close()
    found = {"a": 1.234568, "b": 0.1, "c": 3, "d": True, "e": [1.5, 0.0], "f": [1, 2]}
    assert json.loads((tmp_path / "a").read_text()) == found


def test_append_cuts_and_goes_on_and_nothing_changes_before_the_first_record(tmp_path):
    path, new = tmp_path / "run.jsonl", tmp_path / "new.jsonl"
    path.write_text('{"n":1}\n{"n":2}\n{"n": to')
    before = path.read_text()
    JsonLines(path).close()
    JsonLines(new).close()
    again = JsonLines(path)
    again.go_on_at(8)
    again.close()
    assert path.read_text() == before
    assert not new.exists()
    again = JsonLines(path)
    again.go_on_at(8)
    assert again.offset == 8
    again.write_record({"n": 22})
    again.close()
    assert path.read_text() == '{"n":1}\n{"n":22}\n'
    for offset in (99, -1):
        with pytest.raises(StoreError, match="17 bytes"):
            JsonLines(path).go_on_at(offset)
    assert path.read_text() == '{"n":1}\n{"n":22}\n'
    again = JsonLines(path)
    again.begin()
    again.close()
    assert path.read_bytes() == b""


WRITER = """
import sys, time
from monitor.sinks.jsonl import JsonLines

sink = JsonLines(sys.argv[1])
sink.write_record({"n": 1})
print("written", flush=True)
time.sleep(600)
"""


def test_one_writer_at_a_time(tmp_path):
    path = tmp_path / "run.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "written\n"
        (tmp_path / "link.jsonl").hardlink_to(path)
        for name in (path, tmp_path / "link.jsonl"):
            with pytest.raises(StoreError, match="is in use by another run") as caught:
                JsonLines(name)
            assert "\n" not in str(caught.value)
        process.kill()
    assert path.read_text() == '{"n":1}\n'
    (tmp_path / "link.jsonl").unlink()
    sink = JsonLines(path)  # the lock has gone with its process
    assert sink.locked
    sink.close()


def test_what_cannot_be_written_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("no/run.jsonl", "."):
        with pytest.raises(StoreError, match=f"^cannot write {name}[ ,]") as caught:
            JsonLines(name)
        assert "\n" not in str(caught.value)
    sink = JsonLines("/dev/full")
    with pytest.raises(StoreError, match=r"^cannot write /dev/full \(No space left"):
        sink.write_record(RECORD)
    assert sink.offset == 0
    sink.close()


def test_a_torn_line_is_taken_back(tmp_path):
    path = tmp_path / "run.jsonl"
    sink = JsonLines(path)
    sink.write_record({"n": 1})

    class Filling(io.FileIO):
        room = 5

        def write(self, data):
            if not self.room:
                raise OSError(28, "No space left on device")
            self.room -= len(data[:5])
            return super().write(data[:5])

    file = Filling(path, "r+")
    file.seek(0, os.SEEK_END)
    sink.close()
    sink._file = file
    with pytest.raises(StoreError, match="No space left"):
        sink.write_record({"n": 2})
    sink.close()
    assert path.read_text() == '{"n":1}\n'


def test_a_closed_pipe_is_left_to_the_caller_and_standard_output_stays_open(tmp_path, monkeypatch):
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer))
    sink = JsonLines("-")
    sink.write_record(RECORD)
    sink.flush()
    sink.close()
    assert buffer.getvalue().decode() == LINE
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    sink = JsonLines(path)
    sink.write_record(RECORD)
    sink.flush()
    assert os.read(reader, 1000).decode() == LINE
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        sink.write_record(RECORD)
    sink.close()


def readings(kept: RunBuffer, label: str | None = None) -> list[float]:
    found = [each for each in kept.events if isinstance(each, Reading)]
    return [each.seconds for each in found if each.label == label]


def test_a_long_run_keeps_its_shape_and_its_last_reading():
    kept = RunBuffer()
    kept.write(event({"type": "start"}))
    for second in range(1, 36_001):
        kept.write(event({"type": "reading", "seconds": float(second)}))
        if second in (601, 1000, 2999):
            assert readings(kept)[-1] == second
        kept.write(event({"type": "gap", "seconds": float(second)}))
    kept.write(event({"type": "end"}))
    kinds = [each.type for each in kept.events]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert kinds.count("gap") == kept.MOST_OTHERS
    seconds = readings(kept)
    assert seconds[:600] == [float(second) for second in range(1, 601)]
    assert seconds[-1] == 36_000
    # beside the gaps that are kept stands the reading before them
    assert len(seconds) < 2500
    assert max(b / a for a, b in itertools.pairwise(seconds[600:])) < 1.006


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, True),
        ("", True),
        ('{"ty', True),
        ('{"type":"start","schema":2,"feat', True),
        ('{"type":"start"}\n{"type":"change"}\n{"type":"reading"}\n{"type":"rea', True),
        ('{"type":"start"}\n{"type":"reading"}\n{"type":"reading"}\n', False),
        ('{"type":"start"}\n{"type":"reading"}\n{"type":"end"}\n', False),
        ("What I did today\n", False),
        ('{"type":"start"}\n' + '{"type":"gap"}\n' * 100_000, False),
    ],
)
def test_a_run_has_barely_begun_until_its_second_reading(tmp_path, content, expected):
    path = tmp_path / "run.jsonl"
    if content is not None:
        path.write_text(content)
    assert has_barely_begun(path) is expected
