"""The page that listens, in a real browser, when something goes wrong: it says so, and goes on."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs the extra all-tests")

from playwright.sync_api import expect

from monitor.serve.page import MOST_SESSIONS, ListeningPage
from tests.serve.browsing import PATIENCE, enrols, fits, opened, speaks
from tests.serve.conftest import RATE, TOKEN, told
from tests.waiting import until

pytestmark = pytest.mark.slow

WATCHED = """
    window.tracks = [], window.streams = [], window.plugged = true, window.asked = 0;
    window.allowed = Promise.resolve();
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (wish) => {
      window.asked += 1;
      await window.allowed;
      if (!window.plugged) throw new DOMException("none", "NotFoundError");
      const stream = await ask(wish);
      window.tracks.push(...stream.getTracks());
      return stream;
    };
    const Source = window.EventSource;
    window.EventSource = class extends Source {
      constructor(address) {
        super(address);
        window.streams.push(this);
      }
    };
"""
UNPLUG = """
    window.plugged = false;
    window.tracks.forEach((each) => (each.stop(), each.dispatchEvent(new Event("ended"))));
"""
TWICE = """(id) => {
    const button = document.querySelector(id);
    button.click();
    setTimeout(() => button.checkVisibility() && button.click(), 100);
}"""


@pytest.fixture
def talking(speaker: Any, chapters: Any) -> None:
    """Somebody who reads aloud, from the next time that the microphone is opened."""
    speaker.says(chapters[0][: 40 * RATE])


@contextmanager
def cut_off(page: ListeningPage) -> Iterator[None]:
    """No connection lasts, and none is let in."""
    connections = page.connections
    most, connections.most = connections.most, 0
    until(lambda: [each.loop.call_soon_threadsafe(each.transport.abort)
                   for each in list(connections._all)] == [])  # fmt: skip
    yield
    connections.most = most


def begins(tab: Any, name: str = "Ann") -> None:
    """Read aloud, and be heard."""
    tab.fill("#name", name)
    tab.click("#begin")
    expect(tab.locator("#advice")).to_have_text(re.compile("^Good"), timeout=PATIENCE)


def reads(tab: Any, place: str, words: str) -> None:
    expect(tab.locator(place)).to_have_text(re.compile(words), timeout=PATIENCE)


# --- Two clicks, and a browser that asks.


@pytest.mark.parametrize("how", ["clicks", "enter", "asked"])
def test_two_clicks_do_what_one_does(served, chromium, talking, how):
    tab = opened(served, chromium, WATCHED)
    tab.fill("#name", "Ann")
    if how == "asked":
        tab.evaluate("() => { window.allowed = new Promise((go) => { window.allow = go; }); }")
    if how == "enter":
        tab.focus("#name")
        tab.keyboard.press("Enter")
        tab.keyboard.press("Enter")
    else:
        tab.evaluate(TWICE, "#begin")
    if how == "asked":
        reads(tab, "#welcome-problem", "Allow the microphone")
        tab.evaluate(TWICE, "#begin")
        tab.evaluate("window.allow()")
    tab.wait_for_selector("#enrolled-now:not([hidden])", timeout=PATIENCE)
    assert tab.evaluate("window.asked") == 1
    tab.evaluate(TWICE, "#speak")
    tab.wait_for_selector("body[data-ready=yes]", timeout=PATIENCE)
    assert tab.get_attribute("#lamp", "data-state") == "on"
    assert tab.inner_text("#controls-problem") == ""
    assert tab.evaluate("window.asked") == 2
    tab.evaluate(TWICE, "#pause")  # paused, then on again
    until(lambda: tab.evaluate("window.asked") == 3)
    tab.click("#end")
    reads(tab, "#end", "Back")
    tab.close()


def test_who_refuses_the_microphone_is_told_where_they_look(served, chromium, talking):
    tab = opened(served, chromium, WATCHED)
    enrols(tab, "Ann")
    tab.evaluate("window.plugged = false")
    tab.click("#speak")
    reads(tab, "#enrolled-now-problem", "There is no microphone")
    assert tab.is_visible("#enrolled-now-problem")
    tab.close()


@pytest.mark.parametrize(("name", "words"), [("a/b", "A name has letters"), ("84", "already")])
def test_a_refused_name_is_refused_before_the_microphone_opens(served, chromium, name, words):
    tab = opened(served, chromium, WATCHED)
    tab.fill("#name", name)
    tab.click("#begin")
    reads(tab, "#welcome-problem", words)
    assert tab.evaluate("window.asked") == 0
    tab.close()


# --- Something is lost while somebody enrols.


def test_an_unplugged_microphone_is_told_and_waited_for(served, chromium, talking):
    tab = opened(served, chromium, WATCHED)
    begins(tab)
    tab.evaluate(UNPLUG)
    reads(tab, "#advice", "microphone is gone.*Start again")
    tab.click("#again")  # there is none
    reads(tab, "#reading-problem", "no microphone")
    assert tab.inner_text("#advice") == ""
    tab.evaluate("window.plugged = true")
    tab.click("#again")
    reads(tab, "#advice", "^Good")
    tab.evaluate(UNPLUG)
    reads(tab, "#advice", "microphone is gone")
    tab.evaluate("window.plugged = true")
    tab.wait_for_selector("#enrolled-now:not([hidden])", timeout=PATIENCE)
    assert re.search(r"\d s .*lost", tab.inner_text("#quality-notes"))
    tab.close()


def test_a_cut_network_is_told_and_the_enrolment_goes_on(served, chromium, talking):
    tab = opened(served, chromium, WATCHED)
    begins(tab)
    with cut_off(served):
        reads(tab, "#advice", "does not answer.*Start again")
    tab.wait_for_selector("#enrolled-now:not([hidden])", timeout=PATIENCE)
    tab.close()


def test_a_lost_session_is_told_and_another_is_offered(served, chromium, talking, monkeypatch):
    monkeypatch.setattr("monitor.serve.page.AWAY_SECONDS", 0.2)
    tab = opened(served, chromium, WATCHED)
    begins(tab)
    with cut_off(served):
        until(lambda: len(served.sessions) == 0)
    reads(tab, "#reading-problem", "lost for too long")
    assert tab.inner_text("#advice") == ""
    tab.click("#again")
    tab.wait_for_selector("#enrolled-now:not([hidden])", timeout=PATIENCE)
    tab.close()


def test_who_has_logged_out_elsewhere_is_told(served, chromium, talking):
    tab = opened(served, chromium, WATCHED)
    begins(tab)
    tab.evaluate("fetch('/logout', { method: 'POST' })")
    reads(tab, "#reading-problem", "logged out")
    tab.click("#again")
    reads(tab, "#reading-problem", "log in again")
    assert tab.inner_text("#advice") == ""
    tab.close()


# --- The program is not there, or has no room.


def test_a_program_that_is_gone_is_told_and_the_run_can_be_ended(served, chromium, talking):
    tab = opened(served, chromium, WATCHED)
    enrols(tab, "Ann")
    speaks(tab, 6)
    with cut_off(served):
        reads(tab, "#listening-state", "trying again")
        tab.click("#end")
        reads(tab, "#listening-state", "Not listening")
        reads(tab, "#status", "Ended")
        tab.click("#pause")  # speak again
        reads(tab, "#controls-problem", "does not answer")
        served.close()
    with ListeningPage(served.sessions._settings, port=served.port, token=TOKEN):
        reads(tab, "#controls-problem", "log in again")
        tab.click("#end")  # back
        tab.fill("#name", "Bob")
        tab.click("#begin")
        reads(tab, "#welcome-problem", "log in again")
    assert tab.evaluate("window.asked") == 2
    assert tab.evaluate("window.streams.every((each) => each.readyState === 2)")
    tab.close()


def test_the_ninth_page_is_told_that_there_is_no_room(served, chromium, line, talking):
    held = [line() for _ in range(MOST_SESSIONS)]
    for each in held:
        told(each, "ready")
    tab = chromium.new_page()
    tab.add_init_script(WATCHED)
    tab.goto(f"{served.url}#{TOKEN.replace(' ', '%20')}")
    reads(tab, "#welcome-problem", "Too many people")
    tab.fill("#name", "Ann")
    tab.click("#begin")
    reads(tab, "#welcome-problem", "Too many people")
    assert tab.evaluate("window.asked") == 0
    held[0].close()
    until(lambda: served.sessions.attached < MOST_SESSIONS)
    tab.click("#begin")
    reads(tab, "#advice", "^Good")
    tab.close()


# --- Two pages, and a page that comes back.


def test_of_two_that_enrol_one_name_the_first_is_kept(served, chromium, talking):
    folder = served.sessions._settings.templates.folder
    tabs = [opened(served, chromium, WATCHED) for _ in range(2)]
    for tab in tabs:
        tab.fill("#name", "Ann")
        tab.click("#begin")
    until(lambda: any(tab.is_visible("#enrolled-now") for tab in tabs), PATIENCE / 1000)
    kept = (folder / "Ann.npz").read_bytes()
    first, second = sorted(tabs, key=lambda tab: not tab.is_visible("#enrolled-now"))
    reads(second, "#reading-problem", "Ann is enrolled already")
    assert first.is_visible("#enrolled-now")
    assert (folder / "Ann.npz").read_bytes() == kept
    for tab in tabs:
        tab.close()


def test_after_a_reload_nothing_is_left_to_end(served, chromium, talking):
    said: list[str] = []
    context = chromium.new_context(viewport={"width": 320, "height": 700})
    context.on("console", lambda message: said.append(message.text))
    context.on("dialog", lambda dialog: dialog.accept())
    tab = opened(served, context, WATCHED)
    tab.wait_for_selector("#begin:not([disabled])")
    assert not [each for each in said if "401" in each]  # on the way through the door
    assert fits(tab)
    enrols(tab, "Ann")
    assert fits(tab)
    speaks(tab, 6)
    tab.click("#detail")
    assert fits(tab)
    tab.reload()
    tab.get_by_role("button", name="Forget Ann").click()
    expect(tab.locator("#known")).to_be_hidden(timeout=PATIENCE)
    assert tab.inner_text("#welcome-problem") == ""
    until(lambda: len(served.sessions) == 1)
    context.close()


def test_a_lost_run_leaves_no_second_stream(served, chromium, talking, monkeypatch):
    monkeypatch.setattr("monitor.serve.page.AWAY_SECONDS", 0.2)
    tab = opened(served, chromium, WATCHED)
    enrols(tab, "Ann")
    speaks(tab, 6)
    with cut_off(served):
        until(lambda: len(served.sessions) == 0)
    reads(tab, "#controls-problem", "lost for too long")
    tab.click("#pause")  # speak again
    reads(tab, "#status", "Live")
    time.sleep(3)  # a stream that was lost would be opened again in 2 s
    open_now = "window.streams.filter((each) => each.readyState !== 2).length"
    assert tab.evaluate(open_now) == 1
    tab.close()


def test_before_the_first_reading_the_threshold_is_the_slider_s(enrolled, speaker, chromium):
    import numpy as np

    speaker.says(np.zeros(RATE, np.int16))
    with ListeningPage(enrolled[0], token=TOKEN) as page:
        tab = opened(page, chromium, WATCHED)
        tab.on("dialog", lambda dialog: dialog.accept())
        tab.wait_for_function(
            "() => document.querySelector('#threshold-value').textContent !== '–'"
        )
        tab.evaluate("""() => {
            const place = document.querySelector("#threshold");
            window.seen = [place.textContent];
            new MutationObserver(() => window.seen.push(place.textContent))
              .observe(place, { subtree: true, childList: true });
        }""")
        tab.get_by_role("button", name="Speak as Ann").click()
        tab.wait_for_selector("body[data-ready=yes]", timeout=PATIENCE)
        seen = tab.evaluate("window.seen")
        assert any("6.0 bits" in each for each in seen)
        assert not any("--alert" in each for each in seen)
        assert "Lag" not in tab.text_content("#numbers")
        tab.close()
