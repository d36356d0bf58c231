"""What a test needs is known before it runs, and CI skips nothing."""

from __future__ import annotations

import os
import subprocess
import sys

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
    pytest_collection_modifyitems(request.config, [test])
    assert {mark.name for mark in test.iter_markers()} == {"browser", "slow"}


@pytest.mark.slow
def test_without_the_other_extras_tests_are_skipped_and_none_is_in_error(pytestconfig):
    """As after ``pip install -e '.[dev]'``: what the other extras bring cannot be imported."""
    names = ["torch", "torchaudio", "torchyin", "speechbrain", "onnx", "onnxruntime", "pyworld",
             "pocketsphinx", "lir", "legal_eval", "chimera_voice", "parselmouth"]  # fmt: skip
    code = f"""if True:
        import sys, pytest
        from importlib.machinery import PathFinder
        found = PathFinder.find_spec
        PathFinder.find_spec = lambda name, *more: (
            None if name.partition(".")[0] in {names} else found(name, *more))
        sys.exit(pytest.main(["--collect-only", "-qq", "-rs", "-p", "no:cacheprovider"]))
    """
    apart_from_ci = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=pytestconfig.rootpath, capture_output=True, text=True,
        env=apart_from_ci,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert "needs the extra training" in done.stdout
