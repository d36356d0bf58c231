"""Every figure by a short, stable name, with what it says in a few plain words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from monitor.errors import UsageError

__all__ = [
    "AMONG",
    "CATALOGUE",
    "MAIN",
    "Entry",
    "chosen",
    "families",
    "is_bracket",
    "main_keys",
    "needs_ranks",
    "short_name",
]


class Entry(NamedTuple):
    """One figure.

    Attributes:
        name: short, for ``--figures`` and tables of others.
        key: of the `Figure`.
        says: what it says, for who has not read the papers.
    """

    name: str
    key: str
    says: str


def families(keys: Iterable[str]) -> dict[str, list[str]]:
    """Keys by family, both in the order in which they come.

    Example:
        >>> families(["a.x", "b.y", "a.z"])
        {'a': ['a.x', 'a.z'], 'b': ['b.y']}
    """
    grouped: dict[str, list[str]] = {}
    for key in keys:
        grouped.setdefault(key.split(".")[0], []).append(key)
    return grouped


_LOSSES = ("ll", "ms", "wms", "rwms", "cll")
_RATES = ("1e-2", "1e-3", "1e-4")
_SRD = (
    ("meand", "mean_bits_model", "bits that a trial discloses on average, by the law of its ranks"),
    ("meand_counted", "mean_bits", "the same counted from the ranks: too high on few trials"),
    ("meand_corrected", "mean_bits_miller_madow", "that count, its bias taken off"),
    ("meand_nothing", "null_model_bits", "what meand reads where nothing is disclosed"),
    ("meand_counted_nothing", "null_mean_bits", "what meand_counted reads there"),
    ("nothing_chance", "null_chance", "how often nothing disclosed reads as much as meand"),
    ("idr", "idr", "share of trials in which the right person comes first"),
    ("rank1_bits", "rank1_bits", "bits that a first rank discloses"),
    ("stdd", "stdd_bits", "how unequal the ranks are, bits"),
    ("maxd", "maxd_bits", "bits that the most telling rank discloses"),
    ("maxd_rank", "maxd_rank", "which rank that is"),
    ("spread", "spread", "share of ranks that are likelier than by chance"),
    ("alpha", "alpha", "first parameter of the law"),
    ("beta", "beta", "its second parameter"),
    ("speaker_median", "speaker_bits_median", "bits that the median speaker discloses"),
    ("speaker_95", "speaker_bits_95", "bits that one speaker in twenty exceeds"),
    *((f"kl_{loss}", f"kl_{loss}_bits", f"misfit of the law fitted by {loss.upper()}, bits")
      for loss in _LOSSES),
    *((f"rank1_match_{loss}", f"rank1_match_{loss}_bits", f"its misfit at rank 1 ({loss.upper()})")
      for loss in _LOSSES),
)  # fmt: skip
_LID = (
    ("alid", "alid_bits", "bits that a trial gives a calibrated attacker, on average"),
    ("pdr", "pdr", "share of trials that give something away"),
    ("ndr", "ndr", "share that give nothing, or mislead"),
    ("lid_plus", "positive_bits", "mean of those that give something away"),
    ("lid_minus", "negative_bits", "mean of the others"),
    ("lid_max", "max_bits", "bits of the most telling trial"),
)
_HEARD = (
    ("sum", "as if its trials were independent"),
    ("average", "by their average"),
    ("temperature", "by one temperature for any number"),
    ("count", "by a temperature that grows with their number"),
    ("embedding", "by a temperature that grows with their likeness"),
    ("rank", "by the product of rank laws"),
)
_SCORES = (
    ("d_ece", "zebra.d_ece_bits", "bits disclosed on average over all beliefs held before"),
    ("log10_l", "zebra.log10_l", "the strongest evidence in any score, decimal logarithm"),
    ("tag", "zebra.tag", "its category, 0 and A to F"),
    ("eer", "verification.eer_rocch", "equal error rate on the convex hull; 50 % is no evidence"),
    ("eer_nearest", "verification.eer_nearest", "the same at the nearest threshold (VoicePrivacy)"),
    ("cllr", "verification.cllr_bits", "cost of the scores as log-likelihood ratios, bits"),
    ("min_cllr", "verification.min_cllr_bits", "that cost calibrated ideally; 1 is no evidence"),
    ("d_sys", "linkage.d_sys", "how little the two histograms of scores overlap, 0 to 1"),
    ("pi_link_2", "linkage.pi_link_2", "chance to pick the right one of two people"),
    ("pi_link_10", "linkage.pi_link_10", "chance to pick the right one of ten"),
    ("pi_link", "linkage.pi_link_all", "chance to pick the right one of all"),
    ("pi_sing", "linkage.pi_sing", "chance to isolate exactly one person; 37 % is no evidence"),
    ("mean_rank", "anonymity.mean_rank_p50", "mean rank of the median speaker"),
    ("mean_rank_p1", "anonymity.mean_rank_p1", "mean rank of the most exposed 1 % of speakers"),
    *((f"rank_{k}", f"anonymity.share_rank_at_most_{k}", f"share of trials at rank {k} or nearer")
      for k in (1, 5, 10, 50, 100)),
    ("worst_rank", "anonymity.worst_rank", "the nearest that any trial comes"),
)  # fmt: skip
_MEMBERSHIP = (
    ("tpr", "tpr", "share recognised by who allows a false alarm rate of {}"),
    ("fpr", "realised_fpr", "the rate that was reached for {}"),
    ("epsilon", "epsilon_nats", "log-ratio of the two, nats"),
    ("epsilon_low", "epsilon_lower_nats", "what the mechanism's epsilon is at least, nats"),
    ("epsilon_mirrored", "epsilon_lower_mirrored_nats", "the same where scores point away"),
    ("tpr_half", "half_trials_tpr", "tpr_{} on half of the scores"),
    ("epsilon_half", "half_trials_epsilon_nats", "epsilon_{} on half of the scores"),
)
_ACCOUNTING = ("basic", "advanced", "optimal")

CATALOGUE = (
    *(Entry(name, f"srd.{key}", says) for name, key, says in _SRD),
    *(Entry(name, f"lid.{key}", says) for name, key, says in _LID),
    *(Entry(f"{name}_code", f"lid.repo.{key}", f"{name}, calibrated as the authors' code does")
      for name, key, _ in _LID),
    *(Entry(f"heard_{rule}", f"longitudinal.{rule}_bits", f"bits after several trials, {how}")
      for rule, how in _HEARD),
    *(Entry(*each) for each in _SCORES),
    *(Entry(f"{name}_{rate}", f"membership.{key}_at_{rate}", says.format(rate))
      for rate in _RATES for name, key, says in _MEMBERSHIP),
    *(Entry(f"{rule}_{count}", f"accounting.{rule}_nats_{count}",
            f"epsilon left after {count} trial{'s' * (count > 1)}, {rule} composition")
      for count in (1, 10, 100, 1000) for rule in _ACCOUNTING),
)  # fmt: skip
"""All of them, families together."""

MAIN = (
    "srd.mean_bits_model",
    "srd.idr",
    "lid.alid_bits",
    "lid.max_bits",
    "zebra.d_ece_bits",
    "zebra.tag",
    "verification.eer_rocch",
    "verification.min_cllr_bits",
    "linkage.d_sys",
    "linkage.pi_link_10",
    "anonymity.mean_rank_p50",
    "membership.tpr_at_1e-3",
    "membership.epsilon_lower_nats_at_1e-3",
)
"""Keys of the figures to look at first."""

AMONG = (
    ("among.supported", "people that the bracket of idr is supported for"),
    ("among.idr_M", "share of trials in which the right one of M people comes first: the bracket"),
    ("among.idr_FORM_M", "the same by one form: beta_binomial, probit, logit or pitman_yor"),
    ("among.meand_M", "bits that a trial discloses among M people: the bracket"),
    ("among.meand_FORM_M", "the same by one form: beta_binomial or probit"),
)
"""Of what is asked for by numbers of people M: keys, which are names as well, and what they say."""

_BRACKET = re.compile(r"among\.(supported|(idr|meand)_\d+)")
_NAME_OF = {entry.key: entry.name for entry in CATALOGUE}
_KEYS_OF = {entry.name: (entry.key,) for entry in CATALOGUE} | {"main": MAIN}


def is_bracket(key: str) -> bool:
    """Whether a figure among M people is of all forms together, and not of one.

    Example:
        >>> is_bracket("among.idr_1000000"), is_bracket("among.idr_probit_1000000")
        (True, False)
    """
    return _BRACKET.fullmatch(key) is not None


def main_keys(keys: Iterable[str]) -> list[str]:
    """Those to look at first: `MAIN`, and the brackets of what was asked for by number of people.

    Example:
        >>> main_keys(["srd.spread", "among.idr_500", "among.idr_logit_500", "srd.idr"])
        ['srd.idr', 'among.idr_500']
    """
    have = list(keys)
    return [key for key in MAIN if key in have] + [key for key in have if is_bracket(key)]


def short_name(key: str) -> str:
    """The short name of a figure; its key where it has none.

    Example:
        >>> short_name("verification.eer_rocch")
        'eer'
    """
    return _NAME_OF.get(key, key)


def needs_ranks(key: str) -> bool:
    """Whether a figure wants trials that were compared with every speaker, not any comparisons.

    Example:
        >>> needs_ranks("linkage.pi_link_all"), needs_ranks("linkage.d_sys")
        (True, False)
    """
    family = key.split(".")[0]
    return family not in ("zebra", "verification", "membership") and key != "linkage.d_sys"


def chosen(names: Sequence[str], keys: Iterable[str] = ()) -> tuple[str, ...]:
    """The keys that names stand for, in the order of the names.

    Args:
        names: short names, keys, families (``"zebra"``) or ``"main"``; case does not matter.
        keys: known beside those of the catalogue.

    Raises:
        UsageError: a name is unknown; the message has those that look like it.

    Example:
        >>> chosen(["EER", "zebra"])[:2]
        ('verification.eer_rocch', 'zebra.d_ece_bits')
        >>> chosen(["dece"])
        Traceback (most recent call last):
        ...
        monitor.errors.UsageError: no figure 'dece': do you mean d_ece? --figures help has them all
    """
    known = dict.fromkeys((*(entry.key for entry in CATALOGUE), *keys))
    meant = {**{key: (key,) for key in known}, **families(known), **_KEYS_OF}
    found: dict[str, None] = {}
    for name in names:
        if name.lower() not in meant:
            near = difflib.get_close_matches(name.lower(), list(meant), 4)
            ask = f"do you mean {' or '.join(near)}? " if near else ""
            raise UsageError(f"no figure {name!r}: {ask}--figures help has them all")
        found |= dict.fromkeys(meant[name.lower()])
    return tuple(found)
