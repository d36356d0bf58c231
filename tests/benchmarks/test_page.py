"""Benchmarks by name: what is listed, what they take, and how a page keeps its words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.page import Page, declared

ROOT = Path(__file__).resolve().parents[2]


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


def test_every_benchmark_is_listed_with_a_line_and_explains_itself():
    command = [sys.executable, "-m", "benchmarks"]
    listed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    for name, each in declared().items():
        assert each.about.endswith((".", "?")), name
        assert f"{name} " in listed
    asked = subprocess.run([*command, "null_band", "-h"], cwd=ROOT, stdout=subprocess.PIPE)
    assert b"--studies" in asked.stdout
    assert subprocess.run([*command, "nobody"], cwd=ROOT, stderr=subprocess.PIPE).returncode == 2
