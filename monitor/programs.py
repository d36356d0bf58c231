"""Run external programs with limits on time and output, and kill all their processes."""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from monitor.lazy import Managed

MARK = "MONITOR_STARTED_BY"  # environment variable that identifies a program's descendants
_KEPT_BYTES = 1 << 16
MOST_SAID_BYTES = 256 << 20  # limit of standard error
_PIECE = 1 << 16
_QUIET_SECONDS = 1.0  # for output, once the program has ended but its pipes are still open
_LOOK_SECONDS = 0.1
_KILL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class CompletedProgram:
    """The end of a program: status, output and errors."""

    status: int
    printed: bytes
    errors: bytes
    # reason for killing it, or None. ``"time"`` is too long a run. ``"printed"`` is too much
    # standard output, and ``"said"`` is too much standard error.
    stopped: Literal["time", "printed", "said"] | None = None


class StartedProgram(Managed):
    """A program in its own session. Closing it early kills all its processes.

    These are its process group and its descendants. With /proc they include processes that
    inherited its environment, even after setsid or without a parent. ``stdout`` and ``stderr`` are
    as in `subprocess.Popen`. Raises OSError if it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str] | str,
        environment: Mapping[str, str] | None = None,
        *,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        umask: int = -1,
    ) -> None:
        variables = dict(os.environ if environment is None else environment)
        self._mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        variables[MARK] = ":".join(filter(None, (variables.get(MARK), self._mark)))
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            command, shell=isinstance(command, str), stdin=subprocess.PIPE, stdout=stdout,
            stderr=stderr, bufsize=0, start_new_session=True, env=variables, umask=umask,
        )  # fmt: skip

    def close(self) -> None:
        """Kill the program if it still runs, and close its pipes."""
        if self.process.poll() is None:
            self.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def kill(self) -> None:
        """Kill the program and its descendants, if they still run."""
        until = time.monotonic() + _KILL_SECONDS
        family, quiet = set[int](), 0
        # twice, since a process shows no mark while it executes another program
        while quiet < (2 if family else 1) and time.monotonic() < until:
            relatives = self._family() - family
            _send(relatives, "SIGSTOP")  # stopped processes start no others and keep their parent
            family |= relatives
            quiet = 0 if relatives else quiet + 1
        if self.process.poll() is None:  # otherwise its number may belong to another process by now
            if hasattr(os, "killpg"):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        _send(family, "SIGKILL")
        self.process.wait()

    def _family(self) -> set[int]:
        """List living processes that descend from the program or have its mark."""
        children: dict[int, list[int]] = {}
        unvisited = [] if self.process.poll() is not None else [self.process.pid]
        living = set()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError):
                state, parent, *_ = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                number = int(folder.name)
                children.setdefault(int(parent), []).append(number)
                if state not in (b"Z", b"X"):
                    living.add(number)
                    if self._mark.encode() in (folder / "environ").read_bytes():
                        unvisited.append(number)
        family: set[int] = set()
        while unvisited:
            number = unvisited.pop()
            if number not in family:
                family.add(number)
                unvisited += children.get(number, [])
        return family & living - {os.getpid()}


def run_program(
    command: Sequence[str], content: bytes, *, seconds: float, most_printed: int
) -> CompletedProgram:
    """Run a program to its end without a shell, with bytes in and out; OSError if it cannot start.

    Files that it creates are private to the user. Background processes survive unless they hold its
    pipes.
    """
    until = time.monotonic() + seconds
    with StartedProgram(command, umask=0o077) as program, selectors.DefaultSelector() as pipes:
        process, printed, errors = program.process, bytearray(), bytearray()
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for pipe in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(pipe.fileno(), False)
        pipes.register(process.stdin, selectors.EVENT_WRITE)
        pipes.register(process.stdout, selectors.EVENT_READ, printed)
        pipes.register(process.stderr, selectors.EVENT_READ, errors)
        unwritten, all_said, last_output = memoryview(content), 0, time.monotonic()
        stopped: Literal["time", "printed", "said"] | None = None
        while stopped is None and any(key.data is not None for key in pipes.get_map().values()):
            now = time.monotonic()
            for key, _ in pipes.select(max(0.0, min(_LOOK_SECONDS, until - now))):
                last_output = now
                if key.data is None:
                    unwritten = _written(process.stdin, unwritten)
                    if not unwritten:
                        pipes.unregister(process.stdin)
                        process.stdin.close()
                    continue
                piece = os.read(key.fd, _PIECE)
                key.data.extend(piece)
                if not piece:
                    pipes.unregister(key.fileobj)
                elif key.data is errors:
                    all_said += len(piece)
                    del errors[:-_KEPT_BYTES]
            if len(printed) > most_printed:
                stopped = "printed"
            elif all_said > MOST_SAID_BYTES:
                stopped = "said"
            elif now > until:
                stopped = "time"
            elif process.poll() is not None and now - last_output > _QUIET_SECONDS:
                program.kill()  # it has ended, but descendants keep its pipes open
        if stopped is None:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                stopped = "time"
        if stopped is not None:
            program.kill()
    return CompletedProgram(process.returncode, bytes(printed), bytes(errors), stopped)


def _written(pipe: IO[bytes], remainder: memoryview) -> memoryview:
    try:
        return remainder[os.write(pipe.fileno(), remainder[:_PIECE]) :]
    except BlockingIOError:
        return remainder
    except OSError:  # the reader has closed the pipe
        return remainder[:0]


def _send(numbers: Iterable[int], name: str) -> None:
    """Send a signal to processes, some of which may have ended."""
    for number in numbers:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(number, getattr(signal, name))
