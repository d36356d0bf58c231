"""`find` lists the recordings of a corpus."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from monitor.corpus.recordings import CONTAINERS, Corpus, Gathering, natural
from monitor.corpus.tables import read_kaldi, read_manifest, table_of
from monitor.corpus.trials import find_lists_folder
from monitor.datasets import huggingface, lhotse, unread
from monitor.datasets.opening import check_regular, walk
from monitor.datasets.rows import AS_STATED, Columns, Listing
from monitor.errors import CorpusError, UnnamedSpeakerError, UsageError
from monitor.phrases import format_names
from monitor.safe_text import printable
from monitor.sources.registry import recording_suffixes

LAYOUTS = (
    "one folder per speaker, LibriSpeech's SPEAKER/CHAPTER/SPEAKER-CHAPTER-UTTERANCE.flac, Common "
    "Voice, manifest.csv (path, speaker), wav.scp with utt2spk, or a data set of Hugging Face or "
    "lhotse"
)
BY_FOLDER = "a folder each"
_NO_SPEAKER = re.compile(
    r"(wavs?([-_0-9].*)?|flacs?|mp3s?|oggs?|clips?|audios?|sounds?|recordings?|speech|voices?|"
    r"utterances?|samples?|files?|data|datasets?|corpus|"
    r"(train|training|dev|development|valid|validation|validated|test|testing|eval|evaluation)"
    r"([-_].*)?)",
    re.IGNORECASE,
)
"""Folder names of data sets, which are not speakers."""


def find(
    *paths: str | os.PathLike[str], speaker: str | None = None, columns: Columns = AS_STATED
) -> Corpus:
    """Find the recordings of a corpus and their speakers.

    Layouts are tried in this order: a manifest (``.csv`` or ``.tsv``, or a folder with
    ``manifest.csv``), Kaldi (``wav.scp``), Common Voice (``validated.tsv``), lhotse manifests,
    Hugging Face (Parquet, or audio with metadata), LibriSpeech. The last layout is one folder per
    speaker. A folder with any other table of recordings is refused. So are folders per speaker with
    names of splits (``train``) or of audio (``clips``).

    If ``speaker`` is given, all recordings belong to this speaker, in any number of files and
    folders. Each sub-folder is a session, and so is each file outside a sub-folder.

    Args:
        *paths: the corpus, or any number of recordings and folders of a ``speaker``.
        speaker: speaker of all recordings.
        columns: names of columns in a table or data set, if they are unusual.

    Raises:
        CorpusError: no recordings were found, or a column is missing.
        UsageError: both a speaker and columns are given, or pyarrow is missing for Parquet.
        UnnamedSpeakerError: the speakers are unknown. Pass ``speaker``.

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
    given_paths = [Path(path) for path in paths]
    named = [path if path.name else path.resolve() for path in given_paths]
    try:
        if speaker is not None:
            if columns:
                raise UsageError("--speaker applies to all recordings: leave out the columns")
            return _read_person(named, speaker)
        if len(named) != 1:
            problem = f"{len(named)} paths without a speaker"
            raise UnnamedSpeakerError(problem, f"a corpus is {LAYOUTS}")
        path = named[0]
        if path.exists() and not path.is_dir():
            check_regular(path)
        listing = _read_data_set(path, columns)
        if listing is not None:
            return _list_rows(path, listing)
        table = table_of(path)
        if table is not None and table.name.lower() != "wav.scp":
            return read_manifest(table, columns)
        files = [] if table is not None else _recordings_without_table(path)
        if columns:
            raise CorpusError(
                f"{path.name or path} has no columns to name: leave out --columns, or give a table "
                "or a data set"
            )
        if table is not None:
            return read_kaldi(table)
        if (lists := find_lists_folder(path)) != path.resolve():
            return read_kaldi(lists / "wav.scp", {file.stem: file for file in files})
        if path.is_file():
            problem = f"{path.name} is one file without a speaker"
            raise UnnamedSpeakerError(problem, f"a corpus is {LAYOUTS}")
        if not path.is_dir():
            raise CorpusError(f"{path.name or path} does not exist; check the name")
        return _read_folders(path, files)
    except UsageError:  # the call is wrong, not the files
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        label = ", ".join(path.name for path in given_paths)
        raise CorpusError(f"cannot open {label} ({reason}): check the name") from None


def _read_person(paths: Sequence[Path], speaker: str) -> Corpus:
    """Read all recordings and folders as one speaker's.

    Each folder below the common folder of the paths is a session, and so is each recording directly
    in it.
    """
    files: list[Path] = []
    for path in paths:
        label = path.name or str(path)
        if path.is_file() and is_data_set(path):
            raise CorpusError(
                f"{label} is a data set: leave out --speaker, use --columns speaker=NAME"
            )
        if (table := table_of(path)) is not None:
            holder = "" if table == path else f" has {table.name}, which"
            raise CorpusError(f"{label}{holder} names the speakers: leave out --speaker")
        if path.is_dir():
            recordings = recordings_below(path)
            if not recordings:
                suffixes = ", ".join(sorted(recording_suffixes()))
                raise CorpusError(f"no recording in {label}: use files that end in {suffixes}")
            files += recordings
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


def _recordings_without_table(path: Path) -> list[Path]:
    if not path.is_dir():
        unread.refuse_file(path)
        return []
    files = recordings_below(path)
    unread.refuse_unread(path, files)
    return files


def _read_folders(root: Path, files: Sequence[Path]) -> Corpus:
    """Find the recordings below a folder.

    If most files are named and placed as in LibriSpeech, at any depth, the chapter is the session.
    Otherwise each folder is a speaker, and each sub-folder, or each file without one, is a session.
    """
    if not files:
        raise CorpusError(f"no recording in {root.name or root}; it should hold {LAYOUTS}")
    gathering = Gathering(root)

    def is_librispeech(file: Path) -> bool:
        match = re.fullmatch(r"([0-9]+)-([0-9]+)-[0-9]+", file.stem)
        return match is not None and match.groups() == (file.parent.parent.name, file.parent.name)

    if 2 * sum(map(is_librispeech, files)) > len(files):
        for file in files:
            if is_librispeech(file):
                gathering.add(file.parent.parent.name, file.parent.name, file)
            else:
                gathering.problem(f"{gathering.name(file)} is not named as in LibriSpeech")
        return gathering.corpus(root.name, "as LibriSpeech names them")
    for file in files:
        speaker, *between = file.relative_to(root).parts[:-1] or ("",)
        if speaker:
            gathering.add(speaker, "/".join(between) or file.stem, file)
        else:
            gathering.problem(f"{file.name} is not in a speaker's folder")
    if all(file.parent == root for file in files):
        problem = f"{root.name or root} has recordings without a speaker"
        raise UnnamedSpeakerError(problem, f"it should hold {LAYOUTS}")
    _refuse_splits(root, files)
    return gathering.corpus(root.name, BY_FOLDER)


def _refuse_splits(root: Path, files: Sequence[Path]) -> None:
    """Refuse folders with names from data sets, such as ``clips`` or ``train``."""
    inside = [file.relative_to(root).parts for file in files if file.parent != root]
    folders = sorted({parts[0] for parts in inside}, key=natural)
    if not all(map(_NO_SPEAKER.fullmatch, folders)):
        return
    name = printable(root.name or root)
    deeper = next((parts[0] for parts in inside if len(parts) > 2), None)
    below = (
        f"give {name}/{printable(deeper)} if each folder in it is a speaker, or " if deeper else ""
    )
    raise CorpusError(
        f"{name} has no folder named after a speaker, only "
        f"{format_names([*map(printable, folders)])}: "
        f"{below}{unread.MANIFEST} (--speaker NAME if one person speaks in all of it)"
    )


def recordings_below(root: Path) -> list[Path]:
    """List recordings in natural order, without hidden files and link loops."""
    suffixes = recording_suffixes() | CONTAINERS
    files = [
        folder / name
        for folder, names in walk(root)
        for name in names
        if Path(name).suffix.lower() in suffixes
    ]
    return sorted(files, key=lambda file: natural(file.as_posix()))


def is_data_set(path: Path) -> bool:
    """Return whether a path is a data set of Hugging Face (Parquet, metadata) or lhotse."""
    if path.is_dir():
        if table_of(path) is not None:
            return False
        return bool(lhotse.find_manifests(path) or huggingface.find_tables(path))
    return (
        path.suffix.lower() == ".parquet"
        or bool(lhotse.kind_of(path))
        or (path.suffix.lower() in (".csv", ".jsonl") and huggingface.is_metadata(path))
    )


def find_others(path: Path, columns: Columns) -> Corpus:
    """Find a second corpus; ``columns`` applies only if it is a data set."""
    return find(path, columns=columns if is_data_set(path) else AS_STATED)


def _read_data_set(path: Path, columns: Columns) -> Listing | None:
    if path.is_file():
        if lhotse.kind_of(path):
            return lhotse.read_manifests([path], columns)
        if not is_data_set(path):
            return None
        tables = [path]
    elif not path.is_dir() or table_of(path) is not None:
        return None
    elif manifests := lhotse.find_manifests(path):
        unread.refuse_unread(path, names=[unread.LHOTSE], read=manifests)
        return lhotse.read_manifests(manifests, columns)
    elif huggingface.is_saved_to_disk(path):
        raise CorpusError(
            f"{path.name or path} was written by save_to_disk: write it with to_parquet instead"
        )
    else:
        tables = huggingface.find_tables(path)
    if not tables:
        return None
    is_parquet = tables[0].suffix.lower() == ".parquet"
    if is_parquet and path.is_dir() and not columns and recordings_below(path):
        return None  # not a data set but a table, such as `monitor replay --each` writes
    if not is_parquet and path.is_dir():
        unread.refuse_unread(path, names=[unread.METADATA], read=tables)
    return (huggingface.read_parquet if is_parquet else huggingface.read_metadata)(tables, columns)


def _list_rows(path: Path, listing: Listing) -> Corpus:
    gathering = Gathering(path if path.is_dir() else path.parent, listing.problems)
    for row in listing.rows:
        gathering.add(row.speaker, row.session, row.path, row.where)
    corpus = gathering.corpus(path.name, listing.identified_by)
    return replace(corpus, attributes=listing.attributes.collect())
