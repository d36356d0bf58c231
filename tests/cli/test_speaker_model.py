"""Networks of one's own, made here: an impostor's file through enroll, calibrate and replay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.features.registry import FEATURES
from monitor.population.population import Population
from monitor.training import fitted
from tests.features.networks import of_energies, of_sound
from tests.weights import onnx_extra

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _extra():
    onnx_extra()
    before = list(FEATURES)
    yield
    assert list(FEATURES) == before


@pytest.fixture
def voices(shared: Path, tmp_path: Path) -> Path:
    """Two readers, a quarter of a minute each."""
    folder = tmp_path / "voices"
    for name, chapter in (("ann", "1272/128104"), ("bob", "1993/147149")):
        path = shared / "speech" / "dev-clean" / f"{chapter}.opus"
        sound, rate = soundfile.read(path, frames=16 * 16_000, dtype="float32")
        (folder / name).mkdir(parents=True)
        soundfile.write(folder / name / "talk.flac", sound, rate)
    return folder


def test_a_template_remembers_its_network_and_no_other_is_taken(run, voices, wav, tmp_path, shared):
    mine, other, us = tmp_path / "mine.onnx", tmp_path / "other.onnx", tmp_path / "us.npz"
    mine.write_bytes(of_sound(seed=1))
    other.write_bytes(of_energies(seed=2))
    common = ("enrol", voices, "-o", us, "--seconds", "10")
    done = run(*common, "--features", "f0,speaker", "--speaker-model", mine, "--jobs", 2)
    assert done.code == 0, done.err
    made = Population.load(us).features
    f0, name = made
    assert f0 == "f0"
    assert name.startswith("speaker_")
    assert len(name) == len("speaker_") + 16
    assert (str(made[name].spec), made[name].spec.frame_seconds) == ("embedding of size 8", 3.0)
    assert np.abs(made[name].slices).max() > 0
    before = us.read_bytes()
    for arguments in (
        ("replay", wav, "-p", us),
        ("listen", "-p", us),
        ("calibrate", voices, "-o", us),
        ("enrol", voices, "--speaker", "eve", "--add", "-o", us),
        ("enrol", voices, "--speaker", "eve", "--base", us, "-o", tmp_path / "more.npz"),
    ):
        refused = run(*arguments, "--speaker-model", other)
        assert refused.code == 2
        assert f"has templates of another network, {name}" in refused.complaint
    refused = run("replay", wav, "--speaker-model", other)
    assert "the shipped population has no templates of it" in refused.complaint
    refused = run("enrol", voices, "--speaker", "eve", "--add", "-o", us)
    assert f"{name} needs the network that made its templates" in refused.complaint
    assert us.read_bytes() == before
    more = ("--speaker", "eve", "--add", "-o", us, "--seconds", "10")
    again = run("enrol", voices / "ann", *more, "--speaker-model", mine)
    assert "enrolled already, as ann" in again.complaint
    done = run("enrol", shared / "speech/dev-clean/174", *more, "--speaker-model", mine)
    assert done.code == 0, done.err
    assert len(Population.load(us)) == 3


def test_a_rank_model_is_learnt_and_a_recording_measured(run, shared, tmp_path, monkeypatch):
    """A dozen readers; a random network of energies hears how their spectra differ."""
    monkeypatch.setattr(fitted, "LOSSES", ("LL",))
    network, us, people = tmp_path / "net.onnx", tmp_path / "us.npz", tmp_path / "people"
    network.write_bytes(of_energies(seed=3))
    readers = sorted((shared / "speech" / "dev-clean").glob("*"))[:12]
    for reader in readers:
        path = sorted(reader.glob("*.opus"))[0]
        (people / reader.name).mkdir(parents=True)
        sound, rate = soundfile.read(path, frames=32 * 16_000, dtype="float32")
        soundfile.write(people / reader.name / "talk.flac", sound, rate)
    model = ("--features", "speaker", "--speaker-model", network)
    done = run("enrol", people, "-o", us, "--seconds", "10", *model)
    assert done.code == 0, done.err
    lengths = ("--lengths", "5", "--template-lengths", "10", "--replicates", "20", "--trials", "2")
    done = run("calibrate", people, "-o", us, *lengths, *model)
    assert done.code == 0, done.err
    one = people / readers[0].name / "talk.flac"
    done = run("replay", one, "-p", us, "--watch", readers[0].name, "--allow-overlap", *model[2:])
    assert done.code == 0, done.err
    (name,) = done.readings[-1]["features"]
    assert name.startswith("speaker_")
    assert done.readings[-1]["features"][name]["rank"] == 1
    done = run("replay", one, "-p", us, "--allow-overlap")
    assert done.code == 2
    assert "--speaker-model FILE.onnx" in done.complaint


def test_speaker_without_its_network(run, voices, tmp_path):
    done = run("enrol", voices, "-o", tmp_path / "us.npz", "--features", "speaker")
    assert done.code == 2
    assert "speaker needs its network: --speaker-model FILE.onnx" in done.complaint


def test_a_file_that_is_no_network_is_refused_in_one_line(run, voices, tmp_path):
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"not a network")
    done = run("enrol", voices, "-o", tmp_path / "us.npz", "--speaker-model", bad)
    assert done.code == 1
    assert done.complaint.startswith("monitor: bad.onnx: is damaged, or no ONNX network: ")
    assert not (tmp_path / "us.npz").exists()
    done = run("enrol", voices, "-o", tmp_path / "us.npz", "--speaker-model", tmp_path / "gone")
    assert "No such file" in done.complaint
