"""Predicts how long a test of anonymisers takes, from a sample of its work."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

from monitor.errors import SourceError
from monitor.jobs import threads_here
from monitor.lab.attacks.attacking import Preparation, list_enrolments
from monitor.lab.attacks.readers import PARTS, Piece
from monitor.lab.attacks.speech import extract_protected
from monitor.lab.durations import measure_evaluation, measure_seconds
from monitor.lab.evaluation.family import EvaluationSettings

_LOADING_SECONDS = 1.0  # enough to load networks and programs


def predict_seconds(prepared: Preparation) -> float:
    """Return the wall seconds of a test with an empty cache, on this machine.

    One trial is protected and extracted by each method, a table of random scores is evaluated, and
    a network is trained for two steps.
    """
    training = _predict_training(prepared)
    threads = threads_here(prepared.config.jobs)
    return (_predict_extraction(prepared) + _predict_evaluation(prepared)) / threads + training


def describe_device(prepared: Preparation) -> str:
    """Return where networks are trained, such as ``trains on cpu``; empty if none is trained."""
    if not _count_networks(prepared):
        return ""
    from monitor.lab.adapting.fine_tuning import choose_device

    return f"trains on {choose_device().type}"


def _count_networks(prepared: Preparation) -> int:
    return sum(attacker.trains for tried in prepared.tried.values() for attacker in tried)


def _predict_training(prepared: Preparation) -> float:
    networks, plan = _count_networks(prepared), prepared.context.training
    if not networks or plan.length.seconds is not None:
        return networks * (plan.length.seconds or 0.0)
    from monitor.lab.adapting.fine_tuning import measure_step

    step = measure_step(plan.fine_tuning, threads_here(prepared.config.jobs))
    return networks * (plan.length.steps or 0) * step


def _predict_extraction(prepared: Preparation) -> float:
    """Return the seconds of one core."""
    config, context = prepared.config, prepared.context
    sample = context.judged.pieces("trials")[0]
    end_seconds = min(sample.start_seconds + _LOADING_SECONDS, sample.end_seconds)
    rates: dict[tuple[str, tuple[str, ...]], float] = {}

    def extract(piece: Piece, method: str, measures: tuple[str, ...]) -> None:
        extract_protected(piece, method, config.seed, context.features, measures, config.setup)

    def load(method: str, measures: tuple[str, ...]) -> None:
        with suppress(SourceError):
            extract(replace(sample, end_seconds=end_seconds), method, measures)

    def rate(method: str, measures: tuple[str, ...] = ()) -> float:
        if (method, measures) not in rates:
            try:
                wall = measure_seconds(
                    partial(extract, sample, method, measures), partial(load, method, measures)
                )
            except SourceError:  # reported with the reason by the test itself
                wall = 0.0
            rates[method, measures] = wall / sample.seconds
        return rates[method, measures]

    requests = context.list_requests(prepared.tried)
    total = sum(r.piece.seconds * rate(r.method, r.measures) for r in requests)
    readers = [context.judged, *([context.background.readers] if context.background else [])]
    again = sum(piece.seconds for group in readers if group for piece in group.pieces(*PARTS))
    for method, attackers in prepared.tried.items():  # again with the trained network
        total += again * rate(method) * sum(attacker.trains for attacker in attackers)
    return total


def _predict_evaluation(prepared: Preparation) -> float:
    """Return the seconds of one core."""
    config, judged = prepared.config, prepared.context.judged
    trials = sum(len(reader.trials) for reader in judged.everybody)
    amounts = config.amounts
    enrolments = list_enrolments(amounts.least_segments, config.segments, amounts.most_segments)
    features = len(prepared.context.features)
    normalised = sum(scoring == "average" for _, scoring in enrolments)
    rows = len(enrolments) * features + (features > 1) + normalised
    attacks = sum(map(len, prepared.tried.values()))
    seconds = measure_evaluation(len(judged), trials, EvaluationSettings(config.replicates))
    return rows * attacks * seconds
