"""An external program as an anonymiser."""

from __future__ import annotations

import io
import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import soundfile

from monitor.anonymisers.filters import check_samples
from monitor.errors import SourceError, UsageError
from monitor.files import open_private
from monitor.phrases import plural
from monitor.programs import MOST_SAID_BYTES, run_program
from monitor.safe_text import file_name, printable
from monitor.sources.pipe import Pipe
from monitor.types import Block, FloatArray

START_SECONDS = 60.0  # allowance for a program's start
TIMES_REAL_TIME = 60.0
IN, OUT = "{in}", "{out}"
CONTRACT = (
    f"A program reads a WAV on standard input and prints one, or names the files {IN} and {OUT}"
)
_LAST_WORDS = 200
# maximum output: bytes per sample, times the length of the input, plus seconds
_BYTES, _TIMES_LONGER, _MORE_SECONDS = 4, 4, 60.0


class Program:
    """Anonymiser that runs a command line for each recording, once that has ended.

    The command receives one channel as a 16-bit WAV. It must print a WAV of 16, 24 or 32 bits, or
    floats, with one channel at the same rate. Its output may be at most four times as long plus a
    minute. ``{in}`` and ``{out}`` in the command are replaced by private files, which take the
    place of standard input and output and are removed afterwards. No shell is used. The command and
    its child processes (`monitor.programs`) are killed if it runs too long, prints too much, or the
    caller stops waiting. The default time limit is a minute plus 60 times the recording.
    """

    latency_samples = None
    expects = "one WAV"

    def __init__(self, command: str, rate: int, timeout_seconds: float | None = None) -> None:
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"invalid command line {command!r}: {error}") from None
        if not self._command:
            raise UsageError(
                f"a program is needed, such as --anonymiser-command my-anonymiser. {CONTRACT}"
            )
        if timeout_seconds is not None and not 0 < timeout_seconds < float("inf"):
            raise UsageError(f"invalid time limit {timeout_seconds:g} s: use more than 0")
        self.rate, self._timeout = rate, timeout_seconds
        self.reset()

    def process(self, samples: FloatArray) -> FloatArray:
        """Buffer the samples; the output comes from `flush`."""
        self._blocks.append(check_samples(samples).astype(np.float32))
        return np.empty(0, np.float32)

    def flush(self) -> FloatArray:
        """Run the program on the recording; raise SourceError with its last line if it fails."""
        printed, name, last_words = self.run()
        try:
            output = self._read_output(printed, name)
            if output.size or not any(block.size for block in self._blocks):
                return output
            raise SourceError(f"{name} printed an empty WAV")
        except SourceError as error:
            raise SourceError(f"{error}{last_words}") from None

    def run(self) -> tuple[bytes, str, str]:
        """Run the program on the recording; return its output, its name and its last message."""
        with TemporaryDirectory(prefix="monitor-") as folder:  # private to the user
            return self._run(Path(folder))

    def _run(self, folder: Path) -> tuple[bytes, str, str]:
        """Run the program, with ``{in}`` and ``{out}`` in this folder."""
        wav = io.BytesIO()
        sound = np.concatenate([np.empty(0, np.float32), *self._blocks])
        soundfile.write(wav, sound, self.rate, format="WAV", subtype="PCM_16")
        name, content, paths = file_name(self._command[0]), wav.getvalue(), {}
        for mark in (IN, OUT):
            if any(mark in word for word in self._command):
                paths[mark] = folder / f"{mark[1:-1]}.wav"
        if IN in paths:
            with os.fdopen(open_private(paths[IN], os.O_WRONLY | os.O_CREAT), "wb") as file:
                file.write(content)
            content = b""
        command = [_replace_marks(word, paths) for word in self._command]
        timeout = self._timeout or START_SECONDS + TIMES_REAL_TIME * sound.size / self.rate
        limit = _BYTES * (_TIMES_LONGER * sound.size + round(_MORE_SECONDS * self.rate))
        try:
            ended = run_program(command, content, seconds=timeout, most_printed=limit)
        except OSError as error:
            raise SourceError(f"{name} cannot be started: {error.strerror}") from None
        if ended.stopped == "time":
            raise SourceError(
                f"{name} took over {timeout:.3g} s and was killed; raise "
                "command-timeout in --config FILE"
            )
        if ended.stopped is not None:
            where = "standard output" if ended.stopped == "printed" else "standard error"
            megabytes = limit if ended.stopped == "printed" else MOST_SAID_BYTES
            raise SourceError(
                f"{name} wrote over {megabytes / 1e6:.0f} MB to its {where} for a recording of "
                f"{sound.size / self.rate:.1f} s and was killed; {self.expects} is expected"
                f"{_last_words(ended.errors)}"
            )
        if ended.status:
            failed, killed = "failed with exit status", "was killed by signal"
            failure = f"{failed if ended.status > 0 else killed} {abs(ended.status)}"
            raise SourceError(f"{name} {failure}{_last_words(ended.errors)}")
        last_words = _last_words(ended.errors)
        try:
            printed = _read_made(paths[OUT], limit, name) if OUT in paths else ended.printed
        except SourceError as error:
            raise SourceError(f"{error}{last_words}") from None
        return printed, name, last_words

    def reset(self) -> None:
        """Restart."""
        self._blocks: list[FloatArray] = []

    def _read_output(self, printed: bytes, name: str) -> FloatArray:
        try:
            pipe = Pipe(io.BytesIO(printed))
        except SourceError as error:
            reason = str(error).partition(";")[0]
            raise SourceError(f"{name} printed an unreadable WAV: {reason}. {CONTRACT}") from None
        if (pipe.rate, pipe.channels) != (self.rate, 1):
            raise SourceError(
                f"{name} printed {plural(pipe.channels, 'channel')} at {pipe.rate} Hz; it must "
                f"print one at {self.rate} Hz, like its input"
            )
        parts = [np.empty(0, np.float32)]
        for block in pipe:
            if not isinstance(block, Block):
                raise SourceError(f"{name} printed a truncated WAV")
            parts.append(block.samples)
        samples = np.concatenate(parts)
        if not np.isfinite(samples).all():
            raise SourceError(f"{name} printed invalid samples (NaN or infinite)")
        return samples


def _replace_marks(word: str, paths: Mapping[str, Path]) -> str:
    for mark, path in paths.items():
        word = word.replace(mark, str(path))
    return word


def _read_made(path: Path, limit: int, name: str) -> bytes:
    """Read a program's output file; raise SourceError unless it is a regular file within limits."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            maximum = f"{limit / 1e6:.0f} MB"
            raise SourceError(f"{name} must write a regular file of at most {maximum} to {OUT}")
        return path.read_bytes()
    except OSError as error:
        raise SourceError(f"{name} wrote no file to {OUT}: {error.strerror}") from None


def _last_words(message: bytes) -> str:
    lines = message.decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {printable(last)[:_LAST_WORDS]}" if last else ""
