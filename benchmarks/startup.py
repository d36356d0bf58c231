"""CPU seconds, user and system, from the start of `monitor replay` to its first reading.

    python -m benchmarks.startup RECORDING [--runs 9] [--python PLAIN/bin/python]
        [--before OLDER/bin/python]

What the program has read to the end of the recording's first block is in it. Beside it, in turns,
stands a bare ``import numpy`` with Python's own start: on a busy machine both take longer, and
their ratio tells more. ``--python`` measures an environment of its own; with ``--before`` one with
another version of the program takes turns with it. Each runs in the recording's folder.
The first run writes bytecode and is left out. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path


def environment() -> dict[str, str]:
    """One thread, and bytecode as an installation has it."""
    found = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def whole(command: list[str], folder: Path) -> float:
    """CPU seconds of a command."""
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.DEVNULL, cwd=folder
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def first_reading(command: list[str], folder: Path) -> float:
    """CPU seconds until a command has written its first reading."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        cwd=folder,
    ) as process:
        assert process.stdout is not None
        if not any(b'"type":"reading"' in line for line in process.stdout):
            raise SystemExit(f"no reading from {' '.join(command)}")
        process.kill()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--features", default="f0")
    parser.add_argument(
        "--python", default=sys.executable, help="the environment whose `monitor` is timed"
    )
    parser.add_argument("--before", help="another environment, to compare with")
    arguments = parser.parse_args()
    recording = arguments.recording.resolve()
    folder = recording.parent
    replay = ["-m", "monitor", "replay", str(recording)]
    replay += ["--features", arguments.features, "--jsonl", "-"]
    command, before = [arguments.python, *replay], [arguments.before or arguments.python, *replay]
    numpy = [arguments.python, "-c", "import numpy"]
    teach = [arguments.python, "-m", "monitor", "replay", "--help"]
    _, *turns = [
        (
            first_reading(command, folder),
            whole(numpy, folder),
            whole(teach, folder),
            first_reading(before, folder),
        )
        for _ in range(arguments.runs + 1)
    ]
    taken, beside, helps, earlier = zip(*turns, strict=True)
    compared = {
        "before_cpu_seconds_median": round(statistics.median(earlier), 3),
        "times_before": round(
            statistics.median(a / b for a, b in zip(taken, earlier, strict=True)), 3
        ),
    }
    print(
        json.dumps(
            {
                "features": arguments.features,
                "cpu_seconds_median": round(statistics.median(taken), 3),
                "cpu_seconds": [round(each, 3) for each in sorted(taken)],
                "help_cpu_seconds_median": round(statistics.median(helps), 3),
                "import_numpy_cpu_seconds_median": round(statistics.median(beside), 3),
                "times_import_numpy": round(
                    statistics.median(a / b for a, b in zip(taken, beside, strict=True)), 1
                ),
                **(compared if arguments.before else {}),
            }
        )
    )


if __name__ == "__main__":
    main()
