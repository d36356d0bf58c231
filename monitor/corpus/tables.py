"""Tables of recordings: manifests, Kaldi's lists and Common Voice."""

from __future__ import annotations

import csv
import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from monitor.corpus.recordings import Corpus, Gathering
from monitor.datasets import unread
from monitor.datasets.opening import text_lines
from monitor.datasets.rows import AS_STATED, Columns, SpeakerCells, refuse_column
from monitor.errors import CorpusError
from monitor.files import plain_cell
from monitor.safe_text import is_printable
from monitor.virtual_files import spelled_path

_TABLES = ("manifest.csv", "manifest.tsv", "wav.scp", "validated.tsv")
"""Tables of recordings and speakers, in lower case; ``validated.tsv`` is Common Voice's."""
_OF_RECORDINGS = {
    *("path", "speaker", "session", "chapter"),
    *("client_id", "sentence", "up_votes", "down_votes"),  # of Common Voice
}
_FLAC = {"--stdout": "c", "--decode": "d", "--silent": "s", "--totally-silent": "s"}


def table_of(path: Path) -> Path | None:
    """Return the table of recordings: the file itself, or one in the folder, or None."""
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


def read_manifest(path: Path, named: Columns = AS_STATED) -> Corpus:
    """Read a table with the columns ``path``, ``speaker`` and perhaps ``session`` or ``chapter``.

    Without these two, each file is a session. Paths are relative to the table. Columns in ``named``
    replace these. In Common Voice the speaker is ``client_id``, and paths are relative to
    ``clips``.
    """
    rows = _open_table(path, strict=True)
    common_voice = _is_common_voice(path)
    usual_speaker = "client_id" if common_voice else "speaker"
    folder = path.parent / "clips" if common_voice else path.parent
    gathering = Gathering(path.parent)
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
                gathering.problem(f"{where}must be a path and a speaker")
                continue
            gathering.add(speaker, session or Path(file).stem, folder / file, where)
    except csv.Error as error:
        raise CorpusError(f"{path.name} is not a table ({error}): save it as UTF-8 CSV") from None
    corpus = gathering.corpus(path.name, f"as {path.name} has them")
    return replace(corpus, attributes=read_speaker_attributes(path)) if common_voice else corpus


def _describe_header(path: Path, separator: str, columns: Sequence[str]) -> str:
    needed = "the columns path and speaker, each once (and perhaps session)"
    if {"client_id", "path"} <= set(columns):
        return f"{path.name} of Common Voice needs the folder clips beside it, or {needed}"
    fault = unread.separator_fault(separator.join(columns), separator)
    return f"{path.name} {fault + ': it ' if fault else ''}needs a first line with {needed}"


def _is_common_voice(path: Path) -> bool:
    if path.suffix.lower() != ".tsv" or not (path.parent / "clips").is_dir():
        return False
    columns = next(iter(text_lines(path)), "").strip().split("\t")
    return {"client_id", "path"} <= set(columns) and "speaker" not in columns


def read_speaker_attributes(corpus: Path) -> dict[str, dict[str, str]]:
    """Read the speakers' attributes from a corpus' table, by column and speaker.

    These are the columns of a manifest with one value for nearly every speaker, or the gender in a
    Kaldi folder with ``spk2gender``. Empty values and speakers with two values in a column are left
    out. A column with more than one such speaker in ten does not describe speakers and is dropped.
    Raises CorpusError if the table cannot be read.
    """
    table = table_of(corpus)
    if table is None:
        return {}
    if table.name.lower() == "wav.scp":
        gender_list = table.parent / "spk2gender"
        pairs = [line.split() for line in full_lines(gender_list)] if gender_list.is_file() else []
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


def read_kaldi(table: Path, files: Mapping[str, Path] | None = None) -> Corpus:
    """Read ``wav.scp`` and ``utt2spk``; every recording is a separate session.

    If given, `files` by utterance replace those of ``wav.scp``.

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
    gathering = Gathering(folder)
    speakers = _read_pairs(folder / "utt2spk", gathering)
    recordings = (
        _read_pairs(table, gathering) if files is None
        else {utterance: str(file.resolve()) for utterance, file in files.items()}
    )  # fmt: skip
    for utterance, command in recordings.items():
        location = f"wav.scp {utterance}: "
        file = _find_flac_input(command) or command
        if file.endswith("|"):
            gathering.problem(
                f"{location}is a command, which is never run (of flac -c -d -s FILE |, FILE is "
                "read); write its output to a file"
            )
        elif file == "-":
            gathering.problem(f"{location}is standard input; write it to a file")
        elif utterance not in speakers:
            gathering.problem(f"{location}has no speaker in utt2spk")
        else:
            # VoicePrivacy's paths are relative to the kit, two folders up
            roots = (folder, Path(), *folder.resolve().parents[:2])
            candidates = (spelled_path(root / file) for root in roots)
            recording = next((path for path in candidates if path.exists()), folder / file)
            gathering.add(speakers[utterance], utterance, recording, location)
    for utterance in speakers:
        if utterance not in recordings:
            gathering.problem(f"utt2spk {utterance} has no line in wav.scp")
    return gathering.corpus(folder.name, "as utt2spk has them")


def _find_flac_input(command: str) -> str | None:
    """Return the file that ``flac -c -d -s FILE |`` decodes; None for any other command."""
    if not command.endswith("|"):
        return None
    try:
        program, *words = shlex.split(command[:-1])
    except ValueError:  # no program, or an unclosed quote
        return None
    options = [word for word in words if word.startswith("-")]
    files = [word for word in words if not word.startswith("-")]
    letters = {letter for word in options for letter in _FLAC.get(word, word[1:])}
    plain = Path(program).name == "flac" and {"c", "d"} <= letters <= {"c", "d", "s"}
    return files[0] if plain and len(files) == 1 else None


def _read_pairs(path: Path, gathering: Gathering) -> dict[str, str]:
    """Read the key and the rest of each line; a repeated key is a problem."""
    pairs: dict[str, str] = {}
    for number, line in enumerate(text_lines(path), 1):
        fields = line.split(maxsplit=1)
        if not fields:
            continue
        where = f"{path.name} line {number}: "
        if len(fields) < 2 or not is_printable(line.strip().replace("\t", " ")):
            gathering.problem(f"{where}must be a name and a value")
        elif fields[0] in pairs:
            gathering.problem(f"{where}{fields[0]} is listed twice")
        else:
            pairs[fields[0]] = fields[1].strip()
    return pairs


def full_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text that are not blank, in NFC."""
    lines = (unicodedata.normalize("NFC", line) for line in text_lines(path))
    return (line for line in lines if line.strip())
