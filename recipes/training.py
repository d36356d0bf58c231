"""What the trainings have in common: how long they are, their rate, and going on after a stop."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from monitor.atomic import atomic_write
from monitor.errors import StoreError, UsageError
from recipes.rows import add_row

__all__ = [
    "CHECKPOINT",
    "LOG",
    "Length",
    "keep",
    "kept",
    "length_options",
    "log",
    "rate",
    "trained",
]

CHECKPOINT = "checkpoint.pt"
LOG = "log.jsonl"
_WARM_UP = 0.05


@dataclass(frozen=True, slots=True)
class Length:
    """How long a training is: by steps or by seconds spent, one of them."""

    steps: int | None = None
    seconds: float | None = None

    @classmethod
    def given(cls, options: argparse.Namespace) -> Length:
        """That of `length_options`."""
        return cls(options.steps, None if options.minutes is None else 60 * options.minutes)

    def done(self, step: int, seconds: float) -> float:
        """Which share of it has been done, 1 at the end."""
        if self.steps is not None:
            return min(1.0, step / self.steps)
        if self.seconds is None:
            raise UsageError("a training has --steps or --minutes")
        return min(1.0, seconds / self.seconds)


def length_options(parser: argparse.ArgumentParser) -> None:
    """How long to train: ``--minutes`` or ``--steps``."""
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--minutes", type=float, help="of training, on this machine")
    either.add_argument("--steps", type=int)


def rate(done: float, highest: float, lowest: float) -> float:
    """Of learning: a short rise, then half a cosine."""
    if done < _WARM_UP:
        return highest * max(0.02, done / _WARM_UP)
    fall = 0.5 * (1 + math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP)))
    return lowest + (highest - lowest) * fall


def kept(out: Path, setting: Mapping[str, Any]) -> dict[str, Any] | None:
    """The checkpoint to go on from, where there is one.

    Raises:
        StoreError: it is of a training with another setting.
    """
    if not (out / CHECKPOINT).exists():
        return None
    found = trained(out)
    if found["setting"] != setting:
        raise StoreError(f"{out}: a training with {found['setting']}, not {setting}, is there")
    return found


def keep(out: Path, checkpoint: Mapping[str, Any]) -> None:
    """Write it, whole."""
    with atomic_write(out / CHECKPOINT) as file:
        torch.save(checkpoint, file)


def log(out: Path, told: Mapping[str, Any]) -> None:
    """A line more."""
    add_row(out / LOG, told)


def trained(out: Path) -> dict[str, Any]:
    """The checkpoint of a training.

    Raises:
        StoreError: nothing was trained there.
    """
    try:
        found: dict[str, Any] = torch.load(out / CHECKPOINT, weights_only=True)
    except OSError as error:
        raise StoreError(f"{out}: no checkpoint ({error.strerror})") from None
    return found
