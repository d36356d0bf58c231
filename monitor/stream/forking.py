"""Forks of what a stream is made of, which go on apart from the first."""

from __future__ import annotations

from copy import copy
from typing import Self


class Forking:
    """Base of what can be forked; values in it are replaced, never changed in place.

    Lists, sets and dictionaries may change: a fork has its own, and forks of the parts that fork.
    """

    def fork(self) -> Self:
        """Copy what changes, so that the two go on apart; everything else is shared."""
        fork = copy(self)
        for name, part in vars(self).items():
            if isinstance(part, dict):
                part = {
                    key: value.fork() if isinstance(value, Forking) else value
                    for key, value in part.items()
                }
            elif isinstance(part, list | set):
                part = copy(part)
            elif isinstance(part, Forking):
                part = part.fork()
            setattr(fork, name, part)
        return fork
