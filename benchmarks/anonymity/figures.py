"""What one system keeps of a voice and of what it says, with limits over readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.anonymity.excerpts import QUERY, REFERENCE, Excerpt
from benchmarks.anonymity.hearing import Heard, names_of, said
from benchmarks.anonymity.ranking import enrolled_matrix, rank_tests
from monitor.lab.evaluation import EvaluationSettings, evaluate
from monitor.lab.evaluation.comparisons import Roles
from monitor.lab.utility import align_pitch, count_edits, find_lag
from monitor.maths.statistics import Estimate, speaker_weights
from monitor.types import FloatArray

__all__ = ["BITS", "KEPT", "NOTHING", "ROLES", "figures", "over_readers"]

ROLES = {
    "linkability": Roles("anonymised", "anonymised"),
    "singling out": Roles("anonymised", "original"),
    "singling out, as described": Roles("original", "anonymised"),
}
"""By the name that USC gives it."""
NOTHING = {"linkability": Roles("original", "original")}
"""Of the recordings themselves."""
BITS = "srd.mean_bits_model"
KEPT = (
    "anonymity.mean_rank_p50",
    "anonymity.mean_rank_p1",
    "anonymity.share_rank_at_most_1",
    "anonymity.share_rank_at_most_5",
    BITS,
)
_FEWEST_FRAMES = 30
Limited = dict[str, Any]
Voices = dict[str, list[FloatArray]]


def figures(
    clear: Mapping[Excerpt, Heard], changed: Mapping[Excerpt, Heard], tests: int
) -> dict[str, Any]:
    """All figures of a system.

    Args:
        clear: the recordings.
        changed: the same excerpts through the system; the recordings again, where nothing is.
        tests: L, of each reader.

    Returns:
        ``similarity``, ``phone_error``, ``pitch_rank_correlation``, ``pitch_correlation`` and
        ``bits_per_second``, each with ``value``, ``low`` and ``high``; and for each of `ROLES`
        those of `KEPT`, of ``one`` reference drawn for each test and of ``all`` of them; of the
        recordings themselves, one pair of roles.
    """
    of = {QUERY: _voices(changed, QUERY), REFERENCE: _voices(changed, REFERENCE)}
    plain = {QUERY: _voices(clear, QUERY), REFERENCE: _voices(clear, REFERENCE)}
    found: dict[str, Any] = {
        "similarity": over_readers(
            (e.speaker, float(changed[e].embedding @ clear[e].embedding), 1.0) for e in changed
        ),
        "phone_error": over_readers(_phone_edits(changed)),
        "bits_per_second": over_readers(
            (e.speaker, h.bits, e.seconds) for e, h in changed.items() if np.isfinite(h.bits)
        ),
    }
    pitch = [(e.speaker, *_pitch(clear[e].pitch, changed[e].pitch)) for e in changed]
    for place, name in ((1, "pitch_rank_correlation"), (2, "pitch_correlation")):
        found[name] = over_readers((p[0], p[place], 1.0) for p in pitch if np.isfinite(p[place]))
    for name, roles in (NOTHING if changed is clear else ROLES).items():
        queries = (of if roles.query == "anonymised" else plain)[QUERY]
        references = (of if roles.reference == "anonymised" else plain)[REFERENCE]
        found[name] = {
            "one": _ranks(rank_tests(queries, references, tests), roles),
            "all": _ranks(enrolled_matrix(queries, references), roles),
        }
    return found


def over_readers(noted: Any) -> Limited:
    """Sums over sums, with Student's 95 % interval from readers drawn anew.

    Args:
        noted: reader, what is summed, and what it is divided by, of each excerpt.

    Example:
        >>> found = over_readers([("ann", 2.0, 4.0), ("bob", 3.0, 4.0)])
        >>> found["value"], found["low"] < 0.625 < found["high"]
        (0.625, True)
        >>> over_readers([])
        {'value': None, 'low': None, 'high': None}
    """
    rows: Sequence[tuple[str, float, float]] = list(noted)
    if not rows:
        return {"value": None, "low": None, "high": None}
    _, whose = np.unique([row[0] for row in rows], return_inverse=True)
    top, bottom = (np.bincount(whose, [row[i] for row in rows]) for i in (1, 2))
    weights = speaker_weights(len(top))
    left = (top.sum() - top) / (bottom.sum() - bottom) if len(top) > 1 else np.empty(0)
    value = float(top.sum() / bottom.sum())
    drawn = (weights @ top) / (weights @ bottom)
    estimate = Estimate(value, drawn, left, len(top), len(rows))
    low, high = estimate.t_limits() if estimate.exists else (None, None)
    return {"value": value, "low": low, "high": high}


def _voices(heard: Mapping[Excerpt, Heard], role: str) -> Voices:
    made: Voices = {}
    for each, found in heard.items():
        if each.role == role:
            made.setdefault(each.speaker, []).append(found.embedding.astype(float))
    return made


def _ranks(matrix: Any, roles: Roles) -> dict[str, Any]:
    report = evaluate(matrix, settings=EvaluationSettings(roles=roles, only=("anonymity", "srd")))
    made: dict[str, Any] = {"N": matrix.population, "tests": matrix.trials, "roles": str(roles)}
    for key in KEPT:
        if key in report.figures:
            one = report.figures[key]
            made[key] = {"value": one.value, "low": one.low, "high": one.high, "floor": one.floor}
    return made


def _phone_edits(changed: Mapping[Excerpt, Heard]) -> list[tuple[str, float, float]]:
    """Of queries all of whose words the dictionary has."""
    made = []
    for each, heard in changed.items():
        if each.role == QUERY and (phones := said(each.text)):
            wrong = count_edits(names_of(heard.phones), phones)
            made.append((each.speaker, float(wrong), float(len(phones))))
    return made


def _pitch(clear: FloatArray, changed: FloatArray) -> tuple[float, float]:
    """Spearman's and Pearson's correlation where both are voiced; NaN where there is too little."""
    from scipy.stats import pearsonr, spearmanr

    lag, _, count = find_lag(clear, changed)
    here, there = align_pitch(clear, changed, lag)
    both = (here > 0) & (there > 0)
    if count < _FEWEST_FRAMES or np.ptp(here[both]) == 0 or np.ptp(there[both]) == 0:
        return np.nan, np.nan
    one, other = here[both], there[both]
    return float(spearmanr(one, other).statistic), float(pearsonr(one, other).statistic)
