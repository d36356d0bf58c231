"""Losses and notices of a stream: where they stand, that each is told once, and to whom."""

import ast
import io
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from rich.console import Console

import monitor
from monitor import Monitor
from monitor.events.schema import SCHEMA
from monitor.plots.columns import read_columns
from monitor.plots.wording import caption
from monitor.run import Run
from monitor.sinks.buffer import RunBuffer
from monitor.sinks.progress import ReplayProgress
from monitor.sinks.summary import print_summary
from monitor.sources.base import Chain, cut_frames
from monitor.stream.stream import MOST_NOTICES, EventOrder
from monitor.types import NOTICE_KINDS, Frames, Gap, Notice
from tests.records import read_records
from tests.stream.streams import WATCHED, Listed, frames, fresh, hear, reference, resumed, simulated

NARROW = Notice("narrow", "only a telephone's band", fields={"bandwidth_hz": 3400.0})
QUIET = Notice("quiet", "hardly any sound", level="info")
AGAIN = Notice("quiet", "quiet again")
PLACES = ((730, NARROW), (810, QUIET), (1910, AGAIN))


def noticed(*cuts: int) -> list[Frames]:
    """Twenty seconds in which three things are noticed, and a loss where one of them is."""
    whole = replace(simulated(), notices=PLACES, gaps=((730, Gap("not finite", 0.01)),))
    return frames(whole, cuts)


def test_frames_take_their_notices_along_where_they_are_cut_and_chained():
    (whole,) = noticed()
    parts = list(cut_frames(whole, 0, 300))
    assert [each for part in parts for each in part.notices] == list(PLACES)
    assert [tick for tick, _ in parts[2].notices] == [730, 810]
    chained = Chain([Listed([whole]), Listed([whole])])
    runs = [run for run in chained if isinstance(run, Frames)]
    assert [tick for run in runs for tick, _ in run.notices][3:] == [2730, 2810, 3910]


def test_notices_without_end_are_not_kept_and_what_comes_not_again_is_not_counted():
    order = EventOrder()
    for tick in range(2 * MOST_NOTICES):
        order.add(tick, NARROW)
    assert len(list(order.pop_due(tick, last=True))) == MOST_NOTICES
    order = EventOrder()
    order.add(1, NARROW, again=False)
    order.add(2, Gap("not finite", 0.01))
    assert len(list(order.pop_due(2))) == 2
    assert order.count == 1


@pytest.mark.slow
def test_records_of_a_run_its_views_and_its_end_have_them(tmp_path, capsys):
    kept, shown = RunBuffer(), io.StringIO()
    view = ReplayProgress(20.0, Console(file=shown, force_terminal=False))
    path = tmp_path / "run.jsonl"
    with Run(Listed(noticed()), Monitor(reference()), sinks=[kept, view], log=path) as run:
        run.to_end()
    found = read_records(path)
    for record in found:
        jsonschema.validate(record, SCHEMA)
    first, *_ = told = [record for record in found if record["type"] == "notice"]
    assert first == {
        "type": "notice", "seconds": 7.3, "kind": "narrow", "text": str(NARROW),
        "recording": "listed", "level": "warning", "fields": {"bandwidth_hz": 3400.0},
    }  # fmt: skip
    assert found[-1]["notices"] == [f"listed: {record['text']}" for record in told]
    assert [each.kind for each in run.notices[-3:]] == ["narrow", "quiet", "quiet"]
    assert list(map(str, run.notices[:-3])) == found[0]["notices"]
    assert shown.getvalue().count("note at 0:07: only a telephone's band") == 1
    assert "Note: only a telephone's band" in caption(read_columns(kept.events))
    assert "(and 1 more)" in caption(read_columns(kept.events))
    print_summary(kept.events)
    assert "only a telephone's band" in capsys.readouterr().out


def test_python_users_have_them_from_the_monitor_and_from_the_log(caplog, capfd):
    heard = fresh(reference(), watch=WATCHED, template_seconds=45)
    known = [each.kind for each in heard.notices]
    assert "template length" in known
    caplog.set_level(logging.INFO, "monitor")
    for _ in heard.stream(Listed(noticed())):
        pass
    said = [each for each in caplog.records if each.name == "monitor"]
    assert [each.getMessage() for each in said] == list(map(str, heard.notices))
    assert [each.kind for each in heard.notices] == [*known, "narrow", "quiet", "quiet"]
    assert [each.levelname for each in said[-3:]] == ["WARNING", "INFO", "WARNING"]
    assert said[-3].notice.fields == {"bandwidth_hz": 3400.0}
    assert capfd.readouterr() == ("", "")
    heard.reset()
    assert [each.kind for each in heard.notices] == known
    caplog.clear()
    for frame in noticed(500, 900):
        heard.push(frame)
    heard.finish()
    assert [each.getMessage() for each in caplog.records] == list(map(str, heard.notices))


def test_a_recording_without_speech_is_noticed_when_it_is_over():
    heard = Monitor(reference())
    silence = Frames(np.zeros(300, bool), {})
    heard.push(silence)
    assert "no speech" not in [each.kind for each in heard.notices]
    heard.finish()
    assert heard.notices[-1] == Notice("no speech", "the stream: no speech in it")
    list((named := Monitor(reference())).stream(Listed([silence], ["a.wav"])))
    assert str(named.notices[-1]) == "a.wav: no speech in it"


@pytest.mark.slow
def test_nothing_is_printed_where_nobody_set_up_a_log():
    script = (
        "from monitor import Monitor, MonitorSettings, Population\n"
        "from monitor.population import demo_frames\n"
        "settings = MonitorSettings(template_seconds=45)\n"
        "m = Monitor(Population.reference(), ['f0'], settings=settings)\n"
        "list(m.stream(demo_frames())); assert m.notices\n"
    )
    for log, said in (("", ""), ("import logging; logging.basicConfig()\n", "WARNING:monitor:")):
        command = [sys.executable, "-c", log + script]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout == ""
        assert bool(done.stderr) == bool(said)
        assert said in done.stderr


@pytest.mark.slow
def test_every_kind_is_known():
    used = {
        call.args[0].value
        for path in Path(monitor.__file__).parent.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Notice"
        if call.args and isinstance(call.args[0], ast.Constant)
    }
    assert used <= set(NOTICE_KINDS)


@pytest.mark.parametrize("cuts", [(), (100, 729), (730,), tuple(range(7, 2000, 13))])
def test_a_notice_stands_between_the_same_readings_for_any_cutting(cuts):
    records = hear(noticed(*cuts))
    assert records == hear(noticed())
    place = [record["type"] for record in records].index("notice")
    assert [(record["type"], record["seconds"]) for record in records[place - 2 : place + 2]] == [
        *(("reading", 7.0), ("gap", 7.3), ("notice", 7.3), ("reading", 8.0))
    ]
    assert records[place]["text"] == NARROW.text


@pytest.mark.parametrize("after", [7, 8, 9, 10, 22])
def test_a_notice_is_not_repeated_after_a_stop(after):
    assert resumed(lambda: Monitor(reference()), noticed(500), after) == hear(noticed())
