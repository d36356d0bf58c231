"""A device of Home Assistant over MQTT, which shows states and takes commands."""

from __future__ import annotations

import hashlib
import math
import re
import secrets
import ssl
import threading
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from urllib.parse import unquote, urlsplit

import orjson

from monitor.errors import UsageError
from monitor.safe_text import spelled
from monitor.version import __version__

if TYPE_CHECKING:
    from os import PathLike

    from monitor.types import Record


PORTS = {"mqtt": 1883, "mqtts": 8883}
PREFIX = "disclosure-monitor"
NEEDED = (
    "--mqtt needs an address such as mqtt://homeassistant.local, mqtts://user@broker:8883 or "
    "mqtt://user@broker/prefix"
)


@dataclass(frozen=True, slots=True)
class Broker:
    """Address and credentials of a broker.

    Example:
        >>> broker = Broker.parse("mqtts://ann@broker.local/flat/voices", password="secret")
        >>> broker.label, broker.user, broker.prefix
        ('mqtts broker.local:8883', 'ann', 'flat/voices')
    """

    host: str
    port: int = PORTS["mqtt"]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    prefix: str = PREFIX  # of all topics except those of Home Assistant's discovery
    tls: bool = False  # whether to encrypt the connection and check the broker's certificate
    # PEM file of the certificate's authority; None for the system's authorities
    authority: str | PathLike[str] | None = None

    @classmethod
    def parse(
        cls, url: str, *, password: str | None = None, authority: str | PathLike[str] | None = None
    ) -> Self:
        """Parse ``mqtt://USER:PASSWORD@HOST:PORT/PREFIX``, or ``mqtts://``.

        A password in the address comes before ``password``. No message shows the address.
        """
        try:
            parts = urlsplit(url.strip())
            port, host = parts.port, (parts.hostname or "").encode("idna").decode()
        except ValueError:  # invalid address or host name
            raise UsageError(NEEDED) from None
        prefix = unquote(parts.path).strip("/") or PREFIX
        if parts.scheme not in PORTS or not host or port == 0 or re.search("[?#]", url):
            raise UsageError(NEEDED)
        if not prefix.isprintable() or re.search(r"[+#]|^\$", prefix):
            raise UsageError(
                "--mqtt: invalid prefix. Use the beginning of a topic, without +, # and $"
            )
        user = unquote(parts.username) if parts.username else None
        if parts.password is not None:
            password = unquote(parts.password)
        if password and user is None:
            raise UsageError(
                "--mqtt: MONITOR_MQTT_PASSWORD needs a user. Use mqtt://USER@HOST, or unset it"
            )
        tls = parts.scheme == "mqtts"
        if authority is not None and not tls:
            raise UsageError("mqtt-ca needs mqtts://")
        return cls(host, port or PORTS[parts.scheme], user, password, prefix, tls, authority)

    @property
    def label(self) -> str:
        """Name in messages, without a secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.tls else 'mqtt'} {host}:{self.port}"

    def context(self) -> ssl.SSLContext:
        """Return the TLS context that checks the broker's certificate."""
        try:
            return ssl.create_default_context(cafile=self.authority)
        except OSError as error:  # an SSLError, too
            reason = "no certificate" if isinstance(error, ssl.SSLError) else error.strerror
            raise UsageError(
                f"invalid mqtt-ca {self.authority} ({reason}): use a PEM file"
            ) from None


DISCOVERY = "homeassistant"
"""Prefix of the topics on which Home Assistant discovers devices and announces itself."""
KEEPALIVE_SECONDS = 15
"""After 1.5 times this interval the broker marks an unreachable monitor as offline."""
FIRST_SECONDS = 5.0  # time to wait for the broker before the run continues without it
MOST_RETRY_SECONDS = 30
LOOK_SECONDS = 0.25
EVERY_SECONDS = 1.0  # readings are published no more often
AGAIN_SECONDS = 60.0  # unchanged states are repeated after this time for later subscribers
PATIENCE_SECONDS = 5.0
"""Time to wait at the end of a run for a connected broker; a fifth of it for another."""
CLOSE_SECONDS = 3.0
ONLINE, OFFLINE = b"online", b"offline"

Commands: TypeAlias = "Mapping[str, Callable[[bytes], None]]"
Entities: TypeAlias = "Mapping[str, Mapping[str, object]]"


def identifier(name: str) -> str:
    """Return the part of topics and ids for a name; it differs for different names.

    Capitals and spaces make no difference. If a name has other characters than letters a to z,
    digits and spaces, a hash of it follows.

    Example:
        >>> identifier("Living room"), identifier("kuche"), identifier("Küche")
        ('living_room', 'kuche', 'kuche_d4b04d03')
    """
    name = spelled(name).lower()
    text = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^a-z0-9]+", "_", text).strip("_")
    if plain == name.replace(" ", "_"):
        return plain
    return f"{plain or 'voice'}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


class HouseDevice:
    """A device with entities, announced to Home Assistant and kept up to date through a broker.

    Everything is published from separate threads, and only `drain` and `close` wait for the broker.
    A continuous state waits with its newest value only, while all events wait in order. After an
    interruption the device is announced again and all states are repeated. A last will marks it as
    offline. UsageError if the broker refuses user or password, or its certificate is not trusted.
    """

    def __init__(
        self,
        broker: Broker,  # tried immediately for at most `FIRST_SECONDS`
        name: str,  # displayed; `identifier` derives topics and ids from it
        *,
        # handlers by topic below the device's, called from a thread; retained commands are ignored
        commands: Commands | None = None,
        # called a few times per second from a thread; it may publish events
        look: Callable[[], None] = lambda: None,
        # called with a line if the broker is not available yet
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        try:
            from paho.mqtt.client import Client
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            raise UsageError(
                "--mqtt needs the extra 'mqtt': pip install 'speaker-disclosure-monitor[mqtt]'"
            ) from None
        self._broker, self._name, self._look = broker, name, look
        self._commands = dict(commands or {})
        self.id = identifier(name)
        self.topic = f"{broker.prefix}/{self.id}"
        self._changed = threading.Condition()
        self._config: bytes | None = None
        self._told: dict[str, bytes] = {}  # newest retained state of each topic
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._handed: list[Any] = []  # messages that the library has not delivered yet
        self._count = 0
        self._shown: dict[str, bytes] = {}
        self._due: set[str] = set()  # topics with a shown state that is not yet published
        self._published_time = -math.inf
        self._news = self._announcing = self._closing = False
        self._left_behind: dict[str, bytes] = {}
        self._answer: str | None = None
        self._has_connected = False
        self._answered = threading.Event()
        self._client = client = Client(
            CallbackAPIVersion.VERSION2, client_id=f"{PREFIX}-{secrets.token_hex(6)}"
        )
        client.connect_timeout = FIRST_SECONDS
        client.reconnect_delay_set(1, MOST_RETRY_SECONDS)
        client.username_pw_set(broker.user, broker.password or None)
        client.will_set(f"{self.topic}/status", OFFLINE, 1, retain=True)
        if broker.tls:
            client.tls_set_context(broker.context())
        client.on_connect = self._on_connect
        client.on_message = self._on_message
        self._connect(report)
        self._thread = threading.Thread(target=self._work, name="mqtt", daemon=True)
        self._thread.start()

    def _connect(self, report: Callable[[str], None]) -> None:
        """Connect. Raise on configuration errors, retry transient ones."""
        client, broker = self._client, self._broker
        trouble = "no answer"
        try:
            client.connect(broker.host, broker.port, KEEPALIVE_SECONDS)
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", None) or error.reason or str(error)
            raise UsageError(
                f"untrusted certificate of {broker.label} ({reason}): use the host name in the "
                "certificate, and set its authority as mqtt-ca in --config FILE"
            ) from None
        except OSError as error:
            trouble = error.strerror or str(error)
            client.connect_async(broker.host, broker.port, KEEPALIVE_SECONDS)
            client.loop_start()
        else:
            client.loop_start()
            if self._answered.wait(FIRST_SECONDS):
                if self._answer is None:
                    return
                client.disconnect()
                client.loop_stop()
                raise UsageError(
                    f"{broker.label} refuses {broker.user or 'a connection without user'} "
                    f"({self._answer}): check the user and MONITOR_MQTT_PASSWORD"
                )
        report(f"{broker.label} is unavailable ({trouble}). The run continues and retries")

    def announce(self, entities: Entities) -> None:
        """Announce the device as online, with entities by their keys.

        Entities have the form of Home Assistant's discovery, with topics below the device's. An
        entity with only its platform is removed if an earlier run had it.
        """
        components = {key: self._component(key, entity) for key, entity in entities.items()}
        config = {
            "device": {
                "identifiers": [f"disclosure_monitor_{self.id}"],
                "name": self._name,
                "manufacturer": "Disclosure monitor",
                "sw_version": __version__,
            },
            "origin": {"name": "speaker-disclosure-monitor", "sw_version": __version__},
            "availability_topic": f"{self.topic}/status",
            "components": components,
        }
        with self._changed:
            self._config = orjson.dumps(config)
        self._announce_again()

    def _component(self, key: str, entity: Mapping[str, object]) -> Record:
        if len(entity) == 1:
            return dict(entity)
        topics = {
            name: f"{self.topic}/{value}" for name, value in entity.items() if "_topic" in name
        }
        return {**entity, **topics, "unique_id": f"disclosure_monitor_{self.id}_{key}"}

    def show(self, topic: str, state: Mapping[str, object]) -> None:
        """Show a state; the newest is published at most once a second, if it has changed."""
        content = orjson.dumps(state)
        with self._changed:
            if self._shown.get(topic) != content:
                self._shown[topic] = content
                self._due.add(topic)

    def tell(self, topic: str, state: Mapping[str, object]) -> None:
        """Publish an event's state; all are sent in order, and the broker retains the newest."""
        content = orjson.dumps(state)
        with self._changed:
            self._told[topic] = content
            self._waiting.append((topic, content))
            self._count += 1
            self._wake()

    def drain(self) -> list[str]:
        """Wait briefly for pending events; report undelivered ones in a line."""
        patience = PATIENCE_SECONDS if self._client.is_connected() else PATIENCE_SECONDS / 5
        until = time.monotonic() + patience
        while (pending := self._left) and time.monotonic() < until:
            time.sleep(0.02)
        if not pending and (self._has_connected or self._config is None):
            return []
        reason = self._answer or "no connection"
        lost = (
            f"{pending} of {self._count} states not delivered" if pending else "nothing was shown"
        )
        return [f"{self._broker.label}: {lost}: {reason}"]

    def close(self, final_states: Mapping[str, Mapping[str, object]] | None = None) -> None:
        """Mark the device as offline and disconnect.

        ``final_states`` has the final payloads of event topics, which are published last.
        """
        with self._changed:
            self._left_behind = {t: orjson.dumps(s) for t, s in (final_states or {}).items()}
            self._closing = True
            self._wake()
        self._thread.join(CLOSE_SECONDS)

    @property
    def _left(self) -> int:
        with self._changed:
            return len(self._waiting) + sum(not message.is_published() for message in self._handed)

    def _wake(self) -> None:
        self._news = True
        self._changed.notify_all()

    # Called by the library, from its thread.

    def _on_connect(self, client: Any, _: object, __: object, code: Any, ___: object) -> None:
        if code.is_failure:
            self._answer = str(code)
        else:
            self._answer, self._has_connected = None, True
            client.subscribe([(f"{DISCOVERY}/status", 0)])
            for topic in self._commands:
                client.subscribe(f"{self.topic}/{topic}", 1)
            self._announce_again()
        self._answered.set()

    def _on_message(self, _: Any, __: object, message: Any) -> None:
        if message.topic == f"{DISCOVERY}/status":
            if message.payload == ONLINE:
                self._announce_again()
            return
        command = self._commands.get(message.topic.removeprefix(f"{self.topic}/"))
        if command is not None and not message.retain:  # a retained command was for an earlier run
            command(message.payload)
            with self._changed:
                self._wake()

    def _announce_again(self) -> None:
        with self._changed:
            self._announcing = True
            self._wake()

    # The publishing thread, which never holds the lock while it calls the library.

    def _work(self) -> None:
        closing = False
        while not closing:
            self._look()
            with self._changed:
                self._changed.wait_for(lambda: self._news, LOOK_SECONDS)
                self._news, closing = False, self._closing
            if self._client.is_connected():
                published = self._publish_told()
                self._publish_states(published, at_once=closing)
        self._say_goodbye()

    def _publish_told(self) -> set[str]:
        """Publish pending events in order; return their topics."""
        topics: set[str] = set()
        while True:
            with self._changed:
                self._handed = [m for m in self._handed if not m.is_published()]
                if not self._waiting:
                    return topics
                topic, content = self._waiting[0]
            message = self._client.publish(f"{self.topic}/{topic}", content, 1, retain=True)
            if message.rc:  # the connection is lost: publish again after the reconnection
                return topics
            topics.add(topic)
            with self._changed:
                self._handed.append(message)
                self._waiting.popleft()

    def _publish_states(self, published: Collection[str], *, at_once: bool) -> None:
        """Publish changed states and, when due, all other states except those just published."""
        now = time.monotonic()
        late = now - self._published_time
        with self._changed:
            announcing = self._announcing and self._config is not None
            all_of_it = announcing or late >= AGAIN_SECONDS
            if not all_of_it and ((late < EVERY_SECONDS and not at_once) or not self._due):
                return
            shown = {t: s for t, s in self._shown.items() if all_of_it or t in self._due}
            states = {t: s for t, s in self._told.items() if announcing and t not in published}
            config = self._config
            self._announcing, self._due = False, set()
        publish, self._published_time = self._client.publish, now
        if announcing:
            publish(f"{DISCOVERY}/device/{self.id}/config", config, retain=True)
            publish(f"{self.topic}/status", ONLINE, retain=True)
        for topic, content in states.items():
            publish(f"{self.topic}/{topic}", content, retain=True)
        for topic, content in shown.items():
            publish(f"{self.topic}/{topic}", content)

    def _say_goodbye(self) -> None:
        client = self._client
        if client.is_connected() and self._config is not None:
            for topic, content in {"status": OFFLINE, **self._left_behind}.items():
                last = client.publish(f"{self.topic}/{topic}", content, 1, retain=True)
            if not last.rc:
                last.wait_for_publish(CLOSE_SECONDS / 2)
        client.disconnect()
        client.loop_stop()
