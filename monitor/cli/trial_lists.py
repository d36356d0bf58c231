"""Selections by VoicePrivacy's lists of enrolment and trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.cli.inputs import load_speaker_model, plan_of, say_of_transcripts
from monitor.cli.options import JobOptions, feature_setup, progress_over, say
from monitor.errors import CorpusError, UsageError

if TYPE_CHECKING:
    from monitor.corpus.recordings import Corpus
    from monitor.corpus.trials import TrialLists
    from monitor.population.population import Population


def select_enrolment(folder: Path, corpus: Corpus) -> Corpus:
    """Select the recordings that a folder's ``enrolls`` lists; all where there is no list."""
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
    """Enrol the speech that the lists of a folder, or of that beside it, name."""
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
    say(*plan_of(corpus, f"; templates, up to {seconds:g} s of speech of each"))
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
