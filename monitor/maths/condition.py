"""Conditions of a recording: band, noise, reverberation, clipping, level, lost samples.

Every second is described by a row of counts. Estimates use only the sum of rows, so they do not
depend on how a stream was cut. docs/conditions.md reports their accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from monitor.maths.statistics import median
from monitor.types import AnyArray, FloatArray, IntArray, find_runs

WIDEST_HZ = 8000.0  # no feature uses more, so a wider band makes no difference

_FRAMES = 50  # frames per second: 20 ms each, without overlap
_SILENCE = np.float32(1e-13)
_BAND_HZ, _BANDS = 250.0, 32
_LEAST_BAND, _BAND_STEP, _BAND_LEVELS = -130.0, 2.0, 112
_LEAST = -110.0  # lowest level, in decibels of full scale: lower ones are digital zeros
_LEVELS = 210  # up to 100 dB above full scale, for 16-bit integers stored as floats
_DECAY_BANDS = ((1000, 2000), (2000, 3500))
"""Hertz, within a telephone's band and above most room noise."""
_DECAY_RANGE, _DECAY_ABOVE = 20.0, 8.0
"""Decibels by which a decay must begin and end above the quiet level of its second."""
_SLOPE_STEP, _SLOPES = 0.25, 80
"""Width of a bin of slopes, in decibels per frame, and number of bins."""
_FLAT, _NEAR = np.float32(0.99), np.float32(0.90)
_AUDIBLE = 0.003  # seconds with a smaller peak are not checked for clipping

_SHORTEST_LOSS, _LONGEST_LOSS = 0.005, 0.25  # seconds
_CUT = 0.02
"""Minimum level beside a loss, relative to the largest sample of the second. A noise gate fades,
and pauses are quiet."""

_SIZES = (_BANDS * _BAND_LEVELS, _LEVELS, _SLOPES, 4)
_ENDS = tuple(int(end) for end in np.cumsum(_SIZES))
ROW = _ENDS[-1]
"""Counts in a row: levels by band, levels, slopes of decays, then samples at the peak, near it, in
total and lost."""

LEAST_BAND_SECONDS, LEAST_SPEECH_SECONDS = 1.0, 3.0
"""Minimum seconds of sound above its noise, for the band and for the other conditions."""
_SILENCE_DB = -100.0  # lower levels are digital zeros (a gate, no input), not noise
_QUIET_SHARE, _QUIETEST_SHARE, _MOST_SPREAD = 0.1, 0.02, 4.0
_ABOVE_NOISE = 3.0
_ACTIVE_BELOW = 15.9  # decibels below the level of speech at which it counts as speech (ITU-T P.56)
_LOUD_SHARE, _DROP, _EDGE = 0.95, 18.0, 10.0
"""Quantile that is a band's loud level; decibels of its fall beyond the edge, and at the edge."""
_LEAST_EDGE = round(2000 / _BAND_HZ)
"""First band that may be the edge: between 1.5 and 2 kHz many voices fall as steeply."""
_STEEP_SHARE, _DECAY, _FASTEST, _LONGEST = 0.9, 0.933, 2.02, 3.0
"""Quantile of slopes, and RT60 by it: fitted to image-method rooms (benchmarks/conditions.py)."""
_LEAST_SNR, _LEAST_DECAYS = 13.0, 25
"""With more noise or fewer decays, reverberation is not estimated."""
_MORE_THAN_BELOW, _UNCLIPPED = 1.25, 0.25
"""Ratio of samples at the peak to those just below: minimum if clipped, typical of speech."""

_BAND_RATIO = 0.7  # readers in MP3 end at 5.8 kHz and others at 8 kHz: not a mismatch
_NARROW_HZ, _WIDER_HZ = 4500.0, 5000.0
"""A telephone's audio ends at 4.3 kHz if its resampler leaks. MP3 is wider."""
_LOUD_ENOUGH, _SNR_APART = 25.0, 8.0
_DRY, _ECHO_RATIO = 0.25, 1.3
_CLIPPED = 0.005
_NOISY = 5.0
_LOST = 0.015
_QUIET = -60.0
"""Level in dB of full scale below which noise of 16-bit samples and of the gain matters."""
_MOST = 1e6


def describe_seconds(columns: FloatArray, mono: FloatArray, rate: int) -> IntArray:
    """Count features of n seconds, each by itself, shape (n, ROW).

    ``columns`` are the decoded samples, (n, rate, channels). ``mono`` are their means, (n, rate),
    without offset and hum (`monitor.features.framing.HighPass`).
    """
    window, edges, _ = _analysis(rate)
    count = len(mono)
    bands = _bands_of(mono[:, : _FRAMES * window.size].reshape(-1, window.size), rate)
    by_band = np.full((len(bands), _BANDS), _LEAST_BAND, np.float32)
    by_band[:, : edges.size] = 10 * np.log10(bands)
    bins = np.clip((by_band - _LEAST_BAND) / _BAND_STEP, 0, _BAND_LEVELS - 1).astype(np.intp)
    bins += np.arange(_BANDS) * _BAND_LEVELS
    levels = np.clip(10 * np.log10(bands.sum(axis=1)) - _LEAST, 0, _LEVELS - 1).astype(np.intp)
    parts = (
        _counts(bins.reshape(count, -1), _SIZES[0]),
        _counts(levels.reshape(count, -1), _LEVELS),
        _decays(bands.reshape(count, _FRAMES, -1)),
        _flat_tops(columns),
        _lost_samples(columns),
    )
    return np.concatenate(parts, axis=1, dtype=np.int32, casting="same_kind")


def _bands_of(pieces: FloatArray, rate: int) -> FloatArray:
    """Compute the power of frames, (n, rate / 50), in bands, or read it from hidden frames."""
    from scipy.fft import rfft  # slow to import

    window, edges, last = _analysis(rate)
    hidden = pieces.min(axis=1, initial=np.inf) > _LEAST_HIDDEN
    spectrum = rfft(np.where(hidden[:, None], np.float32(0), pieces) * window)[:, :last]
    power = spectrum.real**2 + spectrum.imag**2
    bands = np.asarray(np.add.reduceat(power, edges, axis=1) + _SILENCE)
    bands[hidden] = pieces[hidden, : edges.size] / _HIDDEN
    return bands


_HIDDEN, _LEAST_HIDDEN = np.float32(2.0**100), 1e15
_MOST_HIDDEN = np.float32(1e8)
_KEPT_TOP = 0.8  # fraction of the largest sample so far; smaller ones are never near the peak


def hide_second(columns: FloatArray, mono: FloatArray, rate: int) -> tuple[FloatArray, FloatArray]:
    """Replace the sound of an unfinished second without changing its `describe_seconds`.

    The samples of each column, (n, channels), are sorted, and those far from the extremes averaged,
    except runs of zeros and the samples beside them. Frames of 20 ms of ``mono``, (n,), are
    replaced by the power in their bands, scaled beyond all samples. Only the samples of the last,
    incomplete frame remain.
    """
    window, edges, _ = _analysis(rate)
    columns, mono = columns.copy(), np.array(mono, np.float32)
    for column in columns.T:
        moves = np.ones(column.size, bool)
        for begin, end in _find_zeros(column, rate):
            moves[max(begin - 1, 0) : end + 1] = False
        column[moves] = np.sort(column[moves])
        middle = column.mean()
        high, low = column.max() - middle, column.min() - middle
        inner = (column < middle + _KEPT_TOP * high) & (column > middle + _KEPT_TOP * low) & moves
        if inner.any():
            column[inner] = column[inner].mean()
    count = len(mono) // window.size
    pieces = mono[: count * window.size].reshape(count, window.size)
    bands = np.minimum(_bands_of(pieces, rate), _MOST_HIDDEN) * _HIDDEN
    pieces[:] = _HIDDEN
    pieces[:, : edges.size] = bands
    return columns, mono


def _counts(bins: IntArray, size: int) -> IntArray:
    """Count each bin in each row: (n, k) to (n, size)."""
    placed = bins + size * np.arange(len(bins))[:, None]
    return np.bincount(placed.ravel(), minlength=size * len(bins)).reshape(-1, size)


@lru_cache(maxsize=8)
def _analysis(rate: int) -> tuple[FloatArray, IntArray, int]:
    """Compute the window of a frame, the first bin of each band, and the last band's end."""
    size = rate // _FRAMES
    window = np.hanning(size)
    # scaled so that the power of all bins sums to the mean square of the samples
    window = (window * math.sqrt(2 / size / (window @ window))).astype(np.float32)
    hertz = np.fft.rfftfreq(size, 1 / rate)
    last = int(np.searchsorted(hertz, WIDEST_HZ + 1))
    edges = np.searchsorted(hertz, np.arange(_BANDS) * _BAND_HZ + 1)  # 0 Hz is no sound
    return window, edges[edges < last], last


def _decays(bands: FloatArray) -> IntArray:
    """Count slopes of levels that fall over four frames, all well above the second's quiet."""
    decay_bands = [bands[..., round(a / _BAND_HZ) : round(b / _BAND_HZ)] for a, b in _DECAY_BANDS]
    level = 10 * np.log10(np.array([band.sum(axis=2) for band in decay_bands]) + _SILENCE)
    quiet = np.partition(level, 2, axis=2)[..., 2:3]
    begin, end = level[..., :-3], level[..., 3:]
    step = level[..., 1:] - level[..., :-1]
    falls = np.maximum(np.maximum(step[..., :-2], step[..., 1:-1]), step[..., 2:]) < 0
    counts = falls & (begin > quiet + _DECAY_RANGE) & (end > quiet + _DECAY_ABOVE)
    _, second, _ = decays = np.nonzero(counts)
    # least squares through four points
    slope = (3 * (begin[decays] - end[decays]) - step[..., 1:-1][decays]) / 10
    bins = np.clip(slope / _SLOPE_STEP, 0, _SLOPES - 1).astype(np.intp) + _SLOPES * second
    return np.bincount(bins, minlength=_SLOPES * len(bands)).reshape(-1, _SLOPES)


def _flat_tops(columns: FloatArray) -> IntArray:
    """Count samples at the extremes of each second, slightly below them, and in total: (n, 3)."""
    columns = columns - columns.mean(axis=1, keepdims=True)  # an offset would hide one extreme
    high, low = columns.max(axis=1), columns.min(axis=1)
    is_audible = (low < 0) & (high > 0) & (np.maximum(high, -low) >= _AUDIBLE)
    top, lower = (
        np.count_nonzero(columns >= fraction * high[:, None], axis=1)
        + np.count_nonzero(columns <= fraction * low[:, None], axis=1)
        for fraction in (_FLAT, _NEAR)
    )
    totals = np.full(top.shape, columns.shape[1])
    tops = np.stack([top, lower - top, totals], axis=2) * is_audible[..., None]
    return np.asarray(tops.sum(axis=1))


def _lost_samples(columns: FloatArray) -> IntArray:
    """Count the samples of each second that are zero between samples of speech, (n, 1)."""
    count, rate, _ = columns.shape
    lost = np.zeros((count, 1), np.intp)
    for second, channel in np.argwhere((columns == 0).sum(axis=1) >= _SHORTEST_LOSS * rate):
        samples = columns[second, :, channel]
        cut = _CUT * np.abs(samples).max()
        lost[second] += sum(
            end - begin
            for begin, end in _find_zeros(samples, rate)
            if begin > 0
            and end < rate
            and end - begin <= _LONGEST_LOSS * rate
            and min(abs(samples[begin - 1]), abs(samples[end])) >= cut
        )
    return lost


def _find_zeros(samples: FloatArray, rate: int) -> list[tuple[int, int]]:
    """Find runs of zeros, (begin, end), that are long enough for a loss."""
    return [run for run in find_runs(samples == 0) if run[1] - run[0] >= _SHORTEST_LOSS * rate]


@dataclass(frozen=True, slots=True)
class Condition:
    """Conditions of a voice's audio; a figure is None while too little sound supports it."""

    # where the spectrum of the speech ends, at most `WIDEST_HZ`
    bandwidth_hz: float | None = None
    snr_db: float | None = None  # level of the speech minus that of the noise
    # RT60, in which sound decays by 60 dB; at most 0.2 is a dry room
    reverberation_seconds: float | None = None
    clipping: float | None = None  # fraction of samples, 0 to 1, at the peak because of clipping
    level_db: float | None = None  # level of the speech relative to a square wave at full scale
    lost: float | None = None  # fraction of samples, 0 to 1, that are zero in the middle of speech

    def record(self) -> dict[str, float | None]:
        """Return the figures by name, as records and stores keep them."""
        return {name: getattr(self, name) for name in _FIGURES}

    @classmethod
    def parse(cls, record: Mapping[str, object] | None) -> Condition | None:
        """Parse the result of `record`, or None; an impossible figure is a ValueError."""
        if record is None:
            return None
        figures: dict[str, float | None] = {}
        for name in _FIGURES:
            figure = record.get(name)
            if figure is not None and (
                not isinstance(figure, int | float)
                or isinstance(figure, bool)
                or not abs(figure) <= _MOST
            ):
                raise ValueError(f"{figure!r:.40} is not a valid condition")
            figures[name] = figure
        return cls(**figures)


_FIGURES = tuple(figure.name for figure in fields(Condition))


def condition_of(total: AnyArray) -> Condition:
    """Estimate the conditions of seconds from the sum of their rows, shape (ROW,).

    Example:
        >>> rng = np.random.default_rng(0)
        >>> t = np.arange(16000) / 16000
        >>> buzz = sum(np.sin(2 * np.pi * 150 * k * t) for k in range(1, 21)) / 40  # up to 3 kHz
        >>> talk = (buzz * (t % 0.5 < 0.3) + 1e-3 * rng.standard_normal(16000)).astype(np.float32)
        >>> (row,) = describe_seconds(talk[None, :, None], talk[None], 16000)
        >>> found = condition_of(10 * row)
        >>> round(found.snr_db), round(found.bandwidth_hz, -2), found.clipping
        (37, 3200.0, 0.0)
        >>> condition_of(row)  # 0.6 s of sound are too little
        Condition(bandwidth_hz=None, snr_db=None, reverberation_seconds=None, clipping=None, \
level_db=None, lost=None)
        >>> round(condition_of(2 * row).bandwidth_hz, -2), condition_of(2 * row).snr_db
        (3200.0, None)
    """
    bands, levels, decays, tops = np.split(total, _ENDS[:-1])
    level, noise, active = _speech_and_noise(levels)
    if active < LEAST_BAND_SECONDS * _FRAMES:
        return Condition()
    band = _bandwidth(bands.reshape(_BANDS, _BAND_LEVELS))
    if active < LEAST_SPEECH_SECONDS * _FRAMES:
        return Condition(band)
    snr = level - noise
    has_decays = snr >= _LEAST_SNR and decays.sum() >= _LEAST_DECAYS
    *counts, lost = tops.tolist()
    return Condition(
        band,
        snr,
        _reverberation(decays) if has_decays else None,
        _clipping(*counts),
        level,
        lost / counts[-1] if counts[-1] else 0.0,
    )


def sound_seconds(total: AnyArray) -> float:
    """Count seconds above digital silence, from the sum of their rows, shape (ROW,)."""
    levels = total[_ENDS[0] : _ENDS[1]]
    return float(levels[round(_SILENCE_DB - _LEAST) :].sum()) / _FRAMES


def _speech_and_noise(levels: AnyArray) -> tuple[float, float, float]:
    """Estimate levels of speech and noise in decibels, and the frames of speech.

    The noise level is the 10 % quantile of frames, plus up to 4 dB if the frames below it vary, as
    in babble. Speech frames exceed the noise and are at most 15.9 dB below their mean level.
    """
    counts = levels.astype(np.float64)
    counts[: round(_SILENCE_DB - _LEAST)] = 0  # digital zeros are not noise
    if not counts.any():
        return 0.0, 0.0, 0.0
    quiet = _quantile(counts, _QUIET_SHARE)
    margin = min(quiet - _quantile(counts, _QUIETEST_SHARE), _MOST_SPREAD)
    noise = _LEAST + quiet + margin
    centres = _LEAST + 0.5 + np.arange(_LEVELS)
    energy = counts * np.maximum(10 ** (centres / 10) - 10 ** (noise / 10), 0)
    counts[centres < noise + _ABOVE_NOISE] = energy[centres < noise + _ABOVE_NOISE] = 0
    frames, power = (np.cumsum(column[::-1])[::-1] for column in (counts, energy))
    if not power[0]:
        return noise, noise, 0.0
    level = 10 * np.log10(power / np.maximum(frames, 1) + _SILENCE)
    # the highest level at least 15.9 dB below the mean of the frames from it upwards
    index = int(np.flatnonzero((level - centres >= _ACTIVE_BELOW) | (np.arange(_LEVELS) == 0))[-1])
    return float(level[index]), noise, float(frames[index])


def _quantile(counts: FloatArray, fraction: float) -> float:
    """Interpolate a quantile of counts, in bins."""
    below = np.cumsum(counts)
    target = fraction * below[-1]
    index = int(np.searchsorted(below, target))
    return index + float((target - (below[index] - counts[index])) / counts[index])


def _bandwidth(bands: AnyArray) -> float:
    """Find the frequency, Hz, beyond which loud levels stay 18 dB lower, or `WIDEST_HZ`."""
    below = np.cumsum(bands, axis=1)
    loud = _LEAST_BAND + _BAND_STEP * np.argmax(below >= _LOUD_SHARE * below[:, -1:], axis=1)
    places = np.arange(_LEAST_EDGE, _BANDS - 1)
    # the median of the four bands before
    inside = np.sort(sliding_window_view(loud, 4)[places - 4], axis=1)[:, 1:3].mean(axis=1)
    beyond = np.maximum.accumulate(loud[::-1])[::-1][np.minimum(places + 2, _BANDS - 1)]
    drop = int(np.argmax(inside - beyond))
    if inside[drop] - beyond[drop] < _DROP:
        return WIDEST_HZ
    edge, first = inside[drop] - _EDGE, places[drop] - 2
    fallen = first + int(np.argmax(loud[first:] < edge))
    fraction = (loud[fallen - 1] - edge) / (loud[fallen - 1] - loud[fallen])
    return float((fallen + fraction) * _BAND_HZ)


def _reverberation(decays: AnyArray) -> float:
    """Estimate RT60 in seconds from the steepest decays of sound.

    In a room, no level falls by 60 dB in less than RT60, however short the sound is (J. Y. C. Wen,
    E. A. P. Habets, P. A. Naylor, "Blind estimation of reverberation time based on the
    distribution of signal decay rates", ICASSP 2008).
    """
    steep = _SLOPE_STEP * _quantile(decays.astype(np.float64), _STEEP_SHARE)
    return float(min(_DECAY / max(steep - _FASTEST, 1e-3), _LONGEST))


def _clipping(flat: int, near: int, count: int) -> float:
    """Estimate the fraction of samples at the peak because of clipping.

    The density of speech falls towards its largest samples. If a second has more samples at its
    peak than slightly below it, it was clipped, at any later gain.
    """
    if not count or flat < _MORE_THAN_BELOW * near:
        return 0.0
    return (flat - _UNCLIPPED * near) / count


def list_mismatches(stream: Condition, templates: Condition) -> tuple[str, ...]:
    """List the figures in which a stream differs from the templates more than sessions do.

    Levels are not compared, because features get audio of one loudness. The thresholds were chosen
    on half of the readers (benchmarks/conditions.py).

    Example:
        >>> telephone = Condition(bandwidth_hz=3600.0, snr_db=30.0)
        >>> list_mismatches(telephone, Condition(bandwidth_hz=8000.0, snr_db=45.0))
        ('bandwidth_hz',)
    """
    figures = ((name, getattr(stream, name), getattr(templates, name)) for name in _APART)
    return tuple(
        name
        for name, stream_value, template_value in figures
        if stream_value is not None
        and template_value is not None
        and _APART[name](stream_value, template_value)
    )


def _ratio(a: float, b: float) -> float:
    return min(a, b) / max(a, b)


_APART: Mapping[str, Callable[[float, float], bool]] = {
    "bandwidth_hz": lambda stream, template: (
        _ratio(stream, template) < _BAND_RATIO
        or (min(stream, template) < _NARROW_HZ and max(stream, template) > _WIDER_HZ)
    ),
    "snr_db": lambda stream, template: (
        abs(min(stream, _LOUD_ENOUGH) - min(template, _LOUD_ENOUGH)) >= _SNR_APART
    ),
    "reverberation_seconds": lambda stream, template: (
        _ratio(max(stream, _DRY), max(template, _DRY)) < 1 / _ECHO_RATIO
    ),
    "clipping": lambda stream, template: (stream >= _CLIPPED) != (template >= _CLIPPED),
}


_POOR: Mapping[str, Callable[[float], bool]] = {
    "snr_db": lambda db: db < _NOISY,
    "clipping": lambda fraction: fraction >= _CLIPPED,
    "level_db": lambda db: db < _QUIET,
    "lost": lambda fraction: fraction >= _LOST,
}


def list_poor_figures(stream: Condition) -> tuple[str, ...]:
    """List the figures so bad that a voice is hard to recognise, whatever the templates are."""
    figures = ((name, getattr(stream, name)) for name in _POOR)
    return tuple(name for name, figure in figures if figure is not None and _POOR[name](figure))


def average_condition(conditions: Sequence[Condition | None]) -> Condition | None:
    """Compute the median of each figure that more than half of them have; None without any."""
    medians: dict[str, float | None] = {}
    for name in _FIGURES:
        figures = [getattr(condition, name) for condition in conditions if condition is not None]
        figures = [figure for figure in figures if figure is not None]
        is_common = 2 * len(figures) > len(conditions)
        medians[name] = median(np.array(figures)) if is_common else None
    return Condition(**medians) if any(value is not None for value in medians.values()) else None


_DEGRADED: Mapping[str, Callable[[float], float]] = {
    "bandwidth_hz": lambda hertz: math.log2(5500.0 / hertz) / math.log2(5500.0 / 3430.0),
    # estimates in one room differ by 0.2 s; above 0.5 s they distinguish voices, not rooms
    "reverberation_seconds": lambda seconds: min((seconds - 0.25) / 0.25, 1.0),
    "snr_db": lambda db: (25.0 - db) / 15.0,
}
_MOST_DEGRADED = 1.2  # stronger degradations were not simulated


def degradation(condition: Condition | None) -> FloatArray:
    """Compute the degradation by band, echo and noise compared with a studio, shape (3,).

    0 is a studio. 1 is a telephone's band, an RT60 of at least 0.5 s, or noise 10 dB below the
    speech. The maximum is 1.2, and unknown conditions are NaN.
    """
    figures = ((getattr(condition, name, None), degraded) for name, degraded in _DEGRADED.items())
    degradations = [np.nan if figure is None else degraded(figure) for figure, degraded in figures]
    return np.clip(degradations, 0.0, _MOST_DEGRADED)


UNLIKE, NEW = 11, 10
"""Number of columns of `unlike`, and index of the one for new streams."""


def unlike(streams: FloatArray, templates: FloatArray, *, is_new: bool = False) -> FloatArray:
    """Compute excess degradation of streams, of templates, and their common degradation.

    The inputs are degradations by band, echo and noise, (R, 3) and (N, 3). The result, (R, N, 11),
    has ``max(stream - template, 0)``, then ``max(template - stream, 0)``, then ``min(stream,
    template)``, each 0 to 1.2. The tenth column sums the larger degradation of each kind and
    subtracts the largest, because combined degradations cost less than their sum. Unknown
    conditions count as 0. The last column is 1 if the streams are so new that their noise is still
    unknown (``is_new``).

    Example:
        >>> telephone, studio = np.array([[1.0, 0.0, np.nan]]), np.zeros((1, 3))
        >>> unlike(telephone, np.concatenate([telephone, studio]))
        array([[[0., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0.],
                [1., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.]]])
        >>> room = np.array([[0.0, 0.5, 0.0]])
        >>> unlike(telephone, room, is_new=True)[0, 0, -2:]
        array([0.5, 1. ])
    """
    stream = streams[:, None]
    worse = np.maximum(stream - templates, 0.0), np.maximum(templates - stream, 0.0)
    degrees = np.nan_to_num(np.stack([*worse, np.minimum(stream, templates)], axis=-2))
    kinds = degrees.sum(axis=-2)
    combined = kinds.sum(axis=-1) - kinds.max(axis=-1)
    parts = degrees.reshape(*degrees.shape[:-2], -1), combined[..., None]
    return np.concatenate([*parts, np.full_like(parts[1], is_new)], axis=-1)
