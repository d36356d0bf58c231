"""VoicePrivacy's evaluation of planted people: turned, or replaced by others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from monitor.corpus import find
from monitor.errors import CorpusError, UsageError
from monitor.features.registry import AS_ENVIRONMENT
from monitor.lab.attacks.attackers import ATTACKERS, AttackContext, Background
from monitor.lab.attacks.challenge import choose_embedding, choose_listed, try_lists
from monitor.lab.attacks.readers import Piece, Reader, Readers
from monitor.lab.attacks.speech import CLEAR, ExtractedPiece
from monitor.lab.evaluation.listed import ListedTrials
from monitor.training.feature_extraction import SpeechTrack
from tests.cli.test_score import table_of
from tests.lab.attacks.test_alignment import AMOUNTS, SECONDS, Planted, Shared, people
from tests.lab.evaluation import kits

WOMEN, MEN, TRIALS = 6, 6, 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The kit's data folders of twelve people; the last speaks in the trials alone."""
    enrolled, trials = kits.readers(WOMEN, MEN, TRIALS)
    kits.lists(tmp_path, "libri_dev", enrolled[:-3], {"mixed": trials})
    return tmp_path / "data" / "libri_dev_trials_mixed"


def pieces_of(path: Path) -> dict[str, tuple[Piece, ...]]:
    pieces: dict[str, tuple[Piece, ...]] = {}
    for line in (path / "utt2spk").read_text().splitlines():
        name, speaker = line.split()
        piece = Piece(Path(name), name, speaker, 0.0, float(SECONDS))
        pieces[speaker] = (*pieces.get(speaker, ()), piece)
    return pieces


@pytest.fixture
def bench(folder: Path, tmp_path: Path) -> AttackContext:
    own, spoken = (pieces_of(path) for path in (folder.parent / "libri_dev_enrolls", folder))
    people = tuple(Reader(name, (own.get(name, ()),), (), each) for name, each in spoken.items())
    return AttackContext(
        Readers(people, "cross"), None, ("voice",), (), AMOUNTS, Planted(), 0, tmp_path
    )


def test_tables_show_what_is_planted(bench, folder):
    attackers = [ATTACKERS["ignorant"], ATTACKERS["lazy-informed"]]
    methods = {"none": attackers[:1], "turned": attackers, "null": attackers}
    tables = try_lists(bench, ListedTrials.from_folder(folder), methods)
    rates = {method: table_of(table) for method, table in tables.items()}
    sides = [("original", "original"), ("original", "anon"), ("anon", "anon")]
    parts = ("mixed", "f", "m", "cross")
    assert list(rates["none"]) == [("ASV_eval", part, *sides[0]) for part in parts]
    for method in ("turned", "null"):
        assert list(rates[method]) == [("ASV_eval", p, *each) for each in sides for p in parts]
        for part in parts:
            original, ignorant, lazy = (rates[method]["ASV_eval", part, *each] for each in sides)
            assert original == rates["none"]["ASV_eval", part, *sides[0]] < 10
            assert ignorant > 25
            assert lazy < 10 if method == "turned" else lazy > 25


def test_normalised_scores_have_a_section_if_they_lower_the_rate_of_held_back_people(bench, folder):
    others = Background((), people(range(2000, 2020)))
    context = replace(bench, extractor=Shared(), background=others)
    listed = ListedTrials.from_folder(folder)
    rates = table_of(try_lists(context, listed, {"none": [ATTACKERS["ignorant"]]})["none"])
    plain, normalised = dict.fromkeys(section for section, *_ in rates)
    assert plain == "ASV_eval"
    assert normalised in {f"ASV_eval {way}-norm" for way in "zts"}
    key = "mixed", "original", "original"
    assert rates[normalised, *key] < rates[plain, *key] - 5
    assert any("-norm wins on 20 background readers" in note for note in context.notes)
    context = replace(bench, background=others, notes=[])
    rates = table_of(try_lists(context, listed, {"none": [ATTACKERS["ignorant"]]})["none"])
    assert {section for section, *_ in rates} == {"ASV_eval"}


class Recognised(Planted):
    """A recogniser loses one word of three after protection."""

    def _extract(self, piece: Piece, method: str, seed: int) -> ExtractedPiece:
        words = ["one", "two", "three"][: 3 if method == CLEAR else 2]
        extracted = super()._extract(piece, method, seed)
        return replace(extracted, measured={"command:asr": {"recognised": words}})


def test_word_errors_are_relative_to_transcripts(bench, folder):
    names = [line.split()[0] for line in (folder / "utt2spk").read_text().splitlines()]
    (folder / "text").write_text("".join(f"{name} ONE, two three\n" for name in names[1:]))
    listed, context = ListedTrials.from_folder(folder), replace(bench, extractor=Recognised())
    methods = {"none": [ATTACKERS["ignorant"]], "turned": [ATTACKERS["ignorant"]]}
    table = try_lists(context, listed, methods)["turned"].partition("---- ASR results ----\n")[2]
    assert [line.split() for line in table.splitlines()] == [
        ["dataset", "split", "asr", "WER"],
        ["libri", "dev", "original", "0.000"],
        ["libri", "dev", "anon", "33.333"],
    ]
    assert f"turned: the word error excludes 1 recording, {names[0]} (no text)" in context.notes


class PartlySilent(Planted):
    """One trial in three has no voice after protection."""

    def _extract(self, piece: Piece, method: str, seed: int) -> ExtractedPiece:
        extracted = super()._extract(piece, method, seed)
        if method == CLEAR or not piece.name.endswith("2"):
            return extracted
        frames = extracted.frames
        empty = SpeechTrack(frames.tracks["voice"].values[:0], frames.tracks["voice"].at[:0], None)
        return replace(extracted, frames=replace(frames, tracks={"voice": empty}))


def test_pairs_without_speech_are_counted(bench, folder):
    context = replace(bench, extractor=PartlySilent())
    try_lists(context, ListedTrials.from_folder(folder), {"turned": [ATTACKERS["ignorant"]]})
    listed = ListedTrials.from_folder(folder).lists.listed["trials"]
    lost = sum(trial.endswith("2") for _, trial in listed)
    (note,) = context.notes
    assert note.startswith(f"turned, ignorant: {lost} of {len(listed)} pairs in trials have no")


def test_impostors_are_in_the_table(bench, folder):
    listed = ListedTrials.from_folder(folder)
    assert len(listed.lists.spoken_by) == TRIALS * (WOMEN + MEN - 1)
    assert len(listed.lists.impostors) == TRIALS
    assert listed.genders["1011"] == "m"
    assert listed.dataset == "libri_dev"
    assert listed.enrolments == {"oo": folder.parent.resolve() / "libri_dev_enrolls"}


def test_folders_without_lists_are_refused(folder, tmp_path):
    with pytest.raises(UsageError, match="no list of trials"):
        ListedTrials.from_folder(folder.parent / "libri_dev_enrolls")
    (folder.parent / "libri_dev_enrolls").rename(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="no enrolls"):
        ListedTrials.from_folder(folder)
    (folder / "enrolls").write_text("1000-1-0000\n")
    with pytest.raises(CorpusError):  # no audio is there
        choose_listed(ListedTrials.from_folder(folder), find(folder))


def test_one_embedding_is_used():
    assert choose_embedding(["voice"], AS_ENVIRONMENT) == ("voice",)
    for features in (["f0"], ["f0", "voice"]):
        with pytest.raises(UsageError, match="one speaker embedding"):
            choose_embedding(features, AS_ENVIRONMENT)
