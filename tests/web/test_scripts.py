"""The page's scripts agree with their JSDoc types, as TypeScript's compiler checks them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import monitor.web

SCRIPTS = sorted((Path(monitor.web.__file__).parent / "static").glob("*.js"))
BROWSER = Path(__file__).with_name("scripts.d.ts")
OPTIONS = (
    *("--noEmit", "--allowJs", "--checkJs", "--target", "es2022", "--module", "es2022"),
    *("--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable"),
)


def checked(scripts: list[Path], folder: Path) -> str:
    """What the compiler says of these scripts: nothing where all is well."""
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("needs TypeScript's compiler, tsc: npm install -g typescript@5")
    # no folder above may lend types of its own
    found = subprocess.run(
        [compiler, *OPTIONS, str(BROWSER), *map(str, scripts)],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return found.stdout + found.stderr


@pytest.mark.slow
def test_scripts_agree_with_their_types_and_a_wrong_one_is_found(tmp_path):
    assert len(SCRIPTS) > 10
    assert checked(SCRIPTS, tmp_path) == ""
    wrong = tmp_path / "wrong.js"
    wrong.write_text("/** @type {number} */ export const bits = 'six';\n", "utf-8")
    assert "TS2322" in checked([wrong], tmp_path)
