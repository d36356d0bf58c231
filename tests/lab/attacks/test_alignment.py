"""Aligned attackers and control attacks of known truth: a rotation, and no link at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.features.embeddings import Voice
from monitor.lab.attacks.alignment import WAYS, find_rotation, fit_alignment, match_sets
from monitor.lab.attacks.attackers import (
    ATTACKERS,
    AttackContext,
    Background,
    FittedMap,
    fit_alignments,
)
from monitor.lab.attacks.attacking import attack_method
from monitor.lab.attacks.control import CONTROL, measure_control
from monitor.lab.attacks.readers import Amounts, Piece, Reader, Readers
from monitor.lab.attacks.results import format_headline, list_caveats, read_results, results_json
from monitor.lab.attacks.sides import collect_sides
from monitor.lab.attacks.speech import CLEAR, AttackSpeech, ExtractedPiece, PieceExtractor
from monitor.networks.voice import SIZE
from monitor.training.feature_extraction import SpeechFrames, SpeechTrack
from monitor.types import FloatArray
from tests.lab.attacks.made import results

AMOUNTS = Amounts(seconds=6.0, trials=3, least_segments=3, most_segments=3)
RANK, SECONDS = 6, 30


def turn(size: int, seed: int = 0) -> FloatArray:
    """A random rotation."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]


def skewed(rows: int, size: int, seed: int) -> FloatArray:
    """Points with unequal, skewed axes: their cloud looks like itself in one direction only."""
    draws = np.random.default_rng(seed).exponential(size=(rows, size)) - 1.0
    return draws * np.linspace(3.0, 1.0, size)


def test_pairs_give_the_rotation_back():
    clear, rotation = skewed(40, 8, 1), turn(8)
    assert np.allclose(find_rotation(clear @ rotation.T, clear), rotation)
    few = find_rotation(clear[:4] @ rotation.T, clear[:4], 0.01)
    assert np.allclose(few @ few.T, np.eye(8))
    remaining = np.linalg.norm(clear[:4] @ rotation.T @ few - clear[:4])
    assert remaining < 0.3 * np.linalg.norm(clear[:4] @ rotation.T - clear[:4])


def test_sets_give_the_rotation_back_without_pairs():
    """Neither the order nor the speech is the same on both sides."""
    clear, rotation = skewed(250, 5, 2), turn(5, 3)
    shuffled = np.random.default_rng(4).permutation(clear) @ rotation.T
    found = match_sets(shuffled - shuffled.mean(axis=0), clear - clear.mean(axis=0))
    assert np.allclose(found, rotation, atol=0.05)
    others = skewed(250, 5, 5) @ rotation.T
    found = match_sets(others - others.mean(axis=0), clear - clear.mean(axis=0))
    assert np.trace(found @ rotation.T) / 5 > 0.9


@pytest.mark.parametrize("way", WAYS)
def test_silence_stays_silent(way):
    clear = skewed(30, 5, 1)
    clear[3] = 0.0
    alignment = fit_alignment(clear @ turn(5).T, clear, way)
    assert not alignment.align(np.zeros((1, 5))).any()
    assert not alignment.centre(np.zeros((1, 5))).any()


BASIS, ROTATION = turn(SIZE, 7)[:RANK], turn(SIZE, 8)
SHARED = turn(SIZE, 7)[RANK]


class Planted(PieceExtractor):
    """Embeddings of known people: clear, turned by a rotation, or of other people each time."""

    def extract(
        self, pieces: Sequence[Piece], method: str, seed: int, *_: object
    ) -> dict[Piece, ExtractedPiece]:
        return {piece: self._extract(piece, method, seed) for piece in pieces}

    def _extract(self, piece: Piece, method: str, seed: int) -> ExtractedPiece:
        number = int(piece.speaker) + (2000 + 7 * seed + len(piece.name) if method == "null" else 0)
        person = np.random.default_rng(number).standard_normal(RANK)
        noise = np.random.default_rng([number, len(piece.name), seed]).standard_normal(
            (SECONDS // 3, RANK)
        )
        values = (person + 0.3 * noise) @ BASIS
        values = values if method in (CLEAR, "null") else values @ ROTATION
        at = 300 * np.arange(1, len(values) + 1)
        track = SpeechTrack(values.astype(np.float32), at, None)
        return ExtractedPiece(SpeechFrames(np.ones(100 * SECONDS, np.bool_), {"voice": track}))


class Shared(Planted):
    """All trials have a direction that each enrolled person has by an own amount."""

    def _extract(self, piece: Piece, method: str, seed: int) -> ExtractedPiece:
        extracted = super()._extract(piece, method, seed)
        is_trial = "trials" in piece.name or "-2-" in piece.name  # VoicePrivacy's names
        amount = 6.0 if is_trial else 6 * np.random.default_rng(int(piece.speaker)).random()
        track = extracted.frames.tracks["voice"]
        shared = replace(track, values=track.values + np.float32(amount * SHARED))
        return replace(extracted, frames=replace(extracted.frames, tracks={"voice": shared}))


def people(numbers: Sequence[int]) -> Readers:
    def piece(number: int, name: str) -> Piece:
        return Piece(Path(name), name, str(number), 0.0, float(SECONDS))

    return Readers(
        tuple(
            Reader(str(n), ((piece(n, f"{n}/enrolment"),),), ((0, 0), (0, 1), (0, 2)),
                   (piece(n, f"{n}/trials"),))
            for n in numbers
        ),
        "cross",
    )  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path) -> AttackContext:
    background = Background((), people(range(100, 120)))
    return AttackContext(
        people(range(20)), background, ("voice",), (), AMOUNTS, Planted(), 0, tmp_path
    )


def attacked(bench: AttackContext, method: str, attacker: str) -> Any:
    rows = attack_method(bench, method, ATTACKERS[attacker], [], replicates=20)
    return next(row for row in rows if row.scoring == "average")


@pytest.mark.parametrize("attacker", ["ignorant", "lazy-informed"])
def test_normalised_scores_are_used_where_they_win_on_held_back_people(bench, attacker):
    bench = replace(bench, extractor=Shared())
    rows = list(attack_method(bench, CLEAR, ATTACKERS[attacker], [1], replicates=20))
    bits = {(row.feature, row.segments): row.bits for row in rows if row.scoring == "average"}
    (name,) = {feature for feature, _ in bits} - {"voice"}
    assert name in ("voice-znorm", "voice-snorm")
    normalised = [row for row in rows if row.feature == name]
    assert [row.segments for row in normalised] == [1, AMOUNTS.least_segments]
    for row in normalised:
        assert row.bits > bits["voice", row.segments] + 0.5
        assert row.bits > (row.figures[CONTROL].high or 0.0)
    (note,) = bench.notes
    assert f"{name[-5]}-norm wins on 20 background readers" in note


def test_normalised_scores_of_too_few_or_equal_people_are_not_used(bench):
    def features(context: AttackContext) -> set[str]:
        rows = attack_method(context, CLEAR, ATTACKERS["ignorant"], [], replicates=20)
        return {row.feature for row in rows}

    assert features(bench) == {"voice"}
    assert "none wins on 20" in bench.notes[0]
    few = Background((), people(range(100, 109)))
    assert features(replace(bench, extractor=Shared(), background=few)) == {"voice"}


def test_normalised_scores_of_outsiders_are_relative_to_others(bench):
    specs = {"voice": Voice().spec}
    sides, held_back = collect_sides(bench, ATTACKERS["ignorant"], CLEAR, ["voice"], specs)
    judged, *outside = sides
    assert set(judged.cohort.names) == {str(n) for n in range(100, 120)}
    for side, half in zip(outside, held_back, strict=True):
        tested = {str(100 + i) for i in side.speech.target}
        assert tested == set(half.speech.names) == set(judged.cohort.names) - set(side.cohort.names)
        assert side.cohort is half.cohort


def test_who_aligns_undoes_a_rotation(bench):
    clear = attacked(bench, CLEAR, "ignorant")
    assert clear.bits > 3.5
    assert attacked(bench, "turned", "ignorant").bits < 0.5
    aligned = attacked(bench, "turned", "aligned")
    assert aligned.bits > clear.bits - 0.5
    (note,) = [note for note in bench.notes if "aligned uses" in note]
    assert "no rotation" not in note
    assert aligned.bits > aligned.figures[CONTROL].high


def test_clear_speech_is_aligned_with_itself(bench):
    aligned = attacked(bench, CLEAR, "aligned")
    assert aligned.bits > attacked(bench, CLEAR, "ignorant").bits - 0.2
    assert aligned.bits > aligned.figures[CONTROL].high


@pytest.mark.parametrize("attacker", ["ignorant", "aligned", "lazy-informed", "simulating"])
def test_the_control_attack_refuses_where_nothing_links(bench, attacker):
    """Protected trials of one person are alike, but like nobody who is enrolled."""
    row = attacked(bench, "null", attacker)
    assert row.bits <= row.figures[CONTROL].high
    found = results([row], methods=("null",), attackers=(attacker,))
    (line,) = format_headline(found)
    if attacker != "ignorant":  # it does not measure protection anyway
        assert "This shows nothing" in line
    assert not any("No control attack" in caveat for caveat in list_caveats(found))


def test_a_control_is_needed_and_is_kept(bench, tmp_path):
    assert any("No control attack" in caveat for caveat in list_caveats(results()))
    found = results([attacked(bench, "turned", "aligned")], methods=("turned",),
                    attackers=("aligned",))  # fmt: skip
    assert "nothing" not in format_headline(found)[0]
    (tmp_path / "results.json").write_text(results_json(found))
    again = read_results(tmp_path)
    assert again.rows[0].figures[CONTROL].high == found.rows[0].figures[CONTROL].high
    assert format_headline(again) == format_headline(found)


@pytest.mark.slow
def test_a_control_has_a_known_level():
    """Readers linked to nobody exceed the control's limit as often as they should."""
    draws = np.random.default_rng(0)
    templates = draws.standard_normal((20, 10))
    beaten = 0
    for seed in range(12):
        people, outside = draws.standard_normal((2, 20, 10))
        trials = np.repeat(people, 5, axis=0) + 0.3 * draws.standard_normal((100, 10))
        others = np.repeat(outside, 5, axis=0) + 0.3 * draws.standard_normal((100, 10))
        target = np.repeat(np.arange(20), 5)
        control = measure_control(others @ templates.T, target, np.full(20, 5), seed)
        own = measure_control(trials @ templates.T, target, np.full(20, 5), seed + 100)
        assert own.replicates is not None
        beaten += int(own.replicates[0] > (control.high or 0.0))
    assert beaten <= 2


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.3, 1.0, 4.0])
def test_a_control_allows_for_fewer_trials(noise):
    """Two trials per outsider give the limit of readers with ten, alike or not."""
    draws = np.random.default_rng(0)
    templates = draws.standard_normal((20, 10))

    def limit(people: int, trials: int, seed: int) -> float:
        points = np.repeat(draws.standard_normal((people, 10)), trials, axis=0)
        points += noise * draws.standard_normal(points.shape)
        speaker = np.repeat(np.arange(people), trials)
        return measure_control(points @ templates.T, speaker, np.full(20, 10), seed).high or 0.0

    few, many, single = (np.mean([limit(40, n, s) for s in range(6)]) for n in (2, 10, 20))
    assert few == pytest.approx(many, rel=0.35)
    assert single == pytest.approx(many, rel=0.25)


def test_no_outsider_is_aligned_by_a_fit_to_them(bench):
    fits, aligned = [], {}

    def fit(*args: Any) -> list[FittedMap]:
        fits.extend(fit_alignments(*args))
        return [replace(each, apply=partial(note, i, each)) for i, each in enumerate(fits)]

    def note(which: int, fitted: FittedMap, speech: AttackSpeech) -> AttackSpeech:
        aligned[which] = {str(100 + i) for i in speech.target}
        return fitted.apply(speech)

    attacker = replace(ATTACKERS["aligned"], fits=fit)
    next(attack_method(bench, "turned", attacker, [], replicates=20))
    whole, *halves = (each.readers for each in fits)
    assert set.union(*map(set, halves)) == whole == {str(n) for n in range(100, 120)}
    assert [aligned[1], aligned[2]] == [halves[1], halves[0]]


def test_few_readers_fit_no_rotation(bench):
    few: Any = Background((), people(range(100, 105)))
    bench.extractor.extract([], CLEAR, 0, ())
    with pytest.raises(UsageError, match="ten --background readers"):
        fit_alignments(
            AttackContext(bench.judged, few, ("voice",), (), AMOUNTS, bench.extractor, 0,
                          bench.folder), "turned", {},
        )  # fmt: skip
