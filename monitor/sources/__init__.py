"""Where audio, or ready-made frames, come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.sources.chain import Chain
    from monitor.sources.file import File
    from monitor.sources.frames import FramesFile, read_frames, write_frames
    from monitor.sources.microphone import Microphone
    from monitor.sources.opening import open_recording
    from monitor.sources.paced import Paced
    from monitor.sources.pipe import Pipe

__all__ = [
    "Chain",
    "File",
    "FramesFile",
    "Microphone",
    "Paced",
    "Pipe",
    "open_recording",
    "read_frames",
    "write_frames",
]

_HOMES = {
    "Chain": "chain",
    "File": "file",
    "FramesFile": "frames",
    "Microphone": "microphone",
    "Paced": "paced",
    "Pipe": "pipe",
    "open_recording": "opening",
    "read_frames": "frames",
    "write_frames": "frames",
}


# soundfile is slow to load
__getattr__, __dir__ = lazily(__name__, _HOMES)
