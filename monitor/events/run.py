"""Events of a run other than readings: start and end, losses, notices, changes, alerts."""

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
"""Version of all records. Other versions are refused, because `bits` was another figure in 1."""


@declared()
class FalseAlarmTerms:
    """Guarantee of a calculated threshold: false alarms, stream length and calibration speakers."""

    share: float = key({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
    horizon_seconds: float = key("seconds")
    speakers: int = key("count")
    repeated: int | None = key("count", required=False, type="integer")
    session: str = key(SESSION)
    beyond: bool | None = key(sparse=True, default=None, type="boolean")


_SHARE = {"type": "number", "minimum": 0, "maximum": 1}


@declared()
class BystanderTerms:
    """Terms for naming bystanders: the minimum probability and the size of the crowd."""

    above: float = key(_SHARE)
    people: int = key("count")


@declared()
class HistoryPoint:
    """A reading of an earlier session in a ledger. ``speech`` counts all sessions up to then."""

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
    """Terms of a rule with a fixed threshold."""

    rule: str = key()
    field: str = key()
    threshold: float = key("number")
    level: str = key(enum=["alert", "warning"])
    hold_seconds: float = key("seconds")
    least_speech_seconds: float = key("seconds")


@declared()
class AlarmTerms:
    """Terms of a rule with a calculated threshold, and its guarantee."""

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
    """Protected side of a run; ``latency_seconds`` is None if all output comes at the end."""

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
    """A label of the turns, and the seconds in which this person speaks alone."""

    label: str = key()
    seconds: float | None = key("seconds")


@declared()
class TranscriptStart:
    """Transcript of a recording; figures are None if words are still to come."""

    recording: str = key()
    transcript: str = key()
    words: int | None = key("count")
    spread: bool | None = key()
    speaker: str | None = key()


@declared(kw_only=True)
class RunStart(Event):
    """Start of a run. Attributes are the keys of the ``start`` record (docs/records.md)."""

    type: ClassVar[Literal["start"]] = "start"
    schema: int = text_key(
        "version of these records", schema={"const": SCHEMA_VERSION}, default=SCHEMA_VERSION
    )
    version: str = text_key("version of the program")
    time: str = text_key("time of day, UTC")
    features: tuple[str, ...] = text_key("names of the features in use", minItems=1)
    speakers: int = key("count", "N, the candidates", minimum=2)
    ceiling: float = key("ceiling", "log2 N")
    reachable_bits: float | None = key(
        "bits",
        "maximum of `closed_set_bits`, since a fraction of the probability is reserved for errors",
        required=False,
    )
    plateau: float | None = key(
        "bits", "the largest expected bits over all lengths, at these templates"
    )
    watch: str | None = text_key("the watched speaker, or null")
    headline: str = text_key(
        'kind of `bits` in the readings: `"evidence"` of the watched speaker, or `"closed-set"` '
        "among the N",
        schema=HEADLINE,
    )
    assumes_enrolled: bool = text_key(
        "true if the headline assumes that the speaker is one of the N"
    )
    step_seconds: float = key("seconds", "audio seconds between readings", exclusiveMinimum=0)
    template_seconds: float | None = key(
        "seconds", "D: speech seconds to which all templates are cut"
    )
    similarity: Mapping[str, str] = text_key("comparison of stream and template by feature")
    ties: str = text_key(
        "counting of tied ranks", enum=["spread", "optimistic", "pessimistic", "mid"]
    )
    rank_model: str = text_key(
        '`"own"`, or `"mismatched"` if some of these speakers were not in the calibration',
        enum=["own", "mismatched"],
    )
    rank_model_prior: float | None = text_key(
        "weight of the shipped readers' rank model in this one as a prior, from 0 (none) to 1 (all "
        "of it)",
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
        "assumed probability, before any speech, that one of the N speaks",
        required=False,
        schema=_SHARE,
    )
    support_bits: float | None = key(
        "bits",
        "the maximum evidence that the rank model supports at any length; null without one",
        required=False,
    )
    bystanders: BystanderTerms | None = text_key(
        "only with `bystanders`. The probability `above` which readings name a person, in a "
        "crowd of `people`",
        sparse=True,
        default=None,
    )
    on_change: str = text_key(
        "action when another person or channel takes over",
        enum=["ignore", "note", "reset", "split"],
    )
    conditions: Condition | None = conditions_key(
        "those of the template of `watch`, or of most templates; null if unknown", required=False
    )
    recordings: tuple[str, ...] = text_key("names of the recordings, without folders")
    fingerprint: Mapping[str, str] = text_key(
        "fingerprints of population and rank model, equal if figures are comparable"
    )
    notices: tuple[str, ...] = text_key("notices about the run, one sentence each")
    transcripts: tuple[TranscriptStart, ...] | None = text_key(
        "only with words. One entry per `recording`, with its `transcript`, the number of `words`, "
        "the `speaker`, and whether times were `spread` over words. Null if words are still to "
        "come",
        sparse=True,
        default=None,
    )
    protected: ProtectedStart | None = text_key(
        "only with `--protect`. Its `method`, `latency_seconds` (null if it needs the complete "
        "recording), and the `support_bits` and `fingerprint` of each of the `attackers`",
        sparse=True,
        default=None,
    )
    declared: DeclaredStart | None = text_key(
        "only with a declared guarantee. Its `mechanism`, `epsilon_nats` per window of "
        "`window_seconds`, `delta`, and the number of windows after which it is vacuous "
        "(`empty_after`)",
        sparse=True,
        default=None,
    )
    alerts: tuple[AlertTerms, ...] | None = text_key(
        "only with threshold rules. Each has `rule`, `field`, `threshold`, `level`, "
        "`hold_seconds`, and T of the first reading that counts (`least_speech_seconds`)",
        sparse=True,
        default=None,
    )
    alarms: tuple[AlarmTerms, ...] | None = text_key(
        "only with `--false-alarms`. Each has `rule`, `field`, `threshold`, and the `false_alarms` "
        "of its alerts",
        sparse=True,
        default=None,
    )
    people: tuple[PersonStart, ...] | None = text_key(
        "only for several [people](people.md). Each has a `label` and its `seconds` without "
        "overlap, by the turns",
        sparse=True,
        default=None,
    )
    watched: tuple[str, ...] | None = text_key(
        "the watched speakers, only if there are several", sparse=True, default=None
    )
    carried: CarriedEvidence | None = text_key(
        "only with a ledger. The earlier `sessions` that this one continues, their `speech` "
        "seconds, and a thinned `history` of their readings",
        sparse=True,
        default=None,
    )


@declared(kw_only=True)
class PersonEnd:
    """One of several speakers, with the most probable person and the last reading's figures."""

    label: str = key()
    person: str | None = key()  # None if not enrolled
    probability: float | None = key("probability")
    enrolled: float | None = key("probability")
    # seconds, overlap_seconds: speech alone and overlapping speech, by the turns
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
    """Times at which both sides of a protected run reached a level of bits; their difference."""

    bits: float = key("number")
    clear: Crossing = key(_CROSSED)
    protected: Crossing = key(_CROSSED)
    delay_seconds: float | None = key("number")
    at_least: bool = key()


@declared()
class TranscriptEnd:
    """Fit of a recording's words to its speech; figures are None if there are too few pauses."""

    recording: str = key()
    words: int = key("count")
    words_in_speech: float | None = key("probability")
    speech_with_words: float | None = key("probability")
    as_well_elsewhere: float | None = key("probability", required=False)


@declared(kw_only=True)
class RunEnd(Event):
    """End of a run. Attributes are the keys of the ``end`` record (docs/records.md)."""

    type: ClassVar[Literal["end"]] = "end"
    time: str = text_key("time of day, UTC")
    seconds: float = key("seconds", "audio seconds processed, at the last reading")
    speech: float = key("seconds", "T, speech seconds, at the last reading")
    bits: float | None = key("bits", "the headline of the last reading")
    peak_bits: float | None = key("bits", "the largest headline of the run")
    top: tuple[tuple[str, float], ...] = key("bits", "of the last reading")
    readings: int = key("count", "number of readings")
    conditions: Condition | None = conditions_key("of the last reading, or null", required=False)
    differs: Sequence[str] = differs_key("those of the last reading, or empty", required=False)
    gaps: int = key("count", "number of gaps")
    changes: int = key("count", "number of changes")
    lost_seconds: float | None = key("seconds", "audio lost, as far as known")
    alerts: int = key("count", 'alerts raised, of `level` `"alert"`')
    warnings: int = key("count", 'alerts raised, of `level` `"warning"`')
    failures: tuple[str, ...] = text_key("failures of actions and the ledger, one line each")
    undecided: tuple[str, ...] = text_key(
        "alerts that so short a stream could not decide, one line each"
    )
    stopped: str | None = text_key("the rule that ended the stream (`--stop-on-alert`), or null")
    complete: bool = text_key("false if anything was lost")
    watch: str | None = text_key("as in `start`")
    recordings: tuple[str, ...] = text_key("as in `start`", required=False)
    notices: tuple[str, ...] = text_key(
        "notices about the recordings, one sentence each", required=False
    )
    repeated_seconds: float | None = key(
        "seconds",
        "excluded speech that repeats earlier speech of this stream, only if there was any",
        sparse=True,
        default=None,
    )
    bystanders: tuple[Bystander, ...] | None = text_key(
        "only with `bystanders`. Each has its largest `probability` of the run",
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
        "only with words. One entry per `recording`, with the number of `words` and three "
        "fractions. They are of the words' time in speech (`words_in_speech`), of speech with "
        "words (`speech_with_words`), and of other positions with an equal fit "
        "(`as_well_elsewhere`)",
        sparse=True,
        default=None,
    )
    people: tuple[PersonEnd, ...] | None = text_key(
        "only for several [people](people.md), one row per label. The most probable `person` (null "
        "if not enrolled), its probability, `seconds` without overlap, and the figures of the last "
        "reading",
        sparse=True,
        default=None,
    )
    overlap_seconds: float | None = key(
        "seconds",
        "only for several people. Seconds of overlapping speech, which are excluded",
        sparse=lambda end: end.people is not None,
        default=None,
    )
    disclosure_delay: tuple[DelayRow, ...] | None = text_key(
        "only with `--protect`, one row per level (`bits`). `clear` and `protected` have the "
        "`seconds` at which each side reached it and whether it `crossed`. `delay_seconds` is the "
        "difference; `at_least` marks it as a minimum, since the protected side had not reached "
        "the level",
        sparse=True,
        default=None,
    )
    incomplete: tuple[str, ...] = text_key(
        "reasons why the run is incomplete, one line each", required=False, default=()
    )


_LABEL = "only for several people. Label of this person"


@declared()
class GapEvent(Event):
    """A loss of audio.

    ``seconds`` is the stream second at which it was noticed, and ``number`` the recording's index
    in the stream.
    """

    type: ClassVar[Literal["gap"]] = "gap"
    seconds: float = key("seconds", "stream second at which it was noticed")
    reason: str = text_key(
        "a few words: "
        + "; ".join(f'`"{reason}"` ({meaning})' for reason, meaning in GAP_REASONS.items())
        + ". Your own source may have others"
    )
    lost_seconds: float | None = key(
        "seconds", "audio lost, or skipped by a thinned feature; null if unknown"
    )
    recording: str = text_key("name of the recording", default="")
    detail: str = text_key("one line of text", default="")
    label: str | None = text_key(_LABEL, sparse=True, default=None)
    number: int = 0

    @classmethod
    def from_gap(cls, seconds: float, gap: Gap, name: str = "") -> GapEvent:
        """Return a source's gap at a position of the stream, in the recording ``name``."""
        return cls(seconds, gap.reason, gap.lost_seconds, name, gap.detail, number=gap.recording)

    @property
    def code(self) -> str:
        """Code of the reason, such as ``gap.device-lost``."""
        return f"gap.{self.reason.replace(' ', '-')}"


@declared()
class NoticeEvent(Event):
    """A notice about a stream's figures.

    ``seconds`` is the stream second at which it arose, and ``number`` the recording's index in the
    stream.
    """

    type: ClassVar[Literal["notice"]] = "notice"
    seconds: float = key("seconds", "stream second at which it was noticed")
    kind: str = key(
        "", "; ".join(f'`"{kind}"` ({meaning})' for kind, meaning in NOTICE_KINDS.items())
    )
    text: str = text_key("one line with the fact and the remedy")
    recording: str = text_key("name of the recording", default="")
    level: str = text_key(
        '`"warning"` if figures may mislead, otherwise `"info"`',
        enum=["warning", "info"],
        default="warning",
    )
    fields: Mapping[str, object] = text_key("figures behind it by name", default=None)
    label: str | None = text_key(_LABEL, sparse=True, default=None)
    number: int = 0

    @classmethod
    def from_notice(cls, seconds: float, notice: Notice) -> NoticeEvent:
        """Return a notice at a position of the stream."""
        shared = {name: getattr(notice, name) for name in ("kind", "text", "level", "fields")}
        return cls(seconds, **shared, number=notice.recording)

    @property
    def code(self) -> str:
        """Code of the kind, such as ``notice.channels-differ``."""
        return f"notice.{self.kind.replace(' ', '-')}"

    @property
    def notice(self) -> Notice:
        """The notice without the event."""
        return Notice(self.kind, self.text, self.number, self.level, self.fields, self.seconds)


@declared()
class Change(Event):
    """A change of speaker or channel.

    Attributes:
        margin_before, margin_after: margins of the first of ``features``, before the change and
            since.
        back: whether the earlier voice has returned; the margins are then below the threshold.
        label: the person concerned, in a run of several people.
    """

    type: ClassVar[Literal["change"]] = "change"
    seconds: float = key("seconds", "stream second at which it was noticed")
    since_seconds: float = key(
        "seconds", "stream second at which the new voice seems to have begun"
    )
    features: tuple[str, ...] = text_key(
        'features that detected it; only `"channel"` means another microphone, room or line'
    )
    margin_before: float = key(
        "number",
        "similarity of the newest speech to the voice so far, minus that to the population, before "
        "the change; in nats, cosine or bels",
    )
    margin_after: float = key("number", "the same since then")
    back: bool = text_key(
        "only ever true. The first voice is back, and the margins are below the threshold",
        sparse=True,
        default=False,
        encode=lambda back: back or None,
    )
    action: str = text_key(
        'action taken. `"note"` continues, `"reset"` discards the evidence, `"split"` starts a '
        "new stream",
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
    """An alert that a rule raised or cleared.

    Attributes:
        kind: kind of the rule, ``"threshold"``, ``"forecast"``, ``"budget"`` or ``"false alarms"``.
    """

    type: ClassVar[Literal["alert"]] = "alert"
    seconds: float = key("seconds", "time of the alert, in audio seconds")
    speech: float | None = key("seconds", "time of the alert, in speech seconds", type="number")
    rule: str = text_key(
        "in the form of `--alert`, or in words for a calculated threshold, a forecast or a budget"
    )
    field: str = text_key("figure of the rule")
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
        "T of the first reading that counts, only for a rule that waits for speech",
        sparse=True,
        default=0.0,
        encode=lambda seconds: seconds or None,
    )
    seconds_left: float | None = key(
        "seconds",
        "stream seconds until the threshold at this rate, only for a forecast",
        sparse=lambda alert: alert.kind == "forecast",
        default=None,
    )
    false_alarms: FalseAlarmTerms | None = text_key(
        "only with `--false-alarms`. At most this `share` of other people's streams of "
        "`horizon_seconds` raises it. It was calibrated on this many `speakers`, of which "
        "`repeated` had less speech, which was repeated. `beyond` is true after that time "
        "([alarms](alarms.md))",
        sparse=True,
        default=None,
    )
    change: OpenChange | None = text_key(
        "the change that ended it, only if there was one, with `since_seconds` and `features`",
        sparse=True,
        default=None,
    )
    way: str | None = text_key(
        "only for `listen --through`, with the bits sent as `value`. Path of the audio from then "
        'on, the name of an anonymiser or `"muted"`',
        sparse=True,
        default=None,
    )
    spent_bits: float | None = key(
        "bits", "only for a budget: what is disclosed so far", sparse=True, default=None
    )
    requested_bits: float | None = key(
        "bits",
        "only for a budget of `listen --through`: what the refused audio would have added",
        sparse=True,
        default=None,
    )
    left_bits: float | None = key(
        "bits",
        "only for a budget: what may still be disclosed, for `listen --through` without the 2 "
        "bits that are kept back",
        sparse=True,
        default=None,
    )
    recording: str | None = text_key("name of its recording", sparse=True, default=None)
    label: str | None = text_key(_LABEL, sparse=True, default=None)
    time: str | None = key(
        "", "time of day, UTC, only in sent alerts and in a ledger", sparse=True, default=None
    )
    watch: str | None = text_key(
        "the watched speaker, only if several are watched", sparse=True, default=None
    )
    kind: str = "threshold"

    @property
    def code(self) -> str:
        """``alert.raised``, ``alert.cleared``, ``warning.raised`` or ``warning.cleared``."""
        return f"{self.level}.{self.state}"

    @classmethod
    def from_record(cls, record: Record) -> Alert:
        """Parse the record."""
        kind = "forecast" if "seconds_left" in record else "threshold"
        return replace(decode(cls, record), kind=kind)


@declared()
class LevelReached(Event):
    """A level of bits that one side of a protected run has reached and kept."""

    type: ClassVar[Literal["crossing"]] = "crossing"
    seconds: float = key("seconds", "stream second at which it was certain")
    bits: float = key("number", "the level of the headline")
    side: str = text_key('`"clear"` or `"protected"`', enum=["clear", "protected"])
    since_seconds: float = key("seconds", "since when the figure has stayed at or above it")
    delay_seconds: float | None = key(
        "number", "with the second side: how much later the protected one was"
    )

    @property
    def code(self) -> str:
        """``crossing.clear`` or ``crossing.protected``."""
        return f"crossing.{self.side}"


Occurrence: TypeAlias = GapEvent | NoticeEvent | Change | LevelReached | Alert
"""Events between readings."""
