"""Writes frames with noise for many recordings, and what they promise of each speaker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from monitor.cli.progress import progress_over
from monitor.cli.protect_account import write_account
from monitor.cli.saying import say
from monitor.errors import SourceError, StoreError
from monitor.kinds import FeatureSpec
from monitor.protectors.laplace import Laplace
from monitor.protectors.promise import Promise, promises
from monitor.sources.frames import write_frames
from monitor.training.frames_folder import MANIFEST, HearingOrder, write_manifest
from monitor.types import Frames

__all__ = ["Noisy", "write_noisy"]

Noisy: TypeAlias = tuple[Frames, Mapping[str, FeatureSpec]]
"""Frames with noise, and what they look like."""


def write_noisy(
    output: Path,
    wanted: Sequence[HearingOrder],
    make: Callable[[HearingOrder, str], Noisy],
    *,
    mechanism: Laplace,
    noise: str,
    replace: bool,
    problems: list[str],
) -> list[Promise]:
    """Write them all, with a manifest and the account; what is promised of each speaker.

    Args:
        output: a folder.
        wanted: what goes where.
        make: of an order, and the name of what is written, the noisy frames.
        mechanism: the noise.
        noise: what the files are marked with.
        replace: whether what is there may be replaced.
        problems: lines on what was skipped; further ones are added, and all are told.

    Raises:
        StoreError: something is there and may not be replaced, or cannot be written.
        SourceError: nothing could be made.
    """
    if (output / MANIFEST).exists() and not replace:
        raise StoreError(f"{output} holds frames already; give --replace")
    write_manifest(output, wanted)
    skipped = set()
    counts: dict[str, tuple[int, float]] = {}
    with progress_over(len(wanted), "protecting") as step:
        for order in wanted:
            step(order.source.name, 1)
            try:
                made, kept = make(order, order.target.relative_to(output).as_posix())
            except SourceError as error:
                problems.append(str(error))
                skipped.add(order)
                continue
            order.target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_frames(
                order.target,
                made.speech,
                made.tracks,
                {name: spec.size for name, spec in kept.items()},
                {name: spec.frame_seconds for name, spec in kept.items()},
                networks={name: spec.network for name, spec in kept.items()},
                noise=noise,
            )  # no hashes: they would say which recording it was
            count, seconds = counts.get(order.speaker, (0, 0.0))
            of_each = {name: len(made.tracks[name].ticks) for name in kept}
            heard = max(of_each[name] * spec.frame_seconds for name, spec in kept.items())
            counts[order.speaker] = (count + sum(of_each.values()), seconds + heard)
    if not counts:
        raise SourceError("nothing was protected: " + "; ".join(problems[:3]))
    write_manifest(output, [order for order in wanted if order not in skipped])
    spent = promises(counts, mechanism.epsilon)
    write_account(output, mechanism, spent)
    for problem in problems:
        say(f"monitor: skipped: {problem}")
    return spent
