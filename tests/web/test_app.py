"""What the server answers is what SECURITY.md says, path by path."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
from starlette.applications import Starlette

from monitor.web.guard import Guard
from monitor.web.hub import Hub
from monitor.web.page import make_app
from tests.web import records

SECURITY = (Path(__file__).resolve().parents[2] / "SECURITY.md").read_text(encoding="utf-8")


def listed() -> dict[str, str]:
    """Each path in the table of SECURITY.md, and what a reader without the token gets there."""
    section = SECURITY.split("## What the page's server answers")[1].split("\n## ")[0]
    rows = [row.split("|") for row in section.splitlines() if row.startswith("| `")]
    return {path: row[3].strip() for row in rows for path in re.findall(r"`(/[^`]*)`", row[1])}


def test_every_route_is_in_the_list_and_no_other():
    app = make_app(Hub(), "127.0.0.1")
    assert isinstance(app, Guard)
    inner = app._app
    assert isinstance(inner, Starlette)
    assert {getattr(route, "path", "") for route in inner.routes} == listed().keys()


def test_without_the_token_what_needs_it_tells_nothing(guarded):
    for path, needs in listed().items():
        method = "POST" if path in ("/login", "/logout") else "GET"
        answer = httpx.request(method, guarded.url.rstrip("/") + path, timeout=60.0)
        assert records.start()["watch"] not in answer.text.split()
        assert (answer.status_code == 401) == (needs == "needed" or path in ("/", "/login"))


def test_everything_else_is_not_there(page):
    page.write(records.start())
    for path in ("records", "api", "docs", "openapi.json", "favicon.ico", "static/../app.py"):
        assert httpx.get(page.url + path, timeout=60.0).status_code == 404
