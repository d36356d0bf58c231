"""All metrics of one system's scores, each family from the same counts and the same resamples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from monitor import crowds
from monitor.errors import UsageError
from monitor.evaluation.accounting.account import account
from monitor.evaluation.among import figures as crowd
from monitor.evaluation.among.extrapolation import Extrapolation
from monitor.evaluation.anonymity import figures as anonymity
from monitor.evaluation.anonymity.figures import Roles
from monitor.evaluation.figure import Figure
from monitor.evaluation.lid import figures as lid
from monitor.evaluation.lid.figures import LidBits
from monitor.evaluation.limits import Sample, limited, no_evidence
from monitor.evaluation.linkage import figures as linkage
from monitor.evaluation.linkage.separation import d_sys_figure
from monitor.evaluation.longitudinal import figures as growth
from monitor.evaluation.longitudinal.curve import LongitudinalCurve, longitudinal
from monitor.evaluation.longitudinal.speaker_sums import FEWEST
from monitor.evaluation.membership import figures as membership
from monitor.evaluation.report.curves import rank_curves, score_curves
from monitor.evaluation.report.report import Report
from monitor.evaluation.scores.comparisons import (
    Comparisons,
    Usage,
    pooled_leaving_out,
    pooled_resamples,
)
from monitor.evaluation.scores.counts import Tally
from monitor.evaluation.scores.direction import list_warning, warning
from monitor.evaluation.scores.matrix import ScoreMatrix
from monitor.evaluation.scores.resampling import leaving_out, resamples
from monitor.evaluation.srd import figures as srd
from monitor.evaluation.srd.figures import LossFit, loss_fits, mean_bits_by_speaker, rank_law
from monitor.evaluation.verification import figures as verification
from monitor.evaluation.zebra import figures as zebra
from monitor.maths.bootstrap import DRAWS
from monitor.maths.privacyloss import DELTA
from monitor.phrases import plural
from monitor.plots.evaluation import Curves
from monitor.types import FloatArray

__all__ = ["STEPS", "evaluate"]

STEPS = 6
"""How often `evaluate` calls its ``progress``."""

_STYLE = "paper"
_FAR = 10
"""Times its own number of speakers that a law is trusted at (docs/method.md section 3)."""
_WINDOWS = (1, 10, 100, 1000)
"""Trials that a declared epsilon is accounted for."""


def evaluate(
    scores: ScoreMatrix | Comparisons,
    dev: ScoreMatrix | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    ties: str = "spread",
    roles: Roles | None = None,
    epsilon: float | None = None,
    delta: float = DELTA,
    among: Iterable[float] = (),
    notes: Sequence[str] = (),
    progress: Callable[[str], object] | None = None,
) -> Report:
    """Every metric of the papers on the scores of one system.

    Args:
        scores: the trials. Of comparisons that are more than a matrix, figures of pooled scores
            take all, ranks those of the matrix; a note says how many.
        dev: scores of other speakers, to calibrate LID on; without it each speaker goes by a
            calibration on the others.
        draws: B, the resamples of speakers behind the limits; 0 for none.
        seed: of the resamples; systems that share it and their speakers compare in pairs.
        ties: how SRD ranks equal scores, one of `monitor.maths.ranks.TIE_RULES`; each figure says
            what was done.
        roles: what was anonymised.
        epsilon: declared for one trial, nats: adds what several amount to.
        delta: chance with which bounds on epsilon may fail.
        among: numbers of people: adds IdR and MeanD among so many, see
            `monitor.evaluation.among.figures.figures`.
        notes: what to say beside the figures.
        progress: called `STEPS` times, with what comes next.

    Returns:
        figures and curves.

    Raises:
        UsageError: a score is not finite, or an option makes no sense.

    Example:
        >>> import numpy as np
        >>> target = np.arange(40) % 10
        >>> scores = np.random.default_rng(0).normal(size=(40, 10)) + 3 * np.eye(10)[target]
        >>> report = evaluate(ScoreMatrix(scores, target), draws=20)
        >>> report["zebra.tag"].text, round(report["srd.idr"].value, 2)
        ('C', 0.97)
    """
    if draws < 0:
        raise UsageError(f"draws={draws}: give 0 or more")
    sizes = crowds.sizes(among) if (among := tuple(among)) else ()

    def step(label: str) -> None:
        if progress is not None:
            progress(label)

    said = dict.fromkeys(notes, "")  # by note, the family of figures that it is about
    every = Comparisons.all_of(scores) if isinstance(scores, ScoreMatrix) else scores
    matrix, pool = every.matrix, every if every.rest else every.matrix or every
    usage = every.usage
    if every.rest is not None:
        said |= dict.fromkeys(_used(usage, len(every.speakers)), "")
    known = np.unique(pool.owner).size
    pooled, nothing = None, False
    if draws > 0 and known > 1:
        resampled = pooled_resamples(pool, draws, seed)
        pooled = np.concatenate([resampled, pooled_leaving_out(pool)])
    figures: list[Figure] = []
    drawn = Curves(every.name, len(every.speakers), usage.nontarget)
    step("ranks")
    if matrix is None:
        step("no ranks")
    else:
        weights = None
        if draws and len(matrix.tested) > 1:
            names = [matrix.speakers[column] for column in matrix.tested.tolist()]
            weights = np.concatenate([resamples(matrix, draws, seed), leaving_out(names)])
        ranked = rank_law(matrix.better, matrix.tied, matrix.population, ties)
        losses = loss_fits(ranked.histogram)
        by_speaker = mean_bits_by_speaker(matrix, ties)
        permutations = draws if len(matrix.tested) > 1 else 0
        made = srd.figures(matrix, weights, ties, permutations, seed, ranked, by_speaker)
        nothing = no_evidence(made)
        sample = Sample(weights, len(matrix.tested), matrix.trials, nothing)
        figures += limited(made, sample)
        figures += _losses(losses, ties)
        step("local disclosure")
        local = _local(matrix, dev, said)
        if local is not None:
            figures += limited(_lid(matrix, weights, dev, local), sample)
        heard = None if local is None else _heard(matrix, dev, local, said)
        if heard is not None:
            figures += limited(growth.figures(heard, weights, len(matrix.tested)), sample)
        drawn = rank_curves(
            drawn,
            matrix,
            ranked.histogram,
            {each.loss: each for each in losses},
            by_speaker if srd.repeated(matrix) else None,
            None if local is None else local.bits[_STYLE],
            *((None, {}) if heard is None else growth.lines(heard, weights)),
        )
    step("scores")
    tally = Tally.of(pool, pooled)
    whole = Sample(pooled, known, pool.mated.size, nothing)
    for family in (zebra, verification):
        figures += limited(family.figures(pool, pooled, tally), whole)
    figures += limited([d_sys_figure(pool, pooled, tally)], whole)
    step("anonymity")
    if matrix is not None:
        figures += limited(linkage.rank_figures(matrix, weights), sample)
        figures += limited(_anonymity(matrix, weights, roles, said), sample)
        if sizes:
            beyond = Extrapolation.of(matrix, sample, ties)
            figures += crowd.figures(beyond, sizes, ties)
            drawn = replace(drawn, crowd=crowd.curve(beyond, sizes))
            said |= dict.fromkeys(crowd.notes(beyond, sizes), "among")
    step("low false positive rates")
    figures += limited(membership.figures(pool, pooled, delta=delta), whole)
    if epsilon is not None:
        figures += _accounted(epsilon, delta)
    step("curves")
    by_key = {figure.key: figure for figure in figures}
    wrong = [list_warning(pool) if matrix is None else warning(matrix)]
    if matrix is not None:
        said |= dict.fromkeys(_means(matrix, by_key), "srd")
        wrong.append("" if dev is None else warning(dev, "the dev matrix"))
    return Report(
        name=every.name,
        speakers=len(every.speakers),
        trials=usage.trials,
        tested=tuple(sorted(every.people[i] for i in np.unique(every.owner).tolist())),
        draws=0 if pooled is None else draws,
        seed=seed,
        notes=tuple(said),
        about={note: family for note, family in said.items() if family},
        figures=by_key,
        curves=score_curves(drawn, tally),
        warnings=tuple(each for each in wrong if each),
        usage=usage,
        heard=frozenset() if matrix is None else matrix.named_trials,
    )


def _used(usage: Usage, speakers: int) -> Iterator[str]:
    """Which comparisons went where."""
    strange = (
        f", {usage.impostor:,} of the latter of the {plural(usage.impostor_trials, 'trial')} "
        "without a target (impostors)"
        if usage.impostor
        else ""
    )
    yield (
        f"{usage.target:,} target and {usage.nontarget:,} non-target comparisons{strange}: EER, "
        "Cllr, ZEBRA, D_sys and the rates at few false positives count them all."
    )
    whole = f"compared with all {speakers:,} speakers, their own among them"
    yield (
        f"Ranks (SRD, LID, pi_link, pi_sing, mean ranks) stand on the {usage.ranked_trials:,} of "
        f"{plural(usage.trials, 'trial')} that were {whole}."
        if usage.ranked_trials
        else f"No trial was {whole}: SRD, LID, pi_link, pi_sing and mean ranks are left out."
    )


def _local(matrix: ScoreMatrix, dev: ScoreMatrix | None, said: dict[str, str]) -> LidBits | None:
    if dev is None and len(matrix.tested) < 2:
        said["LID is left out: it needs a dev matrix, or trials of two speakers."] = "lid"
        return None
    if dev is None:
        note = "There is no dev matrix: LID was calibrated across the speakers, each by the others."
        said[note] = "lid"
    else:
        said |= dict.fromkeys(_of_dev(matrix, dev), "lid")
    return LidBits.of(matrix, dev)


def _of_dev(matrix: ScoreMatrix, dev: ScoreMatrix) -> Iterator[str]:
    if shared := _tested(matrix) & _tested(dev):
        yield f"{len(shared)} of the speakers are in the dev matrix as well: LID is flattered."
    here, there = matrix.population, dev.population
    if here == there:
        return
    rank_law = (
        f"no rank law is carried over from fewer than {FEWEST}"
        if there < FEWEST
        else f"the rank law is evaluated at N = {here}"
    )
    yield (
        f"The dev matrix has N = {plural(there, 'speaker')}: LID's calibration is that of "
        f"{there}, which row "
        f"normalisation makes a little different at N = {here}; {rank_law}."
    )
    if here > _FAR * there:
        yield f"N is more than {_FAR} times that of the dev matrix: what it says is stretched far."


def _tested(matrix: ScoreMatrix) -> set[str]:
    """Names of the speakers with trials; none where they are no more than numbers."""
    return {name for i in matrix.tested if not (name := matrix.speakers[i]).isdecimal()}


def _lid(
    matrix: ScoreMatrix, weights: FloatArray | None, dev: ScoreMatrix | None, local: LidBits
) -> Iterator[Figure]:
    """Without what stands twice: the style chosen stands without its name."""
    for figure in lid.figures(matrix, weights, dev, _STYLE, found=local):
        style = figure.key.split(".")[1]
        if style != _STYLE:
            yield _by_their_code(figure) if style in local.bits else figure


def _by_their_code(figure: Figure) -> Figure:
    how = "calibrated as the authors' public code does: both classes weigh alike, ddof 1"
    note = "; ".join(part for part in (figure.note, how) if part)
    return replace(figure, label=f"{figure.label}, authors' code", note=note)


def _means(matrix: ScoreMatrix, figures: Mapping[str, Figure]) -> Iterator[str]:
    """Why figures that are all called a mean differ most where each speaker was heard once."""
    if srd.repeated(matrix):
        return
    values = {
        name: f" ({figure.value:.2f})" if figure and figure.value is not None else ""
        for name, figure in (
            (name, figures.get(f"srd.{name}"))
            for name in ("mean_bits", "mean_bits_miller_madow", "mean_bits_model")
        )
    }
    yield (
        "One trial a speaker: three figures estimate one mean, MeanD. "
        f"Counted{values['mean_bits']} it is too high on few trials; with its bias taken off"
        f"{values['mean_bits_miller_madow']} and by the fitted law{values['mean_bits_model']} it "
        "is not. Quote the law's: its limits are the ones that hold. ALID is another attacker's "
        "mean; single speakers have none, and are left out."
    )


def _anonymity(
    matrix: ScoreMatrix, weights: FloatArray | None, roles: Roles | None, said: dict[str, str]
) -> Iterator[Figure]:
    """What was anonymised is said once, not at each figure."""
    figures = anonymity.figures(matrix, weights, roles=roles)
    who = next(figure.note for figure in figures if "P(rank" in figure.label)
    said[who] = "anonymity"
    for figure in figures:
        yield replace(figure, note=figure.note.removeprefix(who).strip())


def _heard(
    matrix: ScoreMatrix, dev: ScoreMatrix | None, local: LidBits, said: dict[str, str]
) -> LongitudinalCurve | None:
    if np.bincount(matrix.owner).max() < 2:
        note = "No speaker has a second trial: what hearing more discloses is left out."
        said[note] = "longitudinal"
        return None
    try:
        calibration = local.calibrations[_STYLE]
        return longitudinal(matrix, dev, _STYLE, calibration=calibration, as_rows=False)
    except UsageError as error:
        said[f"What hearing more discloses is left out: {error}."] = "longitudinal"
        return None


def _accounted(epsilon: float, delta: float) -> Iterator[Figure]:
    found = account(epsilon, delta, max(_WINDOWS))
    for row in found.rows:
        if row.trials not in _WINDOWS:
            continue
        for rule, value in (
            ("basic", row.basic_nats),
            ("advanced", row.advanced_nats),
            ("optimal", row.optimal_nats),
        ):
            yield Figure(
                f"accounting.{rule}_nats_{row.trials}",
                f"{row.trials:,} trial{'s' if row.trials > 1 else ''}: {rule}",
                value,
                "nats",
                floor=0.0,
                note=found.note,
            )


def _losses(losses: Sequence[LossFit], ties: str) -> Iterator[Figure]:
    for each in losses:
        note = ", ".join(each.notes)
        name = each.loss.lower()
        yield Figure(
            f"srd.kl_{name}_bits", f"law by {each.loss}: misfit (KL)", each.kl_bits, "bits",
            ties=ties, note=note,
        )  # fmt: skip
        yield Figure(
            f"srd.rank1_match_{name}_bits", f"law by {each.loss}: misfit at rank 1",
            each.rank1_match_bits, "bits", ties=ties, note=note,
        )  # fmt: skip
