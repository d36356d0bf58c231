"""Figures of a reading that alert rules can use."""

from __future__ import annotations

import math
from collections.abc import Collection

from monitor.errors import Argument, Message, UsageError
from monitor.events.reading import CrowdReading, FeatureReading, ProtectedReading, Reading
from monitor.events.run import RunStart
from monitor.phrases import plural

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
    """Raise UsageError for a field that readings lack, or that alerts should not use."""
    if not field.isprintable():
        raise UsageError(f"unknown alert field {field!a}: names are plain words")
    name, dot, last = field.rpartition(".")
    if name == AMONG or name.startswith(f"{AMONG}."):
        _check_among(field, name, last)
        return
    fields = PROTECTED_FIELDS if name == PROTECTED else FEATURE_FIELDS if dot else FIELDS
    if last in fields and bool(name) == bool(dot):
        return
    if field == "peak_bits":
        raise UsageError(
            "an alert cannot use peak_bits, because bystanders' peaks also reach 3 bits: use bits"
        )
    from difflib import get_close_matches

    near = get_close_matches(last, fields, n=1)
    if near:
        hint = f"did you mean {name}{dot}{near[0]}?"
    elif name == PROTECTED:
        hint = "the protected side has protected.bits, also with _low or _high"
    elif dot:
        hint = f"a feature has {', '.join(LIMITED_OF_FEATURE)}, each also with _low or _high"
    else:
        hint = (
            f"use one of {', '.join(LIMITED)} (each also with _low or _high), sum_bits, the bits "
            "in a crowd, such as among.1e6.bits, or a feature's, such as f0.rank_bits"
        )
    raise UsageError(f"unknown alert field {field!r}: {hint}")


def check_stream(field: str, start: RunStart) -> None:
    """Raise UsageError for a field that this run's readings will never have."""
    name, _, last = field.rpartition(".")
    if name == PROTECTED and start.protected is None:
        raise UsageError(
            f"the alert field {field} needs a protected side: add an anonymiser, or use {last}"
        )
    if among(field) is not None or last.startswith("evidence_bits"):
        _check_evidence(field, start)
    is_feature_field = among(field) is None and name != PROTECTED
    if is_feature_field and name and start.features is not None and name not in start.features:
        raise UsageError(_no_feature(field, name, start.features))
    if _unlimited(last) in WATCHED and start.watch is None:
        instead = "" if last.startswith("evidence_bits") else ", or use gain_bits"
        raise UsageError(f"the alert field {field} needs a watched speaker: name one{instead}")


def among(field: str) -> float | None:
    """Return the crowd size of a field such as ``among.1e6.bits``; None for other fields."""
    first, _, remainder = field.partition(".")
    try:
        return float(remainder.rpartition(".")[0]) if first == AMONG else None
    except ValueError:
        return None


def most_bits(field: str, start: RunStart) -> tuple[float | None, str]:
    """Compute the maximum bits of a field in a run, and the reason for this maximum.

    None and an empty text if there is no maximum, or if it is unknown.
    """
    if field == "sum_bits":
        if start.ceiling is None or start.features is None:
            return None, ""
        count = len(start.features)
        return count * start.ceiling, f"{plural(count, 'feature')} can add up to"
    is_evidence = start.headline == "evidence"
    people = among(field)
    supported = start.support_bits
    if field.startswith(f"{PROTECTED}."):  # support of the best supported attacker
        attackers = {} if start.protected is None else start.protected.attackers
        supports = [attacker.support_bits for attacker in attackers.values()]
        finite = [bits for bits in supports if bits is not None]
        supported = max(finite) if finite and len(finite) == len(supports) else None
    elif people is not None:
        crowd = math.log2(people)
        if supported is None or crowd <= supported:
            return crowd, f"among {people:,.0f} people there are"
        is_evidence = True
    elif field.startswith("evidence_bits"):
        is_evidence = True
    elif not field.startswith("bits"):
        is_evidence = False
    if is_evidence:
        return (None, "") if supported is None else (supported, "calibration can support")
    ceiling = start.ceiling
    reachable = ("bits", "closed_set_bits", "bits_low", "closed_set_bits_low")
    if field in reachable and start.reachable_bits is not None:
        ceiling = start.reachable_bits
    if ceiling is None:
        return None, ""
    return ceiling, f"among {start.speakers} speakers a voice can reach"


def round_down(bits: float) -> str:
    """Format a maximum, rounded down so that a threshold at this number can be reached.

    Example:
        >>> round_down(13.6899), round_down(5.64)
        ('13.68', '5.64')
    """
    return f"{math.floor(100 * bits + 1e-9) / 100:.2f}"


def _check_among(field: str, name: str, last: str) -> None:
    if last in AMONG_FIELDS and (people := among(field)) is not None and math.isfinite(people):
        return
    hint = "write it as among.1e6.bits, or with bits_low or bits_high"
    if last in AMONG_FIELDS and name != AMONG:
        hint = f"{name.partition('.')[2]!r} is not a number of people; {hint}"
    raise UsageError(f"unknown alert field {field!r}: {hint}")


def _check_evidence(field: str, start: RunStart) -> None:
    """Refuse a field of evidence without its rank model, or of a crowd that was not requested."""
    if start.among is None:  # from a version without evidence
        return
    if start.support_bits is None:
        raise UsageError(
            f"the alert field {field} needs a rank model of evidence, which this population lacks: "
            "use bits, or calibrate again (monitor calibrate)"
        )
    people = among(field)
    if people is not None and people not in start.among:
        requested = ", ".join(f"{people_count:g}" for people_count in start.among)
        raise UsageError(
            Message(
                f"the alert field {field} needs a crowd that is not reported (",
                Argument("among", requested), "): add ", Argument("among", f"{people:g}"),
            )
        )  # fmt: skip


def figure(field: str, reading: Reading) -> float | None:
    """Return a field of a reading; None if it is missing or not a number.

    Examples:
        >>> figure("bits", Reading.from_record({"bits": 2.0, "bits_low": 1.5}))
        2.0
        >>> reading = Reading.from_record({"features": {"f0": {"rank_bits_low": 0.8}}})
        >>> figure("f0.rank_bits_low", reading)
        0.8
    """
    name, _, last = field.rpartition(".")
    source: Reading | CrowdReading | ProtectedReading | FeatureReading | None = reading
    if (people := among(field)) is not None:
        source = next((crowd for crowd in reading.among or () if crowd.people == people), None)
    elif name == PROTECTED:
        source = reading.protected
    elif name:
        features = reading.features or {}
        if features and name not in features:
            raise UsageError(_no_feature(field, name, features))
        source = features.get(name)
    value = getattr(source, last, None)
    return None if value is None or math.isnan(value) else float(value)


def needs_watched_figures(field: str) -> bool:
    """Return whether a figure describes the clear voice of the watched speaker, if any."""
    name, _, last = field.rpartition(".")
    return name != PROTECTED and _unlimited(last) not in ("gain_bits", "expected_bits")


def assumes_too_much(field: str, reading: Reading) -> bool:
    """Return whether a figure assumes an enrolled speaker who is probably not enrolled.

    Figures in crowds do not, since crowds include people who are not enrolled. Averages do not,
    since they refer to no particular person.
    """
    about_all = among(field) is not None or _unlimited(field.rpartition(".")[2]) == "expected_bits"
    return reading.assumes_enrolled and reading.is_impostor and not about_all


def _unlimited(name: str) -> str:
    for end in LIMITS:
        name = name.removesuffix(end)
    return name


def _no_feature(field: str, name: str, features: Collection[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(features), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(features)}"
    return f"the alert field {field} names a feature this stream does not have ({name}): {hint}"
