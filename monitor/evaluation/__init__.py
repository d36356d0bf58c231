"""The metrics of the papers on a matrix of trials x speakers; every figure with its uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.evaluation.accounting import account
    from monitor.evaluation.anonymity import Roles, speaker_mean_ranks
    from monitor.evaluation.comparing import compare
    from monitor.evaluation.comparisons import Comparisons
    from monitor.evaluation.ece import ece_profile
    from monitor.evaluation.error_rates import det_curve, eer
    from monitor.evaluation.evaluating import evaluate
    from monitor.evaluation.figure import Figure
    from monitor.evaluation.linkage import pi_link
    from monitor.evaluation.matrix import ScoreMatrix
    from monitor.evaluation.online import OnlineLID, OnlineSRD
    from monitor.evaluation.operating import operating_point
    from monitor.evaluation.page import save_page
    from monitor.evaluation.rank_laws import loss_fits, rank_law
    from monitor.evaluation.reading.embeddings import read_embeddings
    from monitor.evaluation.reading.scores import read_scores
    from monitor.evaluation.report import Report
    from monitor.evaluation.score_list import ScoreList
    from monitor.evaluation.separation import d_sys
    from monitor.evaluation.singling import pi_sing
    from monitor.evaluation.verification import cllr, min_cllr
    from monitor.evaluation.zebra import d_ece, log10_l, tag

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
    "Comparisons": "comparisons",
    "Figure": "figure",
    "OnlineLID": "online",
    "OnlineSRD": "online",
    "Report": "report",
    "Roles": "anonymity",
    "ScoreList": "score_list",
    "ScoreMatrix": "matrix",
    "account": "accounting",
    "cllr": "verification",
    "compare": "comparing",
    "d_ece": "zebra",
    "d_sys": "separation",
    "det_curve": "error_rates",
    "ece_profile": "ece",
    "eer": "error_rates",
    "evaluate": "evaluating",
    "log10_l": "zebra",
    "loss_fits": "rank_laws",
    "min_cllr": "verification",
    "operating_point": "operating",
    "pi_link": "linkage",
    "pi_sing": "singling",
    "rank_law": "rank_laws",
    "read_embeddings": "reading.embeddings",
    "read_scores": "reading.scores",
    "save_page": "page",
    "speaker_mean_ranks": "anonymity",
    "tag": "zebra",
}


# river is slow to load
__getattr__, __dir__ = lazily(__name__, _HOMES)
