"""What the server answers is what SECURITY.md says, path by path."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
from starlette.applications import Starlette

from monitor.serve.page import make_app as make_listening_app
from monitor.serve.session import ServeSettings
from monitor.serve.templates import TemplateFolder
from monitor.web.guard import Access, Guard
from monitor.web.hub import Hub
from monitor.web.page import make_app
from tests.records import event
from tests.web import records

SECURITY = (Path(__file__).resolve().parents[2] / "SECURITY.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The cells of a table of SECURITY.md."""
    section = SECURITY.split(f"## {heading}")[1].split("\n## ")[0]
    return [row.split("|") for row in section.splitlines() if row.startswith("| `")]


def listed() -> dict[str, str]:
    """Each path in the table of SECURITY.md, and what a reader without the token gets there."""
    rows = table("What the page's server answers")
    return {path: row[3].strip() for row in rows for path in re.findall(r"`(/[^`]*)`", row[1])}


def test_every_route_is_in_the_list_and_no_other():
    app = make_app(Hub(), "127.0.0.1")
    assert isinstance(app, Guard)
    inner = app._app
    assert isinstance(inner, Starlette)
    assert {getattr(route, "path", "") for route in inner.routes} == listed().keys()


def test_every_route_of_the_page_that_listens_is_in_its_list(tmp_path):
    settings = ServeSettings(TemplateFolder(tmp_path))
    app, _ = make_listening_app(settings, "127.0.0.1", Access("correct horse battery"))
    assert isinstance(app, Guard)
    inner = app._app
    assert isinstance(inner, Starlette)
    routes = {getattr(route, "path", "").partition("/{")[0] for route in inner.routes}
    rows = table("What the page that listens answers")
    paths = {f"/{path}" for row in rows for path in re.findall(r"`/(\w+)", row[1])}
    assert routes - listed().keys() <= paths <= routes


def test_without_the_token_what_needs_it_tells_nothing(guarded):
    for path, needs in listed().items():
        method = "POST" if path in ("/login", "/logout") else "GET"
        answer = httpx.request(method, guarded.url.rstrip("/") + path, timeout=60.0)
        assert records.start()["watch"] not in answer.text.split()
        assert (answer.status_code == 401) == (needs == "needed" or path in ("/", "/login"))


def test_everything_else_is_not_there(page):
    page.write(event(records.start()))
    for path in ("records", "api", "docs", "openapi.json", "favicon.ico", "static/../app.py"):
        assert httpx.get(page.url + path, timeout=60.0).status_code == 404
