"""What the codec keeps of readers who did not train it: spectra, content, and who they are.

    python -m recipes.usc.evaluate CACHE OUT

OUT gets results.json. What attackers learn from the sound that it makes is measured elsewhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import torch

from monitor.files import atomic_write
from recipes.usc.batches import taken
from recipes.usc.losses import Losses
from recipes.usc.prepare import Cache, Stretch
from recipes.usc.readers import CodedPiece, ranks
from recipes.usc.train import load_losses

__all__ = ["RESULTS", "measure"]

RESULTS = "results.json"
_LATENTS = 250  # taken together: 10 s
_ROLES = ("choose", "report", "held out")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the codec.")
    parser.add_argument("cache", type=Path)
    parser.add_argument("out", type=Path, help="the folder of a training")
    given = parser.parse_args()
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
        (`recipes.usc.readers`), and her mean rank, means over readers, each with its standard
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


def _pieces(stretches: list[Stretch]) -> Iterator[tuple[Stretch, int]]:
    for each in stretches:
        for first in range(0, each.latents - _LATENTS + 1, _LATENTS):
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


if __name__ == "__main__":
    main()
