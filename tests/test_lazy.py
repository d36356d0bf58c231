"""Names of a package that are imported when first asked for, and those that have a new one."""

from __future__ import annotations

import pytest

import monitor
from monitor.lazy import lazily, warn_renamed


def test_an_old_name_gives_what_the_new_one_does_and_says_when_it_goes():
    find, names = lazily(
        "monitor", {"errors": "MonitorError"}, renamed={"Old": ("MonitorError", "2.0")}
    )
    said = r"monitor\.Old is called monitor\.MonitorError now; the old name goes in version 2\.0"
    with pytest.warns(DeprecationWarning, match=said):
        assert find("Old") is monitor.MonitorError
    assert "Old" not in names()


def test_the_warning_names_the_line_that_used_the_old_name():
    def measure_voice() -> None:
        warn_renamed("measure_voice", "measure", "2.0")

    with pytest.warns(DeprecationWarning, match=r"measure_voice .* measure .* 2\.0") as told:
        measure_voice()
    assert told[0].filename == __file__


def test_what_is_in_no_list_is_no_attribute():
    find, _ = lazily("monitor", {"errors": "MonitorError"})
    with pytest.raises(AttributeError, match="no attribute 'Old'"):
        find("Old")
