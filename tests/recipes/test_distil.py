"""People at their own microphones: roles, conditions, and a student of what they say."""

from __future__ import annotations

import csv
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra recipes")

import soundfile
import torch

import monitor.networks
from monitor.adapting.adapted import Length
from monitor.adapting.fine_tuning import folded, unfolded
from monitor.networks.layers import log_mel, read_weights
from monitor.networks.voice import VoiceNetwork
from recipes.training import keep, trained
from recipes.voice import distil, gpu
from recipes.voice.clips import Clips, people, unlabelled
from recipes.voice.conditions import Conditions, telephone
from recipes.voice.distil import calibrated, student, train
from recipes.voice.export import export
from recipes.voice.views import BANDS, Ring

WEIGHTS = Path(monitor.networks.__file__).with_name("voice.npz")


@pytest.fixture(scope="module")
def voices(tmp_path_factory) -> Path:
    """A table of people, most of one session."""
    folder: Path = tmp_path_factory.mktemp("voices")
    rows = [
        {"path": f"en/{who}/{session}-{clip}.flac", "speaker": f"{who:08x}", "session": session,
         "language": "en", "gender": "", "age": "", "seconds": 4}
        for who in range(900)
        for session in range(2 if who % 3 == 0 else 1)
        for clip in range(2)
    ]  # fmt: skip
    rows.append({**rows[0], "path": "unlabelled/1.flac", "speaker": ""})
    with (folder / "manifest.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    return folder


def test_who_has_two_sessions_never_trains_and_some_of_one_are_spared(voices):
    found = people(voices)
    assert len(found) == 900
    several = [each for each in found if len(each.clips) > 1]
    assert {each.role for each in several} == {"judge", "choose", "calibrate"}
    roles = [each.role for each in found if len(each.clips) == 1]
    assert roles.count("calibrate") == 300
    assert set(roles) == {"train", "calibrate"}
    assert unlabelled(voices) == [voices / "unlabelled/1.flac"]


def test_a_role_does_not_depend_on_who_else_is_there(voices):
    before = {each.name: each.role for each in people(voices) if len(each.clips) > 1}
    lines = (voices / "manifest.csv").read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("en/3/", "en/6/"))]
    fewer = voices.parent / "fewer"
    fewer.mkdir(exist_ok=True)
    (fewer / "manifest.csv").write_text("\n".join(kept))
    after = {each.name: each.role for each in people(fewer) if len(each.clips) > 1}
    assert len(after) == len(before) - 2
    assert after == {name: before[name] for name in after}


@pytest.fixture(scope="module")
def noise(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("noise")
    rng = np.random.default_rng(5)
    soundfile.write(folder / "rain.ogg", 0.1 * rng.standard_normal(44100), 44100)
    return folder


def sung(seconds: float, seed: int) -> np.ndarray:
    """A sound with a pitch of its own."""
    at = np.arange(round(16000 * seconds)) / 16000
    hertz = 100 + 20 * seed
    tones = [np.sin(2 * np.pi * hertz * n * at) / n for n in range(1, 30)]
    return np.asarray(0.1 * np.sum(tones, axis=0) * (1 + np.sin(7 * at)), np.float32)


@pytest.mark.slow
def test_a_condition_keeps_the_length_and_differs_from_the_next(noise):
    conditions = Conditions.simulated(noise, lambda rng: sung(3, int(rng.integers(5))), rooms=12)
    sound, rng = sung(3, 1), np.random.default_rng(0)
    made = [conditions.view(sound, rng) for _ in range(60)]
    assert all(each.shape == sound.shape and each.dtype == np.float32 for each in made)
    assert all(np.isfinite(each).all() and np.abs(each).max() > 1e-3 for each in made)
    assert len({each.tobytes() for each in made}) > 55


def test_a_telephone_leaves_300_to_3400_hz():
    noise = np.random.default_rng(1).standard_normal(32000).astype(np.float32) / 8
    power = np.abs(np.fft.rfft(telephone(noise))) ** 2
    hertz = np.fft.rfftfreq(32000, 1 / 16000)
    inside = power[(hertz > 500) & (hertz < 3000)].mean()
    assert power[(hertz > 20) & (hertz < 200)].mean() < 0.02 * inside
    assert power[hertz > 4100].mean() < 0.001 * inside


def test_a_network_that_ships_can_be_trained_further():
    torch.manual_seed(3)
    shipping = student()
    shipping.train()
    with torch.no_grad():  # norms that have met something
        for _ in range(3):
            shipping(torch.randn(8, 120, BANDS))
    weights = folded(shipping.eval())
    begun = student()
    begun.load_state_dict(unfolded(weights).state_dict())
    bands = torch.from_numpy(log_mel(np.stack([sung(3, seed) for seed in range(6)]), BANDS))
    calibrated(begun, bands)
    with torch.inference_mode():
        assert begun(bands).numpy() == pytest.approx(shipping(bands).numpy(), abs=1e-3)
    norms = [each for each in begun.modules() if isinstance(each, torch.nn.BatchNorm2d)]
    assert all(each.running_var.std() > 0 for each in norms)


def test_a_wide_network_runs_in_numpy_and_can_be_trained_on():
    network = student().eval()
    weights = folded(network)
    sound = sung(2, 1)[None]
    with torch.inference_mode():
        meant = network(torch.from_numpy(log_mel(sound, BANDS))).numpy()
        again = unfolded(weights)(torch.from_numpy(log_mel(sound, BANDS))).numpy()
    assert again == pytest.approx(meant, abs=1e-4)
    found = VoiceNetwork(weights).embed(sound)
    assert found == pytest.approx(meant / np.linalg.norm(meant), abs=1e-4)


def prepared(folder: Path, voice: np.ndarray) -> Clips:
    """Clips of 3 s, of so many voices; -1 is nobody known."""
    audio = np.concatenate([sung(3, seed % 12) for seed in range(len(voice))])
    (audio * 32767).astype(np.int16).tofile(folder / "clips.i16")
    samples = np.full(len(voice), 48000)
    np.savez(folder / "clips.npz", start=np.cumsum(samples) - samples, samples=samples,
             corpus=np.zeros(len(voice), int), voice=voice)  # fmt: skip
    return Clips(folder)


def test_every_voice_is_four_more_at_other_speeds(tmp_path):
    clips = prepared(tmp_path, np.array([0, 0, 1, -1, -1]))
    assert len(clips.order) == 25
    own = [0, 0, 1, -1, -1]
    assert clips.voice.tolist() == [v + 2 * at if v >= 0 else v for at in range(5) for v in own]
    first, *others = np.split(clips.speed, 5)
    assert (first == 1).all()
    assert (np.concatenate(others[::2]) > 1.03).all()
    assert (np.concatenate(others[1::2]) < 0.98).all()
    for speed in others:
        assert speed[0] == speed[1]
        assert len(set(speed[1:])) == 4
    assert set(clips.order[:5]) == set(range(5))  # as they are, first
    assert set(clips.order) == set(range(25))
    for clip, pitch in ((1, 120), (6, 120 * clips.speed[6]), (11, 120 * clips.speed[11])):
        sound = clips.sound(clip)
        hertz = np.fft.rfftfreq(len(sound), 1 / 16000)
        assert hertz[np.abs(np.fft.rfft(sound)).argmax()] == pytest.approx(pitch, abs=2)


@pytest.mark.slow
def test_training_on_views_learns_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(distil, "_WARM", 1)
    rng = np.random.default_rng(2)
    clips = prepared(tmp_path, np.arange(48) % 12)
    said = rng.standard_normal((12, 192)).astype(np.float32)[clips.order[:48] % 12]
    np.save(tmp_path / "teacher.npy", said)
    ring = Ring(tmp_path, 96)
    for slot in range(96):
        bands = log_mel(clips.sound(slot // 2), BANDS)
        ring.bands[slot, : len(bands)] = bands + rng.normal(0, 0.3, bands.shape)
        ring.about[slot] = slot // 2 + 1, len(bands)
    out = tmp_path / "out"
    out.mkdir()
    first = train(clips, ring, out, Length(steps=16), 6, WEIGHTS)
    assert len(first) == 16
    assert np.mean(first[-3:]) < 0.9 * np.mean(first[:3])
    assert len(train(clips, ring, out, Length(steps=18), 6, None)) == 2
    (tmp_path / "more").mkdir()
    assert len(train(clips, ring, tmp_path / "more", Length(steps=2), 6, out)) == 2  # from there

    made = export(clips, ring, [out, tmp_path / "more"], tmp_path / "mean.npz", WEIGHTS)
    assert made["training"]["steps"] == [18, 2]
    mean, members = read_weights(tmp_path / "mean.npz")[0], [read_weights(WEIGHTS)[0]]
    members += [folded(_network(each)) for each in (out, tmp_path / "more")]
    assert mean["0.pointwise"] == pytest.approx(
        np.mean([each["0.pointwise"] for each in members], axis=0), abs=0.01
    )
    assert VoiceNetwork.load(tmp_path / "mean.npz").sha256 == made["sha256"]

    as_it_is = export(clips, ring, [out], tmp_path / "own.npz", as_it_is=True)
    assert as_it_is["name"] == "own"
    own = read_weights(tmp_path / "own.npz")[0]
    assert own["embed"] == pytest.approx(
        folded(_network(out))["embed"], abs=0.02 * float(np.abs(own["embed"]).max())
    )


def _network(folder: Path) -> torch.nn.Module:
    network = student()
    network.load_state_dict(trained(folder)["student"])
    return network.eval()


SPEECHBRAIN = """
import sys
from pathlib import Path
import numpy as np, torch
from speechbrain.lobes.features import Fbank
from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN
folder = Path(sys.argv[1])
torch.manual_seed(4)
network = ECAPA_TDNN(80, channels=[64, 64, 64, 64, 192], lin_neurons=192)
with torch.no_grad():  # norms that have met something
    for _ in range(3):
        network(2 * torch.randn(4, 90, 80) - 1)
torch.save(network.eval().state_dict(), folder / "embedding_model.ckpt")
with torch.inference_mode():
    bands = Fbank(n_mels=80)(torch.from_numpy(np.load(folder / "sound.npy")))
    said = network(bands - bands.mean(1, keepdim=True))[:, 0]
np.save(folder / "said.npy", torch.nn.functional.normalize(said).numpy())
"""
"""A network of SpeechBrain's with weights that were drawn, and what it says: in a process of its
own, since the modules that it imports lazily fail where others look at all modules."""


@pytest.fixture(scope="module")
def ecapa(tmp_path_factory) -> Path:
    if importlib.util.find_spec("speechbrain") is None:
        pytest.skip("needs the extra identity")
    folder: Path = tmp_path_factory.mktemp("ecapa")
    np.save(folder / "sound.npy", np.stack([sung(2, seed) for seed in range(3)]))
    subprocess.run([sys.executable, "-W", "ignore", "-c", SPEECHBRAIN, folder], check=True)
    return folder


@pytest.fixture(scope="module")
def packed_clips(tmp_path_factory, noise, ecapa) -> Path:
    if shutil.which("ffmpeg") is None:
        pytest.skip("needs ffmpeg")
    folder: Path = tmp_path_factory.mktemp("pack")
    prepared(folder, np.array([0, 0, 1, 1, 2, 2, -1, -1, -1, -1, -1, -1]))
    begin = folder / "begin"
    begin.mkdir()
    keep(begin, {"student": student().state_dict()})
    module = [sys.executable, "-W", "ignore", "-m", "recipes.voice.pack"]
    given = [folder, noise, begin, folder / "pack", "--ecapa", ecapa]
    subprocess.run([*module, *map(str, given)], check=True)
    return folder / "pack"


@pytest.mark.slow
def test_the_teacher_of_a_pack_says_what_speechbrains_says(packed_clips, ecapa):
    teacher = gpu.Teacher(packed_clips, torch.device("cpu"))
    said = teacher(torch.from_numpy(np.load(ecapa / "sound.npy"))).numpy()
    meant = np.load(ecapa / "said.npy")
    assert said == pytest.approx(meant, abs=0.01)  # half precision of the file
    assert np.linalg.norm(meant[0] - meant[1]) > 0.1


@pytest.mark.slow
def test_a_clip_gets_another_speed_and_other_formants(packed_clips):
    sounds = gpu.Sounds(packed_clips, torch.device("cpu"))
    own, _ = gpu._decoded(packed_clips)
    samples, clips = torch.from_numpy(own), np.arange(4)
    as_is = sounds.as_they_are(samples, clips)
    same = sounds.changed(samples, clips, np.array([-1]), np.array([1.0]))
    assert same[:, 200:-200].numpy() == pytest.approx(as_is[:, 200:-200].numpy(), abs=1e-4)

    def pitch(sound: torch.Tensor) -> float:
        spectrum = np.abs(np.fft.rfft(sound.numpy()))
        return float(np.fft.rfftfreq(len(sound), 1 / 16000)[spectrum.argmax()])

    speed = int(np.argmax(gpu._SPEEDS))
    faster = sounds.changed(samples, clips, np.array([speed]), np.array([1.0]))
    assert pitch(faster[0]) == pytest.approx(gpu._SPEEDS[speed] * pitch(as_is[0]), rel=0.02)
    higher = sounds.changed(samples, clips, np.array([-1]), np.array([1.18]))
    assert pitch(higher[0]) == pytest.approx(pitch(as_is[0]), rel=0.02)
    spectra = [np.abs(np.fft.rfft(each[0].numpy())) for each in (as_is, higher)]
    assert (spectra[1][16000:] ** 2).sum() > 1.3 * (spectra[0][16000:] ** 2).sum()
    assert gpu.bands(as_is[:, :8000]).numpy() == pytest.approx(
        log_mel(as_is[:, :8000].numpy(), BANDS), abs=0.01
    )


@pytest.mark.slow
def test_training_from_a_pack_keeps_a_network_that_can_ship(packed_clips, tmp_path):
    size = gpu.Size(seconds=600, steps=4, voices=3, alone=4)
    losses = gpu.train(packed_clips, tmp_path, size, torch.device("cpu"))
    assert len(losses) == 4
    assert np.isfinite(losses).all()
    kept = trained(tmp_path)
    assert (kept["step"], kept["views"]) == (4, 4 * 2 * 16)
    begun = trained(packed_clips.parent / "begin")["student"]
    assert not torch.equal(kept["student"]["embed.weight"], begun["embed.weight"])
    assert VoiceNetwork(folded(_network(tmp_path))).embed(sung(2, 1)[None]).shape == (1, 192)


@pytest.mark.slow
def test_nothing_happens_to_what_is_clean_and_little_to_what_is_coded(packed_clips):
    own, noise = gpu._decoded(packed_clips)
    sounds = gpu.Sounds(packed_clips, torch.device("cpu"))
    whole = sounds.as_they_are(torch.from_numpy(own), np.arange(12))
    samples = 400 + 160 * 147
    views = gpu._crops(whole, samples)
    clean = torch.arange(12) < 4
    coded = torch.arange(12) >= 8
    heard = gpu.Rooms(packed_clips, noise, torch.device("cpu"))(views, coded, clean)
    assert heard.shape == (12, samples)
    assert torch.isfinite(heard).all()
    said = views[:, -samples:]
    assert heard[:4].numpy() == pytest.approx(said[:4].numpy(), abs=1e-4)
    assert (heard[4:] - said[4:]).abs().amax(1).min() > 1e-3

    gpu._begin_coding(packed_clips)
    through = gpu._coded(3)
    assert through.dtype == np.int16
    assert len(through) == 48000
    assert np.abs(through.astype(int) - own[sounds.place(3)]).max() > 30
