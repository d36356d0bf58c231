from __future__ import annotations

import json

import numpy as np
import pytest

from monitor.errors import UsageError
from monitor.lab.evaluation import anonymity
from monitor.lab.evaluation.comparisons import ScoreMatrix
from monitor.lab.evaluation.report.comparing import compare
from monitor.lab.evaluation.report.report import Report
from monitor.lab.plots.evaluation import Curves
from monitor.lab.report.model import Figure
from tests.lab.evaluation.matrices import with_limits


def report(name, figures, tested=("ann", "bob"), replicates=200, seed=0, speakers=100):
    return Report(
        name=name,
        speakers=speakers,
        trials=1000,
        tested=tuple(tested),
        replicates=replicates,
        seed=seed,
        notes=(),
        figures={figure.key: figure for figure in figures},
        curves=Curves(name, speakers, 1000 * (speakers - 1)),
    )


def scored(strength, seed, name, speakers=40, tests=5):
    generator = np.random.default_rng(seed)
    target = np.repeat(np.arange(speakers), tests)
    scores = generator.normal(size=(target.size, speakers))
    scores[np.arange(target.size), target] += strength
    matrix = ScoreMatrix(scores, target, name=name)
    found = with_limits(anonymity.figures, matrix)
    return report(name, found.values(), matrix.speakers, speakers=speakers)


def resampled_figure(value, noise):
    """Thirty speakers behind it, each of whom was left out once."""
    replicates, left_out = value + noise[:-30], value + noise[-30:] / 30
    return Figure(
        "a.b",
        "B",
        value,
        "bits",
        replicates=replicates,
        left_out=left_out,
        low=value - 2,
        high=value + 2,
    )


def second(row) -> Figure:
    """Of the second system."""
    difference: Figure | None = row.differences[1]
    assert difference is not None
    return difference


def marked(comparison):
    return {row.key for row in comparison.rows if row.differs[1]}


def test_two_systems_that_differ_are_told_apart():
    comparison = compare([scored(2.0, 0, "weak"), scored(0.5, 1, "strong")])
    assert comparison.paired == (True, True)
    assert marked(comparison) >= {"anonymity.mean_rank_p50", "anonymity.share_rank_at_most_10"}
    (row,) = [row for row in comparison.rows if row.key == "anonymity.mean_rank_p50"]
    assert row.most_private == 1
    low, value, high = second(row).low, second(row).value, second(row).high
    assert low is not None
    assert value is not None
    assert high is not None
    assert low < value < high
    assert row.differences[0] is None


def test_the_same_system_twice_is_not():
    comparison = compare([scored(1.0, 0, "one"), scored(1.0, 0, "again")])
    assert marked(comparison) == set()
    assert all(row.most_private is None for row in comparison.rows)


def test_two_systems_without_evidence_are_seldom():
    comparisons = [
        compare([scored(0.0, 2 * i, "one"), scored(0.0, 2 * i + 1, "other")]) for i in range(20)
    ]
    sizes = [len(marked(comparison)) for comparison in comparisons]
    assert sum(sizes) <= 0.12 * sum(len(comparison.rows) for comparison in comparisons)


def test_pairing_makes_the_limits_narrow():
    shared = np.random.default_rng(0).normal(size=230)
    own = np.random.default_rng(1).normal(size=230) / 20
    ours, theirs = [f"ann{i}" for i in range(30)], [f"bob{i}" for i in range(30)]

    def one(name, shift, noise, tested):
        return report(name, [resampled_figure(shift, shared + noise)], tested)

    first = one("first", 0.0, 0.0, ours)
    same = compare([first, one("same", 0.3, own, ours)])
    other = compare([first, one("other", 0.3, own, theirs)])
    assert marked(same) == {"a.b"}
    assert marked(other) == set()
    assert other.paired == (True, False)
    assert any("independent resamples" in note for note in other.notes)


def test_limits_of_a_difference_are_students():
    noise = np.random.default_rng(0).normal(size=1030)
    speakers = [str(i) for i in range(30)]
    zero = report("zero", [resampled_figure(0.0, np.zeros(1030))], speakers)
    other = report("other", [resampled_figure(3.0, noise)], speakers)
    difference = second(compare([zero, other]).rows[0])
    assert difference.low is not None
    # t of 29 degrees or fewer, times a spread that is short by 29/30
    assert difference.low == pytest.approx(3.0 - 2.1 * np.sqrt(30 / 29), abs=0.15)


def test_more_systems_need_more_to_differ():
    noise = np.random.default_rng(0).normal(size=1030)
    speakers = [str(i) for i in range(30)]
    zero = report("zero", [resampled_figure(0.0, np.zeros(1030))], speakers)
    others = [report(f"s{i}", [resampled_figure(2.3, noise)], speakers) for i in range(3)]
    assert second(compare([zero, others[0]]).rows[0]).significant
    three = compare([zero, *others])
    assert three.confidence == pytest.approx(1 - 0.05 / 3)
    assert not second(three.rows[0]).significant
    assert any("Bonferroni" in note for note in three.notes)


def test_shares_at_their_edges_differ_where_their_limits_do():
    """All resamples agree there, so that a spread says nothing."""

    def at(name, value, tested):
        still = np.full(200, value)
        low, high = (0.88, 1.0) if value else (0.0, 0.12)
        figure = Figure(
            "a.b", "B", value, "share", replicates=still, left_out=still[:30], low=low, high=high
        )
        return report(name, [figure], tested)

    speakers = [str(i) for i in range(30)]
    found = compare([at("all", 1.0, speakers), at("none", 0.0, speakers)])
    assert marked(found) == {"a.b"}
    assert second(found.rows[0]).high == pytest.approx(0.12 - 0.88)
    assert marked(compare([at("all", 1.0, speakers), at("again", 1.0, speakers)])) == set()


def test_what_has_no_limits_is_not_called_different():
    speakers = [str(i) for i in range(30)]
    replicates = np.random.default_rng(0).normal(size=200)

    def one(name, value):
        return report(name, [Figure("a.b", "B", value, "bits", value + replicates)], speakers)

    difference = second(compare([one("one", 0.0), one("other", 99.0)]).rows[0])
    assert difference.value == 99.0
    assert not difference.significant


def test_what_cannot_be_compared_is_left_open():
    one = report(
        "one",
        [
            Figure("a.none", "A", None, "bits"),
            Figure("a.exact", "B", 0.5, "bits", low=0.1, high=0.9),
            Figure(
                "a.seldom", "C", 0.5, "bits", replicates=np.r_[np.full(150, np.nan), np.ones(50)]
            ),
            Figure("a.infinite", "D", np.inf, "nats", replicates=np.full(200, np.nan)),
            Figure("a.tag", "E", None, "", text="C"),
        ],
    )
    other = report(
        "other",
        [
            Figure("a.exact", "B", 0.7, "bits", low=0.6, high=0.9),
            Figure("a.seldom", "C", 9.0, "bits", replicates=np.full(200, 9.0)),
            Figure("a.infinite", "D", np.inf, "nats", replicates=np.full(200, np.nan)),
            Figure("a.tag", "E", None, "", text="A"),
            Figure("a.new", "F", 1.0, "bits"),
        ],
    )
    comparison = compare([one, other])
    assert marked(comparison) == set()
    values = {row.key: second(row).value for row in comparison.rows}
    assert values == pytest.approx(
        {"a.none": None, "a.exact": 0.2, "a.seldom": 8.5, "a.infinite": None, "a.tag": None,
         "a.new": None}
    )  # fmt: skip
    assert [row.figures[0] is None for row in comparison.rows] == [False] * 5 + [True]
    json.dumps(comparison.to_json(), allow_nan=False)


def test_notes_say_what_stands_in_the_way():
    figure = Figure("a.b", "B", 0.5, "bits")
    few = compare([report(f"s{i}", [figure], replicates=20) for i in range(4)])
    assert any("20 resamples are few" in note for note in few.notes)
    none = compare([report(name, [figure], replicates=0) for name in "ab"])
    assert any("Nothing was resampled" in note for note in none.notes)
    sizes = compare([report("a", [figure]), report("b", [figure], speakers=50)])
    assert any("different numbers of speakers" in note for note in sizes.notes)


@pytest.mark.parametrize("names", [["a", "a"], []])
def test_names_and_numbers_of_systems(names):
    with pytest.raises(UsageError):
        compare([report(name, []) for name in names])
