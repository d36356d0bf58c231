"""Nothing of a deleted person is left in the file; and `enrol --add`, the way back."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulation import Simulation, write_corpus
from monitor.population.population import Population, load_rank_models


@pytest.fixture
def calibrated(run, people: Path, tmp_path: Path) -> Path:
    """Twelve people, and rank models that were learnt from them against a cohort of ten others."""
    path, others = tmp_path / "us.npz", tmp_path / "others"
    assert run("enrol", people, "-o", path, "--seconds", 20).code == 0
    write_corpus(others, Simulation(30, 8), 10, 1, 40.0)
    for i, folder in enumerate(sorted(others.iterdir())):
        folder.rename(others / f"neighbour{i}")
    made = run("calibrate", people, "-o", path, "--cohort", others, "--lengths", "2,5",
               "--template-lengths", "10,20", "--replicates", 20, "--trials", 4)  # fmt: skip
    assert made.code == 0, made.err
    return path


def everything(path: Path) -> bytes:
    """All that a store holds, inflated."""
    with zipfile.ZipFile(path) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


def test_nothing_of_a_person_is_left(run, people, calibrated):
    before = Population.load(calibrated)
    name = before.names[3]
    template = before.features["f0"].slices[before.offsets[3] : before.offsets[4]]
    hashes = [each for note in before.speakers[3].sources for each in note.hashes]
    old, place = everything(calibrated), calibrated.open("rb")
    assert template.tobytes() in old
    assert all(each.encode() in old for each in (f'"{name}"', *hashes))
    with place:
        result = run("people", calibrated, "--forget", name)
        assert result.code == 0, result.err
        assert not any(place.read())  # the bytes of the old file, where they lay
    new = everything(calibrated)
    assert template.tobytes() not in new
    assert not any(each.encode() in new for each in (f'"{name}"', *hashes))
    assert stat.S_IMODE(calibrated.stat().st_mode) == 0o600
    after = Population.load(calibrated)
    assert after.names == tuple(each for each in before.names if each != name)
    assert "20 s" in result.err
    assert "11 speakers left" in result.err
    # who is left is as before, and the rank models say that they owe something to somebody
    for other in after.names:
        i, j = before.index(other), after.index(other)
        mine = before.features["f0"].slices[before.offsets[i] : before.offsets[i + 1]]
        theirs = after.features["f0"].slices[after.offsets[j] : after.offsets[j + 1]]
        assert np.array_equal(mine, theirs)
    assert {
        rank_model.forgotten for rank_model in after.rank_models if rank_model.origin == "own"
    } == {1}
    assert any(rank_model.evidence for rank_model in after.rank_models)
    assert "calibrate again" in result.err
    heard = run("replay", people / "000002/s1.npz", "-p", calibrated, "--watch", after.names[0])
    assert any("has been deleted since" in notice for notice in heard.records[0]["notices"])


def test_one_of_the_cohort_is_forgotten_with_the_evidence(run, calibrated):
    before = Population.load(calibrated)
    assert before.cohort is not None
    assert "neighbour4" in before.cohort.names
    result = run("people", calibrated, "--forget", "neighbour4")
    after = Population.load(calibrated)
    assert after.cohort is not None
    assert len(after.cohort) == len(before.cohort) - 1
    assert b"neighbour4" not in everything(calibrated)
    assert after.names == before.names
    assert not any(rank_model.evidence for rank_model in after.rank_models)
    assert "no evidence in bits any more" in result.err


def test_rank_models_in_a_file_of_their_own(run, people, tmp_path):
    path = tmp_path / "rank_model.npz"
    assert run("calibrate", people, "-o", path, "--lengths", "2,5", "--template-lengths", "10",
               "--replicates", 20, "--trials", 4).code == 0  # fmt: skip
    name = next(iter(load_rank_models(path)[0])).learnt_from[0]
    assert run("people", path, "--forget", name).code == 0
    assert f'"{name}"'.encode() not in everything(path)
    assert next(iter(load_rank_models(path)[0])).forgotten == 1


def test_into_another_file(run, calibrated, tmp_path):
    before, name = calibrated.read_bytes(), Population.load(calibrated).names[0]
    path = tmp_path / "rest.npz"
    assert run("people", calibrated, "--forget", name, "-o", path).code == 0
    assert calibrated.read_bytes() == before
    assert name not in Population.load(path).names
    again = run("people", calibrated, "--forget", name, "-o", path)
    assert again.code == 2
    assert "--replace" in again.complaint
    assert run("people", calibrated, "--forget", name, "-o", path, "--replace").code == 0


def test_who_is_not_there(run, calibrated, tmp_path):
    before = calibrated.read_bytes()
    for name in ("nobody at all", "00000"):
        result = run("people", calibrated, "--forget", name)
        assert result.code == 2
        assert f"nobody called {name!r} is in" in result.complaint
    assert "did you mean" in result.complaint
    assert calibrated.read_bytes() == before
    assert run("people", tmp_path / "none.npz", "--forget", "ann").code == 1
    (tmp_path / "text.npz").write_text("hello")
    assert run("people", tmp_path / "text.npz", "--forget", "ann").code == 1


def test_the_last_one_is_not_forgotten(run, people, tmp_path):
    path = tmp_path / "me.npz"
    run("enrol", people / "000001", "--speaker", "me", "-o", path)
    result = run("people", path, "--forget", "me")
    assert result.code == 2
    assert "delete the file" in result.complaint


def test_a_hard_link_is_not_overwritten(run, calibrated, tmp_path):
    kept = tmp_path / "backup.npz"
    kept.hardlink_to(calibrated)
    before = kept.read_bytes()
    assert run("people", calibrated, "--forget", Population.load(calibrated).names[0]).code == 0
    assert kept.read_bytes() == before


def test_a_further_session(run, people, calibrated):
    """Slices stand behind those that were there, and sources behind sources."""
    path, before = calibrated, Population.load(calibrated)
    name = before.names[5]
    write_corpus(path.parent / "later", Simulation(5, 8), 1, 1, 40.0)
    (folder,) = (path.parent / "later").iterdir()
    told = run("enrol", folder, "--speaker", name, "--add", "-o", path, "--seconds", 15)
    assert told.code == 0, told.err
    after = Population.load(path)
    assert after.names == before.names
    assert after.template_seconds[5] == before.template_seconds[5] + 15
    assert (
        np.delete(after.template_seconds, 5).tolist()
        == np.delete(before.template_seconds, 5).tolist()
    )
    old = before.features["f0"].slices[before.offsets[5] : before.offsets[6]]
    new = after.features["f0"].slices[after.offsets[5] : after.offsets[6]]
    assert np.array_equal(new[: len(old)], old)
    assert new[len(old) :].any()
    rest = after.features["f0"].slices[after.offsets[6] :]
    assert np.array_equal(rest, before.features["f0"].slices[before.offsets[6] :])
    assert (
        after.speakers[5].sources[: len(before.speakers[5].sources)] == before.speakers[5].sources
    )
    assert len(after.speakers[5].sources) == len(before.speakers[5].sources) + 1
    assert not after.mismatched
    assert f"a further session of {name}" in told.err
    assert f"{name}: 15 s of speech more, 35 s in all" in told.err

    # what is there is refused, before anything is heard and without a change
    held = path.read_bytes()
    again = run("enrol", folder, "--speaker", name, "--add", "-o", path)
    assert again.code == 2
    assert f"is enrolled already, as {name}" in again.complaint
    assert path.read_bytes() == held
    # without --add nobody is extended by accident
    assert run("enrol", folder, "--speaker", name, "--base", path, "-o", path.parent / "n.npz",
               "--features", "f0").code == 2  # fmt: skip
