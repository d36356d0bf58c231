"""Options from a file: the same run as with them typed, and what is refused."""

from __future__ import annotations

import pytest


def test_options_are_those_typed_and_what_is_typed_counts_more(run, talk, population, tmp_path):
    config = tmp_path / "us.toml"
    config.write_text(
        f'[replay]\npopulation = "{population}"\nwatch = "000003"\nstep = 4\nfeatures = ["f0"]\n'
        'alert = "bits>0.1 for 1 s"\n'
    )
    typed = ("-p", population, "-w", "000003", "--features", "f0", "--alert", "bits>0.1 for 1 s")
    told, alone = run("--config", config, "replay", talk), run("replay", talk, *typed, "--step", 4)
    assert told.readings == alone.readings
    assert told.code == alone.code == 3
    again = run("--config", config, "replay", talk, "--step", 10)
    assert again.readings[0]["seconds"] == 10.0
    assert run("--config", config, "demo", "--help").code == 0


def test_flags_repeated_options_and_commands_of_a_group(run, talk, population, tmp_path):
    config = tmp_path / "us.toml"
    ledger = tmp_path / "me.db"
    config.write_text(
        f'[replay]\npopulation = "{population}"\nwatch = "000003"\nledger = "{ledger}"\n'
        'stop-on-alert = true\nalert = ["bits>9 for 1 s", "bits>0.1 for 1 s"]\n'
        "[ledger.show]\nspeaker = 'nobody here'\n"
    )
    done = run("--config", config, "replay", talk)
    assert (done.code, done.records[-1]["stopped"]) == (3, "bits>0.1 for 1 s")
    assert run("ledger", "show", ledger).records
    assert not run("--config", config, "ledger", "show", ledger).records


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[replay]\nwach = 'me'\n", "monitor replay takes no such --wach"),
        ("[repaly]\nwatch = 'me'\n", "there is no command 'repaly'"),
        ("watch = 'me'\n", "there is no command 'watch'; options stand in a table"),
        ("replay = 3\n", "replay is no table"),
        ("[replay\n", "is no TOML"),
        ("[replay]\nwatch = {a = 1}\n", "monitor replay takes no such --watch"),
        ("[replay]\nstep = 'soon'\n", "soon"),
        (None, "No such file"),
    ],
)
def test_what_is_no_option_is_refused_in_one_line(run, talk, tmp_path, text, words):
    config = tmp_path / "us.toml"
    if text is not None:
        config.write_text(text)
    done = run("--config", config, "replay", talk)
    assert done.code == 2
    assert words in done.complaint
