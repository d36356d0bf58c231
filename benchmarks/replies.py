"""A reply by somebody else within one person's speech: is it noticed, and when the first is back?

    python -m benchmarks.replies ../shared/speech --frames FRAMES [--features f0,phones,channel]

Streams of one reader for two minutes, another one for 20, 60 or 120 s, and the first one again for
two minutes, spliced as `benchmarks.change` does, from the half of the readers that settings were
not chosen on; the other half is the population. Counted are the replies noticed while they last;
of these how often the first voice is taken to be back while the other one still speaks, and how
often and how soon after it is back. Then two readers in turn, ten turns of 20, 40 and 60 s each:
how many of the changes are noticed before the next one. Last the false alarms on one reader at a
time: how many, and after how long the voice is known to be the same. With ``--channels`` also one
reader, 90 s as they are and 90 s through another channel: how often and how soon the voice is known
to be the same (heard from audio: slow with phones).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.change import (
    CHANNEL_SECONDS,
    CHANNELS,
    Reader,
    Spliced,
    changes,
    feature_sets,
    hours,
    joined,
    listen,
    part,
    population,
    through,
)
from monitor.events.run import Change
from monitor.stream.speaker_changes import ChangeDetector
from monitor.types import TICKS_PER_SECOND, Frames

AROUND_SECONDS = 120
REPLIES_SECONDS = (20, 60, 120)
TURNS_SECONDS = (20, 40, 60)
TURNS = 10
SOON_SECONDS = 60


def reply(readers: Sequence[Reader], rng: np.random.Generator, seconds: int) -> Spliced:
    """One reader, another one for so long, the first one again (of the same chapter)."""
    long = 2 * AROUND_SECONDS * TICKS_PER_SECOND
    able = [
        (reader, frames)
        for reader in readers
        for frames in reader.frames
        if frames.speech.size >= long
    ]
    first, own = able[rng.integers(len(able))]
    others = [reader for reader in readers if reader is not first]
    second = others[rng.integers(len(others))]
    other = second.frames[rng.integers(len(second.frames))]
    ticks = min(seconds * TICKS_PER_SECOND, other.speech.size)
    half = long // 2
    at = int(rng.integers(0, own.speech.size - long + 1))
    begin = int(rng.integers(0, other.speech.size - ticks + 1))
    pieces: list[Frames] = [
        part(own, at, at + half, fresh=False),
        part(other, begin, begin + ticks, fresh=True),
        part(own, at + half, at + long, fresh=True),
    ]
    return joined(pieces, [first, second, first])


def dialogue(readers: Sequence[Reader], rng: np.random.Generator, seconds: int) -> Spliced:
    """Two readers in turn, each from the begin of a chapter that is long enough for all turns."""
    ticks = seconds * TICKS_PER_SECOND
    long = {
        reader.name: [f for f in reader.frames if f.speech.size >= TURNS // 2 * ticks]
        for reader in readers
    }
    able = [reader for reader in readers if long[reader.name]]
    pair = [able[i] for i in rng.permutation(len(able))[:2]]
    chapters = [long[r.name][rng.integers(len(long[r.name]))] for r in pair]
    turns = [(which, i * ticks) for i in range(TURNS // 2) for which in (0, 1)]
    pieces = [
        part(chapters[which], at, at + ticks, fresh=n > 0) for n, (which, at) in enumerate(turns)
    ]
    return joined(pieces, [pair[which] for which, _ in turns])


def main() -> None:
    words = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    words.add_argument("speech", type=Path)
    words.add_argument("--frames", type=Path)
    words.add_argument("--features", default="f0,phones,voice,channel")
    words.add_argument("--ready", action="store_true", help="only chapters that FRAMES holds")
    words.add_argument("--half", choices=("choosing", "reporting"), default="reporting")
    words.add_argument("--streams", type=int, default=200)
    words.add_argument("--channels", action="store_true")
    words.add_argument("--seed", type=int, default=1)
    asked = words.parse_args()
    features = asked.features.split(",")
    readers = listen(asked.speech, asked.frames, features, ready_only=asked.ready)
    halves = {"choosing": readers[::2], "reporting": readers[1::2]}
    speakers = halves.pop(asked.half)
    (others,) = halves.values()
    background = population(others, features)
    rng = np.random.default_rng(asked.seed)
    streams = {
        seconds: [reply(speakers, rng, seconds) for _ in range(asked.streams)]
        for seconds in REPLIES_SECONDS
    }
    talks = {
        seconds: [dialogue(speakers, rng, seconds) for _ in range(asked.streams // 5)]
        for seconds in TURNS_SECONDS
    }
    alone = [frames for reader in speakers for frames in reader.frames]
    print(f"{asked.half} half: {len(speakers)} readers, population of {len(others)} others")
    for names in feature_sets(features):

        def detector(names: Sequence[str] = names, *, returns: bool = True) -> ChangeDetector:
            return ChangeDetector({n: background[n] for n in names}, returns=returns)

        for seconds, some in streams.items():
            print(f"{'+'.join(names):28}{row([told(detector(), each) for each in some], seconds)}")
        for seconds, some in talks.items():
            share = np.mean(
                [noticed for each in some for noticed in seen(detector(returns=False), each)]
            )
            print(f"{'+'.join(names):28}turns of {seconds:3} s: {share:.0%} of the changes noticed")
        for channel, heard in through_channels(speakers, features, asked.channels).items():
            found = [changes(detector(), frames) for frames in heard]
            print(f"{'+'.join(names):28}{channel}: {same(found)}")
        print(f"{'+'.join(names):28}{alarms([changes(detector(), each) for each in alone], alone)}")


@cache
def _through(name: str, chapter: Path, features: tuple[str, ...]) -> Frames:
    return through(Reader("", "", (chapter,), ()), CHANNELS[name], features)


def through_channels(
    readers: Sequence[Reader], features: Sequence[str], asked: bool
) -> dict[str, list[Frames]]:
    """By channel, every chapter that is long enough."""
    chapters = [
        path
        for reader in readers
        for path, frames in zip(reader.chapters, reader.frames, strict=True)
        if frames.speech.size >= 2 * CHANNEL_SECONDS * TICKS_PER_SECOND
    ]
    return {
        name: [_through(name, path, tuple(features)) for path in chapters]
        for name in (CHANNELS if asked else ())
    }


def same(found: Sequence[Sequence[Change]]) -> str:
    """What became of changes of channel alone."""
    opened = [events for events in found if events]
    closed = [events[1].seconds - events[0].seconds for events in opened if len(events) > 1]
    return (
        f"{len(opened)} of {len(found)} noticed; of these the voice is known to be the same in "
        f"{len(closed)}, after {np.median(closed or [np.nan]):.0f} s"
    )


def told(detector: ChangeDetector, stream: Spliced) -> tuple[float | None, list[float]]:
    """Seconds from the begin of the reply until it is noticed, and from its end until each back."""
    begin, end, _ = (tick / TICKS_PER_SECOND for tick in stream.ends)
    noticed, back = None, []
    for change in changes(detector, stream.frames):
        if change.back and noticed is not None:
            back.append(change.seconds - end)
        elif noticed is None and begin < change.seconds <= end:
            noticed = change.seconds - begin
    return noticed, back


def seen(detector: ChangeDetector, stream: Spliced) -> list[bool]:
    """Of each change of a dialogue, whether anything was told before the next one."""
    told_at = [change.seconds * TICKS_PER_SECOND for change in changes(detector, stream.frames)]
    return [any(begin < at <= end for at in told_at) for begin, end in pairwise(stream.ends)]


def row(found: Sequence[tuple[float | None, list[float]]], seconds: int) -> str:
    """One line of the table."""
    noticed = [(at, back) for at, back in found if at is not None]
    if not noticed:
        return f"reply of {seconds:3} s: noticed   0 %"
    early = sum(any(late <= 0 for late in back) for _, back in noticed)
    soon = [min(later) for _, back in noticed if (later := [b for b in back if b > 0])]
    close = sum(late <= SOON_SECONDS for late in soon)
    return (
        f"reply of {seconds:3} s: noticed {len(noticed) / len(found):4.0%} after "
        f"{np.median([at for at, _ in noticed]):3.0f} s; taken to be back too early "
        f"{early / len(noticed):4.0%}; known to be back within {SOON_SECONDS} s "
        f"{close / len(noticed):4.0%}, after {np.median(soon or [np.nan]):3.0f} s"
    )


def alarms(found: Sequence[Sequence[Change]], alone: Sequence[Frames]) -> str:
    """False alarms of one reader alone, and how long they stay open."""
    begun, over = [], []
    for events in found:
        opened: list[float] = []
        for change in events:
            if change.back:
                over.append(change.seconds - opened[-1])
            if change.back or not opened:
                opened = [] if change.back else [change.seconds]
                begun += opened
    return (
        f"one reader alone: {len(begun) / hours(alone):.2f} false alarms an hour; of {len(begun)} "
        f"the voice was known to be the same in {len(over)}, "
        f"after {np.median(over or [np.nan]):.0f} s"
    )


if __name__ == "__main__":
    main()
