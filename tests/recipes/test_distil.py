"""People at their own microphones: roles, conditions, and a student of what they say."""

from __future__ import annotations

import csv
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
from recipes.training import trained
from recipes.voice import distil
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
    conditions = Conditions(noise, lambda rng: sung(3, int(rng.integers(5))), rooms=12)
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
    for folder in (out, tmp_path / "more"):
        network = student()
        network.load_state_dict(trained(folder)["student"])
        members.append(folded(network.eval()))
    assert mean["0.pointwise"] == pytest.approx(
        np.mean([each["0.pointwise"] for each in members], axis=0), abs=0.01
    )
    assert VoiceNetwork.load(tmp_path / "mean.npz").sha256 == made["sha256"]
