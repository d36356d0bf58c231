"""Events beside readings: begin and end, losses, notices, changes, alerts, levels reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from monitor.events.declaration import Event, declared, key
from monitor.events.keys import FALSE_ALARMS
from monitor.events.reading import OpenChange
from monitor.types import GAP_REASONS, NOTICE_KINDS, Gap, Notice

_LABEL = "only of several people side by side: whose"


@declared()
class GapEvent(Event):
    """A loss, placed on the stream: ``seconds`` is where it was noticed, in which ``recording``.

    ``number`` is the place of that recording in the stream.
    """

    type: ClassVar[Literal["gap"]] = "gap"
    seconds: float = key("seconds", "where on the stream it was noticed")
    reason: str = key(
        "",
        "a few words: "
        + "; ".join(f'`"{reason}"` ({meaning})' for reason, meaning in GAP_REASONS.items())
        + ". A source of your own may have others",
    )
    lost_seconds: float | None = key(
        "seconds", "audio lost, or not heard by a thinned feature; null where nobody can know"
    )
    recording: str = key("", "which recording", default="")
    detail: str = key("", "one line for a person", default="")
    label: str | None = key("", _LABEL, sparse=True, default=None)
    number: int = 0

    @classmethod
    def of(
        cls, seconds: float, gap: Gap, recording: str = "", label: str | None = None
    ) -> GapEvent:
        """Return a gap that a source gave, placed on the stream."""
        return cls(
            seconds, gap.reason, gap.lost_seconds, recording, gap.detail, label, gap.recording
        )

    @property
    def code(self) -> str:
        """Such as ``gap.device-lost``: the reason."""
        return f"gap.{self.reason.replace(' ', '-')}"


@declared()
class NoticeEvent(Event):
    """A notice, placed on the stream: ``seconds`` is when it arose.

    ``number`` is the place of its recording in the stream.
    """

    type: ClassVar[Literal["notice"]] = "notice"
    seconds: float = key("seconds", "where on the stream it was noticed")
    kind: str = key(
        "", "; ".join(f'`"{kind}"` ({meaning})' for kind, meaning in NOTICE_KINDS.items())
    )
    text: str = key("", "one line for a person: what is so, and what to do")
    recording: str = key("", "which recording", default="")
    level: str = key(
        "",
        '`"warning"` where figures may mislead, else `"info"`',
        enum=["warning", "info"],
        default="warning",
    )
    fields: Mapping[str, Any] = key("", "the figures behind it, by name", default=None)
    label: str | None = key("", _LABEL, sparse=True, default=None)
    number: int = 0

    @classmethod
    def of(
        cls, seconds: float, notice: Notice, recording: str = "", label: str | None = None
    ) -> NoticeEvent:
        """Return a notice, placed on the stream."""
        return cls(
            seconds, notice.kind, notice.text, recording, notice.level, notice.fields, label,
            notice.recording,
        )  # fmt: skip

    @property
    def code(self) -> str:
        """Such as ``notice.channels-differ``: the kind."""
        return f"notice.{self.kind.replace(' ', '-')}"

    @property
    def notice(self) -> Notice:
        """The notice by itself."""
        return Notice(self.kind, self.text, self.number, self.level, self.fields, self.seconds)


@declared()
class Change(Event):
    """A change of speaker or channel.

    Attributes:
        margin_before, margin_after: of the first of the features.
        back: the voice that was left speaks again; the margins are then those under it.
        label: in whose voice, of several people side by side.
    """

    type: ClassVar[Literal["change"]] = "change"
    seconds: float = key("seconds", "where on the stream it was noticed")
    since_seconds: float = key("seconds", "where the new voice seems to have begun")
    features: tuple[str, ...] = key(
        "",
        'which of them noticed; `"channel"` alone means another microphone, room, line or '
        "gain, or a voice that came with one",
    )
    margin_before: float = key(
        "number",
        "how much the newest speech was like the voice so far rather than like anybody, on "
        "average up to there: nats a frame (histograms), cosine (embeddings) or bels from the "
        "usual levels, negative (`channel`)",
    )
    margin_after: float = key("number", "the same since then")
    back: bool = key(
        "",
        'only true, and only with `"note"`: nobody new, the first voice is back. The margins '
        "are those under it: the level that says so, and since then",
        sparse=True,
        default=False,
        encode=lambda back: back or None,
    )
    action: str = key(
        "",
        'what was done: `"note"` carries on, `"reset"` forgets the evidence and keeps the '
        'peak, `"split"` begins another stream',
        enum=["note", "reset", "split"],
        default="note",
    )
    label: str | None = key("", _LABEL, sparse=True, default=None)

    @property
    def code(self) -> str:
        """``change.note``, ``change.reset``, ``change.split``; ``change.back``: the first voice."""
        return f"change.{'back' if self.back else self.action}"


@declared()
class Alert(Event):
    """An alert rule was raised, or cleared.

    Attributes:
        kind: of rule: ``"threshold"``, ``"forecast"``, ``"budget"`` or ``"false alarms"``.

    Example:
        >>> alert = Alert(4.0, 3.5, "bits>3 for 0 s", "bits", 3.0, "raised", 3.2)
        >>> alert.code, alert.record()["threshold"]
        ('alert.raised', 3.0)
    """

    type: ClassVar[Literal["alert"]] = "alert"
    seconds: float = key("seconds", "when, in audio seconds heard")
    speech: float | None = key("seconds", "when, in speech seconds", type="number")
    rule: str = key(
        "",
        "as it can be given to `--alert`; `bits>4.5 (5 % false alarms in 10 minutes)` where "
        "the threshold was worked out (`--false-alarms`); `bits>3 within 30 s` for a forecast "
        "(`--warn`), `budget of 8 bits nearly spent` and `budget of 8 bits spent` for a budget "
        "(`--budget`)",
    )
    field: str = key("", "the figure it watches")
    threshold: float = key("number", "its threshold, bits")
    level: str = key(
        "",
        '`"alert"`, or `"warning"` for a forecast and a budget nearly spent: these give no '
        "exit status and stop nothing",
        enum=["alert", "warning"],
        default="alert",
        kw_only=True,
    )
    state: str = key("", '`"raised"` or `"cleared"`', enum=["raised", "cleared"])
    value: float | None = key("number", "the figure at that moment")
    least_speech_seconds: float = key(
        "seconds",
        "only with a rule that waits for speech (`after 10 s`): T of the first reading that counts",
        sparse=True,
        default=0.0,
        encode=lambda seconds: seconds or None,
    )
    seconds_left: float | None = key(
        "seconds",
        "only of a forecast: stream seconds until the threshold at this rate; null where there "
        "is none any more",
        required=False,
        default=None,
    )
    false_alarms: Mapping[str, Any] | None = key(
        "",
        "only with `--false-alarms`: at most this `share` of other people's streams of "
        "`horizon_seconds` sets it off, by so many `speakers` (`repeated` of whom said less "
        "and were heard again), under the rank model of this kind of `session`; `beyond` is "
        "true after that time, of which nothing is known. See [alarms](alarms.md)",
        sparse=True,
        default=None,
        schema=FALSE_ALARMS,
    )
    change: OpenChange | None = key(
        "",
        "only where a change ended it: its `since_seconds` and `features`",
        sparse=True,
        default=None,
    )
    recording: str | None = key("", "the name of the one it fell in", sparse=True, default=None)
    label: str | None = key("", _LABEL, sparse=True, default=None)
    watch: str | None = key("", "only where several are watched: whom", sparse=True, default=None)
    kind: str = "threshold"

    @property
    def code(self) -> str:
        """``alert.raised``, ``alert.cleared``, ``warning.raised`` or ``warning.cleared``."""
        return f"{self.level}.{self.state}"

    def record(self) -> dict[str, Any]:
        """Return it as a JSON-able record."""
        record = Event.record(self)
        if self.kind != "forecast":
            del record["seconds_left"]
        return record


@declared()
class LevelReached(Event):
    """One side of a protected run has reached a level of bits and stayed there."""

    type: ClassVar[Literal["crossing"]] = "crossing"
    seconds: float = key("seconds", "where on the stream it was certain")
    bits: float = key("number", "the level of the headline")
    side: str = key("", '`"clear"` or `"protected"`', enum=["clear", "protected"])
    since_seconds: float = key(
        "seconds",
        "since when the figure has stayed at or above it, for as long as an alert is held",
    )
    delay_seconds: float | None = key(
        "number",
        "with the crossing of the second side: how much later the protected side was",
    )

    @property
    def code(self) -> str:
        """``crossing.clear`` or ``crossing.protected``."""
        return f"crossing.{self.side}"


@dataclass(frozen=True, slots=True)
class _RecordEvent(Event):
    """An event that is its record: ``fields`` are the keys."""

    fields: Mapping[str, Any]

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Take a record as it is."""
        return cls(record)

    def record(self) -> dict[str, Any]:
        """Return it as a JSON-able record."""
        return {**self.fields, "type": self.type}


@dataclass(frozen=True, slots=True)
class RunStart(_RecordEvent):
    """A run begins; ``fields`` are the keys of its ``start`` record."""

    type: ClassVar[Literal["start"]] = "start"
    code: ClassVar[str] = "start"


@dataclass(frozen=True, slots=True)
class RunEnd(_RecordEvent):
    """A run is over; ``fields`` are the keys of its ``end`` record."""

    type: ClassVar[Literal["end"]] = "end"
    code: ClassVar[str] = "end"
