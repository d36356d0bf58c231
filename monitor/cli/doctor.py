"""monitor doctor: check everything that a run may need."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

import click

import monitor
from monitor.cli.help import HelpCommand, script_for
from monitor.cli.inputs import quiet_libraries
from monitor.cli.options import say
from monitor.errors import MonitorError, SourceError
from monitor.jobs import cores
from monitor.phrases import plural
from monitor.run import FAILED

if TYPE_CHECKING:
    from monitor.sources.microphone import Device

_NAME = "speaker-disclosure-monitor"
EXTRAS = {
    "training": "the attacker of `monitor attack` who trains a network",
    "onnx": "a speaker-embedding network of your own (--speaker-model)",
    "web": "the page in a browser (--web, monitor show)",
    "notify": "alerts to desktop, mail, chat (--notify)",
    "mqtt": "bits, alerts and a switch in Home Assistant (--mqtt)",
    "vocoder": "anonymisers that move pitch and formants, or whisper (monitor protect)",
    "tables": "runs and summaries as Parquet, readings as data frames (monitor show)",
    "cluster": "many recordings over several machines (--jobs ADDRESS)",
    "peers": "the public tools that tests and benchmarks compare with",
    "dev": "what the tests need",
}
"""Extras by name, with their purposes."""
_FOR_DEVELOPERS = {"peers", "dev"}


@dataclass(frozen=True, slots=True)
class Extra:
    """Packages of an extra, installed and missing."""

    have: tuple[str, ...]
    missing: tuple[str, ...]
    unfit: tuple[str, ...]


def extra(name: str) -> Extra:
    """Find which packages of an extra, by the installed metadata, are there."""
    from packaging.requirements import Requirement

    have, missing, unfit = [], [], []
    for needed in map(Requirement, requires(_NAME) or ()):
        marker = needed.marker
        if marker is None or marker.evaluate({"extra": ""}) or not marker.evaluate({"extra": name}):
            continue
        try:
            versions = version(needed.name)
        except PackageNotFoundError:
            missing.append(needed.name)
            continue
        have.append(f"{needed.name} {versions}")
        if not needed.specifier.contains(versions, prereleases=True):
            unfit.append(f"{needed.name} {versions}, but {needed.specifier} is needed")
    return Extra(tuple(have), tuple(missing), tuple(unfit))


def install(*names: str) -> str:
    """Return the command that installs extras."""
    where = "-e '." if _FOR_DEVELOPERS.intersection(names) else f"'{_NAME}"
    return f"pip install {where}[{','.join(names)}]'"


LEAST_FREE = 200 * 2**20  # bytes: a day of records at one per second
QUIET_DECIBELS = -70.0


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding of a check."""

    what: str
    state: str
    words: str


def examine(*, hear: bool = False) -> Iterator[Finding]:
    """Run all checks; ``hear`` also opens the default input."""
    copy = (Path(monitor.__file__).parents[1] / "pyproject.toml").is_file()
    checks: dict[str, Callable[[], tuple[str, str]]] = {
        "Python": lambda: ("ok", f"{sys.version.split()[0]}, {plural(cores(), 'core')}"),
        "PortAudio": _portaudio,
        "inputs": _inputs,
        "outputs": _outputs,
        **({"hearing": _hearing} if hear else {}),
        "phones": _phones,
        "voice": _voice,
        "population": _population,
        "people": _people,
        **{
            f"extra {name}": partial(_extra, name)
            for name in EXTRAS
            if copy or name not in _FOR_DEVELOPERS  # useful only in a copy of the repository
        },
        "disk": _disk,
    }
    for what, check in checks.items():
        try:
            yield Finding(what, *check())
        except MonitorError as error:
            yield Finding(what, "broken", str(error))
        except Exception as error:  # the other checks still run
            yield Finding(what, "broken", f"unexpected {type(error).__name__}: {error}")


def _portaudio() -> tuple[str, str]:
    from monitor.sources.microphone import library

    return "ok", str(library().get_portaudio_version()[1])


def _inputs() -> tuple[str, str]:
    from monitor.sources.microphone import choose

    names = _list("input")
    first = choose(names, None)
    return "ok", f"{plural(len(names), 'input')}, by default {first.name} ({first.rate} Hz)"


VIRTUAL_MICROPHONE = {
    "linux": "pactl load-module module-null-sink sink_name=meeting; then --through meeting, and "
    "in the meeting choose the microphone 'Monitor of meeting'",
    "darwin": "install BlackHole (brew install blackhole-2ch); then --through BlackHole, and in "
    "the meeting choose the microphone BlackHole",
    "win32": "install VB-Cable; then --through 'CABLE Input', and in the meeting choose the "
    "microphone 'CABLE Output'",
}
"""How to make an output that other programs see as a microphone, by system."""


def _outputs() -> tuple[str, str]:
    from monitor.relay.outlet import list_sinks

    advice = VIRTUAL_MICROPHONE.get(sys.platform, VIRTUAL_MICROPHONE["linux"])
    names = [device.name for device in _list("output")] + list_sinks()
    return "ok", f"{', '.join(names) or 'none'}. To speak through one (listen --through), {advice}"


def _list(kind: str) -> list[Device]:
    from monitor.sources.microphone import devices, library

    try:
        library()
    except SourceError:
        raise SourceError("cannot be listed without PortAudio") from None
    return devices(kind)


def _hearing() -> tuple[str, str]:
    import numpy as np

    from monitor.sources.microphone import Microphone
    from monitor.types import Block

    began = time.monotonic()
    with quiet_libraries(), Microphone(seconds=1.0, reconnect_seconds=0.0) as microphone:
        blocks = [item for item in microphone if isinstance(item, Block)]
        name = microphone.label
    if not blocks:
        return "broken", f"{name} gives no sound: is it muted, or used by another program?"
    samples = np.concatenate([block.samples for block in blocks])
    level = 10 * np.log10(max(float(np.mean(np.square(samples))), 1e-12))
    words = f"{name} at {level:.0f} dBFS, opened in {time.monotonic() - began - 1:.1f} s"
    if level < QUIET_DECIBELS:
        return "note", f"{words}. Silence: is it muted, or the wrong input?"
    return "ok", words


def _phones() -> tuple[str, str]:
    from monitor.features.phones import Phones

    spec = Phones().spec
    return "ok", f"{spec.size} units, network {str(spec.network)[:12]}"


def _voice() -> tuple[str, str]:
    from monitor.networks.voice import shipped

    return "ok", f"networks in the package, which give {shipped().size} numbers per 3 s of speech"


def _population() -> tuple[str, str]:
    from monitor.population.population import Population

    population = Population.reference()
    words = f"{len(population)} shipped readers with {', '.join(population.features)}"
    for model in population.rank_models:
        if model.left_out and len(model.features) == 1 and model.session == "same":
            words += (
                f"; rank models with {model.features[0]} exclude tests of the "
                f"{len(model.left_out)} readers who trained its network"
            )
    return "ok", words


def _people() -> tuple[str, str]:
    from monitor.serve.templates import TemplateFolder, data_folder

    folder = data_folder()
    people = plural(len(TemplateFolder(folder).people()), "person", "people")
    see = f"who they are, and who can be told apart: monitor people {shlex.quote(str(folder))}"
    return "ok", f"{people} enrolled at the page ({see}; or a FILE.npz of `monitor enrol`)"


def _extra(name: str) -> tuple[str, str]:
    """Check whether the packages of an extra are all installed and compatible."""
    gives, installed = EXTRAS[name], extra(name)
    if installed.missing:
        state = f"without {', '.join(installed.missing)}" if installed.have else "not installed"
        return "note", f"{state}. It provides {gives}. Install: {install(name)}"
    if installed.unfit:
        return "broken", f"{'; '.join(installed.unfit)}: {install(name)}"
    if name == "training":
        try:
            import torchaudio as _  # noqa: F401  fails if its library does not match torch's
        except Exception as error:
            reason = " ".join(str(error).split())[:120]
            return "broken", f"cannot be loaded ({reason}): {install(name)}"
    versions = "" if name in _FOR_DEVELOPERS else f" ({', '.join(installed.have)})"
    return "ok", f"{gives}{versions}"


def _disk() -> tuple[str, str]:
    from monitor.files import unwritable

    try:
        free = shutil.disk_usage(Path.cwd()).free
    except OSError as error:
        return "broken", f"this folder cannot be read: {error.strerror}"
    words = f"{free / 2**30:.1f} GiB free here"
    if reason := unwritable(Path.cwd()):
        return "note", f"{words}, but nothing can be written ({reason}): change the folder"
    if free < LEAST_FREE:
        return "broken", f"{words}: make room before recording a run"
    return "ok", words


@click.command(
    "doctor", cls=HelpCommand, short_help="Check audio, models, extras and disk; set up the shell."
)
@click.option(
    "--hear", is_flag=True, help="Also open the default input for a second, and report its level."
)
@click.option(
    "--devices", is_flag=True, help="List inputs, then outputs; a star marks the defaults."
)
@click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    help="Print the script that lets this shell complete commands, options, files and people.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings, or devices, as JSON.")
def command(hear: bool, devices: bool, completion: str | None, as_json: bool) -> int:
    """Check PortAudio, inputs, the phone recogniser, every extra and the disk.

    \b
    monitor doctor --hear
    monitor doctor --devices

    \b
    eval "$(monitor doctor --completion bash)"    in ~/.bashrc
    eval "$(monitor doctor --completion zsh)"     in ~/.zshrc, after compinit
    monitor doctor --completion fish > ~/.config/fish/completions/monitor.fish

    Exit status 1 if something is broken, or if --devices finds no input. Missing optional parts are
    notes.
    """
    if completion is not None:
        from monitor.cli import cli

        click.echo(script_for(completion, cli), nl=False)
        return 0
    if devices:
        return _list_devices(as_json=as_json)
    findings = []
    for finding in examine(hear=hear):
        findings.append(finding)
        if not as_json:
            mark = {"ok": "  ok  ", "note": " note ", "broken": "BROKEN"}[finding.state]
            say(f"{mark}  {finding.what}: {finding.words}", err=False)
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    broken = sum(finding.state == "broken" for finding in findings)
    if broken and not as_json:
        say(f"{broken} broken: see above")
    return FAILED if broken else 0


def _list_devices(*, as_json: bool) -> int:
    from monitor.sources.microphone import choose, devices

    kinds = {kind: devices(kind) for kind in ("input", "output")}
    if as_json:
        lines = [{"kind": kind, **asdict(row)} for kind in kinds for row in kinds[kind]]
        click.echo(json.dumps(lines, indent=1))
        return 0 if kinds["input"] else FAILED
    choose(kinds["input"], None)  # raises with a remedy if there is no input
    width = max(len(device.name) for group in kinds.values() for device in group)
    for kind, group in kinds.items():
        for device in group:
            channels = plural(device.channels, "channel")
            star = "*" if device.default else " "
            say(
                f"{star} {device.index:>3}  {device.name:<{width}}  {kind:<6}  {channels:>11}  "
                f"{device.rate:>6} Hz  {device.host}",
                err=False,
            )
    return 0
