"""Train the student: seeded; a run that is killed goes on from its last checkpoint.

    python -m recipes.voice.train CACHE OUT --minutes 30
    python -m recipes.voice.train CACHE OUT --steps 4000

With ``--steps`` equal seeds give equal weights; with ``--minutes`` the learning rate falls by the
time spent, so that any machine ends well. OUT gets checkpoint.pt and log.jsonl. Products are
computed in bfloat16 where ``--bfloat16`` is given: three quarters of the time on a processor that
has it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

from monitor.adapting.adapted import Length, rate
from monitor.adapting.fine_tuning import Student, TeacherLoss
from recipes.training import keep, kept, length_given, length_options, log, trained
from recipes.voice.batches import Batches
from recipes.voice.cache import Cache

__all__ = ["load_student", "past", "train"]

_HIGHEST_RATE = 2e-3
_LOWEST_RATE = 1e-5
_DECAY = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the voice network.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path)
    length_options(parser)
    parser.add_argument("--batch", type=int, default=64, help="crops a step (default 64)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--begin", type=Path, help="a training to begin with the weights of")
    parser.add_argument("--bfloat16", action="store_true", help="half precision in products")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    train(
        Cache(given.cache),
        given.out,
        length_given(given),
        batch=given.batch,
        seed=given.seed,
        half=given.bfloat16,
        begin=given.begin,
    )


def train(
    cache: Cache,
    out: Path,
    length: Length,
    *,
    batch: int = 64,
    seed: int = 1,
    half: bool = False,
    begin: Path | None = None,
    every_seconds: float = 60.0,
) -> list[float]:
    """Train, or go on training, until the length is reached.

    Args:
        cache: prepared.
        out: a folder for the checkpoint and the log.
        length: of the whole training.
        batch: crops a step.
        seed: of the weights and of every batch.
        half: compute products in bfloat16.
        begin: the folder of another training, whose weights are the first of this.
        every_seconds: between checkpoints.

    Returns:
        the loss of every step made now.

    Raises:
        StoreError: the checkpoint in the folder is of a training with another seed or batch.
    """
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    batches = Batches(cache, seed)
    student = Student() if begin is None else load_student(begin).train()
    loss = TeacherLoss(
        torch.from_numpy(batches.anchors), torch.from_numpy(batches.corpus_of_anchor)
    )
    optimizer = torch.optim.AdamW(student.parameters(), lr=_HIGHEST_RATE, weight_decay=_DECAY)
    step, spent = 0, 0.0
    earlier = [] if begin is None else past(begin)
    setting = {"seed": seed, "batch": batch, "anchors": len(batches.anchors)}
    if (before_stop := kept(out, setting)) is not None:
        for part, state in ((student, "student"), (optimizer, "optimizer")):
            part.load_state_dict(before_stop[state])
        step, spent = before_stop["step"], before_stop["seconds"]
        earlier = before_stop["earlier"]
    losses: list[float] = []
    shown: list[tuple[float, float]] = []
    before, written = time.monotonic(), time.monotonic()
    while (done := length.done(step, spent)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = rate(done, _HIGHEST_RATE, _LOWEST_RATE)
        drawn = batches.at(step, batch)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            found = student(torch.from_numpy(drawn.bands))
        total, alike = loss(
            found.float(), torch.from_numpy(drawn.teacher), torch.from_numpy(drawn.corpora)
        )
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 5.0)
        optimizer.step()
        losses.append(total.item())
        shown.append((losses[-1], alike.item()))
        now = time.monotonic()
        step, spent, before = step + 1, spent + now - before, now
        finished = length.done(step, spent) >= 1
        if finished or now - written >= every_seconds:
            written = now
            keep(
                out,
                {
                    "setting": setting,
                    "student": student.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "step": step,
                    "seconds": spent,
                    "earlier": earlier,
                },
            )
            _tell(out, step, spent, length.done(step, spent), shown)
            shown.clear()
    return losses


def _tell(
    out: Path, step: int, seconds: float, done: float, shown: list[tuple[float, float]]
) -> None:
    loss, alike = (sum(each) / len(each) for each in zip(*shown, strict=True))
    log(
        out,
        {
            "step": step,
            "seconds": round(seconds, 1),
            "loss": round(loss, 4),
            "cosine_to_teacher": round(alike, 4),
        },
    )
    print(
        f"{done:4.0%}  step {step}  loss {loss:.2f}  like the teacher {alike:.3f}  "
        f"{seconds / 60:.1f} min",
        file=sys.stderr,
    )


def past(out: Path) -> list[dict[str, float]]:
    """The trainings that led to the weights of one, itself last: steps and minutes of each.

    Raises:
        StoreError: nothing was trained there.
    """
    found = trained(out)
    own = {"steps": found["step"], "minutes": round(found["seconds"] / 60, 1)}
    return [*found["earlier"], own]


def load_student(out: Path) -> Student:
    """The trained network, for use.

    Raises:
        StoreError: nothing was trained there.
    """
    student = Student()
    student.load_state_dict(trained(out)["student"])
    student.eval()
    return student


if __name__ == "__main__":
    main()
