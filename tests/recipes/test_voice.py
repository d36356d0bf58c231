"""Some steps of the recipe of the voice network: it learns, goes on, and what it makes runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra recipes")

import torch

from monitor.adapting.adapted import Length
from monitor.adapting.fine_tuning import Student, TeacherLoss, folded, rounded
from monitor.errors import CorpusError, StoreError, UsageError
from monitor.networks.layers import log_mel, restored
from monitor.networks.voice import VoiceNetwork
from recipes.training import CHECKPOINT
from recipes.voice.augment import SPEEDS
from recipes.voice.batches import Batches
from recipes.voice.cache import Cache
from recipes.voice.corpus import recordings
from recipes.voice.evaluate import RESULTS, measure, table
from recipes.voice.export import export
from recipes.voice.train import load_student, past, train
from recipes.voice.within import finished

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(prepared, tmp_path_factory) -> tuple[Path, list[float]]:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("out")
    return out, train(Cache(prepared), out, Length(steps=30), batch=12)


def test_the_loss_falls(trained):
    _, losses = trained
    assert len(losses) == 30
    assert np.mean(losses[-8:]) < 0.9 * np.mean(losses[:4])


def test_a_killed_training_goes_on_as_if_it_had_not_been(prepared, tmp_path, monkeypatch):
    cache = Cache(prepared)
    whole = train(cache, tmp_path / "a", Length(steps=4), batch=4)
    batches = Batches.at

    def killed(self: Batches, step: int, size: int) -> object:
        if step == 2:
            raise KeyboardInterrupt
        return batches(self, step, size)

    with monkeypatch.context() as patch:
        patch.setattr(Batches, "at", killed)
        with pytest.raises(KeyboardInterrupt):
            train(cache, tmp_path / "b", Length(steps=4), batch=4, every_seconds=0)
    rest = train(cache, tmp_path / "b", Length(steps=4), batch=4)
    assert rest == whole[2:]
    one, other = (load_student(tmp_path / each).state_dict() for each in "ab")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_another_training_is_not_gone_on_with(prepared, trained):
    with pytest.raises(StoreError, match="'seed': 1"):
        train(Cache(prepared), trained[0], Length(steps=50), batch=12, seed=2)


def test_numpy_says_what_torch_says(trained):
    student = load_student(trained[0])
    windows = np.random.default_rng(3).standard_normal((3, 32_000)).astype(np.float32) / 10
    with torch.inference_mode():
        found = torch.nn.functional.normalize(student(torch.from_numpy(log_mel(windows)))).numpy()
    np.testing.assert_allclose(VoiceNetwork(folded(student)).embed(windows), found, atol=1e-5)
    np.testing.assert_allclose(
        VoiceNetwork(restored(rounded(folded(student)))).embed(windows), found, atol=5e-3
    )


def test_what_was_exported_loads_runs_and_tells_what_it_is(prepared, trained, tmp_path):
    cache, (out, _) = Cache(prepared), trained
    rows = measure(cache, "voice", VoiceNetwork(finished(cache, load_student(out))).embed, (3.0,))
    assert {row["tested"] for row in rows if row["condition"] == "another chapter"} == {4}
    assert table(rows).count("\n") == len(rows) + 1
    (out / RESULTS).write_text(json.dumps(rows))
    made = export(cache, out, tmp_path / "voice.npz")
    card = json.loads((tmp_path / "voice.json").read_text())
    network = VoiceNetwork.load(tmp_path / "voice.npz")
    assert network.sha256 == made["sha256"] == card["sha256"]
    assert sum(sum(each["speakers"].values()) for each in card["training"]["data"]) == 12
    assert 500_000 < card["parameters"] < 1_000_000
    assert card["bytes"] < 4 << 20


def test_nothing_is_exported_that_was_not_evaluated(prepared, tmp_path):
    with pytest.raises(StoreError, match="not evaluated"):
        export(Cache(prepared), tmp_path, tmp_path / "voice.npz")


def test_only_anchors_of_the_same_corpus_compete():
    anchors = torch.nn.functional.normalize(torch.eye(4, 192))
    loss = TeacherLoss(anchors, torch.tensor([0, 0, 1, 1]))
    own, elsewhere = torch.tensor([0]), torch.tensor([1])
    towards = anchors[:1] + anchors[[1, 2]]  # half another voice: of this corpus, of the other
    near, apart = (float(loss(each[None], anchors[:1], own)[0]) for each in towards)
    assert near > apart + 0.5  # two compete: log 2
    assert float(loss(towards[1:], anchors[:1], elsewhere)[0]) > apart


def test_the_loss_is_nothing_where_the_student_says_what_the_teacher_says():
    torch.manual_seed(0)
    said = torch.nn.functional.normalize(torch.randn(5, 192))
    corpora = torch.tensor([0, 0, 1, 1, 1])
    total, alike = TeacherLoss(said, corpora)(3 * said, said, corpora)  # a length says nothing
    assert float(total) == pytest.approx(0, abs=1e-4)
    assert float(alike) == pytest.approx(1)


def test_a_step_draws_the_same_batch_whatever_came_before(prepared):
    cache = Cache(prepared)
    first = Batches(cache, 1)
    first.at(0, 4)
    one, other = first.at(7, 4), Batches(cache, 1).at(7, 4)
    assert np.array_equal(one.bands, other.bands)
    assert np.array_equal(one.teacher, other.teacher)
    assert not np.array_equal(one.teacher, Batches(cache, 2).at(7, 4).teacher)


def test_between_two_speeds_the_teacher_is_between(prepared):
    batches = Batches(Cache(prepared), 1)
    said = batches.anchors.reshape(batches.speakers, len(SPEEDS), -1)
    drawn = batches.at(3, 16)
    np.testing.assert_allclose(np.linalg.norm(drawn.teacher, axis=1), 1, atol=1e-5)
    order = np.argsort(SPEEDS)
    pairs = np.concatenate([said[:, order[at : at + 2]] for at in range(len(SPEEDS) - 1)])
    for teacher in drawn.teacher:
        shares = np.stack([np.linalg.lstsq(pair.T, teacher)[0] for pair in pairs])
        left = np.linalg.norm(np.einsum("pk,pkm->pm", shares, pairs) - teacher, axis=1)
        assert left.min() < 1e-5
        assert (shares[left.argmin()] > -1e-5).all()


def test_half_precision_learns_as_well(prepared, tmp_path):
    losses = train(Cache(prepared), tmp_path, Length(steps=15), batch=12, half=True)
    assert np.mean(losses[-4:]) < np.mean(losses[:3])
    assert {each.dtype for each in load_student(tmp_path).parameters()} == {torch.float32}


def test_a_training_begins_with_the_weights_of_another(prepared, trained, tmp_path):
    losses = train(Cache(prepared), tmp_path, Length(steps=2), batch=12, begin=trained[0])
    assert losses[0] < 0.9 * trained[1][0]
    assert [each["steps"] for each in past(tmp_path)] == [30, 2]


def test_voices_are_kept_from_others(prepared):
    assert {path.stat().st_mode & 0o077 for path in prepared.iterdir()} == {0}


def test_what_is_missing_is_said(tmp_path, prepared):
    with pytest.raises(CorpusError, match=r"recipes\.voice\.prepare"):
        Cache(tmp_path)
    with pytest.raises(UsageError, match="--minutes"):
        Length().done(1, 1)
    with pytest.raises(StoreError, match="no checkpoint"):
        load_student(tmp_path)
    assert not (tmp_path / CHECKPOINT).exists()
    cache = Cache(prepared)
    cache.pieces = cache.of("report")
    with pytest.raises(CorpusError, match="not all prepared"):
        Batches(cache, 1)


def test_a_student_hears_gain_and_channel_alike():
    student = Student().eval()
    bands = torch.randn(1, 100, 40)
    with torch.inference_mode():
        one, other = student(bands), student(bands + torch.linspace(-3, 2, 40))
    torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_no_reader_of_the_shipped_population_trains(shared):
    from monitor.population.population import Population

    listed = recordings(shared / "speech", shared / "nonnative")
    by_role = {
        role: {(each.corpus, each.speaker) for each in listed if each.role == role}
        for role in ("train", "choose", "report", "held out")
    }
    assert [len(each) for each in by_role.values()] == [419, 26, 24, 50]
    assert not any(a & b for a in by_role.values() for b in by_role.values() if a is not b)
    named = {speaker for _, speaker in by_role["choose"] | by_role["report"]}
    assert named == set(Population.reference().names)
    trained = {speaker for corpus, speaker in by_role["train"] if corpus == "background"}
    assert not trained & named


def test_a_folder_without_a_manifest_is_said(tmp_path):
    with pytest.raises(CorpusError, match=r"manifest\.csv"):
        recordings(tmp_path, tmp_path)
