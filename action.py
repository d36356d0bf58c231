"""The measuring step of action.yml: inputs from the environment, outputs to the files of GitHub.

python -I action.py
"""

from __future__ import annotations

import csv
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import NoReturn

import click

from monitor.alerts.actions.registry import ACTION_OPTIONS
from monitor.cli.replay import command as replay
from monitor.errors import UsageError
from monitor.files import plain_cell
from monitor.phrases import clock_time, plural
from monitor.run.each import escape_path, find_recordings

MONITOR = str(Path(sys.executable).with_name("monitor"))
STATUSES = {0: "ok", 3: "alert", 4: "incomplete"}
HEADLINES = {
    "ok": "within the budget",
    "alert": "over the budget",
    "incomplete": "not decided",
    "error": "not measured",
}
ALLOWED = frozenset(
    (
        *("--population", "--rank-model", "--watch", "--features", "--speaker-model", "--among"),
        *("--channel", "--protect", "--protected-population", "--part", "--jobs"),
        *("--speaker-in-transcript", "--alert", "--false-alarms", "--warn", "--allow-idle-alerts"),
    )
)
"""Options of `monitor replay` that say what is measured, with ``--each`` and without."""
MOST_ROWS = 100
"""Recordings in the job summary, which has a limit; the table has all."""


def main() -> int:
    """Measure, write outputs and job summary; return the exit status of the step."""
    budget, incomplete = read_input("BUDGET"), read_input("INCOMPLETE") or "fail"
    arguments = read_lines("ARGS")
    if not re.fullmatch(r"\d+(\.\d+)?", budget):
        fail(f"budget: {budget!r} is no number of bits: give one such as 12")
    if incomplete not in ("fail", "allow"):
        fail(f"incomplete: {incomplete!r} is unknown: give fail or allow")
    try:
        check_arguments(arguments)
    except UsageError as error:
        fail(f"args: {error}")
    rule = f"bits>{budget} for 0 s after 10 s"
    options = [*arguments, f"--alert={rule}"]
    for name in ("population", "watch"):
        if value := read_input(name.upper()):
            options.append(f"--{name}={value}")
    try:
        recordings = find_recordings(list(expand(read_lines("RECORDINGS"))))
    except UsageError as error:
        fail(f"recordings: {error}")
    folder = Path(read_input("OUTPUT") or "disclosure")
    folder.mkdir(parents=True, exist_ok=True)
    table, log, picture = (folder / f"{n}" for n in ("disclosure.csv", "worst.jsonl", "worst.png"))
    for path in (table, log, picture):
        path.unlink(missing_ok=True)  # of an earlier run
    paths = list(map(str, recordings))
    code = run_monitor("replay", *options, "--each", f"--summary={table}", "--", *paths)
    rows = read_table(table)
    measured = [row for row in rows if row["peak_bits"]]
    if code in (0, 4) and len(measured if code == 0 else rows) != len(paths):
        fail(f"measured {len(measured)} of {plural(len(paths), 'recording')}: see the log")
    worst = max(measured, key=lambda row: float(row["peak_bits"]), default=None)
    if worst is not None:
        named = next(str(p.absolute()) for p in recordings if escape_path(p) == worst["recording"])
        drawn = [f"--jsonl={log}", f"--plot={picture}", "--replace", "--", named]
        run_monitor("replay", *options, *drawn, repeated=True)
    status = STATUSES.get(code, "error")
    write_outputs(
        {
            "status": status,
            "exit-status": str(code),
            "worst-bits": "" if worst is None else worst["peak_bits"],
            "worst-recording": "" if worst is None else worst["recording"],
            "table": str(table) if rows else "",
            "json-lines": str(log) if log.exists() else "",
            "picture": str(picture) if picture.exists() else "",
        }
    )
    head = f"Disclosure of {plural(len(paths), 'recording')}: {HEADLINES[status]} ({budget} bits)"
    write_summary(summarise(head, rule, rows, picture if picture.exists() else None))
    if status != "ok":
        annotate("error" if status != "incomplete" or incomplete == "fail" else "warning", head)
    return 0 if status == "incomplete" and incomplete == "allow" else code


def read_input(name: str) -> str:
    """Return an input of the step, without the space around it."""
    return os.environ.get(name, "").strip()


def read_lines(name: str) -> list[str]:
    """Return the lines of an input that hold something."""
    return [line.strip() for line in read_input(name).splitlines() if line.strip()]


def check_arguments(arguments: Sequence[str]) -> None:
    """Check that all arguments are options of the measurement, as the command reads them.

    Raises:
        UsageError: one is unknown, lacks its value, or is not `ALLOWED`.
    """
    try:
        parser = replay.make_parser(click.Context(replay))
        values, _, given = parser.parse_args(list(arguments))
    except click.UsageError as error:
        raise UsageError(error.format_message()) from None
    named = values["recordings"]  # a marker of click where there are none
    if (isinstance(named, tuple) and named) or "--" in arguments:
        raise UsageError("use options alone: name the files in recordings")
    for parameter in given:
        if isinstance(parameter, click.Option) and not ALLOWED.intersection(parameter.opts):
            name = max(parameter.opts, key=len)
            raise UsageError(f"{name} is not for this step: leave it out")


def expand(patterns: Iterable[str]) -> Iterable[str]:
    """Yield the files and folders of names and globs, none of which may match nothing."""
    nothing = True
    for pattern in patterns:
        nothing = False
        if Path(pattern).exists():
            yield pattern
            continue
        found = sorted(glob(pattern, recursive=True))  # noqa: PTH207  patterns may be absolute
        found = [path for path in found if "**" not in pattern or Path(path).is_file()]
        if not found:
            raise UsageError(f"{pattern!r} matches nothing: check the name, or fetch the files")
        yield from found
    if nothing:
        raise UsageError("none are named: give a folder, files or a glob")


def run_monitor(*arguments: str, repeated: bool = False) -> int:
    """Run the command; what it prints gives GitHub no commands. Return its exit status.

    A ``repeated`` run prints only if it fails: the log has its notices already.
    """
    ours = {option.environment for option in ACTION_OPTIONS}  # they would act twice
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    token = secrets.token_hex()
    print(f"::stop-commands::{token}", flush=True)
    try:
        # the runner reads two pipes in no order: all of it comes by one, between the marks
        done = subprocess.run(
            [MONITOR, *arguments], check=False, env=environment, stderr=subprocess.STDOUT,
            stdout=subprocess.PIPE if repeated else None,
        )  # fmt: skip
        code = done.returncode
        if repeated and code not in STATUSES:
            sys.stdout.buffer.write(done.stdout)
            sys.stdout.flush()
    finally:
        print(f"::{token}::", flush=True)
    return code if code >= 0 else 1  # killed


def read_table(path: Path) -> list[dict[str, str]]:
    """Read the rows of a summary; none where the command has refused to begin."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [{k: plain_cell(v) for k, v in row.items()} for row in csv.DictReader(file)]


def summarise(head: str, rule: str, rows: Sequence[Mapping[str, str]], picture: Path | None) -> str:
    """Return the job summary, in Markdown: what fails first, then by bits."""
    shown = sorted(rows, key=lambda r: (r["exit_status"] == "0", -float(r["peak_bits"] or "inf")))
    lines = [f"### {quote(head)}", ""]
    if rows:
        lines += ["| recording | bits at its end | most bits | |", "|---|---:|---:|---|"]
    for row in shown[:MOST_ROWS]:
        least = "at least " if row["at_least"] == "true" else ""
        figures = [f"{least}{float(row[k]):.1f}" if row[k] else "" for k in ("bits", "peak_bits")]
        cells = (quote(row["recording"]), *figures, quote(describe(row)))
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    if len(rows) > MOST_ROWS:
        lines.append(f"{len(rows) - MOST_ROWS} more are in the table.")
    if picture is not None:
        lines.append(
            f"The curve of the recording with the most bits is {quote(str(picture))}: "
            "keep its folder with actions/upload-artifact."
        )
    unwatched = any(not row["watch"] and row["bits"] for row in rows)
    lines += ["Nobody is watched: bits are the attacker's confidence."] * unwatched
    lines.append(f"Alert: {quote(rule)}. A better attacker than the modelled one learns more.")
    return "\n".join(lines) + "\n"


def describe(row: Mapping[str, str]) -> str:
    """Describe what came of one recording."""
    said = []
    if row["error"]:
        said.append(row["error"])
    if row["first_alert_seconds"]:
        said.append(f"over the budget at {clock_time(float(row['first_alert_seconds']))}")
    said += [row[name] for name in ("undecided", "incomplete") if row[name]]
    if not said:
        said.append("within the budget")
    if row["differs"]:
        said.append(f"unlike the templates in {row['differs']}: low bits do not mean safe")
    return "; ".join(said)


def quote(text: str) -> str:
    """Return a text as Markdown shows it: none of it is markup, a link or a mention.

    Example:
        >>> quote("a|b_@c")
        'a&#124;b&#95;&#64;c'
    """
    return "".join(c if c.isalnum() or c in " .,;:/-" else f"&#{ord(c)};" for c in text)


def write_outputs(values: Mapping[str, str]) -> None:
    """Write outputs of the step."""
    for name, value in values.items():
        mark = secrets.token_hex()
        append("GITHUB_OUTPUT", f"{name}<<{mark}\n{value}\n{mark}\n")


def write_summary(text: str) -> None:
    """Add to the summary of the job."""
    append("GITHUB_STEP_SUMMARY", text)


def append(variable: str, text: str) -> None:
    """Append to the file that a variable names; another CI has none."""
    if path := os.environ.get(variable):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


def annotate(level: str, message: str) -> None:
    """Say it where GitHub shows it first."""
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    print(f"::{level}::{escaped}", flush=True)


def fail(message: str) -> NoReturn:
    """Refuse an input: no build passes that has not been measured."""
    write_outputs({"status": "error", "exit-status": "2"})
    write_summary(f"### {quote(message)}\n")
    annotate("error", message)
    raise SystemExit(2)


if __name__ == "__main__":
    raise SystemExit(main())
