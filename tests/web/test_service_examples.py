"""The examples of running the monitor as a service say what it has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from monitor.cli import cli

SERVICE = Path(__file__).resolve().parents[2] / "examples" / "service"


def options(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("-")}


def known(command: str) -> set[str]:
    made = cli.get_command(None, command)  # type: ignore[arg-type]
    assert made is not None
    return {name for each in made.params for name in (*each.opts, *each.secondary_opts)}


def test_the_compose_file_asks_for_options_that_there_are():
    made = yaml.safe_load((SERVICE / "compose.yaml").read_text("utf-8"))
    service = made["services"]["monitor"]
    command, *words = service["command"]
    assert options(words) <= known(command)
    assert set(service["secrets"]) == set(made["secrets"])
    for secret in service["secrets"]:
        assert any(word.endswith(f"/run/secrets/{secret}") for word in words)
    assert (SERVICE / service["build"] / "Dockerfile").resolve().is_file()
    address = next(word for word in words if word.startswith("--web="))
    assert all(port.partition(" ")[0].endswith(address[-5:]) for port in service["ports"])


def test_the_unit_is_one(tmp_path):
    unit = (SERVICE / "monitor-serve.service").read_text("utf-8")
    (line,) = re.findall(r"^ExecStart=(.+)$", unit, re.M)
    program, command, *words = line.split()
    assert program.endswith("/bin/monitor")
    assert options(words) <= known(command)
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("needs systemd-analyze")
    path = tmp_path / "monitor-serve.service"
    path.write_text(unit.replace(program, "/bin/true"))
    done = subprocess.run(
        [verify, "verify", "--user", "--man=no", str(path)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    ours = [each for each in done.stderr.splitlines() if "monitor-serve" in each]
    assert ours == [], done.stderr
