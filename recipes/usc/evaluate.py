"""Spectra, content and identity that the codec keeps of readers who did not train it.

    python -m recipes.usc.evaluate CACHE OUT

OUT gets results.json. Attacks on the decoded sound are measured elsewhere.
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
from recipes.usc.batches import read_batch
from recipes.usc.losses import Losses
from recipes.usc.prepare import Cache
from recipes.usc.train import load_losses
from recipes.voice.corpus import Piece

RESULTS = "results.json"
_LATENTS = 250  # latents per segment: 10 s
_ROLES = ("choose", "report", "held out")
_SMOOTHED = 200.0  # pseudocounts in a template, distributed like all readers' codes
_MOST = 750  # maximum weight of a template, in codes (30 s): longer recordings do not help


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
    """Return means over 10 s pieces of the readers with a role.

    Returns:
        ``spectra`` and ``spectra_c0``: L1 between log mel spectra, in nepers of energy, with all
        books and with only C0. ``content``: mean cosine between the recogniser's layer and its
        prediction from C0. ``codes``: effective number of codes (2 to the entropy), by book.
        ``first``: fraction of pieces that rank their reader first by C0's codes (`ranks`).
        ``rank``: mean rank. Both are means over readers, each with its standard error.
    """
    pieces: list[CodedPiece] = []
    found: dict[str, list[float]] = {"spectra": [], "spectra_c0": [], "content": []}
    counts = np.zeros((len(losses.codec.books.codes), losses.codec.books.codes.shape[1]))
    stretches = cache.of(role)
    with torch.inference_mode():
        for stretch, first in _pieces(stretches):
            batch = read_batch(cache, [stretch], [first], _LATENTS)
            bands, centred, fine, hidden = (
                torch.from_numpy(each)
                for each in (batch.bands, batch.centred, batch.fine, batch.hidden)
            )
            coded = losses.codec.books(losses.codec.encode(bands, centred))
            for name, decoder_input in (
                ("spectra", coded.outputs.sum(dim=0)),
                ("spectra_c0", coded.outputs[0]),
            ):
                found[name].append((losses.codec.decode(decoder_input) - fine).abs().mean().item())
            found["content"].append(losses.content(coded.outputs[0], hidden)[1].item())
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
    """Return the mean over readers, and its standard error."""
    error = np.std(of_readers) / np.sqrt(max(1, len(of_readers) - 1))
    return [round(float(np.mean(of_readers)), 4), round(float(error), 4)]


def _pieces(stretches: list[Piece]) -> Iterator[tuple[Piece, int]]:
    for each in stretches:
        for first in range(0, each.length - _LATENTS + 1, _LATENTS):
            yield each, each.start + first


def table(rows: list[dict[str, Any]]) -> str:
    """Format the results as Markdown."""
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


# --- Identification of readers by C0's codes. Templates are counts of codes.


@dataclass(frozen=True, slots=True)
class CodedPiece:
    """Counts of C0's codes in a piece of a recording.

    Attributes:
        voice: reader.
        recording: identifier of the recording.
        counts: shape (codes,), occurrences of each code.
    """

    voice: str
    recording: int
    counts: IntArray


def ranks(pieces: Sequence[CodedPiece]) -> dict[str, IntArray]:
    """Return the ranks, from 1, of the true reader for each of the reader's pieces, by reader.

    The true reader's template has the pieces of other recordings, if there are any. Otherwise it
    has the other pieces of the same recording, which favours the attacker. Impostors' templates
    have all their pieces. The score is the log likelihood ratio of the codes between the template
    and all readers. Readers with one piece are only impostors.

    Example:
        >>> one, other = np.array([9, 1, 0]), np.array([0, 1, 9])
        >>> rows = [("a", one), ("a", one), ("b", other), ("b", other)]
        >>> pieces = [CodedPiece(who, i, counts) for i, (who, counts) in enumerate(rows)]
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
    """Return for each code the log ratio of its probability in the pieces to its usual one."""
    counts = np.sum([each.counts for each in pieces], axis=0)
    counts = counts * min(1.0, _MOST / counts.sum())
    likely = (counts + _SMOOTHED * usual) / (counts.sum() + _SMOOTHED)
    return np.asarray(np.log(likely / usual))


if __name__ == "__main__":
    main()
