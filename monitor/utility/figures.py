"""Utility over many recordings, with limits over speakers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from monitor.errors import UsageError
from monitor.evaluation.figure import Figure
from monitor.maths.bootstrap import REPLICATES, speaker_weights
from monitor.maths.estimate import Estimate
from monitor.types import FloatArray, IntArray
from monitor.utility.comparing import Utility

__all__ = ["figures"]

_REFERENCE = (
    "Against what the same recogniser hears in the clear recording, not against what was said."
)


def figures(
    found: Sequence[Utility],
    speakers: Sequence[str],
    replicates: int = REPLICATES,
    seed: int = 0,
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
        >>> from monitor.utility import Utility
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
