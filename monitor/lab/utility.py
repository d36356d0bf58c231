"""Utility: what is left of a voice's use after protection, beside what it no longer tells.

`understand` takes from a recording what a listener would want of it (phones, pitch, loudness),
`compare` says how much of that a protected recording keeps, `figures` what holds over speakers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.errors import UsageError
from monitor.features.extractor import Resampler
from monitor.features.f0 import LOWEST_LAG, RATE, RobustF0
from monitor.features.phones import recognise_phones
from monitor.lab.evaluation.family import Figure
from monitor.maths.statistics import REPLICATES, Estimate, speaker_weights
from monitor.types import TICKS_PER_SECOND, FloatArray, IntArray

__all__ = ["Understood", "Utility", "compare", "figures", "understand"]


def edits(found: Sequence[str], said: Sequence[str]) -> int:
    """Insertions, deletions and substitutions, as few as will do (Levenshtein, 1966).

    Example:
        >>> edits("KAETS", "KAET"), edits(["T", "IY"], ["S", "IY"]), edits([], "abc")
        (1, 1, 3)
    """
    numbers: dict[str, int] = {}
    one, other = (
        np.array([numbers.setdefault(each, len(numbers)) for each in sequence], np.int64)
        for sequence in (found, said)
    )
    places = np.arange(other.size + 1)
    row = places.copy()
    for i, each in enumerate(one.tolist(), 1):
        either = np.minimum(row[1:] + 1, row[:-1] + (other != each))
        row = np.minimum.accumulate(np.append(i, either) - places) + places
    return int(row[-1])


@dataclass(frozen=True, eq=False)
class Understood:
    """A recording as it is understood.

    Attributes:
        power: mean of the squared samples.
        phones: what the package's recogniser of English hears, in order, ARPAbet without stress.
        pitch_hertz: shape (ticks,), every 10 ms, by the feature ``f0_robust``; 0 where it is not
            voiced.
    """

    seconds: float
    power: float
    phones: tuple[str, ...]
    pitch_hertz: FloatArray


def understand(samples: FloatArray, rate: int) -> Understood:
    """Listen to one channel of a recording: samples of shape (n,), in -1 to 1.

    Raises:
        UsageError: another shape, none, or not finite.

    Example:
        >>> tone = np.sin(2 * np.pi * 100 * np.arange(16000) / 16000)
        >>> heard = understand(tone, 16000)
        >>> heard.seconds, round(heard.power, 3), float(heard.pitch_hertz[50])
        (1.0, 0.5, 100.0)
    """
    samples = np.asarray(samples, np.float32)
    if not samples.size:
        raise UsageError("a recording without samples says nothing")
    phones = tuple(each.phone for each in recognise_phones(samples, rate))
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    return Understood(samples.size / rate, power, phones, pitch_of(samples, rate))


def pitch_of(samples: FloatArray, rate: int) -> FloatArray:
    """The pitch of one channel of a recording, in hertz, as `Understood` has it: shape (ticks,).

    Example:
        >>> pitch_of(np.sin(2 * np.pi * 100 * np.arange(8000) / 16000), 16000)[20:23].tolist()
        [100.0, 100.0, 100.0]
    """
    resampler = Resampler(rate, RATE)
    samples = np.asarray(samples, np.float32)
    heard = np.concatenate([resampler.process(samples), resampler.flush()])
    track = RobustF0().process(heard)
    last = int(track.ticks[-1]) if track.ticks.size else -1
    pitch = np.zeros(max(-(-heard.size * TICKS_PER_SECOND // RATE), 1 + last))
    pitch[track.ticks] = RATE / (track.values + LOWEST_LAG)
    return pitch


# --------------------------------------------------------------------------------------- comparing

LONGEST_LAG_SECONDS = 0.5  # by which a protected recording may come later, or earlier
_FEWEST = 30  # frames voiced in both, below which no correlation is given: 0.3 s
_STILL = (0.05, 0.95)  # of the frames: between them a pitch moves by more than its resolution


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
    said: the recogniser errs itself (docs/features.md). Pitch is compared as the VoicePrivacy
    challenges do, by Pearson's correlation over the frames voiced in both, once what an anonymiser
    takes of time is taken off: the lag, of at most half a second, that has most frames voiced in
    both. It is not chosen by the correlation, which the best of a hundred lags would favour.

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


# ----------------------------------------------------------------------------------------- figures

_REFERENCE = (
    "Against what the same recogniser hears in the clear recording, not against what was said."
)


def figures(
    found: Sequence[Utility], speakers: Sequence[str], replicates: int = REPLICATES, seed: int = 0
) -> tuple[Figure, ...]:
    """What protected recordings keep, over all of them.

    Phones and voiced frames are summed before they are divided; correlation, level and length are
    means over the recordings that have them. Limits are Student's, from speakers drawn anew.

    Args:
        found: of R recordings.
        speakers: R names: whose each is.
        replicates: resamples of speakers.
        seed: of the resamples.

    Returns:
        ``utility.phone_error``, ``utility.voiced_in_both``, ``utility.pitch_correlation``,
            ``utility.louder_db`` and ``utility.longer``; without a value, and with a note, where it
            does not exist.

    Raises:
        UsageError: no recording, or not a speaker for each.

    Example:
        >>> from monitor.lab.utility import Utility
        >>> kept = Utility(100, 20, 50, 40, 0.9, "", 0.0, -1.0, 1.0)
        >>> lost = Utility(100, 60, 50, 10, None, "the pitch does not move", 0.0, -2.0, 1.0)
        >>> error, both, pitch, *_ = figures([kept, lost], ["ann", "bob"])
        >>> error.value, both.value, pitch.value
        (0.4, 0.5, 0.9)
        >>> pitch.note
        'Of 1 of 2 recordings. No limits: one speaker.'
    """
    if not found or len(found) != len(speakers):
        raise UsageError("give the utility of one recording at least, and whose each is")
    _, whose = np.unique(np.asarray(speakers), return_inverse=True)
    weights = speaker_weights(int(whose.max()) + 1, replicates, seed)
    every = _Ratio(whose, weights)
    pitch = [(each.pitch_correlation, each.why) for each in found]
    return (
        every.figure("phone_error", "phone error", "share", 0.0, np.inf,
                     [each.phone_edits for each in found], [each.phones for each in found],
                     _REFERENCE),
        every.figure("voiced_in_both", "voiced in both", "share", 0.0, 1.0,
                     [each.voiced_in_both for each in found], [each.voiced for each in found]),
        every.mean("pitch_correlation", "pitch correlation", "", -1.0, 1.0,
                   [each for each, _ in pitch], next((why for _, why in pitch if why), "")),
        every.mean("louder_db", "louder by", "dB", -np.inf, np.inf,
                   [each.louder_db for each in found], "one of the recordings is silent"),
        every.mean("longer", "length", "", 0.0, np.inf, [each.longer for each in found], ""),
    )  # fmt: skip


class _Ratio:
    """Sums over sums, with limits from speakers drawn anew."""

    def __init__(self, whose: IntArray, weights: FloatArray) -> None:
        self._whose, self._weights = whose, weights

    def mean(
        self, key: str, label: str, unit: str, least: float, most: float,
        values: Sequence[float | None], why: str,
    ) -> Figure:  # fmt: skip
        """Over the recordings that have a value."""
        has = [float(value is not None) for value in values]
        some = f"Of {sum(map(int, has))} of {len(has)} recordings." if not all(has) else ""
        top = [value or 0.0 for value in values]
        return self.figure(key, label, unit, least, most, top, has, some if any(has) else why)

    def figure(
        self, key: str, label: str, unit: str, least: float, most: float,
        top: Sequence[float], bottom: Sequence[float], note: str = "",
    ) -> Figure:  # fmt: skip
        """One sum over another."""
        own = np.stack([np.bincount(self._whose, values) for values in (top, bottom)])
        key = f"utility.{key}"
        if not own[1].any():
            return Figure(key, label, None, unit, note=note or "there is nothing to compare")
        value = float(own[0].sum() / own[1].sum())
        heard = own[1] > 0
        drawn = _over(self._weights @ own[0], self._weights @ own[1])
        left = _over(own[0].sum() - own[0], own[1].sum() - own[1])[heard]
        units = int(heard.sum())
        estimate = Estimate(value, drawn, left, units, units)
        if not estimate.exists:
            return Figure(key, label, value, unit, note=f"{note} No limits: one speaker.".strip())
        low, high = np.clip(estimate.t_limits(), least, most).tolist()
        return Figure(key, label, value, unit, drawn, note=note, low=low, high=high)


def _over(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """One over the other, NaN where there is nothing to divide by."""
    return np.asarray(np.divide(top, bottom, out=np.full(bottom.shape, np.nan), where=bottom > 0))
