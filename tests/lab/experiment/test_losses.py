from __future__ import annotations

import numpy as np
import pytest

from monitor.lab.experiment.cells import measure_losses
from monitor.maths.rank_models import LOSSES, fit, mean_disclosure_bits
from monitor.maths.ranks import rank_histogram, rank_statistics
from tests.lab.experiment.made import matrix


def test_table_ii_s_rank_models_are_those_of_the_fit():
    made = matrix((0.4, 2.0), 30, 10, np.random.default_rng(1))
    rows = measure_losses(made, 20, 0)
    assert [row["loss"] for row in rows] == list(LOSSES)
    histogram = rank_histogram(made.better, made.tied, 30)
    for row in rows:
        rank_model = fit(histogram, row["loss"])
        assert (row["alpha"], row["beta"]) == (rank_model.alpha, rank_model.beta)
        found = rank_statistics(np.exp(rank_model.log_pmf(30)))
        assert row["idr"] == found.identification_rate
        assert row["rank1"] == pytest.approx(row["idr"])
        assert row["mean_bits"] == pytest.approx(
            mean_disclosure_bits(rank_model.alpha, rank_model.beta, 30)
        )
        assert row["spread"] == found.spread
    assert rows[0]["left_out_bits"] == rows[0]["left_out_low"] == rows[0]["left_out_high"] == 0.0


def test_a_loss_of_one_rank_costs_people_who_were_left_out():
    # two kinds of people: what is fitted to the first ranks misses the rest
    generator = np.random.default_rng(2)
    made = matrix((0.35, 1.3), 60, 25, generator)
    rows = {row["loss"]: row for row in measure_losses(made, 40, 0)}
    assert all((row["left_out_bits"] or 0.0) > -0.01 for row in rows.values())
    assert rows["LL"]["kl_bits"] == min(row["kl_bits"] or 0.0 for row in rows.values())


def test_cll_is_refused_where_rank_one_was_never_seen():
    made = matrix((30.0, 30.0), 20, 5, np.random.default_rng(3))
    assert not (made.better == 0).any()
    row = measure_losses(made, 20, 0)[-1]
    assert (row["loss"], row["fitted"]) == ("CLL", "LL")
    assert row["rank1_match_bits"] is None
    assert "LL instead of CLL" in row["notes"]


def test_two_speakers_leave_nobody_out():
    rows = measure_losses(matrix((0.5, 2.0), 2, 8, np.random.default_rng(4)), 20, 0)
    assert all(row["left_out_bits"] is None for row in rows)
