"""Names of a package that are imported when first asked for."""

from __future__ import annotations

import pytest

import monitor
from monitor.lazy import lazily


def test_a_name_is_imported_from_its_module():
    find, names = lazily("monitor", {"errors": "MonitorError"}, ["types"])
    assert find("MonitorError") is monitor.MonitorError
    assert find("types") is monitor.types
    assert {"MonitorError", "types"} <= {*names()}


def test_what_is_in_no_list_is_no_attribute():
    find, _ = lazily("monitor", {"errors": "MonitorError"})
    with pytest.raises(AttributeError, match="no attribute 'Old'"):
        find("Old")
