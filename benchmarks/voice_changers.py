"""Disclosure by voices through common voice changers, to several attackers.

apt-get install sox ffmpeg rubberband-cli soundstretch
pip install -e '.[peers,training,vocoder]'
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.page import Page, benchmark
from monitor.errors import CorpusError, MonitorError, UsageError
from monitor.features.registry import make
from monitor.lab.adapting.training import FineTuning, Length, SpeechDraws, TrainingPlan
from monitor.lab.attacks.attackers import AttackContext, ThreatModel, get_attacker, split_background
from monitor.lab.attacks.attacking import AttackConfig, prepare, try_methods
from monitor.lab.attacks.readers import Amounts
from monitor.lab.attacks.report import plot_attacks
from monitor.lab.attacks.scoreboard import ATTACKERS, Scoreboard, ScoreRow
from monitor.lab.attacks.scoreboard import UNCHANGED as NO_METHOD
from monitor.lab.attacks.speech import CLEAR, collect_segments, join_speech
from monitor.maths.evidence import log2_ratios
from monitor.maths.likelihood_ratios import ScorePairs, TemplateComparisons, fit_each, pair_count
from monitor.maths.ratio_checks import supported_bits
from monitor.maths.statistics import Crossing, FirstCrossing, median_seconds
from monitor.training.voices import SessionFrames, units_of
from monitor.types import FloatArray, IntArray
from monitor.version import __version__

CHANGERS = {
    "no voice changer": "none",
    "SoX, pitch -4": "command:sox -V1 -t wav - -t wav - pitch -400",
    "ffmpeg, asetrate": "command:ffmpeg -v error -i - -af "
    "asetrate=20160,aresample=16000,atempo=0.79365 -f wav -",
    "Rubber Band, pitch +4": "command:sh -c 'd=$(mktemp -d) && cat > $d/in.wav && "
    "rubberband -q -p 4 --formant $d/in.wav $d/out.wav && cat $d/out.wav; rm -r $d'",
    "SoundTouch, pitch +4": "command:sh -c 'd=$(mktemp -d) && cat > $d/in.wav && "
    "soundstretch $d/in.wav $d/out.wav -pitch=4 2> $d/said && cat $d/out.wav; rm -r $d'",
    "GlobaLeaks' vocoder": "command:python examples/channel_vocoder.py",
    "chimera-voice, strong": "command:python examples/chimera_voice.py",
    "WORLD, drawn": "voice:random",
    "WORLD, pitch +4": "pitch:4",
    "WORLD, whisper": "whisper",
    "McAdams 0.8": "mcadams:0.8",
    "McAdams, drawn": "mcadams:random",
    "noise at 10 dB": "noise:10",
    "usc": "usc",
}
UNCHANGED = "no voice changer"
DRAWN = ("McAdams, drawn", "GlobaLeaks' vocoder", "chimera-voice, strong", "usc", "WORLD, drawn")
"""Methods with random settings per recording or a trained network: training pays most here."""
LEVEL = 6.0
BACKGROUND = ("background", "train-clean-5", "train-clean-100")
INFORMED = ("ignorant", "lazy-informed")
STEPS = 60
FEATURE = "voice"  # the evidence over time is that of this feature
LONGEST_SECONDS = 40
_FOLDS = 8


@benchmark()
def voice_changers(
    page: Page, speech: Path, folder: Path,
    *, training_steps: int = STEPS, stretches: int = SpeechDraws().draws,
    attackers: tuple[str, ...] = ATTACKERS, write_only: bool = False,
) -> None:  # fmt: skip
    """How many bits do attackers learn from voices through common voice changers?

    FOLDER keeps all measurements and the scoreboard that `monitor attack` shows. --stretches is the
    number of training excerpts per speaker. --write-only writes the measurements so far.
    """
    parts, kept = folder / "parts", folder / "kept"
    parts.mkdir(parents=True, exist_ok=True)
    if not write_only:
        measure_methods(page, speech, parts, kept, training_steps, stretches, attackers)
    board = build_scoreboard(parts)
    for name in ("scoreboard.json", "scoreboard.html", "scoreboard.md"):
        board.save(folder / name)
    if page.pictures is not None:
        plot_attacks(page.pictures / "voice-changers.svg", *board.pictured())
    table = board.table()
    rows = ([str(cell).replace("\n", " ") for cell in row] for row in table.rows)
    page.table(" | ".join(column.title for column in table.columns), rows)
    page.table(
        f"method | attacker | reached {LEVEL:g} bits within {LONGEST_SECONDS} s | median, s "
        "| mean bits at 10 s | support at 10 s | mean ratio of others, at most",
        create_evidence_rows(parts),
        keys=2,
    )


def measure_methods(
    page: Page, speech: Path, parts: Path, kept: Path, training_steps: int, stretches: int,
    attackers: tuple[str, ...],
) -> None:  # fmt: skip
    """Measure each program without results; a failure does not affect the results of others."""
    corpus, draws = speech / "dev-clean", SpeechDraws()
    if stretches != draws.draws:  # then only at the original speed
        draws = replace(draws, draws=stretches, speeds=(1.0,))
    config = AttackConfig(
        (CLEAR,), INFORMED, ("f0_robust", "phones", "voice"),
        Amounts(10.0, trials=4, least_segments=5, most_segments=5), (5,),
        training=TrainingPlan(Length(training_steps), draws, FineTuning(bfloat16=True)),
    )  # fmt: skip

    def measure_once(part: str, make: Callable[[], object]) -> None:
        path = parts / f"{part}.pickle"
        if not path.exists():
            try:
                path.write_bytes(pickle.dumps(make()))
                page.note(f"{part}: done")
            except MonitorError as error:
                page.note(f"{part}: {error}")

    torch.set_num_threads(1)
    semi_informed_config = replace(config, attackers=("semi-informed",), features=("voice",))
    background = [speech / name for name in BACKGROUND]
    ready = prepare(corpus, semi_informed_config, folder=kept, background=background)
    bench = replace(ready.context, measures=())

    def attack_informed(method: str) -> object:
        method_config = replace(config, methods=(method,))
        return try_methods(prepare(corpus, method_config, folder=kept), on_progress=page.note)

    def attack_trained(method: str) -> object:
        pair_config = replace(ready.config, methods=(CLEAR, method))
        return try_methods(replace(ready, context=bench, config=pair_config), on_progress=page.note)

    def measure_evidence(method: str, attacker: str) -> object:
        return measure_evidence_over_time(bench, method, get_attacker(attacker))

    trains = "semi-informed" in attackers
    others = [name for name in CHANGERS if name not in (UNCHANGED, *DRAWN)]
    for group in (DRAWN, others):
        for name in group if trains else ():
            measure_once(f"{name} trained", partial(attack_trained, CHANGERS[name]))
        for name in (UNCHANGED, *group):
            measure_once(f"{name} informed", partial(attack_informed, CHANGERS[name]))
    followed = [*product(CHANGERS, INFORMED), *(product(DRAWN, ATTACKERS[2:]) if trains else ())]
    for name, attacker in followed:
        if CHANGERS[name] != CLEAR or attacker == INFORMED[0]:
            measure_once(
                f"{name} {attacker} seconds", partial(measure_evidence, CHANGERS[name], attacker)
            )


# ------------------------------------------------------------------------------- evidence over time
# Seconds of protected speech until its evidence reaches a level in bits.
#
# Identification among N judged readers ends at log2 N bits. Likelihood ratios have no such limit.
# Each attacker calibrates the scores of one feature at every second of speech. Calibration speakers
# are background readers and judged readers of other folds, protected as by the attacker
# (docs/method.md section 10). Bits beyond the support of the calibration are not counted.


@dataclass(frozen=True, slots=True)
class EvidenceOverTime:
    """An attacker's evidence against each judged reader, at each second of speech.

    Attributes:
        names: names of the R readers.
        bits: evidence, shape (R, T), at 1, 2, ... T seconds; NaN after the end of speech.
        support: bits that the calibration supports at each second, shape (T,).
        others: ratios of the judged readers' streams against other people, shape (T, n); their mean
            should be at most 1.
    """

    names: tuple[str, ...]
    bits: FloatArray
    support: FloatArray
    others: FloatArray

    def crossings(self, level: float) -> list[Crossing]:
        """Return each reader's time from which the evidence stays at the level or above."""
        found = []
        for row in self.bits:
            crossing = FirstCrossing(level)
            for second, bits in enumerate(row, 1):
                if np.isfinite(bits):
                    supported = self.support[second - 1]
                    # without evidence, rounding errors alone exceed a support of 0
                    crossing.update(second, min(bits, supported), cut=bits > supported + 1e-9)
            found.append(crossing.so_far())
        return found


def measure_evidence_over_time(
    bench: AttackContext, method: str, attacker: ThreatModel, seconds: int = LONGEST_SECONDS
) -> EvidenceOverTime:
    """Measure evidence over time, with each judged reader's trials as one stream.

    Raises:
        UsageError: without a background for calibration, or without `FEATURE` for the attacker.
        CorpusError: too few readers have enough speech.
    """
    calibration = None if bench.background is None else split_background(bench.background)[0]
    features_by_name = bench.get_features(attacker, method)
    if calibration is None or FEATURE not in features_by_name:
        raise UsageError(f"evidence over time needs the feature {FEATURE} and background speakers")
    features = (features_by_name[FEATURE],)
    spec = make(features, bench.extractor.setup)[0].spec
    specs = {spec.name: spec}
    enrolled = bench.extract_own(bench.judged.pieces("enrolment"), attacker, method, features)
    enrolled |= bench.extract_own(calibration.pieces("enrolment"), attacker, method, features)
    trials = bench.extract_trials(method, features)
    trials |= bench.extract_own(calibration.pieces("trials"), attacker, method, features)
    names, templates, streams, judged = [], [], list[SessionFrames](), 0
    for index, reader in enumerate((*bench.judged.everybody, *calibration.everybody)):
        segments = collect_segments(reader, enrolled, specs)
        stream = join_speech(reader.trials, trials, specs)
        if segments is not None and stream is not None:
            names.append(reader.name)
            count = bench.amounts.least_segments
            templates.append(segments[spec.name][:count].sum(axis=0))
            streams.append(stream[spec.name])
            judged += index < len(bench.judged)
    if judged < 2 or len(names) - judged < 2:
        raise CorpusError("too few readers have enough speech to calibrate evidence")
    similarity = spec.kind.similarity()
    prepared = similarity.prepare(np.stack(templates))
    bits = np.full((judged, seconds), np.nan)
    support, others = np.zeros(seconds), np.full((seconds, judged, judged - 1), np.nan)
    coefficients: list[FloatArray] = []
    for second in range(1, seconds + 1):
        units = units_of(second)
        is_long_enough = np.array([each.length >= units for each in streams])
        totals = np.stack([each.total(0, min(units, each.length)) for each in streams])
        z = _normalise(similarity.score_each(prepared, totals), judged)
        if is_long_enough[judged:].sum() >= _FOLDS or not coefficients:
            coefficients, support[second - 1] = _fit(z, is_long_enough)
        else:
            support[second - 1] = support[second - 2]
        for r in np.flatnonzero(is_long_enough[:judged]):
            a, b = coefficients[r]
            found = log2_ratios(z[r][None], a, np.array([b]))
            bits[r, second - 1] = found[r]
            others[second - 1, r] = np.exp2(np.delete(found[:judged], r))
    flat = others.reshape(seconds, -1)
    return EvidenceOverTime(tuple(names[:judged]), bits, support, flat)


def _normalise(scores: FloatArray, judged: int) -> FloatArray:
    """Subtract each stream's mean score against background templates, divide by spread: (R, R).

    The mean excludes the stream's own template and the scored template.
    """
    own = np.eye(len(scores), dtype=bool)
    cohort = scores[:, judged:]
    own_cohort = own[:, judged:]
    spread = float(cohort[judged:][~own_cohort[judged:]].std())
    if not spread:
        return np.zeros_like(scores)
    size = cohort.shape[1]
    total = np.where(own_cohort, 0.0, cohort).sum(axis=1)
    mean = np.repeat((total / (size - own_cohort.sum(axis=1)))[:, None], len(scores), axis=1)
    left = size - own_cohort.sum(axis=1)[:, None] - ~own_cohort
    mean[:, judged:] = np.where(own_cohort, mean[:, judged:], (total[:, None] - cohort) / left)
    return np.asarray((scores - mean) / spread)


def _fit(z: FloatArray, is_long_enough: np.ndarray) -> tuple[list[FloatArray], float]:
    """Fit each reader's coefficients without the reader's fold; also return the support (ELUB)."""
    people = len(z)
    fold: IntArray = np.arange(people) % _FOLDS
    tester, owner = (each.ravel() for each in np.indices(z.shape))
    coefficients: list[FloatArray] = [np.zeros(2)] * people
    left_out = np.full(z.shape, np.nan)
    for k in range(_FOLDS):
        inside = fold != k
        some = (inside & is_long_enough)[tester] & inside[owner]
        pairs = ScorePairs(tester[some], owner[some])
        fit = fit_each(TemplateComparisons(z.ravel()[some, None], pairs))[0]
        for r in np.flatnonzero(fold == k):
            coefficients[r] = fit
            left_out[r] = log2_ratios(z[r][None], fit[0], fit[1:])
    is_long = is_long_enough[tester]
    comparisons = TemplateComparisons(
        z.ravel()[is_long, None], ScorePairs(tester[is_long], owner[is_long])
    )
    weights, bits, mated = comparisons.weights(), left_out.ravel()[is_long], comparisons.mated
    support_bits = supported_bits(
        bits[mated], bits[~mated], weights[mated], weights[~mated], int(mated.sum()),
        pair_count(comparisons), comparisons.select(~mated),
    )[0]  # fmt: skip
    return coefficients, support_bits


# ------------------------------------------------------------------------------------------- tables


def create_evidence_rows(parts: Path) -> Iterator[list[str]]:
    """Yield a row per method and attacker with evidence over time."""
    for name, attacker in product(CHANGERS, ATTACKERS):
        found: EvidenceOverTime | None = load_part(parts, f"{name} {attacker} seconds")
        if found is not None:
            crossings, at = found.crossings(LEVEL), 9
            median = median_seconds(crossings)
            yield [
                name,
                attacker,
                f"{sum(each.crossed for each in crossings)} of {len(crossings)}",
                "-" if median is None else f"{median:.0f}",
                f"{np.nanmean(found.bits[:, at]):.1f}",
                f"{found.support[at]:.1f}",
                f"{np.nanmax(np.nanmean(found.others, axis=1)):.2f}",
            ]


def build_scoreboard(parts: Path) -> Scoreboard:
    """Build the scoreboard of all measurements."""
    rows = []
    for name, method in CHANGERS.items():
        found = load_part(parts, f"{name} informed")
        if found is None:
            continue
        row = ScoreRow.from_results(found, method, name, format_command(method))
        trained = load_part(parts, f"{name} trained")
        if trained is not None:
            own = ScoreRow.from_results(trained, method)
            row = replace(
                row,
                bits={**row.bits, **own.bits},
                ways={**(row.ways or {}), **(own.ways or {})},
                undertrained=own.undertrained,
                clear_share=own.clear_share,
                kept_shipped=own.kept_shipped,
            )
        seconds: dict[str, float | None] = {}
        supported = True
        for attacker in ATTACKERS:
            followed = load_part(parts, f"{name} {attacker} seconds")
            if followed is not None:
                crossings = followed.crossings(LEVEL)
                seconds[attacker] = median_seconds(crossings)
                supported &= bool(np.median(followed.support) >= LEVEL)
                row = replace(row, heard=max(float(each.seconds) for each in crossings))
        if not supported and not any(seconds.values()):
            seconds = {}  # no crossing shows nothing if 6 bits are not supported
        rows.append(replace(row, seconds=seconds))
    tried = {attacker for row in rows for attacker in row.bits}
    attacked = sum("semi-informed" in row.bits for row in rows)
    first = rows[0]
    about = (
        f"Measured with {__version__} on {first.speakers} readers of LibriSpeech's "
        "dev-clean with two chapters, none of whom chose a setting or a network: "
        f"{first.trials} trials of 10 s, templates of 30 s of another chapter; at most "
        f"{math.log2(first.speakers):.0f} bits. Made by python -m benchmarks voice_changers.",
        f"Attackers tried: {', '.join(each for each in ATTACKERS if each in tried)}. Ignorant "
        "and lazy-informed ones recognise pitch, phones and voice, and weigh them together by "
        "the shipped rank model of clear speech: who weighs them on speech through the "
        "program learns a little more. Semi-informed ones recognise voice alone, by a network "
        "that was trained for 60 steps: where phones tell more, another attacker's figure is "
        f"the larger. They were tried on {attacked} of the {len(rows) - 1} methods.",
    )
    return Scoreboard(tuple(rows), about)


def format_command(method: str) -> str:
    """Return the command line of a method."""
    command = method.removeprefix("command:")
    command_line = command if command != method else f"monitor protect --method {method}"
    return NO_METHOD if method == CLEAR else command_line


def load_part(parts: Path, name: str) -> Any:
    path = parts / f"{name}.pickle"
    return pickle.loads(path.read_bytes()) if path.exists() else None
