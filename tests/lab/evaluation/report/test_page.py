from __future__ import annotations

import re
import stat
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from monitor.errors import StoreError, UsageError
from monitor.lab.evaluation.family import families
from monitor.lab.evaluation.report.document import Evaluation, save_page
from monitor.lab.plots.evaluation import Curves, pictures
from monitor.lab.report.html import render_html
from tests.lab.evaluation.made import EVIL, curves, report

pytestmark = pytest.mark.slow

DRAWINGS = [each for family in families() for each in family.drawings]


class Reader(HTMLParser):
    """What a browser would find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


@cache
def one():
    return render_html(Evaluation([report()]).page())


@cache
def several():
    reports = [report("first"), report(bits=0.4), report("third", speakers=50)]
    return render_html(Evaluation(reports).page())


@pytest.mark.parametrize("made", [one, several])
def test_it_stands_alone(made):
    text = made()
    assert len(text) < 300_000
    reader = Reader(text)
    assert {"script", "link", "img", "iframe", "object", "form"}.isdisjoint(
        tag for tag, _ in reader.tags
    )
    for _, attributes in reader.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("href", "src", "action"):
            assert (attributes.get(name) or "#").startswith("#")
    assert "://" not in text
    assert "@import" not in text
    assert "url(" not in re.sub(r"url\(#", "", text)
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("made", [one, several])
def test_names_are_never_markup(made):
    text = made()
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    assert "".join(Reader(text).texts).count(EVIL) >= 3


def test_everything_is_on_it():
    text = "".join(Reader(one()).texts)
    for words in (
        "as if only 31 were left",
        "1,000 trials of 100 speakers",
        "1.510 to 1.890",
        "27.9 %",
        "Similarity rank disclosure",
        "Where each metric misleads",
        "A note.",
        "Needs 10 trials.",
        "On average.",
        "Equal scores: spread (MeanD, rank model).",
        "inf",
    ):
        assert words in text, words
    assert one().count("<svg") == 9


def test_several_systems_share_the_pictures():
    text = several()
    assert text.count("<svg") == 9
    assert "var(--s3)" in text
    assert '<b class="differs">*</b>' in text
    assert "different numbers of speakers" in text


def test_pictures_are_small_well_formed_and_the_same_each_time():
    made = pictures([curves("a"), curves("b")], DRAWINGS)
    assert made[0] == pictures([curves("a"), curves("b")], DRAWINGS)[0]
    for picture in made:
        assert len(picture.svg) < 40_000
        ElementTree.fromstring(picture.svg)
        assert not re.search(r"#[0-9a-f]{6}\b", picture.svg), "a colour that is not the page's"
        assert picture.title
        assert picture.caption


def test_what_a_system_has_not_is_left_out():
    assert pictures([Curves("a", 10, 90)], DRAWINGS) == ()
    assert len(pictures([Curves("a", 10, 90), curves("b")], DRAWINGS)) == 9


def test_it_is_written_at_once_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    save_page([report("a")], path)
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o400
    with pytest.raises(StoreError, match="cannot write"):
        save_page([report("a")], tmp_path / "no" / "report.html")


def test_systems_need_names_of_their_own():
    for reports in ([], [report("a"), report("a")]):
        with pytest.raises(UsageError):
            Evaluation(reports).page()
