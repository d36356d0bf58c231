"""A whole run: a source through the monitor into sinks, with rules and checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from monitor.protocols import AlertAction, AlertRule, RunLog, Sink, Source, Stateful
from monitor.stream.checkpoint import Checkpoint
from monitor.stream.monitor import Monitor
from monitor.stream.reading import Reading
from monitor.stream.records import RunTotals, record_of, start_record

__all__ = ["run"]

CHECKPOINT_SECONDS = 1.0
"""Wall seconds between checkpoints: a killed run repeats about that much work."""


def run(
    monitor: Monitor,
    source: Source,
    recordings: Sequence[str],
    *,
    sinks: Sequence[Sink] = (),
    rules: Sequence[AlertRule] = (),
    actions: Sequence[AlertAction] = (),
    until: Callable[[Mapping[str, Any]], bool] | None = None,
    stateful: Sequence[Stateful] = (),
    tally: RunTotals | None = None,
    start: Mapping[str, Any] | None = None,
    resumed: bool = False,
    log: RunLog | None = None,
    checkpoint: Checkpoint | None = None,
    lag: Callable[[float], float] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RunTotals:
    """Hear a source to its end.

    Args:
        monitor: fresh, or restored from a checkpoint.
        source: what to hear, from its first sample.
        recordings: what to call its recordings.
        sinks: get every record.
        rules: get every record; their alerts follow it.
        actions: get every record; what they failed at is in the ``end`` record.
        until: asked about every alert; True ends the stream there.
        stateful: further parts that a checkpoint must keep, after the rules.
        tally: counts so far.
        start: the ``start`` record, where it has been made already.
        resumed: True where the first records have been written before.
        log: the JSON lines, which also get every record; needed for ``checkpoint``.
        checkpoint: where to remember the run about once a second; removed at the end.
        lag: of a live source, the wall seconds since a second of the stream was heard; goes into
            the readings.
        clock: wall seconds.

    Returns:
        the counts of the whole run.
    """
    tally = tally or RunTotals()
    outlets = [*sinks, *actions] if log is None else [log, *sinks, *actions]
    stopped: list[str] = []

    def give(record: Mapping[str, Any], recording: int = 0) -> None:
        pending = [record]
        where = recordings[recording] if recording < len(recordings) else ""
        for rule in rules:
            pending.extend({**alert, "recording": where} for alert in rule.update(record))
        for each in pending:
            tally.count(each)
            for sink in outlets:
                sink.write(each)
            if until is not None and each["type"] == "alert" and until(each):
                stopped.append(each["rule"])

    start = start_record(monitor, recordings) if start is None else start
    if resumed:
        # people see where they are; the log has it already
        for sink in (*sinks, *actions):
            sink.write(start)
    else:
        give(start)
    saved = -math.inf  # the first reading can be resumed from
    for event in monitor.events(source):
        record = record_of(event, recordings, monitor.on_change)
        if lag is not None and isinstance(event, Reading):
            record["lag"] = lag(event.seconds)
        give(record, monitor.recordings.number)
        if stopped:
            break
        if checkpoint is None or log is None or not isinstance(event, Reading):
            continue
        if clock() - saved >= CHECKPOINT_SECONDS:
            log.flush()
            checkpoint.save(monitor, tally, [*rules, *stateful], log.offset)
            saved = clock()
    tally.failures = [line for action in actions for line in action.settle()]
    reason = stopped[0] if stopped else None
    end = tally.end_record(monitor, recordings, complete=tally.gaps == 0, stopped=reason)
    give(end)
    if checkpoint is not None:
        if log is not None:
            log.flush()
        checkpoint.remove()
    return tally
