"""What every attacker works with: the judged readers, readers of its own, and ears."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.attacks.attackers import ThreatModel
from monitor.attacks.heard import HeardPiece
from monitor.attacks.hearing import CLEAR, Hearing
from monitor.attacks.readers import Amounts, Piece, Readers
from monitor.corpus.recordings import Corpus
from monitor.protocols import Feature

__all__ = ["Background", "Bench"]


@dataclass(frozen=True, slots=True)
class Background:
    """Speech of readers apart, that an attacker may learn from; none of them is judged.

    Attributes:
        corpora: with the folder of each; readers who are judged are left out.
        readers: those of them who say enough to learn laws on.
        problems: one line for everything that was left out.
    """

    corpora: tuple[tuple[Corpus, Path], ...]
    readers: Readers | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bench:
    """What attackers work with.

    Attributes:
        judged: whose trials are attacked.
        background: None where none was given.
        features: that attackers hear with, where they have none of their own.
        measures: of `monitor.attacks.measures`, made of the trials when these features hear them.
        amounts: how much speech.
        hearing: hears protected speech; keeps what it heard.
        seed: of the user's draws; the attacker's own follow from it and are others.
        folder: where an attacker may keep what it made, such as a network; private.
    """

    judged: Readers
    background: Background | None
    features: tuple[str, ...]
    measures: tuple[str, ...]
    amounts: Amounts
    hearing: Hearing
    seed: int
    folder: Path

    @property
    def attacker_seed(self) -> int:
        """Of the attacker's draws: the method is known, the user's draws are not."""
        return self.seed + 1

    def trials(self, method: str, features: Sequence[str | Feature]) -> dict[Piece, HeardPiece]:
        """The judged readers' trials, as they publish them."""
        pieces = self.judged.pieces("trials")
        measures = self.measures if tuple(features) == self.features else ()
        return self.hearing.hear(pieces, method, self.seed, features, measures)

    def enrolment(
        self, attacker: ThreatModel, method: str, features: Sequence[str | Feature]
    ) -> dict[Piece, HeardPiece]:
        """The judged readers' enrolled speech, as the attacker has it."""
        return self.own(self.judged.pieces("enrolment"), attacker, method, features)

    def own(
        self,
        pieces: Sequence[Piece],
        attacker: ThreatModel,
        method: str,
        features: Sequence[str | Feature],
    ) -> dict[Piece, HeardPiece]:
        """Any speech that an attacker has in the clear, as it would use it."""
        used = method if attacker.protects else CLEAR
        return self.hearing.hear(pieces, used, self.attacker_seed, features)
