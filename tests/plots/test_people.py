"""The picture of several people: a curve each, the eight with most bits, each named at its end."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from monitor.plots.curve import draw_run
from monitor.plots.recording import MOST_DRAWN, make_curves
from tests.records import events


def run(people, watched=(), *, end=True):
    """Records of people who speak a second each in turn, each a bit more."""
    labels = [f"S{k}" for k in range(people)]
    records = [
        {"type": "start", "speakers": 50, "ceiling": math.log2(50), "watch": None,
         "recordings": ["m.wav"], "people": [{"label": name, "seconds": 9.0} for name in labels],
         **({"watched": list(watched)} if watched else {})}
    ]  # fmt: skip
    for second in range(1, 60):
        k = second % people
        for place, name in enumerate(watched or [None]):
            about = {} if name is None else {"watch": name}
            bits = 0.5 * k + place + second / 100
            records.append(
                {"type": "reading", "seconds": float(second), "speech": 1.0, "bits": bits,
                 "ceiling": 5.64, "label": labels[k], **about}
            )  # fmt: skip
    records.append(
        {"type": "alert", "seconds": 30.0, "field": "bits", "state": "raised", "value": 2.0,
         "label": "S0", **({"watch": watched[0]} if watched else {})}
    )  # fmt: skip
    if end:
        rows = [
            {"label": name, "person": "ann", "probability": 0.9,
             "watch": watched[0] if watched else None}
            for name in labels
        ]  # fmt: skip
        records.append({"type": "end", "seconds": 60.0, "overlap_seconds": 2.5, "people": rows})
    return records


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda x: hasattr(x, "get_text"))]


@pytest.mark.parametrize("people", [1, 2, 8])
def test_everybody_has_a_curve_and_a_name_at_its_end(people):
    records = run(people)
    figure = draw_run(events(records))
    curves, strip = figure.axes
    drawn = {line.get_gid(): line for line in curves.lines if line.get_gid()}
    assert set(drawn) == {f"S{k}" for k in range(people)}
    own = [r["bits"] for r in records if r["type"] == "reading" and r["label"] == "S0"]
    assert np.allclose(drawn["S0"].get_ydata(), [*own, own[-1]])
    assert np.max(drawn["S0"].get_xdata()) == 60.0
    said = texts(figure)
    assert f"S0, ann 90 %, {own[-1]:.1f} bits" in said
    assert any("2.5 s of overlapping speech" in text for text in said)
    assert len(strip.collections) == people
    assert [line.get_marker() for line in curves.lines].count("o") == 1


def test_names_do_not_lie_on_each_other():
    figure = draw_run(events(run(8)))
    figure.canvas.draw()
    names = [text for text in figure.axes[0].texts if "bits" in text.get_text()]
    boxes = sorted((text.get_window_extent() for text in names), key=lambda box: box.y0)
    assert len(boxes) == 8
    assert all(above.y0 >= below.y1 - 1 for below, above in itertools.pairwise(boxes))
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)


def test_of_more_than_eight_those_with_most_bits_are_drawn():
    figure = draw_run(events(run(12)))
    drawn = {line.get_gid() for line in figure.axes[0].lines if line.get_gid()}
    assert drawn == {f"S{k}" for k in range(12 - MOST_DRAWN, 12)}
    assert any("4 with less, or nothing, are not drawn" in text for text in texts(figure))


def test_of_several_watched_the_curve_is_by_the_one_matched():
    by_row = make_curves(events(run(2, ("ann", "bob"))))[0]
    assert by_row.bits[0] == pytest.approx(0.02)
    assert by_row.alerts == [(30.0, 2.0)]
    unfinished = make_curves(events(run(2, ("ann", "bob"), end=False)))[0]
    assert unfinished.bits[0] == pytest.approx(1.02)


def test_a_run_in_which_nobody_was_heard_is_drawn_too():
    records = [r for r in run(2) if r["type"] in ("start", "end")]
    assert draw_run(events(records)).axes
