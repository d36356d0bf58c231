"""Results of an attack that were made up, for what shows them."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.lab.attacks.attackers import BITS
from monitor.lab.attacks.results import AttackResults, AttackRow, Settings
from monitor.lab.evaluation.verification import EER, HULL, NEAREST
from monitor.lab.report.model import Figure

METHODS = ("none", "mcadams:0.8", "command:/opt/anonymisers/mine --strong")


def row(
    method: str,
    attacker: str,
    bits: float,
    feature: str = "voice",
    segments: int = 5,
    scoring: str = "average",
    **more: object,
) -> AttackRow:
    figures = {
        BITS: Figure(BITS, "MeanD", bits, "bits", low=bits - 0.5, high=bits + 0.5),
        "srd.null_model_bits": Figure("n", "null", 0.02, "bits", low=0.0, high=0.1),
        NEAREST: Figure(NEAREST, EER[NEAREST], 0.27, "share", low=0.22, high=0.33),
        HULL: Figure(HULL, EER[HULL], 0.25, "share", low=0.2, high=0.3),
        "membership.epsilon_nats_at_1e-2": Figure("x", "e", None, "nats", text="infinite"),
        "membership.epsilon_lower_nats_at_1e-2": Figure("l", "e", 1.5, "nats"),
        "membership.tpr_at_1e-2": Figure("t", "TPR", 0.4, "share"),
    }
    told = {"rank_model": "", "silent": 0, "complete": 16, **more}
    return AttackRow(method, attacker, feature, segments, scoring, figures, 16, 64, **told)  # type: ignore[arg-type]


def results(rows: Sequence[AttackRow] = (), **more: object) -> AttackResults:
    settings = {
        "corpus": "voices",
        "methods": METHODS,
        "attackers": ("ignorant", "lazy-informed"),
        "features": ("voice",),
        "seconds": 10.0,
        "template_seconds": 30.0,
        "main_segments": 5,
        "segments": (1, 3),
        "session": "cross",
        "readers": 16,
        "background": 0,
        "seed": 0,
        **more,
    }
    made = tuple(rows) or (
        row("none", "ignorant", 3.5),
        row("mcadams:0.8", "ignorant", 0.2),
        row("mcadams:0.8", "lazy-informed", 3.0, segments=1),
        row("mcadams:0.8", "lazy-informed", 3.1, segments=3, scoring="max"),
        row("mcadams:0.8", "lazy-informed", 2.9),
        row(METHODS[2], "lazy-informed", 0.05),
    )
    return AttackResults(Settings(**settings), made)  # type: ignore[arg-type]
