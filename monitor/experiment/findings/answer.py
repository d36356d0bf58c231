"""One answer: a question of the paper, what this corpus answers, and on how much that stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from monitor.experiment.findings.contrasts import Contrast, Surface
from monitor.phrases import plural

__all__ = [
    "AGREED",
    "FEW",
    "UNDECIDED",
    "CorpusAnswer",
    "Verdict",
    "answer",
    "basis",
    "bits_text",
    "change_text",
]

Verdict: TypeAlias = Literal["yes", "no", "undecided", "full"]
"""``"full"``: MeanD is as good as log2 N, so that lengths cannot show in it."""

FEW = 10
"""Tested speakers below whom nothing is decided."""
AGREED = 1e-9
"""Limits nearer to each other are none: every resample says the same."""
UNDECIDED = "cannot be decided with so few speakers"


@dataclass(frozen=True)
class CorpusAnswer:
    """What one system says to one question.

    Attributes:
        question: key of the question, see `monitor.experiment.findings.questions`.
        system: a feature, or the joint.
        session: ``"cross"`` or ``"same"``.
        verdict: the answer.
        text: a sentence with the numbers, their limits and what they stand on.
        numbers: the same for programs.
    """

    question: str
    system: str
    session: str
    verdict: Verdict
    text: str
    numbers: dict[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def answer(
    question: str, surface: Surface, verdict: Verdict, text: str, **contrasts: Contrast | float
) -> CorpusAnswer:
    """An answer from a sweep; of few speakers nothing is decided."""
    few = surface.any["tested"] < FEW
    numbers: dict[str, Any] = {
        name: value if isinstance(value, float) else asdict(value)
        for name, value in contrasts.items()
    }
    said = f"{text}; {UNDECIDED}" if verdict == "undecided" or few else text
    shared = surface.any
    numbers |= {name: shared[name] for name in ("speakers", "tested", "trials")}
    return CorpusAnswer(
        question,
        surface.system,
        surface.panel.session,
        "undecided" if few else verdict,
        f"{said} ({basis(surface)}).",
        numbers,
    )


def basis(surface: Surface) -> str:
    """What an answer stands on."""
    of = surface.any
    return f"N = {of['speakers']}, {of['tested']} tested, {plural(of['trials'], 'trial')} a cell"


def bits_text(value: float) -> str:
    """Bits of MeanD.

    Example:
        >>> bits_text(-0.001)
        '0.00'
    """
    return f"{value + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "\N{MINUS SIGN}")


def change_text(change: Contrast) -> str:
    """A difference with its limits.

    Example:
        >>> change_text(Contrast(1.0, 0.5, 1.5))
        '+1.00 (0.50 to 1.50)'
    """
    sign = "+" if change.value >= 0.005 else ""
    if change.high - change.low < AGREED:
        return f"{sign}{bits_text(change.value)} (all resamples agree)"
    limits = f"{bits_text(change.low)} to {bits_text(change.high)}"
    return f"{sign}{bits_text(change.value)} ({limits})"
