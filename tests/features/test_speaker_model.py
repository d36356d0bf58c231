"""Networks of impostors: what they take, what is computed for them, what is refused."""

import hashlib
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from monitor.errors import StoreError, UsageError
from monitor.features.own_network import Kaldi, MelBanks, Network, ReDimNet2Banks, SpeakerModel
from monitor.features.registry import FEATURES, FeatureSetup, defaults, make, ready
from tests.contracts import voice
from tests.features.networks import SIZE, endless, of_energies, of_mel_banks, of_sound
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
    torch = pytest.importorskip("torch", reason="needs the extra training")
    kaldi = pytest.importorskip("torchaudio.compliance.kaldi", reason="needs the extra training")
    sound = voice(2.0) + 0.01
    scaled = torch.from_numpy(sound[None] * (32768 if whole_numbers else 1))
    theirs = kaldi.fbank(
        scaled.double(), num_mel_bins=80, dither=0.0, window_type="hamming" if hamming else "povey"
    ).numpy()
    ours = Kaldi(hamming=hamming, whole_numbers=whole_numbers, centred=False).energies(sound)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    centred = Kaldi(hamming=hamming, whole_numbers=whole_numbers).energies(sound)
    np.testing.assert_allclose(centred, theirs - theirs.mean(axis=0), atol=2e-3)


@pytest.mark.parametrize("normalised", [False, True])
def test_the_other_front_end_is_redimnets(normalised):
    """Its class MelBanks: torchaudio's spectrogram between a pre-emphasis and a logarithm."""
    torch = pytest.importorskip("torch", reason="needs the extra training")
    torchaudio = pytest.importorskip("torchaudio", reason="needs the extra training")
    oracle = torchaudio.transforms.MelSpectrogram(
        16_000, n_fft=512, win_length=400, hop_length=160, f_min=20, f_max=7600, n_mels=72,
        window_fn=torch.hamming_window,
    ).double()  # fmt: skip
    sound = 0.1 * voice(2.0) + 0.01
    wave = torch.from_numpy(sound).double()
    if normalised:
        wave = (wave - wave.mean()) / (wave.std(unbiased=False) + 1e-6)
    before = torch.nn.functional.pad(wave[None, None], (1, 0), mode="reflect")[0, 0]
    levels = (oracle(wave - 0.97 * before[:-1]) + 1e-6).log()
    theirs = (levels - levels.mean(dim=1, keepdim=True)).numpy()
    ours = MelBanks(normalised=normalised).energies(sound)
    assert ours.shape == theirs.shape == (72, 201)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


@pytest.mark.parametrize("seconds", [1.0, 1.37, 3.0])
def test_the_third_front_end_is_redimnet2s(seconds):
    """The published package computes it in torch, outside of its exported networks."""
    torch = pytest.importorskip("torch", reason="needs the extra peers")
    published = pytest.importorskip("redimnet2_onnx.frontend", reason="needs the extra peers")
    sound = 0.1 * voice(seconds) + 0.01
    theirs = published.ReDimNetFrontend()(torch.from_numpy(sound)).numpy()[0]
    ours = ReDimNet2Banks().energies(sound)
    assert ours.shape == theirs.shape
    assert ours.shape[:2] == (1, 72)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_metadata_choose_the_front_end():
    sound, wespeaker = voice(1.0), {"framework": "wespeaker", "sample_rate": "16000"}
    as_is = {"framework": "3d-speaker", "normalize_samples": "1"}
    likes: list[tuple[bytes, Kaldi | MelBanks]] = [
        (of_energies(), Kaldi()),
        (of_energies(metadata=as_is), Kaldi(whole_numbers=False)),
        (of_energies(metadata=wespeaker), Kaldi(hamming=True)),
        (of_energies(output="embs"), Kaldi(hamming=True)),
        (of_energies(metadata={"feature_normalize_type": ""}), Kaldi(centred=False)),
        (of_mel_banks(), MelBanks()),
        (of_mel_banks(metadata={"norm_signal": "1"}), MelBanks(normalised=True)),
    ]
    for data, like in likes:
        front = Network(data, "net")._front
        np.testing.assert_array_equal(front.energies(sound), like.energies(sound))
    assert "is for '8000' Hz" in refused(of_energies(metadata={"sample_rate": "8000"}))


@pytest.mark.parametrize(
    ("make_network", "assumed"),
    [
        (of_energies, True),
        (partial(of_energies, output="last_hidden_state"), True),
        (partial(of_energies, output="embs"), False),
        (partial(of_energies, metadata={"framework": "3d-speaker"}), False),
        (of_mel_banks, False),
        (of_sound, False),
    ],
)
def test_it_is_known_whether_anything_states_the_window(make_network, assumed):
    assert Network(make_network(), "net.onnx").window_assumed == assumed


of_redimnet2 = partial(of_mel_banks, dimensions=("batch", 1, 72, "frames"))


@pytest.mark.parametrize("data", [of_sound, of_energies, of_mel_banks, of_redimnet2])
def test_embeddings_have_length_one_and_do_not_depend_on_the_batch(data):
    network = Network(data(), "net")
    assert network.size == SIZE
    windows = np.stack([voice(3.0, seed=seed) for seed in range(3)])
    together = network.embed(windows)
    assert together.shape == (3, SIZE)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(network.embed(windows[1:2])[0], together[1])


@pytest.mark.parametrize("seconds", [2, 6])
@pytest.mark.parametrize("layout", ["sound", "kaldi", "mel banks", "redimnet2"])
def test_a_network_of_one_length_hears_the_whole_window(layout, seconds):
    """As an export of ReDimNet with its front end inside has it, and as one of energies may."""
    cut = {"sound": 0, "kaldi": 80, "mel banks": 160, "redimnet2": -80}
    samples = 16_000 * seconds - cut[layout]
    fixed, free = {
        "sound": lambda: (of_sound(dimensions=("batch", samples)), of_sound()),
        "kaldi": lambda: (of_energies(frames=100 * seconds - 2), of_energies()),
        "mel banks": lambda: (of_mel_banks(dimensions=(1, 72, 100 * seconds)), of_mel_banks()),
        "redimnet2": lambda: (of_mel_banks(dimensions=(1, 1, 72, 100 * seconds)), of_redimnet2()),
    }[layout]()
    network, oracle = Network(fixed, "net"), Network(free, "net")
    assert network.size == SIZE
    for window in (voice(1.0), voice(3.0)):
        made = network.embed(window[None])[0]
        if window.size < samples:  # again and again
            parts = [np.tile(window, -(-samples // window.size))[:samples]]
        else:  # its beginning and its end
            parts = [window[:samples], window[-samples:]]
        expected = sum(oracle.embed(part[None])[0] for part in parts)
        np.testing.assert_allclose(made, expected / np.linalg.norm(expected), atol=1e-5)


@pytest.mark.parametrize("only_long", [False, True])
def test_a_loop_that_never_ends_is_ended(monkeypatch, only_long):
    monkeypatch.setattr("monitor.features.own_network.RUN_SECONDS", 0.5)
    said = refused(endless(only_long))
    assert "was stopped after 0 s with 3 s of sound" in said
    # one that ends is not stopped
    assert Network(of_sound(), "net").embed(np.ones((3, 48_000), np.float32)).shape == (3, SIZE)


LAYOUTS = "the only input must be sound (batch, samples) at 16 kHz, or energies (batch, frames, 80)"
LENGTHS = "s of sound: use a network for any length, or for 0.5 to 60"
DAMAGED = "net.onnx is damaged or not an ONNX network: "


@pytest.mark.parametrize(
    ("make_bytes", "said"),
    [
        (lambda: of_energies(bands=40), LAYOUTS),
        (lambda: of_energies(bands=40), "['batch', 'frames', 40]"),
        (lambda: of_mel_banks(dimensions=("batch", 2, 72, "frames")), LAYOUTS),
        (lambda: of_sound(dimensions=(2, "samples")), "cannot run net.onnx: "),
        *((partial(of_sound, dimensions=("batch", n)), LENGTHS) for n in (100, 976_000, 2**40)),
        (lambda: of_sound()[:50], DAMAGED),
        (lambda: b"", DAMAGED),
        (lambda: of_sound() + b"\xff", DAMAGED),
        (lambda: of_energies().replace(b"Relu", b"Relx"), DAMAGED),  # a custom operator
    ],
)
def test_other_inputs_and_damage_are_refused(make_bytes, said):
    assert said in refused(make_bytes())


def test_no_other_file_is_read(tmp_path, monkeypatch):
    import onnx

    monkeypatch.chdir(tmp_path)
    model = onnx.load_from_string(of_energies())
    path = tmp_path / "net.onnx"
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").stat().st_size > 1000
    assert "has weights in another file" in refused(path.read_bytes())


def test_neither_a_pipe_nor_a_file_without_end_is_read(tmp_path):
    path = tmp_path / "net.onnx"
    os.mkfifo(path)
    with pytest.raises(StoreError, match="is not a plain file"):
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
    with pytest.raises(UsageError, match="needs the network of its templates"):
        make([name])
