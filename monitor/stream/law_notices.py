"""What a reader of a run needs to know of the law behind it."""

from __future__ import annotations

from monitor.phrases import plural
from monitor.population.flattering import flattery
from monitor.stream.monitor import Monitor

__all__ = ["ENROLLED_TOO", "law_notices"]

ENROLLED_TOO = "this recording was enrolled too"
"""How a notice begins that is of one recording alone."""

_WORTH_SAYING = 0.05


def law_notices(monitor: Monitor) -> list[str]:
    """One line each: where the law comes from, and by how much it may flatter the attacker."""
    attacker, notices = monitor.attacker, []
    law = attacker.law

    def told() -> str:
        specs = {name: monitor.population.specs[name] for name in attacker.features}
        return flattery(specs, attacker.speakers, attacker.scoring.seconds)

    if attacker.flatters:
        notices.append(
            "no cross-session law could be learnt: the same-session law used here flatters the "
            f"attacker, {told()}; calibrate on 10 speakers or more with two sessions each"
        )
    elif attacker.session == "same":
        notices.append(
            f"{ENROLLED_TOO}: the same-session law is used; another day's "
            f"recording discloses less, {told()}"
        )
    if monitor.session == "same" and attacker.session == "cross":
        notices.append(
            f"{ENROLLED_TOO}, but there is no same-session law: the cross-session "
            "law used here makes light of what it discloses"
        )
    if law.origin == "shipped":
        notices.append(
            "the cross-session law is that of the shipped readers: too few of the speakers "
            "calibrated on have two sessions. What their one session says would flatter the "
            f"attacker, {told()}"
        )
    elif monitor.borrowed:
        notices.append(
            "the rank law is borrowed: it was learnt without some of these speakers; another "
            "microphone makes a voice easier to tell from the rest, and of people who share it "
            "some show a bit or two of evidence too much"
        )
    elif law.prior_share >= _WORTH_SAYING:
        notices.append(
            f"of the rank law {100 * law.prior_share:.0f} % is the shipped readers', which keeps "
            f"the rest, learnt from {plural(law.speakers, 'speaker')}, from claiming too much"
        )
    if attacker.evidence_law is not None and attacker.evidence_lacks:
        notices.append(
            f"evidence, and what is said of other crowds, is of "
            f"{'+'.join(attacker.evidence_law.features)} alone: {attacker.evidence_lacks} "
            "(monitor calibrate --cohort, of people with words); an attacker who "
            "weighs what is said too may learn more"
        )
    elif attacker.evidence_lacks:
        notices.append(
            f"nothing can be said beyond the {attacker.speakers} enrolled: "
            f"{attacker.evidence_lacks} (monitor calibrate)"
        )
    if attacker.speakers > 10 * law.candidates:
        notices.append(
            f"{attacker.speakers} speakers are more than ten times the "
            f"{law.candidates} that the rank law was learnt on"
        )
    return notices
