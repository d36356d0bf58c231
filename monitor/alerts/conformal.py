"""Alert rules with a guaranteed rate of false alarms over a whole stream."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from monitor.alerts.figures import check_field, most_bits
from monitor.alerts.rules import HOLD, Threshold
from monitor.events.declaration import Event
from monitor.events.phrases import others_in_words
from monitor.events.reading import Reading
from monitor.events.run import AlarmTerms, Alert, RunStart
from monitor.phrases import length_in_words, percent
from monitor.population.false_alarms import FalseAlarms

OPEN = re.compile(rf"\s*(?P<field>[^\s<>=]+){HOLD}\s*")


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
        """Parse ``FIELD``, hold and minimum speech, as of `Threshold.parse`, without a threshold.

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
