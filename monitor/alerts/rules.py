"""Alert rules on the figures of readings, with thresholds and holds."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace

from monitor.alerts.figures import (
    assumes_too_much,
    check_field,
    check_stream,
    figure,
    most_bits,
    round_down,
)
from monitor.errors import UsageError
from monitor.events.declaration import Event, from_json, to_json
from monitor.events.phrases import others_in_words
from monitor.events.reading import OpenChange, Reading
from monitor.events.run import AlarmTerms, Alert, AlertTerms, Change, GapEvent, RunStart
from monitor.phrases import IMPOSTOR, length_in_words, percent
from monitor.population.false_alarms import FalseAlarms
from monitor.protocols import AlertRule, ExplainedRule
from monitor.types import Record

DECIDED_SPEECH_SECONDS = 10.0
"""A rule without ``after`` that raised nothing in less speech is undecided."""
LONGEST_SECONDS = 86_400.0
"""Maximum hold, and maximum speech before the first reading that counts."""
SLACK_SECONDS = 1e-6  # tolerance for rounding, as of 0.1 + 0.2 s; far below a tick of 10 ms
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)"
_SECONDS = rf"{NUMBER})\s*(?:s|sec|seconds?)?"
HOLD = rf"(?:\s*for\s*(?P<hold>{_SECONDS})?(?:\s*after\s*(?P<least>{_SECONDS})?"
RULE = re.compile(rf"\s*(?P<field>[^\s<>=]+)\s*>=?\s*(?P<bits>{NUMBER})\s*(?:bits?)?{HOLD}\s*")
OPEN = re.compile(rf"\s*(?P<field>[^\s<>=]+){HOLD}\s*")


class BaseRule:
    """Base class of alert rules. Override the methods that explain your rule."""

    @property
    def rule(self) -> str:
        """Text of the rule, by default the name of its class."""
        return type(self).__name__

    @property
    def inconclusive_reason(self) -> str:
        """Reason why a stream that ends now is too short to decide; empty by default."""
        return ""

    def note(self, start: RunStart) -> str | None:  # noqa: ARG002
        """Return a notice text for the user before the stream begins; None by default."""
        return None

    def terms(self) -> AlarmTerms | None:
        """Return the rule's entry in the start's ``alarms``; None by default."""
        return None


class _Plain(BaseRule):
    """Wrapper of a custom rule that has only the members of an `AlertRule`."""

    def __init__(self, rule: AlertRule) -> None:
        self._rule = rule
        self.update, self.state, self.restore = rule.update, rule.state, rule.restore

    @property
    def rule(self) -> str:
        return type(self._rule).__name__


def explained(rule: AlertRule) -> ExplainedRule:
    """Return the rule, wrapped unless it has the methods of `BaseRule`."""
    return rule if isinstance(rule, ExplainedRule) else _Plain(rule)


class HoldRule(BaseRule):
    """Rule on one field, which raises and clears an alert once its condition has held long enough.

    Source: docs/method.md section 7.

    A hold is measured from its first to its last reading. Withheld (null) figures and changes of
    speaker or channel restart it. Gaps restart it only before clearing. A change also clears the
    alert at the next reading. No alert is raised while a change is open (``change`` in the
    readings), because the evidence may be another speaker's. Nor is an alert raised if the figure
    assumes an enrolled speaker and the speaker is probably not enrolled (`assumes_too_much`). A
    stream that ends in that state has an `inconclusive_reason`. Memory use is constant. With
    ``least_speech_seconds`` of None all readings count.
    """

    level = "alert"  # sets exit status 3; ``"warning"`` does not
    kind = "threshold"

    def __init__(self, field: str, bits: float, least_speech_seconds: float | None = None) -> None:
        self.field = field
        self.bits = float(bits)
        self._after = least_speech_seconds
        self.least_speech_seconds = float(least_speech_seconds or 0.0)
        self.raised = self._was_raised = False
        self._speech = self._held = 0.0  # maximum speech so far; seconds of the condition
        self._since: float | None = None  # first reading of the run that would flip `raised`
        self._first: float | None = None  # first reading with a figure and enough speech
        self._span = 0.0  # from that reading to the last one
        self._change: OpenChange | None = None  # change since the last reading
        self._over = False  # the last reading alone would raise it
        self._of_nobody = False  # the condition held, but the speaker is probably not enrolled

    @property
    def rule(self) -> str:
        """Rule as text."""
        raise NotImplementedError

    def _observe(self, event: Event) -> None:
        """Process every event before it is judged; does nothing by default."""

    def _would_flip(self, value: float) -> bool:
        raise NotImplementedError

    def _hold(self) -> float:
        raise NotImplementedError

    def _complete(self, alert: Alert) -> Alert:
        """Add this kind of rule's fields to an alert."""
        return alert

    def update(self, event: Event) -> list[Alert]:
        """Return the alerts caused by this event of the run.

        The rule uses readings, gaps and changes, and checks the start. It ignores other events.

        Raises:
            UsageError: the stream has no such feature, or no watched speaker although the field
                needs one.
        """
        self._observe(event)
        match event:
            case RunStart():
                check_stream(self.field, event)
            case GapEvent() if self.raised:  # a gap delays no alert, only its end
                self._since = None
            case Change():
                self._since = None
                self._change = OpenChange(event.since_seconds, event.features)
            case Reading():
                return self._judge(event)
        return []

    def _judge(self, reading: Reading) -> list[Alert]:
        value, speech = figure(self.field, reading), reading.speech
        self._speech, self._held = max(self._speech, speech or 0.0), 0.0
        change, self._change = reading.change or self._change, None
        early = speech is not None and speech < self.least_speech_seconds - SLACK_SECONDS
        would_flip = value is not None and not early and self._would_flip(value)
        self._over = would_flip and not self.raised
        if change is not None:
            self._since = None
            return [replace(self._flip(reading, value), change=change)] if self.raised else []
        if self._first is None and value is not None and not early:
            self._first = reading.seconds
        self._span = 0.0 if self._first is None else reading.seconds - self._first
        if not would_flip:
            self._since = None
            return []
        self._since = reading.seconds if self._since is None else self._since
        self._held = reading.seconds - self._since
        if self._held < self._hold() - SLACK_SECONDS:
            return []
        if not self.raised and assumes_too_much(self.field, reading):
            self._of_nobody = True
            return []
        return [self._flip(reading, value)]

    def _flip(self, reading: Reading, value: float | None) -> Alert:
        self.raised, self._since = not self.raised, None
        self._was_raised = True
        alert = Alert(
            reading.seconds, reading.speech, self.rule, self.field, self.bits,
            "raised" if self.raised else "cleared", value, self.least_speech_seconds,
            level=self.level, kind=self.kind,
        )  # fmt: skip
        return self._complete(alert)

    @property
    def inconclusive_reason(self) -> str:
        """Reason why a stream that ends now is undecided; empty if it is decided.

        The stream may have too little speech or no figure, or may end before the condition held
        long enough, also because a change is open. Or the speaker was probably not enrolled.
        """
        if self._was_raised or self.level != "alert":
            return ""
        alert = f"alert {self.field}>{self.bits:.4g}: not decided"
        if self._over and (self._since is None or self._held < self._hold() - SLACK_SECONDS):
            return (
                f"{alert}, over its threshold for {self._held:.1f} of {self._hold():g} s when "
                f"the stream ended{' after a change' * (self._since is None)}"
            )
        minimum = DECIDED_SPEECH_SECONDS if self._after is None else self._after
        if self._speech < minimum - SLACK_SECONDS:
            return f"{alert}, with {self._speech:.1f} of the {minimum:g} s of speech that it needs"
        if self._first is None:
            return f"{alert}, no reading has {self.field}"
        if self._span < self._hold() - SLACK_SECONDS:
            return (
                f"{alert}, its readings cover only {self._span:.1f} s of the {self._hold():g} s "
                "for which it must hold"
            )
        if self._of_nobody:
            return (
                f"{alert}, over its threshold, but the speaker is {IMPOSTOR}: watch the speaker, "
                "or enrol them"
            )
        return ""

    def state(self) -> Record:
        """Return the state for a checkpoint, as JSON values."""
        return {
            "rule": self.rule,
            "raised": self.raised,
            "was_raised": self._was_raised,
            "since": self._since,
            "speech": self._speech,
            "held": self._held,
            "first": self._first,
            "span": self._span,
            "change": None if self._change is None else to_json(self._change),
            "over": self._over,
            "of_nobody": self._of_nobody,
        }

    def restore(self, state: Record) -> None:
        """Continue from a ``state``."""
        if state.get("rule") != self.rule:
            raise UsageError(
                f"the checkpoint was made with the alert {state.get('rule')!r}, not {self.rule!r}: "
                "resume with the same rule"
            )
        self.raised, self._since = bool(state["raised"]), state["since"]
        self._was_raised = bool(state["was_raised"])
        self._speech, self._held = float(state["speech"]), float(state["held"])
        # checkpoints of earlier versions lack both
        self._first, self._span = state.get("first"), float(state.get("span", 0.0))
        self._change = None if state["change"] is None else from_json(OpenChange, state["change"])
        self._over = bool(state.get("over"))
        self._of_nobody = bool(state["of_nobody"])


class Threshold(HoldRule):
    """Raise an alert once a figure has stayed at or above a threshold for a while.

    Source: docs/method.md section 7. The alert is raised when all readings of ``hold_seconds`` have
    at least ``bits``, and at least ``least_speech_seconds`` of speech. Early figures come from
    little speech, so other speakers may reach them. The alert is cleared when all readings of
    ``hold_seconds`` are below ``bits - hysteresis_bits``, or at a change of speaker or channel.

    Args:
        field: a figure of a reading: the headline ``bits``, or ``evidence_bits``,
            ``closed_set_bits``, ``sum_bits``, ``gain_bits``, ``expected_bits``. It may also be a
            figure of a crowd (``among.1e6.bits``) or of a feature (``f0.rank_bits``), or a limit
            (``bits_low``, ``f0.rank_bits_low``).
        bits: the threshold in bits.
        hold_seconds: hold in stream seconds; 0 raises and clears at once.
        hysteresis_bits: margin below the threshold for clearing.
        least_speech_seconds: minimum speech of readings that count. A stream that ends with less is
            undecided. None counts every reading, but a stream with less than 10 s of speech and no
            alert is undecided.

    Raises:
        UsageError: an unknown field, or an invalid number.

    Examples:
        >>> rule = Threshold("bits", 3.0, hold_seconds=2.0)
        >>> for t in range(4):
        ...     for alert in rule.update(Reading.from_record({"seconds": t, "bits": 3.4})):
        ...         print(alert.state, alert.seconds, alert.rule)
        raised 2 bits>3 for 2 s
        >>> Threshold.parse("f0.rank_bits_low >= 1.5 for 10s").rule
        'f0.rank_bits_low>1.5 for 10 s'
        >>> Threshold.parse("bits>3 for 5 s after 10 s").least_speech_seconds
        10.0
    """

    def __init__(
        self,
        field: str,
        bits: float,
        hold_seconds: float = 5.0,
        hysteresis_bits: float = 0.25,
        least_speech_seconds: float | None = None,
    ) -> None:
        check_field(field)
        if not math.isfinite(bits):
            raise UsageError(f"bits={bits} must be a finite number of bits")
        for name, value, maximum in (
            ("hold_seconds", hold_seconds, LONGEST_SECONDS),
            ("hysteresis_bits", hysteresis_bits, sys.float_info.max),
            ("least_speech_seconds", least_speech_seconds or 0.0, LONGEST_SECONDS),
        ):
            if not 0 <= value <= maximum:
                limit = "finite" if maximum > LONGEST_SECONDS else "at most a day (86400 s)"
                raise UsageError(f"{name}={value:g} must be {limit} and not negative")
        super().__init__(field, bits, least_speech_seconds)
        self.hold_seconds = float(hold_seconds)
        self.hysteresis_bits = float(hysteresis_bits)

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Parse ``FIELD>BITS for SECONDS s after SECONDS s``; ``for`` and ``after`` are optional.

        ``>`` and ``>=`` both mean at or above.

        Raises:
            UsageError: the text is not a rule, or names an unknown field.
        """
        match = RULE.fullmatch(text)
        if match is None:
            raise UsageError(
                f"cannot read the alert rule {text!r}: write it as 'bits>6 for 5 s', or as a field "
                "alone and leave the threshold to --false-alarms"
            )
        seconds = {}
        if match["hold"] is not None:
            seconds["hold_seconds"] = float(match["hold"])
        if match["least"] is not None:
            seconds["least_speech_seconds"] = float(match["least"])
        return cls(match["field"], float(match["bits"]), **seconds)

    @property
    def rule(self) -> str:
        """Rule as text that ``parse`` reads."""
        after = "" if self._after is None else f" after {_plain(self._after)} s"
        return f"{self.field}>{_plain(self.bits)} for {_plain(self.hold_seconds)} s{after}"

    def alert_terms(self) -> AlertTerms:
        """Return the rule's entry in the start's ``alerts``."""
        return AlertTerms(
            self.rule, self.field, self.bits, self.level, self.hold_seconds,
            self.least_speech_seconds,
        )  # fmt: skip

    def _would_flip(self, value: float) -> bool:
        return self.is_over(value) if self.raised else value >= self.bits

    def _hold(self) -> float:
        return self.hold_seconds

    def is_over(self, value: float) -> bool:
        """Return whether a figure is low enough to clear an alert."""
        return value < self.bits - self.hysteresis_bits

    def idle_reason(self, start: RunStart, modelled_bits: float = math.inf) -> str:
        """Explain why a run can never raise this alert; empty if it can.

        Args:
            start: the start of a run.
            modelled_bits: maximum of the field under the rank models (`monitor.Monitor.most_bits`).
        """
        maximum, reason = most_bits(self.field, start)
        if maximum is None or modelled_bits < maximum:
            maximum, reason = modelled_bits, f"by calibration {self.field} can reach"
        if self.bits <= maximum:
            return ""
        bound = f"{reason} at most {round_down(maximum)} bits"
        return f"{self.rule} can never be raised: {bound}. Use fewer"


class AdjustableThreshold(Threshold):
    """A threshold that you can change during the stream.

    After `adjust`, the next reading clears an alert of the old threshold and restarts the hold.
    """

    _next: float | None = None
    maximum = math.inf  # a higher threshold is lowered to this

    def adjust(self, bits: float) -> float:
        """Set the threshold, at most `maximum`, from the next reading on; thread-safe.

        Returns the threshold that was set.
        """
        if not math.isfinite(bits):
            raise UsageError(f"bits={bits} must be a finite number of bits")
        self._next = min(float(bits), self.maximum)
        return self._next

    def limit(self, maximum: float) -> None:
        """Set the maximum threshold in bits. Call it before the stream begins."""
        self.maximum, self.bits = maximum, min(self.bits, maximum)
        if self._next is not None:
            self._next = min(self._next, maximum)

    def _judge(self, reading: Reading) -> list[Alert]:
        bits, self._next = self._next, None
        if bits is None:
            return super()._judge(reading)
        over = [self._flip(reading, figure(self.field, reading))] if self.raised else []
        self.bits, self._since = bits, None
        return [*over, *super()._judge(reading)]


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


class Conformal(Threshold):
    """Alert at a calculated threshold, which few of other people's streams exceed.

    Source: docs/method.md section 11.

    The alert is raised at the first reading that *exceeds* the threshold, or after the hold.
    Equality does not raise it, because other people's streams reach the same bound. Alert records
    state the rate, the stream length and the number of calibration speakers. They are marked if the
    stream is longer than that.

    Args:
        alarms: the result of `Monitor.false_alarms`.
        hold_seconds: as in `Threshold`. A longer hold gives fewer false alarms.
        hysteresis_bits: as in `Threshold`.
        least_speech_seconds: as in `Threshold`. More speech gives fewer false alarms.

    Example:
        >>> from monitor import Monitor, Population, alerts
        >>> from monitor.population.false_alarms import FalseAlarms
        >>> quote = FalseAlarms("bits", 4.5, 0.05, 600.0, 22, 0, "cross", 100.0)
        >>> rule = alerts.Conformal(quote)  # better: Conformal(monitor.false_alarms("bits", ...))
        >>> rule.rule
        'bits>4.5 (5 % false alarms in 10 minutes)'
        >>> reading = {"seconds": 9.0, "speech": 8.0, "bits": 4.6}
        >>> alert, = rule.update(Reading.from_record(reading))
        >>> alert.false_alarms.share, alert.false_alarms.beyond
        (0.05, False)
    """

    kind = "false alarms"

    def __init__(
        self,
        alarms: FalseAlarms,
        hold_seconds: float = 0.0,
        hysteresis_bits: float = 0.25,
        least_speech_seconds: float | None = None,
    ) -> None:
        super().__init__(
            alarms.field, alarms.bits, hold_seconds, hysteresis_bits, least_speech_seconds
        )
        self.alarms = alarms
        self._seconds = 0.0

    @staticmethod
    def parse_field(text: str) -> tuple[str, float, float | None] | None:
        """Parse ``FIELD``, hold and minimum speech, as in `Threshold.parse`, without a threshold.

        None if the text has another form. UsageError for an unknown field.
        """
        match = OPEN.fullmatch(text)
        if match is None:
            return None
        check_field(match["field"])
        least_speech = None if match["least"] is None else float(match["least"])
        return match["field"], float(match["hold"] or 0.0), least_speech

    @property
    def rule(self) -> str:
        """Rule as text, with its rate of false alarms."""
        hold = f" for {self.hold_seconds:g} s" if self.hold_seconds else ""
        hold += "" if self._after is None else f" after {self._after:g} s"
        rate, length = percent(self.alarms.rate), length_in_words(self.alarms.horizon_seconds)
        return f"{self.field}>{self.bits:.4g}{hold} ({rate} false alarms in {length})"

    def _observe(self, event: Event) -> None:
        if isinstance(event, Reading):
            self._seconds = event.seconds

    def _would_flip(self, value: float) -> bool:
        return self.is_over(value) if self.raised else value > self.bits

    def _complete(self, alert: Alert) -> Alert:
        beyond = self._seconds > self.alarms.horizon_seconds
        return replace(alert, false_alarms=replace(self.alarms.terms(), beyond=beyond))

    def note(self, start: RunStart) -> str:
        """Explain the threshold and its guarantee."""
        sentence = f"{self.field} > {self.bits:.2f} bits: {others_in_words(self.alarms.terms())}"
        shorter = start.template_seconds
        if shorter is not None and abs(shorter / self.alarms.template_seconds - 1) > 0.2:
            sentence += (
                f"; calibrated with templates of {self.alarms.template_seconds:g} s, but these "
                f"are cut to {shorter:g} s"
            )
        return sentence

    def idle_reason(self, start: RunStart, modelled_bits: float = math.inf) -> str:
        """Explain why no stream can exceed the threshold; empty if a stream can."""
        maximum, most_of_start = self.alarms.most_bits, most_bits(self.field, start)[0]
        maximum = min(maximum, modelled_bits, math.inf if most_of_start is None else most_of_start)
        if self.bits < maximum - 1e-9:
            return ""
        return (
            f"{self.rule} can never be raised: {self.field} stops at {maximum:.2f} bits, and too "
            "many others reach that. Allow more false alarms (--false-alarms)"
        )

    def terms(self) -> AlarmTerms:
        """Return the rule's entry in the start's ``alarms``."""
        return AlarmTerms(self.rule, self.field, self.bits, self.alarms.terms())
