"""Rank models and populations made by hand, for the tests of the population and of the attacker."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.population.cohort import Cohort, FeatureTemplates
from monitor.population.evidence_model import EvidenceModel
from monitor.population.people import SourceNote, Speaker
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels

LENGTHS = (0.5, 2.0, 10.0, 60.0)
NAMES = {"histogram": "log-likelihood", "embedding": "embedding-cosine"}


def some_rank_model(
    features: Sequence[str] = ("f0",),
    session: str = "cross",
    *,
    lengths: Sequence[float] = LENGTHS,
    template_lengths: Sequence[float] = (10.0,),
    replicates: int = 40,
    seed: int = 0,
    **other: Any,
) -> RankModel:
    """A model that grows with T and D, its replicates strewn around it alike at all lengths."""
    generator = np.random.default_rng(seed)
    t, d = np.array(lengths, dtype=float), np.array(template_lengths, dtype=float)
    strewn = np.exp(generator.normal(0, 0.2, (4, 1 + replicates, 1, 1)))
    strewn[:, 0] = 1.0
    shape = (1 + replicates, t.size, d.size)
    growth = np.log1p(t)[:, None] + 0.1 * np.log1p(d)
    weights = 0.1 / (1 + growth)[..., None] * (1 + np.arange(len(features)))
    values: dict[str, Any] = {
        "similarities": tuple(NAMES["histogram"] for _ in features),
        "alpha": 0.9 / (1 + 0.1 * growth) * strewn[0],
        "beta": (1.5 + 2 * growth) * strewn[1],
        "binomial": np.zeros(shape, dtype=bool),
        "weights": weights * strewn[2][..., None],
        "floor": np.clip(0.1 / (1 + growth) * strewn[3], 0.01, 1),
        "open_set": np.ones((t.size, d.size, 1 + len(features))) * growth[..., None],
        "rows": ({"T": 0.5, "D": 10.0, "notes": ["sparse"], "floor": 0.1},),
        "speakers": 12,
        "candidates": 14,
    }
    return RankModel(tuple(features), session, lengths=t, template_lengths=d, **(values | other))


def evidence_model(
    rank_model: RankModel,
    cohort: Cohort | None = None,
    *,
    replicates: int = 40,
    seed: int = 0,
    **other: Any,
) -> EvidenceModel:
    """Likelihood ratios on a model's grid, growing with T and D, and replicates around them."""
    generator = np.random.default_rng(seed)
    t, d = rank_model.lengths[:, None], rank_model.template_lengths
    growth = np.log1p(t) + 0.1 * np.log1p(d)
    strewn = np.exp(generator.normal(0, 0.1, (2, 1 + replicates, 1, 1)))
    strewn[:, 0] = 1.0
    slopes = 0.5 * growth[..., None] / (1 + np.arange(len(rank_model.features)))
    marks = [f"{i:x}" * 64 for i in range(len(rank_model.features))]
    if cohort is not None:
        marks = [cohort.compute_digest(name) for name in rank_model.features]
    values: dict[str, Any] = {
        "intercept": -2.0 - growth * strewn[0],
        "slopes": slopes * strewn[1][..., None],
        "support": 6.0 + 0.5 * growth,
        "area": np.clip(0.7 + 0.05 * growth, 0, 1),
        "cohort": tuple(marks),
    }
    return EvidenceModel(rank_model.lengths, rank_model.template_lengths, **(values | other))


def population(
    seconds: Sequence[float] = (20, 20, 20, 20, 20, 20),
    features: Sequence[str] = ("f0",),
    rank_models: Sequence[RankModel] = (),
    *,
    seed: int = 0,
    size: int = 12,
    prefix: str = "s",
) -> Population:
    """Speakers with so many seconds of template each, of histograms that differ."""
    generator = np.random.default_rng(seed)
    slices = [int(s) // 5 for s in seconds]
    owner = np.repeat(np.arange(len(seconds)), slices)
    voices = generator.dirichlet(np.ones(size), (len(features), len(seconds)))
    made = {
        name: FeatureTemplates(
            FeatureSpec(name, HISTOGRAM, size, 0.01),
            np.stack([generator.multinomial(60, p[i]) for i in owner]),
        )
        for name, p in zip(features, voices, strict=True)
    }
    speakers = [
        Speaker(
            f"{prefix}{i}",
            (SourceNote(f"{i}.flac", f"day {i % 2}", (f"{prefix}{i:04d}", "x"), 0.5, 20.25),),
        )
        for i in range(len(seconds))
    ]
    offsets = np.concatenate([[0], np.cumsum(slices)])
    return Population(speakers, offsets, made, RankModels(rank_models), about="Readers, Ünïcode.")
