"""The cohort: background speakers, enrolled nowhere, whom scores are normalised against.

A score says little by itself; how far it stands out from those of people who certainly are not the
speaker says more (docs/method.md section 10). Of each of them there is one short sketch a
feature and no audio; a name only where the cohort was made of a corpus of one's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from monitor.errors import StoreError
from monitor.kinds import FeatureSpec
from monitor.population.checking import check_templates, spec_from
from monitor.population.storing import read_store
from monitor.population.templates import FeatureTemplates
from monitor.safe_text import is_name, printable
from monitor.types import AnyArray, FloatArray

__all__ = ["COHORT", "Cohort", "load_cohort", "noted_cohort", "pack_cohort", "unpack_cohort"]

COHORT = "cohort/"
"""What the names of its arrays in a store begin with."""
_SECONDS = f"{COHORT}seconds"


@dataclass(frozen=True, slots=True)
class Cohort:
    """C speakers to compare with, one sketch of each.

    Attributes:
        seconds: speech seconds behind each, shape (C,); mostly far fewer than a template has.
        features: by name; ``slices`` has shape (C, M), a row a speaker: counts, or the mean of
            embeddings of length 1. A row of zeros: nothing was heard of that feature.
        about: whose voices these are.
        names: of each, so that one can be forgotten; empty where nobody kept them, as in the
            shipped one. They are no part of what a law is learnt against.

    Raises:
        StoreError: the parts do not belong together, or are nothing that a voice gives.
    """

    seconds: FloatArray
    features: Mapping[str, FeatureTemplates]
    about: str = ""
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.seconds.ndim != 1 or self.seconds.dtype.kind not in "iuf" or not self.features:
            raise StoreError("a cohort lacks its seconds, or its features")
        if not (np.isfinite(self.seconds).all() and (self.seconds >= 0).all()):
            raise StoreError("a cohort's seconds are no lengths of speech")
        named = len(self.names) in (0, len(self)) and len(set(self.names)) == len(self.names)
        if not (named and all(map(is_name, self.names))):
            raise StoreError("a cohort's names are not of its speakers")
        for name, each in self.features.items():
            check_templates(each)
            if each.slices.shape != (self.seconds.size, each.spec.size):
                raise StoreError(f"a cohort's {name} is not of as many speakers as its seconds")
            if wrong := each.spec.kind.wrong_background(each.slices):
                raise StoreError(f"a cohort's {name} {wrong}")

    def __len__(self) -> int:
        return int(self.seconds.size)

    @property
    def specs(self) -> dict[str, FeatureSpec]:
        """What the frames of each feature look like."""
        return {name: each.spec for name, each in self.features.items()}

    def mark(self, name: str) -> str:
        """sha256 of what it holds of one feature: a law belongs to one cohort."""
        return _digest({name: self.features[name].slices})

    def only(self, names: Iterable[str]) -> Cohort | None:
        """The same speakers with these features alone; None where none is left."""
        kept = {name: self.features[name] for name in self.features if name in set(names)}
        if len(kept) == len(self.features):
            return self
        return Cohort(self.seconds, kept, self.about, self.names) if kept else None

    def without(self, name: str) -> Cohort | None:
        """Everybody else of them; None where nobody is left."""
        others = np.array([each != name for each in self.names], bool)
        if not others.any():
            return None
        return Cohort(
            self.seconds[others],
            {key: replace(each, slices=each.slices[others]) for key, each in self.features.items()},
            self.about,
            tuple(each for each in self.names if each != name),
        )


def pack_cohort(cohort: Cohort) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """A cohort as a store keeps it: a note for the header, and arrays by name."""
    arrays = {f"{COHORT}{name}": each.slices for name, each in sorted(cohort.features.items())}
    arrays[_SECONDS] = cohort.seconds
    return {
        "about": cohort.about,
        **({"names": cohort.names} if cohort.names else {}),
        "features": {name: each.spec.plain() for name, each in cohort.features.items()},
        "sha256": _digest(arrays),
    }, arrays


def noted_cohort(
    path: Path, note: Mapping[str, Any], templates: Mapping[str, FeatureTemplates]
) -> partial[Cohort]:
    """The cohort that a store's header notes, to be read when it is asked for.

    Args:
        path: the store.
        note: from ``pack_cohort``.
        templates: of the population, by feature.

    Raises:
        StoreError: it was made by other networks than the templates: it cannot be compared.
    """
    for name, each in note["features"].items():
        mine = templates.get(name)
        if mine is None or dict(each) != mine.spec.plain():
            raise StoreError(f"its cohort's {name!a:.40} is not made as its templates are")
    return partial(load_cohort, path, str(note["sha256"]))


def load_cohort(path: Path, digest: str) -> Cohort:
    """Read a cohort from a store.

    Args:
        path: of the store.
        digest: of the cohort, from the store's header when it was first read.

    Raises:
        StoreError: the store holds another one by now, none, or one that no voices give.
    """
    return unpack_cohort(
        path, digest, *read_store(path, "population", without=("slices/", "law/", "people/"))
    )


def unpack_cohort(
    path: Path, digest: str, header: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> Cohort:
    """The reverse of ``pack_cohort``.

    Args:
        path: what was read.
        digest: of the cohort.
        header: of the store.
        arrays: of the store, others among them.

    Raises:
        StoreError: as `load_cohort`.
    """
    arrays = {name: array for name, array in arrays.items() if name.startswith(COHORT)}
    try:
        note = header["cohort"]
        if not arrays or _digest(arrays) != digest or note["sha256"] != digest:
            raise StoreError("another cohort than before")
        return Cohort(
            arrays[_SECONDS],
            {
                name: FeatureTemplates(spec_from(name, each), arrays[f"{COHORT}{name}"])
                for name, each in note["features"].items()
            },
            str(note["about"]),
            tuple(note.get("names", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError, StoreError) as error:
        raise StoreError(
            f"{path}: its cohort is incomplete ({printable(error)}); make it again"
        ) from error


def _digest(arrays: Mapping[str, AnyArray]) -> str:
    """A hash over all arrays."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
