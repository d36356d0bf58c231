"""A rank model: calibration of one set of features, its evidence and its maxima."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import StoreError
from monitor.files import Arrays
from monitor.kinds import is_mark, within
from monitor.maths.condition import UNLIKE
from monitor.maths.evidence import ConditionEffect, ConditionEffects, neighbours
from monitor.population.store import refusing_incomplete
from monitor.safe_text import is_name
from monitor.types import AnyArray, BoolArray, FloatArray

# ---------------------------------------------------------------------------------------- checking
# A store may come from an impostor, or from a disk that fails: one number that is none would end a
# run in the middle, one that is far too large would read as nothing disclosed.

SESSIONS = ("same", "cross")
ORIGINS = ("own", "shipped")
MOST_PEOPLE = 1e9
MOST_PARAMETER = 1e12
LEAST_PARAMETER = 1e-12


def check_rank_model(rank_model: RankModel) -> None:
    """Refuse a rank model that no calibration gives."""
    lists = (rank_model.left_out, rank_model.networks, rank_model.learnt_from)
    if not all(
        isinstance(names, tuple)
        for names in (rank_model.features, rank_model.similarities, rank_model.rows, *lists)
    ):
        raise StoreError(
            "a rank model does not list its features, similarities, cells and speakers"
        )
    about = "+".join(map(str, rank_model.features))
    _check_kind(rank_model.features, rank_model.session, rank_model.learnt_from)
    for count, fewest in ((rank_model.speakers, 1), (rank_model.candidates, 2)):
        if type(count) is not int or count < fewest:
            raise StoreError(f"the rank model of {about} counts {count!a:.20} people")
    if len(rank_model.networks) not in (0, len(rank_model.features)) or not all(
        map(is_mark, rank_model.networks)
    ):
        raise StoreError(f"the rank model of {about} does not say which network made what")
    if not all(map(is_name, rank_model.similarities)) or rank_model.origin not in ORIGINS:
        raise StoreError(f"the rank model of {about} is of no known kind")
    if not all(map(is_name, rank_model.left_out)):
        raise StoreError(f"the rank model of {about} names speakers who cannot be printed")
    if type(rank_model.forgotten) is not int or rank_model.forgotten < 0:
        raise StoreError(
            f"the rank model of {about} counts {rank_model.forgotten!a:.20} forgotten people"
        )
    share = rank_model.prior_speakers
    if not _is_number(share) or not 0 <= share <= MOST_PEOPLE:
        raise StoreError(f"the prior of the rank model of {about} counts {share!a:.20} people")
    if not all(map(_is_row, rank_model.rows)):
        raise StoreError(f"the table of the rank model of {about} makes no sense")
    for axis in (rank_model.lengths, rank_model.template_lengths):
        if axis.dtype.kind not in "iuf" or not within(axis, 0.0, 1e9):
            raise StoreError(f"the lengths of the rank model of {about} are no seconds")
    if rank_model.binomial.dtype != np.bool_:
        raise StoreError(f"the rank model of {about} does not say which cells are binomial")
    top = np.where(rank_model.binomial, 1.0, MOST_PARAMETER)
    least = np.where(rank_model.binomial, 0.0, LEAST_PARAMETER)
    reached = ~np.isnan(rank_model.alpha)
    for name, values, low, most in (
        ("alpha", rank_model.alpha, least, top),
        ("beta", rank_model.beta, least, top),
        ("floor", rank_model.floor, 0.0, 1.0),
    ):
        _check_parameter(about, name, values, reached, low, most)
    for f in range(rank_model.weights.shape[-1]):
        _check_parameter(about, "weights", rank_model.weights[..., f], reached, 0.0, MOST_PARAMETER)
    open_set = rank_model.open_set
    is_fitted = open_set.dtype.kind == "f" and ~np.isnan(open_set).any(axis=-1)
    if not np.any(is_fitted) or not (abs(open_set[is_fitted]) <= MOST_PARAMETER).all():
        raise StoreError(f"the open-set coefficients of the rank model of {about} are no numbers")


def _check_kind(features: tuple[Any, ...], session: object, learnt_from: tuple[Any, ...]) -> None:
    """Refuse features, a session or names of speakers that no rank model has."""
    about = "+".join(map(str, features))
    if session not in SESSIONS or not features or not all(map(is_name, features)):
        raise StoreError(f"a rank model is of {about!a:.40} in session {session!a:.20}")
    if not all(map(is_name, learnt_from)):
        raise StoreError(f"the rank model of {about} names speakers who cannot be printed")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_row(row: object) -> bool:
    """Return whether it is a cell of the calibration's table: figures, words, lists of them."""
    return (
        isinstance(row, dict)
        and all(map(_is_number, (row.get("T"), row.get("D"))))
        and (row.get("open_set_area") is None or _is_number(row["open_set_area"]))
        and _is_plain(row)
    )


_is_key = lru_cache(maxsize=1 << 12)(is_name)  # tables have the same few keys in every row


def _is_plain(value: object) -> bool:
    """Return whether it is figures, words, and lists and objects of them."""
    items = [value]
    while items:
        item = items.pop()
        if isinstance(item, (int, float)):  # nearly all of them
            if abs(item) > MOST_PARAMETER:
                return False
        elif isinstance(item, dict):
            if not all(map(_is_key, item)):
                return False
            items.extend(item.values())
        elif isinstance(item, list):
            items.extend(item)
        elif item is not None and not (isinstance(item, str) and item.isprintable()):
            return False
    return True


def _check_parameter(
    about: str,
    name: str,
    values: FloatArray,
    reached: AnyArray,
    minimum: float | FloatArray,
    maximum: float | FloatArray,
) -> None:
    """Refuse numbers out of range in a cell that there is."""
    if values.dtype.kind != "f" or np.isnan(values[reached]).any():
        raise StoreError(f"{name} of the rank model of {about} is not there in every cell")
    if not ((values >= minimum) & (values <= maximum))[reached].all():
        raise StoreError(f"{name} of the rank model of {about} lies out of range")


# ------------------------------------------------------------------------------------------ maxima
# Streams of calibration speakers who are not the watched one, each watched as somebody else and
# with the speaker's own template taken out (docs/method.md section 11).

HORIZONS = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0)  # lengths of streams, audio seconds
MOST_BITS = 1e6
MOST_SECONDS = 1e9
_ARRAYS = ("horizons", "values", "seconds")


@dataclass(frozen=True, slots=True)
class FieldMaxima:
    """Maxima of one field over streams of one length.

    Attributes:
        values: shape (n,), one a speaker.
        repeated: of the n, how many streams had less audio and were heard again from their
            beginning.
    """

    values: FloatArray
    horizon_seconds: float
    repeated: int


@dataclass(frozen=True, slots=True)
class Maxima:
    """Largest values of some fields over streams of S speakers, one stream each.

    A stream that had less audio than a horizon, but half of it, was heard again from its beginning
    up to there: then chance that favoured somebody in it counts twice, which more speech would have
    levelled out. ``seconds`` says which these are.

    Attributes:
        fields: of a reading (``closed_set_bits``, ``gain_bits``, ``evidence_bits`` ...), as with
            somebody watched.
        horizons: audio seconds, shape (nH,), increasing.
        values: shape (len(fields), S, nH), half precision, rounded up; NaN where the stream is
            shorter than half of the horizon, or never had a figure.
        seconds: audio seconds of each stream, shape (S,).
        template_seconds: D, to which the templates were cut.
    """

    fields: tuple[str, ...]
    horizons: FloatArray
    values: AnyArray
    seconds: FloatArray
    speakers: tuple[str, ...]
    template_seconds: float

    def horizon(self, seconds: float) -> float | None:
        """Return the shortest length in the grid that is no shorter; None beyond it."""
        longer = self.horizons[self.horizons >= seconds - 1e-9]
        return float(longer[0]) if longer.size else None

    def select_others(
        self, field: str, seconds: float, *, needed: int = 1, watch: str | None = None
    ) -> FieldMaxima:
        """Select maxima of others than ``watch`` in streams of a length, or of the next longer one.

        Where fewer speakers than ``needed`` had so much audio, those who had half of it count too.
        """
        place = int(np.searchsorted(self.horizons, seconds - 1e-9))
        values = self.values[self.fields.index(field), :, place].astype(np.float64)
        is_other = ~np.isnan(values) & np.array([name != watch for name in self.speakers], np.bool_)
        is_whole = is_other & (self.seconds >= self.horizons[place])
        selection = is_whole if is_whole.sum() >= needed else is_other
        return FieldMaxima(
            values[selection],
            float(self.horizons[place]),
            int(selection.sum() - (selection & is_whole).sum()),
        )

    def without(self, name: str) -> Maxima | None:
        """Remove a speaker; None where nobody is left."""
        others = np.array([speaker != name for speaker in self.speakers], np.bool_)
        if not others.any():
            return None
        return replace(
            self,
            values=self.values[:, others],
            seconds=self.seconds[others],
            speakers=tuple(speaker for speaker in self.speakers if speaker != name),
        )


def round_up(values: FloatArray) -> AnyArray:
    """Round up to half precision, so that nothing that stops at a bound exceeds it."""
    half = values.astype(np.float16)
    return np.where(half < values, np.nextafter(half, np.float16(np.inf)), half)


def pack_maxima(maxima: Maxima) -> tuple[dict[str, object], dict[str, AnyArray]]:
    """Return maxima as a store keeps them: a note for the rank model's header, and arrays."""
    plain = {
        "fields": maxima.fields,
        "speakers": maxima.speakers,
        "template_seconds": maxima.template_seconds,
    }
    return plain, {name: getattr(maxima, name) for name in _ARRAYS}


def unpack_maxima(plain: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Maxima:
    """Reverse ``pack_maxima``; a KeyError where an array is missing.

    Raises:
        StoreError: they are none.
    """
    maxima = Maxima(
        tuple(plain["fields"]),
        arrays["horizons"],
        arrays["values"],
        arrays["seconds"],
        tuple(plain["speakers"]),
        plain["template_seconds"],
    )
    check_maxima(maxima)
    return maxima


def check_maxima(maxima: Maxima) -> None:
    """Refuse maxima that no streams have."""
    names = (*maxima.fields, *maxima.speakers)
    if not all(map(is_name, names)) or len(set(maxima.fields)) != len(maxima.fields):
        raise StoreError(
            "the maxima of a rank model are of fields or speakers that cannot be printed"
        )
    if len(set(maxima.speakers)) != len(maxima.speakers):
        raise StoreError("the maxima of a rank model are of one speaker twice")
    horizons, values, seconds = maxima.horizons, maxima.values, maxima.seconds
    shape = (len(maxima.fields), len(maxima.speakers), horizons.size)
    shapes = (values.shape, seconds.shape, horizons.shape)
    if shapes != (shape, shape[1:2], shape[2:]) or 0 in shape:
        raise StoreError(f"the maxima of a rank model have shape {values.shape}, not {shape}")
    d = maxima.template_seconds
    if isinstance(d, bool) or not isinstance(d, int | float) or not 0 < d < MOST_SECONDS:
        raise StoreError("the maxima of a rank model do not say how long the templates were")
    for axis in (horizons, seconds):
        if axis.dtype.kind != "f" or not ((axis > 0) & (axis < MOST_SECONDS)).all():
            raise StoreError("the lengths of the maxima of a rank model are no seconds")
    if not (np.diff(horizons) > 0).all():
        raise StoreError("the lengths of the maxima of a rank model do not increase")
    bits = np.asarray(values[~np.isnan(values)] if values.dtype.kind == "f" else [np.inf], float)
    if not (np.abs(bits) <= MOST_BITS).all():
        raise StoreError("the maxima of a rank model are no bits")
    if (np.diff(values.astype(float), axis=2) < 0).any():
        raise StoreError("the maxima of a rank model shrink as streams grow")


# ---------------------------------------------------------------------------------------- evidence
# Source: docs/method.md section 10.

_MOST = 1e4  # nats of a coefficient, or bits of support, that no calibration reaches


@dataclass(frozen=True, slots=True)
class EvidenceModel:
    """Model ``log LR_j = a + sum_f b_f z_fj`` on a grid of T and D (docs/method.md section 10).

    Row 0 of ``intercept`` and ``slopes`` is the model; rows 1..B are its resamples. A cell that the
    corpus could not reach is NaN.

    Attributes:
        lengths: T, speech seconds, shape (nT,), increasing.
        template_lengths: D, likewise, shape (nD,).
        intercept: a, nats, shape (1 + B, nT, nD).
        slopes: b >= 0, nats, shape (1 + B, nT, nD, F), in the order of the rank model's features.
        support: the most bits that the calibration's people can support, each length by itself,
            shape (nT, nD).
        area: how well the sum of all ratios tells enrolled speakers from impostors, area under the
            ROC curve on speakers left out of the fit, shape (nT, nD).
        cohort: digest of each feature of the cohort that scores were set against
            (``Cohort.compute_digest``): with another one it means nothing. Shape (F,).
        conditions: what telephones, rooms and noise do to it; None where nobody measured.
    """

    lengths: FloatArray
    template_lengths: FloatArray
    intercept: FloatArray
    slopes: FloatArray
    support: FloatArray
    area: FloatArray
    cohort: tuple[str, ...]
    conditions: ConditionEffects | None = None

    def __post_init__(self) -> None:
        cells = self.lengths.size, self.template_lengths.size
        replicates = self.intercept.shape[0] if self.intercept.ndim else 0
        if (
            self.intercept.shape != (replicates, *cells)
            or self.slopes.shape[:-1] != (replicates, *cells)
            or self.support.shape != cells
            or self.area.shape != cells
        ):
            raise StoreError(
                "the parts of an evidence rank model do not have the shapes of one grid"
            )
        reached = np.isfinite(self.support)
        intercept, slopes = self.intercept[:, reached], self.slopes[:, reached]
        support, area = self.support[reached], self.area[reached]
        in_range = all((np.abs(x) <= _MOST).all() for x in (intercept, slopes, support))
        if replicates < 2 or not reached.any() or not in_range:
            raise StoreError(
                "an evidence rank model needs a cell, a resample, and coefficients in range"
            )
        is_share = ((area >= 0) & (area <= 1)).all()
        if (slopes < 0).any() or (support < 0).any() or not is_share:
            raise StoreError(
                "an evidence rank model has negative slopes or support, or areas beyond 1"
            )
        if self.conditions is not None:
            _check_effects(self.conditions, self.slopes.shape[-1])
        marks = self.cohort if isinstance(self.cohort, tuple) else ()
        if len(marks) != self.slopes.shape[-1] or not all(mark and is_mark(mark) for mark in marks):
            raise StoreError(
                "an evidence rank model does not say which cohort it was learnt against"
            )

    def pack(self) -> dict[str, AnyArray]:
        """Return arrays for a store; resamples in half precision."""
        packed = {}
        if (conditions := self.conditions) is not None:
            table = [
                np.vstack([effect.shift, effect.support, effect.slope])
                for effect in conditions.effects
            ]
            packed["conditions"] = np.stack(table).astype(np.float32)
            packed["condition_lengths"] = conditions.template_lengths.astype(np.float32)
        return {
            **packed,
            "intercept": self.intercept[0].astype(np.float32),
            "slopes": self.slopes[0].astype(np.float32),
            # they are spread, not precision
            "intercepts": self.intercept[1:].astype(np.float16),
            "slope_draws": self.slopes[1:].astype(np.float16),
            "support": self.support.astype(np.float32),
            "area": self.area.astype(np.float32),
        }

    @classmethod
    def unpack(
        cls,
        arrays: Mapping[str, AnyArray],
        lengths: FloatArray,
        template_lengths: FloatArray,
        cohort: tuple[str, ...],
    ) -> EvidenceModel:
        """Reverse ``pack``, on the grid of the rank model.

        Raises:
            StoreError: it is no rank model.
            KeyError: a part is missing.
        """

        def part(*names: str) -> FloatArray:
            parts = [arrays[name] for name in names]
            if any(array.dtype.kind != "f" for array in parts):
                raise StoreError("an evidence rank model is no table of numbers")
            first = parts[0].astype(np.float64)
            if len(parts) == 1:
                return first
            return np.concatenate([first[None], parts[1].astype(np.float64)])

        return cls(
            lengths,
            template_lengths,
            part("intercept", "intercepts"),
            part("slopes", "slope_draws"),
            part("support"),
            part("area"),
            cohort,
            _effects_of(part("condition_lengths"), part("conditions"))
            if "conditions" in arrays
            else None,
        )

    def at_template(self, seconds: float) -> LengthEvidence:
        """Interpolate the model for templates of D speech seconds.

        Between two template lengths it is interpolated in log D; outside them, or where only one
        was reached, the nearest holds. What shorter speech and templates support, longer ones
        support: the support at T and D is the largest of all cells up to T and D.
        """
        reached = np.isfinite(self.support)
        supported = np.fmax.accumulate(self.support, axis=1)
        rows = np.flatnonzero(reached.any(axis=1))
        parts = []
        for t in rows:
            left, right, w = neighbours(self.template_lengths, reached[t], seconds)
            parts.append([
                (1.0 - w) * values[..., left] + w * values[..., right]
                for values in (
                    self.intercept[:, t],
                    np.moveaxis(self.slopes[:, t], 1, -1),
                    supported[t],
                    self.area[t],
                )
            ])  # fmt: skip
        intercept, slopes, support, area = (np.stack(values) for values in zip(*parts, strict=True))
        # fewer people are long enough heard to calibrate more speech, which tells no less for that
        support = np.maximum.accumulate(support)
        effect = None if self.conditions is None else self.conditions.at_template(seconds)
        return LengthEvidence(self.lengths[rows], intercept, slopes, support, area, effect)


def _effects_of(lengths: FloatArray, table: FloatArray) -> ConditionEffects:
    if table.ndim != 3 or table.shape[1] < 2:
        raise StoreError("an evidence rank model says what no condition does")
    return ConditionEffects(lengths, tuple(ConditionEffect(x[0], x[2:], x[1]) for x in table))


def _check_effects(effects: ConditionEffects, features: int) -> None:
    """Refuse effects of another number of features."""
    lengths, shapes = effects.template_lengths, ((UNLIKE,), (UNLIKE,), (features, UNLIKE))
    is_valid = lengths.shape == (len(effects.effects),) and lengths.size > 0
    is_valid = is_valid and bool((lengths > 0).all() and (np.diff(lengths) > 0).all())
    for effect in effects.effects:
        parts = effect.shift, effect.support, effect.slope
        is_valid = is_valid and tuple(array.shape for array in parts) == shapes
        is_valid = is_valid and all(bool((np.abs(array) <= _MOST).all()) for array in parts)
        is_valid = is_valid and not (effect.support < 0).any()
    if not is_valid:
        raise StoreError("an evidence rank model says what no condition does")


@dataclass(frozen=True, slots=True)
class EvidencePoint:
    """Evidence model at R test lengths; row 0 the model, rows 1..B its resamples.

    Attributes:
        intercept: a, nats, shape (R, 1 + B).
        slopes: b, nats, shape (R, 1 + B, F).
        support: bits, shape (R,).
        area: shape (R,).
    """

    intercept: FloatArray
    slopes: FloatArray
    support: FloatArray
    area: FloatArray


@dataclass(frozen=True, slots=True)
class LengthEvidence:
    """Evidence model at one template length, continuous in the test length T.

    Inside the grid a and b are interpolated in log T, which keeps the promise: where other people's
    mean ratio is at most 1 at both ends, it is in between (Hoelder's inequality). Below the grid
    the ratio fades to 1, nothing at T = 0 (Jensen's). Beyond it the last rank model holds.

    Attributes:
        lengths: T of the grid, shape (nT,).
        intercept: shape (nT, 1 + B).
        slopes: shape (nT, 1 + B, F).
        support: shape (nT,), never falling.
        area: shape (nT,).
        conditions: of the model, at every test length.
    """

    lengths: FloatArray
    intercept: FloatArray
    slopes: FloatArray
    support: FloatArray
    area: FloatArray
    conditions: ConditionEffect | None = None

    _table: FloatArray = field(init=False, repr=False)
    _bounds: FloatArray = field(init=False, repr=False)
    _logs: FloatArray = field(init=False, repr=False)
    _gaps: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # one table of all coefficients: a reading looks them up once
        logs = np.log(self.lengths)
        tables = {
            "_table": np.concatenate([self.intercept[..., None], self.slopes], axis=-1),
            "_bounds": np.column_stack([self.support, self.area]),
            "_logs": logs,
            "_gaps": np.append(np.diff(logs), 1.0),
        }
        for name, value in tables.items():
            object.__setattr__(self, name, value)

    def at(self, seconds: FloatArray) -> EvidencePoint:
        """Interpolate at T speech seconds, shape (R,); a moment does not depend on the others."""
        first, last = self.lengths[0], self.lengths[-1]
        inside = np.minimum(np.maximum(seconds, first), last)
        left = np.maximum(np.searchsorted(self.lengths, inside) - 1, 0)
        right = np.minimum(left + 1, self.lengths.size - 1)
        w = (np.log(inside) - self._logs[left]) / self._gaps[left]
        fade = np.minimum(seconds / first, 1.0)
        near, far = (fade * (1.0 - w))[:, None, None], (fade * w)[:, None, None]
        table = near * self._table[left] + far * self._table[right]
        lower, upper = self._bounds[left], self._bounds[right]
        bounds = lower + w[:, None] * (upper - lower)  # equal ends stay what they are
        return EvidencePoint(table[..., 0], table[..., 1:], bounds[:, 0], bounds[:, 1])


# Source: docs/method.md sections 3 to 5.

_RANK_MODEL_ARRAYS = (
    *("lengths", "template_lengths", "alpha", "beta", "binomial", "weights", "floor"),
    "open_set",
)
RANK_MODEL = "rank_model/"
"""What the names of their arrays in a store begin with."""
_MAXIMA, _EVIDENCE, _ROWS = "maxima/", "evidence", "rows"
_SHORTEST, _LONGEST = 1e-3, 1e9  # seconds


@dataclass(frozen=True, slots=True)
class RankModel:
    """Parameters on a grid of T and D, with their resamples (docs/method.md sections 3 to 5).

    Row 0 of every parameter array is the rank model; rows 1..B are its resamples. A cell the corpus
    could not reach is NaN. Parameters are stored, never gamma: they are evaluated at the live N.

    Attributes:
        features: names, in order; one, or several for their joint.
        session: ``"same"`` or ``"cross"``: where template and test came from.
        similarities: name of each feature's similarity.
        lengths: T, speech seconds, shape (nT,), increasing.
        template_lengths: D, likewise, shape (nD,).
        alpha: shape (1 + B, nT, nD); p of the binomial where ``binomial``.
        beta: shape (1 + B, nT, nD); 1 - p where ``binomial``.
        binomial: shape (1 + B, nT, nD), the degenerate (under-dispersed) cells.
        weights: lambda, shape (1 + B, nT, nD, F).
        floor: e, shape (1 + B, nT, nD).
        open_set: shape (nT, nD, 1 + F): log odds of being enrolled, at even odds before, are the
            first plus the others times the favourite's absolute scores.
        rows: one dict a cell, what the calibration table shows.
        speakers: mated speakers behind the rank model.
        candidates: N of the calibration.
        prior_speakers: how many speakers the prior, another rank model, counted as in the fit.
        origin: ``"own"``; or ``"shipped"`` where it is the shipped readers', since none could be
            learnt.
        left_out: names of candidates whose tests taught it nothing, since one of its features'
            networks was trained on their speech.
        networks: sha256 of the network that made each feature, None where none did; empty where
            none of them was.
        learnt_from: names of everybody whose speech is in it, as test or as candidate; empty where
            it does not say, as the shipped one.
        forgotten: how many of them have been forgotten since (`monitor.population.forgetting`).
        maxima: how high other people's streams got under this rank model; None where nobody looked.
        evidence: likelihood ratios on the same grid; None where there was no cohort.
    """

    features: tuple[str, ...]
    session: str
    similarities: tuple[str, ...]
    lengths: FloatArray
    template_lengths: FloatArray
    alpha: FloatArray
    beta: FloatArray
    binomial: BoolArray
    weights: FloatArray
    floor: FloatArray
    open_set: FloatArray
    rows: tuple[Mapping[str, Any], ...]
    speakers: int
    candidates: int
    prior_speakers: float = 0.0
    origin: str = "own"
    left_out: tuple[str, ...] = ()
    networks: tuple[str | None, ...] = ()
    learnt_from: tuple[str, ...] = ()
    forgotten: int = 0
    maxima: Maxima | None = None
    evidence: EvidenceModel | None = None

    def network(self, feature: str) -> str | None:
        """Return the network of one of its features."""
        marks = self.networks or (None,) * len(self.features)
        return dict(zip(self.features, marks, strict=True)).get(feature)

    @property
    def prior_share(self) -> float:
        """Share of the prior in this rank model: 0 (nothing) to 1 (it is the prior)."""
        if self.origin == "shipped":
            return 1.0
        return self.prior_speakers / (self.speakers + self.prior_speakers)

    def __post_init__(self) -> None:
        cells = (self.alpha.shape[0], self.lengths.size, self.template_lengths.size)
        shapes = {
            name: getattr(self, name).shape for name in ("alpha", "beta", "binomial", "floor")
        }
        if any(shape != cells for shape in shapes.values()):
            raise StoreError(f"a rank model needs arrays of shape {cells}, has {shapes}")
        if self.weights.shape != (*cells, len(self.features)):
            raise StoreError(f"a rank model's weights have shape {self.weights.shape}")
        if self.open_set.shape != (*cells[1:], 1 + len(self.features)):
            raise StoreError(
                f"a rank model's open-set coefficients have shape {self.open_set.shape}"
            )
        if len(self.similarities) != len(self.features):
            raise StoreError("a rank model needs one similarity for each feature")
        grid = cells[1:], len(self.features)
        if self.evidence and (self.evidence.support.shape, self.evidence.slopes.shape[-1]) != grid:
            raise StoreError("a rank model's evidence is of another grid, or of other features")
        for axis in (self.lengths, self.template_lengths):
            if axis.ndim != 1 or axis.size == 0 or not (axis[1:] > axis[:-1]).all():
                raise StoreError("a rank model's lengths must increase")
            if not _SHORTEST <= axis[0] <= axis[-1] <= _LONGEST:
                raise StoreError(
                    "a rank model's lengths must lie between a millisecond and 30 years"
                )
        if cells[0] < 2 or not np.isfinite(self.alpha[0]).any():
            raise StoreError("a rank model needs at least one cell, and at least one resample")


class RankModels:
    """All rank models of a population, by feature set and session.

    One that comes from a store is read, and checked, when it is first asked for.

    Args:
        rank_models: any number of rank models; of two about the same, the later stands.
    """

    def __init__(self, rank_models: Iterable[RankModel | StoredRankModel] = ()) -> None:
        self._rank_models = {
            (frozenset(rank_model.features), rank_model.session): rank_model
            for rank_model in rank_models
        }

    def __iter__(self) -> Iterator[RankModel]:
        return map(self._read, list(self._rank_models))

    def __len__(self) -> int:
        return len(self._rank_models)

    def __getitem__(self, kind: tuple[tuple[str, ...], str]) -> RankModel:
        """Return the rank model of these features, in any order, and this session; or KeyError."""
        features, session = kind
        return self._read((frozenset(features), session))

    def _read(self, key: tuple[frozenset[str], str]) -> RankModel:
        rank_model = self._rank_models[key]
        if isinstance(rank_model, StoredRankModel):
            rank_model = self._rank_models[key] = rank_model.read()
        return rank_model

    @property
    def kinds(self) -> list[tuple[tuple[str, ...], str]]:
        """Features and session of each; none is read for it."""
        return [(model.features, model.session) for model in self._rank_models.values()]

    @property
    def learnt_from(self) -> frozenset[str]:
        """Names of everybody whose speech is in one of them; none is read for it."""
        return frozenset(name for model in self._rank_models.values() for name in model.learnt_from)

    def find(self, features: tuple[str, ...], session: str) -> RankModel | None:
        """Return the rank model of these features, in any order, for this session, or None."""
        exists = (frozenset(features), session) in self._rank_models
        return self[features, session] if exists else None

    def within(self, features: Collection[str]) -> RankModels:
        """Select models of no other features; none is read for it."""
        return RankModels(
            model for model in self._rank_models.values() if set(model.features) <= set(features)
        )

    def pack(self) -> tuple[list[dict[str, object]], dict[str, AnyArray]]:
        """Return header entries and arrays for a store."""
        header, arrays = [], {}
        for i, rank_model in enumerate(self):
            start = f"{RANK_MODEL}{i}/"
            plain: dict[str, object] = {
                f.name: getattr(rank_model, f.name)
                for f in fields(rank_model)
                if f.name not in (*_RANK_MODEL_ARRAYS, _EVIDENCE, _ROWS)
            }
            # a table is most of it and seldom asked for: read with its own rank model
            rows = json.dumps(rank_model.rows, ensure_ascii=False).encode()
            arrays[f"{start}{_ROWS}"] = np.frombuffer(rows, np.uint8)
            if rank_model.evidence is not None:
                plain[_EVIDENCE] = rank_model.evidence.cohort
                packed = rank_model.evidence.pack()
                arrays |= {f"{start}{_EVIDENCE}/{name}": value for name, value in packed.items()}
            header.append(plain)
            if rank_model.maxima is not None:
                plain["maxima"], more = pack_maxima(rank_model.maxima)
                arrays |= {f"{start}{_MAXIMA}{name}": value for name, value in more.items()}
            for name in _RANK_MODEL_ARRAYS:
                value = getattr(rank_model, name)
                # the resamples are spread, not precision: four bytes are plenty
                single = value.dtype.kind == "f" and name not in ("lengths", "template_lengths")
                arrays[f"{start}{name}"] = value.astype(np.float32) if single else value
        return header, arrays

    @classmethod
    def unpack(cls, header: Iterable[Mapping[str, Any]], arrays: Arrays, path: Path) -> RankModels:
        """Reverse ``pack``; each rank model is read from its arrays when it is asked for.

        Raises:
            StoreError: an entry of the header describes no rank model. Damaged arrays are noticed
                when they are read.
        """
        return cls(
            StoredRankModel.of(entry, arrays.below(f"{RANK_MODEL}{i}/"), path)
            for i, entry in enumerate(header)
        )


@dataclass(frozen=True, slots=True)
class StoredRankModel:
    """A rank model that is yet to be read from its store, and what its header says of it."""

    features: tuple[str, ...]
    session: str
    learnt_from: tuple[str, ...]
    entry: Mapping[str, Any]
    arrays: Arrays
    path: Path

    @classmethod
    def of(cls, entry: Mapping[str, Any], arrays: Arrays, path: Path) -> StoredRankModel:
        """Create one from a header entry; StoreError or KeyError if it describes no rank model."""
        features, session = tuple(entry["features"]), entry["session"]
        learnt_from = tuple(entry.get("learnt_from", ()))
        _check_kind(features, session, learnt_from)
        return cls(features, session, learnt_from, entry, arrays, path)

    def read(self) -> RankModel:
        """Read and check it; a StoreError if it is damaged or incomplete."""
        with refusing_incomplete(self.path):
            return self._read()

    def _read(self) -> RankModel:
        arrays, values = self.arrays, dict[str, AnyArray]()
        for name in _RANK_MODEL_ARRAYS:
            value = arrays[name]
            values[name] = value.astype(np.float64) if value.dtype.kind == "f" else value
        plain: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in self.entry.items()
        }
        plain[_ROWS] = tuple(json.loads(bytes(arrays[_ROWS])))
        if plain.get("maxima") is not None:
            plain["maxima"] = unpack_maxima(plain["maxima"], arrays.below(_MAXIMA))
        if plain.get(_EVIDENCE) is not None:
            grid = values["lengths"], values["template_lengths"]
            packed = arrays.below(f"{_EVIDENCE}/")
            plain[_EVIDENCE] = EvidenceModel.unpack(packed, *grid, plain[_EVIDENCE])
        rank_model = RankModel(**{**plain, **values})
        check_rank_model(rank_model)
        return rank_model
