"""Detects files that are not what their name promises, by their first bytes."""

from __future__ import annotations

HEAD_BYTES = 4096
LFS_POINTER = b"version https://git-lfs"
_BINARY = {
    b"\x1f\x8b": "is compressed (gzip): unpack it",
    b"BZh": "is compressed (bzip2): unpack it",
    b"\xfd7zXZ\0": "is compressed (xz): unpack it",
    b"\x28\xb5\x2f\xfd": "is compressed (zstd): unpack it",
    b"7z\xbc\xaf\x27\x1c": "is a 7-Zip archive: unpack it",
    b"Rar!\x1a\x07": "is a RAR archive: unpack it",
    b"PK\x03\x04": "is a ZIP archive: unpack it",
    b"PK\x05\x06": "is an empty ZIP archive: pack it again",
    b"%PDF-": "is a PDF document: use the original file",
    b"\x89PNG\r\n": "is a picture (PNG): use another file",
    b"\xff\xd8\xff": "is a picture (JPEG): use another file",
    b"GIF8": "is a picture (GIF): use another file",
}
_OFFICE = (b"[Content_Types].xml", b"_rels/", b"opendocument")
_PLACEHOLDERS = {
    LFS_POINTER: "is a Git LFS pointer: run git lfs pull",
    b"<!doctype html": "is a web page (HTML): download the file again",
    b"<html": "is a web page (HTML): download the file again",
}
_MARKUP = {
    b"<?xml": "is XML text: use another file",
    b"{": "is JSON text: use another file",
    b"[": "is JSON text: use another file",
}

ARCHIVES = (".ark", ".scp")
"""Suffixes of Kaldi's archives of vectors, and of lists of their entries."""


def describe_archive(name: str) -> str:
    """Describe an archive of Kaldi by its name, and what to do with it; empty for other names.

    Example:
        >>> describe_archive("xvector.scp")
        'has vectors without times: use monitor evaluate --trials FILE --enrolment FILE'
    """
    if name.lower() == "wav.scp":
        return "is read with utt2spk: give their folder"
    if not name.lower().endswith(ARCHIVES):
        return ""
    return "has vectors without times: use monitor evaluate --trials FILE --enrolment FILE"


def describe_foreign(head: bytes, *, markup: bool = False) -> str:
    """Describe the content of a file that is neither a recording nor a table, and what to do.

    ``head`` are the first bytes of the file; with ``markup``, JSON and XML are foreign as well.
    Returns the message after the file's name; empty if the content is unknown.
    """
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:32].lower()
    if head.startswith(b"PK") and any(mark in head[:100] for mark in _OFFICE):
        return "is a spreadsheet or a document: save it as CSV or text"
    if head.startswith(b"PK") and b".npy" in head[:200]:
        return "is a NumPy archive (.npz): use another file"
    for magic, words in _BINARY.items():
        if head.startswith(magic):
            return words
    texts = _PLACEHOLDERS | _MARKUP if markup and b"\0" not in head else _PLACEHOLDERS
    return next((words for magic, words in texts.items() if start.startswith(magic)), "")
