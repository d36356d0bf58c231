"""monitor protect, as people use it."""

from __future__ import annotations

import json
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.anonymisers.recording import NAME
from tests.sounds import RATE, synthetic


@pytest.fixture
def voices(tmp_path: Path) -> Path:
    sound = np.round(synthetic(0.6) * 2**15).astype(np.int16)  # the same samples in each
    for name in ("ann/one.wav", "ann/two.flac", "bob/three.ogg"):
        path = tmp_path / "voices" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, sound, RATE)
    return tmp_path / "voices"


def read(path: Path) -> np.ndarray:
    samples: np.ndarray = soundfile.read(path, dtype="float32")[0]
    return samples


def test_a_folder_keeps_its_names_and_lengths(run, voices, tmp_path):
    done = run("protect", voices, "-o", tmp_path / "safe", "--method", "mcadams:0.8")
    assert done.code == 0, done.err
    assert "protected 3 recordings (0.0 min) with mcadams:0.8\n" in done.err
    made = sorted(p.relative_to(tmp_path / "safe").as_posix() for p in tmp_path.rglob("safe/*/*"))
    assert made == ["ann/one.wav", "ann/two.flac", "bob/three.wav"]
    for name in made[:2]:
        before, after = read(voices / name), read(tmp_path / "safe" / name)
        assert after.size == before.size
        assert np.abs(after - before).max() > 0.01
        assert stat.S_IMODE((tmp_path / "safe" / name).stat().st_mode) == 0o600
    assert soundfile.info(tmp_path / "safe" / "ann" / "two.flac").format == "FLAC"


@pytest.mark.slow
@pytest.mark.parametrize("optimised", [[], ["-O"]], ids=["", "-O"])
@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, optimised, suffix):
    """No file may grow beyond a size, which is what libsndfile sees of a full disk.

    Nor may Python keep what it compiles (-B): that would be cut off as well.
    """
    resource = pytest.importorskip("resource", reason="this system limits no sizes of files")
    noise = np.random.default_rng(0).normal(0, 0.2, 6 * RATE)
    soundfile.write(tmp_path / "a.wav", noise, RATE)
    words = ["protect", "a.wav", "-o", f"safe/b.{suffix}", "--method", "none"]
    done = subprocess.run(
        [sys.executable, "-B", *optimised, "-m", "monitor", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, 65_536)),
    )
    line = f"monitor: cannot write b.{suffix}: File too large; choose another place\n"
    assert (done.returncode, done.stderr) == (1, line)
    assert not list((tmp_path / "safe").iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only an administrator of Linux can mount a file system")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("optimised", [[], ["-O"]], ids=["", "-O"])
def test_a_file_system_that_is_full(tmp_path, small_disk, optimised):
    soundfile.write(tmp_path / "a.wav", synthetic(6.0), RATE)
    words = ["protect", tmp_path / "a.wav", "-o", small_disk / "b.wav", "--method", "none"]
    done = subprocess.run(
        [sys.executable, "-B", *optimised, "-m", "monitor", *map(str, words)],
        capture_output=True,
        text=True,
    )
    line = "monitor: cannot write b.wav: No space left on device; choose another place\n"
    assert (done.returncode, done.stderr) == (1, line)
    assert not list(small_disk.iterdir())


def test_a_file_that_was_protected_says_so_when_it_is_measured(run, voices, tmp_path):
    safe = tmp_path / "safe"
    seed = 8_675_309
    done = run("protect", voices, "-o", safe, "--method", "mcadams:random", "--seed", seed)
    assert done.code == 0
    said = (
        "was anonymised (mcadams:random): against templates of clear speech its bits are those of"
    )
    for path in sorted(safe.rglob("*.*")):
        with soundfile.SoundFile(path) as file:
            assert file.comment == "Voice anonymised by speaker-disclosure-monitor: mcadams:random"
        assert str(seed).encode() not in path.read_bytes()
        measured = run("replay", path, "--features", "f0")
        assert f"monitor: note: {path.name} {said}" in measured.err
        assert measured.records[0]["notices"][-1].startswith(f"{path.name} {said}")
    table = tmp_path / "each.csv"
    run("replay", safe, "--each", "--summary", table, "--features", "f0", "--jobs", "1")
    assert table.read_text().count("was anonymised (mcadams:random)") == 3
    several = run("replay", *sorted((safe / "ann").iterdir()), "--features", "f0")
    assert several.err.count(said) == 2
    assert "anonymised" not in run("replay", voices / "ann/one.wav", "--features", "f0").err
    mine = shlex.join(
        [sys.executable, "-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"]
    )
    run(
        "protect", voices / "ann/one.wav", "-o", tmp_path / "mine.wav", "--anonymiser-command", mine
    )
    with soundfile.SoundFile(tmp_path / "mine.wav") as file:
        assert file.comment == "Voice anonymised by speaker-disclosure-monitor: a program"


@pytest.mark.slow
def test_strong_evidence_against_the_watched_speaker_does_not_comfort(run, clips):
    other = run("replay", clips / "1462/170138.npz", "--watch", "1272")
    bits = other.records[-1]["bits"]
    assert bits < -2
    said = (
        f"{bits:.1f} bits are evidence against 1272: another voice, or a changed one. An attacker"
    )
    assert f"monitor: note: {said}" in other.err
    assert said in " ".join(other.records[-1]["notices"])
    assert "evidence against" not in run("replay", clips / "1272/128104.npz", "--watch", "1272").err


def test_none_gives_the_same_samples_with_their_bits_and_channels(run, tmp_path):
    sound = np.stack([synthetic(0.3), synthetic(0.3, 200.0)], axis=1)
    soundfile.write(tmp_path / "a.wav", sound, 44100, subtype="PCM_24")
    assert (
        run("protect", tmp_path / "a.wav", "-o", tmp_path / "b.flac", "--method", "none").code == 0
    )
    info = soundfile.info(tmp_path / "b.flac")
    assert (info.samplerate, info.channels, info.subtype) == (44100, 2, "PCM_24")
    assert np.array_equal(read(tmp_path / "a.wav"), read(tmp_path / "b.flac"))


def test_draws_are_the_seeds(run, voices, tmp_path):
    def made(name: str, *more: object) -> np.ndarray:
        assert run("protect", voices / "ann" / "one.wav", "-o", tmp_path / name,
                   "--method", "mcadams:random", *more).code == 0  # fmt: skip
        return read(tmp_path / name)

    assert np.array_equal(made("a.wav", "--seed", "5"), made("b.wav", "--seed", "5"))
    assert not np.array_equal(made("c.wav"), made("d.wav"))


def test_speakers_are_those_of_the_layout(run, voices, tmp_path):
    drawn = ("--method", "mcadams:speaker", "--seed", "1")
    asked = ("protect", voices, "-o", tmp_path / "safe", *drawn)
    assert run(*asked).code == 0
    one, two = (read(tmp_path / "safe" / "ann" / name) for name in ("one.wav", "two.flac"))
    assert one == pytest.approx(two, abs=1e-4)  # they round differently
    alone = ("protect", voices / "ann" / "one.wav", "-o", tmp_path / "a.wav")
    done = run(*alone, *drawn)
    assert done.code == 2
    assert "--speaker NAME" in done.complaint
    assert run(*alone, *drawn, "--speaker", "ann").code == 0
    assert np.array_equal(read(tmp_path / "a.wav"), one)


def test_a_program_of_ones_own(run, voices, tmp_path):
    code = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    command = f"{sys.executable} -c '{code}'"
    one = voices / "ann" / "one.wav"
    done = run("protect", one, "-o", tmp_path / "a.wav", "--anonymiser-command", command)
    assert done.code == 0
    assert np.array_equal(read(tmp_path / "a.wav"), read(one))
    done = run("protect", one, "-o", tmp_path / "b.wav", "--anonymiser-command", "false")
    assert done.code == 1
    assert "false failed with exit status 1" in done.complaint
    assert not (tmp_path / "b.wav").exists()


def test_what_is_there_is_replaced_only_where_asked(run, voices, tmp_path):
    asked = ("protect", voices, "-o", tmp_path / "safe", "--method", "none")
    assert run(*asked).code == 0
    (tmp_path / "safe" / "ann" / "one.wav").write_bytes(b"mine")
    done = run(*asked)
    assert done.code == 1
    assert "give --replace" in done.complaint
    assert (tmp_path / "safe" / "ann" / "one.wav").read_bytes() == b"mine"
    assert run(*asked, "--replace").code == 0
    assert read(tmp_path / "safe" / "ann" / "one.wav").size == round(0.6 * RATE)


def test_a_broken_recording_is_named_and_skipped(run, voices, tmp_path):
    (voices / "bob" / "bad.wav").write_bytes(b"no audio")
    sound = synthetic(0.2)
    sound[7] = np.nan
    soundfile.write(voices / "bob" / "nan.wav", sound, RATE, subtype="FLOAT")
    done = run("protect", voices, "-o", tmp_path / "safe", "--method", "noise:10")
    assert done.code == 4
    assert "bad.wav is no recording" in done.err
    assert "skipped: bob/nan.wav: a sample is no number" in done.err
    assert sorted(p.name for p in (tmp_path / "safe" / "bob").iterdir()) == ["three.wav"]
    done = run("protect", voices / "bob" / "nan.wav", "-o", tmp_path / "n.wav", "--method", "none")
    assert done.code == 1
    assert "no number" in done.complaint
    assert not (tmp_path / "n.wav").exists()


@pytest.mark.parametrize(("given", "said"), [
    (("ann/one.wav", "-o", "x.wav"), "--method"),
    (("ann/one.wav", "-o", "x.wav", "--method", "none", "--anonymiser-command", "cat"), "either"),
    (("ann/one.wav", "-o", "x.wav", "--method", "magic"), "no anonymiser is called 'magic'"),
    (("ann/one.wav", "-o", "x.mp3", "--method", "none"), ".wav or .flac"),
    (("ann/one.wav", "-o", "ann/one.wav", "--method", "none", "--replace"), "recording itself"),
    (("ann", "-o", "ann/one.wav", "--method", "none"), "is a file"),
    ((".", "-o", "safe", "--method", "none"), "outside"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_in_one_line(run, voices, monkeypatch, given, said):
    monkeypatch.chdir(voices)
    before = (voices / "ann" / "one.wav").read_bytes()
    done = run("protect", *given)
    assert done.code == 2
    assert said in done.complaint
    assert (voices / "ann" / "one.wav").read_bytes() == before


def test_two_that_would_become_one_are_refused(run, voices, tmp_path):
    soundfile.write(voices / "ann" / "one.ogg", synthetic(0.2), RATE)
    done = run("protect", voices, "-o", tmp_path / "safe", "--method", "none")
    assert done.code == 2
    assert "both become one.wav" in done.complaint


def test_one_of_unknown_speaker_is_refused_before_any_is_written(run, voices, tmp_path):
    soundfile.write(voices / "lone.wav", synthetic(0.2), RATE)
    done = run("protect", voices, "-o", tmp_path / "safe", "--method", "mcadams:speaker")
    assert done.code == 2
    assert "--speaker NAME" in done.complaint
    assert not (tmp_path / "safe").exists()


def test_where_nothing_can_be_written_is_said(run, voices, tmp_path):
    (tmp_path / "file").touch()
    one = voices / "ann" / "one.wav"
    done = run("protect", one, "-o", tmp_path / "file" / "a.wav", "--method", "none")
    assert done.code == 1
    assert "cannot write a.wav" in done.complaint


def test_nothing_to_protect_is_said(run, tmp_path):
    (tmp_path / "empty").mkdir()
    assert run("protect", tmp_path / "empty", "-o", tmp_path / "s", "--method", "none").code == 1
    assert (
        run("protect", tmp_path / "no.wav", "-o", tmp_path / "s.wav", "--method", "none").code == 1
    )


@pytest.mark.slow
def test_the_files_do_not_depend_on_the_number_of_processes(run, voices, tmp_path):
    for jobs in (1, 2):
        done = run("protect", voices, "-o", tmp_path / str(jobs), "--method", "mcadams:random",
                   "--seed", 3, "--jobs", jobs)  # fmt: skip
        assert done.code == 0, done.err
    one, two = (sorted((tmp_path / jobs).rglob("*.*")) for jobs in "12")
    assert len(one) == 3
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


STALLS = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
calls = folder / "calls"
calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
if len(calls.read_text()) == 3:
    (folder / "stalled").touch()
    for _ in range(400):
        time.sleep(0.05)
        if (folder / "killed").exists():
            sys.exit()
sys.stdout.buffer.write(sys.stdin.buffer.read())
"""


@pytest.mark.slow
def test_killed_half_way_the_same_command_does_what_is_missing(run, voices, tmp_path):
    command = shlex.join([sys.executable, "-c", STALLS, str(tmp_path)])
    safe = tmp_path / "safe"
    asked = ["protect", voices, "-o", safe, "--anonymiser-command", command]
    process = subprocess.Popen([sys.executable, "-m", "monitor", *map(str, asked)])
    for _ in range(1500):
        if (tmp_path / "stalled").exists():
            break
        time.sleep(0.01)
    process.kill()
    process.wait()
    (tmp_path / "killed").touch()
    journal = safe / NAME
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    seed = json.loads(journal.read_text().splitlines()[0])["seed"]
    assert len(journal.read_text().splitlines()) == 3
    before = {path: path.stat().st_mtime_ns for path in safe.rglob("*/[!.]*")}
    assert len(before) == 2

    other = run("protect", voices, "-o", safe, "--method", "none")
    assert other.code == 2
    assert "unfinished run of other settings" in other.complaint
    assert json.loads(journal.read_text().splitlines()[0])["seed"] == seed

    changed = next(iter(before))  # what is no longer what was made is made again
    changed.write_bytes(b"RIFF")
    done = run(*asked, "--command-timeout", "5m")
    assert done.code == 0, done.err
    assert "protected 2 recordings" in done.err
    assert "1 there already" in done.err
    assert sorted(p.name for p in safe.rglob("*") if p.is_file()) == [
        "one.wav", "three.wav", "two.flac",
    ]  # fmt: skip
    for path, stamp in before.items():
        assert (path.stat().st_mtime_ns == stamp) == (path != changed)
        assert read(path).size
    assert len((tmp_path / "calls").read_text()) == 5


def test_one_that_takes_too_long_is_skipped(run, voices, tmp_path):
    command = f"{sys.executable} -c 'import time; time.sleep(60)'"
    done = run("protect", voices / "ann" / "one.wav", "-o", tmp_path / "a.wav",
               "--anonymiser-command", command, "--command-timeout", "0.2")  # fmt: skip
    assert done.code == 1
    assert "took over 0.2 s and was killed" in done.complaint


@pytest.mark.parametrize(("more", "said"), [
    (("--method", "none", "--command-timeout", "5"), "--anonymiser-command"),
    (("--anonymiser-command", "cat", "--command-timeout", "0"), "above 0"),
])  # fmt: skip
def test_a_time_that_makes_no_sense_is_refused(run, voices, tmp_path, more, said):
    done = run("protect", voices, "-o", tmp_path / "safe", *more)
    assert done.code == 2
    assert said in done.complaint
    assert not (tmp_path / "safe").exists()
