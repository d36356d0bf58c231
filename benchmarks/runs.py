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
    ResourceUse,
    format_number,
    format_speedup,
    memory_mb,
    run_in_new_process,
    run_program,
    wait_for_exit,
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


def write_hours(speech: Path, target: Path, hours: float) -> None:
    """Write the recordings of real readers one after the other, as one FLAC at 16 kHz."""
    samples_left = int(hours * 3600 * 16000)
    with soundfile.SoundFile(target, "w", 16000, 1, "PCM_16", format="FLAC") as file:
        while samples_left:
            for path in sorted(speech.glob("[dtl]*/*/*.opus")):
                for block in soundfile.blocks(path, 60 * 16000, dtype="float32"):
                    file.write(block[:samples_left])
                    samples_left -= min(samples_left, len(block))


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
        write_hours(speech, flac, hours)
        ours = [python, "-m", "monitor", "replay", flac, "--features", features, "--jsonl", run]
        uses, peers = (
            list[ResourceUse](),
            {m: list[ResourceUse]() for m in (1, 10, 60) if features == "f0"},
        )
        for _ in range(runs):
            run.unlink(missing_ok=True)
            run_options = {"cores": core, "environment": ONE_THREAD, "every_seconds": 0.5}
            uses.append(run_program(ours, **run_options))  # type: ignore[arg-type]
            for minutes, peer_uses in peers.items():
                peer = [sys.executable, "-c", PEER, flac, str(minutes)]
                peer_uses.append(run_program(peer, **run_options))  # type: ignore[arg-type]
        readings = run.read_bytes().count(b'"type":"reading"')
    processor_seconds, memory = (
        median(use.processor_seconds for use in uses),
        uses[-1].memory_samples_mb or [0.0],
    )
    tenth = memory[len(memory) // 10 : len(memory) // 5] or memory
    page.figure(
        f"`monitor replay` of {hours:g} h of FLAC, {features}, on core {core}",
        f"{processor_seconds:.1f} s of processor, "
        f"{format_number(3600 * hours / processor_seconds)} times real time a core; "
        f"{format_number(readings)} readings; {median(tenth):.0f} MB after a tenth, "
        f"{memory[-1]:.0f} at the end, {uses[-1].peak_mb:.0f} at most",
    )
    for minutes, peer_uses in peers.items():
        processor_seconds = median(use.processor_seconds for use in peer_uses)
        slower = format_speedup(
            [p.processor_seconds for p in peer_uses], [m.processor_seconds for m in uses]
        )
        page.figure(
            f"soundfile + soxr + torch-yin alone on {hours:g} h, in blocks of {minutes} min",
            f"{processor_seconds:.1f} s; the whole replay {slower}; "
            f"{max(t.peak_mb for t in peer_uses):.0f} MB",
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

    def measure_first_reading() -> float:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | ONE_THREAD
        ) as process:
            assert process.stdout is not None
            assert any(b'"type":"reading"' in line for line in process.stdout), command
            process.kill()
            return wait_for_exit(process).processor_seconds

    def measure_command(*words: str) -> float:
        return run_program(
            [python, *words], environment=ONE_THREAD, folder=recording.parent
        ).processor_seconds

    turns = [
        (
            measure_first_reading(),
            measure_command("-c", "import numpy"),
            measure_command("-m", "monitor", "replay", "--help"),
        )
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
        populations = []
        for jobs in (1, cores()):
            target = Path(folder) / f"{jobs}.npz"
            options = ["--features", features, "--seconds", f"{seconds:g}", "--jobs", str(jobs)]
            use = run_program([*MONITOR, "enrol", manifest, "-o", target, *options])
            populations.append(Population.load(target))
            audio = sum(note.end_seconds for s in populations[-1].speakers for note in s.sources)
            page.figure(
                f"`monitor enrol` of {readers} readers from audio, {features}, --jobs {jobs}",
                f"{audio / 60:.0f} min in {use.processor_seconds:.0f} s of processor, "
                f"{audio / use.processor_seconds:.0f} times real time a core, "
                f"{audio / use.wall_seconds:.0f} by the clock",
            )
    one, other = (each.features for each in populations)
    same = all(np.array_equal(one[name].slices, other[name].slices) for name in one)
    page.note(f"the templates are {'the same' if same else 'NOT the same'}")


@benchmark()
def hours(page: Page, speech: Path, *, hours: tuple[float, ...] = (0.5, 1.5)) -> None:
    """How much processor time, memory and disk space does an hour of audio need?"""
    with tempfile.TemporaryDirectory() as name:
        rows = [_measure_hours(speech, each, Path(name) / f"{each:g}") for each in hours]
    first, last = (np.array([*row.values()]) for row in (rows[0], rows[-1]))
    slope = dict(zip(rows[0], ((last - first) / (last[0] - first[0])).tolist(), strict=True))
    page.table("what | an hour of audio takes", _create_rows(slope, rows[-1]["most_mb"]))


def _create_rows(slope: dict[str, float], most_mb: float) -> Iterator[list[str]]:
    enrolment = f"{slope['hear']:.0f} s of processor"
    replay = f"{slope['replay']:.1f} s of processor"
    yield ["`monitor enrol --frames`, one process", f"{enrolment}, {most_mb:.0f} MB at most"]
    yield ["its frames, on disk", f"{slope['frames_mb']:.1f} MB"]
    memory = f"{slope['records_mb']:.1f} MB of records; {slope['replay_mb']:.0f} MB of memory"
    yield ["`monitor replay` of frames, a reading a second, evidence, records, ledger",
           f"{replay}; {memory}"]  # fmt: skip
    yield ["a ledger, a reading every 10 s", f"{slope['ledger_mb']:.2f} MB"]
    yield ["frames in memory, as `calibrate` and `score` hold them", f"{slope['held_mb']:.1f} MB"]


def _measure_hours(speech: Path, hours: float, folder: Path) -> dict[str, float]:
    """Return the cost of this many hours, from links to recordings, repeated as needed."""
    paths = sorted(p for p in speech.rglob("*.*") if p.suffix in (".flac", ".opus", ".wav"))
    seconds, count, corpus = 0.0, 0, folder / "corpus"
    while seconds < 3600 * hours:
        path = paths[count % len(paths)]
        turn = f"{count // len(paths)}-{path.relative_to(speech).parts[0]}"
        link = corpus / turn / path.name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path.resolve())
        seconds, count = seconds + soundfile.info(path).duration, count + 1
    frames, ledger, log = folder / "frames", folder / "l.db", folder / "run.jsonl"
    options = ("--features", ",".join(FEATURES))
    people = ("-o", folder / "people.npz", "--frames", frames, "--jobs", "1")
    enrolment_use = run_program([*MONITOR, "enrol", corpus, *people, *options])
    frame_files = sorted(frames.rglob("*.npz"))
    outputs = ("--jsonl", log, "--ledger", ledger, "--watch", Population.reference().names[0])
    config = folder / "config.toml"
    config.write_text("[replay]\nallow-overlap = true\n", encoding="utf-8")
    command = ["--config", config, "replay", *frame_files, *options, *outputs]
    replay_use = run_program([*MONITOR, *map(str, command)], allowed=(0, 4))
    return {
        "hours": seconds / 3600,
        "hear": enrolment_use.processor_seconds,
        "most_mb": enrolment_use.peak_mb,
        "frames_mb": sum(path.stat().st_size for path in frame_files) / 1e6,
        "replay": replay_use.processor_seconds,
        "replay_mb": replay_use.peak_mb,
        "records_mb": log.stat().st_size / 1e6,
        "ledger_mb": ledger.stat().st_size / 1e6,
        "held_mb": run_in_new_process(_measure_frames_mb, frames),
    }


def _measure_frames_mb(frames: Path) -> float:
    before = memory_mb()
    voices, _, _ = collect(find(frames))
    assert voices
    return memory_mb() - before
