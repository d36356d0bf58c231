"""Protection of recordings: streams block by block, and files in runs that can resume."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
import soundfile

from monitor.anonymisers.filters import Utterance
from monitor.anonymisers.laplace import DeclaredGuarantee
from monitor.anonymisers.registry import make
from monitor.corpus.folders import find, recordings_below
from monitor.corpus.recordings import describe_unusable
from monitor.errors import CorpusError, SourceError, StoreError, UsageError
from monitor.features.framing import BadSamples, columns_of
from monitor.files import atomic_write, lock, make_folder, open_private, sweep, writing
from monitor.jobs import Jobs, each_in_order
from monitor.lazy import Managed
from monitor.phrases import plural
from monitor.safe_text import file_name
from monitor.sources.base import file_hash, protection_tag
from monitor.sources.file import File
from monitor.sources.registry import is_frames
from monitor.types import Block, FloatArray, Record
from monitor.version import __version__

_ANY_RATE = 16_000
_LONGER_SECONDS = 0.1  # a program's output may be longer by this; the excess is cut
FORMATS = {".wav": "WAV", ".flac": "FLAC"}  # supported output formats by suffix
_KEPT = ("PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE")
JOURNAL = ".unfinished-protect"  # in the output folder


class ProtectedBlocks:
    """An anonymiser for a stream of recordings, each protected separately.

    Channels are protected separately, as in `monitor.anonymisers.protect`. Output that is too short
    is padded with silence, so the stream keeps its clock. Samples that are NaN or infinite become
    silence. No audio is stored.

    Attributes:
        latency_seconds: maximum delay of the output; None if it comes at the end of a recording.
        declared: the method's guarantee for each window; None if it has none.
    """

    def __init__(
        self,
        method: str,  # A method of `monitor.anonymisers.registry`.
        # Names of the recordings, as keys of random settings. The last one also applies to later
        # recordings, such as a microphone that is reconnected.
        labels: Sequence[str] = ("",),
        *,
        speaker: str | None = None,
        channel: int | None = None,  # the only channel to protect, counted from 1; None for all
        seed: int | None = None,  # seed of random settings; None draws one
    ) -> None:
        self._method, self._labels = method, tuple(labels)
        self._speaker, self._channel = speaker, channel
        self._seed_option, self._seed = seed, secrets.randbits(128) if seed is None else seed
        any_rate = make(method, self._utterance(_ANY_RATE, 0, 0))
        self.declared: DeclaredGuarantee | None = getattr(any_rate, "declares", None)
        self.channels_heard = 1
        latency = any_rate.latency_samples
        self.latency_seconds = None if latency is None else latency / _ANY_RATE

    def __call__(self, items: Iterable[object]) -> Iterator[Block]:
        """Protect the audio of a stream, and drop other items, such as gaps."""
        current: _Recording | None = None
        for item in items:
            if not isinstance(item, Block):
                continue
            columns = columns_of(item, None if self._channel is None else self._channel - 1)
            key = item.recording, int(item.rate), columns.shape[1]
            self.channels_heard = max(self.channels_heard, key[2])
            if current is None or current.key != key:
                if current is not None:
                    yield current.end()
                channels = [self._utterance(key[1], key[0], i) for i in range(key[2])]
                current = _Recording(key, channels, self._method)
            yield current.process(columns)
        if current is not None:
            yield current.end()

    def state(self) -> dict[str, str]:
        """Return the seed for a checkpoint; it is private, because it can undo the protection."""
        return {"seed": str(self._seed)}

    def restore(self, state: Record) -> None:
        """Use the seed of a checkpoint."""
        if self._seed_option is not None and str(self._seed_option) != state["seed"]:
            raise StoreError("the run began with a different anonymiser seed: use the same one")
        self._seed = int(state["seed"])

    def _utterance(self, rate: int, recording: int, channel: int) -> Utterance:
        name = self._labels[min(recording, len(self._labels) - 1)]
        index = channel if self._channel is None else self._channel - 1
        return Utterance(rate, name, self._speaker, index, self._seed)


class _Channels:
    """The channels of one recording, with one anonymiser each."""

    def __init__(self, label: str, method: str, utterances: Iterable[Utterance]) -> None:
        self.label = label
        self._anonymisers = [make(method, utterance) for utterance in utterances]

    def process(self, samples: FloatArray) -> FloatArray:
        """Protect further samples, shape (n, channels); return those complete, (m, channels)."""
        columns = zip(self._anonymisers, samples.T, strict=True)
        return self.join([anonymiser.process(column) for anonymiser, column in columns])

    def flush(self) -> list[FloatArray]:
        return [anonymiser.flush() for anonymiser in self._anonymisers]

    def join(self, columns: Sequence[FloatArray]) -> FloatArray:
        """Stack channels to shape (n, channels)."""
        if len({column.size for column in columns}) > 1:
            raise SourceError(f"{self.label}: the anonymiser returned channels of unequal length")
        return np.stack(columns, axis=1)


class _Recording:
    """One recording of a stream, with counts of the samples in and out."""

    def __init__(
        self, key: tuple[int, int, int], utterances: Sequence[Utterance], method: str
    ) -> None:
        self.key = key
        self._channels = _Channels(utterances[0].name, method, utterances)
        self._sound = BadSamples(key[1], key[0], 0)
        self._taken = self._made = 0

    def process(self, columns: FloatArray) -> Block:
        """Protect further samples, shape (n, channels); return the block that is complete."""
        columns = self._sound.silence(columns)
        self._taken += len(columns)
        return self._block(self._channels.process(columns))

    def end(self) -> Block:
        """Return the remainder, so that the output is as long as the input."""
        remainder = self._channels.flush()
        missing, rate = self._taken - self._made, self.key[1]
        longer = max(samples.size for samples in remainder) - missing
        if longer > _LONGER_SECONDS * rate:
            raise SourceError(
                f"{self._channels.label}: the anonymiser's output is {longer / rate:.1f} s longer "
                "than its input, which live protection cannot align. Run monitor protect, then "
                "replay its output"
            )
        padded = [np.append(r, np.zeros(max(0, missing - r.size)))[:missing] for r in remainder]
        return self._block(self._channels.join(padded))

    def _block(self, samples: FloatArray) -> Block:
        self._made += len(samples)
        return Block(samples.astype(np.float32), self.key[1], self.key[0])


@dataclass(frozen=True, slots=True)
class Protected:
    """Length of a written file, and its number of clipped samples."""

    seconds: float
    clipped: int


def protect(
    source: Path,
    target: Path,
    method: str,
    *,
    name: str = "",
    speaker: str | None = None,
    seed: int = 0,
    timeout_seconds: float | None = None,
) -> Protected:
    """Protect each channel of a recording separately, and write a WAV or FLAC.

    The rate is unchanged. The sample format is unchanged if the target supports it, otherwise 16
    bits. The file is private (mode 0600) and written atomically. Its comment names the method, so
    that later runs can explain their bits.

    Args:
        source: the recording.
        target: file to write, with a name in ``.wav`` or ``.flac``.
        method: an anonymiser's name, as in `make`.
        name: name of the recording, the key of a ``random`` setting.
        speaker: name of the speaker, the key of a ``speaker`` setting.
        seed: seed of random settings.
        timeout_seconds: a program's time limit per channel; None for `Program`'s default.
    """
    form = FORMATS.get(target.suffix.lower())
    if form is None:
        raise UsageError(f"{file_name(target)} must end in .wav or .flac")
    recording = File(source)
    utterances = (
        Utterance(recording.rate, name, speaker, channel, seed, timeout_seconds)
        for channel in range(recording.channels)
    )
    channels = _Channels(recording.label, method, utterances)
    subtype = recording.subtype
    if subtype not in _KEPT or not soundfile.check_format(form, subtype):
        subtype = "PCM_16"
    frames = clipped = 0
    tag = "" if method == "none" else protection_tag("anonymised", method)
    with sound_file(target, recording.rate, recording.channels, form, subtype, tag) as write:
        for samples in _pieces(recording, channels):
            write(samples)
            frames += len(samples)
            clipped += int(np.count_nonzero(np.abs(samples) > 1))
    return Protected(frames / recording.rate, 0 if subtype in ("FLOAT", "DOUBLE") else clipped)


@contextmanager
def sound_file(
    target: Path, rate: int, channels: int, form: str, subtype: str, comment: str = ""
) -> Iterator[Callable[[FloatArray], None]]:
    """Yield a function that writes samples to a private file, which appears whole or not at all."""
    frames = 0

    def write(samples: FloatArray) -> None:
        nonlocal frames
        file.write(samples)
        frames += len(samples)

    try:
        with writing(target):
            make_folder(target.parent)
            sweep(target)
            with atomic_write(target) as raw:
                guarded = _Guarded(raw)
                try:
                    with soundfile.SoundFile(
                        guarded, "w", rate, channels, subtype=subtype, format=form
                    ) as file:
                        if comment:
                            file.comment = comment
                        yield write
                except (AssertionError, soundfile.LibsndfileError):
                    if guarded.error is None:
                        raise
                if guarded.error is not None:
                    raise guarded.error
                raw.flush()
                with os.fdopen(os.dup(raw.fileno()), "rb") as reader:
                    reader.seek(0)
                    with soundfile.SoundFile(reader) as file:
                        if file.frames != frames:
                            raise OSError(f"{file.frames} of {frames} samples were written")
    except soundfile.LibsndfileError as error:  # such as a FLAC of more than eight channels
        raise SourceError(f"cannot write {file_name(target)}: {error.error_string}") from None


class _Guarded:
    """A file that libsndfile writes to through callbacks; it keeps the first error."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        return self._try(self._file.write, data)

    def seek(self, offset: int, whence: int) -> int:
        return self._try(self._file.seek, offset, whence)

    def tell(self) -> int:
        return self._try(self._file.tell)

    def _try(self, action: Callable[..., int], *arguments: Any) -> int:
        try:
            return action(*arguments)
        except OSError as error:
            self.error = self.error or error
            return 0


def _pieces(recording: File, channels: _Channels) -> Iterator[FloatArray]:
    """Yield the protected recording, shape (n, channels)."""
    for block in recording:
        if not isinstance(block, Block):
            raise SourceError(block.detail or f"{recording.label} is broken")
        try:
            yield channels.process(np.asarray(block.samples).reshape(-1, recording.channels))
        except UsageError as error:
            raise SourceError(f"{recording.label}: {error}") from None
    yield channels.join(channels.flush())


@dataclass(frozen=True, slots=True)
class ProtectionTask:
    """One recording to protect; ``speaker`` is None if unknown."""

    source: Path
    target: Path
    name: str
    speaker: str | None


def plan_orders(
    source: Path, output: Path, *, speaker: str | None, replace: bool
) -> Sequence[ProtectionTask]:
    """Plan all targets, and raise an error for those that must not be written."""
    if not source.is_dir():
        if output.is_dir() or output.suffix.lower() not in FORMATS:
            raise UsageError(
                f"invalid -o {file_name(output)}: for one recording, use a file that ends in "
                f"{' or '.join(FORMATS)}"
            )
        requests = [ProtectionTask(source, output, source.name, speaker)]
    else:
        requests = _of_folder(source, output, speaker)
    targets = {os.path.realpath(order.target) for order in requests}
    if targets & {os.path.realpath(order.source) for order in requests}:
        raise UsageError(f"-o {file_name(output)} is the recording itself; name another file")
    existing = [order for order in requests if order.target.exists()]
    if existing and not replace:
        count = f" and {plural(len(existing) - 1, 'other')}" if len(existing) > 1 else ""
        raise StoreError(f"{file_name(existing[0].target)}{count} exist already; add --replace")
    return requests


def _of_folder(root: Path, output: Path, speaker: str | None) -> list[ProtectionTask]:
    """Plan a folder's recordings, with the same names in the output folder."""
    if output.exists() and not output.is_dir():
        raise UsageError(f"invalid -o {file_name(output)}: for a folder, use a folder, not a file")
    if Path(os.path.realpath(output)).is_relative_to(os.path.realpath(root)):
        raise UsageError("invalid -o: use a folder outside the one to protect")
    speakers = {}
    if speaker is None:
        with suppress(CorpusError):  # the folder has no speakers
            speakers = {recording.path: recording.speaker for recording in find(root)}
    requests: dict[Path, ProtectionTask] = {}
    for path in recordings_below(root):
        if is_frames(path):  # not audio
            continue
        name = path.relative_to(root)
        suffix = path.suffix if path.suffix.lower() in FORMATS else ".wav"
        order = ProtectionTask(
            path, output / name.with_suffix(suffix), name.as_posix(), speaker or speakers.get(path)
        )
        if (other := requests.setdefault(order.target, order)) is not order:
            raise UsageError(
                f"{other.name} and {order.name} would both become {order.target.name}; rename one"
            )
    if not requests:
        if any(map(is_frames, recordings_below(root))):
            raise UsageError(
                f"{root.name or root} contains frames, not audio: use --method laplace:15"
            )
        raise CorpusError(f"no recording in {root.name or root}")
    return list(requests.values())


@dataclass(frozen=True, slots=True)
class ProtectionSettings:
    """Settings for all recordings, as in `protect`.

    ``journal`` is the path where each finished target is recorded at once; None for no journal.
    """

    method: str
    seed: int
    timeout_seconds: float | None = None
    journal: Path | None = None


@dataclass(frozen=True, slots=True)
class ProtectionOutcome:
    """Outcome for one recording; ``problem`` is the reason for a failure, otherwise empty."""

    order: ProtectionTask
    is_done: bool = False
    seconds: float = 0.0
    clipped: int = 0
    problem: str = ""


def protect_all(
    requests: Sequence[ProtectionTask],
    settings: ProtectionSettings,
    hashes: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    jobs: Jobs = 1,
) -> Generator[ProtectionOutcome, None, None]:
    """Protect every recording, in order; skip targets that exist and are unchanged."""
    tasks = [(order, hashes.get(order.name)) for order in requests]
    with closing(each_in_order(partial(_protected, settings), tasks, jobs)) as results:
        yield from results


def _protected(
    settings: ProtectionSettings, task: tuple[ProtectionTask, tuple[str, str] | None]
) -> ProtectionOutcome:
    order, hashes = task
    try:
        source = file_hash(order.source)
        target_hash = file_hash(order.target) if order.target.is_file() else None
        if hashes == (source, target_hash):
            return ProtectionOutcome(order, is_done=True)
        protected = protect(
            order.source, order.target, settings.method, name=order.name, speaker=order.speaker,
            seed=settings.seed, timeout_seconds=settings.timeout_seconds,
        )  # fmt: skip
        if settings.journal is not None:
            note_target(settings.journal, order.name, (source, file_hash(order.target)))
        return ProtectionOutcome(order, seconds=protected.seconds, clipped=protected.clipped)
    except SourceError as error:
        return ProtectionOutcome(order, problem=describe_unusable(order.source, error))


class Journal(Managed):
    """Record of an unfinished run of many recordings, in a private file in the output folder.

    It contains the seed, because a resumed run must draw the same random numbers. An attacker with
    the seed could draw them too, so the file is removed at the end. Only one run at a time writes
    into a folder. ``made`` maps each target's name in the folder to the hashes of source and
    target.

    Raises:
        UsageError: if the folder has an unfinished run with other settings.
        StoreError: if another run is active, the folder is not writable, the file is damaged, or
            it belongs to another user, who would know the seed.
    """

    def __init__(self, folder: Path, what: tuple[object, ...], seed: int | None) -> None:
        self.path = folder / JOURNAL
        settings = hashlib.sha256(repr((__version__, what, seed)).encode("utf-8", "replace"))
        with writing(self.path):
            make_folder(folder)
            handle = open_private(self.path, os.O_RDWR | os.O_CREAT)
            self._file = os.fdopen(handle, "r+", encoding="utf-8")
        try:
            self._begin(settings.hexdigest(), seed)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, settings: str, seed: int | None) -> None:
        folder = file_name(self.path.parent)
        try:
            lock(self._file.fileno())
        except BlockingIOError:
            raise StoreError(f"another run is writing into {folder}; wait for it") from None
        try:
            text = self._file.read()
            complete = text[: text.rfind("\n") + 1]  # a kill may have torn the last line
            os.ftruncate(self._file.fileno(), len(complete.encode()))
            lines = [json.loads(line) for line in complete.splitlines()]
            self.made = {line["target"]: (line["source"], line["made"]) for line in lines[1:]}
            header = (lines[0]["asked"], int(lines[0]["seed"], 16)) if lines else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise StoreError(f"{folder}/{JOURNAL} is damaged; remove it to start over") from None
        if header is None:
            self.seed = secrets.randbits(128) if seed is None else seed
            _append(self.path, {"asked": settings, "seed": f"{self.seed:x}"})
        elif header[0] != settings:
            raise UsageError(
                f"{folder} contains an unfinished run with other settings: finish it with those, "
                f"or remove {folder}/{JOURNAL} to start over"
            )
        else:
            self.seed = header[1]

    def finish(self) -> None:
        """Remove the journal of a complete run."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Unlock the folder for the next run."""
        self._file.close()


def note_target(journal: Path, target: str, hashes: tuple[str, str]) -> None:
    """Record a finished target with the hashes of source and target, from any process."""
    _append(journal, {"target": target, "source": hashes[0], "made": hashes[1]})


def _append(journal: Path, line: dict[str, str]) -> None:
    """Append a line in one write, so that lines of several processes do not mix."""
    text = f"{json.dumps(line)}\n".encode()
    with writing(journal):
        handle = open_private(journal, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(handle, text) < len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)
