"""Some steps of the codec's recipe: it learns, goes on, and what it makes runs without torch."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra recipes")

import soundfile
import torch

from monitor.errors import StoreError
from monitor.networks.layers import RATE
from monitor.networks.usc import UscNetwork
from recipes.training import load_checkpoint
from recipes.usc.evaluate import measure
from recipes.usc.export import export
from recipes.usc.losses import PARTS
from recipes.usc.network import BOOKS, fold_norms
from recipes.usc.prepare import Cache, centred, compute_bands, prepare, recordings
from recipes.usc.train import arguments, load_losses, train
from recipes.voice.corpus import Recording
from tests.sounds import synthetic

pytestmark = pytest.mark.slow


def voice(pitch: float, formant: float, seed: int) -> np.ndarray:
    """A buzz of one pitch through one resonance, trembling and breathing."""
    generator = np.random.default_rng(seed)
    time = np.arange(6 * RATE) / RATE
    phase = 2 * np.pi * pitch * (time + 0.002 * np.sin(2 * np.pi * 5 * time + seed))
    sound = sum(
        np.exp(-(((pitch * k - formant) / 400) ** 2)) * np.sin(k * phase) for k in range(1, 25)
    )
    sound += 0.05 * generator.standard_normal(len(time))
    sound *= 3000 / np.abs(sound).max() * (1 + 0.3 * np.sin(9 * time))
    return np.tile(np.asarray(sound, np.int16), 4)[: 21 * RATE]


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Cache:
    """Machine voices, heard: three to train on, one in each other role."""
    folder: Path = tmp_path_factory.mktemp("usc")
    listed = []
    for number, role in enumerate(["train"] * 3 + ["choose", "report", "held out"]):
        path = folder / f"{number}.wav"
        soundfile.write(path, voice(90 + 25 * number, 600 + 150 * number, number), RATE)
        listed.append(Recording(path, "corpus", str(number), "F", "1", role, 21.0))
    return prepare(listed, folder / "cache")


def trains(cache: Cache, out: Path, steps: int, *more: object, every: float = 30.0) -> None:
    """By the options of the command."""
    given = [cache.folder, out, "--steps", steps, "--batch", 2, *more]
    train(arguments().parse_args(list(map(str, given))), every)


@pytest.fixture(scope="module")
def trained_folder(cache, tmp_path_factory) -> Path:
    out: Path = tmp_path_factory.mktemp("codec") / "out"
    trains(cache, out, 2)
    return out


def test_nobody_is_in_two_roles_and_dev_clean_only_judges(tmp_path):
    speech, nonnative = tmp_path / "speech", tmp_path / "nonnative"
    rows = {
        speech: [
            f"{c}/{i}.opus,{c},{i},F,1,9"
            for c, i in zip(
                ["dev-clean"] * 2 + ["train-clean-5"] * 6 + ["background"] * 4,
                [84, 1462, 19, 32, 5688, 3947, 1867, 1970, *range(9000, 9004)],
                strict=True,
            )
        ],
        nonnative: [f"{i}.opus,speechocean762,{i},M,30,9" for i in range(100, 140)],
    }
    for folder, lines in rows.items():
        folder.mkdir()
        last = "chapter" if folder == speech else "age"
        head = f"path,corpus,speaker,gender,{last},seconds"
        (folder / "manifest.csv").write_text("\n".join([head, *lines]))
    roles: dict[str, set[str]] = {}
    for each in recordings(speech, nonnative):
        roles.setdefault(f"{each.corpus} {each.speaker}", set()).add(each.role)
    assert all(len(each) == 1 for each in roles.values())
    dev = {role for who, of in roles.items() if who.startswith("dev") for role in of}
    assert dev <= {"report"}
    assert sum(of == {"choose"} for of in roles.values()) == 12
    assert sum(of == {"held out"} for of in roles.values()) == 8


def test_equal_seeds_give_equal_weights_stopped_or_not(cache, tmp_path, monkeypatch):
    monkeypatch.setattr("recipes.training.compute_rate", lambda *_: 1e-3)  # whatever the length
    trains(cache, tmp_path / "a", 3)
    trains(cache, tmp_path / "b", 2, every=0)
    trains(cache, tmp_path / "b", 3)
    one, other = (load_losses(cache, tmp_path / name).parts.state_dict() for name in "ab")
    assert all(torch.equal(one[name], other[name]) for name in one)
    with pytest.raises(StoreError, match="not"):
        trains(cache, tmp_path / "a", 5, "--without", "noise")


def test_it_learns_and_another_training_goes_on_from_it(cache, tmp_path):
    trains(cache, tmp_path / "a", 12, every=0)
    trains(cache, tmp_path / "b", 1, "--begin", tmp_path / "a")
    first, second = (
        [
            json.loads(line)["content"]
            for line in (tmp_path / name / "log.jsonl").read_text().splitlines()
        ]
        for name in "ab"
    )
    assert np.mean(first[-3:]) < 0.9 * first[0]
    assert second[0] < 0.95 * first[0]
    assert [each["step"] for each in load_checkpoint(tmp_path / "b")["earlier"]] == [12]


def test_numpy_says_what_torch_says(cache, trained_folder):
    codec = load_losses(cache, trained_folder).codec
    network = UscNetwork(fold_norms(codec))
    sound = synthetic(3.0)
    bands = compute_bands(sound)
    with torch.inference_mode():
        latents = codec.encode(
            *(
                torch.from_numpy(each[None])
                for each in (bands, centred(bands, network.encoder.usual))
            )
        )
        coded = codec.books(latents)
        said = codec.decode(coded.outputs.sum(dim=0))[0].numpy()
    stream = network.encoder.stream()
    mine = np.concatenate([stream.push(sound), stream.flush()])
    inside = slice(0, len(mine) - 20)  # the end is not silence in both
    np.testing.assert_allclose(mine[inside], latents[0].numpy()[inside], atol=1e-3)
    codes = network.books.codes(latents[0].numpy())
    assert (codes == coded.codes[:, 0].numpy().T).mean() > 0.99
    speaks = network.decoder.stream()
    told = network.books.latents(coded.codes[:, 0].numpy().T)
    made = np.concatenate([speaks.push(told), speaks.flush()])
    np.testing.assert_allclose(made[:-40], said[:-40], atol=1e-2)


def test_what_is_exported_runs_and_is_described(cache, trained_folder, tmp_path):
    target = tmp_path / "usc.npz"
    with pytest.raises(StoreError, match="not evaluated"):
        export(cache, trained_folder, target)
    losses = load_losses(cache, trained_folder)
    rows = [measure(cache, losses, role) for role in ("choose", "report")]
    assert [row["readers"] for row in rows] == [1, 1]
    assert [row["rank"] for row in rows] == [[1, 0]] * 2, "there is nobody else"
    (trained_folder / "results.json").write_text(json.dumps(rows))
    card = export(cache, trained_folder, target)
    (trained_folder / "results.json").unlink()
    network = UscNetwork.load(target)
    assert card == json.loads(target.with_suffix(".json").read_bytes())
    assert card["sha256"] == network.sha256
    assert card["bytes"] == target.stat().st_size < 1_300_000
    assert card["bits_per_second"] == {"c0": 250, "all": 1500}
    assert card["training"]["parts"] == list(PARTS)
    assert network.books.size == 1024
    assert len(network.books) == BOOKS
