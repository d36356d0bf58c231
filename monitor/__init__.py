"""How many bits of identity a voice discloses, measured while it is heard.

>>> from monitor import Monitor, Population
>>> population = Population.reference()
>>> monitor = Monitor(population, features=["f0"])
>>> f"a speaker among {len(population)} is worth {monitor.attacker.ceiling:.2f} bits"
'a speaker among ... is worth ... bits'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from monitor.lazy import lazily
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
    "Block": "types",
    "Frames": "types",
    "Gap": "types",
    "Monitor": "stream.monitor",
    "MonitorError": "errors",
    "Population": "population.population",
    "Reading": "stream.reading",
    "Track": "types",
}
_ROOMS = ("alerts", "sources")
_find, _names = lazily(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    """Import on first use: nothing heavy is loaded by ``import monitor``."""
    return import_module(f"monitor.{name}") if name in _ROOMS else _find(name)


def __dir__() -> list[str]:
    return sorted({*_names(), *_ROOMS})
