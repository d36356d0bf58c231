"""Another inventory of units under the name of a feature of our own: 256 codes of a codec."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from monitor.population.population import Population
from monitor.sources.frames import write_frames
from monitor.training import fitted
from monitor.types import Track

SIZE, FRAME_TICKS, SECONDS = 256, 4, 60
SPEAKERS = 10


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten made-up speakers in two sessions; every other file says which audio a code stands for."""
    folder = tmp_path_factory.mktemp("codes")
    taste = np.random.default_rng(0).dirichlet(np.full(SIZE, 1.0), size=SPEAKERS)
    for speaker, session in np.ndindex(SPEAKERS, 2):
        generator = np.random.default_rng([speaker, session])
        ticks = np.arange(FRAME_TICKS, SECONDS * 100 + 1, FRAME_TICKS)
        values = generator.choice(SIZE, p=taste[speaker], size=ticks.size)
        spans = np.stack([ticks - FRAME_TICKS, ticks], axis=1)
        home = folder / f"speaker{speaker}"
        home.mkdir(exist_ok=True)
        write_frames(
            home / f"{session}.npz",
            np.ones(SECONDS * 100, np.bool_),
            {"phones": Track(ticks, values, spans if session else None)},
            {"phones": SIZE},
            {"phones": FRAME_TICKS / 100},
        )
    return folder


@pytest.mark.slow
def test_from_frames_to_bits(run, codes, tmp_path, monkeypatch):
    monkeypatch.setattr(fitted, "LOSSES", ("LL",))
    path = tmp_path / "codes-population.npz"
    enrolled = run("enrol", codes, "-o", path, "--seconds", 20)
    assert enrolled.code == 0, enrolled.err
    feature = Population.load(path).features["phones"]
    assert str(feature.spec) == f"histogram of size {SIZE}"

    grid = ["--lengths", "1,5", "--template-lengths", "20", "--replicates", "20", "--trials", "3"]
    calibrated = run("calibrate", codes, "-o", path, "--json", *grid)
    assert calibrated.code == 0, calibrated.err
    assert json.loads(calibrated.out)["cells"]

    stream = codes / "speaker3" / "1.npz"
    replayed = run("replay", stream, "-p", path, "--watch", "speaker3")
    assert replayed.code == 0, replayed.err
    last = replayed.readings[-1]
    assert last["features"]["phones"]["rank"] == 1
    assert last["features"]["phones"]["usable"] == pytest.approx(SECONDS)
    assert last["bits"] > 0.8 * last["ceiling"]


def test_another_inventory_is_not_mixed_in(run, codes, tmp_path):
    path = tmp_path / "population.npz"
    assert run("enrol", codes, "-o", path, "--seconds", 20).code == 0
    more = np.full(1500, 256)
    track = {"phones": Track(np.arange(4, 6001, 4), more)}
    write_frames(tmp_path / "x.npz", np.ones(6000, np.bool_), track, {"phones": 257}, {})
    other = run("replay", tmp_path / "x.npz", "-p", path)
    assert other.code == 1
    assert "size" in other.complaint or "rank model" in other.complaint
