"""What a command is asked for: a dataclass whose fields are its options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import click
import pytest
from click.testing import CliRunner

from monitor.cli.options import OptionGroup, Seconds, argument, group, option, shared, with_options

seen: list[Any] = []


@dataclass(frozen=True, slots=True)
class Inner:
    depth: int = option("--depth N", "How deep.", least=1, most=9, default=3)
    names: tuple[str, ...] = option("--name NAME", "Of whom; several times.")


@dataclass(frozen=True, slots=True)
class Asked:
    place: Path = argument("DIR")
    length: float | None = option("-l, --length", "How long.", type=Seconds())
    inner: Inner = group(Inner, "Inner")
    plain: ClassVar[Any] = click.option("--plain", expose_value=False, is_flag=True)
    fresh: bool = option("--fresh", "Anew.")
    chosen: str | None = shared(click.option("--like", "chosen"))


@click.command()
@with_options(Asked)
def command(asked: Asked) -> int:
    seen.append(asked)
    return 0


def test_a_command_gets_one_value_of_all_that_was_typed():
    seen.clear()
    typed = ["here", "-l", "1:30", "--depth", "5", "--name", "a", "--name", "b", "--like", "x"]
    assert CliRunner().invoke(command, [*typed, "--plain"]).exit_code == 0
    assert CliRunner().invoke(command, ["there", "--fresh"]).exit_code == 0
    first = Asked(Path("here"), 90.0, Inner(5, ("a", "b")), False, "x")
    assert seen == [first, Asked(Path("there"), None, Inner(3, ()), True, None)]


@pytest.mark.parametrize("typed", [["here", "--depth", "0"], ["here", "-l", "soon"], []])
def test_what_makes_no_sense_is_refused(typed):
    assert CliRunner().invoke(command, typed).exit_code == 2


def test_the_help_has_them_in_order_with_their_defaults():
    text = CliRunner().invoke(command, ["--help"]).output
    places = [text.index(each) for each in ("--length", "--depth N", "--name", "--plain", "--like")]
    assert places == sorted(places)
    assert "[default: 3; 1<=x<=9]" in text
    assert list(OptionGroup.of(Inner).names) == ["depth", "names"]
