"""Frames of a corpus: whole, private, known again, and made again where anything has changed."""

from __future__ import annotations

import stat
from dataclasses import replace

import numpy as np
import pytest

from monitor.corpus import Corpus, Recording, find, read_speaker_attributes
from monitor.errors import OverlapError, UsageError
from monitor.lab.scoring import groups_of
from monitor.sources.frames import FramesFile, write_frames
from monitor.sources.registry import provenance_of, recording_hashes
from monitor.stream.notices import session_of
from monitor.training import feature_extraction as frames_folder
from monitor.training.enrolling import enrol
from monitor.training.feature_extraction import HearingOptions, keep, orders, write_manifest
from monitor.types import Track

HOW = HearingOptions(("f0",))


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


@pytest.mark.slow
def test_only_what_has_changed_is_heard_again(corpus, tmp_path, flac, monkeypatch):
    wanted = listed(corpus, tmp_path / "frames")
    assert heard(wanted) == [9, 9]
    assert heard(wanted) == [0, 0]
    flac(wanted[0].source, 6.0, 150.0)
    assert heard(wanted) == [6, 0]
    wanted[1].target.write_bytes(wanted[1].target.read_bytes()[:-100])
    assert heard(wanted) == [0, 9]
    assert heard(wanted, HearingOptions(("f0", "phones"))) == [6, 9]
    assert heard(wanted, replace(HOW, seconds=3.0)) == [3, 3]
    assert heard(wanted, replace(HOW, channel=1)) == [6, 9]
    monkeypatch.setattr(frames_folder, "__version__", "0.2.0")
    assert heard(wanted, replace(HOW, channel=1)) == [6, 9]


def held(order):
    """Names of the features that are there."""
    return list(FramesFile(order.target).stream_info.tracks)


def test_further_features_are_added_to_what_is_there(corpus, tmp_path):
    wanted, at_once = (listed(corpus, tmp_path / name) for name in ("frames", "at_once"))
    assert heard(wanted) == [9, 9]
    assert heard(wanted, HearingOptions(("phones",))) == [9, 9]
    assert heard(wanted, HearingOptions(("phones",))) == heard(wanted) == [0, 0]
    assert heard(at_once, HearingOptions(("phones", "f0"))) == [9, 9]
    for one, other in zip(wanted, at_once, strict=True):
        assert one.target.read_bytes() == other.target.read_bytes()


def test_what_is_there_is_heard_anew_with_what_is_added_in_another_manner(corpus, tmp_path, flac):
    wanted = listed(corpus, tmp_path / "frames")
    assert heard(wanted) == [9, 9]
    assert heard(wanted, HearingOptions(("phones",), seconds=3.0)) == [3, 3]
    assert held(wanted[0]) == ["f0", "phones"]
    flac(wanted[0].source, 6.0, 150.0)
    assert heard(wanted, HearingOptions(("phones",), seconds=3.0)) == [3, 0]
    of_another = FramesFile(wanted[0].target)
    assert heard(wanted, HearingOptions(("f0",), seconds=3.0)) == [0, 0]
    again = listed(corpus, tmp_path / "again")
    assert heard(again, HearingOptions(("f0", "phones"), seconds=3.0)) == [3, 3]
    assert of_another.header.settings == FramesFile(again[0].target).header.settings
    assert again[0].target.read_bytes() == wanted[0].target.read_bytes()


@pytest.mark.slow
def test_processes_make_the_same_files(corpus, tmp_path):
    one, two = (listed(corpus, tmp_path / name) for name in ("one", "two"))
    assert heard(one) == heard(two, jobs=2)
    assert [o.target.read_bytes() for o in one] == [o.target.read_bytes() for o in two]


def test_what_cannot_be_heard_is_named_and_leaves_nothing(corpus, tmp_path, flac):
    wanted = listed(corpus, tmp_path / "frames")
    flac(wanted[0].source, 9.0, keep=0.5)
    first, second = keep(wanted, replace(HOW, channel=1))
    assert first.problem.startswith("ann/mon/1.flac: ")
    assert (first.is_complete, second.is_complete, second.problem) == (False, True, "")
    assert not wanted[0].target.exists()
    (first, _) = keep(wanted, replace(HOW, channel=2))
    assert "channel" in first.problem or "could be read" in first.problem
    frames = tmp_path / "a.npz"
    track = Track(np.array([1]), np.array([5]))
    write_frames(frames, np.ones(9, bool), {"f0": track}, {"f0": 9}, {"f0": 0.01})
    (only,) = keep([replace(wanted[0], source=frames)], HOW)
    assert only.problem == f"ann/{tmp_path.name}/a.npz: holds frames already, no audio"


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


def test_what_is_said_of_speakers_stays_with_their_frames(corpus, tmp_path):
    (corpus / "manifest.csv").write_text(
        "path,speaker,chapter,Gender,age\nann/mon/1.flac,ann,7,F,30\nbob/1.flac,bob,8,M,\n"
    )
    folder = tmp_path / "frames"
    for _ in range(2):  # what was made so is known again
        wanted = orders(find(corpus), corpus, folder)
        write_manifest(folder, wanted, read_speaker_attributes(corpus))
    assert (folder / "manifest.csv").read_text().splitlines() == [
        "path,speaker,session,Gender,age",
        "ann/mon/1.npz,ann,7,F,30",
        "bob/1.npz,bob,8,M,",
    ]
    for column, values in ((None, {"ann": "F", "bob": "M"}), ("age", {"ann": "30"})):
        groups = groups_of(folder, ["ann", "bob"], column=column)
        assert groups is not None
        assert {who: said for who, said in groups.of.items() if said} == values


def test_nothing_else_is_written_over(corpus, tmp_path):
    found = find(corpus)
    with pytest.raises(UsageError, match="lies in the corpus itself"):
        orders(found, corpus, corpus / "frames")
    other = tmp_path / "other"
    other.mkdir()
    (other / "manifest.csv").write_text("path,speaker\n1.wav,ann\n")
    with pytest.raises(UsageError, match="holds something else"):
        orders(found, corpus, other)


def test_a_impostors_header_is_looked_at(tmp_path):
    path = tmp_path / "a.jsonl"
    known = "audio:" + "0" * 64
    path.write_text(f'{{"schema": 1, "hashes": ["{known}"]}}\n{{"seconds": 0.01, "f0": 57}}\n')
    assert recording_hashes(path)[1:] == (known,)
    assert FramesFile(path).header.hashes == (known,)
    path.write_text('{"schema": 1, "hashes": ["me"]}\n{"seconds": 0.01, "f0": 57}\n')
    assert len(recording_hashes(path)) == 1


@pytest.mark.slow
def test_embeddings_do_not_depend_on_processes(corpus, tmp_path):
    how = HearingOptions(("voice",))
    one, two = (listed(corpus, tmp_path / name) for name in ("one", "two"))
    assert heard(one, how) == heard(two, how, jobs=2)
    assert [o.target.read_bytes() for o in one] == [o.target.read_bytes() for o in two]
