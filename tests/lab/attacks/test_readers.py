from __future__ import annotations

import numpy as np
import pytest
import soundfile

from monitor.corpus import find
from monitor.errors import CorpusError
from monitor.features.extractor import Extractor
from monitor.lab.attacks.speech import SEGMENT_SECONDS, Amounts, choose_readers
from monitor.sources.file import File
from monitor.types import Block
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


@pytest.mark.slow
def test_a_session_of_many_files_is_cut_across_them(tmp_path):
    for name in ("ann", "bob"):
        for session in ("1", "2"):
            for part in range(6):
                path = tmp_path / name / session / f"{part}.wav"
                path.parent.mkdir(parents=True, exist_ok=True)
                soundfile.write(path, synthetic(4.0, seed=part), RATE)
    found = choose_readers(find(tmp_path), tmp_path, AMOUNTS)
    reader = found.everybody[0]
    assert len(reader.enrolment[0]) > 3
    assert spoken(reader.enrolment[0]) >= 2 * SEGMENT_SECONDS
    assert len({p.path for p in reader.trials}) == len(reader.trials) > 1


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


def test_silence_is_no_speech(tmp_path):
    for name in ("ann", "bob"):
        (tmp_path / name).mkdir()
        for day in "12":
            soundfile.write(tmp_path / name / f"{day}.wav", np.zeros(20 * RATE), RATE)
    with pytest.raises(CorpusError, match="add speech"):
        choose_readers(find(tmp_path), tmp_path, AMOUNTS)
