"""Attributes of readers whose truth is made: told, not told, told by something else."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from monitor.corpus import find
from monitor.errors import UsageError
from monitor.lab.attacks.attributes import (
    Excerpts,
    compute_log_odds,
    find_attribute,
    judge_attribute,
    match_speakers,
    prepare_attributes,
    read_attributes,
)
from monitor.lab.attacks.readers import Amounts
from monitor.maths.composition import epsilon_lower_nats

SIZE = 12


def readers(count, seed=0, shift=0.0, each=6, own=0.6, name="r"):
    """Excerpts of so many readers, every second of whom has the attribute, and who has it."""
    generator = np.random.default_rng(seed)
    has = {f"{name}{i}": i % 2 == 1 for i in range(count)}
    own_vectors = own * generator.standard_normal((count, SIZE))
    own_vectors[1::2, 0] += shift
    whose = tuple(np.repeat(list(has), each).tolist())
    noise = 0.3 * generator.standard_normal((count * each, SIZE))
    return Excerpts(np.repeat(own_vectors, each, axis=0) + noise, whose), has


def told(count=60, shift=0.0, seed=0, **how):
    excerpts, has = readers(count, seed, shift)
    return judge_attribute(compute_log_odds(excerpts, excerpts, has), excerpts.whose, has, **how)


def test_nothing_is_told_where_there_is_nothing():
    """Readers judged are never learnt from: else their embeddings alone would give them away."""
    found = [told(seed=seed) for seed in range(6)]
    assert 0.4 < np.mean([each.eer for each in found]) < 0.6
    assert max(each.at[0].epsilon_low_nats for each in found) == 0.0
    assert np.mean([each.at[0].tpr for each in found]) < 0.08


def test_what_is_plain_is_told_and_more_the_more_there_is():
    found = told(shift=6.0)
    assert found.eer < 0.02
    assert found.at[0].tpr > 0.9
    assert found.at[0].epsilon_low_nats > 1.5
    assert (found.readers_with, found.readers_without) == (30, 30)
    assert (found.excerpts_with, found.excerpts_without) == (180, 180)
    rates = [told(shift=shift).eer for shift in (0.0, 0.6, 1.5, 4.0)]
    assert rates == sorted(rates, reverse=True)


def test_readers_apart_are_learnt_from_at_once():
    learnt, known = readers(60, 1, 6.0, name="l")
    of, has = readers(40, 2, 6.0)
    assert judge_attribute(compute_log_odds(learnt, of, known), of.whose, has).eer < 0.02
    wrong = {who: not value for who, value in known.items()}
    misled = judge_attribute(compute_log_odds(learnt, of, wrong), of.whose, has)
    assert (misled.eer, misled.eer_rocch) == (1.0, 0.5)


def test_a_reader_is_never_learnt_from_when_judged():
    """Each reader of an own direction: known if learnt from, unknown otherwise."""
    has = {f"r{i}": i % 2 == 1 for i in range(20)}
    whose = tuple(np.repeat(list(has), 4).tolist())
    excerpts = Excerpts(np.repeat(np.eye(20), 4, axis=0), whose)
    assert np.unique(compute_log_odds(excerpts, excerpts, has).round(6)).size <= 5  # one a fold
    others = Excerpts(excerpts.vectors, tuple(f"other {who}" for who in whose))
    known = {f"other {who}": value for who, value in has.items()}
    assert judge_attribute(compute_log_odds(others, excerpts, known), whose, has).eer == 0.0


def test_the_bound_is_the_plain_one_with_one_excerpt_a_reader():
    generator = np.random.default_rng(0)
    whose = [f"r{i}" for i in range(400)]
    has = {who: i < 200 for i, who in enumerate(whose)}
    scores = generator.standard_normal(400) + 2.5 * np.array([has[who] for who in whose])
    at = judge_attribute(scores, whose, has).at[0]
    hits, alarms = round(200 * at.tpr), round(200 * at.realised)
    plain = epsilon_lower_nats(hits, 200, alarms, 200)
    assert at.epsilon_low_nats == pytest.approx(plain, rel=0.15)
    thrice = judge_attribute(np.repeat(scores, 3), np.repeat(whose, 3).tolist(), has).at[0]
    assert thrice.epsilon_low_nats == pytest.approx(at.epsilon_low_nats, rel=0.05)


@pytest.mark.slow
def test_limits_hold_where_excerpts_of_a_reader_are_alike():
    """Readers scatter by 1, their excerpts by 0.5: rates at any threshold are known."""
    generator = np.random.default_rng(1)
    has = {f"r{i}": i < 30 for i in range(60)}
    whose = np.repeat(list(has), 5).tolist()
    held, too_high = 0, 0
    for _ in range(40):
        own = generator.standard_normal(60) + 2.0 * np.array(list(has.values()))
        scores = np.repeat(own, 5) + 0.5 * generator.standard_normal(300)
        (at,) = judge_attribute(scores, whose, has, rates=(0.05,), replicates=100).at
        edge = np.sort(scores[150:])[::-1][7]  # seven of 150 lie above
        tpr, fpr = norm.sf((edge - 2) / np.hypot(1, 0.5)), norm.sf(edge / np.hypot(1, 0.5))
        held += at.tpr_low <= tpr <= at.tpr_high and fpr <= at.realised_high
        too_high += at.epsilon_low_nats > np.log(tpr / fpr)
    assert held >= 35
    assert too_high <= 2


def test_what_cannot_be_resolved_is_said():
    at = told(count=20, shift=3.0).at
    assert "10 readers" in at[0].note or "cannot resolve" in at[0].note
    assert "60 excerpts without the attribute cannot resolve" in at[1].note
    assert all(each.tpr_low <= each.tpr <= each.tpr_high for each in at)
    assert all(each.realised <= each.asked for each in at)
    with pytest.raises(UsageError, match="1 reader with the attribute and 1 without"):
        judge_attribute(np.zeros(2), ["a", "b"], {"a": True, "b": False})
    few, has = readers(2)
    others, _ = readers(8, name="j")
    with pytest.raises(UsageError, match="1 training reader with the attribute"):
        compute_log_odds(few, others, has)


def test_matched_readers_are_not_told_by_something_else():
    """The embedding tells age, which goes with gender: relaxed tells gender, strict does not."""
    generator = np.random.default_rng(4)
    whose = [f"r{i}" for i in range(120)]
    old = {who: str(i % 2) for i, who in enumerate(whose)}
    agrees = generator.random(120) < 0.8
    has = {who: (old[who] == "1") == bool(a) for who, a in zip(whose, agrees, strict=True)}
    own = generator.standard_normal((120, SIZE))
    own[:, 0] += [4.0 * (old[who] == "1") for who in whose]
    every = Excerpts(np.repeat(own, 3, axis=0), tuple(np.repeat(whose, 3).tolist()))
    relaxed = judge_attribute(compute_log_odds(every, every, has), every.whose, has)
    chosen = match_speakers(whose, has, [old])
    some = every.select_speakers(frozenset(chosen))
    strict = judge_attribute(compute_log_odds(some, some, has), some.whose, has)
    assert relaxed.eer < 0.31 < 0.38 < strict.eer
    assert strict.readers_with == strict.readers_without
    for value in "01":
        kept = [has[who] for who in chosen if old[who] == value]
        assert sum(kept) * 2 == len(kept)


def test_attributes_are_asked_for_by_name_or_by_a_number():
    said = {"Gender": {"a": "F", "b": "M"}, "age": {"a": "9", "b": "30"}, "x": {"a": "y"}}
    assert find_attribute("gender", said, "ab").values == ("F", "M")
    assert find_attribute("age < 15.5", said, "ab").of == {"a": "age<15.5", "b": "age>=15.5"}
    for asked, why in (
        ("accent", r"accent of these speakers is unknown.*\(columns: Gender, age, x\)"),
        ("gender<3", "invalid attribute gender<3: .*numbers"),
        ("x", "all 1 speaker with a known value have the same"),
    ):
        with pytest.raises(UsageError, match=why):
            find_attribute(asked, said, "ab")
    ages = {"age": {str(i): str(i) for i in range(30)}}
    with pytest.raises(UsageError, match=r"30 values, more than 20; .* age<16"):
        find_attribute("age", ages, map(str, range(30)))


def test_people_of_the_same_name_keep_the_judged_ones_attributes(tmp_path):
    corpora = []
    for folder, rows in (("judged", "1,f,nan\n2,M,12\n3,F,30\n"), ("others", "1,m,40\n9,f,50\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "manifest.csv").write_text(
            "path,speaker,gender,age\n" + "".join(f"a.wav,{row}\n" for row in rows.splitlines())
        )
        corpora.append((None, tmp_path / folder))
    stated = read_attributes(corpora, None)
    attribute = find_attribute("gender", stated, "1239")
    assert attribute.of == {"1": "f", "2": "M", "3": "f", "9": "f"}  # one spelling of each
    assert find_attribute("age<16", stated, "239").of == {
        "2": "age<16", "3": "age>=16", "9": "age>=16",
    }  # fmt: skip
    assert read_attributes(corpora[:1], None)["age"] == {"2": "12", "3": "30"}  # nan is no age


EXCERPTS = Amounts(4.0, 3)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["speaker", "height", "age"])
        rows.writerows([f"r{i}", "low" if i % 6 < 3 else "high", 10 + 2 * i] for i in range(12))
    return path


@pytest.mark.slow
def test_who_is_judged_is_never_learnt_from(corpora, table):
    root, other = corpora(), corpora(first=6)
    apart: Any = prepare_attributes(
        find(root), root, [(find(other), other)], ["height", "age<16"], EXCERPTS, table
    )
    judged, learnt = (
        {reader.name for reader in part.everybody} for part in (apart.judged, apart.learnt)
    )
    assert not learnt & judged
    same = prepare_attributes(find(root), root, [(find(root), root)], ["height"], EXCERPTS, table)
    assert same.learnt is None
    with pytest.raises(UsageError, match="gender of these speakers is unknown"):
        prepare_attributes(find(root), root, [], ["gender"], EXCERPTS)
