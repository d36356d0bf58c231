"""The figures of a reading that an alert may stand on."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from monitor.errors import UsageError

__all__ = ["check_field", "check_stream", "figure"]

LIMITED = ("bits", "gain_bits", "expected_bits")
LIMITED_OF_FEATURE = ("expected_bits", "rank_bits", "local_bits", "gain_bits")
WATCHED = ("rank_bits", "local_bits")
LIMITS = ("_low", "_high")


def _with_limits(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name + end for name in names for end in ("", *LIMITS))


FIELDS = (*_with_limits(LIMITED), "sum_bits")
FEATURE_FIELDS = _with_limits(LIMITED_OF_FEATURE)


def check_field(field: str) -> None:
    """Refuse what no reading has, or what no alert should stand on.

    Raises:
        UsageError: with the nearest field there is.
    """
    name, dot, last = field.rpartition(".")
    known = FEATURE_FIELDS if dot else FIELDS
    if last in known and bool(name) == bool(dot):
        return
    if field == "peak_bits":
        raise UsageError(
            "peak_bits cannot carry an alert, bystanders' peaks reach 3 bits too: use bits"
        )
    near = difflib.get_close_matches(last, known, n=1)
    if near:
        hint = f"did you mean {name}{dot}{near[0]}?"
    elif dot:
        hint = f"a feature has {', '.join(LIMITED_OF_FEATURE)}, each also with _low or _high"
    else:
        hint = (
            f"use one of {', '.join(LIMITED)} (each also with _low or _high), sum_bits, or a "
            "feature's, such as f0.rank_bits"
        )
    raise UsageError(f"unknown alert field {field!r}: {hint}")


def check_stream(field: str, start: Mapping[str, Any]) -> None:
    """Refuse a field that the stream of this ``start`` record will never have.

    Raises:
        UsageError: it has no such feature, or watches nobody where the field needs it.
    """
    name, _, last = field.rpartition(".")
    features = start.get("features")
    if name and features is not None and name not in features:
        raise UsageError(_no_feature(field, name, features))
    if _unlimited(last) in WATCHED and "watch" in start and start["watch"] is None:
        raise UsageError(
            f"the alert field {field} needs a watched speaker: name one, or use gain_bits"
        )


def figure(field: str, reading: Mapping[str, Any]) -> float | None:
    """The field's value in a reading; None where it has none, or one that is no number.

    Raises:
        UsageError: the reading has no such feature.

    Examples:
        >>> figure("bits", {"bits": 2.0, "bits_low": 1.5})
        2.0
        >>> figure("f0.rank_bits_low", {"features": {"f0": {"rank_bits_low": 0.8}}})
        0.8
    """
    name, _, last = field.rpartition(".")
    source = reading
    if name:
        features = reading.get("features") or {}
        if features and name not in features:
            raise UsageError(_no_feature(field, name, features))
        source = features.get(name) or {}
    value = source.get(last)
    return None if value is None or math.isnan(value) else float(value)


def _unlimited(name: str) -> str:
    for end in LIMITS:
        name = name.removesuffix(end)
    return name


def _no_feature(field: str, name: str, features: Any) -> str:
    near = difflib.get_close_matches(name, list(features), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(features)}"
    return f"the alert field {field} names a feature this stream does not have ({name}): {hint}"
