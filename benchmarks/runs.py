"""Cost of whole commands in separate processes, compared with public tools for the first half."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import soundfile

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, chapters
from benchmarks.timing import (
    MONITOR,
    ONE_THREAD,
    Took,
    ended,
    in_own_process,
    memory_mb,
    program,
    ratio,
    told,
)
from monitor.corpus import find
from monitor.jobs import cores
from monitor.population.population import Population
from monitor.training.voices import collect

PEER = """
import sys
import soundfile, soxr, torch, torchyin
torch.set_num_threads(1)
info = soundfile.info(sys.argv[1])
stream = soxr.ResampleStream(info.samplerate, 8000, 1, dtype="float32")
size = int(sys.argv[2]) * 60 * info.samplerate
for block in soundfile.blocks(sys.argv[1], size, dtype="float32"):
    torchyin.estimate(torch.from_numpy(stream.resample_chunk(block)), 8000, 65, 450)
"""
"""Program that only decodes, resamples and computes pitch."""


def hours_of(speech: Path, target: Path, hours: float) -> None:
    """Write the recordings of real readers one after the other, as one FLAC at 16 kHz."""
    left = int(hours * 3600 * 16000)
    with soundfile.SoundFile(target, "w", 16000, 1, "PCM_16", format="FLAC") as file:
        while left:
            for path in sorted(speech.glob("[dtl]*/*/*.opus")):
                for block in soundfile.blocks(path, 60 * 16000, dtype="float32"):
                    file.write(block[:left])
                    left -= min(left, len(block))


@benchmark("speed")
def replay(
    page: Page, speech: Path,
    *, hours: float = 10.0, features: str = "f0", runs: int = 3, core: str = "0",
    python: str = sys.executable,
) -> None:  # fmt: skip
    """What do `monitor replay` of hours of FLAC, and public tools for its first half, cost?

    --python selects the interpreter, for example that of a default installation.
    """
    with tempfile.TemporaryDirectory() as folder:
        flac, run = Path(folder) / "long.flac", Path(folder) / "run.jsonl"
        hours_of(speech, flac, hours)
        ours = [python, "-m", "monitor", "replay", flac, "--features", features, "--jsonl", run]
        mine, peers = list[Took](), {m: list[Took]() for m in (1, 10, 60) if features == "f0"}
        for _ in range(runs):
            run.unlink(missing_ok=True)
            how = {"cores": core, "environment": ONE_THREAD, "every_seconds": 0.5}
            mine.append(program(ours, **how))  # type: ignore[arg-type]
            for minutes, taken in peers.items():
                peer = [sys.executable, "-c", PEER, flac, str(minutes)]
                taken.append(program(peer, **how))  # type: ignore[arg-type]
        readings = run.read_bytes().count(b'"type":"reading"')
    spent, memory = median(took.processor for took in mine), mine[-1].memory_mb or [0.0]
    tenth = memory[len(memory) // 10 : len(memory) // 5] or memory
    page.figure(
        f"`monitor replay` of {hours:g} h of FLAC, {features}, on core {core}",
        f"{spent:.1f} s of processor, {told(3600 * hours / spent)} times real time a core; "
        f"{told(readings)} readings; {median(tenth):.0f} MB after a tenth, {memory[-1]:.0f} at the "
        f"end, {mine[-1].most_mb:.0f} at most",
    )
    for minutes, taken in peers.items():
        spent = median(took.processor for took in taken)
        slower = ratio([p.processor for p in taken], [m.processor for m in mine])
        page.figure(
            f"soundfile + soxr + torch-yin alone on {hours:g} h, in blocks of {minutes} min",
            f"{spent:.1f} s; the whole replay {slower}; {max(t.most_mb for t in taken):.0f} MB",
        )


@benchmark("speed")
def startup(
    page: Page, recording: Path,
    *, runs: int = 9, features: str = "f0", python: str = sys.executable,
) -> None:  # fmt: skip
    """How much processor time does `monitor replay` need until its first reading?

    --python selects the interpreter, and so the environment to measure.
    """
    own = ["--features", features, "--jsonl", "-"]
    command = [python, "-m", "monitor", "replay", str(recording.resolve()), *own]

    def first_reading() -> float:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | ONE_THREAD
        ) as process:
            assert process.stdout is not None
            assert any(b'"type":"reading"' in line for line in process.stdout), command
            process.kill()
            return ended(process).processor

    def whole(*words: str) -> float:
        return program([python, *words], environment=ONE_THREAD, folder=recording.parent).processor

    turns = [
        (first_reading(), whole("-c", "import numpy"), whole("-m", "monitor", "replay", "--help"))
        for _ in range(runs + 1)
    ]
    first, numpy, words = (median(each) for each in zip(*turns[1:], strict=True))
    page.figure(
        f"CPU from the start of `monitor replay` to its first reading, {features} "
        f"(medians of {runs}); of `import numpy` in the same turns; of `monitor replay --help`",
        f"{first:.3f} s, {first / numpy:.1f} times as much as {numpy:.3f} s; {words:.3f} s",
    )


@benchmark("speed")
def enrol(
    page: Page, speech: Path,
    *, readers: int = 40, seconds: float = 30.0, features: str = ",".join(FEATURES),
) -> None:  # fmt: skip
    """How fast is enrolment with one process and one per core, and are the templates equal?"""
    first: dict[str, str] = {}
    for row in chapters(speech):
        first.setdefault(row["speaker"], row["path"])
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "readers.csv"
        with manifest.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["path", "speaker"])
            some = [*first.items()][:readers]
            writer.writerows([(speech / path).resolve(), name] for name, path in some)
        made = []
        for jobs in (1, cores()):
            target = Path(folder) / f"{jobs}.npz"
            how = ["--features", features, "--seconds", f"{seconds:g}", "--jobs", str(jobs)]
            took = program([*MONITOR, "enrol", manifest, "-o", target, *how])
            made.append(Population.load(target))
            audio = sum(note.end_seconds for s in made[-1].speakers for note in s.sources)
            page.figure(
                f"`monitor enrol` of {readers} readers from audio, {features}, --jobs {jobs}",
                f"{audio / 60:.0f} min in {took.processor:.0f} s of processor, "
                f"{audio / took.processor:.0f} times real time a core, "
                f"{audio / took.wall:.0f} by the clock",
            )
    one, other = (each.features for each in made)
    same = all(np.array_equal(one[name].slices, other[name].slices) for name in one)
    page.note(f"the templates are {'the same' if same else 'NOT the same'}")


@benchmark()
def hours(page: Page, speech: Path, *, hours: tuple[float, ...] = (0.5, 1.5)) -> None:
    """How much processor time, memory and disk space does an hour of audio need?"""
    with tempfile.TemporaryDirectory() as name:
        rows = [_hours(speech, each, Path(name) / f"{each:g}") for each in hours]
    first, last = (np.array([*row.values()]) for row in (rows[0], rows[-1]))
    slope = dict(zip(rows[0], ((last - first) / (last[0] - first[0])).tolist(), strict=True))
    page.table("what | an hour of audio takes", _an_hour(slope, rows[-1]["most_mb"]))


def _an_hour(slope: dict[str, float], most_mb: float) -> Iterator[list[str]]:
    hear, replay = f"{slope['hear']:.0f} s of processor", f"{slope['replay']:.1f} s of processor"
    yield ["`monitor enrol --frames`, one process", f"{hear}, {most_mb:.0f} MB at most"]
    yield ["its frames, on disk", f"{slope['frames_mb']:.1f} MB"]
    memory = f"{slope['records_mb']:.1f} MB of records; {slope['replay_mb']:.0f} MB of memory"
    yield ["`monitor replay` of frames, a reading a second, evidence, records, ledger",
           f"{replay}; {memory}"]  # fmt: skip
    yield ["a ledger, a reading every 10 s", f"{slope['ledger_mb']:.2f} MB"]
    yield ["frames in memory, as `calibrate` and `score` hold them", f"{slope['held_mb']:.1f} MB"]


def _hours(speech: Path, hours: float, folder: Path) -> dict[str, float]:
    """Return the cost of this many hours, from links to recordings, repeated as needed."""
    paths = sorted(p for p in speech.rglob("*.*") if p.suffix in (".flac", ".opus", ".wav"))
    seconds, count, corpus = 0.0, 0, folder / "corpus"
    while seconds < 3600 * hours:
        path = paths[count % len(paths)]
        turn = f"{count // len(paths)}-{path.relative_to(speech).parts[0]}"
        place = corpus / turn / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(path.resolve())
        seconds, count = seconds + soundfile.info(path).duration, count + 1
    frames, ledger, log = folder / "frames", folder / "l.db", folder / "run.jsonl"
    how = ("--features", ",".join(FEATURES))
    people = ("-o", folder / "people.npz", "--frames", frames, "--jobs", "1")
    heard = program([*MONITOR, "enrol", corpus, *people, *how])
    kept = sorted(frames.rglob("*.npz"))
    writes = ("--jsonl", log, "--ledger", ledger, "--watch", Population.reference().names[0])
    config = folder / "config.toml"
    config.write_text("[replay]\nallow-overlap = true\n", encoding="utf-8")
    command = ["--config", config, "replay", *kept, *how, *writes]
    replayed = program([*MONITOR, *map(str, command)], allowed=(0, 4))
    return {
        "hours": seconds / 3600,
        "hear": heard.processor,
        "most_mb": heard.most_mb,
        "frames_mb": sum(path.stat().st_size for path in kept) / 1e6,
        "replay": replayed.processor,
        "replay_mb": replayed.most_mb,
        "records_mb": log.stat().st_size / 1e6,
        "ledger_mb": ledger.stat().st_size / 1e6,
        "held_mb": in_own_process(_held_mb, frames),
    }


def _held_mb(frames: Path) -> float:
    before = memory_mb()
    voices, _, _ = collect(find(frames))
    assert voices
    return memory_mb() - before
