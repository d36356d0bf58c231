"""Options that may hold a secret, which is refused where other users can read the command line."""

from __future__ import annotations

import re
import urllib.parse
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import click
from click.core import ParameterSource

from monitor.cli.help import Setting
from monitor.cli.options import read_lines
from monitor.errors import UsageError

Callback: TypeAlias = "Callable[[click.Context, click.Parameter, Any], Any]"


def refuse_typed(is_secret: Callable[[str], bool], remedy: str) -> Callback:
    """Make an option's callback that refuses a secret typed on the command line.

    Args:
        is_secret: whether a value holds a secret; a ``@FILE`` never does.
        remedy: what to do instead.
    """

    def check(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        source = context.get_parameter_source(str(parameter.name))
        values = value if isinstance(value, tuple) else (value or "",)
        shown = [text for text in values if text and not text.startswith("@")]
        if source is ParameterSource.COMMANDLINE and any(map(is_secret, shown)):
            raise UsageError(
                f"{parameter.opts[0]}: others can see a secret on the command line, so {remedy}"
            )
        return value

    return check


def token_setting(name: str, variable: str, help: str) -> Any:  # noqa: A002
    """Make the setting of a page's token: ``@FILE``, or an environment variable."""

    def read(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
        if value is None or not value.startswith("@"):
            return value
        lines = read_lines(f"{name} {value}", value[1:])
        if len(lines) != 1:
            raise UsageError(f"{name} {value}: use a file with one line, the token")
        return lines[0]

    return click.option(
        f"--{name}", cls=Setting, metavar="@FILE", envvar=variable, callback=read, help=help
    )


def has_password(url: str) -> bool:
    """Return whether an address holds a password.

    Example:
        >>> has_password("mqtt://ann:secret@host"), has_password("mqtt://ann@host:1883")
        (True, False)
    """
    return ":" in url.rpartition("@")[0].partition("://")[2]


_SHORTEST_SECRET = 16
_SECRET_NAME = re.compile(r"token|key|secret|passw|sig", re.IGNORECASE)


def posts_by_secret(url: str) -> bool:
    """Return whether a webhook's address holds a secret: a password, or a token anywhere in it.

    Example:
        >>> posts_by_secret("https://chat.example/hooks/9mXq3TzR7bWc2KfLp8Vd")
        True
        >>> posts_by_secret("https://home.example/api/webhook/disclosure-alerts-of-2026")
        False
    """
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:  # reported elsewhere
        return has_password(url)
    query = urllib.parse.parse_qsl(parts.query)
    pieces = [parts.username or "", *parts.path.split("/"), *(value for _, value in query)]
    return (
        has_password(url)
        or (parts.netloc.startswith("hooks.") and len(parts.path) > 1)  # Slack's, Zapier's
        or any(_SECRET_NAME.search(name) for name, _ in query)
        or any(map(_looks_random, pieces))
    )


def _looks_random(text: str) -> bool:
    """Return whether a text is long and changes often between digits, small and capital letters."""
    kinds = ["0" if c.isdigit() else "a" if c.islower() else "A" for c in text if c.isalnum()]
    changes = sum(first != second for first, second in pairwise(kinds))
    return len(text) >= _SHORTEST_SECRET and changes > len(text) / 4


def notifies_by_secret(url: str) -> bool:
    """Return whether apprise would mask a part of its address: a password, a key, a token."""
    try:
        import apprise
    except ImportError:  # reported elsewhere
        return False
    with warnings.catch_warnings():  # from its services' libraries
        warnings.simplefilter("ignore")
        service = apprise.Apprise.instantiate(url, suppress_exceptions=True)
    return service is not None and service.url(privacy=True) != service.url(privacy=False)
