"""Alert thresholds with a stated probability of a false alarm over a whole stream."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from monitor.errors import Argument, Message, UsageError
from monitor.events.keys import HEADLINES
from monitor.events.run import FalseAlarmTerms
from monitor.phrases import length_in_words, percent, plural
from monitor.population.rank_model import Maxima, RankModel, RankModels
from monitor.types import FloatArray


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """Rate at which other people's streams exceed a threshold (docs/method.md section 11)."""

    field: str  # of a reading
    bits: float  # the threshold; only values above it count
    rate: float  # q, maximum fraction of other people's streams of that length that exceed it
    horizon_seconds: float  # H, audio seconds from the beginning of a stream
    speakers: int  # n, the number behind it, without the watched speaker
    repeated: int  # of these, the number with H/2 to H of audio, which was repeated
    session: str  # kind of rank model, "same" or "cross"
    template_seconds: float  # to which templates were cut in calibration
    most_bits: float = math.inf  # maximum of all readings; infinity if unknown

    def terms(self) -> FalseAlarmTerms:
        """Return the terms that an alert quotes."""
        return FalseAlarmTerms(
            self.rate, self.horizon_seconds, self.speakers, self.repeated, self.session
        )


def false_alarms(
    rank_models: RankModels,  # with their maxima
    features: tuple[str, ...],  # in use, in any order
    session: str,  # the kind of rank model in use
    # as for an alert; a feature's (``f0.local_bits``) refers to a stream with this feature alone
    field: str,
    rate: float,  # q, over 0 and under 1
    horizon_seconds: float,  # H; between two lengths of the grid, the longer one is used
    *,
    watch: str | None = None,
    headline: str = "closed-set",  # kind of ``bits``
) -> FalseAlarms:
    """Return the threshold that at most a fraction of other people's streams exceeds."""
    needed = fewest_maxima(rate)
    if not (math.isfinite(horizon_seconds) and horizon_seconds > 0):
        raise UsageError(
            f"horizon_seconds={horizon_seconds:g} must be a positive number of seconds"
        )
    rank_model, own_field = _find_rank_model(rank_models, features, session, field, watch, headline)
    maxima = rank_model.maxima
    if maxima is None:
        raise UsageError(
            Message(
                "these rank models were not calibrated on other people's streams: use monitor "
                "calibrate CORPUS -o POPULATION.npz",
                Argument("alarms", python=", or calibrate(..., alarms=population)"),
                " (a separate rank model, --rank-model, has no people)",
            )
        )
    if own_field not in maxima.fields:
        joint = rank_models.find(features, session)
        available = () if joint is None or joint.maxima is None else joint.maxima.fields
        fields = [name for name in available if name != "rank_bits"]
        if watch is None:
            fields = [name for name in fields if name in _OF_NOBODY]
        raise UsageError(
            f"{field} was not calibrated on other people's streams: use one of "
            f"{', '.join([*(['bits'] if fields else []), *fields, f'{features[0]}.gain_bits'])}"
        )
    if maxima.horizon(horizon_seconds) is None:
        longest = length_in_words(float(maxima.horizons[-1]))
        raise UsageError(
            f"invalid horizon {length_in_words(horizon_seconds)}: use at most {longest}, the "
            "longest calibrated length of other people's streams, and start a new period after it"
        )
    others = maxima.select_others(own_field, horizon_seconds, needed=needed, watch=watch)
    if others.values.size < needed:
        raise UsageError(
            _too_few(maxima, own_field, rate, horizon_seconds, others.values.size, watch)
        )
    return FalseAlarms(
        field,
        conformal_threshold(others.values, rate),
        rate,
        horizon_seconds,
        int(others.values.size),
        others.repeated,
        rank_model.session,
        maxima.template_seconds,
    )


def _find_rank_model(
    rank_models: RankModels,
    features: tuple[str, ...],
    session: str,
    field: str,
    watch: str | None,
    headline: str,
) -> tuple[RankModel, str]:
    """Find the rank model with the maxima of a field, and the field's name there."""
    name, _, last = field.rpartition(".")
    if name == "protected":
        raise UsageError(
            f"{field} was not calibrated on other people's protected voices: use a threshold"
        )
    if name:
        features, last = (name,), "closed_set_bits" if last == "local_bits" else last
    else:
        last = HEADLINES[headline] if last == "bits" else last
        if watch is None and last == "closed_set_bits":
            last = "gain_bits"  # they are the same
    rank_model = rank_models.find(features, session) or rank_models.find(features, _OTHER[session])
    if rank_model is None:
        raise UsageError(f"no rank model covers {'+'.join(features)}, to which {field} belongs")
    return rank_model, last


_OF_NOBODY = ("bits", "closed_set_bits", "gain_bits")
_OTHER = {"same": "cross", "cross": "same"}


def _too_few(
    maxima: Maxima, field: str, rate: float, seconds: float, count: int, watch: str | None
) -> str:
    needed = fewest_maxima(rate)
    shorter = [
        float(h)
        for h in maxima.horizons[maxima.horizons < seconds]
        if maxima.select_others(field, float(h), needed=needed, watch=watch).values.size >= needed
    ]
    advice = [f"calibrate on more speakers{' who say more' if shorter else ''}"]
    if count:
        allowed = math.ceil(1000 / (count + 1)) / 10
        advice.insert(0, f"allow {allowed:g} %")
    if shorter:
        advice.insert(0, f"ask for {length_in_words(shorter[-1])}")
    return (
        f"at most {percent(rate)} false alarms in streams of {length_in_words(seconds)} need the "
        f"streams of {plural(needed, 'other speaker')}, but there are {count}: "
        f"{', or '.join(advice)}"
    )


# The largest value of a whole stream exceeds a bound with a stated probability (docs/method.md
# section 11).

_ROUNDING = 1e-9  # of a fraction such as 0.07 times a whole number


def conformal_threshold(maxima: FloatArray, rate: float) -> float:
    """Return the bound that a further stream's maximum exceeds with probability ``rate`` at most.

    This is split conformal prediction with the largest value of a whole stream as the score. See
    Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World*, 2005, and Lei et al., JASA
    113, 2018, theorem 2. The bound is the ``ceil((n + 1)(1 - q))``-th smallest of n maxima. Let n +
    1 maxima be exchangeable. The last then exceeds it with a probability of at most q, over the
    draw of all. Equal values do *not* count, because maxima that stop at a common bound are ties. A
    stream without a value counts as -inf.

    UsageError for a rate that is not between 0 and 1, and for too few or invalid maxima.

    Example:
        >>> maxima = np.arange(1.0, 20.0)
        >>> conformal_threshold(maxima, 0.05), conformal_threshold(maxima, 0.2)
        (19.0, 16.0)
    """
    needed = fewest_maxima(rate)
    maxima = np.asarray(maxima, dtype=np.float64)
    if maxima.ndim != 1 or np.isnan(maxima).any():
        raise UsageError("a conformal threshold takes one maximum of each stream, shape (n,)")
    if maxima.size < needed:
        raise UsageError(
            f"{maxima.size} maxima are too few for a rate of {rate:g}: {needed} are needed"
        )
    above = math.floor((maxima.size + 1) * rate * (1 + _ROUNDING))  # that may be larger
    return float(np.sort(maxima)[maxima.size - above])


def fewest_maxima(rate: float) -> int:
    """Return the minimum number of maxima for a rate q: the least n of at least ``1/q - 1``."""
    if not 0 < rate < 1:
        raise UsageError(f"rate={rate:g} must be over 0 and under 1")
    return max(1, math.ceil(1 / rate * (1 - _ROUNDING)) - 1)
