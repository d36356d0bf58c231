"""Bits that units disclose: mean local bits across sessions, by layer, codebook and rate.

    python -m recipes.phones.bits CACHE OUT FRAMES --half choose
    python -m recipes.phones.bits CACHE OUT FRAMES --half report --layer up --units 256 --channels

Templates are 60 s of speech of all readers who did not train. Tests are from other chapters of one
half of them. Scores are log-likelihoods of counts (docs/method.md section 2). Posteriors are fitted
without the tested reader (docs/method.md section 5). FRAMES, by ``monitor enrol --frames``,
marks speech. Prints a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.fft
import soundfile
import torch

from monitor.kinds import HISTOGRAM
from monitor.maths import posterior_fit as logit
from monitor.networks.layers import RATE
from monitor.training.grid import Cell, plans, trials_of
from monitor.training.voices import UNITS_PER_SECOND, SessionFrames, SpeakerSpeech
from monitor.types import BoolArray, FloatArray, IntArray
from recipes.phones.network import Recogniser
from recipes.phones.prepare import Spoken
from recipes.phones.train import load_recogniser
from recipes.phones.units import Books, count_features, fit_codebook, sample_frames
from recipes.sounds import noisy
from recipes.stages import stage
from recipes.voice.corpus import Piece

LENGTHS = (3.0, 10.0, 30.0, 60.0)
TEMPLATE = 60.0
SIZES = (64, 128, 256)
_TRIALS = 20
_CUT, _MOST = 240, 5  # of --beside: seconds per session, maximum sessions


def main() -> None:
    parser = stage("Measure the bits that units disclose.", "cache", "out", "frames")
    parser.add_argument("--half", choices=("choose", "report"), default="choose")
    parser.add_argument(
        "--layer", action="append", help="layer of units; repeatable (default: all)"
    )
    parser.add_argument(
        "--units", type=int, action="append", help="codes; repeatable (default: 64, 128, 256)"
    )
    parser.add_argument(
        "--channels", action="store_true", help="also measure templates of other channels"
    )
    parser.add_argument("--alone", action="store_true", help="use only templates of that half")
    parser.add_argument(
        "--beside", type=Path, nargs=2, metavar=("AUDIO", "FRAMES"), help="also measure this voice"
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    spoken, network = Spoken(given.cache), load_recogniser(given.out)
    layers = given.layer or list(network.layout.layers)
    rows = sample_frames(network, spoken, layers)
    books = {
        f"{layer} {size}": fit_codebook(rows[layer], size)
        for layer in layers
        for size in given.units or SIZES
    }
    roles = (given.half,) if given.alone else ("choose", "report")
    read_features = partial(readers, spoken, network, given.frames, books, roles)
    as_it_is = read_features()
    tested = np.array([role == given.half for _, role in as_it_is])
    voices = [voice for voice, _ in as_it_is]
    several = sum(len(v.sessions) > 1 for v, out in zip(voices, tested, strict=True) if out)
    print(f"{given.half}: {several} readers with several chapters, templates of {len(voices)}\n")
    print("| what is counted | " + " | ".join(f"{t:g} s" for t in LENGTHS) + " |")
    print("| --- |" + " ---: |" * len(LENGTHS))
    show(bits(voices, tested), "")
    if given.channels:
        for name, change in CHANNELS.items():
            others = [v for v, _ in read_features(change)]
            show(bits(voices, tested, others), f", templates {name}")
            show(bits(others, tested), f", both {name}")

    if given.beside:
        audio, frames = given.beside
        found = measure_other_voice(network, audio, frames, books, voices, tested)
        show(found, f", {audio.parent.name}")


def show(found: Mapping[str, Sequence[float]], what: str) -> None:
    for name, each in found.items():
        print(f"| {name}{what} | " + " | ".join(f"{value:.2f}" for value in each) + " |")


def readers(
    spoken: Spoken,
    network: Recogniser,
    frames: Path,
    books: Books,
    roles: Sequence[str],
    change: Callable[[FloatArray], FloatArray] = lambda sound: sound,
) -> list[tuple[SpeakerSpeech, str]]:
    """Return the features of the readers with these roles, and the role of each."""
    by_voice: dict[str, list[dict[str, SessionFrames]]] = {}
    peer = spoken.peer()
    has_all_tokens = all(
        i in peer for i, each in enumerate(spoken.utterances) if spoken.piece(each).role in roles
    )
    role: dict[str, str] = {}
    for piece in spoken.cache.of(*roles):
        role[piece.voice] = piece.role
        path = frames / piece.corpus / piece.speaker / f"{piece.session}.npz"
        sound = change(spoken.cache.sound(piece))
        tokens = _tokens(spoken, piece, peer) if has_all_tokens else None
        made = count_features(network, sound, _speech(path), books, tokens)
        by_voice.setdefault(piece.voice, []).append(made)
    return [(SpeakerSpeech(name, tuple(each)), role[name]) for name, each in by_voice.items()]


def _speech(frames: Path) -> BoolArray:
    with np.load(frames) as arrays:
        return np.asarray(arrays["speech"], bool)


def _tokens(spoken: Spoken, piece: Piece, peer: Mapping[int, IntArray]) -> IntArray:
    """Return pocketsphinx's tokens in a recording: class, begin and end in ticks."""
    parts = [np.empty((0, 3), int)]
    for index, each in enumerate(spoken.utterances):
        if spoken.piece(each) is piece:
            parts.append(peer[index] + [0, *[each.start * 100 // RATE] * 2])
    return np.concatenate(parts)


def measure_other_voice(
    network: Recogniser,
    audio: Path,
    frames: Path,
    books: Books,
    voices: Sequence[SpeakerSpeech],
    tested: BoolArray,
) -> dict[str, list[float]]:
    """Return mean local bits of a further voice among all templates, by fits of tested readers.

    Its one recording is cut into sessions of 4 min. Test and template are thus of the same session,
    which favours the attacker.
    """
    sound, _ = soundfile.read(audio, frames=_MOST * _CUT * RATE, dtype="float32")
    speech = _speech(frames)
    ticks = _CUT * 100
    parts = [
        count_features(
            network,
            sound[i * _CUT * RATE : (i + 1) * _CUT * RATE],
            speech[i * ticks : (i + 1) * ticks],
            books,
        )
        for i in range(len(sound) // (_CUT * RATE))
    ]
    names = set(parts[0])
    own = [
        SpeakerSpeech(v.name, tuple({n: s[n] for n in names} for s in v.sessions)) for v in voices
    ]
    everybody = [*own, SpeakerSpeech(audio.parent.name, tuple(parts))]
    return bits(everybody, np.append(tested, False), judged=np.arange(len(everybody)) == len(own))


def bits(
    voices: Sequence[SpeakerSpeech],
    tested: BoolArray,
    templates: Sequence[SpeakerSpeech] | None = None,
    judged: BoolArray | None = None,
) -> dict[str, list[float]]:
    """Return mean local bits of each feature at each of `LENGTHS`, across sessions.

    Tested voices are each measured by a fit without that voice. ``judged`` voices, if given, are
    measured instead, by the fit of all tested voices.
    """
    names = list(voices[0].sessions[0])
    scorers = {name: HISTOGRAM.similarity() for name in names}
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
        plan = replace(mine, template=other.template)
        cell = plan.run(
            scorers, round(seconds * UNITS_PER_SECOND), round(TEMPLATE * UNITS_PER_SECOND)
        )
        part = cell.tested_on(tested)
        rest = None if judged is None else cell.tested_on(judged)
        for axis, name in enumerate(names):
            found[name].append(_local_bits(part, axis, rest))
    return found


def _local_bits(cell: Cell, axis: int, judged: Cell | None) -> float:
    """Return the mean over speakers of log2(N p), each by a fit without that speaker."""
    made = trials_of(cell, [axis])
    if made is None:
        return 0.0
    trials, _ = made
    prior = logit.prior_of(trials)
    posterior = logit.fit(trials, prior)
    if judged is not None:
        others = logit.Trials(judged.gaps[:, [axis]], np.zeros(len(judged.gaps), int))
        weights, floor = posterior.weights[None], np.array([posterior.floor])
        return float(logit.held_out_bits(others, weights, floor).mean())
    speakers = np.unique(cell.gap_speaker).size
    held = logit.fit_held_out(trials, posterior.weights, speakers, prior)
    return float(logit.held_out_bits(trials, *held).mean())


def telephone(sound: FloatArray) -> FloatArray:
    """Band-pass filter a sound to 300 to 3400 Hz."""
    spectrum = scipy.fft.rfft(sound)
    hertz = np.linspace(0, RATE / 2, len(spectrum))
    spectrum[(hertz < 300) | (hertz > 3400)] = 0
    return np.asarray(scipy.fft.irfft(spectrum, len(sound)), np.float32)


def in_noise(sound: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Add white noise 20 dB below the sound."""
    noise = generator.standard_normal(len(sound), np.float32)
    return np.asarray(noisy(sound, 20.0, noise), np.float32)


CHANNELS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "of 300 to 3400 Hz": telephone,
    "in noise at 20 dB": partial(in_noise, generator=np.random.default_rng(0)),
}


if __name__ == "__main__":
    main()
