"""Options of every command that hears a stream: whom to compare with, what to listen for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from monitor.cli.options import (
    Features,
    Seconds,
    Share,
    among_option,
    ecapa_option,
    speaker_model_option,
    with_options,
)

__all__ = ["hearing_options", "jsonl_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "-p",
        "--population",
        "store",
        metavar="FILE",
        help="Whom the attacker knows, from `monitor enroll`. [default: the shipped readers]",
    ),
    click.option(
        "--law",
        "law_file",
        metavar="FILE",
        help="What a rank means, from `monitor calibrate -o law.npz`. [default: what -p holds]",
    ),
    click.option(
        "-w",
        "--watch",
        metavar="NAME",
        help="The enrolled speaker whose bits are shown. [default: how sure an attacker is of "
        "somebody, right or wrong, if the speaker is enrolled]",
    ),
    click.option(
        "--features",
        type=Features(),
        help="What to listen for. [default: all that is installed and calibrated]",
    ),
    ecapa_option,
    speaker_model_option,
    among_option,
    click.option(
        "--enrolled-prior",
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        default=0.5,
        show_default=True,
        metavar="P",
        help="How likely it is, before anything is heard, that one of the N enrolled speaks: what "
        "`enrolled` starts from.",
    ),
    click.option(
        "--bystanders",
        type=Share(),
        help="Name everybody else enrolled whose probability in the largest crowd of --among lies "
        "above this, such as 1%: whoever speaks, everybody's probability moves.",
    ),
    click.option(
        "--step",
        type=Seconds(),
        default="1",
        show_default=True,
        help="Audio seconds between readings.",
    ),
    click.option(
        "--channel",
        type=click.IntRange(min=1),
        help="Hear this channel, from 1. [default: all, mixed]",
    ),
    click.option(
        "--template-seconds",
        type=Seconds(),
        metavar="D",
        help="Cut all templates to D speech seconds. [default: their common length, or that of "
        "--watch NAME where it is shorter]",
    ),
    click.option(
        "--on-change",
        type=click.Choice(["ignore", "note", "reset", "split"]),
        default="note",
        show_default=True,
        help="When another person, or another channel, takes over: do not look; say so and carry "
        "on, alerts resting until the first voice is back; begin the evidence afresh, keeping the "
        "peak; or begin another stream. Of turns of 20, 40 and 60 s between two people 83, 99 and "
        "96 % are noticed with voice, 96, 100 and 100 % with identity, 1, 10 and 21 % with f0; of "
        "replies of 20 s after two minutes of one voice 96, 100 and 63 %.",
    ),
)


def _one(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> str | None:
    """Of one file and another the last would be written in silence."""
    if len(given) > 1:
        raise click.BadParameter(
            f"given {len(given)} times ({', '.join(given)}): a run has one file", context, option
        )
    return given[0] if given else None


_JSONL = (
    click.option(
        "--jsonl",
        metavar="FILE|-",
        multiple=True,
        callback=_one,
        help="Write JSON lines there. [default: to standard output if it is no terminal]",
    ),
    click.option("--replace", is_flag=True, help="Overwrite what --jsonl FILE holds."),
)


def jsonl_options(command: _Command) -> _Command:
    """Adds them: ``jsonl`` and ``replace`` of the command."""
    return with_options(command, _JSONL)  # type: ignore[no-any-return]


def hearing_options(command: _Command) -> _Command:
    """Adds them: ``store, law_file, watch, features, among, step, ...`` of the command."""
    return with_options(command, _OPTIONS)  # type: ignore[no-any-return]
