"""The parts of monitor enroll and score that go by VoicePrivacy's lists of enrolment and trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.cli.jobs import processes
from monitor.cli.saying import say

if TYPE_CHECKING:
    from monitor.corpus.recordings import Corpus
    from monitor.corpus.trials import TrialLists
    from monitor.population.population import Population

__all__ = ["enrolment_listed", "lists_of", "own_templates"]


def lists_of(folder: Path) -> TrialLists | None:
    """The lists of trials in a folder; None where there are none."""
    from monitor.corpus.trials import trial_lists

    return trial_lists(folder)


def enrolment_listed(folder: Path, found: Corpus) -> Corpus:
    """What a folder's ``enrolls`` lists of its recordings; all of them where there is no list.

    Raises:
        CorpusError: none of them is there.
    """
    from monitor.corpus.trials import enrolment_of

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
    jobs: int | None,
) -> Population:
    """Templates of what the lists of a folder, or of that beside it, say is enrolment speech.

    Raises:
        UsageError: no list says.
        CorpusError: nobody could be enrolled.
    """
    from monitor.cli.inputs import load_identity
    from monitor.cli.plan import plan_of
    from monitor.cli.progress import progress_over
    from monitor.corpus.finding import find
    from monitor.corpus.trials import enrolment_beside
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
            "(monitor enroll ENROLLS -o us.npz), then give -p us.npz"
        )
    corpus = replace(
        corpus, recordings=tuple(each for each in corpus if each.speaker in lists.speakers)
    )
    for line in plan_of(corpus, f"; templates, up to {seconds:g} s of speech of each"):
        say(line)
    files = [each.path for each in corpus]
    load_identity(features, files)
    with progress_over(len(files), "enrolling") as step:
        made = enrol(
            corpus,
            features=features,
            seconds=seconds,
            progress=lambda recording: step(recording.speaker, 1),
            jobs=processes(jobs, files),
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
