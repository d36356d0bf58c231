"""Fixtures and markers for every test."""

import os
import signal
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from monitor import Population
from tests import weights
from tests.golden.golden import Golden

CI = bool(os.environ.get("CI"))

# the machines are shared: a slow example is no failure
settings.register_profile(
    "patient",
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=CI,  # the same examples for the same code
)
settings.register_profile("quick", settings.get_profile("patient"), max_examples=8)
settings.load_profile("patient")

# a shell that runs the tests in the background lets all that they start ignore an interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[2] / "shared"

NEEDS = {
    "browser": "browser",
    "virtual_microphone": "sound",
    "ecapa": "weights",
    "shared": "speech",
}
"""The marker of a test, by a fixture that it uses."""

SLOW = ("browser", "sound", "speech", "weights")
"""Markers whose tests are slow, each of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="run slow tests too: see CONTRIBUTING.md for their needs"
    )
    parser.addoption(
        "--passed", type=Path, help="leave out the tests that this file lists, add those that pass"
    )


def pytest_configure(config: pytest.Config) -> None:
    if not config.option.markexpr and not config.getoption("all"):
        config.option.markexpr = "not slow"
    if config.option.markexpr == "not slow":  # the fast suite looks at fewer examples
        settings.load_profile("quick")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if (path := config.getoption("passed")) is not None:
        reports = terminalreporter.getreports("passed")
        passed = {report.nodeid for report in reports if report.when == "call"}
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in sorted(passed))
    if config.option.markexpr == "not slow":
        terminalreporter.write_line(
            "Not covered: browsers, sound devices, real speech, pretrained weights, peers, what "
            "takes long: pip install -e '.[all-tests]' && python -m pytest --all -n 3"
        )


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    passed: Path | None = config.getoption("passed")
    if passed is not None and passed.exists():
        before = set(passed.read_text(encoding="utf-8").splitlines())
        before -= {  # of a property more examples are tried here than there
            item.nodeid for item in items if is_hypothesis_test(getattr(item, "obj", None))
        }
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in before])
        items[:] = [item for item in items if item.nodeid not in before]
    for item in items:
        used = getattr(item, "fixturenames", ())
        for fixture in NEEDS.keys() & set(used):
            item.add_marker(NEEDS[fixture])
        if any(item.get_closest_marker(name) for name in SLOW):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    return not_skipped((yield), CI and item.config.option.markexpr != "not slow")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    return not_skipped((yield), CI and collector.config.option.markexpr != "not slow")


def not_skipped(report: Any, ci: bool) -> Any:
    """In CI whatever is chosen must run: what would be skipped, a test or a file, has failed.

    But for the fast tests: they run without extras first, and what lacks one runs in ``--all``.
    """
    if ci and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"In CI nothing is skipped. {reason}"
    return report


@pytest.fixture(scope="session", autouse=True)
def _environment() -> Iterator[None]:
    """The same for all tests, wherever they run.

    The shipped population is read once. Only the tests that ask for pretrained weights have them.
    No terminal says how wide it is.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Population, "reference", cache(Population.reference))
        for name in ("MONITOR_ECAPA", "MONITOR_WORD_LIST", "COLUMNS", "LINES"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def golden() -> Golden:
    """What public tools print, and the scores that they were given."""
    return Golden()


@pytest.fixture(scope="session")
def clips() -> Path:
    """Frames of real readers, SPEAKER/CHAPTER.npz: clips/README.md."""
    return Path(__file__).parent / "clips"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real readers beside the repository."""
    if not SHARED.is_dir():
        pytest.skip("needs real speech, in ../shared beside the repository")
    return SHARED


@pytest.fixture(scope="session")
def ecapa() -> str:
    """The folder with SpeechBrain's pretrained ECAPA-TDNN."""
    return weights.ecapa()
