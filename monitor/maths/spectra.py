"""``scipy.fft``, in a process of our own without what its import loads for nothing.

It copies every name of numpy, and so loads ``numpy.f2py`` (a Fortran compiler's front end) and
``numpy.testing``: two fifths of the CPU that importing it takes. The command line lets both wait
for their first use (``benchmarks/startup.py``); in a program of others numpy is left alone.
"""

from __future__ import annotations

import importlib.util
import sys

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


if lazy.own_process:
    for _name in ("f2py", "testing"):
        _on_first_use(_name)

from scipy import fft as fft  # noqa: E402
