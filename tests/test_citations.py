"""What is cited is there: sections of the method page, and nothing outside of the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("monitor", "tests", "benchmarks", "recipes", "examples", "docs", ".ci", "")
TEXT = {".py", ".md", ".toml", ".html", ".js", ".css", ".svg", ".json", ".yml", ""}
OUTSIDE = "|".join(["METH" + "OD", "CONVEN" + "TIONS", "DES" + "IGN"])
"""Names of pages that a clone does not have."""
PAGE = "docs/" + "method.md"
SECTION = re.compile(re.escape(PAGE) + r" sections? \d+(?:(?: and | to |, )\d+)*")


def files(folder: str) -> list[Path]:
    """The files of a folder that hold text; of the repository itself those beside its folders."""
    found = (ROOT / folder).rglob("*") if folder else ROOT.glob("*")
    return [path for path in found if path.suffix in TEXT and path.is_file()]


def one_line(text: str) -> str:
    """A citation may go over the end of a line, of a comment too."""
    return " ".join(re.sub(r"\n\s*#", " ", text).split())


def outside(text: str) -> list[str]:
    """What a text cites of pages outside of the repository."""
    text = one_line(text)
    found = re.findall(rf"\b(?:{OUTSIDE})(?:\.md\b| sections? \d+| \d+\b)", text)
    return found + re.findall(r"\.\./shared/[\w/]*\.md\b", text)


def cited(text: str) -> set[int]:
    """Numbers of the sections of the method page that a text cites."""
    found = SECTION.findall(one_line(text))
    return {int(number) for each in found for number in re.findall(r"\b\d+\b", each)}


METHOD = re.findall(r"^## (\d+)\. ", (ROOT / PAGE).read_text(encoding="utf-8"), flags=re.MULTILINE)
"""Numbers of its headings, in order."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_outside_of_the_repository_is_cited(folder):
    assert (found := files(folder))
    assert {path: pages for path in found if (pages := outside(path.read_text("utf-8")))} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_section_that_is_cited_is_there(folder):
    for path in files(folder):
        assert cited(path.read_text("utf-8")) <= set(map(int, METHOD)), path


def test_the_program_cites_sections_and_not_the_page():
    for path in files("monitor"):
        text = one_line(path.read_text("utf-8"))
        assert text.count(PAGE) == len(SECTION.findall(text)), path


def test_the_sections_keep_their_numbers():
    assert [str(number) for number in range(1, 16)] == METHOD


def test_the_finders_can_find():
    name = OUTSIDE.split("|")[0]
    text = f"as {name} section 3 and {name}\n    # 7 have it; see {name}.md"
    assert outside(text) == [f"{name} section 3", f"{name} 7", f"{name}.md"]
    assert outside(f"_{name} = 3, the {name.lower()} of section 3") == []
    assert outside("../shared/" + "golden/README.md")
    assert cited(f"{PAGE}\n    section 6, {PAGE} sections 3 to 5; page 9") == {3, 5, 6}
