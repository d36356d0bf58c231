from __future__ import annotations

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from monitor.lab.evaluation.family import families
from monitor.lab.plots.evaluation import Curves, Line
from monitor.plots.canvas import COLOURS
from tests.lab.evaluation.made import crowd, curves


def rising(name: str) -> Curves:
    """Scores that mislead: the points lie where those of telling scores do not."""
    rank = np.arange(1.0, 101.0)
    few = np.arange(1.0, 6.0)
    odds = np.linspace(-3, 3, 31)
    return replace(
        curves(name),
        ranks=Line(rank, rank**2 / (rank**2).sum()),
        heard=Line(few, -0.2 * few),
        guides={"linear": Line(few, 0.1 * few), "square root": Line(few, 0.05 * np.sqrt(few))},
        ece=Line(odds, 1.25 - np.exp(-odds)),
        linkage=Line(rank[1:], 0.02 + 0 * rank[1:]),
        crowd=crowd(100, 0.0),
    )


@pytest.mark.slow
@pytest.mark.parametrize("made", [curves, rising])
@pytest.mark.parametrize("systems", [1, 2])
@pytest.mark.parametrize(
    "picture",
    [each for family in families() for each in family.drawings],
    ids=lambda each: each.name,
)
def test_a_legend_lies_beside_the_points(picture, systems, made):
    figure = Figure(figsize=(4.6, 3.1), dpi=72, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    with mpl.rc_context({"font.size": 9, "legend.fontsize": 8}):
        picture.paint(axes, systems=[(COLOURS[i], made(f"s{i}")) for i in range(systems)])
        canvas.draw()
    legend = axes.get_legend()
    if legend is None:
        return
    box, room = legend.get_window_extent(), axes.get_window_extent()
    for line in axes.get_lines():
        seen = line.get_transform().transform(np.column_stack(line.get_data()))
        inside = [room.contains(x, y) for x, y in seen]
        assert not any(box.contains(x, y) for x, y in seen[np.array(inside)]), line.get_label()
    assert figure.bbox.containsx(box.x0)
    assert figure.bbox.containsx(box.x1)
