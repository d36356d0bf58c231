"""Options from a file: the same run as with them typed, and what is refused."""

import os
import re
from pathlib import Path

import click
import pytest

from monitor.cli import COMMANDS, cli
from monitor.cli.config import HARMLESS, defaults_from
from monitor.cli.help import ChoiceHint
from monitor.cli.options import TextFile
from monitor.errors import UsageError


def commands() -> list[click.Command]:
    top = cli.make_context("monitor", [], resilient_parsing=True)
    found = [cli.get_command(top, name) for name in COMMANDS]
    return [command for command in found if command is not None]


def test_options_are_those_typed_and_what_is_typed_counts_more(run, talk, population, tmp_path):
    config, ledger = tmp_path / "us.toml", tmp_path / "me.db"
    config.write_text(
        f'[replay]\npopulation = "{population}"\nwatch = "000003"\nstep = 4\nfeatures = ["f0"]\n'
        f'alert = ["bits>3.5 for 1 s", "bits>0.1 for 1 s"]\nledger = "{ledger}"\n'
        "stop-on-alert = true\n[ledger.show]\nspeaker = 'nobody here'\n[show]\ncsv = true\n"
    )
    typed = ("-p", population, "-w", "000003", "--features", "f0", "--alert", "bits>3.5 for 1 s",
             "--alert", "bits>0.1 for 1 s", "--stop-on-alert")  # fmt: skip
    told, alone = run("--config", config, "replay", talk), run("replay", talk, *typed, {"step": 4})
    assert told.readings == alone.readings
    assert told.code == alone.code == 3
    assert told.records[-1]["stopped"] == "bits>0.1 for 1 s"
    more = ("--ledger", tmp_path / "x.db", "--jsonl", tmp_path / "x.jsonl")
    assert run("--config", config, "replay", talk, *more).code == 3
    assert (tmp_path / "x.db").exists()
    assert run("ledger", "show", ledger).records
    assert not run("--config", config, "ledger", "show", ledger).records
    assert run("--config", config, "show", tmp_path / "x.jsonl").out.startswith("run,")
    assert run("--config", config, "demo", "--help").code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[replay]\nwach = 'me'\n",
            "[replay] has no key wach (did you mean watch?). Its keys are alert,",
        ),
        ("[replay]\nstop_on_alert = true\n", "no key stop_on_alert (did you mean stop-on-alert?)"),
        ("[replay]\nqqqq = 1\n", "[replay] has no key qqqq. Its keys are alert, alert-for, all"),
        ("[repaly]\nwatch = 'me'\n", "'repaly' (did you mean [replay]?)"),
        ("watch = 'me'\n", "unknown command 'watch'"),
        ("replay = 3\n", "use [replay]"),
        ("[replay\n", "TOML"),
        ("[replay]\nwatch = {a = 1}\n", "[replay] has no key watch"),
        ("[replay]\nstep = 'soon'\n", "soon"),
        ("[replay]\nalert = " + 5000 * "[" + 5000 * "]", "nests"),
        ("a = " + 5000 * "{a = " + "1" + 5000 * "}", "nests"),
        ("a" + 200_000 * ".a" + " = 1", "nests"),
        ("[replay]\nstep = " + 9999 * "1", "TOML"),
        ("#" * (1 << 21), "1 MiB"),
        ("[replay]\nstop-on-alert = [1]\n", "--stop-on-alert must be true or false"),
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


def test_a_file_that_runs_commands_says_so_and_is_refused_where_others_can_write_it(
    run, talk, population, tmp_path
):
    config, made = tmp_path / "us.toml", tmp_path / "made"
    config.write_text(
        f'[replay]\npopulation = "{population}"\nwatch = "000003"\nalert = "bits>0.1 for 1 s"\n'
        f'on-alert = "touch {made}"\n'
    )
    config.chmod(0o666)
    refused = run("--config", config, "replay", talk)
    assert refused.code == 2
    assert "on-alert" in refused.complaint
    assert "--trust-config" in refused.complaint
    assert not made.exists()
    assert run("--config", config, "demo", "--help").code == 0
    assert run("--trust-config", "--config", config, "replay", talk).code == 3
    assert made.exists()
    config.chmod(0o600)
    assert "runs commands or sends alerts: on-alert" in run("--config", config, "replay", talk).err
    for value in ("protect = 'command:rm -r'", "jobs = 'tcp://127.0.0.1:1'"):
        config.write_text(f"[replay]\n{value}\n")
        assert f"sends alerts: {value.split()[0]}" in run("--config", config, "replay", talk).err


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
@pytest.mark.parametrize("command", commands(), ids=COMMANDS)
def test_of_a_file_that_others_can_write_only_harmless_options_are_taken(command, tmp_path):
    config = tmp_path / "all.toml"

    def check(each: click.Command, where: str) -> None:
        for option in (each for each in each.params if isinstance(each, click.Option)):
            name = option.opts[-1].lstrip("-")
            config.write_text(f"[{where}]\n{name} = {'true' if option.is_flag else 7}\n")
            config.chmod(0o622)
            if name in HARMLESS:
                assert not isinstance(option.type, (click.Path, ChoiceHint, TextFile)), name
                assert defaults_from(config, list(COMMANDS), command)
                continue
            with pytest.raises(UsageError, match=rf" sets {name}, .*\(chmod 600 .*all.toml\)"):
                defaults_from(config, list(COMMANDS), command)
        for name, part in getattr(each, "commands", {}).items():
            check(part, f"{where}.{name}")

    check(command, str(command.name))


def test_the_docs_list_the_harmless_options():
    page = Path(__file__).parents[2].joinpath("docs/monitoring.md").read_text(encoding="utf-8")
    assert (
        set(
            re.findall(
                r"`([a-z-]+)`", page.split("harmless options are accepted (")[1].split(")")[0]
            )
        )
        == HARMLESS
    )


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="takes root to chown")
def test_a_file_of_another_user_is_to_be_chowned(run, talk, tmp_path):
    config = tmp_path / "us.toml"
    config.write_text("[replay]\njobs = 'tcp://127.0.0.1:1'\n")
    config.chmod(0o644)
    os.chown(config, 12345, -1)
    refused = run("--config", config, "replay", talk)
    assert refused.code == 2
    assert "sets jobs," in refused.complaint
    assert "chown $USER" in refused.complaint
