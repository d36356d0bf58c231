"""Sources of audio or of ready-made frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.sources.base import BaseSource, Chain, Paced, Samples, SplitSource
    from monitor.sources.beside import SideInputSource
    from monitor.sources.file import File
    from monitor.sources.frames import FramesFile, read_frames, write_frames
    from monitor.sources.microphone import AudioQueue, Microphone
    from monitor.sources.people import Diarised, LiveDiarised, PerChannel
    from monitor.sources.pipe import Pipe
    from monitor.sources.registry import open_live_source, open_source, register

__all__ = [
    "AudioQueue",
    "BaseSource",
    "Chain",
    "Diarised",
    "File",
    "FramesFile",
    "LiveDiarised",
    "Microphone",
    "Paced",
    "PerChannel",
    "Pipe",
    "Samples",
    "SideInputSource",
    "SplitSource",
    "open_live_source",
    "open_source",
    "read_frames",
    "register",
    "write_frames",
]

# soundfile is slow to load
__getattr__, __dir__ = lazily(__name__)
