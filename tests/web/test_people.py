"""The page of several people: a curve and a row each, live and recorded."""

from __future__ import annotations

import itertools
import math
from typing import Any

import orjson
import pytest

from monitor.web.hub import Hub, NumberedRecord, thinned
from monitor.web.page import Page, exposition
from tests.records import event

EVIL = "<img src=x onerror=alert(1)>"


def run(
    labels: list[str], seconds: int = 40, watched: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Records of people who speak a second each in turn."""
    start = {
        "type": "start", "schema": 2, "speakers": 50, "ceiling": math.log2(50), "watch": None,
        "headline": "closed-set", "recordings": ["meeting.wav"], "step_seconds": 1.0,
        "people": [{"label": label, "seconds": 9.0} for label in labels], "notices": [],
        **({"watched": list(watched)} if watched else {}),
    }  # fmt: skip
    found: list[dict[str, Any]] = [start]
    for second in range(1, seconds + 1):
        k = second % len(labels)
        for place, name in enumerate(watched or [None]):
            found.append(
                {"type": "reading", "seconds": float(second), "speech": second / len(labels),
                 "bits": 0.4 * k + place + second / 100, "ceiling": math.log2(50),
                 "headline": "closed-set", "features": {}, "label": labels[k],
                 **({} if name is None else {"watch": name})}
            )  # fmt: skip
    found.append(
        {"type": "alert", "seconds": 20.0, "speech": 9.0, "rule": "bits>1", "field": "bits",
         "threshold": 1.0, "level": "alert", "state": "raised", "value": 1.2, "label": labels[0]}
    )  # fmt: skip
    return found


def end(labels: list[str], **more: Any) -> dict[str, Any]:
    row = {"person": "ann", "probability": 0.9, "purity": 0.95, "watch": None, **more}
    return {"type": "end", "seconds": 40.0, "overlap_seconds": 2.5,
            "people": [{"label": label, **row} for label in labels]}  # fmt: skip


def test_the_newest_reading_of_everybody_is_kept_however_long_the_others_talk():
    data = orjson.dumps({})
    entries = [NumberedRecord(1, "reading", 1.0, data, b"{}", ("S0", ""))]
    entries += [
        NumberedRecord(k, "reading", float(k), data, b"{}", ("S1", "")) for k in range(2, 9000)
    ]
    kept = thinned(entries)
    assert kept[0].whose == ("S0", "")
    assert [entry.id for entry in kept] == sorted({entry.id for entry in kept})
    assert len(kept) < 4000


def test_metrics_are_of_each_person_and_nothing_is_forecast_of_all_together():
    hub = Hub(thresholds=[("bits", 3.0)])
    for record in run(["S0", "S1"], watched=("ann", "bob")):
        hub.write(event(record))
    text = exposition(hub).decode()
    for label, watch, bits in (("S0", "ann", 0.40), ("S1", "bob", 1.79)):
        assert f'monitor_disclosure_bits{{label="{label}",watch="{watch}"}} {bits:g}' in text
    assert 'monitor_alert_raised{rule="S0: bits>1"} 1.0' in text
    assert hub.state().forecast[0].seconds_left is None
    assert "bits{stream" not in text


@pytest.fixture
def tab(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    made = context.new_page()
    made.problems = []
    made.on("pageerror", lambda error: made.problems.append(str(error)))
    made.on("console", lambda said: made.problems.append(said.text))
    yield made
    context.close()


def cells(tab, row):
    return tab.locator("#people-rows tr").nth(row).locator("th, td").all_inner_texts()


def test_everybody_has_a_curve_and_a_row(tab):
    labels = [f"S{k}" for k in range(7)] + [EVIL]
    with Page() as page:
        for record in run(labels):
            page.write(event(record))
        tab.goto(page.url)
        tab.wait_for_selector("body[data-ready=yes]")
        assert tab.locator("#curves path.line").count() == 8
        assert tab.locator("#curves circle.alert").count() == 1
        assert cells(tab, 0)[0] == "S0"
        assert cells(tab, 0)[5] == "1, first at 0:20"
        assert cells(tab, 7)[0] == EVIL
        assert "S0: alert" in tab.inner_text("#people-log")
        names = tab.locator("#curves text.name")
        boxes = [names.nth(k).bounding_box() for k in range(names.count())]
        tops = sorted(box["y"] for box in boxes)
        assert len(tops) == 8
        assert all(b - a > 10 for a, b in itertools.pairwise(tops))
        page.write(event(end(labels)))
        tab.wait_for_selector("text=2.5 s of overlapping speech")
        assert cells(tab, 1)[1] == "ann, 90 %"
        assert cells(tab, 1)[6] == "95 %"
        assert tab.inner_text("#status") == "Ended"
    assert tab.problems == []


def test_a_page_that_waits_for_one_voice_becomes_the_page_of_several(tab):
    with Page() as page:
        tab.goto(page.url)
        for record in run(["S0", "S1"], watched=("ann", "bob")):
            page.write(event(record))
        tab.wait_for_selector("#curves path.line")
        assert tab.locator("#curves path.line").count() == 2
        assert "as bob" in cells(tab, 0)[4]
        page.write(event(end(["S0", "S1"], watch="ann")))
        tab.wait_for_selector("text=as ann")
        assert cells(tab, 0)[3] == "0.4"


def test_a_phone_shows_it_without_the_page_being_wider(browser):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    made = context.new_page()
    with Page(recorded=True) as page:
        for record in (*run(["S0", "S1"]), end(["S0", "S1"])):
            page.write(event(record))
        made.goto(page.url)
        made.wait_for_selector("body[data-ready=yes]")
        assert made.evaluate("document.documentElement.scrollWidth") <= 390
        assert made.inner_text("#status") == "Recorded"
    context.close()
