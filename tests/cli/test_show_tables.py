"""monitor show: a recorded run as a table, and what it refuses."""

from __future__ import annotations

import csv
import io

import pytest

pytest.importorskip("pyarrow.parquet", reason="needs the extra tables")
import pyarrow.parquet as pq


@pytest.fixture(scope="module")
def recorded(talk, population, tmp_path_factory):
    """A run of that talk, as `monitor replay --jsonl` leaves it."""
    from monitor import Monitor, Population, Run

    path = tmp_path_factory.mktemp("run") / "talk.jsonl"
    with Run(talk, Monitor(Population.load(population), watch="000003"), log=path) as run:
        run.to_end()
    return path


def test_a_row_a_reading_on_standard_output_and_in_files(run, recorded, tmp_path):
    done = run("show", recorded, "--csv")
    assert (done.code, done.err) == (0, "")
    lines = list(csv.DictReader(io.StringIO(done.out)))
    readings = [line for line in recorded.read_text().splitlines() if '"type":"reading"' in line]
    assert len(lines) == len(readings) > 10
    assert lines[-1]["watch"] == "000003"
    assert "f0.rank_bits_low" in lines[0]
    assert not any(name.startswith("posterior.") for name in lines[0])
    written = tmp_path / "a.csv"
    assert run("show", recorded, "-o", written).code == 0
    assert written.read_text() == done.out
    written.write_text("mine")
    assert "exists; use --replace" in run("show", recorded, "-o", written).complaint
    assert written.read_text() == "mine"
    assert run("show", recorded, "-o", written, "--replace").code == 0
    assert written.read_text() == done.out
    table = tmp_path / "a.parquet"
    two = run("show", recorded, recorded, "-o", table, "--posterior")
    assert f"{2 * len(lines)} readings written to" in two.err
    held = pq.read_table(table)
    assert held.num_rows == 2 * len(lines)
    assert any(name.startswith("posterior.") for name in held.column_names)


def test_what_makes_no_sense_is_refused_in_one_line(run, recorded, talk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given, words in (
        ([recorded, recorded], "several runs make a table"),
        ([recorded, "-o", "a.xlsx"], "let the name end in one of"),
        ([recorded, "-o", "a.parquet", "--csv"], "leave out --csv"),
        ([recorded, "-o", "no/a.csv"], "there is no folder no"),
        ([talk, "--csv"], "is no record"),
        (["no.jsonl", "--csv"], "no.jsonl"),
    ):
        done = run("show", *given)
        assert done.code in (1, 2)
        assert words in done.complaint
    copy = tmp_path / "run.csv"
    copy.write_bytes(recorded.read_bytes())
    assert "is read by this run" in run("show", copy, "-o", copy).complaint
    assert copy.read_bytes() == recorded.read_bytes()
    assert list(tmp_path.iterdir()) == [copy]
