"""The extras: what each gives, what of it is installed, and how to have the rest."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import monitor

__all__ = ["EXTRAS", "Extra", "extra", "install", "offered_extras"]

_NAME = "speaker-disclosure-monitor"
EXTRAS = {
    "identity": "the feature identity, a larger speaker embedding than voice, which tells people "
    "apart best; and the attacker of `monitor attack` who trains a network",
    "onnx": "the feature identity 2.6 times as fast, and without torch once it was exported",
    "web": "the page in a browser (--web, monitor view)",
    "notify": "alerts to desktop, mail, chat (--notify)",
    "vocoder": "protectors that move pitch and formants, or whisper (monitor protect)",
    "tables": "runs and summaries as Parquet, readings as data frames (monitor export)",
    "cluster": "many recordings over several machines (--scheduler)",
    "peers": "the public tools that tests and benchmarks compare with",
    "dev": "what the tests need",
}
"""What each gives."""
_FOR_DEVELOPERS = {"peers", "dev"}


@dataclass(frozen=True, slots=True)
class Extra:
    """What is installed of an extra.

    Attributes:
        have: its packages that are there, with their versions.
        missing: names of those that are not.
        unfit: those of a version that it does not go with, and which it needs.
    """

    have: tuple[str, ...]
    missing: tuple[str, ...]
    unfit: tuple[str, ...]


def extra(name: str) -> Extra:
    """Look at the packages that the installed metadata lists for an extra."""
    from packaging.requirements import Requirement

    have, missing, unfit = [], [], []
    for line in requires(_NAME) or ():
        needed = Requirement(line)
        marker = needed.marker
        if marker is None or marker.evaluate({"extra": ""}) or not marker.evaluate({"extra": name}):
            continue
        try:
            found = version(needed.name)
        except PackageNotFoundError:
            missing.append(needed.name)
            continue
        have.append(f"{needed.name} {found}")
        if not needed.specifier.contains(found, prereleases=True):
            unfit.append(f"{needed.name} {found} where {needed.specifier} is needed")
    return Extra(tuple(have), tuple(missing), tuple(unfit))


def install(*names: str) -> str:
    """The command that brings extras."""
    if _FOR_DEVELOPERS.intersection(names):
        return f"pip install -e '.[{','.join(names)}]'"
    return f"pip install '{_NAME}[{','.join(names)}]'"


def offered_extras() -> list[str]:
    """Those that make sense here: a developer's only in a copy of the repository."""
    copy = (Path(monitor.__file__).parents[1] / "pyproject.toml").is_file()
    return [name for name in EXTRAS if copy or name not in _FOR_DEVELOPERS]
