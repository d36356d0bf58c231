"""Corpora laid out in folders: LibriSpeech, or a folder a speaker."""

from __future__ import annotations

import os
import re
from pathlib import Path

from monitor.corpus.gathering import CONTAINERS, Gathering, natural
from monitor.corpus.recordings import Corpus
from monitor.errors import CorpusError, UnnamedSpeakerError
from monitor.sources.registry import recording_suffixes

__all__ = ["BY_FOLDER", "LAYOUTS", "from_folders", "recordings_below"]

LAYOUTS = (
    "manifest.csv with the columns path and speaker; wav.scp with utt2spk; LibriSpeech's "
    "SPEAKER/CHAPTER/SPEAKER-CHAPTER-UTTERANCE.flac; or a folder a speaker"
)
BY_FOLDER = "a folder each"
_LIBRISPEECH = re.compile(r"([0-9]+)-([0-9]+)-[0-9]+")


def from_folders(root: Path) -> Corpus:
    """Find the recordings below a folder.

    Where most files are called and kept as in LibriSpeech, at any depth, the chapter is the
    session. Elsewhere each folder is a speaker, and a sub-folder, or else a file, is a session.

    Raises:
        CorpusError: there is no recording.
        UnnamedSpeakerError: there is nothing to tell by who speaks.
    """
    files = recordings_below(root)
    if not files:
        raise CorpusError(f"no recording in {root.name or root}; it should hold {LAYOUTS}")
    gathering = Gathering(root)
    librispeech = [file for file in files if _is_librispeech(file)]
    if 2 * len(librispeech) > len(files):
        for file in files:
            if _is_librispeech(file):
                gathering.add(file.parent.parent.name, file.parent.name, file)
            else:
                gathering.problem(f"{gathering.name(file)} is not named as in LibriSpeech")
        return gathering.corpus(root.name, "as LibriSpeech names them")
    for file in files:
        speaker, *between = file.relative_to(root).parts[:-1] or ("",)
        if speaker:
            gathering.add(speaker, "/".join(between) or file.stem, file)
        else:
            gathering.problem(f"{file.name} lies outside every speaker's folder")
    if all(file.parent == root for file in files):
        what = f"{root.name or root} holds recordings but does not say whose"
        raise UnnamedSpeakerError(what, f"it should hold {LAYOUTS}")
    return gathering.corpus(root.name, BY_FOLDER)


def _is_librispeech(file: Path) -> bool:
    match = _LIBRISPEECH.fullmatch(file.stem)
    return match is not None and match.groups() == (file.parent.parent.name, file.parent.name)


def recordings_below(root: Path) -> list[Path]:
    """Files that count as recordings, in natural order; hidden ones and link loops left out."""
    suffixes = recording_suffixes() | CONTAINERS
    files: list[Path] = []
    seen: set[str] = set()
    for folder, subfolders, names in os.walk(root, followlinks=True):
        place = os.path.realpath(folder)
        if place in seen:
            subfolders.clear()
            continue
        seen.add(place)
        subfolders[:] = sorted((n for n in subfolders if not n.startswith(".")), key=natural)
        for name in names:
            if not name.startswith(".") and Path(name).suffix.lower() in suffixes:
                files.append(Path(folder, name))
    return sorted(files, key=lambda file: natural(file.as_posix()))
