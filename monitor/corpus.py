"""Recordings of speech by speaker and session, in folders and tables.

Understood are folders, manifests, and the data of LibriSpeech, Kaldi, VoicePrivacy, Common Voice,
Hugging Face and lhotse.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import stat
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from monitor.datasets import huggingface, lhotse, unread
from monitor.datasets.opening import check_regular, text_lines, walk
from monitor.datasets.rows import (
    AS_STATED,
    Columns,
    Listing,
    Problems,
    SpeakerCells,
    refuse_column,
)
from monitor.errors import CorpusError, UnnamedSpeakerError, UsageError
from monitor.files import plain_cell
from monitor.phrases import plural, some_of
from monitor.safe_text import (
    LONGEST_NAME,
    as_wav,
    describe_twin,
    file_name,
    find_decimal_twin,
    is_empty_cell,
    is_name,
    is_printable,
    printable,
    spelled,
)
from monitor.sources.registry import recording_suffixes
from monitor.transcripts.choice import SIDECAR, TranscriptChoice
from monitor.virtual_files import Readable, VirtualFile, files_of, spelled_path

__all__ = ["AS_STATED", "Columns", "Corpus", "Recording", "find"]

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
CONTAINERS = frozenset(  # containers of audio that must be converted
    ".m4a .m4b .mp4 .aac .mov .mkv .mka .webm .wma .amr .3gp .avi .ape .wv".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Recording:
    """One file of one speaker, or a part of one."""

    speaker: str
    session: str  # occasion on which it was recorded; only compared within a speaker
    path: Readable
    words: TranscriptChoice = field(default=SIDECAR, kw_only=True)
    """Which transcript goes with it, for features that are made of words."""

    def __post_init__(self) -> None:
        for name in ("speaker", "session"):
            object.__setattr__(self, name, spelled(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Corpus:
    """Recordings in a fixed order, and one line per excluded entry.

    Example:
        >>> corpus = Corpus((Recording("ann", "1", Path("a.wav")),), ())
        >>> corpus.speakers, {name: list(files) for name, files in corpus.sessions("ann").items()}
        (('ann',), {'1': [PosixPath('a.wav')]})
    """

    recordings: tuple[Recording, ...]  # by speaker, session and file
    problems: tuple[str, ...]
    identified_by: str = ""  # what names the speakers, for people; empty for one that was given
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Attributes of a data set's speakers, by column and speaker."""

    @property
    def speakers(self) -> tuple[str, ...]:
        """Every speaker once, in order."""
        return tuple(dict.fromkeys(recording.speaker for recording in self.recordings))

    def sessions(self, speaker: str) -> dict[str, tuple[Readable, ...]]:
        """Return the files of each session of a speaker, in order."""
        sessions: dict[str, tuple[Readable, ...]] = {}
        for recording in self.recordings:
            if recording.speaker == speaker:
                before = sessions.get(recording.session, ())
                sessions[recording.session] = (*before, recording.path)
        return sessions

    def with_words(self, choice: TranscriptChoice) -> Corpus:
        """Return the same recordings, with these words of theirs."""
        if choice.path is not None and len(self.recordings) > 1:
            raise UsageError(
                f"{file_name(choice.path)} is the transcript of one recording, but there are "
                f"{len(self.recordings)}: put NAME{choice.path.suffix} beside each NAME instead"
            )
        recordings = (replace(recording, words=choice) for recording in self.recordings)
        return replace(self, recordings=tuple(recordings))

    def __len__(self) -> int:
        return len(self.recordings)

    def __iter__(self) -> Iterator[Recording]:
        return iter(self.recordings)


def describe_unusable(path: Readable, error: Exception, speaker: str = "") -> str:
    """Describe a file that cannot be used, by its folder and speaker too.

    Example:
        >>> describe_unusable(Path("voices/ann/monday/1.wav"), ValueError("1.wav is empty"), "ann")
        'ann/monday/1.wav is empty'
    """
    message = str(error)
    if not message.startswith(file_name(path.name)):
        return message
    folder = "" if isinstance(path, VirtualFile) else printable(path.parent.name)
    return "/".join([*dict.fromkeys(filter(None, (speaker, folder))), message])


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sorting key that puts 9 before 10."""
    parts = re.split(r"([0-9]+)", text)
    return (
        *((0, int(part), "") if i % 2 else (1, 0, part) for i, part in enumerate(parts) if part),
        (-1, 0, text),
    )


class _Gathering:
    """Collector of recordings, and of problems with each, named relative to a root folder."""

    def __init__(self, root: Path, problems: Problems | None = None) -> None:
        self._root = root
        self._recordings: list[Recording] = []
        self._speaker_of: dict[str | VirtualFile, str] = {}
        self._problems = Problems() if problems is None else problems
        self.problem = self._problems.append

    def add(self, speaker: str, session: str, path: Readable, where: str = "") -> None:
        """Take a recording, unless something speaks against it; messages begin with ``where``."""
        if where and is_empty_cell(speaker):  # of a table: a folder may have any name
            self.problem(f"{where}has no speaker ({speaker.strip() or 'empty'})")
            return
        name = self.name(path)
        for role, label in (("speaker", speaker), ("session", session)):
            if not is_name(label):  # nor would the store be read again
                long = label.strip() and is_printable(label)
                reason = f"longer than {LONGEST_NAME} characters" if long else "cannot be printed"
                defect = f"{label[:20]!a}... is" if long else f"{label!a}"
                self.problem(f"{where}{name}: the {role}'s name {defect} {reason}")
                return
        speaker = spelled(speaker)
        if isinstance(path, Path):
            path = spelled_path(path)
        real_path = path if isinstance(path, VirtualFile) else os.path.realpath(path)
        defects = (_find_defect(file, self.name(file)) for file in files_of(path))
        unusable = next(filter(None, defects), None)
        if unusable is not None:
            self.problem(f"{where}{name} {unusable}")
        elif first_speaker := self._speaker_of.get(real_path):
            twice = first_speaker == speaker
            conflict = "twice" if twice else f"for {first_speaker} and for {speaker}"
            self.problem(f"{where}{name} is listed {conflict}")
        else:
            self._speaker_of[real_path] = speaker
            self._recordings.append(Recording(speaker, session, path))

    def name(self, path: Readable) -> str:
        """Return the name of a file for messages."""
        if isinstance(path, VirtualFile):
            return path.name
        inside = path.is_relative_to(self._root)
        return path.relative_to(self._root).as_posix() if inside else path.name

    def corpus(self, layout: str, identified_by: str = "") -> Corpus:
        """Return everything, in natural order; ``layout`` is what names the recordings."""
        problems = tuple(self._problems)
        if not self._recordings:
            reason = f": {problems[0]}" if problems else ""
            raise CorpusError(f"{layout} names no recording that can be used{reason}")
        names = dict.fromkeys(recording.speaker for recording in self._recordings)
        if twin := find_decimal_twin(names):
            raise CorpusError(f"{layout}: {describe_twin(twin)}")
        order = sorted(
            self._recordings,
            key=lambda r: (natural(r.speaker), natural(r.session), natural(_sorting_name(r.path))),
        )
        return Corpus(tuple(order), problems, identified_by)


def _sorting_name(path: Readable) -> str:
    return path.name if isinstance(path, VirtualFile) else path.as_posix()


def _find_defect(path: Path, name: str) -> str | None:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # too long, or with a null character
        return "is missing"
    if not stat.S_ISREG(mode):
        return "is a folder, a pipe or a device: use a file"
    if not os.access(path, os.R_OK):
        return "cannot be read (permission denied)"
    if path.suffix.lower() in CONTAINERS:
        return f"is not supported: convert it with {as_wav(name)}"
    return None


def find(
    *paths: str | os.PathLike[str], speaker: str | None = None, columns: Columns = AS_STATED
) -> Corpus:
    """Find the recordings of a corpus and their speakers.

    Layouts are tried in this order: a manifest (``.csv`` or ``.tsv``, or a folder with
    ``manifest.csv``), Kaldi (``wav.scp``), Common Voice (``validated.tsv``), lhotse manifests,
    Hugging Face (Parquet, or audio with metadata), LibriSpeech. The last layout is one folder per
    speaker. A folder with any other table of recordings is refused. Folders with names of splits
    (``train``) or of audio (``clips``) are refused as well.

    With a ``speaker``, all recordings belong to that speaker, in any number of files and folders.
    Each sub-folder, or otherwise each file, is a session.

    Args:
        *paths: the corpus, or any number of recordings and folders of a ``speaker``.
        speaker: speaker of all recordings.
        columns: columns of a table or data set, if their names are not the usual ones.

    Raises:
        CorpusError: no recordings were found, or a column is missing.
        UsageError: a speaker and columns are given, or pyarrow is missing for Parquet.
        UnnamedSpeakerError: the speakers are unknown; give ``speaker``.

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
            return _read_manifest(table, columns)
        files = [] if table is not None else _recordings_without_table(path)
        if columns:
            raise CorpusError(
                f"{path.name or path} has no columns to name: leave out --columns, or give a table "
                "or a data set"
            )
        if table is not None:
            return _read_kaldi(table)
        if path.is_file():
            problem = f"{path.name} is one file without a speaker"
            raise UnnamedSpeakerError(problem, f"a corpus is {LAYOUTS}")
        if not path.is_dir():
            raise CorpusError(f"{path.name or path} does not exist; check the name")
        return _read_folders(path, files)
    except UsageError:  # of the call, not of the files
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
    gathering = _Gathering(root)
    for file in files:
        *between, _ = (file if alone else file.absolute()).relative_to(root).parts
        gathering.add(speaker, "/".join(between) or file.stem, file)
    return gathering.corpus(root.name)


def _recordings_without_table(path: Path) -> list[Path]:
    """List the recordings of a folder; refuse a table in it, or a file that is one."""
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
    gathering = _Gathering(root)

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
        what = f"{root.name or root} has recordings without a speaker"
        raise UnnamedSpeakerError(what, f"it should hold {LAYOUTS}")
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
        f"{name} has no folder named after a speaker, only {some_of([*map(printable, folders)])}: "
        f"{below}{unread.MANIFEST} (--speaker NAME if one person speaks in all of it)"
    )


def recordings_below(root: Path) -> list[Path]:
    """List recordings in natural order, without hidden ones and link loops."""
    suffixes = recording_suffixes() | CONTAINERS
    files = [
        folder / name
        for folder, names in walk(root)
        for name in names
        if Path(name).suffix.lower() in suffixes
    ]
    return sorted(files, key=lambda file: natural(file.as_posix()))


def is_data_set(path: Path) -> bool:
    """Return whether a file or folder is Hugging Face's (Parquet, metadata), or lhotse's."""
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
    """Find a second corpus; the named columns apply only if it is a data set."""
    return find(path, columns=columns if is_data_set(path) else AS_STATED)


def _read_data_set(path: Path, columns: Columns) -> Listing | None:
    """Read a data set from a file or folder; None for anything else."""
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
        return None  # of another table, such as that of `monitor replay --each`
    if not is_parquet and path.is_dir():
        unread.refuse_unread(path, names=[unread.METADATA], read=tables)
    return (huggingface.read_parquet if is_parquet else huggingface.read_metadata)(tables, columns)


def _list_rows(path: Path, listing: Listing) -> Corpus:
    gathering = _Gathering(path if path.is_dir() else path.parent, listing.problems)
    for row in listing.rows:
        gathering.add(row.speaker, row.session, row.path, row.where)
    corpus = gathering.corpus(path.name, listing.identified_by)
    return replace(corpus, attributes=listing.attributes.collect())


_TABLES = ("manifest.csv", "manifest.tsv", "wav.scp", "validated.tsv")
"""Tables of recordings and speakers, in lower case; ``validated.tsv`` is Common Voice's."""
_OF_RECORDINGS = {
    *("path", "speaker", "session", "chapter"),
    *("client_id", "sentence", "up_votes", "down_votes"),  # of Common Voice
}
_FLAC = {"--stdout": "c", "--decode": "d", "--silent": "s", "--totally-silent": "s"}


def table_of(path: Path) -> Path | None:
    """Return the table of recordings, which is the file or is in the folder; or None."""
    if path.suffix.lower() in {".csv", ".tsv"} and path.is_file():
        return path
    if not path.is_dir():
        return None
    names = {entry.name.lower(): entry for entry in sorted(path.iterdir()) if entry.is_file()}
    return next((names[name] for name in _TABLES if name in names), None)


def _open_table(path: Path, *, strict: bool = False) -> csv.DictReader[str]:
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    if _is_common_voice(path):
        return csv.DictReader(text_lines(path), delimiter=separator, quoting=csv.QUOTE_NONE)
    return csv.DictReader(text_lines(path), delimiter=separator, strict=strict)


def _read_manifest(path: Path, named: Columns = AS_STATED) -> Corpus:
    """Read a table with the columns ``path``, ``speaker`` and perhaps ``session``, or ``chapter``.

    Without either each file is a session of its own. Paths are relative to the table. Columns that
    are named stand for these. Common Voice calls the speaker ``client_id``, and its paths are
    relative to ``clips``.
    """
    rows = _open_table(path, strict=True)
    common_voice = _is_common_voice(path)
    usual_speaker = "client_id" if common_voice else "speaker"
    folder = path.parent / "clips" if common_voice else path.parent
    gathering = _Gathering(path.parent)
    try:
        columns = [(name or "").strip().lower() for name in rows.fieldnames or ()]
        rows.fieldnames = columns
        roles = {"audio": named.audio, "speaker": named.speaker, "session": named.session}
        for role, name in roles.items():
            if name is not None and name.lower() not in columns:
                refuse_column(path.name, columns, name, role)
        file_column, speaker_column = named.audio or "path", named.speaker or usual_speaker
        needed = {file_column.lower(), speaker_column.lower()}
        if columns and columns[0].startswith("#"):
            raise CorpusError(f"{path.name} begins with a comment (#): remove it")
        named_columns = [name for name in columns if name]  # a comma may end the line
        if not needed <= set(columns) or len(set(named_columns)) < len(named_columns):
            raise CorpusError(_describe_header(path, rows.reader.dialect.delimiter, columns))
        usual = (named.session.lower(),) if named.session else ("session", "chapter")
        session_column = next((name for name in usual if name in columns), None)
        chosen = (file_column.lower(), speaker_column.lower(), session_column)
        for row in rows:
            where = f"{path.name} line {rows.line_num}: "
            file, speaker, session = (
                plain_cell(row[column] or "") if column else "" for column in chosen
            )
            if not file.strip() or not is_printable(file) or any(row.get(None) or ()):
                gathering.problem(f"{where}is not a path and a speaker")
                continue
            gathering.add(speaker, session or Path(file).stem, folder / file, where)
    except csv.Error as error:
        raise CorpusError(f"{path.name} is not a table ({error}): save it as UTF-8 CSV") from None
    corpus = gathering.corpus(path.name, f"as {path.name} has them")
    return replace(corpus, attributes=read_speaker_attributes(path)) if common_voice else corpus


def _describe_header(path: Path, separator: str, columns: Sequence[str]) -> str:
    """Describe a table without the columns path and speaker, and what to write."""
    needed = "the columns path and speaker, each once (and perhaps session)"
    if {"client_id", "path"} <= set(columns):
        return f"{path.name} of Common Voice needs the folder clips beside it, or {needed}"
    fault = unread.separator_fault(separator.join(columns), separator)
    return f"{path.name} {fault + ': it ' if fault else ''}needs a first line with {needed}"


def _is_common_voice(path: Path) -> bool:
    """Return whether a table is Common Voice's, by its columns and the folder ``clips``."""
    if path.suffix.lower() != ".tsv" or not (path.parent / "clips").is_dir():
        return False
    columns = next(iter(text_lines(path)), "").strip().split("\t")
    return {"client_id", "path"} <= set(columns) and "speaker" not in columns


def read_speaker_attributes(corpus: Path) -> dict[str, dict[str, str]]:
    """Read the speakers' attributes from a corpus' table, by column and speaker.

    These are the columns of a manifest with one value for nearly every speaker, or the gender in a
    Kaldi folder with ``spk2gender``. Empty values and speakers with two values in a column are left
    out. A column with more than one such speaker in ten does not describe speakers and is dropped.

    Raises:
        CorpusError: the table cannot be read.
    """
    table = table_of(corpus)
    if table is None:
        return {}
    if table.name.lower() == "wav.scp":
        gender_list = table.parent / "spk2gender"
        pairs = [line.split() for line in _lines(gender_list)] if gender_list.is_file() else []
        return {"gender": dict(pair for pair in pairs if len(pair) == 2)} if pairs else {}
    attributes = SpeakerCells()
    speaker_column = "client_id" if _is_common_voice(table) else "speaker"
    for row in _open_table(table):
        plain = {name.strip(): plain_cell(cell or "").strip() for name, cell in row.items() if name}
        names = (content for name, content in plain.items() if name.lower() == speaker_column)
        speaker = next(names, "")
        cells = {name: text for name, text in plain.items() if name.lower() not in _OF_RECORDINGS}
        attributes.add(speaker, cells)
    return attributes.collect()


def _read_kaldi(table: Path) -> Corpus:
    """Read ``wav.scp`` and ``utt2spk``; every recording is a separate session.

    Paths are relative to the folder, otherwise to the current one as in Kaldi, otherwise to one of
    the two folders above. Commands (lines that end in ``|``) are never run, but the FILE of ``flac
    -c -d -s FILE |`` is read.
    """
    folder = table.parent
    if (folder / "segments").exists():
        raise CorpusError(
            f"{folder.name} has segments, which are not supported: use one file per utterance"
        )
    if not (folder / "utt2spk").is_file():
        raise CorpusError(f"{folder.name} has wav.scp but no utt2spk; add it")
    gathering = _Gathering(folder)
    speakers = _read_pairs(folder / "utt2spk", gathering)
    recordings = _read_pairs(table, gathering)
    for utterance, command in recordings.items():
        location = f"wav.scp {utterance}: "
        file = _find_flac_input(command) or command
        if file.endswith("|"):
            gathering.problem(
                f"{location}is a command, which is never run (flac -c -d -s FILE | alone is read "
                "without it); write its output to a file"
            )
        elif file == "-":
            gathering.problem(f"{location}is standard input; write it to a file")
        elif utterance not in speakers:
            gathering.problem(f"{location}has no speaker in utt2spk")
        else:
            # VoicePrivacy's are relative to the kit, two folders up
            roots = (folder, Path(), *folder.resolve().parents[:2])
            candidates = (spelled_path(root / file) for root in roots)
            recording = next((path for path in candidates if path.exists()), folder / file)
            gathering.add(speakers[utterance], utterance, recording, location)
    for utterance in speakers:
        if utterance not in recordings:
            gathering.problem(f"utt2spk {utterance}: has no line in wav.scp")
    return gathering.corpus(folder.name, "as utt2spk has them")


def _find_flac_input(command: str) -> str | None:
    """Return the file that ``flac -c -d -s FILE |`` decodes; None for any other command."""
    if not command.endswith("|"):
        return None
    try:
        program, *words = shlex.split(command[:-1])
    except ValueError:  # no program, or a quote without its other
        return None
    options = [word for word in words if word.startswith("-")]
    files = [word for word in words if not word.startswith("-")]
    letters = {letter for word in options for letter in _FLAC.get(word, word[1:])}
    plain = Path(program).name == "flac" and {"c", "d"} <= letters <= {"c", "d", "s"}
    return files[0] if plain and len(files) == 1 else None


def _read_pairs(path: Path, gathering: _Gathering) -> dict[str, str]:
    """Read key and rest of each line; a key that comes again is a problem."""
    pairs: dict[str, str] = {}
    for number, line in enumerate(text_lines(path), 1):
        fields = line.split(maxsplit=1)
        if not fields:
            continue
        where = f"{path.name} line {number}: "
        if len(fields) < 2 or not is_printable(line.strip().replace("\t", " ")):
            gathering.problem(f"{where}is not a name and a value")
        elif fields[0] in pairs:
            gathering.problem(f"{where}{fields[0]} is listed twice")
        else:
            pairs[fields[0]] = fields[1].strip()
    return pairs


def _lines(path: Path) -> Iterator[str]:
    lines = (unicodedata.normalize("NFC", line) for line in text_lines(path))
    return (line for line in lines if line.strip())


# The kits of the challenges of 2020 to 2024 add two lists to Kaldi's ``wav.scp`` and ``utt2spk``.
# ``enrolls`` has one utterance per line, ``trials`` one ``SPEAKER UTTERANCE target|nontarget`` per
# line. They are in one folder (``libri_dev``, with ``trials_f`` and ``trials_m``) or in separate
# folders (``libri_dev_enrolls``, ``libri_dev_trials_f``).

_FOLDER = re.compile(r"(?P<set>.+)_trials(_(all|mixed|[fm](_(all|common))?))?(?P<suffix>_\w+)?")


@dataclass(frozen=True, slots=True)
class TrialLists:
    """Lists of enrolment and trials of a folder."""

    enrolment: frozenset[str] | None  # enrolment utterances, or None without a list
    speakers: tuple[str, ...]  # speakers to compare with, in the order of the lists
    spoken_by: Mapping[str, str]  # of each trial utterance with a target, who that is
    impostors: frozenset[str]  # trial utterances without one
    pairs: int  # comparisons that are listed
    names: tuple[str, ...]  # of the lists of trials

    def trials(self, corpus: Corpus) -> Corpus:
        """Return the recordings that are trials, under the names that the lists have."""
        lists = ", ".join(self.names)
        missing = sorted(self.spoken_by.keys() - {recording.session for recording in corpus})
        problems = [f"{lists}: {utterance} is in no wav.scp here" for utterance in missing]
        trials = [
            replace(recording, speaker=self.spoken_by[recording.session])
            for recording in corpus
            if recording.session in self.spoken_by
        ]
        if not trials:
            raise CorpusError(f"{lists} names no recording that is here")
        order = {name: i for i, name in enumerate(self.speakers)}
        trials.sort(key=lambda recording: order[recording.speaker])
        layout = f"as {lists} {'has' if len(self.names) == 1 else 'have'} them"
        return Corpus(tuple(trials), (*corpus.problems, *problems), layout)

    def notes(self, corpus: Corpus) -> Iterator[str]:
        """Yield one line per kind of unused entry, with the reason."""
        lists = ", ".join(self.names)
        speaker_of = {recording.session: recording.speaker for recording in corpus}
        impostors = sorted({speaker_of[u] for u in self.impostors & speaker_of.keys()})
        if impostors:
            names = f"{', '.join(impostors[:5])}{', ...' if impostors[5:] else ''}"
            yield (
                f"{plural(len(self.impostors), 'utterance')} of "
                f"{plural(len(impostors), 'speaker')} ({names}) have no target in {lists}. They "
                "are impostors without a rank and were left out of the matrix"
            )
        full = (len(self.spoken_by) + len(self.impostors)) * len(self.speakers)
        if self.pairs < full:
            yield (
                f"{lists} list {self.pairs} of {full} comparisons. Ranks need every trial compared "
                f"with all {len(self.speakers)}, so all comparisons were made. To separate the "
                "sexes, use `monitor evaluate --group-by gender`"
            )
        others = speaker_of.keys() - self.spoken_by.keys() - self.impostors
        if others := others - (self.enrolment or frozenset()):
            yield f"{plural(len(others), 'recording')} in no list: left out"


def read_trial_lists(folder: Path) -> TrialLists | None:
    """Read the lists of trials in a folder, or return None."""
    lists = _find_lists(folder, "trials")
    if not lists:
        return None
    spoken_by: dict[str, str] = {}
    pairs: dict[tuple[str, str], None] = {}
    for path in lists:
        for number, line in enumerate(_lines(path), 1):
            match line.split():
                case [speaker, utterance, "target" | "nontarget" as label] if is_printable(
                    f"{speaker} {utterance}"
                ):
                    pairs[speaker, utterance] = None
                case _:
                    raise CorpusError(
                        f"{path.name} line {number} is not SPEAKER UTTERANCE target|nontarget"
                    )
            if label == "target" and spoken_by.setdefault(utterance, speaker) != speaker:
                raise CorpusError(
                    f"{path.name} line {number}: {utterance} is a target of {spoken_by[utterance]} "
                    f"and of {speaker}"
                )
    return TrialLists(
        read_enrolment(folder),
        tuple(dict.fromkeys(speaker for speaker, _ in pairs)),
        spoken_by,
        frozenset(utterance for _, utterance in pairs) - spoken_by.keys(),
        len(pairs),
        tuple(path.name for path in lists),
    )


def read_enrolment(folder: Path) -> frozenset[str] | None:
    """Read the utterances in the ``enrolls`` of a folder; None if there is no such list."""
    lists = _find_lists(folder, "enrolls")
    if not lists:
        return None
    firsts = (line.split()[0] for path in lists for line in _lines(path))
    utterances = frozenset(filter(is_printable, firsts))
    if not utterances:
        raise CorpusError(f"{lists[0].name} of {folder.name} lists no utterance")
    return utterances


def find_enrolment_folder(folder: Path) -> Path | None:
    """Find the folder of enrolment that belongs to one of trials, by VoicePrivacy's names.

    That of ``libri_dev_trials_f_b2`` is ``libri_dev_enrolls_b2``.
    """
    match = _FOLDER.fullmatch(folder.name)
    if match is None:
        return None
    enrolment = folder.parent / f"{match['set']}_enrolls{match['suffix'] or ''}"
    return enrolment if enrolment.is_dir() and read_enrolment(enrolment) else None


def _find_lists(folder: Path, name: str) -> list[Path]:
    """List the files NAME and NAME_... of a Kaldi folder, in order."""
    if not (folder / "wav.scp").is_file():
        return []
    paths = sorted(folder.iterdir())
    return [path for path in paths if re.fullmatch(rf"{name}(_\w+)?", path.name) and path.is_file()]
