"""What USC's own privacy test says of this codec, beside other systems, on background speakers.

    export MONITOR_ECAPA=DIR OPENBLAS_NUM_THREADS=1
    python -m benchmarks.usc_privacy ../shared/speech/dev-clean CACHE
        [--systems recordings,vocoder,codec:6,usc,usc:15,opus,...] [--each 12] [--tests 100]

Of every reader some utterances are references and others, of another chapter where there are two,
queries. Prints for each system: the cosine of ECAPA's embeddings of the same utterance before and
after (SIM); pocketsphinx's phone error against the transcript; the rank correlation of pitch, as in
the paper, and Pearson's; bits a second; and for each pair of roles the mean rank of the median
reader and of the most exposed 1 %, P(rank <= 1), P(rank <= 5) and MeanD in bits, of one reference
utterance of each reader drawn for each test, as in the paper, and of all of them. Limits are 95 %
over readers. The attacker of these figures is ECAPA as it was published: it knows nothing of any
system. ``monitor attack`` has those who know more.

What was heard is kept in CACHE (embeddings: private), so that another system is added to those that
are there, and a run that was stopped goes on; CACHE/results.json has all figures.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import orjson

from benchmarks.anonymity.excerpts import Excerpt, excerpts
from benchmarks.anonymity.figures import figures
from benchmarks.anonymity.hearing import hear
from benchmarks.anonymity.systems import RECORDINGS
from benchmarks.anonymity.tables import kept_table, rank_table
from monitor.cli.options import progress_over
from monitor.files import atomic_write
from monitor.lab.result_cache import ResultCache

SYSTEMS = "recordings,vocoder,codec:6,usc,usc:50,usc:15,usc:5,opus,mcadams:0.8,mcadams:random"


def main() -> None:
    words = argparse.ArgumentParser(description="USC's privacy test.")
    words.add_argument("speech", type=Path, help="background speakers, with tables of utterances")
    words.add_argument("cache", type=Path, help="a private folder for what was heard")
    words.add_argument("--systems", default=SYSTEMS, help=f"(default {SYSTEMS})")
    words.add_argument("--each", type=int, default=12, help="queries, and references, of a reader")
    words.add_argument("--tests", type=int, default=100, help="L, of each reader (default 100)")
    words.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    asked = words.parse_args()
    chosen = excerpts(asked.speech, asked.each)
    cache = ResultCache(asked.cache / "heard")
    print(described(chosen), flush=True)

    def heard(system: str) -> dict[Excerpt, Any]:
        with progress_over(sum(e.seconds for e in chosen), system, "s") as progress:
            return hear(system, chosen, cache, asked.jobs, progress)

    clear = heard(RECORDINGS)
    rows: dict[str, Any] = {}
    for system in asked.systems.split(","):
        rows[system] = figures(clear, clear if system == RECORDINGS else heard(system), asked.tests)
        with atomic_write(asked.cache / "results.json") as file:
            file.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2))
    for table in (kept_table(rows), rank_table(rows)):
        print(f"\n{table}")


def described(chosen: list[Excerpt]) -> str:
    readers = {each.speaker: each.apart for each in chosen}
    return (
        f"N = {len(readers)} readers, {sum(readers.values())} of them with queries of another "
        f"chapter; {len(chosen)} utterances, {sum(e.seconds for e in chosen) / 60:.1f} min"
    )


if __name__ == "__main__":
    main()
