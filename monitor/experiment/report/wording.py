"""The sentences of the page: what was done, and what it cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monitor.experiment.panels import Panel
from monitor.experiment.report.results import Experiment
from monitor.phrases import plural
from monitor.plots.canvas import format_seconds

__all__ = ["caveats", "method"]

_SESSION = {
    "cross": "test and template are of different sessions (recordings)",
    "same": "test and template are parts of one recording, which flatters the attacker: room and "
    "microphone are the same",
}
_HEARD = (
    "The attacker has templates of everybody, of the same kind of speech as the tests (protected "
    "alike, where this corpus is protected speech), and compares counts by log-likelihood, "
    "embeddings by cosine."
)
_SCORED = (
    "Scores are those of the file: whoever made them knows what the attacker has, how it compares, "
    "and whether tests and templates overlap."
)


def method(found: Experiment) -> Iterator[str]:
    """How it was done, a paragraph at a time."""
    yield (
        f"Speech of {found.name} was compared with templates of its speakers by "
        f"{', '.join(found.systems)}, as in T. Bäckström et al., “Privacy Disclosure of "
        "Similarity Rank in Speech and Language Processing” (SRD). A test of T speech seconds is "
        "compared with a template of D speech seconds of each of N people; the rank of the right "
        "one is all that counts."
    )
    yield _HEARD if found.heard else _SCORED
    for panel in found.panels:
        yield _panel(panel)
    yield (
        "The same people take part in all cells of a sweep, so that lengths alone differ. What is "
        "fitted is the "
        "beta-binomial law by log-likelihood (LL) unless it says otherwise; limits are 95 %, over "
        f"{plural(found.settings.replicates, 'resample')} of speakers, and differences are between "
        "the same speakers."
    )
    if found.heard:
        yield (
            f"Tests are spread over the speech by eq. (6), {found.settings.trials} a speaker at "
            "most, never overlapping their template and as far from it as they can be."
        )
    if found.heard and "joint" in found.systems:
        yield (
            "The joint adds all features up, each weighed as tests of the other speakers teach: "
            "nobody’s own tests weigh the features for them."
        )
    for feature, names in sorted(found.settings.trained.items()):
        yield (
            f"{plural(len(names), 'speaker')} on whose speech the network of {feature} was trained "
            "are candidates, but no test of theirs counts for it."
        )


def _panel(panel: Panel) -> str:
    people = (
        f"{panel.session.capitalize()} session ({_SESSION[panel.session]}): "
        f"{plural(len(panel.speakers), 'speaker')} with templates, {len(panel.tested)} of them "
        "with tests"
    )
    if panel.purpose == "tables":
        return (
            f"Tables and figures 5 to 7. {people}, at T = {format_seconds(panel.lengths[0])} and "
            f"D = {format_seconds(panel.template_lengths[0])}."
        )
    return (
        f"Sweep (figure 8). {people}, at T = {_listed(panel.lengths)} and "
        f"D = {_listed(panel.template_lengths)}."
    )


def _listed(lengths: Sequence[float]) -> str:
    return ", ".join(format_seconds(each) for each in lengths)


def caveats(found: Experiment) -> Iterator[str]:
    """What has to be known to read the figures."""
    most = max(len(panel.speakers) for panel in found.panels)
    yield (
        f"N is {most} at most; SRD had 11 696 (F0, phones, style) and 1251 (identity), and 64 in "
        "its long recordings. Bits of MeanD stop at log2 N: figures of other N are not compared."
    )
    yield (
        "MeanD counted from ranks is above zero even where nothing is disclosed (see “No "
        "evidence”); of the means that of the fitted law alone has limits."
    )
    yield (
        "Of several lengths the one with the highest MeanD is the highest by chance as well: where "
        "one is picked by what it shows, limits hold for all that it was picked from."
    )
    if any(panel.session == "same" for panel in found.panels):
        yield (
            "Within one session the longer test and template are, the nearer they lie to each "
            "other: what longer speech adds there is in part that."
        )
    if all(panel.session == "same" for panel in found.panels):
        yield "All figures are of one session each: they flatter the attacker."
    yield (
        "The equal error rate pools scores of all trials without normalising them; the joint is "
        "weighed by other people in each part of the speakers, which it mixes."
    )
    yield from found.problems
