"""Utility: what is left of a voice's use after protection, beside what it no longer tells.

`understand` takes from a recording what a listener would want of it (phones, pitch, loudness),
`compare` says how much of that a protected recording keeps, `figures` what holds over speakers.
"""

from __future__ import annotations

from monitor.utility.comparing import Utility, compare
from monitor.utility.figures import figures
from monitor.utility.understanding import Understood, understand

__all__ = ["Understood", "Utility", "compare", "figures", "understand"]
