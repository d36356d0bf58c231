from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from monitor.maths.scores import (
    PSEUDO_FRAMES,
    embedding_margin,
    find_split,
    histogram_margin,
    level_margin,
    page_cusum,
)

SHARES = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
LOG_TEMPLATES = np.log(SHARES)
OTHERS = LOG_TEMPLATES, SHARES.mean(axis=0)
counts = arrays.arrays(np.int64, 3, elements=st.integers(0, 1000))
PEOPLE = np.eye(4)
vectors = arrays.arrays(np.float64, 4, elements=st.floats(-10, 10).map(lambda x: round(x, 6)))


def naive(new, own, independent):
    templates = SHARES
    average = templates.mean(axis=0)
    mine = (own + PSEUDO_FRAMES * average) / (own.sum() + PSEUDO_FRAMES)
    share = new / new.sum()
    likelihoods = [math.prod(row**share) ** independent for row in templates]
    return math.log(math.prod(mine**share)) - math.log(np.mean(likelihoods)) / independent


@given(counts.filter(lambda c: c.sum() > 0), counts, st.floats(0.5, 30))
def test_histogram_margin_is_the_mean_log_ratio_of_own_and_mixture(new, own, independent):
    margin = histogram_margin(new, own, *OTHERS, independent)
    assert margin == pytest.approx(naive(new, own, independent), abs=1e-9)


def test_an_unknown_voice_has_no_margin_over_a_population_of_one():
    margin = histogram_margin(np.array([3, 1, 0]), np.zeros(3), LOG_TEMPLATES[:1], SHARES[0], 10)
    assert margin == pytest.approx(0, abs=1e-12)


def test_a_known_voice_has_a_margin_for_its_own_frames_and_none_for_others():
    own = np.array([0, 5000, 0])
    assert histogram_margin(np.array([0, 9, 0]), own, *OTHERS, 10) > 1
    assert histogram_margin(np.array([9, 0, 0]), own, *OTHERS, 10) < -1


def test_the_mixture_lies_between_the_average_and_the_best_speaker():
    new, own = np.array([9, 1, 0]), np.zeros(3)
    share = new / new.sum()
    mine = share @ np.log(SHARES.mean(axis=0))
    average = histogram_margin(new, own, *OTHERS, 1e-6)
    best = histogram_margin(new, own, *OTHERS, 1e6)
    assert average == pytest.approx(mine - (LOG_TEMPLATES @ share).mean(), abs=1e-4)
    assert best == pytest.approx(mine - (LOG_TEMPLATES @ share).max(), abs=1e-4)
    assert best < histogram_margin(new, own, *OTHERS, 10) < average


@given(vectors, vectors, st.integers(0, 4))
def test_embedding_margin_is_bounded_and_does_not_mind_lengths(new, own, count):
    others = PEOPLE[:count]
    margin = embedding_margin(new, own, others)
    assert -2 - 1e-9 <= margin <= 2 + 1e-9
    assert embedding_margin(4 * new, 2 * own, others) == pytest.approx(margin, abs=1e-9)


def test_the_people_most_like_the_new_embeddings_count_most():
    voice, like_it, unlike_it = np.eye(3)
    crowd = np.vstack([voice, like_it, np.repeat(unlike_it[None], 30, axis=0)])
    alone = np.vstack([voice, np.repeat(unlike_it[None], 31, axis=0)])
    assert embedding_margin(like_it, voice, crowd) < embedding_margin(like_it, voice, alone) - 0.5
    # the voice itself, enrolled, does not speak against itself
    enrolled = embedding_margin(voice, voice, crowd)
    assert enrolled == pytest.approx(embedding_margin(voice, voice, crowd[1:]), abs=0.01)


@given(arrays.arrays(np.float64, st.integers(0, 30), elements=st.floats(-5, 5)))
def test_pages_sum_is_that_of_the_recursion(rises):
    total, before = 0.0, 0
    for i, rise in enumerate(rises, 1):
        total = max(0.0, total + rise)
        before = i if total == 0 else before
    evidence, at = page_cusum(rises)
    assert evidence == pytest.approx(total, abs=1e-9)
    assert float(rises[at:].sum()) == pytest.approx(total, abs=1e-9)
    assert 0 <= at <= len(rises)


def test_what_has_no_direction_has_no_cosine():
    one, none, nobody = np.array([1.0, 0]), np.zeros(2), np.empty((0, 2))
    assert embedding_margin(one, none, nobody) == 0
    assert embedding_margin(one, none, np.array([one, one])) == -1
    assert embedding_margin(none, one, np.array([one, one])) == 0


@pytest.mark.slow
@given(arrays.arrays(np.float64, st.integers(2, 30), elements=st.floats(-5, 5)))
def test_split_is_the_best_of_all_cuts(margins):
    def rest(at):
        return sum(float(((part - part.mean()) ** 2).sum()) for part in np.split(margins, [at]))

    at = find_split(margins)
    assert 1 <= at < margins.size
    assert rest(at) <= min(map(rest, range(1, margins.size))) + 1e-9


@given(vectors, vectors)
def test_level_margin_is_a_distance(new, own):
    assert level_margin(new, new) == 0
    assert level_margin(new, own) == level_margin(own, new) <= 0
    assert level_margin(new, new + 2.0) == pytest.approx(-2.0)
