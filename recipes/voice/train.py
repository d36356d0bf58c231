"""Train the student: seeded; a run that is killed goes on from its last checkpoint.

    python -m recipes.voice.train CACHE OUT --minutes 30
    python -m recipes.voice.train CACHE OUT --steps 4000

With ``--steps`` equal seeds give equal weights; with ``--minutes`` the learning rate falls by the
time spent, so that any machine ends well. OUT gets checkpoint.pt and log.jsonl.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import orjson
import torch

from monitor.errors import StoreError, UsageError
from monitor.whole import written_whole
from recipes.voice.batches import Batches
from recipes.voice.cache import Cache
from recipes.voice.loss import Loss
from recipes.voice.network import Student

__all__ = ["CHECKPOINT", "Length", "load_student", "train"]

CHECKPOINT = "checkpoint.pt"
LOG = "log.jsonl"
_HIGHEST_RATE = 3e-3
_LOWEST_RATE = 1e-5
_WARM_UP = 0.05
_MARGIN = 0.2
_DECAY = 1e-4


@dataclass(frozen=True, slots=True)
class Length:
    """How long a training is: by steps or by seconds spent, one of them."""

    steps: int | None = None
    seconds: float | None = None

    def done(self, step: int, seconds: float) -> float:
        """Which share of it has been done, 1 at the end."""
        if self.steps is not None:
            return min(1.0, step / self.steps)
        if self.seconds is None:
            raise UsageError("a training has --steps or --minutes")
        return min(1.0, seconds / self.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the voice network.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path)
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--minutes", type=float, help="of training, on this machine")
    either.add_argument("--steps", type=int)
    parser.add_argument("--batch", type=int, default=64, help="crops a step (default 64)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    seconds = None if given.minutes is None else 60 * given.minutes
    length = Length(given.steps, seconds)
    train(Cache(given.cache), given.out, length, batch=given.batch, seed=given.seed)


def train(
    cache: Cache,
    out: Path,
    length: Length,
    *,
    batch: int = 64,
    seed: int = 1,
    every_seconds: float = 60.0,
) -> list[float]:
    """Train, or go on training, until the length is reached.

    Args:
        cache: prepared.
        out: a folder for the checkpoint and the log.
        length: of the whole training.
        batch: crops a step.
        seed: of the weights and of every batch.
        every_seconds: between checkpoints.

    Returns:
        the loss of every step made now.

    Raises:
        StoreError: the checkpoint in the folder is of a training with another seed or batch.
    """
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    batches = Batches(cache, seed)
    student, loss = Student(), Loss(torch.from_numpy(batches.corpus_of_class))
    optimizer = torch.optim.AdamW(
        [*student.parameters(), *loss.parameters()], lr=_HIGHEST_RATE, weight_decay=_DECAY
    )
    step, spent = 0, 0.0
    setting = {"seed": seed, "batch": batch, "speakers": batches.speakers}
    if (out / CHECKPOINT).exists():
        kept = torch.load(out / CHECKPOINT, weights_only=True)
        if kept["setting"] != setting:
            raise StoreError(f"{out}: a training with {kept['setting']}, not {setting}, is there")
        for part, state in ((student, "student"), (loss, "loss"), (optimizer, "optimizer")):
            part.load_state_dict(kept[state])
        step, spent = kept["step"], kept["seconds"]
    losses: list[float] = []
    shown: list[tuple[float, float, float]] = []
    before, written = time.monotonic(), time.monotonic()
    while (done := length.done(step, spent)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = _rate(done)
        drawn = batches.at(step, batch)
        found = student(torch.from_numpy(drawn.bands))
        total, alike, named = loss(
            found,
            torch.from_numpy(drawn.classes),
            torch.from_numpy(drawn.teacher),
            _MARGIN * min(1.0, 2 * done),
        )
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 5.0)
        optimizer.step()
        losses.append(total.item())
        shown.append((losses[-1], alike.item(), named.item()))
        now = time.monotonic()
        step, spent, before = step + 1, spent + now - before, now
        finished = length.done(step, spent) >= 1
        if finished or now - written >= every_seconds:
            written = now
            with written_whole(out / CHECKPOINT) as file:
                torch.save(
                    {
                        "setting": setting,
                        "student": student.state_dict(),
                        "loss": loss.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "step": step,
                        "seconds": spent,
                    },
                    file,
                )
            _tell(out / LOG, step, spent, length.done(step, spent), shown)
            shown.clear()
    return losses


def _rate(done: float) -> float:
    """A short rise, then half a cosine."""
    if done < _WARM_UP:
        return _HIGHEST_RATE * max(0.02, done / _WARM_UP)
    fall = 0.5 * (1 + math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP)))
    return _LOWEST_RATE + (_HIGHEST_RATE - _LOWEST_RATE) * fall


def _tell(
    log: Path, step: int, seconds: float, done: float, shown: list[tuple[float, float, float]]
) -> None:
    loss, alike, named = (sum(each) / len(each) for each in zip(*shown, strict=True))
    with log.open("ab") as file:
        file.write(
            orjson.dumps(
                {
                    "step": step,
                    "seconds": round(seconds, 1),
                    "loss": round(loss, 4),
                    "cosine_to_teacher": round(alike, 4),
                    "named": round(named, 4),
                },
                option=orjson.OPT_APPEND_NEWLINE,
            )
        )
    print(
        f"{done:4.0%}  step {step}  loss {loss:.2f}  like the teacher {alike:.3f}  "
        f"named rightly {named:.0%}  {seconds / 60:.1f} min",
        file=sys.stderr,
    )


def load_student(out: Path) -> Student:
    """The trained network, for use.

    Raises:
        StoreError: nothing was trained there.
    """
    try:
        kept = torch.load(out / CHECKPOINT, weights_only=True)
    except OSError as error:
        raise StoreError(f"{out}: no checkpoint ({error.strerror})") from None
    student = Student()
    student.load_state_dict(kept["student"])
    student.eval()
    return student


if __name__ == "__main__":
    main()
