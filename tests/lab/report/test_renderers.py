from __future__ import annotations

import pytest

from monitor.cli.options import made_console
from monitor.lab.report.export import render_csv, render_latex
from monitor.lab.report.html import render_html
from monitor.lab.report.model import (
    Block,
    Bullets,
    Columns,
    Definitions,
    Document,
    Figure,
    Heading,
    Paragraphs,
    Picture,
    Section,
    Table,
)
from monitor.lab.report.terminal import print_document, print_table
from tests.lab.reading import read_alone

EVIL = "</title><script>alert(1)</script>"
TABLE = Table(
    [Heading("Figure"), Heading("a", "number", 1), Heading("b", "number", 2),
     Heading("Note", "note")],
    [
        ["first", Figure("x.y", "Y", 0.5, "share", low=0.1, high=0.7), None, "why"],
        ["other", Figure("x.z", "Z", -2.5, "bits"), "1.0\n0.9 to 1.1", "why"],
    ],
    marks={(0, 1): "\N{DEGREE SIGN}*"},
)  # fmt: skip


def evil() -> Document:
    blocks: list[Block] = [
        Paragraphs([EVIL]),
        Bullets([EVIL]),
        Bullets([EVIL], "code"),
        Definitions([(EVIL, EVIL)]),
        Table.of([EVIL, EVIL], [[EVIL, EVIL]], title=EVIL, notes=[EVIL]),
        Section(EVIL, [Table.of([], [])]),
    ]
    picture = Picture(EVIL, "<svg></svg>", EVIL, [EVIL])
    return Document(EVIL, [EVIL], [Section(EVIL, blocks), Columns([picture])], [EVIL], EVIL)


def test_text_stays_text_and_nothing_is_fetched():
    page = render_html(evil())
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 22
    assert "<svg></svg>" in page
    page = render_html(Document("a", [], []))
    read_alone(page)
    assert page.startswith("<!doctype html>")
    assert "prefers-color-scheme:dark" in page


def test_a_page_has_figures_with_limits_marks_and_real_minus_signs():
    page = render_html(Document("a", ["95 %"], [Section("s", [TABLE, Bullets([])])]))
    assert page.count('<th scope="row">') == 2
    assert '50.0 %<b class="private">°</b><b class="differs">*</b><small>10.0' in page
    assert ">\N{MINUS SIGN}2.500<" in page
    assert "<small>0.9\N{NO-BREAK SPACE}to 1.1</small>" in page
    assert "<p>95\N{NO-BREAK SPACE}%</p>" in page
    assert "<ul" not in page


@pytest.mark.parametrize(("width", "headings"), [("80", 1), ("40", 2)])
def test_a_wide_table_is_split_where_there_is_no_room(width, headings, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    columns = [*TABLE.columns[:3], Heading("c", "number"), TABLE.columns[3]]
    rows = [[*row[:3], "-1 to 1", row[3]] for row in TABLE.rows]
    table = Table(columns, rows, marks=TABLE.marks, wide=True)
    print_table(table, made_console(80))
    shown = capsys.readouterr().out
    assert shown.count("Figure") == headings
    assert "50.0 %°*" in shown
    assert shown.count("1 why") == 1


def test_terminals_get_everything_but_pictures(capsys):
    print_document(evil(), made_console(200))
    assert capsys.readouterr().out.count(EVIL) == 16


def test_csv_has_all_digits_and_latex_marks():
    assert render_csv(TABLE) == (
        'Figure,a,b,Note\nfirst,0.5,,why\nother,-2.5,"1.0\n0.9 to 1.1",why\n'
    )
    latex = render_latex(TABLE, "95 % & more.")
    assert "first & \\textbf{50.0\\,\\%}$^*$ {\\small [10.0, 70.0\\,\\%]} & -- \\\\" in latex
    assert "95 \\% \\& more. In brackets" in latex
