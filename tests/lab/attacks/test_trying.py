from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from monitor.anonymisers.registry import make
from monitor.errors import CorpusError, UsageError
from monitor.lab.attacks import speech
from monitor.lab.attacks.attackers import ATTACKERS
from monitor.lab.attacks.attacking import AttackConfig, attack, prepare, try_methods
from monitor.lab.attacks.results import AttackResults
from monitor.lab.attacks.speech import CLEAR
from tests.lab.attacks.conftest import AMOUNTS
from tests.sounds import RATE

WISHES = AttackConfig(
    ("noise:20", "none", "noise:20"),
    ("ignorant", "lazy-informed"),
    ("f0", "phones"),
    AMOUNTS,
    (1, 2),
    replicates=20,
)


@pytest.fixture(scope="module")
def learnt(corpora, tmp_path_factory) -> AttackResults:
    kept = tmp_path_factory.mktemp("kept")
    apart = corpora(readers=10, first=20)
    return attack(corpora(), WISHES.methods, folder=kept, background=[apart], config=WISHES)


@pytest.mark.slow
def test_each_method_is_tried_once_and_the_baseline_first(learnt):
    assert learnt.settings.methods == ("none", "noise:20")
    assert list(dict.fromkeys(row.method for row in learnt.rows)) == ["none", "noise:20"]
    assert (learnt.settings.readers, learnt.settings.background) == (6, 10)


@pytest.mark.slow
def test_rank_models_of_the_joint_are_learnt_of_speech_as_the_attacker_has_it(learnt):
    rank_models = {
        (row.method, row.attacker): row.rank_model for row in learnt.rows if row.feature == "joint"
    }
    assert rank_models == {
        ("none", "ignorant"): "learnt on 10 background speakers, clear speech",
        ("noise:20", "ignorant"): "learnt on 10 background speakers, clear speech",
        ("noise:20", "lazy-informed"): "learnt on 10 background speakers, noise:20 speech",
    }
    (joint,) = [r for r in learnt.rows if r.feature == "joint" and r.method == "none"]
    assert joint.bits > 2.0


@pytest.mark.slow
def test_the_strongest_is_whoever_learns_most_by_any_way(learnt):
    strongest = learnt.strongest("noise:20")
    assert strongest.bits == max(r.bits for r in learnt.rows if r.method == "noise:20")
    assert learnt.ranking() == sorted(learnt.ranking(), key=lambda row: -row.bits)
    assert learnt.strongest("noise:20", "ignorant").attacker == "ignorant"
    assert learnt.strongest("whisper") is None


@pytest.mark.slow
def test_use_is_measured_beside(learnt):
    error = {
        method: next(f.value for f in figures if f.key == "utility.phone_error")
        for method, figures in learnt.measured.items()
    }
    assert error["none"] == 0.0 < error["noise:20"]


@pytest.mark.slow
def test_without_a_background_the_shipped_rank_model_weighs_and_it_is_said(corpora, tmp_path):
    found = try_methods(prepare(corpora(), replace(WISHES, methods=()), folder=tmp_path))
    (joint,) = [row for row in found.rows if row.feature == "joint"]
    assert joint.rank_model == "shipped, of clear speech: there is no background"


@pytest.mark.slow
def test_whoever_is_judged_is_left_out_of_the_background(corpora, tmp_path):
    root = corpora()
    shutil.copytree(root, tmp_path / "apart")
    (tmp_path / "apart" / "r0").rename(tmp_path / "apart" / "somebody")  # the same recordings
    prepared = prepare(root, WISHES, folder=tmp_path / "kept", background=[tmp_path / "apart"])
    background = prepared.context.background
    assert background is not None
    assert background.readers is None
    assert any("6 readers of the background are judged and left out" in p
               for p in prepared.problems)  # fmt: skip


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


def test_who_cannot_do_without_a_background_says_so(corpora, tmp_path):
    needing = [name for name, each in ATTACKERS.items() if each.trains]
    for name in needing:
        config = replace(WISHES, attackers=(name,))
        with pytest.raises(UsageError, match="--background"):
            prepare(corpora(), config, folder=tmp_path)
    assert needing


def test_attributes_want_an_embedding(corpora, tmp_path: Path):
    with pytest.raises(UsageError, match="add voice to --features"):
        prepare(corpora(), replace(WISHES, attributes=("gender",)), folder=tmp_path)


def test_no_more_is_heard_than_is_judged(corpora, tmp_path, monkeypatch):
    """Every second of trials and templates once by each method, and a second beside each part."""
    heard: Counter[str] = Counter()

    def counting(method, utterance):
        anonymiser = make_anonymiser(method, utterance)
        process = anonymiser.process

        def counted(samples):
            heard[method] += len(samples)
            return process(samples)

        monkeypatch.setattr(anonymiser, "process", counted)
        return anonymiser

    make_anonymiser = make
    monkeypatch.setattr(speech, "make", counting)
    config = replace(WISHES, methods=("noise:0",), attackers=("ignorant", "lazy-informed"),
                     segments=(1, 2), features=("f0",))  # fmt: skip
    prepared = prepare(corpora(), config, folder=tmp_path / "kept")
    heard.clear()
    told: list[float] = []
    results = try_methods(prepared, on_seconds=told.append)
    bench = prepared.context
    trials, enrolled = (bench.judged.pieces(part) for part in ("trials", "enrolment"))
    once = sum(piece.seconds for piece in (*trials, *enrolled))
    assert {method: n / RATE for method, n in heard.items()} == pytest.approx(
        {CLEAR: once, "noise:0": once}
    )
    assert bench.extractor.seconds.computed == pytest.approx(2 * once)
    assert prepared.seconds == pytest.approx(2 * once)
    assert sum(told) == pytest.approx(2 * once)
    for pieces, most in ((trials, 3 * 2.0), (enrolled, 2 * 6.0)):
        for found in bench.extractor.extract(pieces, CLEAR, 0, ["f0"]).values():
            assert found.frames.speech.sum() / 100 <= most + 1.0 + 1e-9
    again = prepare(corpora(), config, folder=tmp_path / "kept")
    assert [r.bits for r in try_methods(again).rows] == [r.bits for r in results.rows]
    seconds = again.context.extractor.seconds
    assert seconds.computed == 0.0
    assert seconds.cached == pytest.approx(2 * once)
