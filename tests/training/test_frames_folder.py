"""Frames of a corpus: whole, private, known again, and made again where anything has changed."""

import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.corpus import Corpus, Recording, find
from monitor.corpus.tables import read_speaker_attributes
from monitor.errors import OverlapError, SourceError, UsageError
from monitor.lab.scoring import groups_of
from monitor.maths.condition import ROW
from monitor.sources.frames import FramesFile, read_frames, write_frames
from monitor.sources.registry import provenance_of, recording_hashes
from monitor.stream.notices import session_of
from monitor.training import frames_folder
from monitor.training.enrolling import enrol
from monitor.training.frames_folder import ExtractionOptions, keep, orders, write_manifest
from monitor.training.voices import collect
from monitor.transcripts.choice import TranscriptChoice
from monitor.types import Track
from tests.contracts import RATE, voice

HOW = ExtractionOptions(("f0",))


@pytest.fixture
def corpus(tmp_path, flac):
    root = tmp_path / "voices"
    flac(root / "ann" / "mon" / "1.flac", 9.0, 200.0)
    flac(root / "bob" / "1.flac", 9.0, 110.0)
    return root


def listed(corpus, folder):
    wanted = orders(find(corpus), corpus, folder)
    write_manifest(folder, wanted)
    return wanted


def heard(wanted, how=HOW, jobs=1):
    """Seconds that had to be heard of each."""
    return [round(kept.seconds) for kept in keep(wanted, how, jobs)]


def test_frames_take_the_place_of_the_audio(corpus, tmp_path):
    folder = tmp_path / "frames"
    assert heard(listed(corpus, folder)) == [9, 9]
    of_audio, of_frames = (enrol(find(where), features=["f0"]).population
                           for where in (corpus, folder))  # fmt: skip
    np.testing.assert_array_equal(of_audio.features["f0"].slices, of_frames.features["f0"].slices)
    assert [[n.session for n in s.sources] for s in of_frames.speakers] == [["mon"], ["1"]]
    talk = corpus / "ann" / "mon" / "1.flac"
    with pytest.raises(OverlapError, match=r"1\.flac: .* were enrolled as ann"):
        session_of(of_frames, [provenance_of(talk)])
    with pytest.raises(OverlapError, match=r"1\.npz: .* were enrolled as ann"):
        session_of(of_audio, [provenance_of(folder / "ann" / "mon" / "1.npz")])
    assert session_of(of_frames, [provenance_of(talk)], allow_overlap=True) == "same"
    files = [each for each in folder.rglob("*") if each.is_file()]
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_templates_of_frames_know_the_sound_and_landmarks_of_the_audio(corpus, tmp_path):
    folder = tmp_path / "frames"
    assert heard(listed(corpus, folder)) == [9, 9]
    of_audio, of_frames = (enrol(find(where), features=["f0"]).population.speakers
                           for where in (corpus, folder))  # fmt: skip
    for audio, frames in zip(of_audio, of_frames, strict=True):
        assert audio.sound.size
        np.testing.assert_array_equal(audio.sound, frames.sound)
        ((one,), (other,)) = audio.sources, frames.sources
        assert one.landmarks.size
        np.testing.assert_array_equal(one.landmarks, other.landmarks)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("recording-sound", np.zeros(3, np.int64)),
        ("recording-sound", np.full(ROW, -1)),
        ("recording-sound", np.zeros(ROW, object)),
        ("recording-landmarks", np.zeros((2, 2), "<u2")),
        ("recording-landmarks", np.zeros(2, np.float32)),
        ("recording-starts", np.zeros((1, 2), np.int64)),
        ("recording-starts", np.zeros((1, 2))),
        ("starts-speech", np.ones(3, np.bool_)),
        ("starts-f0_ticks", np.zeros(3, np.int64)),
    ],
)
def test_arrays_of_the_recording_are_checked(corpus, tmp_path, name, array):
    (order, _) = listed(corpus, tmp_path / "frames")
    assert heard([order]) == [9]
    with np.load(order.target) as file:
        arrays = {**file, name: array}
    np.savez(order.target, **arrays)
    with pytest.raises(SourceError):
        FramesFile(order.target)


@pytest.mark.slow
def test_only_what_has_changed_is_heard_again(corpus, tmp_path, flac, monkeypatch):
    wanted = listed(corpus, tmp_path / "frames")
    assert heard(wanted) == [9, 9]
    assert heard(wanted) == [0, 0]
    flac(wanted[0].source, 6.0, 150.0)
    assert heard(wanted) == [6, 0]
    wanted[1].target.write_bytes(wanted[1].target.read_bytes()[:-100])
    assert heard(wanted) == [0, 9]
    assert heard(wanted, ExtractionOptions(("f0", "phones"))) == [6, 9]
    assert heard(wanted, replace(HOW, seconds=3.0)) == [3, 3]
    assert heard(wanted, replace(HOW, channel=1)) == [6, 9]
    monkeypatch.setattr(frames_folder, "__version__", "another")
    assert heard(wanted, replace(HOW, channel=1)) == [6, 9]


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_further_features_are_added_to_what_is_there(corpus, tmp_path, jobs):
    wanted, at_once = (listed(corpus, tmp_path / name) for name in ("frames", "at_once"))
    assert heard(wanted, jobs=jobs) == [9, 9]
    assert heard(wanted, ExtractionOptions(("phones",)), jobs) == [9, 9]
    assert heard(wanted, ExtractionOptions(("phones",))) == heard(wanted) == [0, 0]
    assert heard(at_once, ExtractionOptions(("phones", "f0"))) == [9, 9]
    for one, other in zip(wanted, at_once, strict=True):
        assert one.target.read_bytes() == other.target.read_bytes()


def test_what_cannot_be_heard_is_named_and_leaves_nothing(corpus, tmp_path, flac):
    wanted = listed(corpus, tmp_path / "frames")
    flac(wanted[0].source, 9.0, keep=0.5)
    first, second = keep(wanted, replace(HOW, channel=1))
    assert first.problem.startswith("ann/mon/1.flac: ")
    assert (first.is_complete, second.is_complete, second.problem) == (False, True, "")
    assert not wanted[0].target.exists()
    (first, _) = keep(wanted, replace(HOW, channel=2))
    assert "channel" in first.problem or "ends after" in first.problem
    frames = tmp_path / "a.npz"
    track = Track(np.array([1]), np.array([5]))
    write_frames(frames, np.ones(9, bool), {"f0": track}, {"f0": 9}, {"f0": 0.01})
    (only,) = keep([replace(wanted[0], source=frames)], HOW)
    assert only.problem == f"ann/{tmp_path.name}/a.npz: contains frames, not audio"


def test_names_stay_apart_and_inside(tmp_path):
    root, folder = tmp_path / "voices", tmp_path / "frames"
    root.mkdir()
    paths = [root / "a/1.wav", root / "a/1.flac", tmp_path / "elsewhere/1.wav", root / "\x1b/.wav"]
    speakers = ["a", "a", "../b", "c"]
    recordings = tuple(Recording(s, "x", p) for s, p in zip(speakers, paths, strict=True))
    targets = [order.target for order in orders(Corpus(recordings, ()), root, folder)]
    assert len(set(targets)) == 4
    assert targets[:2] == [folder / "a/1.npz", folder / "a/1.flac.npz"]
    for target in targets:
        assert ".." not in target.parts
        assert target.is_relative_to(folder)
        assert str(target.relative_to(folder)).isprintable()


def test_what_tables_say_of_speakers_stays_with_their_frames(corpus, tmp_path):
    folder, who, table = tmp_path / "frames", ["ann", "bob"], corpus / "manifest.csv"
    assert groups_of(corpus, who) is None
    with pytest.raises(UsageError, match=r"the age of speakers .*: add --groups"):
        groups_of(corpus, who, column="age")
    table.write_text(
        "path,speaker,chapter,Gender,age\nann/mon/1.flac,ann,7,F,30\nbob/1.flac,bob,8,M,\n"
    )
    for _ in range(2):  # what was made so is known again
        wanted = orders(find(corpus), corpus, folder)
        write_manifest(folder, wanted, read_speaker_attributes(corpus))
    assert (folder / "manifest.csv").read_text().splitlines() == [
        "path,speaker,session,Gender,age",
        "ann/mon/1.npz,ann,7,F,30",
        "bob/1.npz,bob,8,M,",
    ]
    of_frames = (groups_of(folder, who, column=column) for column in (None, "age"))
    beside = (groups_of(tmp_path / "none", who, table, column) for column in ("Gender", "age"))
    for genders, ages in (of_frames, beside):
        assert (genders.name, dict(genders.of)) == ("Gender", {"ann": "F", "bob": "M"})
        assert (ages.name, ages.of["ann"]) == ("age", "30")
    with pytest.raises(UsageError, match="has no column 'accent'"):
        groups_of(folder, who, column="accent")


def test_a_impostors_header_is_looked_at(tmp_path):
    path = tmp_path / "a.jsonl"
    for known, count in (("audio:" + "0" * 64, 2), ("me", 1)):
        path.write_text(f'{{"schema": 1, "hashes": ["{known}"]}}\n{{"seconds": 0.01, "f0": 57}}\n')
        assert len(recording_hashes(path)) == count
        assert (known in recording_hashes(path)) == (count == 2)


def test_nothing_else_is_written_over(corpus, tmp_path):
    found = find(corpus)
    with pytest.raises(UsageError, match="in the corpus itself"):
        orders(found, corpus, corpus / "frames")
    other = tmp_path / "other"
    other.mkdir()
    (other / "manifest.csv").write_text("path,speaker\n1.wav,ann\n")
    with pytest.raises(UsageError, match="has other contents"):
        orders(found, corpus, other)


SAID = "well i do not know so it was the end of that and then we went"
STYLE = ("f0", "style")
WORDS = ExtractionOptions(STYLE)


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


def test_frames_are_heard_anew_when_their_words_have_changed(speech, tmp_path):
    wanted, first = listed(speech, tmp_path / "frames"), tmp_path / "frames" / "ann" / "1.npz"
    assert heard(wanted, WORDS) == [8, 8, 8, 8]
    assert heard(wanted, WORDS) == [0, 0, 0, 0]
    before = read_frames(first).tracks
    talk(speech / "ann" / "1.wav", 0, SAID.replace("know", "the"))
    assert heard(wanted, WORDS) == [8, 0, 0, 0]
    after = read_frames(first).tracks
    assert before["style"].values.size
    assert not np.array_equal(before["style"].values, after["style"].values)
    assert np.array_equal(before["f0"].values, after["f0"].values)
