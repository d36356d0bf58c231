"""Attacks of known truth: nothing is protected, or everything is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from monitor.anonymisers import register
from monitor.anonymisers.registry import ANONYMISERS
from monitor.corpus import find
from monitor.errors import UsageError
from monitor.features.registry import make
from monitor.lab.attacks.attackers import ATTACKERS, BITS, AttackContext, get_attacker
from monitor.lab.attacks.attacking import attack_method, select_attackers
from monitor.lab.attacks.speech import CLEAR, PieceExtractor, choose_readers
from monitor.lab.evaluation import ScoreMatrix, evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.maths.scores import OF_COUNTS
from monitor.training.voices import collect
from tests.lab.attacks.conftest import AMOUNTS
from tests.sounds import synthetic


class OneVoice:
    """Says the same buzz whoever speaks."""

    latency_samples = 0

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.reset()

    def process(self, samples):
        self._at += len(samples)
        return self._sound[self._at - len(samples) : self._at]

    def flush(self):
        return np.empty(0, np.float32)

    def reset(self):
        self._at, self._sound = 0, synthetic(30.0, 140.0)


@pytest.fixture
def one_voice() -> Iterator[None]:
    register("one-voice", lambda _, utterance: OneVoice(utterance.rate))
    yield
    del ANONYMISERS["one-voice"]


@pytest.fixture
def bench(corpora, tmp_path: Path) -> AttackContext:
    root = corpora()
    judged = choose_readers(find(root), root, AMOUNTS)
    return AttackContext(judged, None, ("f0",), (), AMOUNTS, PieceExtractor(), 0, tmp_path)


def test_buzzes_of_their_own_pitch_are_told_apart(bench):
    rows = list(attack_method(bench, CLEAR, ATTACKERS["ignorant"], [1], replicates=20))
    (row,) = [row for row in rows if row.segments == 1]
    assert (row.speakers, row.trials, row.feature, row.silent) == (6, 18, "f0", 0)
    assert (row.figures["srd.idr"].value or 0.0) > 0.9
    assert row.bits > 2.0


@pytest.mark.slow
@pytest.mark.parametrize("attacker", [name for name, each in ATTACKERS.items() if not each.trains])
def test_one_voice_for_all_gives_nothing_away(bench, one_voice, attacker):
    for row in attack_method(bench, "one-voice", ATTACKERS[attacker], [1, 2], replicates=20):
        assert row.bits <= (row.figures["srd.null_model_bits"].high or 0.0)
        assert row.figures["membership.epsilon_lower_nats_at_1e-2"].value == 0.0


@pytest.mark.slow
def test_silence_gives_nothing_away_and_is_told(bench):
    register("silence", lambda _, utterance: Silence(utterance.rate))
    try:
        rows = list(attack_method(bench, "silence", ATTACKERS["ignorant"], [1], replicates=20))
    finally:
        del ANONYMISERS["silence"]
    assert {(row.silent, row.trials, round(row.bits, 9)) for row in rows} == {(18, 18, 0.0)}


class Silence(OneVoice):
    """Says nothing."""

    def process(self, samples):
        return np.zeros_like(samples)


@pytest.mark.parametrize("attacker", ["ignorant", "lazy-informed"])
def test_no_protection_is_the_clear_evaluation_to_the_last_bit(bench, corpora, attacker):
    root = corpora()
    voices, _, _ = collect(find(root), features=["f0"])
    templates = np.stack([v.sessions[0]["f0"].total(0, 60) for v in voices])
    tests = [v.sessions[1]["f0"].total(20 * i, 20) for v in voices for i in range(3)]
    way = OF_COUNTS["log-likelihood"]
    scores = way.score(way.prepare(templates), np.stack(tests))
    names = tuple(v.name for v in voices)
    clear = evaluate(
        ScoreMatrix(scores, np.repeat(np.arange(6), 3), names, "f0"),
        settings=EvaluationSettings(replicates=20),
    )
    (row,) = attack_method(bench, CLEAR, ATTACKERS[attacker], [], replicates=20)
    assert row.figures[BITS].value == clear.figures[BITS].value
    assert row.figures[BITS].limits == clear.figures[BITS].limits
    for key, figure in row.figures.items():
        assert figure.value == clear.figures[key].value, key


def test_a_reader_whose_speech_the_program_breaks_is_left_out(bench, tmp_path):
    program = tmp_path / "sometimes.sh"
    program.write_text("#!/bin/sh\ncat > $0.heard; test -s $0.once && cat $0.heard || "
                       "{ echo 1 > $0.once; false; }\n")  # fmt: skip
    program.chmod(0o700)
    (row,) = attack_method(bench, f"command:{program}", ATTACKERS["ignorant"], [], replicates=20)
    assert row.speakers == 5
    assert len(bench.extractor.missing) == 1


def test_knowing_that_nothing_is_protected_is_no_other_attack():
    both = [ATTACKERS["ignorant"], ATTACKERS["lazy-informed"]]
    assert select_attackers(both, CLEAR) == both[:1]
    assert select_attackers(both, "mcadams:0.8") == both
    adapted = replace(both[1], name="adapted", features=lambda _bench, _method: {"f0": "f0"})
    assert select_attackers([*both, adapted], CLEAR) == [both[0], adapted]


def test_an_attacker_hears_with_features_of_its_own(bench):
    own = replace(
        ATTACKERS["lazy-informed"], features=lambda _bench, _method: {"mine": make(["f0"])[0]}
    )
    rows = list(attack_method(bench, CLEAR, own, [], replicates=20))
    assert [row.feature for row in rows] == ["mine"]


def test_an_attacker_of_no_such_name_is_refused():
    with pytest.raises(UsageError, match="ignorant, lazy-informed"):
        get_attacker("psychic")
