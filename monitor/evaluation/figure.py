"""One number of a report, with its limits, ceiling, floor and notes."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.types import FloatArray

__all__ = ["Figure"]


@dataclass(frozen=True)
class Figure:
    """A named value with its limits.

    Attributes:
        key: stable name in JSON, family first: ``"srd.mean_bits"``.
        label: what a table calls it: ``"MeanD"``.
        value: the figure on all trials; None where it does not exist (the reason is in `note`).
        unit: ``"bits"``, ``"nats"``, ``"share"`` (0 to 1), ``"rank"``, ``"log10"``, ``"count"`` or
            ``""``.
        replicates: shape (B,), the same figure on each bootstrap replicate of speakers; NaN where
            it does not exist there. None where it was not resampled.
        ceiling: the most it can be on this many trials and speakers; None where there is no such
            limit.
        floor: the value that means no evidence, where one can be named.
        ties: how equal scores were treated: ``"spread"``, ``"optimistic"``, ``"pooled"``,
            ``"strict"`` ...; empty where ties do not matter.
        note: one plain sentence, where the figure misleads or is missing.
        low: lower limit, found by `monitor.evaluation.limits.limited`; None where there is none,
            and the note says why.
        high: as `low`.
        left_out: shape (J,), as `replicates`, with each speaker, or each group of them, left out.
        text: what stands for the value where it is not a number, such as ZEBRA's tag.

    Example:
        >>> Figure("x.y_bits", "Y", 2.0, "bits", low=1.5, high=2.25).limits
        (1.5, 2.25)
    """

    key: str
    label: str
    value: float | None
    unit: str
    replicates: FloatArray | None = None
    ceiling: float | None = None
    floor: float | None = None
    ties: str = ""
    note: str = ""
    low: float | None = None
    high: float | None = None
    text: str = ""
    left_out: FloatArray | None = None

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Lower and upper limit, 95 %; None where there are none."""
        return self.low, self.high
