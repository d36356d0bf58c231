"""The page, for every command that has one: its options, and the sink they ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from monitor.cli.options import grouped

if TYPE_CHECKING:
    from monitor.web.page import Page

__all__ = ["Address", "Shown", "open_page", "shown_options", "token_option"]

LOOPBACK = "127.0.0.1"
PAGE_TOP = 100
"""Speakers that the page can draw: everybody, in a small population."""

if TYPE_CHECKING:
    _Type: TypeAlias = click.ParamType[Any]
else:
    _Type = click.ParamType  # generic only from click 8.4 on


class Address(_Type):
    """Where to serve: PORT on this machine alone, or HOST:PORT."""

    name = "[HOST:]PORT"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Host and port."""
        if not isinstance(value, str):
            return value
        host, colon, port = value.strip().rpartition(":")
        host = host.removeprefix("[").removesuffix("]") if colon else LOOPBACK
        number = int(port) if port.isascii() and port.isdigit() and len(port) < 6 else 65536
        if not host or number > 65535 or any(map(str.isspace, host)):
            self.fail(f"{value!r} is not like 8000, 127.0.0.1:8000 or [::1]:8000", param, ctx)
        return host, number


token_option = click.option(
    "--web-token",
    metavar="TOKEN",
    envvar="MONITOR_WEB_TOKEN",
    help="What readers of the page must show; needed where other machines can reach it. "
    "Better in the environment, as MONITOR_WEB_TOKEN: arguments can be seen by others.",
)


@dataclass(frozen=True, slots=True)
class Shown:
    """What was asked for; a command gets it as ``shown``.

    Attributes:
        top: speakers that a reading names, or None.
        web: host and port of the page, or None.
        web_token: its token.
    """

    top: int | None
    web: tuple[str, int] | None
    web_token: str | None

    @property
    def named(self) -> int:
        """How many speakers a reading names."""
        return self.top or (5 if self.web is None else PAGE_TOP)

    def pages(self, thresholds: Sequence[tuple[str, float]]) -> Iterator[Page]:
        """The page of a run, opened when it is asked for; none where none was wanted."""
        if self.web is not None:
            yield open_page(self.web, self.web_token, thresholds=thresholds)


shown_options = grouped(
    "shown",
    Shown,
    (
        click.option(
            "--top",
            type=click.IntRange(min=1),
            metavar="N",
            help=f"Name the N most probable speakers in every reading. [default: 5; {PAGE_TOP} "
            "with --web]",
        ),
        click.option(
            "--web",
            type=Address(),
            help="Show the run in a browser, on this machine alone unless a HOST is given. "
            "Needs the extra 'web'.",
        ),
        token_option,
    ),
)
"""Adds ``--top``, ``--web`` and ``--web-token`` to a command, as its argument ``shown``."""


def open_page(
    address: tuple[str, int],
    token: str | None = None,
    *,
    thresholds: Sequence[tuple[str, float]] = (),
    recorded: bool = False,
) -> Page:
    """A sink that serves its records; its ``url`` is where.

    Args:
        address: host and port, from ``--web``.
        token: from ``--web-token``.
        thresholds: field and bits of alerts on what has a curve: the page says how far they are.
        recorded: the run is over.

    Raises:
        UsageError: the extra is not installed, or the address cannot be had.
    """
    from monitor.errors import UsageError

    try:
        from monitor.web.page import Page
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the page needs {error.name}: pip install 'speaker-disclosure-monitor[web]'"
        ) from None
    return Page(*address, token=token, thresholds=thresholds, recorded=recorded)
