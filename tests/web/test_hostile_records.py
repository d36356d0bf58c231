"""Records that no run writes, in a real browser: the page goes on with those that make sense."""

from __future__ import annotations

import pytest

from monitor.web.page import Page
from tests.web import records
from tests.web.test_browser import give, page, reads, visit

__all__ = ["page", "visit"]


@pytest.mark.parametrize("name", ["constructor", "__proto__", "toString"])
def test_a_feature_may_be_called_as_a_property_of_every_object(page, visit, name):
    reading = records.reading(20)
    reading["features"] = {name: reading["features"]["f0"]}
    change = {"type": "change", "seconds": 19.0, "since_seconds": 15.0, "action": name}
    give(page, records.start(), reading, {**change, "features": [name]})
    tab = visit(page.url)
    reads(tab, "#features", name)
    reads(tab, "#log", "alerts rest until the first is back")
    assert tab.problems == []


@pytest.mark.parametrize("ceiling", [1e12, 1e300])
def test_a_ceiling_without_end_does_not_freeze_the_tab(visit, ceiling):
    with Page() as page:
        give(page, records.start(ceiling=ceiling, speakers=ceiling, time="yesterday"))
        give(page, records.reading(20, ceiling=ceiling), records.reading(21, ceiling=ceiling))
        tab = visit(page.url)
        reads(tab, "#bits", "2.0")
        reads(tab, "#odds", "over a billion")
        # it still draws what comes next
        give(page, records.reading(30, bits=3.0, ceiling=ceiling))
        reads(tab, "#bits", "3.0")
        assert "yesterday" in tab.text_content("#about")  # it is folded
        assert tab.problems == []


@pytest.mark.parametrize("speakers", [2.5, -3, 0, 1e300])
def test_people_that_cannot_be_counted_do_not_freeze_the_tab(page, visit, speakers):
    give(page, records.start(speakers=speakers), records.reading(20), records.reading(21))
    tab = visit(page.url)
    reads(tab, "#bits", "2.0")
    assert tab.problems == []
