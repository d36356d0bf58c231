"""The page in a real browser."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import monitor
from monitor.alerts.rules import Forecast
from monitor.anonymisers.laplace import Declared
from monitor.events.declaration import to_json
from monitor.events.reading import DeclaredReading
from monitor.phrases import CAVEAT, odds, verdict
from monitor.web.page import Page
from tests.records import event
from tests.web import records

SECRET = "correct horse battery"
DESKTOP, PHONE = (1280, 900), (390, 844)
WATCHED = """
    window.refused = [];
    addEventListener("securitypolicyviolation",
        (e) => window.refused.push([e.effectiveDirective, e.sourceFile || e.blockedURI]));
"""


@pytest.fixture
def page() -> Iterator[Page]:
    with Page() as made:
        yield made


@pytest.fixture
def visit(browser) -> Iterator[Callable[..., Any]]:
    """Opens an address; ``problems`` of what it gives are what went wrong there."""
    contexts = []

    def visit(url: str, size: tuple[int, int] = DESKTOP, ready: bool = True, **more: Any) -> Any:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **more)
        contexts.append(context)
        tab = context.new_page()
        tab.problems, tab.asked, tab.said = [], [], []
        tab.on("pageerror", lambda error: tab.problems.append(str(error)))
        tab.on("console", lambda said: tab.said.append(said.text))
        tab.on("request", lambda request: tab.asked.append(request.url))
        tab.add_init_script(WATCHED)
        tab.goto(url)
        if ready:
            tab.wait_for_selector("body[data-ready=yes]")
        return tab

    yield visit
    for context in contexts:
        context.close()


def give(page: Page, *made: dict[str, Any]) -> None:
    for record in made:
        page.write(event(record))


def text(tab: Any, selector: str) -> str:
    return re.sub(r"\s+", " ", tab.inner_text(selector)).strip()


def reads(tab: Any, selector: str, words: str) -> None:
    """Wait until an element says something."""
    tab.wait_for_function(
        "([s, w]) => document.querySelector(s).innerText.replace(/\\s+/g, ' ').includes(w)",
        arg=[selector, words],
    )


def test_a_speaker_sees_it_at_a_glance(page, visit):
    give(page, records.start(), records.reading(20, bits=2.6))
    tab = visit(page.url)
    assert text(tab, "#bits") == "2.6"
    assert text(tab, "#of") == "of 5.64 bits"
    assert text(tab, "#odds") == "1 in 8.2"
    assert "gives ann a chance of 1 in 8.2" in text(tab, "#sentence")
    assert tab.locator("#crowd path").count() == 50
    assert tab.locator("#crowd .lit, #crowd .one").count() == 8
    reads(tab, "#status", "Live")
    assert "Not set" in text(tab, "#threshold")
    give(page, records.reading(30, bits=4.0), records.alert(30))
    reads(tab, "#bits", "4.0")
    reads(tab, "#banners", "More than 3.0 bits since 0:30")
    reads(tab, "#threshold", "Exceeded")
    reads(tab, "#log", "0:30 Alert bits>3 for 5 s")
    assert tab.title().startswith("4.0 bits")
    give(page, records.alert(31, "cleared"), records.end(31))
    reads(tab, "#status", "Ended")
    assert text(tab, "#banners") == ""
    assert tab.problems == []


@pytest.mark.parametrize("watch", ["ann", None])
@pytest.mark.parametrize("bits", [-1.03, -0.01, 0.0, 0.51, 1.57, 5.6])
def test_the_page_uses_the_words_of_the_other_views(page, visit, watch, bits):
    give(page, records.start(watch=watch), records.reading(20, bits=bits))
    tab = visit(page.url)
    assert text(tab, "#odds") == odds(bits, records.CEILING, assumed=watch is None)
    said = verdict(bits, records.CEILING, watch)
    assert text(tab, "#sentence").startswith(f"{said[:1].upper()}{said[1:]}")


def test_no_sentence_stands_in_the_page_and_in_python():
    """Words in a row that a text of Python has: more than a label is no coincidence."""
    package = Path(monitor.__file__).parent
    of_page = [path.read_text("utf-8") for path in (package / "web/static").glob("*.js")]
    texts = {
        text
        for path in (
            *package.glob("*.py"),
            *package.glob("sinks/*.py"),
            *package.glob("plots/*.py"),
        )
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for text in node.value.split("\n")
        if len(text.split()) >= 5 and ">>>" not in node.value
    }
    assert len(texts) > 100
    assert [text for text in texts if any(text.strip() in each for each in of_page)] == []


def test_both_sides_are_seen_with_whom_and_the_disclosure_delay(page, visit):
    give(page, records.start(protected=records.PROTECTED))
    for second in range(1, 31):
        clear, safe = min(4.0, second / 4), min(1.5, second / 12)
        give(page, records.reading(second, bits=clear, **records.protected(0.5, also=safe)))
    give(page, records.crossing(8, "clear"))
    tab = visit(page.url)
    assert text(tab, "#protected-title") == "Through the anonymiser mcadams:0.8"
    assert text(tab, "#protected-bits") == "1.5"
    assert text(tab, "#protected-unit") == "bits, 2.5 fewer"
    assert text(tab, "#protected-limits") == "95 % interval 1.1 to 1.9"
    strongest = "The strongest attacker tried, who has enrolled protected speech."
    assert text(tab, "#protected-whom") == strongest
    assert text(tab, "#disclosure_delay tbody") == "2 bits 0:08 not yet –"
    names = tab.evaluate("document.getElementById('curve').data.map((line) => line.name)")
    assert {"This voice", "Through the anonymiser"} <= set(names)
    assert "Linear guide" not in names
    assert text(tab, "#legend").startswith("This voice 95 % interval Through the anonymiser")
    give(page, records.reading(31, bits=4.0, **records.protected(2.5)))
    give(page, records.crossing(20, "protected", 12.0))
    known = "An attacker who does not know the anonymiser: no measure of protection."
    reads(tab, "#protected-whom", known)
    assert "fewer" not in text(tab, "#protected-unit")
    assert "--protected-population" in text(tab, "#protected-others")
    reads(tab, "#disclosure_delay tbody", "2 bits 0:08 0:20 12 s")
    reads(tab, "#log", "2 bits were reached through the anonymiser at 0:20: 12 s later")
    row = {"bits": 3.0, "clear": {"seconds": 12.0, "crossed": True},
           "protected": {"seconds": 31.0, "crossed": False}, "delay_seconds": 19.0,
           "at_least": True}  # fmt: skip
    give(page, {**records.end(31), "disclosure_delay": [row, {"bits": 1}]})
    reads(tab, "#disclosure_delay tbody", "3 bits 0:12 not by 0:31 at least 19 s")
    assert tab.problems == []


def test_a_run_without_a_anonymiser_shows_none(page, visit):
    give(page, records.start(), records.reading(20, bits=2.6))
    tab = visit(page.url)
    assert not tab.is_visible("#protected")
    assert "Through the anonymiser" not in text(tab, "#legend")


def test_the_page_shows_what_is_promised_beside_what_is_measured(page, visit):
    start = {"mechanism": "usc:1", "epsilon_nats": 1.0, "window_seconds": 0.04, "delta": 1e-4,
             "empty_after": 23}  # fmt: skip
    promise = to_json(DeclaredReading.of(Declared("usc:1", 1.0, 0.04).after(500)))
    give(page, records.start(), records.reading(20, declared=promise))
    tab = visit(page.url)
    assert not tab.is_visible("#promise")
    give(page, records.start(declared=start), records.reading(20, declared=promise))
    tab = visit(page.url)
    reads(tab, "#promise-title", "Promised by usc:1, against every attacker")
    reads(tab, "#promise-now", "Vacuous bound: 721 bits allowed; 33 identify anyone alive.")
    reads(tab, "#promise-sum", "500 times epsilon 1 are 500 together")
    assert tab.problems == []


def test_evidence_comes_first_and_the_enrolled_second(page, visit):
    give(page, records.start(headline="evidence", support_bits=14.2, among=[50, 10**6]))
    give(page, *({**records.reading(t, 5.4), **records.evidence(0.4 * t)} for t in range(1, 29)))
    tab = visit(page.url)
    assert text(tab, "#bits") == "11.2"
    assert text(tab, "#of") == "bits"
    assert text(tab, "#limits") == "95 % interval 10.4 to 12.0"
    assert text(tab, "#odds") == "About 400 in a million"
    assert text(tab, "#sentence") == (
        "About 400 people in a city of a million match as well as ann."
    )
    assert text(tab, "#closed").startswith(
        "Closed-set, among the 50 enrolled: 5.4 of 5.6 bits: the attacker is"
    )
    assert "Among a million 11.2 bits 10.4 to 12.0" in text(tab, "#numbers")
    # of the N enrolled there is one figure, that which stands below the headline
    assert "Closed-set, among 50 5.4 bits" in text(tab, "#numbers")
    assert "Among 50" not in text(tab, "#numbers").replace("Closed-set, among 50", "")
    assert "Supported 14.2 bits" in text(tab, "#numbers")
    assert tab.locator("#legend button:visible").count() == 3
    shown = tab.locator("#curve .y2tick text").all_text_contents()
    assert shown == ["household", "office", "village", "town"]
    marks = " ".join(tab.locator("#curve .annotation-text").all_text_contents())
    assert "closed-set ceiling 5.64 bits" in marks
    top = tab.evaluate("document.getElementById('curve').layout.yaxis.range[1]")
    assert top > 14
    assert tab.title().startswith("11.2 bits")
    assert "11.2 bits, about 400 in a million" in tab.get_attribute("#moment", "aria-valuetext")
    alert = {**records.alert(29, threshold=11.0), "field": "evidence_bits"}
    more = {**records.evidence(14.2, at_least=True)}
    give(page, {**alert, "rule": "evidence_bits>11 for 5 s"}, {**records.reading(29, 5.5), **more})
    reads(tab, "#banners", "More than 11.0 bits since 0:29")
    reads(tab, "#threshold", "Exceeded 11.0 bits, since 0:29.")
    reads(tab, "#of", "bits, at least")
    reads(tab, "#limits", "95 % interval 13.4 or more")  # what was cut has no upper limit
    spread = {**more, "spread_low": 8.0, "spread_high": 12.5}
    give(page, *({**records.reading(t, 5.5), **spread} for t in (30, 31)))
    reads(tab, "#legend", "This voice 95 % interval 9 of 10 voices Closed-set")
    assert "A higher alert cannot fire" in text(tab, "#todo")
    assert "--alert" not in text(tab, "#todo")  # at 15 bits it would never be raised
    reads(tab, "#sentence", "bout 50 people or fewer in a city of a million match as well as ann")
    opened = {"since_seconds": 27.0, "features": ["f0"]}
    give(page, {**records.reading(30, 5.5, change=opened), **more})
    reads(tab, "#sentence", "Another voice since 0:27: these bits may not be ann's.")
    assert text(tab, "#closed") == ""
    assert text(tab, "#odds") == "?"
    tab.click(".about summary")
    explained = text(tab, "#glossary")
    for words in ("Evidence", "no certainty", "would fit as well", "supported"):
        assert words in explained, words
    assert tab.problems == []


def test_a_figure_that_points_away_does_not_comfort_where_the_sound_differs(page, visit):
    give(page, records.start(headline="evidence", support_bits=14.2, among=[50, 10**6]))
    give(page, {**records.reading(1, -1.0), **records.evidence(-1.0)})
    tab = visit(page.url)
    reads(tab, "#sentence", "vidence against ann")
    assert "mean safe" not in text(tab, "#sentence")
    apart = {"differs": ["bandwidth_hz"]}
    give(page, {**records.reading(2, -1.0), **records.evidence(-1.0), **apart})
    reads(tab, "#sentence", f"{CAVEAT[:1].upper()}{CAVEAT[1:]}.")
    assert tab.problems == []


def test_silence_and_what_cannot_be_reached_do_not_comfort(visit):
    with Page(thresholds=[("bits", 15.0)]) as page:
        give(page, records.start(headline="evidence", support_bits=14.2, among=[50, 10**6]))
        silent = {"speech": 0.0, "spread_low": 3.0, "spread_high": 8.0}
        give(page, {**records.reading(3, 0.0), **records.evidence(0.0), **silent})
        tab = visit(page.url)
        never = "Never An alert at 15.0 bits cannot fire: calibration supports 14.2 bits."
        reads(tab, "#threshold", never)
        give(page, records.end(4))
        reads(tab, "#status", "Ended")
        assert never in text(tab, "#threshold")  # and not that it was not reached
        assert tab.problems == []
    with Page(thresholds=[("bits", 6.0)]) as page:
        give(page, records.start(watch=None, assumes_enrolled=True))
        give(page, records.reading(9, 4.0, assumes_enrolled=True))
        give(page, records.end(9))
        tab = visit(page.url)
        reads(tab, "#threshold", "cannot fire: among 50 people a voice can reach 5.6 bits.")
    with Page(thresholds=[("bits", 3.0)]) as page:
        give(page, records.start(headline="evidence", support_bits=14.2, among=[50, 10**6]))
        give(page, {**records.reading(3, 0.0), **records.evidence(0.0), **silent})
        tab = visit(page.url)
        reads(tab, "#threshold", "Not in sight")
        give(page, {**records.reading(12, 0.0), **records.evidence(0.0), **silent})
        reads(tab, "#threshold", "Nothing heard No speech yet")
        assert text(tab, "#limits") == ""
        assert tab.problems == []


def test_what_is_said_aloud_warns_too(page, visit):
    give(page, records.start(headline="evidence", support_bits=14.2, among=[50, 10**6]))
    apart = {"differs": ["bandwidth_hz"]}
    give(page, {**records.reading(2, 1.0), **records.evidence(1.0), **apart})
    tab = visit(page.url)
    said = tab.text_content("#spoken-summary")
    assert f"{CAVEAT[:1].upper()}{CAVEAT[1:]}." in said


def test_what_is_said_aloud_last_is_what_the_page_shows(page, visit):
    from playwright.sync_api import expect

    give(page, records.start())
    give(page, records.reading(1, 1.5))
    tab = visit(page.url)
    spoken = tab.locator("#spoken-summary")
    expect(spoken).to_contain_text("1.5 of 5.6 bits")
    give(page, records.reading(2, 2.1))  # then nothing comes for a while: a pause
    reads(tab, "#bits", "2.1")
    expect(spoken).to_contain_text("2.1 of 5.6 bits", timeout=30_000)
    give(page, records.reading(3, 2.8))
    give(page, records.end(3))
    expect(spoken).to_contain_text("2.8 of 5.6 bits")
    assert tab.problems == []


def test_nobody_watched_is_told_of_the_best_match_in_the_crowd(page, visit):
    crowds = [{"people": 10**6, "bits": 0.0, "favourite": ["<b>ann</b>", 0.0025]}]
    give(page, records.start(watch=None, assumes_enrolled=True, support_bits=14.2))
    give(page, records.reading(9, 4.0, among=crowds, assumes_enrolled=True))
    tab = visit(page.url)
    assert text(tab, "#bits") == "4.0"
    assert text(tab, "#closed") == (
        "In a city of a million: 1 in 400 that it is <b>ann</b>, the best match of the 50 enrolled."
    )
    assert tab.problems == []


def test_how_long_until_the_threshold(visit):
    forecast = Forecast(5.0)
    with Page(thresholds=[("bits", 5.0)]) as page:
        give(page, records.start())
        for second in range(1, 17):
            reading = records.reading(second, bits=math.log2(second))
            give(page, reading)
            forecast.update(event(reading))
        assert forecast.seconds_left is not None
        seconds = round(forecast.seconds_left)
        seconds = 5 * round(seconds / 5) if seconds >= 10 else seconds
        tab = visit(page.url)
        reads(tab, "#threshold", f"in {seconds} s until 5.0 bits, at this rate")


def test_a_researcher_reads_in_depth(page, visit):
    give(page, records.start(notices=["a notice"]))
    for second in range(1, 61):
        give(page, records.reading(second, bits=0.05 * second))
    noticed = {"type": "notice", "seconds": 30.0, "code": "narrow", "text": "only a narrow <b>band"}
    give(page, {**noticed, "level": "warning", "about": "", "fields": {}})
    give(page, {"type": "gap", "seconds": 40.0, "reason": "overflow", "lost_seconds": 0.4})
    change = {"type": "change", "seconds": 50.0, "since_seconds": 45.0, "action": "reset"}
    give(page, {**change, "features": ["f0"], "margin_before": 1.0, "margin_after": 0.0})
    give(page, records.reading(61, bits=-1.2, speech=0.5, stream=1, top=[["<b>x</b>", 0.4]]))
    tab = visit(page.url)
    reads(tab, "#bits", "−1.2")
    assert "misled" in text(tab, "#sentence")
    reads(tab, "#features", "Pitch f0 −1.2 bits")
    assert "rank 2 of 50" in text(tab, "#features")
    assert "<b>x</b>" in text(tab, "#candidates")  # a name is never markup
    assert "Is the speaker enrolled at all? 90 %" in text(tab, "#enrolled")
    assert "Audio lost overflow, 0.4 s" in text(tab, "#log")
    assert "Another voice since 0:45 the evidence begins afresh" in text(tab, "#log")
    tab.click("#notes-card summary")
    assert "a notice" in text(tab, "#notes")
    assert tab.locator("#curve .scatterlayer path.js-line").count() >= 5
    shown = " ".join(tab.locator("#curve .annotation-text").all_text_contents())
    assert "ceiling 5.64 bits" in shown
    assert "plateau" not in shown  # folded away until a researcher asks
    assert "guide" not in text(tab, "#legend") + text(tab, "#numbers")
    tab.click("#researcher")
    marks = "() => document.querySelector('#curve').innerHTML.includes('plateau 4.50')"
    tab.wait_for_function(marks)
    assert "Linear guide" in text(tab, "#legend")
    tab.reload()  # it is remembered
    tab.wait_for_selector("body[data-ready=yes]")
    tab.wait_for_function(marks)
    assert tab.get_attribute("#researcher", "aria-pressed") == "true"
    # the axis goes on where the evidence began afresh: 48 s and half a second
    assert "after 49 s of speech" in tab.get_attribute("#curve", "aria-label")
    assert tab.problems == []


def test_what_a_ledger_carried_on_and_a_warning(page, visit):
    past = [
        {"session": 1 + i // 10, "time": "2026-01-01T00:00:00Z", "seconds": i, "speech": 1.0 + i,
         "bits": 0.05 * i, "bits_low": 0.0, "bits_high": 3.0}
        for i in range(20)
    ]  # fmt: skip
    give(page, records.start(carried={"sessions": 2, "speech": 20.0, "history": past}))
    give(page, records.reading(1, bits=1.0, speech=21.0, lag=0.31))
    warning = {**records.alert(2), "level": "warning", "rule": "bits>3 within 30 s"}
    give(page, warning, records.reading(2, bits=1.1, speech=21.8, lag=0.31))
    tab = visit(page.url)
    assert "Soon: bits>3 within 30 s" in text(tab, "#banners")
    assert tab.get_attribute("#hero", "data-level") == "calm"
    assert "Carried on from 2 sessions 20 s of speech" in text(tab, "#numbers")
    assert "Lag 0.3 s" in text(tab, "#numbers")
    assert tab.locator("#legend button:visible").count() == 4
    give(page, {**records.end(2), "failures": ["webhook: refused"], "stopped": None})
    reads(tab, "#log", "Not done: webhook: refused")
    assert tab.problems == []


def test_a_impostor_and_nobody_watched(page, visit):
    give(page, records.start(watch=None, assumes_enrolled=True, headline="closed-set"))
    give(page, records.reading(9, enrolled=0.11, assumes_enrolled=True))
    tab = visit(page.url)
    for place in ("#banners", "#enrolled"):  # one sentence has both probabilities
        assert re.search(
            r"Of the 50 enrolled it is most like .* \(\d+ % if it is one of them\), "
            r"but it is probably nobody enrolled \(11 % that it is one of them\)",
            text(tab, place),
        )
    tab.click("#notes-card summary")
    assert "assuming that the speaker is one of the 50 enrolled" in text(tab, "#notes")
    assert text(tab, "#hero-title") == "Attacker's confidence"


def test_who_else_was_narrowed_down_and_an_alert_beyond_its_time(page, visit):
    others = [{"name": "<b>bob</b>", "probability": 1 / 30, "people": 10_000}]
    late = {"share": 0.05, "horizon_seconds": 5.0, "speakers": 22, "session": "cross"}
    give(page, records.start(), records.reading(9, bystanders=others))
    give(page, {**records.alert(9), "false_alarms": {**late, "beyond": True}})
    tab = visit(page.url)
    said = "Also narrowed down: <b>bob</b>, 1 in 30 (among ten thousand people)"
    reads(tab, "#banners", said)
    reads(tab, "#log", "later than the 5 seconds this is known for")
    give(page, records.reading(10, bystanders=[]))
    tab.wait_for_function("() => !document.querySelector('#banners').innerText.includes('Also')")
    assert tab.problems == []


def test_what_it_takes_to_know_whether_anybody_enrolled_speaks(page, visit):
    why = "f0+phones cannot tell impostors (0.53); it takes a speaker embedding (voice)"
    give(page, records.start(), records.reading(9, enrolled=None, enrolled_withheld=why))
    tab = visit(page.url)
    assert text(tab, "#enrolled") == (
        "Is the speaker enrolled at all? Not known: it takes a speaker embedding (voice). "
        "f0+phones cannot tell impostors (0.53)."
    )
    assert "nobody enrolled" not in text(tab, "#banners")


def test_after_another_voice_the_page_claims_nothing_of_the_watched_speaker(page, visit):
    change = {"type": "change", "seconds": 32.0, "since_seconds": 27.0, "features": ["f0"]}
    opened = {"since_seconds": 27.0, "features": ["f0"]}
    give(page, records.start(), *(records.reading(t, bits=4.0) for t in range(1, 32)))
    give(page, records.alert(31), {**change, "action": "note", "margin_before": 1.0})
    give(page, records.reading(32, bits=4.0, change=opened))
    give(page, {**records.alert(32, "cleared"), "change": opened})
    tab = visit(page.url)
    assert "Another voice since 0:27. These bits may not be ann's" in text(tab, "#banners")
    assert text(tab, "#sentence") == "Another voice since 0:27: these bits may not be ann's."
    assert "More than 3.0 bits" not in text(tab, "#banners")
    assert text(tab, "#odds") == "?"
    assert "Alerts paused" in text(tab, "#threshold")
    assert text(tab, "#hero-title") == "Of more than one voice"
    assert tab.locator("#crowd .one").count() == 0
    assert tab.title() == "Another voice · Disclosure monitor"
    reads(tab, "#log", "0:32 Alert over bits>3 for 5 s (another voice since 0:27)")
    assert "another voice since 0:27" in " ".join(
        tab.locator("#curve .annotation-text").all_text_contents()
    )
    tab.focus("#moment")
    tab.keyboard.press("Home")  # what was said before is as it was
    reads(tab, "#sentence", "gives ann a chance")
    assert tab.problems == []


def test_after_a_split_the_page_says_of_which_voice_it_speaks(page, visit):
    change = {"type": "change", "seconds": 32.0, "since_seconds": 27.0, "features": ["f0"]}
    give(page, records.start(), *(records.reading(t, bits=4.0) for t in range(1, 32)))
    give(page, {**change, "action": "split"}, records.reading(32, bits=4.0))
    # of more speech than there was before: only the record says that it is another stream
    give(page, *(records.reading(t, bits=2.0, speech=9.0 * (t - 32), stream=2) for t in (37, 38)))
    tab = visit(page.url)
    assert text(tab, "#sentence").startswith(
        "The voice since 0:27: the attacker gives ann a chance of 1 in 12"
    )
    assert text(tab, "#hero-title") == "Of the newest voice"
    tab.wait_for_selector("#curve[aria-label*='after 80 s of speech']")  # 25.6 + 54
    assert tab.problems == []


def test_figures_may_be_withheld(page, visit):
    give(page, records.start(), records.reading(9, bits=None, withheld="templates too short"))
    give(page, records.reading(10, bits=None, enrolled=None, top=[], features={}))
    give(page, records.reading(11, bits=None, withheld="templates too short"))
    tab = visit(page.url)
    assert text(tab, "#bits") == "–"
    assert "templates too short" in text(tab, "#banners")
    assert tab.problems == []


def test_every_moment_can_be_looked_at_by_keyboard(visit):
    with Page(recorded=True) as page:
        for record in records.run(60):
            page.write(event(record))
        tab = visit(page.url)
        reads(tab, "#status", "Recorded")
        assert text(tab, "#moment-text") == "1:00 of 1:00"
        tab.focus("#moment")
        tab.keyboard.press("Home")
        reads(tab, "#moment-text", "0:01 of 1:00")
        reads(tab, "#bits", "0.1")
        tab.keyboard.press("ArrowRight")
        reads(tab, "#moment-text", "0:02 of 1:00")
        assert "bits, 1 in" in tab.get_attribute("#moment", "aria-valuetext")
        tab.focus("#latest")
        tab.keyboard.press("Enter")
        reads(tab, "#bits", "3.0")
        tab.focus("#legend button:nth-child(2)")
        tab.keyboard.press("Space")
        assert tab.get_attribute("#legend button:nth-child(2)", "aria-pressed") == "false"


def test_the_policy_holds_and_nothing_is_fetched_from_elsewhere(page, visit):
    for record in records.run(60):
        page.write(event(record))
    tab = visit(page.url)
    tab.wait_for_selector("#curve .scatterlayer path.js-line")
    box = tab.locator("#curve").bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.wait_for_selector("#curve .hoverlayer .legend, #curve .hoverlayer .hovertext")
    assert tab.evaluate("window.refused") == []
    assert tab.problems == tab.said == []
    assert {urlsplit(url).netloc for url in tab.asked} == {f"127.0.0.1:{page.port}"}


def test_a_page_that_was_cut_off_goes_on_with_the_next_run(visit):
    page = Page()
    give(page, records.start(), records.reading(5, bits=1.0))
    tab = visit(page.url)
    page.close()
    reads(tab, "#status", "Reconnecting")
    with Page(port=page.port) as again:
        give(again, records.start(watch="ben"), records.reading(3, bits=2.0))
        reads(tab, "#sentence", "gives ben a chance")
        reads(tab, "#status", "Live")
        assert text(tab, "#moment-text") == "0:03 of 0:03"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(page, visit, size, scheme, tmp_path):
    for record in records.run(60):
        page.write(event(record))
    tab = visit(page.url, size, color_scheme=scheme)
    tab.wait_for_selector("#curve .scatterlayer path.js-line")
    assert tab.evaluate("document.documentElement.scrollWidth") <= size[0]
    light = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    red, green, blue = map(int, re.findall(r"\d+", light)[:3])
    assert (red + green + blue > 380) == (scheme == "light")
    for name in ("ink", "muted", "accent", "danger", "warn", "ok"):
        assert contrast(tab, name) >= 4.5, name
    # whatever can be operated has a name
    assert tab.locator("button, input").count() >= 6
    for each in tab.locator("button:visible, input:visible").all():
        assert each.evaluate("e => (e.labels?.[0] || e).innerText.trim()")
    assert tab.problems == []


HOLLOW = """(selector) => [...document.querySelectorAll(selector)].filter((card) => {
    const last = Math.max(...[...card.children].map((e) => e.getBoundingClientRect().bottom));
    return card.getBoundingClientRect().bottom - last > 40;
}).map((card) => card.innerText)"""
LOPSIDED = """(selector) => {
    const all = document.querySelector(selector).getBoundingClientRect();
    const bottoms = { left: 0, right: 0 };
    for (const each of document.querySelectorAll(`${selector} dd`)) {
        const box = each.getBoundingClientRect();
        const side = (box.left + box.right) / 2 < (all.left + all.right) / 2 ? "left" : "right";
        bottoms[side] = Math.max(bottoms[side], box.bottom);
    }
    return Math.abs(bottoms.left - bottoms.right) / all.height;
}"""


def test_no_card_is_half_empty(page, visit):
    features = {"f0": records.reading(20)["features"]["f0"]}
    give(page, records.start(), records.reading(20, bits=3.4, features=features), records.alert(20))
    tab = visit(page.url)
    tab.click(".about summary")
    assert tab.evaluate(HOLLOW, ".columns .card") == []
    for each in ("#about", "#glossary"):
        assert tab.evaluate(LOPSIDED, each) < 0.25


def test_every_word_is_explained(page, visit):
    carried = {"sessions": 2, "speech": 20.0, "history": []}
    give(page, records.start(carried=carried))
    give(page, records.reading(9, stream=2, lag=0.2, beyond_grid=True, withheld="too short"))
    tab = visit(page.url)
    tab.click(".about summary")
    explained = text(tab, "#glossary").lower()
    shown = [
        *tab.locator("#numbers dt, #about dt").all_inner_texts(),
        *(each.strip() for each in tab.locator("#legend button").all_inner_texts()),
        *("enrolled", "rank alone", "usable", "withheld", "watched", "1 in k", "alert", "ceiling"),
    ]
    plain = {"", "started", "recordings", "program", "length", "this voice", "earlier sessions"}
    small = {"of", "the", "so", "on", "from", "far", "95", "%"}
    for label in {each.lower().split(",")[0] for each in shown} - plain:
        assert any(word in explained for word in set(label.split()) - small), label


def test_dates_are_iso_and_guides_say_which(page, visit):
    guides = {"linear": records.CEILING, "sqrt": 3.1}
    give(page, records.start(), records.reading(20, guides=guides))
    tab = visit(page.url, timezone_id="America/St_Johns")
    tab.click(".about summary")
    tab.click("#researcher")
    reads(tab, "#numbers", "Linear guide")
    assert "Started 2025-12-31T20:30:00-03:30 " in text(tab, "#about")
    assert "Linear guide 5.6 bits the most there is Square-root guide 3.1 bits " in text(
        tab, "#numbers"
    )
    evident = {"headline": "evidence", "evidence_bits": 9.0, "support_bits": 13.4}
    both = {"linear": 13.4, "sqrt": 11.2}
    more = {**evident, "closed_set_bits": 5.0, "evidence_guides": both}
    give(page, records.reading(30, 9.0, **more))
    reads(tab, "#numbers", "Linear guide 13.4 bits the most there is Square-root guide 11.2 bits")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_notices_do_not_stand_between_the_headline_and_the_curve(page, visit, size):
    notices = [f"notice {i}: " + "words that go on for a while " * 6 for i in range(8)]
    grave = {"type": "notice", "seconds": 5.0, "kind": "x", "level": "warning", "text": "telephone"}
    give(page, records.start(notices=notices), records.reading(4), grave, records.reading(20))
    tab = visit(page.url, size)
    reads(tab, "#notes-count", "9 notes")
    assert "Take care: telephone" in text(tab, "#notes-newest")
    assert not tab.is_visible("#notes")
    tops = (
        "(names) => names.map((name) => document.querySelector(name).getBoundingClientRect().top)"
    )
    hero, threshold, curve, notes = tab.evaluate(
        tops, ["#hero", "#threshold", "#curve", "#notes-card"]
    )
    assert hero <= threshold < curve < notes
    below = "(n) => document.querySelector(n).getBoundingClientRect().bottom"
    assert curve - tab.evaluate(below, "#hero") < 200  # its own heading and legend alone
    tab.click("#notes-card summary")
    assert tab.is_visible("#notes")
    assert text(tab, "#notes").count("notice ") == 8
    assert tab.problems == []


def test_over_the_threshold_it_is_said_what_to_do(page, visit):
    give(page, records.start(), *(records.reading(t, bits=0.2 * t) for t in range(1, 21)))
    tab = visit(page.url)
    assert text(tab, "#todo") == ""
    give(page, records.alert(20), records.reading(21, bits=4.2))
    reads(tab, "#todo", "Stop or mute now. Past speech cannot be undone")
    assert "--protect METHOD" in text(tab, "#todo")
    assert "--alert 'bits>5'" in text(tab, "#todo")
    give(page, records.end(21))
    reads(tab, "#todo", "Share only the first 0:14")  # 0:15 reads 3 bits
    assert "mute" not in text(tab, "#todo")
    assert tab.problems == []


@pytest.mark.parametrize(
    ("side", "words"),
    [
        (records.protected(-14.0), "mcadams:0.8 is untested against an attacker who knows it"),
        (records.protected(0.5, also=1.0), "Send the voice through mcadams:0.8 alone: 1.0 bits"),
        (records.protected(0.5, also=3.9), "mcadams:0.8 is not enough: it leaves the strongest"),
    ],
)
def test_what_to_do_knows_what_a_anonymiser_is_worth(page, visit, side, words):
    give(page, records.start(protected=records.PROTECTED))
    give(page, records.reading(20, bits=4.0, **side), records.alert(20))
    give(page, records.reading(21, bits=4.0, **side))
    tab = visit(page.url)
    reads(tab, "#todo", words)
    assert tab.problems == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_both_axes_are_labelled(page, visit, size):
    for record in records.run(60):
        page.write(event(record))
    tab = visit(page.url, size)
    tab.wait_for_selector("#curve .scatterlayer path.js-line")
    labels = tab.locator("#curve .y2tick text")
    said = ["1 in 50", "1 in 25", "1 in 12", "1 in 6.2", "1 in 3.1", "64 %"]
    assert labels.all_text_contents() == said
    box = tab.locator("#curve").bounding_box()
    for each in labels.all():
        place = each.bounding_box()
        assert place["x"] + place["width"] <= box["x"] + box["width"]


def contrast(tab: Any, name: str) -> float:
    """Of a colour on a card (WCAG 2)."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    script = "n => getComputedStyle(document.documentElement).getPropertyValue('--' + n).trim()"
    dark, light = sorted(luminance(tab.evaluate(script, each)) for each in (name, "card"))
    return (light + 0.05) / (dark + 0.05)


def test_the_token_at_the_door(visit):
    with Page(token=SECRET) as page:
        give(page, records.start(), records.reading(5, bits=1.0))
        tab = visit(page.url, ready=False)
        tab.fill("#token", "something else")
        tab.click("button")
        tab.wait_for_load_state()
        tab.fill("#token", SECRET)
        tab.click("button")
        tab.wait_for_selector("body[data-ready=yes]")
        assert text(tab, "#bits") == "1.0"
        assert SECRET not in tab.url
        assert tab.evaluate("document.cookie") == ""
        tab.click("text=Log out")
        tab.wait_for_selector("#token")
        tab.goto(page.url)
        tab.wait_for_selector("#token")


def test_the_strip_says_whom_it_shows(page, visit):
    top = [["ann", 0.5], *([f"p{i}", 0.5 / 49] for i in range(49))]
    give(page, records.start(), records.reading(20, top=top))
    tab = visit(page.url)
    assert text(tab, "#strip").startswith("All 50, most probable first;")
    assert "No bystander rose in the last 10 s." in text(tab, "#strip")
    give(page, records.reading(31, top=[["ann", 0.4], ["p7", 0.1], *top[1:7]]))
    reads(tab, "#strip", "The first 8 of 50, most probable first;")
    assert "1 bystander rose in the last 10 s." in text(tab, "#strip")


def test_rules_on_what_has_no_curve_are_shown_as_set(page, visit):
    rule = {"rule": "protected.bits>3 for 5 s", "field": "protected.bits", "threshold": 3.0}
    give(page, records.start(alerts=[rule]), records.reading(4))
    tab = visit(page.url)
    reads(tab, "#threshold", "Not reached protected.bits>3 for 5 s")
    alert = {**records.alert(5), "rule": rule["rule"], "field": rule["field"]}
    give(page, alert, records.reading(5))
    reads(tab, "#threshold", "Exceeded protected.bits>3 for 5 s, since 0:05")
    assert tab.problems == []
