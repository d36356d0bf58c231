"""What a population or a law from a file must be before anything is computed with it.

A store is private, but it may come from a stranger, or from a disk that fails: one number that is
none would end a run in the middle, one that is far too large would read as nothing disclosed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from monitor.errors import StoreError
from monitor.kinds import KINDS, FeatureSpec
from monitor.kinds.base import within
from monitor.network_marks import is_mark
from monitor.safe_text import is_name
from monitor.types import AnyArray, FloatArray

if TYPE_CHECKING:
    from monitor.population.law import RankLaw
    from monitor.population.population import Speaker
    from monitor.population.templates import FeatureTemplates

__all__ = ["check_law", "check_speakers", "check_templates", "is_name", "spec_from"]

SESSIONS = ("same", "cross")
ORIGINS = ("own", "shipped")
MOST_SIZE = 1 << 20
MOST_PEOPLE = 1e9
MOST_SOUND = 1e6
MOST_PARAMETER = 1e12
LEAST_PARAMETER = 1e-12


def check_speakers(speakers: Sequence[Speaker]) -> None:
    """Refuse speakers that enrolment would not have made.

    Raises:
        StoreError: a name cannot be printed, or a note says nonsense.
    """
    for speaker in speakers:
        if not is_name(speaker.name):
            raise StoreError(f"the name {speaker.name!a:.40} of a speaker cannot be printed")
        if not (np.isnan(speaker.sound) | (np.abs(speaker.sound) <= MOST_SOUND)).all():
            raise StoreError(f"the sound of {speaker.name} is none that speech has")
        for note in speaker.sources:
            if not (is_name(note.label) and is_name(note.session)):
                raise StoreError(f"a recording of {speaker.name} has a name that cannot be printed")
            seconds = (note.start_seconds, note.end_seconds)
            if not all(isinstance(s, int | float) and 0 <= s < float("inf") for s in seconds):
                raise StoreError(f"an interval of {speaker.name} is no pair of seconds")
            if note.landmarks.ndim != 1:
                raise StoreError(f"the landmarks of a recording of {speaker.name} are no list")
            if not all(isinstance(each, str) for each in note.hashes):
                raise StoreError(f"a fingerprint of {speaker.name} is no text")


def spec_from(name: str, header: Mapping[str, Any]) -> FeatureSpec:
    """What the header of a store says of a feature.

    Args:
        name: of the feature.
        header: as `FeatureSpec.plain` makes it.

    Raises:
        StoreError: no such feature was ever enrolled.
    """
    found, size, seconds = (header[key] for key in ("kind", "size", "frame_seconds"))
    kind = KINDS.get(found) if isinstance(found, str) else None
    if not is_name(name) or kind is None or not kind.enrolled:
        raise StoreError(f"templates of {name!a:.40} are of no known kind")
    if type(size) is not int or not 0 < size <= MOST_SIZE:
        raise StoreError(f"templates of {name} have size {size!a:.40}")
    if not isinstance(seconds, int | float) or not 0 < seconds <= 3600:
        raise StoreError(f"a frame of {name} is said to last {seconds!a:.40} s")
    if not is_mark(network := header.get("network")):
        raise StoreError(f"the network of {name} is no sha256")
    spec = FeatureSpec(name, kind, size, seconds, network=network)
    if spec.plain() != dict(header):
        raise StoreError(f"templates of {name} are described by more than their kind")
    return spec


def check_templates(templates: FeatureTemplates) -> None:
    """Refuse templates that no voice gives.

    Raises:
        StoreError: no numbers, or numbers out of range.
    """
    spec = templates.spec
    if wrong := spec.kind.wrong_slices(templates.slices):
        raise StoreError(f"templates of {spec.name} must be {wrong}")


def check_law(law: RankLaw) -> None:
    """Refuse a law that no calibration gives.

    Raises:
        StoreError: parameters of the wrong type, sign or range.
    """
    named = (law.left_out, law.networks, law.learnt_from)
    if not all(
        isinstance(each, tuple) for each in (law.features, law.similarities, law.rows, *named)
    ):
        raise StoreError("a law does not list its features, similarities, cells and speakers")
    about = "+".join(map(str, law.features))
    if law.session not in SESSIONS or not law.features or not all(map(is_name, law.features)):
        raise StoreError(f"a law is of {about!a:.40} in session {law.session!a:.20}")
    for count, fewest in ((law.speakers, 1), (law.candidates, 2)):
        if type(count) is not int or count < fewest:
            raise StoreError(f"the law of {about} counts {count!a:.20} people")
    if len(law.networks) not in (0, len(law.features)) or not all(map(is_mark, law.networks)):
        raise StoreError(f"the law of {about} does not say which network made what")
    if not all(map(is_name, law.similarities)) or law.origin not in ORIGINS:
        raise StoreError(f"the law of {about} is of no known kind")
    if not all(map(is_name, (*law.left_out, *law.learnt_from))):
        raise StoreError(f"the law of {about} names speakers who cannot be printed")
    if type(law.forgotten) is not int or law.forgotten < 0:
        raise StoreError(f"the law of {about} counts {law.forgotten!a:.20} forgotten people")
    share = law.prior_speakers
    if not _is_number(share) or not 0 <= share <= MOST_PEOPLE:
        raise StoreError(f"the prior of the law of {about} counts {share!a:.20} people")
    if not all(map(_is_row, law.rows)):
        raise StoreError(f"the table of the law of {about} makes no sense")
    for axis in (law.lengths, law.template_lengths):
        if axis.dtype.kind not in "iuf" or not within(axis, 0.0, 1e9):
            raise StoreError(f"the lengths of the law of {about} are no seconds")
    if law.binomial.dtype != np.bool_:
        raise StoreError(f"the law of {about} does not say which cells are binomial")
    top = np.where(law.binomial, 1.0, MOST_PARAMETER)
    least = np.where(law.binomial, 0.0, LEAST_PARAMETER)
    there = ~np.isnan(law.alpha)
    for name, values, low, most in (
        ("alpha", law.alpha, least, top),
        ("beta", law.beta, least, top),
        ("floor", law.floor, 0.0, 1.0),
    ):
        _check_parameter(about, name, values, there, low, most)
    for f in range(law.weights.shape[-1]):
        _check_parameter(about, "weights", law.weights[..., f], there, 0.0, MOST_PARAMETER)
    open_set = law.open_set
    told = open_set.dtype.kind == "f" and ~np.isnan(open_set).any(axis=-1)
    if not np.any(told) or not (abs(open_set[told]) <= MOST_PARAMETER).all():
        raise StoreError(f"the open-set coefficients of the law of {about} are no numbers")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_row(row: object) -> bool:
    """One cell of the calibration's table: figures, words, and lists of them."""
    if not isinstance(row, dict) or not all(map(is_name, row)):
        return False
    area = row.get("open_set_area")
    if not (_is_number(row.get("T")) and _is_number(row.get("D"))):
        return False
    if area is not None and not _is_number(area):
        return False
    return _is_told(row)


def _is_told(value: object) -> bool:
    """Figures, words, and lists and objects of them."""
    if type(value) is float or type(value) is int:  # nearly all of them
        return not abs(value) > MOST_PARAMETER
    if isinstance(value, dict):
        return all(map(is_name, value)) and all(map(_is_told, value.values()))
    if isinstance(value, list):
        return all(map(_is_told, value))
    if isinstance(value, str):
        return value.isprintable()
    return value is None or (isinstance(value, int | float) and not abs(value) > MOST_PARAMETER)


def _check_parameter(
    about: str,
    name: str,
    values: FloatArray,
    there: AnyArray,
    least: float | FloatArray,
    most: float | FloatArray,
) -> None:
    """Numbers in range in every cell that there is."""
    if values.dtype.kind != "f" or np.isnan(values[there]).any():
        raise StoreError(f"{name} of the law of {about} is not there in every cell")
    if not ((values >= least) & (values <= most))[there].all():
        raise StoreError(f"{name} of the law of {about} lies out of range")
