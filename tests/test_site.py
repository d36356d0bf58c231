"""The guides and the API reference as one site: whole, and nothing from outside.

``mkdocs build --strict`` fails at a link or an anchor that leads nowhere (``.ci/run``).
"""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import pytest

import monitor
from monitor.cli import COMMANDS
from tests.test_names import DOCUMENTED, PUBLIC

pytest.importorskip("material", reason="needs the extra docs")
pytest.importorskip("griffe", reason="needs the extra docs")

ROOT = Path(__file__).resolve().parents[1]
REMOTE = re.compile(r"^(\w+:)?//")
pytestmark = pytest.mark.slow


class Page(HTMLParser):
    """Anchors and assets of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.assets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "link" and given.get("rel") not in ("next", "prev", "canonical"):
            self.assets.append(given["href"])
        elif "src" in given:
            self.assets.append(given["src"])
        if "mermaid" in given.get("class", "").split():
            self.assets.append("//mermaid")  # its script is remote


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {path.name: Page(path.read_text("utf-8")) for path in site.rglob("*.html")}


def test_nothing_is_fetched_from_outside(site, pages):
    assert sum(len(page.assets) for page in pages.values()) > 100
    assert {a for page in pages.values() for a in page.assets if REMOTE.match(a)} == set()
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        fetched = re.findall(r"@import[^;]*|url\(\s*[\"']?([^)\"']*)", text)
        assert [each for each in fetched if REMOTE.match(each) or not each] == [], style.name


def test_every_public_name_and_command_is_in_the_reference(site, pages):
    anchors = {anchor for page in pages.values() for anchor in page.anchors}
    for room in set(PUBLIC) & set(DOCUMENTED) - {"monitor"}:
        names = import_module(room).__all__
        missing = [n for n in names if not anchors & {f"{room}.{n}", f"monitor.{n}"}]
        assert missing == [], room
    homes = {name.split(".")[1] for name in DOCUMENTED if name != "monitor"}
    for name in monitor.__all__:
        home = getattr(getattr(monitor, name), "__module__", "").removeprefix("monitor.")
        assert name == "__version__" or name in homes or home.split(".")[0] in homes, name
    text = (site / "cli.html").read_text("utf-8")
    assert [name for name in COMMANDS if f"monitor {name}" not in text] == []
    for path in (site / "api").glob("*.html"):
        # Markdown takes >>> for three quotations within one another
        assert "<blockquote>" not in path.read_text(encoding="utf-8"), path.name
