"""Lists of scored pairs, as speaker verification has them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from monitor.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Listed:
    """Scores and labels of every pair.

    Attributes:
        scores: path of ``speaker trial score`` lines.
        key: path of ``speaker trial target|nontarget`` lines.
        mated: scores of target pairs.
        others: scores of nontarget pairs.
    """

    scores: Path
    key: Path
    mated: FloatArray
    others: FloatArray


def voice_privacy(folder: Path) -> Listed:
    """The shape of VoicePrivacy's libri_dev_trials_f: 704 target and 14 566 nontarget pairs.

    15 enrolled speakers; 704 recordings of theirs and 314 of five impostors, whose voices lie
    farther out than those of the enrolled speakers, so that they count.
    """
    generator = np.random.default_rng(0)
    speakers = [str(1000 + i) for i in range(15)]
    own = np.concatenate([np.arange(704) % 15, np.full(314, -1)])
    scores = generator.normal(size=(1018, 15)) + 0.9 * (own[:, None] < 0)
    scores[np.arange(704), own[:704]] += 1.2
    mated = own[:, None] == np.arange(15)
    with (folder / "scores").open("w") as listed, (folder / "trials").open("w") as key:
        for row in range(1018):
            name = f"{speakers[own[row]] if row < 704 else f'x{row % 5}'}-{row:04}"
            for column, speaker in enumerate(speakers):
                listed.write(f"{speaker} {name} {float(scores[row, column])!r}\n")
                word = "target" if mated[row, column] else "nontarget"
                key.write(f"{speaker} {name} {word}\n")
    return Listed(folder / "scores", folder / "trials", scores[mated], scores[~mated])


def speechbrain_eer(mated: FloatArray, others: FloatArray) -> float:
    """EER as VoicePrivacy's evaluation has it: the nearest of all scores and all midpoints."""
    levels = np.unique(np.concatenate([mated, others]))
    cuts = np.sort(np.concatenate([levels, (levels[1:] + levels[:-1]) / 2]))
    rejects = np.array([(mated <= cut).mean() for cut in cuts])
    accepts = np.array([(others > cut).mean() for cut in cuts])
    best = int(np.argmin(np.abs(rejects - accepts)))
    return float(rejects[best] + accepts[best]) / 2


def chosen_lines(path: Path, which: BoolArray) -> str:
    """Some lines of a file."""
    lines = path.read_text().splitlines(keepends=True)
    return "".join(line for line, take in zip(lines, which, strict=True) if take)
