"""How a recording is cut into test and template windows: SRD eq. (6), its offset corrected."""

from __future__ import annotations

from monitor.errors import UsageError

__all__ = ["window_starts"]


def window_starts(start: int, test: int, template: int, available: int) -> tuple[int, int]:
    """Where the test and the template begin, in units of speech, circular in ``available``.

    The test is ``start + [0, test)`` and the template ``start + test + gap + [0, template)`` modulo
    ``available`` with ``gap = floor((available - test - template) / 2)``: the two never overlap and
    lie as far apart as they can (docs/method.md section 4; the printed offset overlaps).

    Example:
        >>> window_starts(3, test=2, template=4, available=10)
        (3, 7)

    Raises:
        UsageError: the two do not fit into what is available.
    """
    if test + template > available or min(test, template) < 1:
        raise UsageError(f"test {test} and template {template} do not fit into {available} units")
    gap = (available - test - template) // 2
    return start % available, (start + test + gap) % available
