"""Records of a run without an engine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tests.records import event

CEILING = 5.643856


def give(sink: Any, *made: dict[str, Any]) -> None:
    """Write records to a page or a hub."""
    for record in made:
        sink.write(event(record))


def start(**more: Any) -> dict[str, Any]:
    return {
        "type": "start", "schema": 2, "version": "0.1.0", "time": "2026-01-01T00:00:00Z",
        "features": ["f0", "phones"], "speakers": 50, "ceiling": CEILING, "plateau": 4.5,
        "watch": "ann", "headline": "closed-set", "assumes_enrolled": False, "step_seconds": 1.0,
        "template_seconds": 100.0, "rank_model": "own",
        "rank_model_session": "cross", "rank_model_speakers": 19,
        "on_change": "note", "recordings": ["talk.flac"], "notices": [],
        "fingerprint": {"population": "aa", "rank_model": "bb"}, **more,
    }  # fmt: skip


def reading(second: float, bits: float | None = 2.0, **more: Any) -> dict[str, Any]:
    figures = {
        name + end: bits for name in ("local_bits", "gain_bits", "rank_bits", "expected_bits")
        for end in ("", "_low", "_high")
    }  # fmt: skip
    return {
        "type": "reading", "seconds": float(second), "speech": 0.8 * second, "stream": 1,
        "bits": bits, "bits_low": bits, "bits_high": bits, "headline": "closed-set",
        "closed_set_bits": bits, "closed_set_bits_low": bits, "closed_set_bits_high": bits,
        "sum_bits": bits, "gain_bits": bits, "peak_bits": bits, "expected_bits": 1.5,
        "expected_bits_low": 1.2, "expected_bits_high": 1.9, "ceiling": CEILING, "plateau": 4.5,
        "guides": {"linear": 3.0, "sqrt": 2.0}, "session": "cross", "assumes_enrolled": False,
        "enrolled": 0.9, "beyond_grid": False,
        "features": {n: {"usable": 0.5 * second, "rank": 2, **figures} for n in ("f0", "phones")},
        "top": [["ann", 0.5], ["ben", 0.2], ["cyd", 0.1], ["dan", 0.05], ["eve", 0.04]], **more,
    }  # fmt: skip


def evidence(bits: float, **more: Any) -> dict[str, Any]:
    """What a reading has otherwise, whose headline is evidence."""
    crowds = [(50, min(bits, CEILING)), (10**6, bits)]
    limits = {"": bits, "_low": bits - 0.8, "_high": bits + 0.8}
    return {
        **{f"{of}bits{end}": value for end, value in limits.items() for of in ("", "evidence_")},
        "headline": "evidence", "peak_bits": bits,
        "support_bits": 14.2, "at_least": False,
        "among": [
            {"people": m, "bits": b, "bits_low": b - 0.8, "bits_high": b + 0.8, "one_in": 2**b,
             "fitting": m / 2**b, "probability": 2**b / m, "favourite": None}
            for m, b in crowds
        ], **more,
    }  # fmt: skip


def protected(bits: float, **more: Any) -> dict[str, Any]:
    """The protected side of a reading, of one attacker or with ``also=bits`` of two."""
    also = more.pop("also", None)
    knowing = {"ignorant": bits, **({} if also is None else {"lazy-informed": also})}
    best = max(knowing, key=lambda name: knowing[name])
    wide = {"": 0.0, "_low": -0.4, "_high": 0.4}
    figures = {f"bits{end}": knowing[best] + more for end, more in wide.items()}
    attackers = {
        name: {"bits": each, "gain_bits": each, "evidence_bits": None, "closed_set_bits": each}
        for name, each in knowing.items()
    }
    side = {"speech": 1.0, **figures, "by": best, "at_least": False}
    return {"protected": {**side, "attackers": attackers, **more}}


PROTECTED = {"method": "mcadams:0.8", "latency_seconds": 0.02, "attackers": {}}


def crossing(second: float, side: str, disclosure_delay: float | None = None) -> dict[str, Any]:
    return {
        "type": "crossing", "seconds": second + 5.0, "bits": 2.0, "side": side,
        "since_seconds": float(second), "delay_seconds": disclosure_delay,
    }  # fmt: skip


def alert(second: float, state: str = "raised", threshold: float = 3.0) -> dict[str, Any]:
    return {
        "type": "alert", "seconds": float(second), "speech": 0.8 * second,
        "rule": f"bits>{threshold:g} for 5 s", "field": "bits", "threshold": threshold,
        "state": state, "value": threshold + 0.4,
    }  # fmt: skip


def end(second: float) -> dict[str, Any]:
    return {"type": "end", "seconds": float(second), "complete": True, "readings": int(second)}


def run(seconds: int) -> Iterator[dict[str, Any]]:
    yield start()
    for second in range(1, seconds + 1):
        yield reading(second, bits=min(5.0, 0.05 * second))
    yield end(seconds)


def people(
    labels: list[str], seconds: int = 40, watched: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Records of people who speak a second each in turn, without the end."""
    begun = {
        "type": "start", "schema": 2, "speakers": 50, "ceiling": math.log2(50), "watch": None,
        "headline": "closed-set", "recordings": ["meeting.wav"], "step_seconds": 1.0,
        "people": [{"label": label, "seconds": 9.0} for label in labels], "notices": [],
        **({"watched": list(watched)} if watched else {}),
    }  # fmt: skip
    found: list[dict[str, Any]] = [begun]
    for second in range(1, seconds + 1):
        k = second % len(labels)
        for place, name in enumerate(watched or [None]):
            found.append(
                {"type": "reading", "seconds": float(second), "speech": second / len(labels),
                 "bits": 0.4 * k + place + second / 100, "ceiling": math.log2(50),
                 "headline": "closed-set", "features": {}, "label": labels[k],
                 **({} if name is None else {"watch": name})}
            )  # fmt: skip
    rule = {"rule": "bits>1", "field": "bits", "threshold": 1.0, "level": "alert"}
    raised = {**rule, "state": "raised", "value": 1.2, "label": labels[0]}
    return [*found, {"type": "alert", "seconds": 20.0, "speech": 9.0, **raised}]


def people_end(labels: list[str], **more: Any) -> dict[str, Any]:
    row = {"person": "ann", "probability": 0.9, "purity": 0.95, "watch": None, **more}
    return {"type": "end", "seconds": 40.0, "overlap_seconds": 2.5,
            "people": [{"label": label, **row} for label in labels]}  # fmt: skip
