"""Utility: how useful a voice still is after protection.

`extract_content` extracts what a listener needs from a recording: phones, pitch and loudness.
`compare` measures how much of it a protected recording retains. `compute_figures` summarises this
over speakers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from monitor.anonymisers.program import Program
from monitor.errors import SourceError, UsageError
from monitor.features.extractor import Resampler
from monitor.features.f0 import LOWEST_LAG, RATE, RobustF0
from monitor.features.phones import recognise_phones
from monitor.lab.report.model import Figure
from monitor.maths.statistics import REPLICATES, Estimate, speaker_weights
from monitor.types import TICKS_PER_SECOND, FloatArray, Record


def count_edits(sequence: Sequence[str], reference: Sequence[str]) -> int:
    """Return the minimum number of insertions, deletions and substitutions (Levenshtein, 1966)."""
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
    phones: tuple[str, ...]  # from the package's recogniser, ARPAbet without stress
    pitch_hertz: FloatArray  # from ``f0_robust`` every 10 ms, 0 if unvoiced, shape (ticks,)


def extract_content(samples: FloatArray, rate: int) -> RecordingContent:
    """Extract the content of one channel, samples of shape (n,) in -1 to 1.

    Example:
        >>> tone = np.sin(2 * np.pi * 100 * np.arange(16000) / 16000)
        >>> content = extract_content(tone, 16000)
        >>> content.seconds, round(content.power, 3), float(content.pitch_hertz[50])
        (1.0, 0.5, 100.0)
    """
    samples = np.asarray(samples, np.float32)
    if not samples.size:
        raise UsageError("the recording has no samples")
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


LONGEST_LAG_SECONDS = 0.5  # maximum delay or advance of a protected recording
_FEWEST = 30  # minimum frames voiced in both for a correlation: 0.3 s
_STILL = (0.05, 0.95)  # quantiles between which a pitch must vary by more than its resolution


@dataclass(frozen=True, slots=True)
class Utility:
    """Content of the clear recording that a protected one retains."""

    phones: int  # recognised in the clear recording, which is the reference
    phone_edits: int  # phones inserted, deleted or substituted in the protected one
    voiced: int  # frames of 10 ms voiced in either
    voiced_in_both: int
    pitch_correlation: float | None  # Pearson's, in hertz, over the frames voiced in both
    why: str  # reason for a missing correlation
    lag_seconds: float  # estimated delay of the protected recording
    louder_db: float | None  # None if one of the two is silent
    longer: float  # its length divided by the clear one's


def compare(clear: RecordingContent, protected: RecordingContent) -> Utility:
    """Compare a protected recording with the clear one.

    The reference phones are those recognised in the clear recording, not those spoken, since the
    recogniser makes errors too (docs/features.md). Pitch is compared as in the VoicePrivacy
    challenges, by Pearson's correlation over the frames voiced in both. This is done after
    correcting for the anonymiser's delay. The delay is the lag, up to half a second, with most
    frames voiced in both. Choosing it by the correlation would favour the best of a hundred lags.
    """
    lag, voiced, both = find_lag(clear.pitch_hertz, protected.pitch_hertz)
    correlation, reason = _correlation(*align_pitch(clear.pitch_hertz, protected.pitch_hertz, lag))
    sounding = clear.power > 0 and protected.power > 0
    return Utility(
        phones=len(clear.phones),
        phone_edits=count_edits(protected.phones, clear.phones),
        voiced=voiced,
        voiced_in_both=both,
        pitch_correlation=correlation,
        why=reason,
        lag_seconds=lag / TICKS_PER_SECOND,
        louder_db=10 * math.log10(protected.power / clear.power) if sounding else None,
        longer=protected.seconds / clear.seconds,
    )


def find_lag(clear: FloatArray, protected: FloatArray) -> tuple[int, int, int]:
    """Return the lag in ticks, and the numbers of frames voiced in either and in both."""
    maximum = round(LONGEST_LAG_SECONDS * TICKS_PER_SECOND)
    counts = {}
    for lag in sorted(range(-maximum, maximum + 1), key=abs):
        clear_part, protected_part = align_pitch(clear, protected, lag)
        counts[lag] = int(np.count_nonzero((clear_part > 0) & (protected_part > 0)))
    lag = max(counts, key=counts.__getitem__)  # on a tie, the shortest
    total = int(np.count_nonzero(clear) + np.count_nonzero(protected))
    return lag, total - counts[lag], counts[lag]


def align_pitch(
    clear: FloatArray, protected: FloatArray, lag: int
) -> tuple[FloatArray, FloatArray]:
    """Return the corresponding frames of both recordings."""
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
        if last - first <= 1:  # within one lag, the resolution of the pitch
            return None, f"the pitch of the {which} recording is constant"
    return float(np.clip(np.corrcoef(clear_pitch, protected_pitch)[0, 1], -1.0, 1.0)), ""


_REFERENCE = (
    "The reference is the same recogniser's result for the clear recording, not the spoken words."
)


def compute_figures(utilities: Sequence[Utility], speakers: Sequence[str]) -> tuple[Figure, ...]:
    """Compute the utility of protected recordings, over all of them.

    Phone errors and voiced frames are ratios of sums. Correlation, level and length are means over
    the recordings that have them. Intervals are Student's, from resampled speakers. A figure
    without a value has a note with the reason.

    Example:
        >>> good = Utility(100, 20, 50, 40, 0.9, "", 0.0, -1.0, 1.0)
        >>> poor = Utility(100, 60, 50, 10, None, "constant pitch", 0.0, -2.0, 1.0)
        >>> error, both, pitch, *_ = compute_figures([good, poor], ["ann", "bob"])
        >>> error.value, both.value, pitch.value
        (0.4, 0.5, 0.9)
        >>> pitch.note
        'From 1 of 2 recordings. No interval: one speaker.'
    """
    compute_ratio = partial(_compute_ratio, speakers)

    def compute_mean(
        key: str, label: str, unit: str, bounds: tuple[float, float],
        values: Sequence[float | None], reason: str = "",
    ) -> Figure:  # fmt: skip
        has = [float(value is not None) for value in values]
        note = "" if all(has) else f"From {sum(map(int, has))} of {len(has)} recordings."
        figure = Figure(f"utility.{key}", label, None, unit, note=note if any(has) else reason)
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
    speakers: Sequence[str], figure: Figure, bounds: tuple[float, float],
    top: Sequence[float], bottom: Sequence[float],
) -> Figure:  # fmt: skip
    """Compute a figure that is the ratio of two sums, with intervals over resampled speakers."""
    names, owners = np.unique(np.asarray(speakers), return_inverse=True)
    weights = speaker_weights(names.size, REPLICATES, 0)
    tops, bottoms = (np.bincount(owners, values) for values in (top, bottom))
    if not bottoms.any():
        return replace(figure, note=figure.note or "there is nothing to compare")
    value = float(tops.sum() / bottoms.sum())
    has_any = bottoms > 0
    samples = _divide(weights @ tops, weights @ bottoms)
    jackknife = _divide(tops.sum() - tops, bottoms.sum() - bottoms)[has_any]
    units = int(has_any.sum())
    estimate = Estimate(value, samples, jackknife, units, units)
    if not estimate.exists:
        note = f"{figure.note} No interval: one speaker.".strip()
        return replace(figure, value=value, note=note)
    low, high = np.clip(estimate.t_limits(), *bounds).tolist()
    return replace(figure, value=value, replicates=samples, low=low, high=high)


def _divide(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Divide, with NaN for zero divisors."""
    return np.asarray(np.divide(top, bottom, out=np.full(bottom.shape, np.nan), where=bottom > 0))


class Measure(NamedTuple):
    """Compares clear with protected audio, piece by piece, during feature extraction."""

    version: str  # raise it when results change
    measure: Callable[[FloatArray, FloatArray, int], Record]
    """Measures a piece, given clear and protected samples of one channel and their rate."""
    figures: Callable[[Mapping[str, Sequence[Record]]], Sequence[Figure]]
    """Summarises the measurements of all pieces, by reader."""


@lru_cache(4)  # all methods use a clear piece before the next piece comes
def _extract_content(samples: bytes, rate: int) -> RecordingContent:
    return extract_content(np.frombuffer(samples, np.float32), rate)


def _measure_utility(clear: FloatArray, protected: FloatArray, rate: int) -> Record:
    both = (np.asarray(samples, np.float32).tobytes() for samples in (clear, protected))
    return asdict(compare(*(_extract_content(samples, rate) for samples in both)))


def _summarise_utility(noted: Mapping[str, Sequence[Record]]) -> Sequence[Figure]:
    rows = [(who, Utility(**utility)) for who, pieces in noted.items() for utility in pieces]
    return compute_figures([utility for _, utility in rows], [w for w, _ in rows]) if rows else ()


class _Recogniser(Program):
    """A speech recogniser: a program that reads a WAV and prints text."""

    expects = "text"


def check_recogniser(command: str) -> None:
    """Raise UsageError unless this is a command line."""
    if not command.strip():
        raise UsageError("--asr-command needs a program that prints text: name one")
    _Recogniser(command, RATE)


def _recognise_words(command: str, samples: FloatArray, rate: int) -> tuple[str, ...]:
    recogniser = _Recogniser(command, rate)
    recogniser.process(np.asarray(samples, np.float32))
    printed, _, _ = recogniser.run()
    return split_words(printed.decode(errors="replace"))


def split_words(text: str) -> tuple[str, ...]:
    """Split a text into words without case and punctuation."""
    return tuple(_WORD.findall(text.casefold()))


@lru_cache(4)
def _recognise_reference(command: str, samples: bytes, rate: int) -> tuple[str, ...]:
    words = _recognise_words(command, np.frombuffer(samples, np.float32), rate)
    if not words:
        raise SourceError("the recogniser printed no words for the clear recording")
    return words


FAILURE = "problem"  # key of the reason why a measure failed; such a measurement is not cached


def _measure_words(command: str, clear: FloatArray, protected: FloatArray, rate: int) -> Record:
    """Count the words of the clear recording, and the edits from them to the protected one.

    The words recognised in the protected one are kept, for comparison with a transcript.
    """
    try:
        reference = _recognise_reference(command, np.asarray(clear, np.float32).tobytes(), rate)
        is_clear = np.array_equal(clear, protected)
        hypothesis = reference if is_clear else _recognise_words(command, protected, rate)
    except SourceError as error:  # the attack does not need the recogniser
        return {"words": 0, "edits": 0, FAILURE: str(error)}
    edits = count_edits(hypothesis, reference)
    return {"words": len(reference), "edits": edits, "recognised": list(hypothesis)}


def _summarise_words(noted: Mapping[str, Sequence[Record]]) -> Sequence[Figure]:
    """Summarise the word error rate over all recordings: edits per word of the reference."""
    rows = [(who, counts) for who, pieces in noted.items() for counts in pieces]
    if not rows:
        return ()
    speakers, counts = zip(*rows, strict=True)
    failed = [entry[FAILURE] for entry in counts if FAILURE in entry]
    note = _REFERENCE
    if failed:
        note += f" {len(failed)} of {len(counts)} recordings excluded: {failed[0]}."
    figure = Figure("utility.word_error", "word error", None, "share", note=note)
    edits, words = ([entry[key] for entry in counts] for key in ("edits", "words"))
    return (_compute_ratio(speakers, figure, (0.0, np.inf), edits, words),)


_WORD = re.compile(r"[\w']+")
PROGRAM = "command:"  # prefix of a measure by a recogniser's command line
MEASURES = {"utility": Measure("1", _measure_utility, _summarise_utility)}
"""Measures by name, called in the process that extracts features."""


def get_measure(name: str) -> Measure:
    """Return the measure of that name; ``command:CMD`` is the word error by a recogniser.

    Example:
        >>> measure = get_measure("command:echo two words")
        >>> measure.measure(np.ones(9), np.ones(9), 16000)
        {'words': 2, 'edits': 0, 'recognised': ['two', 'words']}
    """
    if not name.startswith(PROGRAM):
        return MEASURES[name]
    return Measure("3", partial(_measure_words, name.removeprefix(PROGRAM)), _summarise_words)
