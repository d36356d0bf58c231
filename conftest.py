"""Where the examples in docstrings run: a folder with a recording and a few people's speech."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

SPEAKERS = 12

ADAPTING = Path(__file__).parent / "monitor" / "lab" / "adapting"
_WITH_TORCH = [str(p) for p in ADAPTING.glob("*.py") if "\nimport torch\n" in p.read_text("utf-8")]
collect_ignore = [] if find_spec("torch") else _WITH_TORCH


@pytest.fixture(scope="session")
def folder_of_examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``talk.npz`` and ``voices/``: frames of simulated speakers."""
    from benchmarks.simulation import SIZE, Simulation, write_corpus
    from monitor.sources.frames import write_frames

    folder, simulation = tmp_path_factory.mktemp("examples"), Simulation(SPEAKERS)
    write_corpus(folder / "voices", simulation, SPEAKERS, 2, 60.0)
    talk = simulation.frames(0, 2, 60.0)
    write_frames(folder / "talk.npz", talk.speech, talk.tracks, {"f0": SIZE}, {"f0": 0.01})
    return folder


@pytest.fixture(autouse=True)
def _example(request: pytest.FixtureRequest) -> None:
    """The docstring of the package itself is read in that folder."""
    if isinstance(request.node, pytest.DoctestItem) and request.node.name == "monitor":
        patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        patch.chdir(request.getfixturevalue("folder_of_examples"))
