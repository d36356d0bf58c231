"""Options of the page and of Home Assistant, and the sinks that they request."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from monitor.cli.monitor_options import addresses
from monitor.cli.options import Text, note, option, setting, shared
from monitor.cli.secret_options import has_password, refuse_typed, token_setting
from monitor.errors import UsageError
from monitor.safe_text import is_name, spelled

if TYPE_CHECKING:
    from monitor.protocols import AlertAction, RelayControl
    from monitor.sinks.house import PageDevice
    from monitor.sinks.mqtt import Broker
    from monitor.web.page import Page

LOOPBACK = "127.0.0.1"
PAGE_TOP = 100  # maximum number of speakers that the page draws


def _read_address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else LOOPBACK
    number = int(port) if port.isascii() and port.isdigit() and len(port) < 6 else 65536
    if not host or number > 65535 or any(map(str.isspace, host)):
        raise ValueError
    return host, number


Address = partial(
    Text, "[HOST:]PORT", _read_address, "is not like 8000, 127.0.0.1:8000 or [::1]:8000"
)
"""Address to serve at: PORT on this machine alone, or HOST:PORT."""
web_token_setting = token_setting(
    "web-token",
    "MONITOR_WEB_TOKEN",
    "Token that opens the page, from FILE or MONITOR_WEB_TOKEN. Needed if other machines can "
    "reach the page.",
)


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """Options of display."""

    top: int | None = setting(
        "top N",
        f"Number of most probable speakers to name in every reading. [default: 5, or {PAGE_TOP} "
        "with --web]",
        minimum=1,
    )
    web: tuple[str, int] | None = option(
        "--web",
        "Show the run in a browser, on this machine only unless HOST is given (extra 'web').",
        type=Address(),
    )
    web_token: str | None = shared(web_token_setting)
    overlay_token: str | None = shared(
        token_setting(
            "overlay-token",
            "MONITOR_OVERLAY_TOKEN",
            "Serve only the bits, for OBS, at /overlay?token=TOKEN of --web. The token is in FILE "
            "or MONITOR_OVERLAY_TOKEN.",
        )
    )

    @property
    def named(self) -> int:
        """Number of speakers that a reading names."""
        return self.top or (5 if self.web is None else PAGE_TOP)

    def pages(
        self, thresholds: Sequence[tuple[str, float]], relay: RelayControl | None = None
    ) -> Iterator[Page]:
        """Open the page of a run, if it was requested."""
        if self.web is not None:
            yield open_page(
                self.web,
                token=self.web_token,
                thresholds=thresholds,
                relay=relay,
                overlay_token=self.overlay_token,
            )


def open_page(address: tuple[str, int], **settings: Any) -> Page:
    """Open a sink that serves its records at its ``url``; ``settings`` are those of `Page`."""
    try:
        from monitor.web.page import Page
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the page needs {error.name}: pip install 'speaker-disclosure-monitor[web]'"
        ) from None
    return Page(*address, **settings)


def mqtt_option(help: str) -> Any:  # noqa: A002
    """Make the field of a broker's address."""
    remedy = (
        "leave it out and set MONITOR_MQTT_PASSWORD, or give the address in a @FILE or MONITOR_MQTT"
    )
    callback = refuse_typed(has_password, remedy)
    return option("--mqtt URL|@FILE", help, envvar="MONITOR_MQTT", callback=callback)


@dataclass(frozen=True, slots=True)
class HouseOptions:
    """A broker of MQTT."""

    mqtt: str | None = mqtt_option(
        "Show bits and alerts in Home Assistant through this MQTT broker (extra 'mqtt'). Use "
        "mqtt://USER@HOST:PORT/PREFIX, or mqtts:// for TLS. The password comes from "
        "MONITOR_MQTT_PASSWORD, or from the address in @FILE or MONITOR_MQTT. With --through, a "
        "switch mutes the voice. The speaker's name is not sent."
    )
    mqtt_ca: str | None = setting(
        "mqtt-ca FILE", "CA certificate (PEM) for an mqtts:// broker. [default: the system's]"
    )
    mqtt_name: str = setting(
        "mqtt-name NAME",
        "Name of the device in Home Assistant. Topics and ids derive from it, so do not change it.",
        default="voice",
    )

    def broker(self) -> Broker | None:
        """Return the broker, if one was named."""
        if self.mqtt is None:
            if self.mqtt_ca is not None:
                raise UsageError("mqtt-ca needs --mqtt mqtts://HOST")
            return None
        from monitor.sinks.mqtt import NEEDED, Broker

        lines = addresses("--mqtt", (self.mqtt,))
        if len(lines) != 1:
            raise UsageError(f"{NEEDED}; use an @FILE of one line")
        if not is_name(self.mqtt_name):
            raise UsageError("mqtt-name: use a name of one line")
        password = os.environ.get("MONITOR_MQTT_PASSWORD") or None
        return Broker.parse(lines[0], password=password, authority=self.mqtt_ca)

    def devices(self, relay: RelayControl | None = None) -> Iterator[AlertAction]:
        """Open the voice as a device, if a broker was named."""
        if (broker := self.broker()) is not None:
            from monitor.sinks.house import VoiceDevice

            yield VoiceDevice(broker, spelled(self.mqtt_name), relay=relay, report=note)

    def page(self) -> PageDevice | None:
        """Open a page as a device, if a broker was named."""
        if (broker := self.broker()) is None:
            return None
        from monitor.sinks.house import PageDevice

        return PageDevice(broker, spelled(self.mqtt_name), report=note)
