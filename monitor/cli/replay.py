"""monitor replay: a recording in, bits against length out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.alerting import Alerting, alert_options
from monitor.cli.hearing import hearing_options, jsonl_options
from monitor.cli.jobs import WORTHWHILE_TO_REPLAY_SECONDS, jobs_option, processes
from monitor.cli.keeping import Keeping, ledger_options
from monitor.cli.opening import Opening
from monitor.cli.options import Raw, Seconds, Speed
from monitor.cli.web import most_named, top_option, web_options

if TYPE_CHECKING:
    from monitor.protocols import Source

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
    help="Go on although this very audio was enrolled (its figures are far too high).",
)
@alert_options()
@ledger_options
@jsonl_options
@click.option(
    "--plot",
    metavar="FILE.png|.svg|.pdf",
    type=click.Path(path_type=Path),
    help="Draw the curve when done.",
)
@click.option("--resume", is_flag=True, help="Go on with an interrupted run in --jsonl FILE.")
@jobs_option
@top_option
@web_options
def command(
    recordings: tuple[str, ...],
    store: str | None,
    law_file: str | None,
    watch: str | None,
    features: tuple[str, ...] | None,
    among: tuple[int, ...] | None,
    enrolled_prior: float,
    bystanders: float | None,
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
    replace: bool,
    plot: Path | None,
    resume: bool,
    jobs: int | None,
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
    from monitor.cli.inputs import (
        check_computed,
        check_model,
        fingerprints,
        heard,
        offered,
        open_all,
        with_laws_of,
    )
    from monitor.phrases import file_name
    from monitor.population.population import Population
    from monitor.sinks.terminal import ReplayProgress
    from monitor.sources.chain import Chain
    from monitor.sources.file import File
    from monitor.sources.paced import Paced
    from monitor.stream.monitor import Monitor
    from monitor.stream.overlap import Provenance, session_of

    with Opening(
        jsonl=jsonl,
        replace=replace,
        resume=resume,
        plot=plot,
        reads=[*recordings, store, law_file],
        alerting=alerting,
        keeping=keeping,
        web=web,
        token=web_token,
    ) as opening:
        sources = open_all(recordings, raw, start, end, channel)
        known = fingerprints(recordings)
        parts = [Provenance(Path(name), start, end, hashes) for name, hashes in known.items()]
        population = Population.reference() if store is None else Population.load(store)
        population, laws = with_laws_of(population, law_file)
        check_model(population, store)
        monitor = Monitor(
            population,
            features or offered(sources, population),
            watch,
            among=among,
            enrolled_prior=enrolled_prior,
            bystanders=bystanders,
            step_seconds=step,
            session=session_of(population, parts, allow_overlap=allow_overlap),
            laws=laws,
            template_seconds=template_seconds,
            channel=channel,
            on_change=on_change,
            top=most_named(top, web),
        )
        chain = Chain(sources)
        monitor.front_end.check(chain)
        check_computed(monitor, recordings)
        opening.begin(
            monitor,
            chain.labels,
            heard=() if keeping.path is None else heard(known, start, end),
            configuration={
                "recordings": [[file_name(name), *known.get(name, ())] for name in recordings],
                "session": monitor.attacker.session,
                "features": list(monitor.features),
                "watch": watch,
                # a run that was begun before there were these is resumed without them
                "among": None if among is None else list(among),
                "bystanders": bystanders,
                "enrolled_prior": None if enrolled_prior == 0.5 else enrolled_prior,
                "step": step,
                "interval": [start, end],
                "channel": channel,
                "on_change": on_change,
                "raw": None if raw is None else list(raw),
                "template_seconds": monitor.attacker.scoring.seconds,
                "top": most_named(top, web),
            },
        )
        source: Source = chain if math.isinf(speed) else Paced(chain, speed)
        files = [each for each in sources if isinstance(each, File)]
        many = processes(jobs, [file.path for file in files], WORTHWHILE_TO_REPLAY_SECONDS)
        if many > 1 and files == sources and source is chain:
            from monitor.stream.ahead import HeardAhead

            source = opening.enter_context(
                HeardAhead(
                    files,
                    monitor.features,
                    jobs=many,
                    interval=(start, end),
                    channel=channel,
                    levels=on_change != "ignore",
                    skip=monitor.ticks,
                )
            )
        opening.run(source, ReplayProgress(chain.seconds))
    return opening.status()
