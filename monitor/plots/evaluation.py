"""The pictures of an evaluation, one system or several in each, for a page of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from monitor.plots.axes import legend, numbers, percents
from monitor.plots.crowd import Crowd, paint_crowd
from monitor.plots.inline import COLOURS, MUTED, inline_svg
from monitor.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Curves", "Line", "Picture", "pictures"]

_LAW_DASHES = {"LL": "-", "MS": "--", "WMS": "-.", "RWMS": ":", "CLL": (0, (6, 1, 1, 1, 1, 1))}


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
    crowd: Crowd | None = None

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


_Systems: TypeAlias = Sequence[tuple[str, Curves]]
"""With the colour of each."""


def pictures(systems: Sequence[Curves]) -> tuple[Picture, ...]:
    """Draw everything that at least one of the systems has.

    Args:
        systems: one or several; they are told apart by colour, in the order given.

    Returns:
        the pictures, in the order of the page.
    """
    coloured = [(COLOURS[i % len(COLOURS)], each) for i, each in enumerate(systems)]
    return tuple(
        Picture(
            title,
            caption,
            inline_svg(partial(paint, systems=have), name, title),
        )
        for name, title, caption, paint in _PICTURES
        if (have := [(c, each) for c, each in coloured if getattr(each, name, None) is not None])
    )


def _ranks(axes: Axes, systems: _Systems) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    alone = len(systems) == 1
    lowest = 1.0
    for colour, each in systems:
        assert each.ranks is not None
        seen = each.ranks.y > 0
        axes.plot(
            each.ranks.x[seen], each.ranks.y[seen], "o", color=colour, markersize=3, alpha=0.55,
            markeredgewidth=0, label="seen" if alone else None,
        )  # fmt: skip
        lowest = min(lowest, float(each.ranks.y[seen].min()), 1 / each.speakers)
        for loss, law in each.laws.items() if alone else list(each.laws.items())[:1]:
            first, dashes = loss == "LL", _LAW_DASHES.get(loss, "-")
            axes.plot(
                law.x, law.y, color=colour if first else MUTED, linestyle=dashes,
                linewidth=1.6 if first else 0.9, label=f"law, {loss}" if alone else None,
            )  # fmt: skip
    count = systems[0][1].speakers
    axes.axhline(1 / count, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)), label="chance")
    axes.set_ylim(lowest / 3, 1.5)
    numbers(axes.xaxis)
    percents(axes.yaxis)
    legend(axes)
    axes.set_xlabel("rank of the speaker")
    axes.set_ylabel("share of trials")


def _speakers(axes: Axes, systems: _Systems) -> None:
    found = np.concatenate([each.speaker_bits for _, each in systems if _has(each.speaker_bits)])
    edges = np.linspace(min(0.0, found.min()), max(found.max(), 0.1), 25)
    for colour, each in systems:
        bits = each.speaker_bits
        assert bits is not None
        share = np.histogram(bits, edges)[0] / bits.size
        axes.stairs(share, edges, fill=True, color=colour, alpha=0.22)
        axes.stairs(share, edges, color=colour, linewidth=1.4)
        axes.axvline(float(bits.mean()), color=colour, linewidth=1, linestyle="--")
    percents(axes.yaxis)
    axes.set_xlabel("bits that a speaker discloses on average (dashed: the mean)")
    axes.set_ylabel("share of speakers")


def _local(axes: Axes, systems: _Systems) -> None:
    lines = [each.local_bits for _, each in systems if each.local_bits is not None]
    left = min(float(line.x[0]) for line in lines) - 0.3
    for (colour, each), line in zip(systems, lines, strict=True):
        axes.step([left, *line.x], [1.0, *line.y], where="pre", color=colour)
        _wall(axes, each.ceiling_bits)
    axes.axvline(0.0, color=MUTED, linewidth=0.8)
    axes.set_xlim(left=left)
    axes.set_ylim(0, 1.02)
    percents(axes.yaxis)
    axes.set_xlabel("local disclosure of a trial, bits (left of 0: misled)")
    axes.set_ylabel("share of trials with at least that")


def _ece(axes: Axes, systems: _Systems) -> None:
    alone, nothing = len(systems) == 1, systems[0][1].ece_nothing
    if nothing is not None:
        axes.plot(nothing.x, nothing.y, color=MUTED, linestyle=":", label="no evidence")
    for colour, each in systems:
        line = each.ece
        assert line is not None
        if alone and nothing is not None:
            axes.fill_between(line.x, line.y, nothing.y, color=colour, alpha=0.13, linewidth=0)
        axes.plot(line.x, line.y, color=colour, label="after these scores" if alone else None)
    axes.set_ylim(0, 1.3)
    legend(axes)
    axes.set_xlabel("what the attacker believed before: log10 of the odds")
    axes.set_ylabel("remaining uncertainty, bits")


def _roc(axes: Axes, systems: _Systems) -> None:
    resolved = min(1 / each.non_mated for _, each in systems)
    left = max(min(0.3 * resolved, 3e-4), 1e-6)
    axes.set_xscale("log")
    for colour, each in systems:
        assert each.roc is not None
        axes.step(np.maximum(each.roc.x, left), each.roc.y, where="post", color=colour)
    x = np.geomspace(left, 1, 100)
    axes.plot(x, x, color=MUTED, linestyle=":", linewidth=1)
    axes.axvspan(left, max(left, resolved), color=MUTED, alpha=0.15, linewidth=0)
    axes.set_xlim(left, 1)
    axes.set_ylim(0, 1.02)
    percents(axes.xaxis)
    percents(axes.yaxis)
    shaded = " (shaded: fewer than one score)" if resolved > left else ""
    axes.set_xlabel(f"false positive rate{shaded}")
    axes.set_ylabel("true positive rate")


def _det(axes: Axes, systems: _Systems) -> None:
    from scipy.special import ndtri

    ticks = np.array([0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])
    edge = 5e-4
    for colour, each in systems:
        assert each.det is not None
        x, y = (np.clip(v, edge / 10, 1 - edge / 10) for v in (each.det.x, each.det.y))
        axes.plot(ndtri(x), ndtri(y), color=colour)
    axes.plot(ndtri([edge, 1 - edge]), ndtri([1 - edge, edge]), color=MUTED, linestyle=":")
    axes.plot(ndtri([edge, 1 - edge]), ndtri([edge, 1 - edge]), color=MUTED, linewidth=0.6)
    for axis, limits in ((axes.xaxis, axes.set_xlim), (axes.yaxis, axes.set_ylim)):
        axis.set_ticks(ndtri(ticks).tolist(), [f"{100 * tick:g} %" for tick in ticks])
        limits(ndtri(edge), ndtri(1 - edge))
    axes.set_xlabel("false alarms")
    axes.set_ylabel("misses")


def _heard(axes: Axes, systems: _Systems) -> None:
    alone = len(systems) == 1
    for colour, each in systems:
        line = each.heard
        assert line is not None
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.16, linewidth=0)
        axes.plot(
            line.x, line.y, "o-", color=colour, markersize=3.5, label="measured" if alone else None
        )
        for (name, guide), dashes in zip(each.guides.items(), ("--", ":"), strict=False):
            axes.plot(
                guide.x, guide.y, color=colour, linestyle=dashes, linewidth=1, alpha=0.8,
                label=name if alone else None,
            )  # fmt: skip
        axes.axhline(each.ceiling_bits, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
    most = max(each.ceiling_bits for _, each in systems)
    lowest = min(float(np.nanmin(each.heard.y)) for _, each in systems if each.heard is not None)
    axes.set_ylim(min(0.0, 1.1 * lowest), 1.09 * most)
    axes.annotate(
        "ceiling", (0.99, most), xycoords=("axes fraction", "data"), ha="right", va="bottom",
        color=MUTED, fontsize=8,
    )  # fmt: skip
    axes.locator_params(axis="x", integer=True)
    if alone:
        legend(axes)
    axes.set_xlabel("trials of one speaker heard")
    axes.set_ylabel("bits disclosed, mean over speakers")


def _linkage(axes: Axes, systems: _Systems) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for colour, each in systems:
        assert each.linkage is not None
        axes.plot(each.linkage.x, each.linkage.y, color=colour)
    sizes = np.geomspace(2, max(each.speakers for _, each in systems), 50)
    axes.plot(sizes, 1 / sizes, color=MUTED, linestyle=":", label="by chance")
    legend(axes)
    numbers(axes.xaxis)
    percents(axes.yaxis)
    axes.set_xlabel("people to choose from")
    axes.set_ylabel("chance to pick the right one")


def _has(values: FloatArray | None) -> bool:
    return values is not None and bool(values.size)


def _wall(axes: Axes, bits: float) -> None:
    axes.axvline(bits, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))


_PICTURES: tuple[tuple[str, str, str, Callable[..., None]], ...] = (
    ("ranks", "How far up the attacker's list the speaker stands",
     "Share of trials at each rank, and the fitted rank law; wide ranks are averaged. Flat at "
     "chance: nothing is disclosed.", _ranks),
    ("speaker_bits", "Not everybody discloses the same",
     "Mean disclosure of each tested speaker.", _speakers),
    ("local_bits", "How much single trials disclose",
     "Read at a number of bits how many trials disclose at least as much. The tail on the right "
     "is the worst case, left of 0 the attacker is misled.", _local),
    ("heard", "What hearing more discloses",
     "Bits after several trials of one speaker, beside linear and square-root growth from the "
     "first. The guides are no guarantee.", _heard),
    ("ece", "What is left to learn, whatever the attacker believed before",
     "Empirical cross-entropy after ideal calibration of the scores. The space below no evidence, "
     "averaged over all beliefs, is ZEBRA's expected disclosure.", _ece),
    ("roc", "Sure hits: the true positives at few false ones",
     "Dotted curve: guessing. An attacker who must not be wrong works on the far left.", _roc),
    ("det", "Misses against false alarms",
     "Detection error trade-off; the equal error rate is where a curve meets the diagonal. On the "
     "dotted line nothing is known.", _det),
    ("linkage", "The smaller the circle, the easier",
     "Chance that the speaker is the best match among N′ people.", _linkage),
    ("crowd", "Among more people than were scored",
     "Dots: measured among random parts of the enrolled. Lines: four forms fitted to the dots; far "
     "out they part. Shaded: from the lowest to the highest, with 95 % limits over speakers; pale "
     "beyond the upright line, where so few enrolled do not support it.", paint_crowd),
)  # fmt: skip
