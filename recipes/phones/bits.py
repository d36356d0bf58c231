"""What units say of the speaker: mean local bits across sessions, by layer, codebook and rate.

    python -m recipes.phones.bits CACHE OUT FRAMES --half choose
    python -m recipes.phones.bits CACHE OUT FRAMES --half report --layer up --units 256 --channels

Templates of 60 s of speech of all readers who trained nothing, tests of one half of them from
other chapters; log-likelihood of counts (METHOD section 2), posterior by a fit without the reader
(section 5). FRAMES, by ``benchmarks.hear``, says what is speech. Prints a table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from monitor.maths import logit
from monitor.maths.scores import default_similarity, similarity
from monitor.maths.windows import Session
from monitor.networks.mel import RATE
from monitor.training.cells import Cell, Plan, plans
from monitor.training.shrinking import trials_of
from monitor.training.voices import UNITS_PER_SECOND, Voice
from monitor.types import AnyArray, BoolArray, FloatArray, IntArray
from recipes.phones.codebook import codebook, coded, heard, hidden
from recipes.phones.network import LAYERS, Recogniser
from recipes.phones.prepare import Spoken
from recipes.phones.train import load_recogniser
from recipes.voice.augment import at_snr, telephone
from recipes.voice.cache import Piece

LENGTHS = (3.0, 10.0, 30.0, 60.0)
TEMPLATE = 60.0
SIZES = (64, 128, 256)
_TRIALS = 20
_TICKS = 100 // UNITS_PER_SECOND
_TOKENS, _POSTERIORS, _PEER = "tokens", "posteriors summed", "pocketsphinx tokens"

Books = Mapping[str, FloatArray]
"""A codebook by what it is called: layer, number of codes, and every how many frames one counts."""


def main() -> None:
    parser = argparse.ArgumentParser(description="What units say of the speaker.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path, help="the folder of a training")
    parser.add_argument("frames", type=Path, help="by benchmarks.hear")
    parser.add_argument("--half", choices=("choose", "report"), default="choose")
    parser.add_argument("--layer", action="append", help="(default: each)")
    parser.add_argument("--units", type=int, action="append", help="(default: 64, 128, 256)")
    parser.add_argument("--channels", action="store_true", help="templates of other channels too")
    given = parser.parse_args()
    torch.set_num_threads(1)
    spoken, network = Spoken(given.cache), load_recogniser(given.out)
    layers = given.layer or list(LAYERS)
    rows = heard(network, spoken, layers)
    books = {
        f"{layer} {size}": codebook(rows[layer], size)
        for layer in layers
        for size in given.units or SIZES
    }
    as_it_is = readers(spoken, network, given.frames, books)
    tested = np.array([role == given.half for _, role in as_it_is])
    voices = [voice for voice, _ in as_it_is]
    print(f"{given.half}: {tested.sum()} readers tested at most, templates of {len(voices)}\n")
    print("| what is counted | " + " | ".join(f"{t:g} s" for t in LENGTHS) + " |")
    print("| --- |" + " ---: |" * len(LENGTHS))
    show(bits(voices, tested), "")
    if given.channels:
        for name, change in CHANNELS.items():
            others = [v for v, _ in readers(spoken, network, given.frames, books, change)]
            show(bits(voices, tested, others), f", templates {name}")
            show(bits(others, tested), f", both {name}")


def show(found: Mapping[str, Sequence[float]], what: str) -> None:
    for name, each in found.items():
        print(f"| {name}{what} | " + " | ".join(f"{value:.2f}" for value in each) + " |")


def readers(
    spoken: Spoken,
    network: Recogniser,
    frames: Path,
    books: Books,
    change: Callable[[FloatArray], FloatArray] = lambda sound: sound,
) -> list[tuple[Voice, str]]:
    """Everybody who trained nothing, with what each is for."""
    by_voice: dict[str, list[dict[str, Session]]] = {}
    roles: dict[str, str] = {}
    for piece in spoken.cache.of("choose", "report"):
        roles[piece.voice] = piece.role
        made = session(spoken, network, piece, frames, books, change)
        by_voice.setdefault(piece.voice, []).append(made)
    return [(Voice(name, tuple(each)), roles[name]) for name, each in by_voice.items()]


def session(
    spoken: Spoken,
    network: Recogniser,
    piece: Piece,
    frames: Path,
    books: Books,
    change: Callable[[FloatArray], FloatArray],
) -> dict[str, Session]:
    """What is counted of one chapter, on its clock of speech."""
    path = frames / piece.corpus / piece.speaker / f"{piece.session}.npz"
    with np.load(path) as kept:
        speech = np.asarray(kept["speech"], bool)
    layers = hidden(network, change(spoken.cache.sound(piece)))
    logits = torch.log_softmax(torch.from_numpy(layers["logits"]), dim=1).numpy()
    speech = speech[: 2 * len(logits)]
    clock = np.cumsum(speech)
    made = {}
    for name, codes in books.items():
        values = coded(layers[name.split()[0]], codes)
        made[f"units, {name}"] = _placed(values, 2, speech, clock, len(codes))
        if len(codes) == 256:
            made[f"units, {name}, every second"] = _placed(
                values[::2], 4, speech, clock, len(codes)
            )
    made[_POSTERIORS] = _placed(np.exp(logits[:, 1:]), 2, speech, clock, 39)
    best = logits.argmax(axis=1)
    best[1:][best[1:] == best[:-1]] = 0
    at = np.flatnonzero(best)
    at = at[2 * at + 1 < len(speech)]
    made[_TOKENS] = _located(best[at] - 1, 2 * at + 1, speech, clock, 39)
    values, ends = _peer(spoken, piece)
    if values.size:
        inside = ends < len(speech)
        made[_PEER] = _located(values[inside], ends[inside], speech, clock, 39)
    return made


def _placed(values: AnyArray, ticks: int, speech: BoolArray, clock: IntArray, size: int) -> Session:
    """Frames that follow each other, so many ticks each."""
    ends = np.arange(1, len(values) + 1) * ticks - 1
    inside = ends < len(speech)
    return _located(values[inside], ends[inside], speech, clock, size)


def _located(
    values: AnyArray, ends: IntArray, speech: BoolArray, clock: IntArray, size: int
) -> Session:
    """Those that end in speech, by the speech until then."""
    inside = speech[ends]
    units = (clock[ends[inside]] - 1) // _TICKS
    length = int(clock[-1]) // _TICKS
    held = units < length
    return Session(values[inside][held], units[held], length, size)


def _peer(spoken: Spoken, piece: Piece) -> tuple[IntArray, IntArray]:
    """Tokens of pocketsphinx, from 0, and the ticks in which they end."""
    known, parts = spoken.peer(), [np.empty((0, 3), int)]
    for index, each in enumerate(spoken.utterances):
        if spoken.piece(each) is piece and index in known:
            parts.append(known[index] + [[-1, *[each.start * 100 // RATE] * 2]])
    heard = np.concatenate(parts)
    return heard[:, 0], heard[:, 2] - 1


class _Elsewhere(Plan):
    """Tests of some sessions, templates of the same over another channel."""

    def __init__(self, tests: Plan, templates: Plan) -> None:
        super().__init__(tests.candidates, tests.mated, tests.shifts)
        self.template, self.test = templates.template, tests.test  # type: ignore[method-assign]


def bits(
    voices: Sequence[Voice], tested: BoolArray, templates: Sequence[Voice] | None = None
) -> dict[str, list[float]]:
    """Mean local bits of each feature at each length, across sessions, readers left out."""
    names = list(voices[0].sessions[0])
    scorers = {name: similarity(default_similarity("histogram"), "histogram") for name in names}
    found: dict[str, list[float]] = {name: [] for name in names}
    cells = [
        plan for kind, *_, plan in plans(voices, LENGTHS, (TEMPLATE,), _TRIALS) if kind == "cross"
    ]
    others = cells
    if templates is not None:
        others = [
            p for kind, *_, p in plans(templates, LENGTHS, (TEMPLATE,), _TRIALS) if kind == "cross"
        ]
    for seconds, mine, other in zip(LENGTHS, cells, others, strict=True):
        plan = _Elsewhere(mine, other)
        cell = plan.run(
            scorers, round(seconds * UNITS_PER_SECOND), round(TEMPLATE * UNITS_PER_SECOND)
        )
        part = cell.tested_on(tested)
        for axis, name in enumerate(names):
            found[name].append(_local_bits(part, axis))
    return found


def _local_bits(cell: Cell, axis: int) -> float:
    """The mean over speakers of log2(N p), by fits that have not seen them."""
    made = trials_of(cell, [axis])
    if made is None:
        return 0.0
    trials, _ = made
    prior = logit.prior_of(trials)
    posterior = logit.fit(trials, prior)
    speakers = np.unique(cell.behind_speaker).size
    held = logit.held_out(trials, posterior.weights, speakers, prior)
    return float(logit.held_out_bits(trials, *held).mean())


def noisy(sound: FloatArray, generator: np.random.Generator) -> FloatArray:
    """With white noise 20 dB below."""
    noise = generator.standard_normal(len(sound), np.float32)
    return np.asarray(sound + at_snr(sound, noise, 20.0))


CHANNELS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "of 300 to 3400 Hz": telephone,
    "in noise at 20 dB": partial(noisy, generator=np.random.default_rng(0)),
}


if __name__ == "__main__":
    main()
