"""What is said of curves that are known, and of those that say nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from monitor.lab.experiment.cells import MeasuredCell
from monitor.lab.experiment.figures import plot_lengths
from monitor.lab.experiment.findings import (
    Surface,
    answer_bound,
    answer_fall,
    answer_guides,
    answer_rise,
    answer_saturation,
    make_surfaces,
)
from monitor.lab.experiment.material import Panel
from monitor.plots.canvas import PRINT, style_figure

LENGTHS, TEMPLATES = (1.0, 2.0, 4.0, 8.0, 16.0), (3.0, 30.0)
GROWING, FLAT = [0.5, 1.1, 1.7, 2.3, 2.9], [1.0] * 5


def surface(bits, by_template=(1.0, 1.0), spread=0.05, tested=30, speakers=64, chance=0.005):
    """MeanD at each T, times a factor of each D, whose resamples spread independently."""
    generator = np.random.default_rng(0)
    panel = Panel("sweep", "same", ("a",), ("a",), LENGTHS, TEMPLATES)
    factors = dict(zip(TEMPLATES, by_template, strict=True))
    at = dict(zip(LENGTHS, bits, strict=True))
    cells = []
    for t, d in panel.cells:
        value = float(at[t] * factors[d])
        noise = generator.normal(scale=spread, size=230)
        found: Any = {
            "speakers": speakers, "tested": tested, "trials": 20 * tested,
            "figures": {"srd.mean_bits_model": {"value": value, "low": None, "high": None},
                        "srd.null_chance": {"value": chance}},
            "resampled": (value + noise[:200]).tolist(),
            "left_out": (value + noise[200:] / 30).tolist(),
        }  # fmt: skip
        cells.append(MeasuredCell(panel, t, d, {"f": found}))
    (made,) = make_surfaces(cells)
    return made


def said(made: Surface):
    answers = [answer_rise(made), answer_fall(made), answer_bound(made)]
    answers += [answer_saturation(made, "T"), answer_saturation(made, "D"), *answer_guides(made)]
    return {each.question: each.verdict for each in answers if each is not None}


def test_a_curve_that_rises_and_saturates():
    found = said(surface([1.18, 1.9, 2.59, 2.95, 3.0], (0.45, 1.0)))
    assert found["rises"] == found["saturates_t"] == found["bounded"] == "yes"
    assert found["falls"] != "yes"
    assert "saturates_d" not in found  # two lengths have one doubling


def test_a_curve_that_grows_with_every_doubling():
    found = said(surface(GROWING))
    assert found["rises"] == "yes"
    assert found["falls"] == found["saturates_t"] == "no"
    assert found["bounded"] in ("no", "undecided")


def test_a_curve_that_falls_again():
    found = said(surface([1.6, 1.85, 2.0, 1.75, 1.5]))
    assert found["falls"] == "yes"


def test_guides_are_what_they_would_be():
    flat = {each.question: each for each in answer_guides(surface(FLAT, spread=0.01))}
    assert flat["guide_linear"].verdict == "yes"
    assert flat["guide_linear"].numbers["times"]["value"] == pytest.approx(16.0)
    assert flat["guide_root"].verdict == "no"
    assert flat["guide_root"].numbers["times"]["value"] == pytest.approx(4.0)


def test_noise_decides_nothing():
    found = said(surface(FLAT, spread=0.5))
    assert set(found.values()) <= {"undecided"} | {"yes", "no"} & {found["guide_linear"]}
    made = answer_rise(surface(FLAT, spread=0.5))
    assert made is not None
    assert "cannot be decided with so few speakers (N = 64, 30 tested" in made.text


def test_at_the_ceiling_lengths_cannot_show():
    made = surface([5.99] * 5, spread=0.0)
    found = said(made)
    assert found["rises"] == found["falls"] == found["saturates_t"] == "full"
    answer = answer_rise(made)
    assert answer is not None
    assert "(all resamples agree)" in answer.text
    assert "log2 N = 6.00" in answer.text


def test_what_tells_nothing_has_no_guides():
    made = surface([0.02] * 5, chance=0.4)
    assert answer_guides(made) == []
    assert answer_saturation(made, "T") is None


def test_nine_speakers_decide_nothing():
    found = said(surface(GROWING, tested=9))
    assert set(found.values()) == {"undecided"}


def test_figure_8_cuts_nothing_off_where_sessions_reach_differently_far():
    long = surface(GROWING)
    found = {place: each for place, each in long.cells.items() if place[0] < 8.0}
    panel = replace(long.panel, session="cross", lengths=LENGTHS[:3])
    short = replace(long, panel=panel, lengths=LENGTHS[:3], cells=found)
    for order in ([short, long], [long, short]):
        drawn = plot_lengths(order)
        assert drawn is not None
        with style_figure(PRINT, drawn.inches) as figure:
            drawn.paint(figure, PRINT)
            for axes in figure.axes:
                left, right = axes.get_xlim()
                assert left < LENGTHS[0]
                assert right > LENGTHS[-1]
