"""monitor calibrate: fit rank models."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.help import HelpCommand
from monitor.cli.inputs import (
    check_model,
    frames_option,
    keep_frames,
    load_speaker_model,
    plan_of,
    say_of_transcripts,
)
from monitor.cli.options import (
    MOST_REPLICATES,
    Features,
    JobOptions,
    Numbers,
    argument,
    check_output,
    check_picture,
    doubles_setting,
    feature_setup,
    group,
    made_console,
    note,
    option,
    progress_over,
    say,
    setting,
    shared,
    trained_by_feature,
    trained_option,
    unlocked,
    with_options,
)
from monitor.cli.transcript_options import CorpusOptions, say_unused_words
from monitor.errors import UsageError
from monitor.run import INCOMPLETE

if TYPE_CHECKING:
    from monitor.corpus import Corpus
    from monitor.jobs import Jobs
    from monitor.kinds import FeatureSpec
    from monitor.population.cohort import Cohort
    from monitor.population.doubles import Double
    from monitor.population.population import Calibration, Population
    from monitor.training.calibrating import CalibrationSettings
    from monitor.training.voices import SpeakerSpeech


_COLUMNS = (
    ("T s", "T", "g", "speech seconds of the test"),
    ("D s", "D", "g", "of the template"),
    ("session", "session", "", ""),
    ("speakers", "speakers", "d", ""),
    ("N", "candidates", "d", ""),
    ("trials", "trials", "d", ""),
    ("alpha", "alpha", ".3g", "of the rank model, with beta"),
    ("beta", "beta", ".3g", ""),
    ("MeanD raw", "mean_bits_raw", ".2f", "mean bits by the plain histogram of ranks"),
    ("M-M", "mean_bits_miller_madow", ".2f", "with Miller and Madow's correction"),
    ("model", "mean_bits_model", ".2f",
     "mean bits of a rank (MeanD) by the rank model, with 95 % interval"),
    ("limits", ("mean_bits_low", "mean_bits_high"), ".2f", ""),
    ("null", ("null_low", "null_high"), ".2f", "the same without evidence other than the prior's"),
    ("IdR", "identification_rate", ".2f", "fraction ranked first"),
    ("StDD", "std_bits", ".2f", "spread of single ranks' bits"),
    ("MaxD", "max_bits", ".2f", "largest bits of a rank, at @rank"),
    ("@rank", "max_rank", "d", ""),
    ("Spread", "spread", ".2f", "fraction of ranks likelier than chance"),
    ("KL", "kl_bits", ".3f", "misfit of the rank model"),
    ("rank-1", "rank1_match_bits", ".2f", "bits at the first rank"),
    ("local", "held_out_local_bits", ".2f", "mean bits of left-out speakers"),
    ("ECE", "calibration_error", ".2f", "error of the best guess's probability"),
    ("impostors", "open_set_area", ".2f", "AUC against impostors (0.5: chance)"),
    ("evidence", "evidence_bits", ".1f",
     "mean log2 likelihood ratio of the speaker, whatever the crowd"),
    ("support", "support_bits", ".1f", "maximum that this many people support (ELUB)"),
    ("invariance", "invariance_bits", ".1f", "bits up to which no test contradicts the ratios"),
    ("Cllr", "evidence_cllr", ".2f", "cost of the ratios (1: useless)"),
    ("least", "evidence_min_cllr", ".2f", "the cost after recalibration"),
    ("LR of others", ("others_mean_ratio_low", "others_mean_ratio_high"), ".2f",
     "mean ratio of other people (1 is allowed), 95 % interval"),
    ("enrolled", "enrolled_area", ".2f", "the same AUC by the sum of all ratios"),
    ("notes", "notes", "", ""),
)  # fmt: skip
"""Titles, keys of a row, formats and meanings of columns."""
_FIRST_TO_GO = (
    *("invariance", "LR of others", "least", "Cllr", "enrolled"),
    *("@rank", "MaxD", "Spread", "rank-1", "KL", "StDD", "alpha", "beta", "M-M", "MeanD raw"),
    *("impostors", "support", "evidence", "trials", "ECE", "IdR", "N", "speakers"),
)
"""Columns to omit if the terminal is narrow, in this order."""
_PIPED = 100  # width in characters if standard output is not a terminal


def _legend(titles: Collection[str]) -> str:
    words = [f"{title}: {text}" for title, *_, text in _COLUMNS if text and title in titles]
    return ". ".join(words) + "."


def print_rank_models(rows: Sequence[Mapping[str, object]]) -> None:
    """Print one line per cell to stdout, with as many columns as fit the terminal."""
    from rich.table import Table

    console = made_console(_PIPED)
    texts = {title: [_cell(row, key, style) for row in rows] for title, key, style, _ in _COLUMNS}
    widths = {title: max(map(len, [title, *cells])) + 2 for title, cells in texts.items()}
    left_out = []
    for title in _FIRST_TO_GO:
        if sum(widths.values()) > console.width:
            left_out.append(title)
            del widths[title]
    for feature in dict.fromkeys(row["feature"] for row in rows):
        console.print(
            f"{feature}: bits by speech seconds of test (T) and template (D)", soft_wrap=True
        )
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for title, _, style, _ in _COLUMNS:
            if title in widths:
                table.add_column(title, justify="right" if style else "left", no_wrap=True)
        for i, row in enumerate(rows):
            if row["feature"] == feature:
                table.add_row(*[texts[title][i] for title in widths])
        console.print(table)
        console.print()
    console.print(_legend(widths))
    if left_out:
        console.print(f"Columns that did not fit (--json has all): {', '.join(left_out)}")


def _cell(row: Mapping[str, object], key: str | tuple[str, str], style: str) -> str:
    if isinstance(key, tuple):
        return "..".join(_cell(row, subkey, style) for subkey in key)
    value = row.get(key)
    if value is None:
        return "-"
    return ", ".join(value) if isinstance(value, list) else format(value, style)


_WORTHWHILE = 2000
"""Streams times rank models from which several processes, slow to start, are faster than one."""


@dataclass(frozen=True, slots=True)
class CalibrateOptions:
    """Options of monitor calibrate."""

    corpus: Path = argument("DIR|MANIFEST")
    output: Path | None = option(
        "-o, --output FILE.npz",
        "Population to add the rank models to, or a new file for them alone.",
    )
    features: tuple[str, ...] | None = option(
        "--features",
        "Features to calibrate. [default: those of the population in -o, otherwise all installed "
        "and configured]",
        type=Features(),
    )
    frames: Path | None = shared(frames_option)
    doubles: str = doubles_setting()
    corpus_options: CorpusOptions = group(CorpusOptions, "Corpus")
    workers: JobOptions = group(JobOptions, "Processes")
    lengths: tuple[float, ...] | None = option(
        "--lengths",
        "Test lengths T in speech seconds. [default: 0.3,1,2,3,5,10,20,30,60,120,300]",
        type=Numbers(),
    )
    template_lengths: tuple[float, ...] | None = option(
        "--template-lengths",
        "Template lengths D in speech seconds. [default: 10,30,60,120,300 and the population's "
        "own]",
        type=Numbers(),
    )
    trainers: tuple[str, ...] = shared(trained_option)
    against: Path | None = option(
        "--cohort FILE.npz|DIR|MANIFEST",
        "Background speakers for the evidence in bits, as a population or a corpus of similar "
        "people. Enrolled and calibration speakers are left out. [default: the population's own, "
        "otherwise the 219 shipped]",
    )
    trials: int = setting("trials", "Tests per speaker and length.", minimum=1, default=20)
    replicates: int = setting(
        "replicates",
        "Resamples of speakers for the confidence intervals.",
        minimum=20,
        maximum=MOST_REPLICATES,
        default=200,
    )
    seed: int = setting("seed", "Seed of resamples and permutations.", minimum=0, default=0)
    no_prior: bool = setting(
        "no-prior",
        "Fit these speakers alone. [default: the shipped rank model counts as 20 to 100 further "
        "speakers]",
    )
    alarms: bool = setting(
        "alarms",
        "Score each speaker's stream as an impostor, for --false-alarms of `monitor replay`. Uses "
        "at most 100 speakers and 10 minutes of each. Needs a population in -o.",
        default=True,
    )
    as_json: bool = option("--json", "Print everything as JSON.")
    plot: Path | None = option("--plot FILE.png|.svg|.pdf", "Draw expected bits against length.")
    reliability: Path | None = setting(
        "reliability FILE.png|.svg|.pdf", "Draw a reliability diagram of the probabilities."
    )


@click.command(
    "calibrate",
    cls=HelpCommand,
    short_help="Fit the models that turn scores into bits.",
    epilog="Columns of the table: " + _legend([title for title, *_ in _COLUMNS]),
)
@with_options(CalibrateOptions)
def command(options: CalibrateOptions) -> int:
    """Fit the rank model to the speakers of DIR or MANIFEST.

    At each length of speech, it gives the probability of each rank of the correct person, and
    the probability that each candidate speaks. Needs at least 10 speakers. Layouts are those of
    `monitor enrol`.

    \b
    monitor calibrate voices/ -o us.npz                    add to a population
    monitor calibrate voices/ -o us.npz --frames frames
    monitor calibrate voices/ -o rank_model.npz            for --rank-model

    Each speaker's speech is cut into tests of T and templates of D speech seconds that do not
    overlap. With at least 10 speakers (30 is better) of two sessions, a cross-session rank model is
    fitted too. Otherwise the shipped one is used. A voice is easier to recognise within one
    recording. All intervals are 95 %, over resampled speakers. The shipped rank model is the prior.
    Without it, few speakers give overconfident models.

    Evidence measures disclosure at any size of crowd. Scores are taken relative to a cohort of
    other people, and checked on speakers outside the fit. The cohort is stored in the population.

    The table shows as many columns as fit; --json has all.
    """
    from monitor.features.registry import caveats, defaults
    from monitor.population.doubles import add_second_names
    from monitor.sources.registry import is_frames
    from monitor.training.calibrating import (
        LENGTHS,
        TEMPLATE_LENGTHS,
        CalibrationSettings,
        advice,
        check_speakers,
    )

    for picture in filter(None, (options.plot, options.reliability)):
        check_picture(picture)
    population = _load_population(options)
    features = options.features or (None if population is None else tuple(population.features))
    population_lengths = set() if population is None else {population.scoring().seconds}
    template_lengths = options.template_lengths or tuple(
        sorted({*TEMPLATE_LENGTHS, *population_lengths})
    )
    corpus = options.corpus_options.find(options.corpus)
    trained = trained_by_feature(options.trainers, corpus.speakers)
    say(*plan_of(corpus))
    check_speakers(len(corpus.speakers))
    files = [recording.path for recording in corpus.recordings]
    load_speaker_model(features, files)
    jobs = options.workers.for_recordings(files)
    if options.frames is not None:
        features = tuple(features or defaults(setup=feature_setup()))
        corpus = keep_frames(corpus, options.corpus, options.frames, features, options.workers)
    voices, specs, problems, doubles = _collect(options, corpus, features, jobs)
    trained = {name: add_second_names(names, doubles) for name, names in trained.items()}
    say_unused_words(specs, specs if all(map(is_frames, files)) else ())
    if population is not None:
        _check_templates(options, population, specs)
    if unknown := sorted(trained.keys() - specs.keys()):
        raise UsageError(f"--trained {unknown[0]}: not calibrated here, only {', '.join(specs)}")
    cohort, excluded, cohort_problems = _choose_cohort(options, population, voices, specs, jobs)
    settings = CalibrationSettings(
        lengths=options.lengths or LENGTHS,
        template_lengths=template_lengths,
        trained=trained,
        replicates=options.replicates,
        trials=options.trials,
        seed=options.seed,
        prior=None if options.no_prior else "shipped",
        cohort=cohort or "shipped",
    )
    calibration = _fit(options, population, voices, specs, settings)
    _save(options, population, calibration)
    _show(options, calibration)
    if excluded:
        note(f"left out of the cohort because enrolled or calibrated: {', '.join(excluded)}")
    note(*caveats(specs), *advice(calibration, specs))
    if options.output is not None:
        say(f"the rank models are in {options.output}")
    return INCOMPLETE if problems or cohort_problems else 0


def _load_population(options: CalibrateOptions) -> Population | None:
    """Load the population in -o; None if -o is missing, new or a file of rank models."""
    from monitor.population.population import Population
    from monitor.population.store import store_kind

    if options.output is None:
        return None
    check_output(options.output)
    store = store_kind(options.output) if options.output.exists() else "rank_model"
    if store == "population":
        population = Population.load(options.output)
        check_model(feature_setup().speaker, population, options.output)
        return population
    if store != "rank_model":
        raise UsageError(
            f"{options.output} is not a population of this program: choose another name"
        )
    return None


def _collect(
    options: CalibrateOptions, corpus: Corpus, features: Sequence[str] | None, jobs: Jobs
) -> tuple[list[SpeakerSpeech], dict[str, FeatureSpec], tuple[str, ...], list[Double]]:
    from monitor.population.doubles import describe_doubles
    from monitor.training.voices import collect, doubles_of_voices, without_doubles

    messages: list[str] = []
    with progress_over(len(corpus.recordings), "listening") as step:
        voices, specs, problems = collect(
            corpus, features=features, progress=lambda recording: step(recording.speaker, 1),
            jobs=jobs, notify=messages.append, setup=feature_setup(),
        )  # fmt: skip
    say_of_transcripts(messages)
    say(*(f"monitor: skipped: {problem}" for problem in problems))
    doubles = doubles_of_voices(voices)
    note(*describe_doubles(doubles, options.doubles))
    return without_doubles(voices, doubles, options.doubles), specs, problems, doubles


def _check_templates(
    options: CalibrateOptions, population: Population, specs: Mapping[str, FeatureSpec]
) -> None:
    """Refuse features that the population lacks, or has from another network."""
    from monitor.kinds import unlike_networks

    for name, spec in specs.items():
        template = population.features.get(name)
        enrolled = None if template is None else template.spec
        if enrolled is None or (enrolled.kind, enrolled.size) != (spec.kind, spec.size):
            raise UsageError(
                f"{options.output} has no {name} of this kind ({spec}); choose "
                "with --features, or enrol and calibrate the same kind of frames"
            )
        if enrolled.network != spec.network:
            mismatch = unlike_networks(
                name, str(options.corpus), spec.network, str(options.output), enrolled.network
            )
            raise UsageError(
                f"{mismatch}; enrol and calibrate with one version, or choose --features"
            )


def _choose_cohort(
    options: CalibrateOptions,
    population: Population | None,
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    jobs: Jobs,
) -> tuple[Cohort | None, tuple[str, ...], tuple[str, ...]]:
    """Return the cohort, names excluded from it, and a line for each file that was skipped."""
    from monitor.training.voices import cohort_from

    if options.against is None:
        return None if population is None else population.cohort, (), ()
    names = {*(voice.name for voice in voices), *(() if population is None else population.names)}
    cohort, excluded, problems = cohort_from(
        options.against, specs, names, jobs, feature_setup(), options.corpus_options.columns
    )
    say(*(f"monitor: skipped: {problem}" for problem in problems))
    return cohort, excluded, problems


def _fit(
    options: CalibrateOptions,
    population: Population | None,
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    settings: CalibrationSettings,
) -> Calibration:
    """Fit rank models, and the maxima that other people's streams reach under them."""
    from monitor.jobs import cores
    from monitor.training.calibrating import calibrate
    from monitor.training.stream_maxima import MOST_STREAMS, with_maxima

    cells = 2 * len(set(settings.lengths)) * len(set(settings.template_lengths))
    with progress_over(cells, "fitting rank models") as step:
        calibration = calibrate(
            voices, specs, settings, jobs=options.workers.processes,
            progress=lambda _done, _all: step("", 1),
        )  # fmt: skip
    if population is None or not options.alarms:
        return calibration
    streams = min(len(voices), MOST_STREAMS)
    worthwhile = streams * len(calibration.rank_models) >= _WORTHWHILE
    with progress_over(streams, "scoring impostor streams") as step:
        calibrated = with_maxima(
            population.calibrated(calibration), voices, trained=settings.trained,
            seed=settings.seed, jobs=options.workers.processes or (cores() if worthwhile else 1),
            progress=lambda _done, _all: step("", 1),
        )  # fmt: skip
    return replace(calibration, rank_models=calibrated.rank_models)


def _save(
    options: CalibrateOptions, population: Population | None, calibration: Calibration
) -> None:
    from monitor.files import alone
    from monitor.population.population import Population, save_rank_models

    if options.output is None:
        return
    if population is None:
        save_rank_models(options.output, calibration.rank_models, calibration.cohort)
        return
    with alone(options.output) as locked:
        if options.output.exists():  # speakers may have been added meanwhile
            population = Population.load(options.output)
        population.calibrated(calibration).save(options.output)
    if not locked:
        say(unlocked(options.output))


def _show(options: CalibrateOptions, calibration: Calibration) -> None:
    rows = calibration.rows
    if options.as_json:
        click.echo(json.dumps({"schema": 1, "cells": list(rows)}, allow_nan=False, indent=1))
    else:
        print_rank_models(rows)
    if options.plot is not None:
        from monitor.plots.calibration import plot_rank_models

        plot_rank_models(rows, options.plot)
    if options.reliability is not None:
        from monitor.plots.calibration import plot_reliability

        plot_reliability(rows, options.reliability)
