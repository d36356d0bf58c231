"""Detection rate and delay of another voice in turns with the watched one."""

from __future__ import annotations

import csv
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
"""Seconds of each turn of the other voice, and of the watched one."""
BEHIND = {"one person behind, 10 dB": (1, 10.0), "babble behind, 15 dB": (4, 15.0)}
"""Number of people who talk behind without pauses, as on television, and their decibels below the
watched voice."""


class Outcome(NamedTuple):
    """Time of the notice of another voice, and last bits with the search and without it."""

    seconds: float | None
    bits: float
    whole_bits: float
    hidden_bits: float | None = None  # if missed: bits of the watched turns less those of the whole


@benchmark()
def second_voice(
    page: Page, nonnative: Path, *, people: int = 12, first: int = 0, seconds: float = 31.0
) -> None:
    """How often and how soon is another voice noticed that takes turns with the watched one?

    Each person is enrolled beside the shipped readers from the first 30 s of a recording. The rest
    is measured alone, with background talkers, and in turns with a person of the same sex and
    similar age. --first is the index of the first person in the folder.
    """
    with (nonnative / "manifest.csv").open(encoding="utf-8") as file:
        about = {row["speaker"]: row for row in csv.DictReader(file)}
    paths = sorted(nonnative.glob("*.opus"))
    watched = [path.stem for path in paths[first :: len(paths) // people][:people]]
    population = _enrol_people({name: nonnative / f"{name}.opus" for name in watched})
    outcomes: dict[str, list[tuple[Outcome, float]]] = {}
    for index, name in enumerate(watched):
        own = _read_rest(nonnative, name)
        similar = _sort_by_likeness(about, name)
        for a, b in KINDS:
            sound = _alternate(_read_rest(nonnative, similar[0]), own, a, b)[
                : round(seconds * RATE)
            ]
            outcome = measure_stream(population, name, sound)
            if outcome.seconds is None:
                rounds, more = divmod(sound.size / RATE, a + b)
                turns = own[: round((rounds * b + max(0.0, more - a)) * RATE)]
                alone = measure_stream(population, name, turns, searches=False).bits
                outcome = outcome._replace(hidden_bits=alone - outcome.bits)
            outcomes.setdefault(f"{a:g}/{b:g} s", []).append((outcome, a + b))
        sounds = {"alone": own}
        for kind, (count, decibels) in BEHIND.items():
            behind = [_read_rest(nonnative, each) for each in similar[1 : count + 1]]
            sounds[kind] = _add_talkers(own, behind, decibels)
        for kind, sound in sounds.items():
            outcome = measure_stream(population, name, sound[: round(seconds * RATE)])
            outcomes.setdefault(kind, []).append((outcome, np.inf))
        page.note(f"{index + 1} of {people}")
    page.table(
        "what is heard | recordings | minutes | noticed | within 10 s of the second turn "
        "| bits, whole | bits with the notice | most bits hidden where missed",
        (_create_row(kind, results, seconds) for kind, results in outcomes.items()),
    )


@benchmark("second_voice")
def false_second_voice(
    page: Page,
    manifest: Path,
    *,
    corpora: tuple[str, ...],
    people: int = 100,
    behind: int = 20,
    seconds: float = 3600.0,
) -> None:
    """How often does a recording of one voice raise the notice of another voice?

    Each person is enrolled beside the shipped readers from the first 30 s of a recording. The rest
    and the person's other recordings are measured, up to --seconds of each. For the first --behind
    people, they are measured with background talkers as well.
    """
    recordings: dict[str, list[Path]] = {}
    with manifest.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["corpus"] in corpora:
                recordings.setdefault(row["speaker"], []).append(manifest.parent / row["path"])
    names = np.random.default_rng(0).permutation(sorted(recordings))[:people].tolist()
    population = _enrol_people({name: recordings[name][0] for name in names})
    rng, results_by_kind = np.random.default_rng(1), dict[str, list[tuple[float, Outcome]]]()
    for index, name in enumerate(names):
        others = [recordings[each][-1] for each in names if each != name]
        for path in recordings[name]:
            is_enrolled = path == recordings[name][0]
            own = read(path, seconds, ENROLLED_SECONDS if is_enrolled else 0.0)
            sounds = {"alone": own}
            for kind, (count, decibels) in (BEHIND if index < behind else {}).items():
                talkers = [read(others[k], seconds) for k in rng.choice(len(others), count)]
                sounds[kind] = _add_talkers(own, talkers, decibels)
            for kind, sound in sounds.items():
                outcome = measure_stream(population, name, sound, step_seconds=3.0)
                results_by_kind.setdefault(kind, []).append((sound.size / RATE / 3600, outcome))
        counts = [
            f"{sum(hours for hours, _ in results):.2f} h {kind}: {len(_list_hidden_bits(results))}"
            for kind, results in results_by_kind.items()
        ]
        page.note(f"{index + 1} of {len(names)}: notices in {', '.join(counts)}")
    page.table(
        "one voice | people | recordings | hours | notices | bits hidden at the end",
        (
            [
                f"{kind}, {' and '.join(corpora)}",
                f"{len(names) if kind == 'alone' else behind}",
                f"{len(results)}",
                f"{sum(hours for hours, _ in results):.1f}",
                f"{len(_list_hidden_bits(results))}",
                ", ".join(f"{bits:.1f}" for bits in sorted(_list_hidden_bits(results))),
            ]
            for kind, results in results_by_kind.items()
        ),
    )


def _list_hidden_bits(results: Sequence[tuple[float, Outcome]]) -> list[float]:
    """Return the bits by which each notice raised the last reading."""
    return [each.bits - each.whole_bits for _, each in results if each.seconds is not None]


def _create_row(kind: str, results: Sequence[tuple[Outcome, float]], seconds: float) -> list[str]:
    outcomes = [outcome for outcome, _ in results]
    hidden = [o.hidden_bits for o in outcomes if o.hidden_bits is not None]
    noticed = sum(o.seconds is not None for o in outcomes)
    # the second turn of the other voice begins after one turn of each voice
    soon = sum(o.seconds is not None and o.seconds <= due + 10 for o, due in results)
    whole, bits = np.median([[o.whole_bits, o.bits] for o in outcomes], axis=0)
    return [
        *(kind, f"{len(results)}", f"{len(results) * seconds / 60:.0f}", f"{noticed}"),
        *("" if np.isinf(results[0][1]) else f"{soon}", f"{whole:.1f}", f"{bits:.1f}"),
        f"{max(hidden):.1f}" if hidden else "",
    ]


def _add_talkers(own: FloatArray, others: Sequence[FloatArray], decibels: float) -> FloatArray:
    """Return a voice with the sum of others this many decibels below it."""
    behind = np.sum([np.resize(other, own.size) for other in others], axis=0)
    scale = np.sqrt(np.mean(own**2) / np.mean(behind**2)) * 10 ** (-decibels / 20)
    return np.asarray(own + scale * behind)


def _enrol_people(paths: Mapping[str, Path]) -> Population:
    """Return people and the shipped readers, without shipped templates of the same people."""
    reference = Population.reference()
    with TemporaryDirectory() as folder:
        for name, path in paths.items():
            person = Path(folder, name)
            person.mkdir()
            soundfile.write(person / "a.wav", read(path, ENROLLED_SECONDS), RATE)
        enrolled = enrol(folder, features=FEATURES).population
    return reference.chosen(set(reference.names) - set(paths)).joined(enrolled)


def _read_rest(nonnative: Path, name: str) -> FloatArray:
    return read(nonnative / f"{name}.opus", first=ENROLLED_SECONDS)


def _sort_by_likeness(about: Mapping[str, Mapping[str, str]], name: str) -> list[str]:
    """Return other speakers of the same sex, sorted by difference in age."""
    own = about[name]
    others = [o for o in about if o != name and about[o]["gender"] == own["gender"]]
    return sorted(others, key=lambda o: (abs(int(about[o]["age"]) - int(own["age"])), o))


def _alternate(
    other: FloatArray, own: FloatArray, other_seconds: float, own_seconds: float
) -> FloatArray:
    parts, i, j = [], 0, 0
    while i < len(other) and j < len(own):
        parts += [other[i : (i := i + round(other_seconds * RATE))]]
        parts += [own[j : (j := j + round(own_seconds * RATE))]]
    return np.concatenate(parts)


def measure_stream(
    population: Population,
    watch: str,
    sound: FloatArray,
    *,
    searches: bool = True,
    step_seconds: float = 1.0,
) -> Outcome:
    """Monitor a sound with the search for another voice; if one is found, also without it."""
    settings = MonitorSettings(second_voice=searches)
    monitor = Monitor(population, watch=watch, step_seconds=step_seconds, settings=settings)
    notice_seconds, bits = None, 0.0
    for event in monitor.listen(Samples(np.asarray(sound, np.float32), RATE)):
        if isinstance(event, NoticeEvent) and event.kind == "another voice":
            notice_seconds = event.seconds
        if isinstance(event, Reading):
            bits = event.bits or 0.0
    if notice_seconds is None:
        return Outcome(None, bits, bits)
    whole = measure_stream(population, watch, sound, searches=False, step_seconds=step_seconds)
    return Outcome(notice_seconds, bits, whole.bits)
