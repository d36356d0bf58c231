"""Hash what the program does, before and after a change that should change nothing.

``python -m tests.oracle BEFORE.json`` runs the commands on `tests/clips`, simulated speakers and
buzzes, and writes a hash of all that each printed and wrote (records, arrays, tables, pages), less
times of day and the folder that it ran in. ``python -m tests.oracle AFTER.json BEFORE.json`` lists
the results that differ, and exits with 1 where any does. It takes a minute.
"""

import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.simulation import Simulation, write_corpus
from tests.settings import configured
from tests.sounds import RATE, synthetic

CLIPS = Path(__file__).parent / "clips"
DEMO = Path(__file__).parents[1] / "monitor" / "population" / "reference" / "demo.npz"
CLOCK = {"time", "elapsed", "realtime", "took", "wall", "times_real_time", "lag", "pid", "seed",
         "created", "when", "began", "ended", "started", "version"}  # fmt: skip
TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?|\d{4}-\d\d-\d\d"
    r"|\d+(\.\d+)?(s| s| seconds) (wall|elapsed)|[\d ,.]+ ?(x|times) real ?time"
)


def without_clock(value: object) -> object:
    """A JSON value without what changes from run to run."""
    if isinstance(value, Mapping):
        return {k: without_clock(v) for k, v in value.items() if k not in CLOCK}
    if isinstance(value, list):
        return [without_clock(item) for item in value]
    return TIMES.sub("TIME", value) if isinstance(value, str) else value


def canonical(path: Path, folder: Path) -> bytes:
    """The content of a file, less times and the name of the folder."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            content = {key: arrays[key] for key in sorted(arrays)}
        return b"".join(
            key.encode() + str(array.dtype).encode() + str(array.shape).encode()
            + (scrub(array.tobytes(), folder) if array.dtype.kind in "SUu" else array.tobytes())
            for key, array in content.items()
        )  # fmt: skip
    if path.suffix == ".npy":
        return bytes(np.load(path).tobytes())
    if path.suffix == ".db":
        with sqlite3.connect(path) as database:
            tables = database.execute(
                "select name, sql from sqlite_master order by name"
            ).fetchall()
        return repr(tables).encode()
    if path.suffix in (".json", ".jsonl"):
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        return scrub(json.dumps([without_clock(json.loads(x)) for x in lines]).encode(), folder)
    if path.suffix in (".png", ".pdf"):
        return b"picture"  # its numbers stand in the table or the SVG beside it
    return scrub(path.read_bytes(), folder)


def scrub(data: bytes, folder: Path) -> bytes:
    """Data without times and the folder's name, where they are text."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    text = text.replace(str(folder), "FOLDER").replace(str(CLIPS.parents[1]), "ROOT")
    return TIMES.sub("TIME", text).encode()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def make_inputs(folder: Path) -> None:
    """Recordings, frames and scores that the commands below read."""
    two = np.concatenate([synthetic(20, 120, 0), synthetic(20, 210, 1)])
    soundfile.write(folder / "talk.wav", two, RATE)
    (folder / "talk.rttm").write_text(
        "SPEAKER talk 1 0.0 20.0 <NA> <NA> 1272 <NA> <NA>\n"
        "SPEAKER talk 1 20.0 20.0 <NA> <NA> bob <NA> <NA>\n"
    )
    write_corpus(folder / "people", Simulation(14, 3), 12, 2, 50.0)
    for reader in range(6):
        for day in range(2):
            path = folder / "readers" / f"r{reader}" / f"day{day}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            sound = synthetic(20.0, 90 * 1.12**reader, seed=10 * reader + day)
            soundfile.write(path, np.round(sound * 2**15).astype(np.int16), RATE)
    generator = np.random.default_rng(5)
    labels = np.repeat(np.arange(20), 4)
    matrix = generator.standard_normal((80, 20)) + 3 * (labels[:, None] == np.arange(20))
    np.save(folder / "scores.npy", matrix)
    np.save(folder / "weaker.npy", matrix - 1.5 * (labels[:, None] == np.arange(20)))
    (folder / "labels.txt").write_text("".join(f"s{label:02}\n" for label in labels))
    (folder / "out").mkdir()
    (folder / "cache").mkdir()  # of settings, which are no result


ONE, ALL = CLIPS / "1272/128104.npz", CLIPS / "kerstin/all.npz"
TWO, VOICE = CLIPS / "422/122949.npz", CLIPS / "652/129742.npz"
GRID = ("--lengths", "1,5,20", "--template-lengths", "20", {"replicates": 40}, "--jobs", "1")
SMALL = ({"replicates": 20}, "--jobs", "1")
COMMANDS: list[dict[str, tuple[object, ...]]] = [
    {  # each of a group by itself; a group after the other
        "demo": ("demo", "--speed", "1000000", "-o", "out"),
        "plain": ("replay", ONE),
        "watched": ("replay", ONE, "--watch", "1272"),
        "crowds": ("replay", ALL, "--watch", "1272", "--among", "1e4,1e6", {"bystanders": "3%"}),
        "voice": ("replay", VOICE, "--watch", "652", "--features", "voice", "--plot", "voice.svg"),
        "steps": ("replay", DEMO, "--watch", "652", {"step": 5}),
        "five": ("replay", "talk.wav", {"step": 1.3}),
        "whole": ("replay", "talk.wav", "--watch", "1272"),
        "note": ("replay", ONE, TWO, "--watch", "1272", {"on-change": "note"}),
        "reset": ("replay", ONE, TWO, {"on-change": "reset"}, "--alert", "bits>1 for 2 s"),
        "split": ("replay", ONE, TWO, {"on-change": "split"}),
        "turns": ("replay", "talk.wav", "--turns", "talk.rttm", "--summary", "turns.csv"),
        "protect": ("replay", "talk.wav", "--protect", "mcadams:0.8", {"on-change": "note"}),
        "protect watched": ("replay", "talk.wav", "--watch", "1272", "--protect", "noise:10",
                            {"protect-seed": 3}),
        "alert": ("replay", ALL, "--watch", "1272", "--alert", "bits>0.5", "--warn", "10",
                  "--alert", "closed_set_bits>1 for 5 s", {"template-seconds": 30}),
        "false alarms": ("replay", ONE, "--watch", "1272", "--alert", "bits",
                         "--false-alarms", "5%", {"horizon": 60}),
        "ledger": ("replay", ONE, "--watch", "1272", "--ledger", "me.db"),
        "each": ("replay", ONE, TWO, "--each", "--summary", "each.csv"),
        "enrol": ("enrol", "people", "-o", "us.npz", "--seconds", "20"),
        "protect files": ("protect", "talk.wav", "-o", "safe.wav", "--method", "mcadams:0.8"),
        "scrub": ("protect", "talk.wav", "-o", "cut.wav", "--watch", "1272", "--budget", "3"),
        "evaluate": ("evaluate", "scores.npy", "--labels", "labels.txt", "--figures", "all",
                     "--html", "e.html", "--latex", "e.tex", *SMALL[:1]),
        "evaluate two": ("evaluate", "scores.npy", "weaker.npy", "--labels", "labels.txt",
                         "--json", *SMALL[:1]),
        "validation": ("evaluate", "scores.npy", "--labels", "labels.txt", "--validation",
                       "v.html", *SMALL[:1]),
        "attack": ("attack", "readers", "-o", "tested", "--method", "noise:0", "--features", "f0",
                   "--seconds", "2", "--template", "6", "--trials", "3", "--segments", "1,2",
                   "--jobs", "1", {"seed": 1}),
        "refused": ("replay", "nowhere.wav"),
    },
    {
        "calibrate": ("calibrate", "people", "-o", "us.npz", "--json", *GRID),
        "second session": ("replay", TWO, "--watch", "1272", "--ledger", "me.db"),
        "show": ("ledger", "show", "me.db"),
        "export table": ("show", "watched.jsonl", "-o", "watched.csv"),
        "plot": ("show", "watched.jsonl", "-o", "watched.svg"),
        "cut short": ("replay", "talk.wav", "--part", "3.1-12.5"),
    },
    {
        "own people": ("replay", "people/000003/s1.npz", "-p", "us.npz", "--watch", "000003"),
        "score": ("score", "people", "-o", "scores.npz", "--lengths", "5",
                  "--template-lengths", "20", "--jobs", "1"),
        "audit": ("audit", "people", "-o", "audit.html", "--lengths", "1,3", "--template", "20",
                  *SMALL),
        "label": ("audit", "people", "--card", "-o", "label.md", "--lengths", "1,3",
                  "--template", "20", *SMALL),
        "experiment": ("experiment", "people", "-o", "srd", "--lengths", "1,5",
                       "--template-lengths", "20", *SMALL),
        "forget": ("people", "us.npz", "--forget", "000003"),
    },
    {"evaluate scores": ("evaluate", "scores.npz", "--choose", "f0", *SMALL[:1])},
]  # fmt: skip


def run(label: str, arguments: tuple[object, ...], folder: Path) -> dict[str, object]:
    """Run a command in the folder; its exit status, and a hash of what it printed."""
    log = ("--jsonl", f"{label.replace(' ', '_')}.jsonl")
    logged = arguments[0] == "replay" and "--each" not in arguments
    text = configured((*arguments, *(log if logged else ())), folder / "cache")
    begun = time.perf_counter()
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    environment.pop("MONITOR_ECAPA", None)
    command = [sys.executable, "-m", "monitor", *text]
    root = str(Path(__file__).parents[1])
    environment["PYTHONPATH"] = root
    done = subprocess.run(command, capture_output=True, cwd=folder, env=environment, check=False)
    return {
        "status": done.returncode,
        "stdout": digest(scrub(done.stdout, folder)),
        "stderr": done.stderr.decode()[-400:] if done.returncode not in (0, 3) else "",
        "seconds": round(time.perf_counter() - begun, 1),
    }


def observe() -> dict[str, dict[str, object]]:
    """Run everything; results by command, and a hash of every file that was written."""
    results: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        make_inputs(folder)
        inputs = set(folder.rglob("*"))
        for group in COMMANDS:
            with ThreadPoolExecutor(2) as pool:
                done = list(pool.map(lambda item: run(item[0], item[1], folder), group.items()))
                results |= dict(zip(group, done, strict=True))
        for path in sorted(set(folder.rglob("*")) - inputs):
            if path.is_file() and not {"kept", "cache"} & set(path.parts):
                results[str(path.relative_to(folder))] = {"file": digest(canonical(path, folder))}
    return results


def main() -> int:
    results = observe()
    Path(sys.argv[1]).write_text(json.dumps(results, indent=1))
    for label, result in results.items():
        if result.get("status", 0) not in (0, 3):
            sys.stdout.write(f"{label}: exit {result['status']}: {result['stderr']}\n")
    if len(sys.argv) < 3:
        return 0
    before = json.loads(Path(sys.argv[2]).read_text())
    ignored = {"seconds", "stderr"}
    differing = [
        label
        for label in sorted(before.keys() | results.keys())
        if {k: v for k, v in before.get(label, {}).items() if k not in ignored}
        != {k: v for k, v in results.get(label, {}).items() if k not in ignored}
    ]
    said = [f"differs: {label}" for label in differing] or [f"{len(results)} results equal"]
    sys.stdout.write("\n".join(said) + "\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
