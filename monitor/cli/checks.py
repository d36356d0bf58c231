"""What `monitor doctor` looks at. A check says what is, and what to do about it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from monitor.cli.live import quiet_libraries
from monitor.errors import MonitorError, SourceError
from monitor.phrases import plural

__all__ = ["Finding", "examine"]

LEAST_FREE = 200 * 2**20
"""Bytes: a day of records at one a second."""
QUIET_DECIBELS = -70.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Attributes:
        what: was looked at.
        state: ``"ok"``, ``"note"`` (nothing is wrong, something could be had) or ``"broken"``.
        words: what is, and what to do.
    """

    what: str
    state: str
    words: str


def examine(*, hear: bool = False) -> Iterator[Finding]:
    """Look at everything, one thing after the other."""
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("Python", _python),
        ("PortAudio", _portaudio),
        ("inputs", _inputs),
        *([("hearing", _hearing)] if hear else []),
        ("phones", _phones),
        ("population", _population),
        ("identity", _identity),
        ("ECAPA", _ecapa),
        ("disk", _disk),
    ]
    for what, check in checks:
        try:
            yield check()
        except MonitorError as error:
            yield Finding(what, "broken", str(error))
        except Exception as error:  # a doctor does not faint
            yield Finding(what, "broken", f"unexpected {type(error).__name__}: {error}")


def _python() -> Finding:
    here = sys.version.split()[0]
    return Finding("Python", "ok", f"{here}, {plural(os.cpu_count() or 1, 'core')}")


def _portaudio() -> Finding:
    from monitor.sources.portaudio import library

    return Finding("PortAudio", "ok", str(library().get_portaudio_version()[1]))


def _inputs() -> Finding:
    from monitor.sources.portaudio import choose, devices, library

    try:
        library()
    except SourceError:
        return Finding("inputs", "broken", "cannot be listed without PortAudio")
    found = devices()
    first = choose(found, None)
    count = plural(len(found), "input")
    return Finding("inputs", "ok", f"{count}, by default {first.name} ({first.rate} Hz)")


def _hearing() -> Finding:
    """Really hear something."""
    import numpy as np

    from monitor.sources.microphone import Microphone
    from monitor.types import Block

    began = time.monotonic()
    with quiet_libraries(), Microphone(seconds=1.0, reconnect_seconds=0.0) as microphone:
        blocks = [item for item in microphone if isinstance(item, Block)]
        name = microphone.label
    if not blocks:
        return Finding(
            "hearing", "broken", f"{name} gives no sound: is it muted, or held by another program?"
        )
    samples = np.concatenate([block.samples for block in blocks])
    level = 10 * np.log10(max(float(np.mean(np.square(samples))), 1e-12))
    words = f"{name} at {level:.0f} dB of full scale, after {time.monotonic() - began - 1:.1f} s"
    if level < QUIET_DECIBELS:
        return Finding("hearing", "note", f"{words}: silence; is it muted, or the wrong input?")
    return Finding("hearing", "ok", words)


def _phones() -> Finding:
    import numpy as np

    from monitor.features.decoding import PHONES, phone_tokens

    phone_tokens(np.zeros(3200, np.int16))
    return Finding(
        "phones", "ok", f"pocketsphinx {version('pocketsphinx')}, model of {len(PHONES)} phones"
    )


def _population() -> Finding:
    from monitor.population.population import Population

    population = Population.reference()
    features = ", ".join(population.features)
    return Finding("population", "ok", f"{len(population)} shipped readers with {features}")


def _identity() -> Finding:
    """The extra, and whether its two libraries of torch are a pair."""
    install = "pip install 'speaker-disclosure-monitor[identity]'"
    found = {name: _version(name) for name in ("torch", "torchaudio", "speechbrain")}
    missing = [name for name, have in found.items() if have is None]
    if len(missing) == len(found):
        return Finding("identity", "note", f"not installed; speaker embeddings need it: {install}")
    if missing:
        return Finding("identity", "broken", f"{', '.join(missing)} missing: {install}")
    have = ", ".join(f"{name} {number}" for name, number in found.items())
    torch, torchaudio = (_minor(found[name]) for name in ("torch", "torchaudio"))
    if torch != torchaudio:
        return Finding("identity", "broken", f"{have}: torch and torchaudio are no pair: {install}")
    try:
        import torchaudio as _  # noqa: F401  says whether their libraries go together
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        return Finding("identity", "broken", f"{have}: cannot be loaded ({reason}): {install}")
    return Finding("identity", "ok", have)


def _ecapa() -> Finding:
    """The files of the speaker encoder; loads them where they are at hand."""
    from monitor.features.ecapa import ENVIRONMENT, HUB, encoder, resolve

    folder = os.environ.get(ENVIRONMENT)
    if not folder:
        return Finding(
            "ECAPA", "note", f"no folder with {HUB}: point --ecapa or {ENVIRONMENT} to one"
        )
    if _version("torch") is None:
        return Finding("ECAPA", "note", f"{ENVIRONMENT} is set, but the extra is not installed")
    encoder(resolve(None))
    return Finding("ECAPA", "ok", f"the published network, from {Path(folder).name}")


def _disk() -> Finding:
    try:
        free = shutil.disk_usage(Path.cwd()).free
    except OSError as error:
        return Finding("disk", "broken", f"this folder cannot be read: {error.strerror}")
    words = f"{free / 2**30:.1f} GiB free here"
    if not os.access(Path.cwd(), os.W_OK | os.X_OK):
        return Finding("disk", "note", f"{words}, but no permission to write: change the folder")
    if free < LEAST_FREE:
        return Finding("disk", "broken", f"{words}: make room before recording a run")
    return Finding("disk", "ok", words)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _minor(number: str | None) -> list[str]:
    return (number or "").split("+")[0].split(".")[:2]
