"""The page that listens, in a real browser with real speech."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import soundfile

from monitor.serve.page import ListeningPage
from tests.serve.browsing import PATIENCE, RATE, Speaker, enrols, hearing, speaks
from tests.serve.conftest import TOKEN

DESKTOP, PHONE = (1280, 900), (390, 844)
TURNS = ((0.0, "one"), (6.0, "two"))


@pytest.fixture(scope="module")
def speaker(tmp_path_factory: pytest.TempPathFactory, chapters: Any) -> Speaker:
    return Speaker(tmp_path_factory.mktemp("microphone") / "microphone.wav")


@pytest.fixture(scope="module")
def chromium(speaker: Speaker, chapters: Any) -> Iterator[Any]:
    speaker.says(chapters[0][: 25 * RATE])
    with hearing(speaker) as found:
        yield found


def focused(tab: Any) -> str:
    return str(tab.evaluate("document.activeElement.id"))


def fits(tab: Any) -> bool:
    """Whether nothing stands out at the side, once the page has its style."""
    tab.wait_for_load_state("load")
    return bool(tab.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def sees_itself_through_an_anonymiser(tab: Any) -> None:
    """Both curves, and a WAV of what the anonymiser made."""
    from playwright.sync_api import expect

    tab.select_option("#anonymiser", "mcadams:random")
    expect(tab.locator("#protected-bits")).to_have_text(re.compile(r"\d"), timeout=PATIENCE)
    assert tab.is_visible("#protected")
    assert "mcadams:random" in tab.inner_text("#protected-title")
    tab.wait_for_selector("#save-back:not([disabled])", timeout=PATIENCE)
    with tab.expect_download() as saved:
        tab.click("#save-back")
    sound, rate = soundfile.read(saved.value.path())
    assert sound.size > rate / 2
    assert np.abs(sound).max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_somebody_enrols_speaks_and_is_alerted(settings, speaker, chromium, chapters, size):
    speaker.says(chapters[0][: 25 * RATE])
    with ListeningPage(settings, token=TOKEN) as page:
        context = chromium.new_context(viewport={"width": size[0], "height": size[1]})
        context.set_default_timeout(PATIENCE)
        tab = context.new_page()
        problems: list[str] = []
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.goto(f"{page.url}#{TOKEN.replace(' ', '%20')}", wait_until="commit")
        tab.wait_for_selector("#name")
        assert TOKEN not in tab.url
        assert fits(tab)
        enrols(tab, "Ann")
        assert focused(tab) == "enrolled-now"
        assert "10 s of speech" in tab.inner_text("#quality")
        speaker.says(chapters[1])
        speaks(tab, 1)
        assert focused(tab) in ("controls", "bits-threshold")
        assert tab.inner_text("#listening-state") == "Listening to Ann"
        assert "are off" in tab.inner_text("#raw")
        tab.wait_for_selector("#banners .banner", timeout=PATIENCE)
        tab.wait_for_function(
            "document.getElementById('banners').innerText.includes('bits>1')", timeout=PATIENCE
        )
        assert float(tab.inner_text("#bits")) > 1
        tab.wait_for_selector("#curve .scatterlayer .trace", timeout=PATIENCE)
        assert fits(tab)
        number, controls = (
            tab.locator(each).bounding_box()["y"] for each in ("#hero", "#controls")
        )
        assert (number < controls) == (size == PHONE)
        for seen in ("#listening-state", "#pause"):  # without scrolling
            box = tab.locator(seen).bounding_box()
            assert 0 <= box["y"] <= size[1] - box["height"]
        latenesses = json.loads(tab.get_attribute("#latency", "data-seconds"))
        assert min(latenesses) > 0
        tab.click("#pause")
        assert tab.get_attribute("#lamp", "data-state") == "off"
        assert "nothing is heard" in tab.inner_text("#listening-state")
        tab.click("#pause")
        tab.wait_for_selector("#lamp[data-state=on]", timeout=PATIENCE)
        if size == DESKTOP:
            sees_itself_through_an_anonymiser(tab)
    # the program has ended: nobody is told that it listens
    tab.wait_for_selector("#lamp:not([data-state=on])", timeout=PATIENCE)
    assert "Listening" not in tab.inner_text("#listening-state")
    assert problems == []
    context.close()


@pytest.mark.slow
def test_a_meeting_fits_on_a_phone(settings, chromium, chapters, tmp_path):
    meeting = np.concatenate([chapters[1][: 6 * RATE], chapters[0][-6 * RATE :]])
    soundfile.write(tmp_path / "meeting.wav", meeting, RATE, subtype="PCM_16")
    turns = (f"SPEAKER meeting 1 {at} 6.00 <NA> <NA> {who} <NA> <NA>\n" for at, who in TURNS)
    (tmp_path / "turns.rttm").write_text("".join(turns))
    with ListeningPage(settings, token=TOKEN) as page:
        tab = chromium.new_page(viewport={"width": PHONE[0], "height": PHONE[1]})
        tab.set_default_timeout(PATIENCE)
        with tab.expect_event("websocket", lambda each: each.wait_for_event("framereceived")):
            tab.goto(f"{page.url}#{TOKEN.replace(' ', '%20')}", wait_until="commit")
        tab.set_input_files("#recording", tmp_path / "meeting.wav")
        tab.set_input_files("#turns", tmp_path / "turns.rttm")
        tab.get_by_role("button", name="Measure").click()
        tab.wait_for_selector("#people-rows tr:nth-child(2)")
        assert fits(tab)
