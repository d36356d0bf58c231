"""Populations: templates of enrolled people, rank models, and their file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.population.cohort import Cohort, FeatureTemplates
    from monitor.population.people import SourceNote, Speaker
    from monitor.population.population import DEMO_SPEAKER, Population, demo_frames
    from monitor.population.rank_model import RankModel, RankModels

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

__getattr__, __dir__ = lazily(__name__)
