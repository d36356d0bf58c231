"""The names that people import, and what a command has not imported by a moment."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest
import soundfile

import monitor
from tests.sounds import RATE, synthetic

ROOT = Path(__file__).resolve().parents[1]
API = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
DOCUMENTED = re.findall(r"^::: (monitor[\w.]*)$", API, flags=re.MULTILINE)


def loaded(program: str) -> tuple[list[str], set[str]]:
    """What a fresh interpreter prints, and the modules that it has loaded in the end."""
    code = f"""
import json, sys
try:
    exec({program!r}, {{}})
except SystemExit as left:
    assert not left.code, left.code
print()
print(json.dumps([*sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *lines, modules = done.stdout.splitlines()
    return [line for line in lines if line], set(json.loads(modules))


@pytest.mark.slow
def test_all_that_is_documented_is_an_attribute():
    assert len(DOCUMENTED) > 25
    # nothing that another test has imported may help
    loaded("\n".join(["import monitor", *DOCUMENTED]))
    loaded("import monitor\nfor name in dir(monitor): getattr(monitor, name)")


def test_the_declarations_for_type_checkers_are_the_names_that_are_found():
    stub = Path(monitor.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    declared = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(declared) == {*monitor.__all__, *monitor._ROOMS} <= {*dir(monitor)}
    assert len(monitor.__all__) <= 26
    for name, home in declared.items():
        assert getattr(monitor, name) is resolve_name(home), name
    space: dict[str, object] = {}
    exec("from monitor import *", space)
    assert {*monitor.__all__} <= space.keys()
    with pytest.raises(AttributeError, match="no attribute 'Monitors'"):
        _ = monitor.Monitors  # type: ignore[attr-defined]


HEAVY = {"torch", "river", "matplotlib", "rich", "scipy", "soundfile", "soxr", "_webrtcvad"}


def test_import_and_help_are_light():
    _, modules = loaded("import monitor")
    assert not any(module.split(".")[0] in {*HEAVY, "numpy"} for module in modules)
    _, modules = loaded("from monitor.cli import main; main(['--help'])")
    assert not any(module.split(".")[0] in HEAVY for module in modules)


SLOW = {
    *("river", "sklearn", "sqlalchemy", "pandas"),
    *("matplotlib", "torch", "speechbrain", "sqlite3", "http.client", "ssl"),
}
"""None of them is needed for pitch, however much is installed; river is once there is a change to
look for. scipy.signal filters the sound, and imports the rest of scipy."""
UNUSED = {"rich", "monitor.sources.people", "monitor.transcripts.turns"}
"""Of a recording of one person, without a terminal."""


@pytest.mark.slow
@pytest.mark.parametrize("features", ["f0", "f0,phones,voice"])
def test_the_first_reading_comes_before_anything_slow(tmp_path, features):
    soundfile.write(tmp_path / "short.wav", synthetic(5.0), RATE)
    asked = ["replay", str(tmp_path / "short.wav"), "--features", features, "--jsonl", "-"]
    lines, modules = loaded(f"from monitor.cli import main; main({asked})")
    assert modules & (SLOW | UNUSED) == set()
    assert sum('"type":"reading"' in line for line in lines) == 5
    assert '"usable":0.0' not in lines[-2]  # pitch was heard
