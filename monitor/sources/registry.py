"""Registry of sources by name: `mic:` and other schemes, suffixes of files, and `-`.

Commands, training and corpora open all sources here. Call `register` to add a kind of source.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from monitor.arrays import is_array
from monitor.errors import UsageError
from monitor.protocols import LiveSource, Provenance, Source
from monitor.safe_text import file_name
from monitor.sources.base import file_hash
from monitor.virtual_files import Readable, VirtualFile, readable

# at least two letters, because one letter is a Windows drive
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:")
_INTERVAL = "an interval needs an audio file; leave out the start and the end"
_NOT_FOR_THIS = {
    "raw": "raw is for standard input, not for {name}; give - as the file",
    "start_seconds": _INTERVAL,
    "end_seconds": _INTERVAL,
}


@dataclass(frozen=True, slots=True)
class _Entry:
    """Opener of one scheme or suffix; ``frames`` marks sources without audio."""

    opens: Callable[..., Source]
    options: frozenset[str]
    frames: bool


_ENTRIES: dict[str, _Entry] = {}


def register(
    name: str, opens: Callable[..., Source], *, options: Iterable[str] = (), frames: bool = False
) -> None:
    """Register a kind of source by name, for the commands as well.

    Args:
        name: a scheme (``"ws:"``) or a suffix (``".mka"``). It replaces an existing one.
        opens: function that opens a source. It gets the user's text without the scheme, and the
            options.
        options: keywords of `open_source` that the function accepts. Others are refused.
        frames: whether the source has ready-made frames instead of audio.

    Example:
        >>> from monitor.sources import AudioQueue
        >>> register("radio:", lambda station: AudioQueue(16000, label=station))
        >>> open_source("radio:one").label
        'one'
    """
    if not (_SCHEME.fullmatch(name) or re.fullmatch(r"\.[a-z0-9]+", name) or name == "-"):
        raise UsageError(f"{name!r} must be a scheme like ws: or a suffix like .mka, in lower case")
    _ENTRIES[name] = _Entry(opens, frozenset(options), frames)


def open_source(name: str | os.PathLike[str] | VirtualFile, **options: Any) -> Source:
    """Open a source by name: a recording, frames, ``-``, ``mic:`` or a registered one.

    Args:
        name: ``mic:`` or ``mic:NAME``, another scheme, ``-`` for standard input, or a file. A
            virtual file contains audio.
        **options: ``start_seconds`` and ``end_seconds`` for recordings, ``raw`` as (rate, channels,
            encoding) for standard input, and the arguments of `monitor.sources.Microphone` for
            ``mic:``. None omits an option.

    Raises:
        SourceError: the source cannot be opened.
        UsageError: an option does not fit this kind of source.
    """
    entry, target = _find_entry(name)
    used = {option: value for option, value in options.items() if value is not None}
    for option in (*_NOT_FOR_THIS, *used):
        if option in used and option not in entry.options:
            words = _NOT_FOR_THIS.get(option, "{name} takes no {option}")
            raise UsageError(words.format(name=Path(target or str(name)).name, option=option))
    return entry.opens(name if isinstance(name, VirtualFile) else target, **used)


def open_live_source(name: str, **options: Any) -> LiveSource:
    """Open a live source, like `open_source`; UsageError for a recording."""
    source = open_source(name, **options)
    if not isinstance(source, LiveSource):
        raise UsageError(f"{source.label} is not live: use monitor replay")
    return source


def missing_members(
    source: object,
    needs: Sequence[str] = (
        *("label", "seconds", "stream_info", "labels", "transcripts", "provenance"),
        *("__iter__", "__enter__"),
    ),
) -> str:
    """Report in one line the attributes of a source that an object lacks; empty if complete."""
    if is_array(source):
        return (
            "an array of samples needs its rate: sources.Samples(samples, rate=16_000) is a source"
        )
    missing = [name for name in needs if not hasattr(source, name)]
    if not missing:
        return ""
    advice = "monitor.protocols.Source describes a source"
    if set(missing) & {"labels", "transcripts", "provenance", "__enter__"}:
        advice += "; monitor.sources.BaseSource does most of it"
    return f"a {type(source).__name__} is not a Source: it lacks {', '.join(missing)} ({advice})"


def is_frames(name: str | os.PathLike[str] | VirtualFile) -> bool:
    """Return whether a source with this name has precomputed frames."""
    return _find_entry(name)[0].frames


def recording_hashes(path: str | os.PathLike[str] | VirtualFile) -> tuple[str, ...]:
    """Compute the hashes of a recording; recordings with a common hash are the same.

    The first hash covers the bytes. For audio, a second hash covers rate, channels, frame count and
    the first 30 s of samples at 16 bits. It recognises a WAV copy of a FLAC. Frames also have the
    hashes of their recording if the header contains them. An excerpt has the hashes of its whole
    recording.
    """
    path = readable(path)
    if isinstance(path, Path) and is_frames(path):
        from monitor.sources.frames import header_of

        return (file_hash(path), *header_of(path).hashes)
    from monitor.sources.file import audio_hashes

    origin = path.origin() if isinstance(path, VirtualFile) else None
    return (*audio_hashes(path), *(() if origin is None else audio_hashes(origin)))


def span_of(path: Readable) -> tuple[float, float] | None:
    """Return the part of its recording that a file or its frames cover, in seconds, or None."""
    if isinstance(path, VirtualFile):
        return path.span
    if not is_frames(path):
        return None
    from monitor.sources.frames import header_of

    match header_of(path).settings.get("span"):
        case [float(begin), float(end)]:
            return begin, end
    return None


def provenance_of(
    path: str | os.PathLike[str] | VirtualFile,
    start_seconds: float = 0.0,
    end_seconds: float | None = None,
) -> Provenance:
    """Return the provenance of a file. It reads the file for its hashes."""
    path = readable(path)
    start_seconds, end_seconds = span_of(path) or (start_seconds, end_seconds)
    return Provenance(file_name(path.name), recording_hashes(path), start_seconds, end_seconds)


def recording_suffixes() -> frozenset[str]:
    """Return the suffixes of recordings."""
    return frozenset(name for name in _ENTRIES if name.startswith("."))


def _find_entry(name: str | os.PathLike[str] | VirtualFile) -> tuple[_Entry, str]:
    """Find the entry of a name, and the part of the name that it opens."""
    if isinstance(name, VirtualFile):
        return _ENTRIES[".wav"], name.name
    text = os.fspath(name)
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[0] in _ENTRIES:
        return _ENTRIES[scheme[0]], text[scheme.end() :]
    if text == "-":
        return _ENTRIES[text], text
    # libsndfile detects the format, whatever the name
    return _ENTRIES.get(Path(text).suffix.lower(), _ENTRIES[".wav"]), text


def _load(room: str) -> Any:
    return import_module(f"monitor.sources.{room}")


for _suffix in ("wav", "flac", "ogg", "opus", "mp3", "aiff", "aif", "au", "w64", "caf"):
    register(
        f".{_suffix}",
        lambda path, **options: _load("file").File(path, **options),
        options=("start_seconds", "end_seconds"),
    )
for _suffix in ("npz", "jsonl"):
    register(f".{_suffix}", lambda path: _load("frames").FramesFile(path), frames=True)
register(
    "-", lambda _, **options: _load("pipe").Pipe(sys.stdin.buffer, **options), options=("raw",)
)
register(
    "mic:",
    lambda device, **options: _load("microphone").Microphone(device or None, **options),
    options=("seconds", "channels", "reconnect_seconds", "queue_seconds", "report"),
)
