"""What the codec keeps of readers who did not train it: spectra, content, and who they are.

    python -m recipes.usc.evaluate CACHE OUT

OUT gets results.json. What attackers learn from the sound that it makes is measured elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import torch

from monitor.files import atomic_write
from monitor.types import FloatArray, IntArray
from recipes.stages import stage
from recipes.usc.batches import taken
from recipes.usc.losses import Losses
from recipes.usc.prepare import Cache
from recipes.usc.train import load_losses
from recipes.voice.corpus import Piece

RESULTS = "results.json"
_LATENTS = 250  # taken together: 10 s
_ROLES = ("choose", "report", "held out")
_SMOOTHED = 200.0  # codes of everybody that a template has besides its own
_MOST = 750  # codes that a template counts for at most, 30 s: more of one reader is no advantage


def main() -> None:
    given = stage("Measure the codec.", "cache", "out").parse_args()
    torch.set_num_threads(1)
    cache = Cache(given.cache)
    losses = load_losses(cache, given.out)
    rows = [measure(cache, losses, role) for role in _ROLES]
    with atomic_write(given.out / RESULTS) as file:
        file.write(orjson.dumps(rows))
    print(table(rows))


def measure(cache: Cache, losses: Losses, role: str) -> dict[str, Any]:
    """Means over 10 s pieces of the readers of a role.

    Returns:
        ``spectra`` and ``spectra_c0``: L1 between log mel spectra, nepers of energy, of all books
        and of C0 alone; ``content``: mean cosine between what C0 says of the recogniser's layer
        and the layer; ``codes``: how many codes a book has in use (2 to the entropy), by book;
        ``first`` and ``rank``: the share of pieces whose reader ranks first by C0's codes
        (`ranks`), and her mean rank, means over readers, each with its standard
        error over readers.
    """
    pieces: list[CodedPiece] = []
    found: dict[str, list[float]] = {"spectra": [], "spectra_c0": [], "content": []}
    counts = np.zeros((len(losses.codec.books.codes), losses.codec.books.codes.shape[1]))
    stretches = cache.of(role)
    with torch.inference_mode():
        for stretch, first in _pieces(stretches):
            batch = taken(cache, [stretch], [first], _LATENTS)
            bands, centred, fine, hidden = (
                torch.from_numpy(each)
                for each in (batch.bands, batch.centred, batch.fine, batch.hidden)
            )
            coded = losses.codec.books(losses.codec.encode(bands, centred))
            for name, told in (("spectra", coded.said.sum(dim=0)), ("spectra_c0", coded.said[0])):
                found[name].append((losses.codec.decode(told) - fine).abs().mean().item())
            found["content"].append(losses.content(coded.said[0], hidden)[1].item())
            often = [
                np.bincount(codes.flatten().numpy(), minlength=counts.shape[1])
                for codes in coded.codes
            ]
            counts += often
            pieces.append(CodedPiece(stretch.voice, stretch.start, often[0]))
    shares = counts / counts.sum(axis=1, keepdims=True)
    entropy = -(shares * np.log2(shares, out=np.zeros_like(shares), where=shares > 0)).sum(axis=1)
    placed = ranks(pieces)
    ahead = [float((each == 1).mean()) for each in placed.values()]
    rank = [float(each.mean()) for each in placed.values()]
    means = {name: round(float(np.mean(each)), 4) for name, each in found.items()}
    return {
        "role": role,
        "readers": len({each.voice for each in pieces}),
        "pieces": len(found["spectra"]),
        **means,
        "codes": [round(float(2**each), 1) for each in entropy],
        "first": _with_error(ahead),
        "rank": _with_error(rank),
    }


def _with_error(of_readers: list[float]) -> list[float]:
    """The mean over readers, and its standard error."""
    error = np.std(of_readers) / np.sqrt(max(1, len(of_readers) - 1))
    return [round(float(np.mean(of_readers)), 4), round(float(error), 4)]


def _pieces(stretches: list[Piece]) -> Iterator[tuple[Piece, int]]:
    for each in stretches:
        for first in range(0, each.length - _LATENTS + 1, _LATENTS):
            yield each, each.start + first


def table(rows: list[dict[str, Any]]) -> str:
    """For people."""
    lines = [
        "| role | readers | all books, nepers | C0, nepers | content, cosine | rank 1 by C0 "
        "| mean rank | codes in use |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row['role']} | {row['readers']} | {row['spectra']:.3f} | {row['spectra_c0']:.3f} "
        f"| {row['content']:.3f} | {_percent(row['first'])} "
        f"| {row['rank'][0]:.2f} ± {row['rank'][1]:.2f} "
        f"| {', '.join(f'{each:.0f}' for each in row['codes'])} |"
        for row in rows
    ]
    return "\n".join(lines)


def _percent(found: list[float]) -> str:
    return f"{100 * found[0]:.0f} ± {100 * found[1]:.0f} %"


# --- How well the codes of C0 tell background speakers, who are templates of codes themselves.


@dataclass(frozen=True, slots=True)
class CodedPiece:
    """Some seconds of one reader.

    Attributes:
        voice: whose.
        recording: which of hers.
        counts: shape (codes,), how often each code comes.
    """

    voice: str
    recording: int
    counts: IntArray


def ranks(pieces: Sequence[CodedPiece]) -> dict[str, IntArray]:
    """The ranks, from 1, of the right reader for each of her pieces, by reader.

    A template is of all other pieces of a reader: of other recordings than the piece's, where she
    has several, else of the same one, which favours who tells background speakers. The score is the
    logarithm of how much likelier the codes are by the template than by everybody's.
    Readers with one piece are nobody's right one, but rivals.

    Example:
        >>> one, other = np.array([9, 1, 0]), np.array([0, 1, 9])
        >>> said = [("a", one), ("a", one), ("b", other), ("b", other)]
        >>> pieces = [CodedPiece(who, i, counts) for i, (who, counts) in enumerate(said)]
        >>> {who: each.tolist() for who, each in ranks(pieces).items()}
        {'a': [1, 1], 'b': [1, 1]}
    """
    everybody = np.sum([each.counts for each in pieces], axis=0) + 0.5
    usual = everybody / everybody.sum()
    voices = sorted({each.voice for each in pieces})
    of = {voice: [each for each in pieces if each.voice == voice] for voice in voices}
    templates = {voice: _template(own, usual) for voice, own in of.items()}
    found: dict[str, list[int]] = {}
    for piece in pieces:
        others = [each for each in of[piece.voice] if each is not piece]
        apart = [each for each in others if each.recording != piece.recording]
        if not others:
            continue
        own = piece.counts @ _template(apart or others, usual)
        rivals = [piece.counts @ templates[voice] for voice in voices if voice != piece.voice]
        found.setdefault(piece.voice, []).append(1 + int(np.sum(np.array(rivals) >= own)))
    return {voice: np.array(each, np.int64) for voice, each in found.items()}


def _template(pieces: Sequence[CodedPiece], usual: FloatArray) -> FloatArray:
    """For each code, how much likelier it is by the pieces than usual: logarithms."""
    counts = np.sum([each.counts for each in pieces], axis=0)
    counts = counts * min(1.0, _MOST / counts.sum())
    likely = (counts + _SMOOTHED * usual) / (counts.sum() + _SMOOTHED)
    return np.asarray(np.log(likely / usual))


if __name__ == "__main__":
    main()
