"""Who is heard, what of, and what an attacker's ear makes and keeps of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from monitor.corpus import find
from monitor.errors import CorpusError, SourceError
from monitor.features.embeddings import SpeechWindows, window_spec
from monitor.features.extractor import Extractor
from monitor.features.framing import join_runs
from monitor.features.registry import make
from monitor.lab.attacks.attackers import AttackContext
from monitor.lab.attacks.attacking import measure_utility
from monitor.lab.attacks.readers import (
    SEGMENT_SECONDS,
    Amounts,
    Piece,
    Reader,
    Readers,
    choose_readers,
)
from monitor.lab.attacks.speech import (
    CLEAR,
    ExtractedPiece,
    ExtractionRequest,
    PieceExtractor,
    align_to_clear,
    extract_protected,
    join_speech,
    pack,
    unpack,
)
from monitor.lab.result_cache import ResultCache
from monitor.sources.file import File
from monitor.training.feature_extraction import SpeechFrames, SpeechTrack
from monitor.training.voices import collect
from monitor.types import Block, Frames, Track
from tests.lab.attacks.conftest import AMOUNTS
from tests.sounds import RATE, synthetic


def spoken(pieces) -> float:
    seconds = 0.0
    for piece in pieces:
        extractor = Extractor([])
        for block in File(piece.path, 0, piece.start_seconds, piece.end_seconds):
            assert isinstance(block, Block)
            seconds += extractor.process(block).speech.sum() / 100
    return seconds


def test_template_and_trials_are_of_different_sessions(corpora):
    root = corpora()
    found = choose_readers(find(root), root, AMOUNTS)
    assert (found.session, len(found)) == ("cross", 6)
    for reader in found.everybody:
        enrolled = {p.path for session in reader.enrolment for p in session}
        assert enrolled.isdisjoint({p.path for p in reader.trials})
        assert reader.segments == ((0, 0), (0, 1))
        assert spoken(reader.trials) >= AMOUNTS.trials * AMOUNTS.seconds
        for session in reader.enrolment:
            assert spoken(session) >= 2 * SEGMENT_SECONDS
        assert {p.name for p in reader.trials} == {f"{reader.name}/day1.wav"}


@pytest.mark.slow
def test_of_one_session_no_second_of_a_trial_is_enrolled(corpora):
    root = corpora(sessions=1)
    found = choose_readers(find(root), root, AMOUNTS)
    assert found.session == "same"
    for reader in found.everybody:
        end = max(p.end_seconds for session in reader.enrolment for p in session)
        assert all(p.start_seconds >= end - 1e-9 for p in reader.trials)
        assert spoken(reader.trials) >= AMOUNTS.seconds
        # a part of a recording is another one to an anonymiser that draws by recording
        assert {p.name for p in reader.trials}.isdisjoint(
            {p.name for session in reader.enrolment for p in session}
        )


@pytest.mark.slow
def test_sessions_take_turns(corpora):
    root = corpora(readers=2, sessions=3)
    found = choose_readers(find(root), root, Amounts(2.0, 3, 2, 3))
    assert found.everybody[0].segments == ((0, 0), (1, 0), (0, 1))


def test_who_says_too_little_is_left_out_and_named(tmp_path, corpora):
    root = corpora()
    for path in root.rglob("*.wav"):
        target = tmp_path / path.relative_to(root)
        target.parent.mkdir(exist_ok=True)
        samples, rate = soundfile.read(path)
        soundfile.write(target, samples[: rate if "r0" in target.parts else None], rate)
    found = choose_readers(find(tmp_path), tmp_path, AMOUNTS)
    assert [reader.name for reader in found.everybody] == [f"r{i}" for i in range(1, 6)]
    assert any("r0" in problem and "1 reader" in problem for problem in found.problems)


@pytest.mark.parametrize("session", ["cross", None])
def test_too_little_for_anybody_is_refused(corpora, session):
    root = corpora(sessions=1 if session else 2)
    with pytest.raises(CorpusError, match="fewer than two readers"):
        choose_readers(find(root), root, Amounts(seconds=60.0), session=session)


MASK = np.array([True, True, False, True])


def test_frames_are_placed_on_the_clock_of_the_clear_speech():
    track = Track(np.array([1, 3, 4]), np.array([7, 8, 9]), np.array([[0, 1], [2, 3], [2, 4]]))
    made: Any = align_to_clear(Frames(np.zeros(4, bool), {"f0": track}), MASK).tracks["f0"]
    assert made.at.tolist() == [1, 2, 3]  # though the protected audio is no speech at all
    assert made.since.tolist() == [0, 2, 2]
    longer = Frames(np.zeros(8, bool), {"f0": Track(np.array([2, 8]), np.array([7, 8]))})
    made = align_to_clear(longer, MASK)  # audio of another length is stretched to fit
    assert made.tracks["f0"].at.tolist() == [1, 3]
    assert made.speech.tolist() == MASK.tolist()
    silent = Frames(np.zeros(0, bool), {"f0": Track(np.zeros(0, int), np.zeros(0))})
    made = align_to_clear(silent, MASK)  # silence has no frames and keeps its time
    assert (made.speech_ticks, made.tracks["f0"].at.size) == (3, 0)


@given(st.lists(st.integers(0, 50), max_size=20), st.booleans(), st.booleans())
def test_packing_keeps_every_bit(bins, spans, vectors):
    at = np.arange(len(bins))
    values = np.random.default_rng(1).normal(size=(len(bins), 3)) if vectors else np.array(bins)
    track = SpeechTrack(values, at, at if spans else None)
    heard = ExtractedPiece(
        SpeechFrames(MASK, {"f0": track, "b": track}, "lost"), {"words": {"error": 0.25}}
    )
    again = unpack(pack(heard))
    assert (again.frames.lost, again.measured) == ("lost", {"words": {"error": 0.25}})
    for name in ("f0", "b"):
        made = again.frames.tracks[name]
        assert np.array_equal(made.values, values)
        assert made.values.dtype == values.dtype
        assert (made.since is None) == (not spans)
    assert np.array_equal(again.frames.speech, MASK)


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


def test_methods_that_share_the_clear_speech_of_a_piece_change_nothing(pieces, tmp_path):
    extractor, methods = PieceExtractor(ResultCache(tmp_path / "heard")), ("noise:0", CLEAR)
    requests = [ExtractionRequest(pieces[0], method, 1) for method in methods]
    extractor.prefetch(requests, ["f0"])
    for method in methods:
        (found,) = extractor.extract(pieces[:1], method, 1, ["f0"]).values()
        alone = extract_protected(pieces[0], method, 1, ["f0"])
        assert same(found, alone)
        assert np.array_equal(found.frames.speech, alone.frames.speech)


class Counting:
    """A network that embeds a window as itself, and notes its length."""

    size = 1

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def embed(self, windows: np.ndarray) -> np.ndarray:
        self.seconds += [windows.shape[1] / RATE] * len(windows)
        return np.ones((len(windows), 1), np.float32)


@pytest.mark.parametrize("seconds", [0.9, 1.6, 3.4, 4.4, 5.3, 6.5, 8.8, 9.2, 14.0])
def test_an_utterance_is_compared_by_all_of_its_speech_and_embeds_none_twice(tmp_path, seconds):
    path = tmp_path / "ann" / "a.wav"
    path.parent.mkdir()
    soundfile.write(path, synthetic(seconds, 120.0), RATE)
    network = Counting()
    feature = SpeechWindows(window_spec("counting", 1), network)
    piece = Piece(path, "a", "ann", 0.0, seconds, whole=True)
    extractor = PieceExtractor(ResultCache(tmp_path / "heard"))
    extracted = extractor.extract([piece], CLEAR, 0, [feature])
    session = join_speech([piece], extracted, {"counting": feature.spec})
    assert session is not None
    spoken_seconds = np.count_nonzero(extracted[piece].frames.speech) / 100
    whole, rest = divmod(float(spoken_seconds), 3.0)
    expected = [3.0] * round(whole) + [rest] * int(rest >= 1)
    assert network.seconds == pytest.approx(expected)
    assert 3 * session["counting"].whole() == pytest.approx(sum(expected))
    # as an evaluation hears the same clear speech
    (voice,), *_ = collect(find(tmp_path), features=[feature])
    assert voice.sessions[0]["counting"].whole() == pytest.approx(session["counting"].whole())


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
    assert np.array_equal(clear.since, protected.since)  # type: ignore[arg-type]
    assert clear.values.size >= 2 * pieces[1].seconds


def test_what_was_heard_is_kept_private_and_not_heard_again(pieces, tmp_path, monkeypatch):
    for name, method, seeds in (("noise", "noise:0", (1,)), ("clear", CLEAR, (1, 2))):
        for seed in seeds:  # the clear needs no draws
            ears = PieceExtractor(ResultCache(tmp_path / name))
            found = ears.extract(pieces, method, seed, ["f0"])
        kept = list((tmp_path / name).iterdir())
        assert len(kept) == len(pieces)
        assert all(path.stat().st_mode & 0o077 == 0 for path in kept)
        # nothing of it is audio
        assert sum(path.stat().st_size for path in kept) < pieces[0].path.stat().st_size / 10
    ears = PieceExtractor(ResultCache(tmp_path / "noise"))
    found = ears.extract(pieces, "noise:0", 1, ["f0"])
    monkeypatch.setattr("monitor.lab.attacks.speech.extract_protected", None)
    again = ears.extract(pieces, "noise:0", 1, ["f0"])
    assert all(same(found[piece], again[piece]) for piece in pieces)
    with pytest.raises(TypeError):  # another seed draws anew
        ears.extract(pieces, "noise:0", 2, ["f0"])


def test_a_program_that_fails_is_named_and_another_of_that_name_is_heard_anew(pieces, tmp_path):
    program = tmp_path / "anonymise.sh"
    program.write_text("#!/bin/sh\ncat\n")
    program.chmod(0o700)
    ears = PieceExtractor(ResultCache(tmp_path / "heard"))
    clear = ears.extract(pieces[:1], f"command:{program}", 1, ["f0"])
    assert list(clear) == pieces[:1]
    program.write_text("#!/bin/sh\nfalse\n")
    assert ears.extract(pieces, f"command:{program}", 1, ["f0"]) == {}
    assert all("exit status 1" in why for why in ears.missing.values())


@pytest.mark.parametrize("failure", ["exit 3", "exit 0"])
def test_a_failed_recogniser_is_named_and_runs_again(pieces, tmp_path, failure):
    """It fails, or prints no words, for one of the recordings."""
    program, log = tmp_path / "asr.sh", tmp_path / "log"
    program.write_text(f"#!/bin/sh\ncat > {log}.wav; echo >> {log}\n"
                       f"test -e {log}.done || {{ touch {log}.done; {failure}; }}\n"
                       "echo one two\n")  # fmt: skip
    program.chmod(0o700)
    measures = [f"command:{program}"]
    for failed in (1, 0):  # the second is another run of the attack
        extractor = PieceExtractor(ResultCache(tmp_path / "heard"))
        for _ in range(2):
            found = extractor.extract(pieces, CLEAR, 0, ["f0"], measures)
        assert len(found) == len(pieces)
        assert [piece.is_measured for piece in found.values()].count(False) == failed
        assert len(extractor.unmeasured) == failed
        assert len(list((tmp_path / "heard").iterdir())) == len(pieces) - failed
        readers = Readers((Reader("r", (), (), tuple(pieces)),), "cross")
        context = AttackContext(readers, None, ("f0",), tuple(measures), AMOUNTS, extractor, 0,
                                tmp_path)  # fmt: skip
        (figure,) = measure_utility(context, CLEAR)
        assert figure.value == 0.0
        named = [note for note in context.notes if pieces[0].name in note]
        assert len(named) == len(context.notes) == failed
    assert len(log.read_text()) == len(pieces) + 1
