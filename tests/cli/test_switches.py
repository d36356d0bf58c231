"""Few switches: what a command line holds, and settings, which ``--config FILE`` alone has."""

import json
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from monitor.cli import COMMANDS, cli
from monitor.cli.config import defaults_from
from monitor.cli.help import GONE, Setting, typed

MOST = {"replay": 36, "listen": 36, "evaluate": 28}
MOST_IN_ALL = 250


def command_of(name: str) -> click.Command:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def switches(command: click.Command) -> list[str]:
    """Long options of a command and of its parts."""
    parts = [] if command is cli else getattr(command, "commands", {}).values()
    return [name for each in (command, *parts) for name in typed(each) if name.startswith("--")]


SETTINGS = [
    (name, param.opts[0])
    for name in COMMANDS
    for param in command_of(name).params
    if isinstance(param, Setting)
]


def test_there_are_few_switches():
    count = {name: len(switches(command_of(name))) for name in COMMANDS}
    assert {name: count[name] for name in MOST if count[name] > MOST[name]} == {}
    assert sum(count.values()) + len(switches(cli)) <= MOST_IN_ALL


def sample(param: click.Parameter) -> object:
    """A value of a setting which is not its default."""
    if isinstance(param, click.Option) and param.is_flag:
        return param.default is not True
    if isinstance(param.type, click.Choice):
        return next(each for each in param.type.choices if each != param.default)
    shares = {"bystanders": "5%", "enrolled_prior": 0.25, "delta": 0.25}
    number = shares.get(str(param.name), 30)
    return [number] * param.nargs if param.nargs > 1 else number


@pytest.mark.parametrize(("name", "option"), SETTINGS)
def test_a_file_gives_every_setting_and_no_command_line_does(run, tmp_path, name, option):
    command, config = command_of(name), tmp_path / "us.toml"
    param = next(each for each in command.params if option in each.opts)
    config.write_text(f"[{name}]\n{option[2:]} = {json.dumps(sample(param))}\n")

    top = cli.make_context("monitor", [], resilient_parsing=True)

    def value(defaults: dict[str, object]) -> object:
        context = command.make_context(name, [], top, resilient_parsing=True, default_map=defaults)
        with context:
            return param.process_value(context, param.consume_value(context, {})[0])

    assert value(defaults_from(config, list(COMMANDS), command)) != value({})
    refused = run(name, option, "1")
    assert refused.code == 2
    assert f"set {option[2:]} under [{name}] in FILE" in refused.complaint


@pytest.mark.parametrize("name", COMMANDS)
def test_settings_stand_in_the_full_help_alone(run, name):
    own = [option for command, option in SETTINGS if command == name]
    short = run(name, "--help").out
    full = run(name, "--help-all").out if name != "ledger" else short
    settings = full.partition(f"Settings, under [{name}] in --config FILE:")[2]
    assert [option for option in own if f"\n  {option[2:]} " not in settings] == []
    assert "Settings" not in short
    offered = ShellComplete(cli, {}, "monitor", "X").get_completions([name], "--")
    assert not {each.value for each in offered}.intersection(own)


def test_what_is_gone_leads_to_what_is_there():
    every = {name for command in COMMANDS for name in switches(command_of(command))}
    assert every.isdisjoint(GONE)
    assert [to for to in GONE.values() if to.startswith("--") and to.split()[0] not in every] == []


def test_documents_name_no_setting_as_a_switch():
    root = Path(__file__).parents[2]
    every = {name for command in COMMANDS for name in switches(command_of(command))}
    gone = {*GONE, *(option for _, option in SETTINGS)} - every
    pages = [*root.glob("docs/*.md"), *root.glob("examples/*"), root / "README.md"]
    for page in filter(Path.is_file, pages):
        words = page.read_text(encoding="utf-8").replace("`", " ").replace("=", " ").split()
        assert gone.isdisjoint(words), page.name
