"""The figures of a reading that an alert may stand on."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from monitor.errors import UsageError

__all__ = ["among", "check_field", "check_stream", "figure", "most_bits"]

LIMITED = ("bits", "evidence_bits", "closed_set_bits", "gain_bits", "expected_bits")
LIMITED_OF_FEATURE = ("expected_bits", "rank_bits", "local_bits", "gain_bits")
WATCHED = ("rank_bits", "local_bits", "evidence_bits")
LIMITS = ("_low", "_high")
AMONG = "among"
PROTECTED = "protected"


def _with_limits(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name + end for name in names for end in ("", *LIMITS))


FIELDS = (*_with_limits(LIMITED), "sum_bits")
FEATURE_FIELDS = _with_limits(LIMITED_OF_FEATURE)
AMONG_FIELDS = _with_limits(("bits",))
PROTECTED_FIELDS = _with_limits(("bits",))


def check_field(field: str) -> None:
    """Refuse what no reading has, or what no alert should stand on.

    Raises:
        UsageError: with the nearest field there is.
    """
    if not field.isprintable():
        raise UsageError(f"unknown alert field {field!a}: names are plain words")
    name, dot, last = field.rpartition(".")
    if name == AMONG or name.startswith(f"{AMONG}."):
        _check_among(field, name, last)
        return
    known = PROTECTED_FIELDS if name == PROTECTED else FEATURE_FIELDS if dot else FIELDS
    if last in known and bool(name) == bool(dot):
        return
    if field == "peak_bits":
        raise UsageError(
            "peak_bits cannot carry an alert, bystanders' peaks reach 3 bits too: use bits"
        )
    near = difflib.get_close_matches(last, known, n=1)
    if near:
        hint = f"did you mean {name}{dot}{near[0]}?"
    elif name == PROTECTED:
        hint = "the protected side has protected.bits, also with _low or _high"
    elif dot:
        hint = f"a feature has {', '.join(LIMITED_OF_FEATURE)}, each also with _low or _high"
    else:
        hint = (
            f"use one of {', '.join(LIMITED)} (each also with _low or _high), sum_bits, those "
            "among so many people, such as among.1e6.bits, or a feature's, such as f0.rank_bits"
        )
    raise UsageError(f"unknown alert field {field!r}: {hint}")


def check_stream(field: str, start: Mapping[str, Any]) -> None:
    """Refuse a field that the stream of this ``start`` record will never have.

    Raises:
        UsageError: it has no such feature, or watches nobody where the field needs it.
    """
    name, _, last = field.rpartition(".")
    if name == PROTECTED and start.get("protected") is None:
        raise UsageError(
            f"the alert field {field} needs a protected side: add a protector, or use {last}"
        )
    if among(field) is not None or last.startswith("evidence_bits"):
        _check_evidence(field, start)
    own = among(field) is None and name != PROTECTED
    features = start.get("features") if own else None
    if name and features is not None and name not in features:
        raise UsageError(_no_feature(field, name, features))
    if _unlimited(last) in WATCHED and "watch" in start and start["watch"] is None:
        instead = "" if last.startswith("evidence_bits") else ", or use gain_bits"
        raise UsageError(f"the alert field {field} needs a watched speaker: name one{instead}")


def among(field: str) -> float | None:
    """Among how many people a field is, such as ``among.1e6.bits``; None where it is not.

    Examples:
        >>> among("among.1e6.bits_low"), among("bits")
        (1000000.0, None)
    """
    first, _, rest = field.partition(".")
    try:
        return float(rest.rpartition(".")[0]) if first == AMONG else None
    except ValueError:
        return None


def most_bits(field: str, start: Mapping[str, Any]) -> tuple[float | None, str]:
    """The most bits that a field can show in the stream of a ``start`` record, and why no more.

    Returns:
        None and an empty text where there is no such bound, or where it is not known.

    Examples:
        >>> most_bits("bits", {"headline": "evidence", "support_bits": 8.7})
        (8.7, 'calibration can support')
        >>> most_bits("among.64.bits", {"support_bits": 8.7})
        (6.0, 'among 64 people there are')
    """
    if field == "sum_bits":
        return None, ""
    of_evidence = start.get("headline") == "evidence"
    people = among(field)
    supported = start.get("support_bits")
    if field.startswith(f"{PROTECTED}."):  # that of the attacker who can be told most of
        attackers = (start.get(PROTECTED) or {}).get("attackers") or {}
        each = [one.get("support_bits") for one in attackers.values()]
        supported = None if not each or None in each else max(each)
    elif people is not None:
        crowd = math.log2(people)
        if supported is None or crowd <= supported:
            return crowd, f"among {people:,.0f} people there are"
        of_evidence = True
    elif field.startswith("evidence_bits"):
        of_evidence = True
    elif not field.startswith("bits"):
        of_evidence = False
    if of_evidence:
        return (None, "") if supported is None else (supported, "calibration can support")
    ceiling = start.get("ceiling")
    return ceiling, "" if ceiling is None else f"among {start.get('speakers')} speakers there are"


def _check_among(field: str, name: str, last: str) -> None:
    if last in AMONG_FIELDS and (people := among(field)) is not None and math.isfinite(people):
        return
    hint = "write it as among.1e6.bits, or with bits_low or bits_high"
    if last in AMONG_FIELDS and name != AMONG:
        hint = f"{name.partition('.')[2]!r} is no number of people; {hint}"
    raise UsageError(f"unknown alert field {field!r}: {hint}")


def _check_evidence(field: str, start: Mapping[str, Any]) -> None:
    """Refuse it where this population has no law of evidence, or nobody asked for that crowd."""
    if "among" not in start:  # of a version before there was evidence: it has none
        return
    if start.get("support_bits") is None:
        raise UsageError(
            f"the alert field {field} needs what says how much a voice is worth in any crowd, "
            "which this population lacks: calibrate again (monitor calibrate), or use bits"
        )
    people = among(field)
    if people is not None and people not in start["among"]:
        asked = ", ".join(f"{each:g}" for each in start["among"])
        raise UsageError(
            f"the alert field {field} is among people that nothing is said of (among={asked}): "
            f"add among={people:g}"
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
        >>> figure("among.1e6.bits", {"among": [{"people": 1000000, "bits": 11.2}]})
        11.2
    """
    name, _, last = field.rpartition(".")
    source = reading
    if (people := among(field)) is not None:
        crowds = (each for each in reading.get("among") or () if each["people"] == people)
        source = next(crowds, {})
    elif name == PROTECTED:
        source = reading.get(PROTECTED) or {}
    elif name:
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
