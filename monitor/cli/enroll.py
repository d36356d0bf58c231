"""monitor enroll: make templates of speakers."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from monitor.cli.jobs import jobs_option, processes, scheduler_option
from monitor.cli.live import device_option
from monitor.cli.options import (
    Features,
    Seconds,
    check_output,
    ecapa_option,
    speaker_model_option,
    unlocked,
)
from monitor.cli.saying import say
from monitor.cli.transcript_options import (
    Transcribing,
    say_of_transcripts,
    say_unused_words,
    transcribing_options,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monitor.population.population import Population

__all__ = ["command"]

SECONDS = 120.0


@click.command("enroll", short_help="Make templates of your own speakers.")
@click.argument(
    "paths", nargs=-1, type=click.Path(path_type=Path), metavar="[DIR|MANIFEST|RECORDING...]"
)
@click.option(
    "--speaker",
    metavar="NAME",
    help="All of it is this one person, whatever the folders are called; a sub-folder, or else a "
    "file, is a session.",
)
@click.option("--microphone", is_flag=True, help="Hear the speaker now, instead of recordings.")
@device_option
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE.npz",
    help="The population to write (private to you, mode 0600).",
)
@click.option(
    "--seconds",
    type=Seconds(),
    metavar="D",
    help="Speech seconds of each speaker to use, at most. [default: 120; 60 from a microphone]",
)
@click.option(
    "--channel",
    type=click.IntRange(min=1),
    help="Hear this channel of recordings, from 1. [default: all, mixed]",
)
@click.option(
    "--add",
    is_flag=True,
    help="Add these speakers to the population in -o; of one who is there, this is a further "
    "session.",
)
@click.option(
    "--base",
    metavar="FILE|reference",
    help="Add these speakers to that population instead, and write both to -o.",
)
@click.option("--replace", is_flag=True, help="Overwrite -o if it exists.")
@click.option(
    "--features",
    type=Features(),
    help="What to enrol, of f0, phones, voice, identity, and style, of the transcripts beside the "
    "recordings. [default: all but style; of voice and identity the better one that is there; of "
    "ready-made frames whatever they hold]",
)
@ecapa_option
@speaker_model_option
@transcribing_options
@jobs_option
@scheduler_option
def command(
    paths: tuple[Path, ...],
    speaker: str | None,
    microphone: bool,
    device: str | None,
    output: Path,
    seconds: float | None,
    channel: int | None,
    add: bool,
    base: str | None,
    replace: bool,
    features: tuple[str, ...] | None,
    transcribing: Transcribing,
    jobs: int | None,
) -> int:
    """Make a template of every speaker and store them as a population.

    One person, among the shipped readers:

    \b
    monitor enroll me/ --speaker me --base reference -o me.npz         a folder, or recordings
    monitor enroll --microphone --speaker me --base reference -o me.npz
    monitor enroll --microphone --speaker me --add -o me.npz           another day: a session more

    Several people:

    \b
    monitor enroll voices/ -o us.npz
    monitor enroll voices/ --features f0 -o us.npz                     the quickest

    \b
    Without --speaker DIR holds a folder for each speaker (with a sub-folder for each session, or
    one file a session), LibriSpeech's SPEAKER/CHAPTER folders, or Kaldi's wav.scp + utt2spk.
    MANIFEST is a .csv or .tsv with the columns path, speaker and, if you have it, session. Who is
    taken for whom is printed before anything is heard.

    A template is biometric data, even without the audio: keep the file private, and delete it when
    it is not needed any more. Nothing of the audio itself is stored. `monitor forget NAME -p FILE`
    takes one person out again.
    """
    from monitor.atomic import alone
    from monitor.cli.enroll_microphone import MICROPHONE_SECONDS, enrol_from_microphone
    from monitor.cli.enrolment_report import in_words
    from monitor.cli.inputs import check_model, load_identity
    from monitor.cli.plan import plan_of
    from monitor.cli.progress import progress_over
    from monitor.cli.voiceprivacy import enrolment_listed
    from monitor.corpus.finding import find
    from monitor.corpus.folders import BY_FOLDER
    from monitor.errors import StoreError, UnnamedSpeakerError, UsageError
    from monitor.features.registry import caveats, superseded
    from monitor.population.population import Population
    from monitor.run.status import INCOMPLETE
    from monitor.safe_text import is_name
    from monitor.sources.registry import is_frames
    from monitor.training.enrolling import enrol
    from monitor.training.session_check import unlike_additions, unlike_sessions

    if microphone and (paths or not speaker):
        raise UsageError("--microphone hears one speaker: give --speaker NAME and no DIR")
    if speaker is not None and not is_name(speaker):
        raise UsageError("--speaker needs a name that can be printed, of 200 characters at most")
    if microphone and channel is not None:
        raise UsageError("--channel is of recordings; of a microphone choose another --device")
    if not microphone and (not paths or device):
        raise UsageError("name a DIR, a MANIFEST or recordings; --device goes with --microphone")
    if add and base is not None:
        raise UsageError("--add goes into -o itself; leave out --base")
    if output.exists() and not (add or replace):
        raise UsageError(f"{output} exists; use --add to add speakers or --replace to overwrite it")
    check_output(output)
    before, left_out, further = None, [], []
    if add:
        before = Population.load(output)
    elif base is not None:
        before = Population.reference() if base == "reference" else Population.load(base)
    if before is not None:
        check_model(before, base or output)
    try:
        found = None if microphone else find(*paths, speaker=speaker)
    except UnnamedSpeakerError as error:
        cure = f"if it is one person's:  {_named(paths, base, add, output)}"
        raise UnnamedSpeakerError(error.what, cure) from None
    if found is not None and speaker is None:
        found = enrolment_listed(paths[0], found)
    speakers = (speaker or "",) if found is None else found.speakers
    if add and before is not None:  # it leaves nothing out of a file that is already there
        features = features or tuple(before.features)
    found, features = transcribing.enrolling(
        found, features, None if before is None else before.features
    )
    if before is not None and features is not None:
        if base is not None:
            _check_words(before, features)
            before, had = before.only(features), tuple(before.features)
            rest = [name for name in had if name not in features]
            left_out = [name for name in rest if not superseded(name, features)]
        further = [name for name in speakers if name in before.names]
        if further and not add:
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
        say(f"plan: {speaker}, {length} from the microphone{beside}")
        load_identity(features, ["-"])
        made = enrol_from_microphone(speakers[0], device, features, seconds)
    else:
        doubt = found.told_by == BY_FOLDER and (len(speakers) > 1 or found.problems)
        hint = " (one person's folders? add --speaker NAME)" if doubt else ""
        for line in plan_of(found, f"; {length} of each{beside}{hint}"):
            say(line)
        files = [each.path for each in found.recordings]
        load_identity(features, files)
        told: list[str] = []
        with progress_over(len(found.recordings), "enrolling") as step:
            made = enrol(
                found,
                features=features,
                seconds=seconds,
                channel=channel,
                progress=lambda r: step(r.speaker, 1),
                jobs=processes(jobs, files),
                told=told.append,
            )
        say_of_transcripts([*caveats(made.population.features), *told])
        kept = made.population.features if all(map(is_frames, files)) else ()
        say_unused_words(made.population.features, kept, transcribing.transcript)
    with alone(output) as locked:
        if add:  # others may have been added while these were listened to
            before = Population.load(output)
        elif output.exists() and not replace:
            raise StoreError(f"{output} has been written by another process; name another file")
        population = made.population
        if before is not None:
            population = (before.extended if add else before.joined)(population)
        population.save(output)
    if not locked:
        say(unlocked(output))
    for problem in made.problems:
        say(f"monitor: skipped: {problem}")
    if left_out:
        say(
            f"monitor: note: {output} is without {', '.join(left_out)}; choose with --features "
            "(identity needs the extra 'identity', and --ecapa or MONITOR_ECAPA)"
        )
    people = "PEOPLE" if speaker is not None else str(paths[0])
    unlike = []
    if before is not None:
        unlike = unlike_sessions(made.population, made.sessions, before)
        unlike += unlike_additions(before, population, made.sessions)
    for line in in_words(population, made.population, unlike, output, people):
        say(line)
    return INCOMPLETE if made.problems else 0


def _named(paths: Sequence[Path], base: str | None, add: bool, output: Path) -> str:
    """The command that says who the one speaker is."""
    into = ["--add"] if add else [] if base is None else ["--base", base]
    words = ["monitor", "enroll", *map(str, paths), "--speaker", "NAME", *into, "-o", str(output)]
    return shlex.join(words)


def _check_new(before: Population, files: Sequence[Path]) -> None:
    """Refuse a further session that is enrolled already, before anything is heard.

    Raises:
        UsageError: one of the files is.
    """
    from monitor.errors import SourceError, UsageError
    from monitor.sources.fingerprints import recording_hashes

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
