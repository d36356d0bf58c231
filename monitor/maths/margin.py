"""Margins to notice another voice by: does new speech fit the voice so far, or rather others?

A margin needs no ground truth: it sets how well a stream's own past explains its newest speech
against how well the population does. It is positive while one voice goes on, and falls when another
voice, or another channel, takes over.
"""

from __future__ import annotations

import numpy as np

from monitor.types import AnyArray, FloatArray

SHARPNESS = 10.0
"""Of the mixture: with 0 all speakers count alike, with far more the best alone."""
PSEUDO_FRAMES = 200.0
"""Weight of the population in a voice's own distribution, as if so many frames had been heard."""


def histogram_margin(
    counts: AnyArray, own: AnyArray, log_templates: FloatArray, average: FloatArray,
    independent: float,
) -> float:  # fmt: skip
    """Compute the nats a frame by which a voice's own histogram fits new frames best.

    The voice's own distribution is its histogram drawn towards the population's average. The
    population speaks as a mixture: one of its speakers, nobody knows which, made all of the new
    frames.

    Args:
        counts: shape (M,), the new frames; at least one.
        own: shape (M,), what the voice was heard to do before them.
        log_templates: shape (N, M), logarithms of each speaker's probabilities.
        average: shape (M,), the mean of those probabilities.
        independent: how many independent frames the new ones are worth: with few the mixture is
            the average of the log-likelihoods, with many the largest.

    Example:
        >>> shares = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
        >>> others, heard = (np.log(shares), shares.mean(axis=0)), np.array([1600, 200, 200])
        >>> new = np.array([8, 1, 1]), np.array([1, 1, 8])  # the first voice goes on, or the other
        >>> [round(histogram_margin(counts, heard, *others, 10), 2) for counts in new]
        [0.06, -1.17]
    """
    frequencies = counts / counts.sum()
    voice_fit = float(
        frequencies @ np.log((own + PSEUDO_FRAMES * average) / (own.sum() + PSEUDO_FRAMES))
    )
    others = independent * (log_templates @ frequencies)
    best = float(others.max())
    # scipy.special.logsumexp takes ten times as long for so few numbers (benchmarks/soak.py)
    return voice_fit - (best + float(np.log(np.exp(others - best).mean()))) / independent


def embedding_margin(new: AnyArray, own: AnyArray, others: FloatArray) -> float:
    """Compute the cosine of new embeddings with a voice's past, less that with the population.

    As in `histogram_margin` the population is a mixture of its speakers: those most like the new
    embeddings count most, so that women are told from women. Whoever is most like the voice itself
    has no say, since that may be the same person, enrolled.

    Of the sum of the new embeddings and that of the earlier ones, (d,), and others of length 1,
    (N, d); with fewer than two nobody is compared with. In [-2, 2].

    Example:
        >>> others = np.array([[0, 1.0], [0.8, 0.6], [-1, 0]])
        >>> voice = np.array([2.0, 0])
        >>> same, other = (embedding_margin(np.array(x), voice, others) for x in ([3, 0], [0, 1]))
        >>> round(same, 2), round(other, 2)
        (1.07, -0.93)
    """
    voice_similarity = _cosine(new, own)
    if len(others) < 2:
        return voice_similarity
    length = float(np.sqrt(new @ new))
    similarities = np.delete(others @ new, (others @ own).argmax()) / (length or 1.0)
    best = float(similarities.max())
    return (
        voice_similarity
        - best
        - float(np.log(np.exp(SHARPNESS * (similarities - best)).mean())) / SHARPNESS
    )


def level_margin(new: AnyArray, own: AnyArray) -> float:
    """Compute the negative root mean square distance of levels from a stream's mean, in bels.

    Example:
        >>> level_margin(np.array([-3.0, -5.0]), np.array([-3.0, -4.0]))
        -0.7071...
    """
    return -float(np.sqrt(np.mean((new - own) ** 2)))


def find_split(margins: FloatArray) -> int:
    """Find the change between two stretches of constant mean, by least squares.

    How many of two margins or more stand before the change, 1 to n - 1.

    Example:
        >>> find_split(np.array([1.0, 1.2, 0.9, 0.2, 0.1]))
        3
    """
    before = np.arange(1, margins.size)
    excess = np.cumsum(margins - margins.mean())[:-1]
    return int(before[np.argmax(excess**2 / (before * (margins.size - before)))])


def page_cusum(rises: FloatArray) -> tuple[float, int]:
    """Compute Page's cumulative sum ("Continuous inspection schemes", Biometrika 1954).

    Rises, shape (n,), are the evidence for a change in each observation: negative in the mean
    before it, positive after it. Gives the evidence that there has been one, 0 at the least, and
    how many observations stand before it.

    Example:
        >>> page_cusum(np.array([-1.0, 0.5, -1.0, 2.0, 3.0])), page_cusum(np.array([-1.0, -1.0]))
        ((5.0, 3), (0.0, 2))
    """
    sums = np.cumsum(np.append(0.0, rises))
    at = int(sums.size - 1 - sums[::-1].argmin())
    return float(sums[-1] - sums[at]), at


def _cosine(a: AnyArray, b: AnyArray) -> float:
    lengths = float(np.sqrt(a @ a) * np.sqrt(b @ b))
    return float(a @ b) / lengths if lengths > 0 else 0.0
