"""monitor protect to tokens: what may be passed on instead of sound, and what it promises."""

from __future__ import annotations

import secrets
from pathlib import Path

from monitor.cli.protect_account import tell_account
from monitor.cli.protect_noisy import Noisy, write_noisy
from monitor.cli.saying import say
from monitor.corpus.finding import find
from monitor.errors import UsageError
from monitor.features.tokens import Tokens
from monitor.networks.usc import shipped
from monitor.protectors.laplace import Laplace
from monitor.run.status import INCOMPLETE
from monitor.sources.registry import is_frames
from monitor.training.frames_folder import HearingOptions, HearingOrder, hear, orders

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
    seed = secrets.randbits(128) if seed is None else seed
    problems = list(found.problems)

    def noisy(order: HearingOrder, name: str) -> Noisy:
        feature = Tokens(network, mechanism.epsilon, (seed, name))
        spec = feature.spec
        return hear(order.source, [feature], HearingOptions((spec.name,))), {spec.name: spec}

    spent = write_noisy(
        output, wanted, noisy, mechanism=mechanism, noise=f"tokens:{setting}", replace=replace,
        problems=problems,
    )  # fmt: skip
    say(
        f"tokens of 40 ms, with noise of scale {mechanism.scale:.4g} on what each was chosen by, "
        f"clipped to an L1 norm of {mechanism.clip:.4g}: epsilon {mechanism.epsilon:g} a token"
    )
    tell_account(output, mechanism, spent, "token")
    return INCOMPLETE if problems else 0
