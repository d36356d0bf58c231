"""Groups of speakers: each by itself, and their average."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import UsageError
from monitor.lab.evaluation.comparisons import Comparisons, ScoreMatrix, as_list, within
from monitor.lab.evaluation.evaluating import evaluate
from monitor.lab.evaluation.family import EvaluationSettings
from monitor.lab.evaluation.input.labels import read_attribute
from monitor.lab.evaluation.input.scores import read_scores
from monitor.lab.evaluation.report.comparing import AVERAGE, _average, by_group
from monitor.lab.evaluation.report.document import Evaluation
from monitor.lab.evaluation.verification import eer
from monitor.lab.report.html import render_html
from monitor.lab.report.model import Figure
from tests.lab.evaluation.lists import speechbrain_eer, voice_privacy

NAMES = tuple(f"s{i:02}" for i in range(40))
GENDER = {name: "fm"[i % 2] for i, name in enumerate(NAMES)}


def made(lead_f=2.5, lead_m=0.5, tests=6):
    """Women are easily found, men hardly."""
    target = np.repeat(np.arange(40), tests)
    lead = np.where(target % 2, lead_m, lead_f)
    own = target[:, None] == np.arange(40)
    scores = np.random.default_rng(0).normal(size=own.shape) + lead[:, None] * own
    return ScoreMatrix(scores, target, NAMES, "made")


@pytest.fixture(scope="module")
def parts():
    every = Comparisons.all_of(made())
    return by_group(
        every, GENDER, partial(evaluate, settings=EvaluationSettings(replicates=60)), "spk2gender"
    )


def figure(parts, name, key) -> Figure:
    (row,) = [row for row in parts.comparison.rows if row.key == key]
    found = row.figures[parts.comparison.names.index(name)]
    assert isinstance(found, Figure)
    return found


def value(parts, name, key) -> float:
    found = figure(parts, name, key).value
    assert found is not None
    return found


def test_a_known_difference_is_seen_and_marked(parts):
    assert parts.comparison.names == ("f", "m", AVERAGE)
    f, m = (value(parts, name, "verification.eer_rocch") for name in "fm")
    assert f < 0.15 < 0.3 < m
    differs = {row.key for row in parts.comparison.rows if row.differs[1]}
    assert differs >= {"verification.eer_rocch", "srd.idr", "lid.alid_bits", "srd.mean_bits_model"}
    (row,) = [row for row in parts.comparison.rows if row.key == "srd.idr"]
    assert row.most_private == 1


def test_only_comparisons_within_a_group_count(parts):
    matrix = made()
    for group, odd in (("f", 0), ("m", 1)):
        rows, columns = matrix.target % 2 == odd, np.arange(40) % 2 == odd
        scores = matrix.scores[rows][:, columns]
        own = matrix.target[rows][:, None] == np.flatnonzero(columns)
        found = figure(parts, group, "verification.eer_rocch")
        assert found.value == pytest.approx(eer(scores[own], scores[~own]), abs=1e-12)
    said = parts.notes[0]
    assert "f: 120 target and 2,280 non-target comparisons with 20 speakers" in said
    assert "4,800 other comparisons count in no group" in said


def test_the_average_weighs_groups_alike_and_has_limits(parts):
    for key in ("verification.eer_rocch", "srd.idr", "lid.alid_bits"):
        f, m, mean = (value(parts, name, key) for name in ("f", "m", AVERAGE))
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
        seen = generator.normal([1.0, 3.0], [0.1, 0.4])
        ends = [(x - 1.96 * s, x + 1.96 * s) for x, s in zip(seen, (0.1, 0.4), strict=True)]
        mean = _average(
            [
                Figure("a.b", "B", x, "bits", low=a, high=b)
                for x, (a, b) in zip(seen, ends, strict=True)
            ]
        )
        assert mean is not None
        low, high = mean.limits
        assert low is not None
        assert high is not None
        hits += low <= 2.0 <= high
    assert 0.92 <= hits / 400 <= 0.98


@pytest.mark.slow
def test_voice_privacys_two_lists_in_one(tmp_path):
    """Women and men are listed apart: no trial met everybody, within a group each did."""
    lists = [voice_privacy(tmp_path / p, p, seed) for seed, p in enumerate("fm")]
    for name in ("scores", "key"):
        (tmp_path / name).write_text("".join(getattr(each, name).read_text() for each in lists))
    genders = {f"{p}{1000 + i}": p for p in "fm" for i in range(15)}
    read = read_scores(tmp_path / "scores", tmp_path / "key")
    assert read.comparisons.matrix is None
    found = by_group(
        read.comparisons, genders, partial(evaluate, settings=EvaluationSettings(replicates=10))
    )
    official = [speechbrain_eer(each.mated, each.others) for each in lists]
    for group, expected in zip("fm", official, strict=True):
        nearest = value(found, group, "verification.eer_nearest")
        assert nearest == pytest.approx(expected, abs=1e-12)
        assert value(found, group, "srd.idr") > 0.1, "ranks, within the group"
    mean = value(found, AVERAGE, "verification.eer_nearest")
    assert mean == pytest.approx(np.mean(official), abs=1e-12)
    usage = found.comparison.reports[0].usage
    assert usage is not None
    assert (usage.target, usage.nontarget, usage.impostor_trials) == (704, 14566, 314)
    json.dumps(found.to_json(), allow_nan=False)


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
        assert one.matrix is not None
        assert other.matrix is not None
        assert other.rest is None
        np.testing.assert_array_equal(one.matrix.scores, other.matrix.scores)
        np.testing.assert_array_equal(one.matrix.target, other.matrix.target)
        assert one.matrix.speakers == other.matrix.speakers


def test_who_is_in_no_group_is_said():
    every = Comparisons.all_of(made())
    some = {name: group for name, group in GENDER.items() if name > "s05"} | {"s00": "x"}
    found = by_group(every, some, partial(evaluate, settings=EvaluationSettings(replicates=0)))
    said = " ".join(found.notes)
    assert "x is left out: 1 enrolled speaker; two are needed." in said
    assert "5 of 40 speakers are not in the file of groups (first: s01)." in said
    with pytest.raises(UsageError, match="knows none of the speakers of made"):
        by_group(every, {"ann": "f"}, partial(evaluate, settings=EvaluationSettings(replicates=0)))
    with pytest.raises(UsageError, match=r"1 group of made can be measured, two are needed"):
        by_group(
            every,
            dict.fromkeys(NAMES, "f"),
            partial(evaluate, settings=EvaluationSettings(replicates=0)),
        )


@pytest.mark.slow
def test_groups_stand_on_the_page(parts):
    reports = [evaluate(made(), settings=EvaluationSettings(replicates=0))]
    text = render_html(Evaluation(reports, [parts]).page())
    assert "made, group by group" in text
    assert text.count(">average</th>") == 1
    assert "as VoicePrivacy reports women and men" in text


FILES = {
    "spk2gender": ("ann f\nbob m\n", None),
    "plain.csv": ("ann,f\nbob,m\n", None),
    "two.csv": ("speaker,gender\nann,f\nbob,m\n", None),
    "wide.csv": ("id,accent,gender,age\nann,us,f,30\nbob,uk,m,\n", "gender"),
    "turned.tsv": ("gender\tspeaker\nf\tann\nm\tbob\n", None),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_groups(tmp_path, name):
    text, column = FILES[name]
    (tmp_path / name).write_text(text)
    if name == "turned.tsv":
        column = "gender"
    found = read_attribute(tmp_path / name, column)
    assert found.of == {"ann": "f", "bob": "m"}
    assert found.values == ("f", "m")


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("id,a,b\nann,1,2\n", None, "has a, b: choose one with --group-by"),
        ("id,a,b\nann,1,2\n", "c", "has no column 'c', but a, b"),
        ("ann f\nann m\n", None, "ann is f on one line and m on another"),
        ("ann f\nbob\n", None, "line 2: has 1 column, not 2"),
        ("", None, "is empty"),
        ("".join(f"s{i} {i}\n" for i in range(21)), None, "has 21 groups, more than 20"),
    ],
)
def test_files_that_make_no_groups(tmp_path, text, column, words):
    (tmp_path / "g").write_text(text)
    with pytest.raises(UsageError, match=words):
        read_attribute(tmp_path / "g", column)
