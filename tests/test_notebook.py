"""The notebook runs, and shows what is stored in it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def outputs(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = [each for cell in cells for each in cell.get("outputs", [])]
    return [each for each in found if each.get("name") != "stderr"]


def shown(output: dict[str, Any]) -> str:
    text = output.get("text", "")
    return text if isinstance(text, str) else "".join(text)


def test_stored_outputs_are_texts_and_one_picture_and_hold_no_sound():
    stored = outputs(json.loads(NOTEBOOK.read_text("utf-8"))["cells"])
    kinds = [kind for each in stored for kind in each.get("data", {"stream": ""})]
    assert sorted(kinds) == ["image/png", *["stream"] * 4, "text/plain"]
    assert NOTEBOOK.stat().st_size < 300_000


@pytest.mark.slow
def test_each_cell_runs_and_shows_the_stored_figures(tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    stored = outputs(json.loads(NOTEBOOK.read_text("utf-8"))["cells"])
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    made = outputs(notebook.cells)
    assert [each.get("data", {}).keys() for each in made] == [
        each.get("data", {}).keys() for each in stored
    ]
    number = r"\d+(?:\.\d+)?"
    for old, new in zip(map(shown, stored), map(shown, made), strict=True):
        assert re.sub(number, "#", new) == re.sub(number, "#", old)
        numbers = [list(map(float, re.findall(number, text))) for text in (new, old)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=0.1)
    assert list(tmp_path.iterdir()) == []
