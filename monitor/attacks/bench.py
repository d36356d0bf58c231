"""What every attacker works with: the judged readers, readers of its own, and ears."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from monitor.adapting.schedule import FINE_TUNING_STEPS, Length
from monitor.attacks.attackers import ThreatModel
from monitor.attacks.heard import HeardPiece
from monitor.attacks.hearing import CLEAR, Hearing
from monitor.attacks.readers import Amounts, Piece, Readers
from monitor.corpus.recordings import Corpus, Recording
from monitor.protocols import Feature
from monitor.training.calibrating import FEWEST_SPEAKERS

__all__ = ["Background", "Bench", "apart"]

_MOST_APART = 50


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


def apart(background: Background) -> tuple[Readers | None, tuple[tuple[Recording, ...], ...]]:
    """Who says which network is used and teaches laws, and whose speech it is trained on.

    Returns:
        a third of the readers, at most fifty, of those who say enough (None where nobody does);
        and by corpus the recordings of all others.
    """
    enough = background.readers.everybody if background.readers else ()
    speakers = sum(len(corpus.speakers) for corpus, _ in background.corpora)
    wanted = max(FEWEST_SPEAKERS, min(_MOST_APART, speakers // 3))
    held = sorted(enough, key=lambda r: hashlib.sha256(r.name.encode()).digest())[:wanted]
    files = {p.path for r in held for s in (*r.enrolment, r.trials) for p in s}
    names = {reader.name for reader in held}
    training = tuple(
        tuple(r for r in corpus.recordings if r.speaker not in names and r.path not in files)
        for corpus, _ in background.corpora
    )
    held.sort(key=lambda reader: reader.name)
    return (Readers(tuple(held), "same") if held else None), training


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
        training: how long an attacker trains a network.
        told: called with what an attacker is doing, for people.
        notes: what an attacker found out about itself, for people; added to.
    """

    judged: Readers
    background: Background | None
    features: tuple[str, ...]
    measures: tuple[str, ...]
    amounts: Amounts
    hearing: Hearing
    seed: int
    folder: Path
    training: Length = field(default_factory=lambda: Length(steps=FINE_TUNING_STEPS))
    told: Callable[[str], object] = lambda _: None
    notes: list[str] = field(default_factory=list)

    def learns_from(self, attacker: ThreatModel) -> Readers | None:
        """The readers of the background that an attacker learns laws on; None where nobody is.

        Nobody among them has trained its network, which would know them better than others.
        """
        if self.background is None or not attacker.trains:
            return None if self.background is None else self.background.readers
        return apart(self.background)[0]

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
