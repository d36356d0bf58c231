"""Collects recordings one by one, and the problems that were found with each."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from monitor.corpus.recordings import Corpus, Recording
from monitor.errors import CorpusError
from monitor.safe_text import LONGEST_NAME, as_wav, is_name

__all__ = ["CONTAINERS", "Gathering", "natural"]

CONTAINERS = frozenset(
    ".m4a .m4b .mp4 .aac .mov .mkv .mka .webm .wma .amr .3gp .avi .ape .wv".split()  # noqa: SIM905
)
"""What holds audio too, but has to be converted."""


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sorting key that puts 9 before 10.

    Example:
        >>> sorted(["a10", "a9", "b"], key=natural)
        ['a9', 'a10', 'b']
    """
    parts = re.split(r"([0-9]+)", text)
    return (
        *((0, int(part), "") if i % 2 else (1, 0, part) for i, part in enumerate(parts) if part),
        (-1, 0, text),
    )


class Gathering:
    """Collects recordings, and the problems found with each.

    Args:
        root: folder that messages name files relative to.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._found: list[Recording] = []
        self._speaker_of: dict[str, str] = {}
        self.problems: list[str] = []

    def problem(self, text: str) -> None:
        """Note something that has to be left out; kept to one printable line."""
        self.problems.append("".join(c if c.isprintable() else ascii(c)[1:-1] for c in text))

    def add(self, speaker: str, session: str, path: Path, where: str = "") -> None:
        """Take a recording, unless something speaks against it.

        Args:
            speaker: who speaks.
            session: on which occasion.
            path: the file.
            where: how to begin a message, such as ``"row 3: "``.
        """
        name = self.name(path)
        for what, called in (("speaker", speaker), ("session", session)):
            if not is_name(called):  # nor would the store be read again
                long = called.strip() and called.isprintable()
                why = f"longer than {LONGEST_NAME} characters" if long else "cannot be printed"
                said = f"{called[:20]!a}... is" if long else f"{called!a}"
                self.problem(f"{where}{name}: the {what}'s name {said} {why}")
                return
        speaker = unicodedata.normalize("NFC", speaker.strip())  # as file systems differ in this
        try:
            missing = not path.is_file()
        except (OSError, ValueError):  # too long, or with a null character
            missing = True
        if missing:
            self.problem(f"{where}{name} is missing")
            return
        if not os.access(path, os.R_OK):
            self.problem(f"{where}{name} may not be read")
            return
        if path.suffix.lower() in CONTAINERS:
            self.problem(f"{where}{name} cannot be read as it is; convert it: {as_wav(name)}")
            return
        place = os.path.realpath(path)
        if known := self._speaker_of.get(place):
            whose = "twice" if known == speaker else f"for {known} and for {speaker}"
            self.problem(f"{where}{name} is listed {whose}")
            return
        self._speaker_of[place] = speaker
        self._found.append(Recording(speaker, session.strip(), path))

    def name(self, path: Path) -> str:
        """How to call a file in a message."""
        try:
            return path.relative_to(self._root).as_posix()
        except ValueError:
            return path.name

    def corpus(self, layout: str, told_by: str = "") -> Corpus:
        """Everything, in natural order.

        Args:
            layout: what names the recordings.
            told_by: as in ``Corpus``.

        Raises:
            CorpusError: nothing is left.
        """
        if not self._found:
            why = f": {self.problems[0]}" if self.problems else ""
            raise CorpusError(f"{layout} names no recording that can be used{why}")
        order = sorted(
            self._found,
            key=lambda r: (natural(r.speaker), natural(r.session), natural(r.path.as_posix())),
        )
        return Corpus(tuple(order), tuple(self.problems), told_by)
