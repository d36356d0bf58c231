"""A rank model: calibration of one set of features, its evidence and its maxima."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import StoreError
from monitor.files import Arrays
from monitor.kinds import is_mark, within
from monitor.maths.condition import NEW, UNLIKE
from monitor.maths.evidence import UNBOUNDED, ConditionEffect, ConditionEffects, neighbours
from monitor.population.store import refusing_incomplete
from monitor.safe_text import is_name, is_printable, spelled_all
from monitor.types import AnyArray, BoolArray, FloatArray, Record

# ---------------------------------------------------------------------------------------- checking
# A store may be malicious or damaged. A NaN would end a run in the middle, and a far too large
# number would show nothing disclosed.

SESSIONS = ("same", "cross")
ORIGINS = ("own", "shipped")
MOST_PEOPLE = 1e9
MOST_PARAMETER = 1e12
LEAST_PARAMETER = 1e-12


def _require(holds: object, message: str) -> None:
    if not holds:
        raise StoreError(message)


def _refuse_invalid(of: str, valid: Mapping[str, object]) -> None:
    """Refuse what has a part that is not valid, and name those parts."""
    if wrong := [name for name, is_valid in valid.items() if not is_valid]:
        raise StoreError(f"{', '.join(wrong)} of {of}: no calibration gives that")


def _are_names(names: object) -> bool:
    return isinstance(names, tuple) and all(map(is_name, names))


def check_rank_model(model: RankModel) -> None:
    """Refuse a rank model that no calibration gives."""
    _check_kind(model.features, model.session, model.learnt_from)
    binomial, reached = model.binomial, ~np.isnan(model.alpha)
    minimum, maximum = (
        np.where(binomial, 0.0, LEAST_PARAMETER),
        np.where(binomial, 1.0, MOST_PARAMETER),
    )
    fitted = ~np.isnan(model.open_set).any(axis=-1)

    def lie_within(values: FloatArray, low: FloatArray | float, high: FloatArray | float) -> bool:
        every = np.moveaxis(values.reshape(*reached.shape, -1), -1, 0)  # weights: of each feature
        return values.dtype.kind == "f" and bool(
            ((every >= low) & (every <= high))[:, reached].all()
        )

    counts = ((model.speakers, 1), (model.candidates, 2), (model.forgotten, 0))
    prior, marks, rows, open_set = model.prior_speakers, model.networks, model.rows, model.open_set
    axes = model.lengths, model.template_lengths
    valid = {
        "people": all(type(count) is int and count >= fewest for count, fewest in counts),
        "prior": _is_number(prior) and 0 <= prior <= MOST_PEOPLE,
        "networks": isinstance(marks, tuple) and all(map(is_mark, marks)),
        "features": len(marks) in (0, len(model.features)),
        "similarities": _are_names(model.similarities),
        "origin": model.origin in ORIGINS,
        "left_out": _are_names(model.left_out),
        "rows": isinstance(rows, tuple) and all(map(_is_row, rows)),
        "lengths": all(axis.dtype.kind in "iuf" and within(axis, 0.0, 1e9) for axis in axes),
        "binomial": binomial.dtype == np.bool_,
        "alpha": lie_within(model.alpha, minimum, maximum),
        "beta": lie_within(model.beta, minimum, maximum),
        "floor": lie_within(model.floor, 0.0, 1.0),
        "weights": lie_within(model.weights, 0.0, MOST_PARAMETER),
        "open_set": open_set.dtype.kind == "f"
        and fitted.any()
        and (abs(open_set[fitted]) <= MOST_PARAMETER).all(),
    }
    _refuse_invalid(f"the rank model of {'+'.join(model.features)}", valid)


def _check_kind(features: tuple[Any, ...], session: object, learnt_from: tuple[Any, ...]) -> None:
    """Refuse features, a session or names of speakers that no rank model has."""
    about = "+".join(map(str, features))
    if session not in SESSIONS or not features or not _are_names(features):
        raise StoreError(f"a rank model is of {about!a:.40} in session {session!a:.20}")
    _refuse_invalid(f"the rank model of {about}", {"learnt_from": _are_names(learnt_from)})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_row(row: object) -> bool:
    """Return whether it is a cell of the calibration's table: figures, words, lists of them."""
    return (
        isinstance(row, dict)
        and all(map(_is_number, (row.get("T"), row.get("D"))))
        and all(
            row.get(key) is None or _is_number(row[key])
            for key in ("open_set_area", "evidence_bits", "usual_low", "usual_high")
        )
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
        elif item is not None and not (isinstance(item, str) and is_printable(item)):
            return False
    return True


# ------------------------------------------------------------------------------------------ maxima
# Streams of calibration speakers other than the watched one. Each is watched as another person, and
# the speaker's own template is removed (docs/method.md section 11).

HORIZONS = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0)  # lengths of streams, audio seconds
MOST_BITS = 1e6
MOST_SECONDS = 1e9


@dataclass(frozen=True, slots=True)
class FieldMaxima:
    """Maxima of one field over streams of one length."""

    values: FloatArray  # shape (n,), one a speaker
    horizon_seconds: float
    repeated: int  # of the n, the number with less audio, which was repeated


@dataclass(frozen=True, slots=True)
class Maxima:
    """Largest values of some fields over streams of S speakers, one stream each.

    A stream with half a horizon of audio or more is repeated from its beginning up to the horizon.
    ``seconds`` shows which these are.
    """

    fields: tuple[str, ...]  # fields of a reading with a watched speaker, such as evidence_bits
    horizons: FloatArray  # audio seconds, (nH,), increasing
    values: AnyArray  # (fields, S, nH), half precision, rounded up; NaN where unknown
    seconds: FloatArray  # audio seconds of each stream, (S,)
    speakers: tuple[str, ...]
    template_seconds: float  # D, to which the templates were cut

    def horizon(self, seconds: float) -> float | None:
        """Return the shortest length in the grid that is no shorter; None beyond it."""
        longer = self.horizons[self.horizons >= seconds - 1e-9]
        return float(longer[0]) if longer.size else None

    def select_others(
        self, field: str, seconds: float, *, needed: int = 1, watch: str | None = None
    ) -> FieldMaxima:
        """Select other people's maxima in streams of a length, or of the next longer one.

        If fewer than ``needed`` speakers had that much audio, those with half of it count, too. The
        speaker ``watch`` is left out.
        """
        column = int(np.searchsorted(self.horizons, seconds - 1e-9))
        values = self.values[self.fields.index(field), :, column].astype(np.float64)
        is_other = ~np.isnan(values) & np.array([name != watch for name in self.speakers], np.bool_)
        is_whole = is_other & (self.seconds >= self.horizons[column])
        selection = is_whole if is_whole.sum() >= needed else is_other
        return FieldMaxima(
            values[selection],
            float(self.horizons[column]),
            int(selection.sum() - (selection & is_whole).sum()),
        )

    def without(self, name: str) -> Maxima | None:
        """Remove a speaker; None if no speakers remain."""
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
    names = ("fields", "speakers", "template_seconds")
    arrays = ("horizons", "values", "seconds")
    return ({name: getattr(maxima, name) for name in names},
            {name: getattr(maxima, name) for name in arrays})  # fmt: skip


def unpack_maxima(plain: Record, arrays: Mapping[str, AnyArray]) -> Maxima:
    """Reverse ``pack_maxima``; StoreError if no streams have them."""
    maxima = Maxima(
        tuple(plain["fields"]),
        arrays["horizons"],
        arrays["values"],
        arrays["seconds"],
        spelled_all(plain["speakers"]),
        plain["template_seconds"],
    )
    horizons, values, seconds = maxima.horizons, maxima.values, maxima.seconds
    shape = (len(maxima.fields), len(maxima.speakers), horizons.size)
    bits = values[~np.isnan(values)].astype(float)
    d = maxima.template_seconds
    valid = {
        "fields": _are_names(maxima.fields) and len(set(maxima.fields)) == shape[0] > 0,
        "speakers": _are_names(maxima.speakers) and len(set(maxima.speakers)) == shape[1] > 0,
        "shape": (values.shape, seconds.shape, horizons.shape) == (shape, shape[1:2], shape[2:]),
        "lengths": all(((x > 0) & (x < MOST_SECONDS)).all() for x in (horizons, seconds)),
        "template_seconds": _is_number(d) and 0 < d < MOST_SECONDS,
        "horizons": horizons.size and (np.diff(horizons) > 0).all(),
        "numbers": all(array.dtype.kind == "f" for array in (values, horizons, seconds)),
        "bits": (np.abs(bits) <= MOST_BITS).all(),
        "growth": not (np.diff(values.astype(float), axis=2) < 0).any(),
    }
    _refuse_invalid("the maxima of a rank model", valid)
    return maxima


# ---------------------------------------------------------------------------------------- evidence
# Source: docs/method.md section 10.

_MOST = 1e4  # nats of a coefficient, or bits of support, that no calibration reaches


@dataclass(frozen=True, slots=True)
class EvidenceModel:
    """Model ``log LR_j = a + sum_f b_f z_fj`` on a grid of T and D (docs/method.md section 10).

    Row 0 of ``intercept`` and ``slopes`` is the model; rows 1..B are its resamples. A cell that the
    corpus could not reach is NaN.
    """

    lengths: FloatArray  # T, speech seconds, (nT,), increasing
    template_lengths: FloatArray  # D, likewise, (nD,)
    intercept: FloatArray  # a, nats, (1 + B, nT, nD)
    slopes: FloatArray  # b >= 0, nats, (1 + B, nT, nD, F)
    support: FloatArray  # the most bits that the calibration's people can support, (nT, nD)
    area: FloatArray  # under the ROC curve of enrolled and impostors left out of the fit, (nT, nD)
    cohort: tuple[str, ...]  # digest of each feature of the cohort that scores were set against
    conditions: ConditionEffects | None = None  # what telephones, rooms and noise do to it

    def __post_init__(self) -> None:
        cells = self.lengths.size, self.template_lengths.size
        replicates = self.intercept.shape[0] if self.intercept.ndim else 0
        shapes = self.intercept.shape, self.slopes.shape[:-1], self.support.shape, self.area.shape
        _require(
            shapes == ((replicates, *cells), (replicates, *cells), cells, cells),
            "the parts of an evidence rank model do not have the shapes of one grid",
        )
        reached = np.isfinite(self.support)
        intercept, slopes = self.intercept[:, reached], self.slopes[:, reached]
        support, area = self.support[reached], self.area[reached]
        marks, features = self.cohort, self.slopes.shape[-1]
        valid = {
            "cells": reached.any(),
            "replicates": replicates >= 2,
            "intercept": (np.abs(intercept) <= _MOST).all(),
            "slopes": ((slopes >= 0) & (slopes <= _MOST)).all(),
            "support": ((support >= 0) & (support <= _MOST)).all(),
            "area": ((area >= 0) & (area <= 1)).all(),
            "cohort": isinstance(marks, tuple) and len(marks) == features and all(marks),
            "digests": all(map(is_mark, marks)),
            "conditions": self.conditions is None or _have_effect(self.conditions, features),
        }
        _refuse_invalid("an evidence rank model", valid)

    @property
    def most_bits(self) -> float:
        """The most bits that the calibration's people can support at any lengths."""
        return float(self.support[np.isfinite(self.support)].max())

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
        """Reverse ``pack`` on the rank model's grid; KeyError if a part is missing."""

        def part(*names: str) -> FloatArray:
            parts = [arrays[name] for name in names]
            is_table = all(array.dtype.kind == "f" for array in parts)
            _require(is_table, "an evidence rank model is not a table of numbers")
            first, *rest = (array.astype(np.float64) for array in parts)
            return np.concatenate([first[None], *rest]) if rest else first

        effects = None
        if "conditions" in arrays:
            table = part("conditions")
            is_table = table.ndim == 3 and table.shape[1] >= 2
            _require(is_table, "an evidence rank model has invalid effects of conditions")
            if table.shape[2] == UNLIKE - 1:  # a store from before new streams had an effect
                table = np.pad(table, ((0, 0), (0, 0), (0, 1)))
                table[:, 1, NEW] = UNBOUNDED
            rows = tuple(ConditionEffect(x[0], x[2:], x[1]) for x in table)
            effects = ConditionEffects(part("condition_lengths"), rows)
        intercept, slopes = part("intercept", "intercepts"), part("slopes", "slope_draws")
        support, area = part("support"), part("area")
        return cls(lengths, template_lengths, intercept, slopes, support, area, cohort, effects)

    def holding(self, rows: Iterable[Record]) -> EvidenceModel:
        """Keep a shorter length's a and b if those of a longer one show less on average.

        Fewer people speak for long, and a fit to fewer people claims less.

        Args:
            rows: cells of the calibration table, with the mean evidence of people left out.
        """
        means = np.full(self.support.shape, np.nan)
        for row in rows:
            if row.get("evidence_bits") is not None:
                cell = np.isclose(self.lengths, row["T"])[:, None]
                cell = cell & np.isclose(self.template_lengths, row["D"])
                means[cell] = row["evidence_bits"]
        best = np.fmax.accumulate(means, axis=0)
        here = np.broadcast_to(np.arange(len(means))[:, None], means.shape)
        last = np.maximum.accumulate(np.where(means >= best, here, 0), axis=0)
        chosen = np.where(means < best, last, here)[None]
        return replace(
            self,
            intercept=np.take_along_axis(self.intercept, chosen, axis=1),
            slopes=np.take_along_axis(self.slopes, chosen[..., None], axis=1),
        )

    def at_template(self, seconds: float) -> LengthEvidence:
        """Interpolate the model for templates of D speech seconds.

        Between two template lengths it is interpolated in log D. Outside them, or if only one was
        reached, the nearest applies. Longer speech and templates support at least as much as
        shorter ones.
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
        # longer speech has fewer calibration speakers, but does not disclose less
        support = np.maximum.accumulate(support)
        effect = None if self.conditions is None else self.conditions.at_template(seconds)
        table = np.concatenate([intercept[..., None], slopes], axis=-1)
        bounds = np.column_stack([support, area])
        return LengthEvidence(self.lengths[rows], table, bounds, effect)


def _have_effect(effects: ConditionEffects, features: int) -> bool:
    """Return whether these are valid effects of conditions on this number of features."""
    lengths, shapes = effects.template_lengths, ((UNLIKE,), (UNLIKE,), (features, UNLIKE))
    is_valid = lengths.shape == (len(effects.effects),) and lengths.size > 0
    is_valid = is_valid and bool((lengths > 0).all() and (np.diff(lengths) > 0).all())
    for effect in effects.effects:
        parts = effect.shift, effect.support, effect.slope
        is_valid = is_valid and tuple(array.shape for array in parts) == shapes
        is_valid = is_valid and all(bool((np.abs(array) <= _MOST).all()) for array in parts)
        is_valid = is_valid and not (effect.support < 0).any()
    return is_valid


@dataclass(frozen=True, slots=True)
class EvidencePoint:
    """Evidence model at R test lengths; row 0 the model, rows 1..B its resamples."""

    intercept: FloatArray  # a, nats, (R, 1 + B)
    slopes: FloatArray  # b, nats, (R, 1 + B, F)
    support: FloatArray  # bits, (R,)
    area: FloatArray  # (R,)


class LengthEvidence:
    """Evidence model at one template length, continuous in the test length T.

    Inside the grid, a and b are interpolated in log T. This keeps the bound: if other people's mean
    ratio is at most 1 at both ends, it is at most 1 in between (Hoelder's inequality). Below the
    grid the ratio fades to 1 at T = 0, where it carries no evidence (Jensen's inequality). Beyond
    the grid the last rank model applies.

    Args:
        lengths: T of the grid, shape (nT,).
        table: intercepts and slopes, shape (nT, 1 + B, 1 + F).
        bounds: non-decreasing support, and area, shape (nT, 2).
        conditions: effects of conditions at every test length.
    """

    def __init__(
        self,
        lengths: FloatArray,
        table: FloatArray,
        bounds: FloatArray,
        conditions: ConditionEffect | None,
    ) -> None:
        self.lengths, self.conditions = lengths, conditions
        self._table, self._bounds, self._logs = table, bounds, np.log(lengths)
        self._gaps = np.append(np.diff(self._logs), 1.0)
        self.support = bounds[:, 0]

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
RANK_MODEL = "rank_model/"  # what the names of their arrays in a store begin with
_MAXIMA, _EVIDENCE, _ROWS = "maxima/", "evidence", "rows"
_SHORTEST, _LONGEST = 1e-3, 1e9  # seconds


@dataclass(frozen=True, slots=True)
class RankModel:
    """Parameters on a grid of T and D, with their resamples (docs/method.md sections 3 to 5).

    Row 0 of every parameter array is the rank model; rows 1..B are its resamples. A cell the corpus
    could not reach is NaN. Parameters are stored, never gamma: they are evaluated at the live N.
    """

    features: tuple[str, ...]  # in order; one, or several for their joint
    session: str  # "same" or "cross": where template and test came from
    similarities: tuple[str, ...]  # name of each feature's
    lengths: FloatArray  # T, speech seconds, (nT,), increasing
    template_lengths: FloatArray  # D, likewise, (nD,)
    alpha: FloatArray  # (1 + B, nT, nD); p of the binomial where `binomial`
    beta: FloatArray  # (1 + B, nT, nD); 1 - p where `binomial`
    binomial: BoolArray  # (1 + B, nT, nD), the degenerate (under-dispersed) cells
    weights: FloatArray  # lambda, (1 + B, nT, nD, F)
    floor: FloatArray  # e, (1 + B, nT, nD)
    open_set: FloatArray  # (nT, nD, 1 + F): log odds of being enrolled by absolute scores
    rows: tuple[Record, ...]  # one a cell, what the calibration table shows
    speakers: int  # mated speakers behind the rank model
    candidates: int  # N of the calibration
    prior_speakers: float = 0.0  # that the prior, another rank model, counted as
    origin: str = "own"  # "shipped" if it is the shipped readers', since none could be fitted
    left_out: tuple[str, ...] = ()  # candidates in a network's training data
    networks: tuple[str | None, ...] = ()  # sha256 of each feature's; or empty
    learnt_from: tuple[str, ...] = ()  # all speakers in the calibration; empty if unknown
    forgotten: int = 0  # number of them forgotten since
    maxima: Maxima | None = None  # how high other people's streams got under it
    evidence: EvidenceModel | None = None  # likelihood ratios on the same grid, held by the rows

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
        count = len(self.features)
        expected = {
            **dict.fromkeys(("alpha", "beta", "binomial", "floor"), cells),
            "weights": (*cells, count),
            "open_set": (*cells[1:], 1 + count),
            "similarities": (count,),
        }
        for name, shape in expected.items():
            actual = np.shape(getattr(self, name))
            _require(actual == shape, f"a rank model's {name} has shape {actual}, not {shape}")
        grid = cells[1:], count
        if self.evidence and (self.evidence.support.shape, self.evidence.slopes.shape[-1]) != grid:
            raise StoreError("a rank model's evidence has another grid or other features")
        if self.evidence is not None:
            object.__setattr__(self, "evidence", self.evidence.holding(self.rows))
        for axis in (self.lengths, self.template_lengths):
            is_axis = axis.ndim == 1 and axis.size > 0 and (axis[1:] > axis[:-1]).all()
            _require(is_axis, "a rank model's lengths must increase")
            _require(
                _SHORTEST <= axis[0] <= axis[-1] <= _LONGEST,
                "a rank model's lengths must lie between a millisecond and 30 years",
            )
        has_cell = cells[0] >= 2 and np.isfinite(self.alpha[0]).any()
        _require(has_cell, "a rank model needs at least one cell, and at least one resample")


class RankModels:
    """All rank models of a population by feature set and session; later ones replace earlier ones.

    A model from a store is read and checked on first use.
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
        """Names of all speakers in their calibration, without reading a model."""
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
    def unpack(cls, header: Iterable[Record], arrays: Arrays, path: Path) -> RankModels:
        """Reverse ``pack``; StoreError of a wrong header, and of damage when it is read."""
        return cls(
            StoredRankModel.of(entry, arrays.below(f"{RANK_MODEL}{i}/"), path)
            for i, entry in enumerate(header)
        )


@dataclass(frozen=True, slots=True)
class StoredRankModel:
    """A rank model not yet read from its store, with its header's entry."""

    features: tuple[str, ...]
    session: str
    learnt_from: tuple[str, ...]
    entry: Record
    arrays: Arrays
    path: Path

    @classmethod
    def of(cls, entry: Record, arrays: Arrays, path: Path) -> StoredRankModel:
        """Create one from a header entry; StoreError or KeyError if it describes no rank model."""
        features, session = tuple(entry["features"]), entry["session"]
        learnt_from = spelled_all(entry.get("learnt_from", ()))
        _check_kind(features, session, learnt_from)
        return cls(features, session, learnt_from, entry, arrays, path)

    def read(self) -> RankModel:
        """Read and check it; a StoreError if it is damaged or incomplete."""
        with refusing_incomplete(self.path):
            rank_model = self._read()
            check_rank_model(rank_model)
        return rank_model

    def _read(self) -> RankModel:
        arrays, values = self.arrays, dict[str, AnyArray]()
        for name in _RANK_MODEL_ARRAYS:
            value = arrays[name]
            values[name] = value.astype(np.float64) if value.dtype.kind == "f" else value
        plain: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in self.entry.items()
        }
        for key in {"left_out", "learnt_from"} & plain.keys():
            plain[key] = spelled_all(plain[key])
        plain[_ROWS] = tuple(json.loads(bytes(arrays[_ROWS])))
        if plain.get("maxima") is not None:
            plain["maxima"] = unpack_maxima(plain["maxima"], arrays.below(_MAXIMA))
        if plain.get(_EVIDENCE) is not None:
            grid = values["lengths"], values["template_lengths"]
            packed = arrays.below(f"{_EVIDENCE}/")
            plain[_EVIDENCE] = EvidenceModel.unpack(packed, *grid, plain[_EVIDENCE])
        return RankModel(**{**plain, **values})
