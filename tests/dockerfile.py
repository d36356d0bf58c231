"""Takes the steps of the Dockerfile where no container runtime is: in a folder and an environment.

``python -m tests.dockerfile`` does so with that of this repository, then runs what the image would.
What is copied, installed and run is real; the base image is this machine with Python in an
environment of its own, and absolute paths lie below the folder.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from json import loads
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


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


def ignored(path: str, patterns: list[str]) -> bool:
    """Whether a .dockerignore keeps a path, relative to the folder, out: the last that fits counts.

    Examples:
        >>> rules = ["*", "!monitor", "**/__pycache__"]
        >>> [ignored(path, rules) for path in ("a.wav", "monitor/web.py", "monitor/__pycache__/b")]
        [True, False, True]
    """
    places = [path, *map(str, Path(path).parents)]
    out = False
    for pattern in patterns:
        parts = re.split(r"(\*\*/|\*)", pattern.lstrip("!").rstrip("/"))
        known = {"**/": "(?:.*/)?", "*": "[^/]*"}
        shape = re.compile("".join(known.get(part, re.escape(part)) for part in parts))
        if any(shape.fullmatch(place) for place in places):
            out = not pattern.startswith("!")
    return out


@dataclass
class Image:
    """What the steps so far have made.

    Attributes:
        context: the folder that is built from.
        root: the folder that stands for ``/``.
        arguments: of the build, that replace defaults.
    """

    context: Path
    root: Path
    arguments: dict[str, str] = field(default_factory=dict)
    base: str = ""
    folder: str = "/"
    user: str = ""
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)

    def build(self) -> None:
        """Take every step of the Dockerfile; a word that is not known here is refused."""
        self.root.chmod(0o755)
        (self.root / "tmp").mkdir(mode=0o777)
        (self.root / "tmp").chmod(0o1777)
        for name, rest in steps((self.context / "Dockerfile").read_text("utf-8")):
            getattr(self, f"_{name.lower()}")(rest)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """What ``docker run IMAGE ARGUMENTS`` does, as `runs_as`."""
        line = [*self.entrypoint, *(arguments or self.command)]
        around = self._around(self.environment)
        line[0] = shutil.which(line[0], path=around["PATH"]) or line[0]
        return subprocess.run(
            line, cwd=self.place("."), env=around, check=False, capture_output=True, text=True,
            **self._who(),
        )  # fmt: skip

    @property
    def runs_as(self) -> str:
        """The image's user, as ``uid:gid``; this process's where it cannot be another.

        That is, where it is not root, or where Python lies in a folder of root's own.
        """
        who = self._who()
        return f"{who['user']}:{who['group']}" if who else f"{os.geteuid()}:{os.getegid()}"

    def _who(self) -> dict[str, Any]:
        if not self.user or os.geteuid() != 0:
            return {}
        user, group = map(int, self.user.split(":"))
        who: dict[str, Any] = {"user": user, "group": group, "extra_groups": []}
        try:
            subprocess.run([self.root / "usr/local/bin/python", "-c", ""], check=True, **who)
        except PermissionError:
            return {}
        return who

    def place(self, path: str) -> Path:
        """Where a path of the image lies."""
        return self.root / os.path.normpath(os.path.join(self.folder, path)).lstrip("/")  # noqa: PTH118

    def _around(self, environment: dict[str, str]) -> dict[str, str]:
        """Variables of the image, and nothing of this machine but how pip finds packages."""
        pip = {k: v for k, v in os.environ.items() if k.startswith("PIP_") or k.endswith("_proxy")}
        below = {k: str(self.root) + v if v.startswith("/") else v for k, v in environment.items()}
        path = f"{self.root}/usr/local/bin:/usr/bin:/bin"
        return {"HOME": f"{self.root}/tmp", **pip, **below, "PATH": path}

    def _from(self, rest: str) -> None:
        self.base = rest
        (version,) = re.findall(r"python:(\d+\.\d+)", rest)
        # the system's can be used by every user; this one may lie in somebody's home
        for python in (f"/usr/bin/python{version}", sys.executable):
            environment = [python, "-m", "venv", "--clear", str(self.root / "usr" / "local")]
            if shutil.which(python) and not subprocess.run(environment, check=False).returncode:
                return
        raise FileNotFoundError(f"there is no Python {version} that can make an environment")

    def _arg(self, rest: str) -> None:
        name, _, default = rest.partition("=")
        self.given[name] = self.arguments.get(name, "".join(shlex.split(default)))

    def _env(self, rest: str) -> None:
        self.environment |= dict(each.split("=", 1) for each in shlex.split(rest))

    def _workdir(self, rest: str) -> None:
        self.folder = rest
        self.place(".").mkdir(parents=True, exist_ok=True)

    def _copy(self, rest: str) -> None:
        *sources, target = shlex.split(rest)
        patterns = (self.context / ".dockerignore").read_text("utf-8").split("\n")
        patterns = [line for line in patterns if line and not line.startswith("#")]
        for source in sources:
            top = self.context / source
            found = [path for path in (top, *top.rglob("*")) if path.is_file()]
            names = [path.relative_to(self.context).as_posix() for path in found]
            kept = [name for name in names if not ignored(name, patterns)]
            if not kept:
                raise FileNotFoundError(f"COPY {source}: there is nothing of that name to copy")
            for name in kept:
                at = self.place(target)
                at = at / Path(name).name if top.is_file() else at / Path(name).relative_to(source)
                at.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.context / name, at)

    def _run(self, rest: str) -> None:
        around = self._around(self.environment | self.given)
        subprocess.run(["/bin/sh", "-c", rest], cwd=self.place("."), env=around, check=True)

    def _volume(self, rest: str) -> None:
        self.volumes.append(rest)
        if not self.place(rest).is_dir():
            raise FileNotFoundError(f"VOLUME {rest}: there is no such folder")

    def _user(self, rest: str) -> None:
        self.user = rest

    def _expose(self, rest: str) -> None:
        int(rest)

    def _entrypoint(self, rest: str) -> None:
        self.entrypoint = loads(rest)

    def _cmd(self, rest: str) -> None:
        self.command = loads(rest)


def main() -> None:
    """Build the image of this repository, and run its program as its user."""
    with tempfile.TemporaryDirectory() as folder:
        image = Image(ROOT, Path(folder))
        image.build()
        said = image.run()
        assert said.stdout.startswith("Usage: monitor"), said.stderr
        shown = image.run("demo", "--speed", "600")
        assert shown.returncode == 0, shown.stderr
        for name in ("demo.jsonl", "demo.png"):
            assert image.place(name).stat().st_size, name
            found = image.place(name).stat()
            assert f"{found.st_uid}:{found.st_gid}" == image.runs_as, name
        print(f"{image.base}: built, and the demo run as {image.runs_as}")  # noqa: T201


if __name__ == "__main__":
    main()
