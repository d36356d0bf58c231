"""What an impostor installs: the built wheel, alone in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = "from hatchling.build import build_wheel; import sys; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True)
    (made,) = folder.glob("*.whl")
    return made


def test_the_population_and_the_demo_travel_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    home = "monitor/population/reference"
    assert 100_000 < sizes[f"{home}/population.npz"] < 6_000_000
    assert 10_000 < sizes[f"{home}/demo.npz"] < 1_000_000
    assert 5_000_000 < sizes["monitor/networks/voice.npz"] < 12 << 20
    assert 1_000_000 < sizes["monitor/networks/phones.npz"] < 4 << 20
    assert 100_000 < sizes["monitor/networks/units.npz"] < 1 << 20
    assert 1_000_000 < sizes["monitor/networks/usc.npz"] < 1_200_000
    cards = {f"monitor/networks/{each}.json" for each in ("voice", "phones", "units", "usc")}
    assert cards <= sizes.keys()
    assert "monitor/py.typed" in sizes
    assert "monitor/features/style_english.txt" in sizes
    assert "monitor/serve/report.html.jinja" in sizes
    assert {f"monitor/lab/report/page.{name}" for name in ("css", "html.jinja")} <= sizes.keys()
    outside = [name for name in sizes if not name.startswith(("monitor/", "speaker_disclosure_"))]
    assert not outside


def test_the_licence_of_the_voice_weights_travels_beside_them(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        texts = {
            name: archive.read(f"monitor/networks/{name}").decode()
            for name in ("Apache-2.0.txt", "voice.NOTICE", "voice.json")
        }
        (metadata,) = (archive.read(each).decode() for each in names if each.endswith("METADATA"))
    assert "Version 2.0, January 2004" in texts["Apache-2.0.txt"]
    assert "END OF TERMS AND CONDITIONS" in texts["Apache-2.0.txt"]
    for named in ("speechbrain/spkrec-ecapa-voxceleb", "Apache-2.0.txt", "Changes:", "MIT"):
        assert named in texts["voice.NOTICE"]
    assert "voice.NOTICE" in texts["voice.json"]
    assert "License-Expression: MIT AND Apache-2.0" in metadata
    for named in ("LICENSE", "Apache-2.0.txt", "voice.NOTICE"):
        assert any(".dist-info/licenses/" in each and each.endswith(named) for each in names)


def test_the_page_travels_in_the_wheel_and_plotly_does_not(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("monitor/web/static/")}
        index = archive.read("monitor/web/static/index.html").decode()
    static = ROOT / "monitor" / "web" / "static"
    assert names == {f"monitor/web/static/{path.name}" for path in static.iterdir()}
    assert "monitor/web/static/app.js" in names
    for name in re.findall(r'(?:src|href)="/static/([^"]+)"', index):
        assert name == "plotly.min.js" or (static / name).is_file()


def test_the_default_install_needs_neither_torch_nor_mkdocs(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("METADATA")]
        lines = archive.read(name).decode().splitlines()
    needed = [line for line in lines if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert needed
    heavy = ("torch", "speechbrain", "mkdocs")
    assert not [line for line in needed if any(name in line for name in heavy)]


def test_a_checkout_can_be_built_from_the_sdist(tmp_path):
    build = "from hatchling.build import build_sdist; import sys; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True)
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    top = {
        "CONTRIBUTING.md",
        "SECURITY.md",
        "mkdocs.yml",
        "conftest.py",
        "docs/hooks.py",
        ".ci/run",
    }
    assert (
        top | {"docs/hooks.py", "docs/api/index.md", "tests/conftest.py", "pyproject.toml"} <= names
    )


def test_the_wheel_runs_on_its_own(wheel, tmp_path):
    home = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home)
    code = (
        "from monitor import Population; import monitor; p = Population.reference(); "
        "print(len(p), sorted({model.session for model in p.rank_models}), "
        "monitor.__file__)"
    )
    environment = {**os.environ, "PYTHONPATH": str(home)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path, env=environment, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    count, rest = done.stdout.split(" ", 1)
    assert int(count) >= 45
    assert "['cross', 'same']" in rest
    assert str(home) in rest
