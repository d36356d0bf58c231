"""What an impostor installs: the built wheel alone in a folder of its own, and the image."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from monitor.version import __version__

ROOT = Path(__file__).resolve().parents[1]
LINES = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
RULES = [line for line in LINES if line and not line.startswith("#")]
DOCKERFILE = re.sub(
    r"^#.*\n|\\\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE
)
NETWORKS = ("voice", "phones", "units", "usc")
STEPS = [line.split(maxsplit=1) for line in DOCKERFILE.splitlines() if line]


def build(kind: str, folder: Path, source: Path = ROOT) -> Path:
    code = f"from hatchling.build import build_{kind} as b; import sys; b(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(folder)], cwd=source, check=True)
    (made,) = folder.iterdir()
    return made


def is_ignored(path: str) -> bool:
    """Whether .dockerignore keeps a path out: the last rule that fits it or a folder counts."""
    out = False
    for rule in RULES:
        shape = rule.removeprefix("!").replace("**/", "*/")
        for place in (path, *map(str, Path(path).parents)):
            if fnmatch(f"/{place}" if "*/" in shape else place, shape):
                out = not rule.startswith("!")
    return out


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build("wheel", tmp_path_factory.mktemp("wheel")))


@pytest.mark.slow
def test_what_the_program_needs_travels_in_the_wheel_and_nothing_else(wheel):
    sizes = {info.filename: info.file_size for info in wheel.infolist()}
    home = "monitor/population/reference"
    assert 100_000 < sizes[f"{home}/population.npz"] < 6_000_000
    assert 10_000 < sizes[f"{home}/demo.npz"] < 1_000_000
    assert 5_000_000 < sizes["monitor/networks/voice.npz"] < 12 << 20
    assert 1_000_000 < sizes["monitor/networks/phones.npz"] < 4 << 20
    assert 100_000 < sizes["monitor/networks/units.npz"] < 1 << 20
    assert 1_000_000 < sizes["monitor/networks/usc.npz"] < 1_200_000
    static = ROOT / "monitor" / "web" / "static"
    travels = {
        *(f"monitor/networks/{n}.{end}" for n in NETWORKS for end in ("json", "npz")),
        *("monitor/networks/Apache-2.0.txt", "monitor/networks/voice.NOTICE"),
        *(f"{home}/{each}.npz" for each in ("population", "demo")),
        *(f"monitor/lab/report/page.{each}" for each in ("css", "html.jinja")),
        *(f"monitor/web/static/{path.name}" for path in static.iterdir()),
        *("monitor/py.typed", "monitor/__init__.pyi", "monitor/features/style_english.txt"),
        *("monitor/serve/report.html.jinja", "monitor/anonymisers/scoreboard.json"),
        "monitor/lab/evaluation/citations.bib",
    }
    ours = {name for name in sizes if not name.startswith("speaker_disclosure_")}
    assert {name for name in ours if not re.fullmatch(r"monitor/[\w/]+\.py", name)} == travels
    # plotly.js comes with its own package
    assert {n for n in sizes if n.startswith("monitor/web/static/")} <= travels
    index = wheel.read("monitor/web/static/index.html").decode()
    for name in re.findall(r'(?:src|href)="/static/([^"]+)"', index):
        assert name == "plotly.min.js" or (static / name).is_file()


@pytest.mark.slow
def test_licences_travel_and_the_default_install_needs_neither_torch_nor_mkdocs(wheel):
    names = ("Apache-2.0.txt", "voice.NOTICE", "voice.json")
    texts = {name: wheel.read(f"monitor/networks/{name}").decode() for name in names}
    (metadata,) = (wheel.read(n).decode() for n in wheel.namelist() if n.endswith("METADATA"))
    assert "Version 2.0, January 2004" in texts["Apache-2.0.txt"]
    assert "END OF TERMS AND CONDITIONS" in texts["Apache-2.0.txt"]
    for named in ("speechbrain/spkrec-ecapa-voxceleb", "Apache-2.0.txt", "Changes:", "MIT"):
        assert named in texts["voice.NOTICE"]
    assert "voice.NOTICE" in texts["voice.json"]
    assert "License-Expression: MIT AND Apache-2.0" in metadata
    for named in ("LICENSE", "Apache-2.0.txt", "voice.NOTICE"):
        assert any(".dist-info/licenses/" in n and n.endswith(named) for n in wheel.namelist())
    (parts,) = (json.loads(wheel.read(n)) for n in wheel.namelist() if ".dist-info/sboms/" in n)
    (model,) = (part for part in parts["components"] if part["type"] == "machine-learning-model")
    assert model["hashes"][0]["content"] in texts["voice.NOTICE"]
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    needed = [line for line in needed if "extra ==" not in line]
    assert needed
    heavy = ("torch", "speechbrain", "mkdocs")
    assert not [line for line in needed if any(name in line for name in heavy)]


@pytest.mark.slow
def test_the_wheel_runs_on_its_own(wheel, tmp_path):
    home = tmp_path / "site"
    wheel.extractall(home)
    code = (
        "from monitor import Population; import monitor; p = Population.reference(); "
        "print(len(p), sorted({model.session for model in p.rank_models}), monitor.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, check=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(home)}, text=True,
    )  # fmt: skip
    count, rest = done.stdout.split(" ", 1)
    assert int(count) >= 45
    assert "['cross', 'same']" in rest
    assert str(home) in rest


@pytest.mark.slow
def test_a_release_is_the_same_bytes_wherever_and_by_whomever_it_is_built(tmp_path, monkeypatch):
    kept = shutil.ignore_patterns("__pycache__", ".*cache", ".git", ".hypothesis", ".venv", "build")
    made: list[dict[str, bytes]] = []
    for name, mask, day in (("here", 0o022, 1), ("elsewhere/in/depth", 0o077, 2)):
        source = tmp_path / name / "source"
        shutil.copytree(ROOT, source, ignore=kept, copy_function=shutil.copyfile)
        for path in source.rglob("*"):
            if path.is_file():
                path.chmod(0o666 & ~mask)
                os.utime(path, (day * 1e8, day * 1e8))
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795824000")
        before = os.umask(mask)
        try:
            built = [build(kind, tmp_path / name / kind, source) for kind in ("wheel", "sdist")]
        finally:
            os.umask(before)
        made.append({path.name: path.read_bytes() for path in built})
    assert made[0] == made[1]
    assert {*made[0]} == {
        f"speaker_disclosure_monitor-{__version__}-py3-none-any.whl",
        f"speaker_disclosure_monitor-{__version__}.tar.gz",
    }


def test_the_version_is_the_same_wherever_it_stands():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert cited["version"] == __version__
    described = json.loads((ROOT / "codemeta.json").read_text("utf-8"))
    assert described["version"] == __version__
    assert described["dateModified"] == cited["date-released"]
    assert f"\n## {__version__} ({cited['date-released']})\n" in changes
    assert f"@v{__version__}\n" in (ROOT / "docs" / "ci.md").read_text("utf-8")


def test_the_image_is_pinned_and_its_user_nobody():
    names, rests = zip(*STEPS, strict=True)
    assert names.count("FROM") == 1
    assert re.fullmatch(r"python:3\.\d+-slim", rests[names.index("FROM")])
    assert not re.search(r"https?:|\.io\b|\.com\b|\.org\b", DOCKERFILE)
    assert min(map(int, rests[names.index("USER")].split(":"))) > 1000
    assert "RUN" not in names[names.index("USER") :]
    assert names[-2:] == ("ENTRYPOINT", "CMD")


@pytest.mark.slow
def test_the_wheel_can_be_built_from_what_the_image_copies(wheel, tmp_path):
    source, made = tmp_path / "src", tmp_path / "made"
    made.mkdir()
    for name, rest in STEPS:
        if name != "COPY":
            continue
        for each in rest.split()[:-1]:
            files = [path for path in (ROOT / each, *(ROOT / each).rglob("*")) if path.is_file()]
            names = [path.relative_to(ROOT) for path in files]
            for path in (path for path in names if not is_ignored(path.as_posix())):
                (source / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, source / path)
    with zipfile.ZipFile(build("wheel", made, source)) as ours:
        assert {*ours.namelist()} == {*wheel.namelist()}


def test_nothing_that_lies_about_gets_into_an_image():
    for name in ("me.npz", "talks/a.wav", ".git/config", ".env", "token", "docs/method.md"):
        assert is_ignored(name), name
    assert is_ignored("monitor/web/__pycache__/page.pyc")
    for name in ("monitor/networks/voice.npz", "monitor/web/static/words.js"):
        assert not is_ignored(name), name
    found = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()]
    kept = {name for name in found if not is_ignored(name)}
    assert {n for n in kept if "/" not in n} <= {"pyproject.toml", "README.md", "LICENSE"}
    assert {name.partition("/")[0] for name in kept if "/" in name} == {"monitor"}
