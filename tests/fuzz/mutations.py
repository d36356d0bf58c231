"""Damage to files, from a seeded generator: bytes, JSON, arrays, and rows of a database."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

__all__ = ["bytes_of", "json_of", "npz_of", "sqlite_of", "sqlite_value", "text_of"]

EXTREMES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2.5, 1e30, -1e30, 1e300, 1e-300, 1 << 31, 1 << 53, 1 << 62,
    1 << 64, -(1 << 64), 10**400, float("nan"), float("inf"), -float("inf"), "", "x", " ",
    "\udcff", "\x00", "\x1b[2J", "a\nb", "constructor", "__proto__", "é\u202e",
    "Zoe\u0308\u00a0Lee", "a\u200db", "\u200d", "👩\u200d💻", "x" * 10_000, "1" * 5000,
    [], [[]], [1, 2], ["a", 1], {}, {"a": None}, {"__proto__": 1},
)  # fmt: skip
FOREIGN = (
    b"<!DOCTYPE html><html></html>", b"version https://git-lfs.github.com/spec/v1\n",
    b"%PDF-1.7\n", b"# a comment\n", b"a;b\n0,5;1\n", b"a,b,\nnan,1.0,\n",
)  # fmt: skip


def bytes_of(random: Random, data: bytes) -> bytes:
    """Flipped bits, cut off, spliced, repeated, other bytes in between, or another file."""
    if random.random() < 0.02:
        return random.choice((gzip.compress(data, mtime=0), *FOREIGN))
    made = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        at, other = (random.randrange(len(made) + 1) for _ in range(2))
        low, high = sorted((at, other))
        how = random.randrange(6)
        if how == 0 and made:
            made[at % len(made)] ^= 1 << random.randrange(8)
        elif how == 1:
            del made[at:]
        elif how == 2:
            del made[low : min(high, low + 64)]
        elif how == 3:
            made[at:at] = made[low : min(high, low + 512)]
        elif how == 4:
            made[at : at + 4] = random.choice((b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff"))
        else:
            made[at:at] = random.randbytes(random.randrange(1, 9))
    return bytes(made)


def text_of(random: Random, data: bytes) -> bytes:
    """Words and lines of a text changed for others, or its bytes."""
    if random.random() < 0.3:
        return bytes_of(random, data)
    lines = data.decode(errors="surrogateescape").split("\n")
    for _ in range(random.choice((1, 1, 3))):
        at = random.randrange(len(lines))
        words = lines[at].replace(",", " , ").replace("\t", " \t ").split(" ")
        word = random.randrange(len(words))
        what = random.choice(EXTREMES)
        how = random.randrange(6)
        if how == 0:
            lines[at : at + 1] = lines[at : at + 1] * random.choice((0, 2, 50))
        elif how == 1:
            del words[word]
        elif how == 2:
            words[word : word + 1] = words[word : word + 1] * 2
        elif how == 3:
            random.shuffle(words)
        else:
            words[word] = str(what)[:5000] if isinstance(what, str) else json.dumps(what)[:600]
        if how:
            lines[at] = " ".join(words).replace(" , ", ",").replace(" \t ", "\t")
        if not lines:
            lines = [""]
    return "\n".join(lines).encode(errors="surrogatepass")


def json_of(random: Random, value: Any) -> str:
    """A JSON text: a value somewhere in it changed, gone, doubled, or nested without end."""
    value = json.loads(json.dumps(value))
    places: list[tuple[Any, Any]] = []
    _places(value, places)
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        if not places:
            break
        inside, key = random.choice(places)
        # gone with an earlier one, or grown too large for a float
        with suppress(KeyError, IndexError, OverflowError):
            how = random.randrange(12)
            if how == 0:
                del inside[key]
            elif how == 1 and isinstance(inside, dict):
                inside[random.choice(("x", "__proto__", "\udcff", "a\x1b"))] = inside.pop(key)
            elif how == 2 and isinstance(inside[key], int | float):
                inside[key] = -inside[key] * random.choice((1, 1e9, 0.5))
            elif how == 3:
                inside[key] = [inside[key]]
            elif how == 4:
                inside[key] = str(inside[key])
            else:
                inside[key] = random.choice(EXTREMES)
    text = json.dumps(value)
    if random.random() < 0.03:
        text = text.replace(":", ":" + "[" * 3000, 1)
    if random.random() < 0.03 and text.startswith("{"):
        text = text[:-1] + "," + text[1:]  # every key twice
    return text


def _places(value: Any, places: list[tuple[Any, Any]]) -> None:
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        places.append((value, key))
        if isinstance(value[key], dict | list):
            _places(value[key], places)


def npz_of(random: Random, data: bytes) -> bytes:
    """Arrays of other types, shapes and numbers; their JSON header; or the bytes of the zip."""
    if random.random() < 0.15:
        return bytes_of(random, data)
    with np.load(io.BytesIO(data)) as file:
        arrays = {name: file[name] for name in file.files}
    for _ in range(random.choice((1, 1, 2))):
        name = random.choice(list(arrays))
        if name == "header" or ("header" in arrays and random.random() < 0.4):
            header = arrays["header"]
            plain = header.dtype.kind == "U" and header.size == 1
            text = str(header.item()) if plain else bytes(header).decode(errors="replace")
            with suppress(ValueError, RecursionError):  # broken by the round before
                text = json_of(random, json.loads(text))
            raw = text.encode("utf-8", "surrogatepass")
            arrays["header"] = np.array(text) if plain else np.frombuffer(raw, np.uint8)
        else:
            _array(random, arrays, name)
        if not arrays:
            break
    file = io.BytesIO()
    with suppress(UnicodeEncodeError):
        np.savez(file, allow_pickle=True, **arrays)
    return file.getvalue()


def _array(random: Random, arrays: dict[str, Any], name: str) -> None:
    array = arrays[name]
    how = random.randrange(9)
    numbers = (np.nan, np.inf, -np.inf, -1, 0, 2**62, 1e300, 1e-310, 0.5)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays[random.choice(("x", "speech", "header", "../x", name + "_ticks"))] = array
    elif how == 2:
        kinds = ("f2", "f4", "i1", "u8", "c16", "b1", "S3", "U2", "M8[s]", "O", "i8")
        with np.errstate(all="ignore"), suppress(ValueError, TypeError, OverflowError):
            arrays[name] = array.real.astype(random.choice(kinds))
    elif how == 3:
        shapes = (array.reshape(-1), array[None], array[..., None], array.reshape(-1)[:0], array.T)
        arrays[name] = random.choice(shapes)
    elif how == 4 and array.ndim:
        arrays[name] = random.choice((array[:-1], array[::-1], np.repeat(array, 2, 0)))
    elif array.size and array.dtype.kind in "iufb":
        number = random.choice(numbers)
        with np.errstate(all="ignore"):
            wide = array.astype(float) if isinstance(number, float) else array.astype(np.int64)
        flat = wide.reshape(-1).copy()
        if how < 7:
            flat[random.randrange(flat.size)] = number
        else:
            flat[:] = number
        kind = array.dtype if random.random() < 0.5 else flat.dtype
        with np.errstate(all="ignore"):
            arrays[name] = flat.astype(kind).reshape(array.shape)


VALUES: tuple[Any, ...] = (
    None, 0, -1, 1e300, float("inf"), float("nan"), (1 << 63) - 1, "x", "", b"", b"\xff\0",
    "\x1b[2J", "[]", "{}", "null", "[1]", '["\\udcff"]', '{"type":"reading"}', "9" * 400,
    "[" * 3000,
)  # fmt: skip
STRANGE = (
    "CREATE TRIGGER t AFTER UPDATE ON sessions BEGIN DELETE FROM sketches; END",
    "CREATE VIEW v AS SELECT * FROM sessions",
    "PRAGMA user_version = -1",
    "PRAGMA user_version = 1",
    "PRAGMA user_version = 99",
    "PRAGMA application_id = 0",
    "DROP TABLE readings",
    "UPDATE sqlite_master SET sql = 'x'",
    "UPDATE sqlite_master SET rootpage = 3",
)


def sqlite_of(random: Random, data: bytes, folder: Path) -> bytes:
    """Values of a row of any type, rows that are gone or lead nowhere; or the bytes."""
    if random.random() < 0.25:
        return bytes_of(random, data)
    path = folder / "mutated.db"
    path.write_bytes(data)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        run = connection.execute
        for pragma in ("journal_mode = OFF", "foreign_keys = OFF", "writable_schema = ON"):
            run(f"PRAGMA {pragma}").fetchall()
        for _ in range(random.choice((1, 1, 2, 4))):
            table = random.choice(("speakers", "sessions", "sketches", "readings", "alerts"))
            with suppress(sqlite3.Error, IndexError):  # the table may be gone
                column = random.choice([row[1] for row in run(f"PRAGMA table_info({table})")])
                number = random.choice([row[0] for row in run(f"SELECT rowid FROM {table}")])
                where, how = f"rowid = {number}", random.randrange(10)
                if how == 0:
                    run(random.choice(STRANGE))
                elif how == 1:
                    run(f"DELETE FROM {table} WHERE {where}")
                elif how == 2:
                    found = run(f"SELECT {column} FROM {table} WHERE {where}").fetchone()
                    changed = sqlite_value(random, found[0])
                    run(f"UPDATE {table} SET {column} = ? WHERE {where}", (changed,))
                else:
                    run(f"UPDATE {table} SET {column} = ?", (random.choice(VALUES),))
    return path.read_bytes()


def sqlite_value(random: Random, value: Any) -> Any:
    """A value of a row changed: its bytes, its JSON, or another one."""
    if isinstance(value, bytes):
        return bytes_of(random, value)
    if isinstance(value, str) and value[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):  # broken by the round before
            return json_of(random, json.loads(value)).encode(errors="replace").decode()
    return random.choice(VALUES)
