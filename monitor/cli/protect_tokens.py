"""monitor protect to tokens: what may be passed on instead of sound, and what it promises."""

from __future__ import annotations

import secrets
from pathlib import Path

from monitor.cli.progress import progress_over
from monitor.cli.protect_account import tell_account, write_account
from monitor.cli.saying import say
from monitor.corpus.finding import find
from monitor.errors import SourceError, StoreError, UsageError
from monitor.features.tokens import Tokens
from monitor.networks.usc import shipped
from monitor.protectors.laplace import Laplace
from monitor.protectors.promise import promises
from monitor.run.status import INCOMPLETE
from monitor.sources.frames import write_frames
from monitor.sources.registry import is_frames
from monitor.training.frames_folder import (
    MANIFEST,
    HearingOptions,
    hear,
    orders,
    write_manifest,
)

__all__ = ["protect_tokens"]

_EXAMPLE = "tokens:15 (epsilon of each token); without noise: monitor hear --features tokens"


def protect_tokens(
    voices: Path,
    output: Path,
    setting: str,
    *,
    speaker: str | None,
    seed: int | None,
    replace: bool,
) -> int:
    """Write the noisy private tokens of recordings as frames; the exit status.

    Args:
        voices: recordings.
        output: a folder.
        setting: ``EPSILON``.
        speaker: who speaks in all of it; None where the folder says so.
        seed: of the noise; None for one that nobody knows.
        replace: whether what is there may be replaced.

    Raises:
        UsageError: the setting makes no sense, or there are frames instead of recordings.
        StoreError: something is there and may not be replaced, or cannot be written.
        SourceError: nothing could be heard.
    """
    network = shipped()
    try:
        mechanism = Laplace(float(setting), network.books.clip)
    except ValueError:
        raise UsageError(f"{setting!r} is not a setting such as {_EXAMPLE}") from None
    found = find(voices) if speaker is None else find(voices, speaker=speaker)
    wanted = orders(found, voices, output)
    if any(is_frames(order.source) for order in wanted):
        raise UsageError("tokens are made of recordings, not of frames")
    if (output / MANIFEST).exists() and not replace:
        raise StoreError(f"{output} holds frames already; give --replace")
    write_manifest(output, wanted)
    seed = secrets.randbits(128) if seed is None else seed
    problems, skipped = list(found.problems), set()
    counts: dict[str, tuple[int, float]] = {}
    with progress_over(len(wanted), "protecting") as step:
        for order in wanted:
            step(order.source.name, 1)
            name = order.target.relative_to(output).as_posix()
            feature = Tokens(network, mechanism.epsilon, (seed, name))
            spec = feature.spec
            try:
                frames = hear(order.source, [feature], HearingOptions((spec.name,)))
            except SourceError as error:
                problems.append(str(error))
                skipped.add(order)
                continue
            order.target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_frames(
                order.target, frames.speech, frames.tracks, {spec.name: spec.size},
                {spec.name: spec.frame_seconds}, networks={spec.name: spec.network},
                noise=f"tokens:{setting}",
            )  # fmt: skip  # no hashes: they would say which recording it was
            count, seconds = counts.get(order.speaker, (0, 0.0))
            more = len(frames.tracks[spec.name].ticks)
            counts[order.speaker] = (count + more, seconds + more * spec.frame_seconds)
    if not counts:
        raise SourceError("nothing was protected: " + "; ".join(problems[:3]))
    write_manifest(output, [order for order in wanted if order not in skipped])
    spent = promises(counts, mechanism.epsilon)
    write_account(output, mechanism, spent)
    for problem in problems:
        say(f"monitor: skipped: {problem}")
    say(
        f"tokens of 40 ms, with noise of scale {mechanism.scale:.4g} on what each was chosen by, "
        f"clipped to an L1 norm of {mechanism.clip:.4g}: epsilon {mechanism.epsilon:g} a token"
    )
    tell_account(output, mechanism, spent, "token")
    return INCOMPLETE if problems else 0
