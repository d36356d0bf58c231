"""Finds out from its first two lines what the columns of a text of scores are."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.errors import UsageError
from monitor.evaluation.input.files import fields, separator_of, to_number

__all__ = [
    "SPEAKER",
    "TARGET",
    "TRIAL",
    "WORDS",
    "Layout",
    "layout_of",
    "natural",
    "role_of",
]

TRIAL = frozenset(
    {"trial", "trial_id", "test", "test_id", "utterance", "utt", "utt_id", "segment", "segmentid"}
)
SPEAKER = frozenset(
    {"speaker", "speaker_id", "spk", "model", "modelid", "model_id"}
    | {"enrolment", "enrollment", "enrolled", "enrol", "enroll", "enrol_id", "enroll_id"}
)
SCORE = frozenset({"score", "scores", "similarity", "llr"})
TARGET = frozenset({"target", "label", "labels", "key", "targettype", "true_speaker"})
_DIGITS = 19
_NAMELESS = TRIAL | {"", "id", "file", "name", "trials"}
WORDS = {
    **dict.fromkeys(("target", "tgt", "true", "1", "mated"), True),
    **dict.fromkeys(("nontarget", "non-target", "imp", "false", "0", "non-mated"), False),
}
"""What a trial list says of a pair."""


@dataclass(frozen=True)
class Layout:
    """What the columns of a text are.

    Attributes:
        list: True for a list of pairs, False for a table of trials x speakers.
        separator: of the columns; None for blanks.
        header: whether the first line names the columns.
        width: columns in each line of data.
        trial: the column of trial names; None where a table has none.
        speaker: of a list, the column of enrolled speakers.
        score: of a list, the column of scores; None for a trial list.
        target: the column that says who really spoke (of a list: whether it is a target).
        speakers: of a table, the names in its header.
        certain: of a list, whether trial and speaker are named and not assumed.
    """

    list: bool
    separator: str | None
    header: bool
    width: int
    trial: int | None = None
    speaker: int | None = None
    score: int | None = None
    target: int | None = None
    speakers: tuple[str, ...] = ()
    certain: bool = True


def _number(text: str) -> bool:
    """Whether this reads as a number."""
    try:
        to_number(text)
    except ValueError:
        return False
    return True


def natural(name: str) -> tuple[int, int, str]:
    """A key to sort names by: numbers by their size, then all others.

    Example:
        >>> sorted(["1272", "84", "ann"], key=natural)
        ['84', '1272', 'ann']
    """
    return (0, int(name), name) if name.isdecimal() and len(name) < _DIGITS else (1, 0, name)


def role_of(names: list[str], role: frozenset[str]) -> int | None:
    """The first column that is called so."""
    return next((i for i, name in enumerate(names) if name.lower() in role), None)


def layout_of(label: str, first: str, second: str) -> Layout:
    """Tell a table from a list, with or without a header.

    Args:
        label: how messages call the file.
        first: its first line.
        second: its second line, empty if there is none.

    Raises:
        UsageError: it cannot be told.

    Example:
        >>> layout_of("a", "1272 1272-0001 0.71", "").list
        True
        >>> layout_of("a", "trial,ann,bob", "u1,0.9,0.1").speakers
        ('ann', 'bob')
    """
    separator = separator_of(first)
    names, values = fields(first, separator), fields(second, separator)
    roles = [role_of(names, role) for role in (TRIAL, SPEAKER, SCORE, TARGET)]
    trial, speaker, score, target = roles
    if trial is not None and speaker is not None and (score is not None or target is not None):
        return Layout(True, separator, True, len(names), trial, speaker, score, target)
    if len(names) in (3, 4) and _pair(names):
        words = 2 if names[2].lower() in WORDS and not _number(names[2]) else None
        given = 3 if len(names) == 4 else words
        # Kaldi and ZEBRA write the enrolled speaker first; a table is thought of trial by trial
        trial, speaker = (1, 0) if separator in (None, "\t") else (0, 1)
        score = None if words else 2
        return Layout(
            True, separator, False, len(names), trial, speaker, score, given, certain=False
        )
    if len(names) == 3 and all(map(_whole, names[:2])) and _number(names[2]):
        if len(values) == 3 and not _whole(values[0]) and _number(values[0]):
            return _table(separator, names, values)
        raise UsageError(
            f"{label}: cannot tell three speakers from speaker, trial and score; "
            "add a first line that names the columns"
        )
    _understood(label, names, values, roles)
    return _table(separator, names, values)


def _understood(label: str, names: list[str], values: list[str], roles: list[int | None]) -> None:
    """Refuse a list whose header does not say which column is which.

    Raises:
        UsageError: the message has the names that are understood.
    """
    trial, speaker, score, target = roles
    parts = sum(role is not None for role in (trial, speaker, score))
    known = {i for i in (trial, target) if i is not None}
    words = sum(not _number(value) for i, value in enumerate(values) if i not in known)
    named = len(values) == len(names) and not any(map(_number, names))
    half = parts > 1 and speaker is not None  # a list, and one of its columns is not found
    if not named or not (half or words + (trial is not None) > 1):
        return
    raise UsageError(
        f"{label}: its header {', '.join(names[:6])} does not say which column is which. A list "
        f"has a trial ({_any_of(TRIAL)}), a speaker ({_any_of(SPEAKER)}) and a score "
        f"({_any_of(SCORE)}), or a target ({_any_of(TARGET)}); a table has a column for each "
        "speaker, the first may be trial, and target may say who spoke"
    )


def _any_of(role: frozenset[str]) -> str:
    return ", ".join(sorted(role))


def _pair(names: list[str]) -> bool:
    """Two names, then a score or a word, then perhaps a word."""
    if any(_number(name) and not _whole(name) for name in names[:2]) or all(
        map(_number, names[:3])
    ):
        return False
    if len(names) == 4:
        return _number(names[2]) and names[3].lower() in WORDS
    return _number(names[2]) or names[2].lower() in WORDS


def _whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _table(separator: str | None, names: list[str], values: list[str]) -> Layout:
    numbers = all(map(_number, names))
    # speakers may be called 1272, 1988 ...: whole numbers over fractions are names
    coded = all(map(_whole, names)) and not all(map(_whole, values)) and len(set(names)) > 1
    if numbers and not (values and coded):
        return Layout(False, separator, False, len(names))
    if len(values) == len(names) + 1:
        return Layout(False, separator, True, len(values), 0, speakers=tuple(names))
    trial = None
    if names[0].lower() in _NAMELESS or (values and not _number(values[0])):
        trial = 0
    target = role_of(names, TARGET)
    target = None if target == trial else target
    speakers = tuple(name for i, name in enumerate(names) if i not in (trial, target))
    return Layout(False, separator, True, len(names), trial, target=target, speakers=speakers)
