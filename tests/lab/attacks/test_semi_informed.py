"""The attacker who trains: on whom, what it picks, and that nothing is made twice."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from monitor.anonymisers import register
from monitor.anonymisers.registry import ANONYMISERS
from monitor.corpus import find
from monitor.errors import UsageError
from monitor.lab.adapting.training import FineTuning, Length, SpeechDraws, TrainingPlan
from monitor.lab.attacks import attackers as module
from monitor.lab.attacks.attackers import (
    ATTACKERS,
    AttackContext,
    Background,
    check_background,
    choose_features,
    split_background,
)
from monitor.lab.attacks.readers import Amounts, choose_readers
from monitor.lab.attacks.speech import PieceExtractor
from monitor.lab.result_cache import ResultCache
from monitor.networks.layers import RATE
from monitor.networks.voice import VoiceNetwork, shipped
from tests.lab.adapting.conftest import played, voice

AMOUNTS = Amounts(seconds=3.0, trials=1, least_segments=1, most_segments=1)
ATTACKER = ATTACKERS["semi-informed"]
LONG, SHORT, JUDGED = 10, 10, 4


class Played:
    """Any speed, drawn by the recording."""

    latency_samples = None

    def __init__(self, utterance) -> None:
        self.rate, self._utterance = utterance.rate, utterance
        self.reset()

    def process(self, samples):
        self._heard.append(samples)
        return np.empty(0, np.float32)

    def flush(self):
        name = f"{self._utterance.seed} {self._utterance.name}"
        return played(np.concatenate(self._heard), self.rate, name, "")

    def reset(self):
        self._heard = []


class Silence(Played):
    """Leaves nothing."""

    def flush(self):
        return np.zeros_like(np.concatenate(self._heard))


@pytest.fixture(scope="module", autouse=True)
def _anonymisers() -> Iterator[None]:
    register("played", lambda _, utterance: Played(utterance))
    register("nothing-left", lambda _, utterance: Silence(utterance))
    yield
    del ANONYMISERS["played"], ANONYMISERS["nothing-left"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Who is judged, and background speakers: some say enough for templates, others little."""
    judged, others = tmp_path_factory.mktemp("judged"), tmp_path_factory.mktemp("others")
    for number in range(JUDGED + LONG + SHORT):
        folder = (judged if number < JUDGED else others) / f"r{number:02}"
        folder.mkdir()
        seconds = 16.0 if number < JUDGED + LONG else 5.0
        soundfile.write(folder / "a.wav", voice(number, seconds), RATE)
    return judged, others


@pytest.fixture
def bench(folders, tmp_path: Path) -> Any:
    judged, others = folders
    corpus = find(others)
    background = Background(((corpus, others),), choose_readers(corpus, others, AMOUNTS))
    return AttackContext(
        choose_readers(find(judged), judged, AMOUNTS),
        background,
        ("f0", "voice"),
        (),
        AMOUNTS,
        PieceExtractor(),
        0,
        tmp_path,
        training=TrainingPlan(
            Length(steps=2), SpeechDraws(draws=2, seconds=3.0), FineTuning(batch=8)
        ),
    )


def test_nobody_who_chooses_or_is_judged_trains(bench):
    held: Any
    held, training = split_background(bench.background)
    choosing = {reader.name for reader in held.everybody}
    trained = {recording.speaker for corpus in training for recording in corpus}
    judged = {reader.name for reader in bench.judged.everybody}
    assert (len(choosing), len(trained), len(judged)) == (LONG, SHORT, JUDGED)
    assert not choosing & trained
    assert not (choosing | trained) & judged
    assert bench.get_calibration_readers(ATTACKER) == held
    assert bench.get_calibration_readers(ATTACKERS["lazy-informed"]) == bench.background.readers


def test_too_few_readers_are_refused(bench):
    pytest.importorskip("torch", reason="needs the extra training")
    whole = bench.background
    with pytest.raises(UsageError, match="needs ten --background readers"):
        check_background(replace(whole, readers=None))
    (corpus, root), readers = whole.corpora[0], whole.readers
    long = {reader.name for reader in readers.everybody}
    few = replace(corpus, recordings=tuple(r for r in corpus if r.speaker in long))
    with pytest.raises(UsageError, match="readers to train"):
        check_background(Background(((few, root),), readers))
    with pytest.raises(UsageError, match="--background"):
        choose_features(replace(bench, background=None), "played")


@pytest.mark.slow
def test_it_trains_once_and_keeps_the_network_private(bench, monkeypatch):
    pytest.importorskip("torch", reason="needs the extra training")
    bench = replace(bench, extractor=PieceExtractor(ResultCache(bench.folder / "heard")))
    one: Any = choose_features(bench, "played")
    (note,) = bench.notes
    assert note.startswith("played: semi-informed uses the ")
    kept = [*bench.folder.joinpath("networks").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    if not note.startswith("played: semi-informed uses the shipped"):
        own, shipped_bits = bench.clear_bits["played"]
        assert 0 <= own <= np.log2(len(bench.judged) + 99)
        assert shipped_bits > 0

    def never(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("monitor.lab.adapting.fine_tuning.fine_tune", never)
    again: Any = choose_features(bench, "played")
    assert again["voice"].spec == one["voice"].spec
    others = (
        replace(bench, seed=5),
        replace(bench, training=replace(bench.training, draws=SpeechDraws(draws=1, seconds=3.0))),
        replace(bench, training=replace(bench.training, fine_tuning=FineTuning(bfloat16=True))),
    )
    for other in others:  # another network
        with pytest.raises(AssertionError, match="trained again"):
            choose_features(other, "played")


@pytest.mark.slow
def test_a_network_that_learnt_nothing_good_is_not_used_alone(bench, monkeypatch):
    weights = shipped().weights  # every voice is one to it
    spoilt = weights | {
        name: np.zeros_like(weights[name]) for name in ("embed.mean", "embed.deviation")
    }
    monkeypatch.setattr(module, "check_torch", lambda: None)
    monkeypatch.setattr(module, "adapt", lambda *_, **__: (VoiceNetwork(spoilt, "ab" * 32), ()))
    heard_with: Any = choose_features(bench, "played")
    assert heard_with["voice"].spec.network != "ab" * 32
    assert "uses the adapted voice network" not in bench.notes[0]
    bits = {name: float(each) for name, each in re.findall(r"(\w+) (\d\.\d\d)", bench.notes[0])}
    assert bits["adapted"] < bits["shipped"]
    assert bits["both"] == pytest.approx(bits["shipped"], abs=0.2)  # it changes few ranks


def test_where_nothing_can_be_learnt_it_is_no_weaker_than_one_who_did_not_try(bench):
    pytest.importorskip("torch", reason="needs the extra training")
    assert choose_features(bench, "nothing-left") == {"f0": "f0", "voice": "voice"}
    (note,) = bench.notes
    assert "semi-informed uses the shipped voice network (fewer than two" in note
