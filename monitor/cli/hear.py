"""monitor hear: hear a corpus once, and keep its frames."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import click

from monitor.cli.options import (
    UNKNOWN_SECONDS,
    Features,
    Seconds,
    ecapa_option,
    jobs_option,
    say,
    scheduled,
    scheduler_option,
    seconds_of,
    speaker_model_option,
)
from monitor.cli.transcript_options import (
    in_transcript_option,
    say_of_transcripts,
    say_unused_words,
    with_speaker,
    word_list_option,
)


@click.command("hear", short_help="Hear a corpus once, and keep its frames for later.")
@click.argument("corpus", type=click.Path(path_type=Path), metavar="DIR|MANIFEST")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FRAMES",
    help="The folder to write (private to you, files of mode 0600).",
)
@click.option(
    "--features",
    type=Features(),
    help="What to hear, of f0, phones, voice, identity, and style, of the transcripts beside the "
    "recordings. [default: all but style; of voice and identity the better one that is there]",
)
@ecapa_option
@speaker_model_option
@in_transcript_option
@word_list_option
@click.option(
    "--seconds",
    type=Seconds(),
    metavar="S",
    help="Of each recording, from its beginning, at most. [default: all of it]",
)
@click.option(
    "--channel",
    type=click.IntRange(min=1),
    help="Hear this channel, from 1. [default: all, mixed]",
)
@jobs_option
@scheduler_option
def command(
    corpus: Path,
    output: Path,
    features: tuple[str, ...] | None,
    speaker_in_transcript: str | None,
    seconds: float | None,
    channel: int | None,
    jobs: int | None,
) -> int:
    """Hear every recording of DIR or MANIFEST once, all features in one pass, one process a core.

    \b
    monitor hear voices/ -o frames             interrupted, it goes on where it was
    monitor enroll frames -o us.npz            as from the corpus itself, in no time
    monitor calibrate frames -o us.npz

    FRAMES keeps the layout of the corpus (layouts as for enroll), with a manifest.csv, and takes
    its place: a recording enrolled from it is known again when its audio is replayed, and what a
    manifest says of speakers (gender, age) is kept for --group-by. What is there
    and whole is not heard again, unless the recording, the options or the program's version have
    changed; --features that are not there yet are added to those that are. A file that is broken
    is named and skipped (exit status 4).

    Frames are biometric data, even without the audio: pitch, phones and embeddings, moment by
    moment. They are written for you alone (mode 0600); delete them when they are not needed.
    """
    from monitor.cli.inputs import load_identity, plan_of
    from monitor.cli.options import progress_over
    from monitor.corpus.finding import find, said_of_speakers
    from monitor.errors import MonitorError, SourceError, UsageError
    from monitor.features.registry import caveats, defaults
    from monitor.jobs import cores
    from monitor.phrases import plural
    from monitor.run.status import INCOMPLETE
    from monitor.training.frames_folder import HearingOptions, keep, orders, write_manifest

    if seconds is not None and not seconds:
        raise UsageError("--seconds 0 hears nothing")
    found = with_speaker(find(corpus), speaker_in_transcript)
    wanted = orders(found, corpus, output)
    manner = HearingOptions(features or defaults(), seconds, channel)
    for line in plan_of(found, f"; {', '.join(manner.features)} into {output}"):
        say(line)
    say_unused_words(manner.features)
    load_identity(manner.features, [order.source for order in wanted])
    lengths = {order: _length(order.source, seconds) for order in wanted}
    wanted.sort(key=lambda order: -lengths[order])  # else the last process works alone
    workers = scheduled(jobs) or cores()
    listed = sorted(wanted, key=lambda order: order.target)
    said = said_of_speakers(corpus)
    write_manifest(output, listed, said)
    began, heard, problems, skipped = time.monotonic(), [], list(found.problems), set()
    told: list[str] = []
    try:
        with (
            progress_over(sum(lengths.values()) / 60, "hearing", "min") as step,
            closing(keep(wanted, manner, workers, output)) as results,
        ):
            for kept in results:
                step(kept.order.source.name, lengths[kept.order] / 60)
                heard.append(kept.seconds)
                problems += [kept.problem] if kept.problem else []
                told += kept.told
                if not kept.whole:
                    skipped.add(kept.order)
    except (KeyboardInterrupt, MonitorError):
        say("monitor: what was heard is kept; to go on, run the same command again")
        raise
    if len(skipped) == len(wanted):
        raise SourceError("nothing could be heard: " + "; ".join(problems[:3]))
    write_manifest(output, [order for order in listed if order not in skipped], said)
    for problem in problems:
        say(f"monitor: skipped: {problem}")
    say_of_transcripts([*caveats(manner.features), *told])
    took, total = time.monotonic() - began, sum(heard)
    there = len(wanted) - len(skipped) - sum(map(bool, heard))
    say(
        f"heard {plural(sum(map(bool, heard)), 'recording')} ({total / 60:.1f} min, "
        f"{total / took:.0f} times real time); {there} there already; {output} is biometric: keep "
        "it private"
    )
    return INCOMPLETE if problems else 0


def _length(path: Path, seconds: float | None) -> float:
    """Of the part that is to be heard; a guess where the header is silent."""
    return min(seconds_of(path) or UNKNOWN_SECONDS, seconds or float("inf"))
