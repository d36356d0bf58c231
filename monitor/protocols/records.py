"""Where the records of a run go, and what can be kept: `Sink`, `RunLog`, `Stateful`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

__all__ = ["Recordable", "RunLog", "Sink", "Stateful"]


@runtime_checkable
class Sink(Protocol):
    """Where records go: JSON lines, a terminal, a page.

    A record is a mapping of plain values with a ``type``; ``docs/records.md`` explains every key. A
    sink ignores types and keys that it does not know.

    Example:
        >>> class Loudest:
        ...     bits = 0.0
        ...
        ...     def write(self, record):
        ...         if record["type"] == "reading":
        ...             self.bits = max(self.bits, record["bits"])
        ...
        ...     def close(self):
        ...         print(f"at most {self.bits:.1f} bits")
        >>> sink = Loudest()
        >>> sink.write({"type": "reading", "bits": 2.25})
        >>> isinstance(sink, Sink), sink.close()
        at most 2.2 bits
        (True, None)
    """

    def write(self, record: Mapping[str, Any]) -> None:
        """Take one record: ``start``, ``reading``, ``alert``, ``gap``, ``change`` or ``end``."""

    def close(self) -> None:
        """Everything has been written; may be called twice."""


class RunLog(Sink, Protocol):
    """A sink on disk that a checkpoint can be tied to.

    Attributes:
        offset: bytes written so far; a resumed run is cut back to it.
    """

    offset: int

    def flush(self) -> None:
        """Bring everything written so far to the disk."""


class Recordable(Protocol):
    """What has a record, as a `monitor.Reading` has."""

    def record(self) -> Mapping[str, Any]:
        """The record, without its ``recording``."""


class Stateful(Protocol):
    """What a checkpoint keeps so that a stopped run can go on as if it had not stopped."""

    def state(self) -> dict[str, Any]:
        """Everything that was learnt from the records so far, as JSON-able values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a ``state``, on an object made with the same arguments."""
