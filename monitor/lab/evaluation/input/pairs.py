"""Lists of pairs of a trial and an enrolled speaker: checked, joined with a trial list, merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation.input.files import check_names, check_spelling
from monitor.lab.evaluation.memory import JOIN_BYTES, refuse_beyond_memory
from monitor.phrases import plural
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Pairs:
    """The n lines of a list, and the label of its file in messages.

    Names of trials and speakers are in order of first appearance. Each line has an index of both, a
    score, and whether it is a target; None if the list has no such column. Names of a `numbered`
    list are numbers from 0.
    """

    label: str
    trials: tuple[str, ...]
    speakers: tuple[str, ...]
    trial: IntArray
    speaker: IntArray
    scores: FloatArray | None
    target: BoolArray | None
    numbered: bool = False

    @property
    def codes(self) -> IntArray:
        """Number of each line's pair, ascending by trial: shape (n,)."""
        return self.trial.astype(np.int64) * len(self.speakers) + self.speaker

    def take(self, rows: AnyArray) -> Pairs:
        """Take lines by their indices, or by a mask."""
        return replace(
            self, trial=self.trial[rows], speaker=self.speaker[rows],
            scores=None if self.scores is None else self.scores[rows],
            target=None if self.target is None else self.target[rows],
        )  # fmt: skip

    def without_empty(self) -> Pairs:
        """Drop trials and speakers without any line."""
        trial, trials = _compact(self.trial, self.trials)
        speaker, speakers = _compact(self.speaker, self.speakers)
        return replace(self, trial=trial, trials=trials, speaker=speaker, speakers=speakers)

    def by_trial(self) -> Pairs:
        """Sort lines by trial, and keep their order within a trial."""
        if (self.trial[1:] >= self.trial[:-1]).all():
            return self
        return self.take(np.argsort(self.trial, kind="stable"))

    def targets(self) -> list[tuple[int, int]]:
        """Return trial and speaker of each target line."""
        which = self.target
        assert which is not None
        return list(zip(self.trial[which].tolist(), self.speaker[which].tolist(), strict=True))


def _compact(numbers: IntArray, names: tuple[str, ...]) -> tuple[IntArray, tuple[str, ...]]:
    present = np.bincount(numbers, minlength=len(names)) > 0
    if present.all():
        return numbers, names
    places = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return places[numbers], tuple(names[i] for i in np.flatnonzero(present).tolist())


def check_scores(pairs: Pairs) -> None:
    """Refuse scores that are not finite, and pairs with two scores."""
    assert pairs.scores is not None

    def pair(row: int) -> str:
        trial, speaker = pairs.trials[pairs.trial[row]], pairs.speakers[pairs.speaker[row]]
        return f"trial {trial} with speaker {speaker}"

    if not (good := np.isfinite(pairs.scores)).all():
        raise UsageError(
            f"{pairs.label}: the score of {pair(int(np.argmin(good)))} is not finite. Drop that "
            "trial"
        )
    codes = np.sort(pairs.codes)
    if twice := int(np.count_nonzero(codes[1:] == codes[:-1])):
        later = np.ones(codes.size, bool)
        later[np.unique(pairs.codes, return_index=True)[1]] = False
        raise UsageError(
            f"{pairs.label} lists {pair(int(np.argmax(later)))} twice "
            f"({plural(twice, 'line')} too many); keep one score per pair"
        )


def select_listed(pairs: Pairs, key: Pairs, notes: list[str]) -> Pairs:
    """Select the lines that a trial list has, with their targets, and add notes."""
    assert key.target is not None
    count = len(pairs.trial)
    refuse_beyond_memory(pairs.label, count, JOIN_BYTES)
    trials, speakers = (
        tuple(dict.fromkeys((*ours, *key_names)))  # names that only the trial list has come last
        for ours, key_names in ((pairs.trials, key.trials), (pairs.speakers, key.speakers))
    )
    both = f"{pairs.label} and {key.label}"
    check_names(both, {"trial": trials, "speaker": speakers})
    check_spelling(both, "trial", trials, {*pairs.trials} ^ {*key.trials})
    key = replace(
        key, trials=trials, trial=places(key.trials, trials)[key.trial],
        speakers=speakers, speaker=places(key.speakers, speakers)[key.speaker],
    )  # fmt: skip
    pairs = replace(pairs, trials=trials, speakers=speakers)
    listed, line, lines = np.unique(key.codes, return_inverse=True, return_counts=True)
    hits = np.bincount(line, key.target)
    if ((hits > 0) & (hits < lines)).any():
        raise UsageError(
            f"{key.label}: a pair is a target on one line and not on another. Correct it"
        )
    codes = pairs.codes
    index = np.minimum(np.searchsorted(listed, codes), len(listed) - 1)
    is_listed = listed[index] == codes
    pairs = replace(pairs, target=hits[index] > 0).take(is_listed).without_empty()
    if not (matched := len(pairs.trial)):
        raise UsageError(f"{key.label} has none of the pairs of {pairs.label}; check the names")
    if matched < count:
        notes.append(
            f"{count - matched} of {count} scored pairs are not in {key.label} and are excluded"
        )
    if matched < len(listed):
        assert pairs.target is not None
        lost = int(np.count_nonzero(hits) - np.count_nonzero(pairs.target))
        notes.append(
            f"{len(listed) - matched} of {plural(len(listed), 'pair')} of {key.label} have no score"
            + f", {lost} of them targets, which count neither as hits nor as misses" * bool(lost)
        )
    return pairs


def places(names: Sequence[str], among: Sequence[str]) -> IntArray:
    """Return the index of each name in ``among``, which has them all."""
    index = {name: i for i, name in enumerate(among)}
    return np.array([index[name] for name in names], dtype=np.int32)


def merge_models(pairs: Pairs, scoring: str) -> Pairs:
    """Merge the scores of a trial with several models of a speaker into one."""
    assert pairs.scores is not None
    assert pairs.target is not None
    refuse_beyond_memory(pairs.label, len(pairs.trial), JOIN_BYTES)
    codes, cell, many = np.unique(pairs.codes, return_inverse=True, return_counts=True)
    if scoring == "max":
        scores = np.full(len(codes), -np.inf)
        np.maximum.at(scores, cell, pairs.scores)
    else:
        scores = np.bincount(cell, pairs.scores) / many
    hits = np.bincount(cell, pairs.target)
    trial, speaker = np.divmod(codes, len(pairs.speakers))
    torn = np.flatnonzero((hits > 0) & (hits < many))
    if torn.size:
        raise UsageError(
            f"trial {pairs.trials[trial[torn[0]]]} is a target of only some enrolments of speaker "
            f"{pairs.speakers[speaker[torn[0]]]}; check the enrolment labels"
        )
    return replace(pairs, trial=trial, speaker=speaker, scores=scores, target=hits > 0)
