"""Where audio, or ready-made frames, come from."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monitor.sources.chain import Chain
    from monitor.sources.file import File
    from monitor.sources.frames import FramesFile
    from monitor.sources.microphone import Microphone
    from monitor.sources.opening import open_recording
    from monitor.sources.paced import Paced
    from monitor.sources.pipe import Pipe

__all__ = ["Chain", "File", "FramesFile", "Microphone", "Paced", "Pipe", "open_recording"]

_HOMES = {
    "Chain": "chain",
    "File": "file",
    "FramesFile": "frames",
    "Microphone": "microphone",
    "Paced": "paced",
    "Pipe": "pipe",
    "open_recording": "opening",
}


def __getattr__(name: str) -> Any:
    """Import a source when it is first asked for: soundfile is slow to load."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
