"""An alert is sent to an address: one POST.

The standard library does it: a POST of three hundred bytes needs no extra to install, and waits
between attempts that end with the run, no redirect followed, and no secret of the address in a
message are things every library would have to be talked into.
"""

from __future__ import annotations

import base64
import http.client
import random
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from monitor.alerts.actions.courier import DeliveryError
from monitor.errors import UsageError
from monitor.sinks.jsonl import line_of
from monitor.version import __version__

__all__ = ["Webhook"]

TIMEOUT_SECONDS = 10.0
WAITS_SECONDS = (1.0, 2.0, 4.0)
MOST_WAIT_SECONDS = 30.0
_SAFE = "/?%:@!$&'()*+,;=-._~"
"""Everything that an address may hold as it is; the rest is written with percent signs."""
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers that another attempt may change."""


class Webhook:
    """Posts every alert as JSON (``application/json``) to an address.

    Tried up to four times, a second, two and four apart (or what ``Retry-After`` asks for, up to
    30 s), while the network fails or the answer may be a passing one (408, 425, 429, 5xx). So an
    alert may arrive twice, when only the answer was lost. Redirects are never followed: an alert
    goes where it was told to go, and nowhere else. Proxies are taken from the environment.

    Args:
        url: ``http://`` or ``https://``; ``user:password@`` becomes basic authentication.
        timeout_seconds: how long the network may stay silent.
        waits_seconds: before each further attempt.

    Raises:
        UsageError: no such address.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
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

    def deliver(self, record: Mapping[str, Any], hurry: threading.Event) -> None:
        """Post one alert.

        Raises:
            DeliveryError: not taken, for good or after the last attempt.
        """
        body = line_of(record)
        for wait in (*self._waits, None):
            asked = 0.0
            try:
                self._post(body)
                return
            except urllib.error.HTTPError as error:
                error.close()
                why = _answer(error)
                if error.code not in PASSING:
                    raise DeliveryError(why) from None
                asked = _retry_after(error)
            except TimeoutError:
                why = f"no answer within {self._timeout:g} s"
            except (OSError, http.client.HTTPException) as error:
                why = _reason(error, self._timeout)
            if wait is None:
                break
            jitter = random.uniform(1.0, 1.1)  # many monitors, one receiver
            if hurry.wait(min(max(wait * jitter, asked), MOST_WAIT_SECONDS)):
                break
        raise DeliveryError(why)

    def _post(self, body: bytes) -> None:
        request = urllib.request.Request(self._url, body, self._headers, method="POST")
        # the status is all that is wanted of the answer
        self._opener.open(request, timeout=self._timeout).close()

    def _plain(self, url: str) -> tuple[str, str]:
        """The address without user and password, and its host; nothing else of it is ever shown."""
        try:
            parts = urllib.parse.urlsplit(url.strip())
            port = parts.port
            host = (parts.hostname or "").encode("idna").decode()
        except ValueError:  # of the address, or of its name's letters
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
        path, query = (urllib.parse.quote(part, safe=_SAFE) for part in (parts.path, parts.query))
        return urllib.parse.urlunsplit((parts.scheme, where, path, query, "")), where


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect the answer that it is."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _answer(error: urllib.error.HTTPError) -> str:
    if 300 <= error.code < 400:
        place = urllib.parse.urlsplit(error.headers.get("Location", ""))
        to = f" to {place.hostname}" if place.hostname else ""
        return f"answered {error.code}, a redirect{to}: not followed, give the final address"
    return f"answered {error.code}"


def _retry_after(error: urllib.error.HTTPError) -> float:
    value = error.headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else 0.0


def _reason(error: Exception, timeout: float) -> str:
    inner = getattr(error, "reason", error)
    if isinstance(inner, TimeoutError):
        return f"no answer within {timeout:g} s"
    text = getattr(inner, "strerror", None) or (str(inner) if inner is not error else "")
    return text or f"no proper answer ({type(inner).__name__})"
