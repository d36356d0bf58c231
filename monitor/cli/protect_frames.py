"""monitor protect of frames: Laplace noise on embeddings, and what it promises."""

from __future__ import annotations

import secrets
from pathlib import Path

from monitor.cli.protect_account import tell_account
from monitor.cli.protect_noisy import Noisy, write_noisy
from monitor.cli.saying import say
from monitor.corpus.finding import find
from monitor.errors import SourceError, UsageError
from monitor.features.tracks import join_runs
from monitor.protectors.laplace import Laplace
from monitor.run.status import INCOMPLETE
from monitor.sources.frames import FramesFile
from monitor.sources.registry import is_frames
from monitor.training.frames_folder import HearingOrder, orders

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
    seed = secrets.randbits(128) if seed is None else seed
    problems, left_out = list(found.problems), set()

    def noisy(order: HearingOrder, name: str) -> Noisy:
        source = FramesFile(order.source)
        tracks = source.brings.tracks
        kept = {name: spec for name, spec in tracks.items() if spec.kind.pointed}
        if not kept:
            raise SourceError(f"{source.label}: holds no embeddings")
        made = mechanism.protect(join_runs(list(source)), tracks, name=name, seed=seed)
        left_out.update(tracks.keys() - kept.keys())
        return made, kept

    spent = write_noisy(
        output, wanted, noisy, mechanism=mechanism, noise=f"laplace:{setting}", replace=replace,
        problems=problems,
    )  # fmt: skip
    say(
        f"noise of scale {mechanism.scale:.4g} on every number of each embedding, which was "
        f"clipped to an L1 norm of {mechanism.clip:g}: epsilon {mechanism.epsilon:g} a frame"
    )
    if left_out:
        say(f"left out, since nothing is promised for them: {', '.join(sorted(left_out))}")
    tell_account(output, mechanism, spent, "frame")
    return INCOMPLETE if problems else 0
