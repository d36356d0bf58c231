"""monitor show: a recorded run as a page, a picture and a table; --web of a replay."""

import csv
import io
import json
import os
import re
import signal
import socket
import subprocess
import time
from functools import partial
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from matplotlib.image import imread

from monitor.events.schema import RECORDS
from tests.web import records


@pytest.fixture
def recorded(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(map(json.dumps, records.run(30))) + "\n")
    return path


def without_nulls(value: Any) -> Any:
    """A record without what an older run lacks: keys without a figure, empty lists."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part not in (None, [])}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


get = partial(httpx.get, timeout=60.0)

SECRET = "correct horse battery"


@pytest.mark.slow
@pytest.mark.parametrize("token", [None, SECRET])
def test_a_recorded_run_is_served_until_it_is_interrupted(command, recorded, token):
    environment = {**os.environ, **({} if token is None else {"MONITOR_WEB_TOKEN": token})}
    process = subprocess.Popen(
        [*command, "show", str(recorded), "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    url = process.stdout.readline().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    found = get(url + "readings", headers=headers).json()
    shown = [without_nulls(each["record"]) for each in found["records"]]
    assert shown == [without_nulls(record) for record in records.run(30)]
    if token is not None:
        assert get(url + "readings").status_code == 401
    with httpx.stream("GET", url + "events", headers=headers, timeout=60.0) as stream:
        assert next(stream.iter_text()).startswith("retry")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


def readings(url: str) -> int:
    return int(re.findall(r"^monitor_readings_total\S* (\d+)", get(url + "metrics").text, re.M)[0])


@pytest.mark.slow
def test_a_long_run_is_served_while_it_is_read_in_little_memory(command, tmp_path):
    start, reading, *_ = records.run(30)
    long = tmp_path / "long.jsonl"
    many = [[f"speaker {i}", 0.001] for i in range(400)]
    with long.open("w") as file:
        file.write(json.dumps(start) + "\n")
        for second in range(1, 10_000):
            file.write(json.dumps({**reading, "seconds": second, "top": many}) + "\n")
    assert long.stat().st_size > 80e6
    with subprocess.Popen(
        [*command, "show", str(long), "--no-browser"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            url = process.stdout.readline().strip()
            seen = readings(url)
            while readings(url) < 9_999:
                time.sleep(1)
            assert seen > 0
            assert psutil.Process(process.pid).memory_info().rss < 300e6
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()


@pytest.mark.slow
def test_a_replay_is_followed_while_it_runs(command, talk, population, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path / "talk.jsonl"
    process = subprocess.Popen(
        [
            *command, "replay", str(talk), "-p", str(population), "--watch", "000003",
            "--speed", "20", "--web", str(port), "--jsonl", str(log), "--alert", "bits>3.5",
        ],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}/"
    while True:
        try:
            if get(url + "healthz").status_code == 200:
                break
        except httpx.ConnectError:
            assert process.poll() is None
            time.sleep(0.05)
    with httpx.stream("GET", url + "events", timeout=60.0) as stream:
        text = "".join(stream.iter_text())
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"the page is at {url}" in err
    shown = [json.loads(line[6:]) for line in text.splitlines() if line.startswith('data: {"type"')]
    written = [json.loads(line) for line in log.read_text().splitlines()]
    assert [r["type"] for r in shown] == [r["type"] for r in written]
    readings = [[r["bits"] for r in each if r["type"] == "reading"] for each in (shown, written)]
    assert readings[0] == pytest.approx(readings[1], abs=1e-6)


@pytest.mark.slow
def test_a_picture_is_what_replay_draws(run, wav, tmp_path):
    path = tmp_path / "talk.jsonl"
    assert run("replay", wav, "--jsonl", path).code == 0
    result = run("show", path, "-o", tmp_path / "a.png")
    assert (result.code, result.out, result.err) == (0, "", "")
    run("replay", wav, "--plot", tmp_path / "b.png")
    # the file's figures are rounded: a shade, and now and then the edge of a line
    difference = np.abs(imread(tmp_path / "a.png") - imread(tmp_path / "b.png")).max(axis=2)
    assert np.count_nonzero(difference > 0.02) < 10
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:5]) + lines[5][:40])  # a run that was broken off
    assert run("show", path, "-o", tmp_path / "a.svg").code == 0


def test_what_every_key_means_is_printed(run):
    result = run("show", "--keys")
    assert result.code == 0
    shown = set(result.out.split())
    assert {f"{record.title}:" for record in RECORDS} <= shown
    assert {key.name for record in RECORDS for key in record.keys if key.meaning} <= shown


def test_a_row_a_reading_on_standard_output_and_in_files(run, talk, population, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="needs the extra tables")
    log = tmp_path / "talk.jsonl"
    run("replay", talk, "-p", population, "-w", "000003", "--jsonl", log)
    done = run("show", log, "--csv")
    assert (done.code, done.err) == (0, "")
    lines = list(csv.DictReader(io.StringIO(done.out)))
    made = [line for line in log.read_text().splitlines() if '"type":"reading"' in line]
    assert len(lines) == len(made) > 10
    assert lines[-1]["watch"] == "000003"
    assert "f0.rank_bits_low" in lines[0]
    assert not any(name.startswith("posterior.") for name in lines[0])
    written = tmp_path / "a.csv"
    assert run("show", log, "-o", written).code == 0
    assert written.read_text() == done.out
    written.write_text("mine")
    assert "exists; use --replace" in run("show", log, "-o", written).complaint
    assert written.read_text() == "mine"
    table = tmp_path / "a.parquet"
    two = run("show", log, log, "-o", table, {"posterior": True})
    assert f"{2 * len(lines)} readings written to" in two.err
    held = pq.read_table(table)
    assert held.num_rows == 2 * len(lines)
    assert any(name.startswith("posterior.") for name in held.column_names)
