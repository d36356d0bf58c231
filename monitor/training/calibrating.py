"""Learn rank laws from a corpus (docs/method.md sections 3 to 5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np

from monitor.errors import CalibrationError, UsageError
from monitor.kinds import FeatureSpec, comparable_features
from monitor.maths.bootstrap import REPLICATES, speaker_weights
from monitor.maths.fitting import mean_bits_of
from monitor.maths.quantiles import limits
from monitor.maths.scores import Similarity
from monitor.maths.twoclass import PriorCoefficients
from monitor.population.calibration import Calibration
from monitor.population.cohort import Cohort
from monitor.population.evidence import EvidenceLaw
from monitor.population.law import Laws, RankLaw
from monitor.population.normalising import CohortScoring
from monitor.population.population import Population
from monitor.training.cells import Cell, Plan, plans
from monitor.training.evidence import ROW, FittedEvidence, chosen, fit_evidence
from monitor.training.false_alarm_streams import with_maxima
from monitor.training.fitted import FittedCell, fit_cell
from monitor.training.prior import Prior
from monitor.training.shrinking import KnownLaw, choose_worth, held_out_nats
from monitor.training.voices import UNITS_PER_SECOND, SpeakerSpeech, units_of
from monitor.types import BoolArray, FloatArray
from monitor.workers import cores

__all__ = ["FEWEST_SPEAKERS", "LENGTHS", "TEMPLATE_LENGTHS", "TRIALS", "Calibration", "calibrate"]

LENGTHS = (0.3, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
"""Test lengths T, speech seconds."""
TEMPLATE_LENGTHS = (10.0, 30.0, 60.0, 120.0, 300.0)
"""Template lengths D, speech seconds."""
FEWEST_SPEAKERS = 10
TRIALS = 20
"""Tests of each speaker in a cell; fewer where the speakers are thousands."""
_MOST_TRIALS = 30_000
_MOST_SETS = 3
"""Features of which every set gets a law; of more there would be too many."""
_PROBES = 6
"""Cells of a kind of session that say how far to trust the prior."""
_MANY = 1000
"""Speakers beside whom it hardly counts, whatever it is worth."""
_Place: TypeAlias = tuple[str, int, int, Plan]


def calibrate(
    voices: Sequence[SpeakerSpeech],
    specs: Mapping[str, FeatureSpec],
    *,
    lengths: Sequence[float] = LENGTHS,
    template_lengths: Sequence[float] = TEMPLATE_LENGTHS,
    similarities: Mapping[str, str] | None = None,
    sets: Sequence[Sequence[str]] | None = None,
    trained: Mapping[str, Collection[str]] | None = None,
    replicates: int = REPLICATES,
    trials: int = TRIALS,
    seed: int = 0,
    prior: Population | Literal["shipped"] | None = "shipped",
    cohort: Cohort | Literal["shipped"] | None = "shipped",
    alarms: Population | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Calibration:
    """Fit a law for every feature, and for features together, on the grid of lengths.

    In a joint law a feature that brings nothing new at a length has no say there.

    Args:
        voices: calibration speech, from ``collect``.
        specs: what the features' frames look like, from ``collect``.
        lengths: T, speech seconds.
        template_lengths: D, speech seconds.
        similarities: by feature; the default of its kind where left out.
        sets: of features that get a law. None: of up to three features every set, of more each
            and all.
        trained: by feature, names of those on whose speech its network was trained. It knows their
            voices better than others', so that no test of theirs counts in a law with that
            feature; their templates are candidates there like all others.
        replicates: resamples of speakers kept with the law.
        trials: tests of each speaker in each cell.
        seed: of resamples and permutations.
        prior: whose laws the fit starts from, where they are of the same features; they count as
            twenty speakers or more, so that their weight fades as own speakers grow. None: learn
            from these voices alone, which on few speakers can claim far too much.
        cohort: background speakers, none of them among the voices, for likelihood ratios of the
            features that both have, made by the same networks. None: no likelihood ratios.
        alarms: who is enrolled. The laws then know how high the streams of other people get among
            them, which `Monitor.false_alarms` goes by: each of at most 100 of the voices is heard
            as somebody else (docs/alarms.md). None: they do not.
        progress: called with cells done and cells in all.

    Returns:
        what `Population.calibrated` takes.

    Raises:
        CalibrationError: fewer than 10 speakers, or fewer who trained no network, or too little
            speech of theirs for any cell.
        UsageError: a length is no multiple of 0.1 s, or a similarity or a feature is unknown.
    """
    lengths, template_lengths = _grid(lengths), _grid(template_lengths)
    if len(voices) < FEWEST_SPEAKERS:
        raise CalibrationError(
            f"too few speakers ({len(voices)}) to learn a rank law; "
            f"at least {FEWEST_SPEAKERS} are needed: enrol more, or these beside the shipped "
            "readers (monitor enroll --speaker NAME --base reference)"
        )
    chosen = dict(similarities or {})
    if strange := sorted(chosen.keys() - specs.keys()):
        raise UsageError(f"no similarity for {strange[0]!r}: calibrating {', '.join(specs)}")
    scorers = {name: spec.kind.similarity(chosen.get(name)) for name, spec in specs.items()}
    chosen_sets = _sets(sets, tuple(scorers))
    testers = _testers(voices, chosen_sets, trained or {})
    axes = [[list(scorers).index(name) for name in features] for features in chosen_sets]
    additive = np.array([scorer.additive for scorer in scorers.values()])
    weights = speaker_weights(len(voices), replicates, seed)
    shifts = int(np.clip(_MOST_TRIALS // len(voices), 1, trials))
    found: dict[tuple[tuple[str, ...], str], dict[tuple[int, int], FittedCell]] = {}
    heard_in: dict[tuple[tuple[str, ...], str], set[int]] = {}
    cells = list(plans(voices, lengths, template_lengths, shifts))
    if prior == "shipped":
        prior = Population.reference()
    if cohort == "shipped":
        cohort = Population.reference().cohort
    against = _against(cohort, specs, scorers)
    cohort = None if cohort is None else cohort.only(against)
    before = None if prior is None else Prior(prior, specs, scorers, replicates, cohort)

    def run(place: _Place) -> Cell:
        _, t, d, plan = place
        test, template = (round(x * UNITS_PER_SECOND) for x in (lengths[t], template_lengths[d]))
        return plan.run(scorers, test, template, cohort=against)

    def known(features: tuple[str, ...], place: _Place, candidates: int) -> KnownLaw | None:
        session, t, d, _ = place
        if before is None:
            return None
        return before.at(features, session, lengths[t], template_lengths[d], candidates)

    def probe(place: _Place) -> list[Mapping[int, FloatArray]]:
        if before is None or len(voices) >= _MANY:
            return [{} for _ in chosen_sets]
        whole = run(place)
        losses: list[Mapping[int, FloatArray]] = []
        for features, axis in zip(chosen_sets, axes, strict=True):
            told = known(features, place, whole.candidates)
            cell = whole.tested_on(testers[features])
            few = told is None or np.unique(cell.behind_speaker).size < FEWEST_SPEAKERS
            losses.append({} if told is None or few else held_out_nats(cell, axis, told))
        return losses

    def work(place: _Place) -> list[FittedCell | None]:
        if not _enough(place):
            return []
        whole, fits = run(place), []
        for features, axis in zip(chosen_sets, axes, strict=True):
            told = known(features, place, whole.candidates)
            if told is not None:
                told = replace(told, worth=worths[features, place[0]])
            cell = whole.tested_on(testers[features])
            few = np.unique(cell.behind_speaker).size < FEWEST_SPEAKERS
            fit = None if few else fit_cell(cell, axis, weights, additive[axis], seed, told)
            if fit is not None:
                ratios, more = None, dict.fromkeys(ROW)
                if against.keys() >= set(features):
                    ratios = _ratios(cell, axis, testers[features], weights, told)
                if ratios is not None:
                    more = ratios.row
                fit = replace(fit, evidence=ratios, row=fit.row | more)
            fits.append(fit)
        return fits

    # numpy works outside the interpreter's lock, so that threads do
    with ThreadPoolExecutor(cores()) as pool:
        worths = {}
        for session in ("same", "cross"):
            some = [place for place in cells if place[0] == session and _enough(place)]
            probed = list(pool.map(probe, some[:: -(-len(some) // _PROBES)] if some else []))
            for features, losses in zip(chosen_sets, zip(*probed, strict=True), strict=False):
                worths[features, session] = choose_worth(losses)
        for done, ((session, t, d, plan), each) in enumerate(
            zip(cells, pool.map(work, cells), strict=True)
        ):
            for features, fitted in zip(chosen_sets, each, strict=False):
                if fitted is not None:
                    found.setdefault((features, session), {})[t, d] = fitted
                    heard_in.setdefault((features, session), set()).update(
                        [*plan.candidates.tolist(), *plan.strays.tolist()]
                    )
            progress(done + 1, len(cells))
    if not found:
        raise CalibrationError(
            f"fewer than {FEWEST_SPEAKERS} speakers have a test of {lengths[0]:g} s and a template "
            f"of {template_lengths[0]:g} s of speech: add speech or ask for shorter lengths"
        )
    laws: list[RankLaw] = []
    rows: list[Mapping[str, Any]] = []
    common = max(fit.row["candidates"] for fits in found.values() for fit in fits.values())
    for (features, session), fits in found.items():
        names = tuple(scorers[name].name for name in features)
        law = _assemble(
            features, session, names, lengths, template_lengths, fits, replicates, common
        )
        out = [v.name for v, may in zip(voices, testers[features], strict=True) if not may]
        marks = tuple(specs[name].network for name in features)
        law = replace(
            law,
            left_out=tuple(out),
            networks=marks if any(marks) else (),
            learnt_from=tuple(voices[i].name for i in sorted(heard_in[features, session])),
        )
        if cohort is not None and any(fit.evidence for fit in fits.values()):
            law = replace(law, evidence=_evidence(law, lengths, template_lengths, fits, cohort))
        laws.append(law)
        rows.extend(law.rows)
    if prior is not None and before is not None:
        learnt = set(found)
        lacking = [s for s in chosen_sets if (s, "cross") not in learnt and before.has(s, "cross")]
        stand_ins = [prior.laws.find(s, "cross") for s in lacking]
        laws.extend(replace(law, origin="shipped") for law in stand_ins if law is not None)
    several = sum(len(voice.sessions) > 1 for voice in voices)
    made = Calibration(Laws(laws), tuple(rows), several, cohort)
    if alarms is None:
        return made
    told = with_maxima(alarms.calibrated(made), voices, trained=trained, seed=seed)
    return replace(made, laws=told.laws)


def _sets(wanted: Sequence[Sequence[str]] | None, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The sets of features that get a law, each in the order of ``names``."""
    if wanted is None:
        sizes = range(1, len(names) + 1) if len(names) <= _MOST_SETS else (1, len(names))
        return [features for size in sizes for features in combinations(names, size)]
    if strange := sorted({name for each in wanted for name in each} - set(names)):
        raise UsageError(f"no law of {strange[0]!r}: calibrating {', '.join(names)}")
    return list(dict.fromkeys(tuple(name for name in names if name in each) for each in wanted))


def _testers(
    voices: Sequence[SpeakerSpeech],
    sets: Sequence[tuple[str, ...]],
    trained: Mapping[str, Collection[str]],
) -> dict[tuple[str, ...], BoolArray]:
    """Whose tests count, by set of features: shape (voices,) each."""
    made = {}
    for features in sets:
        trainers = {name for feature in features for name in trained.get(feature, ())}
        made[features] = np.array([voice.name not in trainers for voice in voices])
        if (left := int(made[features].sum())) < FEWEST_SPEAKERS:
            raise CalibrationError(
                f"only {left} of {len(voices)} speakers trained no network of "
                f"{'+'.join(features)}; at least {FEWEST_SPEAKERS} are needed to learn a law"
            )
    return made


def _against(
    cohort: Cohort | None, specs: Mapping[str, FeatureSpec], scorers: Mapping[str, Similarity]
) -> dict[str, CohortScoring]:
    """The cohort, ready to be scored, of the features that are made as the voices' are."""
    if cohort is None:
        return {}
    both = comparable_features(specs, cohort.specs)
    made = {name: CohortScoring(cohort, name, scorers[name]) for name in specs if name in both}
    return {name: one for name, one in made.items() if len(one) >= FEWEST_SPEAKERS}


def _ratios(
    cell: Cell,
    axis: Sequence[int],
    voices: BoolArray,
    weights: FloatArray,
    told: KnownLaw | None,
) -> FittedEvidence | None:
    """Likelihood ratios of one cell; None where too few people were heard of every feature."""
    found = None if cell.compared is None else chosen(cell.compared, axis, voices)
    if found is None or np.unique(found.streams[found.own >= 0]).size < FEWEST_SPEAKERS:
        return None
    known = None
    if told is not None and told.evidence is not None:
        known = PriorCoefficients(told.evidence, told.worth)
    return fit_evidence(found, weights, known)


def _evidence(
    law: RankLaw,
    lengths: Sequence[float],
    template_lengths: Sequence[float],
    fits: Mapping[tuple[int, int], FittedCell],
    cohort: Cohort,
) -> EvidenceLaw:
    """Put what the cells say of likelihood ratios on the grid of the law."""
    rows, columns = law.lengths.tolist(), law.template_lengths.tolist()
    shape = len(rows), len(columns)
    parts = 1 + len(law.features)
    coefficients = np.full((law.alpha.shape[0], *shape, parts), np.nan)
    support, area = np.full(shape, np.nan), np.full(shape, np.nan)
    for (t, d), fit in fits.items():
        if fit.evidence is not None:
            cell = rows.index(lengths[t]), columns.index(template_lengths[d])
            coefficients[(slice(None), *cell)] = fit.evidence.coefficients
            support[cell], area[cell] = fit.evidence.support, fit.evidence.area
    return EvidenceLaw(
        law.lengths,
        law.template_lengths,
        coefficients[..., 0],
        coefficients[..., 1:],
        support,
        area,
        tuple(cohort.mark(name) for name in law.features),
    )


def _enough(place: _Place) -> bool:
    """Whether a cell has the speakers that a law needs."""
    return place[-1].mated.size >= FEWEST_SPEAKERS


def _grid(lengths: Sequence[float]) -> list[float]:
    """Lengths in order, each once."""
    for length in lengths:
        units_of(length)
    if not lengths:
        raise UsageError("a grid of lengths needs at least one")
    return sorted(set(lengths))


def _assemble(
    features: tuple[str, ...],
    session: str,
    similarities: tuple[str, ...],
    lengths: Sequence[float],
    template_lengths: Sequence[float],
    fits: Mapping[tuple[int, int], FittedCell],
    replicates: int,
    common: int,
) -> RankLaw:
    """Put fitted cells on the grid; lengths that nobody reached are dropped.

    Their rows say what the model gives among ``common`` candidates too: there, cells compare.
    """
    used_t = sorted({t for t, _ in fits})
    used_d = sorted({d for _, d in fits})
    grid = (replicates + 1, len(used_t), len(used_d))

    def arrange(pick: Callable[[FittedCell], FloatArray], *more: int) -> FloatArray:
        values = np.full((*grid, *more), np.nan)
        for (t, d), fitted in fits.items():
            values[:, used_t.index(t), used_d.index(d)] = pick(fitted)
        return values

    rows = tuple(
        {
            "feature": "+".join(features),
            "session": session,
            "T": lengths[t],
            "D": template_lengths[d],
            **fitted.row,
            **_bits_among(fitted, common),
        }
        for (t, d), fitted in sorted(fits.items(), key=lambda item: (item[0][1], item[0][0]))
    )
    return RankLaw(
        features,
        session,
        similarities,
        np.asarray([lengths[t] for t in used_t]),
        np.asarray([template_lengths[d] for d in used_d]),
        arrange(lambda cell: cell.alpha),
        arrange(lambda cell: cell.beta),
        arrange(lambda cell: cell.binomial.astype(float)) == 1.0,
        _heard(arrange(lambda cell: cell.weights, len(features))),
        arrange(lambda cell: cell.floor),
        arrange(lambda cell: cell.open_set[None], 1 + len(features))[0],
        rows,
        max(int(row["speakers"]) for row in rows),
        max(int(row["candidates"]) for row in rows),
        float(rows[0]["prior_speakers"]),
    )


def _bits_among(fitted: FittedCell, candidates: int) -> dict[str, float]:
    """The model's MeanD with its limits, among so many candidates."""
    bits = mean_bits_of(fitted.alpha, fitted.beta, fitted.binomial, candidates)
    low, high = limits(bits[1:])
    return {
        "common_candidates": candidates,
        "common_bits": float(bits[0]),
        "common_bits_low": low,
        "common_bits_high": high,
    }


def _heard(weights: FloatArray) -> FloatArray:
    """Lambda, shape (1 + B, nT, nD, F), where a feature had no frame yet: the next longer test's.

    So that it is right from the first frame on. One that no test was long enough for has no say.
    """
    reached = ~np.isnan(weights).all(axis=-1, keepdims=True)
    for t in range(weights.shape[1] - 2, -1, -1):
        missing = np.isnan(weights[:, t])
        weights[:, t][missing] = weights[:, t + 1][missing]
    return np.asarray(np.where(reached & np.isnan(weights), 0.0, weights))
