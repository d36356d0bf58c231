"""monitor serve."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest


@contextmanager
def serving(folder: Path, *more: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real server that keeps templates there; its process, and its address with the token."""
    command = [sys.executable, "-m", "monitor", "serve", "--web", "0", "--data", folder, *more]
    with subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().removeprefix("open ").strip()
        finally:
            process.terminate()


@pytest.mark.parametrize("more", [[], ["--key", "page.key"], ["--certificate", "page.pem"]])
def test_elsewhere_is_refused_in_a_line_without_a_certificate(run, tmp_path, more):
    result = run("serve", "--web", "0.0.0.0:0", "--data", tmp_path / "people", *more)
    assert result.code == 2
    assert "certificate" in result.complaint or "page.pem" in result.complaint
    assert list(tmp_path.iterdir()) == []


def test_what_killed_saves_left_goes_at_the_start(tmp_path):
    left = tmp_path / ".Ann.npz.abcdefgh.unfinished"
    left.write_bytes(b"a template")
    with serving(tmp_path) as (_, url):
        assert url.startswith("http://127.0.0.1:")
        assert not left.exists()


def test_the_folder_of_templates_is_ours_alone(tmp_path):
    data = tmp_path / "people"
    data.mkdir()
    data.chmod(0o777)
    (data / "Ann.npz").symlink_to("nowhere")  # broken
    (data / "Bob.npz").mkdir()
    with serving(data) as (_, url):
        assert url.startswith("http://127.0.0.1:")
        with httpx.Client(base_url=url.partition("#")[0]) as client:
            client.post("login", data={"token": url.partition("#")[2]})
            assert client.get("people").json() == []
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_private_is_refused_in_a_line(run, tmp_path):
    link, file, shared = tmp_path / "link", tmp_path / "file", tmp_path / "shared"
    link.symlink_to("nowhere")
    file.touch()
    shared.mkdir()
    shared.chmod(0o777)
    (shared / "letter.txt").touch()
    refusals = {link: "is a link to a folder that is not there", file: "is no folder",
                shared: "holds more than templates"}  # fmt: skip
    if os.geteuid() == 0:
        (foreign := tmp_path / "foreign").mkdir(0o755)
        os.chown(foreign, 65534, 65534)
        refusals[foreign] = "belongs to"
    for folder, words in refusals.items():
        result = run("serve", "--web", "0", "--data", folder)
        assert (result.code, result.out) == (1, "")
        assert words in result.complaint
    assert stat.S_IMODE(shared.stat().st_mode) == 0o777
