"""Events of a run beside its readings: begin and end, losses, notices, changes, alerts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, TypeAlias

from monitor.events.declaration import Event, declared, decode, key, text_key
from monitor.events.keys import FLAG, HEADLINE, HEADLINES, PEOPLE, SECONDS, SESSION
from monitor.events.reading import Bystander, OpenChange, conditions_key, differs_key
from monitor.maths.condition import Condition
from monitor.maths.statistics import Crossing
from monitor.types import GAP_REASONS, NOTICE_KINDS, Gap, Notice, Record

SCHEMA_VERSION = 2
"""Schema of all records. Others are refused, because `bits` was another figure in schema 1."""


@declared()
class FalseAlarmTerms:
    """Guarantee of a calculated threshold: its number of speakers and stream length."""

    share: float = key({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
    horizon_seconds: float = key("seconds")
    speakers: int = key("count")
    repeated: int | None = key("count", required=False, type="integer")
    session: str = key(SESSION)
    beyond: bool | None = key(sparse=True, default=None, type="boolean")


# --- The first record of a run: everything that a reader needs to know before its first reading.

_SHARE = {"type": "number", "minimum": 0, "maximum": 1}


@declared()
class BystanderTerms:
    """Terms for naming bystanders: the minimum probability and the size of the crowd."""

    above: float = key(_SHARE)
    people: int = key("count")


@declared()
class HistoryPoint:
    """A reading of an earlier session in a ledger; its speech is that of all sessions."""

    session: int = key("count")
    time: str = key()
    seconds: float = key("seconds")
    speech: float = key("seconds")
    bits: float | None = key("bits")
    bits_low: float | None = key("bits", required=False)
    bits_high: float | None = key("bits", required=False)
    evidence_bits: float | None = key("bits", required=False)
    evidence_bits_low: float | None = key("bits", required=False)
    evidence_bits_high: float | None = key("bits", required=False)
    closed_set_bits: float | None = key("bits", required=False)
    closed_set_bits_low: float | None = key("bits", required=False)
    closed_set_bits_high: float | None = key("bits", required=False)


@declared()
class CarriedEvidence:
    """Evidence of earlier sessions that a session continues."""

    sessions: int = key("count")
    speech: float = key("seconds")
    history: tuple[HistoryPoint, ...] = key()


@declared()
class AlertTerms:
    """A rule that has a threshold."""

    rule: str = key()
    field: str = key()
    threshold: float = key("number")
    level: str = key(enum=["alert", "warning"])
    hold_seconds: float = key("seconds")
    least_speech_seconds: float = key("seconds")


@declared()
class AlarmTerms:
    """A threshold that was worked out, and its promise."""

    rule: str = key()
    field: str = key()
    threshold: float = key("number")
    false_alarms: FalseAlarmTerms = key()


@declared()
class ProtectedAttacker:
    """An attacker of the protected side."""

    support_bits: float | None = key("bits")
    fingerprint: Mapping[str, str] = key()


@declared()
class ProtectedStart:
    """Protected side of a run; its ``latency_seconds`` are None where all comes at the end."""

    method: str = key()
    latency_seconds: float | None = key("seconds")
    attackers: Mapping[str, ProtectedAttacker] = key()


@declared()
class DeclaredStart:
    """Epsilon that a mechanism declares (``--protect usc:15``, frames with noise)."""

    mechanism: str = key()
    epsilon_nats: float = key("number")
    window_seconds: float = key("seconds")
    delta: float = key("probability", type=["number", "null"])
    empty_after: int = key("count")


@declared()
class PersonStart:
    """A label of the turns, and its seconds alone."""

    label: str = key()
    seconds: float | None = key("seconds")


@declared()
class TranscriptStart:
    """Transcript beside a recording; figures are None where words are still to come."""

    recording: str = key()
    transcript: str = key()
    words: int | None = key("count")
    spread: bool | None = key()
    speaker: str | None = key()


@declared(kw_only=True)
class RunStart(Event):
    """A run begins; its attributes are the keys of the ``start`` record (docs/records.md)."""

    type: ClassVar[Literal["start"]] = "start"
    schema: int = text_key(
        "version of these records", schema={"const": SCHEMA_VERSION}, default=SCHEMA_VERSION
    )
    version: str = text_key("version of the program")
    time: str = text_key("time of day, UTC")
    features: tuple[str, ...] = text_key("what is listened for", minItems=1)
    speakers: int = key("count", "N, the candidates", minimum=2)
    ceiling: float = key("ceiling", "log2 N")
    reachable_bits: float | None = key(
        "bits",
        "the most that `closed_set_bits` can be: a share of the probability is held back for a"
        " mistake",
        required=False,
    )
    plateau: float | None = key(
        "bits", "the largest expected bits over all lengths, at these templates"
    )
    watch: str | None = text_key("the speaker followed, or null")
    headline: str = text_key(
        'what `bits` of the readings is: `"evidence"` of the watched speaker, or '
        '`"closed-set"`, among the N',
        schema=HEADLINE,
    )
    assumes_enrolled: bool = text_key(
        "true where the headline assumes that the speaker is one of the N"
    )
    step_seconds: float = key("seconds", "audio seconds between readings", exclusiveMinimum=0)
    template_seconds: float | None = key(
        "seconds",
        "D: speech seconds to which all templates are cut",
    )
    similarity: Mapping[str, str] = text_key("by feature, how stream and template are compared")
    ties: str = text_key(
        "how tied ranks are counted", enum=["spread", "optimistic", "pessimistic", "mid"]
    )
    rank_model: str = text_key(
        '`"own"`, or `"mismatched"` where it was learnt without some of these speakers',
        enum=["own", "mismatched"],
    )
    rank_model_prior: float | None = text_key(
        "what the shipped readers' rank model counts in this one as its prior: 0 (nothing) to "
        "1 (it is theirs)",
        required=False,
        schema=_SHARE,
    )
    rank_model_session: str = text_key(
        '`"cross"` or `"same"`: the kind of rank model in use', schema=SESSION
    )
    rank_model_speakers: int = key("count", "mated speakers behind it")
    rank_model_candidates: int | None = key(
        "count",
        "N of the calibration: candidates of each of its tests",
        required=False,
        type="integer",
    )
    among: tuple[int, ...] | None = key(
        {"type": "array", "items": PEOPLE},
        "sizes of the crowds in `among` of the readings",
        required=False,
    )
    enrolled_prior: float | None = text_key(
        "how likely it was taken to be, before any speech, that one of the N speaks",
        required=False,
        schema=_SHARE,
    )
    support_bits: float | None = key(
        "bits",
        "the most evidence that the rank model supports, at any length; null where there is none",
        required=False,
    )
    bystanders: BystanderTerms | None = text_key(
        "only with `bystanders`: the probability `above` which readings name somebody, among"
        " so many `people`",
        sparse=True,
        default=None,
    )
    on_change: str = text_key(
        "what is done when another person, or channel, takes over",
        enum=["ignore", "note", "reset", "split"],
    )
    conditions: Condition | None = conditions_key(
        "those of the template of `watch`, or of most templates; null where unknown",
        required=False,
    )
    recordings: tuple[str, ...] = text_key("names of the recordings, without folders")
    fingerprint: Mapping[str, str] = text_key(
        "of population and rank model: equal ones, equal figures"
    )
    notices: tuple[str, ...] = text_key("what a person should know, one sentence each")
    transcripts: tuple[TranscriptStart, ...] | None = text_key(
        "only with words: of each `recording` its `transcript`, how many `words`, whether "
        "their times were `spread`, and the `speaker`; null where words are still to come",
        sparse=True,
        default=None,
    )
    protected: ProtectedStart | None = text_key(
        "only with `--protect`: its `method`, `latency_seconds` (null: until a recording is "
        "over), and of each of the `attackers` `support_bits` and `fingerprint`",
        sparse=True,
        default=None,
    )
    declared: DeclaredStart | None = text_key(
        "only where anything is promised: the `mechanism`, `epsilon_nats` a window of "
        "`window_seconds`, `delta`, and after how many windows nothing is promised any more "
        "(`empty_after`)",
        sparse=True,
        default=None,
    )
    alerts: tuple[AlertTerms, ...] | None = text_key(
        "only with rules that have a threshold: `rule`, `field`, `threshold`, `level`, "
        "`hold_seconds`, and T of the first reading that counts (`least_speech_seconds`)",
        sparse=True,
        default=None,
    )
    alarms: tuple[AlarmTerms, ...] | None = text_key(
        "only with `--false-alarms`: `rule`, `field`, `threshold`, and the `false_alarms` that"
        " an alert quotes",
        sparse=True,
        default=None,
    )
    people: tuple[PersonStart, ...] | None = text_key(
        "only of several [people](people.md): each `label`, and its `seconds` alone by the turns",
        sparse=True,
        default=None,
    )
    watched: tuple[str, ...] | None = text_key(
        "only where several are watched", sparse=True, default=None
    )
    carried: CarriedEvidence | None = text_key(
        "only with a ledger: the `sessions` that this one goes on from, their `speech` "
        "seconds, and a thinned `history` of their readings",
        sparse=True,
        default=None,
    )


# --- The last record of a run: what it came to, and whether anything was lost.


@declared(kw_only=True)
class PersonEnd:
    """One of several speakers: the most probable person, and the figures of the last reading.

    Attributes:
        person: None if not enrolled.
        seconds, overlap_seconds: speech alone and overlapping speech, by the turns.
    """

    label: str = key()
    person: str | None = key()
    probability: float | None = key("probability")
    enrolled: float | None = key("probability")
    seconds: float | None = key("seconds")
    overlap_seconds: float | None = key("seconds")
    speech: float = key("seconds")
    watch: str | None = key()
    bits: float | None = key("bits")
    bits_low: float | None = key("bits")
    bits_high: float | None = key("bits")
    headline: str | None = key(enum=[*HEADLINES, None])
    at_least: bool | None = key()
    peak_bits: float | None = key("bits")
    purity: float | None = key("probability")
    changes: int = key("count")
    differs: Sequence[str] = differs_key(default=())
    alerts: int = key("count", default=0)
    first_alert_seconds: float | None = key("seconds", default=None)


_CROSSED = {
    "type": "object",
    "properties": {"seconds": SECONDS, "crossed": FLAG},
    "required": ["seconds", "crossed"],
}


@declared()
class DelayRow:
    """When either side of a protected run reached a level of bits, and the disclosure delay."""

    bits: float = key("number")
    clear: Crossing = key(_CROSSED)
    protected: Crossing = key(_CROSSED)
    delay_seconds: float | None = key("number")
    at_least: bool = key()


@declared()
class TranscriptEnd:
    """Fit of a recording's words to its speech; None if there are too few pauses."""

    recording: str = key()
    words: int = key("count")
    words_in_speech: float | None = key("probability")
    speech_with_words: float | None = key("probability")
    as_well_elsewhere: float | None = key("probability", required=False)


@declared(kw_only=True)
class RunEnd(Event):
    """A run is over; its attributes are the keys of the ``end`` record (docs/records.md)."""

    type: ClassVar[Literal["end"]] = "end"
    time: str = text_key("time of day, UTC")
    seconds: float = key("seconds", "audio seconds heard, at the last reading")
    speech: float = key("seconds", "T, speech seconds, at the last reading")
    bits: float | None = key("bits", "the headline of the last reading")
    peak_bits: float | None = key("bits", "the largest headline of the run")
    top: tuple[tuple[str, float], ...] = key("bits", "of the last reading")
    readings: int = key("count", "how many readings")
    conditions: Condition | None = conditions_key("of the last reading, or null", required=False)
    differs: Sequence[str] = differs_key(
        "of the last reading, empty where nothing does", required=False
    )
    gaps: int = key("count", "how many gaps")
    changes: int = key("count", "how many changes")
    lost_seconds: float | None = key("seconds", "audio lost, as far as known")
    alerts: int = key("count", 'alerts raised, of `level` `"alert"`')
    warnings: int = key("count", 'alerts raised, of `level` `"warning"`')
    failures: tuple[str, ...] = text_key("what an action or the ledger could not do, a line each")
    undecided: tuple[str, ...] = text_key(
        "alerts of which a stream so short says nothing, a line each"
    )
    stopped: str | None = text_key("the rule that ended the stream (`--stop-on-alert`), or null")
    complete: bool = text_key("false where anything was lost")
    watch: str | None = text_key("as in `start`")
    recordings: tuple[str, ...] = text_key("as in `start`", required=False)
    notices: tuple[str, ...] = text_key(
        "what a person should know of the recordings, one sentence each",
        required=False,
    )
    repeated_seconds: float | None = key(
        "seconds",
        "only where there was any: speech that was heard before in this stream, and left out",
        sparse=True,
        default=None,
    )
    bystanders: tuple[Bystander, ...] | None = text_key(
        "only with `bystanders`: each of them with the largest `probability` of the run",
        sparse=True,
        default=None,
    )
    revealing_bits: float | None = key(
        "bits",
        "only with `watch` and an embedding: the evidence of the most revealing 1.5 s of speech, "
        "which a short recording could disclose",
        sparse=True,
        default=None,
    )
    revealing_seconds: float | None = key(
        "seconds", "with `revealing_bits`: where these end", sparse=True, default=None
    )
    transcripts: tuple[TranscriptEnd, ...] | None = text_key(
        "only with words: of each `recording` how many `words`, the share of their time in "
        "speech (`words_in_speech`), of speech with words (`speech_with_words`), and of other "
        "places where they would fit as well (`as_well_elsewhere`)",
        sparse=True,
        default=None,
    )
    people: tuple[PersonEnd, ...] | None = text_key(
        "only of several [people](people.md), a row each: the most probable `person` (null: "
        "nobody enrolled), its probability, `seconds` alone, and the figures of the last "
        "reading",
        sparse=True,
        default=None,
    )
    overlap_seconds: float | None = key(
        "seconds",
        "only of several people: seconds in which several speak, which count for nobody",
        sparse=lambda end: end.people is not None,
        default=None,
    )
    disclosure_delay: tuple[DelayRow, ...] | None = text_key(
        "only with `--protect`, a row for each level (`bits`): when either side reached it "
        "(`clear`, `protected`: `seconds`, `crossed`), and `delay_seconds`, `at_least` so much"
        " where the protected side had not",
        sparse=True,
        default=None,
    )
    incomplete: tuple[str, ...] = text_key(
        "what keeps the run from being complete, a line each",
        required=False,
        default=(),
    )


# --- What happens in between.

_LABEL = "only of several people side by side: whose"


@declared()
class GapEvent(Event):
    """A loss, placed on the stream: ``seconds`` is where it was noticed, in which ``recording``.

    ``number`` is the place of that recording in the stream.
    """

    type: ClassVar[Literal["gap"]] = "gap"
    seconds: float = key("seconds", "where on the stream it was noticed")
    reason: str = text_key(
        "a few words: "
        + "; ".join(f'`"{reason}"` ({meaning})' for reason, meaning in GAP_REASONS.items())
        + ". A source of your own may have others"
    )
    lost_seconds: float | None = key(
        "seconds", "audio lost, or not heard by a thinned feature; null where unknown"
    )
    recording: str = text_key("which recording", default="")
    detail: str = text_key("one line for a person", default="")
    label: str | None = text_key(_LABEL, sparse=True, default=None)
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
    text: str = text_key("one line for a person: what is so, and what to do")
    recording: str = text_key("which recording", default="")
    level: str = text_key(
        '`"warning"` where figures may mislead, else `"info"`',
        enum=["warning", "info"],
        default="warning",
    )
    fields: Mapping[str, object] = text_key("the figures behind it, by name", default=None)
    label: str | None = text_key(_LABEL, sparse=True, default=None)
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
        margin_before, margin_after: margins of the first feature.
        back: the earlier voice has returned; the margins are then those below the threshold.
        label: the person concerned, in a run of several people.
    """

    type: ClassVar[Literal["change"]] = "change"
    seconds: float = key("seconds", "where on the stream it was noticed")
    since_seconds: float = key("seconds", "where the new voice seems to have begun")
    features: tuple[str, ...] = text_key(
        'which of them noticed; `"channel"` alone means another microphone, room or line'
    )
    margin_before: float = key(
        "number",
        "how much the newest speech was like the voice so far rather than like anybody, up to "
        "there: nats, cosine or bels",
    )
    margin_after: float = key("number", "the same since then")
    back: bool = text_key(
        "only true: the first voice is back; the margins are those under it",
        sparse=True,
        default=False,
        encode=lambda back: back or None,
    )
    action: str = text_key(
        'what was done: `"note"` goes on, `"reset"` forgets the evidence, `"split"` begins '
        "another stream",
        enum=["note", "reset", "split"],
        default="note",
    )
    label: str | None = text_key(_LABEL, sparse=True, default=None)

    @property
    def code(self) -> str:
        """``change.note``, ``change.reset``, ``change.split``, or for a return ``change.back``."""
        return f"change.{'back' if self.back else self.action}"


@declared()
class Alert(Event):
    """An alert rule was raised, or cleared.

    Attributes:
        kind: of rule: ``"threshold"``, ``"forecast"``, ``"budget"`` or ``"false alarms"``.
    """

    type: ClassVar[Literal["alert"]] = "alert"
    seconds: float = key("seconds", "when, in audio seconds heard")
    speech: float | None = key("seconds", "when, in speech seconds", type="number")
    rule: str = text_key(
        "as it can be given to `--alert`, or in words for a worked-out threshold, a forecast, "
        "a budget"
    )
    field: str = text_key("the figure it watches")
    threshold: float = key("number", "its threshold, bits")
    level: str = text_key(
        '`"alert"`, or `"warning"` for a forecast and a budget nearly spent',
        enum=["alert", "warning"],
        default="alert",
        kw_only=True,
    )
    state: str = text_key('`"raised"` or `"cleared"`', enum=["raised", "cleared"])
    value: float | None = key("number", "the figure at that moment")
    least_speech_seconds: float = key(
        "seconds",
        "only with a rule that waits for speech: T of the first reading that counts",
        sparse=True,
        default=0.0,
        encode=lambda seconds: seconds or None,
    )
    seconds_left: float | None = key(
        "seconds",
        "only of a forecast: stream seconds until the threshold at this rate",
        sparse=lambda alert: alert.kind == "forecast",
        default=None,
    )
    false_alarms: FalseAlarmTerms | None = text_key(
        "only with `--false-alarms`: at most this `share` of other people's streams of "
        "`horizon_seconds` sets it off, by so many `speakers` (`repeated` of whom were heard "
        "again); `beyond` after that time ([alarms](alarms.md))",
        sparse=True,
        default=None,
    )
    change: OpenChange | None = text_key(
        "only where a change ended it: its `since_seconds` and `features`",
        sparse=True,
        default=None,
    )
    way: str | None = text_key(
        "only of `listen --through`, with the bits sent as `value`: how sound goes out from then "
        'on, by an anonymiser of this name or `"muted"`',
        sparse=True,
        default=None,
    )
    recording: str | None = text_key("the name of the one it fell in", sparse=True, default=None)
    label: str | None = text_key(_LABEL, sparse=True, default=None)
    time: str | None = key(
        "", "only in what is sent, and in a ledger: time of day, UTC", sparse=True, default=None
    )
    watch: str | None = text_key("only where several are watched: whom", sparse=True, default=None)
    kind: str = "threshold"

    @property
    def code(self) -> str:
        """``alert.raised``, ``alert.cleared``, ``warning.raised`` or ``warning.cleared``."""
        return f"{self.level}.{self.state}"

    @classmethod
    def from_record(cls, record: Record) -> Alert:
        """Read it back."""
        kind = "forecast" if "seconds_left" in record else "threshold"
        return replace(decode(cls, record), kind=kind)


@declared()
class LevelReached(Event):
    """One side of a protected run has reached a level of bits and stayed there."""

    type: ClassVar[Literal["crossing"]] = "crossing"
    seconds: float = key("seconds", "where on the stream it was certain")
    bits: float = key("number", "the level of the headline")
    side: str = text_key('`"clear"` or `"protected"`', enum=["clear", "protected"])
    since_seconds: float = key(
        "seconds",
        "since when the figure has stayed at or above it",
    )
    delay_seconds: float | None = key(
        "number", "with the second side: how much later the protected one was"
    )

    @property
    def code(self) -> str:
        """``crossing.clear`` or ``crossing.protected``."""
        return f"crossing.{self.side}"


Occurrence: TypeAlias = GapEvent | NoticeEvent | Change | LevelReached | Alert
"""Events between readings."""
