"""What a test needs is known before it runs, and CI skips nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import not_skipped, pytest_collection_modifyitems


@pytest.mark.parametrize(("ci", "outcome"), [(True, "failed"), (False, "skipped")])
def test_what_is_skipped_has_failed_in_ci(ci, outcome):
    skipped = ("tests/test_x.py", 7, "Skipped: needs a microphone")
    report = pytest.TestReport("test_x", ("", 0, ""), {}, "skipped", skipped, "setup")
    found = not_skipped(report, ci)
    assert found.outcome == outcome
    assert "needs a microphone" in str(found.longrepr)


def test_an_expected_failure_is_no_skip():
    report = pytest.TestReport("test_x", ("", 0, ""), {}, "skipped", None, "call")
    report.wasxfail = "a bug"
    assert not_skipped(report, True).outcome == "skipped"


def test_what_a_test_needs_is_known_by_its_fixtures(request):
    test = pytest.Function.from_parent(request.node.parent, name="test_page", callobj=lambda: None)
    test.fixturenames.append("browser")
    pytest_collection_modifyitems([test])
    assert {mark.name for mark in test.iter_markers()} == {"browser", "slow"}


def test_what_is_slow_is_said_once(pytestconfig):
    page = Path(pytestconfig.rootpath, "docs", "testing.md").read_text("utf-8").replace("`", "")
    (slow,) = [text for text in pytestconfig.getini("markers") if text.startswith("slow: ")]
    assert f"| slow | {slow.removeprefix('slow: ')} |" in page
