"""`Cohort` contains background speakers, who are not enrolled. They normalise scores."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from monitor.arrays import refuse_masked
from monitor.errors import StoreError
from monitor.kinds import KINDS, FeatureSpec, is_mark
from monitor.maths.scores import Similarity
from monitor.npz import MAPPED
from monitor.population.store import read_store
from monitor.safe_text import is_name, printable, spelled_all
from monitor.types import AnyArray, FloatArray


@dataclass(frozen=True, slots=True)
class FeatureTemplates:
    """The templates of one feature, in slices of 5 speech seconds."""

    spec: FeatureSpec
    slices: AnyArray  # shape (S, M): the sketch of each slice, speaker after speaker


_MOST_SIZE = 1 << 20


def spec_from(name: str, header: Mapping[str, object]) -> FeatureSpec:
    """Read a feature's spec from the header of a store, as `FeatureSpec.plain` makes it."""
    kind_name, size, seconds = (header[key] for key in ("kind", "size", "frame_seconds"))
    kind = KINDS.get(kind_name) if isinstance(kind_name, str) else None
    if not is_name(name) or kind is None or not kind.enrolled:
        raise StoreError(f"templates of {name!a:.40} are of an unknown kind")
    if type(size) is not int or not 0 < size <= _MOST_SIZE:
        raise StoreError(f"templates of {name} have size {size!a:.40}")
    if not isinstance(seconds, int | float) or not 0 < seconds <= 3600:
        raise StoreError(f"a frame of {name} lasts {seconds!a:.40} s according to the header")
    network = header.get("network")
    if not (is_mark(network) and (network is None or isinstance(network, str))):
        raise StoreError(f"the network of {name} is not a sha256")
    spec = FeatureSpec(name, kind, size, seconds, network=network)
    if spec.plain() != dict(header):
        raise StoreError(f"templates of {name} have unknown keys in their description")
    return spec


def check_templates(templates: FeatureTemplates) -> None:
    """Raise StoreError for impossible templates."""
    spec = templates.spec
    refuse_masked(f"templates of {spec.name}", templates.slices, error=StoreError)
    if wrong := spec.kind.wrong_slices(templates.slices):
        raise StoreError(f"templates of {spec.name} must be {wrong}")


COHORT = "cohort/"  # prefix of its arrays in a store
_SECONDS = f"{COHORT}seconds"


@dataclass(frozen=True, slots=True)
class Cohort:
    """C background speakers with one short sketch each (docs/method.md section 10).

    Attributes:
        seconds: speech seconds of each sketch, shape (C,), usually far fewer than a template's.
        features: templates by name. ``slices`` has shape (C, M), one row per speaker, with counts
            or the direction of the summed embeddings. A row is zero without frames of that feature.
        about: attribution of the voices.
        names: names, needed to forget a speaker; empty if unknown, as in the shipped cohort. Rank
            models do not depend on names.

    Raises:
        StoreError: the parts do not match, or their values are impossible.
    """

    seconds: FloatArray
    features: Mapping[str, FeatureTemplates]
    about: str = ""
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.seconds.ndim != 1 or self.seconds.dtype.kind not in "iuf" or not self.features:
            raise StoreError("a cohort lacks its seconds, or its features")
        if not (np.isfinite(self.seconds).all() and (self.seconds >= 0).all()):
            raise StoreError("invalid speech seconds of a cohort")
        named = len(self.names) in (0, len(self)) and len(set(self.names)) == len(self.names)
        if not (named and all(map(is_name, self.names))):
            raise StoreError("a cohort's names do not match its speakers")
        for name, templates in self.features.items():
            check_templates(templates)
            if templates.slices.shape != (self.seconds.size, templates.spec.size):
                raise StoreError(
                    f"a cohort's {name} and seconds differ in their number of speakers"
                )
            if reason := templates.spec.kind.wrong_background(templates.slices):
                raise StoreError(f"a cohort's {name} {reason}")

    def __len__(self) -> int:
        return int(self.seconds.size)

    @property
    def specs(self) -> dict[str, FeatureSpec]:
        """Format of each feature's frames."""
        return {name: templates.spec for name, templates in self.features.items()}

    def compute_digest(self, name: str) -> str:
        """Compute the sha256 of one feature's sketches, which ties a rank model to its cohort."""
        return _digest({name: self.features[name].slices})

    def only(self, names: Iterable[str]) -> Cohort | None:
        """Select features; None if no feature remains."""
        features = {name: self.features[name] for name in self.features if name in set(names)}
        if len(features) == len(self.features):
            return self
        return Cohort(self.seconds, features, self.about, self.names) if features else None

    def without(self, name: str) -> Cohort | None:
        """Remove a speaker; None if no speakers remain."""
        others = np.array([speaker != name for speaker in self.names], bool)
        if not others.any():
            return None
        return Cohort(
            self.seconds[others],
            {
                feature: replace(templates, slices=templates.slices[others])
                for feature, templates in self.features.items()
            },
            self.about,
            tuple(speaker for speaker in self.names if speaker != name),
        )


def pack_cohort(cohort: Cohort) -> tuple[dict[str, object], dict[str, AnyArray]]:
    """Return a cohort as a store keeps it: a note for the header, and arrays by name."""
    arrays = {
        f"{COHORT}{name}": templates.slices for name, templates in sorted(cohort.features.items())
    }
    arrays[_SECONDS] = cohort.seconds
    return {
        "about": cohort.about,
        **({"names": cohort.names} if cohort.names else {}),
        "features": {name: templates.spec.plain() for name, templates in cohort.features.items()},
        "sha256": _digest(arrays),
    }, arrays


def read_cohort_note(
    path: Path, note: Mapping[str, Any], templates: Mapping[str, FeatureTemplates]
) -> partial[Cohort]:
    """Create a reader of the cohort that a store's header notes (``pack_cohort``)."""
    for name, spec in note["features"].items():
        enrolled = templates.get(name)
        if enrolled is None or dict(spec) != enrolled.spec.plain():
            raise StoreError(f"its cohort's {name!a:.40} was made differently from its templates")
    return partial(load_cohort, path, str(note["sha256"]))


def load_cohort(path: Path, digest: str) -> Cohort:
    """Read a cohort from a store; StoreError if the store's cohort has changed."""
    without = ("slices/", "rank_model/", "people/", MAPPED)
    return unpack_cohort(path, digest, *read_store(path, "population", without=without))


def unpack_cohort(
    path: Path, digest: str, header: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> Cohort:
    """Reverse ``pack_cohort``, from the header and all arrays of a store."""
    arrays = {name: array for name, array in arrays.items() if name.startswith(COHORT)}
    try:
        note = header["cohort"]
        if not arrays or _digest(arrays) != digest or note["sha256"] != digest:
            raise StoreError("it has changed")
        return Cohort(
            arrays[_SECONDS],
            {
                name: FeatureTemplates(spec_from(name, spec), arrays[f"{COHORT}{name}"])
                for name, spec in note["features"].items()
            },
            str(note["about"]),
            spelled_all(note.get("names", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError, StoreError) as error:
        raise StoreError(
            f"{path}: its cohort is incomplete ({printable(error)}). Make the file again"
        ) from error


def _digest(arrays: Mapping[str, AnyArray]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


# Normalisation (docs/method.md section 10). A log-likelihood grows with the amount of speech, and
# its only scale is its spread over the cohort in the same stream. A cosine has a fixed scale.
# Embeddings therefore use the stream's own mean, but the spread within the cohort. If the cohort
# trained the network, as for voice, the spread of its cosines in a stream reflects the network's
# memory and noise.


class CohortScoring:
    """Cohort's sketches of one feature, prepared to score streams.

    Speakers without frames of this feature are left out. Sketches are short, one utterance each.
    The rank model calibrated against them includes the effect on scores.
    """

    def __init__(self, cohort: Cohort, name: str, similarity: Similarity) -> None:
        slices = cohort.features[name].slices
        sketches = slices[slices.any(axis=1)]
        wide: AnyArray = sketches.astype(cohort.features[name].spec.kind.wide)
        self._similarity = similarity
        self._prepared = similarity.prepare(wide[:, None] if similarity.by_slice else wide)
        self._spread: float | None = None
        if similarity.own_scale:  # spread of the cohort's scores between different speakers
            scores = np.stack([similarity.score(self._prepared, row) for row in wide])
            self._spread = float(scores[~np.eye(len(scores), dtype=bool)].std())

    def __len__(self) -> int:
        return len(self._prepared)

    def compute_score_stats(self, totals: AnyArray) -> tuple[FloatArray, FloatArray]:
        """Compute mean and spread of each stream's scores over the cohort, (R,); 0 without frames.

        ``totals`` are those of the streams' sketches, shape (R, M). Streams do not affect each
        other.
        """
        if self._similarity.additive:
            scores = self._similarity.score(self._prepared, totals)
        else:
            scores = np.stack([self._similarity.score(self._prepared, total) for total in totals])
        scores = np.ascontiguousarray(scores)
        spread = scores.std(axis=1)
        if self._spread is not None:
            spread = np.where(spread > 0, self._spread, 0.0)
        return scores.mean(axis=1), spread


def normalise(scores: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Normalise scores, shape (..., N), as ``(s - mean) / spread``; 0 without spread."""
    away = scores - mean[..., None]
    wide = spread[..., None]
    return np.divide(away, wide, out=np.zeros_like(away), where=wide > 0)
