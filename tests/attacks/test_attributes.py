"""Attributes of buzzes: high or low is told through what keeps pitch, and not through one voice."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from monitor.attacks.attackers import ATTACKERS
from monitor.attacks.attributes import attribute_rows, attributed
from monitor.attacks.bench import Bench
from monitor.attacks.hearing import CLEAR, Hearing
from monitor.attacks.readers import readers_of
from monitor.corpus.finding import find
from monitor.errors import UsageError
from tests.attacks.conftest import AMOUNTS

pytestmark = pytest.mark.slow


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["speaker", "height", "age"])
        rows.writerows([f"r{i}", "low" if i % 12 < 6 else "high", 10 + i] for i in range(24))
    return path


def bench_of(root: Path, folder: Path) -> Bench:
    judged = readers_of(find(root), root, AMOUNTS)
    return Bench(judged, None, ("voice",), (), AMOUNTS, Hearing(), 0, folder)


def rows_of(bench, method, attacker, which):
    made = attribute_rows(bench, method, ATTACKERS[attacker], which, replicates=20)
    return {(name, row["value"], row["version"]): row for name, row in made}


def test_readers_apart_or_in_turn_tell_the_attribute(corpora, table, tmp_path):
    root, other = corpora(12, 1), corpora(12, 1, 12)
    bench = bench_of(root, tmp_path)
    alone = attributed(find(root), root, [], ["height"], seconds=4.0, table=table)
    assert alone.learnt is None
    (high, low) = rows_of(bench, CLEAR, "ignorant", alone).values()
    assert (high["value"], low["value"]) == ("high", "low")
    assert high["readers_with"] == high["learnt_with"] == 6
    assert high["eer"] < 0.2
    apart = attributed(
        find(root), root, [(find(other), other)], ["height", "age<16"], seconds=4.0, table=table
    )
    assert apart.learnt is not None
    assert not {r.name for r in apart.learnt.everybody} & {r.name for r in apart.judged.everybody}


def test_who_is_judged_is_never_learnt_from(corpora, table):
    root = corpora(12, 1)
    same = attributed(find(root), root, [(find(root), root)], ["height"], seconds=4.0, table=table)
    assert same.learnt is None


def test_what_is_not_known_is_refused(corpora, table, tmp_path):
    root = corpora(12, 1)
    with pytest.raises(UsageError, match="no table says the gender"):
        attributed(find(root), root, [], ["gender"], seconds=4.0)
    which = attributed(find(root), root, [], ["height"], seconds=4.0, table=table)
    judged = readers_of(find(root), root, AMOUNTS)
    deaf = Bench(judged, None, ("f0",), (), AMOUNTS, Hearing(), 0, tmp_path)
    with pytest.raises(UsageError, match="told by an embedding"):
        rows_of(deaf, CLEAR, "ignorant", which)
