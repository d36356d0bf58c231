"""Interfaces of the parts that you can replace, as structural types.

Any object with these attributes and methods fits, without inheritance or registration.
``isinstance`` can check `Source`, `Feature`, `Sketch`, `Sink` and `Anonymiser`.
``tests/test_contracts.py`` tests every implementation, and
``tests/anonymisers/test_contracts_held.py`` tests anonymisers.
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
    """Contents of a source. A monitor uses them to refuse a source before it starts.

    Attributes:
        audio: whether it yields blocks of samples. Time is then counted in samples, otherwise in
            `Frames`.
        tracks: precomputed frames by feature name, either alone or beside the audio.
        words: whether it yields timed words.
        channels: number of audio channels; None without audio or if not yet known.
        live: whether audio continues to arrive while the source is not read.
        cut: whether it ends before the end of the recording.
        noise: noise added to precomputed embeddings, such as ``"laplace:15"``; empty without noise.
        protected: recordings in which this program changed the voice, such as ``"talk.wav was
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
    """A recording, or a part of a recording, in a stream.

    Attributes:
        label: name in messages.
        hashes: fingerprints (`monitor.sources.registry.recording_hashes`). Two recordings with a
            common fingerprint are the same. Empty if the recording cannot be recognised again, like
            standard input.
        start_seconds, end_seconds: limits of the part; None for the recording's end.
        raw: (rate, channels, encoding) of samples without a header.
    """

    label: str
    hashes: tuple[str, ...] = ()
    start_seconds: float = 0.0
    end_seconds: float | None = None
    raw: tuple[int, int, str] | None = None


@dataclass(frozen=True, slots=True)
class TranscriptNote:
    """Summary of a recording's transcript, or of the words of a live source.

    Attributes:
        words: number of words; None if still to come.
        spread: whether word times were interpolated within longer segments; None if not yet known.
        speaker: the speaker, if the transcript names exactly one.
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
    """Extractor of a feature's frames from audio or words.

    Input is mono audio at the feature's own rate, with pauses, or `Words` if its spec takes words.
    The frames must not depend on how the audio is cut into blocks. A feature returns only usable
    frames, so audio without a voice gives no frames. Ticks are 10 ms and count from the last
    ``reset``.

    Attributes:
        spec: specification of frames, network and sample rate. Templates with other frames are
            refused.
        follow: settings for detecting voice changes (``Monitor(on_change=...)``), or None.

    Example:
        This feature has one frame per tick: whether the tick's middle sample is positive.

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
        """Settings for detecting voice changes, or None."""

    def process(self, content: Any, /) -> Track:
        """Process further content; return the frames that it completes, with their ticks.

        Args:
            content: finite mono float samples at ``spec.rate``, shape (n,). If ``spec.takes`` is
                words, content is `Words`, and frames are complete once their words are known.
        """

    def flush(self) -> Track:
        """End the recording; return the last frames."""

    def skip_to(self, tick: int) -> None:
        """Skip frames that are complete by ``tick``, counted from the last reset."""

    def reset(self) -> None:
        """Restart. The next sample is the first of a recording."""


@runtime_checkable
class WordFeature(Feature, Protocol):
    """A feature of words that can warn about an unsuitable transcript, like ``style``."""

    def doubt(self, label: str, texts: Sequence[str], /) -> str:
        """Return a one-line warning about the transcript's words as a whole, or an empty text."""
        ...


@runtime_checkable
class WindowFeature(Feature, Protocol):
    """A feature of windows of speech that can also embed part of a window."""

    def embed_part(self, speech: FloatArray, /) -> AnyArray:
        """Embed n ticks of speech, s samples each: shape (n, s).

        Returns:
            Shape (1, d), or (0, d) if the speech is too short.
        """


class Embedder(Protocol):
    """A speaker network, which turns windows of speech into embeddings."""

    def embed(self, windows: FloatArray) -> FloatArray:
        """Embed each window: (b, n), float32 at 16 kHz, to (b, d).

        An embedding's length is the weight per second of its window, 1 on average.
        """
        ...


@runtime_checkable
class RunEmbedder(Embedder, Protocol):
    """A speaker network that also embeds parts of each window."""

    def embed_runs(self, windows: FloatArray, slots: int) -> tuple[FloatArray, FloatArray]:
        """Embed windows, (b, n), and all runs of their equal slots (`monitor.types.list_runs`).

        Returns:
            Shape (b, d), equal to that of `embed`, and (b, r, d).
        """
        ...


class MarkedEmbedder(Embedder, Protocol):
    """A speaker network of ``size`` outputs with the ``sha256`` of its weights."""

    size: int
    sha256: str


class CodeStream(Protocol):
    """Converter of samples at 16 kHz to codes, one per frame, however the samples are cut."""

    def push(self, samples: FloatArray) -> IntArray:
        """Process further samples; return the codes of newly completed frames."""
        ...

    def flush(self) -> IntArray:
        """Return the last codes. Then call `reset`."""
        ...

    def reset(self) -> None:
        """Restart for another recording."""
        ...


@runtime_checkable
class Sketch(Protocol):
    """Running summary of one feature's frames. Summaries can be added (a commutative monoid).

    ``a + b`` summarises the frames of both, in any order. ``total``, shape (M,), has integer counts
    or a sum of embeddings. ``frames`` is the number of usable frames.
    """

    total: AnyArray
    frames: int

    def learn_one(self, value: Any) -> None:
        """Add one frame: a bin, or an embedding of shape (M,). Frames with NaN are dropped."""

    def learn_many(self, values: AnyArray) -> None:
        """Add frames, shape (k,) or (k, M); equals the loop over ``learn_one``."""

    def __add__(self, other: Self) -> Self: ...


@runtime_checkable
class Source(Protocol):
    """Origin of audio or precomputed frames. It is a context manager.

    Iterating yields the stream in order from its first sample to its end. Items are `Block` of
    audio (any length, any rate) or precomputed `Frames`, never both, and a `Gap` for each missing
    stretch. `Words` and `Tracks` may accompany them. They must precede the audio of the tick from
    which they count. `monitor.sources.BaseSource` implements all but ``label``, ``stream_info``,
    ``seconds`` and the items.

    Attributes:
        label: name in messages, never a full path.

    Raises:
        monitor.errors.SourceError: from iterating or opening, if the source cannot be read. The
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
        """Total audio seconds; None if unknown."""

    @property
    def stream_info(self) -> StreamInfo:
        """Contents of the stream."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the recordings, indexed by ``Gap.recording`` and similar fields."""
        ...

    @property
    def transcripts(self) -> tuple[TranscriptNote, ...]:
        """Summaries of transcripts, one per recording with words."""
        ...

    def provenance(self) -> tuple[Provenance, ...] | None:
        """Return the recordings of the stream, to identify them later; None if unknown."""

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
        """Return the wall seconds since this second of the stream was captured."""

    def stop(self) -> None:
        """End the stream after the audio captured so far; thread-safe."""


class AudioDevice(Protocol):
    """An opened input device, as `monitor.sources.Microphone` needs from a sound library."""

    name: str
    rate: int
    channels: int

    def start(self, hear: Callable[[FloatArray, bool], None], ended: Callable[[], None]) -> None:
        """Start recording; returns at once.

        The device's thread calls ``hear`` with samples, (n, channels) float32, and whether samples
        were lost before them. ``hear`` copies the samples. The thread calls ``ended`` once at the
        end.
        """

    def close(self) -> None:
        """Release the device."""


@runtime_checkable
class Sink(Protocol):
    """Receiver of a run's events, such as a file of JSON lines, a terminal or a page.

    ``docs/records.md`` explains the attributes of events. ``event.record()`` returns JSON values. A
    sink must ignore unknown types.

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
    """A part with state in checkpoints, so that an interrupted run resumes exactly."""

    def state(self) -> Record:
        """Return the state after the events so far, as JSON values."""

    def restore(self, state: Record) -> None:
        """Restore a ``state`` into an object made with the same arguments."""


class AlertRule(Stateful, Protocol):
    """Rule that raises and clears alerts, from the events of a run."""

    def update(self, event: Event) -> list[Alert]:
        """Process the next event of the run; return its alerts, usually none."""


@runtime_checkable
class ExplainedRule(AlertRule, Protocol):
    """A rule that also describes itself, as `monitor.alerts.BaseRule` does."""

    @property
    def rule(self) -> str:
        """Text of the rule."""
        ...

    @property
    def inconclusive_reason(self) -> str:
        """Reason why a stream that ends now is too short to decide; empty if it is decided."""
        ...

    def note(self, start: RunStart) -> str | None:
        """Return a notice text for the user before the stream begins, or None."""

    def terms(self) -> AlarmTerms | None:
        """Return the rule's entry in the start's ``alarms``, or None."""


class AlertAction(Sink, Protocol):
    """A sink that acts on alerts. Its failures do not stop the run.

    ``write`` must return quickly. Move slow work to a thread, as
    `monitor.alerts.actions.BackgroundDelivery` does for an `AlertReceiver`.
    """

    def drain(self) -> Sequence[str]:
        """Finish after the stream's end; return one line per failure."""


class AlertReceiver(Protocol):
    """Receiver of alerts, called from the thread of `monitor.alerts.actions.BackgroundDelivery`.

    ``label`` names it in messages, and must not contain a secret, such as an address with a token.
    """

    label: str

    def deliver(self, alert: Alert, cancel: threading.Event) -> None:
        """Deliver one alert; stop once ``cancel`` is set. DeliveryError if it was not accepted."""


CLEAR, MUTED = "clear", "muted"
"""Values of `RelayControl.way` other than an anonymiser's name."""


class RelayControl(Protocol):
    """Relay of your voice to other programs, for pages and homes that show and mute it.

    Attributes:
        muted: whether a person muted the relay. Set it to mute or unmute.
    """

    muted: bool

    @property
    def way(self) -> str:
        """Audio sent: ``"clear"``, ``"protected"``, an anonymiser's name, or ``"muted"``."""

    @property
    def budget_bits(self) -> float | None:
        """Budget in bits; None without a budget."""

    @property
    def left_bits(self) -> float | None:
        """Remaining bits of the budget, including ``kept_bits``; None without a budget."""

    @property
    def sent_bits(self) -> float:
        """Maximum bits of any modelled attacker, from the audio sent."""

    @property
    def kept_bits(self) -> float:
        """Bits of the budget that are kept back as a margin."""

    @property
    def held_bits(self) -> float:
        """Maximum bits had the refused audio been sent; 0 until the budget is spent."""


class ThresholdForecast(Protocol):
    """Forecast of the time until a field reaches a threshold, like `monitor.alerts.Forecast`."""

    threshold_bits: float
    field: str

    def update(self, event: Event) -> None:
        """Process the next event of the run."""

    @property
    def seconds_left(self) -> float | None:
        """Stream seconds until the threshold; 0 if reached, None if unknown."""


@runtime_checkable
class Anonymiser(Protocol):
    """Converter of one channel of a recording into protected sound, block by block.

    The output must be bit-identical however the input is cut into blocks. Until ``flush``, it may
    lag behind the input by up to ``latency_samples``. The shipped anonymisers return exactly as
    many samples as they receive.

    Attributes:
        rate: samples per second, in and out.
        latency_samples: maximum lag of the output in samples; None if all output comes from
            ``flush``.

    An anonymiser that guarantees an epsilon per window has an attribute ``declares``, a
    `monitor.anonymisers.laplace.DeclaredGuarantee`. Runs compose it over all windows.

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
        """Maximum lag of the output in samples; None if all output comes from ``flush``."""

    def process(self, samples: FloatArray) -> FloatArray:
        """Process samples, shape (n,); return the output that is final, shape (m,), float32."""
        ...

    def flush(self) -> FloatArray:
        """End the recording; return the last samples. Then call ``reset`` before further use."""
        ...

    def reset(self) -> None:
        """Restart the same recording with the same random draws."""


class ScoredComparisons(Protocol):
    """Scores of an evaluation, for S speakers numbered 0 to S - 1.

    Mated scores compare two samples of one speaker, non-mated scores two speakers. Mated scores are
    in memory. Non-mated scores can be far more, and come in blocks.
    """

    @property
    def name(self) -> str:
        """Name of the system that made the scores."""

    @property
    def mated(self) -> FloatArray:
        """Mated scores: shape (M,), float64."""

    @property
    def owner(self) -> IntArray:
        """Speaker of each mated score: shape (M,), 0 to S - 1."""

    @property
    def non_mated_counts(self) -> IntArray:
        """Number of non-mated scores in each speaker's trials: shape (S,)."""

    def non_mated_blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield blocks of non-mated scores: speakers, shape (rows,), and scores, (rows, n)."""


LEAST_RATE = 1_000
MOST_RATE = 768_000  # samples a second: twice the highest rate that sound cards have
MOST_CHANNELS = 64
MOST_SAMPLES = 1 << 22  # of all channels, at one go: 16 MB. 30 s in stereo at 48 kHz fit


def check_format(label: str, rate: int, channels: int) -> None:
    """Raise SourceError for an impossible rate or number of channels."""
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
