"""The page that listens, in a real browser with real speech."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from monitor.serve.page import ListeningPage
from monitor.sinks.house import PageDevice
from monitor.sinks.mqtt import Broker
from monitor.sources.base import protection_tag
from tests.broker import PASSWORD, Follower, Mosquitto, broker, follower
from tests.serve.browsing import PATIENCE, enrols, fits, opened, speaks
from tests.serve.conftest import RATE, TOKEN, wav

__all__ = ["broker", "follower"]
pytestmark = pytest.mark.slow

DESKTOP, PHONE = (1280, 900), (390, 844)
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])


@pytest.fixture
def talk(chapters: Any, tmp_path: Path) -> Path:
    """Six seconds of a reader in a file."""
    return wav(tmp_path / "talk.wav", chapters[1][: 6 * RATE], subtype="PCM_16")


def sized(size: tuple[int, int]) -> dict[str, Any]:
    return {"viewport": {"width": size[0], "height": size[1]}}


def focused(tab: Any) -> str:
    return str(tab.evaluate("document.activeElement.id"))


def measures(tab: Any, recording: Path, turns: Path | None = None) -> None:
    """Measure a recording of somebody who is not known."""
    tab.set_input_files("#recording", recording)
    if turns is not None:
        tab.set_input_files("#turns", turns)
    tab.click("#other-sound summary")
    tab.get_by_role("button", name="Measure").click()


def sees_itself_through_an_anonymiser(tab: Any) -> None:
    """Both curves, and a WAV of what the anonymiser made."""
    from playwright.sync_api import expect

    tab.click("#menu-button")
    tab.select_option("#anonymiser", "mcadams:random")
    expect(tab.locator("#protected-bits")).to_have_text(re.compile(r"\d"), timeout=PATIENCE)
    assert tab.is_visible("#protected")
    assert "mcadams:random" in tab.inner_text("#protected-title")
    tab.wait_for_selector("#save-back:not([disabled])")
    with tab.expect_download() as saved:
        tab.click("#save-back")
    comment = soundfile.SoundFile(saved.value.path()).comment
    assert comment == protection_tag("anonymised", "mcadams:random")
    sound, rate = soundfile.read(saved.value.path())
    assert sound.size > rate / 2
    assert np.abs(sound).max() > 0.01


@SIZES
def test_somebody_enrols_speaks_and_is_alerted(served, speaker, chromium, chapters, size):
    speaker.says(chapters[0][: 25 * RATE])
    tab = opened(served, chromium, **sized(size))
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.wait_for_selector("#name")
    assert TOKEN not in tab.url
    assert fits(tab)
    enrols(tab, "Ann")
    assert focused(tab) == "enrolled-now"
    step = tab.locator("#steps [aria-current=step]")
    assert step.get_attribute("data-stage") == "enrolled-now"
    assert "10 s of speech" in tab.inner_text("#quality")
    speaker.says(chapters[1])
    speaks(tab, 1)
    assert focused(tab) in ("controls", "bits-threshold")
    assert tab.inner_text("#listening-state") == "Listening to Ann"
    assert "are off" in tab.inner_text("#raw")
    tab.wait_for_selector("#banners .banner:has-text('bits>1')")
    assert float(tab.inner_text("#bits")) > 1
    tab.wait_for_selector("#curve .scatterlayer .trace")
    assert fits(tab)
    number, controls = (tab.locator(each).bounding_box()["y"] for each in ("#hero", "#controls"))
    assert number < controls
    for seen in ("#listening-state", "#pause"):  # without scrolling
        box = tab.locator(seen).bounding_box()
        assert 0 <= box["y"] <= size[1] - box["height"]
    assert min(json.loads(tab.get_attribute("#latency", "data-seconds"))) > 0
    tab.click("#pause")
    assert tab.get_attribute("#lamp", "data-state") == "off"
    assert "Paused" in tab.inner_text("#listening-state")
    tab.click("#pause")
    tab.wait_for_selector("#lamp[data-state=on]")
    if size == DESKTOP:
        sees_itself_through_an_anonymiser(tab)
    served.close()  # the program has ended: nobody is told that it listens
    tab.wait_for_selector("#lamp:not([data-state=on])")
    assert "Listening" not in tab.inner_text("#listening-state")
    assert problems == []
    tab.close()


@SIZES
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_where_nobody_is_enrolled_there_is_one_thing_to_do(served, chromium, size, scheme):
    """By the tree that a screen reader is given, and by keyboard alone."""
    tab = opened(served, chromium, color_scheme=scheme, **sized(size))
    tab.wait_for_selector("#begin:not([disabled])")
    assert fits(tab)
    tree = tab.locator("#welcome").aria_snapshot()
    assert re.findall(r"- button \"(.*?)\"", tree) == ["Begin"]
    assert 'textbox "Your name or an alias"' in tree
    assert "monitor " not in tab.inner_text("#main")  # a browser has no command line
    step = tab.locator("#steps [aria-current=step]")
    assert step.get_attribute("data-stage") == "welcome"
    # the page is not half empty: what there is stands in the middle
    box = tab.locator("#welcome").bounding_box()
    assert abs(box["x"] + box["width"] / 2 - size[0] / 2) < 2
    assert re.search(r"heading \".+\" \[level=2\]", tree)
    tab.focus("#name")
    tab.keyboard.press("Tab")
    assert focused(tab) == "begin"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.parentElement.id") == "other-sound"
    tab.keyboard.press("Enter")
    tree = tab.locator("#welcome").aria_snapshot()
    assert re.findall(r"- button \"(.*?)\"", tree)[-1] == "Measure"
    assert 'combobox "Speaker"' in tree
    assert fits(tab)
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) > 380) == (scheme == "light")
    tab.close()


def test_an_alert_that_cannot_fire_cannot_be_set_where_nobody_is_known(served, chromium, talk):
    """The shipped readers are 50, and of 5.64 bits 5.3 can be reached; the slider stands on 6."""
    from playwright.sync_api import expect

    tab = opened(served, chromium)
    measures(tab, talk)
    expect(tab.locator("#listening-state")).to_have_text(re.compile("Measured"), timeout=PATIENCE)
    slider = tab.locator("#bits-threshold")
    assert (slider.get_attribute("max"), slider.input_value()) == ("5", "5")
    words = "5.0 bits: 1 person in 32 matches. No higher alert can fire"
    expect(tab.locator("#bits-threshold-text")).to_have_text(words)
    assert "not reached" not in tab.inner_text("#threshold")  # it is one of the readers
    spoken = tab.locator("#spoken-summary")
    expect(spoken).to_contain_text(f"{tab.inner_text('#bits')} of 5.6 bits")
    tab.click("#end")  # Back
    assert focused(tab) == "welcome"
    expect(spoken).to_have_text("")
    assert tab.title() == "Disclosure monitor"
    tab.close()


ASKED = """
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    window.asked = [];
    navigator.mediaDevices.getUserMedia = (wish) => {
      window.asked.push(wish.audio);
      return ask(wish);
    };
    const settings = MediaStreamTrack.prototype.getSettings;
    MediaStreamTrack.prototype.getSettings = function () {
      return { ...settings.call(this), voiceIsolation: true };  // as Safari and Chrome have it
    };
"""


def test_who_speaks_is_confirmed_before_the_microphone_is_opened(
    served, speaker, chromium, chapters
):
    from playwright.sync_api import expect

    speaker.says(chapters[0][: 25 * RATE])
    tab = opened(served, chromium, ASKED)
    enrols(tab, "Ann")
    tab.reload()
    ann = tab.get_by_role("button", name="Speak as Ann")
    questions: list[str] = []

    def answer(dialog: Any) -> None:
        questions.append(dialog.message)
        (dialog.accept if len(questions) > 1 else dialog.dismiss)()

    tab.on("dialog", answer)
    ann.click()
    assert tab.evaluate("window.asked") == []
    assert tab.is_visible("#welcome")
    tab.fill("#name", "Ann")  # enrolled already: said before anything is heard
    tab.click("#who button")
    expect(tab.locator("#welcome-problem")).to_contain_text("Ann is enrolled already")
    assert tab.evaluate("window.asked") == []
    ann.click()
    tab.wait_for_selector("#lamp[data-state=on]")
    question = "Are you Ann? The microphone starts, and your voice is measured as Ann's."
    assert questions == [question] * 2
    (wish,) = tab.evaluate("window.asked")
    raw = ("echoCancellation", "noiseSuppression", "autoGainControl", "voiceIsolation")
    assert [wish[each] for each in raw] == [False] * 4
    expect(tab.locator("#raw")).to_contain_text("still applies voice isolation")
    tab.wait_for_selector("body[data-ready=yes]")
    expect(tab.locator("#spoken-summary")).to_contain_text(re.compile("bits|figure"))
    assert not tab.is_visible("#forget")  # out of the way of a hasty click
    tab.focus("#menu-button")
    tab.keyboard.press("Enter")
    tab.keyboard.press("Escape")
    assert not tab.is_visible("#forget")
    tab.keyboard.press("Enter")
    tab.click("#forget")
    expect(tab.locator("#spoken-summary")).to_have_text("")
    tab.close()


def test_somebody_is_shown_in_the_house_only_as_long_as_they_agree(
    enrolled, speaker, chromium, chapters, broker: Mosquitto, follower: Follower
):
    def told(state: str, count: int) -> None:
        follower.wait_for("voice_page/alert", f'{{"state":"{state}","listening":{count}}}'.__eq__)

    house = PageDevice(Broker.parse(broker.url, password=PASSWORD))
    speaker.says(chapters[1])
    with ListeningPage(replace(enrolled[0], house=house), token=TOKEN) as page:
        tab = opened(page, chromium)
        tab.on("dialog", lambda dialog: dialog.accept())
        tab.get_by_role("button", name="Speak as Ann").click()
        tab.locator("#bits-threshold").fill("1")
        tab.wait_for_selector("#banners .banner:has-text('bits>1')")
        assert set(follower.of("voice_page/alert")) == {'{"state":"OFF","listening":0}'}
        tab.click("#menu-button")
        assert not tab.is_checked("#in-house")
        tab.check("#in-house")
        told("ON", 1)
        follower.messages.clear()
        tab.uncheck("#in-house")
        told("OFF", 0)
        tab.check("#in-house")
        told("ON", 1)
        follower.messages.clear()
        tab.click("#end")
        told("OFF", 0)
        tab.close()
    house.close()
