"""Weights of a small codec by a seed: what it says means nothing, how it says it is the codec's."""

import numpy as np

from monitor.types import AnyArray

__all__ = ["usc_weights"]

NARROW, WIDE, SIZE, DIMENSIONS, BOOKS = 16, 24, 32, 8, 3
REACHES = {
    "early": (NARROW, [(2, 1), (2, 1)]),
    "middle": (WIDE, [(5, 1), (4, 1)]),
    "deep": (WIDE, [(3, 1), (3, 0)]),
    "late": (NARROW, [(2, 1)]),
    "last": (NARROW, [(2, 1)]),
}


def usc_weights(seed: int = 0) -> dict[str, AnyArray]:
    """Arrays by name, as `recipes.usc.export` writes them."""
    generator = np.random.default_rng(seed)
    made: dict[str, AnyArray] = {"usual": generator.normal(-6, 1, 40), "clip": np.array(4.0)}

    def dense(name: str, outs: int, ins: int, *taps: int) -> None:
        scale = np.sqrt(2 / (ins * np.prod(taps, initial=1)))
        made[name] = scale * generator.standard_normal((outs, ins, *taps))
        made[f"{name}.bias"] = 0.1 * generator.standard_normal(outs)

    dense("stem", NARROW, 80, 5)
    dense("down", WIDE, NARROW, 2)
    dense("up", 2 * NARROW, WIDE)
    dense("again", 2 * NARROW, NARROW)
    dense("head", 80, NARROW)
    for part, (channels, reaches) in REACHES.items():
        made[f"{part}.reach"] = np.array(reaches)
        for i, (before, after) in enumerate(reaches):
            taps = generator.standard_normal((channels, before + 1 + after)) / 3
            made[f"{part}.{i}.depthwise"] = taps
            made[f"{part}.{i}.depthwise.bias"] = 0.1 * generator.standard_normal(channels)
            dense(f"{part}.{i}.pointwise", channels, channels)
    for book in range(BOOKS):
        dense(f"book.{book}.in", DIMENSIONS, WIDE)
        made[f"book.{book}.codes"] = generator.standard_normal((SIZE, DIMENSIONS))
        dense(f"book.{book}.out", WIDE, DIMENSIONS)
    return {
        name: each.astype(np.float32) if each.dtype.kind == "f" else each
        for name, each in made.items()
    }
