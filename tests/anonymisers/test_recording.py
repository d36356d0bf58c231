"""Recordings through programs of others, and the journal of a run that was killed."""

import json
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from monitor.anonymisers import Program
from monitor.anonymisers.recording import JOURNAL, Journal, note_target
from monitor.errors import SourceError, StoreError, UsageError
from monitor.sources import File
from monitor.types import Block
from tests.anonymisers.vowels import semitones_moved
from tests.sounds import RATE, synthetic
from tests.test_programs import gone
from tests.waiting import until

QUIETER = """
import io, sys, soundfile
samples, rate = soundfile.read(io.BytesIO(sys.stdin.buffer.read()))
out = io.BytesIO()
soundfile.write(out, samples / 2, rate, format="WAV", subtype="PCM_24")
sys.stdout.buffer.write(out.getvalue())
"""
EMPTY = QUIETER.replace("samples / 2", "samples[:0]")
FASTER = QUIETER.replace("rate, format", "2 * rate, format")


def ran(code: str, sound: np.ndarray) -> np.ndarray:
    program = Program(f"\"{sys.executable}\" -c '{code}'", RATE)
    assert program.process(sound).size == 0
    return program.flush()


def test_a_program_hears_a_wav_and_answers_with_one():
    sound = synthetic(0.3)
    assert ran(QUIETER, sound) == pytest.approx(sound / 2, abs=1e-4)
    assert ran(EMPTY, sound[:0]).size == 0


@pytest.mark.parametrize(("code", "said"), [
    ("raise SystemExit(3)", "exit status 3"),
    ("print(1)", "unreadable WAV"),
    ("pass", "unreadable WAV"),
    (FASTER, "at 32000 Hz;.* at 16000 Hz"),
    ('import sys; sys.exit("a\\n no model \\n\\n")', "exit status 1: no model$"),
    ('import sys; sys.exit("\\33[2J" + 999 * "x")', r": \?\[2Jx{196}$"),
    ('import sys; sys.stderr.write("usage")', "unreadable WAV.*: usage$"),
    ("import os; os.kill(os.getpid(), 9)", "killed by signal 9"),
    (EMPTY, "empty WAV$"),
    ('while True: print("x" * 9999)', "wrote over .* MB to its standard output .* and was killed"),
    ('import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[:4000])', "truncated WAV"),
])  # fmt: skip
def test_what_it_does_wrong_is_said(code, said):
    with pytest.raises(SourceError, match=said):
        ran(code, synthetic(0.5))


FILES = """
import pathlib, stat, sys, soundfile
given, made, note = map(pathlib.Path, sys.argv[1:])
samples, rate = soundfile.read(given, dtype="float32")
soundfile.write(made, samples / 2, rate)
modes = [stat.S_IMODE(path.stat().st_mode) for path in (given, made, given.parent)]
note.write_text(" ".join([str(given), *map(oct, modes)]))
print("chatter", sys.stdin.read())
"""


def with_files(note: Path, code: str = FILES, places: str = "{in} {out}") -> str:
    return f"{shlex.join([sys.executable, '-c', code])} {places} {shlex.quote(str(note))}"


def test_a_program_may_take_private_files_which_are_gone_afterwards(tmp_path):
    sound = synthetic(0.3)
    program = Program(with_files(tmp_path / "note; $(true)"), RATE)
    program.process(sound)
    assert program.flush() == pytest.approx(sound / 2, abs=1e-4)
    given, *modes = (tmp_path / "note; $(true)").read_text().split()
    assert modes == ["0o600", "0o600", "0o700"]
    assert not Path(given).parent.exists()


NOTES = "import os, pathlib, sys; pathlib.Path(sys.argv[3]).write_text(sys.argv[1])"


@pytest.mark.parametrize(
    "code", ["", "sys.exit(3)", "os.mkfifo(sys.argv[2])", "open(sys.argv[2], 'w').write('x')"]
)
def test_no_private_file_is_left_of_a_program_that_fails(tmp_path, code):
    program = Program(with_files(tmp_path / "note", f"{NOTES}; {code}"), RATE)
    program.process(synthetic(0.3))
    with pytest.raises(SourceError):
        program.flush()
    assert not Path((tmp_path / "note").read_text()).parent.exists()


def test_one_of_both_may_be_a_file(tmp_path):
    code = """
import io, pathlib, sys, soundfile
samples, rate = soundfile.read(io.BytesIO(sys.stdin.buffer.read()))
soundfile.write(sys.argv[1], samples / 2, rate)
"""
    sound = synthetic(0.3)
    program = Program(with_files(tmp_path / "note", code, "{out}"), RATE)
    program.process(sound)
    assert program.flush() == pytest.approx(sound / 2, abs=1e-4)


SLOW = """
import subprocess, sys, pathlib
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
child.wait()
"""


def slow(note: Path) -> str:
    return shlex.join([sys.executable, "-c", SLOW, str(note)])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.slow
def test_one_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path):
    program = Program(slow(tmp_path / "pid"), RATE, 3.0)
    program.process(synthetic(30.0))  # more than a pipe holds
    with pytest.raises(SourceError, match=r"took over 3 s and was killed; .*command-timeout"):
        program.flush()
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.slow
def test_nobody_waits_any_more_and_it_is_gone(tmp_path):
    code = (
        "from monitor.anonymisers import Program\n"
        f"program = Program({slow(tmp_path / 'pid')!r}, 16000)\n"
        "program.flush()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert gone(int((tmp_path / "pid").read_text()))


ADAPTER = Path(__file__).resolve().parents[2] / "examples" / "chimera_voice.py"


def masked(sound: np.ndarray, *options: str) -> np.ndarray:
    program = Program(shlex.join([sys.executable, str(ADAPTER), *options]), 16000)
    program.process(sound)
    return program.flush()


def test_chimera_voice_moves_the_pitch_of_a_reader_and_keeps_length_and_loudness(shared):
    pytest.importorskip("chimera", reason="needs the extra peers")
    path = shared / "speech" / "dev-clean" / "1272" / "128104.opus"
    with File(path, end_seconds=6.0) as file:
        sound = np.concatenate([each.samples for each in file if isinstance(each, Block)])
    made = masked(sound, "--key", "one")
    assert made.size == sound.size
    assert made.std() == pytest.approx(sound.std(), rel=0.02)
    assert 3 < abs(semitones_moved(sound, made)) < 9  # it never moves less than 4
    assert not np.allclose(made, masked(sound))  # without a key it has another each time


WHAT = ("mcadams:speaker", None)


def begun(folder: Path, seed: int | None = None) -> Journal:
    with Journal(folder, WHAT, seed) as journal:
        note_target(journal.path, "a.wav", ("file:1", "file:2"))
        note_target(journal.path, "b/c.wav", ("file:3", "file:4"))
    return journal


def test_a_run_that_goes_on_has_the_seed_and_what_was_made(tmp_path):
    first = begun(tmp_path / "new" / "folder")
    assert first.seed.bit_length() > 64
    assert stat.S_IMODE((tmp_path / "new" / "folder" / JOURNAL).stat().st_mode) == 0o600
    with Journal(tmp_path / "new" / "folder", WHAT, None) as second:
        assert second.seed == first.seed
        assert second.made == {"a.wav": ("file:1", "file:2"), "b/c.wav": ("file:3", "file:4")}
        second.finish()
    assert not list((tmp_path / "new" / "folder").iterdir())


def test_a_line_that_a_kill_has_torn_is_dropped(tmp_path):
    begun(tmp_path)
    with (tmp_path / JOURNAL).open("a") as file:
        file.write('{"target": "d.wav", "sour')
    with Journal(tmp_path, WHAT, None) as journal:
        assert set(journal.made) == {"a.wav", "b/c.wav"}
        note_target(journal.path, "d.wav", ("file:5", "file:6"))
    with Journal(tmp_path, WHAT, None) as journal:
        assert set(journal.made) == {"a.wav", "b/c.wav", "d.wav"}


@pytest.mark.parametrize(("what", "seed"), [(("none", None), None), (WHAT, 7)])
def test_other_settings_are_refused_and_leave_it_as_it_is(tmp_path, what, seed):
    begun(tmp_path)
    before = (tmp_path / JOURNAL).read_bytes()
    with pytest.raises(UsageError, match=f"unfinished run .*{JOURNAL}"):
        Journal(tmp_path, what, seed)
    assert (tmp_path / JOURNAL).read_bytes() == before


def test_two_runs_at_once_are_refused(tmp_path):
    with Journal(tmp_path, WHAT, None), pytest.raises(StoreError, match="another run"):
        Journal(tmp_path, WHAT, None)


@pytest.mark.parametrize("text", [
    "no json\n", "\xff\n", "[]\n", "7\n", "null\n", json.dumps({"asked": "x", "seed": 3}) + "\n",
    json.dumps({"asked": "x", "seed": "3"}) + "\n{}\n",
])  # fmt: skip
def test_a_damaged_one_is_named(tmp_path, text):
    (tmp_path / JOURNAL).write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match=f"{JOURNAL} is damaged"):
        Journal(tmp_path, WHAT, None)
    assert (tmp_path / JOURNAL).read_bytes() == text.encode("latin-1")


def test_a_line_that_a_full_disk_cuts_off_is_an_error(tmp_path):
    resource = pytest.importorskip("resource", reason="this system limits no sizes of files")
    with Journal(tmp_path, WHAT, None) as journal:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        room = journal.path.stat().st_size + 20
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
        try:
            with pytest.raises(StoreError, match="No space left"):
                note_target(journal.path, "a.wav", ("file:1", "file:2"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
