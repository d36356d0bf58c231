"""Any other program as an anonymiser: WAV on its standard input, WAV on its standard output."""

from __future__ import annotations

import io
import shlex

import numpy as np
import soundfile

from monitor.anonymisers.filters import check_samples
from monitor.errors import SourceError, UsageError
from monitor.phrases import plural
from monitor.programs import MOST_SAID_BYTES, run_program
from monitor.safe_text import file_name, printable
from monitor.sources.pipe import Pipe
from monitor.types import Block, FloatArray

START_SECONDS = 60.0  # for a program to load what it needs
TIMES_REAL_TIME = 60.0
_LAST_WORDS = 200
# what it may print: floats, of a recording so much longer than the one it was given
_BYTES, _TIMES_LONGER, _MORE_SECONDS = 4, 4, 60.0


class Program:
    """Anonymiser that runs a command line for each recording, once that has ended.

    It is given one channel as a 16-bit WAV and must print a WAV of one channel and of the same rate
    (16, 24 or 32 bits, or floats), up to four times as long and a minute. No shell is asked. It is
    killed with all that it started (`monitor.programs`) where it takes too long, by default over a
    minute and 60 times the recording, prints without end, or nobody waits any more.
    """

    latency_samples = None

    def __init__(self, command: str, rate: int, timeout_seconds: float | None = None) -> None:
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"cannot take {command!r} apart: {error}") from None
        if not self._command:
            raise UsageError("a program is needed, such as --anonymiser-command my-anonymiser")
        if timeout_seconds is not None and not 0 < timeout_seconds < float("inf"):
            raise UsageError(f"{timeout_seconds:g} s are no time for a program; give more than 0")
        self.rate, self._timeout = rate, timeout_seconds
        self.reset()

    def process(self, samples: FloatArray) -> FloatArray:
        """Return nothing: sound comes at the end."""
        self._blocks.append(check_samples(samples).astype(np.float32))
        return np.empty(0, np.float32)

    def flush(self) -> FloatArray:
        """Run the program on the recording; SourceError with its last words where it fails."""
        wav = io.BytesIO()
        sound = np.concatenate([np.empty(0, np.float32), *self._blocks])
        soundfile.write(wav, sound, self.rate, format="WAV", subtype="PCM_16")
        name = file_name(self._command[0])
        timeout = self._timeout or START_SECONDS + TIMES_REAL_TIME * sound.size / self.rate
        limit = _BYTES * (_TIMES_LONGER * sound.size + round(_MORE_SECONDS * self.rate))
        try:
            ended = run_program(self._command, wav.getvalue(), seconds=timeout, most_printed=limit)
        except OSError as error:
            raise SourceError(f"{name} cannot be started: {error.strerror}") from None
        if ended.stopped == "time":
            raise SourceError(
                f"{name} took over {timeout:.3g} s and was killed; --command-timeout gives it more"
            )
        if ended.stopped is not None:
            where = "standard output" if ended.stopped == "printed" else "standard error"
            megabytes = limit if ended.stopped == "printed" else MOST_SAID_BYTES
            raise SourceError(
                f"{name} wrote over {megabytes / 1e6:.0f} MB to its {where} for a recording of "
                f"{sound.size / self.rate:.1f} s and was killed; one WAV is expected"
                f"{_last_words(ended.said)}"
            )
        if ended.status:
            failed, killed = "failed with exit status", "was killed by signal"
            failure = f"{failed if ended.status > 0 else killed} {abs(ended.status)}"
            raise SourceError(f"{name} {failure}{_last_words(ended.said)}")
        try:
            output = self._read_output(ended.printed, name)
            if sound.size and not output.size:
                raise SourceError(f"{name} printed a WAV without a sample: no voice is left of it")
        except SourceError as error:
            raise SourceError(f"{error}{_last_words(ended.said)}") from None
        return output

    def reset(self) -> None:
        """Start afresh."""
        self._blocks: list[FloatArray] = []

    def _read_output(self, printed: bytes, name: str) -> FloatArray:
        """Read the samples that it printed."""
        try:
            pipe = Pipe(io.BytesIO(printed))
        except SourceError as error:
            reason = str(error).partition(";")[0]
            raise SourceError(f"{name} printed no WAV that can be read: {reason}") from None
        if (pipe.rate, pipe.channels) != (self.rate, 1):
            raise SourceError(
                f"{name} printed {plural(pipe.channels, 'channel')} at {pipe.rate} Hz; it was "
                f"given one at {self.rate} Hz and must keep to that"
            )
        parts = [np.empty(0, np.float32)]
        for block in pipe:
            if not isinstance(block, Block):
                raise SourceError(f"{name} printed less than its header promises")
            parts.append(block.samples)
        samples = np.concatenate(parts)
        if not np.isfinite(samples).all():
            raise SourceError(f"{name} printed samples that are no numbers")
        return samples


def _last_words(message: bytes) -> str:
    """Return the last line of an explanation, where there is one."""
    lines = message.decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {printable(last)[:_LAST_WORDS]}" if last else ""
