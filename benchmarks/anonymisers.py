"""What anonymisers do to real voices: pitch, words, attributes, loudness; and what they cost."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import numpy as np
import soundfile
import soxr

from benchmarks.page import Page, benchmark
from benchmarks.readers import FEATURES, bounded, listen, unit, units_of
from benchmarks.systems import protected
from benchmarks.timing import seconds_of
from monitor.anonymisers import Utterance, make, protect
from monitor.anonymisers.laplace import Laplace, promises
from monitor.corpus import find
from monitor.features.extractor import Extractor
from monitor.features.framing import join_runs
from monitor.features.phones import recognise_phones
from monitor.features.registry import make as make_features
from monitor.kinds import FeatureSpec
from monitor.lab.attacks.attackers import ATTACKERS, AttackContext
from monitor.lab.attacks.attributes import AttributeRow, judge_attributes, prepare_attributes
from monitor.lab.attacks.speech import CLEAR, Amounts, PieceExtractor
from monitor.lab.evaluation import EvaluationSettings, ScoreMatrix, evaluate
from monitor.lab.result_cache import ResultCache
from monitor.lab.utility import compare, compute_figures, count_edits, extract_content
from monitor.maths.composition import clipped
from monitor.sources.frames import FramesFile
from monitor.training.voices import SpeakerSpeech, collect
from monitor.types import Block, FloatArray
from recipes.phones.words import Words
from tests.anonymisers.vowels import formant_ratio, level, pitches, semitones_moved

Voice = tuple[FloatArray, int]


def through(method: str, voice: Voice, name: str, speaker: str) -> FloatArray:
    """A voice through an anonymiser."""
    return protected(make(method, Utterance(voice[1], name, speaker)), voice[0])


def first_of_each(speech: Path, seconds: float) -> dict[str, Voice]:
    """The beginning of the first recording of each reader."""
    corpus = find(speech)
    paths = {name: next(iter(corpus.sessions(name).values()))[0] for name in corpus.speakers}
    return {name: listen(path, seconds) for name, path in paths.items()}


# -------------------------------------------------------------------------------------------- pitch


def two_chapters(speech: Path, folder: Path, readers: int) -> list[Path]:
    """The first 45 s of two chapters of each reader who has them, kept in a folder."""
    corpus, made = find(speech), []
    for name in [n for n in corpus.speakers if len(corpus.sessions(n)) > 1][:readers]:
        for session, (path, *_) in list(corpus.sessions(name).items())[:2]:
            target = folder / name / f"{session}.flac"
            target.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(target, *listen(path, 45.0))
            made.append(target)
    return sorted(made)


@benchmark()
def pitch(
    page: Page, speech: Path,
    *, readers: int = 20,
    methods: tuple[str, ...] = ("none", "mcadams:0.8", "mcadams:random", "mcadams:0.5"),
    features: tuple[str, ...] = ("f0", "f0_robust"),
) -> None:  # fmt: skip
    """How well is a reader found by the pitch, before and after an anonymiser?"""

    def rows(folder: Path) -> Iterator[list[str]]:
        clear = folder / "clear"
        paths = two_chapters(speech, clear, readers)
        ours, specs, _ = collect(find(clear), features=features)
        for method in methods:
            safe = folder / method.replace(":", "-")
            for path in paths:
                name = path.relative_to(clear).as_posix()
                protect(path, safe / name, method, name=name, speaker=path.parent.name)
            theirs, _, _ = collect(find(safe), features=features)
            for attacker, enrolled in (("ignorant", ours), ("lazy-informed", theirs)):
                cells = []
                for spec in specs.values():
                    how = EvaluationSettings(replicates=200)
                    report = evaluate(pitch_scores(enrolled, theirs, spec), settings=how)
                    bits = report.figures["srd.mean_bits_model"]
                    cells.append(bounded(bits.value, bits.low, bits.high))
                if method != CLEAR or attacker == "ignorant":
                    yield [f"`{method}`", "any" if method == CLEAR else attacker, *cells]

    with tempfile.TemporaryDirectory() as folder:
        page.table(f"method | attacker | {' | '.join(features)}", rows(Path(folder)), keys=2)


def pitch_scores(
    enrolled: Sequence[SpeakerSpeech], heard: Sequence[SpeakerSpeech], spec: FeatureSpec
) -> ScoreMatrix:
    """Trials of everybody's second chapter against templates of everybody's first."""
    names, (template, trial) = tuple(voice.name for voice in enrolled), units_of(30.0, 10.0)
    templates = np.stack([voice.sessions[0][spec.name].total(0, template) for voice in enrolled])
    trials, owners = [], []
    for owner, voice in enumerate(heard):
        for i in range(voice.length(1) // trial):
            trials.append(voice.sessions[1][spec.name].total(i * trial, trial))
            owners.append(owner)
    similarity = spec.kind.similarity()
    scores = similarity.score(similarity.prepare(templates), np.stack(trials))
    return ScoreMatrix(scores, np.array(owners), names, spec.name)


# ----------------------------------------------------------------------------------- words and cost


@dataclass(frozen=True)
class Excerpt:
    """The beginning of a recording, and its utterances: first and last sample, phones."""

    name: str
    speaker: str
    voice: Voice
    said: tuple[tuple[int, int, tuple[str, ...]], ...]


@benchmark()
def utility(
    page: Page,
    speech: Path,
    *,
    readers: int = 20,
    seconds: float = 45.0,
    methods: tuple[str, ...] = (
        "none", "mcadams:0.9", "mcadams:0.8", "mcadams:0.6", "mcadams:random", "noise:20",
        "noise:10",
    ),
) -> None:  # fmt: skip
    """What is a protected voice still good for, and does the phone error rate tell it truly?

    Figures of `monitor.lab.utility`, and phone errors against the transcript, over utterances
    all of whose words the CMU dictionary has (pocketsphinx carries it, extra `peers`).
    """
    chosen = list(said_excerpts(speech, readers, seconds))
    phones = sum(len(said) for each in chosen for *_, said in each.said)
    page.note(f"{len(chosen)} readers; {phones} phones of {sum(len(e.said) for e in chosen)} "
              "utterances in the dictionary")  # fmt: skip

    def wrong(each: Excerpt, samples: FloatArray) -> int:
        return sum(
            count_edits(
                [p.phone for p in recognise_phones(samples[first:last], each.voice[1])], said
            )
            for first, last, said in each.said
        )

    def rows() -> Iterator[list[str]]:
        for method in methods:
            found, errors = [], np.zeros(2)
            for each in chosen:
                clear, rate = each.voice
                safe = through(method, each.voice, each.name, each.speaker)
                found.append(compare(*(extract_content(x, rate) for x in (clear, safe))))
                errors += [wrong(each, clear), wrong(each, safe)]
            error, voiced, like, louder, *_ = compute_figures(found, [e.speaker for e in chosen])
            scaled = (x if x is None else 100 * x for x in (error.value, error.low, error.high))
            value, low, high = scaled
            yield [
                f"`{method}`",
                bounded(value, low, high, 1).replace(" [", " % [") if low else f"{value:.1f} %",
                *(f"{each:.1f} %" for each in 100 * errors / phones),
                *(bounded(each.value, each.low, each.high) for each in (voiced, like)),
                "" if louder.value is None else f"{louder.value:.2g} dB",
            ]

    page.table(
        "method | phone error | transcript, clear | protected | voiced in both "
        "| pitch correlation | louder by",
        rows(),
    )
    voices = [each.voice for each in chosen[:4]]

    def hear() -> None:
        for samples, rate in voices:
            extractor = Extractor(make_features(FEATURES))
            extractor.process(Block(samples, rate))
            extractor.flush()

    def measure() -> None:
        for voice in voices:
            compare(extract_content(*voice), extract_content(*voice))

    hear()
    measure()  # networks are loaded once
    heard, measured = seconds_of(hear), seconds_of(measure)
    audio = sum(samples.size / rate for samples, rate in voices)
    page.note(f"the measures take {measured / heard:.2f} times hearing {', '.join(FEATURES)} once, "
              f"{100 * measured / audio:.2f} % of real time")  # fmt: skip


def said_excerpts(speech: Path, readers: int, seconds: float) -> Iterator[Excerpt]:
    corpus, dictionary = find(speech), Words.cmu()
    for name in corpus.speakers[:readers]:
        path = next(iter(corpus.sessions(name).values()))[0]
        told = path.with_suffix(".tsv").read_text("utf-8").splitlines()
        lines = [line.split("\t") for line in told if line[:1].isdigit()]
        lines = [line for line in lines if float(line[1]) <= seconds]
        voice = listen(path, float(lines[-1][1]))
        said = tuple(
            (round(float(a) * voice[1]), round(float(b) * voice[1]), dictionary.phones(text))
            for a, b, text in lines
            if dictionary.known(text)
        )
        yield Excerpt(f"{name}/{path.name}", name, voice, said)


@benchmark()
def vocoder(
    page: Page,
    speech: Path,
    *,
    methods: tuple[str, ...] = (
        "mcadams:0.8", "pitch:4", "pitch:-4", "formant:1.15", "formant:0.85", "whisper", "usc",
        "noise:10",
    ),
    command: str | None = None,
    seconds: float = 10.0,
) -> None:  # fmt: skip
    """What do anonymisers change in a voice, as the monitor hears it, and what do they cost?"""
    voices = first_of_each(speech, seconds)

    def spent() -> float:
        """CPU seconds of this process and of programs that have ended."""
        children = getrusage(RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime

    def rows() -> Iterator[list[str]]:
        named = {f"`{method}`": method for method in methods}
        named |= {f"`{command}`": f"command:{command}"} if command else {}
        for label, method in named.items():
            found, took = [], 0.0
            for name, voice in voices.items():
                began = spent()
                made = through(method, voice, name, name)
                took += spent() - began
                found.append(moves(voice[0], made, voice[1]))
            sound, rate = next(iter(voices.values()))
            finer, began = soxr.resample(sound, rate, 48_000), spent()
            through(method, (finer, 48_000), "", "")
            fine = seconds / (spent() - began)
            cells = []
            for column in np.transpose(found):
                three = (np.nanmedian(column), np.nanmin(column), np.nanmax(column))
                cells.append(bounded(*three) if np.isfinite(column).any() else "")
            yield [label, *cells, f"{seconds * len(voices) / took:.0f}, {fine:.0f}"]

    page.table(
        "method | pitch, semitones | formants times | voiced frames, to one before | louder, dB "
        "| times real time at 16 kHz, 48 kHz",
        rows(),
    )


def moves(before: FloatArray, after: FloatArray, rate: int) -> list[float]:
    """Semitones, ratio of formants, of voiced frames, and dB."""
    pitch, moved = pitches(before, rate), pitches(after, rate)
    few = moved.size < 0.05 * pitch.size
    semitones = np.nan if few else semitones_moved(before, after, rate)
    louder = level(after) - level(before)
    return [semitones, formant_ratio(before, after), moved.size / pitch.size, louder]


# --------------------------------------------------------------------------------------- attributes


@benchmark()
def attributes(
    page: Page, corpus: Path,
    *, background: tuple[Path, ...] = (), groups: Path | None = None,
    attributes: tuple[str, ...] = ("gender",),
    methods: tuple[str, ...] = ("none", "mcadams:0.8", "mcadams:random"), feature: str = "voice",
    seconds: float = 10.0, trials: int = 10, jobs: int = 1,
) -> None:  # fmt: skip
    """What do voices tell of their readers' gender or age, clear and protected?

    As `monitor attack --attributes` computes it, with nothing else attacked.
    """

    def rows(folder: Path) -> Iterator[list[str]]:
        behind = [(find(each), each) for each in background]
        which = prepare_attributes(
            find(corpus), corpus, behind, attributes, Amounts(seconds, trials), groups
        )
        hearing = PieceExtractor(ResultCache(folder), jobs)
        bench = AttackContext(which.judged, None, (feature,), (), Amounts(), hearing, 0, folder)
        for method in methods:
            for name in ("ignorant",) if method == CLEAR else ("ignorant", "lazy-informed"):
                for _, row in judge_attributes(bench, method, ATTACKERS[name], which):
                    yield told(row, "any" if method == CLEAR else name)

    with tempfile.TemporaryDirectory() as folder:
        page.table(
            "method | attacker | attribute | | EER | TPR at FPR 1e-2 | FPR reached | epsilon "
            "| readers",
            rows(Path(folder)),
            keys=4,
            under=corpus.name,
        )


def told(row: AttributeRow, attacker: str) -> list[str]:
    found = row.judgement
    at = next(each for each in found.at if each.asked == 0.01)
    rates = [f"{100 * x:.0f}" for x in (at.tpr, at.tpr_low, at.tpr_high)]
    errors = [f"{100 * x:.1f}" for x in (found.eer, found.eer_low, found.eer_high)]
    epsilon = "inf" if at.epsilon_nats is None else f"{at.epsilon_nats:.2f}"
    return [
        f"`{row.method}`", attacker, row.value, row.version,
        f"{errors[0]} % [{errors[1]}, {errors[2]}]",
        f"{rates[0]} % [{rates[1]}, {rates[2]}]{'*' if at.note else ''}",
        f"{100 * at.realised:.1f} %, at most {100 * at.realised_high:.0f} %",
        f"{epsilon}, at least {at.epsilon_low_nats:.2f}",
        f"{found.readers_with} / {found.readers_without}",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------- noise

NO_NOISE = float("inf")


@benchmark()
def laplace(
    page: Page, frames: Path,
    *, feature: str = "voice",
    epsilons: tuple[float, ...] = (NO_NOISE, 3000.0, 1000.0, 300.0, 100.0, 15.0), draws: int = 5,
) -> None:  # fmt: skip
    """What is Laplace noise on speaker embeddings worth?

    FRAMES is a folder of `--frames`.
    """
    template, readers = 10, dict[str, tuple[FloatArray, FloatArray]]()
    corpus = find(frames)
    for name in corpus.speakers:
        sessions = [
            np.concatenate([join_runs(list(FramesFile(p))).tracks[feature].values for p in paths])
            for paths in corpus.sessions(name).values()
        ]
        long = [each for each in sessions if len(each) >= template]
        if len(long) > 1:
            readers[name] = (long[0][:template], long[1])
    names = tuple(readers)
    clear = np.stack([unit(readers[name][0]).mean(axis=0) for name in names])
    page.note(f"{len(names)} readers, at most {np.log2(len(names)):.2f} bits")

    def attacks(epsilon: float, count: int) -> dict[str, ScoreMatrix]:
        cosine, likelihood, lazy, owners = [], [], [], []
        for draw in range(draws if epsilon < NO_NOISE else 1):

            def noisy(values: FloatArray, *whose: object, draw: int = draw) -> FloatArray:
                return (
                    values if epsilon == NO_NOISE else Laplace(epsilon).noisy(values, draw, *whose)
                )

            made = [unit(noisy(readers[n][0], n, "template")).mean(axis=0) for n in names]
            for owner, name in enumerate(names):
                heard = noisy(readers[name][1], name, "trial").astype(np.float64)
                for begin in range(0, len(heard) - count + 1, count):
                    trial = heard[begin : begin + count]
                    mean = unit(trial).mean(axis=0)
                    cosine.append(unit(clear) @ mean)
                    lazy.append(unit(np.stack(made)) @ mean)
                    apart = trial[:, None] - clipped(clear * len(clear[0]), 1.0)
                    likelihood.append(-np.abs(apart).sum(axis=(0, 2)))
                    owners.append(owner)
        ways = (cosine, likelihood, lazy) if epsilon < NO_NOISE else (cosine,)
        scores = zip(attackers, ways, strict=False)
        return {a: ScoreMatrix(np.stack(s), np.array(owners), names, "voice") for a, s in scores}

    attackers = ("clear templates, cosine", "clear templates, likelihood",
                 "protected templates, cosine")  # fmt: skip
    lengths = ((3, 9.0), (10, 30.0))

    def row(epsilon: float) -> list[str]:
        """What is promised for trials of these lengths, and the bits of each attacker."""
        cells: dict[str, list[str]] = {attacker: [] for attacker in attackers}
        for count, _ in lengths:
            for attacker, matrix in attacks(epsilon, count).items():
                how = EvaluationSettings(replicates=200)
                bits = evaluate(matrix, settings=how).figures["srd.mean_bits_model"]
                cells[attacker].append(bounded(bits.value, bits.low, bits.high))
        told = ["no noise", "no limit"]
        if epsilon < NO_NOISE:
            allowed = (promises({"": length}, epsilon)[0].most_bits for length in lengths)
            told = [f"{epsilon:g}", ", ".join(f"{most:.0f}" for most in allowed)]
        return [*told, *(", ".join(each) for each in cells.values())]

    heads = " | ".join(f"{attacker}: 9 s, 30 s" for attacker in attackers)
    page.table(f"epsilon a frame | allowed in 9 s, 30 s | {heads}", map(row, epsilons))
