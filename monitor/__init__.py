"""How many bits of identity a voice discloses, measured while it is heard.

>>> from monitor import Monitor, Population
>>> population = Population.reference()
>>> monitor = Monitor(population, features=["f0"])
>>> f"a speaker among {len(population)} is worth {monitor.recogniser.ceiling:.2f} bits"
'a speaker among ... is worth ... bits'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from monitor.version import __version__

if TYPE_CHECKING:
    from monitor import alerts, sources
    from monitor.errors import MonitorError
    from monitor.population.population import Population
    from monitor.stream.monitor import Monitor
    from monitor.stream.reading import Reading
    from monitor.types import Block, Frames, Gap, Track

__all__ = [
    "Block",
    "Frames",
    "Gap",
    "Monitor",
    "MonitorError",
    "Population",
    "Reading",
    "Track",
    "__version__",
    "alerts",
    "sources",
]

_HOMES = {
    "Block": "monitor.types",
    "Frames": "monitor.types",
    "Gap": "monitor.types",
    "Monitor": "monitor.stream.monitor",
    "MonitorError": "monitor.errors",
    "Population": "monitor.population.population",
    "Reading": "monitor.stream.reading",
    "Track": "monitor.types",
}
_ROOMS = ("alerts", "sources")


def __getattr__(name: str) -> Any:
    """Import on first use: nothing heavy is loaded by ``import monitor``."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"monitor.{name}")
    raise AttributeError(f"module 'monitor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
