"""Alert rules of a run, and what its log, sinks and actions receive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from monitor.alerts.budgets import Budget
from monitor.alerts.crossings import Crossings
from monitor.events.reading import Reading
from monitor.events.run import Alert, LevelReached, RunEnd, RunStart
from monitor.protocols import AlertAction, ExplainedRule, Sink
from monitor.safe_text import find_name, printable
from monitor.sinks.jsonl import JsonLines
from monitor.stream.records import RunTotals
from monitor.stream.stream import Event

if TYPE_CHECKING:
    from monitor.stream.people import MultiSpeakerMonitor

RunEvent: TypeAlias = "RunStart | Event | Alert | LevelReached | RunEnd"


class AskedRules:
    """Rules of a run. If its source is split by person, each person has a copy of each rule.

    The rules apply to the people with these ``labels``; empty for all.
    """

    def __init__(
        self,
        rules: Sequence[ExplainedRule],
        split: MultiSpeakerMonitor | None,
        labels: Sequence[str],
    ) -> None:
        self._rules, self._split, self._labels = rules, split, labels
        self._rules_of: dict[tuple[str, str | None], list[ExplainedRule]] = {}
        # seconds of alerts by label, if the source is split
        self.raised: dict[str, list[float]] = {}

    def begin(self, standing: Reading) -> Iterator[Alert]:
        """Yield the alerts of budgets that earlier sessions have spent, by the ``standing``."""
        for rule in self._rules:
            yield from rule.begin(standing) if isinstance(rule, Budget) else ()

    def ask(self, event: RunEvent) -> Iterator[Alert]:
        """Yield the alerts that an event triggers."""
        label, watched = getattr(event, "label", None), getattr(event, "watch", None)
        for watch, rule in self._select(label, watched):
            for alert in rule.update(event):
                if label is not None and alert.code == "alert.raised":
                    self.raised.setdefault(label, []).append(alert.seconds)
                yield replace(alert, label=label, watch=watch)

    def _select(
        self, label: str | None, watch: str | None
    ) -> list[tuple[str | None, ExplainedRule]]:
        if self._split is None:
            return [(None, rule) for rule in self._rules]
        if label is None or (self._labels and not find_name(label, self._labels)):
            return []  # start and end have no label
        several = self._split.watched
        rules = []
        for name in several if several and watch is None else (watch,):
            if (label, name) not in self._rules_of:
                self._rules_of[label, name] = deepcopy(list(self._rules))
            rules += [(name, rule) for rule in self._rules_of[label, name]]
        return rules

    def list_undecided(self) -> list[str]:
        """Return one line per undecided rule."""
        if self._split is None:
            return [line for rule in self._rules if (line := rule.inconclusive_reason)]
        return [
            f"{printable(label)}: {line}"
            for (label, _), rules in self._rules_of.items()
            for rule in rules
            if (line := rule.inconclusive_reason)
        ]


class EventOutput:
    """Writes events, and the alerts and crossings that they trigger, to all receivers of a run.

    The lists of sinks and actions may grow.
    """

    def __init__(
        self,
        rules: AskedRules,
        crossings: Crossings | None,
        labels: Sequence[str],
        totals: RunTotals,
        log: JsonLines | None,
        sinks: Sequence[Sink],
        actions: Sequence[AlertAction],
    ) -> None:
        self._rules, self._crossings, self._labels = rules, crossings, labels
        self._totals, self._log, self._sinks, self._actions = totals, log, sinks, actions

    def give(self, event: RunEvent, recording: int = 0) -> Iterator[RunEvent]:
        """Write and yield an event of this recording, and the alerts and crossings it triggers."""
        label = self._labels[recording] if recording < len(self._labels) else ""
        alerts = [replace(alert, recording=label) for alert in self._rules.ask(event)]
        crossings = [] if self._crossings is None else self._crossings.update(event)
        yield from self._write(event, *alerts, *crossings)

    def give_spent_budgets(self, standing: Reading) -> Iterator[RunEvent]:
        """Write and yield the alerts of budgets that earlier sessions have spent."""
        for alert in self._rules.begin(standing):
            yield from self._write(replace(alert, recording=self._labels[0]))

    def show(self, event: RunEvent) -> None:
        """Write an event to sinks and actions, without the log."""
        for receiver in (*self._sinks, *self._actions):
            receiver.write(event)

    def _write(self, *events: RunEvent) -> Iterator[RunEvent]:
        for event in events:
            self._totals.count(event)
            if self._log is not None:
                self._log.write(event)
            self.show(event)
            yield event
