from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from monitor.figures.evaluation import _PICTURES
from monitor.figures.inline import COLOURS
from tests.evaluation.made import curves


@pytest.mark.parametrize("systems", [1, 2])
@pytest.mark.parametrize("picture", [name for name, *_ in _PICTURES])
def test_a_legend_lies_beside_the_points(picture, systems):
    paint = next(paint for name, _, _, paint in _PICTURES if name == picture)
    figure = Figure(figsize=(4.6, 3.1), dpi=72, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    with mpl.rc_context({"font.size": 9, "legend.fontsize": 8}):
        paint(axes, systems=[(COLOURS[i], curves(f"s{i}")) for i in range(systems)])
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
