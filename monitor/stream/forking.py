"""Forks of the parts of a stream, independent of the originals."""

from __future__ import annotations

from copy import copy
from typing import Self


class Forking:
    """Base of the parts that fork: values in them are replaced, never changed in place.

    Lists, sets and dictionaries may change. A fork has its own, and forks of parts that fork.
    """

    def fork(self) -> Self:
        """Copy the parts that change; everything else is shared."""
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
