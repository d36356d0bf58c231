"""Any other program as a protector: WAV on its standard input, WAV on its standard output."""

from __future__ import annotations

import io
import shlex
import subprocess

import numpy as np
import soundfile

from monitor.errors import SourceError, UsageError
from monitor.phrases import plural
from monitor.protectors.samples import checked
from monitor.safe_text import file_name
from monitor.sources.pipe import Pipe
from monitor.types import Block, FloatArray

__all__ = ["Program"]


class Program:
    """Runs a command line for each recording, once it has been heard to its end.

    It is given one channel as a 16-bit WAV and must print a WAV of one channel and of the same
    rate (16, 24 or 32 bits, or floats); the length may be another. No shell is asked: write
    ``sh -c '...'`` for a pipeline.

    Args:
        command: the command line.
        rate: samples per second.

    Attributes:
        rate: as given.
        latency_samples: None, since nothing comes before the end.

    Raises:
        UsageError: there is no command in it.

    Example:
        >>> same = Program("cat", 16000)
        >>> same.process(np.array([0.5, -0.25])).size, same.flush().tolist()
        (0, [0.5, -0.25])
    """

    latency_samples = None

    def __init__(self, command: str, rate: int) -> None:
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"cannot take {command!r} apart: {error}") from None
        if not self._command:
            raise UsageError("a program is needed, such as --protector-command my-anonymiser")
        self.rate = rate
        self.reset()

    def process(self, samples: FloatArray) -> FloatArray:
        """Nothing, before the end."""
        self._heard.append(checked(samples).astype(np.float32))
        return np.empty(0, np.float32)

    def flush(self) -> FloatArray:
        """What the program makes of the recording.

        Raises:
            SourceError: it cannot be started, fails, or prints something else.
        """
        given = io.BytesIO()
        heard = np.concatenate([np.empty(0, np.float32), *self._heard])
        soundfile.write(given, heard, self.rate, format="WAV", subtype="PCM_16")
        name = file_name(self._command[0])
        try:
            done = subprocess.run(
                self._command, input=given.getvalue(), stdout=subprocess.PIPE, check=False
            )
        except OSError as error:
            raise SourceError(f"{name} cannot be started: {error.strerror}") from None
        if done.returncode:
            raise SourceError(f"{name} failed with exit status {done.returncode}")
        return self._understood(done.stdout, name)

    def reset(self) -> None:
        """Forget what was heard."""
        self._heard: list[FloatArray] = []

    def _understood(self, printed: bytes, name: str) -> FloatArray:
        """The samples that it printed."""
        try:
            pipe = Pipe(io.BytesIO(printed))
        except SourceError as error:
            why = str(error).partition(";")[0]
            raise SourceError(f"{name} printed no WAV that can be read: {why}") from None
        if (pipe.rate, pipe.channels) != (self.rate, 1):
            raise SourceError(
                f"{name} printed {plural(pipe.channels, 'channel')} at {pipe.rate} Hz; it was "
                f"given one at {self.rate} Hz and must keep to that"
            )
        parts = [np.empty(0, np.float32)]
        for each in pipe:
            if not isinstance(each, Block):
                raise SourceError(f"{name} printed less than its header promises")
            parts.append(each.samples)
        made = np.concatenate(parts)
        if not np.isfinite(made).all():
            raise SourceError(f"{name} printed samples that are no numbers")
        return made
