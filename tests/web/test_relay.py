"""What goes out, on the page: what is left, the switch and the overlay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace

import httpx
import pytest

from monitor.web.page import Page
from tests.web import records
from tests.web.conftest import SECRET
from tests.web.records import give

OVERLAY = "a token for the overlay"


@pytest.fixture
def relay() -> SimpleNamespace:
    bits = {"budget_bits": 8.0, "left_bits": 5.5, "sent_bits": 2.5, "kept_bits": 1.5}
    bits["held_bits"] = 0.0
    return SimpleNamespace(way="clear", muted=False, **bits)


@pytest.fixture
def page(relay) -> Iterator[Page]:
    with Page(token=SECRET, relay=relay, overlay_token=OVERLAY) as made:
        give(made, records.start(), records.reading(1.0, 2.5))
        yield made


def test_who_has_the_token_sees_what_is_left_and_mutes(page, relay):
    address, bearer = page.url + "relay", {"authorization": f"Bearer {SECRET}"}
    assert httpx.get(address).status_code == 401
    assert httpx.get(address, headers=bearer).json() == vars(relay)
    ours = {**bearer, "origin": page.url.rstrip("/")}
    assert httpx.post(address, params={"muted": "yes"}, headers=ours).json()["muted"]
    assert relay.muted
    httpx.post(address, params={"muted": "no"}, headers=ours)
    assert not relay.muted


@pytest.mark.parametrize("origin", [{}, {"origin": "http://elsewhere.example"}])
def test_no_other_page_may_mute(page, relay, origin):
    headers = {"authorization": f"Bearer {SECRET}", **origin}
    assert httpx.post(page.url + "relay", headers=headers).status_code == 403
    assert not relay.muted


def test_the_overlay_has_a_token_of_its_own_and_one_number(page):
    for path in ("overlay", "overlay/bits"):
        for wrong in ({}, {"token": SECRET}):
            assert httpx.get(page.url + path, params=wrong).status_code == 401
        assert httpx.get(page.url + path, params={"token": OVERLAY}).status_code == 200
    number = httpx.get(page.url + "overlay/bits", params={"token": OVERLAY})
    assert number.json() == {"bits": 2.5, "state": "calm", "words": "2.5 bits"}
    assert httpx.get(page.url + "readings", params={"token": OVERLAY}).status_code == 401


ENDED = [records.reading(1.0, 2.5), records.end(2)]
CHANGED = {"since_seconds": 27.0, "features": ["f0"]}
WARNING = {**records.alert(1), "level": "warning"}
CAPPED = {**records.reading(3.0), **records.evidence(14.2, at_least=True)}


@pytest.mark.parametrize(
    ("made", "state", "words"),
    [
        ([], "waiting", "Waiting"),
        ([records.reading(1.0, None)], "waiting", "No figure yet"),
        ([records.reading(1.0, 2.5), WARNING], "calm", "2.5 bits"),
        ([records.reading(1.0, 3.5), records.alert(1)], "alert", "3.5 bits, alert"),
        ([CAPPED], "calm", "At least 14.2 bits"),
        ([records.reading(1.0, 2.5, enrolled=0.05)], "doubt", "Probably not enrolled"),
        ([records.reading(32, 4.0, change=CHANGED)], "doubt", "Another voice since 0:27"),
        (ENDED, "ended", "2.5 bits, ended"),
    ],
)
def test_the_overlay_shows_the_state_of_its_number(made, state, words):
    with Page(overlay_token=OVERLAY) as page:
        give(page, records.start(), *made)
        shown = httpx.get(page.url + "overlay/bits", params={"token": OVERLAY}).json()
        assert (shown["state"], shown["words"]) == (state, words)


def test_without_either_there_is_neither():
    with Page() as plain:
        for path in ("relay", "overlay", "overlay/bits"):
            assert httpx.get(plain.url + path).status_code == 404


def share_of(tab, part: str) -> float:
    """The width of a part of the budget's bar."""
    script = f"""() => {{
        const part = document.querySelector("#relay-bar .{part}");
        const width = (element) => element.getBoundingClientRect().width;
        return part && width(part) / width(part.parentElement);
    }}"""
    return float(tab.wait_for_function(script).json_value())


def test_a_spent_budget_is_told_once_and_never_as_exceeded(browser, relay):
    with Page(relay=relay) as shown:
        spent = {"type": "alert", "seconds": 6.0, "field": "bits", "threshold": 8.0,
                 "state": "raised", "value": 5.4, "speech": None}  # fmt: skip
        rules = [{"rule": "budget of 8 bits spent", "field": "bits", "threshold": 8.0}]
        ways = ("mcadams:random", "muted")
        closed = [{**spent, "rule": f"{rules[0]['rule']}: {way}", "way": way} for way in ways]
        relay.way, relay.left_bits, relay.sent_bits, relay.held_bits = "muted", 0.0, 5.4, 7.3
        give(shown, records.start(alerts=rules), records.reading(6.0, 1.6), *closed)
        tab = browser.new_page()
        tab.goto(shown.url)
        tab.wait_for_selector("#relay[data-way=muted]")
        tab.wait_for_selector("#banners .danger")
        (banner,) = tab.locator("#banners .danger").all_text_contents()
        assert "5.4" in banner
        whole = " ".join(tab.inner_text(part) for part in ("#banners", "#threshold", "#relay"))
        assert all(bits in tab.inner_text("#relay-left") for bits in ("5.4", "1.5", "7.3"))
        assert not re.search(r"More than|[Ee]xceeded|0\.0 of 8", whole)
        # it never opens again, so that nothing is offered, and the bar is not an empty budget
        assert "for this session" in tab.inner_text("#relay-way")
        assert "next word" in tab.inner_text("#relay-way")
        assert "8 bits" in tab.inner_text("#relay-way")
        assert not tab.is_visible("#relay-switch")
        tab.keyboard.press("m")
        assert not relay.muted
        assert share_of(tab, "held") == pytest.approx(1 - 5.4 / 8, abs=0.02)
        tab.close()


def test_in_a_browser_a_key_mutes(browser, relay):
    with Page(relay=relay, overlay_token=OVERLAY) as shown:
        give(shown, records.start(), records.reading(1.0, 2.5))
        tab = browser.new_page()
        problems = []
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.goto(shown.url)
        tab.wait_for_selector("#relay:not([hidden])")
        left = tab.inner_text("#relay-left")
        assert "2.5 of 8" in left
        assert "1.5" in left
        assert share_of(tab, "sent") == pytest.approx(2.5 / 8, abs=0.02)
        assert share_of(tab, "kept") == pytest.approx(1.5 / 8, abs=0.02)
        tab.keyboard.press("m")
        tab.wait_for_selector("#relay-switch[aria-pressed=false]")
        assert relay.muted
        relay.way = "muted"
        tab.wait_for_selector("#relay[data-way=muted]")
        tab.click("#relay-switch")
        relay.way = "clear"
        tab.wait_for_selector("#relay-switch[aria-pressed=true]")
        assert not relay.muted
        tab.goto(f"{shown.url}overlay?token={OVERLAY}")
        relay.way = "muted"
        tab.wait_for_selector("body[data-state=muted]")
        assert tab.inner_text("body").strip() == "Muted"
        relay.way = "clear"
        tab.wait_for_selector("body[data-state=calm]")
        assert re.fullmatch(r"2\.5 bits", tab.inner_text("body").strip())
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"
        assert problems == []
        tab.close()
