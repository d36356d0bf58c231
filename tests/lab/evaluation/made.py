"""Reports made by hand: every kind of figure and every curve, of names that are no good."""

import numpy as np

from monitor.lab.evaluation.curves import CrowdRates, Curves, Line
from monitor.lab.evaluation.report import Report
from monitor.lab.report.model import Figure

EVIL = '<script>alert("x")</script> & $x$ [/bold] :smile:'


def curves(name: str, speakers: int = 100) -> Curves:
    """One of everything."""
    rank = np.arange(1.0, speakers + 1)
    falling = 1 / rank / (1 / rank).sum()
    few = np.arange(1.0, 6.0)
    odds = np.linspace(-3, 3, 31)
    bell = 1 / np.cosh(odds)
    rate = np.geomspace(1e-5, 1, 50)
    return Curves(
        name,
        speakers,
        99_000,
        ranks=Line(rank, falling),
        rank_models={loss: Line(rank, falling) for loss in ("LL", "MS", "WMS", "RWMS", "CLL")},
        speaker_bits=np.linspace(0, 4, 30),
        local_bits=Line(np.linspace(-2, 6, 50), np.linspace(1, 0, 50)),
        ece=Line(odds, 0.6 * bell),
        ece_nothing=Line(odds, bell),
        roc=Line(rate, rate**0.3),
        det=Line(rate, 1 - rate**0.3),
        heard=Line(few, np.log2(1 + few), np.log2(few), np.log2(2 + few)),
        guides={"linear": Line(few, few), "square root": Line(few, np.sqrt(few))},
        linkage=Line(rank[1:], 1 / np.sqrt(rank[1:])),
        crowd=crowd(speakers),
    )


def crowd(speakers: int, falls: float = 0.3) -> CrowdRates:
    """Rates among 2 to a million."""
    few, many = np.geomspace(2, speakers, 16), np.geomspace(2, 1e6, 60)
    beyond = many[many >= speakers]
    rate = few**-falls
    forms = {
        label: Line(many, many ** -(falls * (1 + i / 10)))
        for i, label in enumerate(("beta-binomial", "probit with misses", "logit", "Pitman-Yor"))
    }
    bracket = Line(beyond, beyond**-falls, beyond ** (-2 * falls), beyond ** (-falls / 2))
    measured = Line(few, rate, 0.9 * rate, np.minimum(1.1 * rate, 1.0))
    return CrowdRates(measured, forms, bracket, float(speakers), 10.0 * speakers)


def report(name: str = EVIL, bits: float = 1.7, speakers: int = 100) -> Report:
    """All kinds of figures."""
    spread = np.linspace(-0.2, 0.2, 200)
    figures = (
        Figure("srd.mean_bits_model", "MeanD, rank model", bits, "bits", low=bits - 0.19,
               high=bits + 0.19, replicates=bits + spread, left_out=bits + spread / 100,
               ceiling=6.64, floor=0.0, ties="spread", note="On average."),
        Figure("srd.idr", "IdR", 0.279, "share", low=0.2, high=0.3, ceiling=1.0,
               floor=0.01),
        Figure("zebra.tag", "tag", None, "", text="B", note=EVIL),
        Figure("membership.epsilon_nats_at_1e-2", "epsilon", np.inf, "nats"),
        Figure("new.family", EVIL, None, "log10", note="Needs 10 trials."),
    )  # fmt: skip
    return Report(
        name=name,
        speakers=speakers,
        trials=1000,
        tested=tuple(map(str, range(speakers))),
        replicates=200,
        seed=0,
        notes=("A note.",),
        figures={figure.key: figure for figure in figures},
        curves=curves(name, speakers),
    )
