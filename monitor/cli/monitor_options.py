"""Options of the commands that measure a stream, and the report of their run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from monitor.alerts.actions.registry import ACTION_OPTIONS, BackgroundDelivery
from monitor.cli.inputs import check_model
from monitor.cli.options import (
    BudgetTerms,
    Features,
    FiniteRange,
    OptionGroup,
    PeriodicBits,
    RankModelFile,
    Seconds,
    Share,
    among_option,
    group,
    option,
    read_lines,
    setting,
    shared,
    speaker_model_option,
)
from monitor.cli.secret_options import notifies_by_secret, posts_by_secret, refuse_typed
from monitor.errors import UsageError
from monitor.phrases import plural
from monitor.safe_text import is_name, spelled

if TYPE_CHECKING:
    from monitor.alerts import EarlyWarning, Threshold
    from monitor.events.run import Alert
    from monitor.features.registry import FeatureSetup
    from monitor.population.population import Population
    from monitor.population.rank_model import RankModels
    from monitor.protocols import AlertAction, AlertRule, Source
    from monitor.run import LedgerFile, LogFile, Protection
    from monitor.stream.monitor import Monitor


@dataclass(frozen=True, slots=True)
class MonitorOptions:
    """The attacker: population, features and crowds."""

    store: str | None = option(
        "-p, --population FILE",
        "People the attacker knows (`monitor enrol`). [default: the shipped readers]",
    )
    rank_model_file: str | None = option(
        "--rank-model FILE|reference",
        "Rank model from `monitor calibrate -o rank_model.npz`, or `reference` for the shipped "
        "readers' model. [default: the one in -p]",
        type=RankModelFile(),
    )
    watch: tuple[str, ...] = option(
        "-w, --watch NAME",
        "Speaker to measure. Repeat it with --turns. Without it, the bits are the attacker's "
        "confidence if the speaker is enrolled. [default: none]",
        multiple=True,
    )
    features: tuple[str, ...] | None = option(
        "--features",
        "Features to use. An attacker who uses more learns more. [default: all calibrated ones]",
        type=Features(),
    )
    speaker_model: ClassVar[Any] = speaker_model_option
    among: tuple[int, ...] | None = shared(among_option)
    enrolled_prior: float = setting(
        "enrolled-prior P",
        "Prior probability that one of the N enrolled speaks.",
        type=FiniteRange(0.0, 1.0, min_open=True, max_open=True),
        default=0.5,
    )
    bystanders: float | None = setting(
        "bystanders",
        "Also name enrolled people above this probability in the largest crowd of --among, such "
        "as 1%.",
        type=Share(),
    )
    second_voice: bool | None = setting(
        "second-voice",
        "Whether to find a voice that takes short turns with --watch NAME. With --speaker-model, "
        "this takes twice as long as the rest, and only listen does it. [default: true]",
        default=None,
        show_default=False,
    )
    step: float = setting("step", "Audio seconds between readings.", type=Seconds(), default="1")
    channel: int | None = option("--channel N", "Channel, from 1. [default: all, mixed]", minimum=1)
    template_seconds: float | None = setting(
        "template-seconds D",
        "Cut all templates to D speech seconds. [default: their common length, or that of --watch "
        "NAME if it is shorter]",
        type=Seconds(),
    )
    on_change: str = setting(
        "on-change",
        "Response to a change of speaker or channel. `note` reports it and suspends alerts until "
        "the first voice is back. `reset` restarts the evidence and keeps the peak. `split` "
        "starts another stream.",
        type=click.Choice(["ignore", "note", "reset", "split"]),
        default="note",
    )

    @property
    def files(self) -> list[str]:
        """Files that are read."""
        return [name for name in (self.store, self.rank_model_file) if name]

    @property
    def watched(self) -> str | None:
        """The watched speaker; UsageError for several."""
        if len(self.watch) > 1:
            raise UsageError("--watch takes several names only with --turns FILE or --per-channel")
        return self.watch[0] if self.watch else None

    def monitors(self, *, setup: FeatureSetup, top: int) -> list[Callable[[Source], Monitor]]:
        """Return makers of monitors for a source split by person, one per watched person."""
        watched: list[tuple[str, ...]] = [(name,) for name in self.watch] or [()]
        each_watching = (replace(self, watch=names) for names in watched)
        return [partial(options.monitor, setup=setup, top=top) for options in each_watching]

    def monitor(self, source: Source, *, setup: FeatureSetup, top: int) -> Monitor:
        """Make the monitor for a source, with the population and rank models that it needs."""
        from monitor.features.registry import takes
        from monitor.stream.monitor import Monitor
        from monitor.stream.plan import MonitorSettings

        files = self.store, self.rank_model_file
        population, rank_models = _read(*files, *map(_mark_of, self.files))
        check_model(setup.speaker, population, self.store)
        monitor = Monitor.for_source(
            source,
            population,
            self.features,
            self.watched,
            step_seconds=self.step,
            on_change=self.on_change,
            setup=setup,
            settings=MonitorSettings(
                top=top,
                among=self.among,
                enrolled_prior=self.enrolled_prior,
                channel=self.channel,
                bystanders=self.bystanders,
                template_seconds=self.template_seconds,
                rank_models=rank_models,
                second_voice=(
                    True
                    if self.second_voice is None and source.stream_info.live
                    else self.second_voice
                ),
            ),
        )
        if source.stream_info.words and "words" not in map(takes, monitor.features):
            whose = "the shipped population" if self.store is None else self.store
            raise UsageError(
                f"{whose} has no templates of words: leave out --transcript, or enrol and "
                "calibrate with words beside the recordings (--features f0,...,style)"
            )
        return monitor

    def check_channel(self, source: Source) -> None:
        """Refuse a channel that a recording does not have."""
        has = source.stream_info.channels
        if self.channel is not None and (has is None or self.channel > has):
            what = "frames, no audio" if has is None else plural(has, "channel")
            raise UsageError(f"--channel {self.channel}: {source.label} has {what}")


def refuse_beside(telling_apart: str, others: Mapping[str, object]) -> None:
    """Refuse options for one voice beside an option that separates people."""
    for name, value in others.items():
        if value:
            raise UsageError(f"{name} is for one voice: leave it out, or leave out {telling_apart}")


@lru_cache(maxsize=2)
def _read(
    store: str | None, rank_model_file: str | None, *_marks: object
) -> tuple[Population, RankModels | None]:
    """Read a population, and the rank models of a file with their cohort; results are cached."""
    from monitor.population.population import Population, load_rank_models

    population = Population.reference() if store is None else Population.load(store)
    if rank_model_file is None:
        return population, None
    rank_models, cohort = load_rank_models(Path(rank_model_file))
    if cohort is not None:
        population = population.with_rank_models(population.rank_models, cohort)
    return population, rank_models


def _mark_of(name: str) -> object:
    """Return a mark of a file's state; None if reading it will raise."""
    try:
        status = Path(name).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


HORIZON_SECONDS = 600.0


def addresses(option: str, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses of an option; ``@FILE`` stands for the lines of a file."""
    lines_read: list[str] = []
    for value in values:
        if not value.startswith("@"):
            lines_read.append(value)
            continue
        lines = read_lines(f"{option} {value}", value[1:])
        lines_read += [line for line in lines if not line.startswith("#")]
    return tuple(lines_read)


def _read_receivers(**receivers: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    targets = {kind: receivers[kind.parameter] for kind in ACTION_OPTIONS}
    return {
        kind.name: addresses(kind.name, values) if kind.environment else values
        for kind, values in targets.items()
    }


_SECRETS = {
    "--webhook": refuse_typed(posts_by_secret, "use @FILE or MONITOR_WEBHOOK"),
    "--notify": refuse_typed(notifies_by_secret, "use @FILE or MONITOR_NOTIFY"),
}
_RECEIVERS = OptionGroup(
    [
        click.option(
            kind.name,
            multiple=True,
            metavar=kind.metavar,
            envvar=kind.environment or None,
            callback=_SECRETS.get(kind.name),
            help=kind.help,
        )
        for kind in ACTION_OPTIONS
    ],
    [kind.parameter for kind in ACTION_OPTIONS],
    _read_receivers,
    dict.fromkeys((kind.parameter for kind in ACTION_OPTIONS), ""),
)


@dataclass(frozen=True, slots=True)
class AlertOptions:
    """Alerts and what they do."""

    alerts: tuple[str, ...] = option(
        "--alert RULE",
        "Raise an alert, such as 'bits>6 for 5 s after 10 s'. `after` counts speech. May be "
        "repeated. An alert gives exit status 3. Less than 10 s of speech without one is "
        "undecided (4). `bits` is the value shown first, `bits_low` its lower limit. "
        "`closed_set_bits` counts among the N enrolled, `among.1e6.bits` among a million people. "
        "`f0.rank_bits_low` is one feature's.",
    )
    false_alarms: float | None = option(
        "--false-alarms",
        "Set the --alert threshold by false-alarm rate (5%). At most this fraction of other "
        "people's whole streams exceeds it. Give --alert only a field, such as bits.",
        type=Share(),
    )
    horizon: float | None = setting(
        "horizon LENGTH",
        "Length of the streams that --false-alarms covers. [default: 10m]",
        type=Seconds(),
    )
    warn_seconds: float | None = option(
        "--warn",
        "Warn when an --alert is forecast within this time. A warning does not change the exit "
        "status.",
        type=Seconds(),
    )
    receivers: Mapping[str, tuple[str, ...]] = group(_RECEIVERS, "")
    bell: bool | None = setting(
        "bell",
        "Whether to ring the terminal's bell at an alert. [default: true for listen]",
        default=None,
        show_default=False,
    )
    stop: bool = option("--stop-on-alert", "End the stream at the first alert.")
    allow_idle: bool = option(
        "--allow-idle-alerts",
        "Accept an --alert or --budget that can never be raised. [default: refuse it]",
    )

    def __post_init__(self) -> None:
        if self.horizon is not None and self.false_alarms is None:
            raise UsageError(
                "horizon is the length covered by --false-alarms: add --false-alarms 5%"
            )
        if self.false_alarms is not None and not self.open_rules:
            raise UsageError(
                "--false-alarms sets the threshold of an alert without one: add --alert bits"
            )
        if self.warn_seconds is not None and not self.alerts:
            raise UsageError("--warn needs a threshold: add --alert 'bits>6'")
        _ = self.rules  # raises for an invalid rule

    @property
    def open_rules(self) -> tuple[tuple[str, float, float | None], ...]:
        """Alerts with a computed threshold: field, hold, minimum speech."""
        from monitor.alerts import Conformal

        parsed = () if self.false_alarms is None else map(Conformal.parse_field, self.alerts)
        return tuple(rule for rule in parsed if rule is not None)

    @property
    def rules(self) -> tuple[EarlyWarning | Threshold, ...]:
        """New rules of alerts with a threshold, and of their warnings."""
        from monitor.alerts import Conformal, EarlyWarning, Threshold

        closed = (
            t for t in self.alerts if self.false_alarms is None or not Conformal.parse_field(t)
        )
        thresholds, warn = list(map(Threshold.parse, closed)), self.warn_seconds
        early = [] if warn is None else [EarlyWarning(rule, warn) for rule in thresholds]
        return (*early, *thresholds)

    @property
    def horizon_seconds(self) -> float:
        """Length of the streams that --false-alarms covers."""
        return HORIZON_SECONDS if self.horizon is None else self.horizon

    def rules_for(self, monitor: Monitor, further: Sequence[AlertRule] = ()) -> list[AlertRule]:
        """Make all rules; the monitor computes the thresholds of --false-alarms."""
        from monitor.alerts import Conformal, EarlyWarning

        open_rules = []
        for field, hold, minimum in self.open_rules:
            assert self.false_alarms is not None
            alarms = monitor.false_alarms(field, self.false_alarms, self.horizon_seconds)
            open_rules.append(Conformal(alarms, hold, least_speech_seconds=minimum))
        warn = self.warn_seconds
        early = [] if warn is None else [EarlyWarning(rule, warn) for rule in open_rules]
        rules: list[AlertRule] = [*early, *open_rules, *self.rules, *further]
        # only options typed for this run are refused, since others may come from the environment
        typed = [action.name for action in ACTION_OPTIONS if not action.environment]
        needing = [name for name in typed if self.receivers[name]]
        needing += ["--stop-on-alert"] if self.stop else []
        if not rules and needing:
            raise UsageError(f"{needing[0]} needs an alert: add --alert 'bits>6'")
        return rules

    def actions(self) -> Iterator[AlertAction]:
        """Open the actions of alerts one by one; the run closes them."""
        if self.bell:
            from monitor.alerts.actions.receivers import Bell

            yield Bell()
        for kind in ACTION_OPTIONS:
            for receiver in self.receivers[kind.name]:
                yield BackgroundDelivery(kind.opens(receiver))

    @property
    def thresholds(self) -> list[tuple[str, float]]:
        """Fields and thresholds of ``--alert`` for which views forecast the time."""
        from monitor.alerts import Threshold

        rules = [rule for rule in self.rules if isinstance(rule, Threshold)]
        shown = ("bits", "evidence_bits", "closed_set_bits")
        return [(rule.field, rule.bits) for rule in rules if rule.field in shown]

    @property
    def until(self) -> Callable[[Alert], bool] | None:
        """Test that ends the stream at an alert (not a warning); None without --stop-on-alert."""
        return (lambda alert: alert.code == "alert.raised") if self.stop else None


def _one(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> str | None:
    """Refuse several files, since only the last would be written."""
    if len(values) > 1:
        raise click.BadParameter(
            f"given {len(values)} times ({', '.join(values)}): use one file", context, option
        )
    return values[0] if values else None


@dataclass(frozen=True, slots=True)
class JsonLog:
    """The JSON lines of a run."""

    jsonl: str | None = option(
        "--jsonl FILE|-",
        "Write JSON lines. [default: standard output if piped]",
        multiple=True,
        callback=_one,
    )
    replace: bool = option("--replace", "Overwrite an existing --jsonl or --summary file.")

    @property
    def name(self) -> str | None:
        """File of the lines; without a name, standard output if that is not a terminal."""
        return "-" if self.jsonl is None and not sys.stdout.isatty() else self.jsonl

    def file(self, spared: Iterable[object | None], *, resume: bool = False) -> LogFile | None:
        """Return the log of a `Run`, which must not overwrite ``spared`` files."""
        from monitor.run import LogFile

        if resume and self.name in (None, "-"):
            raise UsageError("--resume needs the file of the interrupted run: --jsonl FILE")
        if resume and self.replace:
            raise UsageError(
                "use --resume to continue a run or --replace to start it again, not both"
            )
        if self.name is None:
            return None
        read = tuple(str(path) for path in spared if path)
        return LogFile(self.name, self.replace, resume, read)


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """The ledger."""

    ledger: Path | None = option(
        "--ledger FILE.db",
        "Continue the speaker's sessions in this ledger. Evidence continues from them, and this "
        "session is added.",
        type=click.Path(path_type=Path, dir_okay=False),
    )
    ledger_every: float = setting(
        "ledger-every",
        "Stream seconds between the readings stored in the ledger.",
        type=Seconds(),
        default="10",
    )
    budget: BudgetTerms | None = option(
        "--budget BITS[/30d]",
        "Alert at BITS over all sessions in the ledger. With a period, as in 8bits/30d, those that "
        "ended before it do not count. With --through, mute 2 bits before BITS.",
        type=PeriodicBits(),
    )
    listener: str | None = option(
        "--listener NAME",
        "Receiver of the speech, with a budget of its own in the ledger. [default: anyone, which "
        "counts all listeners together]",
    )

    def check(self, *, keeps: bool) -> None:
        """Refuse a budget without a ledger, unless this run enforces it (``keeps``)."""
        if self.listener is not None and self.ledger is None:
            raise UsageError("--listener needs --ledger FILE.db")
        if self.ledger is None and self.budget is not None and self.budget.period_seconds:
            raise UsageError("a --budget for a period needs --ledger FILE.db")
        if self.listener is not None and not is_name(self.listener):
            raise UsageError("--listener: give a name of at most 200 printable characters")
        if self.budget is not None and self.ledger is None and not keeps:
            raise UsageError(
                "--budget counts over all sessions and needs --ledger FILE.db. For this session "
                f"alone use --alert 'bits>{self.budget.bits:g}'."
            )

    def rules(self) -> list[Threshold]:
        """Make the rules of the budget over all sessions, if there is one."""
        from monitor.alerts import budget

        return [] if self.budget is None or self.ledger is None else budget(self.budget.bits)

    def file(self) -> LedgerFile | None:
        """Return the ledger of a `Run`, if any."""
        from monitor.run import LedgerFile

        if self.ledger is None:
            return None
        period = None if self.budget is None else self.budget.period_seconds
        listener = spelled(self.listener or "anyone")
        return LedgerFile(self.ledger, self.ledger_every, listener, period)


@dataclass(frozen=True, slots=True)
class ProtectedVoiceOptions:
    """The voice through an anonymiser."""

    protect: str | None = option(
        "--protect METHOD",
        "Also measure the anonymised voice, such as mcadams:0.8 of `monitor protect`. Replay also "
        "takes command:CMD. Protected audio is neither stored nor played. An --alert applies to "
        "the clear voice (bits>6) unless it names the protected one (protected.bits>3).",
    )
    protected_population: str | None = option(
        "--protected-population FILE",
        "The same people, enrolled and calibrated on speech protected by METHOD. Without this "
        "attacker, who knows the method, the bits do not measure protection. [default: none]",
    )
    protect_seed: int | None = setting(
        "protect-seed N", "Seed of the method's random draws. [default: random]", minimum=0
    )

    @property
    def files(self) -> list[str]:
        """Files that are read."""
        return [self.protected_population] if self.protected_population else []

    def population(self) -> Population | None:
        """Read the protected population; None if not given."""
        name = self.protected_population
        return None if name is None else _read(name, None, _mark_of(name))[0]

    def protection(self, ledger: Path | None, *, later: bool = False) -> Protection | None:
        """Return the protection of a `Run`, if any; a ``later`` method may use its options."""
        from monitor.run import Protection

        if self.protect is None:
            if later:
                return None
            if self.protected_population is not None:
                raise UsageError("--protected-population needs --protect METHOD")
            if self.protect_seed is not None:
                raise UsageError("protect-seed needs --protect METHOD")
            return None
        if ledger is not None:
            raise UsageError(
                "--ledger continues earlier sessions of the clear voice, which would put it ahead "
                "of the protected one: leave out --ledger or --protect"
            )
        return Protection(self.protect, self.population(), self.protect_seed)
