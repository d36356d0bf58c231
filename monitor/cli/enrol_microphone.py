"""Enrolment from a microphone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from monitor.cli.inputs import quiet_libraries, stopped_by_signals
from monitor.cli.options import feature_setup, note, progress_over, say
from monitor.safe_text import spelled

if TYPE_CHECKING:
    from monitor.training.enrolling import Enrolment


MICROPHONE_SECONDS = 60.0
QUEUE_SECONDS = 60.0  # a slow machine may lag, since no reading is shown


def enrol_from_microphone(
    speaker: str, device: str | None, features: Sequence[str] | None, seconds: float
) -> Enrolment:
    """Record a speaker until there is speech enough, or Ctrl-C, and make a template."""
    from monitor.features.registry import defaults
    from monitor.run.pace import timed
    from monitor.sources.registry import open_live_source
    from monitor.training.live_enrolment import LiveEnrolment
    from monitor.types import Block, Gap

    setup = feature_setup()
    names = tuple(features) if features is not None else defaults(setup=setup)
    problems = []
    take = LiveEnrolment(timed(names, setup))
    microphone = open_live_source(
        f"mic:{device or ''}",
        seconds=5 * seconds + 60,  # limits the wait if there is much silence
        queue_seconds=QUEUE_SECONDS,
        report=lambda line: say(line),
    )
    with quiet_libraries(), microphone as source, stopped_by_signals(source.stop):
        say(f"Speak, about anything. Recording from {source.label} (Ctrl-C stops).")
        with progress_over(seconds, "speech", "s") as step:
            done = 0.0
            for item in source:
                if isinstance(item, Block):
                    take.push(item)
                elif isinstance(item, Gap):
                    problems.append(f"{item.reason}: {item.detail}")
                recent = take.recent
                state = recent.trouble or f"{recent.level_decibels:.0f} dB, good"
                step(state, take.speech_seconds - done)
                done = take.speech_seconds
                if done > seconds:  # then all frames of the wanted part are there
                    source.stop()
    note(*take.noticed)
    if trouble := take.whole.trouble:
        fault, _, advice = trouble.partition(": ")
        note(f"the recording was {fault}. Record another one, and {advice}.")
    enrolment = take.enrolment(spelled(speaker), "microphone", seconds, setup)
    return replace(enrolment, problems=(*enrolment.problems, *problems))
