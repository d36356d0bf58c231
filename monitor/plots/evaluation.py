"""The pictures of an evaluation, one system or several in each, for a page of its own.

Which there are, with title and caption, each family of metrics declares as a `Drawing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from monitor.plots.identification import CrowdRates
from monitor.plots.inline import COLOURS, inline_svg
from monitor.types import FloatArray

if TYPE_CHECKING:
    pass

__all__ = [
    "POINTS",
    "Curves",
    "Drawing",
    "Line",
    "Picture",
    "Systems",
    "pictures",
]

POINTS = 240
"""Of a curve: an eye tells no more apart."""

_NOT_DRAWN = ("name", "speakers", "non_mated", "more")


@dataclass(frozen=True)
class Line:
    """Points of a curve, and its 95 % limits where it has them; shape (K,) each."""

    x: FloatArray
    y: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None


@dataclass(frozen=True)
class Curves:
    """What is drawn of one system; what is None is left out.

    Attributes:
        name: of the system.
        speakers: N.
        non_mated: how many non-mated scores there are; below one in so many, no rate is known.
        ranks: share of the trials against rank.
        laws: probability against rank, for each loss.
        speaker_bits: shape (S,), MeanD of each tested speaker.
        local_bits: share of the trials that disclose at least so many bits, against bits.
        ece: empirical cross-entropy after ideal calibration, bits, against prior log-odds
            (base 10).
        ece_nothing: the same of scores that carry nothing.
        roc: true against false positive rate.
        det: miss rate against false alarm rate.
        heard: bits against the number of trials heard.
        guides: its linear and square-root guide, by name.
        linkage: chance to link against the size of the population.
        crowd: chance to come first among more people than were scored, by several forms.
        more: what other families draw, by the name of the `Drawing`.
    """

    name: str
    speakers: int
    non_mated: int
    ranks: Line | None = None
    laws: Mapping[str, Line] = field(default_factory=dict)
    speaker_bits: FloatArray | None = None
    local_bits: Line | None = None
    ece: Line | None = None
    ece_nothing: Line | None = None
    roc: Line | None = None
    det: Line | None = None
    heard: Line | None = None
    guides: Mapping[str, Line] = field(default_factory=dict)
    linkage: Line | None = None
    crowd: CrowdRates | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, speakers: int, non_mated: int, drawn: Mapping[str, Any]) -> Curves:
        """Curves by name, those that are no attributes in `more`."""
        known = {key: drawn[key] for key in drawn if key in cls.__dataclass_fields__}
        return cls(
            name,
            speakers,
            non_mated,
            **known,
            more={key: value for key, value in drawn.items() if key not in known},
        )

    def drawn(self) -> dict[str, Any]:
        """Everything there is to draw, by name."""
        own = {key: value for key, value in vars(self).items() if key not in _NOT_DRAWN}
        return {**own, **self.more}

    @property
    def ceiling_bits(self) -> float:
        """``log2 N``."""
        return float(np.log2(self.speakers))


@dataclass(frozen=True)
class Picture:
    """One picture of the page.

    Attributes:
        title: what it shows.
        caption: how it is read.
        svg: an ``<svg>`` element.
    """

    title: str
    caption: str
    svg: str


Systems: TypeAlias = Sequence[tuple[str, Curves]]
"""With the colour of each."""


@dataclass(frozen=True)
class Drawing:
    """How a curve is drawn.

    Attributes:
        name: of what is drawn: an attribute of `Curves`, or a key of `Curves.more`.
        title: what the picture shows.
        caption: how it is read.
        paint: draws those systems that have it: takes axes and `Systems`.
    """

    name: str
    title: str
    caption: str
    paint: Callable[..., None]


def pictures(systems: Sequence[Curves], drawings: Sequence[Drawing]) -> tuple[Picture, ...]:
    """Draw everything that at least one of the systems has.

    Args:
        systems: one or several; they are told apart by colour, in the order given.
        drawings: what to draw, and how.

    Returns:
        the pictures, in the order of the page.
    """
    coloured = [(COLOURS[i % len(COLOURS)], each) for i, each in enumerate(systems)]
    return tuple(
        Picture(each.title, each.caption,
                inline_svg(partial(each.paint, systems=have), each.name, each.title))
        for each in drawings
        if (have := [(c, s) for c, s in coloured if s.drawn().get(each.name) is not None])
    )  # fmt: skip
