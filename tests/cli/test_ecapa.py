"""The feature identity on the command line: where its network comes from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.corpus.finding import find
from monitor.features.ecapa import encoder
from monitor.population.population import Population
from monitor.sources.frames import write_frames
from monitor.training import fitted
from monitor.training.calibrating import calibrate
from monitor.training.enrolling import enrol
from monitor.training.voices import collect
from monitor.types import Track


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve speakers in two sessions of a minute each, as embeddings of three seconds."""
    folder = tmp_path_factory.mktemp("embedded") / "people"
    generator = np.random.default_rng(0)
    ticks = np.arange(300, 6001, 300)
    for speaker in range(12):
        direction = generator.normal(size=192)
        for session in range(2):
            values = direction + generator.normal(size=(ticks.size, 192))
            path = folder / f"p{speaker:02}" / f"s{session}.npz"
            path.parent.mkdir(parents=True, exist_ok=True)
            tracks = {"identity": Track(ticks, values)}
            write_frames(path, np.ones(6000, bool), tracks, {"identity": 192}, {"identity": 3.0})
    return folder


@pytest.fixture(scope="module")
def people(embedded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("population") / "us.npz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitted, "LOSSES", ("LL",))
        voices, specs, _ = collect(find(embedded))
        rank_models = calibrate(
            voices, specs, lengths=[5, 20], template_lengths=[30], replicates=20, trials=3
        )
    enrol(find(embedded), seconds=30.0).population.calibrated(rank_models).save(path)
    return path


def test_audio_is_heard_with_the_network_of_ecapa(run, people, wav, ecapa):
    done = run("replay", wav, "-p", people, "--features", "identity", "--ecapa", ecapa)
    assert done.code == 0, done.err
    usable = [record["features"]["identity"]["usable"] for record in done.readings]
    assert usable[-1] in (6.0, 9.0, 12.0)
    assert usable == sorted(usable)
    assert "MONITOR_ECAPA" not in os.environ


def test_enrolled_with_the_network_of_the_environment(run, shared, tmp_path, monkeypatch, ecapa):
    monkeypatch.setenv("MONITOR_ECAPA", ecapa)
    for name, chapter in (("ann", "1272/128104"), ("bob", "1993/147149")):
        target = tmp_path / "people" / name / "talk.opus"
        target.parent.mkdir(parents=True)
        target.symlink_to(shared / "speech" / "dev-clean" / f"{chapter}.opus")
    to = tmp_path / "us.npz"
    done = run("enroll", tmp_path / "people", "-o", to, "--seconds", "10", "--features", "identity")
    assert done.code == 0, done.err
    made = Population.load(to).features["identity"]
    assert made.spec.plain() == {"kind": "embedding", "size": 192, "frame_seconds": 3.0}
    assert made.slices.shape == (4, 192)


@pytest.mark.slow
def test_without_a_network_nothing_is_begun(run, people, embedded, wav, tmp_path):
    log, gone = tmp_path / "talk.jsonl", tmp_path / "gone"
    common = ("--features", "identity", "--ecapa", gone)
    voices = tmp_path / "voices"
    for number in range(10):  # as many as a calibration needs
        (voices / str(number)).mkdir(parents=True)
        noise = np.random.default_rng(number).normal(0, 0.1, 16000)
        soundfile.write(voices / str(number) / "talk.wav", noise, 16000)
    for arguments in (
        ("replay", wav, "-p", people, "--jsonl", log),
        ("enroll", voices, "-o", log),
        ("calibrate", voices, "-o", log),
    ):
        done = run(*arguments, *common)
        assert done.code == 2
        assert ("identity]" if "needs more" in done.complaint else "--ecapa") in done.complaint
        assert not log.exists()


def test_ready_made_embeddings_need_no_network(run, people, embedded, tmp_path, monkeypatch):
    """Neither the extra nor a model: bring your own."""
    encoder.cache_clear()
    for name in ("torch", "torchaudio", "speechbrain"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv("MONITOR_ECAPA", str(tmp_path / "gone"))
    done = run("replay", embedded / "p03" / "s1.npz", "-p", people, "--watch", "p03")
    assert done.code == 0, done.err
    assert done.readings[-1]["features"]["identity"]["rank"] == 1
    again = run("enroll", embedded, "-o", tmp_path / "a.npz", "--seconds", "20")
    assert again.code == 0, again.err
