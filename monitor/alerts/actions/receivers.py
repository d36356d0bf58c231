"""Receivers of alerts: a bell, a command, a web address or a notification service."""

from __future__ import annotations

import base64
import http.client
import logging
import os
import random
import shlex
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
import warnings
from collections.abc import Sequence
from typing import TextIO

from monitor.errors import DeliveryError, UsageError
from monitor.events.declaration import Event
from monitor.events.phrases import event_in_words
from monitor.events.run import Alert
from monitor.programs import StartedProgram
from monitor.sinks.jsonl import line_of
from monitor.version import __version__


def _as_line(alert: Alert) -> bytes:
    """Return an alert as one JSON line, with the watched speaker even if that is null."""
    return line_of({**alert.record(), "watch": alert.watch})


class Bell:
    """Action that rings once for every raised alert or warning, if stderr is a terminal."""

    def __init__(self, terminal: TextIO | None = None) -> None:
        self._terminal = terminal or sys.stderr

    def write(self, event: Event) -> None:
        """Take one event of the run."""
        if isinstance(event, Alert) and event.state == "raised" and self._terminal.isatty():
            self._terminal.write("\a")
            self._terminal.flush()

    def drain(self) -> list[str]:
        """Return no failures."""
        return []

    def close(self) -> None:
        """Do nothing."""


TIMEOUT_SECONDS = 60.0
SECRETS = frozenset(
    f"MONITOR_{name}"
    for name in ("WEB_TOKEN", "OVERLAY_TOKEN", "MQTT", "MQTT_PASSWORD", "WEBHOOK", "NOTIFY")
)
"""Environment variables with secrets, which commands do not receive."""


class Command:
    """Receiver that runs a shell command for every alert, with its record on standard input.

    The record is one line of JSON. The command's environment lacks the monitor's secrets. Its
    output goes to the monitor's stderr, because stdout is for the run's records. It runs in its own
    session, so Ctrl-C does not interrupt it. If it takes too long, it is killed with all processes
    that it started (`monitor.programs`).
    """

    def __init__(self, command: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        if not command.strip():
            raise UsageError("--on-alert needs a command, such as 'notify-send disclosed'")
        self._command, self._timeout = command, timeout_seconds
        try:
            first = shlex.split(command)[0]
        except (ValueError, IndexError):
            first = command.split()[0]
        self.label = f"command {os.path.basename(first)}"  # noqa: PTH119

    def deliver(self, alert: Alert, cancel: threading.Event) -> None:  # noqa: ARG002
        """Run the command and wait for its end."""
        environment = {name: value for name, value in os.environ.items() if name not in SECRETS}
        try:
            program = StartedProgram(
                self._command, environment, stdout=_stderr(), stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise DeliveryError(f"cannot be started: {error.strerror}") from None
        with program:
            process = program.process
            try:
                process.communicate(_as_line(alert), self._timeout)
            except subprocess.TimeoutExpired:
                raise DeliveryError(f"took over {self._timeout:g} s and was killed") from None
        if process.returncode < 0:
            raise DeliveryError(f"killed by signal {-process.returncode}")
        if process.returncode:
            raise DeliveryError(f"exit status {process.returncode}")


def _stderr() -> int:
    """Return the descriptor of stderr, which is not number 2 while a microphone is open."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # missing, or not a file
        return 2


class Notify:
    """Receiver that notifies an apprise address, such as ``ntfy://topic`` or ``mailto://...``.

    Redirects are followed only if the address contains ``redirect=yes``.
    """

    def __init__(self, url: str) -> None:
        try:
            import apprise
        except ImportError:
            raise UsageError(
                "--notify needs the extra 'notify': "
                "pip install 'speaker-disclosure-monitor[notify]'"
            ) from None
        logging.getLogger("apprise").addHandler(logging.NullHandler())  # its log contains addresses
        scheme, address, _ = url.partition("://")
        # an alert goes only to the given address
        self._to = apprise.Apprise(asset=apprise.AppriseAsset(http_redirects=False))
        with warnings.catch_warnings():  # loads services, some with old libraries
            warnings.simplefilter("ignore")
            is_known = bool(address) and self._to.add(url)
        if not is_known:
            raise UsageError(
                "--notify needs an address that apprise knows, such as ntfy://topic "
                "(its list: https://github.com/caronc/apprise/wiki)"
            )
        self.label = f"notify {scheme}"

    def deliver(self, alert: Alert, cancel: threading.Event) -> None:  # noqa: ARG002
        """Send one notification."""
        title = "Disclosure monitor" if alert.watch is None else f"Disclosure of {alert.watch}"
        if not self._to.notify(title=title, body=event_in_words(alert)):
            raise DeliveryError("the service did not take it")


# The standard library suffices for a POST of three hundred bytes. Other libraries would need extra
# code. Retries end with the run, redirects are not followed, and messages contain no secret of the
# address.

WEBHOOK_TIMEOUT_SECONDS = 10.0
WAITS_SECONDS = (1.0, 2.0, 4.0)
MOST_WAIT_SECONDS = 30.0
_SAFE = "/?%:@!$&'()*+,;=-._~"
"""Characters that an address may contain; others are percent-encoded."""
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})  # statuses worth another attempt


class Webhook:
    """Receiver that posts every alert as JSON (``application/json``) to a web address.

    After network failures and answers that may be temporary (408, 425, 429, 5xx), it tries again,
    up to four times in all. Attempts are 1, 2 and 4 s apart, or as long as ``Retry-After``
    requests, up to 30 s. If only the answer was lost, an alert may arrive twice. Redirects are
    never followed, so an alert goes only to the given address. Proxies come from the environment.

    Args:
        url: ``http://`` or ``https://``; ``user:password@`` becomes basic authentication.
        timeout_seconds: maximum seconds without any network data.
        waits_seconds: delay before each further attempt.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float = WEBHOOK_TIMEOUT_SECONDS,
        waits_seconds: Sequence[float] = WAITS_SECONDS,
    ) -> None:
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": f"speaker-disclosure-monitor/{__version__}",
        }
        self._url, host = self._plain(url)
        self.label = f"webhook {host}"
        self._timeout, self._waits = timeout_seconds, tuple(waits_seconds)
        self._opener = urllib.request.build_opener(_NoRedirect)

    def deliver(self, alert: Alert, cancel: threading.Event) -> None:
        """Post one alert."""
        body = _as_line(alert)
        for wait in (*self._waits, None):
            retry_after = 0.0
            try:
                request = urllib.request.Request(self._url, body, self._headers, method="POST")
                # only the answer's status is needed
                self._opener.open(request, timeout=self._timeout).close()
                return
            except urllib.error.HTTPError as error:
                error.close()
                reason = _answer(error)
                if error.code not in PASSING:
                    raise DeliveryError(reason) from None
                seconds = error.headers.get("Retry-After", "")
                if seconds.isascii() and seconds.isdigit():
                    retry_after = float(seconds)
            except TimeoutError:
                reason = f"no answer within {self._timeout:g} s"
            except (OSError, http.client.HTTPException) as error:
                reason = _reason(error, self._timeout)
            if wait is None:
                break
            jitter = random.uniform(1.0, 1.1)  # spreads the attempts of many monitors
            if cancel.wait(min(max(wait * jitter, retry_after), MOST_WAIT_SECONDS)):
                break
        raise DeliveryError(reason)

    def _plain(self, url: str) -> tuple[str, str]:
        """Return the address without user and password, and its host, which alone may be shown."""
        try:
            parts = urllib.parse.urlsplit(url.strip())
            port = parts.port
            host = (parts.hostname or "").encode("idna").decode()
        except ValueError:  # invalid address or host name
            host, port = "", None
            parts = urllib.parse.urlsplit("")
        strange = any(c <= " " or c == "\x7f" for c in url.strip())
        if parts.scheme not in ("http", "https") or not host or strange:
            raise UsageError("--webhook needs an address such as https://example.org/alerts")
        if parts.username is not None:
            user = urllib.parse.unquote(parts.username)
            pair = f"{user}:{urllib.parse.unquote(parts.password or '')}"
            coded = base64.b64encode(pair.encode()).decode()
            self._headers["Authorization"] = f"Basic {coded}"
        where = f"[{host}]" if ":" in host else host
        where += "" if port is None else f":{port}"
        path, query = (urllib.parse.quote(piece, safe=_SAFE) for piece in (parts.path, parts.query))
        return urllib.parse.urlunsplit((parts.scheme, where, path, query, "")), where


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that does not follow redirects."""

    def redirect_request(self, *_: object) -> None:
        return None


def _answer(error: urllib.error.HTTPError) -> str:
    if 300 <= error.code < 400:
        location = urllib.parse.urlsplit(error.headers.get("Location", ""))
        to = f" to {location.hostname}" if location.hostname else ""
        return f"answered {error.code}, a redirect{to}: not followed, give the final address"
    return f"answered {error.code}"


def _reason(error: Exception, timeout: float) -> str:
    inner = getattr(error, "reason", error)
    if isinstance(inner, TimeoutError):
        return f"no answer within {timeout:g} s"
    text = getattr(inner, "strerror", None) or (str(inner) if inner is not error else "")
    return text or f"invalid answer ({type(inner).__name__})"
