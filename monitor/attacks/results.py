"""What an attack found: one row for each way to attack, every figure with N, trials and limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from monitor.evaluation.figure import Figure

__all__ = ["BITS", "FIGURES", "AttackResults", "AttackRow", "Settings"]

BITS = "srd.mean_bits_model"
"""The figure by which attacks are compared: MeanD of the fitted law, whose limits hold."""
FIGURES = {
    BITS: "bits",
    "srd.null_model_bits": "bits of no evidence",
    "srd.idr": "first",
    "lid.alid_bits": "ALID",
    "lid.max_bits": "LIDmax",
    "verification.eer_rocch": "EER",
    "anonymity.mean_rank_p50": "mean rank p50",
    "anonymity.mean_rank_p1": "mean rank p1",
    "membership.tpr_at_1e-2": "TPR at FPR 1e-2",
    "membership.realised_fpr_at_1e-2": "FPR reached for 1e-2",
    "membership.epsilon_nats_at_1e-2": "epsilon at 1e-2",
    "membership.epsilon_lower_nats_at_1e-2": "epsilon at least, at 1e-2",
    "membership.tpr_at_1e-3": "TPR at FPR 1e-3",
    "membership.realised_fpr_at_1e-3": "FPR reached for 1e-3",
}
"""What is kept of each report, with the short name of its column."""


@dataclass(frozen=True, slots=True)
class AttackRow:
    """One attacker with one feature on one method.

    Attributes:
        method: of protection; ``"none"`` is the baseline.
        attacker: who.
        feature: what it hears; ``"joint"`` is all of them, weighed.
        segments: L, of which a template is made.
        scoring: ``"average"`` or ``"max"``.
        figures: by key, those of `FIGURES`.
        speakers: N, whom each trial was compared with.
        trials: how many.
        complete: readers who have all L segments; the others have fewer.
        unheard: trials in which nothing of the feature could be heard.
        law: what weighed a joint score, in words; empty otherwise.
    """

    method: str
    attacker: str
    feature: str
    segments: int
    scoring: str
    figures: Mapping[str, Figure]
    speakers: int
    trials: int
    complete: int
    unheard: int
    law: str = ""

    @property
    def bits(self) -> float:
        """MeanD."""
        value = self.figures[BITS].value
        return 0.0 if value is None else value


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for.

    Attributes:
        corpus: name of the folder.
        methods, attackers, features: names.
        seconds: T.
        template_seconds: D of the main rows.
        main_segments: L of them.
        segments: the L of the table of enrolments.
        session: ``"cross"`` or ``"same"``.
        readers: judged.
        background: readers that attackers learnt from; 0 without.
        seed: of all draws.
    """

    corpus: str
    methods: tuple[str, ...]
    attackers: tuple[str, ...]
    features: tuple[str, ...]
    seconds: float
    template_seconds: float
    main_segments: int
    segments: tuple[int, ...]
    session: str
    readers: int
    background: int
    seed: int


@dataclass(frozen=True)
class AttackResults:
    """All that was found.

    Attributes:
        settings: what was asked for.
        rows: every way to attack.
        measured: by method, what was measured beside privacy.
        attributes: tables of what else a voice tells, by name: rows that go into JSON.
        notes: what a reader of the figures has to know.
        problems: what could not be used.
    """

    settings: Settings
    rows: tuple[AttackRow, ...]
    measured: Mapping[str, Sequence[Figure]] = field(default_factory=dict)
    attributes: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def main(self, method: str) -> list[AttackRow]:
        """The rows of a method with the template that everybody has, average scoring."""
        length = self.settings.main_segments
        return [
            row
            for row in self.rows
            if (row.method, row.segments, row.scoring) == (method, length, "average")
        ]

    def strongest(self, method: str, attacker: str | None = None) -> AttackRow | None:
        """The attack that learns most of a method, whatever it took; None where none worked.

        Args:
            method: of protection.
            attacker: whose; None for anybody's.
        """
        found = (
            row for row in self.rows if row.method == method and attacker in (None, row.attacker)
        )
        return max(found, key=lambda row: row.bits, default=None)

    def ranking(self) -> list[AttackRow]:
        """The strongest attack on each method, the method that discloses most first."""
        found = [self.strongest(method) for method in self.settings.methods]
        return sorted((row for row in found if row is not None), key=lambda r: -r.bits)
