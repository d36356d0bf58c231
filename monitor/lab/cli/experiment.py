"""monitor experiment: SRD's experiments on a corpus, and a page that reads like a short paper."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.help import HelpCommand
from monitor.cli.options import (
    UNKNOWN_SECONDS,
    FiniteRange,
    JobOptions,
    Numbers,
    argument,
    feature_setup,
    group,
    option,
    progress_over,
    say,
    seconds_of,
    setting,
    shared,
    trained_by_feature,
    trained_option,
    with_options,
)
from monitor.errors import SourceError, UsageError
from monitor.lab.cli import MeasureOptions
from monitor.phrases import plural, rough_time
from monitor.run import INCOMPLETE

if TYPE_CHECKING:
    from monitor.lab.experiment.material import ExperimentSettings, Material
    from monitor.virtual_files import Readable


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """Options of the command."""

    corpus: Path = argument("DIR|MANIFEST|FRAMES|SCORES.npz")
    output: Path = option(
        "-o, --output DIR", "Output folder (private to you, files of mode 0600).", required=True
    )
    measuring: MeasureOptions = group(MeasureOptions, "Options")
    template_lengths: tuple[float, ...] | None = option(
        "--template-lengths",
        "Template lengths D of the sweep in speech seconds. [default: 3 s and longer]",
        type=Numbers(),
    )
    tables_at: tuple[float, float] | None = setting(
        "tables-at T D",
        "Lengths of the tables and of figures 5 to 7. [default: 30 30, or less]",
        type=FiniteRange(min=0.0, min_open=True),
        nargs=2,
    )
    session: str = setting(
        "session",
        "Whether tests and templates are of different sessions, as far as the corpus has them.",
        type=click.Choice(("cross", "same", "both")),
        default="both",
    )
    trials: int = setting(
        "trials", "Tests per speaker and length, spread over the speech.", minimum=1, default=20
    )
    trainers: tuple[str, ...] = shared(trained_option)
    fresh: bool = option("--fresh", "Delete results of earlier runs in -o.")
    workers: JobOptions = group(JobOptions, "Options")

    def settings(self) -> ExperimentSettings:
        """Return the library's settings, without ``trained``."""
        from monitor.lab.experiment.material import SESSIONS, ExperimentSettings

        measuring = self.measuring
        return ExperimentSettings(
            measuring.features, measuring.lengths, self.template_lengths, self.tables_at,
            SESSIONS if self.session == "both" else (self.session,), self.trials,
            measuring.replicates, measuring.seed,
        )  # fmt: skip


@click.command(
    "experiment", cls=HelpCommand, short_help="Run the SRD paper's experiments on a corpus."
)
@with_options(ExperimentOptions)
def command(options: ExperimentOptions) -> int:
    """Run the experiments of "Privacy Disclosure of Similarity Rank" (SRD) on a corpus.

    \b
    monitor experiment voices/ -o out             audio
    monitor experiment frames -o out              a folder of --frames
    monitor experiment scores.npz -o out          from monitor score

    \b
    monitor experiment frames -o out --trained phones=trainers.txt --trained voice=trainers.txt

    The lengths of tests (T) and templates (D) are varied for each feature and for all together,
    within and across sessions. All cells have the same people. The folder gets SRD's Tables II and
    III, and figures 4 to 8 as SVG, PNG and CSV. index.html reports methods and findings. Each
    answer has its interval, or "Undecided, with too few speakers". results.json has
    everything.

    Finished cells are reused: a second run takes seconds, and an interrupted one continues. Frames
    of audio are kept in DIR/frames. They are biometric, so delete them when you no longer need
    them. The page contains no names. Broken files are skipped and named (exit status 4).
    """
    from monitor.jobs import cores
    from monitor.lab.experiment.cells import predict_measuring
    from monitor.lab.experiment.material import choose_panels
    from monitor.lab.experiment.running import check_folder, run_experiment

    check_folder(options.output, options.corpus)
    settings = options.settings()
    material = _read_material(options, settings)
    settings = replace(settings, trained=_read_trainers(options, material))
    panels = choose_panels(material.fills, material.offered, settings)
    for panel in panels:
        say(
            f"{panel.session} session, {panel.purpose}: {plural(len(panel.speakers), 'speaker')}, "
            f"{len(panel.tested)} tested, {plural(len(panel.cells), 'cell')}"
        )
    total = sum(len(panel.cells) for panel in panels)
    resumes = (options.output / "cache").exists() and not options.fresh
    jobs = options.workers.processes or cores()
    seconds = predict_measuring(panels, len(material.systems), settings) / jobs
    _say_plan("measure", seconds, jobs, resumes=resumes)
    try:
        with progress_over(total, "measuring") as step:
            results = run_experiment(
                material,
                panels,
                options.output,
                settings,
                fresh=options.fresh,
                jobs=jobs,
                progress=lambda c: step(f"T={c.test_seconds:g} D={c.template_seconds:g}", 1),
            )
    except KeyboardInterrupt:
        say("monitor: progress is kept. To continue, run the same command again")
        raise
    say(*(f"monitor: skipped: {problem}" for problem in results.material.problems))
    if results.noisy:
        say(f"monitor: {results.noisy}")
    for answer in results.plain()["answers"].values():
        say(f"{answer['question']} {answer['corpus'] or 'Not asked here.'}")
    say(f"{options.output / 'index.html'} has all results. {options.output} is private")
    return INCOMPLETE if results.material.problems else 0


def _read_material(options: ExperimentOptions, settings: ExperimentSettings) -> Material:
    from monitor.cli.inputs import check_two, load_speaker_model, plan_of
    from monitor.jobs import threads_here
    from monitor.lab.experiment.material import read_scores, read_speech
    from monitor.sources.registry import is_frames

    scores = read_scores(options.corpus, settings)
    if scores is not None:
        return scores
    recordings = options.measuring.corpus_options.find(options.corpus)
    say(*plan_of(recordings))
    check_two(recordings)
    files = [recording.path for recording in recordings.recordings]
    load_speaker_model(settings.features, files)
    lengths = [0.0 if is_frames(file) else seconds_of(file) or UNKNOWN_SECONDS for file in files]
    jobs, frames = options.workers.for_lengths(lengths), options.output / "frames"
    if any(lengths):
        seconds = sum(lengths) * _measure_rate(files, settings) / threads_here(jobs)
        _say_plan("listen", seconds, threads_here(jobs), resumes=frames.exists())
    try:
        with progress_over(len(files), "listening") as step:
            return read_speech(
                options.corpus, recordings, frames, settings, jobs,
                lambda progress: step(progress.path.name, 1), feature_setup(),
            )  # fmt: skip
    except KeyboardInterrupt:
        say("monitor: progress is kept. To continue, run the same command again")
        raise


def _measure_rate(files: Sequence[Readable], settings: ExperimentSettings) -> float:
    """Return a core's seconds per second of audio, by the first readable file; 0 without one."""
    from monitor.features.registry import defaults
    from monitor.lab.durations import measure_extraction

    setup = feature_setup()
    for file in files:
        with suppress(SourceError):
            return measure_extraction(file, settings.features or defaults(setup=setup), setup)
    return 0.0


def _say_plan(work: str, seconds: float, processes: int, *, resumes: bool) -> None:
    less = ", less if an earlier run left results" if resumes else ""
    workers = plural(processes, "process", "processes")
    say(f"plan: {rough_time(seconds)} to {work}, {workers}{less}")


def _read_trainers(options: ExperimentOptions, material: Material) -> dict[str, frozenset[str]]:
    trained = (
        trained_by_feature(options.trainers, set(material.speakers)) if options.trainers else {}
    )
    if unknown := sorted(trained.keys() - set(material.systems)):
        systems = ", ".join(material.systems)
        raise UsageError(f"--trained {unknown[0]}: not in this experiment, only {systems}")
    return {name: frozenset(names) for name, names in trained.items()}
