"""monitor protect of a folder of frames, as people use it."""

from __future__ import annotations

import csv
import json
import stat
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.features.framing import join_runs
from monitor.maths.composition import advanced, optimal
from monitor.sources.frames import FramesFile, Header, write_frames
from monitor.types import Track
from tests.sounds import RATE, synthetic

MARK = "a" * 64


def embeddings(seed: int, count: int = 10) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=(count, 16))
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), np.float32)


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    folder = tmp_path / "frames"
    rows = ["path,speaker,session"]
    for seed, name in enumerate(("ann/1", "ann/2", "bob/1")):
        path = folder / f"{name}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        ticks = 300 * np.arange(1, 11)
        tracks = {
            "f0": Track(np.arange(1, 3001), np.zeros(3000, int)),
            "voice": Track(ticks, embeddings(seed)),
        }
        write_frames(
            path, np.ones(3000, bool), tracks, {"f0": 104, "voice": 16},
            {"f0": 0.01, "voice": 3.0}, networks={"voice": MARK},
            header=Header(hashes=("file:" + "b" * 64,)),
        )  # fmt: skip
        rows.append(f"{name}.npz,{name.split('/')[0]},{name.split('/')[1]}")
    (folder / "manifest.csv").write_text("\n".join(rows) + "\n")
    return folder


def values(path: Path) -> np.ndarray:
    track = join_runs(list(FramesFile(path))).tracks["voice"]
    return np.asarray(track.values)


def test_embeddings_get_noise_and_nothing_else_is_left(run, heard, tmp_path):
    noisy = tmp_path / "noisy"
    done = run("protect", heard, "-o", noisy, "--method", "laplace:0.5")
    assert done.code == 0, done.err
    assert "left out, since nothing is promised for them: f0" in done.err
    assert "noise of scale 4 on every number" in done.err
    assert "20 frames of ann (60 s of speech) together: epsilon 10 by basic" in done.err
    assert "by optimal (delta 0.0001); advanced is no better than basic" in done.err
    assert "no attacker has more than 14.4 bits of evidence" in done.err
    assert "from 46 frames on the promise would be empty" in done.err
    source = FramesFile(noisy / "ann" / "1.npz")
    assert list(source.stream_info.tracks) == ["voice"]
    assert source.stream_info.tracks["voice"].network == MARK
    assert not source.header.hashes
    assert source.header.noise == "laplace:0.5"
    assert not source.header.settings
    assert values(noisy / "ann" / "1.npz").std() == pytest.approx(4 * 2**0.5, rel=0.25)
    assert (noisy / "manifest.csv").read_bytes() == (heard / "manifest.csv").read_bytes()
    files = [path for path in noisy.rglob("*") if path.is_file()]
    assert len(files) == 5
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_the_account_says_what_is_spent_by_each_speaker(run, heard, tmp_path):
    done = run("protect", heard, "-o", tmp_path / "noisy", "--method", "laplace:15,0.5")
    assert done.code == 0
    assert "the bound is vacuous for 2 of 2 speakers: from 2 frames on" in done.err
    with (tmp_path / "noisy" / "accounting.csv").open() as file:
        ann, bob = csv.DictReader(file)
    assert (ann["speaker"], ann["frames"], ann["seconds"]) == ("ann", "20", "60")
    assert float(ann["clip"]) == 0.5
    assert float(ann["noise_scale"]) == pytest.approx(1 / 15)
    assert float(bob["basic_nats"]) == 150
    assert float(bob["advanced_nats"]) == pytest.approx(advanced(15, 10, 1e-4), rel=1e-4)
    assert float(bob["optimal_nats"]) == pytest.approx(optimal(15, 10, 1e-4), rel=1e-4)
    assert float(bob["most_evidence_bits"]) == pytest.approx(150 / np.log(2), rel=1e-4)


def test_noise_is_new_each_time_but_for_a_seed(run, heard, tmp_path):
    def made(name: str, *more: object) -> np.ndarray:
        done = run("protect", heard, "-o", tmp_path / name, "--method", "laplace:9", *more)
        assert done.code == 0
        return values(tmp_path / name / "bob" / "1.npz")

    assert not np.array_equal(made("a"), made("b"))
    assert np.array_equal(made("c", "--seed", 4), made("d", "--seed", 4))


def test_what_is_there_stays_unless_asked(run, heard, tmp_path):
    asked = ("protect", heard, "-o", tmp_path / "noisy", "--method", "laplace:9")
    assert run(*asked).code == 0
    before = values(tmp_path / "noisy" / "bob" / "1.npz")
    done = run(*asked)
    assert done.code == 1
    assert "give --replace" in done.complaint
    assert np.array_equal(before, values(tmp_path / "noisy" / "bob" / "1.npz"))
    assert run(*asked, "--replace").code == 0
    assert not np.array_equal(before, values(tmp_path / "noisy" / "bob" / "1.npz"))


def test_a_broken_file_is_named_and_skipped(run, heard, tmp_path):
    (heard / "ann" / "2.npz").write_bytes(b"no frames")
    done = run("protect", heard, "-o", tmp_path / "noisy", "--method", "laplace:9")
    assert done.code == 4
    assert "skipped: 2.npz" in done.err
    assert "ann/2.npz" not in (tmp_path / "noisy" / "manifest.csv").read_text()


def test_recordings_are_refused_and_frames_for_what_changes_sound(run, heard, tmp_path):
    soundfile.write(tmp_path / "a.wav", synthetic(0.2), RATE)
    (tmp_path / "voices" / "ann").mkdir(parents=True)
    soundfile.write(tmp_path / "voices" / "ann" / "a.wav", synthetic(0.2), RATE)
    for given in (tmp_path / "voices", tmp_path / "a.wav"):
        done = run("protect", given, "-o", tmp_path / "x", "--method", "laplace:9")
        assert done.code == 2
        assert "laplace is for embeddings" in done.complaint
    done = run("protect", heard, "-o", tmp_path / "x", "--method", "mcadams:0.8")
    assert done.code == 2
    assert "holds frames, no sound" in done.complaint
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_an_experiment_tells_that_noisy_templates_understate(run, heard, tmp_path):
    noisy = tmp_path / "noisy"
    assert run("protect", heard, "-o", noisy, "--method", "laplace:9").code == 0
    lengths = ("--lengths", 3, "--template-lengths", 3, "--tables-at", 3, 3)
    options = (*lengths, "--session", "same", "--replicates", 20, "--jobs", 1)
    for folder, told in ((noisy, True), (heard, False)):
        out = tmp_path / f"out-{folder.name}"
        done = run("experiment", folder, "-o", out, "--features", "voice", *options)
        assert done.code == 0, done.err
        page = (out / "index.html").read_text()
        for text in (done.err, page, (out / "results.json").read_text()):
            assert ("clear templates learn more" in " ".join(text.split())) == told
            assert ("monitor score NOISY_FRAMES -p clear.npz" in " ".join(text.split())) == told


@pytest.mark.slow
def test_lengths_below_the_first_frame_are_not_heard_instead_of_nothing_disclosed(
    run, heard, tmp_path
):
    out = tmp_path / "out"
    lengths = ("--lengths", "1,3,6", "--template-lengths", "1,6", "--tables-at", 3, 6)
    done = run("experiment", heard, "-o", out, "--features", "voice", *lengths, "--session",
               "same", "--replicates", 20, "--jobs", 1)  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads((out / "results.json").read_text())
    measured = {(c["T"], c["D"]) for c in found["cells"] if c["systems"]}
    assert measured == {(3.0, 6.0), (6.0, 6.0)}
    assert "not heard" in (out / "index.html").read_text()
    rises = next(each for each in found["findings"] if each["question"] == "rises")
    assert "at T = 3 s" in rises["text"]


@pytest.mark.parametrize("setting", ["laplace", "laplace:0", "laplace:1,0", "laplace:x"])
def test_a_setting_that_makes_no_sense_is_refused(run, heard, tmp_path, setting):
    done = run("protect", heard, "-o", tmp_path / "noisy", "--method", setting)
    assert done.code == 2
    assert not (tmp_path / "noisy").exists()
