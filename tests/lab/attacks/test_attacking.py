"""Attacks of known truth: nothing is protected, or everything is replaced."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.anonymisers import register
from monitor.anonymisers.registry import ANONYMISERS
from monitor.corpus import find
from monitor.errors import CorpusError, UsageError
from monitor.lab.attacks.attackers import ATTACKERS, BITS, AttackContext
from monitor.lab.attacks.attacking import (
    AttackConfig,
    attack,
    attack_method,
    prepare,
    select_attackers,
    try_methods,
)
from monitor.lab.attacks.durations import predict_seconds
from monitor.lab.attacks.readers import choose_readers
from monitor.lab.attacks.speech import CLEAR, PieceExtractor
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


class Silence(OneVoice):
    """Says nothing."""

    def process(self, samples):
        return np.zeros_like(samples)


@pytest.fixture(scope="module", autouse=True)
def _replacing() -> Iterator[None]:
    register("one-voice", lambda _, utterance: OneVoice(utterance.rate))
    register("silence", lambda _, utterance: Silence(utterance.rate))
    yield
    del ANONYMISERS["one-voice"], ANONYMISERS["silence"]


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
@pytest.mark.parametrize("attacker", ["ignorant", "lazy-informed"])
def test_one_voice_for_all_and_silence_give_nothing_away(bench, attacker):
    for row in attack_method(bench, "one-voice", ATTACKERS[attacker], [1, 2], replicates=20):
        assert row.bits <= (row.figures["srd.null_model_bits"].high or 0.0) + 1e-9
        assert row.figures["membership.epsilon_lower_nats_at_1e-2"].value == 0.0
    rows = attack_method(bench, "silence", ATTACKERS[attacker], [1], replicates=20)
    assert {(row.silent, row.trials, round(row.bits, 9)) for row in rows} == {(18, 18, 0.0)}


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
    for name in ("simulating", "semi-informed"):
        assert select_attackers([ATTACKERS[name]], CLEAR) == both[:1]
    # centring embeddings helps on clear speech too, so the baseline has it
    aligned = ATTACKERS["aligned"]
    assert select_attackers([aligned], CLEAR) == [both[0], aligned]
    assert select_attackers([*both, aligned], CLEAR) == [both[0], aligned]
    assert select_attackers(list(ATTACKERS.values()), "mcadams:0.8") == list(ATTACKERS.values())


WISHES = AttackConfig(
    ("noise:20", "none", "noise:20"),
    ("ignorant", "lazy-informed"),
    ("f0", "phones"),
    AMOUNTS,
    (1, 2),
    replicates=20,
)


@pytest.mark.slow
def test_each_method_is_tried_once_and_rank_models_are_learnt_as_the_attacker_hears(
    corpora, tmp_path
):
    apart = corpora(readers=10, sessions=1, first=20)
    learnt: Any = attack(
        corpora(), WISHES.methods, folder=tmp_path, background=[apart], config=WISHES
    )
    assert learnt.settings.methods == ("none", "noise:20")
    assert list(dict.fromkeys(row.method for row in learnt.rows)) == ["none", "noise:20"]
    assert (learnt.settings.readers, learnt.settings.background) == (6, 10)
    joints = {(r.method, r.attacker): r for r in learnt.rows if r.feature == "joint"}
    assert {key: row.rank_model for key, row in joints.items()} == {
        ("none", "ignorant"): "fitted to 10 background speakers, clear speech",
        ("noise:20", "ignorant"): "fitted to 10 background speakers, clear speech",
        ("noise:20", "lazy-informed"): "fitted to 10 background speakers, noise:20 speech",
    }
    assert joints["none", "ignorant"].bits > 2.0
    # the strongest is whoever learns most by any way
    noisy = [row.bits for row in learnt.rows if row.method == "noise:20"]
    assert learnt.strongest("noise:20").bits == max(noisy)
    assert learnt.ranking() == sorted(learnt.ranking(), key=lambda row: -row.bits)
    assert learnt.strongest("noise:20", "ignorant").attacker == "ignorant"
    assert learnt.strongest("whisper") is None
    error = {
        method: next(f.value for f in figures if f.key == "utility.phone_error")
        for method, figures in learnt.measured.items()
    }
    assert error["none"] == 0.0 < error["noise:20"]


@pytest.mark.slow
def test_whoever_is_judged_is_left_out_of_the_background(corpora, tmp_path):
    root = corpora()
    shutil.copytree(root, tmp_path / "apart")
    (tmp_path / "apart" / "r0").rename(tmp_path / "apart" / "somebody")  # the same recordings
    others = corpora(first=6)
    folders = [tmp_path / "apart", others, others]  # the second time they are in the first
    prepared = prepare(root, WISHES, folder=tmp_path / "kept", background=folders)
    background = prepared.context.background
    assert background is not None
    assert background.readers is not None
    assert sorted(reader.name for reader in background.readers.everybody) == [
        "r10", "r11", "r6", "r7", "r8", "r9",
    ]  # fmt: skip
    excluded = "6 background readers excluded because they are judged, or in another background"
    assert sum(excluded in problem for problem in prepared.problems) == 2


@pytest.mark.slow
def test_a_program_that_fails_on_everything_is_no_result(corpora, tmp_path):
    program = tmp_path / "once.sh"  # well for a second, to see whether it is there
    program.write_text('#!/bin/sh\ntest -e "$0.there" && exit 1; touch "$0.there"; cat\n')
    program.chmod(0o700)
    config = replace(WISHES, methods=(f"command:{program}",), attackers=("ignorant",),
                     segments=(1,), features=("f0",))  # fmt: skip
    prepared = prepare(corpora(), config, folder=tmp_path / "kept")
    with pytest.raises(CorpusError, match=r"once.sh.* could be protected.*exit status 1"):
        try_methods(prepared)


@pytest.mark.slow
def test_a_method_that_waits_makes_the_prediction_longer(corpora, tmp_path):
    class Waiting(OneVoice):
        def flush(self):
            time.sleep(0.3)
            return super().flush()

    register("waiting", lambda _, utterance: Waiting(utterance.rate))
    config = replace(WISHES, methods=("waiting",), attackers=("ignorant",), features=("f0",))
    try:
        prepared = prepare(corpora(), config, folder=tmp_path / "kept")
        seconds = predict_seconds(prepared)
    finally:
        del ANONYMISERS["waiting"]
    waits = [r for r in prepared.context.list_requests(prepared.tried) if r.method == "waiting"]
    longest = max(request.piece.seconds for request in waits)
    assert seconds > sum(0.3 * request.piece.seconds / longest for request in waits)
    assert not list((tmp_path / "kept" / "heard").iterdir())  # nothing was done yet


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *(
            ({"attackers": (name,)}, "--background")
            for name, e in ATTACKERS.items()
            if e.needs_background
        ),
        ({"attributes": ("gender",)}, "add voice to --features"),
        ({"attackers": ("simulating",)}, "add voice to --features"),
        (
            {"attackers": ("simulating",), "features": ("voice",), "voiceprivacy": True},
            "no table for simulating",
        ),
    ],
)
def test_what_an_attack_lacks_is_said_before_anything_is_heard(corpora, tmp_path, change, said):
    with pytest.raises(UsageError, match=said):
        prepare(corpora(), replace(WISHES, **change), folder=tmp_path)
