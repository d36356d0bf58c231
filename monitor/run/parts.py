"""Parts of a run: log, ledger, rules, declared epsilon and anonymiser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from monitor.alerts.actions.registry import ACTION_OPTIONS, BackgroundDelivery
from monitor.alerts.early_warnings import EarlyWarning
from monitor.alerts.figures import needs_watched_figures
from monitor.alerts.rules import Threshold
from monitor.errors import Argument, Message, StoreError, UsageError
from monitor.events.phrases import declared_in_words
from monitor.events.reading import DeclaredReading, Reading
from monitor.events.run import DeclaredStart, ProtectedAttacker, ProtectedStart, RunStart
from monitor.population.population import Population
from monitor.protocols import AlertAction, ExplainedRule, LiveSource, Provenance, Source
from monitor.sinks.jsonl import JsonLines, has_barely_begun, refuse_overwrite, standing
from monitor.stream.checkpoint import state_path
from monitor.stream.monitor import Monitor
from monitor.types import Block, Notice

if TYPE_CHECKING:
    from monitor.anonymisers.laplace import DeclaredGuarantee
    from monitor.anonymisers.recording import ProtectedBlocks
    from monitor.ledger import LedgerSession
    from monitor.stream.pair import MonitorPair

RESUME, _REPLACE = Argument("resume", "True"), Argument("replace", "True")
_ALLOW = Argument("allow_idle_alerts", "True", "RunSettings(allow_idle_alerts=True)")


@dataclass(frozen=True, slots=True)
class LogFile:
    """Log file of a run, with one JSON record per line.

    Attributes:
        path: the file; ``-`` for standard output.
        replace: overwrite an existing file.
        resume: continue the file's interrupted run, or start it again if it has no checkpoint yet.
        spared: input files of the run. ``path`` must be none of these.
    """

    path: str | os.PathLike[str]
    replace: bool = False
    resume: bool = False
    spared: Sequence[str | os.PathLike[str]] = ()

    def open(self) -> JsonLines:
        """Open the file, locked and unchanged until the first record."""
        name = os.fspath(self.path)
        if self.resume and name == "-":
            raise UsageError(Message(RESUME, " needs the file of the interrupted run, not -"))
        if self.resume and self.replace:
            both = Message(RESUME, " continues a run, ", _REPLACE, " starts it again: use one")
            raise UsageError(both)
        if name != "-":
            refuse_overwrite(self.path, self.spared)
        log = JsonLines(name)
        try:
            if log.plain and not (self.resume or self.replace):
                self._refuse_overwriting()
        except BaseException:
            log.close()
            raise
        return log

    @property
    def can_resume(self) -> bool:
        """True if the file has a run to continue, which reached its first checkpoint."""
        has_state = state_path(Path(self.path)).exists()
        return self.resume and (has_state or not has_barely_begun(self.path))

    def _refuse_overwriting(self) -> None:
        path = Path(self.path)
        try:
            what = standing(path)
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror}. Name another file.") from None
        if what is None:
            return
        resumable = what == "an unfinished run" and state_path(path).exists()
        resume = Argument("resume", "True", "LogFile(path, resume=True)")
        replace = Argument("replace", "True", "LogFile(path, replace=True)")
        go_on = ("continue it (", resume, "), ") if resumable else ()
        advice = ("name another file, or overwrite it (", replace, ")")
        raise UsageError(Message(f"{path} holds {what}: ", *go_on, *advice))


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """Ledger to which a run adds its session, with a reading every ``reading_seconds``.

    The session counts against one ``listener``. It continues that listener's sessions that ended in
    the last ``period_seconds`` (`monitor.ledger.ledger.Account`).
    """

    path: str | os.PathLike[str]
    reading_seconds: float = 10.0
    listener: str = "anyone"
    period_seconds: float | None = None

    def session(
        self, monitor: Monitor, recordings: Iterable[Provenance], *, resume: bool
    ) -> LedgerSession:
        """Open the ledger, and resume a new monitor from it.

        A resumed run needs its existing ledger, since a new ledger lacks the run's session.
        """
        from monitor.ledger import Ledger, LedgerSession
        from monitor.ledger.ledger import Account
        from monitor.ledger.session import check

        check(monitor)
        ledger = Ledger(Path(self.path), create=not resume)
        identified = [recording for recording in dict.fromkeys(recordings) if recording.hashes]
        return LedgerSession(
            ledger, monitor, reading_seconds=self.reading_seconds, recordings=identified,
            account=Account(self.listener, self.period_seconds),
        )  # fmt: skip


SOON_SECONDS = 8.0
"""Seconds of speech. A threshold that is reached earlier leaves no time for a warning."""
_GROWING = ("bits", "closed_set_bits", "evidence_bits", "gain_bits", "expected_bits")


def fit_rules(
    rules: Sequence[ExplainedRule],
    actions: Sequence[AlertAction],
    start: RunStart,
    monitor: Monitor,
    *,
    allow_idle: bool,
) -> tuple[RunStart, list[Notice]]:
    """Pass the start to the rules; return it with their terms, and notices about the rules.

    UsageError for a rule that can never be raised, unless ``allow_idle``.
    """
    thresholds = tuple(rule.alert_terms() for rule in rules if isinstance(rule, Threshold))
    alarms = tuple(terms for rule in rules if (terms := rule.terms()) is not None)
    start = replace(start, alerts=thresholds or None, alarms=alarms or None)
    for rule in rules:
        rule.update(start)
    notices = [Notice("rule", note) for rule in rules if (note := rule.note(start))]
    withheld = monitor.attacker.withheld
    for rule in (rule for rule in rules if isinstance(rule, Threshold)):
        if withheld and needs_watched_figures(rule.field):
            idle = f"{rule.rule} can never be raised: {withheld}"
        else:
            idle = rule.idle_reason(start, monitor.most_bits(rule.field))
        if idle and not allow_idle:
            raise UsageError(Message(f"{idle}, or run it as it is (", _ALLOW, ")"))
        notices += [Notice("rule", idle)] if idle else []
    for rule in rules:
        if isinstance(rule, EarlyWarning) and (note := _too_late(rule, monitor)):
            notices.append(Notice("late warning", note))
    if not rules and any(isinstance(action, BackgroundDelivery) for action in actions):
        receivers = " and ".join(option.name for option in ACTION_OPTIONS if option.environment)
        notices.append(Notice("nothing sent", f"no --alert is set: nothing is sent to {receivers}"))
    return start, notices


def _too_late(rule: EarlyWarning, monitor: Monitor) -> str:
    """Explain that an average voice passes a threshold before a warning; mostly empty."""
    if rule.field.removesuffix("_low").removesuffix("_high") not in _GROWING:
        return ""
    expected = monitor.attacker.joint.expected
    lengths = [0.5 * k for k in range(1, round(2 * SOON_SECONDS) + 1)]
    reached = next((t for t in lengths if expected.evaluate_at(t).value >= rule.bits), None)
    if reached is None:
        return ""
    return (
        f"{rule.rule}: no warning comes in time. An average voice reaches {rule.bits:g} bits "
        f"after {reached:g} s of speech, before a forecast is possible. Set a higher threshold, "
        "or stop at the alert itself."
    )


class DeclaredEpsilon:
    """Privacy guarantee that an anonymiser declares, or the noise of frames (without ``side``)."""

    def __init__(
        self, declared: DeclaredGuarantee, monitor: Monitor, side: ProtectedSide | None = None
    ) -> None:
        self._declared, self._monitor, self._side = declared, monitor, side

    @classmethod
    def of_run(cls, monitor: Monitor, side: ProtectedSide | None) -> Self | None:
        """Return the guarantee declared for a run's input; None without one."""
        if side is not None:
            declared = side.anonymiser.declared
        elif monitor.noise:
            from monitor.anonymisers.laplace import DeclaredGuarantee

            seconds = monitor.population.features[monitor.features[0]].spec.frame_seconds
            declared = DeclaredGuarantee.parse_noise(monitor.noise, seconds)
        else:
            return None
        return None if declared is None else cls(declared, monitor, side)

    @property
    def terms(self) -> DeclaredStart:
        """Mechanism, epsilon and window, for the ``start`` record."""
        from monitor.anonymisers.laplace import empty_after

        declared = self._declared
        return DeclaredStart(
            declared.mechanism, declared.epsilon, declared.window_seconds, declared.delta,
            empty_after(declared.epsilon),
        )  # fmt: skip

    @property
    def notice(self) -> Notice:
        """Notice before the stream starts."""
        return Notice(
            "declared",
            f"{declared_in_words(self.terms)} (33 bits single out one living person). It holds in "
            "exact arithmetic, and is not proved for floating-point numbers. The measured bits "
            "cover only the attackers tried, and are no promise",
            level="info",
        )

    def declare(self, reading: Reading) -> DeclaredReading:
        """Return the guarantee at a reading, over all windows or frames processed so far."""
        if self._side is not None:
            begun = self._monitor.recordings.number  # each may add a partial window
            windows = self._declared.windows(reading.seconds) + begun
            count = self._side.anonymiser.channels_heard * windows
        else:
            features = self._monitor.population.features
            count = sum(
                round(feature_reading.usable / features[name].spec.frame_seconds)
                for name, feature_reading in reading.features.items()
            )
        return DeclaredReading.from_guarantee(self._declared.compose(count))


@dataclass(frozen=True, slots=True)
class Protection:
    """Anonymiser of a run that measures the clear and the protected voice.

    Attributes:
        method: an anonymiser's name (`monitor.anonymisers.make`), such as ``"mcadams:0.8"``.
        population: the same people, enrolled and calibrated on speech that this method protected.
            Without it, the only attacker is unaware of the anonymiser, and better attackers learn
            more.
        seed: seed of the method's random draws; None for new draws.
        speaker: the person who speaks, for draws per speaker; None for the watched speaker.
        on_block: called with each block of protected sound. Returns the sound as sent (for example
            rounded), which the run then measures. Must return without delay.

    Example:
        >>> from monitor import Monitor
        >>> from monitor.run import Run, RunSettings
        >>> from monitor.sources import Pipe
        >>> import io
        >>> pipe = Pipe(io.BytesIO(bytes(2 * 48_000)), raw=(16_000, 1, "s16le"))
        >>> monitor = Monitor(Population.reference(), ["f0"], watch="19")
        >>> settings = RunSettings(protect=Protection("noise:10", seed=1))
        >>> with Run(pipe, monitor, settings=settings) as run:
        ...     readings = [event for event in run if event.type == "reading"]
        >>> [reading.protected.by for reading in readings]
        ['ignorant', 'ignorant', 'ignorant']
    """

    method: str
    population: Population | None = None
    seed: int | None = field(default=None, repr=False)
    speaker: str | None = None
    on_block: Callable[[Block], Block] | None = field(default=None, repr=False, compare=False)

    def side(self, monitor: Monitor, source: Source, *, allow_overlap: bool) -> ProtectedSide:
        """Create the protected side of a stream. The unused ``monitor`` measures the clear side."""
        from monitor.anonymisers.recording import ProtectedBlocks
        from monitor.stream.pair import MonitorPair

        live = isinstance(source, LiveSource)
        labels = ("live",) if live else source.labels
        anonymiser = ProtectedBlocks(
            self.method,
            labels,
            speaker=self.speaker or monitor.watch,
            channel=monitor.settings.channel,
            seed=self.seed,
        )
        if anonymiser.latency_seconds is None and live:
            raise UsageError(
                f"{self.name} needs a whole recording and cannot work live: record, then replay"
            )
        pair = MonitorPair(monitor, partial(self._protected, anonymiser), self.population)
        pair.fit_to(source, allow_overlap=allow_overlap)
        return ProtectedSide(self.name, anonymiser, pair)

    def _protected(self, anonymiser: ProtectedBlocks, items: Iterable[object]) -> Iterator[Block]:
        for block in anonymiser(items):
            yield block if self.on_block is None else self.on_block(block)

    @property
    def name(self) -> str:
        """Method in records; ``"command"`` hides a command, which may name private files."""
        return "command" if self.method.startswith("command:") else self.method


@dataclass(frozen=True, slots=True)
class ProtectedSide:
    """Protected side of a run: the anonymiser, and the monitors of both sides."""

    name: str
    anonymiser: ProtectedBlocks
    pair: MonitorPair

    def terms(self) -> ProtectedStart:
        """Return the protected side's part of the ``start`` record."""
        attackers = {
            name: ProtectedAttacker(monitor.attacker.support_bits, monitor.plan.fingerprint)
            for name, monitor in self.pair.attackers.items()
        }
        return ProtectedStart(self.name, self.anonymiser.latency_seconds, attackers)

    def notices(self) -> list[Notice]:
        """Return notices before the stream starts."""
        from monitor.stream.pair import INFORMED

        attackers = (
            "the stronger of an attacker with enrolled protected speech and one unaware of the "
            "anonymiser. An attacker who also trained on it may learn more."
            if INFORMED in self.pair.attackers
            else "an attacker unaware of the anonymiser, which does not measure protection. One "
            "who knows it learns more (--protected-population)."
        )
        sentences = [f"protected by {self.name}, for {attackers}", *self.pair.notices]
        informed = self.pair.attackers.get(INFORMED)
        if informed is not None and informed.attacker.rank_model.prior_share:
            sentences.append(
                "The protected population's rank model was fitted partly or wholly to clear "
                "speech. An attacker with one fitted to protected speech alone may learn more "
                "(monitor calibrate, no-prior = true in --config FILE)."
            )
        if self.pair.clear.watch is None:
            sentences.append(
                "Without a watched speaker, both sides are an attacker's confidence, right or "
                "wrong. An anonymiser may raise it. Watch a speaker to measure protection."
            )
        if self.pair.clear.front_end.audio_features != self.pair.clear.features:
            sentences.append(
                "Words are the same on both sides, because anonymisers change only sound."
            )
        if self.anonymiser.latency_seconds is None:
            sentences.append(f"{self.name} needs a whole recording, so readings wait")
        return [Notice("protected", sentence) for sentence in sentences]
