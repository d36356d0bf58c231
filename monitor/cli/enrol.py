"""monitor enrol: make templates of speakers."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from monitor.cli.help import HelpCommand
from monitor.cli.inputs import (
    check_model,
    device_option,
    frames_option,
    keep_frames,
    load_speaker_model,
    plan_of,
    quiet_libraries,
    say_of_transcripts,
    select_enrolment,
    stopped_by_signals,
)
from monitor.cli.options import (
    NOTE,
    Features,
    JobOptions,
    Seconds,
    argument,
    check_output,
    columns_option,
    doubles_setting,
    feature_setup,
    group,
    note,
    option,
    progress_over,
    say,
    shared,
    speaker_model_option,
    unlocked,
    with_options,
)
from monitor.cli.transcript_options import TranscriptOptions, say_unused_words
from monitor.errors import SourceError, StoreError, UnnamedSpeakerError, UsageError
from monitor.phrases import format_names, plural
from monitor.run import INCOMPLETE
from monitor.safe_text import is_name, spelled

if TYPE_CHECKING:
    from monitor.corpus.recordings import Corpus
    from monitor.datasets.rows import Columns
    from monitor.population.population import Population
    from monitor.training.enrolling import Enrolment
    from monitor.training.session_checks import UnlikeSession


SECONDS = 120.0
MICROPHONE_SECONDS = 60.0
QUEUE_SECONDS = 60.0  # a slow machine may lag, since no reading is shown


@dataclass(frozen=True, slots=True)
class EnrolOptions:
    """Options of monitor enrol."""

    paths: tuple[Path, ...] = argument("[DIR|MANIFEST|RECORDING...]", nargs=-1)
    speaker: str | None = option(
        "--speaker NAME",
        "All recordings are of this one person. Each sub-folder, or otherwise each file, is a "
        "session.",
    )
    microphone: bool = option("--microphone", "Record the speaker now instead of reading files.")
    device: str | None = shared(device_option)
    output: Path = option(
        "-o, --output FILE.npz",
        "The population to write (private to you, mode 0600).",
        required=True,
    )
    seconds: float | None = option(
        "--seconds D",
        "Maximum speech seconds per speaker. [default: 120, or 60 from a microphone]",
        type=Seconds(),
    )
    columns: Columns = shared(columns_option)
    channel: int | None = option(
        "--channel", "Channel of the recordings, from 1. [default: all, mixed]", minimum=1
    )
    add: bool = option(
        "--add",
        "Add these speakers to the population in -o. Enrolled speakers get another session.",
    )
    base: str | None = option(
        "--base FILE|reference",
        "Add these speakers to that population, and write the result to -o.",
    )
    replace: bool = option("--replace", "Overwrite -o if it exists.")
    features: tuple[str, ...] | None = option(
        "--features",
        "Features to enrol, from f0, phones, voice and style (of transcripts). [default: all but "
        "style, or whatever frames contain]",
        type=Features(),
    )
    speaker_model: ClassVar[Any] = speaker_model_option
    frames: Path | None = shared(frames_option)
    doubles: str = doubles_setting()
    transcribing: TranscriptOptions = group(TranscriptOptions, "Words")
    workers: JobOptions = group(JobOptions, "Processes")


@click.command("enrol", cls=HelpCommand, short_help="Create templates of your speakers.")
@with_options(EnrolOptions)
def command(options: EnrolOptions) -> int:
    """Make a template of every speaker and store them as a population.

    \b
    monitor enrol --microphone --speaker me --base reference -o me.npz
    monitor enrol --microphone --speaker me --add -o me.npz    another day: adds a template

    \b
    monitor enrol me/ --speaker me --base reference -o me.npz
    monitor enrol voices/ -o us.npz                   several people
    monitor enrol voices/ -o us.npz --frames frames

    Without --speaker, DIR contains one folder per speaker, with one file or sub-folder per session.
    LibriSpeech's SPEAKER/CHAPTER folders, Kaldi's wav.scp + utt2spk, lhotse manifests and Hugging
    Face data sets (metadata.csv or .jsonl, or Parquet) also work. Name the columns of a data set
    with --columns speaker=NAME,session=NAME. MANIFEST is a file of such a data set, or a .csv or
    .tsv with the columns path, speaker and optionally session. The speaker of each recording is
    shown before processing starts.

    A template is biometric data, even without the audio: keep the file private. `monitor people
    FILE.npz --forget NAME` deletes one person.
    """
    from monitor.files import alone
    from monitor.population.doubles import describe_doubles, find_doubles, resolve_doubles
    from monitor.population.population import Population
    from monitor.training.session_checks import find_outlier_sessions, unlike_additions

    _check_options(options)
    base = _load_base(options)
    corpus = _find_corpus(options)
    requested = options.features
    if options.add and base is not None:  # --add drops no feature of the existing file
        requested = requested or tuple(base.features)
    corpus, features = options.transcribing.enrolling(
        corpus, requested, None if base is None else base.features
    )
    excluded: list[str] = []
    if options.base is not None and base is not None and features is not None:
        base, excluded = _reduce_base(base, features)
    further = _find_further(options, base, corpus) if features is not None else []
    enrolment = _enrol(options, base, corpus, features, further)
    output = options.output
    with alone(output) as locked:
        if options.add:  # others may have been added meanwhile
            base = Population.load(output)
        elif output.exists() and not options.replace:
            raise StoreError(
                f"{output} was written by another process meanwhile; name another file"
            )
        population = enrolment.population
        if base is not None:
            base.refuse_enrolled(population)
            population = (base.extended if options.add else base.joined)(population)
        doubles = find_doubles(population, enrolment.population.names)
        population = resolve_doubles(population, doubles, options.doubles)
        population.save(output)
    if not locked:
        say(unlocked(output))
    say(*(f"monitor: skipped: {problem}" for problem in enrolment.problems))
    note(*describe_doubles(doubles, options.doubles))
    say_of_transcripts(enrolment.notes)
    _note_window()
    if excluded:
        note(f"{output} lacks {', '.join(excluded)}. Choose with --features.")
    outliers = []
    if base is not None:
        outliers = find_outlier_sessions(enrolment.population, enrolment.sessions, base)
        outliers += unlike_additions(base, population, enrolment.sessions)
    people = _list_calibration_arguments(options, enrolment)
    new = enrolment.population
    new = new.chosen(name for name in new.names if name in population.names)
    say(*describe_enrolment(population, new, outliers, output, people))
    return INCOMPLETE if enrolment.problems else 0


def _list_calibration_arguments(options: EnrolOptions, enrolment: Enrolment) -> list[str]:
    """List the arguments with which calibrate reads these people and keeps their frames."""
    from monitor.training.calibrating import FEWEST_SPEAKERS

    folder = options.output.with_suffix(".frames")
    keeping = ["--frames", str(folder)]
    if len(enrolment.population) < FEWEST_SPEAKERS:
        return ["PEOPLE", *keeping]
    if options.frames is not None:
        return [str(options.frames)]
    if _holds_frames(enrolment.corpus) or folder.resolve().is_relative_to(
        options.paths[0].resolve()
    ):
        keeping = []
    setup = feature_setup()
    arguments = {
        "--columns": ",".join(f"{k}={v}" for k, v in asdict(options.columns).items() if v),
        "--speaker-model": setup.speaker_model,
        "--speaker-in-transcript": options.transcribing.speaker_in_transcript,
    }
    pairs = [(name, str(value)) for name, value in arguments.items() if value]
    return [str(options.paths[0]), *(word for pair in pairs for word in pair), *keeping]


def _recommend_frames(options: EnrolOptions, base: Population | None, corpus: Corpus) -> None:
    """Recommend --frames, before the long work, if calibrate is the next command."""
    from monitor.training.calibrating import FEWEST_SPEAKERS

    is_calibrated = base is not None and len(base.rank_models) > 0
    is_enough = len(corpus.speakers) >= FEWEST_SPEAKERS
    if options.frames is None and is_enough and not is_calibrated and not _holds_frames(corpus):
        say(
            "With --frames DIR, calibrate and score need not extract these recordings again. "
            "DIR is then biometric, too."
        )


def _holds_frames(corpus: Corpus) -> bool:
    from monitor.sources.registry import is_frames

    return any(is_frames(recording.path) for recording in corpus)


def _check_options(options: EnrolOptions) -> None:
    if options.microphone and (options.paths or not options.speaker):
        raise UsageError("--microphone records one speaker: give --speaker NAME and no DIR")
    if options.speaker is not None and not is_name(options.speaker):
        raise UsageError("--speaker needs a printable name of at most 200 characters")
    if options.microphone and options.frames is not None:
        raise UsageError("--frames keeps the frames of recordings: leave out --microphone")
    if options.microphone and options.channel is not None:
        raise UsageError("--channel is for recordings: choose the microphone with --device")
    if not options.microphone and options.device:
        raise UsageError("--device needs --microphone: add it, or leave out --device")
    if not options.microphone and not options.paths:
        raise UsageError("name a DIR, a MANIFEST or recordings, or add --microphone")
    if options.add and options.base is not None:
        raise UsageError("--add extends the population in -o: leave out --base")
    if options.output.exists() and not (options.add or options.replace):
        raise UsageError(
            f"{options.output} exists; use --add to add speakers or --replace to overwrite it"
        )
    check_output(options.output)


def _load_base(options: EnrolOptions) -> Population | None:
    from monitor.population.population import Population

    if options.add:
        base = Population.load(options.output)
    elif options.base is None:
        return None
    elif options.base == "reference":
        base = Population.reference()
    else:
        base = Population.load(options.base)
    check_model(feature_setup().speaker, base, options.base or options.output)
    return base


def _note_window() -> None:
    """Note that a network's window is assumed. The wrong one weakens the attacker."""
    path = feature_setup().speaker_model
    if path is not None:
        from monitor.features.own_network import speaker_model

        if speaker_model(path).window_assumed:
            note(
                f"{path.name} has no framework in its metadata, so Povey's window is assumed "
                "(docs/speaker-models.md)"
            )


def _find_corpus(options: EnrolOptions) -> Corpus | None:
    from monitor.corpus.folders import find

    if options.microphone:
        return None
    try:
        corpus = find(*options.paths, speaker=options.speaker, columns=options.columns)
    except UnnamedSpeakerError as error:
        into = ["--add"] if options.add else []
        if options.base is not None:
            into += ["--base", options.base]
        paths, output = map(str, options.paths), str(options.output)
        words = ["monitor", "enroll", *paths, "--speaker", "NAME", *into, "-o", output]
        advice = f"if all are of one person:  {shlex.join(words)}"
        raise UnnamedSpeakerError(error.what, advice) from None
    return corpus if options.speaker is not None else select_enrolment(options.paths[0], corpus)


def _reduce_base(base: Population, features: Sequence[str]) -> tuple[Population, list[str]]:
    """Drop features that the new speakers lack; also return those that nothing supersedes."""
    from monitor.features.registry import superseded, takes

    missing = [name for name in features if name not in base.features and takes(name) == "words"]
    if missing:
        raise UsageError(
            "neither the speakers enrolled before nor the shipped readers have "
            f"{', '.join(missing)}: leave it out of --features, or enrol several people with "
            "transcripts and without --base"
        )
    reduced = base.only(features)
    remaining = [name for name in base.features if name not in features]
    return reduced, [name for name in remaining if not superseded(name, features)]


def _find_further(
    options: EnrolOptions, base: Population | None, corpus: Corpus | None
) -> list[str]:
    """List the speakers who are already enrolled, and get another session."""
    from monitor.sources.registry import recording_hashes

    if base is None:
        return []
    speakers = (options.speaker or "",) if corpus is None else corpus.speakers
    further = [name for name in speakers if spelled(name) in base.names]
    if further and not options.add:
        raise UsageError(
            f"{', '.join(further[:3])} already enrolled: choose another name, or use --add for "
            "another session of the same person"
        )
    # under two names, a speaker would be measured as both, and the bits read too low
    for file in (recording.path for recording in corpus or ()):
        with suppress(SourceError):  # named and skipped at extraction
            overlaps = base.overlapping(recording_hashes(file))
            if names := [speaker.name for speaker, note in overlaps if note.used]:
                raise UsageError(
                    f"{file.name} is already enrolled as {names[0]}, and nothing was changed: use "
                    "other recordings"
                )
    return further


def _enrol(
    options: EnrolOptions,
    base: Population | None,
    corpus: Corpus | None,
    features: Sequence[str] | None,
    further: Sequence[str],
) -> Enrolment:
    from monitor.corpus.folders import BY_FOLDER
    from monitor.features.registry import caveats, defaults
    from monitor.sources.registry import is_frames
    from monitor.training.enrolling import enrol

    seconds = options.seconds
    if seconds is None:
        seconds = MICROPHONE_SECONDS if corpus is None else SECONDS
    length = f"up to {seconds:g} s of speech"
    context = "" if base is None else f", beside {len(base)} enrolled before"
    if further:
        context += f"; adds a session of {format_names(further, 3)}"
    if corpus is None:
        say(f"plan: {options.speaker}, {length} from the microphone{context}")
        load_speaker_model(features, ["-"])
        return enrol_from_microphone(options.speaker or "", options.device, features, seconds)
    doubt = corpus.identified_by == BY_FOLDER and (len(corpus.speakers) > 1 or corpus.problems)
    hint = " (one person's folders? add --speaker NAME)" if doubt else ""
    say(*plan_of(corpus, f"; {length} each{context}{hint}"))
    files = [recording.path for recording in corpus.recordings]
    _recommend_frames(options, base, corpus)
    load_speaker_model(features, files)
    messages: list[str] = []
    jobs = options.workers.for_recordings(files)
    if options.frames is not None:
        features = tuple(features or defaults(setup=feature_setup()))
        corpus = keep_frames(
            corpus, options.paths[0], options.frames, features, options.workers, options.channel
        )
    with progress_over(len(files), "enrolling") as step:
        enrolment = enrol(
            corpus, features=features, seconds=seconds, channel=options.channel, jobs=jobs,
            progress=lambda recording: step(recording.speaker, 1), notify=messages.append,
            setup=feature_setup(),
        )  # fmt: skip
    templates = enrolment.population.features
    say_of_transcripts([*caveats(templates), *messages])
    ready_made = templates if all(map(is_frames, files)) else ()
    say_unused_words(templates, ready_made, options.transcribing.transcript)
    return enrolment


def enrol_from_microphone(
    speaker: str, device: str | None, features: Sequence[str] | None, seconds: float
) -> Enrolment:
    """Record a speaker until there is enough speech or Ctrl-C, and make a template."""
    from monitor.features.registry import defaults
    from monitor.run.pace import timed
    from monitor.sources.registry import open_live_source
    from monitor.training.live_enrolment import LiveEnrolment
    from monitor.types import Block, Gap

    setup = feature_setup()
    names = tuple(features) if features is not None else defaults(setup=setup)
    problems = []
    take = LiveEnrolment(timed(names, setup))
    microphone = open_live_source(
        f"mic:{device or ''}",
        seconds=5 * seconds + 60,  # limits the wait if there is much silence
        queue_seconds=QUEUE_SECONDS,
        report=lambda line: say(line),
    )
    with quiet_libraries(), microphone as source, stopped_by_signals(source.stop):
        say(f"Speak, about anything. Recording from {source.label} (Ctrl-C stops).")
        with progress_over(seconds, "speech", "s") as step:
            done = 0.0
            for item in source:
                if isinstance(item, Block):
                    take.push(item)
                elif isinstance(item, Gap):
                    problems.append(f"{item.reason}: {item.detail}")
                recent = take.recent
                state = recent.trouble or f"{recent.level_decibels:.0f} dB, good"
                step(state, take.speech_seconds - done)
                done = take.speech_seconds
                if done > seconds:  # only then are all frames of the wanted part complete
                    source.stop()
    note(*take.noticed)
    if trouble := take.whole.trouble:
        fault, _, advice = trouble.partition(": ")
        note(f"the recording was {fault}. Record another one, and {advice}.")
    enrolment = take.enrolment(spelled(speaker), "microphone", seconds, setup)
    return replace(enrolment, problems=(*enrolment.problems, *problems))


def describe_enrolment(
    population: Population,
    new: Population,
    outliers: Iterable[UnlikeSession],
    output: Path,
    people: Sequence[str],
) -> Iterator[str]:
    """Format the lines of the report; ``people`` are arguments for calibrate."""
    from monitor.training.calibrating import FEWEST_SPEAKERS

    for name, more in zip(new.names, new.template_seconds.tolist(), strict=True):
        index = population.index(name)
        total, sessions = population.template_seconds[index], population.speakers[index].sessions
        if total > more:
            yield (
                f"{name}: {more:g} s of speech added, {total:g} s in all, in "
                f"{plural(len(sessions), 'session')} with one template each"
            )
    if not len(new):
        yield (
            f"all were already enrolled under other names; {output} has "
            f"{plural(len(population), 'speaker')}"
        )
        return
    ends = dict.fromkeys(
        f"{end:g}" for end in (min(new.template_seconds), max(new.template_seconds))
    )
    yield (
        f"{plural(len(new), 'speaker')} enrolled with {' to '.join(ends)} s of speech; {output} "
        f"has {plural(len(population), 'speaker')}"
    )
    for session in outliers:
        yield (
            f"{NOTE} {session.session} of {session.speaker} sounds unlike the other sessions "
            f"({session.bits:.1f} bits). Check by ear that all of it is {session.speaker}."
        )
    if population.mismatched:
        yield (
            f"{NOTE} the new speakers are not calibrated. People who share their microphone may "
            "read 1 to 2 bits too high. Calibrate on your own speakers (monitor calibrate)."
        )
    elif len(population) < 2:
        more = shlex.join(["monitor", "enrol", "PEOPLE", "--add", "-o", str(output)])
        yield f"next:  {more}  # add people to compare with"
        return
    elif not len(population.rank_models) and len(population) < FEWEST_SPEAKERS:
        more = shlex.join(["monitor", "enrol", "PEOPLE", "--add", "-o", str(output)])
        yield (
            f"next:  {more}  # add people\n"
            f"      Calibration needs at least {FEWEST_SPEAKERS} speakers. Enrol fewer beside the "
            "shipped readers (--speaker NAME --base reference)."
        )
    elif not len(population.rank_models):
        calibrate = shlex.join(["monitor", "calibrate", *people, "-o", str(output)])
        yield f"next:  {calibrate}  # fit the rank model"
        if "--frames" in people:
            yield (
                "      The frames that it keeps there are biometric and private to you. score can "
                "reuse them."
            )
    yield from _describe_lengths(population)


def _describe_lengths(population: Population) -> Iterator[str]:
    """Format a line on each group of speakers with too little speech."""
    from monitor.population.templates import MISMATCH

    try:
        scoring = population.scoring()
    except UsageError as error:
        yield f"{NOTE} {error}. Enrol more speech."
        return
    usual, have = population.common_seconds, population.template_seconds
    shortest = min((model.template_lengths[0] for model in population.rank_models), default=0.0)
    minimum = MISMATCH * shortest
    speakers = list(zip(population.names, have.tolist(), scoring.members.tolist(), strict=True))
    if unscored := [name for name, seconds, _ in speakers if seconds < minimum]:
        yield (
            f"{NOTE} {format_names(unscored)}: too little speech to compare. The rank model needs "
            f"templates of at least {shortest:g} s. Enrol more."
        )
    if excluded := [n for n, seconds, member in speakers if not member and seconds >= minimum]:
        yield (
            f"{NOTE} {format_names(excluded)}: excluded unless watched, and "
            f"{int(scoring.members.sum())} are compared. To compare templates this short, the "
            f"others ({usual:g} s) would be cut, and disclose little. Enrol more with --add."
        )
    if scoring.seconds < usual:
        short = [name for name, seconds, member in speakers if member and seconds < usual]
        yield (
            f"{NOTE} all templates are cut to {scoring.seconds:g} s, the shortest. "
            f"{format_names(short)} {'has' if len(short) == 1 else 'have'} less than the others' "
            f"{usual:g} s. An attacker with longer templates would learn more. Enrol more with "
            "--add."
        )
