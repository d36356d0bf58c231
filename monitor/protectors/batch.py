"""Protects many recordings, by one process or several."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from monitor.errors import SourceError
from monitor.protectors.journal import note
from monitor.protectors.recording import protect
from monitor.protectors.targets import Order
from monitor.sources.fingerprints import file_hash
from monitor.workers import Jobs, each_in_order

__all__ = ["Done", "Manner", "protect_each"]


@dataclass(frozen=True, slots=True)
class Manner:
    """How all of them are protected.

    Attributes:
        method: of `monitor.protectors.registry`.
        seed: of what is drawn at random.
        timeout_seconds: that a program may take for a channel; None for what `Program` gives.
        journal: where each that is made is noted at once; None for nowhere.
    """

    method: str
    seed: int
    timeout_seconds: float | None = None
    journal: Path | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one recording.

    Attributes:
        order: which one.
        there: whether an earlier run had made it.
        seconds: of audio written now.
        clipped: samples that were louder than the file can hold.
        problem: why it was not protected; empty where it was.
    """

    order: Order
    there: bool = False
    seconds: float = 0.0
    clipped: int = 0
    problem: str = ""


def protect_each(
    wanted: Sequence[Order],
    manner: Manner,
    made: Mapping[str, tuple[str, str]] | None = None,
    jobs: Jobs = 1,
) -> Generator[Done, None, None]:
    """Protect every recording, in order; what was made before, and is as it was, stays.

    Args:
        wanted: from `orders`.
        manner: how.
        made: hashes of the source and the target of what an earlier run has made, by name.
        jobs: processes; the files do not depend on it.

    Raises:
        UsageError: the method makes no sense.
        StoreError: a file cannot be written.
        MonitorError: a process was ended from outside.
    """
    before = made or {}
    tasks = [(order, before.get(order.name)) for order in wanted]
    with closing(each_in_order(partial(_protected, manner), tasks, jobs)) as results:
        yield from results


def _protected(manner: Manner, task: tuple[Order, tuple[str, str] | None]) -> Done:
    order, before = task
    try:
        source = file_hash(order.source)
        if before == (source, _hash_of_target(order)):
            return Done(order, there=True)
        made = protect(
            order.source, order.target, manner.method, name=order.name, speaker=order.speaker,
            seed=manner.seed, timeout_seconds=manner.timeout_seconds,
        )  # fmt: skip
        if manner.journal is not None:
            note(manner.journal, order.name, (source, file_hash(order.target)))
        return Done(order, seconds=made.seconds, clipped=made.clipped)
    except SourceError as error:
        return Done(order, problem=str(error))


def _hash_of_target(order: Order) -> str | None:
    return file_hash(order.target) if order.target.is_file() else None
