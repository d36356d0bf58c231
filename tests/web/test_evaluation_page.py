"""The page of an evaluation in a real browser."""

from __future__ import annotations

import re

import pytest

from monitor.lab.evaluation.report.document import save_page
from tests.lab.evaluation.made import EVIL, report

DESKTOP, PHONE = (1280, 900), (390, 844)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    save_page([report()], folder / "one.html")
    reports = [report("first"), report(bits=0.4), report("third")]
    save_page(reports, folder / "several.html")
    return folder


@pytest.mark.parametrize("name", ["one", "several"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read(browser, saved, name, size, scheme):
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
    )
    tab = context.new_page()
    problems, asked = [], []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("dialog", lambda dialog: problems.append(dialog.message))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto((saved / f"{name}.html").as_uri())
    try:
        assert len(asked) == 1, "nothing but the page itself"
        assert tab.evaluate("document.documentElement.scrollWidth") <= size[0]
        assert EVIL in re.sub(r"\s+", " ", tab.inner_text("body"))
        assert tab.locator("svg").count() == 9
        for picture in tab.locator("svg").all():
            box = picture.bounding_box()
            assert box["width"] > 250
            assert box["height"] > 150
            # letters that can be read, also on a phone
            assert smallest(picture) >= 8
        ink, ground = (colour(tab, name) for name in ("color", "backgroundColor"))
        assert (sum(ground) > 380) == (scheme == "light")
        assert abs(sum(ink) - sum(ground)) > 500
        drawn = tab.locator("svg text").first.evaluate("e => getComputedStyle(e).fill")
        assert [int(part) for part in re.findall(r"\d+", drawn)[:3]] == ink
        assert problems == []
    finally:
        context.close()


def colour(tab, name):
    text = tab.evaluate("n => getComputedStyle(document.body)[n]", name)
    return [int(part) for part in re.findall(r"\d+", text)[:3]]


def smallest(picture):
    """Height of the smallest letters, in pixels of the screen."""
    return picture.evaluate(
        "e => { const scale = e.getBoundingClientRect().width / e.viewBox.baseVal.width;"
        "return Math.min(...[...e.querySelectorAll('text')].map("
        "t => scale * parseFloat(getComputedStyle(t).fontSize))); }"
    )
