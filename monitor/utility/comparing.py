"""How much of what a recording says is left in the protected one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from monitor.features.f0 import RATE
from monitor.types import TICKS_PER_SECOND, FloatArray
from monitor.utility.edits import edits
from monitor.utility.understanding import Understood

__all__ = ["LONGEST_LAG_SECONDS", "Utility", "beside", "best_lag", "compare"]

LONGEST_LAG_SECONDS = 0.5
"""By which a protected recording may come later, or earlier, than the clear one."""
_FEWEST = 30
"""Frames voiced in both, below which no correlation is given: 0.3 s."""
_STILL = (0.05, 0.95)
"""Shares of the frames between which a pitch moves by more than its resolution, or not at all."""


@dataclass(frozen=True, slots=True)
class Utility:
    """What a protected recording keeps of the clear one.

    Attributes:
        phones: heard in the clear recording; they are the reference.
        phone_edits: phones inserted, deleted or exchanged in the protected one.
        voiced: frames of 10 ms voiced in either recording.
        voiced_in_both: those voiced in both.
        pitch_correlation: Pearson's, in hertz, over the frames voiced in both; None where it does
            not exist.
        why: there is none; empty where there is one.
        lag_seconds: by which the protected recording was found to come later.
        louder_db: how much louder it is; None where one of the two is silent.
        longer: its length in lengths of the clear one.
    """

    phones: int
    phone_edits: int
    voiced: int
    voiced_in_both: int
    pitch_correlation: float | None
    why: str
    lag_seconds: float
    louder_db: float | None
    longer: float

    @property
    def phone_error(self) -> float | None:
        """Edits for each phone of the reference, as a word error rate; None without phones."""
        return self.phone_edits / self.phones if self.phones else None


def compare(clear: Understood, protected: Understood) -> Utility:
    """Set a protected recording beside the clear one.

    The reference of the phones is what the recogniser hears in the clear recording, not what was
    said: the recogniser errs itself (docs/phones.md). Pitch is compared as the VoicePrivacy
    challenges do, by Pearson's correlation over the frames voiced in both, once what a protector
    takes of time is taken off: the lag, of at most half a second, that has most frames voiced in
    both. It is not chosen by the correlation, which the best of a hundred lags would flatter.

    Example:
        >>> from dataclasses import replace
        >>> pitch = 100 + 20 * np.sin(np.arange(200) / 9)
        >>> clear = Understood(2.0, 0.1, ("S", "IY"), pitch)
        >>> higher = Understood(2.0, 0.1, ("T", "IY"), 1.5 * pitch)
        >>> found = compare(clear, higher)
        >>> found.phone_error, round(found.pitch_correlation, 6), found.lag_seconds
        (0.5, 1.0, 0.0)
    """
    lag, voiced, both = best_lag(clear.pitch_hertz, protected.pitch_hertz)
    correlation, why = _correlation(*beside(clear.pitch_hertz, protected.pitch_hertz, lag))
    sounding = clear.power > 0 and protected.power > 0
    return Utility(
        phones=len(clear.phones),
        phone_edits=edits(protected.phones, clear.phones),
        voiced=voiced,
        voiced_in_both=both,
        pitch_correlation=correlation,
        why=why,
        lag_seconds=lag / TICKS_PER_SECOND,
        louder_db=10 * math.log10(protected.power / clear.power) if sounding else None,
        longer=protected.seconds / clear.seconds,
    )


def best_lag(clear: FloatArray, protected: FloatArray) -> tuple[int, int, int]:
    """The lag in ticks; frames that are voiced in either, and in both."""
    most = round(LONGEST_LAG_SECONDS * TICKS_PER_SECOND)
    counts = {}
    for lag in sorted(range(-most, most + 1), key=abs):
        here, there = beside(clear, protected, lag)
        counts[lag] = int(np.count_nonzero((here > 0) & (there > 0)))
    lag = max(counts, key=lambda each: counts[each])  # the shortest of equal ones
    total = int(np.count_nonzero(clear) + np.count_nonzero(protected))
    return lag, total - counts[lag], counts[lag]


def beside(clear: FloatArray, protected: FloatArray, lag: int) -> tuple[FloatArray, FloatArray]:
    """Frames of both that belong together."""
    here, there = clear[max(0, -lag) :], protected[max(0, lag) :]
    size = min(here.size, there.size)
    return here[:size], there[:size]


def _correlation(here: FloatArray, there: FloatArray) -> tuple[float | None, str]:
    both = (here > 0) & (there > 0)
    count = int(np.count_nonzero(both))
    if count < _FEWEST:
        return None, f"{count} frames are voiced in both recordings, fewer than {_FEWEST}"
    one, other = here[both], there[both]
    for pitch, which in ((one, "clear"), (other, "protected")):
        first, last = np.quantile(RATE / pitch, _STILL)
        if last - first <= 1:  # a lag is all that is told apart
            return None, f"the pitch of the {which} recording does not move"
    return float(np.clip(np.corrcoef(one, other)[0, 1], -1.0, 1.0)), ""
