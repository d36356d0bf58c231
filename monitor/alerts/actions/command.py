"""An alert runs a command."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from monitor.alerts.actions.courier import DeliveryError
from monitor.alerts.actions.registry import ACTION_OPTIONS
from monitor.errors import UsageError
from monitor.programs import StartedProgram
from monitor.sinks.jsonl import line_of

__all__ = ["Command"]

TIMEOUT_SECONDS = 60.0
SECRETS = frozenset({"MONITOR_WEB_TOKEN", *(o.environment for o in ACTION_OPTIONS)} - {""})
"""Of the environment; no business of a command's."""


class Command:
    """Runs a command line for every alert, with the record as one JSON line on standard input.

    The shell runs it, as it would have been typed, without the secrets that the environment may
    hold for the monitor. What it prints goes to the monitor's stderr: stdout is for the records of
    the run. It has a session of its own, so that Ctrl-C does not cut it off, and is killed with all
    that it started when it takes too long (`monitor.programs`).

    Args:
        command: the command line.
        timeout_seconds: how long it may take.

    Raises:
        UsageError: the command line is empty.
    """

    def __init__(self, command: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        if not command.strip():
            raise UsageError("--on-alert needs a command, such as 'notify-send disclosed'")
        self._command, self._timeout = command, timeout_seconds
        try:
            first = shlex.split(command)[0]
        except (ValueError, IndexError):
            first = command.split()[0]
        self.label = f"command {os.path.basename(first)}"  # noqa: PTH119

    def deliver(self, record: Mapping[str, Any], hurry: threading.Event) -> None:  # noqa: ARG002
        """Run it and wait for its end.

        Raises:
            DeliveryError: it failed, or took too long.
        """
        environment = {name: value for name, value in os.environ.items() if name not in SECRETS}
        try:
            program = StartedProgram(
                self._command, environment, stdout=_stderr(), stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise DeliveryError(f"cannot be started: {error.strerror}") from None
        with program:
            process = program.process
            try:
                process.communicate(line_of(record), self._timeout)
            except subprocess.TimeoutExpired:
                raise DeliveryError(f"took over {self._timeout:g} s and was killed") from None
        if process.returncode < 0:
            raise DeliveryError(f"killed by signal {-process.returncode}")
        if process.returncode:
            raise DeliveryError(f"exit status {process.returncode}")


def _stderr() -> int:
    """The descriptor people read: while a microphone is open it is not number 2."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # none, or no file
        return 2
