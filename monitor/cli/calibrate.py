"""monitor calibrate: learn what a rank means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from monitor.cli.help import Command
from monitor.cli.options import (
    MOST_REPLICATES,
    Features,
    JobOptions,
    Numbers,
    argument,
    check_output,
    feature_setup,
    given,
    group,
    made_console,
    option,
    say,
    shared,
    trained_by_feature,
    trained_option,
    unlocked,
)
from monitor.cli.transcript_options import (
    CorpusOptions,
    say_of_transcripts,
    say_unused_words,
)

# --- The calibration table, for people.

_COLUMNS = (
    ("T s", "T", "g"),
    ("D s", "D", "g"),
    ("session", "session", ""),
    ("speakers", "speakers", "d"),
    ("N", "candidates", "d"),
    ("trials", "trials", "d"),
    ("alpha", "alpha", ".3g"),
    ("beta", "beta", ".3g"),
    ("MeanD raw", "mean_bits_raw", ".2f"),
    ("M-M", "mean_bits_miller_madow", ".2f"),
    ("model", "mean_bits_model", ".2f"),
    ("limits", ("mean_bits_low", "mean_bits_high"), ".2f"),
    ("null", ("null_low", "null_high"), ".2f"),
    ("IdR", "identification_rate", ".2f"),
    ("StDD", "std_bits", ".2f"),
    ("MaxD", "max_bits", ".2f"),
    ("@rank", "max_rank", "d"),
    ("Spread", "spread", ".2f"),
    ("KL", "kl_bits", ".3f"),
    ("rank-1", "rank1_match_bits", ".2f"),
    ("local", "held_out_local_bits", ".2f"),
    ("ECE", "calibration_error", ".2f"),
    ("impostors", "open_set_area", ".2f"),
    ("evidence", "evidence_bits", ".1f"),
    ("support", "support_bits", ".1f"),
    ("invariance", "invariance_bits", ".1f"),
    ("Cllr", "evidence_cllr", ".2f"),
    ("least", "evidence_min_cllr", ".2f"),
    ("LR of others", ("others_mean_ratio_low", "others_mean_ratio_high"), ".2f"),
    ("enrolled", "enrolled_area", ".2f"),
    ("notes", "notes", ""),
)


_FIRST_TO_GO = (
    *("invariance", "LR of others", "least", "Cllr", "enrolled"),
    *("@rank", "MaxD", "Spread", "rank-1", "KL", "StDD", "alpha", "beta", "M-M", "MeanD raw"),
    *("impostors", "support", "evidence", "trials", "ECE", "IdR", "N", "speakers"),
)
"""Columns that a narrow terminal does without, in this order."""
_PIPED = 100
"""Columns of text where there is no terminal to ask."""
_LEGEND = {
    "T s": "speech seconds of the test",
    "D s": "of the template",
    "alpha": "of the rank model, with beta",
    "MeanD raw": "mean bits by the plain histogram of ranks",
    "M-M": "with Miller and Madow's correction",
    "model": "mean bits of a rank (MeanD) by the rank model, with 95 % interval",
    "null": "the same without evidence but the prior's",
    "IdR": "share ranked first",
    "StDD": "spread of single ranks' bits",
    "MaxD": "the largest, at @rank",
    "Spread": "share of ranks likelier than chance",
    "KL": "misfit of the rank model",
    "rank-1": "at the first rank",
    "local": "mean bits for speakers not fitted on",
    "ECE": "error of the best guess's probability",
    "impostors": "how well they are told (0.5: chance)",
    "evidence": "mean log2 likelihood ratio of the speaker, whatever the crowd",
    "support": "the most that so many people can show (ELUB)",
    "invariance": "bits up to which nobody contradicts the ratios",
    "Cllr": "cost of the ratios (1: useless)",
    "least": "what recalibration would leave of it",
    "LR of others": "mean ratio of other people (1 is allowed), 95 % interval",
    "enrolled": "impostors again, by the sum of all ratios",
}
"""What a column says."""


def print_rank_models(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one line a cell to stdout, as many columns as the terminal has room for."""
    from rich.table import Table

    console = made_console(_PIPED)
    texts = {title: [_cell(row, key, style) for row in rows] for title, key, style in _COLUMNS}
    widths = {title: max(map(len, [title, *cells])) + 2 for title, cells in texts.items()}
    left_out = []
    for title in _FIRST_TO_GO:
        if sum(widths.values()) > console.width:
            left_out.append(title)
            del widths[title]
    for feature in dict.fromkeys(row["feature"] for row in rows):
        console.print(
            f"{feature}: bits by speech seconds heard (T) and enrolled (D)", soft_wrap=True
        )
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for title, _, style in _COLUMNS:
            if title in widths:
                table.add_column(title, justify="right" if style else "left", no_wrap=True)
        for i, row in enumerate(rows):
            if row["feature"] == feature:
                table.add_row(*[texts[title][i] for title in widths])
        console.print(table)
        console.print()
    console.print(
        ". ".join(f"{title}: {words}" for title, words in _LEGEND.items() if title in widths) + "."
    )
    if left_out:
        console.print(f"Left out for want of width: {', '.join(left_out)}; --json has everything.")


def _cell(row: Mapping[str, Any], key: str | tuple[str, str], style: str) -> str:
    if isinstance(key, tuple):
        return "..".join(_cell(row, part, style) for part in key)
    value = row.get(key)
    if value is None:
        return "-"
    return ", ".join(value) if isinstance(value, list) else format(value, style)


_WORTHWHILE = 2000
"""Streams of which several processes are quicker: each takes a second or two to start."""


@dataclass(frozen=True, slots=True)
class CalibrateOptions:
    """What was asked for."""

    corpus: Path = argument("DIR|MANIFEST")
    output: Path | None = option(
        "-o, --output FILE.npz",
        "An enrolled population to put the rank models into, or a new file for them alone.",
    )
    features: tuple[str, ...] | None = option(
        "--features",
        "What to calibrate. [default: what the population in -o has, else what is installed and "
        "configured]",
        type=Features(),
    )
    hearing: CorpusOptions = group(CorpusOptions, "Corpus")
    workers: JobOptions = group(JobOptions, "Processes")
    lengths: tuple[float, ...] | None = option(
        "--lengths",
        "Test lengths T, speech seconds. [default: 0.3,1,2,3,"
        "5,10,20,30,60,120,300 as far as the corpus reaches]",
        type=Numbers(),
    )
    template_lengths: tuple[float, ...] | None = option(
        "--template-lengths",
        "Template lengths D, speech seconds. [default: 10,30,60,120,300 and the population's own]",
        type=Numbers(),
    )
    chosen: tuple[str, ...] = option(
        "--similarity FEATURE=NAME",
        "Score a feature by log-likelihood (default), hellinger, jensen-shannon, l1, l2, "
        "cosine or wasserstein; embeddings by embedding-cosine (default: average scoring) or "
        "embedding-max (max scoring).",
    )
    trainers: tuple[str, ...] = shared(trained_option)
    against: Path | None = option(
        "--cohort FILE.npz|DIR|MANIFEST",
        "Background speakers to set scores against, for the evidence in bits: those of a "
        "population, or a corpus (or frames) of people like yours. Who is enrolled or calibrates "
        "is left out. [default: the population's own, else the 219 that are shipped]",
    )
    trials: int = option("--trials", "Tests of each speaker at each length.", least=1, default=20)
    replicates: int = option(
        "--replicates",
        "How often speakers are resampled for the limits.",
        least=20,
        most=MOST_REPLICATES,
        default=200,
    )
    seed: int = option("--seed", "Of resamples and permutations.", least=0, default=0)
    no_prior: bool = option(
        "--no-prior",
        "Learn from these speakers alone. [default: the shipped rank model counts as 20 to 100 "
        "further speakers, which keeps few of them from claiming too much]",
    )
    alarms: bool = option(
        "--alarms/--no-alarms",
        "Hear each speaker as a stream of somebody else, for thresholds that hold over a whole "
        "stream (--false-alarms of `monitor replay`): of at most 100 speakers, up to 10 minutes "
        "each, under every rank model; a second for several of them. Needs a population in -o.",
        default=True,
    )
    as_json: bool = option("--json", "Print everything as JSON instead.")
    plot: Path | None = option("--plot FILE.png|.svg|.pdf", "Draw expected bits against length.")
    reliability: Path | None = option(
        "--reliability FILE.png|.svg|.pdf",
        "Draw whether probabilities come true (a reliability diagram): of all candidates given "
        "30 %, are 30 % the speaker?",
    )


@click.command("calibrate", cls=Command, short_help="Fit the models that turn scores into bits.")
@given(CalibrateOptions)
def command(asked: CalibrateOptions) -> int:
    """Learn what a rank means (the rank model) from the speakers of DIR or MANIFEST.

    That is how often the right person comes first, second and so on after so much speech, and how
    probable each candidate is. 10 speakers at least; layouts as for enroll.

    \b
    monitor calibrate voices/ -o us.npz      into the population us.npz
    monitor calibrate voices/ -o rank_model.npz     a file of its own, for replay --rank-model

    Each speaker's speech is cut into tests of T and templates of D speech seconds that do not
    overlap. Within one session (one recording, one day) a voice is easier to recognise: where
    speakers have two sessions or more, a rank model across sessions is learnt too. All limits are
    95 %, over resampled speakers. The shipped rank model is the prior of yours; few speakers alone
    claim too much. A rank model across sessions needs 10 speakers with two sessions, better 30;
    until then the shipped one stands in.

    \b
    The table (as many columns as there is room for; --json has all):
      T s, D s       speech seconds of test and template
      session        whether both are of one recording session
      speakers, N    who provide tests; candidates that each test is compared with
      trials         tests in all
      alpha, beta    the beta-binomial rank model
      MeanD raw, M-M mean bits of a rank by the histogram; with Miller and Madow's correction
      model, limits  mean bits of a rank by the rank model, and its limits
      null           the model with speakers permuted: no evidence but the prior's
      IdR            share of tests whose speaker is ranked first
      StDD, Spread   spread of the bits of single ranks; share of ranks likelier than chance
      MaxD, @rank    the most bits of a rank, and which it is
      KL, rank-1     misfit of the rank model, bits: over all ranks, at the first
      local          mean bits given to the true speaker, by a fit without that speaker
      ECE            how far the best guess is from as right as it claims
      impostors      how often an enrolled voice looks more enrolled than an impostor's
      evidence       mean evidence bits of the speaker: log2 of a likelihood ratio
      support        the most evidence bits that these people can support
      Cllr, least    cost of the ratios (1 says nothing), and after recalibration
      LR of others   mean likelihood ratio of other people, limits: 1 is allowed
      enrolled       impostors again, told by the sum of all ratios

    Evidence says what a voice gives away whatever the size of the crowd: scores are
    set against a cohort of people who are certainly not the speaker. It is measured
    on speakers whom the fit has not seen. The cohort goes into the population.
    """
    import json
    from dataclasses import replace

    from monitor.cli.inputs import calibration_minutes, check_model, load_speaker_model, plan_of
    from monitor.cli.options import progress_over
    from monitor.corpus.finding import find
    from monitor.errors import UsageError
    from monitor.features.registry import caveats
    from monitor.files import alone
    from monitor.jobs import cores
    from monitor.kinds import SIMILARITIES, unlike_networks
    from monitor.plots.canvas import check_suffix
    from monitor.population.population import Population, save_rank_models
    from monitor.population.store import store_kind
    from monitor.run.status import INCOMPLETE
    from monitor.sources.registry import is_frames
    from monitor.training.calibrating import (
        LENGTHS,
        MOST_STREAMS,
        TEMPLATE_LENGTHS,
        advice,
        calibrate,
        check_speakers,
        with_maxima,
    )
    from monitor.training.voices import cohort_from, collect

    features, setup = asked.features, feature_setup()
    lengths = asked.lengths
    template_lengths = asked.template_lengths
    for picture in (asked.plot, asked.reliability):
        if picture is not None:
            check_suffix(picture)
            check_output(picture)
    similarities = {}
    for text in asked.chosen:
        name, _, value = text.partition("=")
        if value not in SIMILARITIES:
            raise UsageError(
                f"--similarity {text!r} must be FEATURE= and one of {', '.join(SIMILARITIES)}"
            )
        similarities[name] = value
    population = None
    if asked.output is not None:
        check_output(asked.output)
        store = store_kind(asked.output) if asked.output.exists() else "rank_model"
        if store == "population":
            population = Population.load(asked.output)
            check_model(setup.speaker, population, asked.output)
            features = features or tuple(population.features)
        elif store != "rank_model":
            raise UsageError(
                f"{asked.output} is no population of this program; choose another name"
            )
    if template_lengths is None:
        own = {population.scoring().seconds} if population is not None else set()
        template_lengths = tuple(sorted({*TEMPLATE_LENGTHS, *own}))
    found = asked.hearing.of(find(asked.corpus))
    trained = trained_by_feature(
        asked.trainers, {recording.speaker for recording in found.recordings}
    )
    for line in plan_of(found):
        say(line)
    check_speakers(len(found.speakers))
    files = [recording.path for recording in found.recordings]
    load_speaker_model(features, files)
    lengths = lengths or LENGTHS
    listeners = asked.workers.for_recordings(files)
    hears = population is not None and asked.alarms
    count = listeners if isinstance(listeners, int) else 1
    minutes = calibration_minutes(
        found, features, lengths, template_lengths, count, streams=hears, setup=setup
    )
    say(minutes)
    said: list[str] = []
    with progress_over(len(found.recordings), "listening") as step:
        voices, specs, problems = collect(
            found,
            features=features,
            progress=lambda r: step(r.speaker, 1),
            jobs=listeners,
            told=said.append,
            setup=setup,
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
                f"{asked.output} has no {name} of this kind ({spec}); choose "
                "with --features, or enrol and calibrate the same kind of frames"
            )
        if mine.network != spec.network:
            what = unlike_networks(
                name, str(asked.corpus), spec.network, str(asked.output), mine.network
            )
            raise UsageError(f"{what}; enrol and calibrate with one version, or choose --features")
    if strange := sorted(trained.keys() - specs.keys()):
        raise UsageError(f"--trained {strange[0]}: calibrating {', '.join(specs)}")
    others = None if population is None else population.cohort
    left_out: tuple[str, ...] = ()
    if asked.against is not None:
        known = {voice.name for voice in voices}
        known.update(() if population is None else population.names)
        others, left_out, more = cohort_from(
            asked.against, specs, known, asked.workers.for_recordings(files), setup
        )
        problems += more
        for problem in more:
            say(f"monitor: skipped: {problem}")
    with progress_over(2 * len(lengths) * len(template_lengths), "fitting rank models") as step:
        made = calibrate(
            voices,
            specs,
            lengths=lengths,
            template_lengths=template_lengths,
            similarities=similarities,
            trained=trained,
            replicates=asked.replicates,
            trials=asked.trials,
            seed=asked.seed,
            prior=None if asked.no_prior else "shipped",
            cohort=others or "shipped",
            jobs=asked.workers.jobs,
            progress=lambda _done, _all: step("", 1),
        )
    if population is not None and asked.alarms:
        many = min(len(voices), MOST_STREAMS)
        with progress_over(many, "hearing each as somebody else") as step:
            told = with_maxima(
                population.calibrated(made),
                voices,
                trained=trained,
                seed=asked.seed,
                jobs=asked.workers.jobs
                or (cores() if many * len(made.rank_models) >= _WORTHWHILE else 1),
                progress=lambda _done, _all: step("", 1),
            )
            made = replace(made, rank_models=told.rank_models)
    if asked.output is not None:
        if population is not None:
            with alone(asked.output) as locked:
                if asked.output.exists():  # speakers may have been added meanwhile
                    population = Population.load(asked.output)
                population.calibrated(made).save(asked.output)
            if not locked:
                say(unlocked(asked.output))
        else:
            save_rank_models(asked.output, made.rank_models, made.cohort)
    if asked.as_json:
        click.echo(json.dumps({"schema": 1, "cells": list(made.rows)}, allow_nan=False, indent=1))
    else:
        print_rank_models(made.rows)
    if asked.plot is not None:
        from monitor.plots.calibration import plot_rank_models

        plot_rank_models(made.rows, asked.plot)
    if asked.reliability is not None:
        from monitor.plots.calibration import plot_reliability

        plot_reliability(made.rows, asked.reliability)
    if left_out:
        say(f"monitor: note: left out of the cohort, being known: {', '.join(left_out)}")
    for line in (*caveats(specs), *advice(made, specs)):
        say(f"monitor: note: {line}")
    if asked.output is not None:
        say(f"the rank models are in {asked.output}")
    return INCOMPLETE if problems else 0
