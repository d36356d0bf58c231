"""Commands of the laboratory, and the options that measurements of a corpus share."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.cli.options import MOST_REPLICATES, Features, Numbers, group, option, setting
from monitor.cli.transcript_options import CorpusOptions


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """Options of measurements of a corpus at several lengths of speech."""

    features: tuple[str, ...] | None = option(
        "--features", "Features to use. [default: all available]", type=Features()
    )
    corpus_options: CorpusOptions = group(CorpusOptions, "Corpus")
    lengths: tuple[float, ...] | None = option(
        "--lengths",
        "Test lengths T in speech seconds. [default: from 1 s, or the minimum of an embedding, up "
        "to the available speech]",
        type=Numbers(),
    )
    replicates: int = setting(
        "replicates N",
        "Resamples of speakers for the confidence intervals.",
        minimum=20,
        maximum=MOST_REPLICATES,
        default=200,
    )
    seed: int = setting("seed N", "Seed of the resamples.", minimum=0, default=0)
