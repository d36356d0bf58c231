"""--protect: bits before and after an anonymiser, on the command line."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import soundfile

from monitor.alerts.crossings import as_text
from monitor.events.declaration import from_json
from monitor.events.run import DelayRow
from monitor.population.people import Speaker
from monitor.population.population import Population
from monitor.run import LogFile, Run, RunSettings
from monitor.stream.monitor import Monitor
from tests.records import read_records
from tests.sounds import RATE, synthetic

METHOD = ("--features", "f0", "--watch", "19", "--protect", "mcadams:0.8")


def attackers(record: dict[str, Any]) -> list[str]:
    return list(record["protected"]["attackers"])


@pytest.mark.slow
def test_a_replay_tells_both_sides_and_of_whom(run, wav, tmp_path):
    picture = tmp_path / "both.png"
    found = run("replay", wav, *METHOD, "--plot", picture)
    start, *rest = found.records
    assert found.code == 0
    assert start["protected"]["method"] == "mcadams:0.8"
    assert attackers(start) == ["ignorant"]
    assert all(record["protected"]["by"] == "ignorant" for record in found.readings)
    assert {row["bits"] for row in rest[-1]["disclosure_delay"]} == {1, 2, 3}
    assert "for an attacker who does not know the anonymiser: no measure of protection" in found.err
    *_, last, against = found.err.splitlines()
    assert "are evidence against 19: another voice" in against  # it is nobody's
    assert last.endswith(
        "to an attacker who does not know the anonymiser: no measure of protection"
    )
    assert picture.stat().st_size > 10_000


@pytest.mark.slow
def test_a_population_of_protected_speech_adds_who_knows_the_anonymiser(run, wav, tmp_path):
    known = tmp_path / "safe.npz"
    Population.reference().only(["f0"]).save(known)
    found = run("replay", wav, *METHOD, "--protected-population", known)
    assert found.code == 0
    assert attackers(found.records[0]) == ["ignorant", "lazy-informed"]
    assert all(attackers(record) == attackers(found.records[0]) for record in found.readings)
    assert "the stronger of an attacker who has enrolled" in found.err
    other = Population.reference().only(["f0"])
    speakers = [Speaker(f"x{each.name}") for each in other.speakers]
    Population(speakers, other.offsets, other.features, other.rank_models).save(
        tmp_path / "other.npz"
    )
    refused = run("replay", wav, *METHOD, "--protected-population", tmp_path / "other.npz")
    assert refused.code == 2
    assert "holds other people than the clear one" in refused.complaint
    both = (wav, "--features", "f0,phones", *METHOD[2:], "--protected-population", known)
    refused = run("replay", *both)
    assert "the protected population does not fit: the population has no templates of phones" in (
        refused.complaint
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--protect", "hush"), "no anonymiser is called 'hush'"),
        (("--protect", "mcadams:loud"), "is not a setting such as mcadams:0.8"),
        (("--protect", "mcadams:speaker"), "needs to know who speaks"),
        (("--protect-seed", "3"), "--protect-seed goes with --protect METHOD"),
        (("--protected-population", "a.npz"), "goes with --protect METHOD"),
        (("--protect", "none", "--ledger", "a.db", "--watch", "19"), "leave out --ledger or"),
        (("--alert", "protected.bits>2"), "needs a protected side"),
        (
            ("--protect", "none", "--alert", "protected.bits", "--false-alarms", "5%"),
            "give protected.bits a threshold",
        ),
        (("--protect", "none", "--protected-population", "no.npz"), "no.npz"),
        (
            ("--protect", "none", "--alert", "protected.gain_bits>1"),
            "did you mean protected.bits?",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(run, wav, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    found = run("replay", wav, "--features", "f0", *options)
    assert found.code in (1, 2)
    assert words in found.complaint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_each_recording_has_both_sides_in_its_line(run, wav, tmp_path, voice):
    folder, table = tmp_path / "talks", tmp_path / "out.csv"
    folder.mkdir()
    for number, pitch in enumerate((110.0, 150.0, 190.0)):
        soundfile.write(folder / f"{number}.wav", voice(8.0, pitch), RATE)
    (folder / "broken.wav").write_bytes(b"RIFF")
    options = ("--each", "--summary", table, *METHOD)
    found = run("replay", folder, *options)
    assert found.code == 1
    with table.open(newline="") as file:
        *rows, broken = csv.DictReader(file)
    assert broken["error"]
    assert broken["crossings"] == broken["protected_bits"] == ""
    single = run("replay", folder / "0.wav", *METHOD).records
    assert float(rows[0]["protected_bits"]) == pytest.approx(single[-2]["protected"]["bits"])
    assert rows[0]["protected_by"] == "ignorant"
    assert rows[0]["crossings"] == as_text(
        [from_json(DelayRow, row) for row in single[-1]["disclosure_delay"]]
    )
    told = [line for line in found.err.splitlines() if line.startswith("disclosure delay")]
    whom = "an attacker who does not know the anonymiser"
    assert told == [f"disclosure delay over 3 recordings, from {whom}:"]
    again = run("replay", folder, *options, "--resume")  # the lines say enough to sum up again
    assert [line for line in again.err.splitlines() if line.startswith("disclosure delay")] == told
    other = run("replay", folder, *options[:-1], "mcadams:0.7", "--resume")
    assert "made with other options" in other.err


def test_frames_hold_nothing_to_protect(run, talk, population):
    found = run("replay", talk, "-p", population, "--protect", "none")
    assert found.code == 2
    assert "holds frames, no audio that could be protected" in found.complaint


def test_listen_refuses_what_needs_the_whole_recording(run):
    found = run("listen", "--features", "f0", "--protect", "command:cat")
    assert found.code == 2
    assert "cannot be heard live; record, and replay that" in found.complaint


def test_an_alert_may_stand_on_the_protected_voice(run, wav):
    found = run("replay", wav, *METHOD, "--alert", "protected.bits>-60 for 2 s after 0 s")
    assert found.code == 3
    (alert,) = [record for record in found.records if record["type"] == "alert"]
    assert alert["field"] == "protected.bits"
    (there,) = [r for r in found.readings if r["seconds"] == alert["seconds"]]
    assert alert["value"] == there["protected"]["bits"]


@pytest.mark.slow
def test_an_interrupted_replay_goes_on_with_the_same_draws(run, wav, tmp_path):
    """Nobody gave a seed, so that only the checkpoint knows what was drawn."""
    path = tmp_path / "run.jsonl"
    options = ("--features", "f0", "--watch", "19", "--protect", "mcadams:random", "--jsonl", path)
    monitor = Monitor(Population.reference(), ["f0"], "19", on_change="note")
    with Run(
        wav, monitor, settings=RunSettings(protect="mcadams:random"), log=LogFile(path)
    ) as begun:
        for event in begun:
            if getattr(event, "seconds", None) == 5.0:
                break
    found = run("replay", wav, *options, "--resume")
    assert found.code == 0
    records = read_records(path)
    assert [r["seconds"] for r in records if r["type"] == "reading"] == list(range(1, 13))
    assert records[-1]["type"] == "end"
    refused = run("replay", wav, *options)
    assert "holds a finished run" in refused.complaint


@pytest.mark.slow
def test_the_protected_side_is_that_of_a_protected_file(run, tmp_path):
    """The protected side is what a replay of monitor protect's file tells."""
    clear, safe = tmp_path / "talk.wav", tmp_path / "safe.wav"
    soundfile.write(clear, synthetic(8.0), RATE, subtype="FLOAT")
    method = ("--protect", "noise:6", "--protect-seed", "4")
    both = run("replay", clear, "--features", "f0,phones", "--watch", "19", *method)
    done = run("protect", clear, "-o", safe, "--method", "noise:6", "--seed", "4")
    assert done.code == 0
    alone = run("replay", safe, "--features", "f0,phones", "--watch", "19")
    for here, there in zip(both.readings, alone.readings, strict=True):
        told = here["protected"]["attackers"]["ignorant"]
        assert {key: there[key] for key in told} == told


def test_the_help_says_which_voice_an_alert_stands_on(run):
    text = " ".join(run("listen", "--help-all").out.split())
    for words in ("protected.bits>3", "stands on the clear voice", "Nothing protected is stored"):
        assert words in text, words


def test_nothing_of_the_audio_is_stored(run, wav, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("replay", wav, *METHOD, "--jsonl", "a.jsonl")
    assert [Path(each).name for each in tmp_path.iterdir()] == ["a.jsonl"]
