from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation.accounting import account
from monitor.maths.composition import advanced, basic


def test_golden_rows(golden):
    rows = golden.json("composition")["rows"]
    for row in rows:
        last = account(row["eps0"], row["delta"], row["k"]).rows[-1]
        assert last.trials == row["k"]
        assert last.basic_nats == pytest.approx(row["basic"], rel=1e-12)
        assert last.advanced_nats == pytest.approx(row["advanced_DRV"], rel=1e-12)
        assert last.optimal_nats == pytest.approx(row["dp_accounting_PLD"], rel=1e-6)
        assert last.optimal_nats <= row["KOV_thm33_optimal_grid"] * (1 + 1e-12)


def test_golden_crossover(golden):
    for epsilon, first in golden.json("composition")["delta_advanced_crossover"].items():
        assert account(float(epsilon), 1e-4).advanced_from == first


def test_the_optimum_is_below_a_renyi_accountant(golden):
    """autodp composes by Renyi divergence, which costs a little more than the optimum."""
    peer = golden.json("composition")["autodp_RDP_randresponse_eps1_k16_delta1e-4"]
    assert account(1.0, 1e-4, 16).rows[-1].optimal_nats < peer


@pytest.mark.parametrize("epsilon", [math.log(2), 1.0, 800.0])
def test_advanced_never_beats_basic_from_ln_2(epsilon):
    found = account(epsilon, 1e-6, 10**6)
    assert found.advanced_from is None
    assert "never beats the basic one" in found.note
    assert all(row.advanced_nats >= row.basic_nats for row in found.rows)


@given(st.floats(0.01, 0.69), st.floats(1e-9, 0.5))
def test_where_advanced_starts_to_win(epsilon, delta):
    first = account(epsilon, delta, 1).advanced_from
    assert first is not None
    if abs(-2 * math.log(delta) / (2 - math.exp(epsilon)) ** 2 - round(first)) > 1e-6:
        assert advanced(epsilon, first, delta) < basic(epsilon, first)
    if first > 1:
        assert advanced(epsilon, first - 1, delta) >= basic(epsilon, first - 1) * (1 - 1e-12)


def test_rows_and_words():
    found = account(0.5, trials=1000)
    assert [row.trials for row in found.rows] == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    assert [row.trials for row in account(0.5, trials=7).rows] == [1, 2, 5, 7]
    assert [row.trials for row in account(0.5, trials=1).rows] == [1]
    assert all(row.optimal_nats <= row.basic_nats for row in found.rows)
    assert "from 150 trials" in found.note
    assert "Bits of disclosure are not an epsilon" in found.note
    assert account(0.0).advanced_from is None


def test_refusals():
    with pytest.raises(UsageError, match="at least one trial"):
        account(0.5, trials=0)
    with pytest.raises(UsageError, match="delta"):
        account(0.5, delta=0.0)
    with pytest.raises(UsageError, match="epsilon"):
        account(-0.5)
