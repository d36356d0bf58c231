"""People at their own microphones: roles and conditions; and ECAPA-TDNN in factors, trained."""

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pytest

pytest.importorskip("torch", reason="needs the extra recipes")

import soundfile
import torch

from monitor.errors import StoreError
from monitor.jobs import one_torch_thread
from monitor.networks.voice import BANDS, GROUPS, VoiceNetwork
from monitor.types import FloatArray
from recipes.voice import export, teachers, train
from recipes.voice.clips import Clips, people, unlabelled
from recipes.voice.compress import compress
from recipes.voice.targets import joined, targets
from recipes.voice.teacher import read_teacher
from recipes.voice.windows import bands_of
from tests.features.networks import of_energies
from tests.weights import onnx_extra


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_torch_thread():
        yield


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


def prepared(folder: Path, voice: np.ndarray) -> Clips:
    """Clips of 3 s, of so many voices; -1 is nobody known."""
    audio = np.concatenate([sung(3, seed % 12) for seed in range(len(voice))])
    (audio * 32767).astype(np.int16).tofile(folder / "clips.i16")
    samples = np.full(len(voice), 48000)
    np.savez(folder / "clips.npz", start=np.cumsum(samples) - samples, samples=samples,
             corpus=np.arange(len(voice)) % 3, voice=voice)  # fmt: skip
    return Clips(folder)


CHANNELS, WIDE, SQUEEZED, SIZE = 32, 48, 8, 12


@pytest.fixture(scope="module")
def uncompressed() -> dict[str, FloatArray]:
    """Weights of a small network of the teacher's make, drawn by a seed."""
    rng = np.random.default_rng(4)
    weights: dict[str, FloatArray] = {}

    def add(name: str, outs: int, ins: int, *, norm: bool = False) -> None:
        weights[name] = rng.standard_normal((outs, ins)) / np.sqrt(ins)
        weights[f"{name}.bias"] = 0.1 * rng.standard_normal(outs)
        if norm:
            weights[f"{name}.gain"] = rng.uniform(0.5, 1.5, outs)
            weights[f"{name}.shift"] = 0.1 * rng.standard_normal(outs)

    add("stem", CHANNELS, 5 * BANDS, norm=True)
    for block in range(3):
        add(f"{block}.one", CHANNELS, CHANNELS, norm=True)
        for group in range(1, GROUPS):
            width = CHANNELS // GROUPS
            add(f"{block}.group{group}", width, 3 * width, norm=True)
        add(f"{block}.two", CHANNELS, CHANNELS, norm=True)
        add(f"{block}.squeeze", SQUEEZED, CHANNELS)
        add(f"{block}.excite", CHANNELS, SQUEEZED)
    add("widen", WIDE, 3 * CHANNELS)
    for name in ("attend.mean", "attend.deviation", "attend"):
        add(name, SQUEEZED, WIDE, norm=name == "attend")
    add("weigh", WIDE, SQUEEZED)
    for name in ("embed.mean", "embed.deviation"):
        add(name, SIZE, WIDE)
    weights["embed.bias"] = weights.pop("embed.mean.bias")
    for name in ("attend.mean", "attend.deviation", "embed.deviation"):
        del weights[f"{name}.bias"]
    weights |= {"taps": np.array([3, 2, 3, 3, 3, 4]), "stride": np.array(1),
                "attention": np.array(1.0)}  # fmt: skip
    return {name: np.asarray(each, np.float32) for name, each in weights.items()}


@pytest.fixture(scope="module")
def sounds() -> FloatArray:
    rng = np.random.default_rng(3)
    sung_ones = [sung(1, seed) for seed in range(16)]
    return np.stack([each + rng.normal(0, 0.01, each.shape) for each in sung_ones])


def units(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def test_only_the_published_weights_are_compressed(tmp_path):
    with pytest.raises(StoreError, match="no weights of speechbrain"):
        read_teacher(tmp_path)
    (tmp_path / "embedding_model.ckpt").write_bytes(b"other")
    with pytest.raises(StoreError, match="other weights than those published"):
        read_teacher(tmp_path)


def test_two_teachers_say_together_what_each_says_of_half():
    rng = np.random.default_rng(6)
    voices = rng.standard_normal((60, 6))
    first = units(1 + voices @ rng.standard_normal((6, 24)))
    second = units(voices @ rng.standard_normal((6, 10)))
    both = joined(first, second)
    assert both.shape == first.shape

    def cosines(vectors: FloatArray) -> FloatArray:
        around = units(vectors - vectors.mean(axis=0))
        return around @ around.T

    meant = (cosines(first) + cosines(second)) / 2
    assert np.abs(cosines(both) - meant).max() < 0.1
    assert np.abs(cosines(first) - meant).max() > 0.3
    # a teacher that says the same as the first leaves its embeddings where they were
    assert (joined(first, first) * first).sum(axis=1).min() > 0.98


def test_a_second_teacher_is_asked_once_and_kept_apart(tmp_path, noise, monkeypatch):
    onnx_extra()
    clips = prepared(tmp_path, np.arange(8))
    np.save(tmp_path / "teacher.npy", first := units(np.random.default_rng(7).normal(size=(8, 12))))
    also = tmp_path / "also.onnx"
    also.write_bytes(of_energies())
    alone = targets(clips, noise, tmp_path)
    assert np.array_equal(alone, first)
    both = targets(clips, noise, tmp_path, also)
    assert both.shape == alone.shape
    assert not np.allclose(both, alone)
    monkeypatch.setattr("recipes.voice.targets.Network", None)
    assert np.array_equal(targets(clips, noise, tmp_path, also), both)


def test_teachers_are_judged_by_whole_tests_and_by_their_windows():
    towards = np.eye(4, 6) + 1  # a centre that all voices share
    trials: teachers.Trials = [
        (np.tile(one, (2, 1)), [np.stack([one, other])])
        for one, other in zip(towards, np.roll(towards, 1, axis=0), strict=True)
    ]
    scores, target = teachers._scores(trials, parts=True)
    assert target.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert scores.argmax(axis=1).tolist() == [0, 3, 1, 0, 2, 1, 3, 2]
    assert scores[0] == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3], abs=0.01)
    whole, target = teachers._scores(trials, parts=False)
    assert target.tolist() == [0, 1, 2, 3]
    assert whole[0, 0] == pytest.approx(whole[0, 3], abs=1e-6)


def test_pauses_are_no_speech_and_a_short_test_is_repeated(tmp_path):
    tone = sung(2, 1)
    soundfile.write(tmp_path / "call.wav", np.concatenate([tone[::2], np.zeros(16000)]), 8000)
    heard = teachers._read_speech(tmp_path / "call.wav")
    assert len(heard) == pytest.approx(len(tone), abs=3200)
    assert teachers._windows(heard, 4).shape == (1, 48000)
    assert teachers._windows(heard[:8000], 4).shape == (0, 48000)
    assert teachers._windows(np.tile(heard, 5), 2).shape == (2, 48000)


@pytest.mark.slow
def test_factors_are_trained_and_ship(tmp_path, noise, uncompressed, sounds, monkeypatch):
    clips = prepared(tmp_path, np.repeat([0, 1, 2, 3, -1], 4))
    meant = [VoiceNetwork(uncompressed).embed(clips.sound(clip)[None])[0] for clip in range(20)]
    teacher = units(np.stack(meant))
    bands = [torch.from_numpy(bands_of(list(sounds)))]
    np.savez(tmp_path / "begun.npz", **compress(uncompressed, bands, WIDE // 4, CHANNELS // 4))  # type: ignore[arg-type]
    monkeypatch.setattr(train, "_EVERY", 10)
    monkeypatch.setattr(train, "_WARM_UP", 2)

    def options(begun: Path, out: str, steps: int) -> argparse.Namespace:
        (tmp_path / out).mkdir(exist_ok=True)
        return argparse.Namespace(
            cache=tmp_path, noise=noise, begun=begun, out=tmp_path / out, steps=steps, rate=3e-3,
            clean=1.0, seed=1, also=None,
        )  # fmt: skip

    first = options(tmp_path / "begun.npz", "one", 40)

    def stop(out: Path, row: dict[str, float]) -> None:
        monkeypatch.undo()
        monkeypatch.setattr(train, "_EVERY", 10)
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "append_log", stop)
    with pytest.raises(KeyboardInterrupt):
        train.train(clips, teacher, first)
    assert not (first.out / train.WEIGHTS).exists()
    train.train(clips, teacher, first)  # from where it was
    rows = [orjson.loads(line) for line in (first.out / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [20, 30, 40]
    assert rows[-1]["loss"] < rows[0]["loss"]
    train.train(clips, teacher, options(first.out / train.WEIGHTS, "two", 2))

    target = tmp_path / "shipped" / "voice.npz"
    given = [tmp_path, noise, first.begun, first.out, tmp_path / "two", target]
    monkeypatch.setattr(sys, "argv", ["export", *map(str, given)])
    export.main()
    with np.load(first.begun) as begun, np.load(tmp_path / "two" / train.WEIGHTS) as learnt:
        trained = VoiceNetwork(export.between(dict(begun), dict(learnt)))
    shipped = VoiceNetwork.load(target)
    heard = np.stack([clips.sound(clip) for clip in range(20)])
    said = shipped.embed(heard)
    assert (units(said) * units(trained.embed(heard))).sum(axis=1).min() > 0.99
    assert np.exp(np.log(np.linalg.norm(said, axis=1)).mean()) == pytest.approx(1, abs=0.01)

    card = orjson.loads(target.with_suffix(".json").read_bytes())
    assert (card["sha256"], card["bytes"]) == (shipped.sha256, target.stat().st_size)
    assert card["embedding"] == SIZE
    assert [each["steps"] for each in card["training"]["one_after_the_other"]] == [40, 2]
    people = [(each["speakers"], each["clips"]) for each in card["training"]["data"]]
    assert people == [(4, 7), (4, 7), (4, 6)]
    for named in ("Apache-2.0", "voice.NOTICE"):
        assert named in card["licence"]
    assert "recipes.voice" in card["command"]
    assert card["compressed_from"]["name"] == "speechbrain/spkrec-ecapa-voxceleb"
