"""Refuses a folder with tables and manifests that no reader understands, and gives the remedy.

Otherwise each sub-folder would count as a speaker, but sub-folders of a data set are its splits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path

import orjson

from monitor.contents import describe_archive
from monitor.datasets import huggingface
from monitor.datasets.opening import open_bytes, walk
from monitor.errors import CorpusError
from monitor.safe_text import printable

_PACKED = r"(?:\.(?:gz|bz2|xz|zst|zip|7z))?"
METADATA = re.compile(
    r"(?:metadata|manifest)\.(?:csv|tsv|psv|txt|jsonl?|ndjson|ya?ml|parquet|arrow|feather|xlsx?|ods)"
    + _PACKED
)
_KALDI = re.compile(r"(?:utt2spk|spk2utt|wav\.scp|segments)(?:\.txt)?" + _PACKED)
LHOTSE = re.compile(
    r"(?:.*[_.-])?(?:cuts|recordings|supervisions)(?:[_.-].*)?\.(?:jsonl?|ya?ml)" + _PACKED
)
_COMMON_VOICE = re.compile(r"validated\.tsv" + _PACKED)
NAMED = (METADATA, _KALDI, LHOTSE, _COMMON_VOICE)
_TABLE = re.compile(r".*\.(?:csv|tsv|psv|jsonl?|ndjson|parquet)(?:\.gz)?")
_SUMMARY = "recording,seconds,speech,"
"""Header of the summary that `monitor replay --each` writes, which names recordings too."""
_HEAD_BYTES = 1 << 16
_BREAKS = re.compile(r"""[,;|\t\r\n"']+""")
_SPEAKER = re.compile(r"\b(?:speaker|spk|client)(?:_?id|_?name)?\b", re.IGNORECASE)
_HEADER = re.compile(r"(?=.*\bpath\b).*\b(?:speaker|client_id)\b", re.IGNORECASE)
_LISTED = 2  # minimum recordings in a manifest, if the folder has as many
_FEWEST_LETTERS = 4  # in a name without its suffix
MANIFEST = "write manifest.csv with the header path,speaker,session"
_METADATA_CSV = "the header file_name,speaker_id, separated by commas"
_METADATA_JSON = '{"file_name": "a.wav", "speaker_id": "ann"}'


def refuse_unread(
    root: Path,  # the folder; those below it count too
    recordings: Sequence[Path] = (),  # in it; a table that lists them is refused under any name
    *,
    # patterns of the names of refused tables, in lower case
    names: Sequence[re.Pattern[str]] = NAMED,
    read: Collection[Path] = (),  # the tables that are read
) -> None:
    """Refuse a folder with a table or manifest that is not read.

    Raises CorpusError if there is one; the message names it and what to write.
    """
    finder = _Finder(recordings)
    for folder, files in walk(root):
        for name in files:
            table = _Table(folder / name)
            is_named = any(pattern.fullmatch(name.lower()) for pattern in names)
            if table.path not in read and (
                (is_named and not table.is_ours) or (recordings and finder.lists(table))
            ):
                raise CorpusError(_describe(table, root))


def refuse_file(path: Path) -> None:
    """Refuse a file that is a table or manifest by its name, as `refuse_unread` does."""
    name, table = path.name.lower(), _Table(path)
    if not path.is_file() or table.is_ours:
        return
    if reason := describe_archive(name):
        raise CorpusError(f"{printable(path.name)} {reason}")
    if any(pattern.fullmatch(name) for pattern in NAMED):
        raise CorpusError(_describe(table, path.parent))
    if _TABLE.fullmatch(name):
        raise CorpusError(f"{printable(path.name)} is not a table of recordings: {MANIFEST}")


class _Table:
    """A file that may be a table; its beginning is read once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def head(self) -> bytes:
        """First bytes; CorpusError if they cannot be read."""
        with open_bytes(self.path) as file:
            return file.read(_HEAD_BYTES)

    @property
    def text(self) -> str:
        """First bytes as text; empty if they cannot be read."""
        try:
            return self.head.decode("utf-8-sig", errors="replace")
        except CorpusError:
            return ""

    @property
    def is_ours(self) -> bool:
        """True if this program wrote the file: a summary, a run, or frames."""
        text = self.text
        try:
            value = orjson.loads(text.split("\n", 1)[0])
        except ValueError:
            return text.startswith(_SUMMARY)
        return isinstance(value, dict) and "schema" in value


class _Finder:
    """Finder of tables that list recordings of a folder, by the recordings' names."""

    def __init__(self, recordings: Sequence[Path]) -> None:
        self._names = {path.name for path in recordings}
        sounds = (path for path in recordings if not _TABLE.fullmatch(path.name.lower()))
        self._beside = {path.with_suffix("") for path in sounds}
        folders = {name for path in recordings for name in path.parent.parts}
        self._stems = {
            stem
            for stem in (path.stem for path in recordings)
            if len(stem) >= _FEWEST_LETTERS and not stem.isdecimal() and stem not in folders
        }

    def lists(self, table: _Table) -> bool:
        """Return whether a file is a table of recordings that another program wrote."""
        path = table.path
        if not _TABLE.fullmatch(path.name.lower()) or path.with_suffix("") in self._beside:
            return False  # or a transcript
        if path.suffix.lower() == ".parquet":
            return ",".join([*huggingface.column_names(path)[:3], ""]) != _SUMMARY
        text = table.text.replace("\0", "")  # UTF-16 has null bytes
        words = {word.strip().replace("\\", "/").rpartition("/")[2] for word in _BREAKS.split(text)}
        listed = len(words & self._names)
        if _SPEAKER.search(text.split("\n", 1)[0]):
            listed += len(words & self._stems)
        return listed >= min(_LISTED, len(self._names)) and not table.is_ours


def _describe(table: _Table, root: Path) -> str:
    path = table.path
    name, kind = printable(path.relative_to(root).as_posix()), path.name.lower()
    packed = re.search(rf"{_PACKED}$", kind)
    if packed and packed[0] and not kind.endswith(".jsonl.gz"):
        return f"{name} is compressed: unpack it"
    try:
        head = table.head
    except CorpusError as error:
        return str(error)
    text = table.text
    if not text.strip():
        return f"{name} is empty: write it again, or remove it"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head[:4]:
        return f"{name} is UTF-16 text: save it as UTF-8"
    if kind.startswith("metadata."):
        return f"{name} {_describe_metadata(path, text)}"
    if path.parent != root:
        folder = printable(path.parent.relative_to(root.parent).as_posix())
        return f"{name} is ignored, as it is not directly in {root.name}: give {folder}, or move it"
    if LHOTSE.fullmatch(kind):
        return f"{name} {_describe_lhotse(path)}"
    if _KALDI.fullmatch(kind):
        for archive in sorted(path.parent.iterdir()):
            if reason := describe_archive(archive.name):
                return f"{printable(archive.name)} {reason}"
        return f"{name} needs wav.scp beside it: write one line UTTERANCE FILE per utterance"
    if path.suffix.lower() == ".parquet":
        return f"{name} is beside recordings: read it with --columns speaker=NAME, or move it"
    if _HEADER.match(text) and path.suffix.lower() in (".csv", ".tsv"):
        return f"{name} lists recordings: give {root.name}/{name} itself, or move it"
    return f"{name} lists recordings in an unknown format: {MANIFEST}, or move it"


def _describe_metadata(path: Path, text: str) -> str:
    if path.suffix.lower() in (".json", ".jsonl", ".ndjson"):
        return (
            "is not one JSON object per line with file_name: write metadata.jsonl with lines such "
            f"as {_METADATA_JSON}"
        )
    if path.suffix.lower() != ".csv":
        return f"is not read: write metadata.csv with {_METADATA_CSV}"
    fault = (
        separator_fault(re.split(r"[\r\n]", text, maxsplit=1)[0], ",") or "has no column file_name"
    )
    return f"{fault}: write {_METADATA_CSV}"


def separator_fault(header: str, separator: str) -> str:
    """Describe a header with the wrong separator; empty for other faults."""
    names = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
    used = [name for mark, name in names.items() if mark in header]
    return "" if separator in header or not used else f"has {used[0]} between its columns"


def _describe_lhotse(path: Path) -> str:
    stem = path.name.partition(".")[0]
    if ".jsonl" not in path.name.lower():
        return f"is an old lhotse manifest: run lhotse copy {printable(path.name)} {stem}.jsonl.gz"
    return "does not begin with a cut, recording or supervision: write it again with lhotse"
