"""What a command is asked to hear, checked before the long work and before anything is written."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.errors import UsageError
from monitor.phrases import file_name, plural

if TYPE_CHECKING:
    from monitor.ledger.ledger import HeardPart
    from monitor.population.law import Laws
    from monitor.population.population import Population
    from monitor.protocols import Source
    from monitor.stream.monitor import Monitor

__all__ = [
    "check_computed",
    "check_model",
    "fingerprints",
    "heard",
    "load_identity",
    "offered",
    "open_all",
    "spare",
    "with_laws_of",
]


def open_all(
    recordings: Sequence[str],
    raw: tuple[int, int, str] | None,
    start: float,
    end: float | None,
    channel: int | None,
) -> list[Source]:
    """Open every recording, and see to it that the options go with them."""
    from monitor.protocols import LiveSource
    from monitor.sources.registry import open_source

    if len(recordings) > 1 and (start or end is not None):
        raise UsageError("--start and --end go with one recording")
    if recordings.count("-") > 1:
        raise UsageError("standard input (-) can be heard once")
    if "-" in recordings and sys.stdin.isatty():
        raise UsageError("- is standard input: pipe a WAV into it, or name a recording")
    sources = [
        open_source(name, raw=raw, start_seconds=start or None, end_seconds=end)
        for name in recordings
    ]
    for source in sources:
        if isinstance(source, LiveSource):
            raise UsageError(f"{source.label} is heard live: use monitor listen")
        has = getattr(source, "channels", None)
        if channel is not None and (has is None or channel > has):
            what = "frames, no audio" if has is None else plural(has, "channel")
            raise UsageError(f"--channel {channel}: {source.label} has {what}")
    return sources


def with_laws_of(population: Population, law_file: str | None) -> tuple[Population, Laws | None]:
    """The laws in a file, and the population with the cohort that they were learnt against."""
    from monitor.population.lawfile import load_laws_and_cohort

    if law_file is None:
        return population, None
    laws, cohort = load_laws_and_cohort(Path(law_file))
    return population.with_laws(population.laws, cohort), laws


def offered(sources: Iterable[Source], population: Population) -> tuple[str, ...] | None:
    """The features that ready-made frames bring and the population has; None for audio."""
    given = [features for each in sources if (features := getattr(each, "features", None))]
    names = [name for name in population.features if given and all(name in f for f in given)]
    return tuple(names) or None


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


def check_computed(monitor: Monitor, recordings: Iterable[str | Path]) -> None:
    """Load what is computed of any audio, and compare it with the templates.

    Raises:
        UsageError: it is of another network than they are, or cannot be computed here.
        StoreError: a network cannot be had.
    """
    if _any_audio(recordings):
        monitor.front_end.make()


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


def fingerprints(recordings: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What each recording is known again by; standard input cannot be."""
    from monitor.sources.fingerprints import recording_hashes

    return {name: recording_hashes(name) for name in recordings if name != "-"}


def heard(known: Mapping[str, tuple[str, ...]], start: float, end: float | None) -> list[HeardPart]:
    """The recordings of these fingerprints, as a ledger knows them."""
    from monitor.ledger.ledger import HeardPart

    return [HeardPart(file_name(name), hashes, start, end) for name, hashes in known.items()]


def spare(output: Path, inputs: Sequence[str | None]) -> None:
    """Refuse to write over what is about to be read."""
    for name in inputs:
        path = Path(name) if name else None
        if path is not None and path.exists() and output.exists() and output.samefile(path):
            raise UsageError(f"{output} is read by this run; write to another file")
