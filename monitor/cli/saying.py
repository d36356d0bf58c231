"""Lines for people, which names of files and people cannot make steer the terminal."""

from __future__ import annotations

import click

from monitor.safe_text import printable

__all__ = ["say"]


def say(text: str, *, err: bool = True) -> None:
    """Print lines.

    Args:
        text: one line or more.
        err: to stderr; stdout is for data, and for commands that have nothing but words to give.
    """
    click.echo("\n".join(printable(line) for line in text.split("\n")), err=err)
