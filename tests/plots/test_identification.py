from __future__ import annotations

from dataclasses import replace

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from monitor.lab.plots.evaluation import paint_crowd
from monitor.plots.canvas import COLOURS
from tests.lab.evaluation.made import crowd, curves


def painted(*crowds):
    figure = Figure(figsize=(4.6, 3.1), dpi=72, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    systems = [(COLOURS[i], replace(curves(f"s{i}"), crowd=each)) for i, each in enumerate(crowds)]
    with mpl.rc_context({"font.size": 9}):
        paint_crowd(axes, systems)
        canvas.draw()
    return axes


def test_forms_dots_bracket_and_how_far_it_is_supported():
    axes = painted(crowd(50))
    assert axes.get_xscale() == "log"
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["beta-binomial", "probit with misses", "logit", "Pitman-Yor"]
    (mark,) = [line for line in axes.get_lines() if list(line.get_xdata()) == [500.0, 500.0]]
    assert mark.get_linestyle() != "-"
    assert [text.get_text() for text in axes.texts] == ["supported\nup to 500"]
    near, far, measured = axes.collections
    assert measured.get_alpha() == near.get_alpha() > far.get_alpha()
    edges = [each.get_paths()[0].get_extents() for each in (near, far)]
    assert edges[0].x1 == pytest.approx(500)
    assert edges[1].x0 == pytest.approx(500)
    assert edges[1].x1 == pytest.approx(1e6)
    written = {text.get_text() for text in axes.get_xticklabels()}
    assert {"100", "10k", "1M"} <= written


@pytest.mark.slow
@pytest.mark.parametrize("supported", [51.0, 500.0, 9e5, 1e6, 1e9])
def test_the_mark_is_read_wherever_it_stands(supported):
    axes = painted(replace(crowd(50), supported=supported))
    assert len(axes.texts) == (supported < 1e6)
    room = axes.get_window_extent()
    for text in axes.texts:
        box = text.get_window_extent()
        assert room.x0 <= box.x0 <= box.x1 <= room.x1


@pytest.mark.slow
def test_systems_side_by_side_and_one_without_limits():
    axes = painted(crowd(50), crowd(80, 0.6))
    assert axes.get_legend() is None
    assert list(axes.texts) == []
    assert len({line.get_color() for line in axes.get_lines()}) == 2
    bare = crowd(50)
    bare = replace(bare, measured=replace(bare.measured, low=None, high=None))
    assert len(painted(bare).collections) == 2  # only the forms bound it
