"""The figures of a reading that an alert may stand on."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from monitor.errors import UsageError

__all__ = ["check_field", "check_stream", "figures"]

FIELDS = ("bits", "sum_bits", "gain_bits", "expected_bits")
FEATURE_FIELDS = ("expected_bits", "rank_bits", "local_bits", "gain_bits")
WATCHED_FIELDS = ("rank_bits", "local_bits")


def check_field(field: str) -> None:
    """Refuse what no reading has, or what no alert should stand on.

    Raises:
        UsageError: with the nearest field there is.
    """
    name, dot, figure = field.rpartition(".")
    known = FEATURE_FIELDS if dot else FIELDS
    if figure in known and bool(name) == bool(dot):
        return
    if field == "peak_bits":
        raise UsageError(
            "peak_bits cannot carry an alert, bystanders' peaks reach 3 bits too: use bits"
        )
    near = difflib.get_close_matches(figure, known, n=1)
    if near:
        hint = f"did you mean {name}{dot}{near[0]}?"
    elif dot:
        hint = f"a feature has {', '.join(FEATURE_FIELDS)}"
    else:
        hint = f"use one of {', '.join(FIELDS)}, or a feature's, such as f0.rank_bits"
    raise UsageError(f"unknown alert field {field!r}: {hint}")


def check_stream(field: str, start: Mapping[str, Any]) -> None:
    """Refuse a field that the stream of this ``start`` record will never have.

    Raises:
        UsageError: it has no such feature, or watches nobody where the field needs it.
    """
    name, _, figure = field.rpartition(".")
    features = start.get("features")
    if name and features is not None and name not in features:
        raise UsageError(_no_feature(field, name, features))
    if figure in WATCHED_FIELDS and "watch" in start and start["watch"] is None:
        raise UsageError(
            f"the alert field {field} needs a watched speaker: name one, or use gain_bits"
        )


def figures(field: str, reading: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The field's value in a reading and its lower limit; None where there is none.

    Raises:
        UsageError: the reading has no such feature.

    Examples:
        >>> figures("bits", {"bits": 2.0, "bits_low": 1.5})
        (2.0, 1.5)
        >>> figures("f0.rank_bits", {"features": {"f0": {"rank_bits": 1.0}}})
        (1.0, None)
    """
    name, _, figure = field.rpartition(".")
    source = reading
    if name:
        features = reading.get("features") or {}
        if features and name not in features:
            raise UsageError(_no_feature(field, name, features))
        source = features.get(name) or {}
    return _number(source.get(figure)), _number(source.get(f"{figure}_low"))


def _no_feature(field: str, name: str, features: Any) -> str:
    near = difflib.get_close_matches(name, list(features), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(features)}"
    return f"the alert field {field} names a feature this stream does not have ({name}): {hint}"


def _number(value: Any) -> float | None:
    return None if value is None or math.isnan(value) else value
