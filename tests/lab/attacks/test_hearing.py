from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from monitor.corpus import find
from monitor.errors import SourceError
from monitor.features.extractor import Extractor
from monitor.features.framing import join_runs
from monitor.features.registry import make
from monitor.lab.attacks.speech import (
    CLEAR,
    ExtractedPiece,
    Piece,
    PieceExtractor,
    choose_readers,
    extract_protected,
)
from monitor.lab.result_cache import ResultCache
from monitor.lab.utility import MEASURES, Measure
from monitor.sources.file import File
from monitor.types import Block
from tests.lab.attacks.conftest import AMOUNTS


@pytest.fixture
def pieces(corpora) -> list[Piece]:
    root = corpora(readers=2)
    return choose_readers(find(root), root, AMOUNTS).pieces("trials")


def same(one, other) -> bool:
    mine, theirs = one.frames.tracks["f0"], other.frames.tracks["f0"]
    return np.array_equal(mine.values, theirs.values) and np.array_equal(mine.at, theirs.at)


def test_without_protection_it_is_the_clear_recording_to_the_last_bit(pieces):
    made = extract_protected(pieces[0], CLEAR, 0, ["f0"])
    extractor = Extractor(make(["f0"]))
    source = File(pieces[0].path, end_seconds=pieces[0].end_seconds)
    blocks = [block for block in source if isinstance(block, Block)]
    frames = join_runs([*map(extractor.process, blocks), extractor.flush()])
    assert np.array_equal(made.frames.speech, frames.speech)
    assert np.array_equal(made.frames.tracks["f0"].values, frames.tracks["f0"].values)
    clock = np.concatenate([[0], np.cumsum(frames.speech)])
    assert np.array_equal(made.frames.tracks["f0"].at, clock[frames.tracks["f0"].ticks])


def test_draws_are_those_of_the_seed_and_the_piece(pieces):
    first, again, other = (
        extract_protected(pieces[0], "noise:0", seed, ["f0"]) for seed in (1, 1, 2)
    )
    assert same(first, again)
    assert not same(first, other)


def said(path: Path, word: str) -> None:
    rows = [f"{i / 2}\t{i / 2 + 0.4}\t{word} moon" for i in range(120)]
    path.with_suffix(".tsv").write_text("\n".join(["start\tend\ttext", *rows]))


def test_a_anonymiser_of_sound_changes_nothing_of_what_is_said(pieces, tmp_path):
    ears = PieceExtractor(ResultCache(tmp_path))
    with pytest.raises(SourceError, match="has no words beside it"):
        extract_protected(pieces[0], CLEAR, 0, ["style"])
    assert ears.extract(pieces[:1], CLEAR, 0, ["style"]) == {}
    for piece in pieces:
        said(piece.path, "so")
    clear, protected = (
        extract_protected(pieces[1], method, 0, ["f0", "style"]).frames.tracks["style"]
        for method in (CLEAR, "noise:0")
    )
    assert np.array_equal(clear.values, protected.values)
    assert np.array_equal(clear.at, protected.at)
    assert clear.since is not None
    assert protected.since is not None
    assert np.array_equal(clear.since, protected.since)
    assert clear.values.size >= 2 * pieces[1].seconds
    kept = ears.extract(pieces, CLEAR, 0, ["style"])
    said(pieces[0].path, "the")
    anew = ears.extract(pieces, CLEAR, 0, ["style"])

    def values(heard: dict[Piece, ExtractedPiece], piece: Piece) -> list[int]:
        return list(heard[piece].frames.tracks["style"].values)

    changed = [values(kept, piece) != values(anew, piece) for piece in pieces]
    assert changed == [piece.path == pieces[0].path for piece in pieces]


def test_what_was_heard_is_not_heard_again(pieces, tmp_path, monkeypatch):
    ears = PieceExtractor(ResultCache(tmp_path))
    found = ears.extract(pieces, "noise:0", 1, ["f0"])
    monkeypatch.setattr("monitor.lab.attacks.speech.extract_protected", None)
    again = ears.extract(pieces, "noise:0", 1, ["f0"])
    assert all(same(found[piece], again[piece]) for piece in pieces)
    with pytest.raises(TypeError):  # another seed draws anew
        ears.extract(pieces, "noise:0", 2, ["f0"])


def test_nothing_that_was_kept_is_audio_or_readable_by_others(pieces, tmp_path):
    PieceExtractor(ResultCache(tmp_path)).extract(pieces, CLEAR, 1, ["f0"])
    kept = list(tmp_path.iterdir())
    assert len(kept) == len(pieces)
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept)
    assert sum(path.stat().st_size for path in kept) < pieces[0].path.stat().st_size / 10


def test_the_clear_needs_no_draws(pieces, tmp_path):
    ears = PieceExtractor(ResultCache(tmp_path))
    for seed in (1, 2):
        ears.extract(pieces, CLEAR, seed, ["f0"])
    assert len(list(tmp_path.iterdir())) == len(pieces)


@pytest.mark.slow
def test_several_processes_hear_the_same(pieces, tmp_path):
    alone = PieceExtractor().extract(pieces, "mcadams:random", 1, ["f0"])
    both = PieceExtractor(jobs=2).extract(pieces, "mcadams:random", 1, ["f0"])
    assert list(alone) == list(both) == pieces
    assert all(same(alone[piece], both[piece]) for piece in pieces)


def test_a_program_that_fails_is_named_and_nobody_else_is_lost(pieces):
    ears = PieceExtractor()
    assert ears.extract(pieces, "command:false", 1, ["f0"]) == {}
    assert all("exit status 1" in why for why in ears.missing.values())


def test_another_program_under_the_same_name_is_heard_anew(pieces, tmp_path):
    program = tmp_path / "anonymise.sh"
    program.write_text("#!/bin/sh\ncat\n")
    program.chmod(0o700)
    ears = PieceExtractor(ResultCache(tmp_path / "heard"))
    clear = ears.extract(pieces[:1], f"command:{program}", 1, ["f0"])
    program.write_text("#!/bin/sh\nfalse\n")
    assert list(clear) == pieces[:1]
    assert ears.extract(pieces[:1], f"command:{program}", 1, ["f0"]) == {}


def test_measures_hear_both_in_the_same_pass(pieces, monkeypatch, tmp_path: Path):
    def measure(clear, protected, rate):
        return {"ratio": float(np.abs(protected).sum() / np.abs(clear).sum()), "rate": rate}

    monkeypatch.setitem(MEASURES, "loudness", Measure("1", measure, lambda _: []))
    ears = PieceExtractor(ResultCache(tmp_path))
    for _ in range(2):  # and are kept with the frames
        found = ears.extract(pieces, CLEAR, 1, ["f0"], ["loudness"])
        assert found[pieces[0]].measured == {"loudness": {"ratio": 1.0, "rate": 16000}}
