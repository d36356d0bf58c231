"""Forensic validation of likelihood ratios, by condition and by length.

Measures: Cllr (accuracy), min Cllr (discrimination), Cllr cal (calibration), EER, devPAV, empirical
bounds (ELUB), invariance bounds, and rates of misleading evidence. They hold only for the
population and conditions tested.

Source: Brummer and du Preez, 2006. Terms follow Meuwly, Ramos and Haraksim, 2017. Bounds and devPAV
are in `monitor.maths.ratio_checks`. Guidelines: the consensus on validation of forensic voice
comparison (Morrison and others, 2021), ENFSI (2015), ISO 21043-4 (2025).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from monitor.errors import UsageError
from monitor.lab.evaluation import verification
from monitor.lab.evaluation.comparisons import Comparisons, ScoreList, ScoreMatrix, natural, within
from monitor.lab.evaluation.evaluating import warnings_of
from monitor.lab.evaluation.family import EvaluationContext, EvaluationSettings, add_limits
from monitor.lab.evaluation.input.groups import Attribute
from monitor.lab.evaluation.verification import EER, HULL, NEAREST
from monitor.lab.report.model import Figure, OneLine
from monitor.maths.likelihood_ratios import ScorePairs, TemplateComparisons, pair_count
from monitor.maths.logistic import Platt, platt
from monitor.maths.ratio_checks import (
    bounds_bits,
    calibrated_by_pav,
    deviation_from_pav,
    invariance_bounds_bits,
    supported_bits,
)
from monitor.maths.statistics import REPLICATES
from monitor.phrases import plural
from monitor.types import BoolArray, FloatArray, IntArray

BASES = {"e": 1.0, "2": float(np.log(2.0)), "10": float(np.log(10.0))}
"""Nats of a unit of log-likelihood ratios, by the base of the logarithm."""
MOST = 20_000_000  # comparisons that are held in memory
_TENS = float(np.log10(2.0))
_FOLDS = 8


MEASURES = {
    "cllr": ("Cllr", "bits", "accuracy",
             "mean cost of the ratios; 0 is perfect, 1 uninformative, and above 1 misleading"),
    "min_cllr": ("min Cllr", "bits", "discrimination",
                 "Cllr after the best monotone calibration of these ratios"),
    "cllr_cal": ("Cllr cal", "bits", "calibration",
    "Cllr minus min Cllr, the cost of wrong calibration"),
    "eer": (EER[NEAREST], "share", "discrimination",
            "equal error rate, at the threshold where both rates are nearest"),
    "eer_rocch": (EER[HULL], "share", "discrimination",
                  "equal error rate, on the convex hull of the ROC"),
    "devpav": ("devPAV", "log10", "calibration",
               "mean distance of log10 LR from its value after PAV"),
    "misleading_same": ("LR below 1, same speaker", "share", "misleading evidence",
                        "fraction of same-speaker comparisons that support different speakers"),
    "misleading_different": ("LR above 1, two speakers", "share", "misleading evidence",
                             "fraction of different-speaker comparisons that support one speaker"),
    "elub_low": ("ELUB, lower", "log10", "range", "log10 LR; below it a ratio is extrapolation"),
    "elub_high": ("ELUB, upper", "log10", "range", "log10 LR; above it a ratio is extrapolation"),
    "elub_people": ("ELUB, upper, by people", "log10", "range",
                    "the same, with pairs that share people counted as fewer observations"),
    "elub_people_low": ("ELUB, lower, by people", "log10", "range",
                        "the same, with all comparisons of one person counted as one"),
    "invariance_low": ("invariance bound, lower", "log10", "range",
                       "log10 LR down to which no test contradicts the ratios"),
    "invariance_high": ("invariance bound, upper", "log10", "range",
                        "log10 LR up to which no test contradicts the ratios"),
}  # fmt: skip
"""Each measure's label, unit, performance characteristic that it measures, and meaning."""
_OPERATORS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


@dataclass(frozen=True, slots=True)
class Criterion:
    """Requirement on a measure, fixed before the test: ``cllr<=0.3``."""

    name: str
    sign: str
    bound: float

    @classmethod
    def parse(cls, text: str) -> Criterion:
        """Parse a criterion.

        Raises:
            UsageError: if it is invalid.

        Example:
            >>> criterion = Criterion.parse("Cllr <= 0.3")
            >>> str(criterion), criterion.met(0.2), criterion.met(None)
            ('cllr <= 0.3', True, None)
        """
        match = re.fullmatch(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\S+)\s*", text)
        try:
            name, sign, bound = match.groups() if match else ("", "", "")
            if name.lower() in MEASURES and np.isfinite(float(bound)):
                return cls(name.lower(), sign, float(bound))
        except ValueError:
            pass
        raise UsageError(
            f"invalid criterion {text!r}: use a measure, <, <=, > or >= and a number, such as "
            f"cllr<=0.3. Measures are {', '.join(MEASURES)}"
        )

    def met(self, value: float | None) -> bool | None:
        """Return whether a value meets the criterion; None without a value."""
        return None if value is None else bool(_OPERATORS[self.sign](value, self.bound))

    def worst_end(self, figure: Figure) -> float | None:
        """Return the interval limit that fails although the value passes; None otherwise."""
        end = figure.high if self.sign.startswith("<") else figure.low
        return end if self.met(figure.value) and self.met(end) is False else None

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.bound:g}"


@dataclass(frozen=True)
class ValidationStatement:
    """Statements that only the examiner can make; empty if not stated.

    They are the propositions, the relevant population, the conditions of the case, and the
    criteria.
    """

    h1: str = ""
    h2: str = ""
    population: str = ""
    case: str = ""
    criteria: tuple[Criterion, ...] = ()


@dataclass(frozen=True, repr=False)
class ValidationPart(OneLine):
    """The measures of some comparisons."""

    name: str  # of the group or condition; empty for all
    speakers: int  # people with same-speaker comparisons
    # same, different: numbers of comparisons of one speaker, and of two
    same: int
    different: int
    pairs: int  # pairs of people behind the latter
    figures: Mapping[str, Figure]  # by name of `MEASURES`

    def __getitem__(self, name: str) -> float | None:
        return self.figures[name].value

    @property
    def supported_bits(self) -> tuple[float, float]:
        """Narrowest ELUB on either side, in bits of evidence."""
        low, high = (
            [value for key in keys if (value := self[key]) is not None]
            for keys in (("elub_low", "elub_people_low"), ("elub_high", "elub_people"))
        )
        return max(low) / _TENS, min(high) / _TENS


@dataclass(frozen=True, repr=False)
class Validation(OneLine):
    """Validation of one system's likelihood ratios.

    Attributes:
        name: name of the system.
        trials: number of trials.
        calibration: origin of its likelihood ratios, one sentence.
        total: measures of all comparisons.
        parts: measures of groups and conditions, by their kind.
        mated, others: log10 likelihood ratios, shape (n,) and (m,).
        notes: exclusions and caveats, one sentence each.
        facts: facts about the system, such as ``{"T": "10"}``.
        replicates, seed: number and seed of the resamples of speakers.
    """

    name: str
    trials: int
    calibration: str
    total: ValidationPart
    parts: Mapping[str, tuple[ValidationPart, ...]]
    mated: FloatArray
    others: FloatArray
    notes: tuple[str, ...] = ()
    facts: Mapping[str, str] | None = None
    replicates: int = 0
    seed: int = 0


def validate(
    scores: ScoreMatrix | Comparisons,
    dev: ScoreMatrix | Comparisons | None = None,
    *,
    llr: str | None = None,
    conditions: Sequence[Attribute] = (),
    groups: Attribute | None = None,
    replicates: int = REPLICATES,
    seed: int = 0,
    notes: Sequence[str] = (),
) -> Validation:
    """Measure the quality of a system's likelihood ratios.

    Args:
        scores: the comparisons.
        dev: scores of other speakers, for calibration by logistic regression. Without them, a
            comparison of two people is calibrated on comparisons of other people.
        llr: base of the logarithm, ``"e"``, ``"2"`` or ``"10"``, if scores are log-likelihood
            ratios already. They are then not calibrated.
        conditions: conditions of the trials, by their names.
        groups: groups of speakers. Each group's trials are compared with its own speakers only.
        replicates: number of resamples of speakers, for intervals; 0 for no intervals.
        seed: seed of the resamples.
        notes: notes to add to the result.

    Raises:
        UsageError: there are too many comparisons, too few speakers for calibration, or no trials
            with a condition.

    Example:
        >>> target = np.arange(60) % 20
        >>> nats = np.random.default_rng(0).normal(size=(60, 20)) + 3 * np.eye(20)[target]
        >>> found = validate(ScoreMatrix(nats, target), replicates=0)
        >>> found.total.pairs, found.total["min_cllr"] <= found.total["cllr"] < 1
        (190, True)
    """
    comparisons = Comparisons.all_of(scores) if isinstance(scores, ScoreMatrix) else scores
    listed = _in_memory(comparisons)
    nats, calibration = _ratios(listed, comparisons.name, dev, llr)
    listed = replace(listed, scores=nats)
    context = EvaluationContext.from_scores(comparisons, EvaluationSettings(0, seed))
    messages = [*warnings_of(context), *notes]
    if llr is None and dev is None:
        messages.append(_describe_uncalibrated(context))
    settings = EvaluationSettings(replicates, seed)
    total = _measure(listed, "", settings)
    parts: dict[str, tuple[ValidationPart, ...]] = {}
    if groups is not None:
        parts[groups.name or "group"] = tuple(_by_group(listed, groups, messages, settings))
    for condition in conditions:
        members = _by_condition(listed, comparisons.name, condition, messages, settings)
        parts[condition.name or condition.label] = tuple(members)
    tens = nats / np.log(10.0)
    return Validation(
        comparisons.name, len(listed.spoken), calibration, total, parts,
        np.sort(tens[listed.mated]), np.sort(tens[~listed.mated]), tuple(messages),
        replicates=replicates, seed=seed,
    )  # fmt: skip


def _in_memory(every: Comparisons) -> ScoreList:
    usage = every.usage
    if usage.target + usage.nontarget > MOST:
        raise UsageError(
            f"{every.name} has {usage.target + usage.nontarget:,} comparisons, more than {MOST:,}: "
            "validate some of the trials"
        )
    return every.listed()


def _ratios(
    listed: ScoreList, name: str, dev: ScoreMatrix | Comparisons | None, llr: str | None
) -> tuple[FloatArray, str]:
    """Return log-likelihood ratios in nats, (n,), and a sentence on their origin."""
    scores = np.asarray(listed.scores, np.float64)
    if llr is not None:
        if llr not in BASES:
            raise UsageError(f"invalid base llr={llr!r}: use one of {', '.join(BASES)}")
        if dev is not None:
            raise UsageError("log-likelihood ratios are used unchanged: leave out the dev scores")
        return scores * BASES[llr], (
            f"{name} gives log-likelihood ratios (base {llr}), which are used unchanged."
        )
    if dev is not None:
        others = _in_memory(Comparisons.all_of(dev) if isinstance(dev, ScoreMatrix) else dev)
        fit = _fit(others, np.ones(others.mated.size, bool))
        shared = {*others.people, *others.speakers} & {*listed.people, *listed.speakers}
        nameless = listed.speakers == tuple(map(str, range(len(listed.speakers))))
        many = f"{len(others.mated):,} comparisons of {plural(len(others.people), 'speaker')}"
        both = f" {plural(len(shared), 'speaker')} of them were also tested."
        return scores * fit.weight + fit.bias, (
            f"Scores were calibrated by logistic regression on {many} in development scores."
            + (both if shared and not nameless else "")
            + _describe_bound(fit)
        )
    return _cross_calibrate(listed, name, scores)


def _fit(listed: ScoreList, training: BoolArray) -> Platt:
    """Fit standardised scores, so that a penalty on the slope ignores their scale."""
    scores = np.asarray(listed.scores, np.float64)
    largest = float(np.abs(scores[training]).max()) or 1.0  # the square may overflow
    scores = scores / largest
    mean, spread = float(scores[training].mean()), float(scores[training].std()) or 1.0
    scores = (scores - mean) / spread
    fit = platt(scores[training & listed.mated], scores[training & ~listed.mated], balanced=True)
    weight = fit.weight / spread
    return replace(fit, weight=weight / largest, bias=fit.bias - weight * mean)


def _describe_bound(fit: Platt) -> str:
    return " The scores separate perfectly, so a penalty limits the slope." * fit.bounded


def people_of(listed: ScoreList) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """Return tester and template speaker of each comparison, (n,), as indices of names."""
    names = tuple(sorted({*listed.people, *listed.speakers}, key=natural))
    index = {name: i for i, name in enumerate(names)}
    tester = np.array([index[name] for name in listed.people])[listed.spoken][listed.trial]
    return tester, np.array([index[name] for name in listed.speakers])[listed.speaker], names


def _cross_calibrate(listed: ScoreList, name: str, scores: FloatArray) -> tuple[FloatArray, str]:
    """Calibrate each comparison on comparisons of people outside its people's folds."""
    tester, owner, names = people_of(listed)
    tested = np.zeros(len(names), bool)
    tested[tester[listed.mated]] = True
    folds = min(_FOLDS, int(tested.sum()))
    fold = np.empty(len(names), dtype=np.intp)
    fold[np.argsort(~tested, kind="stable")] = np.arange(len(names)) % max(folds, 1)
    test_fold, template_fold = fold[tester], fold[owner]
    first, last = np.minimum(test_fold, template_fold), np.maximum(test_fold, template_fold)
    ratios = np.empty(scores.size)
    bounded = False
    for k in range(folds):
        for j in range(k, folds):
            held_out = (first == k) & (last == j)
            if not held_out.any():
                continue
            training = ~np.isin(test_fold, (k, j)) & ~np.isin(template_fold, (k, j))
            if not (training & listed.mated).any() or not (training & ~listed.mated).any():
                raise UsageError(
                    f"{name}: {plural(int(tested.sum()), 'speaker')}, too few to calibrate on some "
                    "and test on others. Use --dev, or scores that are likelihood ratios (--llr)"
                )
            fit = _fit(listed, training)
            bounded |= fit.bounded
            ratios[held_out] = scores[held_out] * fit.weight + fit.bias
    return ratios, (
        f"Scores were calibrated by logistic regression, cross-validated over speakers in "
        f"{plural(folds, 'fold')}: each comparison by a fit without either of its two people."
        + _describe_bound(Platt(0.0, 0.0, bounded))
    )


def _describe_uncalibrated(context: EvaluationContext) -> str:
    """Explain how EER and min Cllr differ from those of `monitor evaluate`."""
    figures = verification.figures(context.comparisons, None, context.counts)
    values = {figure.key: figure.shown for figure in figures}
    min_cllr = values["verification.min_cllr_bits"]
    return (
        "EER and min Cllr are of the calibrated ratios. Folds are calibrated separately, so one "
        "score may give two ratios. For the scores themselves, as in monitor evaluate, they are "
        f"{EER[NEAREST]} {values[NEAREST]} and min Cllr {min_cllr}."
    )


def _measure(listed: ScoreList, name: str, settings: EvaluationSettings) -> ValidationPart:
    """Compute all measures of log-likelihood ratios in nats."""
    pool = Comparisons(listed.speakers, None, listed, name or "all")
    context = EvaluationContext.from_scores(pool, settings)
    of_pool = verification.figures(pool, context.pool_weights, context.counts)
    pooled = {figure.key: figure for figure in add_limits(of_pool, context.sample(True))}
    cllr, min_cllr = (pooled[f"verification.{key}_bits"] for key in ("cllr", "min_cllr"))
    assert cllr.value is not None
    assert min_cllr.value is not None
    bits = np.asarray(listed.scores, np.float64) / np.log(2.0)
    mated, others = bits[listed.mated], bits[~listed.mated]
    tester, owner, _ = people_of(listed)
    by_people = TemplateComparisons(np.zeros((bits.size, 1)), ScorePairs(tester, owner))
    weight, pairs = by_people.weights(), pair_count(by_people)
    speakers = int(np.unique(tester[listed.mated]).size)
    # a name for different people in trials and templates would be mated with itself
    consistent = bool((by_people.mated == listed.mated).all())
    elub_people = elub_people_low = None
    if consistent:
        weights = weight[listed.mated], weight[~listed.mated]
        different = by_people.select(~listed.mated)
        elub_people, _ = supported_bits(mated, others, *weights, speakers, pairs, different)
        elub_people_low, _ = supported_bits(-others, -mated, *weights[::-1], pairs, speakers)
    deviation = deviation_from_pav(*calibrated_by_pav(mated, others)) * _TENS
    elub, invariance = bounds_bits(mated, others), invariance_bounds_bits(mated, others)
    values: dict[str, float | None] = {
        "cllr_cal": max(cllr.value - min_cllr.value, 0.0),
        "devpav": None if np.isnan(deviation) else deviation,
        "misleading_same": float((mated < 0).mean()),
        "misleading_different": float((others > 0).mean()),
        "elub_low": elub[0] * _TENS,
        "elub_high": elub[1] * _TENS,
        "elub_people": None if elub_people is None else elub_people * _TENS,
        "elub_people_low": None if elub_people_low is None else -elub_people_low * _TENS,
        "invariance_low": invariance[0] * _TENS,
        "invariance_high": invariance[1] * _TENS,
    }
    separated = "perfect separation: there is no calibrated ratio to compare"
    figures = {
        "cllr": replace(cllr, note=""),
        "min_cllr": min_cllr,
        "eer": pooled[NEAREST],
        "eer_rocch": pooled[HULL],
    } | {
        key: Figure(key, "", value, MEASURES[key][1],
                    note=separated * (key == "devpav" and value is None))
        for key, value in values.items()
    }  # fmt: skip
    named = {
        key: replace(figures[key], key=key, label=label) for key, (label, *_) in MEASURES.items()
    }
    return ValidationPart(name, speakers, mated.size, others.size, pairs, named)


def _by_group(
    listed: ScoreList, groups: Attribute, messages: list[str], settings: EvaluationSettings
) -> Iterator[ValidationPart]:
    comparisons = Comparisons(listed.speakers, None, listed)
    for group in groups.values:
        try:
            members = within(comparisons, groups.of, group).listed()
        except UsageError as error:
            messages.append(f"{group} is omitted: {error}.")
            continue
        yield _measure(members, group, settings)


def _by_condition(
    listed: ScoreList,
    name: str,
    condition: Attribute,
    messages: list[str],
    settings: EvaluationSettings,
) -> Iterator[ValidationPart]:
    values = [condition.of.get(trial, "") for trial in listed.trials]
    if not any(values):
        reason = "its trials have no names" if not listed.trials else "it lists none of the trials"
        raise UsageError(f"{condition.label} does not fit {name}: {reason}")
    if missing := values.count(""):
        messages.append(
            f"{condition.label} lacks {condition.name or 'the condition'} of {missing} of "
            f"{plural(len(values), 'trial')}."
        )
    of_trial = np.array(values, dtype=object)
    for value in sorted(set(values) - {""}, key=_lowest_first):
        rows = of_trial == value
        mated_count, compared = int(listed.hits[rows].sum()), int(listed.met[rows].sum())
        if mated_count in (0, compared):
            kind = "different speakers" if mated_count else "the same speaker"
            messages.append(f"{value} is omitted: it has no comparison of {kind}.")
            continue
        yield _measure(listed.of_trials(rows), value, settings)


def _lowest_first(value: str) -> tuple[float, str]:
    """Order ranges of numbers by their size, all others by name."""
    match = re.match(r"-?\d+(\.\d+)?", value.removeprefix("below "))
    below = value.startswith("below ")
    return (float(match[0]) - 0.5 * below if match else np.inf, value)
