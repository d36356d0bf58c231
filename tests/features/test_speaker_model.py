"""Networks of impostors: what they take, what is computed for them, what is refused."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from monitor.errors import StoreError, UsageError
from monitor.features.ecapa import SpeakerModel
from monitor.features.embeddings import Kaldi, Network
from monitor.features.registry import FEATURES, FeatureSetup, defaults, make, ready
from tests.contracts import voice
from tests.features.networks import SIZE, endless, of_energies, of_sound
from tests.weights import onnx_extra


@pytest.fixture(autouse=True)
def _extra():
    onnx_extra()


def refused(data: bytes) -> str:
    with pytest.raises(StoreError) as caught:
        Network(data, "net.onnx")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("hamming", [False, True])
@pytest.mark.parametrize("whole_numbers", [False, True])
def test_the_front_end_is_kaldis(hamming, whole_numbers):
    torch = pytest.importorskip("torch", reason="needs the extra identity")
    kaldi = pytest.importorskip("torchaudio.compliance.kaldi", reason="needs the extra identity")
    sound = voice(2.0) + 0.01
    scaled = torch.from_numpy(sound[None] * (32768 if whole_numbers else 1))
    theirs = kaldi.fbank(
        scaled.double(), num_mel_bins=80, dither=0.0, window_type="hamming" if hamming else "povey"
    ).numpy()
    ours = Kaldi(hamming=hamming, whole_numbers=whole_numbers, centred=False).energies(sound)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    centred = Kaldi(hamming=hamming, whole_numbers=whole_numbers).energies(sound)
    np.testing.assert_allclose(centred, theirs - theirs.mean(axis=0), atol=2e-3)


def test_metadata_choose_the_front_end():
    def front(output: str = "embedding", **said: str) -> Kaldi:
        made = Network(of_energies(metadata=said, output=output), "net")._front
        assert made is not None
        return made

    sound = voice(1.0)
    for network, like in (
        (front(), Kaldi()),
        (front(framework="3d-speaker", normalize_samples="1"), Kaldi(whole_numbers=False)),
        (front(framework="wespeaker", sample_rate="16000"), Kaldi(hamming=True)),
        (front(output="embs"), Kaldi(hamming=True)),
        (front(feature_normalize_type=""), Kaldi(centred=False)),
    ):
        np.testing.assert_array_equal(network.energies(sound), like.energies(sound))
    assert "is for '8000' Hz" in refused(of_energies(metadata={"sample_rate": "8000"}))


@pytest.mark.parametrize("data", [of_sound, of_energies])
def test_embeddings_have_length_one_and_do_not_depend_on_the_batch(data):
    network = Network(data(), "net")
    assert network.size == SIZE
    windows = np.stack([voice(3.0, seed=seed) for seed in range(3)])
    together = network.embed(windows)
    assert together.shape == (3, SIZE)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(network.embed(windows[1:2])[0], together[1])


def test_what_a_network_of_sound_is_given():
    network = Network(of_sound(seed=5), "net")
    weights = np.random.default_rng(5).normal(size=(SIZE, 64)).astype(np.float32)
    sound = voice(1.0)
    frames = np.lib.stride_tricks.sliding_window_view(sound, 64)[::16]
    expected = np.abs(frames @ weights.T).mean(axis=0)
    expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(network.embed(sound[None])[0], expected, atol=1e-5)


@pytest.mark.parametrize("only_long", [False, True])
def test_a_loop_that_never_ends_is_ended(monkeypatch, only_long):
    monkeypatch.setattr("monitor.features.embeddings.RUN_SECONDS", 0.5)
    said = refused(endless(only_long))
    assert "was ended after 0 s with 3 s of sound: a loop in it may never end" in said


def test_a_loop_that_ends_is_none(monkeypatch):
    monkeypatch.setattr("monitor.features.embeddings.RUN_SECONDS", 0.5)
    assert Network(of_sound(), "net").embed(np.ones((3, 48_000), np.float32)).shape == (3, SIZE)


def test_other_inputs_are_refused():
    wanted = "one input is needed, sound (batch, samples) at 16 kHz or energies (batch, frames, 80)"
    assert wanted in refused(of_energies(bands=40))
    assert "['batch', 'frames', 40]" in refused(of_energies(bands=40))
    fixed = of_sound(dimensions=("batch", 48_000))
    assert "cannot be run: " in refused(fixed)


@pytest.mark.parametrize("damage", [lambda d: d[:50], lambda d: d[:0], lambda d: d + b"\xff"])
def test_damage_is_refused(damage):
    assert "net.onnx: is damaged, or no ONNX network: " in refused(damage(of_sound()))


def test_no_other_file_is_read(tmp_path, monkeypatch):
    import onnx

    monkeypatch.chdir(tmp_path)
    model = onnx.load_from_string(of_energies())
    path = tmp_path / "net.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").stat().st_size > 1000
    assert "has weights in another file" in refused(path.read_bytes())


def test_no_custom_operators():
    data = of_energies().replace(b"Relu", b"Relx")
    assert "is damaged, or no ONNX network: " in refused(data)


def test_neither_a_pipe_nor_a_file_without_end_is_read(tmp_path):
    path = tmp_path / "net.onnx"
    os.mkfifo(path)
    with pytest.raises(StoreError, match="is no plain file"):
        SpeakerModel(path)
    path.unlink()
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StoreError, match="far too large"):
        SpeakerModel(path)
    with pytest.raises(StoreError, match="No such file"):
        SpeakerModel(tmp_path / "gone.onnx")


def test_its_name_is_its_digest_and_it_is_made_of_a_setup_alone(tmp_path: Path, monkeypatch):
    path = tmp_path / "net.onnx"
    path.write_bytes(of_sound())
    name = "speaker_" + hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    assert not ready(name)
    monkeypatch.chdir(tmp_path)
    setup = FeatureSetup(speaker_model=Path(path.name))
    monkeypatch.chdir("/")
    assert setup.speaker == name
    assert ready(name, setup)
    assert name in defaults(setup=setup)
    assert "voice" not in defaults(setup=setup)
    first, second = make([name, name], setup)
    assert first is not second
    assert (first.spec.name, str(first.spec)) == (name, f"embedding of size {SIZE}")
    assert name not in FEATURES
    assert not ready(name)
    with pytest.raises(UsageError, match="needs the network that made its templates"):
        make([name])
