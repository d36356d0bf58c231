"""monitor protect of frames: Laplace noise on embeddings, and what it promises."""

from __future__ import annotations

import secrets
from pathlib import Path

from monitor.cli.progress import progress_over
from monitor.cli.protect_account import tell_account, write_account
from monitor.cli.saying import say
from monitor.corpus.finding import find
from monitor.errors import SourceError, StoreError, UsageError
from monitor.features.tracks import join_runs
from monitor.protectors.laplace import Laplace
from monitor.protectors.promise import promises
from monitor.run.status import INCOMPLETE
from monitor.sources.frames import FramesFile, write_frames
from monitor.sources.registry import is_frames
from monitor.training.frames_folder import MANIFEST, orders, write_manifest

__all__ = ["protect_frames"]


def protect_frames(
    frames: Path,
    output: Path,
    setting: str,
    *,
    speaker: str | None,
    seed: int | None,
    replace: bool,
) -> int:
    """Write a folder of ``monitor hear`` anew, with noise on its embeddings; its exit status.

    Args:
        frames: the folder.
        output: another.
        setting: ``EPSILON`` or ``EPSILON,C``.
        speaker: who speaks in all of it; None where the folder says so.
        seed: of the noise; None for one that nobody knows.
        replace: whether what is there may be replaced.

    Raises:
        UsageError: the setting makes no sense, or there are recordings instead of frames.
        StoreError: something is there and may not be replaced, or cannot be written.
        SourceError: nothing could be read.
    """
    mechanism = Laplace.of(setting)
    wrong = UsageError("laplace is for embeddings: give a folder of monitor hear, not recordings")
    if frames.is_file() and not is_frames(frames) and frames.suffix.lower() not in (".csv", ".tsv"):
        raise wrong
    found = find(frames) if speaker is None else find(frames, speaker=speaker)
    if not all(is_frames(recording.path) for recording in found.recordings):
        raise wrong
    wanted = orders(found, frames, output)
    if (output / MANIFEST).exists() and not replace:
        raise StoreError(f"{output} holds frames already; give --replace")
    write_manifest(output, wanted)
    seed = secrets.randbits(128) if seed is None else seed
    problems, skipped, left_out = list(found.problems), set(), set()
    counts: dict[str, tuple[int, float]] = {}
    with progress_over(len(wanted), "protecting") as step:
        for order in wanted:
            step(order.source.name, 1)
            try:
                source = FramesFile(order.source)
                tracks = source.brings.tracks
                kept = {name: spec for name, spec in tracks.items() if spec.kind.pointed}
                if not kept:
                    raise SourceError(f"{source.label}: holds no embeddings")
                name = order.target.relative_to(output).as_posix()
                made = mechanism.protect(join_runs(list(source)), tracks, name=name, seed=seed)
            except SourceError as error:
                problems.append(str(error))
                skipped.add(order)
                continue
            left_out |= tracks.keys() - kept.keys()
            order.target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_frames(
                order.target,
                made.speech,
                made.tracks,
                {name: spec.size for name, spec in kept.items()},
                {name: spec.frame_seconds for name, spec in kept.items()},
                networks={name: spec.network for name, spec in kept.items()},
                noise=f"laplace:{setting}",
            )  # no hashes: they would say which recording it was
            count, seconds = counts.get(order.speaker, (0, 0.0))
            of_each = {name: len(made.tracks[name].ticks) for name in kept}
            heard = max(of_each[name] * spec.frame_seconds for name, spec in kept.items())
            counts[order.speaker] = (count + sum(of_each.values()), seconds + heard)
    if not counts:
        raise SourceError("nothing was protected: " + "; ".join(problems[:3]))
    write_manifest(output, [order for order in wanted if order not in skipped])
    spent = promises(counts, mechanism.epsilon)
    write_account(output, mechanism, spent)
    for problem in problems:
        say(f"monitor: skipped: {problem}")
    say(
        f"noise of scale {mechanism.scale:.4g} on every number of each embedding, which was "
        f"clipped to an L1 norm of {mechanism.clip:g}: epsilon {mechanism.epsilon:g} a frame"
    )
    if left_out:
        say(f"left out, since nothing is promised for them: {', '.join(sorted(left_out))}")
    tell_account(output, mechanism, spent, "frame")
    return INCOMPLETE if problems else 0
