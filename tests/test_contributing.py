"""What CONTRIBUTING.md says a new part touches is what it touches: a toy of it is added.

A copy of the package and its documents gets exactly the files that are listed; the toy then runs in
a process of its own.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toys import TOYS

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("monitor", "docs", "tests", "benchmarks")
FILES = ("pyproject.toml", "conftest.py", "README.md", "SECURITY.md", "CONTRIBUTING.md")


@pytest.mark.slow
@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.name)
def test_it_is_added_by_the_files_that_are_listed(toy, tmp_path):
    home = tmp_path / "checkout"
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "*.png")
        shutil.copytree(ROOT / name, home / name, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, home / name)
    before = contents(home)
    for path, text in toy.new.items():
        (home / path).write_text(text, encoding="utf-8")
    for path, edits in toy.changed.items():
        text = before[path].decode()
        for old, new in zip(edits[::2], edits[1::2], strict=True):
            assert text.count(old) == 1, path
            text = text.replace(old, new)
        (home / path).write_text(text, encoding="utf-8")
    touched = {path for path, data in contents(home).items() if before.get(path) != data}
    assert touched == {*toy.new, *toy.changed}
    page = before["CONTRIBUTING.md"].decode()
    table = page.partition(f"### {toy.section}\n")[2].partition("\n### ")[0]
    listed = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    assert touched == {path.replace("NAME", toy.name) for path in listed}
    program = f"import monitor\nassert monitor.__file__.startswith({str(home)!r})\n{toy.works}"
    run(home, "-c", program)


def contents(home: Path) -> dict[str, bytes]:
    """Every file, by its path."""
    files = (path for path in home.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in files}


def run(home: Path, *arguments: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=home, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
