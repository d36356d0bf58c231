"""A base class for what a ``with`` block closes: sources, ledgers, processes."""

from __future__ import annotations

from types import TracebackType
from typing import Self

__all__ = ["Managed"]


class Managed:
    """Something that is closed when its ``with`` block ends."""

    def close(self) -> None:
        """Let go of whatever is held; by default nothing is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
