"""Scores normalised by those of background speakers."""

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.kinds import KINDS, FeatureSpec
from monitor.lab.evaluation import eer
from monitor.lab.normalisation import CLOSEST, ScoreNormalisation
from monitor.population.population import Population

COSINE = KINDS["embedding"].similarity()


def normalised(method, cohort, trials, templates):
    return ScoreNormalisation(method, {"voice": cohort}).score("voice", trials, templates, COSINE)


def test_each_method_takes_the_mean_and_deviation_of_its_side():
    trials, templates = np.array([[1.0, 0.0]]), np.array([[0.6, 0.8], [0.0, 1.0]])
    cohort = np.array([[0.8, 0.6], [-1.0, 0.0]])
    z, t, s = (normalised(method, cohort, trials, templates)[0] for method in "zts")
    # over the cohort: the trial scores 0.8 and -1; the templates 0.96 and -0.6, and 0.6 and 0
    assert t == pytest.approx([(0.6 + 0.1) / 0.9, 0.1 / 0.9])
    assert z == pytest.approx([(0.6 - 0.18) / 0.78, -1.0])
    assert s == pytest.approx((z + t) / 2)
    assert normalised("as", cohort, trials, templates)[0] == pytest.approx(s)  # all are close


def test_adaptive_norm_leaves_out_the_dissimilar():
    generator = np.random.default_rng(0)
    trials, templates, close = (np.abs(generator.normal(size=(n, 16))) for n in (5, 4, CLOSEST))
    both = np.concatenate([close, -close])  # the cosines of the latter are all lower
    for method, changes in (("as", False), ("s", True)):
        alone, among = (normalised(method, c, trials, templates) for c in (close, both))
        assert np.allclose(alone, among) is not changes


def test_it_removes_a_planted_shift_of_trials_and_templates():
    """Every trial and template has its own amount of a direction that all voices share."""
    generator = np.random.default_rng(1)
    people, size = 60, 40
    voices, shared = generator.normal(size=(people + 150, size)), np.zeros(size)
    shared[0] = 12.0

    def record(who):
        noise = 0.8 * generator.normal(size=(len(who), size))
        return voices[who] + noise + generator.uniform(0, 1, (len(who), 1)) * shared

    target = np.arange(people).repeat(5)
    trials, templates = record(target), record(np.arange(people))
    cohort = record(np.arange(people, people + 150))
    is_mated = target[:, None] == np.arange(people)
    scores = {"plain": COSINE.score(COSINE.prepare(templates), trials)}
    for method in ("s", "as"):
        scores[method] = normalised(method, cohort, trials, templates)
    rates = {method: eer(each[is_mated], each[~is_mated]) for method, each in scores.items()}
    assert rates["s"] < rates["plain"] / 2
    assert rates["as"] < rates["plain"] / 2


def test_the_shipped_cohort_has_embeddings_of_the_shipped_network(tmp_path):
    reference = Population.reference()
    normalisation = ScoreNormalisation.load("as", None, reference.specs)
    assert normalisation.cohort.keys() == {"voice"}
    assert normalisation.name_system("voice") == "voice-asnorm"
    path = tmp_path / "people.npz"
    reference.save(path)
    of_people = ScoreNormalisation.load("as", path, reference.specs, {"somebody else"})
    assert of_people.cohort["voice"].shape == (len(reference), 192)
    with pytest.raises(UsageError, match="scored against themselves"):
        ScoreNormalisation.load("as", path, reference.specs, set(reference.names[:3]))
    with pytest.raises(UsageError, match="scored against themselves"):
        ScoreNormalisation.load("as", path, reference.specs, {f"0{reference.names[0]}"})


def test_a_cohort_of_another_network_is_refused():
    kind = KINDS["embedding"]
    foreign = FeatureSpec("voice", kind, 192, 3.0, network="0" * 64)
    for specs in ({"voice": foreign}, {"f0": Population.reference().specs["f0"]}, {}):
        with pytest.raises(UsageError, match="no speaker embeddings of the same network"):
            ScoreNormalisation.load("as", None, specs)
