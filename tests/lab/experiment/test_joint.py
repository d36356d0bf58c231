from __future__ import annotations

import numpy as np

from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.experiment.cells import join_features
from monitor.maths.ranks import rank_bounds

SPEAKERS, TRIALS = 16, 6


def features(shift=(1.0, 2.0), seed=0):
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(SPEAKERS), TRIALS)
    own = np.arange(SPEAKERS) == target[:, None]
    return {
        f"f{i}": ScoreMatrix(generator.normal(size=own.shape) * 10**i + 10**i * by * own, target)
        for i, by in enumerate(shift)
    }


def joint_scores(parts):
    made = join_features(parts)
    assert made is not None
    return made.scores


def first_ranks(matrix):
    better, _ = rank_bounds(np.asarray(matrix.scores), matrix.target)
    return float((better == 0).mean())


def test_two_features_tell_more_than_one():
    parts = features()
    joint = join_features(parts)
    assert first_ranks(joint) > max(first_ranks(each) for each in parts.values()) + 0.02


def test_a_feature_that_tells_nothing_is_left_aside():
    parts = features((0.0, 2.5))
    joint = join_features(parts)
    assert first_ranks(joint) >= first_ranks(parts["f1"]) - 0.03


def test_nobody_weighs_the_features_for_themselves():
    parts = features()
    before = joint_scores(parts)
    mine = parts["f0"].target == 3
    changed = np.array(parts["f0"].scores)
    changed[mine & (np.arange(mine.size) % TRIALS == 0)] *= -50.0  # one test of theirs goes wild
    after = joint_scores(parts | {"f0": ScoreMatrix(changed, parts["f0"].target)})
    calm = mine & (np.arange(mine.size) % TRIALS != 0)
    assert np.array_equal(before[calm], after[calm])
    others = parts["f0"].target == 4
    assert not np.array_equal(before[others], after[others])


def test_a_feature_without_frames_leaves_the_others():
    parts = features()
    silent = ScoreMatrix(np.zeros((SPEAKERS * TRIALS, SPEAKERS)), parts["f0"].target)
    joint = join_features({"f1": parts["f1"], "none": silent})
    assert first_ranks(joint) == first_ranks(parts["f1"])
    assert join_features({"one": silent, "none": silent}) is None


def test_too_few_people_or_features_have_no_joint():
    parts = features()
    assert join_features({"f0": parts["f0"]}) is None
    few = parts["f0"].target < 9
    small = {n: ScoreMatrix(m.scores[few], m.target[few]) for n, m in parts.items()}
    assert join_features(small) is None
