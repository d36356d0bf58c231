"""The Dockerfile, and what takes its steps where no container runtime is; .ci/run takes them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.dockerfile import ROOT, Image, ignored, steps

TEXT = (ROOT / "Dockerfile").read_text("utf-8")
RULES = [
    line
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


def test_the_image_is_pinned_and_its_user_nobody():
    found = steps(TEXT)
    (base,) = [rest for name, rest in found if name == "FROM"]
    assert re.fullmatch(r"python:3\.\d+-slim", base)
    assert not re.search(r"https?:|\.io\b|\.com\b|\.org\b", TEXT)
    names = [name for name, _ in found]
    (user,) = [rest for name, rest in found if name == "USER"]
    assert min(map(int, user.split(":"))) > 1000
    assert "RUN" not in names[names.index("USER") :]
    assert names[-2:] == ["ENTRYPOINT", "CMD"]


def test_nothing_that_lies_about_gets_into_an_image():
    for name in ("me.npz", "talks/a.wav", ".git/config", ".env", "token", "docs/method.md"):
        assert ignored(name, RULES), name
    found = [path for path in ROOT.rglob("*") if path.is_file()]
    kept = {path.relative_to(ROOT).as_posix() for path in found}
    kept = {name for name in kept if not ignored(name, RULES)}
    assert {"pyproject.toml", "README.md", "LICENSE"} >= {n for n in kept if "/" not in n}
    assert {name.partition("/")[0] for name in kept if "/" in name} == {"monitor"}
    for name in ("monitor/networks/voice.npz", "monitor/web/static/words.js"):
        assert not ignored(name, RULES), name


@pytest.fixture
def image(tmp_path: Path) -> Image:
    context = tmp_path / "context"
    (context / "code" / "deep").mkdir(parents=True)
    (context / "code" / "deep" / "a.txt").write_text("deep")
    (context / "code" / "secret.key").write_text("key")
    (context / "one.txt").write_text("one")
    (context / ".dockerignore").write_text("# why\n*\n!code\n!one.txt\n**/*.key\n")
    (tmp_path / "root").mkdir()
    return Image(context, tmp_path / "root", {"WORD": "said"})


def built(image: Image, text: str) -> Image:
    (image.context / "Dockerfile").write_text(text)
    image.build()
    return image


def test_steps_are_taken(image):
    built(
        image,
        'ARG WORD="default"\nENV PLACE=/data\nWORKDIR /src\nCOPY one.txt ./\nCOPY code code\n'
        "RUN cat one.txt code/deep/a.txt \\\n  > both && echo $WORD >> both && ls code >> both\n"
        'WORKDIR /data\nVOLUME /data\nENTRYPOINT ["sh", "-c"]\nCMD ["pwd; echo $PLACE"]\n',
    )
    assert (image.root / "src" / "both").read_text() == "onedeepsaid\ndeep\n"
    data = str(image.root / "data")
    assert image.run().stdout.split() == [data, data]
    assert image.run("echo $WORD; exit 3").returncode == 3
    assert image.run("echo [$WORD]").stdout == "[]\n"  # of the build alone


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("RUN exit 7\n", subprocess.CalledProcessError),
        ("COPY code/secret.key ./\n", FileNotFoundError),
        ("COPY nothing ./\n", FileNotFoundError),
        ("VOLUME /data\n", FileNotFoundError),
        ("HEALTHCHECK NONE\n", AttributeError),
    ],
)
def test_a_step_that_cannot_be_taken_ends_the_build(image, text, error):
    with pytest.raises(error):
        built(image, text)


def test_ci_builds_it_where_it_can():
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "docker build" in script
    assert '"$python" -m tests.dockerfile' in script
