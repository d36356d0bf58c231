"""Follows one stream: sums what is heard of a voice, and makes a reading of it every second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.stream import reading

__all__ = ["reading"]

# people: Person is what Run.people has
__getattr__, __dir__ = lazily(__name__, {}, (*__all__, "people"))
