"""Another voice among the watched one's turns: how often it is noticed, and how soon."""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import soundfile

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, read
from monitor import Monitor, enrol
from monitor.events.reading import Reading
from monitor.events.run import NoticeEvent
from monitor.networks.layers import RATE
from monitor.population.population import Population
from monitor.sources.base import Samples
from monitor.stream.plan import MonitorSettings
from monitor.types import FloatArray

ENROLLED_SECONDS = 30.0
KINDS = ((3.0, 1.5), (3.0, 3.0), (10.0, 10.0))
"""Seconds of the other voice and of the watched one, in turn."""
BABBLE_DB = 15.0
BABBLERS = 4


class Outcome(NamedTuple):
    """When another voice was noticed, and the last figures: with the notice, and of the whole."""

    seconds: float | None
    bits: float
    whole_bits: float
    processor: float  # seconds, more than without


@benchmark()
def second_voice(page: Page, nonnative: Path, *, people: int = 12, seconds: float = 31.0) -> None:
    """How often is another voice noticed that takes turns with the watched one, and how soon?

    Each person is enrolled beside the shipped readers from the first 30 s of a recording. The rest
    is heard alone, in turn with somebody of the same sex and about the same age, with others who
    talk behind, and as somebody else's.
    """
    with (nonnative / "manifest.csv").open(encoding="utf-8") as file:
        about = {row["speaker"]: row for row in csv.DictReader(file)}
    paths = sorted(nonnative.glob("*.opus"))
    watched = [path.stem for path in paths[:: len(paths) // people][:people]]
    population = _enrol({name: nonnative / f"{name}.opus" for name in watched})
    outcomes: dict[str, list[tuple[Outcome, float]]] = {}
    for place, name in enumerate(watched):
        own = _rest(nonnative, name)
        alike = _most_alike(about, name)
        other, stranger = alike[0], watched[place - 1]
        sounds = [(f"{a:g}/{b:g} s", _mix(_rest(nonnative, other), own, a, b), a + b)
                  for a, b in KINDS]  # fmt: skip
        behind = sum(_rest(nonnative, each, len(own)) for each in alike[1 : BABBLERS + 1])
        scale = np.sqrt(np.mean(own**2) / np.mean(behind**2)) * 10 ** (-BABBLE_DB / 20)
        sounds += [
            ("alone", own, np.inf),
            ("others talk behind, 15 dB", own + scale * behind, np.inf),
        ]
        sounds.append(("somebody else alone", _rest(nonnative, stranger), np.inf))
        for kind, sound, due in sounds:
            outcome = hear(population, name, sound[: round(seconds * RATE)])
            outcomes.setdefault(kind, []).append((outcome, due))
    page.table(
        "what is heard | recordings | minutes | noticed | within 10 s of the second turn "
        "| bits, whole | bits with the notice",
        (_row(kind, results, seconds) for kind, results in outcomes.items()),
    )
    more = [outcome.processor for results in outcomes.values() for outcome, _ in results]
    page.note(f"{np.median(more) / seconds:.3f} s of processor a second of sound")


@benchmark("second_voice")
def false_second_voice(
    page: Page, manifest: Path, *, corpora: tuple[str, ...], people: int = 100, behind: int = 20
) -> None:
    """How often does one voice get the notice of another one?

    Each person who is no shipped reader is enrolled from the first 30 s of a recording, and heard
    in the rest and in all their other recordings. For the first ones, others talk behind as well.
    """
    recordings: dict[str, list[Path]] = {}
    for row in csv.DictReader(manifest.open(newline="", encoding="utf-8")):
        if row.get("corpus", "") in corpora:
            recordings.setdefault(row["speaker"], []).append(manifest.parent / row["path"])
    names = np.random.default_rng(0).permutation(sorted(recordings))[:people].tolist()
    population = _enrol({name: recordings[name][0] for name in names})
    rng, found = np.random.default_rng(1), dict[str, list[tuple[float, bool]]]()
    for place, name in enumerate(names):
        others = [recordings[each][-1] for each in names if each != name]
        for path in recordings[name] if name in population.names else ():
            own = read(path, first=ENROLLED_SECONDS if path == recordings[name][0] else 0.0)
            sounds = {"alone": own}
            if place < behind:
                for kind, count in (("one person talks behind, 15 dB", 1), ("babble, 15 dB", 4)):
                    far = sum(
                        np.resize(read(others[k]), own.size) for k in rng.choice(len(others), count)
                    )
                    gain = np.sqrt(np.mean(own**2) / np.mean(far**2)) * 10 ** (-BABBLE_DB / 20)
                    sounds[kind] = own + gain * far
            for kind, sound in sounds.items():
                noticed = hear(population, name, sound, (True,), 3.0).seconds is not None
                found.setdefault(kind, []).append((sound.size / RATE / 3600, noticed))
        counts = [
            f"{sum(hours for hours, _ in heard):.2f} h {kind}: {sum(n for _, n in heard)}"
            for kind, heard in found.items()
        ]
        page.note(f"{place + 1} of {len(names)}: notices in {', '.join(counts)}")
    page.table(
        "one voice | people | recordings | hours | false notices",
        (
            [
                f"{kind}, {' and '.join(corpora)}",
                f"{len(names) if kind == 'alone' else behind}",
                f"{len(heard)}",
                f"{sum(hours for hours, _ in heard):.1f}",
                f"{sum(noticed for _, noticed in heard)}",
            ]
            for kind, heard in found.items()
        ),
    )


def _row(kind: str, results: Sequence[tuple[Outcome, float]], seconds: float) -> list[str]:
    noticed = [o for o, _ in results if o.seconds is not None]
    # the second turn of the other voice begins after a turn of each
    soon = sum(o.seconds is not None and o.seconds <= due + 10 for o, due in results)
    whole, bits = (np.median(picks) for picks in
                   ([o.whole_bits for o, _ in results], [o.bits for o, _ in results]))  # fmt: skip
    return [kind, f"{len(results)}", f"{len(results) * seconds / 60:.0f}", f"{len(noticed)}",
            "" if np.isinf(results[0][1]) else f"{soon}", f"{whole:.1f}",
            f"{bits:.1f}"]  # fmt: skip


def _enrol(paths: Mapping[str, Path]) -> Population:
    reference = Population.reference()
    others = {name: path for name, path in paths.items() if name not in reference.names}
    if not others:
        return reference
    with TemporaryDirectory() as folder:
        for name, path in others.items():
            person = Path(folder, name)
            person.mkdir()
            sound = read(path, ENROLLED_SECONDS)
            soundfile.write(person / "a.wav", sound, RATE)
        enrolled = enrol(folder, features=FEATURES).population
    return reference.joined(enrolled)


def _rest(nonnative: Path, name: str, size: int | None = None) -> FloatArray:
    rest = read(nonnative / f"{name}.opus", first=ENROLLED_SECONDS)
    return rest if size is None else np.resize(rest, size)


def _most_alike(about: Mapping[str, Mapping[str, str]], name: str) -> list[str]:
    """Others of the same sex, the nearest in age first."""
    own = about[name]
    others = [o for o in about if o != name and about[o]["gender"] == own["gender"]]
    return sorted(others, key=lambda o: (abs(int(about[o]["age"]) - int(own["age"])), o))


def _mix(
    other: FloatArray, own: FloatArray, other_seconds: float, own_seconds: float
) -> FloatArray:
    parts, i, j = [], 0, 0
    while i < len(other) and j < len(own):
        parts += [other[i : (i := i + round(other_seconds * RATE))]]
        parts += [own[j : (j := j + round(own_seconds * RATE))]]
    return np.concatenate(parts)


def hear(
    population: Population,
    watch: str,
    sound: FloatArray,
    findings: Sequence[bool] = (False, True),
    step_seconds: float = 1.0,
) -> Outcome:
    """Hear a sound, without and then with the search for another voice."""
    noticed, last, took = None, [], []
    for finding in findings:
        settings = MonitorSettings(second_voice=finding)
        monitor = Monitor(population, watch=watch, step_seconds=step_seconds, settings=settings)
        began, bits = time.process_time(), 0.0
        for event in monitor.listen(Samples(np.asarray(sound, np.float32), RATE)):
            if isinstance(event, NoticeEvent) and event.kind == "another voice":
                noticed = event.seconds
            if isinstance(event, Reading):
                bits = event.bits or 0.0
        took.append(time.process_time() - began)
        last.append(bits)
    return Outcome(noticed, last[-1], last[0], took[-1] - took[0])
