"""What docs/stability.md promises: no key of a record, --json or a store goes.

``python tests/test_stable.py`` notes what is new in stable.json; keys are never taken out. Until
version 1.0 an option may become a setting, or go: CHANGELOG.md names those.
"""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from click import Command

from monitor import Population
from monitor.cli import COMMANDS, cli, main
from monitor.cli.help import Setting
from monitor.events.run import SCHEMA_VERSION
from monitor.events.schema import SCHEMA, read_run
from monitor.features.framing import join_runs
from monitor.ledger.database import MIGRATIONS
from monitor.population import DEMO_SPEAKER, demo_frames
from monitor.sources import FramesFile
from monitor.sources.frames import Header, write_frames
from tests.settings import configured

NOTED = Path(__file__).with_name("stable.json")
FEATURES = ("f0", "phones", "voice")
"""Names of data, not of keys."""


def paths(value: Any, at: str = "") -> Iterator[str]:
    """The keys of a JSON value as dotted paths; what is in a list has the list's.

    The key of a figure has a dot; it stands alone, and all of them look alike inside.
    """
    if isinstance(value, dict):
        for key, part in value.items():
            if "." in key:
                yield key
            name = "FEATURE" if key in FEATURES else "FIGURE" if "." in key else key
            here = f"{at}.{name}".lstrip(".")
            yield here
            yield from paths(part, here)
    elif isinstance(value, list):
        for part in value:
            yield from paths(part, at)


def shell(folder: Path, *arguments: object, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command of the program in this process; what it wrote on stdout."""
    out, err = (TextIOWrapper(BytesIO(), "utf-8") for _ in range(2))
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            main(configured(arguments, folder))
        except SystemExit as left:
            code = left.code
    for stream in (out, err):
        stream.seek(0)
    assert code in codes, err.read()
    return out.read()


def of_the_schema(folder: Path) -> Iterable[str]:
    """Every record, as its schema has it."""

    def properties(schema: Any, at: str) -> Iterator[str]:
        for key, part in schema.get("properties", {}).items():
            yield f"{at}.{key}"
            yield from properties(part, f"{at}.{key}")
        for inner in (schema.get("items"), schema.get("additionalProperties")):
            if isinstance(inner, dict):
                yield from properties(inner, at)

    for kind in SCHEMA["oneOf"]:
        yield from properties(kind, kind["title"])


def excerpt(path: Path, number: int) -> Path:
    """The first twenty seconds of the demo's frames, as of one recording or another."""
    source = FramesFile(demo_frames())
    heard = join_runs(list(source)[:2])
    write_frames(
        path, heard.speech, heard.tracks,
        {name: spec.size for name, spec in source.stream_info.tracks.items()},
        {name: spec.frame_seconds for name, spec in source.stream_info.tracks.items()},
        networks={name: spec.network for name, spec in source.stream_info.tracks.items()},
        header=Header(hashes=(f"file:{number:064x}",), settings={"channel": None}),
    )  # fmt: skip
    return path


def of_a_run(folder: Path) -> Iterable[str]:
    """Two sessions, and a run by itself, with everything asked for that adds keys."""
    ledger = ("--ledger", folder / "me.db", "--budget", "4")
    asked: list[tuple[object, ...]] = [ledger, ledger]
    asked.append(("--alert", "bits", "--false-alarms", "10%", {"bystanders": "1%"}))
    for i, more in enumerate(asked):
        name = folder / f"{i}.jsonl"
        shell(
            folder, "replay", excerpt(folder / f"{i}.npz", i), "--watch", DEMO_SPEAKER,
            "--features", "f0,voice", "--among", "50,1e4", "--alert", "bits>1 for 2 s after 5 s",
            "--warn", "10s", "--jsonl", name, *more, codes=(3,),
        )  # fmt: skip
        for line in name.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            yield from paths(record, record["type"])


def of_evaluate(folder: Path) -> Iterable[str]:
    """``monitor evaluate --json``: figures are named by keys, curves too."""
    draw = np.random.default_rng(0)
    own = np.repeat(np.arange(12), 3)
    for name, better in (("a", 2.0), ("b", 1.0)):
        np.save(folder / f"{name}.npy", draw.normal(size=(36, 12)) + better * np.eye(12)[own])
    np.save(folder / "labels.npy", own)
    made = shell(
        folder, "evaluate", "a.npy", "b.npy", "--labels", "labels.npy", "--json",
        "--replicates", 20, "--among", "50", "--epsilon", "0.1",
    )  # fmt: skip
    return paths(json.loads(made))


def of_a_population(folder: Path) -> Iterable[str]:
    """The shipped readers, written anew: header, calibration table and arrays."""
    path = folder / "people.npz"
    Population.reference().save(path)
    with np.load(path) as store:
        yield from (re.sub(r"/\d+/", "/RANK_MODEL/", _generic(name)) for name in store.files)
        header = json.loads(bytes(store["header"]).decode())
        for i, rank_model in enumerate(header["rank_models"]):
            rank_model["rows"] = json.loads(bytes(store[f"rank_model/{i}/rows"]).decode())
    assert header["schema"] == 4
    yield from paths(header)


def _generic(name: str) -> str:
    return re.sub(rf"\b(?:{'|'.join(FEATURES)})(?=_|\b)", "FEATURE", name)


def of_frames(folder: Path) -> Iterable[str]:
    """Ready-made frames, as ``--frames`` keeps them."""
    with np.load(excerpt(folder / "frames.npz", 0)) as store:
        yield from map(_generic, store.files)
        header = json.loads(str(store["header"]))
    assert header["schema"] == 1
    yield from paths(header)


def of_a_ledger(folder: Path) -> Iterable[str]:
    """Tables and columns of the newest schema."""
    with sqlite3.connect(":memory:") as connection:
        for migration in MIGRATIONS:
            connection.executescript(migration)
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            columns = connection.execute(f"PRAGMA table_info({table})")
            yield from (f"{table}.{column[1]}" for column in columns.fetchall())


def of_the_command_line(folder: Path) -> Iterable[str]:
    """Every option, setting (without dashes) and argument, after the command that takes it."""
    top = cli.make_context("monitor", [], resilient_parsing=True)
    commands: list[tuple[str, Command]] = [("monitor", cli)]
    for name in COMMANDS:
        command = cli.get_command(top, name)
        assert command is not None
        commands.append((f"monitor {name}", command))
        parts = getattr(command, "commands", {})
        commands += [(f"monitor {name} {part}", each) for part, each in parts.items()]
    for path, command in commands:
        for each in command.params:
            names = (*each.opts, *each.secondary_opts)
            dashes = "--" if isinstance(each, Setting) else ""
            yield from (f"{path} {name.removeprefix(dashes)}" for name in names)


LOOKED_AT = {
    "records by their schema": of_the_schema,
    "records of a run": of_a_run,
    "evaluate --json": of_evaluate,
    "population": of_a_population,
    "frames": of_frames,
    "ledger": of_a_ledger,
    "command line": of_the_command_line,
}


@pytest.mark.parametrize("what", LOOKED_AT)
def test_no_key_goes(what, tmp_path):
    noted = set(json.loads(NOTED.read_text(encoding="utf-8"))[what])
    found = set(LOOKED_AT[what](tmp_path))
    assert noted - found == set(), "renamed or gone: what reads it breaks"
    assert found - noted == set(), "new: python tests/test_stable.py notes them"


def test_a_run_writes_what_its_schema_knows():
    noted = json.loads(NOTED.read_text(encoding="utf-8"))
    top = [key for key in noted["records of a run"] if key.count(".") == 1]
    known = set(noted["records by their schema"])
    assert [key for key in top if key not in known and not key.endswith(".type")] == []


def test_schemas_are_the_first_ones():
    """Raised, one of them needs a way to read the one before, and a word in docs/stability.md."""
    assert SCHEMA_VERSION == 2  # the first is refused in a line: its bits were another figure
    assert len(MIGRATIONS) == 4


def test_a_run_without_newer_keys_is_read(tmp_path):
    path = tmp_path / "run.jsonl"
    old: list[dict[str, Any]] = [
        {"type": "start", "schema": 2},
        {"type": "reading", "seconds": 1.0, "speech": 0.5, "bits": 0.2},
        {"type": "end"},
    ]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in old), encoding="utf-8")
    start, reading, end = read_run(path)
    assert [start.type, end.type] == ["start", "end"]
    assert {**reading.record(), **old[1]} == reading.record()


if __name__ == "__main__":
    before = json.loads(NOTED.read_text(encoding="utf-8")) if NOTED.exists() else {}
    for title, look in LOOKED_AT.items():
        kept = () if look is of_the_command_line else before.get(title, ())
        with TemporaryDirectory() as folder:
            before[title] = sorted({*kept, *look(Path(folder))})
    NOTED.write_text(json.dumps(before, indent=0) + "\n", encoding="utf-8")
