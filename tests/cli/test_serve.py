"""monitor serve."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
