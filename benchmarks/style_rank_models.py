"""Rank models of the features with `style` and without, on the same tests by the same readers."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from benchmarks.books import Chapter, one_book
from benchmarks.rank_bits import SRD_SPEAKERS
from benchmarks.template_length import claimed_and_known, collected
from monitor.kinds import FeatureSpec
from monitor.maths.rank_models import mean_bits_of
from monitor.maths.statistics import limits
from monitor.population.population import Calibration
from monitor.population.rank_model import RankModel
from monitor.training.calibrating import CalibrationSettings, calibrate
from monitor.training.voices import UNITS_PER_SECOND, SpeakerSpeech, plans

FEATURES = ("f0", "phones", "voice")
SETS = ((), ("f0",), ("voice",), FEATURES)
JUDGES = "dev-clean"
"""The settings of `style` were chosen, and the network of phones was trained, on other readers."""
TRIALS = 20
LENGTHS = (30.0, 60.0)
TEMPLATE_SECONDS = 40.0
"""Chapters of dev-clean are short: with longer templates fewer readers are left."""


def print_rank_models(voices: Sequence[SpeakerSpeech], frames: Path) -> None:
    """Each set with and without style: across books, within one, and within one chapter."""
    others, specs = collected(frames, FEATURES)
    specs = {**specs, "style": voices[0].sessions[0]["style"].spec}
    both = [joined(other, {v.name: v for v in voices}[other.name]) for other in others]
    apart = {voice.name for voice in both} - judges(frames)
    trained = dict.fromkeys(specs, apart)
    print("| template | features | T | without style | with it | gain of MeanD "
          "| local bits, readers left out: without, with | readers |")  # fmt: skip
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    one_book_each = [chapters_of(voice, books=False) for voice in both]
    print_case("another chapter of the book", "cross", learnt(one_book_each, specs, trained))
    print_case("the same chapter", "same", learnt(both, specs, trained))
    print("\nLearnt on chapters of one book, and judged on another book of a reader left out:\n")
    print_judged(both, specs, judges(frames))


def judges(root: Path) -> set[str]:
    """Readers on whom nothing was chosen, of a folder of speech or of frames."""
    return {folder.name for folder in (root / JUDGES).iterdir()}


def joined(one: SpeakerSpeech, other: SpeakerSpeech) -> SpeakerSpeech:
    """The features of both, as far as both heard each chapter."""
    sessions = []
    for place, name in enumerate(one.session_names):
        found = other.session_names.index(name)
        ticks = min(one.speech[place].size, other.speech[found].size)
        if not np.array_equal(one.speech[place][:ticks], other.speech[found][:ticks]):
            raise SystemExit(f"{one.name} {name}: frames and words are not of one recording")
        length = min(one.length(place), other.length(found))
        both = {**one.sessions[place], **other.sessions[found]}
        sessions.append({name: replace(each, length=length) for name, each in both.items()})
    return replace(one, sessions=tuple(sessions))


def chapters_of(voice: SpeakerSpeech, *, books: bool) -> SpeakerSpeech:
    """One chapter of each book, the longest; or all those of the book with most chapters."""
    shelves: list[list[int]] = []
    named = [Chapter(voice.name, int(name)) for name in voice.session_names]
    for place, chapter in enumerate(named):
        for shelf in shelves:
            if one_book(named[shelf[0]], chapter):
                shelf.append(place)
                break
        else:
            shelves.append([place])
    if books:
        kept = sorted(max(shelf, key=voice.length) for shelf in shelves)
    else:
        kept = max(shelves, key=lambda shelf: (len(shelf), sum(map(voice.length, shelf))))
    return replace(
        voice,
        sessions=tuple(voice.sessions[place] for place in kept),
        speech=tuple(voice.speech[place] for place in kept),
        session_names=tuple(voice.session_names[place] for place in kept),
    )


def learnt(
    voices: Sequence[SpeakerSpeech], specs: dict[str, FeatureSpec], trained: dict[str, set[str]]
) -> Calibration:
    sets = [(*features, *more) for features in SETS for more in ((), ("style",))]
    return calibrate(
        voices,
        specs,
        CalibrationSettings(
            lengths=LENGTHS,
            template_lengths=(TEMPLATE_SECONDS,),
            sets=[each for each in sets if each],
            trained=trained,
            prior=None,
            cohort=None,
        ),
    )


def print_case(name: str, session: str, made: Calibration) -> None:
    rank_models = {
        rank_model.features: rank_model
        for rank_model in made.rank_models
        if rank_model.session == session
    }
    rows = {(row["feature"], row["T"]): row for row in made.rows if row["session"] == session}
    for features in SETS:
        for t, length in enumerate(LENGTHS):
            rank_model = rank_models.get((*features, "style"))
            row = rows.get(("+".join((*features, "style")), length))
            if rank_model is None or row is None:
                continue
            after, said = rank_model_bits(rank_model, t), row["held_out_local_bits"]
            before, kept, gain = "", f"{said:.2f}", ""
            if features:
                alone = rank_model_bits(rank_models[features], t)
                before = with_limits(alone)
                gain = with_limits(after - alone)
                kept = f"{rows['+'.join(features), length]['held_out_local_bits']:.2f}, {said:.2f}"
            print(
                f"| {name} | {'+'.join(features) or 'style alone'} | {length:g} s | {before} "
                f"| {with_limits(after)} | {gain} | {kept} | {row['speakers']} |"
            )


def print_judged(
    voices: Sequence[SpeakerSpeech], specs: dict[str, FeatureSpec], judging: Container[str]
) -> None:
    """Mean local bits of readers of several books, by models of others with and without style."""
    print("| features | T | without style | with it | gain | readers |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    shelves = [chapters_of(voice, books=True) for voice in voices]
    several = [
        place
        for place, voice in enumerate(shelves)
        if len(voice.sessions) > 1 and voice.name in judging
    ]
    for features in (("f0",), ("voice",)):
        sets = (features, (*features, "style"))
        kept = {name: specs[name] for name in sets[1]}
        found = np.array([judged(place, voices, shelves[place], kept, sets) for place in several])
        for t, length in enumerate(LENGTHS):
            before, after = found[:, :, t].T
            gain = after - before
            reach = stdtrit(gain.size - 1, 0.975) * gain.std(ddof=1) / np.sqrt(gain.size)
            print(
                f"| {'+'.join(features)} | {length:g} s | {before.mean():.2f} | {after.mean():.2f} "
                f"| {gain.mean():+.2f} ({gain.mean() - reach:+.2f} to {gain.mean() + reach:+.2f}) "
                f"| {gain.size} |"
            )


def judged(
    place: int,
    voices: Sequence[SpeakerSpeech],
    judge: SpeakerSpeech,
    specs: dict[str, FeatureSpec],
    sets: Sequence[tuple[str, ...]],
) -> np.ndarray:
    """Local bits of one reader, shape (sets, lengths), by rank models of all the others."""
    others = [chapters_of(v, books=False) for i, v in enumerate(voices) if i != place]
    made = calibrate(
        others,
        specs,
        CalibrationSettings(
            lengths=LENGTHS,
            template_lengths=(TEMPLATE_SECONDS,),
            sets=sets,
            replicates=2,
            prior=None,
            cohort=None,
        ),
    )
    rank_models = {
        rank_model.features: rank_model
        for rank_model in made.rank_models
        if rank_model.session == "cross"
    }
    measures = {name: spec.kind.similarity() for name, spec in specs.items()}
    additive = np.array([measure.additive for measure in measures.values()])
    people = [judge, *(replace(v, sessions=v.sessions[:1]) for v in others)]
    bits = np.full((len(sets), len(LENGTHS)), np.nan)
    for session, t, _, plan in plans(people, LENGTHS, (TEMPLATE_SECONDS,), TRIALS):
        if session != "cross":
            continue
        units = (round(x * UNITS_PER_SECOND) for x in (LENGTHS[t], TEMPLATE_SECONDS))
        cell = plan.run(measures, *units)
        for row, features in enumerate(sets):
            axis = list(range(len(features)))
            rank_model = rank_models[features]
            ours = additive[axis]
            _, bits[row, t] = claimed_and_known(
                rank_model, cell, axis, ours, LENGTHS[t], TEMPLATE_SECONDS
            )
    return bits


def rank_model_bits(rank_model: RankModel, t: int, candidates: int | None = None) -> np.ndarray:
    """MeanD of a model and of each of its resamples, which are the same readers' in every model."""
    rank_models = (
        rank_model.alpha[:, t, 0],
        rank_model.beta[:, t, 0],
        rank_model.binomial[:, t, 0].astype(np.bool_),
    )
    return np.asarray(mean_bits_of(*rank_models, candidates or rank_model.candidates))


def with_limits(bits: np.ndarray) -> str:
    low, high = limits(bits[1:])
    return f"{bits[0]:.2f} ({low:.2f} to {high:.2f})"


def print_one_session(voices: Sequence[SpeakerSpeech]) -> None:
    """MeanD of style alone where everybody has one session, of sentences that others chose."""
    specs = {"style": voices[0].sessions[0]["style"].spec}
    made = calibrate(
        voices,
        specs,
        CalibrationSettings(
            lengths=(10.0, 20.0), template_lengths=(20.0,), prior=None, cohort=None
        ),
    )
    (rank_model,) = made.rank_models
    print(
        "| T | D | MeanD | rank model among 11 696 | readers |\n| ---: | ---: | ---: | ---: | "
        "---: |"
    )
    for t, row in enumerate(made.rows):
        many = rank_model_bits(rank_model, t, SRD_SPEAKERS)[0]
        print(
            f"| {row['T']:g} s | {row['D']:g} s | {with_limits(rank_model_bits(rank_model, t))} | "
            f"{many:.2f} | {row['speakers']}, N = {row['candidates']} |"
        )
