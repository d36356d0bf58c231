"""monitor hear: hear a corpus once, and keep its frames."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click

from monitor.cli.help import HelpCommand
from monitor.cli.options import (
    UNKNOWN_SECONDS,
    Features,
    JobOptions,
    Seconds,
    argument,
    feature_setup,
    group,
    option,
    say,
    seconds_of,
    with_options,
)
from monitor.cli.transcript_options import (
    CorpusOptions,
    say_of_transcripts,
    say_unused_words,
)


@dataclass(frozen=True, slots=True)
class HearOptions:
    """Options of the command."""

    corpus: Path = argument("DIR|MANIFEST")
    output: Path = option(
        "-o, --output FRAMES",
        "The folder to write (private to you, files of mode 0600).",
        required=True,
    )
    features: tuple[str, ...] | None = option(
        "--features",
        "What to hear, of f0, phones, voice, and style, of the transcripts beside the recordings. "
        "[default: all but style]",
        type=Features(),
    )
    hearing: CorpusOptions = group(CorpusOptions, "Corpus")
    seconds: float | None = option(
        "--seconds S",
        "Of each recording, from its beginning, at most. [default: all of it]",
        type=Seconds(),
    )
    channel: int | None = option(
        "--channel", "Hear this channel, from 1. [default: all, mixed]", least=1
    )
    workers: JobOptions = group(JobOptions, "Processes")


@click.command(
    "hear", cls=HelpCommand, short_help="Extract the features of a corpus once, and keep them."
)
@with_options(HearOptions)
def command(asked: HearOptions) -> int:
    """Hear every recording of DIR or MANIFEST once, all features in one pass, one process a core.

    \b
    monitor hear voices/ -o frames             interrupted, it goes on where it was
    monitor enrol frames -o us.npz            as from the corpus itself, in no time
    monitor calibrate frames -o us.npz

    FRAMES keeps the layout of the corpus (layouts as for enrol), with a manifest.csv, and takes
    its place: a recording enrolled from it is known again when its audio is replayed, and what a
    manifest says of speakers (gender, age) is kept for --group-by. What is there
    and whole is not heard again, unless the recording, the options or the program's version have
    changed; --features that are not there yet are added to those that are. A file that is broken
    is named and skipped (exit status 4).

    Frames are biometric data, even without the audio: pitch, phones and embeddings, moment by
    moment. They are written for you alone (mode 0600); delete them when they are not needed.
    """
    from monitor.cli.inputs import load_speaker_model, plan_of
    from monitor.cli.options import progress_over
    from monitor.corpus import find, read_speaker_attributes
    from monitor.errors import MonitorError, SourceError, UsageError
    from monitor.features.registry import caveats, defaults
    from monitor.jobs import cores
    from monitor.phrases import plural
    from monitor.run.status import INCOMPLETE
    from monitor.training.frames_folder import HearingOptions, keep, orders, write_manifest

    if asked.seconds is not None and not asked.seconds:
        raise UsageError("--seconds 0 hears nothing")
    corpus = asked.hearing.of(find(asked.corpus))
    wanted = orders(corpus, asked.corpus, asked.output)
    setup = feature_setup()
    manner = HearingOptions(
        asked.features or defaults(setup=setup), asked.seconds, asked.channel, setup
    )
    for line in plan_of(corpus, f"; {', '.join(manner.features)} into {asked.output}"):
        say(line)
    say_unused_words(manner.features)
    load_speaker_model(manner.features, [order.source for order in wanted])
    most = asked.seconds or float("inf")
    lengths = {order: min(seconds_of(order.source) or UNKNOWN_SECONDS, most) for order in wanted}
    wanted.sort(key=lambda order: -lengths[order])  # else the last process works alone
    workers = asked.workers.asked() or cores()
    listed = sorted(wanted, key=lambda order: order.target)
    attributes = read_speaker_attributes(asked.corpus)
    write_manifest(asked.output, listed, attributes)
    began, seconds, problems, skipped = time.monotonic(), [], list(corpus.problems), set()
    messages: list[str] = []
    try:
        with (
            progress_over(sum(lengths.values()) / 60, "hearing", "min") as step,
            closing(keep(wanted, manner, workers, asked.output)) as results,
        ):
            for outcome in results:
                step(outcome.order.source.name, lengths[outcome.order] / 60)
                seconds.append(outcome.seconds)
                problems += [outcome.problem] if outcome.problem else []
                messages += outcome.messages
                if not outcome.is_complete:
                    skipped.add(outcome.order)
    except (KeyboardInterrupt, MonitorError):
        say("monitor: what was heard is kept; to go on, run the same command again")
        raise
    if len(skipped) == len(wanted):
        raise SourceError("nothing could be heard: " + "; ".join(problems[:3]))
    write_manifest(asked.output, [order for order in listed if order not in skipped], attributes)
    for problem in problems:
        say(f"monitor: skipped: {problem}")
    say_of_transcripts([*caveats(manner.features), *messages])
    took, total = time.monotonic() - began, sum(seconds)
    unchanged = len(wanted) - len(skipped) - sum(map(bool, seconds))
    say(
        f"heard {plural(sum(map(bool, seconds)), 'recording')} ({total / 60:.1f} min, "
        f"{total / took:.0f} times real time); {unchanged} there already; {asked.output} "
        "is biometric: keep it private"
    )
    return INCOMPLETE if problems else 0
