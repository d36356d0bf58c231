"""The site of the guides, opened from a folder: it fits a phone, and its search finds answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = {
    "no microphone": "there-is-no-microphone-what-now",
    "bits too low": "why-are-my-bits-so-low",
    "negative bits": "what-do-negative-bits-mean",
    "nobody enrolled": "why-is-probably-nobody-enrolled",
    "why 13.3": "why-do-bits-stop-at-133",
    "exit status 3 and 4": "what-do-exit-status-3-and-4-mean",
    "page https": "why-does-the-page-need-https",
    "when does an alert clear": "when-does-an-alert-clear",
    "is my audio stored": "is-my-audio-stored",
    "delete my template": "how-do-i-delete-my-template",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder]
    subprocess.run(command, cwd=ROOT, check=True, env={
        **os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"})  # fmt: skip
    return folder


def test_from_a_folder_it_fits_a_phone_and_fetches_nothing(browser, site):
    context = browser.new_context(viewport={"width": 390, "height": 844}, offline=True)
    tab = context.new_page()
    outside = []
    tab.on("request", lambda request: outside.append(request.url))
    pages = [path for path in sorted(site.glob("*.html")) if path.name != "404.html"]
    assert len(pages) > 40
    for path in pages:
        tab.goto(path.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, path.name
        lost = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
        assert tab.evaluate(lost) == [], path.name
    context.close()
    assert [url for url in outside if not url.startswith(("file:", "data:", "blob:"))] == []


def test_from_a_folder_its_search_finds_the_ten_questions(browser, site):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    tab = context.new_page()
    tab.goto((site / "index.html").as_uri())
    for question, answer in QUESTIONS.items():
        tab.fill(".md-search__input", "")
        tab.click(".md-search__input")
        tab.keyboard.type(question)
        link = tab.locator(".md-search-result__item").nth(0).locator(f"a[href*='#{answer}']")
        link.wait_for(state="attached", timeout=10_000)
    context.close()
