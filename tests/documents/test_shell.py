from __future__ import annotations

import stat

import pytest

from monitor.documents import document, paragraphs, picture, section, warning
from monitor.errors import StoreError
from monitor.files import write_text

EVIL = "</title><script>alert(1)</script>"


def test_text_stays_text():
    made = document(
        EVIL,
        [EVIL],
        [warning(EVIL), section(EVIL, paragraphs(EVIL)), picture(EVIL, "<svg></svg>", EVIL)],
        EVIL,
    )
    assert "<script" not in made
    assert made.count("&lt;script&gt;") == 9


def test_it_fetches_nothing_and_knows_dark():
    made = document("a", [], [])
    assert not [each for each in ("http", "@import", "url(", "<script") if each in made]
    assert "prefers-color-scheme:dark" in made


def test_per_cents_stay_with_their_number():
    assert paragraphs("95 % of them", "more") == ("<p>95\N{NO-BREAK SPACE}% of them</p><p>more</p>")


def test_it_is_saved_private_or_refused(tmp_path):
    path = tmp_path / "a.html"
    write_text("text", path)
    assert path.read_text() == "text"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(StoreError, match="cannot write"):
        write_text("text", tmp_path / "no" / "a.html")
