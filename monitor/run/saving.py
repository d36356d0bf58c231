"""Checkpoints of a run: when they are saved, and which settings they need to resume."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.errors import Message, UsageError
from monitor.events.declaration import to_json
from monitor.events.run import RunStart
from monitor.protocols import ExplainedRule, LiveSource, Provenance, Source, Stateful
from monitor.run.parts import RESUME, LogFile, Protection
from monitor.sinks.jsonl import JsonLines
from monitor.stream.checkpoint import Checkpoint, state_path
from monitor.stream.monitor import Monitor
from monitor.stream.records import RunTotals

if TYPE_CHECKING:
    from monitor.stream.pair import MonitorPair

CHECKPOINT_SECONDS = 1.0
"""Wall seconds between checkpoints, and the work that a killed run repeats."""


class Saves:
    """Checkpoints of a run, to resume it while its source is read again from the start.

    ``configure`` composes the settings that a resumed run must share. ``state`` is saved in
    checkpoints: the monitor or pair, the counts, and rules and other parts. UsageError if the run
    should be resumed, but its source cannot be read again.
    """

    def __init__(
        self,
        log: JsonLines,
        file: LogFile,
        source: Source,
        configure: Callable[[Sequence[Provenance]], dict[str, object]],
        clock: Callable[[], float],
        state: tuple[Monitor | MonitorPair, RunTotals, Sequence[Stateful]],
    ) -> None:
        parts = None if isinstance(source, LiveSource) else source.provenance()
        if file.resume and parts is None:
            raise UsageError(Message(f"{source.label} cannot be read again: leave out ", RESUME))
        self._can_resume, self._log, self._state = parts is not None, log, state
        configuration = {} if parts is None else configure(parts)
        self._checkpoint = Checkpoint(state_path(Path(file.path)), configuration)
        self._checkpoint.check()
        self._clock, self._saved = clock, -math.inf  # saves at the first reading

    @property
    def can_resume(self) -> bool:
        """True if the run could be resumed after an interruption now."""
        return self._can_resume and self._checkpoint.path.exists()

    def load(self) -> None:
        """Restore a run and its log from the last save."""
        self._log.go_on_at(self._checkpoint.load(*self._state))

    def discard(self) -> None:
        """Remove the checkpoint of the previous run in this log."""
        self._checkpoint.remove()

    def save_after_reading(self) -> None:
        """Save the run, unless it was saved within the last second."""
        if self._can_resume and self._clock() - self._saved >= CHECKPOINT_SECONDS:
            self._log.flush()
            self._checkpoint.save(*self._state, self._log.offset)
            self._saved = self._clock()

    def finish(self) -> None:
        """Remove the checkpoint of a run that has ended."""
        if self._can_resume:
            self._log.flush()
            self._checkpoint.remove()


def compose_configuration(
    monitor: Monitor,
    source: Source,
    parts: Sequence[Provenance],
    start: RunStart,
    rules: Sequence[ExplainedRule],
    protect: Protection | None,
    *,
    has_ledger: bool,
) -> dict[str, object]:
    """Compose the settings that a resumed run must share."""
    attacker = monitor.attacker
    configuration: dict[str, object] = {
        "recordings": [[recording.label, *recording.hashes] for recording in parts],
        "interval": [[recording.start_seconds, recording.end_seconds] for recording in parts],
        "raw": next(
            (list(recording.raw) for recording in parts if recording.raw is not None), None
        ),
        "session": attacker.session,
        "features": list(monitor.features),
        "watch": monitor.watch,
        "template_seconds": attacker.scoring.seconds,
        **monitor.plan.configuration(),
        **start.fingerprint,
        "alerts": [rule.rule for rule in rules],
        "ledger": has_ledger,
        "words": [note.mark for note in source.transcripts],
    }
    if protect is not None and start.protected is not None:
        attackers = to_json(start.protected)["attackers"]  # records omit an anonymiser's command
        configuration["protect"] = [protect.method, protect.speaker, attackers]
    return configuration
