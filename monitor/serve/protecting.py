"""An anonymiser chosen at the page: which there are, and its sound on the way back."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from monitor.anonymisers.recording import ProtectedBlocks
from monitor.anonymisers.registry import ANONYMISERS
from monitor.errors import MonitorError, UsageError
from monitor.run.parts import Protection
from monitor.types import Block

_SETTINGS = {"noise": "noise:10"}
"""Of those that neither draw a setting nor do without one."""
_NEVER = ("none", "command")
"""No program is run because a browser says so."""


@cache
def choices() -> tuple[str, ...]:
    """The anonymisers that a page may choose among: those that are heard live, and work here."""
    methods = []
    for name in ANONYMISERS:
        if name in _NEVER:
            continue
        for method in (f"{name}:random", name, _SETTINGS.get(name, name)):
            try:
                live = ProtectedBlocks(method).latency_seconds is not None
            except MonitorError:
                continue
            methods += [method] if live else []
            break
    return tuple(methods)


class ProtectedAudioSender:
    """Sender of protected sound, packed as the page's own messages: mono, 16 bits."""

    def __init__(self, send: Callable[[bytes], object]) -> None:
        self._send = send
        self._place = 0

    def __call__(self, block: Block) -> Block:
        """Send the sound of a block, half a second at most in a message, and return what was sent.

        What is measured is what comes back, to the last bit: in noise a rounding may tip a frame
        from speech to silence, and with it a reading.
        """
        mono = np.clip(np.rint(32768 * block.samples.mean(axis=1)), -32768, 32767).astype("<i2")
        for low in range(0, len(mono), block.rate // 2):
            part = mono[low : low + block.rate // 2]
            self._send(struct.pack("<Q", self._place) + part.tobytes())
            self._place += len(part)
        return replace(block, samples=(mono / np.float32(32768))[:, None])


def protection(method: object, send: Callable[[bytes], object]) -> Protection | None:
    """Make the protection that a browser asks for; None where it asks for nothing."""
    if method in (None, ""):
        return None
    if not isinstance(method, str) or method not in choices():
        raise UsageError("no such anonymiser can be chosen here")
    return Protection(method, on_block=ProtectedAudioSender(send))
