"""What a spreadsheet would take for a formula: escaped in every CSV, and read back as it was."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

import monitor
from monitor.corpus import find, read_speaker_attributes
from monitor.files import csv_text, plain_cell
from monitor.run.each import RecordingOutcome, SummaryFile, format_row
from monitor.tables import Column, write
from monitor.training.feature_extraction import HearingOrder, write_manifest
from tests.sounds import RATE, synthetic

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
        assert file.has("-talk.wav", "file:0")
        file.finish()
    assert summary.read_text().count("'-talk.wav") == 1


def test_a_manifest_names_the_same_people_and_files_again(tmp_path):
    order = HearingOrder(tmp_path, tmp_path / "-talk.wav", FORMULA, "+monday")
    soundfile.write(order.target, synthetic(1.0), RATE)
    write_manifest(tmp_path, [order], {"gender": {FORMULA: "-"}})
    assert "\n'=HYPER" not in (tmp_path / "manifest.csv").read_text()
    (recording,) = find(tmp_path)
    assert (recording.speaker, recording.session) == (FORMULA, "+monday")
    assert recording.path.name == "-talk.wav"
    assert read_speaker_attributes(tmp_path) == {"gender": {FORMULA: "-"}}


def test_every_table_is_written_in_one_place():
    package = Path(monitor.__file__).parent
    writers = [
        path
        for path in package.rglob("*.py")
        if re.search(r"csv\.(Dict)?[wW]riter", path.read_text())
    ]
    assert [path.name for path in writers] == ["files.py"]
