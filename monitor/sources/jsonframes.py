"""Frames as JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import SourceError
from monitor.sources.precomputed import MOST_TICKS, RESERVED, SUFFIXES, Header, read_header
from monitor.types import TICKS_PER_SECOND, AnyArray, BoolArray, Track

__all__ = ["read_json_lines"]

_SLACK = 1e-6  # ticks: 0.07 s x 100 is a little more than 7


class _Lines:
    """Collects the lines of one file."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.header = Header()
        self.tick = 0
        self.speech: list[tuple[int, bool]] = []  # (ticks, decision)
        self.ticks: dict[str, list[int]] = {}
        self.values: dict[str, list[Any]] = {}
        self.spans: dict[str, list[tuple[int, int]]] = {}

    def add(self, number: int, line: Mapping[str, Any]) -> None:
        """Take one line, whose number is for messages."""
        where = f"{self.label} line {number}"
        seconds: Any = line.get("seconds")
        if type(seconds) not in (int, float) or not abs(seconds) < math.inf:
            raise SourceError(f'{where}: needs "seconds", a number')
        if seconds > MOST_TICKS / TICKS_PER_SECOND:
            raise SourceError(f"{where}: is later than 7 days; cut the file")
        tick = math.ceil(seconds * TICKS_PER_SECOND - _SLACK)
        if tick < max(1, self.tick):
            raise SourceError(f"{where}: {seconds} s is out of order; sort the lines by time")
        decision = line.get("speech", True)
        if not isinstance(decision, bool):
            raise SourceError(f"{where}: speech must be true or false")
        if tick > self.tick:
            self.speech.append((tick - self.tick, decision))
        self.tick = tick
        for name, value in line.items():
            if name in {"seconds", "speech"} or value is None:
                continue
            if name.endswith("_span") and name.removesuffix("_span") in line:
                continue
            if name in RESERVED or name.endswith(SUFFIXES) or not name.isidentifier():
                raise SourceError(f"{where}: a feature cannot be called {name!r}")
            self.ticks.setdefault(name, []).append(tick)
            self.values.setdefault(name, []).append(_frame(where, name, value))
            span = line.get(f"{name}_span")
            if span is not None:
                self.spans.setdefault(name, []).append(_span(where, name, span))

    def arrays(self) -> tuple[BoolArray, dict[str, Track]]:
        """All lines together."""
        counts = [ticks for ticks, _ in self.speech]
        speech = np.repeat(np.array([decision for _, decision in self.speech], np.bool_), counts)
        tracks = {}
        for name, values in self.values.items():
            shapes = {len(value) if isinstance(value, list) else None for value in values}
            if len(shapes) > 1:
                raise SourceError(f"{self.label}: the frames of {name} differ in length or kind")
            array: AnyArray = np.array(values, np.int64 if shapes == {None} else np.float64)
            spans = self.spans.get(name)
            if spans is not None and len(spans) != len(values):
                raise SourceError(f"{self.label}: give {name}_span for all its frames or none")
            stretches = None if spans is None else np.array(spans, np.int64)
            tracks[name] = Track(np.array(self.ticks[name], np.int64), array, stretches)
        return speech, tracks


def _frame(where: str, name: str, value: Any) -> int | list[float]:
    """A bin, or an embedding."""
    if type(value) is int and abs(value) < 1 << 62:
        return value
    if isinstance(value, list) and value and all(type(x) in (int, float) for x in value):
        return [float(x) if abs(x) < 1e300 or x != x else math.inf for x in value]
    raise SourceError(f"{where}: {name} must be an integer bin or a list of numbers")


def _span(where: str, name: str, value: Any) -> tuple[int, int]:
    """The ticks that a stretch of seconds touches."""
    if isinstance(value, list) and [type(x) in (int, float) for x in value] == [True, True]:
        begin, end = value
        if 0 <= begin < end <= MOST_TICKS / TICKS_PER_SECOND:
            first = math.floor(begin * TICKS_PER_SECOND + _SLACK)
            return first, math.ceil(end * TICKS_PER_SECOND - _SLACK)
    raise SourceError(f"{where}: {name}_span must be [begin, end] in seconds")


def read_json_lines(path: Path) -> tuple[Header, BoolArray, dict[str, Track]]:
    """Read a file of frames.

    Raises:
        SourceError: a line is malformed; its number is named.
    """
    lines = _Lines(path.name)
    first = True
    with path.open(encoding="utf-8-sig") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                line = None
            if not isinstance(line, dict):
                raise SourceError(f"{path.name} line {number}: is no JSON object; correct it")
            if first and line.get("type") == "start":
                raise SourceError(
                    f"{path.name} is a recorded run, which nobody can hear again; it is shown by "
                    "monitor view, drawn by monitor plot"
                )
            if first and "schema" in line:
                lines.header = read_header(line, path.name)
            else:
                lines.add(number, line)
            first = False
    speech, tracks = lines.arrays()
    return lines.header, speech, tracks
