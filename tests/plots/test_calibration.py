"""Pictures of a calibration: what its rank models disclose, and whether they claim too much."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.errors import UsageError
from monitor.plots.calibration import plot_rank_models, plot_reliability


def rank_model(length: float, bits: float, **changes: Any) -> dict[str, Any]:
    row = {
        "feature": "f0", "session": "cross", "T": length, "D": 100.0, "common_candidates": 50,
        "common_bits": bits, "common_bits_low": bits / 2, "common_bits_high": bits + 0.5,
    }  # fmt: skip
    return {**row, **changes}


@pytest.mark.slow
@pytest.mark.parametrize("features", [(), ("f0",), ("f0", "phones", "f0+phones")])
def test_a_feature_has_panels_of_its_own_and_one_ceiling(features, tmp_path):
    sessions, templates = ("same", "cross"), (10.0, 30.0, 100.0)
    rows = [
        rank_model(t, bits, feature=feature, session=session, D=d)
        for feature in features
        for session in sessions
        for d in templates
        for t, bits in ((1.0, 0.5), (10.0, 1.5))
    ]
    plot_rank_models(rows, tmp_path / "rank_models.svg")
    text = (tmp_path / "rank_models.svg").read_text()
    for title in [f"{f}, {s} session" for f in features for s in sessions]:
        assert text.count(f"<!-- {title} -->") == 1
    for template in ("10 s", "30 s", "100 s"):  # each length once, in the legend
        assert text.count(f"<!-- D = {template} -->") == bool(features)
    assert ("N = 50 candidates" in text) == bool(features)
    plot_rank_models([rank_model(1.0, 0.5)], tmp_path / "one.svg")


def row(feature: str, session: str, length: float, template: float = 100.0) -> dict[str, Any]:
    return {
        "feature": feature,
        "session": session,
        "T": length,
        "D": template,
        "candidates": 50,
        "trials": 100,
        "calibration_error": length / 1000,
        "reliability": {"given": [0.1, 0.9], "true": [0.2, 0.8], "share": [0.9, 0.1]},
    }


def test_the_largest_set_is_drawn_a_panel_a_session_and_a_line_a_length(tmp_path):
    rows = [
        row("f0", "same", 10.0),
        row("f0+phones", "same", 30.0),
        row("f0+phones", "cross", 60.0),
    ]
    rows += [row("f0+phones", "same", 10.0), row("f0+phones", "same", 10.0, 30.0)]
    plot_reliability(rows, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    comments = [line for line in text.splitlines() if line.strip().startswith("<!--")]
    shown = " ".join(comments)
    assert "Does f0+phones claim as much as it knows?" in shown
    assert "cross session, templates of 100 s" in shown
    assert "same session, templates of 100 s" in shown
    assert "10 s: off by 0.01" in shown
    assert "30 s: off by 0.03" in shown
    assert "1 min: off by 0.06" in shown


def test_nothing_to_draw(tmp_path):
    with pytest.raises(UsageError, match="at least one"):
        plot_reliability([], tmp_path / "a.png")
