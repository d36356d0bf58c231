"""The metrics of the papers on a matrix of trials x speakers; every figure with its uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.evaluation.accounting.account import account
    from monitor.evaluation.anonymity.figures import speaker_mean_ranks
    from monitor.evaluation.evaluating import evaluate
    from monitor.evaluation.figure import Figure
    from monitor.evaluation.input.embeddings import read_embeddings
    from monitor.evaluation.input.scores import read_scores
    from monitor.evaluation.linkage.figures import pi_link
    from monitor.evaluation.linkage.separation import d_sys
    from monitor.evaluation.linkage.singling import pi_sing
    from monitor.evaluation.membership.operating import operating_point
    from monitor.evaluation.online import OnlineLID, OnlineSRD
    from monitor.evaluation.report.comparing import compare
    from monitor.evaluation.report.page import save_page
    from monitor.evaluation.report.report import Report
    from monitor.evaluation.scores.comparisons import Comparisons
    from monitor.evaluation.scores.matrix import ScoreMatrix
    from monitor.evaluation.scores.roles import Roles
    from monitor.evaluation.scores.score_list import ScoreList
    from monitor.evaluation.srd.rank_laws import loss_fits, rank_law
    from monitor.evaluation.verification.error_rates import det_curve, eer
    from monitor.evaluation.verification.figures import cllr, min_cllr
    from monitor.evaluation.zebra.ece import ece_profile
    from monitor.evaluation.zebra.figures import d_ece, log10_l, tag

__all__ = [
    "Comparisons",
    "Figure",
    "OnlineLID",
    "OnlineSRD",
    "Report",
    "Roles",
    "ScoreList",
    "ScoreMatrix",
    "account",
    "cllr",
    "compare",
    "d_ece",
    "d_sys",
    "det_curve",
    "ece_profile",
    "eer",
    "evaluate",
    "log10_l",
    "loss_fits",
    "min_cllr",
    "operating_point",
    "pi_link",
    "pi_sing",
    "rank_law",
    "read_embeddings",
    "read_scores",
    "save_page",
    "speaker_mean_ranks",
    "tag",
]

_HOMES = {
    "Comparisons": "scores.comparisons",
    "Figure": "figure",
    "OnlineLID": "online",
    "OnlineSRD": "online",
    "Report": "report.report",
    "Roles": "scores.roles",
    "ScoreList": "scores.score_list",
    "ScoreMatrix": "scores.matrix",
    "account": "accounting.account",
    "cllr": "verification.figures",
    "compare": "report.comparing",
    "d_ece": "zebra.figures",
    "d_sys": "linkage.separation",
    "det_curve": "verification.error_rates",
    "ece_profile": "zebra.ece",
    "eer": "verification.error_rates",
    "evaluate": "evaluating",
    "log10_l": "zebra.figures",
    "loss_fits": "srd.rank_laws",
    "min_cllr": "verification.figures",
    "operating_point": "membership.operating",
    "pi_link": "linkage.figures",
    "pi_sing": "linkage.singling",
    "rank_law": "srd.rank_laws",
    "read_embeddings": "input.embeddings",
    "read_scores": "input.scores",
    "save_page": "report.page",
    "speaker_mean_ranks": "anonymity.figures",
    "tag": "zebra.figures",
}


# river is slow to load
__getattr__, __dir__ = lazily(__name__, _HOMES)
