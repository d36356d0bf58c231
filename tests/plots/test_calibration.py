"""Pictures of a calibration: what its rank models disclose, and whether they claim too much."""

from typing import Any

import pytest

from monitor.errors import UsageError
from monitor.plots.calibration import plot_rank_models, plot_reliability


@pytest.mark.slow
def test_rank_models_have_a_panel_a_session_and_one_ceiling(tmp_path):
    bits = {"common_bits": 1.5, "common_bits_low": 0.75, "common_bits_high": 2.0}
    rows = [
        {"feature": "f0", "session": session, "T": t, "D": d, "common_candidates": 50, **bits}
        for session in ("same", "cross")
        for d in (10.0, 100.0)
        for t in (1.0, 10.0)
    ]
    plot_rank_models(rows, tmp_path / "rank_models.svg")
    text = (tmp_path / "rank_models.svg").read_text()
    for words in ("f0, same session", "f0, cross session", "D = 10 s", "D = 100 s"):
        assert text.count(f"<!-- {words} -->") == 1  # each length once, in the legend
    assert "N = 50 candidates" in text


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
    assert "Are the probabilities of f0+phones calibrated?" in shown
    assert "cross session, templates of 100 s" in shown
    assert "same session, templates of 100 s" in shown
    assert "10 s: off by 0.01" in shown
    assert "30 s: off by 0.03" in shown
    assert "1 min: off by 0.06" in shown

    with pytest.raises(UsageError, match="at least one"):
        plot_reliability([], tmp_path / "a.png")
