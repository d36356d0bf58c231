"""Words that lie beside the recordings of a corpus, wherever it is heard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.corpus import find
from monitor.features.style import Style, read_style_words
from monitor.sources.frames import FramesFile, read_frames
from monitor.training.enrolling import enrol
from monitor.training.feature_extraction import (
    HearingOptions,
    OrderOutcome,
    keep,
    orders,
    write_manifest,
)
from monitor.training.voices import collect
from monitor.transcripts.formats import TranscriptChoice
from tests.contracts import RATE, voice

SAID = "well i do not know so it was the end of that and then we went"
STYLE = ("f0", "style")


def talk(path: Path, seed: int, said: str = SAID) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, voice(8.0, seed=seed), RATE)
    words = np.random.default_rng(seed).permutation(said.split())
    rows = [f"{0.4 * i}\t{0.4 * i + 0.3}\t{word}" for i, word in enumerate(words)]
    path.with_suffix(".tsv").write_text("\n".join(["start\tend\ttext", *rows]))


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    for number, name in enumerate(("ann/1", "ann/2", "bob/1", "bob/2")):
        talk(tmp_path / "speech" / f"{name}.wav", number)
    return tmp_path / "speech"


@pytest.mark.slow
def test_templates_do_not_depend_on_who_listens_nor_on_frames_kept(speech, tmp_path):
    found = find(speech)
    one, two = (enrol(found, features=STYLE, seconds=10, jobs=j).population for j in (1, 2))
    assert one.fingerprint() == two.fingerprint()
    assert one.features["style"].slices.sum() > 20
    kept(speech, tmp_path / "frames")
    frames = enrol(find(tmp_path / "frames"), features=STYLE, seconds=10).population
    for name in STYLE:
        assert (frames.features[name].slices == one.features[name].slices).all()


@pytest.mark.slow
def test_a_list_of_ones_own_is_that_of_every_process(speech, tmp_path, monkeypatch):
    plain = enrol(find(speech), features=["style"], seconds=10).population
    words = tmp_path / "own.txt"
    words.write_text("so\nwell\nend the of\n")
    monkeypatch.setenv("MONITOR_WORD_LIST", str(words))
    one, two = (
        enrol(find(speech), features=["style"], seconds=10, jobs=jobs).population for jobs in (1, 2)
    )
    assert one.fingerprint() == two.fingerprint()
    assert one.features["style"].spec == Style(read_style_words(words)).spec
    assert one.features["style"].spec.network != plain.features["style"].spec.network


def test_a_recording_without_words_is_named_and_left_out(speech):
    (speech / "bob" / "1.tsv").unlink()
    voices, specs, problems = collect(find(speech), features=STYLE)
    assert [len(each.sessions) for each in voices] == [2, 1]
    assert list(specs) == list(STYLE)
    (problem,) = problems
    assert problem.startswith("bob/1.wav has no words beside it: put 1.words there")


def test_of_several_speakers_the_corpus_own_one_counts(speech):
    def styles(speaker: str | None = None) -> list[int]:
        found = find(speech).with_words(TranscriptChoice(speaker=speaker))
        voices = collect(found, features=["style"])[0]
        return [sum(s["style"].units.size for s in each.sessions) for each in voices]

    plain = styles()
    for path in speech.rglob("*.tsv"):
        first, *rows = path.read_text().splitlines()
        named = [f"{row}\t{'ann' if i % 3 else 'bob'}" for i, row in enumerate(rows)]
        path.write_text("\n".join([f"{first}\tspeaker", *named]))
    parts = styles()
    assert all(0 < part < whole for part, whole in zip(parts, plain, strict=True))
    assert styles(speaker="ann") != parts


def kept(speech: Path, frames: Path, features: tuple[str, ...] = STYLE) -> list[OrderOutcome]:
    wanted = orders(find(speech), speech, frames)
    write_manifest(frames, wanted)
    return list(keep(wanted, HearingOptions(features)))


def heard(outcomes: list[OrderOutcome]) -> list[bool]:
    return [outcome.seconds > 0 for outcome in outcomes]


def test_frames_are_heard_anew_when_their_words_have_changed(speech, tmp_path):
    frames = tmp_path / "frames"
    assert heard(kept(speech, frames)) == [True] * 4
    assert heard(kept(speech, frames)) == [False] * 4
    before = read_frames(frames / "ann" / "1.npz")
    talk(speech / "ann" / "1.wav", 0, SAID.replace("know", "the"))
    assert heard(kept(speech, frames)) == [True, False, False, False]
    after = read_frames(frames / "ann" / "1.npz")
    assert before.tracks["style"].values.size
    assert not np.array_equal(before.tracks["style"].values, after.tracks["style"].values)
    assert np.array_equal(before.tracks["f0"].values, after.tracks["f0"].values)


def test_what_was_heard_of_the_sound_stays_where_there_are_no_words(speech, tmp_path):
    frames = tmp_path / "frames"
    kept(speech, frames, ("f0",))
    (speech / "ann" / "1.tsv").unlink()
    first, *rest = kept(speech, frames)
    assert (first.is_complete, first.seconds) == (True, 0.0)
    assert "has no words beside it" in first.problem
    assert list(FramesFile(frames / "ann" / "1.npz").stream_info.tracks) == ["f0"]
    assert heard(rest) == [True] * 3
    talk(speech / "ann" / "1.wav", 0)
    assert heard(kept(speech, frames)) == [True, False, False, False]
    assert heard(kept(speech, frames, ("f0",))) == [False] * 4


def test_a_transcript_that_seems_to_be_of_another_recording_is_named(tmp_path):
    for place, length in (("ann/1", 40.0), ("bob/1", 40.0)):
        pauses = np.random.default_rng(len(place)).permutation(80) < 40
        told = np.repeat(pauses, RATE // 2)
        path = tmp_path / "speech" / f"{place}.wav"
        path.parent.mkdir(parents=True)
        samples = np.where(told, voice(length, seed=1)[: told.size], 0.0)
        soundfile.write(path, samples, RATE)
        own = pauses if place == "ann/1" else ~pauses
        rows = [f"{i / 2 + 0.05}\t{i / 2 + 0.45}\tso" for i in np.flatnonzero(own)]
        path.with_suffix(".tsv").write_text("\n".join(["start\tend\ttext", *rows]))
    found, lines = find(tmp_path / "speech"), list[str]()
    collect(found, features=["f0", "style"], notify=lines.append)
    (doubt,) = [line for line in lines if "is it of another recording?" in line]
    assert doubt.startswith("1.tsv: ")
    enrolled: list[str] = []
    enrol(found, features=STYLE, seconds=60, notify=enrolled.append)
    assert sorted(enrolled) == sorted(lines)
    outcomes = kept(tmp_path / "speech", tmp_path / "frames")
    assert sorted(line for each in outcomes for line in each.messages) == sorted(lines)
    assert not any(each.messages for each in kept(tmp_path / "speech", tmp_path / "frames"))
