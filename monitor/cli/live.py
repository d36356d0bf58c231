"""For commands that hear a microphone: the option --device, Ctrl-C, and silenced libraries."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

__all__ = ["device_option", "quiet_libraries", "stopped_by_signals"]

device_option = click.option(
    "--device",
    metavar="N|NAME",
    help="The input to hear: its number, its name or a part of it, as `monitor devices` lists "
    "them. [default: the system's]",
)


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """What ALSA and PortAudio write to file descriptor 2, over any view, goes nowhere."""
    try:
        ours = sys.stderr.fileno() == 2
    except (OSError, ValueError):  # no file at all
        ours = False
    if not ours:
        yield
        return
    before = sys.stderr
    before.flush()
    copy = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    with open(copy, "w", buffering=1, encoding=before.encoding, errors="replace") as stream:  # noqa: PTH123
        sys.stderr = stream
        try:
            yield
        finally:
            sys.stderr = before
            stream.flush()
            os.dup2(copy, 2)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C, or a polite kill, calls ``stop``: a normal end. The second one interrupts."""

    def handle(number: int, _frame: Any) -> None:
        signal.signal(number, before[signal.Signals(number)])
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
