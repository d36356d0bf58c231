"""Metrics of the papers on scores of trials x speakers, each with its uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.lab.evaluation.accounting import account
    from monitor.lab.evaluation.anonymity import speaker_mean_ranks
    from monitor.lab.evaluation.comparisons import Comparisons, Roles, ScoreList, ScoreMatrix
    from monitor.lab.evaluation.document import save_page
    from monitor.lab.evaluation.evaluating import evaluate
    from monitor.lab.evaluation.family import EvaluationSettings
    from monitor.lab.evaluation.input.embeddings import read_embeddings
    from monitor.lab.evaluation.input.scores import read_scores
    from monitor.lab.evaluation.linkage import d_sys, pi_link, pi_sing
    from monitor.lab.evaluation.membership import operating_point
    from monitor.lab.evaluation.report import Report
    from monitor.lab.evaluation.srd import fitted_rank_model, loss_fits
    from monitor.lab.evaluation.systems import compare
    from monitor.lab.evaluation.validation import (
        Criterion,
        Validation,
        ValidationStatement,
        validate,
    )
    from monitor.lab.evaluation.validation_document import save_validation
    from monitor.lab.evaluation.verification import cllr, det_curve, eer, min_cllr
    from monitor.lab.evaluation.zebra import d_ece, ece_profile, log10_l, tag
    from monitor.lab.report.model import Figure

__all__ = [
    "Comparisons",
    "Criterion",
    "EvaluationSettings",
    "Figure",
    "Report",
    "Roles",
    "ScoreList",
    "ScoreMatrix",
    "Validation",
    "ValidationStatement",
    "account",
    "cllr",
    "compare",
    "d_ece",
    "d_sys",
    "det_curve",
    "ece_profile",
    "eer",
    "evaluate",
    "fitted_rank_model",
    "log10_l",
    "loss_fits",
    "min_cllr",
    "operating_point",
    "pi_link",
    "pi_sing",
    "read_embeddings",
    "read_scores",
    "save_page",
    "save_validation",
    "speaker_mean_ranks",
    "tag",
    "validate",
]

_HOMES = {
    "accounting": "account",
    "anonymity": "speaker_mean_ranks",
    "evaluating": "evaluate",
    "family": "EvaluationSettings Figure",
    "input.embeddings": "read_embeddings",
    "input.scores": "read_scores",
    "linkage": "d_sys pi_link pi_sing",
    "membership": "operating_point",
    "systems": "compare",
    "document": "save_page",
    "report": "Report",
    "validation_document": "save_validation",
    "comparisons": "Comparisons Roles ScoreList ScoreMatrix",
    "srd": "fitted_rank_model loss_fits",
    "validation": "Criterion Validation ValidationStatement validate",
    "verification": "cllr det_curve eer min_cllr",
    "zebra": "d_ece ece_profile log10_l tag",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
