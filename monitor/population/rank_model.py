"""`RankModel` is the calibration of one set of features, with its evidence and maxima."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import StoreError
from monitor.kinds import is_mark, within
from monitor.npz import Arrays
from monitor.population.evidence_model import EvidenceModel
from monitor.population.store import (
    are_names,
    is_number,
    refuse_invalid,
    refusing_incomplete,
    require,
)
from monitor.safe_text import is_name, is_printable, spelled_all
from monitor.types import AnyArray, BoolArray, FloatArray, Record

SESSIONS = ("same", "cross")
ORIGINS = ("own", "shipped")
MOST_PEOPLE = 1e9
MOST_PARAMETER = 1e12
LEAST_PARAMETER = 1e-12
_is_key = lru_cache(maxsize=1 << 12)(is_name)  # tables have the same few keys in every row
_RANK_MODEL_ARRAYS = (
    *("lengths", "template_lengths", "alpha", "beta", "binomial", "weights", "floor"),
    "open_set",
)
RANK_MODEL = "rank_model/"  # prefix of their arrays in a store
_MAXIMA, _EVIDENCE, _ROWS = "maxima/", "evidence", "rows"
_SHORTEST, _LONGEST = 1e-3, 1e9  # seconds
HORIZONS = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0)  # lengths of streams, audio seconds
MOST_BITS = 1e6
MOST_SECONDS = 1e9


def check_rank_model(model: RankModel) -> None:
    """Raise StoreError for an impossible rank model."""
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
        "prior": is_number(prior) and 0 <= prior <= MOST_PEOPLE,
        "networks": isinstance(marks, tuple) and all(map(is_mark, marks)),
        "features": len(marks) in (0, len(model.features)),
        "similarities": are_names(model.similarities),
        "origin": model.origin in ORIGINS,
        "left_out": are_names(model.left_out),
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
    refuse_invalid(f"the rank model of {'+'.join(model.features)}", valid)


def _check_kind(features: tuple[Any, ...], session: object, learnt_from: tuple[Any, ...]) -> None:
    """Refuse features, a session or names of speakers that no rank model has."""
    about = "+".join(map(str, features))
    if session not in SESSIONS or not features or not are_names(features):
        raise StoreError(f"a rank model is of {about!a:.40} in session {session!a:.20}")
    refuse_invalid(f"the rank model of {about}", {"learnt_from": are_names(learnt_from)})


def _is_row(row: object) -> bool:
    """Return whether it is a cell of the calibration's table: figures, words, lists of them."""
    return (
        isinstance(row, dict)
        and all(map(is_number, (row.get("T"), row.get("D"))))
        and all(
            row.get(key) is None or is_number(row[key])
            for key in ("open_set_area", "evidence_bits", "usual_low", "usual_high")
        )
        and _is_plain(row)
    )


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


# Source: docs/method.md sections 3 to 5.


@dataclass(frozen=True, slots=True)
class RankModel:
    """Calibrated parameters for each stream length T and template length D.

    See docs/method.md sections 3 to 5. Row 0 of every parameter array is the rank model, and rows
    1..B are its resamples. Cells with too little speech are NaN. The pmf gamma is not stored, since
    it depends on the number N of enrolled people.
    """

    features: tuple[str, ...]  # in order; one, or several for a joint model
    session: str  # "same" or "cross", of template and test
    similarities: tuple[str, ...]  # name of each feature's similarity
    lengths: FloatArray  # T, speech seconds, (nT,), increasing
    template_lengths: FloatArray  # D, likewise, (nD,)
    alpha: FloatArray  # (1 + B, nT, nD); p of the binomial where `binomial`
    beta: FloatArray  # (1 + B, nT, nD); 1 - p where `binomial`
    binomial: BoolArray  # (1 + B, nT, nD), the degenerate (under-dispersed) cells
    weights: FloatArray  # lambda, (1 + B, nT, nD, F)
    floor: FloatArray  # e, (1 + B, nT, nD)
    open_set: FloatArray  # (nT, nD, 1 + F): log odds of being enrolled by absolute scores
    rows: tuple[Record, ...]  # one per cell, as in the calibration table
    speakers: int  # mated speakers behind the rank model
    candidates: int  # N of the calibration
    prior_speakers: float = 0.0  # number that the prior, another rank model, counts as
    origin: str = "own"  # "shipped" if it is the shipped readers', since none could be fitted
    left_out: tuple[str, ...] = ()  # candidates in a network's training data
    networks: tuple[str | None, ...] = ()  # sha256 of each feature's network; or empty
    learnt_from: tuple[str, ...] = ()  # all speakers in the calibration; empty if unknown
    forgotten: int = 0  # number of them forgotten since
    maxima: Maxima | None = None  # maxima of other people's streams
    evidence: EvidenceModel | None = None  # likelihood ratios on the same grid

    def network(self, feature: str) -> str | None:
        """Return the sha256 of a feature's network, or None."""
        marks = self.networks or (None,) * len(self.features)
        return dict(zip(self.features, marks, strict=True)).get(feature)

    @property
    def prior_share(self) -> float:
        """Weight of the prior in this rank model, from 0 (none) to 1 (only the prior)."""
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
            require(actual == shape, f"a rank model's {name} has shape {actual}, not {shape}")
        grid = cells[1:], count
        if self.evidence and (self.evidence.support.shape, self.evidence.slopes.shape[-1]) != grid:
            raise StoreError("a rank model's evidence has another grid or other features")
        if self.evidence is not None:
            object.__setattr__(self, "evidence", self.evidence.holding(self.rows))
        for axis in (self.lengths, self.template_lengths):
            is_axis = axis.ndim == 1 and axis.size > 0 and (axis[1:] > axis[:-1]).all()
            require(is_axis, "a rank model's lengths must increase")
            require(
                _SHORTEST <= axis[0] <= axis[-1] <= _LONGEST,
                "a rank model's lengths must lie between a millisecond and 30 years",
            )
        has_cell = cells[0] >= 2 and np.isfinite(self.alpha[0]).any()
        require(has_cell, "a rank model needs at least one cell, and at least one resample")


class RankModels:
    """Rank models of a population by feature set and session. Later models replace earlier ones.

    A stored model is read and checked on first use.
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
        """Features and session of each model, without reading the models."""
        return [(model.features, model.session) for model in self._rank_models.values()]

    @property
    def training_speakers(self) -> frozenset[str]:
        """Names of all calibration speakers, without reading the models."""
        return frozenset(name for model in self._rank_models.values() for name in model.learnt_from)

    def find(self, features: tuple[str, ...], session: str) -> RankModel | None:
        """Return the rank model of these features, in any order, and this session, or None."""
        exists = (frozenset(features), session) in self._rank_models
        return self[features, session] if exists else None

    def within(self, features: Collection[str]) -> RankModels:
        """Select models that use only these features, without reading the models."""
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
            # the table is large and rarely needed, so it is read with its rank model
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
                # resamples only give a spread, so four bytes are enough
                single = value.dtype.kind == "f" and name not in ("lengths", "template_lengths")
                arrays[f"{start}{name}"] = value.astype(np.float32) if single else value
        return header, arrays

    @classmethod
    def unpack(cls, header: Iterable[Record], arrays: Arrays, path: Path) -> RankModels:
        """Reverse ``pack``; StoreError for an invalid header, and for damage on reading."""
        return cls(
            StoredRankModel.from_entry(entry, arrays.with_prefix(f"{RANK_MODEL}{i}/"), path)
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
    def from_entry(cls, entry: Record, arrays: Arrays, path: Path) -> StoredRankModel:
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
            plain["maxima"] = unpack_maxima(plain["maxima"], arrays.with_prefix(_MAXIMA))
        if plain.get(_EVIDENCE) is not None:
            grid = values["lengths"], values["template_lengths"]
            packed = arrays.with_prefix(f"{_EVIDENCE}/")
            plain[_EVIDENCE] = EvidenceModel.unpack(packed, *grid, plain[_EVIDENCE])
        return RankModel(**{**plain, **values})


@dataclass(frozen=True, slots=True)
class FieldMaxima:
    """Maxima of one field over streams of one length."""

    values: FloatArray  # shape (n,), one per speaker
    horizon_seconds: float
    repeated: int  # of the n, the number with less audio, which was repeated


@dataclass(frozen=True, slots=True)
class Maxima:
    """Largest values of some fields over streams of S speakers, one stream each.

    The streams are of calibration speakers other than the watched one. Each is watched as another
    person, and the speaker's own template is removed (docs/method.md section 11).

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
    """Reverse ``pack_maxima``; StoreError if no streams can have these maxima."""
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
        "fields": are_names(maxima.fields) and len(set(maxima.fields)) == shape[0] > 0,
        "speakers": are_names(maxima.speakers) and len(set(maxima.speakers)) == shape[1] > 0,
        "shape": (values.shape, seconds.shape, horizons.shape) == (shape, shape[1:2], shape[2:]),
        "lengths": all(((x > 0) & (x < MOST_SECONDS)).all() for x in (horizons, seconds)),
        "template_seconds": is_number(d) and 0 < d < MOST_SECONDS,
        "horizons": horizons.size and (np.diff(horizons) > 0).all(),
        "numbers": all(array.dtype.kind == "f" for array in (values, horizons, seconds)),
        "bits": (np.abs(bits) <= MOST_BITS).all(),
        "growth": not (np.diff(values.astype(float), axis=2) < 0).any(),
    }
    refuse_invalid("the maxima of a rank model", valid)
    return maxima
