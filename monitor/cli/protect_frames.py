"""monitor protect of frames: Laplace noise on embeddings, and what it promises."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from monitor.anonymisers.laplace import EVERYBODY_BITS, Laplace, Promise, empty_after, promises
from monitor.cli.options import progress_over, say
from monitor.corpus import find
from monitor.errors import SourceError, StoreError, UsageError
from monitor.features.framing import join_runs
from monitor.features.phones import Tokens
from monitor.files import csv_text, make_folder, write_text
from monitor.kinds import FeatureSpec
from monitor.networks.usc import shipped_codec
from monitor.phrases import plural
from monitor.run.status import INCOMPLETE
from monitor.sources.frames import FramesFile, Header, write_frames
from monitor.sources.registry import is_frames
from monitor.training.frames_folder import (
    MANIFEST,
    HearingOptions,
    HearingOrder,
    hear,
    orders,
    write_manifest,
)
from monitor.types import Frames

# --- What noise on frames promises of each speaker: a table in a file, and a few lines for people.

ACCOUNT = "accounting.csv"
"""The file with what is promised, in the folder that is written."""


def write_account(folder: Path, mechanism: Laplace, spent: Sequence[Promise]) -> None:
    """Write the account, a line a speaker."""
    head = (
        *("speaker", "frames", "seconds", "epsilon_nats", "clip", "noise_scale", "delta"),
        *("basic_nats", "advanced_nats", "optimal_nats", "most_evidence_bits"),
    )
    rows = (
        [promise.speaker, promise.spent.trials, f"{promise.seconds:g}", f"{mechanism.epsilon:g}",
         f"{mechanism.clip:g}", f"{mechanism.scale:.6g}", f"{promise.delta:g}",
         f"{promise.spent.basic_nats:.6g}", f"{promise.spent.advanced_nats:.6g}",
         f"{promise.spent.optimal_nats:.6g}", f"{promise.most_bits:.6g}"]
        for promise in spent
    )  # fmt: skip
    write_text(csv_text(head, rows), folder / ACCOUNT)


def tell_account(folder: Path, mechanism: Laplace, spent: Sequence[Promise], unit: str) -> None:
    """Say what is promised, and that it is soon nothing."""
    most = max(spent, key=lambda promise: promise.spent.trials)
    bounds = most.spent
    beats = bounds.advanced_nats < bounds.basic_nats
    say(
        f"all {plural(bounds.trials, unit)} of {most.speaker} ({most.seconds:.0f} s of speech) "
        f"together: epsilon {bounds.basic_nats:.4g} by basic composition, "
        f"{bounds.optimal_nats:.4g} by optimal (delta {most.delta:g}); advanced "
        + (f"{bounds.advanced_nats:.4g}" if beats else "is no better than basic")
    )
    empty = sum(promise.empty for promise in spent)
    limit = plural(empty_after(mechanism.epsilon), unit)
    if empty:
        say(
            f"the bound is vacuous for {empty} of {plural(len(spent), 'speaker')}: from {limit} on "
            f"it allows {EVERYBODY_BITS:.0f} bits of evidence, which tell one from all others alive"
        )
    else:
        say(f"no attacker has more than {most.most_bits:.3g} bits of evidence; from {limit} on the "
            f"promise would be empty ({EVERYBODY_BITS:.0f} bits)")  # fmt: skip
    say(
        f"{folder / ACCOUNT} has it for each speaker; when there is speech is not protected, and "
        "one more release of the same speech spends as much again"
    )


# --- Writes frames with noise for many recordings, and what they promise of each speaker.

Noisy: TypeAlias = tuple[Frames, Mapping[str, FeatureSpec]]
"""Frames with noise, and what they look like."""


def write_noisy(
    output: Path,
    wanted: Sequence[HearingOrder],
    make: Callable[[HearingOrder, str], Noisy],
    *,
    mechanism: Laplace,
    noise: str,
    replace: bool,
    problems: list[str],
) -> list[Promise]:
    """Write them all, with a manifest and the account; return the promise to each speaker."""
    if (output / MANIFEST).exists() and not replace:
        raise StoreError(f"{output} holds frames already; give --replace")
    write_manifest(output, wanted)
    skipped = set()
    counts: dict[str, tuple[int, float]] = {}
    with progress_over(len(wanted), "protecting") as step:
        for order in wanted:
            step(order.source.name, 1)
            try:
                noisy, specs = make(order, order.target.relative_to(output).as_posix())
            except SourceError as error:
                problems.append(str(error))
                skipped.add(order)
                continue
            make_folder(order.target.parent)
            write_frames(
                order.target,
                noisy.speech,
                noisy.tracks,
                {name: spec.size for name, spec in specs.items()},
                {name: spec.frame_seconds for name, spec in specs.items()},
                networks={name: spec.network for name, spec in specs.items()},
                header=Header(noise=noise),
            )  # no hashes: they would say which recording it was
            count, seconds = counts.get(order.speaker, (0, 0.0))
            of_each = {name: len(noisy.tracks[name].ticks) for name in specs}
            speech_seconds = max(of_each[name] * spec.frame_seconds for name, spec in specs.items())
            counts[order.speaker] = (count + sum(of_each.values()), seconds + speech_seconds)
    if not counts:
        raise SourceError("nothing was protected: " + "; ".join(problems[:3]))
    write_manifest(output, [order for order in wanted if order not in skipped])
    spent = promises(counts, mechanism.epsilon)
    write_account(output, mechanism, spent)
    for problem in problems:
        say(f"monitor: skipped: {problem}")
    return spent


# --- monitor protect to tokens: what may be passed on instead of sound, and what it promises.

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
    """Write the noisy private tokens of recordings as frames; return the exit status."""
    network = shipped_codec()
    try:
        mechanism = Laplace(float(setting), network.books.clip)
    except ValueError:
        raise UsageError(f"{setting!r} is not a setting such as {_EXAMPLE}") from None
    corpus = find(voices) if speaker is None else find(voices, speaker=speaker)
    wanted = orders(corpus, voices, output)
    if any(is_frames(order.source) for order in wanted):
        raise UsageError("tokens are made of recordings, not of frames")
    seed = secrets.randbits(128) if seed is None else seed
    problems = list(corpus.problems)

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


def protect_frames(
    frames: Path,
    output: Path,
    setting: str,
    *,
    speaker: str | None,
    seed: int | None,
    replace: bool,
) -> int:
    """Write a folder of ``monitor hear`` with noise on its embeddings; return the exit status."""
    mechanism = Laplace.parse(setting)
    wrong = UsageError("laplace is for embeddings: give a folder of monitor hear, not recordings")
    if frames.is_file() and not is_frames(frames) and frames.suffix.lower() not in (".csv", ".tsv"):
        raise wrong
    corpus = find(frames) if speaker is None else find(frames, speaker=speaker)
    if not all(is_frames(recording.path) for recording in corpus.recordings):
        raise wrong
    wanted = orders(corpus, frames, output)
    seed = secrets.randbits(128) if seed is None else seed
    problems, left_out = list(corpus.problems), set()

    def noisy(order: HearingOrder, name: str) -> Noisy:
        source = FramesFile(order.source)
        tracks = source.stream_info.tracks
        embeddings = {name: spec for name, spec in tracks.items() if spec.kind.pointed}
        if not embeddings:
            raise SourceError(f"{source.label}: holds no embeddings")
        protected = mechanism.protect(join_runs(list(source)), tracks, name=name, seed=seed)
        left_out.update(tracks.keys() - embeddings.keys())
        return protected, embeddings

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
