"""Which speech there is below a folder, whatever its layout."""

from __future__ import annotations

import os
from pathlib import Path

from monitor.corpus.folders import LAYOUTS, from_folders
from monitor.corpus.recordings import Corpus
from monitor.corpus.tables import from_kaldi, from_manifest
from monitor.errors import CorpusError

__all__ = ["find"]


def find(path: str | os.PathLike[str]) -> Corpus:
    """Find the recordings of a corpus, and who speaks in them.

    Understood, in this order: a manifest (``.csv`` or ``.tsv``, itself or in the folder as
    ``manifest.csv``), a Kaldi data folder (``wav.scp``), LibriSpeech, a folder a speaker.

    Args:
        path: the folder or the manifest.

    Raises:
        CorpusError: nothing is there, or it cannot be told who speaks.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("ann/monday/1.wav", "bob/2.wav"):
        ...         file = Path(folder, name)
        ...         file.parent.mkdir(parents=True)
        ...         file.touch()
        ...     [(recording.speaker, recording.session) for recording in find(folder)]
        [('ann', 'monday'), ('bob', '2')]
    """
    path = Path(path)
    try:
        if path.is_file():
            if path.suffix.lower() in {".csv", ".tsv"}:
                return from_manifest(path)
            raise CorpusError(f"{path.name} is one file; a corpus is {LAYOUTS}")
        if not path.is_dir():
            raise CorpusError(f"{path.name or path} does not exist; check the name")
        path = path if path.name else path.resolve()
        for name in ("manifest.csv", "manifest.tsv"):
            if (path / name).is_file():
                return from_manifest(path / name)
        if (path / "wav.scp").is_file():
            return from_kaldi(path)
        return from_folders(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CorpusError(f"cannot look into {path.name}: {reason}; check the name") from None
