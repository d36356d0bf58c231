"""monitor enrol: make templates of speakers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from monitor.cli.help import Command
from monitor.cli.inputs import device_option, quiet_libraries, stopped_by_signals
from monitor.cli.options import (
    Features,
    JobOptions,
    Seconds,
    argument,
    check_output,
    feature_setup,
    given,
    group,
    option,
    say,
    shared,
    speaker_model_option,
    unlocked,
)
from monitor.cli.transcript_options import (
    Transcribing,
    say_of_transcripts,
    say_unused_words,
)
from monitor.phrases import plural

if TYPE_CHECKING:
    from monitor.corpus.finding import TrialLists
    from monitor.corpus.recordings import Corpus
    from monitor.population.population import Population
    from monitor.training.enrolling import Enrolment, LiveEnrolment, UnlikeSession

# --- What was enrolled, what to mind and what to do next, for people.


def in_words(
    population: Population,
    new: Population,
    unlike: Iterable[UnlikeSession],
    output: Path,
    people: str,
) -> Iterator[str]:
    """A line for each thing to know."""
    from monitor.errors import UsageError
    from monitor.population.population import MISMATCH
    from monitor.training.calibrating import FEWEST_SPEAKERS

    for name, more in zip(new.names, new.template_seconds.tolist(), strict=True):
        place = population.index(name)
        total, sessions = population.template_seconds[place], population.speakers[place].sessions
        if total > more:
            yield (
                f"{name}: {more:g} s of speech more, {total:g} s in all, in "
                f"{plural(len(sessions), 'session')} with a template each"
            )
    have = new.template_seconds
    length = (
        f"{have.min():g} s" if have.min() == have.max() else f"{have.min():g} to {have.max():g} s"
    )
    count = plural(len(new), "speaker")
    yield f"{count} enrolled with {length} of speech; {output} holds {len(population)}"
    for each in unlike:
        yield (
            f"monitor: note: {each.session} of {each.speaker} sounds like somebody else than the "
            f"other sessions ({each.bits:.1f} bits); listen whether all of it is {each.speaker} "
            "(of ten who are one person one reads so too)"
        )
    if population.mismatched:
        yield (
            "monitor: note: calibration lacks the new speakers: people who share their microphone "
            "may read 1 to 2 bits too high; calibrate on your own speakers (monitor calibrate)"
        )
    elif len(population) < 2:
        yield f"next: add whom it could be taken for:  monitor enrol PEOPLE --add -o {output}"
        return
    elif not len(population.rank_models) and len(population) < FEWEST_SPEAKERS:
        yield (
            f"next: {FEWEST_SPEAKERS} speakers or more can be calibrated; fewer go beside the "
            f"shipped readers (--speaker NAME --base reference). More:  monitor enrol PEOPLE "
            f"--add -o {output}"
        )
    elif not len(population.rank_models):
        yield f"next: learn what a rank means:  monitor calibrate {people} -o {output}"
    try:
        scoring = population.scoring()
    except UsageError as error:
        yield f"monitor: note: {error}; enrol more speech"
        return
    usual, have = population.common_seconds, population.template_seconds
    least = min(
        (MISMATCH * rank_model.template_lengths[0] for rank_model in population.rank_models),
        default=0.0,
    )
    named = list(zip(population.names, have.tolist(), scoring.members.tolist(), strict=True))
    little = [name for name, seconds, _ in named if seconds < least]
    if little:
        yield (
            f"monitor: note: {_some(little)}: too little speech to be compared, the rank model "
            f"knows no templates under {least / MISMATCH:g} s; enrol more"
        )
    out = [name for name, seconds, member in named if not member and seconds >= least]
    if out:
        yield (
            f"monitor: note: {_some(out)}: not among the {int(scoring.members.sum())} compared, "
            f"unless watched: cut to so little, the others' templates ({usual:g} s) would not say "
            "much; enrol more with --add"
        )
    if scoring.seconds < usual:
        short = [name for name, seconds, member in named if member and seconds < usual]
        yield (
            f"monitor: note: all templates are cut to {scoring.seconds:g} s, the shortest of them: "
            f"{_some(short)} {'has' if len(short) == 1 else 'have'} less than the others' "
            f"{usual:g} s; an attacker with more would know more: enrol more with --add"
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


# --- The part of monitor enrol that hears a microphone.

MICROPHONE_SECONDS = 60.0
QUEUE_SECONDS = 60.0
"""Nobody waits for a reading: a slow machine may take its time."""
LINE_SECONDS = 10.0
DRAW_SECONDS = 0.1


def enrol_from_microphone(
    speaker: str, device: str | None, features: Sequence[str] | None, seconds: float
) -> Enrolment:
    """Hear a speaker until there is speech enough, or Ctrl-C, and make a template."""
    from dataclasses import replace

    from monitor.features.registry import defaults
    from monitor.run.pace import timed
    from monitor.sources.registry import open_live_source
    from monitor.training.enrolling import LiveEnrolment
    from monitor.types import Block, Gap

    setup = feature_setup()
    names = tuple(features) if features is not None else defaults(setup=setup)
    problems = []
    # much silence is said while it lasts, and is not waited through for ever
    longest = 5 * seconds + 60
    take = LiveEnrolment(timed(names, setup))
    microphone = open_live_source(
        f"mic:{device or ''}",
        seconds=longest,
        queue_seconds=QUEUE_SECONDS,
        report=lambda line: say(line),
    )
    with quiet_libraries(), microphone as heard, stopped_by_signals(heard.stop):
        say(f"speak, about anything; listening to {heard.label} (Ctrl-C stops)")
        with _bar(take, seconds) as draw:
            for item in heard:
                if isinstance(item, Block):
                    take.push(item)
                elif isinstance(item, Gap):
                    problems.append(f"{item.reason}: {item.detail}")
                draw()
                if take.speech_seconds > seconds:  # then all frames of the wanted part are there
                    heard.stop()
    for line in take.noticed:
        say(f"monitor: note: {line}")
    if trouble := take.whole.trouble:
        what, _, cure = trouble.partition(": ")
        say(f"monitor: note: the take was {what}; better take another one, and {cure}")
    made = take.enrolment(speaker, "microphone", seconds, setup)
    return replace(made, problems=(*made.problems, *problems))


@contextmanager
def _bar(take: LiveEnrolment, seconds: float) -> Iterator[Callable[[], None]]:
    """A bar of usable speech, with level and trouble; a line now and then without a terminal."""
    from monitor.sinks.console import PlainConsole

    console = PlainConsole(stderr=True)
    last = time.monotonic()
    if not console.is_terminal:

        def tell() -> None:
            nonlocal last
            if time.monotonic() - last >= LINE_SECONDS:
                last = time.monotonic()
                say(f"{take.speech_seconds:.0f} of {seconds:g} s; {_state(take)}")

        yield tell
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("speech"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f} of {task.total:g} s"),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        task = progress.add_task("", total=seconds)

        def draw() -> None:
            nonlocal last
            if time.monotonic() - last >= DRAW_SECONDS:
                last = time.monotonic()
                done = min(take.speech_seconds, seconds)
                progress.update(task, completed=done, description=_state(take))
                progress.refresh()

        yield draw
        progress.update(task, completed=min(take.speech_seconds, seconds), refresh=True)


def _state(take: LiveEnrolment) -> str:
    recent = take.recent
    return recent.trouble or f"{recent.level_decibels:.0f} dB, good"


# --- The parts of monitor enrol and score that go by VoicePrivacy's lists of enrolment and trials.


def lists_of(folder: Path) -> TrialLists | None:
    """The lists of trials in a folder; None where there are none."""
    from monitor.corpus.finding import trial_lists

    return trial_lists(folder)


def enrolment_listed(folder: Path, found: Corpus) -> Corpus:
    """What a folder's ``enrolls`` lists of its recordings; all of them where there is no list."""
    from monitor.corpus.finding import enrolment_of

    listed = enrolment_of(folder)
    if listed is None:
        return found
    return _listed(found, listed, folder)


def own_templates(
    folder: Path,
    lists: TrialLists,
    found: Corpus,
    features: Sequence[str] | None,
    seconds: float,
    workers: JobOptions,
) -> Population:
    """Templates of what the lists of a folder, or of that beside it, say is enrolment speech."""
    from monitor.cli.inputs import load_speaker_model, plan_of
    from monitor.cli.options import progress_over
    from monitor.corpus.finding import enrolment_beside, find
    from monitor.errors import UsageError
    from monitor.training.enrolling import enrol

    if lists.enrolment is not None:
        corpus = _listed(found, lists.enrolment, folder)
    elif (beside := enrolment_beside(folder.resolve())) is not None:
        corpus = enrolment_listed(beside, find(beside))
        say(f"plan: templates of {beside.name}")
    else:
        raise UsageError(
            f"{folder.name} has trials and no enrolls, nor has a folder beside it: enrol first "
            "(monitor enrol ENROLLS -o us.npz), then give -p us.npz"
        )
    corpus = replace(
        corpus, recordings=tuple(each for each in corpus if each.speaker in lists.speakers)
    )
    for line in plan_of(corpus, f"; templates, up to {seconds:g} s of speech of each"):
        say(line)
    files = [each.path for each in corpus]
    load_speaker_model(features, files)
    with progress_over(len(files), "enrolling") as step:
        made = enrol(
            corpus,
            features=features,
            seconds=seconds,
            progress=lambda recording: step(recording.speaker, 1),
            jobs=workers.for_recordings(files),
            setup=feature_setup(),
        )
    for problem in made.problems:
        say(f"monitor: skipped: {problem}")
    return made.population


def _listed(found: Corpus, listed: frozenset[str], folder: Path) -> Corpus:
    """Those of the recordings that a list of utterances names."""
    from monitor.errors import CorpusError

    kept = tuple(each for each in found if each.session in listed)
    if not kept:
        raise CorpusError(f"enrolls of {folder.name} lists no utterance that wav.scp has")
    missing = sorted(listed - {each.session for each in kept})
    problems = [f"enrolls: {utterance} is not in wav.scp" for utterance in missing]
    return replace(
        found, recordings=kept, problems=(*found.problems, *problems), told_by="as enrolls has them"
    )


SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class EnrollOptions:
    """What was asked for."""

    paths: tuple[Path, ...] = argument("[DIR|MANIFEST|RECORDING...]", nargs=-1)
    speaker: str | None = option(
        "--speaker NAME",
        "All of it is this one person, whatever the folders are called; a sub-folder, or else a "
        "file, is a session.",
    )
    microphone: bool = option("--microphone", "Hear the speaker now, instead of recordings.")
    device: str | None = shared(device_option)
    output: Path = option(
        "-o, --output FILE.npz",
        "The population to write (private to you, mode 0600).",
        required=True,
    )
    seconds: float | None = option(
        "--seconds D",
        "Speech seconds of each speaker to use, at most. [default: 120; 60 from a microphone]",
        type=Seconds(),
    )
    channel: int | None = option(
        "--channel", "Hear this channel of recordings, from 1. [default: all, mixed]", least=1
    )
    add: bool = option(
        "--add",
        "Add these speakers to the population in -o; of one who is there, this is a further "
        "session, with a template of its own.",
    )
    base: str | None = option(
        "--base FILE|reference",
        "Add these speakers to that population instead, and write both to -o.",
    )
    replace: bool = option("--replace", "Overwrite -o if it exists.")
    features: tuple[str, ...] | None = option(
        "--features",
        "What to enrol, of f0, phones, voice, and style, of the transcripts beside the "
        "recordings. [default: all but style; of ready-made frames whatever they hold]",
        type=Features(),
    )
    speaker_model: ClassVar[Any] = speaker_model_option
    transcribing: Transcribing = group(Transcribing, "Words")
    workers: JobOptions = group(JobOptions, "Processes")


@click.command("enrol", cls=Command, short_help="Create templates of your speakers.")
@given(EnrollOptions)
def command(asked: EnrollOptions) -> int:
    """Make a template of every speaker and store them as a population.

    One person, among the shipped readers:

    \b
    monitor enrol me/ --speaker me --base reference -o me.npz         a folder, or recordings
    monitor enrol --microphone --speaker me --base reference -o me.npz
    monitor enrol --microphone --speaker me --add -o me.npz           another day, or by telephone

    Sessions that are added stay apart, with a template each: whichever is most like the voice that
    is heard counts most.

    Several people:

    \b
    monitor enrol voices/ -o us.npz
    monitor enrol voices/ --features f0 -o us.npz                     the quickest

    \b
    Without --speaker DIR holds a folder for each speaker (with a sub-folder for each session, or
    one file a session), LibriSpeech's SPEAKER/CHAPTER folders, or Kaldi's wav.scp + utt2spk.
    MANIFEST is a .csv or .tsv with the columns path, speaker and, if you have it, session. Who is
    taken for whom is printed before anything is heard.

    A template is biometric data, even without the audio: keep the file private, and delete it when
    it is not needed any more. Nothing of the audio itself is stored. `monitor people FILE.npz
    --forget NAME` takes one person out again.
    """
    from monitor.cli.inputs import check_model, load_speaker_model, plan_of
    from monitor.cli.options import progress_over
    from monitor.corpus.finding import BY_FOLDER, find
    from monitor.errors import StoreError, UnnamedSpeakerError, UsageError
    from monitor.features.registry import caveats, superseded
    from monitor.files import alone
    from monitor.population.population import Population
    from monitor.run.status import INCOMPLETE
    from monitor.safe_text import is_name
    from monitor.sources.registry import is_frames
    from monitor.training.enrolling import enrol, unlike_additions, unlike_sessions

    seconds = asked.seconds
    features = asked.features
    if asked.microphone and (asked.paths or not asked.speaker):
        raise UsageError("--microphone hears one speaker: give --speaker NAME and no DIR")
    if asked.speaker is not None and not is_name(asked.speaker):
        raise UsageError("--speaker needs a name that can be printed, of 200 characters at most")
    if asked.microphone and asked.channel is not None:
        raise UsageError("--channel is of recordings; of a microphone choose another --device")
    if not asked.microphone and asked.device:
        raise UsageError("--device goes with --microphone: add it, or leave out --device")
    if not asked.microphone and not asked.paths:
        raise UsageError("name a DIR, a MANIFEST or recordings, or add --microphone")
    if asked.add and asked.base is not None:
        raise UsageError("--add goes into -o itself; leave out --base")
    if asked.output.exists() and not (asked.add or asked.replace):
        raise UsageError(
            f"{asked.output} exists; use --add to add speakers or --replace to overwrite it"
        )
    check_output(asked.output)
    before, left_out, further = None, [], []
    if asked.add:
        before = Population.load(asked.output)
    elif asked.base is not None:
        before = (
            Population.reference() if asked.base == "reference" else Population.load(asked.base)
        )
    if before is not None:
        check_model(feature_setup().speaker, before, asked.base or asked.output)
    try:
        found = None if asked.microphone else find(*asked.paths, speaker=asked.speaker)
    except UnnamedSpeakerError as error:
        cure = f"if it is one person's:  {_named(asked.paths, asked.base, asked.add, asked.output)}"
        raise UnnamedSpeakerError(error.what, cure) from None
    if found is not None and asked.speaker is None:
        found = enrolment_listed(asked.paths[0], found)
    speakers = (asked.speaker or "",) if found is None else found.speakers
    if asked.add and before is not None:  # it leaves nothing out of a file that is already there
        features = features or tuple(before.features)
    found, features = asked.transcribing.enrolling(
        found, features, None if before is None else before.features
    )
    if before is not None and features is not None:
        if asked.base is not None:
            _check_words(before, features)
            before, had = before.only(features), tuple(before.features)
            rest = [name for name in had if name not in features]
            left_out = [name for name in rest if not superseded(name, features)]
        further = [name for name in speakers if name in before.names]
        if further and not asked.add:
            raise UsageError(
                f"{', '.join(further[:3])} enrolled already; choose another name (for a further "
                "session of the same person: --add)"
            )
        if found is not None:
            _check_new(before, [each.path for each in found if each.speaker in further])
    if seconds is None:
        seconds = MICROPHONE_SECONDS if found is None else SECONDS
    length = f"up to {seconds:g} s of speech"
    beside = "" if before is None else f", beside {len(before)} enrolled before"
    if further:
        some = ", ".join(further[:3]) + (", ..." if len(further) > 3 else "")
        beside += f"; a further session of {some}"
    if found is None:
        say(f"plan: {asked.speaker}, {length} from the microphone{beside}")
        load_speaker_model(features, ["-"])
        made = enrol_from_microphone(speakers[0], asked.device, features, seconds)
    else:
        doubt = found.told_by == BY_FOLDER and (len(speakers) > 1 or found.problems)
        hint = " (one person's folders? add --speaker NAME)" if doubt else ""
        for line in plan_of(found, f"; {length} of each{beside}{hint}"):
            say(line)
        files = [each.path for each in found.recordings]
        load_speaker_model(features, files)
        told: list[str] = []
        with progress_over(len(found.recordings), "enrolling") as step:
            made = enrol(
                found,
                features=features,
                seconds=seconds,
                channel=asked.channel,
                progress=lambda r: step(r.speaker, 1),
                jobs=asked.workers.for_recordings(files),
                told=told.append,
                setup=feature_setup(),
            )
        say_of_transcripts([*caveats(made.population.features), *told])
        kept = made.population.features if all(map(is_frames, files)) else ()
        say_unused_words(made.population.features, kept, asked.transcribing.transcript)
    with alone(asked.output) as locked:
        if asked.add:  # others may have been added while these were listened to
            before = Population.load(asked.output)
        elif asked.output.exists() and not asked.replace:
            raise StoreError(
                f"{asked.output} has been written by another process; name another file"
            )
        population = made.population
        if before is not None:
            population = (before.extended if asked.add else before.joined)(population)
        population.save(asked.output)
    if not locked:
        say(unlocked(asked.output))
    for problem in made.problems:
        say(f"monitor: skipped: {problem}")
    if left_out:
        say(
            f"monitor: note: {asked.output} is without {', '.join(left_out)}; choose with "
            "--features"
        )
    people = "PEOPLE" if asked.speaker is not None else str(asked.paths[0])
    unlike = []
    if before is not None:
        unlike = unlike_sessions(made.population, made.sessions, before)
        unlike += unlike_additions(before, population, made.sessions)
    for line in in_words(population, made.population, unlike, asked.output, people):
        say(line)
    return INCOMPLETE if made.problems else 0


def _named(paths: Sequence[Path], base: str | None, add: bool, output: Path) -> str:
    """The command that says who the one speaker is."""
    into = ["--add"] if add else [] if base is None else ["--base", base]
    words = ["monitor", "enrol", *map(str, paths), "--speaker", "NAME", *into, "-o", str(output)]
    return shlex.join(words)


def _check_new(before: Population, files: Sequence[Path]) -> None:
    """Refuse a further session that is enrolled already, before anything is heard."""
    from monitor.errors import SourceError, UsageError
    from monitor.sources.registry import recording_hashes

    for file in files:
        try:
            known = before.overlapping(recording_hashes(file))
        except SourceError:  # named and skipped when it is to be heard
            continue
        if whose := [speaker.name for speaker, note in known if note.used]:
            raise UsageError(
                f"{file.name} is enrolled already, as {whose[0]}: give other recordings; nothing "
                "was changed"
            )


def _check_words(before: Population, features: Sequence[str]) -> None:
    """Refuse features of words beside people who have none."""
    from monitor.errors import UsageError
    from monitor.features.registry import takes

    lacking = [name for name in features if name not in before.features and takes(name) == "words"]
    if lacking:
        raise UsageError(
            f"those enrolled before have no {', '.join(lacking)}, as the shipped readers have no "
            "words: leave it out, or enrol several people who have transcripts, without --base"
        )
