"""Reads captions: WebVTT and SubRip."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from monitor.errors import SourceError
from monitor.phrases import plural
from monitor.transcripts.transcript import Cue, Transcript, gather, lines_of, spread_words

_CLOCK = r"(?:(\d+):)?([0-5]?\d):([0-5]?\d)[.,](\d+)"
_TIMING = re.compile(rf"\s*{_CLOCK}\s*-->\s*{_CLOCK}", re.ASCII)
_ARROWED = re.compile(r"\s*[\d:.,]+\s*-->")  # including malformed times
_NO_CAPTION = re.compile(r"(WEBVTT|NOTE|STYLE|REGION)(\s|$)")
_TAG = re.compile(r"(<[^<>]*>|\{\\[^{}]*\})")  # {\an8} is a position in SubRip
_TIME = re.compile(r"<(?:(\d+):)?(\d\d?):(\d\d?\.\d+)>")
_OWN_TIME = re.compile(rf"{_TIME.pattern}|<u>")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_UNDERLINED = re.compile(r"<u>((?:(?!<u>).)*?)</u>")  # without backtracking
_NAMED = re.compile(r"\[([^\[\]]+)\]:\s|\((speaker [^()]+)\)\s*")  # by WhisperX and whisper.cpp
_BLINK_SECONDS = 0.05  # a shorter caption only clears the screen
_MOST_LINES = 1_000_000  # more than in two days of speech
_MOST_LETTERS = 1_000_000  # between two times


def read_captions(label: str, text: str) -> Transcript:
    """Read the words of WebVTT or SubRip captions, which the header or the suffix distinguishes.

    A caption ends at the next times, regardless of blank lines. Speakers are taken from ``<v
    NAME>``, and from ``[NAME]: `` in WhisperX captions. Words have their own times if a caption
    contains times (``<00:00:01.500>``) or underlines the words in turn (as Whisper's
    ``--highlight_words``). Lines that roll up through two captions count once.
    """
    text = text.strip()
    if text.count("\n") + text.count("\r") > _MOST_LINES:
        raise SourceError(f"{label} has more than {_MOST_LINES} lines; is it a transcript?")
    if max(map(len, text.split("-->"))) > _MOST_LETTERS:
        raise SourceError(
            f"{label} has more than {_MOST_LETTERS} letters between two times, more than a day of "
            "speech: give each caption its own time"
        )
    is_vtt = text.startswith("WEBVTT") or label.lower().endswith(".vtt")
    lines = lines_of(text)
    shown, malformed = _captions(lines, is_vtt)
    if not shown and not malformed:
        raise SourceError(f"{label} has no captions, neither WebVTT nor SubRip")
    notices = []
    if malformed:
        are = "caption is" if malformed == 1 else "captions are"
        notices.append(f"{label}: {malformed} malformed {are} excluded")
    first = next(number for number, line in enumerate(lines) if _ARROWED.match(line))
    before = sum(bool(line.strip()) and not line.strip().isdigit() for line in lines[:first])
    if before and not is_vtt:
        notices.append(f"{label}: {plural(before, 'line')} before the first times, excluded")
    captions = _without_repeats(shown)
    shown_lines, kept_lines = (sum(len(c.lines) for c in every) for every in (shown, captions))
    if repeated := shown_lines - kept_lines:
        twice = plural(repeated, "line")
        notices.append(f"{label}: counted {twice} once that appeared in two captions")
    return gather(label, _cues(captions), notices)


def _captions(lines: Sequence[str], is_vtt: bool) -> tuple[list[_Shown], int]:
    """Return the captions of a file, and the number with unreadable times."""
    begins = [number for number, line in enumerate(lines) if _ARROWED.match(line)]
    is_numbered = bool(begins) and begins[0] > 0 and lines[begins[0] - 1].strip().isdigit()
    shown = list[_Shown]()
    for begin, end in pairwise([*begins, len(lines) + 1]):
        times = _TIMING.match(lines[begin])
        if times is None:
            continue
        body = lines[begin + 1 : end]
        if end <= len(lines) and _is_identifier(body, is_vtt, is_numbered):
            body = body[:-1]
        clock = times.groups(default="0")
        texts = tuple(line for line in _spoken(body, is_vtt) if _plain(line))
        first, last = (
            3600 * float(hours) + 60 * int(minutes) + float(f"{seconds}.{fraction}")
            for hours, minutes, seconds, fraction in (clock[:4], clock[4:])
        )
        shown.append(_Shown(first, last, texts))
    return shown, len(begins) - len(shown)


def _is_identifier(body: Sequence[str], is_vtt: bool, is_numbered: bool) -> bool:
    """Return whether the last line of a body is the next caption's name or number, not text."""
    if not body or not body[-1].strip():
        return False
    is_separate = len(body) > 1 and not body[-2].strip()
    return (is_separate and is_vtt) or (body[-1].strip().isdigit() and (is_separate or is_numbered))


def _spoken(body: Sequence[str], is_vtt: bool) -> Iterator[str]:
    """Yield the lines of a caption without the comments and styles that may follow it in WebVTT."""
    is_separate = passed = False
    for line in body:
        passed = bool(line.strip()) and (passed or (is_separate and bool(_NO_CAPTION.match(line))))
        is_separate = not line.strip()
        if not (passed and is_vtt):
            yield line


@dataclass(frozen=True, slots=True)
class _Shown:
    """A caption's times in seconds, and its lines with tags."""

    begin: float
    end: float
    lines: tuple[str, ...]

    @property
    def plain(self) -> tuple[str, ...]:
        return tuple(_plain(line) for line in self.lines)


def _without_repeats(captions: Sequence[_Shown]) -> list[_Shown]:
    """Return captions without the lines that roll up from the previous caption."""
    timed = any(_TIME.search(line) for caption in captions for line in caption.lines)
    unique = list(captions[:1])
    for before, caption in pairwise(captions):
        old = before.plain
        new = list(zip(caption.plain, caption.lines, strict=True))
        while new and new[0][0] in old and not _OWN_TIME.search(new[0][1]):
            blinks = caption.end - caption.begin < _BLINK_SECONDS
            if not (timed or blinks or (len(caption.lines) > 1 and new[0][0] == old[-1])):
                break
            old = old[old.index(new[0][0]) + 1 :]
            del new[0]
        if new:
            unique.append(replace(caption, lines=tuple(line for _, line in new)))
    return unique


def _cues(captions: Sequence[_Shown]) -> Iterator[Cue]:
    for plain, run in groupby(captions, key=lambda caption: caption.plain):
        shown = list(run)
        underlined = [" ".join(_UNDERLINED.findall(" ".join(caption.lines))) for caption in shown]
        speaker, text_said = _voice(" ".join(plain))
        if len(shown) > 1 and "".join("".join(underlined).split()) == "".join(text_said.split()):
            for caption, text in zip(shown, underlined, strict=True):
                yield Cue(_plain(text), caption.begin, caption.end, speaker)
        else:
            for caption in shown:
                yield from _runs(caption)


def _runs(caption: _Shown) -> Iterator[Cue]:
    """Yield one cue per voice for each stretch of a caption between two of its times."""
    begin, voice, spoken = caption.begin, "", list[tuple[str, str]]()
    for piece in _TAG.split("\n".join(caption.lines)):
        time, name = _TIME.fullmatch(piece), _VOICE.fullmatch(piece)
        if time is not None:
            hours, minutes, seconds = time.groups()
            time_within = 3600 * int(hours or 0) + 60 * int(minutes) + float(seconds)
            yield from _share_time(spoken, begin, time_within)
            begin, spoken = time_within, []
        elif name is not None:
            voice = html.unescape(name[1]).strip()
        elif piece == "</v>":
            voice = ""
        elif not _TAG.fullmatch(piece):
            spoken.append((voice, html.unescape(piece)))
    yield from _share_time(spoken, begin, caption.end)


def _share_time(spoken: Sequence[tuple[str, str]], begin: float, end: float) -> Iterator[Cue]:
    """Yield the cues of several voices in one stretch, each with a fraction of the time."""
    parts = [
        (voice, "".join(text for _, text in pieces))
        for voice, pieces in groupby(spoken, key=lambda piece: piece[0])
    ]
    parts = [(voice, text) for voice, text in parts if text.strip()]
    if len(parts) < 2:
        for voice, text in parts:
            name, unlabelled = _voice(text)
            yield Cue(unlabelled, begin, end, voice or name)
        return
    words = iter(list(spread_words(Cue(" ".join(text for _, text in parts), begin, end))))
    for voice, text in parts:
        words_said = [next(words) for _ in text.split()]
        yield Cue(text, words_said[0].begin, words_said[-1].end, voice, known=end)


def _voice(text: str) -> tuple[str, str]:
    """Split a text into the speaker that it names and the remaining text."""
    match = _NAMED.match(text.lstrip())
    if match is None:
        return "", text
    return (match[1] or match[2]).strip(), text.lstrip()[match.end() :]


def _plain(line: str) -> str:
    return html.unescape(_TAG.sub("", line)).strip()
