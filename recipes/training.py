"""What the trainings have in common: options of their length, and going on after a stop."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from monitor.errors import StoreError
from monitor.files import atomic_write
from monitor.lab.adapting.training import Length
from recipes.rows import add_row

__all__ = [
    "CHECKPOINT",
    "LOG",
    "keep",
    "kept",
    "length_given",
    "length_options",
    "log",
    "trained",
]

CHECKPOINT = "checkpoint.pt"
LOG = "log.jsonl"


def length_options(parser: argparse.ArgumentParser) -> None:
    """How long to train: ``--minutes`` or ``--steps``."""
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--minutes", type=float, help="of training, on this machine")
    either.add_argument("--steps", type=int)


def length_given(options: argparse.Namespace) -> Length:
    """That of `length_options`."""
    return Length(options.steps, None if options.minutes is None else 60 * options.minutes)


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
