"""Who could be recognised: templates, rank laws, and the store that keeps both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.population.cohort import Cohort
    from monitor.population.law import Laws, RankLaw
    from monitor.population.population import FeatureTemplates, Population, SourceNote, Speaker

__all__ = [
    "Cohort",
    "FeatureTemplates",
    "Laws",
    "Population",
    "RankLaw",
    "SourceNote",
    "Speaker",
]

_HOMES = {
    "Cohort": "cohort",
    "FeatureTemplates": "population",
    "Laws": "law",
    "Population": "population",
    "RankLaw": "law",
    "SourceNote": "population",
    "Speaker": "population",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
