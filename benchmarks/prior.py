"""Does a rank model learnt on few speakers claim more than it knows? Before and after the prior.

    python -m benchmarks.hear ../shared/speech FRAMES --features f0
    python -m benchmarks.prior FRAMES --nonnative ../shared/nonnative

A rank model is learnt on S speakers, with the rank model of others as its prior and without, and
judged on third parties: what it claims (attacker confidence, mean gain bits, with the limits that
the monitor shows) against what is so (mean local bits of the same trials). Nobody is in two of the
three roles. FRAMES holds pitch of LibriSpeech; the nonnative speakers are heard in passing. Repeats
differ in who is drawn, on real readers from one small pool, so that they are not independent.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.hear import CORPORA, MOST_SECONDS
from benchmarks.simulation import SIZE, Simulation, write_corpus
from monitor.corpus import find
from monitor.features.registry import make
from monitor.kinds import HISTOGRAM, FeatureSpec
from monitor.maths.posterior import confidence_bits, local_bits
from monitor.maths.posterior_fit import Trials
from monitor.maths.statistics import limits
from monitor.population.cohort import FeatureTemplates
from monitor.population.interpolation import at_template
from monitor.population.population import Population
from monitor.population.rank_model import RankModels
from monitor.sources.frames import write_frames
from monitor.training import calibrating
from monitor.training.calibrating import CalibrationSettings, calibrate
from monitor.training.feature_extraction import HearingOptions, hear
from monitor.training.voices import UNITS_PER_SECOND, Cell, SpeakerSpeech, collect, plans
from monitor.types import FloatArray

SHAPES = {"f0": FeatureSpec("f0", HISTOGRAM, SIZE, 0.01)}
SCORER = HISTOGRAM.similarity("log-likelihood")
DRAWS = 100
LEAST = 51.0
"""Speech seconds of a nonnative speaker: enough for 30 s of template and 20 s of test."""


@dataclass(frozen=True, slots=True)
class Case:
    """One draw of speakers: whose rank model is the prior, who learns, who judges."""

    prior: Population
    own: Sequence[SpeakerSpeech]
    judges: Sequence[SpeakerSpeech]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rank model claims of the judges and what is so, bits.

    Attributes:
        beyond: the claim is above the truth by more than its limits, and than the judges vary (two
            standard errors of claim less truth, over judges).
    """

    claim: float
    truth: float
    beyond: bool


def learn(
    voices: Sequence[SpeakerSpeech], prior: Population | None, test: float, template: float
) -> RankModels:
    """Rank models at one T and D."""
    made = calibrate(
        voices,
        SHAPES,
        CalibrationSettings(
            lengths=(test,), template_lengths=(template,), replicates=DRAWS, prior=prior
        ),
    )
    return made.rank_models


def shifted(
    voices: Sequence[SpeakerSpeech], prior: Population, test: float, template: float
) -> RankModels:
    """In place of the prior's cross-session model: the own same-session one, moved likewise."""
    own = learn(voices, prior, test, template).find(("f0",), "same")
    same, cross = (prior.rank_models.find(("f0",), session) for session in ("same", "cross"))
    assert own is not None
    assert same is not None
    assert cross is not None
    return RankModels(
        [
            replace(
                own,
                session="cross",
                weights=own.weights * cross.weights / same.weights,
                floor=np.clip(own.floor * cross.floor / same.floor, own.floor.min(), 1.0),
            )
        ]
    )


def others(
    voices: Sequence[SpeakerSpeech], test: float, template: float, fewest: int = 10
) -> Population:
    """A population that has nothing but rank models, of these voices."""
    calibrating.FEWEST_SPEAKERS = fewest  # a prior of very few is a hard test, not a product
    rank_models = learn(voices, None, test, template)
    calibrating.FEWEST_SPEAKERS = 10
    nobody = FeatureTemplates(SHAPES["f0"], np.zeros((0, SIZE), np.int64))
    return Population((), np.zeros(1, np.int64), {"f0": nobody}, rank_models)


def trials(voices: Sequence[SpeakerSpeech], session: str, test: float, template: float) -> Cell:
    """What the judges are judged on."""
    (plan,) = (p for s, _, _, p in plans(voices, (test,), (template,), 10) if s == session)
    units = [round(seconds * UNITS_PER_SECOND) for seconds in (test, template)]
    return plan.run({"f0": SCORER}, *units)


def judge(
    rank_models: RankModels, session: str, cell: Cell, test: float, template: float
) -> Verdict:
    """A model's word against the truth; where it has no such model, the other kind stands in."""
    rank_model = rank_models.find(("f0",), session) or rank_models.find(("f0",), "same")
    assert rank_model is not None
    point = at_template(rank_model, template, np.array([True])).at(test)
    seen = Trials(cell.gaps, cell.gap_speaker)

    def posterior(draw: int) -> FloatArray:
        count = len(cell.gaps)
        weights, floor = point.weights[draw], point.uniform_share[draw]
        return seen.posterior(np.tile(weights, (count, 1)), np.full(count, floor))

    gains = np.array([confidence_bits(posterior(b)).mean() for b in range(1 + DRAWS)])
    probability = posterior(0)
    own = probability[np.arange(len(cell.gaps)), cell.own]
    true = local_bits(own, cell.candidates)
    excess = [
        (confidence_bits(probability) - true)[cell.gap_speaker == speaker].mean()
        for speaker in np.unique(cell.gap_speaker)
    ]
    error = np.std(excess, ddof=1) / np.sqrt(len(excess)) if len(excess) > 1 else np.inf
    slack = gains[0] - limits(gains[1:])[0] + 2.0 * error
    return Verdict(gains[0], true.mean(), bool(np.mean(excess) > slack))


def table(
    title: str, sizes: Sequence[int], session: str, test: float, template: float,
    cases: Callable[[int], Iterator[Case]], after_by: Callable[..., RankModels] = learn,
) -> None:  # fmt: skip
    """A line for each number of own speakers."""
    for size in sizes:
        before: list[Verdict] = []
        after: list[Verdict] = []
        for case in cases(size):
            cell = trials(case.judges, session, test, template)
            for found, prior, by in ((before, None, learn), (after, case.prior, after_by)):
                rank_models = by(case.own, prior, test, template)
                found.append(judge(rank_models, session, cell, test, template))
        print(f"| {title} | {size} | {line(before)} | {line(after)} |", flush=True)


def line(verdicts: Sequence[Verdict]) -> str:
    """Claim, truth, the worst excess, and how often a claim goes beyond its limits."""
    claim, truth, beyond = np.array([(v.claim, v.truth, v.beyond) for v in verdicts]).T
    worst, over = (claim - truth).max(), 100 * beyond.mean()
    return f"{claim.mean():.2f} | {truth.mean():.2f} | {worst:.2f} | {over:.0f} %"


def simulated(speakers: int, sessions: int, seed: int) -> list[SpeakerSpeech]:
    """Readers with known truth."""
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder) / "c", Simulation(speakers, seed), speakers, sessions, 120.0)
        return collect(find(Path(folder) / "c"))[0]


def heard(files: Sequence[tuple[Path, str, str]]) -> list[SpeakerSpeech]:
    """Voices of files of frames: path, speaker, session."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "all.csv"
        lines = [f"{path.resolve()},{speaker},{session}" for path, speaker, session in files]
        manifest.write_text("\n".join(["path,speaker,session", *lines, ""]), encoding="utf-8")
        return collect(find(manifest))[0]


def nonnative(folder: Path) -> list[SpeakerSpeech]:
    """Speakers of speechocean762 who said enough, one session each."""
    with tempfile.TemporaryDirectory() as place:
        files = []
        with (folder / "manifest.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                frames = hear(
                    folder / row["path"], make(["f0"]), HearingOptions(("f0",), MOST_SECONDS)
                )
                path = Path(place) / f"{row['speaker']}.npz"
                write_frames(path, frames.speech, frames.tracks, {"f0": SIZE}, {"f0": 0.01})
                files.append((path, row["speaker"], "1"))
        return [v for v in heard(files) if v.length(0) >= LEAST * UNITS_PER_SECOND]


def draw(pool: Sequence[SpeakerSpeech], seed: int) -> list[SpeakerSpeech]:
    """The pool in another order."""
    return [pool[i] for i in np.random.default_rng(seed).permutation(len(pool))]


def main() -> None:
    parser = argparse.ArgumentParser(description="Claims of small rank models, before and after.")
    parser.add_argument("frames", type=Path)
    parser.add_argument("--nonnative", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    repeats = range(given.repeats)
    print("| | | before | | | | after | | | |\n| --- | ---: |" + " ---: |" * 8)
    print("| speakers | S |" + " claims | knows | worst excess | beyond limits |" * 2)

    test, template = 10.0, 30.0
    if given.nonnative is not None:
        pool, shipped = nonnative(given.nonnative), Population.reference()

        def impostors(size: int) -> Iterator[Case]:
            for r in repeats:
                mixed = draw(pool, r)
                yield Case(shipped, mixed[100 : 100 + size], mixed[:100])

        table("nonnative, same session", (10, 15, 19, 30), "same", test, template, impostors)

    files = [
        (path, path.parent.name, path.stem)
        for corpus in CORPORA
        for path in sorted((given.frames / corpus).rglob("*.npz"))
    ]
    readers = heard(files)
    several = [voice for voice in readers if len(voice.sessions) > 1]
    single = [voice for voice in readers if len(voice.sessions) == 1]

    def crossing(size: int) -> Iterator[Case]:
        """Some judge, the rest of those with several chapters are the prior."""
        judges = 5 if size == 10 else 2
        for r in repeats:
            mixed = draw(several, r)
            prior = others([*single, *mixed[judges + size :]], test, template, fewest=2)
            yield Case(prior, mixed[judges : judges + size], [*single, *mixed[:judges]])

    table("LibriSpeech, across sessions", (10, 15), "cross", test, template, crossing)

    def one_session(size: int) -> Iterator[Case]:
        for r in repeats:
            mixed, alone = draw(several, r), draw(single, r)
            prior = others([*mixed[9:], *alone[:12]], test, template)
            yield Case(prior, alone[12 : 12 + size], mixed[:9])

    name = "LibriSpeech, one session each, used across"
    table(name, (10, 15, 19), "cross", test, template, one_session)
    name = "the same, after: shifted instead"
    table(name, (10, 15, 19), "cross", test, template, one_session, shifted)

    made = simulated(600, 2, 0)
    for name, session, kept in (
        ("simulated, same session", "same", 2),
        ("simulated, across sessions", "cross", 2),
        ("simulated, one session each, used across", "cross", 1),
    ):

        def known(size: int, kept: int = kept) -> Iterator[Case]:
            for r in repeats:
                mixed = draw(made, r)
                prior = others(mixed[:50], test, template)
                own = [SpeakerSpeech(v.name, v.sessions[:kept]) for v in mixed[150 : 150 + size]]
                yield Case(prior, own, mixed[50:150])

        table(name, (10, 15, 19, 30), session, test, template, known)


if __name__ == "__main__":
    main()
