"""The long campaign: ``python -m tests.fuzz --inputs 30000``, ``--kills 200``, ``--levels 500``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.fuzz import levels
from tests.fuzz.campaign import failures, inputs_of
from tests.fuzz.kills import kill_replays
from tests.fuzz.readers import READERS


def main() -> int:
    """Run it; 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=0, help="damaged files, in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", choices=[reader.name for reader in READERS])
    parser.add_argument("--kills", type=int, default=0, help="runs killed at random moments")
    parser.add_argument("--levels", type=int, default=0, help="voices at random levels")
    given = parser.parse_args()
    bad = 0
    for reader in READERS:
        if given.reader not in (None, reader.name) or not given.inputs:
            continue
        count = given.inputs if given.reader else inputs_of(given.inputs)[reader.name]
        seen: set[str] = set()
        with tempfile.TemporaryDirectory() as folder:
            for failure in failures(reader, given.seed, count, Path(folder)):
                if failure is None:
                    continue
                bad += 1
                last = failure.what.strip().splitlines()[-1][:200]
                if last in seen:
                    continue
                seen.add(last)
                kept = Path(tempfile.gettempdir()) / failure.seed.replace(":", "-")
                kept.write_bytes(failure.data)
                sys.stdout.write(f"FAILED {failure.seed} (the file: {kept})\n{failure.what}\n")
        sys.stderr.write(f"{reader.name}: {count} inputs, {len(seen)} kinds of failures\n")
    with tempfile.TemporaryDirectory() as folder:
        found = levels.failures(given.levels, given.seed)
        found += kill_replays(Path(folder), Random(given.seed), given.kills) if given.kills else []
    sys.stdout.writelines(f"FAILED seed {given.seed}: {line}\n" for line in found)
    sys.stderr.write(f"{given.levels} levels, {given.kills} kills: {len(found)} failures\n")
    return 1 if bad or found else 0


if __name__ == "__main__":
    sys.exit(main())
