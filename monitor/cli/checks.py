"""What `monitor doctor` looks at. A check says what is, and what to do about it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from monitor.cli.extras import EXTRAS, extra, install, offered_extras
from monitor.cli.live import quiet_libraries
from monitor.errors import MonitorError, SourceError
from monitor.phrases import plural
from monitor.workers import cores

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
        ("voice", _voice),
        ("population", _population),
        *[(f"extra {name}", partial(_extra, name)) for name in offered_extras()],
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
    return Finding("Python", "ok", f"{here}, {plural(cores(), 'core')}")


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
    from monitor.features.phones import Phones

    spec = Phones().spec
    return Finding("phones", "ok", f"{spec.size} units, network {str(spec.network)[:12]}")


def _voice() -> Finding:
    from monitor.networks.voice import shipped

    network = shipped()
    return Finding("voice", "ok", f"the network in the package, {network.size} numbers every 3 s")


def _population() -> Finding:
    from monitor.population.population import Population

    population = Population.reference()
    features = ", ".join(population.features)
    words = f"{len(population)} shipped readers with {features}"
    for law in population.laws:
        if law.left_out and len(law.features) == 1 and law.session == "same":
            words += (
                f"; laws with {law.features[0]} without the tests of the {len(law.left_out)} who "
                "trained its network"
            )
    return Finding("population", "ok", words)


def _extra(name: str) -> Finding:
    """What it gives, and whether all of it is there and goes together."""
    what, gives = f"extra {name}", EXTRAS[name]
    found = extra(name)
    if found.missing:
        state = f"without {', '.join(found.missing)}" if found.have else "not installed"
        return Finding(what, "note", f"{state}; it gives {gives}: {install(name)}")
    if found.unfit:
        return Finding(what, "broken", f"{'; '.join(found.unfit)}: {install(name)}")
    if name == "identity":
        try:
            import torchaudio as _  # noqa: F401  says whether its library goes with torch's
        except Exception as error:
            reason = " ".join(str(error).split())[:120]
            return Finding(what, "broken", f"cannot be loaded ({reason}): {install(name)}")
    versions = "" if name in ("peers", "dev") else f" ({', '.join(found.have)})"
    return Finding(what, "ok", f"{gives}{versions}")


def _ecapa() -> Finding:
    """The files of the speaker encoder; loads them where they are at hand."""
    from monitor.features.ecapa import ENVIRONMENT, HUB, resolve
    from monitor.features.exported import exported_encoder
    from monitor.features.network import Network
    from monitor.features.registry import ready

    folder = os.environ.get(ENVIRONMENT)
    if not folder:
        return Finding(
            "ECAPA", "note", f"identity needs a folder with {HUB}: --ecapa DIR or {ENVIRONMENT}"
        )
    if extra("identity").missing and not ready("identity"):
        return Finding("ECAPA", "note", f"{ENVIRONMENT} is set; the extra identity is missing")
    runtime = "onnxruntime" if isinstance(exported_encoder(resolve(None)), Network) else "torch"
    words = f"the published network, from {Path(folder).name}, run by {runtime}"
    return Finding("ECAPA", "ok", words)


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
