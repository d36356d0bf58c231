"""Utility: what is left of a voice's use after protection, beside what it no longer tells.

`extract_content` takes from a recording what a listener would want of it (phones, pitch, loudness),
`compare` says how much of that a protected recording keeps, `compute_figures` what holds over
speakers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from monitor.errors import UsageError
from monitor.features.extractor import Resampler
from monitor.features.f0 import LOWEST_LAG, RATE, RobustF0
from monitor.features.phones import recognise_phones
from monitor.lab.report.model import Figure
from monitor.maths.statistics import REPLICATES, Estimate, speaker_weights
from monitor.types import TICKS_PER_SECOND, FloatArray, IntArray, Record


def count_edits(sequence: Sequence[str], reference: Sequence[str]) -> int:
    """Return the fewest insertions, deletions and substitutions (Levenshtein, 1966)."""
    numbers: dict[str, int] = {}
    first, second = (
        np.array([numbers.setdefault(symbol, len(numbers)) for symbol in symbols], np.int64)
        for symbols in (sequence, reference)
    )
    columns = np.arange(second.size + 1)
    row = columns.copy()
    for i, symbol in enumerate(first.tolist(), 1):
        either = np.minimum(row[1:] + 1, row[:-1] + (second != symbol))
        row = np.minimum.accumulate(np.append(i, either) - columns) + columns
    return int(row[-1])


@dataclass(frozen=True, eq=False)
class RecordingContent:
    """Phones, pitch and loudness of a recording."""

    seconds: float
    power: float  # mean of the squared samples
    phones: tuple[str, ...]  # that the package's recogniser hears, ARPAbet without stress
    pitch_hertz: FloatArray  # shape (ticks,), every 10 ms, by ``f0_robust``; 0: not voiced


def extract_content(samples: FloatArray, rate: int) -> RecordingContent:
    """Extract the content of one channel: samples of shape (n,), in -1 to 1.

    Example:
        >>> tone = np.sin(2 * np.pi * 100 * np.arange(16000) / 16000)
        >>> heard = extract_content(tone, 16000)
        >>> heard.seconds, round(heard.power, 3), float(heard.pitch_hertz[50])
        (1.0, 0.5, 100.0)
    """
    samples = np.asarray(samples, np.float32)
    if not samples.size:
        raise UsageError("a recording without samples says nothing")
    phones = tuple(phone.phone for phone in recognise_phones(samples, rate))
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    return RecordingContent(samples.size / rate, power, phones, extract_pitch(samples, rate))


def extract_pitch(samples: FloatArray, rate: int) -> FloatArray:
    """Return the pitch of one channel, in hertz, shape (ticks,)."""
    resampler = Resampler(rate, RATE)
    samples = np.asarray(samples, np.float32)
    resampled = np.concatenate([resampler.process(samples), resampler.flush()])
    track = RobustF0().process(resampled)
    last = int(track.ticks[-1]) if track.ticks.size else -1
    pitch = np.zeros(max(-(-resampled.size * TICKS_PER_SECOND // RATE), 1 + last))
    pitch[track.ticks] = RATE / (track.values + LOWEST_LAG)
    return pitch


# --------------------------------------------------------------------------------------- comparing

LONGEST_LAG_SECONDS = 0.5  # by which a protected recording may come later, or earlier
_FEWEST = 30  # frames voiced in both, below which no correlation is given: 0.3 s
_STILL = (0.05, 0.95)  # of the frames: between them a pitch moves by more than its resolution


@dataclass(frozen=True, slots=True)
class Utility:
    """Content of the clear recording that a protected one retains."""

    phones: int  # heard in the clear recording; they are the reference
    phone_edits: int  # phones inserted, deleted or exchanged in the protected one
    voiced: int  # frames of 10 ms voiced in either
    voiced_in_both: int
    pitch_correlation: float | None  # Pearson's, in hertz, over the frames voiced in both
    why: str  # there is none
    lag_seconds: float  # by which the protected recording was found to come later
    louder_db: float | None  # None: one of the two is silent
    longer: float  # its length in lengths of the clear one

    @property
    def phone_error(self) -> float | None:
        """Edits for each phone of the reference, as a word error rate; None without phones."""
        return self.phone_edits / self.phones if self.phones else None


def compare(clear: RecordingContent, protected: RecordingContent) -> Utility:
    """Set a protected recording beside the clear one.

    The reference of the phones is what the recogniser hears in the clear recording, not what was
    said: the recogniser errs itself (docs/features.md). Pitch is compared as the VoicePrivacy
    challenges do, by Pearson's correlation over the frames voiced in both, once what an anonymiser
    takes of time is taken off: the lag, of at most half a second, that has most frames voiced in
    both. It is not chosen by the correlation, which the best of a hundred lags would favour.
    """
    lag, voiced, both = find_lag(clear.pitch_hertz, protected.pitch_hertz)
    correlation, why = _correlation(*align_pitch(clear.pitch_hertz, protected.pitch_hertz, lag))
    sounding = clear.power > 0 and protected.power > 0
    return Utility(
        phones=len(clear.phones),
        phone_edits=count_edits(protected.phones, clear.phones),
        voiced=voiced,
        voiced_in_both=both,
        pitch_correlation=correlation,
        why=why,
        lag_seconds=lag / TICKS_PER_SECOND,
        louder_db=10 * math.log10(protected.power / clear.power) if sounding else None,
        longer=protected.seconds / clear.seconds,
    )


def find_lag(clear: FloatArray, protected: FloatArray) -> tuple[int, int, int]:
    """Return the lag in ticks; frames voiced in either, and in both."""
    most = round(LONGEST_LAG_SECONDS * TICKS_PER_SECOND)
    counts = {}
    for lag in sorted(range(-most, most + 1), key=abs):
        clear_part, protected_part = align_pitch(clear, protected, lag)
        counts[lag] = int(np.count_nonzero((clear_part > 0) & (protected_part > 0)))
    lag = max(counts, key=counts.__getitem__)  # the shortest of equal ones
    total = int(np.count_nonzero(clear) + np.count_nonzero(protected))
    return lag, total - counts[lag], counts[lag]


def align_pitch(
    clear: FloatArray, protected: FloatArray, lag: int
) -> tuple[FloatArray, FloatArray]:
    """Return the frames of both that belong together."""
    clear_part, protected_part = clear[max(0, -lag) :], protected[max(0, lag) :]
    size = min(clear_part.size, protected_part.size)
    return clear_part[:size], protected_part[:size]


def _correlation(clear: FloatArray, protected: FloatArray) -> tuple[float | None, str]:
    both = (clear > 0) & (protected > 0)
    count = int(np.count_nonzero(both))
    if count < _FEWEST:
        return None, f"{count} frames are voiced in both recordings, fewer than {_FEWEST}"
    clear_pitch, protected_pitch = clear[both], protected[both]
    for pitch, which in ((clear_pitch, "clear"), (protected_pitch, "protected")):
        first, last = np.quantile(RATE / pitch, _STILL)
        if last - first <= 1:  # a lag is all that is told apart
            return None, f"the pitch of the {which} recording does not move"
    return float(np.clip(np.corrcoef(clear_pitch, protected_pitch)[0, 1], -1.0, 1.0)), ""


# ----------------------------------------------------------------------------------------- figures

_REFERENCE = (
    "Against what the same recogniser hears in the clear recording, not against what was said."
)


def compute_figures(
    utilities: Sequence[Utility],
    speakers: Sequence[str],
    replicates: int = REPLICATES,
    seed: int = 0,
) -> tuple[Figure, ...]:
    """Compute what protected recordings retain, over all of them.

    Phones and voiced frames are summed before they are divided; correlation, level and length are
    means over the recordings that have them. Limits are Student's, from speakers drawn anew. A
    figure that does not exist is without a value, and has a note.

    Example:
        >>> kept = Utility(100, 20, 50, 40, 0.9, "", 0.0, -1.0, 1.0)
        >>> lost = Utility(100, 60, 50, 10, None, "the pitch does not move", 0.0, -2.0, 1.0)
        >>> error, both, pitch, *_ = compute_figures([kept, lost], ["ann", "bob"])
        >>> error.value, both.value, pitch.value
        (0.4, 0.5, 0.9)
        >>> pitch.note
        'Of 1 of 2 recordings. No limits: one speaker.'
    """
    if not utilities or len(utilities) != len(speakers):
        raise UsageError("give the utility of one recording at least, and whose each is")
    _, owners = np.unique(np.asarray(speakers), return_inverse=True)
    weights = speaker_weights(int(owners.max()) + 1, replicates, seed)
    compute_ratio = partial(_compute_ratio, owners, weights)

    def compute_mean(
        key: str, label: str, unit: str, bounds: tuple[float, float],
        values: Sequence[float | None], why: str = "",
    ) -> Figure:  # fmt: skip
        has = [float(value is not None) for value in values]
        note = "" if all(has) else f"Of {sum(map(int, has))} of {len(has)} recordings."
        figure = Figure(f"utility.{key}", label, None, unit, note=note if any(has) else why)
        return compute_ratio(figure, bounds, [value or 0.0 for value in values], has)

    return (
        compute_ratio(
            Figure("utility.phone_error", "phone error", None, "share", note=_REFERENCE),
            (0.0, np.inf), [u.phone_edits for u in utilities], [u.phones for u in utilities],
        ),
        compute_ratio(
            Figure("utility.voiced_in_both", "voiced in both", None, "share"), (0.0, 1.0),
            [u.voiced_in_both for u in utilities], [u.voiced for u in utilities],
        ),
        compute_mean(
            "pitch_correlation", "pitch correlation", "", (-1.0, 1.0),
            [u.pitch_correlation for u in utilities], next((u.why for u in utilities if u.why), ""),
        ),
        compute_mean(
            "louder_db", "louder by", "dB", (-np.inf, np.inf), [u.louder_db for u in utilities],
            "one of the recordings is silent",
        ),
        compute_mean("longer", "length", "", (0.0, np.inf), [u.longer for u in utilities]),
    )  # fmt: skip


def _compute_ratio(
    whose: IntArray, weights: FloatArray, figure: Figure, bounds: tuple[float, float],
    top: Sequence[float], bottom: Sequence[float],
) -> Figure:  # fmt: skip
    """Compute a figure that is the ratio of two sums, with limits over resampled speakers."""
    own = np.stack([np.bincount(whose, values) for values in (top, bottom)])
    if not own[1].any():
        return replace(figure, note=figure.note or "there is nothing to compare")
    value = float(own[0].sum() / own[1].sum())
    has_any = own[1] > 0
    drawn = _divide(weights @ own[0], weights @ own[1])
    left = _divide(own[0].sum() - own[0], own[1].sum() - own[1])[has_any]
    units = int(has_any.sum())
    estimate = Estimate(value, drawn, left, units, units)
    if not estimate.exists:
        note = f"{figure.note} No limits: one speaker.".strip()
        return replace(figure, value=value, note=note)
    low, high = np.clip(estimate.t_limits(), *bounds).tolist()
    return replace(figure, value=value, replicates=drawn, low=low, high=high)


def _divide(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Divide, NaN where there is nothing to divide by."""
    return np.asarray(np.divide(top, bottom, out=np.full(bottom.shape, np.nan), where=bottom > 0))


# ---------------------------------------------------------------------------------------- measures


class Measure(NamedTuple):
    """Compares clear with protected audio, piece by piece, while attackers' features hear it."""

    version: str  # raise it when results change
    measure: Callable[[FloatArray, FloatArray, int], Record]
    """Of a piece, from clear and protected samples of one channel and their rate."""
    figures: Callable[[Mapping[str, Sequence[Record]]], Sequence[Figure]]
    """Of what was measured of each piece, by reader."""


@lru_cache(4)  # all methods are compared with a clear piece before the next one comes
def _extract_content(samples: bytes, rate: int) -> RecordingContent:
    return extract_content(np.frombuffer(samples, np.float32), rate)


def _measure_utility(clear: FloatArray, protected: FloatArray, rate: int) -> Record:
    both = (np.asarray(samples, np.float32).tobytes() for samples in (clear, protected))
    return asdict(compare(*(_extract_content(samples, rate) for samples in both)))


def _summarise_utility(noted: Mapping[str, Sequence[Record]]) -> Sequence[Figure]:
    rows = [(who, Utility(**utility)) for who, pieces in noted.items() for utility in pieces]
    return compute_figures([utility for _, utility in rows], [w for w, _ in rows]) if rows else ()


MEASURES = {"utility": Measure("1", _measure_utility, _summarise_utility)}
"""Measures by name; called in the process that extracts."""
