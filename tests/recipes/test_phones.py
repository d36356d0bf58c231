"""Some steps of the recipe of the phone network: it learns, goes on, and what it makes runs."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra recipes")

import soundfile
import torch

from monitor.errors import CorpusError, StoreError
from monitor.networks.layers import RATE
from monitor.networks.phones import PhoneNetwork, UnitNetwork
from recipes.phones.batches import Batches
from recipes.phones.corpus import recordings
from recipes.phones.evaluate import RESULTS, USE, best_path, measure, posteriors, table, trigram
from recipes.phones.export import export, export_units
from recipes.phones.network import fold_norms, layer
from recipes.phones.prepare import Cache, Spoken, Utterance, write
from recipes.phones.train import arguments, load_recogniser, train
from recipes.phones.units import assign_codes, compute_hidden
from recipes.voice.corpus import Recording

pytestmark = pytest.mark.slow

SAID = {"ee": 18, "oo": 34, "sh": 30}  # classes of IY, UW, SH
SECONDS = 0.15  # a phone


def recorded(path: Path, role: str = "train", gender: str = "F") -> Recording:
    return Recording(path, "made", path.stem, gender, "1", role, 2.0)


def noise(phone: str, generator: np.random.Generator) -> np.ndarray:
    """A phone that anybody can tell from the others: noise in a band of its own."""
    low, high = {"ee": (2000, 3000), "oo": (200, 500), "sh": (4500, 7000)}[phone]
    samples = round(SECONDS * RATE)
    spectrum = np.fft.rfft(generator.standard_normal(samples))
    hertz = np.fft.rfftfreq(samples, 1 / RATE)
    spectrum[(hertz < low) | (hertz > high)] = 0
    sound = np.fft.irfft(spectrum, samples)
    return np.asarray(3000 * sound / np.abs(sound).max() * np.hanning(samples))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """Readers who hiss and hum: six to train on, two in each half, two held out."""
    generator = np.random.default_rng(0)
    folder: Path = tmp_path_factory.mktemp("phones")
    listed: list[Recording] = []
    spoken: list[Utterance] = []
    times: list[dict[str, object]] = []
    begins = np.arange(12) * 15
    for role, readers in (("train", 6), ("choose", 2), ("report", 2), ("held out", 2)):
        for reader in range(readers):
            parts: list[np.ndarray] = []
            for _ in range(6):
                words = generator.choice(list(SAID), 12)
                sound = np.concatenate([noise(word, generator) for word in words])
                if role == "train" and reader % 2:
                    row = np.stack([begins, begins + 15], axis=1).tolist()
                    times.append({"utterance": len(spoken), "times": row})
                phones = [SAID[word] for word in words]
                at = len(parts) * len(sound)
                spoken.append(Utterance(len(listed), at, len(sound), phones, True))
                parts.append(sound)
            path = folder / f"{role}{reader}.wav"
            soundfile.write(path, np.concatenate(parts).astype(np.int16), RATE)
            listed.append(recorded(path, role, "FM"[reader % 2]))
    cache = Cache.hear(listed, folder / "cache").folder
    write(cache, spoken)
    (cache / "aligned-0.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in times))
    return cache


def trains(cache: Path, out: Path, steps: int, *more: str, every: float = 60.0) -> list[float]:
    """By the options of the command."""
    given = [cache, out, "--steps", steps, *(more or ("--batch", "4"))]
    return train(arguments().parse_args(list(map(str, given))), every)


@pytest.fixture(scope="module")
def trained(prepared, tmp_path_factory) -> tuple[Path, list[float]]:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("out")
    return out, trains(prepared, out, 25, "--batch", "8")


def test_a_killed_training_goes_on_as_if_it_had_not_been(prepared, tmp_path, monkeypatch):
    with pytest.raises(StoreError, match="no checkpoint"):
        load_recogniser(tmp_path)
    whole = trains(prepared, tmp_path / "a", 4)
    batches = Batches.create_batch

    def killed(self: Batches, step: int, seconds: float) -> object:
        if step == 2:
            raise KeyboardInterrupt
        return batches(self, step, seconds)

    with monkeypatch.context() as patch:
        patch.setattr(Batches, "create_batch", killed)
        with pytest.raises(KeyboardInterrupt):
            trains(prepared, tmp_path / "b", 4, every=0)
    rest = trains(prepared, tmp_path / "b", 4)
    assert rest == whole[2:]
    one, other = (load_recogniser(tmp_path / each).state_dict() for each in "ab")
    assert all(torch.equal(one[name], other[name]) for name in one)
    with pytest.raises(StoreError, match="'seed': 1"):
        trains(prepared, tmp_path / "a", 50, "--batch", "4", "--seed", "2")


def heard_by(network: PhoneNetwork, sound: np.ndarray) -> np.ndarray:
    stream = network.stream()
    return np.concatenate([stream.push(sound), stream.flush()])


def test_units_in_numpy_are_the_codes_of_the_layer_in_torch(prepared, trained, tmp_path):
    """Of a training of their own layout, exported: what its first block says, in half precision."""
    spoken = Spoken(prepared)
    trains(prepared, tmp_path, 3, "--batch", "8", "--layout", "units")
    network = load_recogniser(tmp_path)
    assert not network.layout.centred
    card = export_units(spoken, tmp_path, tmp_path / "units.npz", 16)
    made = UnitNetwork.load(tmp_path / "units.npz")
    assert made.sha256 == card["sha256"]
    assert made.size == card["units"] == 16
    sound = spoken.sound(spoken.of("report")[0])
    stream = made.stream()
    units = np.concatenate([stream.push(sound), stream.flush()])
    with np.load(tmp_path / "units.npz") as held:
        codes = held["codebook"].astype(np.float32)
    rows = compute_hidden(network, sound)["early.0"]
    assert np.mean(assign_codes(rows, codes)[: len(units)] == units) > 0.9
    exact = UnitNetwork(layer(network) | {"codebook": codes}).stream()
    units = np.concatenate([exact.push(sound), exact.flush()])
    assert np.mean(assign_codes(rows, codes)[: len(units)] == units) > 0.98
    with pytest.raises(StoreError, match="--layout units"):
        export_units(spoken, trained[0], tmp_path / "units.npz")


def test_it_learns_and_what_was_exported_runs_in_numpy_and_tells_what_it_is(
    prepared, trained, tmp_path
):
    spoken, (out, losses) = Spoken(prepared), trained
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:3])
    network = load_recogniser(out)
    with pytest.raises(StoreError, match="not evaluated"):
        export(spoken, out, tmp_path / "phones.npz")
    rows = measure(spoken, "network", lambda i: best_path(posteriors(spoken, network, i)))
    assert [row["role"] for row in rows] == ["choose", "report", "held out"]
    assert {row["phones"] for row in rows} == {2 * 6 * 12}
    assert max(row["error"] for row in rows) <= 1.1
    assert table(rows).count("\n") == len(rows) + 1
    (out / RESULTS).write_text(json.dumps(rows))
    (out / USE).write_text(json.dumps({"weight": 0.5, "bonus": 1.0}))
    made = export(spoken, out, tmp_path / "phones.npz")
    card = json.loads((tmp_path / "phones.json").read_text())
    shipped = PhoneNetwork.load(tmp_path / "phones.npz")
    assert shipped.sha256 == made["sha256"] == card["sha256"]
    assert shipped.trigram.bonus == 1
    index = next(i for i, each in enumerate(spoken.utterances) if each in spoken.of("report"))
    sound, expected = spoken.sound(spoken.utterances[index]), posteriors(spoken, network, index)
    found = heard_by(shipped, sound)
    assert np.mean(found.argmax(axis=1) == expected.argmax(axis=1)) > 0.9  # int8
    exact = PhoneNetwork(
        fold_norms(network) | {"trigram": trigram(spoken), "trigram.use": np.ones(2)}
    )
    np.testing.assert_allclose(heard_by(exact, sound), expected, atol=1e-3)
    layout = network.layout
    ahead = sum(
        times * after
        for times, blocks in ((1, layout.early), (2, layout.middle), (1, layout.late))
        for _, after in blocks
    )
    assert exact.look_ahead == pytest.approx(0.02 * (ahead + 1) + 0.025)
    (data,) = card["training"]["data"]
    assert data["speakers"] == {"F": 3, "M": 3}
    assert data["minutes_aligned"] == pytest.approx(data["minutes"] / 2, abs=0.1)
    assert 1_500_000 < card["parameters"] < 2_500_000
    assert card["bytes"] < 2_500_000


def test_what_is_heard_is_found_again_and_kept_from_others(tmp_path):
    sound = (8000 * np.sin(np.arange(2 * RATE) / 20)).astype(np.int16)
    listed = []
    for name, rate in (("a", RATE), ("b", RATE), ("c", 8000)):
        path = tmp_path / f"{name}.flac"
        soundfile.write(path, sound, rate, subtype="PCM_16")
        listed.append(recorded(path))
    with pytest.raises(CorpusError, match=r"recipes\.phones\.prepare"):
        Cache(tmp_path / "cache")
    cache = Cache.hear(listed[:2], tmp_path / "cache")
    for path in cache.folder.iterdir():
        assert path.stat().st_mode & 0o077 == 0
    assert [piece.voice for piece in cache.of("train")] == ["made a", "made b"]
    second = cache.sound(cache.pieces[1], RATE // 2, RATE)
    np.testing.assert_array_equal(second, sound[RATE // 2 : 3 * RATE // 2] / np.float32(32768))
    assert len(cache.sound(cache.pieces[1], 3 * RATE // 2, RATE)) == RATE // 2
    with pytest.raises(CorpusError, match=r"c\.flac: not mono at 16000 Hz"):
        Cache.hear(listed, tmp_path / "cache")


def test_nobody_who_is_reported_trains(shared):
    listed = recordings(shared / "speech", shared / "nonnative")
    by_role = {
        role: {(each.corpus, each.speaker) for each in listed if each.role == role}
        for role in ("train", "choose", "report", "held out")
    }
    assert [len(each) for each in by_role.values()] == [228, 11, 11, 50]
    assert not any(a & b for a in by_role.values() for b in by_role.values() if a is not b)
    assert {corpus for corpus, _ in by_role["choose"] | by_role["report"]} == {
        "dev-clean",
        "train-clean-100",
    }
    from recipes.voice import corpus

    voices = corpus.recordings(shared / "speech", shared / "nonnative")
    assert by_role["held out"] == {(v.corpus, v.speaker) for v in voices if v.role == "held out"}
