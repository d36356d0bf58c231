"""The population: templates, rank models, and the store that keeps both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.population.cohort import Cohort, FeatureTemplates
    from monitor.population.population import Population, SourceNote, Speaker
    from monitor.population.rank_model import RankModel, RankModels
    from monitor.population.reference import DEMO_SPEAKER, demo_frames

__all__ = [
    "DEMO_SPEAKER",
    "Cohort",
    "FeatureTemplates",
    "Population",
    "RankModel",
    "RankModels",
    "SourceNote",
    "Speaker",
    "demo_frames",
]

_HOMES = {
    "cohort": "Cohort FeatureTemplates",
    "population": "Population SourceNote Speaker",
    "rank_model": "RankModel RankModels",
    "reference": "DEMO_SPEAKER demo_frames",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
