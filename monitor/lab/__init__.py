"""The laboratory: metrics of the papers, attacks, audits and experiments on finished corpora.

The monitor never imports it, so live monitoring works without this folder.

>>> import monitor
>>> callable(monitor.evaluate), callable(monitor.lab.attacks.attack)
(True, True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitor.lazy import lazily

if TYPE_CHECKING:
    from monitor.lab import adapting, attacks, audit, evaluation, experiment, utility
    from monitor.lab.scoring import CorpusScores, score

__all__ = [
    "CorpusScores",
    "adapting",
    "attacks",
    "audit",
    "evaluation",
    "experiment",
    "score",
    "utility",
]

__getattr__, __dir__ = lazily(__name__)
