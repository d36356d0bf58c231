"""monitor replay: a recording in, bits against length out."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monitor.cli.alerting import Alerting, alert_options
from monitor.cli.hearing import hearing_options, jsonl_option
from monitor.cli.keeping import Keeping, ledger_options
from monitor.cli.options import Raw, Seconds, Speed, check_output
from monitor.cli.web import most_named, open_page, top_option, web_options

if TYPE_CHECKING:
    from monitor.protocols import Sink, Source

__all__ = ["command"]


@click.command("replay", short_help="Measure a recording: bits of identity against length heard.")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@hearing_options
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
    help="Go on although this very audio was enrolled (the figures flatter the attacker).",
)
@alert_options()
@ledger_options
@jsonl_option
@click.option(
    "--plot",
    metavar="FILE.png|.svg|.pdf",
    type=click.Path(path_type=Path),
    help="Draw the curve when done.",
)
@click.option("--resume", is_flag=True, help="Go on with an interrupted run in --jsonl FILE.")
@top_option
@web_options
def command(
    recordings: tuple[str, ...],
    store: str | None,
    law_file: str | None,
    watch: str | None,
    features: tuple[str, ...] | None,
    step: float,
    speed: float,
    start: float,
    end: float | None,
    channel: int | None,
    raw: tuple[int, int, str] | None,
    template_seconds: float | None,
    allow_overlap: bool,
    on_change: str,
    alerting: Alerting,
    keeping: Keeping,
    jsonl: str | None,
    plot: Path | None,
    resume: bool,
    top: int | None,
    web: tuple[str, int] | None,
    web_token: str | None,
) -> int:
    """Measure how many bits of identity RECORDING... discloses, second by second.

    Any format libsndfile reads (wav, flac, ogg, opus, mp3, ...), ready-made frames (.npz, .jsonl),
    or - for a WAV or raw PCM on standard input. Several recordings are heard as one long one.

    \b
    monitor replay talk.flac --plot talk.png
    monitor replay talk.flac -p us.npz --watch me --jsonl talk.jsonl
    ffmpeg -i film.mkv -f wav - | monitor replay - --alert 'bits>3'

    One bit halves the people an attacker has to consider: among 50 people 3 bits leave about 6.
    """
    from monitor.cli import INCOMPLETE, RAISED
    from monitor.cli.inputs import heard, identity, load_identity, offered, open_all, spare
    from monitor.errors import UsageError
    from monitor.figures.canvas import check_suffix
    from monitor.population.lawfile import load_laws
    from monitor.population.population import Population
    from monitor.sinks.jsonl import JsonLines
    from monitor.sinks.kept import Kept
    from monitor.sinks.terminal import ReplayProgress
    from monitor.sources.chain import Chain
    from monitor.sources.paced import Paced
    from monitor.stream.checkpoint import Checkpoint, state_path
    from monitor.stream.monitor import Monitor
    from monitor.stream.overlap import Provenance, session_of
    from monitor.stream.records import Tally, start_record
    from monitor.stream.run import run

    terminal = sys.stdout.isatty()
    if jsonl is None and not terminal:
        jsonl = "-"
    if resume and jsonl in (None, "-"):
        raise UsageError("--resume needs the file of the interrupted run: --jsonl FILE")
    if plot is not None:
        check_suffix(plot)
        check_output(plot)
    if jsonl is not None and jsonl != "-":
        spare(Path(jsonl), [*recordings, store, law_file])
    rules, thresholds = alerting.rules, alerting.thresholds
    rules += keeping.rules()
    actions = alerting.actions()
    sources = open_all(recordings, raw, start, end, channel)
    parts = [Provenance(Path(name), start, end) for name in recordings if name != "-"]
    population = Population.reference() if store is None else Population.load(store)
    monitor = Monitor(
        population,
        features or offered(sources, population),
        watch,
        step_seconds=step,
        session=session_of(population, parts, allow_overlap=allow_overlap),
        laws=None if law_file is None else load_laws(Path(law_file)),
        template_seconds=template_seconds,
        channel=channel,
        on_change=on_change,
        top=most_named(top, web),
    )
    chain = Chain(sources)
    monitor.check(chain)
    load_identity(monitor.features, recordings)
    source: Source = chain if math.isinf(speed) else Paced(chain, speed)
    first = start_record(monitor, chain.labels)
    first["notices"] += alerting.check(first)
    session = keeping.session(monitor, heard(recordings, start, end) if keeping.path else ())
    stateful = [] if session is None else [session]
    actions += stateful
    tally = Tally()
    log = checkpoint = None
    offset = None
    # a pipe or a device cannot be gone on with
    if jsonl not in (None, "-") and (Path(jsonl).is_file() or not Path(jsonl).exists()):
        configuration = {
            "recordings": [identity(name) for name in recordings],
            **first["fingerprint"],
            "session": monitor.recogniser.session,
            "features": list(monitor.features),
            "watch": watch,
            "step": step,
            "interval": [start, end],
            "channel": channel,
            "on_change": on_change,
            "raw": None if raw is None else list(raw),
            "template_seconds": monitor.recogniser.scoring.seconds,
            "top": most_named(top, web),
            "alerts": [rule.rule for rule in rules],
            "ledger": keeping.path is not None,
        }
        checkpoint = Checkpoint(state_path(Path(jsonl)), configuration)
        if resume:
            offset = checkpoint.load(monitor, tally, [*rules, *stateful])
    if session is not None:
        first = session.begin(first)  # may refuse: nothing has been removed or written yet
    if checkpoint is not None and not resume:
        checkpoint.remove()
    if jsonl is not None:
        log = JsonLines(jsonl, offset)
    for notice in first["notices"]:
        click.echo(f"monitor: note: {notice}", err=True)
    kept = Kept()
    sinks: list[Sink] = []
    if web is not None:
        page = open_page(web, web_token, thresholds=thresholds)
        click.echo(f"monitor: the page is at {page.url}", err=True)
        sinks.append(page)
    sinks.append(ReplayProgress(chain.seconds))
    if plot is not None or terminal:
        sinks.append(kept)
    outlets: list[Any] = [*sinks, *actions] + ([log] if log is not None else [])
    try:
        run(
            monitor,
            source,
            chain.labels,
            sinks=sinks,
            rules=rules,
            actions=actions,
            until=alerting.until,
            stateful=stateful,
            tally=tally,
            start=first,
            resumed=resume,
            log=log,
            checkpoint=checkpoint,
        )
    except KeyboardInterrupt:
        if checkpoint is not None and checkpoint.path.exists():
            click.echo("monitor: to go on later, run the same command with --resume", err=True)
        raise
    finally:
        for outlet in outlets:
            outlet.close()
    for failure in tally.failures:
        click.echo(f"monitor: not done: {failure}", err=True)
    if plot is not None:
        _draw(plot, kept, Path(jsonl) if resume and jsonl else None)
    if terminal and jsonl != "-":
        from monitor.sinks.summary import print_summary

        print_summary(kept.records)
    if tally.gaps or (session is not None and session.incomplete):
        return INCOMPLETE
    return RAISED if tally.alerts else 0


def _draw(path: Path, kept: Any, whole: Path | None) -> None:
    """Draw the run; a resumed one from its file, since only that has the beginning."""
    from monitor.figures.curve import plot_run
    from monitor.sinks.schema import read_run

    plot_run(read_run(whole) if whole is not None else kept.records, path)
