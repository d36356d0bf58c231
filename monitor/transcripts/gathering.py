"""Makes a transcript of the cues of a file, and says what was wrong with their times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from monitor.errors import SourceError
from monitor.transcripts.cues import Cue, spread_words
from monitor.transcripts.transcript import SaidWord, Transcript

__all__ = ["LATEST_SECONDS", "MOST_WORDS_A_SECOND", "gather"]

LATEST_SECONDS = 1e6  # eleven days: nobody records longer
_TOUCHING_SECONDS = 0.1  # by which recognisers let neighbours overlap
MOST_WORDS_A_SECOND = 15  # auctioneers say eight, and two may talk at once
_ENOUGH_WORDS = 20
_RUN_WORDS = 1000  # and no more than a minute's words in a minute either
_MOST_WORDS = 300_000  # of a day and a half without a pause
_WORD_SECONDS = 0.3  # that one takes, where nobody says


def gather(label: str, found: Iterable[Cue], notices: Sequence[str] = ()) -> Transcript:
    """A transcript of cues, in the order in which a file has them.

    Args:
        label: of the file.
        found: its cues.
        notices: what is to be told of the file besides.

    Raises:
        SourceError: it holds no words, more than anybody says, or times that cannot be seconds.

    Example:
        >>> talk = gather("talk.vtt", [Cue("as it is", 2, 3), Cue("so be it", 0, 1)])
        >>> [word.text for word in talk.said][:2], talk.notices[0]
        (['so', 'be'], 'talk.vtt: times go back once; its words were put in order')
    """
    cues = [cue for cue in _bounded(label, found) if cue.text.strip()]
    kept = [cue for cue in cues if 0 <= cue.begin <= cue.end < LATEST_SECONDS]
    told = list(notices)
    if len(kept) < len(cues):
        wrong = f"{len(cues) - len(kept)} of {len(cues)} texts have no time, or end before they"
        told.append(f"{label}: {wrong} begin; they are left out")
    back = sum(b.begin < a.begin for a, b in pairwise(kept))
    if back:
        times = "once" if back == 1 else f"{back} times"
        told.append(f"{label}: times go back {times}; its words were put in order")
    kept.sort(key=lambda cue: (cue.begin, cue.end))
    brief = sum(cue.begin == cue.end for cue in kept)
    if brief:
        takes = f"{brief} of {len(kept)} texts take no time"
        told.append(f"{label}: {takes}; each word of them is given 0.3 s, or less up to the next")
        kept = list(_lasting(kept))
    over = _overlapping(kept)
    if over:
        told.append(f"{label}: {over} of {len(kept)} texts begin before the one before has ended")
    said = [word for cue in kept for word in spread_words(cue)]
    if not said:
        raise SourceError(told[-1] if cues else f"{label} holds no words")
    _check_rate(label, said)
    spread = sum(word.spread for word in said)
    if spread:
        which = "its words have" if spread == len(said) else f"{spread} of {len(said)} words have"
        told.append(f"{label}: {which} no times of their own; each has a share of its text's")
    return Transcript(label, tuple(sorted(said, key=lambda word: word.begin)), tuple(told))


def _bounded(label: str, cues: Iterable[Cue]) -> Iterator[Cue]:
    """The same, until they hold too many words: each is an object that takes memory."""
    words = 0
    for cue in cues:
        words += len(cue.text.split(None, _MOST_WORDS))
        if words > _MOST_WORDS:
            raise SourceError(f"{label} holds more than {_MOST_WORDS} words; cut it into parts")
        yield cue


def _lasting(cues: Sequence[Cue]) -> Iterator[Cue]:
    """Cues in order; those without length share what lies before the next that begins later."""
    nexts = [*dict.fromkeys(cue.begin for cue in cues), math.inf][1:]
    by_begin = groupby(cues, key=lambda cue: cue.begin)
    for (begin, together), following in zip(by_begin, nexts, strict=True):
        alike = list(together)
        brief = [cue for cue in alike if cue.end == begin]
        words = sum(len(cue.text.split()) for cue in brief)
        each = min(_WORD_SECONDS, (following - begin) / max(words, 1))
        known = begin + each * words if len(brief) > 1 else None
        at = begin
        for cue in brief:
            end = at + each * len(cue.text.split())
            yield replace(cue, begin=at, end=end, known=known)
            at = end
        yield from alike[len(brief) :]


def _overlapping(cues: Iterable[Cue]) -> int:
    """How many begin while another of the same speaker lasts."""
    over, ends = 0, dict[str, float]()
    for cue in cues:
        end = ends.get(cue.speaker, 0.0)
        over += cue.begin < end - _TOUCHING_SECONDS
        ends[cue.speaker] = max(end, cue.end)
    return over


def _check_rate(label: str, said: Sequence[SaidWord]) -> None:
    """Refuse more words a second than anybody says, over all or in a stretch of a thousand."""
    seconds = max(word.end for word in said) - min(word.begin for word in said)
    a_second = len(said) / seconds if seconds > 0 else math.inf
    begins = sorted(word.begin for word in said)
    runs = zip(begins, begins[_RUN_WORDS - 1 :], strict=False)
    shortest = min((end - begin for begin, end in runs), default=math.inf)
    if shortest < _RUN_WORDS / MOST_WORDS_A_SECOND:
        a_second = max(a_second, _RUN_WORDS / shortest if shortest else math.inf)
    if len(said) >= _ENOUGH_WORDS and a_second > MOST_WORDS_A_SECOND:
        raise SourceError(
            f"{label}: {a_second:.3g} words a second are more than anybody says; its times must "
            "be in another unit"
        )
