"""Names of a package that are imported when first asked for."""

from __future__ import annotations

import ast
from pathlib import Path
from pkgutil import resolve_name

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


def test_the_declarations_for_type_checkers_are_the_names_that_are_found():
    stub = Path(monitor.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    declared = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(declared) == {*monitor.__all__, *monitor._ROOMS}
    assert len(monitor.__all__) <= 25
    for name, home in declared.items():
        assert getattr(monitor, name) is resolve_name(home), name
