"""Structural types of the monitor's exchangeable parts, one per role.

Any object with these attributes and methods fits, without inheritance or registration. `Source`,
`Feature`, `Sketch`, `Sink` and `Anonymiser` can be checked with ``isinstance``.
``tests/test_contracts.py`` tests the contracts of every implementation, and
``tests/anonymisers/test_contracts_held.py`` those of anonymisers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from monitor.errors import SourceError
from monitor.events.declaration import Event
from monitor.events.run import AlarmTerms, Alert, RunStart
from monitor.kinds import FeatureSpec, Sensitivity
from monitor.phrases import plural
from monitor.types import AnyArray, FloatArray, IntArray, Item, Record, Track

__all__ = [
    "CLEAR",
    "MUTED",
    "AlertAction",
    "AlertReceiver",
    "AlertRule",
    "Anonymiser",
    "AudioDevice",
    "CodeStream",
    "Embedder",
    "ExplainedRule",
    "Feature",
    "LiveSource",
    "MarkedEmbedder",
    "RunEmbedder",
    "ScoredComparisons",
    "Sink",
    "Sketch",
    "Source",
    "Stateful",
    "ThresholdForecast",
    "WordFeature",
]


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """Contents of a source, so that unusable sources are refused before they start.

    Attributes:
        audio: whether it has blocks of samples, which then keep the clock. Otherwise `Frames` do.
        tracks: precomputed frames by feature name, either alone or beside the audio.
        words: timed words.
        channels: number of audio channels; None without audio or if not yet known.
        live: whether it continues while it is not read.
        cut: whether it stops before the recording's end.
        noise: noise added to precomputed embeddings, such as ``"laplace:15"``; empty without noise.
        protected: recordings with a voice changed by this program, such as ``"talk.wav was
            anonymised (mcadams:0.8)"``.
    """

    audio: bool = True
    tracks: Mapping[str, FeatureSpec] = field(default_factory=dict)
    words: bool = False
    channels: int | None = None
    live: bool = False
    cut: bool = False
    noise: str = ""
    protected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """A recording, or a part of one, that a stream is made of.

    Attributes:
        label: name in messages.
        hashes: its fingerprints (`monitor.sources.registry.recording_hashes`); sharing one is
            being the same recording. Empty if it cannot be known again, as standard input.
        start_seconds, end_seconds: the part; None to its end.
        raw: (rate, channels, encoding) of samples without a header.
    """

    label: str
    hashes: tuple[str, ...] = ()
    start_seconds: float = 0.0
    end_seconds: float | None = None
    raw: tuple[int, int, str] | None = None


@dataclass(frozen=True, slots=True)
class TranscriptNote:
    """A transcript beside a recording, or the words of a live one.

    Attributes:
        words: number of words; None if still to come.
        spread: whether times of words are fractions of longer stretches; None if not yet known.
        speaker: speaker of the words, if it names only one.
        mark: hash of the words and their times; empty if still to come.
        notices: one line per fault.
    """

    label: str
    words: int | None = None
    spread: bool | None = None
    speaker: str | None = None
    mark: str = ""
    notices: tuple[str, ...] = ()
    texts: tuple[str, ...] = field(default=(), repr=False)


@runtime_checkable
class Feature(Protocol):
    """Maker of usable frames from audio; any cutting into blocks gives the same frames.

    Its input is mono audio at its own rate including pauses, or `Words` if its spec takes those. It
    returns only usable frames, so none without a voice. Ticks are 10 ms and count from the last
    ``reset``.

    Attributes:
        spec: specification of its frames, its network and its sample rate. Templates of other
            frames are refused.
        follow: settings of the detection of voice changes (``Monitor(on_change=...)``), or None.

    Example:
        A feature of one frame for each tick: whether the sample in its middle is positive.

        >>> import numpy as np
        >>> from monitor.kinds import HISTOGRAM
        >>> class Sign:
        ...     spec = FeatureSpec("sign", HISTOGRAM, size=2, frame_seconds=0.01, rate=8000)
        ...     follow = None
        ...
        ...     def __init__(self):
        ...         self.reset()
        ...
        ...     def process(self, samples):
        ...         sound = np.concatenate((self._rest, samples))
        ...         count = sound.size // 80
        ...         self._rest = sound[count * 80 :]
        ...         ticks = self._ticks + np.arange(1, count + 1)
        ...         self._ticks += count
        ...         values = (sound[: count * 80].reshape(count, 80)[:, 40] > 0).astype(int)
        ...         return Track(ticks[ticks > self._skip], values[ticks > self._skip])
        ...
        ...     def flush(self):
        ...         return Track(np.empty(0, int), np.empty(0, int))
        ...
        ...     def skip_to(self, tick):
        ...         self._skip = tick
        ...
        ...     def reset(self):
        ...         self._rest, self._ticks, self._skip = np.empty(0, np.float32), 0, 0
        >>> isinstance(Sign(), Feature), Sign().process(np.ones(200, np.float32)).values.tolist()
        (True, [1, 1])
    """

    @property
    def spec(self) -> FeatureSpec:
        """Spec of its frames."""

    @property
    def follow(self) -> Sensitivity | None:
        """Settings for following it, or None."""

    def process(self, content: Any, /) -> Track:
        """Return the frames completed by further content, with the tick of each completion.

        Args:
            content: finite mono float samples at ``spec.rate``, shape (n,). With ``spec.takes``
                words it is `Words`, and frames are complete once their words are known.
        """

    def flush(self) -> Track:
        """Return frames that only the end of the recording completes."""

    def skip_to(self, tick: int) -> None:
        """Skip frames complete by ``tick``, counted from the last reset: none need be computed."""

    def reset(self) -> None:
        """Restart, so that the next sample is the first of a recording."""


@runtime_checkable
class WordFeature(Feature, Protocol):
    """A feature of words that also knows which words it was made for, as ``style`` does."""

    def doubt(self, label: str, texts: Sequence[str], /) -> str:
        """Return what is wrong with all words of the transcript, in a line; mostly empty."""
        ...


@runtime_checkable
class WindowFeature(Feature, Protocol):
    """A feature of windows of speech that can embed a part of one."""

    def embed_part(self, speech: FloatArray, /) -> AnyArray:
        """Embed the speech of some ticks, shape (n, s).

        Returns:
            Shape (1, d), or (0, d) where it is too short.
        """


class Embedder(Protocol):
    """A speaker network: windows of speech to embeddings."""

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed each window: (b, n), float32 at 16 kHz, to (b, d).

        The length of an embedding is how much a second of its window counts, 1 on average.
        """
        ...


@runtime_checkable
class RunEmbedder(Embedder, Protocol):
    """A speaker network that also embeds parts of the windows that it embeds."""

    def embed_runs(self, windows: FloatArray, slots: int) -> tuple[FloatArray, FloatArray]:
        """Embed windows, (b, n), and the runs of their equal slots (`monitor.types.list_runs`).

        Returns:
            Shape (b, d), equal to that of `embed`, and (b, r, d).
        """
        ...


class MarkedEmbedder(Embedder, Protocol):
    """A speaker network of ``size`` outputs with the ``sha256`` of its weights."""

    size: int
    sha256: str


class CodeStream(Protocol):
    """Samples at 16 kHz to codes, one of each frame; any cutting gives the same."""

    def push(self, samples: FloatArray) -> IntArray:
        """Process more: the codes of the frames that are known now, and were not before."""
        ...

    def flush(self) -> IntArray:
        """Return the codes that are still due; then `reset`."""
        ...

    def reset(self) -> None:
        """Start afresh."""
        ...


@runtime_checkable
class Sketch(Protocol):
    """A running, mergeable summary of one feature over a stream (a commutative monoid).

    ``a + b`` summarises the frames of both, in any order. ``total``, shape (M,), has integer counts
    or a sum of embeddings of ``frames`` usable frames.
    """

    total: AnyArray
    frames: int

    def learn_one(self, value: Any) -> None:
        """Add one frame: a bin, or an embedding of shape (M,). NaN is dropped."""

    def learn_many(self, values: AnyArray) -> None:
        """Add frames, shape (k,) or (k, M); equals the loop over ``learn_one``."""

    def __add__(self, other: Self) -> Self: ...


@runtime_checkable
class Source(Protocol):
    """Origin of audio or precomputed frames. It is a context manager.

    Iterating yields the stream in order from its first sample to its end. Items are `Block` of
    audio (any length, any rate) or precomputed `Frames`, and a `Gap` for each missing stretch.
    Either blocks or `Frames` keep the clock. `Words` and `Tracks` may accompany them, each before
    the audio of the tick at which it counts. `monitor.sources.BaseSource` implements all but
    ``label``, ``stream_info``, ``seconds`` and the items.

    Attributes:
        label: name in messages, never a full path.

    Raises:
        monitor.errors.SourceError: from iterating or opening, if nothing more can be read. The
            one-line message has a remedy.
        monitor.errors.UsageError: from iterating a closed source.

    Example:
        >>> import numpy as np
        >>> from monitor.sources import BaseSource
        >>> from monitor.types import Block, Gap
        >>> class Silence(BaseSource):
        ...     label, stream_info = "silence", StreamInfo(channels=1)
        ...     seconds = 2.0
        ...
        ...     def items(self):
        ...         yield Block(np.zeros(16000, np.float32), rate=16000)
        ...         yield Gap("cable", lost_seconds=1.0, detail="nothing was plugged in")
        >>> isinstance(Silence(), Source)
        True
    """

    label: str

    @property
    def seconds(self) -> float | None:
        """Audio seconds promised, None if unknown."""

    @property
    def stream_info(self) -> StreamInfo:
        """Contents of the stream."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of its recordings; ``Gap.recording`` and the like are places in it."""
        ...

    @property
    def transcripts(self) -> tuple[TranscriptNote, ...]:
        """Notes on its words, one a recording; none unless it brings words."""
        ...

    def provenance(self) -> tuple[Provenance, ...] | None:
        """Return its origin, which identifies it later; None if unknown."""

    def __iter__(self) -> Iterator[Item]: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


@runtime_checkable
class LiveSource(Source, Protocol):
    """A source that continues until it is stopped, even if it is not read."""

    @property
    def waiting_seconds(self) -> float:
        """Seconds of captured audio that wait to be read."""

    def behind_seconds(self, seconds: float) -> float:
        """Wall seconds since the capture of that second of the stream."""

    def stop(self) -> None:
        """End the stream after the audio captured so far; thread-safe."""


class AudioDevice(Protocol):
    """An opened input device: what `monitor.sources.Microphone` needs of a sound library."""

    name: str
    rate: int
    channels: int

    def start(self, hear: Callable[[FloatArray, bool], None], ended: Callable[[], None]) -> None:
        """Begin to record; returns at once.

        The device's thread calls ``hear`` with samples, (n, channels) float32, which are copied,
        and with whether some were lost before them. It calls ``ended`` once at the end.
        """

    def close(self) -> None:
        """Let go of the device."""


@runtime_checkable
class Sink(Protocol):
    """Receiver of the events of a run: JSON lines, a terminal, a page.

    ``docs/records.md`` explains the attributes of events, and ``event.record()`` is the JSON. A
    sink ignores unknown types.

    Example:
        >>> from monitor.events import Reading
        >>> class Loudest:
        ...     bits = 0.0
        ...
        ...     def write(self, event):
        ...         if isinstance(event, Reading):
        ...             self.bits = max(self.bits, event.bits)
        ...
        ...     def close(self):
        ...         print(f"at most {self.bits:.1f} bits")
        >>> sink = Loudest()
        >>> sink.write(Reading.from_record({"bits": 2.25}))
        >>> isinstance(sink, Sink), sink.close()
        at most 2.2 bits
        (True, None)
    """

    def write(self, event: Event) -> None:
        """Take one event: start, reading, alert, gap, notice, change, level reached or end."""

    def close(self) -> None:
        """Finish after the last event; may be called twice."""


class Stateful(Protocol):
    """State in a checkpoint, from which a stopped run resumes without a difference."""

    def state(self) -> Record:
        """Return the state after the events so far, as JSON values."""

    def restore(self, state: Record) -> None:
        """Take up a ``state``, on an object made with the same arguments."""


class AlertRule(Stateful, Protocol):
    """Rule that decides from the events of a run when to raise an alert, and when to clear it."""

    def update(self, event: Event) -> list[Alert]:
        """Take the next event of the run: the alerts that it gives rise to, none as a rule."""


@runtime_checkable
class ExplainedRule(AlertRule, Protocol):
    """A rule that also describes itself, as `monitor.alerts.BaseRule` does."""

    @property
    def rule(self) -> str:
        """Text of the rule."""
        ...

    @property
    def inconclusive_reason(self) -> str:
        """Reason why a stream that ends here is undecided; empty if it is decided."""
        ...

    def note(self, start: RunStart) -> str | None:
        """Return what a person should know before the stream of this ``start`` begins, or None."""

    def terms(self) -> AlarmTerms | None:
        """Return its entry in the start's ``alarms``, or None."""


class AlertAction(Sink, Protocol):
    """A sink that does something with a run, and may fail at it: nothing is stopped by that.

    ``write`` must not keep the stream waiting: hand slow work to a thread, as
    `monitor.alerts.actions.registry.BackgroundDelivery` does for an `AlertReceiver`.
    """

    def drain(self) -> Sequence[str]:
        """Finish, as the stream is over, and report what could not be done, a line each."""


class AlertReceiver(Protocol):
    """Receiver of a `monitor.alerts.actions.registry.BackgroundDelivery`, called from its thread.

    Its ``label`` in messages contains no address with a secret.
    """

    label: str

    def deliver(self, alert: Alert, cancel: threading.Event) -> None:
        """Hand one alert over, until ``cancel`` is set; DeliveryError if it was not taken."""


CLEAR, MUTED = "clear", "muted"
"""Ways of a relay beside the names of methods."""


class RelayControl(Protocol):
    """Relay, as a page or a house shows and mutes it.

    Attributes:
        muted: whether a person muted it; setting it does.
    """

    muted: bool

    @property
    def way(self) -> str:
        """Name of what goes out: ``"clear"``, a method, or ``"muted"``."""

    @property
    def budget_bits(self) -> float | None:
        """The budget; None without one."""

    @property
    def left_bits(self) -> float | None:
        """Bits that are left of it."""

    @property
    def sent_bits(self) -> float:
        """Most bits that an attacker has of what went out."""

    @property
    def kept_bits(self) -> float:
        """Bits of the budget that are kept back."""

    @property
    def held_bits(self) -> float:
        """Bits that an attacker would have had of the sound that spent the budget; 0 before."""


class ThresholdForecast(Protocol):
    """Forecast of how long a threshold of a field is away, as `monitor.alerts.Forecast`."""

    threshold_bits: float
    field: str

    def update(self, event: Event) -> None:
        """Take the next event of the run."""

    @property
    def seconds_left(self) -> float | None:
        """Stream seconds until then; 0 if reached, None if unknown."""


@runtime_checkable
class Anonymiser(Protocol):
    """Transform one channel of one recording, piece by piece.

    The samples are bit-identical for any cutting into pieces. Before ``flush`` up to
    ``latency_samples`` may be missing. The shipped anonymisers return exactly as many samples as
    they receive.

    Attributes:
        rate: samples per second, in and out.
        latency_samples: maximum lag of the output in samples; None if all output comes from
            ``flush``.

    An anonymiser with an epsilon per window has an attribute ``declares``, a
    `monitor.anonymisers.laplace.DeclaredGuarantee`, which runs compose.

    Raises:
        monitor.errors.UsageError: from ``process``, if a sample is not finite.

    Example:
        >>> import numpy as np
        >>> class Half:
        ...     rate, latency_samples = 16000, 0
        ...
        ...     def process(self, samples):
        ...         return samples / 2
        ...
        ...     def flush(self):
        ...         return np.empty(0, np.float32)
        ...
        ...     def reset(self):
        ...         pass
        >>> isinstance(Half(), Anonymiser)
        True
    """

    rate: int

    @property
    def latency_samples(self) -> int | None:
        """By how many samples what came out may lag behind what went in."""

    def process(self, samples: FloatArray) -> FloatArray:
        """Return what is final after these further samples: shape (n,) to (m,), float32."""
        ...

    def flush(self) -> FloatArray:
        """Return the rest, at the end of the recording; then ``reset`` before anything else."""
        ...

    def reset(self) -> None:
        """Restart the same recording with the same random draws."""


class ScoredComparisons(Protocol):
    """Mated and non-mated scores with their speakers, 0 to S - 1.

    Mated scores compare a speaker with the same speaker, non-mated ones two speakers. Mated scores
    are in memory. Non-mated ones, which may be far more, come in blocks.
    """

    @property
    def name(self) -> str:
        """Name of the system that made the scores."""

    @property
    def mated(self) -> FloatArray:
        """Scores of equal speakers: shape (M,), float64."""

    @property
    def owner(self) -> IntArray:
        """Index of each score's person: shape (M,), 0 to S - 1."""

    @property
    def non_mated_counts(self) -> IntArray:
        """Counts of scores of different speakers in each person's trials: shape (S,)."""

    def non_mated_blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield those scores, some megabytes at a time: owners, shape (rows,), scores (rows, n)."""


LEAST_RATE = 1_000
MOST_RATE = 768_000  # samples a second: twice the highest rate that sound cards have
MOST_CHANNELS = 64
MOST_SAMPLES = 1 << 22  # of all channels, at one go: 16 MB. 30 s in stereo at 48 kHz fit


def check_format(label: str, rate: int, channels: int) -> None:
    """Refuse (SourceError) a format that no recording has."""
    if not 1 <= channels <= MOST_CHANNELS:
        raise SourceError(
            f"unsupported {plural(channels, 'channel')} in the header of {label}: the maximum is "
            f"{MOST_CHANNELS}. Is it damaged?"
        )
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise SourceError(
            f"unsupported rate {rate} Hz in the header of {label}: use {LEAST_RATE} to "
            f"{MOST_RATE}. Is it damaged?"
        )
