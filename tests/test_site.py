"""The guides and the API reference as one site: whole, no broken link, nothing from outside."""

from __future__ import annotations

import html
import os
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest
from click import Option

from monitor.cli import COMMANDS, cli

pytest.importorskip("material", reason="needs the extra docs")
griffe = pytest.importorskip("griffe", reason="needs the extra docs")

ROOT = Path(__file__).resolve().parents[1]
REMOTE = re.compile(r"^(\w+:)?//")
API = sorted((ROOT / "docs" / "api").glob("*.md"))
ROOMS = sorted({name for page in API for name in re.findall(r"^::: (.+)$", page.read_text(), re.M)})
pytestmark = pytest.mark.slow


class Page(HTMLParser):
    """Links, anchors and assets of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.assets: list[str] = []
        self.classes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.classes |= set(given.get("class", "").split())
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("next", "prev", "canonical"):
            self.assets.append(given["href"])
        elif "src" in given:
            self.assets.append(given["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    files = [path for path in site.rglob("*.html") if path.name != "404.html"]  # of a server's root
    return {path.relative_to(site).as_posix(): Page(path.read_text("utf-8")) for path in files}


def broken(pages: dict[str, Page], files: set[str]) -> list[tuple[str, str]]:
    """Links within the site to a page, a file or an anchor that is not there."""
    found = []
    for name, page in pages.items():
        for link in page.links:
            if REMOTE.match(link) or link.startswith(("mailto:", "javascript:")):
                continue
            target, anchor = urldefrag(unquote(link))
            place = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            place = name if not target else place
            known = place in pages or (place in files and not anchor)
            if not known or (place in pages and anchor not in pages[place].anchors):
                found.append((name, link))
    return found


def test_every_link_leads_somewhere(site, pages):
    files = {path.relative_to(site).as_posix() for path in site.rglob("*")}
    assert broken(pages, files) == []
    assert sum(len(page.links) for page in pages.values()) > 1000


def test_the_finder_of_broken_links_can_find():
    text = '<a href="b.html#there"></a><a href="#no"></a><a href="c.txt"></a><a href="//x/y"></a>'
    pages = {"a/a.html": Page(text), "a/b.html": Page('<h1 id="there"></h1>')}
    assert broken(pages, {"a/c.txt"}) == [("a/a.html", "#no")]
    assert broken(pages, set()) == [("a/a.html", "#no"), ("a/a.html", "c.txt")]


def test_nothing_is_fetched_from_outside(site, pages):
    remote = {(n, a) for n, page in pages.items() for a in page.assets if REMOTE.match(a)}
    assert remote == set()
    assert all("mermaid" not in page.classes for page in pages.values())  # its script is remote
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        fetched = re.findall(r"@import[^;]*|url\(\s*[\"']?([^)\"']*)", text)
        assert [each for each in fetched if REMOTE.match(each) or not each] == [], style.name


def test_every_public_name_is_in_the_reference(pages):
    anchors = {anchor for page in pages.values() for anchor in page.anchors}
    for room in [
        name for name in ROOMS if name.islower() and name != "monitor" and find_spec(name)
    ]:
        names = import_module(room).__all__
        missing = [n for n in names if not anchors & {f"{room}.{n}", f"monitor.{n}"}]
        assert missing == [], room
    import monitor

    rooms = {room.split(".")[1] for room in ROOMS if room != "monitor"}
    single = {name.removeprefix("monitor.") for name in ROOMS}
    for name in monitor.__all__:
        value = getattr(monitor, name)
        home = getattr(value, "__module__", "").removeprefix("monitor.").split(".")[0]
        assert name == "__version__" or name in rooms | single or home in rooms, name


def test_every_guide_is_reached_from_the_navigation(pages):
    guides = {path.with_suffix(".html").name for path in (ROOT / "docs").glob("*.md")}
    linked = {posixpath.normpath(link) for link in pages["index.html"].links}
    assert guides <= linked | {"index.html"}


def test_the_command_line_is_what_help_says(site):
    text = html.unescape(re.sub("<[^>]+>", "", (site / "cli.html").read_text("utf-8")))
    said = subprocess.run(
        [sys.executable, "-m", "monitor", "ledger", "show", "--help"],
        cwd=ROOT, env={**os.environ, "COLUMNS": "100"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    words = said.stdout.partition("Options:")[2].split()
    assert len(words) > 10
    assert " ".join(words) in " ".join(text.split())
    top = cli.make_context("monitor", [], resilient_parsing=True)
    for name in COMMANDS:
        command = cli.get_command(top, name)
        assert command is not None
        for each in command.params:
            shown = not isinstance(each, Option) or not each.hidden
            assert not shown or all(name in text for name in each.opts if name[0] == "-")


def test_examples_are_shown_as_code(site):
    """Markdown takes >>> for three quotations within one another."""
    for path in (site / "api").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "<blockquote>" not in text, path.name
        assert 'class="highlight"' in text, path.name


def test_what_is_evaluated_with_comes_first(site):
    text = (site / "api" / "evaluate.html").read_text("utf-8")
    names = re.findall(r'<h\d id="monitor\.lab\.evaluation\.(\w+)"', text)
    assert names[:3] == ["evaluate", "ScoreMatrix", "compare"]


def described(thing: Any) -> Iterator[tuple[str, str, str]]:
    """Attributes that docstrings describe: path, the type shown, the type in the code or there."""
    for each in thing.members.values():
        if each.is_alias or not (each.is_module or each.is_class):
            continue
        for section in each.docstring.parse("google") if each.docstring else []:
            for item in section.value if section.kind.value == "attributes" else []:
                known = each.all_members.get(item.name)
                code = getattr(known, "annotation", None)
                if f"{item.name} ({item.annotation}):" in each.docstring.value:
                    code = item.annotation
                yield f"{each.path}.{item.name}", str(item.annotation), str(code)
        yield from described(each)


def test_attributes_are_shown_with_the_types_that_they_have():
    extensions = griffe.load_extensions(str(ROOT / "docs" / "examples.py"))
    package = griffe.load(
        "monitor", search_paths=[ROOT], docstring_parser="google", extensions=extensions
    )
    found = {path: (shown, code) for path, shown, code in described(package)}
    assert {path: types for path, types in found.items() if types[0] != types[1]} == {}
    assert found["monitor.stream.monitor.Monitor.recordings"][0] == "Recordings"
    assert found["monitor.types.Words.begins"] == found["monitor.types.Words.ends"]
