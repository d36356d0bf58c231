"""Common parts of the trainings: options, steps and checkpoints."""

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
    """Return the parser of a training: CACHE, OUT, ``--minutes`` or ``--steps``, and others."""
    parser = stage(description, "cache", "out")
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--minutes", type=float, help="minutes to train")
    either.add_argument("--steps", type=int)
    parser.add_argument("--batch", type=type(batch), default=batch, help=f"{unit} per step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bfloat16", action="store_true", help="compute products in bfloat16")
    return parser


@dataclass(frozen=True, slots=True)
class Training:
    """Seeded training, which resumes from its last checkpoint if there is one.

    Attributes:
        given: options by `options`: ``out`` is the folder of the checkpoint and the log.
        setting: settings, which must equal those of the checkpoint.
        network: all trained parts, as checkpoints store them.
        optimizer: optimizer of all or some of its parameters.
        rates: highest and lowest learning rate.
        every_seconds: seconds between checkpoints.
        more: further values of checkpoints.
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
        """Length of the whole training."""
        minutes = self.given.minutes
        return Length(self.given.steps, None if minutes is None else 60 * minutes)

    def run(self, loss_of: Callable[[int, float], tuple[Tensor, dict[str, float]]]) -> list[float]:
        """Train or resume to the full length, and return the loss of each step of this run.

        Args:
            loss_of: takes a step's number and the fraction done, and returns its loss, and values
                by name for the log.

        Raises:
            StoreError: the folder has a checkpoint with other settings.
        """
        out, length, step, spent = self.given.out, self.length, 0, 0.0
        out.mkdir(parents=True, exist_ok=True)
        if (checkpoint := find_checkpoint(out, self.setting)) is not None:
            self.network.load_state_dict(checkpoint["network"])
            self.optimizer.load_state_dict(checkpoint["optimizer"])
            step, spent = checkpoint["step"], checkpoint["seconds"]
        rows: list[dict[str, float]] = []
        logged, last = 0, time.monotonic()
        written = last
        while (done := length.done(step, spent)) < 1:
            for group in self.optimizer.param_groups:
                group["lr"] = compute_rate(done, *self.rates)
            # random numbers of a step do not depend on where a run resumed
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
                self._write(step, spent, rows[logged:])
                logged = len(rows)
        return [row["loss"] for row in rows]

    def _write(self, step: int, spent: float, rows: list[dict[str, float]]) -> None:
        state = {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        progress = {"setting": self.setting, **state, "step": step, "seconds": spent}
        save_checkpoint(self.given.out, {**progress, **self.more})
        means = {name: round(sum(row[name] for row in rows) / len(rows), 4) for name in rows[0]}
        append_log(self.given.out, {"step": step, "seconds": round(spent, 1), **means})
        summary = "  ".join(f"{name} {mean:.3f}" for name, mean in means.items())
        done = self.length.done(step, spent)
        print(f"{done:4.0%}  step {step}  {summary}  {spent / 60:.1f} min", file=sys.stderr)


def find_checkpoint(out: Path, setting: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the checkpoint from which to resume; None if there is none.

    Raises:
        StoreError: it has other settings.
    """
    if not (out / CHECKPOINT).exists():
        return None
    found = load_checkpoint(out)
    if found["setting"] != setting:
        raise StoreError(
            f"{out} has a training with {found['setting']}, not {setting}: use another folder"
        )
    return found


def save_checkpoint(out: Path, checkpoint: Mapping[str, Any]) -> None:
    """Write a checkpoint atomically."""
    with atomic_write(out / CHECKPOINT) as file:
        torch.save(checkpoint, file)


def append_log(out: Path, row: Mapping[str, Any]) -> None:
    """Append a row to the log."""
    add_row(out / LOG, row)


def load_checkpoint(out: Path) -> dict[str, Any]:
    """Return the checkpoint of a training.

    Raises:
        StoreError: the folder has none.
    """
    try:
        found: dict[str, Any] = torch.load(out / CHECKPOINT, weights_only=True)
    except OSError as error:
        raise StoreError(f"{out}: no checkpoint ({error.strerror})") from None
    return found
