"""Rules on the figures of a reading: thresholds, holds, early warnings."""

from __future__ import annotations

import math
import re
import sys
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import replace

from monitor.errors import Argument, Message, UsageError
from monitor.events.declaration import Event, from_json, to_json
from monitor.events.reading import (
    CrowdReading,
    FeatureReading,
    OpenChange,
    ProtectedReading,
    Reading,
)
from monitor.events.run import AlarmTerms, Alert, AlertTerms, Change, GapEvent, RunStart
from monitor.phrases import IMPOSTOR, plural
from monitor.protocols import AlertRule, ExplainedRule
from monitor.types import Record

# --- Figures of a reading that an alert may use.

LIMITED = ("bits", "evidence_bits", "closed_set_bits", "gain_bits", "expected_bits")
LIMITED_OF_FEATURE = ("expected_bits", "rank_bits", "local_bits", "gain_bits")
WATCHED = ("rank_bits", "local_bits", "evidence_bits")
LIMITS = ("_low", "_high")
AMONG = "among"
PROTECTED = "protected"


def _with_limits(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name + end for name in names for end in ("", *LIMITS))


FIELDS = (*_with_limits(LIMITED), "sum_bits")
FEATURE_FIELDS = _with_limits(LIMITED_OF_FEATURE)
AMONG_FIELDS = _with_limits(("bits",))
PROTECTED_FIELDS = _with_limits(("bits",))


def check_field(field: str) -> None:
    """Refuse fields that no reading has or that no alert should use."""
    if not field.isprintable():
        raise UsageError(f"unknown alert field {field!a}: names are plain words")
    name, dot, last = field.rpartition(".")
    if name == AMONG or name.startswith(f"{AMONG}."):
        _check_among(field, name, last)
        return
    fields = PROTECTED_FIELDS if name == PROTECTED else FEATURE_FIELDS if dot else FIELDS
    if last in fields and bool(name) == bool(dot):
        return
    if field == "peak_bits":
        raise UsageError(
            "peak_bits cannot carry an alert, bystanders' peaks reach 3 bits too: use bits"
        )
    from difflib import get_close_matches

    near = get_close_matches(last, fields, n=1)
    if near:
        hint = f"did you mean {name}{dot}{near[0]}?"
    elif name == PROTECTED:
        hint = "the protected side has protected.bits, also with _low or _high"
    elif dot:
        hint = f"a feature has {', '.join(LIMITED_OF_FEATURE)}, each also with _low or _high"
    else:
        hint = (
            f"use one of {', '.join(LIMITED)} (each also with _low or _high), sum_bits, the bits "
            "in a crowd, such as among.1e6.bits, or a feature's, such as f0.rank_bits"
        )
    raise UsageError(f"unknown alert field {field!r}: {hint}")


def check_stream(field: str, start: RunStart) -> None:
    """Refuse a field that the stream of this start will never have."""
    name, _, last = field.rpartition(".")
    if name == PROTECTED and start.protected is None:
        raise UsageError(
            f"the alert field {field} needs a protected side: add an anonymiser, or use {last}"
        )
    if among(field) is not None or last.startswith("evidence_bits"):
        _check_evidence(field, start)
    is_feature_field = among(field) is None and name != PROTECTED
    if is_feature_field and name and start.features is not None and name not in start.features:
        raise UsageError(_no_feature(field, name, start.features))
    if _unlimited(last) in WATCHED and start.watch is None:
        instead = "" if last.startswith("evidence_bits") else ", or use gain_bits"
        raise UsageError(f"the alert field {field} needs a watched speaker: name one{instead}")


def among(field: str) -> float | None:
    """Return the crowd size of a field such as ``among.1e6.bits``; None of others."""
    first, _, remainder = field.partition(".")
    try:
        return float(remainder.rpartition(".")[0]) if first == AMONG else None
    except ValueError:
        return None


def most_bits(field: str, start: RunStart) -> tuple[float | None, str]:
    """Compute the most bits that a field can show in the stream of a start, and why no more.

    Returns:
        None and an empty text where there is no such bound, or where it is not known.
    """
    if field == "sum_bits":
        if start.ceiling is None or start.features is None:
            return None, ""
        count = len(start.features)
        return count * start.ceiling, f"{plural(count, 'feature')} can add up to"
    is_evidence = start.headline == "evidence"
    people = among(field)
    supported = start.support_bits
    if field.startswith(f"{PROTECTED}."):  # that of the attacker with the highest support
        attackers = {} if start.protected is None else start.protected.attackers
        supports = [attacker.support_bits for attacker in attackers.values()]
        finite = [bits for bits in supports if bits is not None]
        supported = max(finite) if finite and len(finite) == len(supports) else None
    elif people is not None:
        crowd = math.log2(people)
        if supported is None or crowd <= supported:
            return crowd, f"among {people:,.0f} people there are"
        is_evidence = True
    elif field.startswith("evidence_bits"):
        is_evidence = True
    elif not field.startswith("bits"):
        is_evidence = False
    if is_evidence:
        return (None, "") if supported is None else (supported, "calibration can support")
    ceiling = start.ceiling
    reachable = ("bits", "closed_set_bits", "bits_low", "closed_set_bits_low")
    if field in reachable and start.reachable_bits is not None:
        ceiling = start.reachable_bits
    if ceiling is None:
        return None, ""
    return ceiling, f"among {start.speakers} speakers a voice can reach"


def round_down(bits: float) -> str:
    """Format a bound so that a threshold at the shown number can be reached.

    Example:
        >>> round_down(13.6899), round_down(5.64)
        ('13.68', '5.64')
    """
    return f"{math.floor(100 * bits + 1e-9) / 100:.2f}"


def _check_among(field: str, name: str, last: str) -> None:
    if last in AMONG_FIELDS and (people := among(field)) is not None and math.isfinite(people):
        return
    hint = "write it as among.1e6.bits, or with bits_low or bits_high"
    if last in AMONG_FIELDS and name != AMONG:
        hint = f"{name.partition('.')[2]!r} is not a number of people; {hint}"
    raise UsageError(f"unknown alert field {field!r}: {hint}")


def _check_evidence(field: str, start: RunStart) -> None:
    """Refuse a field of evidence without its rank model, or of a crowd that was not requested."""
    if start.among is None:  # of a version before there was evidence: it has none
        return
    if start.support_bits is None:
        raise UsageError(
            f"the alert field {field} needs a rank model of evidence, which this population lacks: "
            "use bits, or calibrate again (monitor calibrate)"
        )
    people = among(field)
    if people is not None and people not in start.among:
        requested = ", ".join(f"{people_count:g}" for people_count in start.among)
        raise UsageError(
            Message(
                f"the alert field {field} needs a crowd that is not reported (",
                Argument("among", requested), "): add ", Argument("among", f"{people:g}"),
            )
        )  # fmt: skip


def figure(field: str, reading: Reading) -> float | None:
    """Return the field of a reading; None if it is missing or not a number.

    Examples:
        >>> figure("bits", Reading.from_record({"bits": 2.0, "bits_low": 1.5}))
        2.0
        >>> reading = Reading.from_record({"features": {"f0": {"rank_bits_low": 0.8}}})
        >>> figure("f0.rank_bits_low", reading)
        0.8
    """
    name, _, last = field.rpartition(".")
    source: Reading | CrowdReading | ProtectedReading | FeatureReading | None = reading
    if (people := among(field)) is not None:
        source = next((crowd for crowd in reading.among or () if crowd.people == people), None)
    elif name == PROTECTED:
        source = reading.protected
    elif name:
        features = reading.features or {}
        if features and name not in features:
            raise UsageError(_no_feature(field, name, features))
        source = features.get(name)
    value = getattr(source, last, None)
    return None if value is None or math.isnan(value) else float(value)


def needs_watched_figures(field: str) -> bool:
    """Return whether a figure of the clear voice is about the watched speaker, if there is one."""
    name, _, last = field.rpartition(".")
    return name != PROTECTED and _unlimited(last) not in ("gain_bits", "expected_bits")


def assumes_too_much(field: str, reading: Reading) -> bool:
    """Return whether a figure assumes an enrolled speaker who is probably not enrolled.

    Figures in crowds include people who are not enrolled, and an average refers to no one.
    """
    about_all = among(field) is not None or _unlimited(field.rpartition(".")[2]) == "expected_bits"
    return reading.assumes_enrolled and reading.is_impostor and not about_all


def _unlimited(name: str) -> str:
    for end in LIMITS:
        name = name.removesuffix(end)
    return name


def _no_feature(field: str, name: str, features: Collection[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(features), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(features)}"
    return f"the alert field {field} names a feature this stream does not have ({name}): {hint}"


# --- What a run needs from every rule besides its alerts.


class BaseRule:
    """Base of rules: named by their class, with nothing to explain."""

    @property
    def rule(self) -> str:
        """Name, as text."""
        return type(self).__name__

    @property
    def inconclusive_reason(self) -> str:
        """Reason why a stream that ends here decides nothing; mostly empty."""
        return ""

    def note(self, start: RunStart) -> str | None:  # noqa: ARG002
        """Return notices for the user before the stream begins."""
        return None

    def terms(self) -> AlarmTerms | None:
        """Return its entry among the ``alarms`` of the start; None for nothing."""
        return None


class _Plain(BaseRule):
    """A rule of the user's own that has the members of an `AlertRule` alone."""

    def __init__(self, own: AlertRule) -> None:
        self._own = own
        self.update, self.state, self.restore = own.update, own.state, own.restore

    @property
    def rule(self) -> str:
        """Name of the user's class."""
        return type(self._own).__name__


def explained(rule: AlertRule) -> ExplainedRule:
    """Return the rule if it explains itself, otherwise wrapped."""
    return rule if isinstance(rule, ExplainedRule) else _Plain(rule)


# --- Base of all alert rules: a condition that must hold for a time, and its interruptions.

DECIDED_SPEECH_SECONDS = 10.0
"""A stream with less speech, in which a rule without ``after`` raised nothing, is undecided."""
LONGEST_SECONDS = 86_400.0
"""The longest hold, and the most speech before the first reading that counts."""
SLACK_SECONDS = 1e-6  # 0.1 + 0.2 s must hold for 0.3 s; far below one tick of 10 ms


class HoldRule(BaseRule):
    """A rule on one field, raised and cleared once its condition has held long enough.

    Source: docs/method.md section 7.

    A hold is measured from the first to the last reading that it contains. Gaps, withheld (null)
    figures and changes of speaker or channel restart it. A change also clears the rule at the next
    reading. While a change is open (``change`` in the readings), nothing is raised, because the
    evidence may be another speaker's. Nothing is raised either if a figure assumes an enrolled
    speaker who is probably not enrolled (`assumes_too_much`). A stream that ends in that state has
    an `inconclusive_reason`. Memory is constant for any length of stream.

    Args:
        field: the figure of a reading.
        bits: the threshold, as in the records.
        least_speech_seconds: T of the first reading that counts; None for the first of all.

    Attributes:
        level: ``"alert"``, which ends in exit status 3, or ``"warning"``.
        raised: whether it is raised now.
    """

    level = "alert"
    kind = "threshold"

    def __init__(self, field: str, bits: float, least_speech_seconds: float | None = None) -> None:
        self.field = field
        self.bits = float(bits)
        self._after = least_speech_seconds
        self.least_speech_seconds = float(least_speech_seconds or 0.0)
        self.raised = self._was_raised = False
        self._speech = self._held = 0.0  # most speech so far; how long the condition has held
        self._since: float | None = None  # first reading of the run that would flip `raised`
        self._first: float | None = None  # first reading with a figure and enough speech
        self._span = 0.0  # from that reading to the last one
        self._change: OpenChange | None = None  # the one since the last reading
        self._of_nobody = False  # it held, but the speaker is probably not enrolled

    @property
    def rule(self) -> str:
        """Rule as text."""
        raise NotImplementedError

    def _observe(self, event: Event) -> None:
        """See every event before it is judged."""

    def _would_flip(self, value: float) -> bool:
        """Return whether a reading with this figure would flip ``raised``."""
        raise NotImplementedError

    def _hold(self) -> float:
        """Return the stream seconds for which readings must count."""
        raise NotImplementedError

    def _complete(self, alert: Alert) -> Alert:
        """Add to an alert what this kind of rule knows."""
        return alert

    def update(self, event: Event) -> list[Alert]:
        """Return the alerts caused by this event of the run.

        Readings, gaps and changes drive the rule. A start is checked against it. Other events are
        ignored.

        Raises:
            UsageError: the stream has no such feature, or no watched speaker although the field
                needs one.
        """
        self._observe(event)
        match event:
            case RunStart():
                check_stream(self.field, event)
            case GapEvent():
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
        if change is not None:
            self._since = None
            return [replace(self._flip(reading, value), change=change)] if self.raised else []
        early = speech is not None and speech < self.least_speech_seconds - SLACK_SECONDS
        if self._first is None and value is not None and not early:
            self._first = reading.seconds
        self._span = 0.0 if self._first is None else reading.seconds - self._first
        if value is None or early or not self._would_flip(value):
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
        """Raise what is cleared, clear what is raised; return the alert."""
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
        """Reason why a stream that ends here is undecided; empty if it is decided.

        The stream had too little speech or no figure, or it ended before the condition held long
        enough. The condition may also have held while the speaker was probably not enrolled.
        """
        if self._was_raised or self.level != "alert":
            return ""
        alert = f"alert {self.field}>{self.bits:.4g}: not decided"
        minimum = DECIDED_SPEECH_SECONDS if self._after is None else self._after
        if self._speech < minimum - SLACK_SECONDS:
            return f"{alert}, {self._speech:.1f} s of speech of the {minimum:g} s that it needs"
        if self._since is not None and self._held < self._hold() - SLACK_SECONDS:
            return f"{alert}, it held for {self._held:.1f} s of {self._hold():g} s when it ended"
        if self._first is None:
            return f"{alert}, no reading has {self.field}"
        if self._span < self._hold() - SLACK_SECONDS:
            return (
                f"{alert}, its readings cover only {self._span:.1f} s of the {self._hold():g} s "
                "for "
                "which it must hold"
            )
        if self._of_nobody:
            return (
                f"{alert}, it held, but the speaker is {IMPOSTOR}: watch the speaker, or enrol them"
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
        # a checkpoint of an earlier version has neither
        self._first, self._span = state.get("first"), float(state.get("span", 0.0))
        self._change = None if state["change"] is None else from_json(OpenChange, state["change"])
        self._of_nobody = bool(state["of_nobody"])


# --- A rule that watches one figure of the readings: threshold, hold and hysteresis.

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)"
_SECONDS = rf"{NUMBER})\s*(?:s|sec|seconds?)?"
HOLD = rf"(?:\s*for\s*(?P<hold>{_SECONDS})?(?:\s*after\s*(?P<least>{_SECONDS})?"
RULE = re.compile(rf"\s*(?P<field>[^\s<>=]+)\s*>=?\s*(?P<bits>{NUMBER})\s*(?:bits?)?{HOLD}\s*")


class Threshold(HoldRule):
    """Raises an alert once a figure has held a threshold for a while (docs/method.md section 7).

    The field is literal: ``bits`` is the value shown, ``bits_low`` its lower limit. It is raised at
    the first reading that ends ``hold_seconds`` of readings with at least ``bits`` and
    ``least_speech_seconds`` of speech. An early figure is based on little speech, and another
    speaker may reach it. It is cleared at the first reading that ends ``hold_seconds`` of readings
    below ``bits - hysteresis_bits``, or at a change of speaker or channel.

    Args:
        field: a figure of a reading: the headline ``bits``, or ``evidence_bits``,
            ``closed_set_bits``, ``sum_bits``, ``gain_bits``, ``expected_bits``. Also one of a crowd
            (``among.1e6.bits``) or feature (``f0.rank_bits``), or a limit (``bits_low``,
            ``f0.rank_bits_low``).
        bits: the threshold.
        hold_seconds: stream seconds; 0 raises and clears at once.
        hysteresis_bits: margin below the threshold at which it is cleared.
        least_speech_seconds: T of the first reading that counts, speech seconds. A stream that ends
            with less is undecided. None: every reading counts, but a stream of less than 10 s in
            which nothing was raised is undecided.

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
        """Parse ``FIELD>BITS``, ``for SECONDS s`` and ``after SECONDS s`` optional.

        ``>`` and ``>=`` mean the same: at or above.

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
        """Return its entry among the ``alerts`` of the start."""
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
        """Return why the stream of this start can never raise it; empty if it can.

        Args:
            start: the start of a run.
            modelled_bits: the most bits of its field under the rank models, as of
                `monitor.Monitor.most_bits`.
        """
        maximum, reason = most_bits(self.field, start)
        if maximum is None or modelled_bits < maximum:
            maximum, reason = modelled_bits, f"by calibration {self.field} can reach"
        if self.bits <= maximum:
            return ""
        bound = f"{reason} at most {round_down(maximum)} bits"
        return f"{self.rule} can never be raised: {bound}. Use fewer"


class AdjustableThreshold(Threshold):
    """A threshold that can be moved during the stream.

    The first reading after `adjust` clears a raised alert under the old threshold and restarts the
    hold under the new one.
    """

    _next: float | None = None
    most = math.inf
    """A higher threshold is lowered to this."""

    def adjust(self, bits: float) -> float:
        """Set the threshold from the next reading on; thread-safe.

        Returns:
            the threshold, at most `most`.
        """
        if not math.isfinite(bits):
            raise UsageError(f"bits={bits} must be a finite number of bits")
        self._next = min(float(bits), self.most)
        return self._next

    def limit(self, most: float) -> None:
        """Set the maximum threshold in bits; to be called before the stream begins."""
        self.most, self.bits = most, min(self.bits, most)
        if self._next is not None:
            self._next = min(self._next, most)

    def _judge(self, reading: Reading) -> list[Alert]:
        bits, self._next = self._next, None
        if bits is None:
            return super()._judge(reading)
        over = [self._flip(reading, figure(self.field, reading))] if self.raised else []
        self.bits, self._since = bits, None
        return [*over, *super()._judge(reading)]


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


# --- A forecast of the time until a threshold is reached, while one can still stop talking.

WINDOW_SECONDS = 20.0
MIN_SPAN_SECONDS = 3.0
SPACING_SECONDS = 0.5  # finer readings only cost time
HORIZON_SECONDS = 600.0  # a line through 20 s cannot predict the next hour
GROWTH: tuple[Callable[[float], float], Callable[[float], float]] = (math.sqrt, lambda x: x * x)
"""Scale of speech seconds on which bits grow linearly, and its inverse."""


class Forecast:
    """Forecast of when a figure reaches a threshold, from the last 20 s of stream.

    It extrapolates from the latest reading with the least-squares slope of the figure against the
    square root of speech seconds. Bits grow roughly like advanced composition (docs/method.md
    section 6), and on real readers this was closer than seconds or their logarithm. The fraction of
    speech in the same window converts speech to stream seconds. It is a rough guide without a
    confidence interval.

    Args:
        threshold_bits: the bits to reach.
        field: the figure, as for an alert.

    Raises:
        UsageError: an unknown field, or a threshold that is not a number.

    Examples:
        >>> from math import sqrt
        >>> forecast = Forecast(threshold_bits=5.0)
        >>> for t in range(1, 17):
        ...     reading = {"seconds": t, "speech": t, "bits": sqrt(t)}
        ...     forecast.update(Reading.from_record(reading))
        >>> round(forecast.seconds_left, 3)  # 16 s give 4 bits, 25 s will give 5
        9.0
    """

    def __init__(self, threshold_bits: float, field: str = "bits") -> None:
        if not math.isfinite(threshold_bits):
            raise UsageError(f"threshold_bits={threshold_bits} must be finite")
        check_field(field)
        self.threshold_bits = float(threshold_bits)
        self.field = field
        self._most = math.inf
        self._points: deque[tuple[float, float, float]] = deque()  # seconds, speech, bits

    def update(self, event: Event) -> None:
        """Take a reading. Other events, and readings without bits or speech, are ignored.

        It restarts after a change of speaker or channel, and waits while one is open. A start sets
        the maximum bits.
        """
        match event:
            case RunStart():
                maximum, _ = most_bits(self.field, event)
                self._most = math.inf if maximum is None else maximum
            case Change() | Reading(change=OpenChange()):
                self._points.clear()
            case Reading():
                bits = figure(self.field, event)
                if event.speech and bits is not None and math.isfinite(bits):
                    self._take(event.seconds, event.speech, bits)

    def _take(self, seconds: float, speech: float, bits: float) -> None:
        points, point = self._points, (seconds, speech, bits)
        if points and point[1] < points[-1][1]:  # the evidence restarted
            points.clear()
        if len(points) > 1 and point[0] - points[-2][0] < SPACING_SECONDS:
            points[-1] = point
        else:
            points.append(point)
        while points[0][0] < point[0] - WINDOW_SECONDS:
            points.popleft()

    @property
    def beyond_reach(self) -> bool:
        """True if the figure can never get there in this stream."""
        return self.threshold_bits > self._most

    @property
    def seconds_left(self) -> float | None:
        """Stream seconds until the threshold at this rate; 0 if it is already met.

        None if the figure is not rising or can never reach the threshold. Also None during the
        first 3 s, and if the threshold is more than 10 minutes ahead.
        """
        if not self._points or self.beyond_reach:
            return None
        seconds, speech, bits = self._points[-1]
        if bits >= self.threshold_bits:
            return 0.0
        elapsed = seconds - self._points[0][0]
        spoken = speech - self._points[0][1]
        if elapsed < MIN_SPAN_SECONDS or spoken <= 0:
            return None
        grown, seconds_of = GROWTH
        slope = _slope([grown(point[1]) for point in self._points], [p[2] for p in self._points])
        if slope <= 1e-9:
            return None
        end = seconds_of(grown(speech) + (self.threshold_bits - bits) / slope)
        remaining = (end - speech) * elapsed / spoken
        return max(0.0, remaining) if remaining <= HORIZON_SECONDS else None

    def state(self) -> list[list[float]]:
        """Return the state for a checkpoint, as JSON values."""
        return [list(point) for point in self._points]

    def restore(self, state: list[list[float]]) -> None:
        """Continue from a ``state``."""
        self._points = deque((seconds, speech, bits) for seconds, speech, bits in state)


def _slope(x: list[float], y: list[float]) -> float:
    """Fit the slope of the least-squares line; 0 if undefined."""
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    spread = math.fsum((a - mean_x) ** 2 for a in x)
    if spread <= 0:
        return 0.0
    return math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread


# --- An early-warning rule: an alert that another rule is about to raise one.
#
# Source: docs/method.md section 7.


class EarlyWarning(HoldRule):
    """Warn while a threshold is still ahead: "3 bits in about 20 s".

    It is raised at the first reading below the threshold that is forecast to reach it within
    ``warn_seconds``. It is cleared once the figure has stayed below the threshold by the rule's
    margin for the rule's hold, without a forecast within twice ``warn_seconds``. A change of
    speaker or channel also clears it. A warning sets no exit status and stops no stream.

    Examples:
        >>> from math import sqrt
        >>> warning = EarlyWarning(Threshold("bits", 3.0), 5.0)
        >>> for t in range(1, 9):
        ...     reading = {"seconds": t, "speech": t, "bits": sqrt(t)}
        ...     for alert in warning.update(Reading.from_record(reading)):
        ...         print(alert.seconds, alert.rule, round(alert.seconds_left, 2))
        4 bits>3 within 5 s 5.0
    """

    level = "warning"
    kind = "forecast"

    def __init__(self, rule: Threshold, warn_seconds: float) -> None:
        if not (math.isfinite(warn_seconds) and warn_seconds > 0):
            raise UsageError(f"warn_seconds={warn_seconds:g} must be a positive number of seconds")
        super().__init__(rule.field, rule.bits)
        self.watched = rule
        self.warn_seconds = float(warn_seconds)
        self._forecast = Forecast(rule.bits, rule.field)

    @property
    def rule(self) -> str:
        """Forecast as text."""
        return f"{self.field}>{self.bits:g} within {self.warn_seconds:g} s"

    @property
    def seconds_left(self) -> float | None:
        """Forecast at the last reading, or None."""
        return self._forecast.seconds_left

    def _observe(self, event: Event) -> None:
        self._forecast.update(event)

    def _would_flip(self, value: float) -> bool:
        remaining = self.seconds_left
        if self.raised:
            far = remaining is None or remaining > 2 * self.warn_seconds
            return far and self.watched.is_over(value)
        return value < self.bits and remaining is not None and remaining <= self.warn_seconds

    def _hold(self) -> float:
        return self.watched.hold_seconds if self.raised else 0.0

    def _complete(self, alert: Alert) -> Alert:
        return replace(alert, seconds_left=self.seconds_left)

    def state(self) -> Record:
        """Return the state for a checkpoint, as JSON values."""
        return {**super().state(), "points": self._forecast.state()}

    def restore(self, state: Record) -> None:
        """Continue from a ``state``."""
        super().restore(state)
        self._forecast.restore(state["points"])
