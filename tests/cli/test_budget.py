"""`monitor protect --budget`: what it claims is what `monitor replay` prints of its file."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile

READER = "2035"


@pytest.mark.slow
def test_a_replay_of_the_file_says_what_was_claimed(run, shared: Path, tmp_path: Path):
    samples, rate = soundfile.read(
        shared / "speech" / "dev-clean" / READER / "152373.opus", stop=480_000
    )
    talk, out = tmp_path / "talk.flac", tmp_path / "out.wav"
    soundfile.write(talk, samples[: 10 * rate], rate)
    before = talk.read_bytes()
    picture = tmp_path / "out.png"
    asked = ("protect", talk, "--budget", 9, "-w", READER, "--features", "phones,voice")
    found = run(*asked, "-o", out, "--tries", 2, "--plot", picture)
    assert found.code == 0, found.err
    assert talk.read_bytes() == before
    assert picture.stat().st_size > 10_000
    heard = run("replay", out, "-w", READER, "--features", "phones,voice")
    assert "note: out.wav was scrubbed (9 bits, cut): its bits are of what was kept\n" in heard.err
    peak = max(record["bits"] for record in heard.readings)
    assert 0 < peak <= 9
    joint = next(line for line in found.out.splitlines() if line.startswith("phones+voice"))
    assert f"{peak:.1f} bits at" in joint
    again = run(*asked, "-o", out)
    assert (again.code, "exists; name another file" in again.err) == (2, True)
    itself = run(*asked, "-o", talk, "--replace")
    assert (itself.code, talk.read_bytes()) == (2, before)
    never = run(*asked, "-o", tmp_path / "never.wav", "--anonymiser", "mcadams:0.99")
    assert (never.code, (tmp_path / "never.wav").exists()) == (1, False)
    assert "cannot be done with mcadams:0.99" in never.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--silence", "--anonymiser", "usc"), "give one"),
        (("--seed", 1), "--seed goes with --method NAME"),
        (("--protected-population", "x.npz"), "goes with --method NAME"),
        (("--anonymiser", "usc", "--anonymiser-command", "cat"), "give either"),
        (("--jobs", 2), "--jobs goes without --budget"),
    ],
)
def test_options_that_do_not_go_together(run, tmp_path, options, said):
    asked = ("protect", "talk.flac", "--budget", 6, "-w", "me", "-o", tmp_path / "out.wav")
    found = run(*asked, *options)
    assert found.code == 2
    assert said in found.err


def test_what_a_budget_needs_goes_with_one(run, tmp_path):
    found = run("protect", "talk.flac", "-o", tmp_path / "out.wav", "--method", "usc", "-w", "me")
    assert (found.code, "--watch goes with --budget BITS" in found.err) == (2, True)
    moved = run("scrub", "talk.flac")
    assert (moved.code, "scrub is now: monitor protect FILE --budget BITS" in moved.err) == (
        2,
        True,
    )
