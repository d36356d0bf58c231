"""Which recordings are protected, and where each of them goes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.corpus.finding import find
from monitor.corpus.folders import recordings_below
from monitor.errors import CorpusError, StoreError, UsageError
from monitor.phrases import plural
from monitor.protectors.recording import FORMATS
from monitor.safe_text import file_name
from monitor.sources.registry import is_frames

__all__ = ["Order", "orders"]


@dataclass(frozen=True, slots=True)
class Order:
    """One recording.

    Attributes:
        source, target: files.
        name: of the source within its folder, with slashes.
        speaker: who speaks; None where nobody said.
    """

    source: Path
    target: Path
    name: str
    speaker: str | None


def orders(source: Path, output: Path, *, speaker: str | None, replace: bool) -> Sequence[Order]:
    """Everything that is to be done, and whether it may be done.

    Args:
        source: a recording, or a folder of them at any depth.
        output: a file that ends in .wav or .flac, or a folder.
        speaker: who speaks in all of it; None where the layout of the folder says so, or nobody.
        replace: whether files that are there may be replaced.

    Raises:
        CorpusError: there is no recording.
        UsageError: the output would take the place of a recording, lies among them, two recordings
            would become one file, or the suffix is another.
        StoreError: a file is there and may not be replaced.
    """
    if not source.is_dir():
        if output.is_dir() or output.suffix.lower() not in FORMATS:
            raise UsageError(f"of one recording -o is a file that ends in {' or '.join(FORMATS)}")
        wanted = [Order(source, output, source.name, speaker)]
    else:
        wanted = _of_folder(source, output, speaker)
    targets = {os.path.realpath(order.target) for order in wanted}
    if targets & {os.path.realpath(order.source) for order in wanted}:
        raise UsageError(f"-o {file_name(output)} is the recording itself; name another file")
    there = [order for order in wanted if order.target.exists()]
    if there and not replace:
        count = f" and {plural(len(there) - 1, 'other')}" if len(there) > 1 else ""
        raise StoreError(f"{file_name(there[0].target)}{count} exist already; give --replace")
    return wanted


def _of_folder(root: Path, output: Path, speaker: str | None) -> list[Order]:
    """Those of a folder, with the same names below another."""
    if output.exists() and not output.is_dir():
        raise UsageError(f"of a folder -o is a folder; {file_name(output)} is a file")
    if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(root)):
        raise UsageError("-o lies within the folder that is protected; name one outside of it")
    speakers = {} if speaker is not None else _speakers(root)
    wanted: dict[Path, Order] = {}
    for path in recordings_below(root):
        if is_frames(path):  # they hold no sound
            continue
        name = path.relative_to(root)
        suffix = path.suffix if path.suffix.lower() in FORMATS else ".wav"
        order = Order(
            path, output / name.with_suffix(suffix), name.as_posix(), speaker or speakers.get(path)
        )
        if (other := wanted.setdefault(order.target, order)) is not order:
            raise UsageError(
                f"{other.name} and {order.name} would both become {order.target.name}; rename one"
            )
    if not wanted:
        if any(map(is_frames, recordings_below(root))):
            raise UsageError(
                f"{root.name or root} holds frames, no sound: of those --method laplace:15"
            )
        raise CorpusError(f"no recording in {root.name or root}")
    return list(wanted.values())


def _speakers(root: Path) -> dict[Path, str]:
    """Who speaks in each recording, where the folder says so."""
    try:
        return {recording.path: recording.speaker for recording in find(root)}
    except CorpusError:
        return {}
