"""Finds the speech below a folder, whatever its layout."""

from __future__ import annotations

import os
from pathlib import Path

from monitor.corpus.folders import LAYOUTS, from_folders
from monitor.corpus.person import from_person
from monitor.corpus.recordings import Corpus
from monitor.corpus.tables import from_kaldi, from_manifest, table_of
from monitor.errors import CorpusError, UnnamedSpeakerError

__all__ = ["find"]


def find(*paths: str | os.PathLike[str], speaker: str | None = None) -> Corpus:
    """Find the recordings of a corpus, and who speaks in them.

    Understood, in this order: a manifest (``.csv`` or ``.tsv``, itself or in the folder as
    ``manifest.csv``), a Kaldi data folder (``wav.scp``), LibriSpeech, a folder a speaker. With
    ``speaker`` everything is that speaker's, and a sub-folder or else a file is a session.

    Args:
        paths: the folder or the manifest; of one speaker any number of recordings and folders.
        speaker: who speaks in all of it; None where the corpus says so.

    Raises:
        CorpusError: nothing is there.
        UnnamedSpeakerError: it cannot be told who speaks; give ``speaker``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("ann/monday/1.wav", "bob/2.wav"):
        ...         file = Path(folder, name)
        ...         file.parent.mkdir(parents=True)
        ...         file.touch()
        ...     [(recording.speaker, recording.session) for recording in find(folder)]
        ...     [(recording.speaker, recording.session) for recording in find(folder, speaker="me")]
        [('ann', 'monday'), ('bob', '2')]
        [('me', 'ann/monday'), ('me', 'bob')]
    """
    found = [Path(path) for path in paths]
    named = [path if path.name else path.resolve() for path in found]
    try:
        if speaker is not None:
            return from_person(named, speaker)
        if len(named) != 1:
            what = f"{len(named)} paths do not say whose recordings they are"
            raise UnnamedSpeakerError(what, f"a corpus is {LAYOUTS}")
        return _corpus(named[0])
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        label = ", ".join(path.name for path in found)
        raise CorpusError(f"cannot look into {label}: {reason}; check the name") from None


def _corpus(path: Path) -> Corpus:
    """What lies there, where it says itself who speaks."""
    table = table_of(path)
    if table is not None:
        return from_kaldi(path) if table.name == "wav.scp" else from_manifest(table)
    if path.is_file():
        what = f"{path.name} is one file and does not say whose"
        raise UnnamedSpeakerError(what, f"a corpus is {LAYOUTS}")
    if not path.is_dir():
        raise CorpusError(f"{path.name or path} does not exist; check the name")
    return from_folders(path)
