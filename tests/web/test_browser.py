"""The page, that of several people and that of an evaluation, in a real browser."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from monitor import how_much
from monitor.anonymisers.laplace import DeclaredGuarantee
from monitor.events.declaration import to_json
from monitor.events.reading import DeclaredReading
from monitor.lab.evaluation.document import save_page
from monitor.phrases import CAVEAT
from monitor.web.page import Page
from tests.lab.evaluation.made import EVIL, report
from tests.web import records
from tests.web.conftest import PATIENCE, SECRET
from tests.web.records import give

DESKTOP, PHONE = (1280, 900), (390, 844)
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
WATCHED = """
    window.refused = [];
    addEventListener("securitypolicyviolation",
        (e) => window.refused.push([e.effectiveDirective, e.sourceFile || e.blockedURI]));
"""


@pytest.fixture
def visit(browser) -> Iterator[Callable[..., Any]]:
    """Opens an address; in the end nothing may have gone wrong there."""
    contexts, problems = [], []

    def visit(url: str, size: tuple[int, int] = DESKTOP, ready: bool = True, **more: Any) -> Any:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **more)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        tab = context.new_page()
        tab.asked, tab.said = [], []
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("dialog", lambda dialog: problems.append(dialog.message))
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
    assert problems == []


@pytest.fixture
def show(page, visit) -> Callable[..., Any]:
    """Shows some records on the page."""

    def show(*made: dict[str, Any], **more: Any) -> Any:
        give(page, *made)
        return visit(page.url, **more)

    return show


def text(tab: Any, selector: str) -> str:
    return re.sub(r"\s+", " ", tab.inner_text(selector)).strip()


def reads(tab: Any, selector: str, words: str) -> None:
    """Wait until an element says something."""
    tab.wait_for_function(
        "([s, w]) => document.querySelector(s).innerText.replace(/\\s+/g, ' ').includes(w)",
        arg=[selector, words],
    )


def readings(count: int, bits: float = 4.0, **more: Any) -> list[dict[str, Any]]:
    return [records.reading(second, bits=bits, **more) for second in range(1, count + 1)]


def evident(second: float, bits: float, closed: float | None = None, **more: Any) -> dict[str, Any]:
    """A reading whose headline is evidence."""
    reading = records.reading(second, bits if closed is None else closed)
    return {**reading, **records.evidence(bits), **more}


def evidence_start() -> dict[str, Any]:
    return records.start(headline="evidence", support_bits=14.2, among=[50, 10**6])


# --- One voice.


def test_a_speaker_sees_it_at_a_glance(page, show):
    tab = show(records.start(), records.reading(20, bits=2.6))
    assert text(tab, "#bits") == "2.6"
    assert text(tab, "#of") == "of 5.64 bits"
    assert text(tab, "#odds") == "1 in 8.2"
    assert "gives ann a chance of 1 in 8.2" in text(tab, "#sentence")
    assert not tab.is_visible("#crowd")  # the 50 are no sample of a thousand
    reads(tab, "#status", "Live")
    assert "Not set" in text(tab, "#threshold")
    assert not tab.is_visible("#protected")
    assert not tab.is_visible("#promise")
    give(page, records.reading(30, bits=4.0), records.alert(30))
    reads(tab, "#bits", "4.0")
    reads(tab, "#banners", "At least 3.0 bits since 0:30")
    reads(tab, "#threshold", "Exceeded")
    reads(tab, "#log", "0:30 Alert bits>3 for 5 s")
    assert tab.title().startswith("4.0 bits")
    give(page, records.alert(31, "cleared"), records.end(31))
    reads(tab, "#status", "Ended")
    assert text(tab, "#banners") == ""


@pytest.mark.parametrize(
    ("bits", "share"), [(0.0, 1000), (1.0, 500), (6.2, 14), (10.4, 1), (11.2, 0)]
)
def test_of_a_thousand_dots_as_many_match_as_the_bits_leave(show, bits, share):
    tab = show(evidence_start(), evident(20, bits))
    paths = {name: tab.get_attribute(f"#{name}", "d") or "" for name in ("matching", "others")}
    assert paths["matching"].count("h") == share
    assert tab.is_visible("#crowd") == (share > 0)
    assert paths["others"].count("h") == (1000 - share if share else 0)


def test_the_title_names_no_figure_while_nobody_enrolled_speaks(show):
    tab = show(evidence_start(), evident(20, -4.0, enrolled=0.05))
    reads(tab, "#curve-title", "probably none of the 50 people enrolled is speaking")
    assert "bits" not in text(tab, "#curve-title") + tab.title()
    assert not tab.is_visible("#crowd")


def test_how_much_is_much_stands_behind_the_question_mark(show):
    tab = show(records.start(), records.reading(20))
    guide = tab.locator("#how-much")
    assert not guide.is_visible()
    tab.click("#how-much-button")
    cells = [cell for t in how_much.tables(options=False) for row in t.rows for cell in row]
    assert guide.locator("td").all_text_contents() == cells
    assert guide.locator("p").all_text_contents() == list(how_much.advice(options=False))
    assert "--" not in text(tab, "#how-much")  # a browser has no command line
    tab.keyboard.press("Escape")
    assert not guide.is_visible()


def test_both_sides_are_seen_with_whom_and_the_disclosure_delay(page, show):
    both = [
        records.reading(t, bits=min(4.0, t / 4), **records.protected(0.5, also=min(1.5, t / 12)))
        for t in range(1, 31)
    ]
    crossed = records.crossing(8, "clear")
    tab = show(records.start(protected=records.PROTECTED), *both, crossed)
    assert text(tab, "#protected-title") == "Through the anonymiser mcadams:0.8"
    assert text(tab, "#protected-bits") == "1.5"
    assert text(tab, "#protected-unit") == "bits, 2.5 fewer"
    assert text(tab, "#protected-limits") == "95 % interval 1.1 to 1.9"
    strongest = "The strongest attacker tried, who has enrolled protected speech."
    assert text(tab, "#protected-whom") == strongest
    assert text(tab, "#disclosure_delay tbody") == "2 bits 0:08 not yet –"
    names = tab.evaluate("document.getElementById('curve').data.map((line) => line.name)")
    assert {"This voice", "Through the anonymiser"} <= set(names)
    give(page, records.reading(31, bits=4.0, **records.protected(2.5)))
    give(page, records.crossing(20, "protected", 12.0))
    known = "An attacker who does not know the anonymiser: no measure of protection."
    reads(tab, "#protected-whom", known)
    assert "fewer" not in text(tab, "#protected-unit")
    reads(tab, "#disclosure_delay tbody", "2 bits 0:08 0:20 12 s")
    reads(tab, "#log", "2 bits were reached through the anonymiser at 0:20: 12 s later")
    row = {"bits": 3.0, "clear": {"seconds": 12.0, "crossed": True},
           "protected": {"seconds": 31.0, "crossed": False}, "delay_seconds": 19.0,
           "at_least": True}  # fmt: skip
    give(page, {**records.end(31), "disclosure_delay": [row, {"bits": 1}]})
    reads(tab, "#disclosure_delay tbody", "3 bits 0:12 not by 0:31 at least 19 s")


def test_the_page_shows_what_is_promised_beside_what_is_measured(show):
    start = {"mechanism": "usc:1", "epsilon_nats": 1.0, "window_seconds": 0.04, "delta": 1e-4,
             "empty_after": 23}  # fmt: skip
    promise = to_json(
        DeclaredReading.from_guarantee(DeclaredGuarantee("usc:1", 1.0, 0.04).compose(500))
    )
    tab = show(records.start(declared=start), records.reading(20, declared=promise))
    reads(tab, "#promise-title", "Promised by usc:1, against every attacker")
    reads(tab, "#promise-now", "Vacuous bound, since it allows 721 bits")
    reads(tab, "#promise-sum", "500 times epsilon 1 are 500 together")


def test_evidence_comes_first_and_the_enrolled_second(page, show):
    tab = show(evidence_start(), *(evident(t, 0.4 * t, 5.4) for t in range(1, 29)))
    assert text(tab, "#bits") == "11.2"
    assert text(tab, "#of") == "bits"
    assert text(tab, "#limits") == "95 % interval 10.4 to 12.0"
    assert text(tab, "#odds") == "About 400 in a million"
    assert text(tab, "#sentence").startswith("About 400 people in a city of a million match")
    assert text(tab, "#closed").startswith("Closed-set, among the 50 enrolled, 5.4 of 5.6 bits")
    assert "Among a million 11.2 bits 10.4 to 12.0" in text(tab, "#numbers")
    # of the N enrolled there is one figure, that which stands below the headline
    assert "Closed-set, among 50 5.4 bits" in text(tab, "#numbers")
    assert "Among 50" not in text(tab, "#numbers").replace("Closed-set, among 50", "")
    assert "Supported 14.2 bits" in text(tab, "#numbers")
    marks = " ".join(tab.locator("#curve .annotation-text").all_text_contents())
    assert "supports no more than 14.2 bits" in marks
    assert "this voice: 11.2 bits" in marks
    assert "closed-set" not in marks
    tick = tab.locator("#curve .y2tick text").all_text_contents()
    assert tick == ["no evidence", "1 in 2", "1 in 8", "1 in 64", "1 in 1,000", "1 in 8,000"]
    assert tab.evaluate("document.getElementById('curve').layout.yaxis.range[1]") > 14
    assert not tab.is_visible("#crowd")  # less than one of a thousand
    assert tab.title().startswith("11.2 bits")
    assert "11.2 bits, about 400 in a million" in tab.get_attribute("#moment", "aria-valuetext")
    rule = {"rule": "evidence_bits>11 for 5 s", "field": "evidence_bits"}
    most = {"at_least": True}
    give(page, {**records.alert(29, threshold=11.0), **rule}, evident(29, 14.2, 5.5, **most))
    reads(tab, "#banners", "At least 11.0 bits since 0:29")
    reads(tab, "#threshold", "Exceeded 11.0 bits, since 0:29.")
    reads(tab, "#of", "bits or more")
    reads(tab, "#limits", "95 % interval 13.4 or more")  # what was cut has no upper limit
    spread = {**most, "spread_low": 8.0, "spread_high": 12.5}
    give(page, *(evident(t, 14.2, 5.5, **spread) for t in (30, 31)))
    reads(tab, "#curve-title", "at least 14.2 bits")
    tab.click("#researcher")
    reads(tab, "#legend", "9 of 10 voices")
    assert "A higher alert cannot fire" in text(tab, "#todo")
    assert "--alert" not in text(tab, "#todo")  # at 15 bits it would never be raised
    reads(tab, "#sentence", "t most 50 people in a city of a million match as well as ann")
    opened = {"since_seconds": 27.0, "features": ["f0"]}
    give(page, evident(32, 14.2, 5.5, **most, change=opened))
    reads(tab, "#sentence", "Another voice since 0:27: these bits may not be ann's.")
    assert text(tab, "#closed") == ""
    assert text(tab, "#odds") == "?"


def test_a_figure_that_points_away_does_not_comfort_where_the_sound_differs(page, show):
    tab = show(evidence_start(), evident(1, -1.0))
    reads(tab, "#sentence", "vidence against ann")
    assert "mean safe" not in text(tab, "#sentence")
    give(page, evident(2, -1.0, differs=["bandwidth_hz"]))
    caveat = f"{CAVEAT[:1].upper()}{CAVEAT[1:]}."
    reads(tab, "#sentence", caveat)
    tab.reload()  # what is said aloud warns too
    tab.wait_for_selector("body[data-ready=yes]")
    assert caveat in tab.text_content("#spoken-summary")


SILENT = {"speech": 0.0, "spread_low": 3.0, "spread_high": 8.0}
SURE = {"assumes_enrolled": True}


@pytest.mark.parametrize(
    ("threshold", "made", "words"),
    [
        (15.0, [evidence_start(), evident(3, 0.0, **SILENT)], "calibration supports 14.2 bits."),
        (
            6.0,
            [records.start(watch=None, **SURE), records.reading(9, 4.0, **SURE)],
            "the maximum among 50 people is 5.6 bits.",
        ),
    ],
)
def test_what_cannot_be_reached_does_not_comfort(visit, threshold, made, words):
    with Page(thresholds=[("bits", threshold)]) as page:
        give(page, *made)
        tab = visit(page.url)
        never = f"Never An alert at {threshold} bits cannot fire: {words}"
        reads(tab, "#threshold", never)
        give(page, records.end(10))
        reads(tab, "#status", "Ended")
        assert never in text(tab, "#threshold")  # and not that it was not reached


def test_silence_does_not_comfort(visit):
    with Page(thresholds=[("bits", 3.0)]) as page:
        give(page, evidence_start(), evident(3, 0.0, **SILENT))
        tab = visit(page.url)
        reads(tab, "#threshold", "Not in sight")
        give(page, evident(12, 0.0, **SILENT))
        reads(tab, "#threshold", "No speech Ignore the figures")
        assert text(tab, "#limits") == ""


def test_what_is_said_aloud_last_is_what_the_page_shows(page, show):
    from playwright.sync_api import expect

    tab = show(records.start(), records.reading(1, 1.5))
    spoken = tab.locator("#spoken-summary")
    expect(spoken).to_contain_text("1.5 of 5.6 bits")
    give(page, records.reading(2, 2.1))  # then nothing comes for a while: a pause
    reads(tab, "#bits", "2.1")
    expect(spoken).to_contain_text("2.1 of 5.6 bits")
    give(page, records.reading(3, 2.8), records.end(3))
    expect(spoken).to_contain_text("2.8 of 5.6 bits")


def test_a_researcher_reads_in_depth(show):
    noticed = {"type": "notice", "seconds": 30.0, "code": "narrow", "text": "only a narrow <b>band"}
    change = {"type": "change", "seconds": 50.0, "since_seconds": 45.0, "action": "reset"}
    guides = {"linear": records.CEILING, "sqrt": 3.1}
    tab = show(
        records.start(notices=["a notice"]),
        *(records.reading(second, bits=0.05 * second) for second in range(1, 61)),
        {**noticed, "level": "warning", "about": "", "fields": {}},
        {"type": "gap", "seconds": 40.0, "reason": "overflow", "lost_seconds": 0.4},
        {**change, "features": ["f0"], "margin_before": 1.0, "margin_after": 0.0},
        records.reading(61, -1.2, speech=0.5, stream=1, top=[["<b>x</b>", 0.4]], guides=guides),
    )
    reads(tab, "#bits", "−1.2")
    assert "misled" in text(tab, "#sentence")
    reads(tab, "#features", "Pitch f0 −1.2 bits")
    assert "rank 2 of 50" in text(tab, "#features")
    assert "<b>x</b>" in text(tab, "#candidates")  # a name is never markup
    assert "Is the speaker enrolled at all? 90 %" in text(tab, "#enrolled")
    assert "Audio lost overflow, 0.4 s" in text(tab, "#log")
    assert "Another voice since 0:45 the evidence restarts" in text(tab, "#log")
    tab.click("#notes-card summary")
    assert "a notice" in text(tab, "#notes")
    assert tab.locator("#curve .scatterlayer path.js-line").count() >= 5
    shown = " ".join(tab.locator("#curve .annotation-text").all_text_contents())
    assert "50 people allow no more than 5.6 bits" in shown
    assert {"linear", "square-root"} <= set(shown.split())
    assert "plateau" not in shown  # folded away until a researcher asks
    assert "guide" not in text(tab, "#numbers")
    tab.click("#researcher")
    marks = "() => document.querySelector('#curve').innerHTML.includes('plateau 4.50')"
    tab.wait_for_function(marks)
    assert "Linear guide 5.6 bits maximum Square-root guide 3.1" in text(tab, "#numbers")
    tab.reload()  # it is remembered
    tab.wait_for_selector("body[data-ready=yes]")
    tab.wait_for_function(marks)
    assert tab.get_attribute("#researcher", "aria-pressed") == "true"
    # the axis goes on where the evidence began afresh: 48 s and half a second
    assert "After 49 s of speech" in tab.get_attribute("#curve", "aria-label")


def test_every_mark_on_the_curve_has_a_legend(page, show):
    notice = {"type": "notice", "code": "narrow", "text": "a note", "level": "warning", "about": "",
              "fields": {}}  # fmt: skip
    tab = show(records.start(), *readings(30))
    tab.wait_for_selector("#curve .scatterlayer path.js-line", state="attached")
    marks = tab.locator("#legend .sign:visible")
    lines = ["This voice", "95 % interval"]
    assert marks.all_inner_texts() == lines
    give(
        page,
        {"type": "gap", "seconds": 30.0, "reason": "overflow", "lost_seconds": 0.4},
        {**notice, "seconds": 30.0},
        records.alert(30),
        {**CHANGE, "action": "note"},
        records.alert(30, "cleared"),
        records.reading(31, bits=4.0),
    )
    for sign in ("✕ Gap", "● Note", "◆ Another voice", "▼ Alert over"):
        reads(tab, "#legend", sign)
    signs = sorted(re.sub(r"\s+", " ", each).strip() for each in marks.all_inner_texts())
    assert signs == sorted(
        [*lines, "✕ Gap", "● Note", "▲ Alert", "◆ Another voice", "▼ Alert over"]
    )


def test_whether_anybody_enrolled_speaks(page, show):
    tab = show(records.start(watch=None, **SURE), records.reading(9, enrolled=0.11, **SURE))
    for place in ("#banners", "#enrolled"):  # one sentence has both probabilities
        assert re.search(
            r"11 % likely to be one of the 50 enrolled\. .* is most similar "
            r"\(\d+ % if it is one of them\)",
            text(tab, place),
        )
    why = "f0+phones cannot tell impostors (0.53); a speaker embedding (voice) is needed"
    give(page, records.reading(10, enrolled=None, enrolled_withheld=why))
    reads(tab, "#enrolled", "Not known: a speaker embedding (voice) is needed.")
    assert "not enrolled" not in text(tab, "#banners")


CHANGE = {"type": "change", "seconds": 32.0, "since_seconds": 27.0, "features": ["f0"]}


def test_after_another_voice_the_page_claims_nothing_of_the_watched_speaker(show):
    opened = {"since_seconds": 27.0, "features": ["f0"]}
    tab = show(
        records.start(),
        *readings(31),
        records.alert(31),
        {**CHANGE, "action": "note", "margin_before": 1.0},
        records.reading(32, bits=4.0, change=opened),
        {**records.alert(32, "cleared"), "change": opened},
    )
    assert "Another voice since 0:27. These bits may not be ann's" in text(tab, "#banners")
    assert text(tab, "#sentence") == "Another voice since 0:27: these bits may not be ann's."
    assert "At least 3.0 bits" not in text(tab, "#banners")
    assert text(tab, "#odds") == "?"
    assert "Alerts resume" in text(tab, "#threshold")
    assert text(tab, "#hero-title") == "More than one voice"
    assert not tab.is_visible("#crowd")
    assert tab.title() == "Another voice · Disclosure monitor"
    reads(tab, "#log", "0:32 Alert over bits>3 for 5 s (another voice since 0:27)")
    marks = tab.locator("#curve .annotation-text").all_text_contents()
    assert "another voice since 0:27" in " ".join(marks)
    tab.focus("#moment")
    tab.keyboard.press("Home")  # what was said before is as it was
    reads(tab, "#sentence", "gives ann a chance")


def test_figures_may_be_withheld(show):
    withheld = "templates too short"
    tab = show(records.start(), records.reading(9, bits=None, withheld=withheld),
               records.reading(10, bits=None, enrolled=None, top=[], features={}),
               records.reading(11, bits=None, withheld=withheld))  # fmt: skip
    assert text(tab, "#bits") == "–"
    assert withheld in text(tab, "#banners")


def test_every_moment_can_be_looked_at_by_keyboard(visit):
    with Page(recorded=True) as page:
        give(page, *records.run(60))
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
        tab.focus("#researcher")
        tab.keyboard.press("Space")
        assert tab.get_attribute("#researcher", "aria-pressed") == "true"


def test_the_policy_holds_and_nothing_is_fetched_from_elsewhere(page, show):
    tab = show(*records.run(60))
    tab.wait_for_selector("#curve .scatterlayer path.js-line")
    box = tab.locator("#curve").bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.wait_for_selector("#curve .hoverlayer .legend, #curve .hoverlayer .hovertext")
    assert tab.evaluate("window.refused") == []
    assert tab.said == []
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


def brightness(tab: Any) -> int:
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", background)[:3]))


def contrast(tab: Any, name: str) -> float:
    """Of a colour on a card (WCAG 2)."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    script = "n => getComputedStyle(document.documentElement).getPropertyValue('--' + n).trim()"
    dark, light = sorted(luminance(tab.evaluate(script, each)) for each in (name, "card"))
    return (light + 0.05) / (dark + 0.05)


@SIZES
@SCHEMES
def test_it_fits_and_can_be_read(show, size, scheme):
    tab = show(*records.run(60), size=size, color_scheme=scheme)
    tab.wait_for_selector("#curve .scatterlayer path.js-line")
    assert tab.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert (brightness(tab) > 380) == (scheme == "light")
    for name in ("ink", "muted", "accent", "danger", "warn", "ok"):
        assert contrast(tab, name) >= 4.5, name
    # whatever can be operated has a name
    assert tab.locator("button, input").count() >= 6
    for each in tab.locator("button:visible, input:visible").all():
        assert each.evaluate("e => (e.labels?.[0] || e).innerText.trim()")
    labels = tab.locator("#curve .y2tick text")  # both axes are labelled
    said = ["50 left", "25 left", "6 left"]
    assert labels.all_text_contents() == said
    box = tab.locator("#curve").bounding_box()
    for each in labels.all():
        place = each.bounding_box()
        assert place["x"] + place["width"] <= box["x"] + box["width"]


def test_on_paper_nothing_is_left_to_press_and_the_curve_fits(show):
    tab = show(*records.run(60), color_scheme="dark")
    tab.wait_for_selector("#curve .scatterlayer path.js-line")
    tab.set_viewport_size({"width": 718, "height": 1000})
    tab.emulate_media(media="print", color_scheme="dark")
    tab.wait_for_function("() => document.querySelector('#curve .main-svg').clientWidth < 718")
    assert tab.locator("button:visible, input:visible, select:visible").count() == 0
    assert tab.is_visible("#bits")
    assert brightness(tab) > 700
    assert contrast(tab, "ink") > 10


@pytest.mark.parametrize("bits", [14.2, -12.3])
def test_the_longest_headline_fits_the_narrowest_phone(show, bits):
    start = evidence_start()
    tab = show(start, evident(29, bits, 5.5, at_least=bits > 0), size=(320, 700))
    tab.wait_for_selector("#curve .scatterlayer path.js-line", state="attached")
    assert tab.evaluate("document.documentElement.scrollWidth") == 320


def test_over_the_threshold_it_is_said_what_to_do(page, show):
    tab = show(records.start(), *(records.reading(t, bits=0.2 * t) for t in range(1, 21)))
    assert text(tab, "#todo") == ""
    give(page, records.alert(20), records.reading(21, bits=4.2))
    reads(tab, "#todo", "Stop or mute now. Past speech cannot be undone")
    assert "raise the threshold to 5 bits" in text(tab, "#todo")
    assert "--" not in text(tab, "#main")  # a browser has no command line
    give(page, records.end(21))
    reads(tab, "#todo", "Share only the first 0:14")  # 0:15 reads 3 bits
    assert "mute" not in text(tab, "#todo")


@pytest.mark.parametrize(
    ("side", "words"),
    [
        (records.protected(-14.0), "mcadams:0.8 is untested against an attacker who knows it"),
        (records.protected(0.5, also=1.0), "Send only the mcadams:0.8 voice: the strongest"),
        (records.protected(0.5, also=3.9), "mcadams:0.8 is not enough: the strongest"),
    ],
)
def test_what_to_do_knows_what_a_anonymiser_is_worth(show, side, words):
    over = records.reading(20, bits=4.0, **side)
    start = records.start(protected=records.PROTECTED)
    tab = show(start, over, records.alert(20), {**over, "seconds": 21.0})
    reads(tab, "#todo", words)


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


# --- Records that no run writes: the page goes on with those that make sense.


@pytest.mark.parametrize("name", ["constructor", "__proto__", "toString"])
def test_a_feature_may_be_called_as_a_property_of_every_object(show, name):
    reading = records.reading(20)
    reading["features"] = {name: reading["features"]["f0"]}
    change = {"type": "change", "seconds": 19.0, "since_seconds": 15.0, "action": name}
    tab = show(records.start(), reading, {**change, "features": [name]})
    reads(tab, "#features", name)
    reads(tab, "#log", "alerts are paused until the first is back")


@pytest.mark.parametrize("ceiling", [1e12, 1e300])
def test_a_ceiling_without_end_does_not_freeze_the_tab(page, show, ceiling):
    tab = show(records.start(ceiling=ceiling, speakers=ceiling, time="yesterday"),
               *(records.reading(t, ceiling=ceiling) for t in (20, 21)))  # fmt: skip
    reads(tab, "#bits", "2.0")
    reads(tab, "#odds", "over a billion")
    # it still draws what comes next
    give(page, records.reading(30, bits=3.0, ceiling=ceiling))
    reads(tab, "#bits", "3.0")
    assert "yesterday" in tab.text_content("#about")  # it is folded


@pytest.mark.parametrize("speakers", [2.5, -3, 0, 1e300])
def test_people_that_cannot_be_counted_do_not_freeze_the_tab(show, speakers):
    tab = show(records.start(speakers=speakers), records.reading(20), records.reading(21))
    reads(tab, "#bits", "2.0")


# --- Several people: a curve and a row each.


def cells(tab: Any, row: int) -> Any:
    return tab.locator("#people-rows tr").nth(row).locator("th, td").all_inner_texts()


def test_everybody_has_a_curve_and_a_row(page, show):
    labels = [f"S{k}" for k in range(7)] + ["<img src=x onerror=alert(1)>"]
    tab = show(*records.people(labels))
    assert tab.locator("#curves path.line").count() == 8
    assert tab.locator("#curves circle.alert").count() == 1
    assert (cells(tab, 0)[0], cells(tab, 7)[0]) == ("S0", labels[7])
    heading = f"{labels[7]}, the most exposed of 8 people: "
    assert tab.inner_text("#people-curve-title").startswith(heading)
    assert cells(tab, 0)[5] == "1, first at 0:20"
    assert "S0: alert" in tab.inner_text("#people-log")
    tops = sorted(each.bounding_box()["y"] for each in tab.locator("#curves text.name").all())
    assert len(tops) == 8
    assert all(b - a > 10 for a, b in itertools.pairwise(tops))
    give(page, records.people_end(labels))
    tab.wait_for_selector("text=2.5 s of overlapping speech")
    assert cells(tab, 1)[1] == "ann, 90 %"
    assert cells(tab, 1)[6] == "95 %"
    assert tab.inner_text("#status") == "Ended"
    assert tab.said == []


# --- The page of an evaluation.

SMALLEST_LETTERS = """e => {
    const scale = e.getBoundingClientRect().width / e.viewBox.baseVal.width;
    return Math.min(...[...e.querySelectorAll('text')].map(
        t => scale * parseFloat(getComputedStyle(t).fontSize)));
}"""


@SIZES
@SCHEMES
@pytest.mark.parametrize(
    "reports", [(report(),), (report("first"), report(bits=0.4), report("third"))], ids=len
)
def test_an_evaluation_fits_and_can_be_read(visit, tmp_path, reports, size, scheme):
    save_page(list(reports), tmp_path / "page.html")
    url = (tmp_path / "page.html").as_uri()
    tab = visit(url, size, ready=False, color_scheme=scheme)
    assert tab.asked == [url], "nothing but the page itself"
    assert tab.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert EVIL in text(tab, "body")
    assert tab.locator("svg").count() == 9
    tab.click("text=More curves")
    for picture in tab.locator("svg").all():
        box = picture.bounding_box()
        assert box["width"] > 250
        assert box["height"] > 150
        assert picture.evaluate(SMALLEST_LETTERS) >= 8  # pixels of the screen, also on a phone
    ground, ink = brightness(tab), tab.evaluate("getComputedStyle(document.body).color")
    assert (ground > 380) == (scheme == "light")
    assert abs(sum(map(int, re.findall(r"\d+", ink)[:3])) - ground) > 500
    assert tab.locator("svg text").first.evaluate("e => getComputedStyle(e).fill") == ink
    headline = tab.locator("header .headline").bounding_box()
    assert headline["y"] + headline["height"] < size[1] / 2
    every = tab.locator("details table").last
    assert not every.is_visible()  # folded, but not on paper
    tab.emulate_media(media="print")
    assert every.is_visible()
    assert brightness(tab) > 700
