"""A rich console that replaces control characters in texts from files."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from monitor.safe_text import printable


class PlainConsole(Console):
    r"""rich's console, with unprintable characters of texts, which rich would print, replaced.

    Example:
        >>> import io
        >>> console = PlainConsole(file=io.StringIO())
        >>> console.print("a\x1b[2Jb")
        >>> console.file.getvalue()
        'a?[2Jb\n'
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does, with unprintable characters replaced."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                lines = map(printable, segment.text.split("\n"))
                yield Segment("\n".join(lines), segment.style)
