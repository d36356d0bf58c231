"""An alert calls a function of yours, early enough to do something about it.

python examples/04_alert_your_own_function.py [RECORDING]   (without one: the reader of the demo)

A warning comes before the threshold is reached, the alert when the bits have held it. Your
function may be slow (switch on an anonymiser, light a lamp, send a mail): a courier calls it from
a thread of its own, so the stream never waits.
"""

import sys
import threading

from monitor import Monitor, Population, Run, alerts
from monitor.alerts.actions import BackgroundDelivery
from monitor.events import Alert
from monitor.population import DEMO_SPEAKER, demo_frames


class YourFunction:
    """Whatever you want to happen; raise `monitor.errors.DeliveryError` where it fails."""

    label = "your function"  # what to call it if it fails

    def deliver(self, alert: Alert, cancel: threading.Event) -> None:  # noqa: ARG002
        """Called once for every alert and warning, raised or cleared."""
        at, rule = alert.seconds, alert.rule
        if alert.state == "cleared":
            print(f"{at:5.0f} s  {alert.level} over: {rule}")
        elif alert.level == "warning":
            print(f"{at:5.0f} s  {alert.threshold:g} bits in about {alert.seconds_left:.0f} s")
        else:
            print(f"{at:5.0f} s  ALERT {rule}: {alert.value:.1f} bits. Stop talking!")


recording = sys.argv[1] if len(sys.argv) > 1 else demo_frames()
watch = DEMO_SPEAKER if len(sys.argv) == 1 else None  # None: the attacker's confidence
monitor = Monitor(Population.reference(), features=["f0"], watch=watch)

threshold = alerts.Threshold("bits", 0.8, hold_seconds=5.0)
warning = alerts.EarlyWarning(threshold, warn_seconds=60.0)
rules, actions = [warning, threshold], [BackgroundDelivery(YourFunction())]

with Run(recording, monitor, rules=rules, actions=actions) as run:
    totals = run.to_end()  # waits a little for what is under way
for failure in totals.failures:
    print(failure)
