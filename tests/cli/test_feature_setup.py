"""From where a command makes features: its options reach its processes, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import soundfile

from monitor.features.registry import FEATURES, FeatureSetup
from monitor.features.style import Style, read_style_words
from monitor.jobs import each_in_order
from monitor.sources.frames import FramesFile
from tests.contracts import RATE, voice
from tests.features.networks import of_sound
from tests.weights import onnx_extra


def untouched() -> tuple[dict[str, str], dict[str, object]]:
    """The program's own variables, and the features; libraries set variables of theirs."""
    own = {name: value for name, value in os.environ.items() if name.startswith("MONITOR_")}
    return own, dict(FEATURES)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_options_reach_every_process_and_change_neither_environment_nor_features(
    run, tmp_path, monkeypatch, jobs
):
    onnx_extra()
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("ann", "bob")):
        path = tmp_path / "speech" / name / "talk.wav"
        path.parent.mkdir(parents=True)
        soundfile.write(path, voice(8.0, seed=seed), RATE)
        path.with_suffix(".tsv").write_text("start\tend\ttext\n0.5\t0.9\twell\n1.5\t1.9\tso\n")
    network, words = Path("net.onnx"), Path("own.txt")
    network.write_bytes(of_sound())
    words.write_text("so\nwell\n")
    before = untouched()
    setup = ("--speaker-model", network, "--word-list", words)
    features = ("--features", "f0,style,speaker", "--jobs", jobs)
    done = run("enrol", "speech", "-o", "us.npz", "--frames", "frames", *features, *setup)
    assert done.code == 0, done.err
    assert untouched() == before
    name = FeatureSetup(speaker_model=network).speaker
    for path in (tmp_path / "frames").glob("*/*.npz"):
        tracks = FramesFile(path).stream_info.tracks
        assert list(tracks) == ["f0", "style", name]
        assert tracks["style"].network == Style(read_style_words(words)).spec.network
    refused = run("enrol", "speech", "-o", "more.npz", "--features", "identity", *setup)
    assert refused.code != 0
    assert untouched() == before


def told(setup: FeatureSetup) -> tuple[str | None, str, bool]:
    return setup.words(), setup.speaker, "MONITOR_WORD_LIST" in os.environ


@pytest.mark.slow
def test_a_process_is_handed_the_setup(tmp_path, monkeypatch):
    onnx_extra()
    network = tmp_path / "net.onnx"
    network.write_bytes(of_sound())
    monkeypatch.chdir(tmp_path)
    setup = FeatureSetup(Path("own.txt"), network).elsewhere()
    network.unlink()  # the name travels
    here = str(tmp_path / "own.txt"), setup.speaker, False
    assert list(each_in_order(told, [setup, setup], 2)) == [here, here]
