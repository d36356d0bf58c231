"""A rank law: what calibration learnt about one set of features.

Source: docs/method.md sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from monitor.errors import StoreError
from monitor.population.checking import check_law
from monitor.population.evidence import EvidenceLaw
from monitor.population.maxima import Maxima, pack_maxima, unpack_maxima
from monitor.types import AnyArray, BoolArray, FloatArray

__all__ = ["Laws", "RankLaw"]

_ARRAYS = (
    *("lengths", "template_lengths", "alpha", "beta", "binomial", "weights", "floor"),
    "open_set",
)
_MAXIMA = "law/{}/maxima/"
_EVIDENCE = "evidence"
_SHORTEST, _LONGEST = 1e-3, 1e9
"""Seconds."""


@dataclass(frozen=True, slots=True)
class RankLaw:
    """Parameters on a grid of test lengths T and template lengths D, with their resamples.

    Row 0 of every parameter array is the law; rows 1..B are its resamples. A cell the corpus could
    not reach is NaN. Parameters are stored, never gamma: they are evaluated at the live N.

    Attributes:
        features: names of the features it is about, in order; one name, or several for their joint.
        session: ``"same"`` or ``"cross"``: where template and test came from.
        similarities: name of each feature's similarity.
        lengths: T, speech seconds, shape (nT,), increasing.
        template_lengths: D, speech seconds, shape (nD,), increasing.
        alpha: shape (1 + B, nT, nD); p of the binomial where ``binomial``.
        beta: shape (1 + B, nT, nD); 1 - p where ``binomial``.
        binomial: shape (1 + B, nT, nD), the degenerate (under-dispersed) cells.
        weights: lambda, shape (1 + B, nT, nD, F).
        floor: e, shape (1 + B, nT, nD).
        open_set: shape (nT, nD, 1 + F): log odds of being enrolled, at even odds before, are the
            first plus the others times the favourite's absolute scores.
        rows: one dict a cell, what the calibration table shows.
        speakers: mated speakers behind the law.
        candidates: N of the calibration.
        prior_speakers: how many speakers the prior, another law, counted as in the fit.
        origin: ``"own"``; or ``"shipped"`` where it is the shipped readers' as it stands, since
            none could be learnt.
        left_out: names of candidates whose tests taught it nothing, since one of its features'
            networks was trained on their speech.
        networks: sha256 of the network that made each feature, None where none did; empty where
            none of them was.
        learnt_from: names of everybody whose speech is in it, as test or as candidate; empty where
            it does not say, as the shipped one.
        forgotten: how many of them have been forgotten since (`monitor.population.forgetting`).
        maxima: how high other people's streams got under this law; None where nobody looked.
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
    evidence: EvidenceLaw | None = None

    def network(self, feature: str) -> str | None:
        """Which network made one of its features."""
        marks = self.networks or (None,) * len(self.features)
        return dict(zip(self.features, marks, strict=True)).get(feature)

    @property
    def prior_share(self) -> float:
        """What the prior counts in this law: 0 (nothing) to 1 (it is the prior)."""
        if self.origin == "shipped":
            return 1.0
        return self.prior_speakers / (self.speakers + self.prior_speakers)

    def __post_init__(self) -> None:
        cells = (self.alpha.shape[0], self.lengths.size, self.template_lengths.size)
        shapes = {
            name: getattr(self, name).shape for name in ("alpha", "beta", "binomial", "floor")
        }
        if any(shape != cells for shape in shapes.values()):
            raise StoreError(f"a law needs arrays of shape {cells}, has {shapes}")
        if self.weights.shape != (*cells, len(self.features)):
            raise StoreError(f"a law's weights have shape {self.weights.shape}")
        if self.open_set.shape != (*cells[1:], 1 + len(self.features)):
            raise StoreError(f"a law's open-set coefficients have shape {self.open_set.shape}")
        if len(self.similarities) != len(self.features):
            raise StoreError("a law needs one similarity for each feature")
        grid = cells[1:], len(self.features)
        if self.evidence and (self.evidence.support.shape, self.evidence.slopes.shape[-1]) != grid:
            raise StoreError("a law's evidence is of another grid, or of other features")
        for axis in (self.lengths, self.template_lengths):
            if axis.ndim != 1 or axis.size == 0 or not (axis[1:] > axis[:-1]).all():
                raise StoreError("a law's lengths must increase")
            if not _SHORTEST <= axis[0] <= axis[-1] <= _LONGEST:
                raise StoreError("a law's lengths must lie between a millisecond and 30 years")
        if cells[0] < 2 or not np.isfinite(self.alpha[0]).any():
            raise StoreError("a law needs at least one cell, and at least one resample")


class Laws:
    """All laws of a population, by feature set and session.

    Args:
        laws: any number of laws; of two about the same, the later stands.
    """

    def __init__(self, laws: Iterable[RankLaw] = ()) -> None:
        self._laws = {(frozenset(law.features), law.session): law for law in laws}

    def __iter__(self) -> Iterator[RankLaw]:
        return iter(self._laws.values())

    def __len__(self) -> int:
        return len(self._laws)

    def find(self, features: tuple[str, ...], session: str) -> RankLaw | None:
        """The law of these features, in any order, for this kind of session, or None."""
        return self._laws.get((frozenset(features), session))

    def pack(self) -> tuple[list[dict[str, Any]], dict[str, AnyArray]]:
        """Header entries and arrays for a store."""
        header: list[dict[str, Any]] = []
        arrays: dict[str, AnyArray] = {}
        for i, law in enumerate(self):
            plain: dict[str, Any] = {
                f.name: getattr(law, f.name)
                for f in fields(law)
                if f.name not in (*_ARRAYS, _EVIDENCE)
            }
            if law.evidence is not None:
                plain[_EVIDENCE] = law.evidence.cohort
                arrays |= law.evidence.pack(f"law/{i}/{_EVIDENCE}/")
            header.append(plain)
            if law.maxima is not None:
                plain["maxima"], more = pack_maxima(law.maxima)
                arrays |= {f"{_MAXIMA.format(i)}{name}": value for name, value in more.items()}
            for name in _ARRAYS:
                value = getattr(law, name)
                # the resamples are spread, not precision: four bytes are plenty
                single = value.dtype.kind == "f" and name not in ("lengths", "template_lengths")
                arrays[f"law/{i}/{name}"] = value.astype(np.float32) if single else value
        return header, arrays

    @classmethod
    def unpack(cls, header: Iterable[Mapping[str, Any]], arrays: Mapping[str, AnyArray]) -> Laws:
        """The reverse of ``pack``."""
        laws = []
        for i, entry in enumerate(header):
            values: dict[str, Any] = {name: arrays[f"law/{i}/{name}"] for name in _ARRAYS}
            values = {
                n: v.astype(np.float64) if v.dtype.kind == "f" else v for n, v in values.items()
            }
            plain: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value
                for key, value in entry.items()
            }
            if plain.get("maxima") is not None:
                begins = _MAXIMA.format(i)
                mine = {n.removeprefix(begins): arrays[n] for n in arrays if n.startswith(begins)}
                plain["maxima"] = unpack_maxima(plain["maxima"], mine)
            if plain.get(_EVIDENCE) is not None:
                start, cohort = f"law/{i}/{_EVIDENCE}/", plain.pop(_EVIDENCE)
                grid = values["lengths"], values["template_lengths"]
                plain[_EVIDENCE] = EvidenceLaw.unpack(start, arrays, *grid, cohort)
            laws.append(RankLaw(**plain, **values))
            check_law(laws[-1])
        return cls(laws)
