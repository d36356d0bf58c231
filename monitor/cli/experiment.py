"""monitor experiment: SRD's experiments on a corpus, and a page that reads like a short paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.options import (
    MOST_REPLICATES,
    Features,
    Numbers,
    ecapa_option,
    processes,
    say,
    scheduler_option,
    speaker_model_option,
    trained_by_feature,
    trained_option,
)
from monitor.cli.transcript_options import in_transcript_option, with_speaker, word_list_option

if TYPE_CHECKING:
    from monitor.corpus.recordings import Corpus
    from monitor.experiment.material import Material
    from monitor.experiment.settings import ExperimentSettings


@click.command("experiment", short_help="SRD's tables and figures of a corpus, as a short paper.")
@click.argument("corpus", type=click.Path(path_type=Path), metavar="DIR|MANIFEST|FRAMES|SCORES.npz")
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), metavar="DIR",
    help="The folder to write (private to you, files of mode 0600).",
)  # fmt: skip
@click.option(
    "--features",
    type=Features(),
    help="What to compare by; of SCORES.npz its systems. [default: all that is there]",
)
@ecapa_option
@speaker_model_option
@in_transcript_option
@word_list_option
@click.option(
    "--lengths",
    type=Numbers(),
    help="Test lengths T of the sweep, speech seconds. [default: from 1 s to what half of the "
    "speakers can fill]",
)
@click.option(
    "--template-lengths",
    type=Numbers(),
    help="Template lengths D of the sweep, speech seconds. [default: from 3 s, as far]",
)
@click.option(
    "--tables-at",
    type=click.FloatRange(min=0.0, min_open=True),
    nargs=2,
    metavar="T D",
    help="The lengths of the tables, and of figures 5 to 7. [default: 30 30, or less]",
)
@click.option(
    "--session",
    type=click.Choice(("cross", "same", "both")),
    default="both",
    show_default=True,
    help="Tests and templates of different sessions, or parts of one: as far as the corpus has it.",
)
@click.option(
    "--trials",
    default=20,
    show_default=True,
    type=click.IntRange(min=1),
    help="Tests of each speaker at each length, spread over the speech.",
)
@trained_option
@click.option(
    "--replicates",
    default=200,
    show_default=True,
    type=click.IntRange(20, MOST_REPLICATES),
    metavar="N",
    help="Resamples of speakers behind the limits.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0),
              help="Of the resamples.")  # fmt: skip
@click.option("--fresh", is_flag=True, help="Forget what was kept of earlier runs in -o.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes; the results do not depend on it. [default: one a core]",
)
@scheduler_option
def command(
    corpus: Path,
    output: Path,
    features: tuple[str, ...] | None,
    speaker_in_transcript: str | None,
    lengths: tuple[float, ...] | None,
    template_lengths: tuple[float, ...] | None,
    tables_at: tuple[float, float] | None,
    session: str,
    trials: int,
    trainers: tuple[str, ...],
    replicates: int,
    seed: int,
    fresh: bool,
    jobs: int | None,
) -> int:
    """Run the experiments of "Privacy Disclosure of Similarity Rank" (SRD) on a corpus.

    \b
    monitor experiment voices/ -o out             heard once; interrupted, it goes on where it was
    monitor experiment frames -o out              of monitor hear
    monitor experiment scores.npz -o out          of monitor score: any recogniser's, at its lengths
    monitor experiment frames -o out --trained phones=trainers.txt --trained voice=trainers.txt

    Sweeps over the length of the test (T) and of the templates (D) for each feature and all
    together, within and across sessions, always of the same people; Table II (ranks counted, and
    the rank model fitted to them) and Table III (five losses); figures 4 to 8 as SVG, PNG and CSV;
    and index.html, which says what was done and found: does disclosure rise with T, saturate, fall
    again, how far below the composition guides does it stay, which loss fits best. Each answer has
    its limits, or "cannot be decided with so few speakers". results.json has everything.

    Every cell is kept under a hash of all that it depends on: a second run takes seconds. Audio is
    heard into DIR/frames, which is biometric; delete it when it is not needed. The page names
    nobody. A file that is broken is named and skipped (exit status 4).
    """
    from monitor.cli.options import progress_over
    from monitor.experiment.running import check_folder, panels_of, run_experiment
    from monitor.experiment.settings import SESSIONS, ExperimentSettings
    from monitor.jobs import cores
    from monitor.phrases import plural
    from monitor.run.status import INCOMPLETE

    sessions = SESSIONS if session == "both" else (session,)
    settings = ExperimentSettings(
        features, lengths, template_lengths, tables_at, sessions, trials, replicates, seed
    )
    check_folder(output, corpus)
    material, problems = _material(corpus, output, settings, jobs, speaker_in_transcript)
    settings = _with_trained(settings, material, trainers)
    panels = panels_of(material, settings)
    for panel in panels:
        say(
            f"{panel.session} session, {panel.purpose}: {plural(len(panel.speakers), 'speaker')}, "
            f"{len(panel.tested)} tested, {plural(len(panel.cells), 'cell')}"
        )
    total = sum(len(panel.cells) for panel in panels)
    try:
        with progress_over(total, "measuring") as step:
            found = run_experiment(
                material,
                panels,
                output,
                settings,
                name=corpus.resolve().stem,
                problems=problems,
                fresh=fresh,
                jobs=jobs or cores(),
                progress=lambda c: step(f"T={c.test_seconds:g} D={c.template_seconds:g}", 1),
            )
    except KeyboardInterrupt:
        say("monitor: what was measured is kept; to go on, run the same command again")
        raise
    for problem in problems:
        say(f"monitor: skipped: {problem}")
    if found.noise:
        say(f"monitor: {found.noisy}")
    for answer in found.plain()["answers"].values():
        say(f"{answer['question']} {answer['corpus'] or 'Not asked here.'}")
    say(f"{output / 'index.html'} tells it all; {output} is private")
    return INCOMPLETE if problems else 0


def _material(
    corpus: Path,
    output: Path,
    settings: ExperimentSettings,
    jobs: int | None,
    speaker_in_transcript: str | None,
) -> tuple[Material, tuple[str, ...]]:
    """Scores, or speech that was heard by now; and what could not be used of it."""
    from monitor.cli.inputs import load_identity, plan_of
    from monitor.cli.options import progress_over
    from monitor.corpus.finding import find
    from monitor.experiment.material import hear_corpus, scores_at, speech_of

    scores = scores_at(corpus, settings)
    if scores is not None:
        return scores, ()
    found: Corpus = with_speaker(find(corpus), speaker_in_transcript)
    for line in plan_of(found):
        say(line)
    files = [recording.path for recording in found.recordings]
    load_identity(settings.features, files)
    try:
        with progress_over(len(files), "listening") as step:
            heard, problems = hear_corpus(
                corpus, found, output / "frames", settings.features, processes(jobs, files),
                lambda recording: step(recording.path.name, 1),
            )  # fmt: skip
    except KeyboardInterrupt:
        say("monitor: what was heard is kept; to go on, run the same command again")
        raise
    speech = speech_of(heard, settings)
    return speech, (*problems, *speech.problems)


def _with_trained(
    settings: ExperimentSettings, material: Material, trainers: tuple[str, ...]
) -> ExperimentSettings:
    """With those who trained a network."""
    from dataclasses import replace

    from monitor.errors import UsageError

    named = trained_by_feature(trainers, set(material.speakers)) if trainers else {}
    if strange := sorted(named.keys() - set(material.systems)):
        known = ", ".join(material.systems)
        raise UsageError(f"--trained {strange[0]}: this experiment is on {known}")
    return replace(settings, trained={name: frozenset(each) for name, each in named.items()})
