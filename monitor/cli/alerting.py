"""Options for alerts and what they do, shared by the commands that hear a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from monitor.alerts.actions.registry import ACTION_OPTIONS
from monitor.cli.options import Seconds, Share, grouped
from monitor.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from monitor.protocols import AlertAction, AlertRule
    from monitor.stream.monitor import Monitor

__all__ = ["Alerting", "alert_options"]

HORIZON_SECONDS = 600.0

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Alerting:
    """What was asked for; a command gets it as ``alerting``.

    Attributes:
        rules: the rules of ``--alert``, and of ``--warn`` for each of them.
        open_rules: field, hold and least speech of those whose threshold is still to be worked out.
        share, horizon_seconds: ``--false-alarms`` and ``--horizon``.
        warn_seconds: ``--warn``.
        receivers: by name of its option, what each of them was given.
        bell: ``--bell``.
        stop: ``--stop-on-alert``.
    """

    rules: tuple[Any, ...]
    open_rules: tuple[tuple[str, float, float], ...]
    share: float | None
    horizon_seconds: float
    warn_seconds: float | None
    receivers: Mapping[str, tuple[str, ...]]
    bell: bool
    stop: bool

    def check_ledger(self, path: Path | None) -> None:
        """Refuse what is about one stream where a ledger adds earlier ones to it.

        Raises:
            UsageError: both were asked for.
        """
        if self.open_rules and path is not None:
            raise UsageError(
                "--false-alarms is about one stream from its beginning, --ledger goes on from "
                "earlier ones: use --budget, or a rule with a threshold"
            )

    def rules_for(self, monitor: Monitor, further: Sequence[AlertRule] = ()) -> list[AlertRule]:
        """All rules, with the thresholds worked out that were left to the monitor.

        Args:
            monitor: the one that will be heard.
            further: rules that were not asked for here, such as a budget's.

        Raises:
            UsageError: the laws in use do not know a threshold, or there is no rule for what alerts
                shall do.
        """
        from monitor.alerts import Conformal, EarlyWarning

        made = [
            Conformal(
                monitor.false_alarms(field, self.share, self.horizon_seconds),
                hold,
                least_speech_seconds=least,
            )
            for field, hold, least in self.open_rules
            if self.share is not None
        ]
        early = (
            [] if self.warn_seconds is None else [EarlyWarning(r, self.warn_seconds) for r in made]
        )
        rules: list[AlertRule] = [*early, *made, *self.rules, *further]
        # what may have come from the environment is told of, what was typed for this run refused
        typed = [each.name for each in ACTION_OPTIONS if not each.environment]
        needing = [name for name in typed if self.receivers[name]]
        needing += ["--stop-on-alert"] if self.stop else []
        if not rules and needing:
            raise UsageError(f"{needing[0]} needs an alert: add --alert 'bits>3'")
        return rules

    def actions(self) -> Iterator[AlertAction]:
        """What alerts do, made one by one; to be closed when the run is over."""
        from monitor.alerts.actions.courier import Courier

        if self.bell:
            from monitor.alerts.actions.bell import Bell

            yield Bell()
        for option in ACTION_OPTIONS:
            for given in self.receivers[option.name]:
                yield Courier(option.opens(given))

    @property
    def thresholds(self) -> list[tuple[str, float]]:
        """What ``--alert`` stands on, of what has a curve: views say how long it is away."""
        from monitor.alerts import Threshold

        rules = [rule for rule in self.rules if isinstance(rule, Threshold)]
        shown = ("bits", "evidence_bits", "closed_set_bits")
        return [(rule.field, rule.bits) for rule in rules if rule.field in shown]

    @property
    def until(self) -> Callable[[Mapping[str, Any]], bool] | None:
        """Ends the stream at an alert (not at a warning), where that was asked for."""
        if not self.stop:
            return None
        return lambda alert: alert["state"] == "raised" and alert["level"] == "alert"


def addresses(option: str, given: tuple[str, ...]) -> tuple[str, ...]:
    """The addresses of an option; ``@FILE`` stands for the lines of a file."""
    from pathlib import Path

    found: list[str] = []
    for each in given:
        if not each.startswith("@"):
            found.append(each)
            continue
        try:
            lines = Path(each[1:]).read_text("utf-8").split("\n")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "no text"
            raise UsageError(f"{option} {each}: cannot be read: {reason}") from None
        found += [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return tuple(found)


def _made(
    least_speech_seconds: float,
    alerts: Iterable[str],
    false_alarms: float | None,
    horizon: float | None,
    warn: float | None,
    bell: bool,
    stop_on_alert: bool,
    **receivers: tuple[str, ...],
) -> Alerting:
    from monitor.alerts import Conformal, EarlyWarning, Threshold

    left_open: list[tuple[str, float, float]] = []
    thresholds = []
    for text in alerts:
        field = None
        if false_alarms is not None:
            field = Conformal.parse_field(text, least_speech_seconds)
        if field is None:
            thresholds.append(Threshold.parse(text, least_speech_seconds))
        else:
            left_open.append(field)
    if horizon is not None and false_alarms is None:
        raise UsageError("--horizon is how long --false-alarms shall hold: add --false-alarms 5%")
    if false_alarms is not None and not left_open:
        raise UsageError(
            "--false-alarms works out the threshold of an alert that has none: add --alert bits"
        )
    if warn is not None and not (thresholds or left_open):
        raise UsageError("--warn needs a threshold to warn of: add --alert 'bits>3'")
    early = [] if warn is None else [EarlyWarning(rule, warn) for rule in thresholds]
    return Alerting(
        (*early, *thresholds),
        tuple(left_open),
        false_alarms,
        HORIZON_SECONDS if horizon is None else horizon,
        warn,
        {
            each.name: addresses(each.name, receivers[each.parameter])
            if each.environment
            else receivers[each.parameter]
            for each in ACTION_OPTIONS
        },
        bell,
        stop_on_alert,
    )


def alert_options(
    *, bell: bool = False, least_speech_seconds: float = 0.0
) -> Callable[[_Command], _Command]:
    """The options, given to the command as one argument ``alerting``.

    Args:
        bell: whether the bell rings unless told otherwise.
        least_speech_seconds: of a rule that does not say after how much speech.
    """
    after = "at once" if not least_speech_seconds else f"after {least_speech_seconds:g} s"
    options = [
        click.option(
            "--alert",
            "alerts",
            multiple=True,
            metavar="RULE",
            help="Such as 'bits>3 for 5 s after 10 s' (of speech); may be repeated. Raised ones "
            "give exit status 3. What is left out: for 5 s, and "
            f"{after}. "
            "'bits' is the value shown first (the evidence where somebody is watched), "
            "'bits_low>3' stands on its lower limit, 'closed_set_bits>3' on the figure among the N "
            "enrolled, 'f0.rank_bits_low>1' on that of a feature, 'among.1e6.bits>6' on what it is "
            "worth among a million people.",
        ),
        click.option(
            "--false-alarms",
            type=Share(),
            help="Work out the threshold of every --alert that is a field alone (--alert "
            "bits): at most this share of other people's whole streams exceeds it.",
        ),
        click.option(
            "--horizon",
            type=Seconds(),
            metavar="LENGTH",
            help="How long these streams are, from their beginning. [default: 10m]",
        ),
        click.option(
            "--warn",
            type=Seconds(),
            help="Warn when an --alert is forecast to be raised within so long. A warning gives no "
            "exit status.",
        ),
        *(
            click.option(
                each.name,
                multiple=True,
                metavar=each.metavar,
                envvar=each.environment or None,
                help=each.help,
            )
            for each in ACTION_OPTIONS
        ),
        click.option(
            "--bell/--no-bell",
            default=bell,
            show_default=True,
            help="Ring the terminal's bell when one is raised.",
        ),
        click.option("--stop-on-alert", is_flag=True, help="End the stream at the first alert."),
    ]
    receivers = tuple(each.parameter for each in ACTION_OPTIONS)
    make = partial(_made, least_speech_seconds)
    return grouped("alerting", make, options, further=receivers)
