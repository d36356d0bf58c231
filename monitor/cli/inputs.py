"""Opens what a command is asked to hear, and checks it before the long work."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.errors import SourceError, UsageError
from monitor.safe_text import file_name

if TYPE_CHECKING:
    from monitor.population.population import Population
    from monitor.protocols import Source

__all__ = ["check_model", "load_identity", "open_all"]


def open_all(
    recordings: Sequence[str],
    raw: tuple[int, int, str] | None,
    start: float,
    end: float | None,
) -> list[Source]:
    """Open every recording, and see to it that the options go with them."""
    from monitor.protocols import LiveSource
    from monitor.sources.registry import open_source

    if len(recordings) > 1 and (start or end is not None):
        raise UsageError("--start and --end go with one recording")
    if recordings.count("-") > 1:
        raise UsageError("standard input (-) can be heard once")
    for name in recordings:
        if Path(name).is_dir():
            raise SourceError(
                f"{file_name(name)} is a folder; give a recording, or measure each in it: --each "
                "--summary out.csv"
            )
    if "-" in recordings and sys.stdin.isatty():
        raise UsageError("- is standard input: pipe a WAV into it, or name a recording")
    sources = [
        open_source(name, raw=raw, start_seconds=start or None, end_seconds=end)
        for name in recordings
    ]
    for source in sources:
        if isinstance(source, LiveSource):
            raise UsageError(f"{source.label} is heard live: use monitor listen")
    return sources


def load_identity(features: Iterable[str] | None, recordings: Iterable[str | Path]) -> None:
    """Load the network of a speaker embedding, if it is wanted of any audio.

    Raises:
        UsageError: its extra is not installed, or there is no such folder or file given.
        StoreError: the network cannot be had.
    """
    from monitor.features.registry import MODEL, make

    wanted = [name for name in features or () if name == "identity" or name.startswith(MODEL)]
    if wanted and _any_audio(recordings):
        make(wanted)


def _any_audio(recordings: Iterable[str | Path]) -> bool:
    from monitor.sources.registry import is_frames

    return not all(map(is_frames, recordings))


def check_model(population: Population, store: str | Path | None) -> None:
    """See to it that the network of ``--speaker-model`` is the one that made the templates.

    Raises:
        UsageError: another one did, or none.
    """
    from monitor.features.registry import FEATURES, MODEL

    for name in FEATURES:
        if name.startswith(MODEL) and name not in population.features:
            theirs = [each for each in population.features if each.startswith(MODEL)]
            made = f"templates of another network, {theirs[0]}" if theirs else "no templates of it"
            whose = "the shipped population" if store in (None, "reference") else f"{store}"
            raise UsageError(
                f"--speaker-model is {name}, and {whose} has {made}: enrol everybody with one "
                "network (monitor enroll --speaker-model)"
            )
