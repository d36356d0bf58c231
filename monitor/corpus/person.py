"""Recordings of one person, whatever their folders are called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from monitor.corpus.folders import recordings_below
from monitor.corpus.gathering import Gathering
from monitor.corpus.recordings import Corpus
from monitor.corpus.tables import table_of
from monitor.errors import CorpusError
from monitor.sources.registry import recording_suffixes

__all__ = ["from_person"]


def from_person(paths: Sequence[Path], speaker: str) -> Corpus:
    """Take all recordings, and those in all folders, as one speaker's.

    Each folder below the one that is given (or, of several paths, below the one they have in
    common) is a session, and so is each recording that lies in none.

    Raises:
        CorpusError: a path is missing or says itself who speaks, or there is no recording.
    """
    files: list[Path] = []
    for path in paths:
        label = path.name or str(path)
        if (table := table_of(path)) is not None:
            where = "" if table == path else f" holds {table.name}, which"
            raise CorpusError(f"{label}{where} says itself who speaks; leave out --speaker")
        if path.is_dir():
            found = recordings_below(path)
            if not found:
                known = ", ".join(sorted(recording_suffixes()))
                raise CorpusError(f"no recording in {label}; recordings end in {known}")
            files += found
        elif path.exists():
            files.append(path)
        else:
            raise CorpusError(f"{label} does not exist; check the name")
    alone = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
    root = alone or Path(os.path.commonpath([path.absolute().parent for path in paths]))
    gathering = Gathering(root)
    for file in files:
        *between, _ = (file if alone else file.absolute()).relative_to(root).parts
        gathering.add(speaker, "/".join(between) or file.stem, file)
    return gathering.corpus(root.name)
