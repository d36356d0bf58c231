"""The lists of VoicePrivacy's data folders: which utterances enrol, and which are trials of whom.

Beside Kaldi's ``wav.scp`` and ``utt2spk`` stand ``enrolls`` (an utterance a line) and ``trials``
(``SPEAKER UTTERANCE target|nontarget`` a line), in one folder (``libri_dev``, with ``trials_f`` and
``trials_m``) or in folders of their own (``libri_dev_enrolls``, ``libri_dev_trials_f``), as the
kits of the challenges of 2020 to 2024 have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from monitor.corpus.recordings import Corpus
from monitor.errors import CorpusError
from monitor.phrases import plural

__all__ = ["TrialLists", "enrolment_beside", "enrolment_of", "trial_lists"]

_ENROLS = re.compile(r"enrolls(_\w+)?")
_TRIALS = re.compile(r"trials(_\w+)?")
_FOLDER = re.compile(r"(?P<set>.+)_trials(_(all|mixed|[fm](_(all|common))?))?(?P<suffix>_\w+)?")
_LABELS = ("target", "nontarget")


@dataclass(frozen=True, slots=True)
class TrialLists:
    """What the lists of a folder say.

    Attributes:
        enrolment: utterances that enrol; None where the folder has no such list.
        speakers: who is compared with, in the order of the lists.
        spoken_by: of each trial utterance with a target, who that is.
        impostors: trial utterances without one: their speaker is not among those compared with.
        pairs: comparisons that are listed.
        names: of the lists of trials.
    """

    enrolment: frozenset[str] | None
    speakers: tuple[str, ...]
    spoken_by: Mapping[str, str]
    impostors: frozenset[str]
    pairs: int
    names: tuple[str, ...]

    def trials(self, corpus: Corpus) -> Corpus:
        """The recordings that are trials of somebody, under the names that the lists have.

        Raises:
            CorpusError: there is none.
        """
        found = {each.session: each for each in corpus.recordings}
        problems = [
            f"{', '.join(self.names)}: {utterance} is in no wav.scp here"
            for utterance in sorted(self.spoken_by.keys() - found.keys())
        ]
        kept = tuple(
            replace(each, speaker=self.spoken_by[each.session])
            for each in corpus.recordings
            if each.session in self.spoken_by
        )
        if not kept:
            raise CorpusError(f"{', '.join(self.names)} names no recording that is here")
        order = {name: i for i, name in enumerate(self.speakers)}
        kept = tuple(sorted(kept, key=lambda each: order[each.speaker]))
        said = f"as {', '.join(self.names)} {'has' if len(self.names) == 1 else 'have'} them"
        return Corpus(kept, (*corpus.problems, *problems), said)

    def notes(self, corpus: Corpus) -> Iterator[str]:
        """What is not taken, and why; a line each."""
        here = {each.session: each.speaker for each in corpus.recordings}
        strange = sorted({here[u] for u in self.impostors & here.keys()})
        if strange:
            yield (
                f"{plural(len(self.impostors), 'utterance')} of {_some(strange)}: without a target "
                f"in {', '.join(self.names)}, so that nobody compared with has said them: left out "
                "of the matrix (impostors, who have no rank)"
            )
        listed = len(self.spoken_by) + len(self.impostors)
        whole = listed * len(self.speakers)
        if self.pairs < whole:
            yield (
                f"{', '.join(self.names)} list {self.pairs} of {whole} comparisons: every trial is "
                f"compared with all {len(self.speakers)} nevertheless, as ranks take it; to keep "
                "the sexes apart, `monitor evaluate --group-by gender`"
            )
        others = {
            each.session for each in corpus.recordings
        } - self.spoken_by.keys() - self.impostors - (self.enrolment or frozenset())  # fmt: skip
        if others:
            yield f"{plural(len(others), 'recording')} in no list: left out"


def trial_lists(folder: Path) -> TrialLists | None:
    """The lists of trials in a folder; None where there is none.

    Raises:
        CorpusError: a list cannot be read, says two things of one utterance, or something else
            than ``SPEAKER UTTERANCE target|nontarget``.
    """
    lists = _named(folder, _TRIALS)
    if not lists or not (folder / "wav.scp").is_file():
        return None
    spoken: dict[str, str] = {}
    speakers: dict[str, None] = {}
    heard: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    for path in lists:
        for number, line in enumerate(_lines(path), 1):
            words = line.split()
            if len(words) != 3 or words[2] not in _LABELS or not "".join(words).isprintable():
                raise CorpusError(
                    f"{path.name} line {number} is not SPEAKER UTTERANCE target|nontarget"
                )
            speaker, utterance, label = words
            speakers[speaker] = None
            heard.add(utterance)
            pairs.add((speaker, utterance))
            if label == "target" and spoken.setdefault(utterance, speaker) != speaker:
                raise CorpusError(
                    f"{path.name} line {number}: {utterance} is a target of {spoken[utterance]} "
                    f"and of {speaker}"
                )
    return TrialLists(
        enrolment_of(folder),
        tuple(speakers),
        spoken,
        frozenset(heard - spoken.keys()),
        len(pairs),
        tuple(path.name for path in lists),
    )


def enrolment_of(folder: Path) -> frozenset[str] | None:
    """The utterances that the ``enrolls`` of a folder lists; None where there is no such list.

    Raises:
        CorpusError: it cannot be read, or lists nothing.
    """
    lists = _named(folder, _ENROLS)
    if not lists or not (folder / "wav.scp").is_file():
        return None
    found = frozenset(
        words[0]
        for path in lists
        for line in _lines(path)
        if (words := line.split()) and words[0].isprintable()
    )
    if not found:
        raise CorpusError(f"{lists[0].name} of {folder.name} lists no utterance")
    return found


def enrolment_beside(folder: Path) -> Path | None:
    r"""The folder of enrolment that belongs to one of trials, by VoicePrivacy's names; or None.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as root:
        ...     for name in ("libri_dev_enrolls_b2", "libri_dev_trials_f_b2"):
        ...         Path(root, name).mkdir()
        ...     _ = Path(root, "libri_dev_enrolls_b2", "enrolls").write_text("1462-170138-0000\n")
        ...     _ = Path(root, "libri_dev_enrolls_b2", "wav.scp").write_text("")
        ...     enrolment_beside(Path(root, "libri_dev_trials_f_b2")).name
        'libri_dev_enrolls_b2'
    """
    match = _FOLDER.fullmatch(folder.name)
    if match is None:
        return None
    beside = folder.parent / f"{match['set']}_enrolls{match['suffix'] or ''}"
    return beside if beside.is_dir() and enrolment_of(beside) else None


def _named(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    """The lists of a folder, in the order of their names."""
    if not folder.is_dir():
        return []
    return sorted(
        path for path in folder.iterdir() if pattern.fullmatch(path.name) and path.is_file()
    )


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise CorpusError(f"cannot open {path.name}: {error.strerror}; check the name") from None
    except UnicodeDecodeError:
        raise CorpusError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None


def _some(names: list[str]) -> str:
    return f"{plural(len(names), 'speaker')} ({', '.join(names[:5])}{', ...' if names[5:] else ''})"
