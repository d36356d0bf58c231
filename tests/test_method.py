"""What the method page says of the papers' formulae and of what ships."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import beta as euler
from scipy.special import comb

from monitor.maths.rank_models import log_pmf, mean_disclosure_bits

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = " ".join(
    word for page in ("method.md", "errata.md") for word in (DOCS / page).read_text("utf-8").split()
)


@pytest.mark.parametrize(
    ("alpha", "beta", "stdd", "spread"),
    [(0.6248, 1.7375, "1.31", "34.78"), (0.2238, 0.8584, "3.79", "14.02")],
)
def test_rank_models_through_two_figures_of_srd_s_table_give_the_others(alpha, beta, stdd, spread):
    speakers = 11_696
    gamma = np.exp(log_pmf(alpha, beta, speakers))
    bits = np.log2(speakers * gamma)
    mean = float(gamma @ bits)
    assert mean == pytest.approx(float(mean_disclosure_bits(alpha, beta, speakers)), abs=1e-6)
    assert f"{np.sqrt(gamma @ (bits - mean) ** 2):.2f}" == stdd
    assert f"{100 * (gamma > 1 / speakers).mean():.2f}" == spread
    assert stdd in PAGE
    assert spread in PAGE


def test_the_printed_rank_model_does_not_sum_to_one():
    alpha, beta, speakers = 0.3, 2.0, 50
    j = np.arange(speakers + 1)
    ways = comb(speakers, j) / euler(alpha, beta)
    twice = ways * euler(j + alpha, speakers - j + alpha)
    short = (ways * euler(j + alpha, speakers - j + beta))[1:]
    assert f"first sums to {twice.sum():.2f} over all j" in PAGE
    assert f"without j = 0, sums to {short.sum():.2f}" in PAGE
