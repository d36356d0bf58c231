"""monitor people: list enrolled people, whether they are separable, and delete them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monitor.cli.help import HelpCommand
from monitor.cli.options import (
    argument,
    check_outputs,
    note,
    option,
    progress_over,
    say,
    unlocked,
    with_options,
)
from monitor.errors import StoreError, UsageError
from monitor.phrases import condition_in_words, format_names, plural
from monitor.run import FAILED

if TYPE_CHECKING:
    from monitor.ledger.ledger import SessionSummary
    from monitor.population.people import Speaker
    from monitor.population.population import Population
    from monitor.stream.separability import Separability

_MOST_LISTED = 10  # maximum number of pairs to list
_LOOKS_LONG = 300  # minimum number of people for a comparison to show progress


class Days(click.ParamType):  # type: ignore[type-arg]
    """A number of days: 90d."""

    name = "days"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number of days."""
        match = re.fullmatch(r"([0-9]{1,5})d", str(value))
        if match is None:
            self.fail(f"invalid number of days {str(value)[:20]!r}: use 90d", param, ctx)
        return int(match.group(1))


@dataclass(frozen=True, slots=True)
class PeopleOptions:
    """Options of the command."""

    store: Path = argument("FILE.npz|DIR")
    speaker: str | None = option("--speaker NAME", "Show only NAME, compared with the others.")
    ledger: Path | None = option(
        "--ledger FILE.db", "Also show each person's last watched session and the bits by then."
    )
    older_than: int | None = option(
        "--older-than 90d", "Show only people last enrolled at least this long ago.", type=Days()
    )
    forget: str | None = option(
        "--forget [NAME]",
        "Delete NAME, or with --older-than all people shown.",
        is_flag=False,
        flag_value="",
    )
    yes: bool = option("--yes", "Skip the confirmation of --older-than --forget.")
    output: Path | None = option(
        "-o, --output FILE.npz",
        "With --forget, write the rest to FILE.npz and leave the original unchanged. [default: "
        "rewrite it]",
    )
    replace: bool = option("--replace", "Overwrite -o if it exists.")


@click.command("people", cls=HelpCommand, short_help="Show who is enrolled, or delete them.")
@with_options(PeopleOptions)
def command(options: PeopleOptions) -> int:
    """Show who is enrolled in FILE.npz and which people are separable, or delete people.

    DIR is the folder of people who enrolled at the page (`monitor doctor` names it).

    \b
    monitor people us.npz                            JSON lines if piped
    monitor people us.npz --ledger us.db             with each last session
    monitor people us.npz --speaker ann

    \b
    monitor people us.npz --forget ann
    monitor people us.npz --forget ann -o without-ann.npz
    monitor people us.npz --older-than 90d --forget  asks first

    Two people are separable if the evidence that both are one voice is under -2 bits, and less than
    between two sessions of one person. The calibration is that of the file, or the shipped one. Two
    people are enough. Inseparable people's speech counts for both, and their bits read too low. One
    in twenty pairs may be judged wrongly.

    --forget deletes the template, the fingerprints of the recordings and the calibration data, even
    of a calibration or cohort speaker. Rank models fitted to many people cannot be split. Runs
    report this until you recalibrate. The old bytes are overwritten. Other copies, frames, scores
    and runs remain. For a ledger, use `monitor ledger forget`.
    """
    if options.output is not None and options.forget is None:
        raise UsageError("-o needs --forget NAME")
    if options.yes and (options.forget is None or options.older_than is None):
        raise UsageError("--yes needs --older-than 90d --forget")
    if options.forget:
        if options.older_than is not None or options.speaker is not None:
            raise UsageError("--forget NAME deletes one person: leave out the other options")
        return _forget(options, [options.forget])
    if options.forget is not None and options.older_than is None:
        raise UsageError("--forget needs a NAME, or --older-than 90d")
    population = _load(options.store)
    chosen = _choose(population, options)
    if options.forget is not None:
        return _forget_old(options, population, chosen)
    sessions = {} if options.ledger is None else _last_sessions(options.ledger, population.names)
    compared = _compare(population, options.speaker)
    seconds = population.template_seconds.tolist()
    shipped = _find_shipped(population) & {*chosen}
    if len(shipped) < len(chosen):
        chosen.sort(key=shipped.__contains__)  # your own people first
        if sys.stdout.isatty():
            chosen = chosen[: len(chosen) - len(shipped)]
    rows = (
        _make_row(population.speakers[index], seconds[index], options, sessions, compared)
        for index in chosen
    )
    if sys.stdout.isatty():
        _print_table(list(rows), len(population) - 1, options)
        if shipped - {*chosen}:
            say(f"and the {len(shipped)} shipped readers: | cat lists them", err=False)
        say(*_in_words(compared.values(), {population.names[index] for index in chosen}), err=False)
    else:
        for row in rows:
            click.echo(json.dumps(row))
    return 0


def _load(store: Path) -> Population:
    from monitor.population.population import Population
    from monitor.serve.templates import TemplateFolder

    return TemplateFolder(store).together() if store.is_dir() else Population.load(store)


def _choose(population: Population, options: PeopleOptions) -> list[int]:
    """Choose the indices of people to show: all, one, or those with old templates."""
    indices: Sequence[int] = range(len(population))
    if options.speaker is not None:
        indices = [population.index(options.speaker)]
    if options.older_than is None:
        return list(indices)
    before = _days_ago(options.older_than)
    days = {index: population.speakers[index].days[1] for index in indices}
    if undated := sum(not day for day in days.values()):
        note(
            f"{plural(undated, 'template')} without a date (shipped, or made by an older version): "
            "neither shown nor deleted. Leave out --older-than to see them."
        )
    return [index for index, day in days.items() if day and day < before]


def _find_shipped(population: Population) -> set[int]:
    from monitor.population.population import Population

    names = {*Population.reference().names}
    undated = (index for index, speaker in enumerate(population.speakers) if not speaker.days[1])
    return {index for index in undated if population.names[index] in names}


def _days_ago(days: int) -> str:
    try:
        return (date.today() - timedelta(days)).isoformat()
    except OverflowError:
        return ""


def _last_sessions(file: Path, names: Collection[str]) -> dict[str, SessionSummary]:
    from monitor.ledger import Ledger

    with Ledger(file, create=False, write=False) as ledger:
        sessions = ledger.sessions()
    newest = {session.speaker: session for session in sessions}  # the oldest come first
    recorded = newest.keys() & set(names)
    return {name: newest[name] for name in recorded}


def _compare(population: Population, speaker: str | None) -> dict[str, Separability]:
    """Compare all people, or one; note why if that is impossible."""
    from monitor.stream.separability import compare_people

    long = len(population) >= _LOOKS_LONG
    try:
        with progress_over(100.0, "comparing", "%") if long else nullcontext() as step:

            def progress(label: str, fraction: float) -> None:
                if step is not None:
                    step(label, 100.0 * fraction)

            compared = compare_people(population, speaker, progress)
    except (StoreError, UsageError) as error:
        note(f"not compared: {error}")
        return {}
    return {person.name: person for person in compared}


def _make_row(
    speaker: Speaker,
    seconds: float,
    options: PeopleOptions,
    sessions: Mapping[str, SessionSummary],
    compared: Mapping[str, Separability],
) -> dict[str, Any]:
    """Make a person's record, as printed to a pipe, without values of the template."""
    condition, separability = speaker.condition, compared.get(speaker.name)
    row: dict[str, Any] = {
        "name": speaker.name,
        "first_enrolled": speaker.days[0] or None,
        "last_enrolled": speaker.days[1] or None,
        "speech_seconds": seconds,
        "sessions": max(len(speaker.sessions), 1),
        "conditions": None if condition is None else condition.record(),
    }
    if options.ledger is not None:
        last = sessions.get(speaker.name)
        row["last_watched"] = None if last is None else last.started[:10]
        row["last_bits"] = None if last is None else last.bits
    if separability is not None:
        row |= {
            "own_bits": separability.own_bits,
            "told_apart": separability.apart,
            "not_compared": separability.not_compared,
            "nearest": [asdict(other) for other in separability.nearest[:_MOST_LISTED]],
        }
    return row


def _print_table(rows: Sequence[Mapping[str, Any]], others: int, options: PeopleOptions) -> None:
    from rich.table import Table
    from rich.text import Text

    from monitor.events.phrases import clean, number
    from monitor.sinks.console import PlainConsole

    if not rows:
        say("no people", err=False)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("name", "enrolled", "speech", "sessions", "told apart"):
        table.add_column(name, justify="right" if name in ("speech", "sessions") else "left",
                         no_wrap=name != "name")  # fmt: skip
    if options.ledger is not None:
        table.add_column("last watched", no_wrap=True)
    table.add_column("sound")
    for row in rows:
        first, last = row["first_enrolled"], row["last_enrolled"]
        days = " to ".join(dict.fromkeys((first or "?", last))) if last else "?"
        apart = f"{row['told_apart']} of {others}" if "told_apart" in row else "not known"
        cells = [
            clean(row["name"], 30), days, f"{row['speech_seconds']:.0f} s", str(row["sessions"]),
            apart,
        ]  # fmt: skip
        if options.ledger is not None:
            watched = row["last_watched"]
            cells.append(f"{watched}, {number(row['last_bits'])} bits" if watched else "never")
        cells.append(condition_in_words(row["conditions"]) or "not known")
        table.add_row(*map(Text, cells))
    PlainConsole(highlight=False).print(table)


def _in_words(compared: Collection[Separability], chosen: Set[str]) -> list[str]:
    """Format a line for each pair that is inseparable, or not known to be separable."""
    from monitor.stream.separability import LEAST_SECONDS, Verdict

    sentences: dict[frozenset[str], str] = {}
    for verdict in (Verdict.INSEPARABLE, Verdict.UNKNOWN):
        for person in compared:
            for other in person.with_verdict(verdict):
                pair = f"{person.name} and {other.name}"
                length = (
                    f"at least {LEAST_SECONDS:g} s" if other.seconds < LEAST_SECONDS else "more"
                )
                words = (
                    f"{pair}: unknown whether they are separable ({other.bits:.1f} bits that they "
                    f"are one voice). Enrol {length} of both, on another day."
                )
                if verdict == Verdict.INSEPARABLE:
                    words = (
                        f"{pair} are inseparable ({other.bits:.1f} bits that they are one voice). "
                        "Speech of either counts for both, and bits read too low. If they are "
                        "one person, forget one and enrol that speech with --add."
                    )
                if {person.name, other.name} & chosen:
                    sentences.setdefault(frozenset((person.name, other.name)), words)
    lines = list(sentences.values())
    if len(lines) > _MOST_LISTED:
        more = len(lines) - _MOST_LISTED
        lines = [*lines[:_MOST_LISTED], f"and {plural(more, 'pair')} more: see the JSON (| cat)"]
    return lines


def _forget_old(options: PeopleOptions, population: Population, indices: Sequence[int]) -> int:
    names = [population.names[index] for index in indices]
    if not names:
        say("No template is this old. Nothing was deleted.")
        return 0
    if len(names) == len(population) and not options.store.is_dir():
        raise UsageError(f"every template in {options.store} is this old: delete the file instead")
    if not options.yes:
        if not sys.stdin.isatty():
            raise UsageError(
                f"{plural(len(names), 'person', 'people')} would be deleted: add --yes"
            )
        for index in indices:
            speaker = population.speakers[index]
            say(f"{speaker.name}, last enrolled {speaker.days[1]}")
        what = plural(len(names), "person", "people")
        if not click.confirm(f"Delete {what} from {options.store}?", err=True):
            say("Nothing was deleted.")
            return FAILED
    return _forget(options, names)


def _forget(options: PeopleOptions, names: Sequence[str]) -> int:
    from monitor.files import alone, wiped
    from monitor.population.forgetting import forget_people
    from monitor.population.population import Population
    from monitor.training.frames_folder import list_files_of

    store, output = options.store, options.output
    if store.is_dir():
        return _forget_files(store, output, names)
    target = store if output is None else output
    if output is not None and output.exists() and output.samefile(store):
        raise UsageError(f"-o {output} is the file itself; leave out -o to rewrite it")
    if not store.exists():
        Population.load(store)  # raises with the reason
    check_outputs([target], replace=options.replace or output is None)
    with alone(target) as locked, wiped(store) if output is None else nullcontext():
        forgotten = forget_people(store, names, output)
    if not locked:
        say(unlocked(target))
    for name, person in forgotten.items():
        say(*person.in_words(name))
        files = list_files_of(name, store.with_suffix(".frames")) if output is None else []
        if files:
            where = format_names(list(map(str, files)))
            note(f"delete the frames of {name} as well, in {where}")
    if output is not None:
        say(f"{output} has the others. {store} is unchanged and still includes {', '.join(names)}.")
    return 0


def _forget_files(folder: Path, output: Path | None, names: Sequence[str]) -> int:
    from monitor.serve.templates import TemplateFolder

    if output is not None:
        raise UsageError(f"-o is for a file: {folder} has one file per person")
    templates = TemplateFolder(folder)
    for name in names:
        templates.forget(name)
        say(f"deleted {name}: the template, the name and the file")
    return 0
