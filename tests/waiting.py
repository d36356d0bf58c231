"""Waiting for what another thread or process does, however busy the machine is."""

import time
from collections.abc import Callable
from typing import Any


def until(done: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Return the first true result; AssertionError after so many seconds."""
    end = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
    return found
