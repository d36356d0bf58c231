"""How far off is the forecast of an alert? Real readers, replayed from their frames.

    python -m benchmarks.hear ../shared/speech FRAMES
    python -m benchmarks.forecast FRAMES [--features f0,phones,voice] [--warn 30]

Every reader of the shipped population is watched on the chapters they were not enrolled from, for
thresholds of 2, 3 and 4 bits. For every threshold: when was the warning (`--warn`) given, how far
ahead did it put the threshold, and how far ahead was it? And the same for the forecast as shown at
every second before. The last ones compare the growth that is assumed: seconds, their square root
(the one in use) or their logarithm. Prints JSON.

The rank model was learnt on these readers, so bits rise as they do for readers like them; the
forecast itself learns nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from monitor import Monitor, Population
from monitor.alerts import EarlyWarning, Threshold
from monitor.alerts import rules as forecast
from monitor.events import Reading
from monitor.sources.frames import FramesFile

THRESHOLDS = (2.0, 3.0, 4.0)
GROWTHS: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "seconds": (float, float),
    "root": (math.sqrt, lambda x: x * x),
    "logarithm": (math.log, lambda x: math.exp(min(x, 50.0))),
}
IN_TIME_SECONDS = 8.0
"""Who reaches the threshold sooner can hardly be warned of it: three seconds must be heard."""


def replays(frames: Path, features: list[str]) -> Iterator[list[Any]]:
    """The readings of every chapter that was not enrolled."""
    population = Population.reference()
    enrolled = {
        (speaker.name, Path(note.label).stem)
        for speaker in population.speakers
        for note in speaker.sources
    }
    names = {speaker.name for speaker in population.speakers}
    for path in sorted(frames.glob("*/*/*.npz")):
        who = path.parent.name
        if who in names and (who, path.stem) not in enrolled:
            monitor = Monitor(population, features, watch=who)
            yield [reading.record() for reading in monitor.stream(FramesFile(path))]


def warned(run: list[dict[str, Any]], bits: float, warn: float) -> dict[str, float | None]:
    """Of one run: when the bits reached the threshold, when that was warned of, how long ahead."""
    reached = next((r["seconds"] for r in run if r["bits"] >= bits), None)
    rule = EarlyWarning(Threshold("bits", bits), warn)
    at = said = None
    shown: list[tuple[float, float]] = []
    for record in run:
        if reached is not None and record["seconds"] >= reached:
            break
        for alert in rule.update(Reading.from_record(record)):
            if alert.state == "raised" and at is None:
                at, said = alert.seconds, alert.seconds_left
        left = rule.seconds_left
        if left is not None and left <= 2 * warn and reached is not None:
            shown.append((left, reached - record["seconds"]))
    return {"reached": reached, "at": at, "said": said, "shown": shown}  # type: ignore[dict-item]


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """What became of the warnings."""
    reached = [f for f in found if f["reached"] is not None]
    late = [f for f in reached if f["reached"] >= IN_TIME_SECONDS]
    ahead = [f["reached"] - f["at"] if f["at"] is not None else 0.0 for f in late]
    true = [f for f in reached if f["at"] is not None]
    errors = [f["said"] - (f["reached"] - f["at"]) for f in true]
    shown = [said - actual for f in reached for said, actual in f["shown"]]
    return {
        "reached": len(reached),
        f"reached after {IN_TIME_SECONDS:g} s or more": len(late),
        "of these warned of, share": round(sum(a > 0 for a in ahead) / len(late), 2),
        "of these warned 5 s ahead, share": round(sum(a >= 5 for a in ahead) / len(late), 2),
        "seconds ahead, median": round(statistics.median(ahead), 1),
        "warnings": sum(f["at"] is not None for f in found),
        "never came true": sum(f["at"] is not None and f["reached"] is None for f in found),
        "error at the warning, s": quantiles(errors),
        "error as shown each second, s": quantiles(shown),
        "readings with a forecast": len(shown),
    }


def quantiles(values: list[float]) -> dict[str, float]:
    """Positive: it took less time than was said."""
    tenths = statistics.quantiles(values, n=10)
    return {
        "median": round(statistics.median(values), 1),
        "median absolute": round(statistics.median(map(abs, values)), 1),
        "10 %": round(tenths[0], 1),
        "90 %": round(tenths[-1], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("frames", type=Path)
    parser.add_argument("--features", default="f0,phones,voice")
    parser.add_argument("--warn", type=float, default=30.0)
    given = parser.parse_args()
    runs = list(replays(given.frames, given.features.split(",")))
    result: dict[str, Any] = {"chapters": len(runs), "warn_seconds": given.warn}
    used = forecast.GROWTH
    for name, growth in GROWTHS.items():
        forecast.GROWTH = growth
        found = [warned(run, bits, given.warn) for run in runs for bits in THRESHOLDS]
        result[f"{name} (in use)" if name == "root" else name] = summary(found)
    forecast.GROWTH = used
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
