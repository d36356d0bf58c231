"""What a protector is told of the recording that it is made for, and what it draws from that."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

__all__ = ["Utterance"]


@dataclass(frozen=True, slots=True)
class Utterance:
    """One channel of one recording.

    Attributes:
        rate: samples per second.
        name: of the recording, the same in every run.
        speaker: who speaks; None where nobody said.
        channel: from 0.
        seed: of everything that is drawn at random.
        timeout_seconds: that a program may take for it; None for what `Program` gives.
    """

    rate: int
    name: str = ""
    speaker: str | None = None
    channel: int = 0
    seed: int = 0
    timeout_seconds: float | None = None

    def random(self, *whose: object) -> np.random.Generator:
        """A generator that depends on nothing but the seed and ``whose`` draws these are.

        Example:
            >>> monday, tuesday = Utterance(16000, "monday"), Utterance(16000, "tuesday")
            >>> monday.random("ann").random() == tuesday.random("ann").random()
            True
            >>> monday.random("ann").random() == monday.random("bob").random()
            False
        """
        digest = hashlib.sha256(repr((self.seed, *whose)).encode("utf-8", "replace")).digest()
        return np.random.default_rng(int.from_bytes(digest, "big"))
