"""Some steps of the recipe of the phone network: it learns, goes on, and what it makes runs."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra recipes")

import soundfile
import torch

from monitor.errors import CorpusError, StoreError
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.lab.adapting.training import Length
from monitor.lab.utility import count_edits
from monitor.networks.layers import RATE, log_mel
from monitor.networks.phones import PHONES, PhoneNetwork, UnitNetwork
from monitor.training.voices import SessionFrames, SpeakerSpeech
from recipes.phones.batches import UNKNOWN, Batches
from recipes.phones.bits import bits
from recipes.phones.cache import Cache, Piece
from recipes.phones.codebook import codebook, coded, hidden
from recipes.phones.corpus import lines, recordings
from recipes.phones.counting import counted
from recipes.phones.evaluate import (
    RESULTS,
    USE,
    WEIGHTS,
    best_path,
    chosen,
    measure,
    posteriors,
    table,
)
from recipes.phones.export import export, export_units
from recipes.phones.forced import align, aligned
from recipes.phones.network import Recogniser, folded, layer
from recipes.phones.prepare import PEER, Spoken, Utterance, utterances, write
from recipes.phones.train import load_recogniser, train
from recipes.phones.trigram import trigram, trigram_of
from recipes.phones.words import Words
from recipes.training import CHECKPOINT
from recipes.voice.corpus import Recording

pytestmark = pytest.mark.slow

SAID = {"ee": 18, "oo": 34, "sh": 30}  # classes of IY, UW, SH
SECONDS = 0.15  # a phone


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
    pieces: list[Piece] = []
    spoken: list[Utterance] = []
    audio, start = [], 0
    times: list[dict[str, object]] = []
    for role, readers in (("train", 6), ("choose", 2), ("report", 2), ("held out", 2)):
        for reader in range(readers):
            parts, at = [], 0
            for _ in range(6):
                words = generator.choice(list(SAID), 12)
                sound = np.concatenate([noise(word, generator) for word in words])
                phones = [SAID[word] for word in words]
                spoken.append(Utterance(len(pieces), at, len(sound), phones, True))
                begins = np.arange(12) * 15
                if role == "train" and reader % 2:
                    row = {
                        "utterance": len(spoken) - 1,
                        "times": np.stack([begins, begins + 15], axis=1).tolist(),
                    }
                    times.append(row)
                parts.append(sound)
                at += len(sound)
            whole = np.concatenate(parts).astype(np.int16)
            pieces.append(
                Piece(
                    "made", f"{role}{reader}", "FM"[reader % 2], "1", True, role, start, len(whole)
                )
            )
            audio.append(whole)
            start += len(whole)
    folder: Path = tmp_path_factory.mktemp("phones") / "cache"
    Cache.write(folder, pieces, audio)
    write(folder, spoken)
    (folder / "aligned-0.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in times))
    return folder


@pytest.fixture(scope="module")
def trained(prepared, tmp_path_factory) -> tuple[Path, list[float]]:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("out")
    return out, train(Spoken(prepared), out, Length(steps=25), batch=8)


def test_the_loss_falls(trained):
    _, losses = trained
    assert len(losses) == 25
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:3])


def test_a_killed_training_goes_on_as_if_it_had_not_been(prepared, tmp_path, monkeypatch):
    spoken = Spoken(prepared)
    whole = train(spoken, tmp_path / "a", Length(steps=4), batch=4)
    batches = Batches.at

    def killed(self: Batches, step: int, seconds: float) -> object:
        if step == 2:
            raise KeyboardInterrupt
        return batches(self, step, seconds)

    with monkeypatch.context() as patch:
        patch.setattr(Batches, "at", killed)
        with pytest.raises(KeyboardInterrupt):
            train(spoken, tmp_path / "b", Length(steps=4), batch=4, every_seconds=0)
    rest = train(spoken, tmp_path / "b", Length(steps=4), batch=4)
    assert rest == whole[2:]
    one, other = (load_recogniser(tmp_path / each).state_dict() for each in "ab")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_training_may_begin_with_the_weights_of_another(prepared, trained, tmp_path):
    losses = train(Spoken(prepared), tmp_path, Length(steps=2), batch=12, begin=trained[0])
    assert losses[0] < 0.7 * trained[1][0]


def test_another_training_is_not_gone_on_with(prepared, trained):
    with pytest.raises(StoreError, match="'seed': 1"):
        train(Spoken(prepared), trained[0], Length(steps=50), batch=8, seed=2)


def test_numpy_says_what_torch_says(prepared, trained):
    network, spoken = load_recogniser(trained[0]), Spoken(prepared)
    index = next(i for i, each in enumerate(spoken.utterances) if each in spoken.of("report"))
    use = {"trigram": trigram(spoken), "trigram.use": np.ones(2)}
    made = PhoneNetwork(folded(network) | use)
    stream, sound = made.stream(), spoken.sound(spoken.utterances[index])
    found = np.concatenate([stream.push(sound), stream.flush()])
    expected = posteriors(spoken, network, index)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    layout = network.layout
    ahead = sum(
        times * after
        for times, blocks in ((1, layout.early), (2, layout.middle), (1, layout.late))
        for _, after in blocks
    )
    assert made.look_ahead == pytest.approx(0.02 * (ahead + 1) + 0.025)


def test_units_in_numpy_are_the_codes_of_the_layer_in_torch(prepared, tmp_path):
    """Of a training of their own layout, exported: what its first block says, in half precision."""
    spoken = Spoken(prepared)
    train(spoken, tmp_path, Length(steps=3), batch=8, layout="units")
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
    rows = hidden(network, sound)["early.0"]
    assert np.mean(coded(rows, codes)[: len(units)] == units) > 0.9
    exact = UnitNetwork(layer(network) | {"codebook": codes}).stream()
    units = np.concatenate([exact.push(sound), exact.flush()])
    assert np.mean(coded(rows, codes)[: len(units)] == units) > 0.98


def test_units_are_not_taken_from_the_other_layout(prepared, trained, tmp_path):
    with pytest.raises(StoreError, match="--layout units"):
        export_units(Spoken(prepared), trained[0], tmp_path / "units.npz")


def test_what_was_exported_loads_runs_and_tells_what_it_is(prepared, trained, tmp_path):
    spoken, (out, _) = Spoken(prepared), trained
    network = load_recogniser(out)

    def decoded(index: int) -> list[str]:
        return best_path(posteriors(spoken, network, index))

    rows = measure(spoken, "network", decoded)
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
    stream = shipped.stream()
    heard = [stream.push(spoken.sound(spoken.utterances[index])), stream.flush()]
    found, expected = np.concatenate(heard), posteriors(spoken, network, index)
    assert np.mean(found.argmax(axis=1) == expected.argmax(axis=1)) > 0.9  # int8
    (data,) = card["training"]["data"]
    assert data["speakers"] == {"F": 3, "M": 3}
    assert data["minutes_aligned"] == pytest.approx(data["minutes"] / 2, abs=0.1)
    assert 1_500_000 < card["parameters"] < 2_500_000
    assert card["bytes"] < 2_500_000


def test_the_half_that_chooses_chooses_what_the_trigram_counts(prepared):
    """Where frames say little, what follows what says more; where they say all, nothing."""
    spoken = Spoken(prepared)
    generator = np.random.default_rng(0)

    def heard(index: int, sure: float) -> np.ndarray:
        said = np.zeros(3 * len(spoken.utterances[index].phones), int)
        said[1::3] = spoken.utterances[index].phones
        scores = generator.normal(size=(len(said), 40))
        scores[range(len(said)), said] += sure
        return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))

    found = chosen(spoken, lambda index: heard(index, 30.0))
    assert found.weight == min(WEIGHTS)  # the first of equals
    assert found.logs.shape == (40, 40, 40)


def test_phones_follow_each_other_as_they_were_said():
    said = [[1, 2, 3, 2, 1]] * 50 + [[3, 3]]
    logs = trigram_of(said, classes=5)
    np.testing.assert_allclose(np.exp(logs).sum(axis=2), 1)
    assert np.exp(logs[1, 2, 3]) > 0.9
    assert np.exp(logs[2, 1, 0]) > 0.9  # the end
    assert (np.exp(logs[4, 4]) > 0).all()  # never seen: as after any
    assert logs[4, 4, 2] > logs[4, 4, 4]


def test_the_rest_is_aligned_by_the_network(prepared, trained, tmp_path):
    shutil.copytree(prepared, tmp_path / "cache")
    spoken = Spoken(tmp_path / "cache")
    before = spoken.aligned()
    assert align(spoken, load_recogniser(trained[0])) == len(before)
    found = spoken.aligned()
    assert len(found) == len(spoken.of("train"))
    assert all(np.array_equal(found[i], times) for i, times in before.items())
    for index, times in found.items():
        assert len(times) == len(spoken.utterances[index].phones)
        assert (times[:, 1] > times[:, 0]).all()
        assert (times[1:, 0] >= times[:-1, 1]).all()
    assert align(spoken, load_recogniser(trained[0])) == 0
    assert aligned(np.zeros((2, 3)), [1, 2, 1]) is None


def test_nothing_is_exported_that_was_not_evaluated(prepared, tmp_path):
    with pytest.raises(StoreError, match="not evaluated"):
        export(Spoken(prepared), tmp_path, tmp_path / "phones.npz")


def test_a_step_draws_the_same_batch_whatever_came_before(prepared):
    spoken = Spoken(prepared)
    first = Batches(spoken, 1)
    first.at(0, 12)
    one, other = first.at(7, 12), Batches(spoken, 1).at(7, 12)
    assert np.array_equal(one.bands, other.bands)
    assert np.array_equal(one.said, other.said)
    assert not np.array_equal(one.phones, Batches(spoken, 2).at(7, 12).phones)


def test_frames_are_named_where_they_were_aligned(prepared):
    batch = Batches(Spoken(prepared), 3).at(1, 30)
    place = 0
    aligned = 0
    for said, frames, count in zip(batch.said, batch.frames, batch.counts, strict=True):
        phones = batch.phones[place : place + count]
        place += count
        if (said == UNKNOWN).all():
            continue
        aligned += 1
        runs = said[np.flatnonzero(np.diff(said, prepend=-1))]
        merged = phones[np.flatnonzero(np.diff(phones, prepend=-1))]
        assert [each for each in runs if each > 0] == merged.tolist()
        assert np.count_nonzero(said > 0) == pytest.approx(frames, abs=3)
    assert 0 < aligned < len(batch.said)


def test_phones_come_from_the_dictionary_or_from_its_rules():
    pytest.importorskip("pocketsphinx", reason="needs the extra recipes")
    words = Words.cmu()
    assert words.phones("SEE THE CAT") == ("S", "IY", "DH", "AH", "K", "AE", "T")
    assert words.known("see the cat")
    assert not words.known("see the gathercole")


def test_rules_are_learnt_from_the_words_there_are():
    letters = {letter: letter.upper() for letter in "abdegiklmnoprstuz"}
    generator = np.random.default_rng(0)
    said = {}
    for _ in range(400):
        word = "".join(generator.choice(list(letters), 5))
        said[word] = tuple(letters[letter] for letter in word)
    words = Words(said)
    assert words.phones("tabletop") == tuple(letters[letter] for letter in "tabletop")


def test_a_transcript_may_have_a_header(tmp_path):
    for name, head in (("a", "start\tend\ttext\n"), ("b", "")):
        (tmp_path / f"{name}.tsv").write_text(f'{head}0.00\t1.50\tA "QUOTE\n')
        assert [tuple(each) for each in lines(tmp_path / f"{name}.opus")] == [(0, 1.5, 'A "QUOTE')]
    with pytest.raises(CorpusError, match=r"c\.tsv: no transcript"):
        lines(tmp_path / "c.opus")


def test_short_utterances_that_train_are_joined(tmp_path):
    text = "".join(f"{i}.00\t{i + 1}.00\tSEE TEA\n" for i in range(40))
    roles = ("train", "report")
    listed, pieces = [], []
    for role in roles:
        (tmp_path / f"{role}.tsv").write_text(text)
        listed.append(Recording(tmp_path / f"{role}.opus", "a", role, "F", "1", True, role, 40.0))
        pieces.append(Piece("a", role, "F", "1", True, role, 0, 40 * RATE))
    cache = Cache.write(tmp_path / "cache", pieces, [np.zeros(40 * RATE, np.int16)] * 2)
    found = utterances(listed, cache, Words({"see": ("S", "IY"), "tea": ("T", "IY")}))
    trained, reported = ([each for each in found if each.piece == i] for i in (0, 1))
    assert [each.samples / RATE for each in trained] == [16, 16, 8]
    assert len(reported) == 40
    assert all(len(each.phones) == 4 * each.samples / RATE for each in found)


def test_codes_are_means_of_what_is_nearest():
    generator = np.random.default_rng(0)
    centres = 20 * generator.standard_normal((6, 5))
    rows = np.concatenate([centre + generator.standard_normal((200, 5)) for centre in centres])
    codes = codebook(rows, 30)
    nearest = coded(rows.astype(np.float32), codes)
    assert np.linalg.norm(rows - codes[nearest], axis=1).mean() < 3
    distances = np.linalg.norm(rows[:50, None] - codes, axis=2)
    assert np.array_equal(nearest[:50], distances.argmin(axis=1))


def test_voices_are_kept_from_others(prepared):
    for name in ("audio.i16", "index.json", "utterances.json"):
        assert (prepared / name).stat().st_mode & 0o077 == 0


def test_what_is_missing_is_said(tmp_path, prepared):
    with pytest.raises(CorpusError, match=r"recipes\.phones\.prepare"):
        Spoken(tmp_path)
    with pytest.raises(StoreError, match="no checkpoint"):
        load_recogniser(tmp_path)
    assert not (tmp_path / CHECKPOINT).exists()
    spoken = Spoken(prepared)
    spoken.cache.pieces = [
        Piece(**(asdict(piece) | {"role": "report"})) for piece in spoken.cache.pieces
    ]
    with pytest.raises(CorpusError, match="nobody to train on"):
        Batches(spoken, 1)


def test_a_frame_does_not_depend_on_what_comes_much_later():
    network = Recogniser().eval()
    bands = torch.from_numpy(log_mel(np.random.default_rng(0).standard_normal(3 * RATE) / 10)[None])
    other = bands.clone()
    other[:, 200:] = 0
    with torch.inference_mode():
        one, two = network(bands)[0], network(other)[0]
    assert torch.equal(one[:69], two[:69])
    assert not torch.equal(one[69:100], two[69:100])


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


def test_aligner_and_peer_hear_a_real_reader(shared, tmp_path):
    pytest.importorskip("pocketsphinx", reason="needs the extra recipes")
    from recipes.phones.align import align
    from recipes.phones.sphinx import Search

    path = min((shared / "speech/dev-clean").glob("*/*.opus"))
    words = Words.cmu()
    line = next(each for each in lines(path) if each.end < 30 and words.known(each.text))
    begin, end = round(line.start * RATE), round(line.end * RATE)
    sound, _ = soundfile.read(path, start=begin, stop=end, dtype="int16")
    phones = [PHONES.index(phone) + 1 for phone in words.phones(line.text)]
    piece = Piece("a", "19", "F", "198", True, "train", 0, len(sound))
    Cache.write(tmp_path, [piece], [sound])
    write(tmp_path, [Utterance(0, 0, len(sound), phones, True)])
    align(Spoken(tmp_path))
    align(Spoken(tmp_path))  # nothing is heard twice
    assert (tmp_path / "aligned-0.jsonl").read_text().count("\n") == 1
    (times,) = Spoken(tmp_path).aligned().values()
    assert times.shape == (len(phones), 2)
    assert np.all(times[:, 0] < times[:, 1])
    assert np.all(times[1:, 0] >= times[:-1, 1])
    assert times[-1, 1] * 0.01 <= line.end - line.start
    found = Search().tokens(Spoken(tmp_path).sound(Spoken(tmp_path).utterances[0]))
    wrong = count_edits([PHONES[phone - 1] for phone, _, _ in found], words.phones(line.text))
    assert wrong < 0.8 * len(phones)


def test_what_the_peer_heard_is_measured_beside(prepared):
    spoken = Spoken(prepared)
    assert spoken.peer() == {}
    report = [i for i, each in enumerate(spoken.utterances) if spoken.piece(each).role == "report"]
    half = [[[phone, 0, 1] for phone in spoken.utterances[i].phones[::2]] for i in report]
    rows = [{"utterance": i, "tokens": each} for i, each in zip(report, half, strict=True)]
    path = prepared / PEER
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    peer = spoken.peer()
    path.unlink()
    (row,) = measure(spoken, "peer", lambda i: [PHONES[t - 1] for t in peer[i][:, 0]])
    assert row["error"] == 0.5
    assert row["utterances"] == len(report)


def test_what_is_counted_lies_in_speech_or_in_pauses(prepared, trained):
    spoken, network = Spoken(prepared), load_recogniser(trained[0])
    sound = spoken.sound(spoken.of("report")[0])
    codes = codebook(hidden(network, sound)["early.0"], 16)
    speech = np.zeros(len(sound) // 160, bool)
    speech[40:140] = True
    peer = np.array([[5, 50, 60], [7, 0, 10], [9, 135, 150]])
    found = counted(network, sound, speech, {"early.0 16": codes}, peer)
    units = found["units, early.0 16"]
    assert units.length == 10  # tenths of a second of speech
    assert np.bincount(units.units, minlength=10).tolist() == [5] * 10
    assert found["pocketsphinx tokens"].values.tolist() == [4]
    assert found["posteriors summed"].values.shape == (50, 39)
    assert 0 <= len(found["tokens"].values) < 50


def of(name: str) -> FeatureSpec:
    return FeatureSpec(name, HISTOGRAM, 16, 0.02)


def test_units_of_a_voice_of_its_own_tell_and_others_do_not():
    generator = np.random.default_rng(0)
    voices = []
    for number in range(12):
        own = generator.dirichlet(np.full(16, 0.5))
        sessions = []
        for _ in "12":
            units = np.repeat(np.arange(700), 5)
            made = {
                "own units": SessionFrames(
                    generator.choice(16, len(units), p=own), units, 700, of("own units")
                ),
                "empty": SessionFrames(generator.choice(16, len(units)), units, 700, of("empty")),
            }
            sessions.append(made)
        voices.append(SpeakerSpeech(f"v{number}", tuple(sessions)))
    found = bits(voices, np.ones(12, bool))
    assert min(found["own units"]) > 0.9 * np.log2(12)
    assert max(np.abs(found["empty"])) < 0.2
    one = np.arange(12) == 3
    assert min(bits(voices, ~one, judged=one)["own units"]) > 0.9 * np.log2(12)
