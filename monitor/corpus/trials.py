"""Lists of trials and enrolments in folders of VoicePrivacy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from monitor.corpus.recordings import Corpus
from monitor.corpus.tables import full_lines
from monitor.errors import CorpusError
from monitor.phrases import plural
from monitor.safe_text import is_printable

# The kits of the challenges of 2020 to 2024 add two lists to Kaldi's ``wav.scp`` and ``utt2spk``.
# ``enrolls`` has one utterance per line, ``trials`` one ``SPEAKER UTTERANCE target|nontarget`` per
# line. They are in one folder (``libri_dev``, with ``trials_f`` and ``trials_m``) or in separate
# folders (``libri_dev_enrolls``, ``libri_dev_trials_f``).
_FOLDER = re.compile(
    r"(?P<set>.+)_((?P<enrols>enrolls)|trials(_(?P<part>all|mixed|[fm](_(all|common))?))?)"
    r"(?P<suffix>_.+)?"
)


class FolderName(NamedTuple):
    """Name of one of VoicePrivacy's folders: ``libri_dev_trials_f_b2`` or ``libri_dev_enrolls``."""

    dataset: str
    part: str  # f, m, mixed, ...; empty for the enrolment and for a single list
    suffix: str  # "_b2" of anonymised speech, otherwise empty
    enrols: bool = False

    @property
    def enrolment(self) -> str:
        """Name of the matching folder of enrolment."""
        return f"{self.dataset}_enrolls{self.suffix}"


def parse_folder(name: str) -> FolderName | None:
    """Split the name of a folder of trials or enrolment; None for other names.

    Example:
        >>> parse_folder("libri_dev_trials_f_b2").suffix, parse_folder("libri_dev")
        ('_b2', None)
    """
    match = _FOLDER.fullmatch(name)
    if match is None:
        return None
    dataset, subset, suffix = (match[group] or "" for group in ("set", "part", "suffix"))
    return FolderName(dataset, subset, suffix, match["enrols"] is not None)


def find_lists_folder(folder: Path) -> Path:
    """Return the folder with the lists: itself, or that of the original speech beside it.

    For anonymised speech, the challenges require only ``SET_trials_f_SUFFIX/wav/UTTERANCE.wav``,
    and copy the lists of ``SET_trials_f``.
    """
    folder = folder.resolve()
    name = parse_folder(folder.name)
    if name is None or not name.suffix or (folder / "wav.scp").is_file():
        return folder
    original = folder.with_name(folder.name.removesuffix(name.suffix))
    return original if (original / "wav.scp").is_file() else folder


@dataclass(frozen=True, slots=True)
class TrialLists:
    """Lists of enrolment and trials of a folder."""

    enrolment: frozenset[str] | None  # enrolment utterances, or None without a list
    speakers: tuple[str, ...]  # speakers to compare with, in the order of the lists
    spoken_by: Mapping[str, str]  # target speaker by trial utterance
    impostors: frozenset[str]  # trial utterances without a target
    pairs: int  # listed comparisons
    listed: Mapping[str, Mapping[tuple[str, str], bool]]
    """Whether each pair of speaker and utterance is a target, by the name of the list."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the lists of trials."""
        return tuple(self.listed)

    def trials(self, corpus: Corpus, *, impostors: bool = False) -> Corpus:
        """Return the recordings that are trials, with the speakers' names in the lists.

        Impostors' recordings follow, under their own names, if requested.
        """
        lists = ", ".join(self.names)
        missing = sorted(self.spoken_by.keys() - {recording.session for recording in corpus})
        problems = [f"{lists}: {utterance} is in no wav.scp here" for utterance in missing]
        trials = [
            replace(recording, speaker=self.spoken_by[recording.session])
            for recording in corpus
            if recording.session in self.spoken_by
        ]
        if not trials:
            raise CorpusError(f"{lists} lists no recording found here")
        order = {name: i for i, name in enumerate(self.speakers)}
        trials.sort(key=lambda recording: order[recording.speaker])
        if impostors:
            trials += [recording for recording in corpus if recording.session in self.impostors]
        layout = f"as {lists} {'has' if len(self.names) == 1 else 'have'} them"
        return Corpus(tuple(trials), (*corpus.problems, *problems), layout)

    def notes(self, corpus: Corpus) -> Iterator[str]:
        """Yield one line per kind of unused entry, with the reason."""
        lists = ", ".join(self.names)
        speaker_of = {recording.session: recording.speaker for recording in corpus}
        impostors = sorted({speaker_of[u] for u in self.impostors & speaker_of.keys()})
        if impostors:
            names = f"{', '.join(impostors[:5])}{', ...' if impostors[5:] else ''}"
            yield (
                f"{plural(len(self.impostors), 'utterance')} of "
                f"{plural(len(impostors), 'speaker')} ({names}) have no target in {lists}. They "
                "are impostors without a rank and were left out of the matrix"
            )
        full = (len(self.spoken_by) + len(self.impostors)) * len(self.speakers)
        if self.pairs < full:
            yield (
                f"{lists} list {self.pairs} of {full} comparisons. Ranks need every trial compared "
                f"with all {len(self.speakers)}, so all comparisons were made. To separate the "
                "sexes, use `monitor evaluate --group-by gender`"
            )
        others = speaker_of.keys() - self.spoken_by.keys() - self.impostors
        if others := others - (self.enrolment or frozenset()):
            yield f"{plural(len(others), 'recording')} in no list: left out"


def read_trial_lists(folder: Path) -> TrialLists | None:
    """Read the lists of trials in a folder, or return None."""
    lists = _find_lists(folder, "trials")
    if not lists:
        return None
    spoken_by: dict[str, str] = {}
    listed: dict[str, dict[tuple[str, str], bool]] = {path.name: {} for path in lists}
    for path in lists:
        for number, line in enumerate(full_lines(path), 1):
            match line.split():
                case [speaker, utterance, "target" | "nontarget" as label] if is_printable(
                    f"{speaker} {utterance}"
                ):
                    pair, target = (speaker, utterance), label == "target"
                    if listed[path.name].setdefault(pair, target) != target:
                        raise CorpusError(
                            f"{path.name} line {number}: {speaker} {utterance} is both target and "
                            "nontarget. Correct it"
                        )
                case _:
                    raise CorpusError(
                        f"{path.name} line {number} must be SPEAKER UTTERANCE target|nontarget"
                    )
            if label == "target" and spoken_by.setdefault(utterance, speaker) != speaker:
                raise CorpusError(
                    f"{path.name} line {number}: {utterance} is a target of {spoken_by[utterance]} "
                    f"and of {speaker}"
                )
    pairs = dict.fromkeys(pair for table in listed.values() for pair in table)
    return TrialLists(
        read_enrolment(folder),
        tuple(dict.fromkeys(speaker for speaker, _ in pairs)),
        spoken_by,
        frozenset(utterance for _, utterance in pairs) - spoken_by.keys(),
        len(pairs),
        listed,
    )


def read_enrolment(folder: Path) -> frozenset[str] | None:
    """Read the utterances in the ``enrolls`` of a folder; None if there is no such list."""
    lists = _find_lists(folder, "enrolls")
    if not lists:
        return None
    firsts = (line.split()[0] for path in lists for line in full_lines(path))
    utterances = frozenset(filter(is_printable, firsts))
    if not utterances:
        raise CorpusError(f"{lists[0].name} of {folder.name} lists no utterance")
    return utterances


def find_enrolment_folder(folder: Path) -> Path | None:
    """Find the folder of enrolment for a folder of trials, by VoicePrivacy's names."""
    name = parse_folder(folder.name)
    if name is None or name.enrols:
        return None
    enrolment = folder.parent / name.enrolment
    return enrolment if enrolment.is_dir() and read_enrolment(enrolment) else None


def _find_lists(folder: Path, name: str) -> list[Path]:
    folder = find_lists_folder(folder)
    if not (folder / "wav.scp").is_file():
        return []
    paths = sorted(folder.iterdir())
    return [path for path in paths if re.fullmatch(rf"{name}(_\w+)?", path.name) and path.is_file()]
