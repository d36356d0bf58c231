"""A VoicePrivacy data folder as its challenge evaluates it: the EERs of its lists of trials."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from monitor.corpus.trials import (
    FolderName,
    TrialLists,
    find_enrolment_folder,
    find_lists_folder,
    parse_folder,
    read_enrolment,
    read_trial_lists,
)
from monitor.datasets.opening import text_lines
from monitor.errors import UsageError
from monitor.lab.evaluation.input.files import read_map
from monitor.lab.evaluation.verification import eer
from monitor.lab.evaluation.voiceprivacy import ChallengeRow, eers_by_gender
from monitor.types import FloatArray

_GENDERS = "spk2gender"


@dataclass(frozen=True)
class ListedTrials:
    """Lists of trials of a folder, such as ``libri_dev_trials_mixed``, and speakers' genders."""

    folder: Path  # of the trials
    enrolment: Path  # folder of the enrolment, which may be the same
    lists: TrialLists
    genders: Mapping[str, str]  # "f" or "m" by speaker, as far as known
    # transcript by utterance of the trials (``text``); empty without one
    texts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_folder(cls, folder: Path) -> ListedTrials:
        """Read a Kaldi folder with ``trials``, and ``enrolls`` there or in the folder beside it.

        Raises UsageError if there are no such lists.
        """
        lists = read_trial_lists(folder)
        if lists is None:
            raise UsageError(
                f"{folder.name} has no list of trials: use a VoicePrivacy folder with wav.scp and "
                "trials, such as libri_dev_trials_mixed"
            )
        enrolment = folder if lists.enrolment else find_enrolment_folder(folder.resolve())
        if enrolment is None:
            raise UsageError(
                f"{folder.name} has no enrolls, and there is no folder of enrolment beside it: use "
                f"SET_enrolls beside SET_trials"
            )
        genders: dict[str, str] = {}
        for each in (enrolment, folder):
            path = find_lists_folder(each) / _GENDERS
            genders |= read_map(path) if path.is_file() else {}
        text = find_lists_folder(folder) / "text"
        lines = (line.partition(" ") for line in (text_lines(text) if text.is_file() else ()))
        return cls(folder, enrolment, lists, genders, {name: words for name, _, words in lines})

    @property
    def dataset(self) -> str:
        """Name of the data set, without part and suffix."""
        return self._name.dataset

    @property
    def enrolments(self) -> dict[str, Path]:
        """Folders to enrol, by the sides (`ChallengeRow`) of their comparisons.

        A suffix in the folder's name marks anonymised speech. The original enrolment beside it, if
        any, is an ignorant attacker's.
        """
        if not self._name.suffix:
            return {"oo": self.enrolment}
        original = self.folder.resolve().with_name(self._name._replace(suffix="").enrolment)
        ignorant = {"oa": original} if read_enrolment(original) else {}
        return ignorant | {"aa": self.enrolment}

    @property
    def _name(self) -> FolderName:
        return parse_folder(self.folder.name) or FolderName(self.folder.name, "", "")

    def notes(self, speakers: Container[str], utterances: Container[str]) -> Iterator[str]:
        """Yield a line for each list with pairs that lack an enrolled speaker or a trial."""
        for name, listed in self.lists.listed.items():
            lost = sum(who not in speakers or trial not in utterances for who, trial in listed)
            if lost:
                yield (
                    f"{lost} of {len(listed)} pairs in {name} have no speech and are not in the "
                    "EERs. The challenge scores them"
                )

    def rows(
        self, network: str, sides: str, scores: FloatArray, speakers: Mapping[str, int],
        utterances: Mapping[str, int], spoken_by: Mapping[str, str],
    ) -> Iterator[ChallengeRow]:  # fmt: skip
        """Compute the EERs of each list at the nearest threshold, and by gender.

        Pairs without a score are left out.

        Args:
            network: heading of the section (`ChallengeRow`).
            sides: "oo", "oa" or "aa": enrolment and trial, original or anonymised.
            scores: shape (n, N).
            speakers: column of each enrolled speaker.
            utterances: row of each trial.
            spoken_by: speaker of each trial.

        Raises:
            UsageError: if a list has no target or no nontarget pair with scores.
        """
        for name, listed in self.lists.listed.items():
            pairs = [pair for pair in listed if pair[0] in speakers and pair[1] in utterances]
            mated = np.array([listed[pair] for pair in pairs], np.bool_)
            if not mated.any() or mated.all():
                raise UsageError(
                    f"{name} of {self.folder.name} needs target and nontarget pairs with speech"
                )
            columns = np.array([speakers[speaker] for speaker, _ in pairs])
            values = scores[np.array([utterances[trial] for _, trial in pairs]), columns]
            subset = name.partition("_")[2] or self._name.part or "all"
            rate = eer(values[mated], values[~mated], "nearest")
            yield ChallengeRow(network, self.dataset, subset, sides, rate)
            enrolled = np.array([self.genders.get(speaker, "") for speaker, _ in pairs])
            spoken = np.array([self.genders.get(spoken_by[trial], "") for _, trial in pairs])
            for gender, rate in eers_by_gender(values, mated, spoken, enrolled):
                yield ChallengeRow(network, self.dataset, gender, sides, rate)
