"""What docs/api shows can be reached after `import monitor`, and hides nothing of Python's."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.test_names import PUBLIC

PAGES = sorted((Path(__file__).resolve().parents[1] / "docs" / "api").glob("*.md"))


@pytest.mark.slow
def test_all_that_is_documented_is_an_attribute():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = re.findall(r"^::: (monitor[\w.]*)$", text, flags=re.MULTILINE)
    assert len(named) > 25
    # nothing that another test has imported may help
    code = "import monitor\n" + "".join(f"{name}\n" for name in named)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


@pytest.mark.slow
def test_every_room_is_reached():
    code = "import monitor\nfor name in dir(monitor): getattr(monitor, name)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("room", PUBLIC)
def test_a_star_import_shadows_nothing(room):
    names = import_module(room).__all__
    assert set(names) & set(dir(builtins)) == set()
    assert len(set(names)) == len(names)
