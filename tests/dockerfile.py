"""Takes the steps of the Dockerfile where no container runtime is, and runs what the image would.

``python -m tests.dockerfile``: what is copied, installed and run is real. The base image is this
machine with Python in an environment of its own, and absolute paths lie below a folder.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LINES = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
RULES = [line for line in LINES if line and not line.startswith("#")]


def steps(text: str) -> list[tuple[str, str]]:
    """Instructions and what follows them, continued lines joined, without comments.

    Example:
        >>> steps("# why\\nRUN a \\\\\\n  && b\\nUSER 1")
        [('RUN', 'a   && b'), ('USER', '1')]
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    found = [line.strip().partition(" ") for line in joined if line.strip()]
    return [(name.upper(), rest.strip()) for name, _, rest in found]


def is_ignored(path: str) -> bool:
    """Whether .dockerignore keeps a path out: the last rule that fits it or a folder counts."""
    out = False
    for rule in RULES:
        shape = rule.removeprefix("!").replace("**/", "*/")
        for place in (path, *map(str, Path(path).parents)):
            if fnmatch(f"/{place}" if "*/" in shape else place, shape):
                out = not rule.startswith("!")
    return out


def who(user: str) -> dict[str, Any]:
    """Arguments of a process of ``uid:gid``."""
    uid, gid = map(int, user.split(":"))
    return {"user": uid, "group": gid, "extra_groups": []}


class Image:
    """What the steps have made, below a folder that stands for ``/``."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder, self.user = root, "/", f"{os.geteuid()}:{os.getegid()}"
        self.environment: dict[str, str] = {}
        self.starts: dict[str, list[str]] = {}
        given: dict[str, str] = {}
        root.chmod(0o755)
        (root / "tmp").mkdir()
        (root / "tmp").chmod(0o1777)
        for name, rest in steps((ROOT / "Dockerfile").read_text("utf-8")):
            match name:
                case "FROM":
                    self._make_python(*re.findall(r"python:(\d+\.\d+)", rest))
                case "ARG":
                    given |= dict([shlex.split(rest)[0].split("=", 1)])
                case "ENV":
                    self.environment |= dict(each.split("=", 1) for each in shlex.split(rest))
                case "WORKDIR":
                    self.folder = rest
                    self.place(".").mkdir(parents=True, exist_ok=True)
                case "COPY":
                    *sources, target = shlex.split(rest)
                    for source in sources:
                        self._copy(source, self.place(target))
                case "RUN":
                    line, around = ["/bin/sh", "-c", rest], self._around(self.environment | given)
                    subprocess.run(line, cwd=self.place("."), env=around, check=True)
                case "VOLUME":
                    assert self.place(rest).is_dir(), rest
                case "USER":
                    self.user = rest if self._can_be(rest) else self.user
                case "ENTRYPOINT" | "CMD":
                    self.starts[name] = json.loads(rest)
                case _:
                    assert name == "EXPOSE", f"{name} is no step that is known here"

    def run(self, *arguments: str) -> str:
        """What ``docker run IMAGE ARGUMENTS`` prints, as the image's user."""
        program, *line = [*self.starts["ENTRYPOINT"], *(arguments or self.starts["CMD"])]
        around = self._around(self.environment)
        done = subprocess.run(
            [shutil.which(program, path=around["PATH"]) or program, *line],
            cwd=self.place("."), env=around, check=False, capture_output=True, text=True,
            **(who(self.user) if os.geteuid() == 0 else {}),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _can_be(self, user: str) -> bool:
        """Not where this is not root, or where Python lies in a folder of root's own."""
        python = self.root / "usr" / "local" / "bin" / "python"
        try:
            subprocess.run([python, "-c", ""], check=True, **who(user))
        except PermissionError:
            return False
        return True

    def place(self, path: str) -> Path:
        """Where a path of the image lies."""
        return self.root / os.path.normpath(os.path.join(self.folder, path)).lstrip("/")  # noqa: PTH118

    def _around(self, environment: dict[str, str]) -> dict[str, str]:
        """Variables of the image, and nothing of this machine but how pip finds packages."""
        pip = {k: v for k, v in os.environ.items() if k.startswith("PIP_") or k.endswith("_proxy")}
        below = {k: str(self.root) + v if v.startswith("/") else v for k, v in environment.items()}
        path = f"{self.root}/usr/local/bin:/usr/bin:/bin"
        return {"HOME": f"{self.root}/tmp", **pip, **below, "PATH": path}

    def _make_python(self, version: str) -> None:
        # the system's can be used by every user; this one may lie in somebody's home
        for python in (f"/usr/bin/python{version}", sys.executable):
            environment = [python, "-m", "venv", "--clear", str(self.root / "usr" / "local")]
            if shutil.which(python) and not subprocess.run(environment, check=False).returncode:
                return
        raise FileNotFoundError(f"there is no Python {version} that can make an environment")

    def _copy(self, source: str, target: Path) -> None:
        top = ROOT / source
        names = [path.relative_to(ROOT) for path in (top, *top.rglob("*")) if path.is_file()]
        kept = [name for name in names if not is_ignored(name.as_posix())]
        assert kept, f"COPY {source}: there is nothing of that name to copy"
        for name in kept:
            at = target / (name.name if top.is_file() else name.relative_to(source))
            at.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, at)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        image = Image(Path(folder))
        assert image.run().startswith("Usage: monitor")
        image.run("demo", "--speed", "600")
        for name in ("demo.jsonl", "demo.png"):
            found = image.place(name).stat()
            assert found.st_size, name
            assert f"{found.st_uid}:{found.st_gid}" == image.user, name
        print(f"built, and the demo run as {image.user}")  # noqa: T201
