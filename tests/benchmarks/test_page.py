"""Benchmarks by name: what is listed, what they take, and how a page keeps its words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.page import Page, declared, merged, parser_of

ROOT = Path(__file__).resolve().parents[2]


def toy(
    page: Page, speech: Path, kept: Path | None = None, *, lengths: tuple[float, ...] = (1.0,),
    early: bool = False, name: str = "a",
) -> None:  # fmt: skip
    """A toy."""


def test_arguments_are_those_of_the_signature():
    given = vars(parser_of(toy).parse_args(["s", "--lengths", "3,10", "--early"]))
    assert (given["speech"], given["kept"]) == (Path("s"), None)
    assert (given["lengths"], given["early"], given["name"]) == ((3.0, 10.0), True, "a")
    assert given["output"] is None
    for words in ([], ["s", "--lengths", "x"], ["s", "--nothing"]):
        with pytest.raises(SystemExit):
            parser_of(toy).parse_args(words)


def test_a_table_takes_the_place_of_the_page_s_row_by_row(tmp_path, capsys):
    page = Page("toy", "python -m benchmarks toy s", tmp_path, None)
    page.table("a | b", [["x", 1], ["y", 2]])
    page.table("a | b", [["y", 3], ["z", 4]], under="More")
    text = (tmp_path / "toy.md").read_text()
    assert "python -m benchmarks toy s" in text
    (tmp_path / "toy.md").write_text(text.replace("## More", "Words.\n\n## More\n\nOthers."))
    page.table("a | b", [["y", 5]])
    page.table("a | b", [["y", 6]], under="More")
    first, more = (tmp_path / "toy.md").read_text().split("Words.")
    assert first.endswith("| a | b |\n| --- | ---: |\n| x | 1 |\n| y | 5 |\n\n")
    assert more.rstrip().endswith("| y | 6 |\n| z | 4 |")
    assert "| z | 4 |" in capsys.readouterr().out


def test_a_table_of_a_section_stands_in_it():
    page = "# T\n\n## One\n\n## Two\n\n| a | b |\n| --- | ---: |\n| x | 1 |\n"
    made = merged(page, ["a", "b"], [["x", "2"]], 1, "One")
    assert made.index("| x | 2 |") < made.index("## Two") < made.index("| x | 1 |")


def test_every_benchmark_is_listed_with_a_line_and_explains_itself():
    command = [sys.executable, "-m", "benchmarks"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    for name, each in declared().items():
        assert each.about.endswith((".", "?")), name
        assert f"{name} " in listed
    asked = subprocess.run([*command, "null_band", "-h"], cwd=ROOT, stdout=subprocess.PIPE)
    assert b"--studies" in asked.stdout
    assert subprocess.run([*command, "nobody"], cwd=ROOT, stderr=subprocess.PIPE).returncode == 2
