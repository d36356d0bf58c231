"""Columns of a text of scores: its header names them, or their number and kind does.

Without a header a list is ``speaker trial score [target]``, as Kaldi and ZEBRA write it. Numbers
alone are a table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.errors import UsageError
from monitor.lab.evaluation.input.rows import Rows, is_number

TRIAL = frozenset(
    {"trial", "trial_id", "test", "test_id", "utterance", "utt", "utt_id", "segment", "segmentid"}
)
SPEAKER = frozenset(
    {"speaker", "speaker_id", "spk", "model", "modelid", "model_id"}
    | {"enrolment", "enrollment", "enrolled", "enrol", "enroll", "enrol_id", "enroll_id"}
)
SCORE = frozenset({"score", "scores", "similarity", "llr"})
TARGET = frozenset({"target", "label", "labels", "key", "targettype", "true_speaker"})
WORDS = {
    **dict.fromkeys(("target", "tgt", "true", "1", "mated"), True),
    **dict.fromkeys(("nontarget", "non-target", "imp", "false", "0", "non-mated"), False),
}
"""Words of a trial list, and whether they mark a target."""


def role_of(names: Sequence[str], role: Collection[str]) -> int | None:
    """Find the first column that is called so."""
    return next((i for i, name in enumerate(names) if name.lower() in role), None)


@dataclass(frozen=True)
class Layout:
    """Indices of columns in the rows of a text, and whether the first is a header.

    Of a list those of trial names, enrolled speakers, scores (a trial list has none), and of what
    says whether a pair is a target; of a table that of trial names and of who spoke, where it has
    them, and the speakers that all others are called after.
    """

    rows: Rows
    header: bool
    trial: int | None = None
    speaker: int | None = None
    score: int | None = None
    target: int | None = None
    speakers: tuple[str, ...] = ()


def layout_of(path: Path) -> Layout:
    """Lay out a list or a table, which has no column of speakers, by its first line."""
    rows = Rows.at(path)
    names, width, label = rows.head, len(rows.head), path.name
    trial, speaker, score, target = (
        role_of(names, role) for role in (TRIAL, SPEAKER, SCORE, TARGET)
    )
    if trial is not None and speaker is not None and (score is not None or target is not None):
        return Layout(rows, True, trial, speaker, score, target)
    if trial is None and not names[0]:
        trial = 0  # of a table
    if trial is not None and speaker is None and score is None:
        speakers = tuple(name for i, name in enumerate(names) if i not in (trial, target))
        if "" not in speakers:
            return Layout(rows, True, trial, target=target, speakers=speakers)
    elif all(map(is_number, names)):
        if not (width == 3 and names[0].isdecimal() and names[1].isdecimal()):
            return Layout(rows, False)
    elif rows.separator != "," and width in (3, 4) and trial is None and speaker is None:
        if names[2].lower() in WORDS and not is_number(names[2]):
            return Layout(rows, False, 1, 0, None, 2)
        return Layout(rows, False, 1, 0, 2, 3 if width == 4 else None)
    if rows.has_decimal_commas:
        raise UsageError(f"the first line of {label} has decimal commas: use decimal points")
    if rows.separator is not None and not names[-1]:
        raise UsageError(
            f"lines of {label} end with a separator: remove it, or name the last column"
        )
    raise UsageError(
        f"{label}: its first line does not say which column is which: write a header above it, "
        "'trial speaker score' (or target) for a list, 'trial' and every speaker for a table, "
        "separated by tabs, commas or blanks"
    )
