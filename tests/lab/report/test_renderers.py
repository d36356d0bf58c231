from monitor.cli.options import made_console
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
from monitor.lab.report.renderers import print_document, render_csv, render_html, render_latex
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
        Table.from_numbers([EVIL, EVIL], [[EVIL, EVIL]], title=EVIL, notes=[EVIL]),
        Section(EVIL, [Table.from_numbers([], [])]),
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
