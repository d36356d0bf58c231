"""How often are two sessions of one person, and of two, taken for sessions of two?

    python -m benchmarks.sessions SPEECH FRAMES [--splits 10] [--features f0,voice]

FRAMES is a folder made by `benchmarks.hear`. Rank models are learnt on one half of the readers, who
are also whom the sessions are compared among; the pairs of sessions are of the other half.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations, product
from pathlib import Path

import numpy as np

from benchmarks.hear import chapters
from benchmarks.template_length import LEARNT, collected, halves
from monitor.kinds import FeatureSpec
from monitor.population.cohort import FeatureTemplates
from monitor.population.people import Speaker
from monitor.population.population import SLICE_SECONDS, Population
from monitor.training import enrolling as session_check
from monitor.training.calibrating import CalibrationSettings, calibrate
from monitor.training.enrolling import unlike_sessions
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames, SpeakerSpeech

SESSION_SECONDS = (30.0, 60.0)
LENGTHS = (10.0, 30.0, 60.0)
OTHERS_SECONDS = 60.0
_SLICE = round(SLICE_SECONDS * UNITS_PER_SECOND)


def main() -> None:
    parser = argparse.ArgumentParser(description="Sessions of one person, and of two.")
    parser.add_argument("speech", type=Path)
    parser.add_argument("frames", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--features", default="f0,voice")
    given = parser.parse_args()
    gender = {row["speaker"]: row["gender"] for row in chapters(given.speech)}
    voices, specs = collected(given.frames, given.features.split(","))
    generator = np.random.default_rng(0)
    threshold, session_check.UNLIKE_BITS = (
        session_check.UNLIKE_BITS,
        np.inf,
    )  # what each pair reads is counted here
    read: dict[tuple[float, str], dict[tuple[str, str], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for _ in range(given.splits):
        ours, theirs = halves(voices, generator)
        rank_models = calibrate(
            ours,
            specs,
            CalibrationSettings(
                lengths=LENGTHS, template_lengths=LEARNT, replicates=20, trials=10, prior=None
            ),
        )
        for seconds in SESSION_SECONDS:
            slices = round(seconds / SLICE_SECONDS)
            others = _population(ours, specs, round(OTHERS_SECONDS / SLICE_SECONDS))
            others = others.calibrated(rank_models)
            for one, other in combinations(_sessions(theirs, slices), 2):
                (name, first), (second_name, second) = one, other
                if name == second_name:
                    kind = "one person"
                else:
                    kind = "one sex" if gender[name] == gender[second_name] else "two sexes"
                made = _joined([first, second], specs, slices)
                parts = {"x": (("1", slices), ("2", slices))}
                bits = unlike_sessions(made, parts, others)[0].bits
                read[seconds, kind][name, second_name].append(bits)
    print(f"share of pairs of sessions below {threshold:g} bits (pairs of people)")
    for (seconds, kind), pairs in sorted(read.items()):
        share = np.mean([np.mean(np.array(bits) < threshold) for bits in pairs.values()])
        print(f"| {seconds:g} s | {kind} | {share:.1%} ({len(pairs)}) |")


def _sessions(
    voices: list[SpeakerSpeech], slices: int
) -> list[tuple[str, dict[str, SessionFrames]]]:
    """The sessions that are long enough."""
    return [
        (voice.name, session)
        for voice in voices
        for i, session in enumerate(voice.sessions)
        if voice.length(i) >= slices * _SLICE
    ]


def _joined(
    sessions: list[dict[str, SessionFrames]], specs: Mapping[str, FeatureSpec], slices: int
) -> Population:
    """One speaker of these sessions, as many slices of each."""
    features = {}
    for name, spec in specs.items():
        rows = [s[name].total(i * _SLICE, _SLICE) for s, i in product(sessions, range(slices))]
        features[name] = FeatureTemplates(spec, np.stack(rows))
    return Population([Speaker("x")], np.array([0, len(sessions) * slices]), features)


def _population(
    voices: list[SpeakerSpeech], specs: Mapping[str, FeatureSpec], slices: int
) -> Population:
    """Everybody whose longest session is long enough."""
    made = None
    for voice in voices:
        longest = max(range(len(voice.sessions)), key=voice.length)
        if voice.length(longest) >= slices * _SLICE:
            one = _joined([voice.sessions[longest]], specs, slices)
            one = Population([Speaker(voice.name)], one.offsets, one.features)
            made = one if made is None else made.joined(one)
    assert made is not None
    return made


if __name__ == "__main__":
    main()
