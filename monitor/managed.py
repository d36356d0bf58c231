"""What sources, and other things that are closed, have in common: they are context managers."""

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
