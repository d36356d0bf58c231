"""Holds NumPy's matrix products to one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

__all__ = ["one_thread"]


def one_thread() -> AbstractContextManager[Any]:
    """Within it numpy's matrix products use one thread, as far as its library lets itself be told.

    They are small here. More threads change their last bits, and on a machine that has something
    else to do they wait for one another twenty times as long as they work.

    Example:
        >>> import numpy as np
        >>> with one_thread():
        ...     product = np.ones((2, 2)) @ np.ones((2, 2))
    """
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limited


@cache
def _libraries() -> Any:
    """Those of linear algebra that are loaded: numpy's is."""
    import numpy as np  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
