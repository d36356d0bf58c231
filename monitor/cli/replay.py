"""monitor replay: a recording in, bits against length out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.alerting import Alerting, alert_options
from monitor.cli.each_options import Each, OneOfMany, each_options
from monitor.cli.jobs import check_not_scheduled, jobs_option, scheduler_option
from monitor.cli.jsonlog import JsonLog, jsonl_options
from monitor.cli.ledger_options import LedgerOptions, ledger_options
from monitor.cli.monitor_options import MonitorOptions, hearing_options
from monitor.cli.options import Raw, Seconds, Speed
from monitor.cli.protect_options import Protecting, protecting_options
from monitor.cli.transcript_options import Transcribing, say_unused_words, transcribing_options
from monitor.cli.web import Shown, shown_options

if TYPE_CHECKING:
    from monitor.protocols import Source

__all__ = ["command"]


@click.command("replay", short_help="Measure a recording: bits of identity against length heard.")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@hearing_options
@protecting_options
@transcribing_options
@click.option(
    "--speed",
    type=Speed(),
    default="max",
    show_default=True,
    help="As fast as possible, or K times real time.",
)
@click.option("--start", type=Seconds(), default="0", help="Begin here in the (one) recording.")
@click.option("--end", type=Seconds(), help="Stop here in the (one) recording.")
@click.option("--raw", type=Raw(), help="Headerless PCM on standard input, such as 16000:1:s16le.")
@click.option(
    "--allow-overlap",
    is_flag=True,
    help="Go on although this very audio was enrolled (its figures are far too high).",
)
@alert_options(least_speech_seconds=10.0)
@ledger_options
@jsonl_options
@click.option(
    "--plot",
    metavar="FILE.png|.svg|.pdf",
    type=click.Path(path_type=Path),
    help="Draw the curve when done.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with an interrupted run in --jsonl FILE; with --each, with --summary FILE.",
)
@each_options
@jobs_option
@scheduler_option
@shown_options
def command(
    recordings: tuple[str, ...],
    options: MonitorOptions,
    protecting: Protecting,
    transcribing: Transcribing,
    speed: float,
    start: float,
    end: float | None,
    raw: tuple[int, int, str] | None,
    allow_overlap: bool,
    alerting: Alerting,
    of_ledger: LedgerOptions,
    log: JsonLog,
    plot: Path | None,
    resume: bool,
    each: Each,
    jobs: int | None,
    shown: Shown,
) -> int:
    """Measure how many bits of identity a RECORDING discloses, second by second.

    Any format libsndfile reads (wav, flac, ogg, opus, mp3, ...), ready-made frames (.npz, .jsonl),
    or - for a WAV or raw PCM on standard input. Several recordings are heard as one long one, or
    each by itself, a folder's too (--each).

    \b
    monitor replay talk.flac --plot talk.png
    monitor replay talk.flac -p us.npz --watch me --jsonl talk.jsonl
    monitor replay talk.flac -p us.npz --watch me --protect mcadams:0.8 --plot both.png
    monitor replay talks/ --each --summary talks.csv --alert 'bits>3'
    ffmpeg -i film.mkv -f wav - | monitor replay - --alert 'bits>3'

    One bit halves the people an attacker has to consider: among 50 people 3 bits leave about 6.
    """
    from monitor.cli.inputs import open_all
    from monitor.cli.telling import Telling
    from monitor.run import Run
    from monitor.sinks.terminal import ReplayProgress
    from monitor.sources.chain import Chain
    from monitor.sources.paced import Paced

    words = transcribing.wanted(options.features)

    def opened() -> Source:
        sources = open_all(recordings, raw, start, end)
        for source in sources:
            options.check_channel(source)
        if words:
            sources = transcribing.beside(sources, recordings, start)
        chain = Chain(sources)
        return chain if math.isinf(speed) else Paced(chain, speed)

    if each.asked(
        {
            "--jsonl": log.jsonl,
            "--plot": plot,
            "--web": shown.web,
            "--ledger": of_ledger.ledger,
            "--raw": raw,
            "--speed": math.isfinite(speed),
            "--transcript": transcribing.transcript,
        }
    ):
        one = OneOfMany(
            options, protecting, alerting, transcribing, start, end, allow_overlap, shown.top or 1
        )
        return each.hear(recordings, one, jobs, resume=resume, replace=log.replace)
    check_not_scheduled("add --each")
    alerting.check_ledger(of_ledger.ledger)
    protection = protecting.protection(of_ledger.ledger)
    read = [
        *(*recordings, *options.files, *protecting.files, *transcribing.files, of_ledger.ledger),
    ]
    file = log.file(read, resume=resume)
    telling = Telling(file, plot)
    with Run(
        opened,
        lambda source: options.monitor(source, top=shown.named),
        rules=lambda monitor: alerting.rules_for(monitor, of_ledger.rules()),
        actions=alerting.actions(),
        sinks=shown.pages(alerting.thresholds),
        log=file,
        ledger=of_ledger.file(),
        until=alerting.until,
        allow_overlap=allow_overlap,
        protect=protection,
        jobs=jobs,
    ) as run:
        say_unused_words(run.monitor.features, run.source.brings.tracks, transcribing.transcript)
        telling.hear(run, ReplayProgress(run.source.seconds))
    return telling.status(run)
