"""What an attack came to, in words: the strongest attacker's figure first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from monitor.attacks.attackers import ATTACKERS, attacker_named
from monitor.attacks.hearing import CLEAR
from monitor.attacks.results import BITS, AttackResults, AttackRow
from monitor.features.registry import takes
from monitor.maths.ranks import first_rank_bits
from monitor.phrases import plural, weaker_together
from monitor.protected_words import IGNORANT, NO_MEASURE, attacker_in_words

__all__ = ["caveats", "headline", "method_name", "said_bits", "way_of"]

_MANY_UNHEARD = 0.05
# Of log2 N; as the experiments' (monitor.experiment.findings.contrasts).
_FULL = 0.95
_ENOUGH = 10
_MOST_NAMED, _WORTH_BITS = 3, 0.3


def method_name(method: str) -> str:
    """A method for people; of a command the programs, not where they lie.

    Example:
        >>> method_name("command:/opt/mine --strong")
        '`mine --strong`'
    """
    kind, _, command = method.partition(":")
    if kind != "command":
        return method
    return f"`{' '.join(word.rpartition('/')[2] or word for word in command.split())}`"


def said_bits(row: AttackRow) -> str:
    """Bits with their limits, as in 2.31 bits (1.90 to 2.70)."""
    low, high = row.figures[BITS].limits
    between = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    return f"{row.bits:.2f} bits{between}"


def way_of(row: AttackRow) -> str:
    """How a row attacks, in a few words."""
    scored = ", max scoring" if row.scoring == "max" else ""
    return f"{row.attacker}, {row.feature}, {plural(row.segments, 'segment')} enrolled{scored}"


def headline(results: AttackResults) -> list[str]:
    """One sentence a method, the method that discloses most first; the baseline; the ceiling.

    Every figure is that of the strongest attack that was tried, whatever it took.
    """
    baseline = results.strongest(CLEAR)
    lines = []
    for row in results.ranking():
        if row.method == CLEAR and len(results.settings.methods) > 1:
            continue
        said = f"{method_name(row.method)}: {said_bits(row)} of {math.log2(row.speakers):.2f} "
        if row.method == CLEAR or _informed(results):
            said += f"to the strongest attacker tried ({way_of(row)}){_no_evidence(row)}."
        else:
            said += f"to {attacker_in_words(IGNORANT)} ({way_of(row)}): {NO_MEASURE}; try others."
        lines.append(said)
    if baseline is not None and len(results.settings.methods) > 1:
        lines.append(f"Unprotected: {said_bits(baseline)} ({way_of(baseline)}).")
    return lines + _at_the_ceiling(results.ranking())


def _informed(results: AttackResults) -> bool:
    """Whether anybody was tried who knows what protects: a protector is worth no more than that."""
    return any(attacker_named(name).protects for name in results.settings.attackers)


def _at_the_ceiling(strongest: Sequence[AttackRow]) -> list[str]:
    """That some figures are as high as they can be: of more readers they would be higher."""
    full = [row for row in strongest if row.bits >= _FULL * math.log2(row.speakers)]
    if not full:
        return []
    names = ", ".join(method_name(row.method) for row in full)
    readers = min(row.speakers for row in full)
    wanted = "ten readers or more" if readers < _ENOUGH else "more readers"
    return [
        f"At the ceiling: {names}. Among {plural(readers, 'reader')} no more than "
        f"{math.log2(readers):.2f} bits can be shown, and methods that stand there cannot be told "
        f"apart; test with {wanted}."
    ]


def _no_evidence(row: AttackRow) -> str:
    """Whether it could be chance."""
    null = row.figures.get("srd.null_model_bits")
    if null is None or null.high is None or row.bits > null.high:
        return ""
    return f": no more than chance reads ({null.high:.2f} bits)"


def _weaker_joints(results: AttackResults) -> dict[tuple[str, str], str]:
    """By method and attacker, where features weighed together learn less than one of them."""
    found = {}
    for method in results.settings.methods:
        rows = results.main(method)
        for attacker in dict.fromkeys(row.attacker for row in rows):
            bits = {row.feature: row.bits for row in rows if row.attacker == attacker}
            joint = bits.pop("joint", None)
            if joint is not None and (told := weaker_together(joint, bits)):
                found[method, attacker] = told
    return found


def _denied(row: AttackRow) -> bool:
    """Whether ALID is less than half of what the share of first ranks is worth by itself."""
    alid, first = row.figures.get("lid.alid_bits"), row.figures.get("srd.idr")
    if alid is None or first is None or alid.value is None or first.value is None:
        return False
    told = first_rank_bits(first.value, row.speakers)
    told = told if alid.ceiling is None else min(told, alid.ceiling)
    return first.value * row.speakers > 2 and told > _WORTH_BITS and alid.value < told / 2


def caveats(results: AttackResults) -> list[str]:
    """What a reader of the figures has to know; of these results alone."""
    settings, rows = results.settings, results.rows
    said = []
    if settings.session == "same":
        said.append(
            "Template and trials are parts of one session: a voice is easier to recognise so than "
            "on another day."
        )
    untried = [name for name in ATTACKERS if name not in settings.attackers]
    if untried:
        said.append(
            f"Not tried: {', '.join(untried)}. A stronger attacker than those tried learns more."
        )
    if any(row.law.startswith("shipped") for row in rows):
        said.append(
            "Where nothing better could be learnt joint scores are weighed by the shipped law of "
            "clear speech: an attacker with a background of protected speech weighs them better."
        )
    said += [
        f"{method_name(method)}, {attacker}: {told}."
        for (method, attacker), told in _weaker_joints(results).items()
    ]
    denied = [row for row in rows if _denied(row)]
    if denied:
        whose = dict.fromkeys(f"{method_name(r.method)}, {r.attacker}, {r.feature}" for r in denied)
        some = "; ".join([*whose][:_MOST_NAMED]) + ("; ..." if len(whose) > _MOST_NAMED else "")
        said.append(
            f"ALID contradicts the ranks ({some}): its calibration, across "
            f"{plural(settings.readers, 'reader')}, does not fit these trials: readers are few, or "
            "some trials are outliers. Go by the bits and the first ranks, or test more readers."
        )
    unheard = {
        f"{row.feature} under {method_name(row.method)}"
        for row in rows
        if row.unheard > _MANY_UNHEARD * row.trials
    }
    if unheard:
        said.append(
            f"In more than {100 * _MANY_UNHEARD:.0f} % of trials nothing was heard of "
            f"{', '.join(sorted(unheard))}: whoever has other ears may learn more."
        )
    few = {row.segments for row in rows if row.complete < row.speakers}
    if few:
        counts = ", ".join(map(str, sorted(few)))
        said.append(
            f"Not all readers have {counts} segments; they are enrolled with what they have."
        )
    ways = len({(r.attacker, r.feature, r.segments, r.scoring) for r in rows})
    said.append(
        f"The strongest of {ways} ways to attack was chosen after it was seen, which by itself "
        f"reads a little high; with {plural(settings.readers, 'reader')} a difference within the "
        "limits is none."
    )
    words = "words" in map(takes, settings.features)
    said.append(
        f"These attackers hear how a voice sounds{', and its little words' if words else ''}, for "
        f"{settings.seconds:g} s. {'What is talked about' if words else 'Words'}, other networks, "
        "other languages, more speech, and listeners who know the person were not tried: no figure "
        "here is a promise."
    )
    return said
