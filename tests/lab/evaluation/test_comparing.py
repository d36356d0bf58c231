"""Systems beside each other, in pairs, and groups of speakers by themselves."""

import json
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation import anonymity
from monitor.lab.evaluation.comparisons import Comparisons, ScoreMatrix, as_list, within
from monitor.lab.evaluation.curves import Curves
from monitor.lab.evaluation.input.groups import read_attribute
from monitor.lab.evaluation.report import Report
from monitor.lab.evaluation.systems import (
    AVERAGE,
    _average,
    all_pairs,
    by_group,
    compare,
    compute_difference,
    explain_pairs,
    p_value,
)
from monitor.lab.evaluation.verification import eer
from monitor.lab.report.model import Figure
from tests.lab.evaluation.matrices import leading, report_of, with_limits

SPEAKERS = tuple(f"ann{i}" for i in range(30))


def report(name, figures, tested=SPEAKERS, replicates=200, speakers=100):
    """A report of figures that are given."""
    return Report(
        name=name, speakers=speakers, trials=1000, tested=tuple(tested), replicates=replicates,
        seed=0, notes=(), figures={figure.key: figure for figure in figures},
        curves=Curves(name, speakers, 1000 * (speakers - 1)),
    )  # fmt: skip


def resampled(name, value, noise, tested=SPEAKERS):
    """Of one figure with thirty speakers behind it, each of whom was left out once."""
    replicates, left_out = value + noise[:-30], value + noise[-30:] / 30
    figure = Figure(
        "a.b", "B", value, "bits", replicates, left_out=left_out, low=value - 2, high=value + 2
    )
    return report(name, [figure], tested)


def scored(strength, seed, name):
    """Of the ranks of forty speakers."""
    matrix = leading(40, 5, strength, seed, name)
    found = with_limits(anonymity.figures, matrix)
    return report(name, found.values(), matrix.speakers, speakers=40)


def second(row) -> Any:
    """The difference of the second system."""
    return row.differences[1]


def marked(comparison):
    return {row.key for row in comparison.rows if row.differs[1]}


def test_two_systems_that_differ_are_told_apart_and_one_from_itself_is_not():
    comparison = compare([scored(2.0, 0, "weak"), scored(0.5, 1, "strong")])
    assert comparison.paired == (True, True)
    assert marked(comparison) >= {"anonymity.mean_rank_p50", "anonymity.share_rank_at_most_10"}
    (row,) = [row for row in comparison.rows if row.key == "anonymity.mean_rank_p50"]
    assert row.most_private == 1
    assert second(row).low < second(row).value < second(row).high
    assert row.differences[0] is None
    comparison = compare([scored(1.0, 0, "one"), scored(1.0, 0, "again")])
    assert marked(comparison) == set()
    assert all(row.most_private is None for row in comparison.rows)


def test_pairing_makes_the_limits_narrow():
    shared = np.random.default_rng(0).normal(size=230)
    own = shared + np.random.default_rng(1).normal(size=230) / 20
    theirs = tuple(f"bob{i}" for i in range(30))
    first = resampled("first", 0.0, shared)
    same = compare([first, resampled("same", 0.3, own)])
    other = compare([first, resampled("other", 0.3, own, theirs)])
    assert marked(same) == {"a.b"}
    assert marked(other) == set()
    assert other.paired == (True, False)
    assert any("independent resamples" in note for note in other.notes)


def test_limits_of_a_difference_are_students_and_more_systems_need_more_to_differ():
    noise = np.random.default_rng(0).normal(size=1030)
    zero = resampled("zero", 0.0, np.zeros(1030))
    difference = second(compare([zero, resampled("other", 3.0, noise)]).rows[0])
    # t of 29 degrees or fewer, times a spread that is short by 29/30
    assert difference.low == pytest.approx(3.0 - 2.1 * np.sqrt(30 / 29), abs=0.15)
    others = [resampled(f"s{i}", 2.3, noise) for i in range(3)]
    assert second(compare([zero, others[0]]).rows[0]).significant
    three = compare([zero, *others])
    assert three.confidence == pytest.approx(1 - 0.05 / 3)
    assert not second(three.rows[0]).significant
    assert any("Bonferroni" in note for note in three.notes)


def test_shares_at_their_edges_differ_where_their_limits_do():
    """All resamples agree there, so that a spread says nothing."""

    def at(name, value):
        still = np.full(200, value)
        low, high = (0.88, 1.0) if value else (0.0, 0.12)
        figure = Figure("a.b", "B", value, "share", still, left_out=still[:30], low=low, high=high)
        return report(name, [figure])

    found = compare([at("all", 1.0), at("none", 0.0)])
    assert marked(found) == {"a.b"}
    assert second(found.rows[0]).high == pytest.approx(0.12 - 0.88)
    assert marked(compare([at("all", 1.0), at("again", 1.0)])) == set()


def test_what_cannot_be_compared_is_left_open():
    nan, noise = np.full(200, np.nan), np.random.default_rng(0).normal(size=200)
    one, other = (
        report(
            name,
            [
                Figure("a.seldom", "C", value, "bits", np.r_[nan[:150], np.full(50, value)]),
                Figure("a.infinite", "D", np.inf, "nats", nan),
                Figure("a.unlimited", "G", value, "bits", value + noise),
            ],
        )
        for name, value in (("one", 0.5), ("other", 99.0))
    )
    comparison = compare([one, other])
    assert marked(comparison) == set()
    values = {row.key: second(row).value for row in comparison.rows}
    assert values == {"a.seldom": 98.5, "a.infinite": None, "a.unlimited": 98.5}
    json.dumps(comparison.to_json(), allow_nan=False)


@pytest.mark.parametrize("names", [["a", "a"], []])
def test_names_and_numbers_of_systems(names):
    with pytest.raises(UsageError):
        compare([report(name, []) for name in names])


LEADS = {"strong": 3.0, "weak": 1.0, "alike": 1.0}
KEYS = ("srd.idr", "lid.alid_bits", "verification.eer_rocch", "zebra.tag")


@pytest.fixture(scope="module")
def reports():
    return [
        report_of(leading(30, 6, lead, seed, name), replicates=100)
        for seed, (name, lead) in enumerate(LEADS.items())
    ]


def test_every_pair_is_compared(reports):
    pairs: Any = all_pairs(reports, KEYS)
    assert [(pair.first, pair.other) for pair in pairs] == [
        ("strong", "weak"), ("strong", "alike"), ("weak", "alike"),
    ]  # fmt: skip
    assert all(pair.paired for pair in pairs)
    for key in KEYS[:3]:
        assert [pair.differences[key].significant for pair in pairs] == [True, True, False], key
        p = [pair.p[key] for pair in pairs]
        assert p[0] <= 0.05 < p[2]
        gap = pairs[2].differences[key].value
        assert gap == pytest.approx(reports[2][key].value - reports[1][key].value)
    assert pairs[0].p["zebra.tag"] is None
    json.dumps([pair.to_json() for pair in pairs], allow_nan=False)


def test_limits_and_p_bear_the_number_of_pairs(reports):
    alone: Any = all_pairs(reports[1:], KEYS)[0]
    among: Any = all_pairs(reports, KEYS)[2]
    weak, alike = reports[1:]
    for key in KEYS[:3]:
        one, three = (pair.differences[key] for pair in (alone, among))
        assert three.low <= one.low < one.high <= three.high
        raw: Any = p_value(weak, alike, key)
        assert alone.p[key] == raw
        assert among.p[key] == min(1.0, 3 * raw)
        # p is where the limits begin to hold zero
        assert raw > 0.9 or compute_difference(weak, alike, key, 1.05 * raw).significant
        assert not compute_difference(weak, alike, key, 0.9 * raw).significant
    assert "cannot resolve p below 0.15" in [*explain_pairs([alone] * 3, 20)][1]


NAMES = tuple(f"s{i:02}" for i in range(40))
GENDER = {name: "fm"[i % 2] for i, name in enumerate(NAMES)}


def halves():
    """Women are easily found, men hardly."""
    target = np.repeat(np.arange(40), 6)
    lead = np.where(target % 2, 0.5, 2.5)
    own = target[:, None] == np.arange(40)
    scores = np.random.default_rng(0).normal(size=own.shape) + lead[:, None] * own
    return ScoreMatrix(scores, target, NAMES, "halves")


@pytest.fixture(scope="module")
def parts():
    every = Comparisons.all_of(halves())
    return by_group(every, GENDER, partial(report_of, replicates=60), "spk2gender")


def figure(parts, name, key) -> Any:
    (row,) = [row for row in parts.comparison.rows if row.key == key]
    return row.figures[parts.comparison.names.index(name)]


def test_a_known_difference_is_seen_and_marked(parts):
    assert parts.comparison.names == ("f", "m", AVERAGE)
    f, m = (figure(parts, name, "verification.eer_rocch").value for name in "fm")
    assert f < 0.15 < 0.3 < m
    differs = {row.key for row in parts.comparison.rows if row.differs[1]}
    assert differs >= {"verification.eer_rocch", "srd.idr", "lid.alid_bits", "srd.mean_bits_model"}
    (row,) = [row for row in parts.comparison.rows if row.key == "srd.idr"]
    assert row.most_private == 1


def test_only_comparisons_within_a_group_count(parts):
    matrix = halves()
    for group, odd in (("f", 0), ("m", 1)):
        rows, columns = matrix.target % 2 == odd, np.arange(40) % 2 == odd
        scores = matrix.scores[rows][:, columns]
        own = matrix.target[rows][:, None] == np.flatnonzero(columns)
        found = figure(parts, group, "verification.eer_rocch")
        assert found.value == pytest.approx(eer(scores[own], scores[~own], "rocch"), abs=1e-12)
    said = parts.notes[0]
    assert "f: 120 target and 2,280 non-target comparisons with 20 speakers" in said
    assert "The other 4,800 comparisons are in no group" in said


def test_the_average_weighs_groups_alike_and_has_limits(parts):
    for key in ("verification.eer_rocch", "srd.idr", "lid.alid_bits"):
        f, m, mean = (figure(parts, name, key).value for name in ("f", "m", AVERAGE))
        assert mean == pytest.approx((f + m) / 2)
        ends = np.array([figure(parts, name, key).limits for name in ("f", "m", AVERAGE)])
        widths = np.diff(ends.astype(float))[:, 0]
        assert max(widths[:2]) / 2 < widths[2] < sum(widths[:2]) / 2
        assert ends[2, 0] < mean < ends[2, 1]
    averages = {row.key: row.figures[2] for row in parts.comparison.rows}
    for key in ("zebra.tag", "lid.max_bits", "membership.epsilon_lower_nats_at_1e-3"):
        assert averages[key] is None


def test_limits_of_the_average_hold():
    """Of two independent normal means, 95 % of them."""
    generator = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        seen = zip(generator.normal([1.0, 3.0], [0.1, 0.4]), (0.196, 0.784), strict=True)
        mean: Any = _average(
            [Figure("a.b", "B", x, "bits", low=x - half, high=x + half) for x, half in seen]
        )
        hits += mean.low <= 2.0 <= mean.high
    assert 0.92 <= hits / 400 <= 0.98


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_lists_and_matrices_are_split_alike(seed):
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(12, 6))
    target = np.concatenate([np.arange(6), generator.integers(0, 6, 6)])
    names = tuple("abcdef")
    group_of = {name: "xy"[i // 3] for i, name in enumerate(names)}
    matrix = ScoreMatrix(scores, target, names)
    for group in "xy":
        one = within(Comparisons.all_of(matrix), group_of, group)
        other = within(Comparisons(names, None, as_list(matrix)), group_of, group)
        assert other.incomplete is None
        np.testing.assert_array_equal(one.matrix.scores, other.matrix.scores)
        np.testing.assert_array_equal(one.matrix.target, other.matrix.target)
        assert one.matrix.speakers == other.matrix.speakers


def test_groups_that_cannot_be_measured_are_refused():
    every = Comparisons.all_of(halves())
    with pytest.raises(UsageError, match="lists none of the speakers of halves"):
        by_group(every, {"ann": "f"}, report_of)
    with pytest.raises(UsageError, match=r"1 group of halves can be measured, and two are needed"):
        by_group(every, dict.fromkeys(NAMES, "f"), report_of)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("ann f\nbob m\n", None),
        ("id,accent,gender,age\nann,us,f,30\nbob,uk,m,\n", "gender"),
        ("gender\tspeaker\nf\tann\nm\tbob\n", "gender"),
    ],
)
def test_files_of_groups(tmp_path, text, column):
    (tmp_path / "g").write_text(text)
    found = read_attribute(tmp_path / "g", column)
    assert found.of == {"ann": "f", "bob": "m"}
    assert found.values == ("f", "m")


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("id,a,b\nann,1,2\n", None, "has a, b: choose one with --group-by"),
        ("ann f\nbob F\n", None, "g: group f is also written F"),
        ("ann f\nann m\n", None, "ann is f on one line and m on another"),
        ("".join(f"s{i} {i}\n" for i in range(21)), None, "has 21 groups, more than 20"),
    ],
)
def test_files_that_make_no_groups(tmp_path, text, column, words):
    (tmp_path / "g").write_text(text)
    with pytest.raises(UsageError, match=words):
        read_attribute(tmp_path / "g", column)
