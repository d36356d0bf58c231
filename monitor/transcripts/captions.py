"""Transcripts as captions: WebVTT and SubRip, by webvtt-py (`.vtt`, `.srt`)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from monitor.errors import SourceError
from monitor.phrases import plural
from monitor.transcripts.cues import Cue, spread_words
from monitor.transcripts.gathering import gather
from monitor.transcripts.text import lines_of
from monitor.transcripts.transcript import Transcript

if TYPE_CHECKING:
    from webvtt import Caption

__all__ = ["read_captions"]

_TIMING = re.compile(r"\s*[\d:.,]+\s*-->")
_TAG = re.compile(r"(<[^<>]*>|\{\\[^{}]*\})")  # {\an8}: where SubRip shows it
_TIME = re.compile(r"<(?:(\d+):)?(\d\d?):(\d\d?\.\d+)>")
_OWN_TIME = re.compile(rf"{_TIME.pattern}|<u>")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_UNDERLINED = re.compile(r"<u>((?:(?!<u>).)*?)</u>")  # looks at no letter twice
_NAMED = re.compile(r"\[([^\[\]]+)\]:\s|\((speaker [^()]+)\)\s*")  # by WhisperX and whisper.cpp
_BLINK_SECONDS = 0.05  # a caption as short as that only clears the screen
_ARROW = "-->"
_MOST_LINES = 1_000_000  # in twice as long as anybody talks in a day there are fewer
_MOST_LETTERS = 1_000_000  # of what stands between two times
_PIECE_LINES = 20_000  # the reader's own objects are many times as large as the text


def read_captions(label: str, text: str) -> Transcript:
    r"""The words of captions, WebVTT or SubRip, told by the first line.

    Speakers are those of ``<v NAME>``, and of ``[NAME]: `` where WhisperX wrote the captions. Words
    have times of their own where a caption has them within (``<00:00:01.500>``, as YouTube's), or
    underlines one word after the other (as Whisper's ``--highlight_words``). Lines that roll up,
    and so stand in two captions, are counted once.

    Raises:
        SourceError: they are no captions, hold no words, or more than anybody says.

    Example:
        >>> cue = "00:01.000 --> 00:02.100\n<v Ann>so it goes"
        >>> talk = read_captions("talk.vtt", f"WEBVTT\n\n{cue}\n")
        >>> talk.speakers, [word.text for word in talk.said], talk.said[0].known
        (('Ann',), ['so', 'it', 'goes'], 2.1)
    """
    import webvtt

    text = text.strip()
    kind = "vtt" if text.startswith("WEBVTT") else "srt"
    _check_size(label, text)
    lines = lines_of(text)
    if kind == "srt" and lines and _ARROW in lines[0]:
        lines.insert(0, "1")  # some number no captions; the reader wants the first to have one
    shown = list[_Shown]()
    found = 0
    try:
        for piece in _pieces(lines, kind):
            captions = webvtt.from_buffer(iter(piece), format=kind).captions
            found += len(captions)
            shown += map(_shown, captions)
    except webvtt.errors.MalformedFileError:
        raise SourceError(f"{label} holds no captions, neither WebVTT nor SubRip") from None
    notices = []
    lost = sum(_TIMING.match(line) is not None for line in lines) - found
    if lost > 0:
        left = "1 malformed caption is" if lost == 1 else f"{lost} malformed captions are"
        notices.append(f"{label}: {left} left out")
    once = _without_repeats(shown)
    repeated = sum(len(each.lines) for each in shown) - sum(len(each.lines) for each in once)
    if repeated:
        stand, are = ("stands", "it is") if repeated == 1 else ("stand", "they are")
        lines_twice = plural(repeated, "line")
        notices.append(f"{label}: {lines_twice} {stand} in two captions; {are} counted once")
    return gather(label, _cues(once), notices)


def _check_size(label: str, text: str) -> None:
    """Refuse what would take memory and minutes, before any of it is taken apart."""
    if text.count("\n") + text.count("\r") > _MOST_LINES:
        raise SourceError(f"{label} has more than {_MOST_LINES} lines; is it a transcript?")
    begin = 0
    while begin >= 0:
        end = text.find(_ARROW, begin + 1)
        if (len(text) if end < 0 else end) - begin > _MOST_LETTERS:
            raise SourceError(
                f"{label}: more than {_MOST_LETTERS} letters stand between two times, more than "
                "anybody says in a day; its captions must have times of their own"
            )
        begin = end


def _pieces(lines: Sequence[str], kind: str) -> Iterator[list[str]]:
    """The lines in pieces that can be read by themselves: each begins where a caption does."""
    head = ["WEBVTT", ""] if kind == "vtt" else []
    begin = 0
    for i in range(1, len(lines) - 1):
        numbered = lines[i].isdigit() and _ARROW in lines[i + 1]
        starts = not lines[i - 1] and (numbered or (kind == "vtt" and _ARROW in lines[i]))
        if starts and i - begin >= _PIECE_LINES:
            yield (head if begin else []) + list(lines[begin:i])
            begin = i
    yield (head if begin else []) + list(lines[begin:])


@dataclass(frozen=True, slots=True)
class _Shown:
    """One caption: when it is shown, and its lines, with their tags."""

    begin: float
    end: float
    lines: tuple[str, ...]

    @property
    def plain(self) -> tuple[str, ...]:
        return tuple(_plain(line) for line in self.lines)


def _shown(caption: Caption) -> _Shown:
    begin, end = (time.in_milliseconds() / 1000 for time in (caption.start_time, caption.end_time))
    return _Shown(begin, end, tuple(line for line in caption.lines if _plain(line)))


def _without_repeats(captions: Sequence[_Shown]) -> list[_Shown]:
    """Captions without the lines that roll up from the one before."""
    timed = any(_TIME.search(line) for each in captions for line in each.lines)
    made = list(captions[:1])
    for before, each in pairwise(captions):
        old = before.plain
        new = list(zip(each.plain, each.lines, strict=True))
        while new and new[0][0] in old and not _OWN_TIME.search(new[0][1]):
            blinks = each.end - each.begin < _BLINK_SECONDS
            if not (timed or blinks or (len(each.lines) > 1 and new[0][0] == old[-1])):
                break
            old = old[old.index(new[0][0]) + 1 :]
            del new[0]
        if new:
            made.append(replace(each, lines=tuple(line for _, line in new)))
    return made


def _cues(captions: Sequence[_Shown]) -> Iterator[Cue]:
    for plain, run in groupby(captions, key=lambda each: each.plain):
        alike = list(run)
        marked = [" ".join(_UNDERLINED.findall(" ".join(e.lines))) for e in alike]
        if len(alike) > 1 and "".join("".join(marked).split()) == _letters(plain):
            speaker, _ = _voice(" ".join(plain))
            for each, text in zip(alike, marked, strict=True):
                yield Cue(_plain(text), each.begin, each.end, speaker)
        else:
            for each in alike:
                yield from _runs(each)


def _letters(lines: Sequence[str]) -> str:
    return "".join(_voice(" ".join(lines))[1].split())


def _runs(caption: _Shown) -> Iterator[Cue]:
    """The stretches of a caption from one time within it to the next; of each voice its own."""
    begin, voice, spoken = caption.begin, "", list[tuple[str, str]]()
    for part in _TAG.split("\n".join(caption.lines)):
        time, named = _TIME.fullmatch(part), _VOICE.fullmatch(part)
        if time is not None:
            hours, minutes, seconds = time.groups()
            at = 3600 * int(hours or 0) + 60 * int(minutes) + float(seconds)
            yield from _shared(spoken, begin, at)
            begin, spoken = at, []
        elif named is not None:
            voice = html.unescape(named[1]).strip()
        elif part == "</v>":
            voice = ""
        elif not _TAG.fullmatch(part):
            spoken.append((voice, html.unescape(part)))
    yield from _shared(spoken, begin, caption.end)


def _shared(spoken: Sequence[tuple[str, str]], begin: float, end: float) -> Iterator[Cue]:
    """What the voices of one stretch say, each with its share of the time."""
    parts = [
        (who, "".join(text for _, text in said))
        for who, said in groupby(spoken, key=lambda each: each[0])
    ]
    parts = [(who, text) for who, text in parts if text.strip()]
    if len(parts) < 2:
        for who, text in parts:
            named, rest = _voice(text)
            yield Cue(rest, begin, end, who or named)
        return
    words = iter(list(spread_words(Cue(" ".join(text for _, text in parts), begin, end))))
    for who, text in parts:
        own = [next(words) for _ in text.split()]
        yield Cue(text, own[0].begin, own[-1].end, who, known=end)


def _voice(text: str) -> tuple[str, str]:
    """Who a text says that it is by, and the rest of it."""
    found = _NAMED.match(text.lstrip())
    if found is None:
        return "", text
    return (found[1] or found[2]).strip(), text.lstrip()[found.end() :]


def _plain(line: str) -> str:
    return html.unescape(_TAG.sub("", line)).strip()
