"""monitor protect: of recordings, frames and tokens, and within a budget."""

import csv
import json
import math
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from monitor.anonymisers.recording import JOURNAL
from monitor.features.extractor import Extractor
from monitor.features.framing import join_runs
from monitor.features.phones import Tokens
from monitor.networks.usc import shipped_codec
from monitor.sources.frames import FramesFile, Header, write_frames
from monitor.types import Block, Track
from tests.contracts import babble
from tests.sounds import RATE, synthetic
from tests.waiting import until


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


def test_a_folder_keeps_its_names_and_lengths_and_says_what_it_is(run, voices, tmp_path):
    safe, seed = tmp_path / "safe", 8_675_309
    (voices / "bob" / "bad.wav").write_bytes(b"no audio")
    asked = ("protect", voices, "-o", safe, "--method", "mcadams:random", "--seed", seed)
    done = run(*asked)
    assert done.code == 4
    assert "bad.wav is not a readable recording" in done.err
    assert "protected 3 recordings (0.0 min) with mcadams:random\n" in done.err
    made = sorted(path.relative_to(safe).as_posix() for path in safe.glob("*/*"))
    assert made == ["ann/one.wav", "ann/two.flac", "bob/three.wav"]
    said = "was anonymised (mcadams:random). With templates of clear speech, its bits describe"
    for name in made:
        path = safe / name
        with soundfile.SoundFile(path) as file:
            assert file.comment == "Voice anonymised by speaker-disclosure-monitor: mcadams:random"
        assert str(seed).encode() not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        measured = run("replay", path, "--features", "f0")
        assert f"monitor: note: {path.name} {said}" in measured.err
        assert measured.records[0]["notices"][-1].startswith(f"{path.name} {said}")
    for name in made[:2]:
        assert read(safe / name).size == read(voices / name).size
        assert np.abs(read(safe / name) - read(voices / name)).max() > 0.01
    assert soundfile.info(safe / "ann" / "two.flac").format == "FLAC"
    table = tmp_path / "each.csv"
    run("replay", safe, "--each", "--summary", table, "--features", "f0", "--jobs", "1")
    assert table.read_text().count("was anonymised (mcadams:random)") == 3
    # what is there is replaced only where it is asked for, with the same draws of a seed
    before = (safe / made[0]).read_bytes()
    (safe / made[0]).write_bytes(b"mine")
    again = run(*asked)
    assert again.code == 1
    assert "--replace" in again.complaint
    assert (safe / made[0]).read_bytes() == b"mine"
    assert run(*asked, "--replace").code == 4
    assert (safe / made[0]).read_bytes() == before


def test_none_gives_the_same_samples_with_their_bits_and_channels(run, tmp_path):
    sound = np.stack([synthetic(0.3), synthetic(0.3, 200.0)], axis=1)
    soundfile.write(tmp_path / "a.wav", sound, 44100, subtype="PCM_24")
    asked = ("protect", tmp_path / "a.wav", "-o", tmp_path / "b.flac", "--method", "none")
    assert run(*asked).code == 0
    info = soundfile.info(tmp_path / "b.flac")
    assert (info.samplerate, info.channels, info.subtype) == (44100, 2, "PCM_24")
    assert np.array_equal(read(tmp_path / "a.wav"), read(tmp_path / "b.flac"))


def test_speakers_are_those_of_the_layout_and_draws_the_seeds(run, voices, tmp_path):
    drawn = ("--method", "mcadams:speaker", "--seed", "1")
    assert run("protect", voices, "-o", tmp_path / "safe", *drawn).code == 0
    one, two = (read(tmp_path / "safe" / "ann" / name) for name in ("one.wav", "two.flac"))
    assert one == pytest.approx(two, abs=1e-4)  # they round differently
    alone = ("protect", voices / "ann" / "one.wav", "-o")
    assert run(*alone, tmp_path / "a.wav", *drawn, "--speaker", "ann").code == 0
    assert np.array_equal(read(tmp_path / "a.wav"), one)
    for name in ("b.wav", "c.wav"):
        assert run(*alone, tmp_path / name, "--method", "mcadams:random").code == 0
    assert not np.array_equal(read(tmp_path / "b.wav"), read(tmp_path / "c.wav"))


def test_a_program_of_ones_own(run, voices, tmp_path):
    code = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    one, out = voices / "ann" / "one.wav", tmp_path / "a.wav"
    asked = ("protect", one, "-o", out, "--anonymiser-command")
    slow = f"{sys.executable} -c 'import time; time.sleep(60)'"
    done = run(*asked, slow, {"command-timeout": "0.2"})
    assert (done.code, out.exists()) == (1, False)
    assert "took over 0.2 s and was killed" in done.complaint
    copy = f"{sys.executable} -c 'import shutil, sys; shutil.copyfile(*sys.argv[1:])'"
    for program in (f"{sys.executable} -c '{code}'", f"{copy} {{in}} {{out}}"):
        assert run(*asked, program, "--replace").code == 0
        assert np.array_equal(read(out), read(one))
    with soundfile.SoundFile(out) as file:
        assert file.comment == "Voice anonymised by speaker-disclosure-monitor: a program"


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
    until((tmp_path / "stalled").exists)
    process.kill()
    process.wait()
    (tmp_path / "killed").touch()
    journal = safe / JOURNAL
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    seed = json.loads(journal.read_text().splitlines()[0])["seed"]
    assert len(journal.read_text().splitlines()) == 3
    before = {path: path.stat().st_mtime_ns for path in safe.rglob("*/[!.]*")}
    assert len(before) == 2

    other = run("protect", voices, "-o", safe, "--method", "none")
    assert other.code == 2
    assert "unfinished run with other settings" in other.complaint
    assert json.loads(journal.read_text().splitlines()[0])["seed"] == seed

    changed = next(iter(before))  # what is no longer what was made is made again
    changed.write_bytes(b"RIFF")
    done = run(*asked, {"command-timeout": "5m"})
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
            header=Header(hashes=("file:" + "b" * 64,), landmarks=np.arange(4, dtype="<u2")),
        )  # fmt: skip
        rows.append(f"{name}.npz,{name.split('/')[0]},{name.split('/')[1]}")
    (folder / "manifest.csv").write_text("\n".join(rows) + "\n")
    return folder


def values(path: Path) -> np.ndarray:
    track = join_runs(list(FramesFile(path))).tracks["voice"]
    return np.asarray(track.values)


def test_embeddings_get_noise_and_nothing_else_is_left(run, heard, tmp_path):
    noisy = tmp_path / "noisy"
    asked = ("protect", heard, "-o", noisy, "--method", "laplace:0.5", "--seed", 4)
    done = run(*asked)
    assert done.code == 0, done.err
    assert "without a guarantee: f0" in done.err
    assert "noise of scale 4 on every number" in done.err
    assert "ann's 20 frames (60 s of speech) have epsilon 10 by basic" in done.err
    assert "no attacker has more than 14.4 bits of evidence" in done.err
    assert "from 46 frames on the guarantee would be vacuous" in done.err
    source = FramesFile(noisy / "ann" / "1.npz")
    assert list(source.stream_info.tracks) == ["voice"]
    assert source.stream_info.tracks["voice"].network == MARK
    assert not source.header.hashes
    assert source.header.landmarks is None  # they would say which recording it was
    assert source.header.noise == "laplace:0.5"
    first = values(noisy / "ann" / "1.npz")
    assert first.std() == pytest.approx(4 * 2**0.5, rel=0.25)
    assert (noisy / "manifest.csv").read_bytes() == (heard / "manifest.csv").read_bytes()
    files = [path for path in noisy.rglob("*") if path.is_file()]
    assert len(files) == 5
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    refused = run(*asked)
    assert refused.code == 1
    assert "--replace" in refused.complaint
    # noise is new each time but for a seed; a broken file is named and skipped
    (heard / "ann" / "2.npz").write_bytes(b"no frames")
    done = run(*asked, "--replace")
    assert done.code == 4
    assert "skipped: 2.npz" in done.err
    assert "ann/2.npz" not in (noisy / "manifest.csv").read_text()
    assert np.array_equal(values(noisy / "ann" / "1.npz"), first)
    assert run(*asked[:-2], "--replace").code == 4
    assert not np.array_equal(values(noisy / "ann" / "1.npz"), first)


@pytest.mark.slow
def test_an_experiment_tells_that_noisy_templates_understate(run, heard, tmp_path):
    """And that below the first frame nothing is heard, instead of nothing disclosed."""
    noisy = tmp_path / "noisy"
    assert run("protect", heard, "-o", noisy, "--method", "laplace:9").code == 0
    lengths = ("--lengths", "1,3,6", "--template-lengths", "1,6", {"tables-at": [3, 6]})
    options = (*lengths, {"session": "same", "replicates": 20}, "--jobs", 1)
    for folder, told in ((noisy, True), (heard, False)):
        out = tmp_path / f"out-{folder.name}"
        done = run("experiment", folder, "-o", out, "--features", "voice", *options)
        assert done.code == 0, done.err
        page, results = ((out / name).read_text() for name in ("index.html", "results.json"))
        for text in (done.err, page, results):
            assert ("attacker with clear templates" in " ".join(text.split())) == told
            assert ("monitor score NOISY_FRAMES -p clear.npz" in " ".join(text.split())) == told
    found = json.loads(results)
    measured = {(c["T"], c["D"]) for c in found["cells"] if c["systems"]}
    assert measured == {(3.0, 6.0), (6.0, 6.0)}
    assert "no frames" in page
    rises = next(each for each in found["findings"] if each["question"] == "rises")
    assert "at T = 3 s" in rises["text"]


def test_recordings_become_frames_of_noisy_tokens_and_nothing_else(run, tmp_path):
    voices, noisy = tmp_path / "voices", tmp_path / "noisy"
    for name in ("ann/one.flac", "ann/two.flac", "bob/three.wav"):
        (voices / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(voices / name, babble(20, pause_seconds=0.3), RATE)
    done = run("protect", voices, "-o", noisy, "--method", "tokens:0.02", "--seed", "7")
    assert done.code == 0, done.err
    for name in ("ann/one", "ann/two", "bob/three"):
        path = noisy / f"{name}.npz"
        source = FramesFile(path)
        assert list(source.stream_info.tracks) == ["tokens"]
        assert source.header.noise == "tokens:0.02"
        assert not source.header.hashes
        assert source.stream_info.tracks["tokens"] == Tokens().spec  # clear templates can read them
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    extractor = Extractor([Tokens()])
    parts = extractor.process(Block(babble(20, pause_seconds=0.3), RATE)), extractor.flush()
    clear = np.concatenate([part.tracks["tokens"].values for part in parts])
    one, two = (
        join_runs(list(FramesFile(noisy / f"ann/{name}.npz"))).tracks["tokens"].values
        for name in ("one", "two")
    )
    assert len(one) == len(clear)
    assert np.mean(one == clear) < 0.2
    assert not np.array_equal(one, two)  # each has noise of its own, though the sound is the same
    # what is promised is told and kept
    with (noisy / "accounting.csv").open() as file:
        ann, bob = csv.DictReader(file)
    count = len(one) + len(two)
    assert int(ann["frames"]) == count == 2 * int(bob["frames"])
    assert float(ann["basic_nats"]) == pytest.approx(0.02 * count)
    assert float(ann["most_evidence_bits"]) == pytest.approx(0.02 * count / math.log(2), rel=1e-4)
    assert float(ann["noise_scale"]) == pytest.approx(100 * shipped_codec().books.clip, rel=1e-4)
    assert f"ann's {count} tokens" in done.err
    assert "no attacker has more than" in done.err


@pytest.mark.slow
def test_within_a_budget_a_replay_of_the_file_says_what_was_claimed(run, shared, tmp_path):
    reader = "2035"
    path = shared / "speech" / "dev-clean" / reader / "152373.opus"
    samples, rate = soundfile.read(path, stop=480_000)
    talk, out, picture = (tmp_path / name for name in ("talk.flac", "out.wav", "out.png"))
    soundfile.write(talk, samples[: 10 * rate], rate)
    before = talk.read_bytes()
    asked = ("protect", talk, "--budget", 12, "-w", reader, "--features", "phones,voice")
    found = run(*asked, "-o", out, {"tries": 2}, "--plot", picture)
    assert found.code == 0, found.err
    assert picture.stat().st_size > 10_000
    heard = run("replay", out, "-w", reader, "--features", "phones,voice")
    assert "note: out.wav was scrubbed (12 bits, cut). Its bits describe the" in heard.err
    peak = max(record["bits"] or 0.0 for record in heard.readings)
    assert 0 < peak <= 12
    joint = next(line for line in found.out.splitlines() if line.startswith("phones+voice"))
    assert f"{peak:.1f} bits at" in joint
    again = run(*asked, "-o", out)
    assert (again.code, "exists; name another file" in again.err) == (2, True)
    itself = run(*asked, "-o", talk, "--replace")
    assert (itself.code, talk.read_bytes()) == (2, before)
    never = run(*asked, "-o", tmp_path / "never.wav", "--method", "mcadams:0.99")
    assert (never.code, (tmp_path / "never.wav").exists()) == (1, False)
    assert "mcadams:0.99 cannot meet the budget" in never.err
