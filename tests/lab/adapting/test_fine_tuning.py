"""A network learns from protected voices to tell others apart, in torch what it is in numpy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import monitor.networks

pytest.importorskip("torch", reason="needs the extra training")

import torch

from monitor.errors import CorpusError, StoreError
from monitor.lab.adapting.fine_tuning import Checkpoint, TrainableVoice, fine_tune
from monitor.lab.adapting.training import (
    FineTuning,
    Length,
    ProtectedSpeech,
    SpeechDraws,
    draw_speech,
)
from monitor.lab.result_cache import ResultCache, result_key
from monitor.maths.scores import unit_vectors
from monitor.networks.layers import read_weights
from monitor.networks.voice import VoiceNetwork, mel_decibels, shipped
from monitor.types import FloatArray
from tests.lab.adapting.conftest import TRAINING, played

SMALL = FineTuning(batch=16)


@pytest.fixture(scope="module")
def training(voices) -> ProtectedSpeech:
    return draw_speech([voices[:TRAINING]], played, SpeechDraws(3, 3.0, (1.0,)))


@pytest.fixture(scope="module")
def few(voices) -> ProtectedSpeech:
    return draw_speech([voices[:4]], played, SpeechDraws(2, 2.0, (1.0,)))


def embedded(network: VoiceNetwork, crops: list[FloatArray]) -> FloatArray:
    """What a network says of crops, of length 1."""
    bands = [each.astype(np.float32) for each in crops]
    return unit_vectors(network.embed_bands([each - each.mean(axis=0) for each in bands]))


def first_ranks(network: VoiceNetwork, speech: ProtectedSpeech, enrolled: int = 3) -> float:
    """How often a draw is nearest to the template, of three other draws, of its own voice."""
    said = embedded(network, [each[:300] for each in speech.bands])
    by_voice = said.reshape(len(speech.names), -1, network.size)
    templates = by_voice[:, :enrolled].sum(axis=1)
    templates /= np.linalg.norm(templates, axis=1, keepdims=True)
    found = (by_voice[:, enrolled:] @ templates.T).argmax(axis=2)
    return float((found == np.arange(len(found))[:, None]).mean())


@pytest.mark.slow
def test_voices_it_never_met_are_told_apart_better_under_draws_it_never_met(voices, training):
    unseen = draw_speech([voices[TRAINING:]], played, SpeechDraws(6, 3.0, (1.0,), seed=9))
    before = first_ranks(shipped(), unseen)
    hasty = FineTuning(batch=8, highest=1e-3)  # of few steps
    learnt = VoiceNetwork(fine_tune(training, shipped().weights, Length(steps=10), hasty))
    assert len(unseen.bands) == 16 * 6
    assert first_ranks(learnt, unseen) > before + 0.04
    assert before < 0.7  # there is something to learn


@pytest.mark.slow
def test_a_stopped_training_goes_on_as_if_it_had_not_been(few, tmp_path):
    def train(**how: Any) -> Any:
        plan = how.pop("fine_tuning", FineTuning(batch=4))
        return fine_tune(few, shipped().weights, Length(steps=4), plan, **how)

    def stop(done: float, _: float) -> None:
        if done == 0.5:
            raise KeyboardInterrupt

    losses: list[float] = []
    rest: list[float] = []
    kept = {"checkpoint": Checkpoint(ResultCache(tmp_path), result_key("state"))}
    often = kept["checkpoint"]._replace(every_seconds=0)
    whole = train(progress=lambda _, x: losses.append(x))
    with pytest.raises(KeyboardInterrupt):
        train(checkpoint=often, progress=stop)
    again = train(**kept, progress=lambda _, x: rest.append(x), threads=3)
    assert rest == losses[2:]
    assert all(np.array_equal(again[name], whole[name]) for name in whole)
    # to a training of another seed that state is nothing
    other = train(**kept, fine_tuning=FineTuning(batch=4, seed=2))
    assert not np.array_equal(other["embed.mean"], whole["embed.mean"])


def test_without_a_step_the_last_layer_alone_is_turned_and_threads_are_given_back(few):
    before = torch.get_num_threads()
    made = fine_tune(few, shipped().weights, Length(steps=0), SMALL)
    assert torch.get_num_threads() == before
    for name, each in made.items():
        same = np.allclose(each, shipped().weights[name], rtol=1e-5, atol=1e-7)
        assert same == (not name.startswith("embed")), name


def test_a_training_that_comes_to_nothing_is_told(few):
    broken = {**shipped().weights, "embed.bias": np.full(192, np.nan, np.float32)}
    with pytest.raises(CorpusError, match="NaN or infinite"):
        fine_tune(few, broken, Length(steps=2), SMALL)


WEIGHTS = Path(monitor.networks.__file__).with_name("voice.npz")


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    return read_weights(WEIGHTS)[0]


def said(student, windows: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        made = student(torch.from_numpy(np.stack([mel_decibels(each) for each in windows])))
    return np.asarray(torch.nn.functional.normalize(made).numpy())


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1.0, 1.73, 3.0])
def test_torch_says_what_numpy_says(weights, seconds):
    windows = np.random.default_rng(5).standard_normal((4, round(16_000 * seconds))) / 10
    windows = (windows * [[1], [0.01], [1], [0]]).astype(np.float32)
    made, expected = said(TrainableVoice(weights), windows), unit_vectors(shipped().embed(windows))
    np.testing.assert_allclose(made[:3], expected[:3], atol=1e-4)
    # in silence deviations are the rounding of what they are taken of
    np.testing.assert_allclose(made[3], expected[3], atol=2e-3)


@pytest.mark.slow
def test_what_was_trained_runs_in_numpy(weights):
    student = TrainableVoice(weights)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for each in student.parameters():
            each.mul_(1 + 0.05 * torch.randn(each.shape, generator=generator))
    windows = np.random.default_rng(5).standard_normal((2, 48_000)).astype(np.float32) / 10
    moved = unit_vectors(VoiceNetwork(student.plain()).embed(windows))
    np.testing.assert_allclose(moved, said(student, windows), atol=1e-4)
    assert np.abs(moved - unit_vectors(shipped().embed(windows))).max() > 1e-2


def test_weights_come_back_as_they_went_and_those_of_another_network_are_refused(weights):
    again = TrainableVoice(weights).plain()
    assert again.keys() == weights.keys()
    assert all(np.array_equal(each, weights[name]) for name, each in again.items())
    lacking = {name: each for name, each in weights.items() if name != "embed.bias"}
    wider = {**weights, "embed.mean": np.ones((2, 2), np.float32)}
    for wrong in (lacking, wider, {}):
        with pytest.raises(StoreError, match="invalid weights"):
            TrainableVoice(wrong)
