"""Which limits each figure has, or why it has none: what simulation bears out.

Source: docs/method.md section 12.

Coverage of each is measured by ``python -m benchmarks.coverage`` and stands in docs/coverage.md. A
figure that no rule names gets no limits. Where ranks cannot be told from those of permuted
speakers, limits reach to what no evidence reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from monitor.evaluation.figure import Figure
from monitor.evaluation.scores.resampling import resampled
from monitor.maths.estimate import Estimate
from monitor.maths.privacyloss import epsilon_nats
from monitor.types import FloatArray

__all__ = ["RULES", "Rule", "Sample", "limited", "no_evidence", "rule_of"]


@dataclass(frozen=True)
class Rule:
    """How the limits of a figure are found.

    Attributes:
        how: ``"share"`` of its range; ``"fitted"``, likewise, less the bias of what is fitted to
            the scores it judges; ``"signed"``, of a figure that can be negative; ``"t"``;
            ``"given"`` by its family; ``"from"`` the limits of another figure; ``"none"``.
        most: the upper end of the range, where it is not the figure's ceiling; the lower is 0.
        rest: the value of no evidence, where it is not the figure's floor.
        least: what no lower limit goes below.
        why: there are no limits.
        quiet: likewise, where there is no evidence.
    """

    how: str
    most: float | None = None
    rest: float | None = None
    least: float | None = None
    why: str = ""
    quiet: str = ""


_ONE_TRIAL = "one trial decides it"
_MOST_FIRST = "they hold too seldom where most ranks are 1"
_OVERSURE = "a few speakers of whom it is wrongly sure decide it"
_SCORES = "scores are not independent"
RULES: Mapping[str, Rule] = {
    "srd.mean_bits": Rule("none", why="those of the model's MeanD hold"),
    "srd.mean_bits_miller_madow": Rule("none", why="those of the model's MeanD hold"),
    "srd.mean_bits_model": Rule("share"),
    "srd.null_mean_bits": Rule("given"),
    "srd.null_model_bits": Rule("given"),
    "srd.idr": Rule("share"),
    "srd.rank1_bits": Rule("from"),
    "srd.stdd_bits": Rule("none", why=_MOST_FIRST),
    "srd.maxd_bits": Rule("share", rest=0.0),
    "srd.maxd_rank": Rule("none", why="it jumps from one resample to the next"),
    "srd.spread": Rule(
        "share", most=1.0, quiet="without evidence it is chance which ranks are likelier"
    ),
    "srd.alpha": Rule("t", rest=1.0, least=0.0),
    "srd.beta": Rule("none", why=_MOST_FIRST),
    "srd.speaker_bits_median": Rule("given"),
    "srd.speaker_bits": Rule("given"),
    "lid.alid_bits": Rule("signed"),
    "lid.pdr": Rule("share", rest=0.5),
    "lid.ndr": Rule("share", rest=0.5),
    "lid.positive_bits": Rule("share", rest=0.0),
    "lid.negative_bits": Rule("t", rest=0.0),
    "lid.max_bits": Rule("none", why=_ONE_TRIAL),
    "longitudinal.sum_bits": Rule("none", why=_OVERSURE),
    "longitudinal.average_bits": Rule("none", why="they would leave out its calibration"),
    "longitudinal.temperature_bits": Rule("signed"),
    "longitudinal.count_bits": Rule("signed"),
    "longitudinal.rank_bits": Rule("none", why=_OVERSURE),
    "zebra.d_ece_bits": Rule("fitted"),
    "zebra.log10_l": Rule("none", why=_ONE_TRIAL),
    "verification.eer_rocch": Rule("fitted", most=0.5),
    "verification.eer_nearest": Rule("share", most=1.0),
    "verification.cllr_bits": Rule("t", rest=np.nan),
    "verification.min_cllr_bits": Rule("fitted", most=1.0),
    "linkage.d_sys": Rule("fitted"),
    "linkage.pi_link": Rule("share"),
    "linkage.pi_sing": Rule("share"),
    "among.supported": Rule("given"),
    "among.idr": Rule("share"),
    "among.meand": Rule("share"),
    "among.idr_beta_binomial": Rule("given"),
    "among.idr_probit": Rule("given"),
    "among.idr_logit": Rule("given"),
    "among.idr_pitman_yor": Rule("given"),
    "among.meand_beta_binomial": Rule("share"),
    "among.meand_probit": Rule("share"),
    "anonymity.mean_rank_p50": Rule("given"),
    "anonymity.mean_rank_p1": Rule("given"),
    "anonymity.share_rank_at_most": Rule("share"),
    "anonymity.worst_rank": Rule("none"),
    "membership.tpr": Rule("share"),
    "membership.epsilon_nats": Rule("from"),
    "membership.half_trials_tpr": Rule("none", why=_SCORES),
    "membership.half_trials_epsilon_nats": Rule("none", why=_SCORES),
}
"""By key, without the style of LID and without the number that ends a key."""

_UNKNOWN = Rule("none", why="how often they hold was not measured")
_VARIANT = re.compile(r"(?<=^lid\.)(paper|repo)\.|_at_\d[\d.e-]*$|_(\d+|all)$")


def rule_of(key: str) -> Rule | None:
    """The rule for a figure; None where none was made.

    Example:
        >>> rule_of("lid.repo.pdr").how, rule_of("membership.tpr_at_1e-3").how
        ('share', 'share')
    """
    return RULES.get(_VARIANT.sub("", key))


@dataclass(frozen=True)
class Sample:
    """What figures were resampled over.

    Attributes:
        weights: shape (B + J, S), from `resamples` and `leaving_out`; None where nothing was.
        units: speakers with a mated score.
        trials: of theirs.
        nothing: whether scores are not told from no evidence.
    """

    weights: FloatArray | None
    units: int
    trials: int
    nothing: bool = False


def no_evidence(figures: Iterable[Figure]) -> bool:
    """Whether permuted speakers read as much: the law's MeanD lies within its null band.

    Args:
        figures: of SRD.
    """
    found = {figure.key: figure for figure in figures}
    own, band = found.get("srd.mean_bits_model"), found.get("srd.null_model_bits")
    if own is None or own.value is None or band is None or band.high is None:
        return False
    return own.value <= band.high


def limited(figures: Iterable[Figure], sample: Sample) -> tuple[Figure, ...]:
    """Give figures their limits, or say why they have none.

    Args:
        figures: of a family, all together; `Figure.draws` has one for each row of the weights.
        sample: what they were resampled over; without weights nothing changes.

    Returns:
        the same; draws are those of the resamples, `Figure.left_out` the others. Limits hold the
        value between them.
    """
    if sample.weights is None:
        return tuple(figures)
    whole = resampled(sample.weights)
    found = {}
    for figure in figures:
        if figure.draws is not None:
            figure = replace(figure, draws=figure.draws[whole], left_out=figure.draws[~whole])
        found[figure.key] = _limited(figure, sample)
    return tuple(_followed(figure, found) for figure in found.values())


def _limited(figure: Figure, sample: Sample) -> Figure:
    rule = rule_of(figure.key) or (_UNKNOWN if figure.draws is not None else Rule("given"))
    why = rule.why or (rule.quiet if sample.nothing else "")
    if why and figure.value is not None:
        said = f"{figure.note.rstrip('.')}; " if figure.note else ""
        return replace(figure, low=None, high=None, note=f"{said}no limits: {why}")
    if figure.value is None or figure.draws is None or figure.left_out is None:
        return figure
    low, high = figure.low, figure.high
    if rule.how not in ("given", "from", "none"):
        found = Estimate(figure.value, figure.draws, figure.left_out, sample.units, sample.trials)
        if not found.exists:
            return figure
        if sample.nothing:  # where ranks tell nobody apart, nobody decides a figure
            found = replace(found, left_out=found.left_out[:0])
        low, high = _of(found, rule, figure.ceiling)
        if rule.least is not None:
            low = max(low, rule.least)
        rest = figure.floor if rule.rest is None else rule.rest
        if sample.nothing and rest is not None and not np.isnan(rest):
            low, high = min(low, rest), max(high, rest)
    if low is None or high is None:
        return figure
    return replace(figure, low=min(low, figure.value), high=max(high, figure.value))


def _of(found: Estimate, rule: Rule, ceiling: float | None) -> tuple[float, float]:
    most = rule.most or ceiling
    if rule.how == "t" or most is None or most <= 0:
        return found.t_limits()
    if rule.how == "signed":
        return found.signed_limits(most)
    return found.share_limits(0.0, most, fitted=rule.how == "fitted")


def _followed(figure: Figure, found: Mapping[str, Figure]) -> Figure:
    """Limits of what is a function of another figure are that function of its limits."""
    if figure.value is None:
        return figure
    stem, _, rate = figure.key.partition("_at_")
    if figure.key == "srd.rank1_bits":
        ends = found["srd.idr"].limits
        change = _bits_of(2.0 ** (figure.ceiling or 0.0))
    elif stem == "membership.epsilon_nats":
        ends = found[f"membership.tpr_at_{rate}"].limits
        change = _epsilon_at(float(rate))
    else:
        return figure
    if ends[0] is None or ends[1] is None:
        return figure
    low, high = change(ends[0]), change(ends[1])
    return replace(figure, low=min(low, figure.value), high=max(high, figure.value))


def _bits_of(people: float) -> Callable[[float], float]:
    return lambda share: float(np.log2(people * max(share, np.finfo(float).tiny)))


def _epsilon_at(fpr: float) -> Callable[[float], float]:
    return lambda tpr: max(0.0, float(epsilon_nats(tpr, fpr)))
