"""monitor protect of frames: Laplace noise on embeddings and tokens, and its guarantee."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from monitor.anonymisers.laplace import (
    EVERYBODY_BITS,
    Laplace,
    PrivacyGuarantee,
    empty_after,
    promises,
)
from monitor.cli.options import progress_over, say
from monitor.corpus import find
from monitor.errors import SourceError, StoreError, UsageError
from monitor.features.framing import join_runs
from monitor.features.phones import Tokens
from monitor.files import csv_text, make_folder, write_text
from monitor.kinds import FeatureSpec
from monitor.networks.usc import shipped_codec
from monitor.phrases import plural
from monitor.run import INCOMPLETE
from monitor.sources.frames import FramesFile, Header, write_frames
from monitor.sources.registry import is_frames
from monitor.training.frames_folder import (
    MANIFEST,
    ExtractionOptions,
    ExtractionTask,
    extract_features,
    orders,
    write_manifest,
)
from monitor.types import Frames

ACCOUNT = "accounting.csv"  # file of the guarantees, in the output folder
_EXAMPLE = "tokens:15 (epsilon of each token). Without noise, use monitor enrol --features tokens"
_Protect: TypeAlias = Callable[[ExtractionTask, str], tuple[Frames, Mapping[str, FeatureSpec]]]
"""Makes a task's frames with noise, and their specs, from the task and its name in the folder."""


def protect_frames(
    source: Path,
    output: Path,
    name: str,
    setting: str,
    *,
    speaker: str | None,
    seed: int | None,
    replace: bool,
) -> int:
    """Write recordings as noisy tokens (``tokens``), or frames with noisy embeddings (``laplace``).

    Returns the exit status.
    """
    seed = secrets.randbits(128) if seed is None else seed
    left_out: set[str] = set()
    if name == "tokens":
        network = shipped_codec()
        try:
            mechanism = Laplace(float(setting), network.books.clip)
        except ValueError:
            raise UsageError(
                f"{setting!r} is not a setting such as {_EXAMPLE} --frames DIR"
            ) from None
        unit = "token"
        what = "tokens of 40 ms, each chosen by a query with noise of scale {}, clipped"
    else:
        mechanism = Laplace.parse(setting)
        unit = "frame"
        what = "noise of scale {} on every number of each embedding, which was clipped"

    def make_tokens(order: ExtractionTask, label: str) -> tuple[Frames, Mapping[str, FeatureSpec]]:
        feature = Tokens(network, mechanism.epsilon, (seed, label))
        spec = feature.spec
        return extract_features(order.source, [feature], ExtractionOptions((spec.name,))), {
            spec.name: spec
        }

    def add_noise(order: ExtractionTask, label: str) -> tuple[Frames, Mapping[str, FeatureSpec]]:
        assert isinstance(order.source, Path)
        file = FramesFile(order.source)
        tracks = file.stream_info.tracks
        embeddings = {key: spec for key, spec in tracks.items() if spec.kind.pointed}
        if not embeddings:
            raise SourceError(f"{file.label}: no embeddings")
        left_out.update(tracks.keys() - embeddings.keys())
        frames = join_runs(list(file))
        return mechanism.protect(frames, tracks, name=label, seed=seed), embeddings

    corpus_orders, problems = _find_orders(source, output, speaker, of_frames=name == "laplace")
    if (output / MANIFEST).exists() and not replace:
        raise StoreError(f"{output} already contains frames: use --replace")
    spent = _write_noisy(
        output, corpus_orders, make_tokens if name == "tokens" else add_noise,
        mechanism=mechanism, noise=f"{name}:{setting}", problems=problems,
    )  # fmt: skip
    say(
        f"{what.format(f'{mechanism.scale:.4g}')} to an L1 norm of {mechanism.clip:.4g}: epsilon "
        f"{mechanism.epsilon:g} per {unit}"
    )
    if left_out:
        say(f"left out, without a guarantee: {', '.join(sorted(left_out))}")
    _print_account(output, mechanism, spent, unit)
    return INCOMPLETE if problems else 0


def _find_orders(
    source: Path, output: Path, speaker: str | None, *, of_frames: bool
) -> tuple[list[ExtractionTask], list[str]]:
    """Find the tasks and problems; refuse recordings in place of frames, or the reverse."""
    wrong = UsageError("laplace is for embeddings: use a folder of frames, not recordings")
    tables = (".csv", ".tsv")
    if of_frames and source.is_file() and not is_frames(source) and source.suffix not in tables:
        raise wrong
    corpus = find(source) if speaker is None else find(source, speaker=speaker)
    frames = [is_frames(recording.path) for recording in corpus.recordings]
    if of_frames and not all(frames):
        raise wrong
    if not of_frames and any(frames):
        raise UsageError("tokens are made from recordings, not from frames")
    return orders(corpus, source, output), list(corpus.problems)


def _write_noisy(
    output: Path,
    wanted: Sequence[ExtractionTask],
    protect: _Protect,
    *,
    mechanism: Laplace,
    noise: str,
    problems: list[str],
) -> list[PrivacyGuarantee]:
    """Write all noisy frames, with a manifest and the account; return each speaker's guarantee."""
    write_manifest(output, wanted)
    skipped = set()
    counts: dict[str, tuple[int, float]] = {}
    with progress_over(len(wanted), "protecting") as step:
        for order in wanted:
            step(order.source.name, 1)
            try:
                noisy, specs = protect(order, order.target.relative_to(output).as_posix())
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
            )  # no hashes, since they would identify the recording
            count, seconds = counts.get(order.speaker, (0, 0.0))
            frames = {name: len(noisy.tracks[name].ticks) for name in specs}
            speech_seconds = max(frames[name] * spec.frame_seconds for name, spec in specs.items())
            counts[order.speaker] = (count + sum(frames.values()), seconds + speech_seconds)
    if not counts:
        raise SourceError("nothing was protected: " + "; ".join(problems[:3]))
    write_manifest(output, [order for order in wanted if order not in skipped])
    spent = promises(counts, mechanism.epsilon)
    _write_account(output, mechanism, spent)
    say(*(f"monitor: skipped: {problem}" for problem in problems))
    return spent


def _write_account(folder: Path, mechanism: Laplace, spent: Sequence[PrivacyGuarantee]) -> None:
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


def _print_account(
    folder: Path, mechanism: Laplace, spent: Sequence[PrivacyGuarantee], unit: str
) -> None:
    """Print the guarantee, and how soon it becomes vacuous."""
    largest = max(spent, key=lambda promise: promise.spent.trials)
    bounds = largest.spent
    beats = bounds.advanced_nats < bounds.basic_nats
    say(
        f"{largest.speaker}'s {plural(bounds.trials, unit)} ({largest.seconds:.0f} s of speech) "
        f"have epsilon {bounds.basic_nats:.4g} by basic composition, and {bounds.optimal_nats:.4g} "
        f"by optimal (delta {largest.delta:g}); advanced "
        + (f"{bounds.advanced_nats:.4g}" if beats else "is no better than basic")
    )
    empty = sum(promise.empty for promise in spent)
    limit = plural(empty_after(mechanism.epsilon), unit)
    if empty:
        say(
            f"The bound is vacuous for {empty} of {plural(len(spent), 'speaker')}. From {limit} "
            f"on it allows {EVERYBODY_BITS:.0f} bits of evidence, enough to single out one person "
            "alive."
        )
    else:
        say(f"no attacker has more than {largest.most_bits:.3g} bits of evidence; from {limit} "
            f"on the guarantee would be vacuous ({EVERYBODY_BITS:.0f} bits)")  # fmt: skip
    say(
        f"{folder / ACCOUNT} has one row per speaker. The timing of speech is not protected. "
        "Another release of the same speech spends as much again."
    )
