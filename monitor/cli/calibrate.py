"""monitor calibrate: learn what a rank means."""

from __future__ import annotations

from pathlib import Path

import click

from monitor.cli.jobs import jobs_option, processes, scheduler_option
from monitor.cli.options import (
    MOST_REPLICATES,
    Features,
    Numbers,
    check_output,
    ecapa_option,
    speaker_model_option,
    unlocked,
)
from monitor.cli.saying import say
from monitor.cli.trained import trained_by_feature, trained_option
from monitor.cli.transcript_options import (
    in_transcript_option,
    say_of_transcripts,
    say_unused_words,
    with_speaker,
    word_list_option,
)

__all__ = ["command"]

_WORTHWHILE = 100
"""Streams of which several processes are quicker: each takes a second or two to start."""


@click.command("calibrate", short_help="Learn what a rank among your speakers means, in bits.")
@click.argument("corpus", type=click.Path(path_type=Path), metavar="DIR|MANIFEST")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="An enrolled population to put the laws into, or a new file for them alone.",
)
@click.option(
    "--features",
    type=Features(),
    help="What to calibrate. [default: what the population in -o has, else what is installed and "
    "configured]",
)
@ecapa_option
@speaker_model_option
@in_transcript_option
@word_list_option
@jobs_option
@scheduler_option
@click.option(
    "--lengths",
    type=Numbers(),
    help="Test lengths T, speech seconds. [default: 0.3,1,2,3,"
    "5,10,20,30,60,120,300 as far as the corpus reaches]",
)
@click.option(
    "--template-lengths",
    type=Numbers(),
    help="Template lengths D, speech seconds. [default: 10,30,60,120,300 and the population's own]",
)
@click.option(
    "--similarity",
    "chosen",
    multiple=True,
    metavar="FEATURE=NAME",
    help="Score a feature by log-likelihood (default), hellinger, jensen-shannon, l1, l2, "
    "cosine or wasserstein; embeddings by embedding-cosine (default: average scoring) or "
    "embedding-max (max scoring).",
)
@trained_option
@click.option(
    "--cohort",
    "against",
    type=click.Path(path_type=Path),
    metavar="FILE.npz|DIR|MANIFEST",
    help="Background speakers to set scores against, for the evidence in bits: those of a "
    "population, or a corpus (or frames) of people like yours. Who is enrolled or calibrates is "
    "left out. [default: the population's own, else the 219 that are shipped]",
)
@click.option(
    "--trials",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    help="Tests of each speaker at each length.",
)
@click.option(
    "--replicates",
    default=200,
    show_default=True,
    type=click.IntRange(20, MOST_REPLICATES),
    help="How often speakers are resampled for the limits.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Of resamples and permutations.",
)
@click.option(
    "--no-prior",
    is_flag=True,
    help="Learn from these speakers alone. [default: the shipped law counts as 20 to 100 further "
    "speakers, which keeps few of them from claiming too much]",
)
@click.option(
    "--alarms/--no-alarms",
    default=True,
    show_default=True,
    help="Hear each speaker as a stream of somebody else, for thresholds that hold over a whole "
    "stream (--false-alarms of `monitor replay`): of at most 100 speakers, up to 10 minutes each, "
    "under every law; a few seconds a speaker. Needs a population in -o.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON instead.")
@click.option(
    "--plot",
    metavar="FILE.png|.svg|.pdf",
    type=click.Path(path_type=Path),
    help="Draw expected bits against length.",
)
@click.option(
    "--reliability",
    metavar="FILE.png|.svg|.pdf",
    type=click.Path(path_type=Path),
    help="Draw whether probabilities come true (a reliability diagram): of all candidates given "
    "30 %, are 30 % the speaker?",
)
def command(
    corpus: Path,
    output: Path | None,
    features: tuple[str, ...] | None,
    speaker_in_transcript: str | None,
    jobs: int | None,
    lengths: tuple[float, ...] | None,
    template_lengths: tuple[float, ...] | None,
    chosen: tuple[str, ...],
    trainers: tuple[str, ...],
    against: Path | None,
    trials: int,
    replicates: int,
    seed: int,
    no_prior: bool,
    alarms: bool,
    as_json: bool,
    plot: Path | None,
    reliability: Path | None,
) -> int:
    """Learn what a rank means (the rank law) from the speakers of DIR or MANIFEST.

    That is how often the right person comes first, second and so on after so much speech, and how
    probable each candidate is. 10 speakers at least; layouts as for enroll.

    \b
    monitor calibrate voices/ -o us.npz      into the population us.npz
    monitor calibrate voices/ -o law.npz     a file of its own, for replay --law

    Each speaker's speech is cut into tests of T and templates of D speech seconds that do not
    overlap. Within one session (one recording, one day) a voice is easier to recognise: where
    speakers have two sessions or more, a law across sessions is learnt too. All limits are 95 %,
    over resampled speakers. The shipped law is the prior of yours; few speakers alone claim too
    much. A law across sessions needs 10 speakers with two sessions, better 30; until then the
    shipped one stands in.

    \b
    The table (as many columns as there is room for; --json has all):
      T s, D s       speech seconds of test and template
      session        whether both are of one recording session
      speakers, N    who provide tests; candidates that each test is compared with
      trials         tests in all
      alpha, beta    the beta-binomial rank law
      MeanD raw, M-M mean bits of a rank by the histogram; with Miller and Madow's correction
      model, limits  mean bits of a rank by the law, and its limits
      null           the model with speakers permuted: no evidence but the prior's
      IdR            share of tests whose speaker is ranked first
      StDD, Spread   spread of the bits of single ranks; share of ranks likelier than chance
      MaxD, @rank    the most bits of a rank, and which it is
      KL, rank-1     misfit of the law, bits: over all ranks, at the first
      local          mean bits given to the true speaker, by a fit without that speaker
      ECE            how far the best guess is from as right as it claims
      strangers      how often an enrolled voice looks more enrolled than a stranger's
      evidence       mean evidence bits of the speaker: log2 of a likelihood ratio
      support        the most evidence bits that these people can support
      Cllr, least    cost of the ratios (1 says nothing), and after recalibration
      LR of others   mean likelihood ratio of other people, limits: 1 is allowed
      enrolled       strangers again, told by the sum of all ratios

    Evidence says what a voice gives away whatever the size of the crowd: scores are
    set against a cohort of people who are certainly not the speaker. It is measured
    on speakers whom the fit has not seen. The cohort goes into the population.
    """
    import json
    from dataclasses import replace

    from monitor.atomic import alone
    from monitor.cli.calibration_table import print_laws
    from monitor.cli.inputs import check_model, load_identity
    from monitor.cli.plan import calibration_minutes, plan_of
    from monitor.cli.progress import progress_over
    from monitor.corpus.finding import find
    from monitor.errors import UsageError
    from monitor.features.registry import caveats
    from monitor.kinds import SIMILARITIES
    from monitor.network_marks import unlike_networks
    from monitor.plots.canvas import check_suffix
    from monitor.population.lawfile import save_laws
    from monitor.population.population import Population
    from monitor.population.storing import store_kind
    from monitor.run.status import INCOMPLETE
    from monitor.sources.registry import is_frames
    from monitor.training.advice import advice
    from monitor.training.calibrating import LENGTHS, TEMPLATE_LENGTHS, calibrate
    from monitor.training.cohort import cohort_from
    from monitor.training.false_alarm_streams import MOST_STREAMS, with_maxima
    from monitor.training.voices import collect
    from monitor.workers import cores

    for picture in (plot, reliability):
        if picture is not None:
            check_suffix(picture)
            check_output(picture)
    similarities = {}
    for text in chosen:
        name, _, value = text.partition("=")
        if value not in SIMILARITIES:
            raise UsageError(
                f"--similarity {text!r} must be FEATURE= and one of {', '.join(SIMILARITIES)}"
            )
        similarities[name] = value
    population = None
    if output is not None:
        check_output(output)
        store = store_kind(output) if output.exists() else "law"
        if store == "population":
            population = Population.load(output)
            check_model(population, output)
            features = features or tuple(population.features)
        elif store != "law":
            raise UsageError(f"{output} is no population of this program; choose another name")
    if template_lengths is None:
        own = {population.scoring().seconds} if population is not None else set()
        template_lengths = tuple(sorted({*TEMPLATE_LENGTHS, *own}))
    found = with_speaker(find(corpus), speaker_in_transcript)
    trained = trained_by_feature(trainers, {recording.speaker for recording in found.recordings})
    for line in plan_of(found):
        say(line)
    files = [recording.path for recording in found.recordings]
    load_identity(features, files)
    lengths = lengths or LENGTHS
    listeners = processes(jobs, files)
    hears = population is not None and alarms
    count = listeners if isinstance(listeners, int) else 1
    say(calibration_minutes(found, features, lengths, template_lengths, count, streams=hears))
    said: list[str] = []
    with progress_over(len(found.recordings), "listening") as step:
        voices, specs, problems = collect(
            found,
            features=features,
            progress=lambda r: step(r.speaker, 1),
            jobs=listeners,
            told=said.append,
        )
    say_of_transcripts(said)
    say_unused_words(specs, specs if all(map(is_frames, files)) else ())
    for problem in problems:
        say(f"monitor: skipped: {problem}")
    templates = {} if population is None else population.features
    for name, spec in specs.items() if templates else ():
        mine = None if name not in templates else templates[name].spec
        if mine is None or (mine.kind, mine.size) != (spec.kind, spec.size):
            raise UsageError(
                f"{output} has no {name} of this kind ({spec}); choose "
                "with --features, or enrol and calibrate the same kind of frames"
            )
        if mine.network != spec.network:
            what = unlike_networks(name, str(corpus), spec.network, str(output), mine.network)
            raise UsageError(f"{what}; enrol and calibrate with one version, or choose --features")
    if strange := sorted(trained.keys() - specs.keys()):
        raise UsageError(f"--trained {strange[0]}: calibrating {', '.join(specs)}")
    others = None if population is None else population.cohort
    left_out: tuple[str, ...] = ()
    if against is not None:
        known = {voice.name for voice in voices}
        known.update(() if population is None else population.names)
        others, left_out, more = cohort_from(against, specs, known, processes(jobs, files))
        problems += more
        for problem in more:
            say(f"monitor: skipped: {problem}")
    with progress_over(2 * len(lengths) * len(template_lengths), "fitting laws") as step:
        made = calibrate(
            voices,
            specs,
            lengths=lengths,
            template_lengths=template_lengths,
            similarities=similarities,
            trained=trained,
            replicates=replicates,
            trials=trials,
            seed=seed,
            prior=None if no_prior else "shipped",
            cohort=others or "shipped",
            progress=lambda _done, _all: step("", 1),
        )
    if population is not None and alarms:
        many = min(len(voices), MOST_STREAMS)
        with progress_over(many, "hearing each as somebody else") as step:
            told = with_maxima(
                population.calibrated(made),
                voices,
                trained=trained,
                seed=seed,
                jobs=jobs or (cores() if many * len(made.laws) >= _WORTHWHILE else 1),
                progress=lambda _done, _all: step("", 1),
            )
            made = replace(made, laws=told.laws)
    if output is not None:
        if population is not None:
            with alone(output) as locked:
                if output.exists():  # speakers may have been added meanwhile
                    population = Population.load(output)
                population.calibrated(made).save(output)
            if not locked:
                say(unlocked(output))
        else:
            save_laws(output, made.laws, made.cohort)
    if as_json:
        click.echo(json.dumps({"schema": 1, "cells": list(made.rows)}, allow_nan=False, indent=1))
    else:
        print_laws(made.rows)
    if plot is not None:
        from monitor.plots.calibration import plot_laws

        plot_laws(made.rows, plot)
    if reliability is not None:
        from monitor.plots.reliability import plot_reliability

        plot_reliability(made.rows, reliability)
    if left_out:
        say(f"monitor: note: left out of the cohort, being known: {', '.join(left_out)}")
    for line in (*caveats(specs), *advice(made, specs)):
        say(f"monitor: note: {line}")
    if output is not None:
        say(f"the laws are in {output}")
    return INCOMPLETE if problems else 0
