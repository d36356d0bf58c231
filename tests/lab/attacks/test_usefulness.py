"""Utility beside attacks: of the very pieces that are attacked."""

from __future__ import annotations

import pytest

from monitor.corpus import find
from monitor.lab.attacks.attackers import AttackContext
from monitor.lab.attacks.speech import CLEAR, PieceExtractor, choose_readers
from monitor.lab.utility import MEASURES
from tests.lab.attacks.conftest import AMOUNTS

pytestmark = pytest.mark.slow


def found(corpora, method, tmp_path):
    root = corpora()
    judged = choose_readers(find(root), root, AMOUNTS)
    bench = AttackContext(
        judged, None, ("f0",), ("utility",), AMOUNTS, PieceExtractor(), 0, tmp_path
    )
    heard = bench.extract_trials(method, bench.features)
    noted = {r.name: [heard[p].measured["utility"] for p in r.trials] for r in judged.everybody}
    return {figure.key: figure for figure in MEASURES["utility"].figures(noted)}


def test_what_is_not_protected_keeps_everything(corpora, tmp_path):
    clear = found(corpora, CLEAR, tmp_path)
    assert clear["utility.phone_error"].value in (0.0, None)  # a buzz says little
    assert clear["utility.pitch_correlation"].limits == pytest.approx((1.0, 1.0))
    assert clear["utility.voiced_in_both"].value == 1.0


def test_noise_keeps_less(corpora, tmp_path):
    noisy = found(corpora, "noise:0", tmp_path)
    assert noisy["utility.voiced_in_both"].value < 0.9
    assert noisy["utility.louder_db"].value > 1.0


def test_of_nothing_there_are_no_figures():
    assert MEASURES["utility"].figures({"ann": []}) == ()
