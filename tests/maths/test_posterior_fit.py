import numpy as np
import pytest
from numpy.testing import assert_allclose

from monitor.maths import posterior_fit as logit
from monitor.maths.posterior_fit import (
    Anchor,
    Trials,
    fit,
    fit_held_out,
    fit_replicates,
    information,
    prior_of,
    smallest_floor,
)
from monitor.maths.posterior_fit import held_out_bits as bits_of
from monitor.maths.statistics import speaker_weights


def raw(scores, each):
    """Trials of scores, (n, F, N), of whose candidates the first is the true speaker."""
    return Trials(scores - scores[:, :, :1], np.arange(len(scores)) // each)


def simulated(seed, speakers, each, candidates, shift, weights, speaker_spread=0.0):
    """Trials with a known posterior.

    The true speaker's z has mean ``shift``, everybody else's 0: the log-likelihood ratio is
    ``shift * z``, so that scores of ``shift * z / weights`` ask for exactly these weights.
    """
    generator = np.random.default_rng(seed)
    shift, weights = np.atleast_1d(shift).astype(float), np.atleast_1d(weights).astype(float)
    speaker = np.repeat(np.arange(speakers), each)
    z = generator.normal(size=(speaker.size, shift.size, candidates))
    own = generator.normal(0, speaker_spread, (speakers, shift.size)) if speaker_spread else 0 * z
    z[:, :, 0] += shift + (own[speaker] if speaker_spread else 0)
    return raw(z * (shift / weights)[:, None], each)


def useless(seed, speakers, each, candidates, features=1):
    generator = np.random.default_rng(seed)
    return raw(generator.normal(size=(speakers * each, features, candidates)), each)


def some(trials, keep):
    _, speaker = np.unique(trials.speaker[keep], return_inverse=True)
    return Trials(trials.margins[keep], speaker)


def bits(trials, weights, floor):
    """Local bits of every trial, one after the other."""
    candidates, found = trials.margins.shape[2], []
    for behind in trials.margins:
        llr = sum(w * row for w, row in zip(weights, behind, strict=True))
        softmax = 1 / np.exp(np.clip(llr, None, 700)).sum()  # the true speaker's llr is 0
        found.append(np.log2(candidates * ((1 - floor) * softmax + floor / candidates)))
    return np.array(found)


@pytest.mark.parametrize("features", [1, 2, 3])
def test_slopes_and_bends_by_finite_differences(features):
    trials = simulated(0, 6, 4, 9, np.linspace(0.5, 2, features), 10.0 ** np.arange(features), 0.5)
    rows = np.full(24, 1 / 24)
    losses = logit._Losses(trials)
    point = np.append(0.7 * 10.0 ** np.arange(features), 0.2)

    def at(x):
        return losses.evaluate_at(x[:-1], x[-1])

    loss, slope, bend = at(point)
    shown = np.log(9) - np.log(2) * rows @ bits(trials, point[:-1], point[-1])
    assert loss == pytest.approx(shown)
    for f, step in enumerate(np.diag(1e-5 * point)):
        up, down = at(point + step), at(point - step)
        assert slope[f] == pytest.approx((up[0] - down[0]) / (2 * step[f]), rel=1e-6)
        assert_allclose(bend[f], (up[1] - down[1]) / (2 * step[f]), rtol=1e-6)


@pytest.mark.parametrize("features", [1, 2, 3, 4])
def test_all_products_of_lambdas_at_once(features):
    """Also where features contradict each other by so much that a product of theirs vanishes."""
    trials = simulated(2, 5, 3, 12, np.linspace(1, 2, features), 10.0 ** np.arange(features))
    if features > 1:
        trials.margins[4, 0, 3], trials.margins[4, 1, 3] = 900.0, -900.0 * 0.1
        trials.margins[4, 0, 5], trials.margins[4, 1, 5] = -900.0, 900.0 * 0.1
    levels = [
        np.concatenate([[0.0], np.geomspace(0.3, 1.5, 4) * 10.0 ** (f * (f != 1) + (f == 1))])
        for f in range(features)
    ]
    points = np.stack([each.ravel() for each in np.meshgrid(*levels, indexing="ij")], axis=1)
    found = logit._shares_of_products(trials, levels)
    assert_allclose(found, logit._shares_at(trials, points), rtol=1e-9, atol=1e-290)
    assert found.shape == (5**features, 15)


def test_tables_of_losses_whatever_the_trials_of_each_speaker():
    """Some say nothing, one has more trials than go into one product."""
    generator = np.random.default_rng(0)
    speaker = np.repeat([4, 0, 2, 0, 4], [1, 30, 5, 10, 2])
    share = generator.uniform(0, 1, (7, speaker.size)) ** 40
    trials = Trials(np.zeros((speaker.size, 1, 9)), speaker)
    floors, loss = logit._Shares(trials, share).table(5, 0.01)
    p = (1 - floors[:, None]) * share[:, None] + floors[:, None] / 9
    wanted = np.stack([-np.log(p[..., speaker == s]).sum(axis=2) for s in range(5)])
    assert_allclose(loss, wanted, rtol=1e-12)
    assert (loss[[1, 3]] == 0).all()


@pytest.mark.parametrize(
    ("shift", "weights"), [([1.5], [0.02]), ([1.0, 2.0], [0.05, 4.0]), ([1, 1.5, 2], [0.3, 1, 20])]
)
def test_known_weights_are_recovered(shift, weights):
    found = fit(simulated(3, 150, 6, 30, shift, weights))
    assert_allclose(found.weights, weights, rtol=0.12)
    assert found.floor < 0.04


def test_a_known_floor_is_recovered():
    # with every fifth trial under a random name, p = 0.8 softmax + 0.2 / N is exactly right
    trials = simulated(4, 300, 5, 30, 2.5, 1.0)
    behind, generator = trials.margins.copy(), np.random.default_rng(5)
    for i in range(0, 1500, 5):
        name = generator.integers(30)
        behind[i, :, [0, name]] = behind[i, :, [name, 0]]
        behind[i] -= behind[i, :, :1]
    found = fit(Trials(behind, trials.speaker))
    assert found.floor == pytest.approx(0.2, abs=0.03)
    assert_allclose(found.weights, 1.0, rtol=0.12)


@pytest.mark.parametrize("seed", range(6))
def test_no_better_optimum_is_found_from_anywhere(seed):
    generator = np.random.default_rng(seed)
    features = seed % 3 + 1
    trials = simulated(
        seed, 10, 6, 15, generator.uniform(0.3, 2, features), 10 ** generator.normal(size=features),
        0.4,
    )  # fmt: skip
    prior = prior_of(trials) * (seed % 2)
    best = fit(trials, prior)
    for _ in range(4):
        start = best.weights * np.exp(generator.uniform(-3, 3, features))
        other = logit._polish(trials, start, generator.uniform(0.05, 1), prior)
        assert best.loss <= other.loss + 1e-4


@pytest.mark.parametrize("speakers", [3, 10, 40])
@pytest.mark.parametrize("shift", [0.0, 1.0, 6.0])
def test_the_floor_never_falls_below_what_the_speakers_can_back(speakers, shift):
    trials = simulated(0, speakers, 4, 20, shift, 1.0) if shift else useless(0, speakers, 4, 20)
    lowest = 1 / (2 * (speakers + 1))
    assert smallest_floor(speakers) == pytest.approx(lowest)
    assert trials.speakers == speakers
    found = fit(trials)
    _, floors = fit_replicates(trials, found.weights, speaker_weights(speakers, 30))
    for floor in (found.floor, *floors):
        assert lowest * (1 - 1e-9) <= floor <= 1
    if shift == 6.0:
        assert found.floor == pytest.approx(lowest)


@pytest.mark.parametrize("features", [1, 2])
def test_replicates_are_refits(features):
    trials = simulated(8, 20, 6, 20, [1.0, 1.5][:features], [0.1, 1][:features], 0.4)
    found, drawn = fit(trials), speaker_weights(20, 12, seed=1)
    weights, floors = fit_replicates(trials, found.weights, np.ones((2, 20)))  # everybody once
    assert_allclose(weights, np.stack([found.weights] * 2), rtol=0.02)
    assert_allclose(floors, found.floor, rtol=0.15)
    weights, _ = fit_replicates(trials, found.weights, drawn)
    refits = []
    for each in drawn:
        again = np.repeat(np.arange(20), each.astype(int))
        rows = np.concatenate([np.flatnonzero(trials.speaker == s) for s in again])
        # copies of a speaker are speakers of their own: the replicate has S of them
        copies = Trials(trials.margins[rows], np.repeat(np.arange(20), 6))
        refits.append(fit(copies).weights)
    ratio = np.log(weights / np.array(refits))
    spread = np.log(np.array(refits)).std(axis=0)
    assert (np.abs(ratio.mean(axis=0)) < 0.03).all()
    assert (np.sqrt((ratio**2).mean(axis=0)) < 0.35 * spread).all()


def held_out_bits(trials, centre, speakers):
    return bits_of(trials, *fit_held_out(trials, centre, speakers)).mean()


@pytest.mark.parametrize("features", [1, 2])
def test_useless_misleading_and_missing_scores_claim_nothing(features):
    held = []
    for seed in range(3):
        trials = useless(seed, 20, 5, 30, features)
        found = fit(trials)
        assert 0 <= np.log2(30) - found.loss / np.log(2) < 0.15
        held.append(held_out_bits(trials, found.weights, 20))
    assert min(held) > -0.15
    assert abs(np.mean(held)) < 0.05
    right = simulated(0, 12, 5, 20, [2.0] * features, [1.0] * features)
    misled = fit(Trials(-right.margins, right.speaker))
    assert misled.loss == pytest.approx(np.log(20), abs=1e-3)
    trials = Trials(np.zeros((20, features, 8)), np.repeat(np.arange(10), 2))
    found = fit(trials)
    assert found.loss == pytest.approx(np.log(8))
    assert held_out_bits(trials, found.weights, 10) == pytest.approx(0, abs=1e-12)
    weights, floors = fit_replicates(trials, found.weights, speaker_weights(10, 5))
    assert np.isfinite(weights).all()
    assert ((floors > 0) & (floors <= 1)).all()


def leave_one_out(trials):
    found = []
    for speaker in np.unique(trials.speaker):
        rest = fit(some(trials, trials.speaker != speaker))
        found.append(bits(some(trials, trials.speaker == speaker), rest.weights, rest.floor).mean())
    return np.mean(found)


@pytest.mark.slow
@pytest.mark.parametrize(("speakers", "features"), [(3, 1), (4, 2), (10, 1), (14, 1), (14, 2)])
def test_held_out_bits_are_of_speakers_that_the_fit_has_not_seen(speakers, features):
    for seed in range(2):
        trials = simulated(seed, speakers, 5, 20, [1.0, 1.5][:features], [0.1, 1][:features], 0.5)
        held = held_out_bits(trials, fit(trials).weights, speakers)
        assert held == pytest.approx(leave_one_out(trials), abs=0.02)


def test_every_speaker_weighs_the_same_in_held_out_bits():
    trials = simulated(0, 8, 6, 20, 1.5, 1.0, 0.5)
    fewer = some(trials, (trials.speaker != 0) | (np.arange(48) < 1))
    held = held_out_bits(fewer, fit(fewer).weights, 8)
    assert held == pytest.approx(leave_one_out(fewer), abs=0.02)


def beside(trials, *others):
    """The features of all of them, the same trials."""
    return Trials(
        np.concatenate([trials.margins, *(each.margins for each in others)], 1), trials.speaker
    )


def test_the_prior_frees_the_best_feature_and_holds_one_that_says_nothing_new():
    strong, weak = simulated(0, 20, 10, 30, 3.0, 2.0), simulated(1, 20, 10, 30, 0.5, 4.0)
    assert prior_of(strong).tolist() == [0.0]
    prior = prior_of(beside(weak, strong))
    assert prior[1] == 0.0
    assert prior[0] == pytest.approx(1.0 / fit(weak).weights[0])
    # what says something new keeps nearly all its weight
    both = beside(simulated(0, 40, 20, 30, 2.0, 1.0), simulated(1, 40, 20, 30, 1.5, 1.0))
    free, found = fit(both), fit(both, prior_of(both))
    assert_allclose(found.weights, free.weights, rtol=0.1)
    assert found.weights[1] < free.weights[1]
    # and what says nothing new has no say
    strong = simulated(0, 20, 10, 30, 2.0, 1.0)
    generator = np.random.default_rng(1)
    both = beside(strong, raw(strong.margins + generator.normal(0, 2.0, strong.margins.shape), 10))
    found = fit(both, prior_of(both))
    assert found.weights[1] == 0.0
    assert_allclose(found.weights[0], fit(strong).weights[0], rtol=1e-3)
    held, _ = fit_held_out(both, found.weights, 20, prior_of(both))
    assert (held[:, 1] == 0.0).all()
    drawn, _ = fit_replicates(both, found.weights, speaker_weights(20, 30), prior_of(both))
    assert (drawn[:, 1] == 0.0).all()


@pytest.mark.parametrize("speakers", [3, 4, 5])
def test_the_floor_saves_unseen_speakers_from_very_negative_bits(speakers):
    with_floor, without = [], []
    for seed in range(8):
        # easy to tell among themselves: the weights run away
        trials = simulated(seed, speakers, 6, 40, 5.0, 1.0)
        unseen = simulated(100 + seed, 30, 6, 40, 2.0, 0.4, 1.0)
        found = fit(trials)
        with_floor.append(bits(unseen, found.weights, found.floor))
        without.append(bits(unseen, found.weights, 0.0))
    lowest = np.log2(1 / (2 * (speakers + 1)))
    assert np.min(with_floor) >= lowest - 1e-9
    assert np.mean(with_floor) > 0.5
    assert np.mean(without) < -1


def expected_loss(behind, truth, at):
    """Mean nats of -log p under the parameters ``at`` where ``truth`` draws the speaker."""

    def posterior(x):
        evidence = np.einsum("f,nfj->nj", x[:-1], behind)
        q = np.exp(evidence - evidence.max(axis=1, keepdims=True))
        e = np.exp(x[-1])
        return (1 - e) * q / q.sum(axis=1, keepdims=True) + e / behind.shape[2]

    return -(posterior(truth) * np.log(posterior(at))).sum(axis=1).mean()


def anchored_trials():
    """40 trials of 10 speakers, two features on scales of their own, 9 candidates."""
    generator = np.random.default_rng(3)
    scores = generator.normal(size=(40, 2, 9)) * np.array([1.0, 20.0])[:, None]
    scores[:, :, 0] += np.array([1.5, 20.0])
    return raw(scores, 4)


def test_information_is_the_bend_of_the_expected_loss():
    behind = anchored_trials().margins
    truth = np.array([0.8, 0.06, np.log(0.1)])
    step = np.array([1e-3, 1e-4, 1e-3])
    bend = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            corners = [
                (1 if a == b else -1) * expected_loss(behind, truth, truth + a * u + b * v)
                for a in (1, -1)
                for b in (1, -1)
                for u, v in [(np.eye(3)[i] * step, np.eye(3)[j] * step)]
            ]
            bend[i, j] = sum(corners) / (4 * step[i] * step[j])
    found = information(behind, truth[:-1], 0.1)
    size = np.sqrt(np.diag(bend))
    assert_allclose(found / np.outer(size, size), bend / np.outer(size, size), atol=1e-3)
    # whom the scores are taken against does not matter
    assert_allclose(information(behind - behind[:, :, 3:4], truth[:-1], 0.1), found, rtol=1e-9)


def test_cost_slope_and_bend_agree():
    generator = np.random.default_rng(0)
    root = generator.normal(size=(3, 3))
    anchor = Anchor(generator.normal(size=(4, 3)), root @ root.T).scale_to(7.0)
    weights, floors = generator.random((5, 2)), np.array([0.05, 0.3])
    cost = anchor.cost(weights, floors)
    assert cost.shape == (4, 5, 2)
    away = np.append(weights[2], np.log(0.3)) - anchor.centre[3]
    assert cost[3, 2, 1] == pytest.approx(3.5 * away @ root @ root.T @ away)
    at = np.log(np.append(weights[2], 0.3))
    value, slope, bend = anchor.bends(weights[2], 0.3)
    assert value == pytest.approx(cost[0, 2, 1])
    for f, move in enumerate(np.eye(3) * 1e-6):
        up, down = (anchor.bends(np.exp(x[:2]), np.exp(x[2])) for x in (at + move, at - move))
        assert slope[f] == pytest.approx((up[0] - down[0]) / 2e-6, rel=1e-5)
        assert_allclose(bend[f], (up[1] - down[1]) / 2e-6, rtol=1e-5)
    assert anchor.rank_model.cost(weights, floors) == pytest.approx(cost[:1])


@pytest.mark.slow
def test_a_fit_goes_from_its_own_to_the_anchor_as_the_worth_grows():
    trials = anchored_trials()
    free, there = fit(trials), np.array([0.2, 0.1])
    replicates = np.abs(np.random.default_rng(1).normal(1, 0.1, (31, 2))) * there
    replicates[0] = there
    centre = np.column_stack([replicates, np.full(31, np.log(0.2))])
    anchor = Anchor(centre, information(trials.margins, there, 0.2))
    found = [fit(trials, None, anchor.scale_to(worth)) for worth in (1e-9, 10.0, 1e9)]
    assert_allclose(found[0].weights, free.weights, rtol=1e-4)
    assert_allclose(found[2].weights, there, rtol=1e-4)
    assert found[2].floor == pytest.approx(0.2, rel=1e-4)
    away = [anchor.bends(each.weights, each.floor)[0] for each in found]
    assert away[0] > away[1] > away[2]
    # the limits hold what is left of the prior's own spread
    picks = speaker_weights(10, 30)
    spread = [
        np.log(fit_replicates(trials, each.weights, picks, anchor=anchor.scale_to(worth))[0]).std(
            axis=0
        )
        for each, worth in ((found[0], 1e-9), (found[2], 1e9))
    ]
    assert_allclose(spread[1], np.log(replicates[1:]).std(axis=0), rtol=0.3)
    held, floors = fit_held_out(trials, found[2].weights, 10, None, anchor.scale_to(1e9))
    assert_allclose(held, np.tile(there, (10, 1)), rtol=1e-3)
    assert_allclose(floors, 0.2, rtol=1e-3)
