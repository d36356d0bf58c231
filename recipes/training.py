"""What the trainings have in common: their options, their steps, and going on after a stop."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from monitor.errors import StoreError
from monitor.files import atomic_write
from monitor.lab.adapting.training import Length, compute_rate
from recipes.stages import add_row, stage

CHECKPOINT = "checkpoint.pt"
LOG = "log.jsonl"
_MOST_GRADIENT = 5.0


def options(description: str, batch: float, unit: str) -> argparse.ArgumentParser:
    """The options of a training: CACHE, OUT, ``--minutes`` or ``--steps``, and others."""
    parser = stage(description, "cache", "out")
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--minutes", type=float, help="of training, on this machine")
    either.add_argument("--steps", type=int)
    parser.add_argument("--batch", type=type(batch), default=batch, help=f"{unit} a step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bfloat16", action="store_true", help="half precision in products")
    return parser


@dataclass(frozen=True, slots=True)
class Training:
    """The steps of a training: seeded; it goes on from its last checkpoint, where there is one.

    Attributes:
        given: by `options`: ``out`` is a folder for the checkpoint and the log.
        setting: what a training that goes on must have been begun with.
        network: all that is trained, as checkpoints keep it.
        optimizer: of its parameters, or of some.
        rates: of learning, the highest and the lowest.
        every_seconds: between checkpoints.
        more: what checkpoints hold besides.
    """

    given: argparse.Namespace
    setting: Mapping[str, Any]
    network: nn.Module
    optimizer: torch.optim.Optimizer
    rates: tuple[float, float]
    every_seconds: float
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def length(self) -> Length:
        """Of the whole training."""
        minutes = self.given.minutes
        return Length(self.given.steps, None if minutes is None else 60 * minutes)

    def run(self, loss_of: Callable[[int, float], tuple[Tensor, dict[str, float]]]) -> list[float]:
        """Train, or go on, until the length is reached; the loss of every step made now.

        Args:
            loss_of: gives the loss of a step, from its number and the fraction done, and parts of
                it by name, for the log.

        Raises:
            StoreError: the checkpoint in the folder is of a training with another setting.
        """
        out, length, step, spent = self.given.out, self.length, 0, 0.0
        out.mkdir(parents=True, exist_ok=True)
        if (before := kept(out, self.setting)) is not None:
            self.network.load_state_dict(before["network"])
            self.optimizer.load_state_dict(before["optimizer"])
            step, spent = before["step"], before["seconds"]
        rows: list[dict[str, float]] = []
        told, last = 0, time.monotonic()
        written = last
        while (done := length.done(step, spent)) < 1:
            for group in self.optimizer.param_groups:
                group["lr"] = compute_rate(done, *self.rates)
            # what is drawn, whatever came before
            torch.manual_seed((self.given.seed << 32) + step)
            loss, parts = loss_of(step, done)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), _MOST_GRADIENT)
            self.optimizer.step()
            rows.append({"loss": loss.item(), **parts})
            now = time.monotonic()
            step, spent, last = step + 1, spent + now - last, now
            if length.done(step, spent) >= 1 or now - written >= self.every_seconds:
                written = now
                self._write(step, spent, rows[told:])
                told = len(rows)
        return [row["loss"] for row in rows]

    def _write(self, step: int, spent: float, rows: list[dict[str, float]]) -> None:
        state = {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        told = {"setting": self.setting, **state, "step": step, "seconds": spent}
        keep(self.given.out, {**told, **self.more})
        means = {name: round(sum(row[name] for row in rows) / len(rows), 4) for name in rows[0]}
        log(self.given.out, {"step": step, "seconds": round(spent, 1), **means})
        said = "  ".join(f"{name} {mean:.3f}" for name, mean in means.items())
        done = self.length.done(step, spent)
        print(f"{done:4.0%}  step {step}  {said}  {spent / 60:.1f} min", file=sys.stderr)


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
