"""Opens the recordings of a command, selects those listed, and prints the plan of a corpus."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monitor.cli.options import (
    UNKNOWN_SECONDS,
    JobOptions,
    feature_setup,
    note,
    progress_over,
    say,
    seconds_of,
)
from monitor.errors import CorpusError, MonitorError, SourceError, UsageError
from monitor.phrases import plural
from monitor.safe_text import file_name

if TYPE_CHECKING:
    from monitor.corpus.recordings import Corpus
    from monitor.corpus.trials import TrialLists
    from monitor.population.population import Population
    from monitor.protocols import Source
    from monitor.training.frames_folder import ExtractionOptions, ExtractionTask, OrderOutcome
    from monitor.virtual_files import Readable
MOST_ROWS = 20
_MOST_TOLD = 5
_NAME_CELLS = 32
frames_option = click.option(
    "--frames",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep extracted frames in DIR and reuse those already there. Each recording is then "
    "processed once for all commands. DIR can replace the corpus afterwards. Frames are "
    "biometric (private to you, mode 0600).",
)
device_option = click.option(
    "--device",
    metavar="N|NAME",
    help="Audio input, by number or part of its name (`monitor doctor --devices`). [default: the "
    "system's]",
)


def open_all(
    recordings: Sequence[str],
    raw: tuple[int, int, str] | None,
    interval: tuple[float, float | None],
) -> list[Source]:
    """Open every recording, and check that the options apply to it."""
    from monitor.protocols import LiveSource
    from monitor.sources.registry import open_source

    start, end = interval
    if len(recordings) > 1 and (start or end is not None):
        raise UsageError("--part is for one recording only")
    if recordings.count("-") > 1:
        raise UsageError("standard input (-) can be read once")
    for name in recordings:
        if Path(name).is_dir():
            raise SourceError(
                f"{file_name(name)} is a folder: name a recording, or measure each in it (--each "
                "--summary out.csv)"
            )
    if "-" in recordings and sys.stdin.isatty():
        raise UsageError("- is standard input: pipe a WAV into it, or name a recording")
    sources = [
        open_source(name, raw=raw, start_seconds=start or None, end_seconds=end)
        for name in recordings
    ]
    for source in sources:
        if isinstance(source, LiveSource):
            raise UsageError(f"{source.label} is a live source: use monitor listen")
    return sources


def load_speaker_model(
    features: Iterable[str] | None, recordings: Iterable[str | Readable]
) -> None:
    """Load the network of ``--speaker-model``, if its feature is used on audio."""
    from monitor.features.registry import make
    from monitor.kinds import SPEAKER_PREFIX
    from monitor.sources.registry import is_frames

    wanted = [name for name in features or () if name.startswith(SPEAKER_PREFIX)]
    if wanted and not all(map(is_frames, recordings)):
        make(wanted, feature_setup())


def check_model(name: str, population: Population, store: str | Path | None) -> None:
    """Refuse ``name``, the feature of ``--speaker-model`` or "", if it has no templates."""
    from monitor.kinds import SPEAKER_PREFIX

    if not name or name in population.features:
        return
    speaker_features = [
        feature for feature in population.features if feature.startswith(SPEAKER_PREFIX)
    ]
    difference = (
        f"templates of another network, {speaker_features[0]}"
        if speaker_features
        else "no templates of it"
    )
    whose = "the shipped population" if store in (None, "reference") else f"{store}"
    raise UsageError(
        f"--speaker-model is {name}, but {whose} has {difference}: enrol all speakers with one "
        "network (monitor enrol --speaker-model)"
    )


def plan_of(corpus: Corpus, more: str = "") -> Iterator[str]:
    """Yield the lines of the plan. Only the first of many speakers are listed."""
    from rich.cells import cell_len, set_cell_size

    sessions = {name: corpus.sessions(name) for name in corpus.speakers[:MOST_ROWS]}
    by = f", {corpus.identified_by}" if corpus.identified_by else ""
    yield f"plan: {plural(len(corpus.speakers), 'speaker')}{by}{more}"
    width = min(max(map(cell_len, ["speaker", *sessions])), _NAME_CELLS)
    yield f"  {'speaker':{width}}  sessions  files  minutes"
    for name, of in sessions.items():
        files = [file for session in of.values() for file in session]
        minutes = _minutes(files)
        yield (
            f"  {set_cell_size(name, width)}  {len(of):8}  {len(files):5}  "
            f"{'?' if minutes is None else format(minutes, '.1f'):>7}"
        )
    if remaining := len(corpus.speakers) - len(sessions):
        yield f"  and {remaining} more"


def check_two(corpus: Corpus) -> None:
    """Refuse a single speaker before extraction."""
    if len(corpus.speakers) < 2:
        raise CorpusError(
            f"{plural(len(corpus.speakers), 'speaker')}, with no one to compare with: use "
            "recordings of at least two"
        )


def _minutes(files: Iterable[Readable]) -> float | None:
    from monitor.sources.registry import open_source
    from monitor.virtual_files import VirtualFile

    total = 0.0
    for file in files:
        stated = file.seconds if isinstance(file, VirtualFile) else None
        try:
            seconds = getattr(open_source(file), "seconds", None) if stated is None else stated
        except MonitorError:  # reported with the reason at extraction
            seconds = None
        if seconds is None:
            return None
        total += seconds
    return total / 60


def keep_frames(
    corpus: Corpus,
    root: Path,
    folder: Path,
    features: Sequence[str] | None,
    workers: JobOptions,
    channel: int | None = None,
) -> Corpus:
    """Extract the frames that a folder lacks of a corpus at ``root``; return the frames' corpus."""
    from monitor.corpus.tables import read_speaker_attributes
    from monitor.features.registry import defaults
    from monitor.sources.registry import is_frames
    from monitor.training.frames_folder import (
        ExtractionOptions,
        describe_difference,
        orders,
        write_manifest,
    )

    if any(is_frames(recording.path) for recording in corpus):
        raise UsageError(f"{root} contains frames: leave out --frames, which is for audio")
    setup = feature_setup()
    options = ExtractionOptions(
        tuple(features or defaults(setup=setup)), channel=channel, setup=setup
    )
    listed = orders(corpus, root, folder)
    if difference := describe_difference(listed, options):
        raise UsageError(f"--frames {folder}: {difference}. Name another folder, or delete it.")
    attributes = corpus.attributes or read_speaker_attributes(root)
    by_name = sorted(listed, key=lambda order: order.target)
    write_manifest(folder, by_name, attributes)
    outcomes = _extract_missing(listed, options, workers, folder)
    problems = [outcome.problem for outcome in outcomes if outcome.problem]
    complete = {outcome.order for outcome in outcomes if outcome.is_complete}
    if not complete:
        raise SourceError("no recording could be processed: " + "; ".join(problems[:3]))
    write_manifest(folder, [order for order in by_name if order in complete], attributes)
    say_of_transcripts([line for outcome in outcomes for line in outcome.messages])
    new = sum(outcome.seconds > 0 for outcome in outcomes)
    say(
        f"frames of {plural(new, 'recording')} written to {folder}, {len(complete) - new} there "
        "already. They are biometric: keep them private, and delete them when you no longer need "
        "them. Other commands take this folder in place of the recordings."
    )
    pairs = zip(corpus.recordings, listed, strict=True)
    recordings = tuple(replace(r, path=order.target) for r, order in pairs if order in complete)
    return replace(corpus, recordings=recordings, problems=(*corpus.problems, *problems))


def _extract_missing(
    orders: Sequence[ExtractionTask], options: ExtractionOptions, workers: JobOptions, folder: Path
) -> list[OrderOutcome]:
    from monitor.training.frames_folder import keep

    lengths = {order: seconds_of(order.source) or UNKNOWN_SECONDS for order in orders}
    # longest first, so that no process works alone at the end
    wanted = sorted(orders, key=lambda order: -lengths[order])
    outcomes = []
    try:
        with (
            progress_over(sum(lengths.values()) / 60, "extracting", "min") as step,
            closing(keep(wanted, options, workers.for_lengths(lengths.values()), folder)) as done,
        ):
            for outcome in done:
                step(outcome.order.source.name, lengths[outcome.order] / 60)
                outcomes.append(outcome)
    except (KeyboardInterrupt, MonitorError):
        say(
            "monitor: Interrupted. Extracted frames are kept. To continue, run the same command "
            "again."
        )
        raise
    return outcomes


def say_of_transcripts(lines: Sequence[str]) -> None:
    """Print the first lines on recordings and transcripts, and the number of further ones."""
    note(*lines[:_MOST_TOLD])
    if len(lines) > _MOST_TOLD:
        note(f"and {len(lines) - _MOST_TOLD} more such lines")


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Discard what ALSA and PortAudio write to file descriptor 2, which would spoil views."""
    try:
        ours = sys.stderr.fileno() == 2
    except (OSError, ValueError):  # not a file
        ours = False
    if not ours:
        yield
        return
    before = sys.stderr
    before.flush()
    copy = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    with open(copy, "w", buffering=1, encoding=before.encoding, errors="replace") as stream:  # noqa: PTH123
        sys.stderr = stream
        try:
            yield
        finally:
            sys.stderr = before
            stream.flush()
            os.dup2(copy, 2)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` at the first Ctrl-C or SIGTERM, for a normal end. The second interrupts."""

    def handle(number: int, _frame: Any) -> None:
        signal.signal(number, before[signal.Signals(number)])
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def select_enrolment(folder: Path, corpus: Corpus) -> Corpus:
    """Select the recordings that a folder's ``enrolls`` lists; all if there is no list."""
    from monitor.corpus.trials import read_enrolment

    utterances = read_enrolment(folder)
    return corpus if utterances is None else _select_listed(corpus, utterances, folder)


def own_templates(
    folder: Path,
    lists: TrialLists,
    corpus: Corpus,
    features: Sequence[str] | None,
    seconds: float,
    workers: JobOptions,
) -> Population:
    """Enrol the speech that the lists in a folder, or in the one beside it, name."""
    from monitor.corpus.folders import find
    from monitor.corpus.trials import find_enrolment_folder
    from monitor.training.enrolling import enrol

    if lists.enrolment is not None:
        corpus = _select_listed(corpus, lists.enrolment, folder)
    elif (enrolment_folder := find_enrolment_folder(folder.resolve())) is not None:
        corpus = select_enrolment(enrolment_folder, find(enrolment_folder))
        say(f"plan: templates of {enrolment_folder.name}")
    else:
        raise UsageError(
            f"{folder.name} has trials but no enrolls, nor has a folder beside it: enrol first "
            "(monitor enrol ENROLLS -o us.npz), then give -p us.npz"
        )
    corpus = replace(corpus, recordings=tuple(r for r in corpus if r.speaker in lists.speakers))
    say(*plan_of(corpus, f"; templates, up to {seconds:g} s of speech each"))
    files = [recording.path for recording in corpus]
    load_speaker_model(features, files)
    with progress_over(len(files), "enrolling") as step:
        enrolment = enrol(
            corpus, features=features, seconds=seconds, jobs=workers.for_recordings(files),
            progress=lambda recording: step(recording.speaker, 1), setup=feature_setup(),
        )  # fmt: skip
    say(*(f"monitor: skipped: {problem}" for problem in enrolment.problems))
    say_of_transcripts(enrolment.notes)
    return enrolment.population


def _select_listed(corpus: Corpus, utterances: frozenset[str], folder: Path) -> Corpus:
    recordings = tuple(recording for recording in corpus if recording.session in utterances)
    if not recordings:
        raise CorpusError(f"enrolls of {folder.name} lists only utterances that wav.scp lacks")
    missing = sorted(utterances - {recording.session for recording in recordings})
    problems = [f"enrolls: {utterance} is not in wav.scp" for utterance in missing]
    return replace(
        corpus,
        recordings=recordings,
        problems=(*corpus.problems, *problems),
        identified_by="as enrolls has them",
    )
