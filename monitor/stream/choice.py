"""Choice of features, rank model and template length, or the reason why that is impossible."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from monitor.crowds import YOU
from monitor.errors import StoreError, UsageError
from monitor.features.registry import (
    AS_ENVIRONMENT,
    FeatureSetup,
    get_least_share,
    ready,
    superseded,
    takes,
)
from monitor.kinds import FeatureSpec, unlike_networks
from monitor.population.interpolation import at_template
from monitor.population.population import Population
from monitor.population.rank_model import RankModel, RankModels
from monitor.population.templates import MISMATCH, Scoring
from monitor.protocols import Feature, Source
from monitor.types import BoolArray, IntArray

_EXAMPLE_SECONDS = 30.0
"""Length of the test, of speech, by which a notice compares template lengths."""


def choose_features(
    rank_models: RankModels,
    available: Collection[str] | None = None,
    *,
    words: bool = False,
    setup: FeatureSetup = AS_ENVIRONMENT,
) -> tuple[str, ...]:
    """Choose the largest set of features that has a rank model.

    A superseded feature does not count. ``available`` are features of ready-made frames, None for
    audio. With ``words``, timed words come with the audio. StoreError if there is no rank model for
    them.

    Example:
        >>> rank_models = Population.reference().rank_models
        >>> choose_features(rank_models, ["f0", "phones", "voice"])
        ('f0', 'phones', 'voice')
    """
    sets = [features for features, _ in rank_models.kinds]

    def rank_key(names: Sequence[str]) -> tuple[int, ...]:
        weak = sum(superseded(name, names) for name in names)
        return len(names) - weak, -weak, "voice" not in names

    if available is not None:
        sets = [names for names in sets if set(names) <= set(available)]
        if not sets:
            raise _create_error(f" for {'+'.join(available)}")
        return max(sets, key=rank_key)
    if not sets:
        raise _create_error()
    sets = [names for names in sets if words or "words" not in map(takes, names)] or sets
    sets = [names for names in sets if all(ready(name, setup) for name in names)] or sets
    return max(sets, key=rank_key)


def find_pitch(features: Iterable[str]) -> str | None:
    """Return the first feature that only voiced speech has, or None."""
    return next((name for name in features if get_least_share(name)), None)


def choose_features_of(
    source: Source,
    population: Population,
    features: Sequence[str | Feature | FeatureSpec] | None,
    rank_models: RankModels,
    setup: FeatureSetup,
) -> tuple[Sequence[str | Feature | FeatureSpec] | None, Collection[str] | None]:
    """Choose features for the contents of a source, if none were named.

    Returns the features and the candidates. For audio without words, these are the given
    ``features`` and None.
    """
    info = source.stream_info
    if not features and not info.audio:
        by_words = [name for name in population.features if info.words and takes(name) == "words"]
        available = [n for n in population.features if n in info.tracks or n in by_words]
        if available:
            return choose_features(rank_models, available), available
    if not info.words:
        return features, None
    if features is None:
        features = choose_features(rank_models, words=True, setup=setup)
    return features, population.features


def choose_rank_model(
    rank_models: RankModels, features: tuple[str, ...], session: str
) -> tuple[RankModel, str, bool]:
    """Choose a rank model; return it, its session, and whether it favours the attacker."""
    for kind in (session, "same" if session == "cross" else "cross"):
        if (rank_model := rank_models.find(features, kind)) is not None:
            return rank_model, kind, kind == "same" != session
    raise _create_error(f" for {'+'.join(features)}")


def _create_error(features: str = "") -> StoreError:
    return StoreError(
        f"the population has no rank model{features}. "
        "Calibrate one: monitor calibrate CORPUS -o POPULATION.npz"
    )


def check_features(population: Population, features: Sequence[str]) -> None:
    """Refuse duplicate features, an empty list, and features without templates."""
    if not features or len(set(features)) != len(features):
        raise UsageError("name each feature once, and at least one")
    unknown = [name for name in features if name not in population.features]
    if unknown:
        raise UsageError(
            f"the population has no templates of {', '.join(unknown)}; "
            f"it has {', '.join(population.features)}"
        )


def check_networks(population: Population, rank_model: RankModel) -> None:
    """Refuse a rank model and templates from different networks."""
    for name in rank_model.features:
        model_network, template_network = (
            rank_model.network(name),
            population.features[name].spec.network,
        )
        if model_network != template_network:
            what = unlike_networks(
                name, "the rank model", model_network, "the templates", template_network
            )
            raise StoreError(f"{what}; enrol and calibrate again with this version")


def same_scores(model: RankModel, joint: RankModel) -> bool:
    """Return whether two models score the features of the first alike, by the same networks."""
    similarity = dict(zip(joint.features, joint.similarities, strict=True))
    return all(
        similarity[name] == score_name and model.network(name) == joint.network(name)
        for name, score_name in zip(model.features, model.similarities, strict=True)
    )


def explain_missing_ratios(population: Population, rank_model: RankModel) -> str:
    """Explain why population and rank model give no likelihood ratios; empty if they do."""
    about, cohort = "+".join(rank_model.features), population.cohort
    if rank_model.evidence is None:
        return f"the rank model of {about} was calibrated without evidence; calibrate again"
    if cohort is None:
        return (
            "the population has no cohort of background speakers, which evidence needs; "
            "calibrate again"
        )
    for name, mark in zip(rank_model.features, rank_model.evidence.cohort, strict=True):
        if name not in cohort.features:
            return f"the cohort lacks {name}; calibrate with one that has it (--cohort)"
        if cohort.compute_digest(name) != mark:
            return (
                f"the rank model of {about} was calibrated against another cohort than the "
                f"population's; calibrate again"
            )
    return ""


def choose_evidence_model(
    population: Population, rank_models: RankModels, rank_model: RankModel
) -> RankModel | None:
    """Choose the rank model for likelihood ratios, or None.

    It is the same rank model if that has ratios, otherwise that of its features other than words.
    """
    if not explain_missing_ratios(population, rank_model):
        return rank_model
    voice = tuple(name for name in rank_model.features if takes(name) != "words")
    other = rank_models.find(voice, rank_model.session)
    if (
        other is None
        or other.features == rank_model.features
        or explain_missing_ratios(population, other)
    ):
        return None
    return other if same_scores(other, rank_model) else None


def group_rows(
    features: Sequence[str], present: BoolArray
) -> Iterator[tuple[frozenset[str], IntArray]]:
    """Group rows, shape (R, F), by the features that have frames; rows without any have no group.

    Example:
        >>> present = np.array([[True, True], [False, False], [True, False]])
        >>> [(sorted(names), rows.tolist()) for names, rows in group_rows(["a", "b"], present)]
        [(['a'], [2]), (['a', 'b'], [0])]
    """
    for row in sorted(set(map(tuple, present.tolist()))):
        if names := frozenset(compress(features, row)):
            yield names, np.flatnonzero((present == row).all(axis=1))


@dataclass(frozen=True, slots=True)
class CommonLength:
    """The common length D that all templates of a run are cut to."""

    scoring: Scoring  # D, and the speakers who have enough speech
    withheld: str = ""  # why the watched speaker has no figures at D; empty if there are figures
    # effect of a D that is shorter than the templates, or not on the rank model's grid
    notice: str = ""


def choose_length(
    population: Population, rank_model: RankModel, watch: str | None, seconds: float | None
) -> CommonLength:
    """Choose D: ``seconds`` if given, otherwise as in `Population.scoring`.

    All templates are cut to the same D. Far below the rank model's own lengths there are no
    figures.
    """
    usual, shortest = population.common_seconds, float(rank_model.template_lengths[0])
    have = np.inf if watch is None else float(population.template_seconds[population.index(watch)])
    short = f"template_mismatch: {watch} has {have:g} s of enrolled speech, "
    if seconds is None and have < min(usual, MISMATCH * shortest):
        reason = f"but the rank model covers no templates under {shortest:g} s. Enrol more"
        return CommonLength(population.scoring(usual), short + reason)
    scoring = population.scoring(seconds, watch=watch)
    if have < scoring.seconds:
        return CommonLength(
            scoring,
            f"{short}not the requested {scoring.seconds:g} s. Enrol more, or leave out the "
            "setting template-seconds",
        )
    if seconds is not None or scoring.seconds == usual:
        return CommonLength(scoring, notice=_describe_stand_in(rank_model, scoring.seconds))
    if watch is not None:
        return CommonLength(scoring, notice=_describe_cut(population, rank_model, watch, scoring))
    length = np.where(scoring.members, population.template_seconds, np.inf)
    notice = _describe_cut(population, rank_model, population.names[int(length.argmin())], scoring)
    advice = f". The setting template-seconds = {usual:g} excludes people who have less"
    return CommonLength(scoring, notice=notice + advice)


def _describe_cut(
    population: Population, rank_model: RankModel, name: str, scoring: Scoring
) -> str:
    """State the cost of comparing all people by less speech than most have."""
    usual, speakers = population.common_seconds, int(scoring.members.sum())
    similarities = population.scorers(rank_model).values()
    additive = np.array([similarity.additive for similarity in similarities])

    def bits(seconds: float) -> str:
        point = at_template(rank_model, seconds, additive).evaluate_at(_EXAMPLE_SECONDS)
        return f"{point.expected_bits(speakers, slice(0, 1))[0]:.1f}"

    cut, usual_bits = bits(scoring.seconds), bits(usual)
    grid = _describe_stand_in(rank_model, scoring.seconds)
    owner = "your" if name.lower() in YOU else f"{name}'s"
    return (
        f"{owner} template has {scoring.seconds:g} s; others have {usual:g} s. All are compared at "
        f"{scoring.seconds:g} s{grid and f' ({grid})'}: {_EXAMPLE_SECONDS:g} s of speech disclose "
        f"{cut} bits on average among the {speakers}"
        f"{'' if cut == usual_bits else f' instead of {usual_bits}'}. "
        "Enrol more: monitor enrol --add"
    )


def _describe_stand_in(rank_model: RankModel, seconds: float) -> str:
    """Name the calibrated lengths that replace D; empty if D is one of them."""
    grid = rank_model.template_lengths
    if np.isclose(grid, seconds).any():
        return ""
    index = int(np.searchsorted(grid, seconds))
    if index == 0:
        return f"nothing shorter than {grid[0]:g} s is calibrated: bits read too high"
    if index == grid.size:
        return f"nothing longer than {grid[-1]:g} s is calibrated: bits read too low"
    return f"interpolated between templates of {grid[index - 1]:g} and {grid[index]:g} s"
