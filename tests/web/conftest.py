from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from monitor.web.page import Page
from tests.records import event
from tests.web import records

SECRET = "correct horse battery"
PATIENCE = 120_000  # milliseconds: the machine may be busy
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip


@pytest.fixture(scope="module")  # its loop is in the way of others
def browser() -> Iterator[Any]:
    """A real Chromium."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs chromium (Debian: apt-get install chromium)")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture
def page() -> Iterator[Page]:
    with Page() as made:
        yield made


@pytest.fixture
def guarded() -> Iterator[Page]:
    with Page(token=SECRET) as made:
        made.write(event(records.start()))
        yield made
