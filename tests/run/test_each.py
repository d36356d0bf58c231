"""Many recordings, a run each: which they are, their lines, and what a summary refuses."""

import csv
import json
import os
import random
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from monitor import Monitor, Run
from monitor.alerts import Threshold
from monitor.errors import StoreError, UsageError
from monitor.run.each import (
    COLUMNS,
    RecordingOutcome,
    SummaryFile,
    escape_path,
    find_recordings,
    format_row,
    process_each,
    process_one,
    split_by_summary,
)
from tests.sounds import RATE, synthetic
from tests.stream.streams import reference


def opened(path: Path) -> Run:
    rules = [Threshold("bits", 0.1, hold_seconds=1.0)]
    return Run(path, Monitor(reference(), ["f0"]), rules=rules)


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    folder = tmp_path / "talks"
    for name, seconds in (("a10.wav", 5.0), ("a9.wav", 4.0), ("sub/b.wav", 4.0)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / name, synthetic(seconds), RATE)
    (folder / "sub" / "bad.wav").write_bytes(b"no audio")
    (folder / "notes.txt").write_text("not heard")
    return folder


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_folders_and_files_are_each_recording_once_in_natural_order(talks):
    found = find_recordings([str(talks / "a10.wav"), str(talks)])
    names = [path.relative_to(talks).as_posix() for path in found]
    assert names == ["a9.wav", "a10.wav", "sub/b.wav", "sub/bad.wav"]
    with pytest.raises(UsageError, match="does not exist"):
        find_recordings([str(talks), str(talks / "no.wav")])
    (talks / "empty").mkdir()
    with pytest.raises(UsageError, match="no recording in"):
        find_recordings([str(talks / "empty")])


def test_a_line_says_what_the_run_said(talks):
    with opened(talks / "a10.wav") as run:
        records = [event.record() for event in run]
    last = [record for record in records if record["type"] == "reading"][-1]
    first = next(record for record in records if record["type"] == "alert")
    outcome = process_one(talks / "a10.wav", opened)
    for key in ("seconds", "speech", "bits", "bits_low", "bits_high", "peak_bits"):
        assert getattr(outcome, key) == last[key], key
    assert outcome.first_alert_seconds == first["seconds"]
    assert (outcome.alerts, outcome.gaps, outcome.exit_status, outcome.error) == (1, 0, 3, "")


def test_silence_is_incomplete_and_what_has_failed_is_a_line_too(talks):
    def breaks(path: Path) -> Run:
        raise ZeroDivisionError("once\nin a lifetime")

    soundfile.write(talks / "still.wav", 0 * synthetic(3.0), RATE)
    still = process_one(talks / "still.wav", opened)
    assert (still.exit_status, still.speech, still.error) == (4, 0.0, "")
    bad = process_one(talks / "sub" / "bad.wav", opened)
    assert (bad.exit_status, bad.bits) == (1, None)
    assert "bad.wav is not a readable recording" in bad.error
    unforeseen = process_one(talks / "a9.wav", breaks)
    assert unforeseen.exit_status == 1
    assert unforeseen.error == "unexpected ZeroDivisionError: once in a lifetime"


def test_the_summary_is_in_order_private_and_gone_on_with(talks, tmp_path):
    path, found = tmp_path / "out.csv", find_recordings([str(talks)])
    with SummaryFile(path, "same") as summary:
        rows = process_each(found, opened, summary)
        assert next(rows).path == found[0]
        rows.close()  # interrupted
    with path.open("ab") as file:
        file.write(b"a line that a kill cut o")
    with SummaryFile(path, "same", resume=True) as summary:
        there, left = split_by_summary(found, summary)
        assert [row.path for row in there] == found[:1]
        assert [row.path for row in process_each(left, opened, summary)] == left == found[1:]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [line["recording"] for line in lines(path)] == [escape_path(each) for each in found]
    whole = path.read_bytes()
    soundfile.write(found[1], synthetic(6.0), RATE)  # another recording of that name
    with SummaryFile(path, "same", resume=True) as summary:
        _, left = split_by_summary(found, summary)
        assert left == [found[1]]
        assert len(list(process_each(left, opened, summary))) == 1
    assert len(lines(path)) == 4
    assert lines(path)[1]["seconds"] == "6"
    assert path.read_bytes() != whole


def test_what_a_summary_may_not_be_written_over_is_untouched(tmp_path):
    path = tmp_path / "out.csv"
    outcome = RecordingOutcome(bits=1.25, at_least=False, exit_status=0)
    with SummaryFile(path, "one") as summary:
        summary.append(format_row("a.wav", outcome, "file:0", "one"))
    before = path.read_bytes()
    with pytest.raises(UsageError, match="with --resume"):
        SummaryFile(path, "one")
    with pytest.raises(UsageError, match="was made with other options"):
        SummaryFile(path, "two", resume=True)
    with SummaryFile(path, "one", resume=True) as first:
        assert first.rows["a.wav"]["bits"] == "1.25"
        with pytest.raises(StoreError, match="another run is writing"):
            SummaryFile(path, "one", resume=True)
    assert path.read_bytes() == before
    for text in (
        *(b"dear diary", b"dear diary\n", b"a,b\n1,2\n", b"\xff\xfe\n"),
        before.replace(b",1.25,", b",much,"),
        before.replace(b",0,0,0,0,", b",0,0,0,,"),
    ):
        path.write_bytes(text)
        with pytest.raises(UsageError, match="is not a summary"):
            SummaryFile(path, "one", resume=True)
        assert path.read_bytes() == text
    with SummaryFile(path, "one", replace=True):
        assert path.read_text() == ",".join(COLUMNS) + "\n"


@pytest.mark.slow
def test_a_summary_as_parquet_is_typed_and_gone_on_with(talks, tmp_path):
    table, text = tmp_path / "out.parquet", tmp_path / "out.csv"
    found, journal = find_recordings([str(talks)]), tmp_path / "out.parquet.unfinished.csv"
    with SummaryFile(table, "same") as summary:
        rows = process_each(found, opened, summary)
        next(rows)
        rows.close()  # interrupted
    assert not table.exists()
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="with --resume"):
        SummaryFile(table, "same")
    with SummaryFile(table, "same", resume=True) as summary:
        there, left = split_by_summary(found, summary)
        assert [row.path for row in there] == found[:1]
        assert [row.path for row in process_each(left, opened, summary)] == left == found[1:]
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["out.parquet"]
    assert stat.S_IMODE(table.stat().st_mode) == 0o600
    with SummaryFile(text, "same") as summary:
        list(process_each(found, opened, summary))
    held = pq.read_table(table).to_pylist()
    for typed, line in zip(held, lines(text), strict=True):
        assert {k: "" if v is None else v for k, v in typed.items()} == {
            name: cell if cell == "" or isinstance(typed[name], str) else json.loads(cell)
            for name, cell in line.items()
        }
    assert isinstance(held[0]["bits"], float)
    assert [type(row["alerts"]) for row in held] == 4 * [int]
    # a finished one takes further recordings, and keeps those that were heard
    soundfile.write(talks / "b0.wav", synthetic(3.0), RATE)
    with SummaryFile(table, "same", resume=True) as summary:
        _, left = split_by_summary(find_recordings([str(talks)]), summary)
        assert [path.name for path in left] == ["b0.wav"]
        list(process_each(left, opened, summary))
    assert pq.read_table(table).num_rows == 5
    assert [row for row in pq.read_table(table).to_pylist() if "b0" not in row["recording"]] == held


def test_a_parquet_that_is_no_summary_is_untouched(tmp_path):
    path = tmp_path / "out.parquet"
    for content in (b"dear diary", None):
        if content is None:
            pq.write_table(pa.table({"a": [1.0]}), path)
        else:
            path.write_bytes(content)
        before = path.read_bytes()
        with pytest.raises(UsageError, match="is not empty"):
            SummaryFile(path, "one")
        with pytest.raises(UsageError, match="is not a summary"):
            SummaryFile(path, "one", resume=True)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
    with SummaryFile(path, "one", replace=True) as summary:
        assert path.read_bytes() == before  # until the new one is whole
        summary.finish()
    assert pq.read_table(path).column_names == list(COLUMNS)
    with SummaryFile(path, "one", resume=True) as summary:
        summary.append(format_row("a.wav", RecordingOutcome(), "file:0", "one"))
        summary.finish()
    with pytest.raises(UsageError, match="was made with other options"):
        SummaryFile(path, "two", resume=True)


def test_what_another_run_holds_stays(tmp_path):
    table = tmp_path / "out.parquet"
    with SummaryFile(table, "one"):
        before = sorted(tmp_path.iterdir())
        assert before == [tmp_path / "out.parquet.unfinished.csv"]
        for how in ({"resume": True}, {"replace": True}, {}):
            with pytest.raises(StoreError, match="another run is writing"):
                SummaryFile(table, "one", **how)
        assert sorted(tmp_path.iterdir()) == before
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(UsageError, match=r"pipe.csv is not a"):
        SummaryFile(tmp_path / "pipe.csv", "one")
    assert (tmp_path / "pipe.csv").is_fifo()


@pytest.mark.slow
def test_a_damaged_parquet_is_refused_or_read(tmp_path):
    path = tmp_path / "out.parquet"
    with SummaryFile(path, "one") as summary:
        for name in ("a.wav", "b.wav"):
            row = format_row(name, RecordingOutcome(bits=1.5, error=name), f"file:{name}", "one")
            summary.append(row)
        summary.finish()
    whole, draw = path.read_bytes(), random.Random(0)
    read = refused = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 8)):
            damaged[draw.randrange(len(whole))] = draw.randrange(256)
        path.write_bytes(damaged[: draw.choice([len(whole), draw.randrange(len(whole))])])
        try:
            with SummaryFile(path, "one", resume=True) as summary:
                read += len(summary.rows) > 0
        except UsageError:
            refused += 1
        for journal in tmp_path.glob("*.csv"):
            journal.unlink()
    assert read > 0
    assert refused > 0
    assert [each.name for each in tmp_path.iterdir()] == ["out.parquet"]


def test_a_recording_with_a_strange_name_is_known_again(tmp_path):
    strange = tmp_path / 'a,"b\nc.wav'
    soundfile.write(os.fspath(strange), synthetic(3.0), RATE)
    path = tmp_path / "out.csv"
    for known in (0, 1):
        with SummaryFile(path, "same", resume=True) as summary:
            there, left = split_by_summary([strange], summary)
            assert (len(there), len(left)) == (known, 1 - known)
            list(process_each(left, opened, summary))
    (line,) = lines(path)
    assert line["recording"].endswith('a,"b\\nc.wav')
