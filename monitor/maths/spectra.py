"""``scipy.fft``, in a process of our own without what its import does for nothing.

It copies every name of numpy, and so loads ``numpy.f2py`` (a Fortran compiler's front end) and
``numpy.testing``, and it parses the docstrings of 200 functions to add a note to each: more than
half of the CPU that importing it takes. The command line lets the two wait for their first use and
leaves the docstrings alone (``benchmarks/startup.py``); in a program of others nothing is changed.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import suppress

import numpy as np

from monitor import lazy


def _on_first_use(name: str) -> None:
    """Let a part of numpy be loaded when something of it is asked for."""
    whole = f"numpy.{name}"
    spec = None if whole in sys.modules else importlib.util.find_spec(whole)
    if spec is None or spec.loader is None:
        return
    spec.loader = importlib.util.LazyLoader(spec.loader)
    part = sys.modules[whole] = importlib.util.module_from_spec(spec)
    setattr(np, name, part)
    spec.loader.exec_module(part)


def _without_notes() -> None:
    """Let scipy's functions keep the docstrings that they were written with."""
    with suppress(ImportError):
        from scipy._lib import _array_api

        if hasattr(_array_api, "xp_capabilities"):  # scipy 1.16 and later
            vars(_array_api)["xp_capabilities"] = lambda **_: lambda function: function


if lazy.own_process:
    for _name in ("f2py", "ma", "polynomial", "random", "testing"):
        _on_first_use(_name)
    _without_notes()

from scipy import fft as fft  # noqa: E402
