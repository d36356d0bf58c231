"""Readings as tables: every figure in a column of its type, and no cell a formula."""

import csv
import io
import re
import stat
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from monitor import Monitor, MonitorSettings, Population, Readings, Run
from monitor.corpus import find
from monitor.corpus.tables import read_speaker_attributes
from monitor.errors import MonitorError, UsageError
from monitor.files import csv_text, plain_cell
from monitor.population import demo_frames
from monitor.run.each import RecordingOutcome, SummaryFile, format_row
from monitor.tables import Column, read_parquet, write
from monitor.training.frames_folder import ExtractionTask, write_manifest
from tests.records import events
from tests.sounds import RATE, synthetic

WATCH = "4406"
SPARSE = (
    "change.", "conditions.", "differs", "enrolled_w", "excluded_", "lag", "spread_", "stretches_",
    "withheld",
)  # fmt: skip
"""Columns of keys that a run without audio, and without a change of speaker, leaves empty."""


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "talk.jsonl"
    monitor = Monitor(
        Population.reference(),
        ["f0", "phones"],
        WATCH,
        step_seconds=60,
        settings=MonitorSettings(among=[50, 12_500, 1e6], bystanders=0.01),
    )
    with Run(demo_frames(), monitor, log=path) as run:
        run.to_end()
    return path


def test_every_figure_of_a_record_has_a_column_and_no_column_is_made_up(run_file):
    readings = Readings.read(run_file)
    names = {column.name for column in readings.columns(posterior=True)}
    for row in readings.rows():
        assert set(row) <= names
    shown = {name for row in readings.rows() for name in row}
    sparse = {n for n in names if n.startswith(SPARSE)}
    of_nobody_watched = {n for n in names if n.startswith("among.") and ".favourite" in n}
    assert names - shown <= sparse | of_nobody_watched
    plain = {column.name for column in readings.columns()}
    assert {n.partition(".")[0] for n in names - plain} == {"posterior", "among"}
    assert not any(n.rpartition(".")[2] == "favourite" for n in plain)


def test_cells_are_the_figures_of_the_record(run_file):
    readings = Readings.read(run_file)
    frame = readings.to_pandas(posterior=True)
    for i, reading in enumerate(readings):
        row = frame.iloc[i]
        assert row["run"] == run_file.as_posix()
        assert row["watch"] == WATCH
        assert row["bits_low"] == reading.bits_low
        assert row["guides.sqrt"] == reading.guides.sqrt
        assert row["phones.rank"] == reading.features["phones"].rank
        assert row["among.12500.bits_high"] == (reading.among or ())[1].bits_high
        best, probability = reading.top[0]
        assert row[f"posterior.{best}"] == probability
        named = {name for name, _ in reading.top}
        rest = [c for c in frame if c.startswith("posterior.") and c[10:] not in named]
        assert row[rest].isna().all()
    assert frame["bits"].dtype == "float64"
    assert frame["stream"].dtype == "Int64"
    assert frame["at_least"].dtype == "boolean"
    assert frame.attrs["units"]["f0.usable"] == "s"
    assert "f0.rank" not in frame.attrs["units"]


@pytest.mark.filterwarnings("ignore:Mismatched null-like")  # pandas 2
def test_csv_parquet_and_the_data_frame_hold_the_same(run_file, tmp_path):
    readings = Readings.read(run_file, run_file)
    frame = readings.to_pandas()
    assert len(frame) == 2 * len(Readings.read(run_file))
    for name in ("a.csv", "a.parquet"):
        path = tmp_path / name
        readings.write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    held = pd.read_parquet(tmp_path / "a.parquet")
    text = pd.read_csv(tmp_path / "a.csv", dtype={"watch": str})
    assert list(held) == list(text) == list(frame)
    pd.testing.assert_frame_equal(held, frame, check_dtype=False)
    for column in readings.columns():
        if column.kind == "number":
            pd.testing.assert_series_equal(text[column.name].astype(float), frame[column.name])
    field = pq.read_schema(tmp_path / "a.parquet").field("evidence_bits_low")
    assert field.metadata[b"unit"] == b"bits"
    assert field.metadata[b"meaning"].startswith(b"log2 of P(voice given the watched speaker)")
    with pytest.raises(UsageError, match=r"\.csv or \.parquet"):
        readings.write(tmp_path / "a.xlsx")


def test_what_is_withheld_of_an_older_version_or_nowhere_is_an_empty_cell(tmp_path):
    old = {"type": "reading", "seconds": 1.0, "speech": 0.5, "bits": None, "at_least": None}
    changed = {"since_seconds": 0.5, "features": ["f0", "voice"]}
    lacks = {"among": [{"bits": 1.0}], "bystanders": [{"probability": 0.5}], "protected": {}}
    readings = Readings(events([old, {**old, "bits": 1.5, "change": changed}, {**old, **lacks}]))
    frame = readings.to_pandas()
    assert frame["bits"].isna().tolist() == [True, False, True]
    assert frame["bits"][1] == 1.5
    assert frame["at_least"].isna().all()
    assert frame["change.features"][1] == "f0+voice"
    # what lacks its name has no column
    assert not any(name.startswith(("among", "bystander")) for name in frame)
    readings.write(tmp_path / "a.csv")
    first = next(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert (first["bits"], first["at_least"], first["seconds"]) == ("", "", "1.0")
    none = Readings(events([{"type": "start"}, {"type": "end"}]))
    assert none.to_pandas().shape[0] == len(none) == 0
    assert "bits" in none.to_pandas()


def test_the_protected_side_is_in_the_table():
    side = {"speech": 1.5, "bits": 2.0, "by": "lazy-informed", "attackers": {
        "ignorant": {"bits": 0.5, "at_least": False}, "lazy-informed": {"bits": 2.0}}}  # fmt: skip
    readings = Readings(
        events([{"type": "reading", "bits": 4.0}, {"type": "reading", "protected": side}])
    )
    frame = readings.to_pandas()
    assert frame["protected.bits"].isna().tolist() == [True, False]
    last = frame.iloc[-1]
    assert (last["protected.speech"], last["protected.by"]) == (1.5, "lazy-informed")
    assert (last["protected.ignorant.bits"], last["protected.lazy-informed.bits"]) == (0.5, 2.0)
    assert frame.attrs["units"]["protected.lazy-informed.evidence_bits_low"] == "bits"
    assert not any(c.name.startswith("protected") for c in readings[:1].columns())


def test_whom_a_reading_names_is_in_the_table_where_that_is_asked_for():
    reading = {
        "type": "reading",
        "top": [["ann", 0.5]],
        "bystanders": [{"name": "bob", "probability": 0.25, "people": 50}],
        "among": [{"people": 50, "favourite": ["ann", 0.125], "favourite_one_in": 8.0}],
    }
    readings = Readings(events([reading]))
    assert not any("ann" in c.name or "bob" in c.name for c in readings.columns())
    (row,) = readings.to_pandas(posterior=True).to_dict("records")
    assert (row["posterior.ann"], row["bystander.bob"]) == (0.5, 0.25)
    assert (row["among.50.favourite"], row["among.50.favourite_probability"]) == ("ann", 0.125)


def test_without_the_extra_one_line_says_what_to_install(run_file, monkeypatch):
    readings = Readings.read(run_file)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MonitorError, match=r"needs pandas: pip install '.*\[tables\]'$"):
        readings.to_pandas()


FORMULA = '=HYPERLINK("http://evil.example";"ann")'
STARTS = "=+-@\t\r\n＝＋－＠"


@given(st.lists(st.text(st.sampled_from("'ab1.e" + STARTS)), min_size=1))
def test_a_text_begins_no_formula_and_comes_back(texts):
    ((cells), *_) = csv.reader(io.StringIO(csv_text(texts, []), newline=""))
    for text, cell in zip(texts, cells, strict=True):
        assert plain_cell(cell) == text
        if cell and cell[0] in STARTS:
            assert re.fullmatch(r"[+-][0-9.e+-]+", cell)
            float(cell)


@pytest.mark.parametrize("number", [-1.5, "-1.5", "-0.25e-3", "+2", "-inf", -3, np.float64(-0.5)])
def test_numbers_stay_numbers(number):
    assert csv_text(["a"], [[number]]) == f"a\n{number}\n"


def test_tables_and_summaries_escape_texts(tmp_path):
    table = tmp_path / "a.csv"
    write(
        table, [Column("watch", "text"), Column("bits", "number")], [{"watch": "@me", "bits": -1.5}]
    )
    assert table.read_text() == "watch,bits\n'@me,-1.5\n"
    summary, outcome = tmp_path / "out.csv", RecordingOutcome(bits=-0.5, exit_status=0)
    with SummaryFile(summary, "same") as file:
        file.append(format_row("-talk.wav", outcome, "file:0", "same"))
        file.finish()
    (row,) = csv.DictReader(summary.read_text().splitlines())
    assert (row["recording"], row["bits"]) == ("'-talk.wav", "-0.5")
    with SummaryFile(summary, "same", resume=True) as file:
        assert file.rows["-talk.wav"]["fingerprint"] == "file:0"
        file.finish()
    assert summary.read_text().count("'-talk.wav") == 1


def test_a_manifest_names_the_same_people_and_files_again(tmp_path):
    order = ExtractionTask(tmp_path, tmp_path / "-talk.wav", FORMULA, "+monday")
    soundfile.write(order.target, synthetic(1.0), RATE)
    write_manifest(tmp_path, [order], {"gender": {FORMULA: "-"}})
    assert "\n'=HYPER" not in (tmp_path / "manifest.csv").read_text()
    (recording,) = find(tmp_path)
    assert (recording.speaker, recording.session) == (FORMULA, "+monday")
    assert recording.path.name == "-talk.wav"
    assert read_speaker_attributes(tmp_path) == {"gender": {FORMULA: "-"}}


def test_a_table_that_another_program_wrote_is_read_again(tmp_path):
    columns = [
        Column("name", "text"), Column("count", "integer"), Column("bits", "number"),
    ]  # fmt: skip
    rows = [{"name": "ann", "count": 1, "bits": 0.5}, {"name": None, "count": None, "bits": 2.0}]
    path = tmp_path / "a.parquet"
    plain = pa.table({"name": ["ann", None], "count": [1.0, None], "bits": [0.5, 2.0]})
    text = pa.array(["ann", None])
    for names in (text, text.cast(pa.string_view()), text.dictionary_encode(), text.cast("binary")):
        pq.write_table(plain.set_column(0, "name", names), path)
        assert read_parquet(path, columns) == rows
    for wrong in (plain.set_column(1, "count", pa.array([0.5, 1.0])), plain.select(["name"])):
        pq.write_table(wrong, path)
        with pytest.raises(ValueError, match="columns"):
            read_parquet(path, columns)
